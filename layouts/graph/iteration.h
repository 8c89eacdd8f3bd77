// SPDX-License-Identifier: GPL-3.0-or-later
/* The iteration space of an operation (operation_table.h): the indexes that it runs over, what splitting
 * each means, and which share of the points there is work. */
#ifndef MTF_ITERATION_H
#define MTF_ITERATION_H

#include "layouts/graph/graph.h"

/* One index of an operation's iteration space. Only `rename` has two names for one index; that of a
 * window (window.h) goes along one of its dimensions, and the operands that have the other read it
 * with margins; so does that along which inputs are joined (reshape.h), which each of them has under
 * a name of its own. */
typedef struct {
    int dim;                 /* as the outputs call it */
    int input_dim;           /* as the inputs call it */
    int other_dim;           /* the window's other dimension, or -1 */
    const MtfWindow *window; /* or NULL; the operation's */
    bool is_larger;          /* `dim` is the larger side of a window */
    bool joined;             /* inputs lie one behind the other along it */
    int64_t size;
    bool reduced; /* missing in some output */
    bool whole;   /* cannot be split: reduced where parts do not add up, or held whole by the row */
    int64_t even; /* above 0: splits into equal parts alone, whose number divides `even` */
    int64_t most; /* parts that it splits into */
} MtfIndex;

#define MTF_MAX_INDEXES (2 * MTF_MAX_RANK)

typedef struct {
    int n;
    MtfIndex index[MTF_MAX_INDEXES];
} MtfIteration;

/* Whether an index may be split into `parts` parts. */
bool mtf_index_splits(const MtfIndex *index, int64_t parts);

/* The operation's iteration space: the outputs' dimensions in order, then those only inputs have.
 */
void mtf_operation_iteration(const MtfGraph *graph, int operation, MtfIteration *iteration);

/* The share of the points sizes[0] x sizes[1] x … that the processor with most to do works on, when
 * each holds sizes[i] elements of index i: 1 but for causal attention, which leaves out what comes after
 * the query (there it is that of the last queries and the first positions of memory), and for
 * products of experts, where each row meets one expert: rows are taken to be chosen evenly. */
double mtf_operation_share(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                           const int64_t *sizes);

/* mtf_operation_share for operations of one row. */
typedef double (*MtfPointsShare)(const MtfAttributes *attributes, const MtfIteration *iteration,
                                 const int64_t *sizes);

/* The shares of rows: of windows, of attention that looks back only, of the same over a full cache, and
 * of rows each of which meets one expert. */
double mtf_share_windows(const MtfAttributes *a, const MtfIteration *iteration,
                         const int64_t *sizes);
double mtf_share_causal(const MtfAttributes *a, const MtfIteration *iteration,
                        const int64_t *sizes);
double mtf_share_cached(const MtfAttributes *a, const MtfIteration *iteration,
                        const int64_t *sizes);
double mtf_share_experts(const MtfAttributes *a, const MtfIteration *iteration,
                         const int64_t *sizes);

#endif
