// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/tensor_rows.h"

#include "layouts/layers/layers.h"

#include <inttypes.h>

static void append_axes(GString *text, const MtfMesh *mesh, unsigned axes) {
    g_autofree char *names = mtf_mesh_mask_format(mesh, axes);
    bool several = (axes & (axes - 1)) != 0;
    g_string_append_printf(text, several ? "@(%s)" : "@%s", names);
}

static unsigned axes_with(const MtfPlacement *placement, int value) {
    unsigned axes = 0;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        if (placement->axis[a] == value)
            axes |= 1u << a;
    return axes;
}

static void append_partial(GString *text, const MtfMesh *mesh, const MtfPlacement *placement) {
    static const struct {
        int value;
        const char *name;
    } kinds[] = { { MTF_PARTIAL_SUM, " sum" }, { MTF_PARTIAL_MAX, " max" } };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        unsigned axes = axes_with(placement, kinds[i].value);
        if (axes == 0)
            continue;
        g_string_append(text, kinds[i].name);
        append_axes(text, mesh, axes);
    }
}

char *mtf_tensor_notation(const MtfGraph *graph, const MtfMesh *mesh, int tensor,
                          const MtfPlacement *placement) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    GString *text = g_string_new(mtf_dtype_short_name(t->dtype));
    g_string_append_c(text, '[');
    for (int i = 0; i < t->shape.rank; i++) {
        const MtfDimension *dimension = mtf_graph_dimension(graph, t->shape.dims[i]);
        g_string_append_printf(text, "%s%s:%" PRId64, i > 0 ? ", " : "", dimension->name,
                               dimension->size);
        unsigned axes = mtf_placement_split_axes(placement, t->shape.dims[i]);
        if (axes != 0)
            append_axes(text, mesh, axes);
    }
    g_string_append_c(text, ']');
    append_partial(text, mesh, placement);
    return g_string_free(text, FALSE);
}

char *mtf_tensor_local_shape(const MtfGraph *graph, const MtfLayout *layout, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    GString *text = g_string_new("[");
    for (int i = 0; i < shape->rank; i++) {
        MtfShape one = { .rank = 1, .dims = { shape->dims[i] } };
        int64_t local = mtf_largest_elements(graph, &layout->mesh, &one, &layout->tensors[tensor]);
        g_string_append_printf(text, "%s%" PRId64, i > 0 ? ", " : "", local);
    }
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

static void free_row(void *data) {
    MtfTensorRow *row = data;
    g_free(row->name);
    g_free(row->notation);
    g_free(row->local);
    g_free(row);
}

static MtfTensorRow *new_row(const MtfGraph *graph, const MtfLayout *layout, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    const MtfPlacement *placement = &layout->tensors[tensor];
    MtfTensorRow *row = g_new0(MtfTensorRow, 1);
    row->name = mtf_layer_star(graph, t->name, t->layer);
    row->notation = mtf_tensor_notation(graph, &layout->mesh, tensor, placement);
    row->local = mtf_tensor_local_shape(graph, layout, tensor);
    row->tensor = tensor;
    row->bytes = mtf_largest_elements(graph, &layout->mesh, &t->shape, placement) *
                 mtf_dtype_bytes(t->dtype);
    return row;
}

static int compare_rows(const void *left, const void *right) {
    const MtfTensorRow *a = *(MtfTensorRow *const *)left, *b = *(MtfTensorRow *const *)right;
    double x = (double)a->bytes * a->count, y = (double)b->bytes * b->count;
    return x != y ? (x < y) - (x > y) : a->tensor - b->tensor;
}

/* Names hold no line ends, so the key has one reading. */
static char *row_key(const MtfTensorRow *row) {
    return g_strjoin("\n", row->name, row->notation, NULL);
}

GPtrArray *mtf_tensor_rows_new(const MtfGraph *graph, const MtfLayout *layout) {
    GPtrArray *rows = g_ptr_array_new_with_free_func(free_row);
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int t = 0; t < layout->n_tensors; t++) {
        MtfTensorRow *row = new_row(graph, layout, t);
        char *key = row_key(row);
        MtfTensorRow *known = g_hash_table_lookup(by_key, key);
        if (known == NULL) {
            g_ptr_array_add(rows, row);
            g_hash_table_insert(by_key, key, row);
            known = row;
        } else {
            g_free(key);
            free_row(row);
        }
        known->count++;
    }
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

int *mtf_tensor_anchors(const MtfGraph *graph, const MtfLayout *layout) {
    int *anchors = g_new0(int, layout->n_tensors + 1);
    g_autoptr(GHashTable) first = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int t = 0; t < layout->n_tensors; t++) {
        MtfTensorRow *row = new_row(graph, layout, t);
        char *key = row_key(row);
        int known = GPOINTER_TO_INT(g_hash_table_lookup(first, key)) - 1;
        anchors[t] = known >= 0 ? known : t;
        if (known < 0)
            g_hash_table_insert(first, g_steal_pointer(&key), GINT_TO_POINTER(t + 1));
        g_free(key);
        free_row(row);
    }
    return anchors;
}
