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

double mtf_run_stage_layers(const MtfTrainingRun *run, double *ends) {
    int64_t layers = run->model.layers, stages = run->pp;
    if (layers % stages != 0 && (layers + 2) % stages == 0) {
        *ends = (double)((layers + 2) / stages - 1);
        return *ends + 1;
    }
    *ends = ceil((double)layers / (double)stages);
    return *ends;
}
