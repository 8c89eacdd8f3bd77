// SPDX-License-Identifier: GPL-3.0-or-later
/* --verify: layouts do not affect results, shown for this run. Rank 0 runs the same steps of the
 * same graph on a mesh of one processor, from the same seed and data, and every rank compares its
 * slices of the variables with the whole ones of that run. */
#ifndef MTF_VERIFY_H
#define MTF_VERIFY_H

#include "runtime/session/session.h"

/* Collective over session->control, after mtf_session_train. Returns a table of the largest
 * relative differences, max |a - b| / max |b|, of the loss over all steps and of each variable
 * after the last, on every rank; free with g_free. NULL when rank 0 has no room for the whole
 * model. `same`, unless NULL, is whether they are as small as rounding may make them: of losses, or of results
 * where there is no loss. */
char *mtf_verify(const MtfSession *session, bool *same, GError **error);

#endif
