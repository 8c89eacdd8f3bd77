// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/problems/pipeline_events.h"

static double seconds_of(const MtfPipelineAction *a, const MtfStageTimes *times) {
    const MtfStageTimes *t = &times[a->stage];
    bool forward = a->work == MTF_WORK_FORWARD;
    bool input = a->work == MTF_WORK_INPUT_GRADIENT || a->work == MTF_WORK_BACKWARD;
    bool weight = a->work == MTF_WORK_WEIGHT_GRADIENT || a->work == MTF_WORK_BACKWARD;
    return (forward ? t->forward : 0) + (input ? t->input_gradient : 0) +
           (weight ? t->weight_gradient : 0);
}

/* How long after `from` ends `to` may begin; -1 when it need not wait for it. */
static double delay(const MtfPipelineOrder *order, const MtfStageTimes *times,
                    const MtfPipelineAction *from, const MtfPipelineAction *to) {
    bool from_gradient = from->work == MTF_WORK_INPUT_GRADIENT || from->work == MTF_WORK_BACKWARD;
    bool to_gradient = to->work == MTF_WORK_INPUT_GRADIENT || to->work == MTF_WORK_BACKWARD;
    bool away = order->rank_of_stage[from->stage] != order->rank_of_stage[to->stage];
    if (from->microbatch != to->microbatch)
        return -1;
    if (from->work == MTF_WORK_FORWARD && to->work == MTF_WORK_FORWARD &&
        to->stage == from->stage + 1)
        return away ? times[from->stage].transfer_forward : 0;
    if (from_gradient && to_gradient && to->stage == from->stage - 1)
        return away ? times[from->stage].transfer_backward : 0;
    if (from->work == MTF_WORK_FORWARD && to_gradient && from->stage == to->stage)
        return 0;
    return -1;
}

/* Moves the end of one action to the earliest that all others allow; whether it moved. */
static bool relax(const MtfPipelineOrder *order, const MtfStageTimes *times, double **ends, int r,
                  int i) {
    const MtfPipelineAction *to = mtf_pipeline_action(order, r, i);
    double begin = i > 0 ? ends[r][i - 1] : 0;
    for (int q = 0; q < order->ranks; q++)
        for (int j = 0; j < mtf_pipeline_length(order, q); j++) {
            double wait = delay(order, times, mtf_pipeline_action(order, q, j), to);
            if (wait >= 0 && ends[q][j] + wait > begin)
                begin = ends[q][j] + wait;
        }
    double end = begin + seconds_of(to, times);
    bool moved = end > ends[r][i];
    ends[r][i] = end;
    return moved;
}

double **mtf_test_pipeline_ends(const MtfPipelineOrder *order, const MtfStageTimes *times) {
    double **ends = g_new(double *, (gsize)order->ranks);
    for (int r = 0; r < order->ranks; r++)
        ends[r] = g_new0(double, (gsize)mtf_pipeline_length(order, r));
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < order->ranks; r++)
            for (int i = 0; i < mtf_pipeline_length(order, r); i++)
                moved = relax(order, times, ends, r, i) || moved;
    }
    return ends;
}
