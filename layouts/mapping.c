// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/mapping.h"

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

int64_t mtf_mapping_place(const MtfMapping *mapping, int64_t rank) {
    int64_t at[MTF_MAPPING_AXES_MAX] = { 0 };
    for (int i = mapping->pieces - 1; i >= 0; i--) {
        const MtfMappingPiece *piece = &mapping->piece[i];
        at[piece->physical_axis] += rank % piece->size * piece->stride;
        rank /= piece->size;
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
