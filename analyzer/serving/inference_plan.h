// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans of inference: one phase is a graph that generates (layouts/inference/generation_graph.h),
 * its layout, and what a step of it takes.
 *
 *     prefill   an example's prompt at once     length = context, caches hold it
 *     decode    one new token an example        length = 1, caches hold context + generate
 *
 * Weights, caches and activations are laid out by the same search as in training, so whether weights
 * stay and activations move or weights are gathered, and along how many axes, is found and not
 * chosen. Memory counts caches with room for all of the context; a decode step is priced with full
 * ones. */
#ifndef MTF_INFERENCE_PLAN_H
#define MTF_INFERENCE_PLAN_H

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"

typedef enum {
    MTF_INFER_PREFILL,
    MTF_INFER_DECODE,
    MTF_INFER_SERVE,
    MTF_INFER_FORWARD, /* any graph (forward_graph.h), once a batch */
    MTF_INFER_KINDS
} MtfInferKind;

/* "prefill", "decode", "serve", "forward". */
const char *mtf_infer_kind_name(MtfInferKind kind);
bool mtf_infer_kind_parse(const char *text, MtfInferKind *kind, GError **error);

typedef struct {
    int64_t batch;    /* examples */
    int64_t context;  /* tokens of an example's prompt, or that stand before a decoded one */
    int64_t generate; /* tokens that follow; caches have room for them */
} MtfInferenceSizes;

typedef struct {
    MtfPlanAnswer answer;
    MtfPlan *plan;        /* NULL: nothing fits */
    double step_seconds;  /* of the whole batch: all prompts, or a token each */
    int64_t max_context;  /* the longest context (with what is generated) with which this layout
                             fits; 0 where nothing grows with it */
    int64_t weight_bytes; /* of a device */
    int64_t cache_bytes;  /* … */
} MtfInferencePhase;

/* In which types a model is run. */
typedef struct {
    const char *precision; /* "bf16": weights and caches, too; NULL: as written */
    bool int8_weights;     /* quantize_weights.h */
} MtfInferenceTypes;

/* The graph of a phase, ready to be laid out: expanded, in those types, its operations in the stages of what
 * was written where that is cut. Fails (bad input) where no weight can be int8. */
MtfGraph *mtf_inference_graph(const MtfGraph *written, MtfInferKind phase,
                              const MtfInferenceSizes *sizes, const MtfInferenceTypes *types,
                              GError **error);

/* Searches the meshes (MtfMesh) for a phase, prefill or decode. `cache_limit` is what caches may
 * take of a device in max_context; 0: what the rest leaves. True with or without a layout. Clear
 * the phase in either case. */
bool mtf_inference_search(MtfGraph *graph, const GArray *meshes,
                          const MtfPlanSearchOptions *options, int64_t cache_limit,
                          MtfInferencePhase *phase, GError **error);

/* Makes a phase of `graph`, taken over, in the layout of the other phase of the same model: what devices that
 * do both run, which keep weights and caches once. Its plan is NULL where that does not fit. */
void mtf_inference_follow(MtfGraph *graph, const MtfInferencePhase *leader,
                          const MtfPlanSearchOptions *options, int64_t cache_limit,
                          MtfInferencePhase *phase);
void mtf_inference_phase_clear(MtfInferencePhase *phase);

/* Seconds of a step of the plan's layout when its caches hold `context` tokens an example. */
double mtf_inference_seconds_at(const MtfInferencePhase *phase, int64_t context);

#endif
