// SPDX-License-Identifier: GPL-3.0-or-later
/* Gradients of a graph against central differences of the reference interpreter, in double. */
#ifndef MTF_TEST_GRADIENT_CHECK_H
#define MTF_TEST_GRADIENT_CHECK_H

#include "layouts/graph/graph.h"

/* Fails the test where a variable's gradient in `training`, the graph's training graph, is another than the
 * slope of the loss, within `share` of it (of 1 where it is less). */
void mtf_test_check_slopes(const MtfGraph *graph, const MtfGraph *training, double share);

/* The same of the training graph that is derived. */
void mtf_test_check_gradients(const MtfGraph *graph);

/* As mtf_test_check_slopes, of one random direction of each variable that leads to the loss: two evaluations a
 * variable, not an element. */
void mtf_test_check_directions(const MtfGraph *graph, const MtfGraph *training, double share);

/* Whether a graph that was checked in this program had such an operation once it could be trained. */
bool mtf_test_gradient_is_checked(int kind);

/* Whether the kind's rule is one of gradient_layers.h. */
bool mtf_test_gradient_is_of_layers(int kind);

#endif
