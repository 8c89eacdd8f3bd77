// SPDX-License-Identifier: GPL-3.0-or-later
/* How a session begins and what it leaves behind: initial weights, the newest good checkpoint of a
 * folder, and the checkpoints it writes there. All functions are collective over the control
 * communicator and fail on all ranks or on none. */
#ifndef MTF_SESSION_CHECKPOINTS_H
#define MTF_SESSION_CHECKPOINTS_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/session/session.h"

/* The variables of the session's model, of a pipeline those of all stages. Not collective. */
MtfCheckpointed mtf_session_checkpointed(const MtfSession *session);

/* Reads options->init and options->init_adapter, where they are given, into `what`. */
bool mtf_session_read_weights(const MtfSession *session, const MtfCheckpointed *what,
                              GError **error);

/* Gives the variables their values and session->done its steps: from the newest good checkpoint where
 * options->resume is set and there is one; otherwise from options->init and options->init_adapter, or drawn
 * by the seed. Newer checkpoints that are not good are skipped, each with a sentence on standard error. Fails
 * (bad input) when checkpoints cannot be written to the folder, when it holds some but options->resume is not
 * set, when none of them is good, and when the newest good one is of another model, seed or data. */
bool mtf_session_begin(MtfSession *session, GError **error);

/* Writes the checkpoint of the steps done and removes those that are not to be kept. Without a
 * folder it does nothing. */
bool mtf_session_save(MtfSession *session, int64_t step, GError **error);

/* Writes what the last batch's results are to options->results, where that is given. */
bool mtf_session_write_results(const MtfSession *session, GError **error);

/* What checkpoints came to, a line for people; NULL when none was written. Free with g_free. */
char *mtf_session_saves_format(const MtfSession *session);

#endif
