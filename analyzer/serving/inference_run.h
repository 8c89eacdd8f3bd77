// SPDX-License-Identifier: GPL-3.0-or-later
/* A search of `--infer` under way: what is asked, what it works on, and what it found. */
#ifndef MTF_INFERENCE_RUN_H
#define MTF_INFERENCE_RUN_H

#include "analyzer/planner/search_progress.h"
#include "analyzer/serving/inference_stages.h"
#include "analyzer/serving/search_inference.h"

/* A number of stages, and what it gives; 0 tokens: nothing fits. */
typedef struct {
    int stages;
    double tokens; /* a second */
} MtfTriedStages;

typedef struct {
    const MtfSearchInference *options;
    MtfInferKind kind;
    MtfInferenceSizes sizes;
    MtfMachine *machine;
    MtfGraph *written;
    MtfSearchProgress *progress;
    const char *precision; /* asked for, or the machine's own; NULL: as written */
    int stages;            /* of a pipeline; 1: none */
    MtfGraph *cut;         /* the written graph, whose operations have those stages */
    GArray *tried;         /* MtfTriedStages, where any number of stages will do */
    GArray *meshes[2];     /* MtfMesh; by MtfInferKind, as phases */
    int64_t memory_limit, cache_limit;
    MtfInferencePhase phase[2];       /* by MtfInferKind: prefill and decode, as far as wanted */
    MtfInferencePipeline pipeline[2]; /* instead, with --stages */
    MtfInferKind leader;  /* of serving on the same devices: whose layout serves both phases, and */
    double alone_seconds; /* a step of the other one in the layout found for it alone */
    int prefill_devices;  /* the first of all devices, which read prompts only; 0: all do both */
    double handover_seconds, handover_bytes; /* of all caches to the devices that decode */
    double together_tokens; /* a second, of all devices doing both; 0: not known, or nothing fits */
    int searches;           /* that share the seconds */
} MtfInferenceRun;

/* Whether any graph is run, once for each batch, and no text token by token. */
bool mtf_inference_run_is_forward(const MtfInferenceRun *run);

/* Whether that phase is searched. */
bool mtf_inference_run_wants(const MtfInferenceRun *run, MtfInferKind phase);

/* Prefill's is decode, and the other way round. */
MtfInferKind mtf_inference_other_phase(MtfInferKind kind);

/* Seconds of a step: all prompts, or a token for each; with stages until the last of them is done. */
double mtf_inference_run_step_seconds(const MtfInferenceRun *run, MtfInferKind kind);

/* Seconds in which all examples get their tokens. Caches fill evenly, so that a token costs in the mean
 * what it does half way. */
double mtf_inference_run_decode_seconds(const MtfInferenceRun *run);

/* Tokens that all examples together get a second: read, generated, or generated with the reading of
 * their prompts counted; where that goes on elsewhere, the next examples are read and handed over
 * meanwhile, and the slowest of the three decides. Of a forward run: examples. */
double mtf_inference_run_tokens_per_second(const MtfInferenceRun *run);

#endif
