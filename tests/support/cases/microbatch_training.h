// SPDX-License-Identifier: GPL-3.0-or-later
/* Training graphs for tests as a step runs them, in micro-batches or, with one, in one piece. */
#ifndef MTF_TESTS_MICROBATCH_TRAINING_H
#define MTF_TESTS_MICROBATCH_TRAINING_H

#include "layouts/graph/graph.h"

/* What a forward graph is trained by, its first dimension of inputs in so many parts. Fails as mtf_training_graph and
 * mtf_graph_execute do. */
MtfGraph *mtf_test_microbatches(const MtfGraph *forward, int microbatches, GError **error);

/* A training graph in parts, in its place. */
bool mtf_test_divide(MtfGraph *training, int microbatches, GError **error);

#endif
