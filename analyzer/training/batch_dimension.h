// SPDX-License-Identifier: GPL-3.0-or-later
/* Which dimension of a forward graph counts examples: what micro-batches divide
 * (layouts/execution/accumulation.h). */
#ifndef MTF_BATCH_DIMENSION_H
#define MTF_BATCH_DIMENSION_H

#include "layouts/graph/graph.h"

/* The dimension that counts examples: of that name, or where `name` is NULL the first one of every
 * input. Returns -1 with a bad-input error. */
int mtf_batch_dimension(const MtfGraph *graph, const char *name, GError **error);

#endif
