// SPDX-License-Identifier: GPL-3.0-or-later
/* From a graph as its user wrote it to the best plan of one training step: which variants of the step
 * may do (step_variants.h), and the search of each that promises most (plan_search.h).
 *
 *     graph ──► variants, ranked ──► two at once ──► keep the better ──► the next one or two that may be better
 *
 * Of two that are searched at once the second is given up when its bound says that it is slower, and of
 * large graphs the one with the shorter step alone is proven. What is found does not depend on which
 * ends first.
 *
 * Where attention has few queries to a long memory, variants whose memory is in as many parts as axes have
 * processors are searched behind the best (key_parts.h): where there are as many queries, gathering
 * keys and values takes no more bytes than what parts exchange.
 *
 * Where the best plan splits the queries of attention and gathers its keys and values, or nothing fits and
 * these are large, the same with rings (key_ring.h) is searched, of as many parts as one such axis has or all
 * of them, and kept where its steps are shorter.
 *
 * Where the best plan splits fewer dimensions of space than windows go over, the same with an axis for each of them is
 * searched, and kept where its steps are shorter.
 *
 * Where memory asks for recomputation or micro-batches, or nothing fits, variants that leave something with
 * the host (offload.h) are searched as well, and kept where their steps are shorter. */
#ifndef MTF_VARIANT_SEARCH_H
#define MTF_VARIANT_SEARCH_H

#include "analyzer/planner/variant_frontier.h"

/* Searches of steps with no more operations are over soon, and their answer says more than that a rival wins. */
#define MTF_QUICK_OPERATIONS 1000

/* What was found of few layers of a step, which the search of all begins with (deep_layout.h). */
typedef struct {
    const MtfGraph *graph; /* the step of the few */
    int layers;
    const GArray *layouts;      /* MtfKnownLayout, of that; the best first */
    const MtfMapping *mapping;  /* NULL: in order */
    const MtfRowPrices *prices; /* of its memory; or NULL */
} MtfFewLayers;

typedef struct MtfVariantAnswer MtfVariantAnswer;

typedef struct {
    const MtfGraph *written; /* by the user */
    const MtfMachine *machine;
    const GArray *meshes;  /* MtfMesh */
    bool more_axes;        /* others of more axes may be searched, too, for space */
    bool batch_first;      /* as of MtfPlanSearchOptions */
    const char *precision; /* NULL: as the graph has it */
    const char *batch_dim; /* as of MtfStepVariant */
    int microbatches;      /* as of MtfStepVariantsOptions */
    int recompute;         /* … */
    int recomputed_layers; /* … */
    int offload;           /* MtfOffload, or MTF_OFFLOADS: any */
    int offloaded_layers;  /* as of MtfStepVariant */
    int key_parts;         /* of attention's memory; 0: any */
    int ring;              /* parts of its queries and memory; 0: any */
    int64_t memory_limit;  /* bytes of a device */
    const char *const *pins, *const *forbids;
    bool rules_only;
    bool no_rules;           /* as of MtfPlanSearchOptions */
    const MtfFewLayers *few; /* NULL: none */
    MtfUniform uniform;
    int frontier;     /* points; 0: none */
    double gap;       /* NAN: not given */
    double proof_gap; /* as of MtfPlanSearchOptions */
    guint64 seed;
    bool keep_problem; /* as of MtfPlanSearchOptions */
    const char *
        framework; /* by whose form (mtf_framework_named) layouts made by hand are looked at, too; NULL: none */
    const char *collectives;        /* how they go, as of mtf_layout_choose_algorithms, or NULL */
    int64_t bucket_bytes;           /* the one size that buckets may have; 0: any */
    MtfOperationPrices *operations; /* as of MtfStepVariantsOptions */
    bool prints;                    /* the plan will be written */
    MtfSearchControl *control;      /* time, and who listens; or NULL */
    /* Of a step of another kind of plan, 0: none. Variants are given up when their bound says that none
     * of their steps is shorter, however much of it is hidden (mtf_schedule_most_hidden), or as much as of
     * layouts made by hand (mesh_attempt.h); and those that begin too far behind it (variant_race.h). */
    double rival_seconds;
    /* What a search of one variant on one mesh has found under the same limit: that variant's answer is moved
     * from here rather than searched again. NULL: nothing is known. */
    MtfVariantAnswer *known;
    const GArray *priced; /* as of MtfStepVariantsOptions */
} MtfVariantSearchOptions;

struct MtfVariantAnswer {
    GArray *variants;   /* MtfStepCandidate: what a step may look like, the most promising first */
    int considered;     /* of these for the plan; the rest for the frontier alone */
    int variant;        /* the one that the rest is about */
    MtfGraph *graph;    /* its training graph as it is run; NULL: none was searched */
    MtfGraph *training; /* before it was divided, where that was kept, or NULL */
    MtfDivision division; /* of that one */
    char *training_text;  /* as mtf_plan_graph_text prints it, or NULL */
    MtfPlanAnswer answer;
    MtfLayout *layout;   /* the answer's, settled: its order, buckets and algorithms chosen; or
                            NULL */
    MtfProgram *program; /* what that is lowered to, or NULL */
    GArray *frontier;    /* MtfVariantPoint, over variants; NULL: not asked for */
    bool given_up;       /* some variant, by its bound or its start */
    /* Where nothing fits, bytes of a device: within which a plan was found, 0 where none was or nobody looked; and that
     * the smallest layout found takes, as the chosen software runs it if that is known (software_search.h). */
    int64_t enough, takes;
    double wall_seconds; /* of the search, without the comparison of variants */
};

/* True with or without a plan that fits. Clear the answer in either case. */
bool mtf_variant_search(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer,
                        GError **error);
void mtf_variant_answer_clear(MtfVariantAnswer *answer);

/* The options of a search of the answer's variant on its mesh alone, which `mesh`, empty, comes to hold. */
MtfVariantSearchOptions mtf_variant_search_narrowed(const MtfVariantSearchOptions *options,
                                                    const MtfVariantAnswer *found, GArray *mesh);

/* Settles the layout of an answer that was found, where that is not done yet. */
void mtf_variant_answer_tune(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer);

#endif
