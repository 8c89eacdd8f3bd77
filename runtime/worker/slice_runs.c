// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/slice_runs.h"

MtfShare mtf_share_kept(const MtfProgram *program, int tensor, int rank) {
    const MtfGraph *graph = program->graph;
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    const MtfPlacement *placement =
        &mtf_program_buffer(program, program->tensor_buffers[tensor])->placement;
    MtfShare share = { .box = { .dtype = t->dtype, .rank = t->shape.rank } };
    for (int i = 0; i < t->shape.rank; i++) {
        int dim = t->shape.dims[i];
        int64_t size = mtf_graph_size(graph, dim), counted = mtf_graph_unpadded_size(graph, dim);
        MtfRange range = mtf_placement_range(mesh, placement, dim, size, rank);
        share.box.dims[i] = dim;
        share.box.begin[i] = MIN(range.begin, counted);
        share.box.size[i] = MIN(range.end, counted) - share.box.begin[i];
        share.box.global[i] = counted;
        share.extent[i] = range.end - range.begin;
        share.empty |= share.box.size[i] == 0;
    }
    return share;
}

/* The mesh axes along which all processors keep the same elements. */
static unsigned copying_axes(const MtfProgram *program, int tensor) {
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfPlacement *placement =
        &mtf_program_buffer(program, program->tensor_buffers[tensor])->placement;
    unsigned axes = 0;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED)
            axes |= 1U << a;
    return axes;
}

/* Keeps part `index` of `parts` of the first dimension that can be divided. */
static void divide(MtfShare *share, int index, int parts) {
    MtfOperand *box = &share->box;
    int i = 0;
    while (i < box->rank && box->size[i] == 1)
        i++;
    if (i == box->rank) {
        share->empty |= index > 0;
        return;
    }
    MtfRange part = mtf_part(box->size[i], index, parts);
    share->first = part.begin;
    for (int k = i + 1; k < box->rank; k++)
        share->first *= share->extent[k];
    box->begin[i] += part.begin;
    box->size[i] = part.end - part.begin;
    share->empty |= part.begin == part.end;
}

MtfShare mtf_share_owned(const MtfProgram *program, int tensor, int rank) {
    const MtfMesh *mesh = &program->layout->mesh;
    unsigned axes = copying_axes(program, tensor);
    MtfShare share = mtf_share_kept(program, tensor, rank);
    divide(&share, mtf_mesh_group_position(mesh, axes, rank), mtf_mesh_group_size(mesh, axes));
    return share;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* The index in the whole tensor of a row's first element. */
static int64_t row_index(const MtfRuns *runs, int64_t row) {
    const MtfOperand *box = &runs->share->box;
    int64_t index = 0;
    int64_t stride = 1;
    for (int i = box->rank - 1; i >= 0; i--) {
        int64_t coordinate = 0;
        if (i < runs->outer) {
            coordinate = row % box->size[i];
            row /= box->size[i];
        }
        index += (box->begin[i] + coordinate) * stride;
        stride *= box->global[i];
    }
    return index;
}

/* The same element's place in the slice. */
static int64_t row_position(const MtfRuns *runs, int64_t row) {
    const MtfShare *share = runs->share;
    int64_t position = share->first;
    int64_t stride = runs->spacing;
    for (int i = runs->outer - 1; i >= 0; i--) {
        position += row % share->box.size[i] * stride;
        row /= share->box.size[i];
        stride *= share->extent[i];
    }
    return position;
}

/* The first row that ends behind `low`: rows lie in rising order. */
static int64_t first_row(const MtfRuns *runs) {
    int64_t below = 0;
    int64_t above = runs->rows;
    while (below < above) {
        int64_t middle = below + (above - below) / 2;
        if (row_index(runs, middle) + runs->length <= runs->low)
            below = middle + 1;
        else
            above = middle;
    }
    return below;
}

MtfRuns mtf_runs(const MtfShare *share, int64_t low, int64_t high) {
    const MtfOperand *box = &share->box;
    MtfRuns runs = {
        .share = share, .low = low, .high = high, .outer = box->rank, .length = 1, .spacing = 1
    };
    if (share->empty)
        return runs;
    /* A row is the last dimension, and the one before it where the last is whole, and so on. */
    bool whole = true;
    while (runs.outer > 0 && whole) {
        int i = --runs.outer;
        runs.length *= box->size[i];
        runs.spacing *= share->extent[i];
        whole = box->size[i] == box->global[i] && box->size[i] == share->extent[i];
    }
    runs.rows = 1;
    for (int i = 0; i < runs.outer; i++)
        runs.rows *= box->size[i];
    runs.row = first_row(&runs);
    return runs;
}

bool mtf_runs_next(MtfRuns *runs) {
    if (runs->row >= runs->rows)
        return false;
    int64_t start = row_index(runs, runs->row);
    int64_t begin = MAX(start, runs->low);
    int64_t end = MIN(start + runs->length, runs->high);
    if (begin >= end)
        return false;
    runs->index = begin;
    runs->position = row_position(runs, runs->row) + (begin - start);
    runs->count = end - begin;
    runs->row++;
    return true;
}

int64_t mtf_share_count(const MtfShare *share, int64_t low, int64_t high) {
    MtfRuns runs = mtf_runs(share, low, high);
    int64_t count = 0;
    while (mtf_runs_next(&runs))
        count += runs.count;
    return count;
}
