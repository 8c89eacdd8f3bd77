// SPDX-License-Identifier: GPL-3.0-or-later
/* What the weights beside a config.json are called, for the few types whose config leaves open which there are. */
#ifndef MTF_WEIGHT_NAMES_H
#define MTF_WEIGHT_NAMES_H

#include <stdbool.h>

/* Whether there are weights beside the config (model.safetensors, or the index of several files) and none of
 * them has that name. What cannot be read lacks nothing: whoever reads weights says what is wrong with them. */
bool mtf_weights_lack(const char *config_path, const char *name);

/* Whether the name of one of them ends so. */
bool mtf_weights_have(const char *config_path, const char *ending);

#endif
