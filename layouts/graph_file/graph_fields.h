// SPDX-License-Identifier: GPL-3.0-or-later
/* The fields that the pieces of a graph file have in common: names, lists of dimensions, types,
 * words of a fixed list. All return false with the place in the file, and leave the value alone. */
#ifndef MTF_GRAPH_FIELDS_H
#define MTF_GRAPH_FIELDS_H

#include "layouts/base/json_reader.h"
#include "layouts/graph/graph.h"

/* A dimension of the graph by name; suggests the nearest one for an unknown name. */
bool mtf_field_dimension(const MtfGraph *graph, const MtfJson *where, int *dim, GError **error);

/* A list of dimension names; each at most once. */
bool mtf_field_dims(const MtfGraph *graph, const MtfJson *where, MtfShape *shape, GError **error);

/* `object["dtype"]`; leaves `*dtype` as it is when the key is missing. */
bool mtf_field_dtype(const MtfJson *object, MtfDtype *dtype, GError **error);

/* One of the NULL-terminated `words`; `what` says what they are ("a feed"). */
bool mtf_field_word(const MtfJson *where, const char *what, const char *const *words, int *index,
                    GError **error);

/* What a tensor's memory is counted as: variables, gradients, optimizer or activations. */
bool mtf_field_memory(const MtfJson *where, MtfMemoryKind *memory, GError **error);

/* Sets `error` to `cause` with the place before it, and frees `cause`. Always false. */
bool mtf_field_relay(const MtfJson *where, GError *cause, GError **error);

#endif
