// SPDX-License-Identifier: GPL-3.0-or-later
/* What a step needs at least, before any layout is searched: at each operation the tensors that are
 * live then, every one of them in equal parts on all devices. A quick way to see that nothing can
 * fit. */
#ifndef MTF_MEMORY_BOUND_H
#define MTF_MEMORY_BOUND_H

#include "layouts/graph/graph.h"

/* No layout of a training graph on `devices` processors has a smaller arena, in bytes. */
int64_t mtf_memory_bound(const MtfGraph *graph, int devices);

#endif
