// SPDX-License-Identifier: GPL-3.0-or-later
/* From the text of a graph to the graph: repeated blocks are unrolled, operations are put into an
 * order that can be executed, names become indexes.
 *
 * In iteration 7 of block `layer` a name means, first come first served:
 *
 *     a carried value     in iteration 0 its `init`, later the `next` of the iteration before
 *     layer/7/NAME        the iteration's own variable or operation
 *     NAME                anything outside
 *
 * and after the block `layer/x` is the carried value x of the last iteration. */
#ifndef MTF_GRAPH_LINK_H
#define MTF_GRAPH_LINK_H

#include "layouts/graph_file/graph_text.h"

typedef struct MtfLinker MtfLinker;

/* Unrolls `text` and appends its variables and operations to `graph`, which holds the dimensions
 * and inputs. Operations may come in any order; those already in a good order keep it. Fails with
 * the place in the file and names on cycles, missing inputs, names given twice, and more than
 * 2,000,000 operations and variables. The linker still knows the names that are not tensors. */
MtfLinker *mtf_graph_link(MtfGraph *graph, const MtfBlockText *text, GError **error);

/* The tensor a name outside of blocks means, "layer/x" included; -1 with an error at `where` that
 * begins with `what` ("the loss"). */
int mtf_linker_find(const MtfLinker *linker, const MtfJson *where, const char *what,
                    const char *name, GError **error);
void mtf_linker_free(MtfLinker *linker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLinker, mtf_linker_free)

#endif
