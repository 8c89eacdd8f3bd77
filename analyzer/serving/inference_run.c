// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/inference_run.h"

#include <math.h>

bool mtf_inference_run_is_forward(const MtfInferenceRun *run) {
    return run->kind == MTF_INFER_FORWARD;
}

MtfInferKind mtf_inference_other_phase(MtfInferKind kind) {
    return kind == MTF_INFER_PREFILL ? MTF_INFER_DECODE : MTF_INFER_PREFILL;
}

bool mtf_inference_run_wants(const MtfInferenceRun *run, MtfInferKind phase) {
    return run->kind == phase || run->kind == MTF_INFER_SERVE ||
           (mtf_inference_run_is_forward(run) && phase == MTF_INFER_PREFILL);
}

double mtf_inference_run_step_seconds(const MtfInferenceRun *run, MtfInferKind kind) {
    return run->stages > 1 ? run->pipeline[kind].step_seconds : run->phase[kind].step_seconds;
}

double mtf_inference_run_decode_seconds(const MtfInferenceRun *run) {
    const MtfInferenceSizes *s = &run->sizes;
    int64_t context = s->context + (s->generate + 1) / 2;
    double step = run->stages > 1
                      ? mtf_inference_pipeline_seconds_at(&run->pipeline[MTF_INFER_DECODE], context)
                      : mtf_inference_seconds_at(&run->phase[MTF_INFER_DECODE], context);
    return (double)s->generate * step;
}

double mtf_inference_run_tokens_per_second(const MtfInferenceRun *run) {
    const MtfInferenceSizes *s = &run->sizes;
    double prefill = mtf_inference_run_step_seconds(run, MTF_INFER_PREFILL);
    if (mtf_inference_run_is_forward(run)) /* one element of the batch is one example */
        return (double)s->batch / prefill;
    if (run->kind == MTF_INFER_PREFILL)
        return (double)(s->batch * s->context) / prefill;
    if (run->kind == MTF_INFER_DECODE)
        return (double)s->batch / mtf_inference_run_step_seconds(run, MTF_INFER_DECODE);
    double tokens = (double)(s->batch * s->generate);
    return run->prefill_devices == 0
               ? tokens / (prefill + mtf_inference_run_decode_seconds(run))
               : tokens / fmax(prefill,
                               fmax(run->handover_seconds, mtf_inference_run_decode_seconds(run)));
}
