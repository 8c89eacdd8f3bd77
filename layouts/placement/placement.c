// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/placement.h"

#include "layouts/base/error.h"

#include <string.h>

MtfPlacement mtf_placement_replicated(void) {
    MtfPlacement placement;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        placement.axis[a] = MTF_REPLICATED;
    return placement;
}

bool mtf_placement_equal(const MtfPlacement *a, const MtfPlacement *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

unsigned mtf_placement_partial_axes(const MtfPlacement *placement) {
    unsigned mask = 0;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        if (mtf_axis_is_partial(placement->axis[a]))
            mask |= 1U << a;
    return mask;
}

/* floor(index * size / parts), safe from overflow: size and parts are below 2^53 and 2^24. */
static int64_t part_begin(int64_t size, int64_t index, int64_t parts) {
    return size / parts * index + size % parts * index / parts;
}

MtfRange mtf_part(int64_t size, int64_t index, int64_t parts) {
    return (MtfRange){ part_begin(size, index, parts), part_begin(size, index + 1, parts) };
}

MtfRange mtf_placement_range(const MtfMesh *mesh, const MtfPlacement *placement, int dim,
                             int64_t size, int rank) {
    unsigned mask = mtf_placement_split_axes(placement, dim);
    if (mask == 0)
        return (MtfRange){ 0, size };
    return mtf_part(size, mtf_mesh_group_position(mesh, mask, rank),
                    mtf_mesh_group_size(mesh, mask));
}

int64_t mtf_local_elements(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                           const MtfPlacement *placement, int rank) {
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) {
        int dim = shape->dims[i];
        MtfRange range =
            mtf_placement_range(mesh, placement, dim, mtf_graph_size(graph, dim), rank);
        elements *= range.end - range.begin;
    }
    return elements;
}

void mtf_placement_parts(const MtfMesh *mesh, const MtfShape *shape, const MtfPlacement *placement,
                         int64_t *parts) {
    for (int i = 0; i < shape->rank; i++)
        parts[i] = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        for (int i = 0; placement->axis[a] >= 0 && i < shape->rank; i++)
            if (shape->dims[i] == placement->axis[a])
                parts[i] *= mesh->axes[a].size;
}

int64_t mtf_largest_elements(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                             const MtfPlacement *placement) {
    int64_t parts[MTF_MAX_RANK], elements = 1;
    mtf_placement_parts(mesh, shape, placement, parts);
    for (int i = 0; i < shape->rank; i++)
        elements *= mtf_largest_part(mtf_graph_size(graph, shape->dims[i]), parts[i]);
    return elements;
}

bool mtf_placement_check(const MtfGraph *graph, const MtfMesh *mesh, int tensor,
                         const MtfPlacement *placement, GError **error) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        int value = placement->axis[a];
        if (a >= mesh->n_axes && value != MTF_REPLICATED)
            return mtf_input_error(error, "tensor \"%s\" is placed on an axis the mesh lacks",
                                   t->name);
        if (value >= 0 && mtf_shape_find(&t->shape, value) < 0)
            return mtf_input_error(error,
                                   "axis \"%s\" splits tensor \"%s\" along \"%s\", a dimension it "
                                   "does not have",
                                   mesh->axes[a].name, t->name,
                                   mtf_graph_dimension(graph, value)->name);
    }
    return true;
}

const char *mtf_axis_placement_name(const MtfGraph *graph, int axis_placement) {
    switch (axis_placement) {
    case MTF_REPLICATED:
        return "replicated";
    case MTF_PARTIAL_SUM:
        return "partial:sum";
    case MTF_PARTIAL_MAX:
        return "partial:max";
    default:
        return mtf_graph_dimension(graph, axis_placement)->name;
    }
}

char *mtf_placement_format(const MtfGraph *graph, const MtfMesh *mesh,
                           const MtfPlacement *placement) {
    GString *text = g_string_new(NULL);
    for (int a = 0; a < mesh->n_axes; a++)
        g_string_append_printf(text, "%s%s=%s", a > 0 ? " " : "", mesh->axes[a].name,
                               mtf_axis_placement_name(graph, placement->axis[a]));
    return g_string_free(text, FALSE);
}
