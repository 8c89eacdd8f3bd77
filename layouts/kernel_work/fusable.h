// SPDX-License-Identifier: GPL-3.0-or-later
/* What need not pass through memory where a framework computes neighbours in one kernel: maps and
 * reductions that follow one another with no product between, whatever stands beside them.
 *
 *     einsum ──► add ──► add ──► mean ──► normalize ──► einsum
 *                 ╰ bias  ╰ x     ╰──── one kernel: reads the product's result and x, writes the
 *                                       sum (read again later) and the normalised rows
 *
 * Two such operations are neighbours when the longest ways to both have as many products in them,
 * and one reads what the other wrote, or both read the same. A variable's copy in a narrower type
 * costs nothing: the optimizer writes it with the variable. What a loop's body moves (an iteration's slice,
 * a gate's part of a product, a state that is kept) is where its reader or writer looks for it: no kernel. */
#ifndef MTF_FUSABLE_H
#define MTF_FUSABLE_H

#include "layouts/graph/graph.h"

#include <cjson/cJSON.h>

/* What a framework does with a graph that programs of its own do not. */
typedef struct {
    bool eager;         /* it calls its library operation by operation */
    double logit_bytes; /* it keeps of a logit where the loss is derived; 0: what the program has */
} MtfFramework;

/* What the profile of a framework says, as it stands in a plan with its machine. */
MtfFramework mtf_framework_of_profile(const cJSON *software);

/* Fills in `near_inputs` and `near_outputs` of all operations; and `near_redone`: of recomputed layers
 * this graph leaves out what only the layer's own result needs, its last product and the attention whose
 * result is kept, where most frameworks run the whole layer again; and `near_biased`: of all attention where some
 * adds to its scores what comes of a variable, as relative positions are, since models write all theirs alike. For a framework that is `eager`, the marks
 * of eager.h, too; and what it keeps of logits (kernel_scratch.h). */
void mtf_graph_mark_near(MtfGraph *graph, MtfFramework framework);

#endif
