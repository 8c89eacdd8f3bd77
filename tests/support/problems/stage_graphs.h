// SPDX-License-Identifier: GPL-3.0-or-later
/* Small random profiles, and their best plans by trying everything: the witness of the searches over
 * stages. Prices are computed here from the papers' formulas, not by the searches' pricer. */
#ifndef MTF_TESTS_STAGE_GRAPHS_H
#define MTF_TESTS_STAGE_GRAPHS_H

#include "analyzer/stages/hierarchy_search.h"

/* A random graph of 1 … most nodes; Piper's have up to two ways on one or two devices. */
MtfStageGraph *mtf_test_stage_graph(MtfStageKind kind, guint64 seed, int most);

/* The least seconds of the slowest stage over all partitions, replicas, degrees and ways; INFINITY
 * where nothing fits. */
double mtf_test_best_throughput(const MtfStageGraph *graph, const MtfStageMachine *machine);

/* The least seconds of a nested pipeline of PipeDream's, without a limit of memory. */
double mtf_test_best_hierarchy(const MtfStageGraph *graph, const MtfStageLevels *levels);

/* Draws below a bound: a pure function of its arguments. */
guint64 mtf_test_draw(guint64 seed, guint64 *counter, guint64 below);

#endif
