// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention that is trained alone, and checks of what takes its place. */
#ifndef MTF_TEST_ATTENTION_TRAINING_H
#define MTF_TEST_ATTENTION_TRAINING_H

#include "layouts/graph/graph.h"

/* The mean of the squares of attention y, "causal" and such in `attributes`, from `queries` positions l to 12
 * positions m, of two examples; `added`: ", 'w'" where w is added to scores. Free with mtf_graph_free. */
MtfGraph *mtf_test_attention_training(int queries, const char *attributes, const char *added);

/* Fails where y, the loss or a gradient differs between the graphs. */
void mtf_test_attention_alike(const MtfGraph *whole, const MtfGraph *rewritten);

/* Fails where a gradient is not the slope of the loss. */
void mtf_test_attention_slopes(MtfGraph *graph);

#endif
