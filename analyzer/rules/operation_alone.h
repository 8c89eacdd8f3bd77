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

/* The dimensions that it has anything to do with (int), in their order; the caller frees them. And all that its price
 * depends on, written with their numbers in that list: operations with equal texts cost the same where they lie alike by
 * these numbers. Free the text with g_free. */
GArray *mtf_operation_alone_dimensions(const MtfOperationAlone *alone);
char *mtf_operation_alone_text(const MtfOperationAlone *alone, const GArray *dimensions);

/* The number of a dimension among them; it must be one. */
int mtf_operation_alone_number(const GArray *dimensions, int dimension);

/* Writes numbers so that equal texts are of equal numbers: texts of facts are written for every
 * operation, by all who look for equal ones, and compared with one another alone. */
void mtf_facts_append(GString *text, const int *numbers, int n);

/* Writes all that an operation's price depends on but its operands: two operations with equal facts
 * and equal operands cost the same under equal placements. */
void mtf_operation_append_facts(GString *text, const MtfGraph *graph, int operation);

#endif
