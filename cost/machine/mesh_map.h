// SPDX-License-Identifier: GPL-3.0-or-later
/* A mesh laid on a slice of a machine, and what that leaves to each group of ranks. A group is the
 * ranks that differ only in some mesh axes; all groups of a mesh axis communicate at the same time
 * (SPMD), so a group's share of a link shrinks with the groups that cross it:
 *
 *     the group holds             and is priced as
 *     a whole ring of n           a ring of n
 *     m neighbours of a ring      a line of m                     (the wrap link is lost)
 *     every s-th place, m of n    a ring of m, bandwidth / s, latency * s   (s groups interleave)
 *     two such pieces             two axes that never work at once (their links are shared)
 *     m members of a switch       a switch of m; a child's bandwidth in proportion to its members
 */
#ifndef MTF_MESH_MAP_H
#define MTF_MESH_MAP_H

#include "cost/machine/machine.h"
#include "cost/machine/mapping.h"

typedef struct {
    MtfNetwork slice;
    MtfMapping mapping;
} MtfMeshMap;

/* Lays a mesh (sizes of its axes, the last one fastest) on the machine's slice of as many devices,
 * in order. Fails when the machine has too few devices or the mesh more than MTF_MAPPING_AXES_MAX
 * axes. */
bool mtf_mesh_map_init(MtfMeshMap *map, const MtfMachine *machine, int mesh_axes,
                       const int64_t *mesh_sizes, GError **error);

/* The network of one group over the mesh axes in `mesh_axes_mask` (bit i: mesh axis i), while all
 * groups work at once. Axes of size 1 are left out; an empty network is a group of one. */
MtfNetwork mtf_mesh_map_group(const MtfMeshMap *map, unsigned mesh_axes_mask);

/* The links that collectives over these mesh axes use, a bit a physical axis; a switched network is
 * one. Collectives without a bit in common never wait for each other. */
unsigned mtf_mesh_map_links(const MtfMeshMap *map, unsigned mesh_axes_mask);

/* The network that messages between neighbours of a mesh axis see (permute, halo): the group's, or
 * the ring that the axis' snake walks. */
MtfNetwork mtf_mesh_map_neighbors(const MtfMeshMap *map, unsigned mesh_axes_mask);

#endif
