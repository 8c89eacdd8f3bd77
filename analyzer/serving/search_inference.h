// SPDX-License-Identifier: GPL-3.0-or-later
/* `search --infer`: what the command searches for when a model is to be run and not trained. */
#ifndef MTF_SEARCH_INFERENCE_H
#define MTF_SEARCH_INFERENCE_H

#include "analyzer/serving/inference_plan.h"

typedef struct {
    const char *graph, *infer;
    const char *const *dims, *const *pins, *const *forbids;
    const char *mesh, *machine, *software, *memory, *precision, *layouts, *cache_memory, *weights,
        *output, *copy;           /* files of the plan, the second for a report; or NULL */
    const char *prefill_devices;  /* a number, or "auto": prompts are read on devices of their
                                     own; or NULL */
    int batch, context, generate; /* 0: standard ones */
    int length;                   /* of a published model that is run forward; 0: a standard one */
    int devices, max_axes;
    int stages;          /* of a pipeline; 1: none; 0: as many as give most tokens */
    double seconds, gap; /* gap NAN: not given */
    MtfUniform uniform;
    int seed;
    bool json;
    bool (*interrupted)(void); /* by the user; NULL: never */
} MtfSearchInference;

/* Searches, prints, and writes the plan: of serving that of the decode step. Fails with exit status 3 where
 * nothing fits. */
bool mtf_search_inference(const MtfSearchInference *options, GError **error);

#endif
