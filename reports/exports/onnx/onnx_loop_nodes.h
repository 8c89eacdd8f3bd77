// SPDX-License-Identifier: GPL-3.0-or-later
/* A loop as one node around a graph:
 *
 *     states, slices ──► Scan { body } ──► last states, stacked elements
 *
 * Inside, states and slices have their own names; what the body hands on is called NAME/handed. Linear attention is
 * such a node, too: its states go from place to place. */
#ifndef MTF_ONNX_LOOP_NODES_H
#define MTF_ONNX_LOOP_NODES_H

#include "reports/exports/onnx/onnx_nodes.h"

/* Writes the loop that the operation being written, its first, belongs to; `write` writes one operation of
 * its body. Fails (bad input) where Scan cannot say it: nothing is sliced, or a condition ends it. */
bool mtf_onnx_write_loop(MtfOnnxNodes *e, bool (*write)(MtfOnnxNodes *e));

/* The operations of the loop that `operation` is of, which stand together, are [*begin, *end). */
void mtf_onnx_loop_span(const MtfGraph *graph, int operation, int *begin, int *end);

/* A ValueInfoProto of a tensor under a name: an input or output of a graph. */
GByteArray *mtf_onnx_info(const MtfGraph *graph, int tensor, const char *name);

#endif
