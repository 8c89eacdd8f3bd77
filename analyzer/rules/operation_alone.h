// SPDX-License-Identifier: GPL-3.0-or-later
/* One operation of a graph in a graph of its own, with the same dimensions: lowering and pricing it
 * there takes no time that grows with the rest. */
#ifndef MTF_OPERATION_ALONE_H
#define MTF_OPERATION_ALONE_H

#include "layouts/graph/graph.h"

typedef struct {
    MtfGraph *graph; /* the operation is its operation 0 */
    GArray *tensors; /* int: for each of its tensors the one of the whole graph */
} MtfOperationAlone;

/* Its inputs, its outputs and the variables that it updates: updated[t] is the variable whose next
 * value tensor t of the whole graph is, or -1. */
void mtf_operation_alone_init(MtfOperationAlone *alone, const MtfGraph *graph, int operation,
                              const int *updated);
void mtf_operation_alone_clear(MtfOperationAlone *alone);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MtfOperationAlone, mtf_operation_alone_clear)

/* Writes numbers so that equal texts are of equal numbers: texts of facts are written for every
 * operation, by all who look for equal ones, and compared with one another alone. */
void mtf_facts_append(GString *text, const int *numbers, int n);

/* Writes all that an operation's price depends on but its operands: two operations with equal facts
 * and equal operands cost the same under equal placements. */
void mtf_operation_append_facts(GString *text, const MtfGraph *graph, int operation);

#endif
