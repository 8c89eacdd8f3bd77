// SPDX-License-Identifier: GPL-3.0-or-later
/* How long a tensor's slice is kept, with the operations as time points: its last reader fetches it as it wants it, and
 * the slice may be gone from then on.
 *
 *     producer          a reader             the last reader, or the loop that it runs in
 *     | as it leaves it | kept ............. | as it wants it |
 */
#ifndef MTF_TENSOR_LIVES_H
#define MTF_TENSOR_LIVES_H

#include "layouts/graph/graph.h"
#include "layouts/graph/loops.h"

/* What lives are found from, all borrowed; the consumers and loops are the graph's. */
typedef struct {
    const MtfGraph *graph;
    const MtfConsumers *consumers;
    const MtfLoopSpans *loops;
} MtfTensorLives;

/* The time from which a tensor's slice may be gone; *start, from which it is there, is prolonged by loops that run more
 * than once. */
int64_t mtf_tensor_life_end(const MtfTensorLives *lives, int tensor, int *start);

/* Whether an operation is the last to read a result, whose slice may go when it has fetched that: for all iterations of
 * its loop, whose number that is, or (0) for one run alone. */
bool mtf_tensor_fetched_last(const MtfTensorLives *lives, int tensor, int operation, int loop);

#endif
