// SPDX-License-Identifier: GPL-3.0-or-later
/* Offload: what the backward pass reads of the forward pass may wait in the host's memory. Chosen
 * results are copied there as soon as they are computed, and back one layer before the backward pass
 * comes to them, so that both copies can run beside kernels:
 *
 *     forward     x ──► to_host/x      layer ──► …         x is dropped after the layer
 *     backward    … ──► from_host/x ──► the layer after this one ──► this layer reads from_host/x
 *
 *     layers          what layers read of what was made before them
 *     activations     that, and what they make themselves and the backward pass reads
 *     layers:K, …     of the first K layers, which wait longest for the backward pass
 *
 * Results much smaller than the largest of these stay. It comes after recomputation, whose clones read
 * from_host/x too: with `--recompute layers` nothing of such a layer stays on the device. Copies change no
 * value, so results are equal to the bit. */
#ifndef MTF_OFFLOAD_H
#define MTF_OFFLOAD_H

#include "layouts/graph/graph.h"
#include "layouts/placement/execution.h"

/* Changes a training graph, recomputation and all, which is canonical afterwards. Fails with a bad-input
 * error where nothing is repeated or fewer layers are, nothing waits for the backward pass, the graph is
 * cut into pipeline stages, uses the host's memory itself, or a name is taken. */
bool mtf_graph_offload(MtfGraph *graph, const MtfKept *kept, GError **error);

#endif
