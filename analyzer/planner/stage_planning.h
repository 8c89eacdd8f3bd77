// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans the stages of pipelines, one after another: each is searched for its best layout, unless the plan
 * of another does for it, too:
 *
 *     row 1: 1f1b      stage 0 searched ── alike ──► 1, 2 …     the same layout, as many in flight or fewer
 *     row 2: zb-h1           └── searched with no less room ──► what fits is the best there, too
 *
 * A row is one try to plan all stages of a pipeline. Stages of other rows, in another order or with
 * another share of the memory, are not searched again where that could find nothing better. Beside a stage that is
 * searched the next one is that will have to be, in another thread. */
#ifndef MTF_STAGE_PLANNING_H
#define MTF_STAGE_PLANNING_H

#include "analyzer/free/known_paths.h"
#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"

/* The seconds of a stage's passes over one micro-batch, and of what it does once a step; the bytes on a
 * device that a micro-batch in flight holds. */
typedef struct {
    double forward, input_gradient, weight_gradient, once;
    double held_bytes;
} MtfStageSeconds;

/* A stage that is to be planned: its graph, run as the schedule asks for, on the best of `meshes` (MtfMesh), all
 * of equal size, within `limit` bytes a device. */
typedef struct {
    const MtfGraph *graph;
    MtfStageExecution execution;
    const GArray *meshes;
    int64_t limit;
} MtfStageTask;

typedef struct {
    MtfPlanSearchOptions search; /* of every stage; its control and limit are not used */
    double seconds;              /* for the search of each; 0: no limit */
    const int *style;            /* of the standard layout that stages are given; NULL: they are
                                    searched */
    bool prices_only;            /* as of MtfPipelineRequest */
    MtfKnownPaths *paths;        /* of stages that are only priced, on the style's mesh */
    int row;
    GPtrArray *known; /* of what was searched */
    const MtfStageTask *tasks;
    int n_tasks;
    GPtrArray *ahead; /* what searches beside others have found for the row's tasks */
    /* Bytes a device of the last task that nothing fitted: the smallest limit found that would do, and one below
     * which nothing does in the written order; 0: unknown. */
    int64_t enough, least;
} MtfStagePlanner;

/* Begins with nothing planned. Clear it after use. */
void mtf_stage_planner_init(MtfStagePlanner *planner, const MtfPlanSearchOptions *search,
                            double seconds);
void mtf_stage_planner_clear(MtfStagePlanner *planner);

/* Begins another row, whose tasks are borrowed until the next begins. */
void mtf_stage_planner_next_row(MtfStagePlanner *planner, const MtfStageTask *tasks, int n);

/* The plan of a task of the row, whose graph is copied, and the times of its passes. NULL where none fits, or on an
 * error. */
MtfPlan *mtf_stage_planner_plan(MtfStagePlanner *planner, int task, MtfStageSeconds *seconds,
                                GError **error);

#endif
