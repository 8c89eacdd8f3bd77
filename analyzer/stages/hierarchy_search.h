// SPDX-License-Identifier: GPL-3.0-or-later
/* PipeDream's plan for machines of several devices each (PipeDream, SOSP 2019, section 3.1, as its
 * optimizer_graph_hierarchical.py prices it): a stage of the outer level runs on whole machines, and
 * each of these runs an inner pipeline over its devices.
 *
 *     outer   | stage on 1 machine     | stage on 3 machines        |
 *     inner   | a ×3 | b ×1            | c ×4 || c ×4 || c ×4       |   4 devices a machine
 *
 * With b₁ inside and b₂ between machines of n₁ devices, P bytes of parameters in a stage:
 *
 *     inner stage on d devices     (Σ seconds + 4 (d−1) P / (b₁ d)) / d
 *     outer stage on m machines    (inner pipeline + 4 (m−1) P / (b₂ m f)) / m
 *
 * where f = n₁ for the first outer stage and 1 for later ones: so does the planner it is compared
 * with. A pipeline takes as long as its slowest stage. */
#ifndef MTF_HIERARCHY_SEARCH_H
#define MTF_HIERARCHY_SEARCH_H

#include "analyzer/stages/stage_plan.h"
#include "analyzer/stages/stage_price.h"

typedef struct {
    int64_t devices[2];  /* of a machine, and machines */
    double bandwidth[2]; /* inside a machine, and between them */
} MtfStageLevels;

/* The best plan over the cuts for a PipeDream profile (stages of both levels in one list). With a
 * limit of memory, y counts the devices after the stage as PipeDream's warm-up does. A fit error when
 * nothing fits. The bound holds for all plans over these cuts, and where they are not complete, for
 * all plans of the graph. */
MtfStagePlan *mtf_hierarchy_search(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                   const MtfStageLevels *levels, const MtfStageMachine *machine,
                                   GError **error);

#endif
