// SPDX-License-Identifier: GPL-3.0-or-later
/* What is read several times and compared with something: it is not kept as a partial sum. Each reading would add its
 * terms up in an order of its own, and what differs from itself by a rounding is equal to nothing that was made of it:
 *
 *     m partial ──reduced once──► maximum(m, n) ──► y ─┐
 *         └──────reduced again──────────────────────► y == m  is false, n != y: nobody has the gradient, 0 / 0 */
#ifndef MTF_COMPARED_TENSORS_H
#define MTF_COMPARED_TENSORS_H

#include "layouts/graph/graph.h"

/* Whether each tensor is so; free with g_free. */
bool *mtf_compared_tensors(const MtfGraph *graph);

#endif
