// SPDX-License-Identifier: GPL-3.0-or-later
/* Small graphs over dimensions a, b, c and d whose gradients tests look at. */
#ifndef MTF_TESTS_GRADIENT_CASE_H
#define MTF_TESTS_GRADIENT_CASE_H

#include "layouts/building/builder.h"
#include "tests/support/cmocka.h"

enum { A, B, C, D }; /* 2, 3, 4, 3 */

static inline MtfShape shape_of(const char *letters) {
    MtfShape shape = { 0 };
    for (; *letters != '\0'; letters++)
        mtf_shape_append(&shape, *letters - 'a');
    return shape;
}

static inline MtfBuilder start(void) {
    MtfGraph *graph = mtf_graph_new("test");
    mtf_graph_add_dimension(graph, "a", 2, NULL);
    mtf_graph_add_dimension(graph, "b", 3, NULL);
    mtf_graph_add_dimension(graph, "c", 4, NULL);
    mtf_graph_add_dimension(graph, "d", 3, NULL);
    return mtf_builder(graph, MTF_PHASE_FORWARD);
}

static inline int variable(MtfBuilder *b, const char *name, const char *dims) {
    MtfShape shape = shape_of(dims);
    return mtf_build_variable(b, name, &shape, MTF_F64, (MtfInit){ MTF_INIT_NORMAL, 1 },
                              MTF_MEMORY_VARIABLE);
}

static inline int input(MtfBuilder *b, const char *name, const char *dims, MtfDtype dtype,
                        MtfFeed feed) {
    MtfShape shape = shape_of(dims);
    return mtf_graph_add_input(b->graph, name, &shape, dtype, feed, NULL);
}

static inline int op(MtfBuilder *b, int kind, const char *name, const char *dims, int x, int y) {
    MtfShape shape = shape_of(dims != NULL ? dims : "");
    return mtf_build(b, kind, name, dims != NULL ? &shape : NULL, y < 0 ? 1 : 2, (int[]){ x, y });
}

/* The loss: the sum of y times random numbers, so that no two elements count alike. */
static inline MtfGraph *finish(MtfBuilder *b, int y) {
    g_autoptr(GError) error = NULL;
    if (b->error == NULL) {
        MtfShape shape = mtf_graph_tensor(b->graph, y)->shape;
        int weight =
            mtf_graph_add_input(b->graph, "weight", &shape, MTF_F64, MTF_FEED_FEATURES, &b->error);
        b->graph->loss = op(b, MTF_OP_EINSUM, "loss", "", y, weight);
    }
    if (!mtf_builder_end(b, &error))
        fail_msg("%s", error->message);
    return b->graph;
}

#endif
