// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/mesh_map.h"

#include "layouts/base/error.h"

#include <math.h>

bool mtf_mesh_map_init(MtfMeshMap *map, const MtfMachine *machine, int mesh_axes,
                       const int64_t *mesh_sizes, GError **error) {
    if (mesh_axes > MTF_MAPPING_AXES_MAX)
        return mtf_input_error(error, "a mesh of %d axes has more than %d", mesh_axes,
                               MTF_MAPPING_AXES_MAX);
    int64_t devices = 1, physical[MTF_NETWORK_AXES_MAX];
    for (int m = 0; m < mesh_axes; m++)
        if (__builtin_mul_overflow(devices, mesh_sizes[m], &devices))
            devices = INT64_MAX;
    MtfNetwork slice;
    if (!mtf_machine_slice(machine, devices, &slice, error))
        return false;
    for (int d = 0; d < slice.axes; d++)
        physical[d] = slice.axis[d].size;
    map->slice = slice;
    map->mapping = mtf_mapping_lexicographic(mesh_axes, mesh_sizes, slice.axes, physical);
    return true;
}

/* The stretch of physical axis `p` that the group holds from place `stride` on: pieces that
 * continue one another count as one. Returns the next piece of the group with a stride of at least
 * `*stride` (through `*stride`) and its merged size; 1 when there is none. */
static int64_t next_stretch(const MtfMapping *mapping, unsigned mask, int p, int64_t *stride) {
    int64_t start = 0, size = 1;
    for (int i = 0; i < mapping->pieces; i++) {
        const MtfMappingPiece *piece = &mapping->piece[i];
        bool member = piece->physical_axis == p && (mask >> piece->mesh_axis & 1) != 0;
        if (member && piece->size > 1 && piece->stride >= *stride &&
            (start == 0 || piece->stride < start))
            start = piece->stride;
    }
    for (bool grown = start > 0; grown;) {
        grown = false;
        for (int i = 0; i < mapping->pieces && !grown; i++) {
            const MtfMappingPiece *piece = &mapping->piece[i];
            grown = piece->physical_axis == p && (mask >> piece->mesh_axis & 1) != 0 &&
                    piece->size > 1 && piece->stride == start * size;
            if (grown)
                size *= piece->size;
        }
    }
    *stride = start;
    return size;
}

static void add_torus_stretch(const MtfNetworkAxis *whole, int64_t stride, int64_t size,
                              MtfNetwork *group) {
    MtfNetworkAxis axis = *whole;
    axis.stride = stride;
    axis.places = whole->size;
    axis.closed = whole->wrap;
    axis.size = size;
    axis.wrap = whole->wrap && stride * size == whole->size;
    axis.bandwidth /= (double)stride;
    axis.latency *= (double)stride;
    g_assert(group->axes < MTF_NETWORK_AXES_MAX);
    group->axis[group->axes++] = axis;
}

/* The stretches of one physical axis, the slowest first, as ranks are numbered. */
static void add_physical_axis(const MtfMeshMap *map, unsigned mask, int p, MtfNetwork *group) {
    int64_t strides[MTF_MAPPING_PIECES_MAX], sizes[MTF_MAPPING_PIECES_MAX], stride = 1;
    int count = 0;
    for (;;) {
        int64_t size = next_stretch(&map->mapping, mask, p, &stride);
        if (size == 1)
            break;
        strides[count] = stride;
        sizes[count++] = size;
        stride *= size;
    }
    for (int i = count - 1; i >= 0; i--)
        add_torus_stretch(&map->slice.axis[p], strides[i], sizes[i], group);
}

static MtfNetwork torus_group(const MtfMeshMap *map, unsigned mask) {
    MtfNetwork group = map->slice;
    group.axes = 0;
    for (int p = 0; p < map->slice.axes; p++)
        add_physical_axis(map, mask, p, &group);
    return group;
}

/* A child of level p holds `inside` members of the group and devices of other groups; its uplink is
 * shared among them in proportion. */
static MtfNetwork switch_group(const MtfMeshMap *map, unsigned mask) {
    MtfNetwork group = map->slice;
    double share = 1;
    for (int p = map->slice.axes - 1; p >= 0; p--) {
        int64_t size = 1;
        for (int i = 0; i < map->mapping.pieces; i++) {
            const MtfMappingPiece *piece = &map->mapping.piece[i];
            if (piece->physical_axis == p && (mask >> piece->mesh_axis & 1) != 0)
                size *= piece->size;
        }
        group.axis[p].size = size;
        group.axis[p].bandwidth *= share;
        group.axis[p].pair *= share;
        if (group.axis[p].pair > 0 && (size < map->slice.axis[p].size || share < 1))
            group.axis[p].bandwidth = mtf_network_links(&group.axis[p]);
        share *= (double)size / (double)map->slice.axis[p].size;
    }
    mtf_network_drop_trivial(&group);
    return group;
}

MtfNetwork mtf_mesh_map_group(const MtfMeshMap *map, unsigned mesh_axes_mask) {
    return map->slice.switched ? switch_group(map, mesh_axes_mask)
                               : torus_group(map, mesh_axes_mask);
}

unsigned mtf_mesh_map_links(const MtfMeshMap *map, unsigned mesh_axes_mask) {
    unsigned links = map->slice.switched ? 1 : 0;
    for (int i = 0; i < map->mapping.pieces && !map->slice.switched; i++) {
        const MtfMappingPiece *piece = &map->mapping.piece[i];
        if (piece->size > 1 && (mesh_axes_mask >> piece->mesh_axis & 1) != 0)
            links |= 1U << piece->physical_axis;
    }
    return links;
}

/* One mesh axis as the ring or line that its snake walks: hops of the slowest stretch. */
static MtfNetwork snake_group(const MtfNetwork *group) {
    MtfNetwork ring = *group;
    MtfNetworkAxis axis = { .size = mtf_network_ranks(group) };
    axis.wrap = axis.size % 2 == 0;
    axis.bandwidth = INFINITY;
    for (int d = 0; d < group->axes; d++) {
        axis.bandwidth = fmin(axis.bandwidth, group->axis[d].bandwidth);
        axis.latency = fmax(axis.latency, group->axis[d].latency);
    }
    ring.axes = 1;
    ring.axis[0] = axis;
    return ring;
}

MtfNetwork mtf_mesh_map_neighbors(const MtfMeshMap *map, unsigned mesh_axes_mask) {
    MtfNetwork group = mtf_mesh_map_group(map, mesh_axes_mask);
    bool one_axis = mesh_axes_mask != 0 && (mesh_axes_mask & (mesh_axes_mask - 1)) == 0;
    bool snake = one_axis && (map->mapping.snake & mesh_axes_mask) != 0;
    return snake && group.axes > 1 && !group.switched ? snake_group(&group) : group;
}
