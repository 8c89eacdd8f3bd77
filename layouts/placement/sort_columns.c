// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/sort_columns.h"

/* Whether every part lies within what its processor knows in the end: fillers stand behind the last element, so
 * parts begin before their columns. */
static bool parts_are_near(int64_t size, int64_t parts, int64_t column) {
    for (int64_t i = 0; i < parts; i++)
        if (i * column - mtf_part(size, i, parts).begin > column / 2)
            return false;
    return true;
}

int64_t mtf_sort_column(const MtfGraph *graph, const MtfOperation *operation, int64_t parts) {
    int64_t size = mtf_graph_size(graph, operation->attributes.dimension);
    int64_t bytes = mtf_dtype_bytes(mtf_graph_tensor(graph, operation->outputs[0])->dtype);
    int64_t unit = parts % 2 == 0 ? parts : 2 * parts; /* halves are whole, too */
    int64_t least = MAX(mtf_largest_part(size, parts), 2 * (parts - 1) * (parts - 1));
    int64_t column = (least + unit - 1) / unit * unit;
    /* Of R places 2 R (p - 1) / p and R go to others, with their int32; of n elements n (p - 1) / p. */
    double sent = (double)column * (double)(3 * parts - 2) * (double)(bytes + 4);
    double gathered = (double)size * (double)(parts - 1) * (double)bytes;
    return parts > 1 && sent < gathered && parts_are_near(size, parts, column) ? column : 0;
}

int64_t mtf_choice_candidates(const MtfGraph *graph, const MtfOperation *operation, int64_t parts) {
    const MtfAttributes *a = &operation->attributes;
    int64_t size = mtf_graph_size(graph, a->from);
    int64_t bytes = mtf_dtype_bytes(mtf_graph_tensor(graph, operation->outputs[0])->dtype);
    int64_t few = MIN(mtf_graph_size(graph, a->to), mtf_largest_part(size, parts));
    return parts * few * (bytes + 4) < size * bytes ? few : 0;
}

int mtf_total_places(MtfDtype dtype) {
    return dtype == MTF_BF16 ? 3 : 1;
}

int mtf_column_dimension(const MtfOperation *operation) {
    bool chooses = mtf_operation_row(operation->kind)->along == MTF_ALONG_CHOOSES;
    return chooses ? operation->attributes.to : operation->attributes.dimension;
}

int64_t mtf_sort_rows(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                      const MtfPlacement *placement, int dim, int rank) {
    MtfShape rest = *shape;
    mtf_shape_remove(&rest, dim);
    return rank < 0 ? mtf_largest_elements(graph, mesh, &rest, placement)
                    : mtf_local_elements(graph, mesh, &rest, placement, rank);
}
