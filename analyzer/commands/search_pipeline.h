// SPDX-License-Identifier: GPL-3.0-or-later
/* `search --stages`: what the command searches for when a graph is to be cut into a pipeline. */
#ifndef MTF_SEARCH_PIPELINE_H
#define MTF_SEARCH_PIPELINE_H

#include "analyzer/planner/pipeline_planning.h"

typedef struct {
    const char *graph;
    const char *const *dims;
    const char *const *pads;
    const char *mesh, *machine, *software, *memory, *precision, *microbatches, *batch_dim,
        *recompute;
    const char *schedule, *output, *report; /* the plan's file and its page's folder, or NULL */
    int batch, length;                      /* of a published model; 0: not given */
    const char *loss;                       /* of an ONNX file, or NULL */
    int stages;                             /* 0: as many as are best */
    int chunks;                             /* a stage; 0: as the schedule needs */
    int devices, max_axes;                  /* `devices` of all stages together; 0 with a mesh */
    double seconds, gap;                    /* gap NAN: not given */
    MtfUniform uniform;
    bool json;
} MtfSearchPipeline;

/* Searches, prints and writes. `*one` is set where one stage is the best number and nothing else was
 * done: the whole graph is to be searched as it is. */
bool mtf_search_pipeline(const MtfSearchPipeline *options, bool *one, GError **error);

#endif
