// SPDX-License-Identifier: GPL-3.0-or-later
/* Stages for the highest throughput in steady state: the slowest stage as fast as can be, each of N
 * devices used at most once, memory kept (the objective of PipeDream and Piper).
 *
 * For a threshold τ the search walks from the last stage to the first. At a downset D, what comes
 * after D has used k devices in replicas that add up to s; a stage {E … D} of d replicas of t devices
 * joins when its seconds, with ceil((s + d) / d) micro-batches in flight, are at most τ:
 *
 *     (E, k + d t, s + d)  ◄──  (D, k, s)          one Pareto front of (k, s) a downset
 *
 * The empty downset is reached or not; bisection over τ ends at the least reachable one. Run again
 * with the knapsack relaxed, the largest τ that is not reached is the bound. */
#ifndef MTF_THROUGHPUT_SEARCH_H
#define MTF_THROUGHPUT_SEARCH_H

#include "analyzer/stages/stage_plan.h"
#include "analyzer/stages/stage_price.h"

/* The best plan over the cuts; a fit error when no plan keeps the memory. The bound holds for all
 * plans over these cuts, and where they are not complete, all plans of the graph. */
MtfStagePlan *mtf_throughput_search(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                    const MtfStageMachine *machine, GError **error);

#endif
