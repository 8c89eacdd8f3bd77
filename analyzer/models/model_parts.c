// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/model_parts.h"

#include <string.h>

MtfParts *mtf_parts_new(void) {
    MtfParts *parts = g_new0(MtfParts, 1);
    parts->b = mtf_builder(mtf_graph_new("model"), MTF_PHASE_FORWARD);
    parts->prefixes = g_ptr_array_new_with_free_func(g_free);
    return parts;
}

MtfGraph *mtf_parts_end(MtfParts *parts, GError **error) {
    MtfGraph *graph = parts->b.graph;
    if (!mtf_builder_end(&parts->b, error))
        g_clear_pointer(&graph, mtf_graph_free);
    g_ptr_array_unref(parts->prefixes);
    g_free(parts);
    return graph;
}

void mtf_parts_enter(MtfParts *parts, const char *prefix) {
    g_ptr_array_add(parts->prefixes, g_strdup(prefix));
}

void mtf_parts_leave(MtfParts *parts) {
    g_ptr_array_set_size(parts->prefixes, (int)parts->prefixes->len - 1);
}

void mtf_parts_enter_layer(MtfParts *parts, const char *block, int iteration) {
    MtfGraph *graph = parts->b.graph;
    g_autofree char *prefix = g_strdup_printf("%s/%d", block, iteration);
    mtf_parts_enter(parts, prefix);
    if (mtf_graph_find_repeat(graph, block) == 0)
        mtf_graph_add_repeat(graph, block, 0);
    parts->b.layer = (MtfLayer){ mtf_graph_find_repeat(graph, block), iteration };
    MtfRepeat *repeat = &g_array_index(graph->repeats, MtfRepeat, parts->b.layer.block - 1);
    repeat->count = MAX(repeat->count, iteration + 1);
}

void mtf_parts_leave_layer(MtfParts *parts) {
    mtf_parts_leave(parts);
    parts->b.layer = (MtfLayer){ 0 };
}

static char *full_name(const MtfParts *parts, const char *name) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < parts->prefixes->len; i++)
        g_string_append_printf(text, "%s/", (char *)parts->prefixes->pdata[i]);
    g_string_append(text, name);
    return g_string_free(text, FALSE);
}

int mtf_parts_find(const MtfParts *parts, const char *name) {
    g_autofree char *full = full_name(parts, name);
    return parts->b.error == NULL ? mtf_graph_find_tensor(parts->b.graph, full) : -1;
}

int mtf_parts_find_in_first_layer(const MtfParts *parts, const char *name) {
    const MtfGraph *graph = parts->b.graph;
    if (parts->b.error != NULL || parts->b.layer.block == 0)
        return -1;
    g_autofree char *full = full_name(parts, name);
    const char *block = g_array_index(graph->repeats, MtfRepeat, parts->b.layer.block - 1).name;
    g_autofree char *this_layer = g_strdup_printf("%s/%d/", block, parts->b.layer.iteration);
    g_autofree char *first = g_strdup_printf("%s/0/%s", block, full + strlen(this_layer));
    return g_str_has_prefix(full, this_layer) ? mtf_graph_find_tensor(graph, first) : -1;
}

int mtf_parts_dimension(MtfParts *parts, const char *name, int64_t size) {
    if (parts->b.error != NULL)
        return -1;
    return mtf_graph_add_dimension(parts->b.graph, name, size, &parts->b.error);
}

int mtf_parts_input(MtfParts *parts, const char *name, const MtfShape *shape, MtfDtype dtype,
                    MtfFeed feed) {
    if (parts->b.error != NULL)
        return -1;
    return mtf_graph_add_input(parts->b.graph, name, shape, dtype, feed, &parts->b.error);
}

int mtf_parts_variable(MtfParts *parts, const char *name, const MtfShape *shape, MtfInitKind init,
                       double value) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build_variable(&parts->b, full, shape, MTF_F32, (MtfInit){ init, value },
                              MTF_MEMORY_VARIABLE);
}

int mtf_parts_apply(MtfParts *parts, int kind, const char *name, const MtfShape *shape, int x,
                    int y) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build(&parts->b, kind, full, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

int mtf_parts_einsum(MtfParts *parts, const char *name, const MtfShape *shape, int x, int y) {
    return mtf_parts_apply(parts, MTF_OP_EINSUM, name, shape, x, y);
}

int mtf_parts_add(MtfParts *parts, const char *name, int x, int y) {
    return mtf_parts_apply(parts, MTF_OP_ADD, name, NULL, x, y);
}

int mtf_parts_apply_shape_to(MtfParts *parts, int kind, const char *name, const MtfShape *shape,
                             int n_inputs, const int *inputs) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build(&parts->b, kind, full, shape, n_inputs, inputs);
}

int mtf_parts_apply_shaped(MtfParts *parts, int kind, const char *name, const MtfShape *shape) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build(&parts->b, kind, full, shape, 0, NULL);
}

int mtf_parts_range(MtfParts *parts, const char *name, int dim) {
    return mtf_parts_apply_shaped(parts, MTF_OP_RANGE, name, &(MtfShape){ 1, { dim } });
}

int mtf_parts_constant(MtfParts *parts, const char *name, double value) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build_constant(&parts->b, full, MTF_F32, value);
}

int mtf_parts_activation(MtfParts *parts, const char *activation, int x) {
    return mtf_parts_apply(parts, mtf_operation_kind(activation), activation, NULL, x, -1);
}

int mtf_parts_apply_to(MtfParts *parts, int kind, const char *name, int n_inputs,
                       const int *inputs) {
    g_autofree char *full = full_name(parts, name);
    return mtf_build(&parts->b, kind, full, NULL, n_inputs, inputs);
}

int mtf_parts_norm(MtfParts *parts, const char *name, int dim, const int inputs[3]) {
    g_autofree char *full = full_name(parts, name);
    parts->b.attributes.dimension = dim;
    parts->b.attributes.epsilon = 1e-6;
    return mtf_build(&parts->b, MTF_OP_LAYER_NORM, full, NULL, inputs[2] < 0 ? 2 : 3, inputs);
}

int mtf_parts_dropout(MtfParts *parts, const char *name, double rate, int x) {
    if (rate == 0)
        return x;
    parts->b.attributes.rate = rate;
    return mtf_parts_apply(parts, MTF_OP_DROPOUT, name, NULL, x, -1);
}
