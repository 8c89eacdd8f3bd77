// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans the pipelines that promise most: cuts of a graph (cut_search.h) are planned, each stage searched
 * (pipeline_planning.h), and the fastest pipeline that fits is kept.
 *
 *     memory ──► cuts by the model ──► pipelines ──► the fastest
 *        ▲                                │ do not fit, or less would have done
 *        └────────────────────────────────┘
 *
 * The model adds up its units' bytes, which overlooks what lives across units and counts twice what orders of
 * instructions save (a U-Net's skips); and its seconds are those of layouts made by hand. So of small graphs,
 * cuts for more memory and for less are planned wherever the model lets them win, cuts between layers beside
 * those within, and stages of equal work; of large ones other amounts of memory where the first finds nothing
 * that fits. Other amounts are those of one scale for all devices, so that who has more memory meets the same
 * cuts. */
#ifndef MTF_CUT_PLANNING_H
#define MTF_CUT_PLANNING_H

#include "analyzer/cuts/cut_search.h"
#include "analyzer/planner/pipeline_planning.h"

typedef struct {
    MtfCutRequest cut;
    MtfPipelineRequest pipeline; /* of its forward graph: schedule and search of each stage */
} MtfCutPlanning;

typedef struct {
    MtfPipelinePlan *plan; /* NULL: one mesh for all devices promises more than stages */
    MtfCutPlan *cut;       /* that it has; NULL: its stages are of equal work (stage_cut.h) */
    MtfStepVariant variant;
    MtfRecompute *recompute; /* the variant's, of each stage; or NULL */
    bool modelled;           /* the model has a cut that fits */
    int tried;               /* numbers of micro-batches and recomputations, by the model */
} MtfCutAnswer;

/* Fills the answer; fails where no cut has stages that fit (MTF_ERROR_FIT), and on bad input. */
bool mtf_cut_planning_search(const MtfCutPlanning *planning, MtfCutAnswer *answer, GError **error);
/* Where the model has no cut that fits: looks for how much memory would do, and makes `*cause` a sentence that
 * says it. */
void mtf_cut_planning_say_enough(const MtfCutPlanning *planning, GError **cause);
void mtf_cut_answer_clear(MtfCutAnswer *answer);

#endif
