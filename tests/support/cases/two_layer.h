// SPDX-License-Identifier: GPL-3.0-or-later
/* y = relu(x w) v with a squared loss and its gradients, written out by hand: the smallest training
 * graph with everything in it that rule layouts can do. */
#ifndef MTF_TESTS_TWO_LAYER_H
#define MTF_TESTS_TWO_LAYER_H

#include "layouts/graph/graph.h"

/* Dimensions batch, io, hidden; variables w[io, hidden] and v[hidden, io]; grad/w and grad/v. */
MtfGraph *two_layer_graph(int64_t batch, int64_t io, int64_t hidden);

#endif
