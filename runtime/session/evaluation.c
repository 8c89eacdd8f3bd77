// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/evaluation.h"

#include "layouts/base/error.h"
#include "runtime/support/agreement.h"

#include <math.h>

bool mtf_evaluation_check(const MtfSession *session, GError **error) {
    return session->options->eval_every == 0 || mtf_data_held_batches(session->data) > 0 ||
           mtf_input_error(error, "--eval-every: too little data is held out for one example: "
                                  "give a larger --held-out, or a file of such data");
}

/* Lets all parts of the program on this rank count in `accuracy`, or none (NULL). */
static void count_in(MtfSession *session, MtfAccuracy *accuracy) {
    for (int c = 0; c < session->stage->n_chunks; c++)
        session->stage->chunks[c].executor.accuracy = accuracy;
}

static double share_of_all(const MtfAccuracy *accuracy, MPI_Comm control) {
    double counts[] = { accuracy->right, accuracy->all };
    mtf_agree_sums(control, counts, 2);
    return counts[1] > 0 ? counts[0] / counts[1] : NAN;
}

bool mtf_evaluate(MtfSession *session, double *loss, double *accuracy, GError **error) {
    int64_t batches = MIN(session->options->eval_batches, mtf_data_held_batches(session->data));
    GError *local = NULL;
    MtfAccuracy counted = { 0 };
    *loss = 0;
    count_in(session, &counted);
    mtf_data_hold_out(session->data, true);
    for (int64_t batch = 1; batch <= batches; batch++) {
        mtf_stage_run_forward(session->stage, batch, &local);
        *loss += mtf_session_loss(session) / (double)batches;
    }
    mtf_data_hold_out(session->data, false);
    count_in(session, NULL);
    *accuracy = share_of_all(&counted, session->control);
    return mtf_agree(session->control, local, error);
}
