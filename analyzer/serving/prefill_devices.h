// SPDX-License-Identifier: GPL-3.0-or-later
/* How many devices may read prompts while the others generate. */
#ifndef MTF_PREFILL_DEVICES_H
#define MTF_PREFILL_DEVICES_H

#include "cost/machine/machine.h"

/* Numbers (int) from 1 to devices - 1, ascending: powers of two, and what these leave of all, where both
 * sides are slices of the machine that meshes of at most `max_axes` axes cover; of more than one host's
 * devices whole hosts. Fails (bad input) where there is none. Free with g_array_unref. */
GArray *mtf_prefill_devices(const MtfMachine *machine, int devices, int max_axes, GError **error);

#endif
