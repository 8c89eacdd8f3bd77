// SPDX-License-Identifier: GPL-3.0-or-later
/* The loss of data that is held out of training: the mean over some batches, the same ones each
 * time, with the variables as they are and nothing dropped. */
#ifndef MTF_EVALUATION_H
#define MTF_EVALUATION_H

#include "runtime/session/session.h"

/* Fails (bad input) when options ask for evaluation but no data is held out. */
bool mtf_evaluation_check(const MtfSession *session, GError **error);

/* Collective over the control communicator; the inputs are those of another batch afterwards. */
/* `*accuracy`: the share of labels that have the highest score; NAN where the loss is not of labels. */
bool mtf_evaluate(MtfSession *session, double *loss, double *accuracy, GError **error);

#endif
