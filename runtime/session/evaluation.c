// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/evaluation.h"

#include "layouts/base/error.h"
#include "runtime/session/forward_part.h"
#include "runtime/support/agreement.h"

bool mtf_evaluation_check(const MtfSession *session, GError **error) {
    return session->options->eval_every == 0 || mtf_data_held_batches(session->data) > 0 ||
           mtf_input_error(error, "--eval-every: too little data is held out for one example: "
                                  "give a larger --held-out, or a file of such data");
}

bool mtf_evaluate(MtfSession *session, double *loss, GError **error) {
    MtfForwardPart part = mtf_forward_part(session->program);
    g_autoptr(MtfTraffic) uncounted = mtf_traffic_new(session->program);
    int64_t batches = MIN(session->options->eval_batches, mtf_data_held_batches(session->data));
    GError *local = NULL;
    *loss = 0;
    mtf_data_hold_out(session->data, true);
    for (int64_t batch = 1; batch <= batches; batch++) {
        GError *failure = NULL;
        if (session->stage != NULL)
            mtf_stage_run_forward(session->stage, batch, &failure);
        else
            mtf_forward_run(&session->executor, &part, uncounted, batch, &failure);
        if (local == NULL)
            local = g_steal_pointer(&failure);
        g_clear_error(&failure);
        *loss += mtf_session_loss(session) / (double)batches;
    }
    mtf_data_hold_out(session->data, false);
    return mtf_agree(session->control, local, error);
}
