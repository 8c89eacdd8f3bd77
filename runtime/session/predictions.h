// SPDX-License-Identifier: GPL-3.0-or-later
/* What a model makes of its data by a plan of forward passes (`search --infer forward`). */
#ifndef MTF_PREDICTIONS_H
#define MTF_PREDICTIONS_H

#include "runtime/session/session.h"

/* Collective: runs the program on all examples of the data, in their order and a batch at a time, and writes
 * the first of the results that it keeps to a .npy file of float32, in that result's shape with all examples.
 * Of generated data, and of a result that is none of examples, it writes that of one batch. Fails on all
 * ranks or on none. Returns a sentence of what was written, to be freed with g_free. */
char *mtf_predictions_write(MtfSession *session, const char *path, GError **error);

#endif
