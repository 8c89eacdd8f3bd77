// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/mapping.h"

#include <glib.h>

static int64_t common_factor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void reverse_pieces(MtfMapping *mapping) {
    for (int i = 0, j = mapping->pieces - 1; i < j; i++, j--) {
        MtfMappingPiece other = mapping->piece[i];
        mapping->piece[i] = mapping->piece[j];
        mapping->piece[j] = other;
    }
}

MtfMapping mtf_mapping_lexicographic(int mesh_axes, const int64_t *mesh_sizes, int physical_axes,
                                     const int64_t *physical_sizes) {
    g_assert(mesh_axes <= MTF_MAPPING_AXES_MAX && physical_axes <= MTF_MAPPING_AXES_MAX);
    MtfMapping mapping = { .mesh_axes = mesh_axes, .physical_axes = physical_axes };
    int64_t stride[MTF_MAPPING_AXES_MAX];
    for (int p = 0; p < physical_axes; p++) {
        mapping.physical_sizes[p] = physical_sizes[p];
        stride[p] = 1;
    }
    for (int m = mesh_axes - 1; m >= 0; m--) {
        mapping.mesh_sizes[m] = mesh_sizes[m];
        int64_t rest = mesh_sizes[m];
        for (int p = physical_axes - 1; p >= 0 && rest > 1; p--) {
            int64_t size = common_factor(rest, physical_sizes[p] / stride[p]);
            if (size == 1)
                continue;
            g_assert(mapping.pieces < MTF_MAPPING_PIECES_MAX);
            mapping.piece[mapping.pieces++] = (MtfMappingPiece){ m, p, size, stride[p] };
            stride[p] *= size;
            rest /= size;
        }
        g_assert(rest == 1);
    }
    reverse_pieces(&mapping);
    return mapping;
}

/* Place `index` of the walk that runs through the last side forth and back, the sides before it
 * likewise. */
static void forth_and_back(const int64_t *sides, int count, int64_t index, int64_t *at) {
    int64_t behind = 1;
    for (int d = count - 1; d >= 0; d--) {
        int64_t turn = index / behind;
        at[d] = turn % sides[d];
        if (turn / sides[d] % 2 == 1)
            at[d] = sides[d] - 1 - at[d];
        behind *= sides[d];
    }
}

/* The side that counts the rows of a ring: an even one. -1 when the grid has no ring. */
static int row_side(const int64_t *sides, int count) {
    int even = -1, wide = 0;
    for (int d = 0; d < count; d++) {
        wide += sides[d] > 1;
        if (sides[d] % 2 == 0)
            even = d;
    }
    return wide > 1 ? even : -1;
}

void mtf_snake_place(const int64_t *sides, int count, int64_t index, int64_t *at) {
    int even = row_side(sides, count);
    if (even < 0) {
        forth_and_back(sides, count, index, at);
        return;
    }
    int64_t others[MTF_MAPPING_PIECES_MAX], columns = 1, row, column;
    for (int d = 0; d < count; d++) {
        others[d] = d == even ? 1 : sides[d];
        columns *= others[d];
    }
    int64_t rows = sides[even], out = rows * (columns - 1);
    if (index < out) {
        row = index / (columns - 1);
        int64_t step = index % (columns - 1);
        column = row % 2 == 0 ? 1 + step : columns - 1 - step;
    } else {
        row = rows - 1 - (index - out);
        column = 0;
    }
    forth_and_back(others, count, column, at);
    at[even] = row;
}

/* Adds the place of member `index` of one mesh axis, whose pieces are [first, first + count). */
static void add_axis_place(const MtfMapping *mapping, int first, int count, int64_t index,
                           int64_t *at) {
    const MtfMappingPiece *pieces = &mapping->piece[first];
    int64_t sides[MTF_MAPPING_PIECES_MAX], digit[MTF_MAPPING_PIECES_MAX];
    for (int i = count - 1; i >= 0; i--) {
        sides[i] = pieces[i].size;
        digit[i] = index % sides[i];
        if ((mapping->snake >> pieces[i].mesh_axis & 1) == 0)
            index /= sides[i];
    }
    if (count > 0 && (mapping->snake >> pieces[0].mesh_axis & 1) != 0)
        mtf_snake_place(sides, count, index, digit);
    for (int i = 0; i < count; i++)
        at[pieces[i].physical_axis] += digit[i] * pieces[i].stride;
}

int64_t mtf_mapping_place(const MtfMapping *mapping, int64_t rank) {
    int64_t at[MTF_MAPPING_AXES_MAX] = { 0 };
    int end = mapping->pieces;
    for (int m = mapping->mesh_axes - 1; m >= 0; m--) {
        int first = end;
        while (first > 0 && mapping->piece[first - 1].mesh_axis == m)
            first--;
        add_axis_place(mapping, first, end - first, rank % mapping->mesh_sizes[m], at);
        rank /= mapping->mesh_sizes[m];
        end = first;
    }
    int64_t place = 0;
    for (int p = 0; p < mapping->physical_axes; p++)
        place = place * mapping->physical_sizes[p] + at[p];
    return place;
}

static int64_t mesh_product(const MtfMapping *mapping, int axis) {
    int64_t product = 1;
    for (int i = 0; i < mapping->pieces; i++)
        if (mapping->piece[i].mesh_axis == axis)
            product *= mapping->piece[i].size;
    return product;
}

/* Follows the pieces of one physical axis from stride 1 upwards; they must end at its size. */
static bool physical_axis_is_covered(const MtfMapping *mapping, int axis) {
    int64_t reached = 1;
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < mapping->pieces && !found; i++) {
            const MtfMappingPiece *piece = &mapping->piece[i];
            found = piece->physical_axis == axis && piece->stride == reached && piece->size > 1;
            if (found)
                reached *= piece->size;
        }
    }
    return reached == mapping->physical_sizes[axis];
}

bool mtf_mapping_is_whole(const MtfMapping *mapping) {
    for (int m = 0; m < mapping->mesh_axes; m++)
        if (mesh_product(mapping, m) != mapping->mesh_sizes[m])
            return false;
    int64_t total = 1, pieces = 1;
    for (int p = 0; p < mapping->physical_axes; p++) {
        total *= mapping->physical_sizes[p];
        if (!physical_axis_is_covered(mapping, p))
            return false;
    }
    for (int i = 0; i < mapping->pieces; i++)
        pieces *= mapping->piece[i].size;
    return pieces == total;
}
