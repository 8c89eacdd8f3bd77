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
    int key_parts, ring;                    /* of attention (MtfStepVariant) */
    bool any_key_parts, any_ring; /* … whichever make the step shorter than whole ones */
    int devices, max_axes;        /* `devices` of all stages together; 0: as many as the mesh has */
    double seconds, gap;          /* gap NAN: not given */
    MtfUniform uniform;
    bool json;
    const char *cut; /* where stages may begin, "any" or "layers"; or NULL */
    bool megatron;   /* only what Megatron-LM runs */
} MtfSearchPipeline;

/* A search for stages; its options are borrowed. */
typedef struct MtfPipelineFind MtfPipelineFind;

/* Searches. With the number of stages open there may be none: the whole graph is to be searched as it
 * is. NULL on an error: bad input, or nothing fits. */
MtfPipelineFind *mtf_pipeline_find(const MtfSearchPipeline *options, GError **error);

/* Of a step of the plan; 0: no stages. */
double mtf_pipeline_find_seconds(const MtfPipelineFind *find);

/* What a step takes without stages, as the plan is to tell, 0: none was found; and whether the
 * search of some variant of it was given up, since by its bound none comes near. */
void mtf_pipeline_find_beside(MtfPipelineFind *find, double seconds, bool given_up);

/* What was found, for the `search` object of the plan without stages: {"stages", "schedule",
 * "microbatches", "step_seconds"}, or {"stages": 1, "tried"} where none was. */
cJSON *mtf_pipeline_find_to_json(const MtfPipelineFind *find);

/* Prints and writes the plan. */
bool mtf_pipeline_find_finish(const MtfPipelineFind *find, GError **error);
void mtf_pipeline_find_free(MtfPipelineFind *find);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineFind, mtf_pipeline_find_free)

#endif
