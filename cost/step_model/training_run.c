// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/step_model/training_run.h"

#include <math.h>

double mtf_run_attention_parameters(const MtfModelSizes *model) {
    double h = (double)model->width, d = (double)model->head_width;
    double queries = (double)(model->heads + 2 * model->kv_heads) * d;
    return h * queries + (double)model->heads * d * h + 2 * h + h * (double)model->experts;
}

double mtf_run_inner_parameters(const MtfModelSizes *model) {
    double matrices = model->gated ? 3 : 2;
    double experts = (double)MAX(model->experts, 1);
    return experts * matrices * (double)model->width * (double)model->inner;
}

double mtf_run_embedding_parameters(const MtfModelSizes *model) {
    return (double)model->vocab * (double)model->width;
}

double mtf_run_micro_batches(const MtfTrainingRun *run) {
    return fmax(run->batch / ((double)run->dp * run->micro), 1);
}

/* Where the host waits for every kernel before the next launch: its waking up, an assumption. */
#define BLOCKED_SECONDS 4e-5

MtfSoftware mtf_run_software(const MtfTrainingRun *run, const MtfSoftware *software) {
    MtfSoftware own = *software;
    own.own_messages = true;
    if (run->gradient_bytes > 0)
        own.gradient_bytes = run->gradient_bytes;
    if (run->reduce_bytes > 0)
        own.reduce_bytes = run->reduce_bytes;
    if (run->redo == MTF_REDO_SELECTIVE)
        own.attention_again = software->redone[MTF_REDO_SELECTIVE][MTF_PART_ATTENTION];
    if (run->blocking)
        own.blocked_seconds = BLOCKED_SECONDS;
    for (int i = 0; run->blocking && i < MTF_HIDDENS; i++)
        own.hidden[i] = 0;
    return own;
}

double mtf_run_stage_layers(const MtfTrainingRun *run, double *ends) {
    int64_t layers = run->model.layers, stages = run->pp;
    if (layers % stages != 0 && (layers + 2) % stages == 0) {
        *ends = (double)((layers + 2) / stages - 1);
        return *ends + 1;
    }
    *ends = ceil((double)layers / (double)stages);
    return *ends;
}
