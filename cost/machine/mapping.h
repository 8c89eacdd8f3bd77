// SPDX-License-Identifier: GPL-3.0-or-later
/* How the axes of a mesh lie on the physical axes of a slice of a machine. Every mesh axis is made
 * of pieces of physical axes, listed from the slowest-moving to the fastest; a piece steps through
 * its physical axis `size` times, `stride` places at a time. The mesh 8x64 on a torus 16x16x2, in
 * the order in which both count their members (row-major, last axis fastest):
 *
 *     mesh axis 0 (8)    physical 0, size 8, stride 2        every second place of the first ring
 *     mesh axis 1 (64)   physical 0, size 2, stride 1        two neighbours of the first ring,
 *                        physical 1, size 16, stride 1       the whole second ring,
 *                        physical 2, size 2, stride 1        and the pair
 *
 * The pieces of one physical axis cover it exactly once: together they are a mixed-radix number
 * system for its places. */
#ifndef MTF_MAPPING_H
#define MTF_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#define MTF_MAPPING_PIECES_MAX 64
#define MTF_MAPPING_AXES_MAX 16

typedef struct {
    int mesh_axis;
    int physical_axis;
    int64_t size;
    int64_t stride;
} MtfMappingPiece;

typedef struct {
    int mesh_axes;
    int physical_axes;
    int64_t mesh_sizes[MTF_MAPPING_AXES_MAX];
    int64_t physical_sizes[MTF_MAPPING_AXES_MAX];
    int pieces;
    MtfMappingPiece piece[MTF_MAPPING_PIECES_MAX]; /* by mesh axis, slowest piece first */
    unsigned snake; /* mesh axes (bits) whose members walk their pieces as a snake, see below */
} MtfMapping;

/* The mapping that keeps the order: member i of the mesh is member i of the slice. Where the sizes
 * of mesh and slice do not divide one another (a mesh 3x8 on a torus 8x3), each mesh axis, from the
 * last, takes its common factor with each physical axis, from the last. Both lists hold at most
 * MTF_MAPPING_AXES_MAX sizes, each at least 1, with equal products. */
MtfMapping mtf_mapping_lexicographic(int mesh_axes, const int64_t *mesh_sizes, int physical_axes,
                                     const int64_t *physical_sizes);

/* The place in the slice (row-major) of member `rank` of the mesh (row-major). */
int64_t mtf_mapping_place(const MtfMapping *mapping, int64_t rank);

/* Whether the pieces of every mesh axis multiply to its size and those of every physical axis cover
 * each of its places once. */
bool mtf_mapping_is_whole(const MtfMapping *mapping);

/* A snake through a grid: place `index` of a walk that visits every place of the grid once, each
 * step to a neighbour. When some side is even and two sides exceed 1 the walk is a ring: its last
 * place neighbours the first. `sides` has `count` entries of at least 1; fills `at`.
 *
 *     4x3:   0,1 > 0,2        the even side counts rows; column 0 is the way back
 *                   v
 *            1,1 < 1,2
 *             v                                                                          */
void mtf_snake_place(const int64_t *sides, int count, int64_t index, int64_t *at);

#endif
