// SPDX-License-Identifier: GPL-3.0-or-later
/* The meshes that N devices can form: all ways to write N as an ordered product of at most `max_axes`
 * factors above 1. Names of the axes, the last one fastest:
 *
 *     one axis      all:12
 *     two axes      rows:3;cols:4
 *     three axes    planes:2;rows:3;cols:2
 *
 * 12 devices on two axes: 12, 2x6, 3x4, 4x3, 6x2. Two orders of the same factors are different
 * meshes, because they lie differently on the machine; where the machine prices both equally, only
 * the first is kept. */
#ifndef MTF_MESH_SHAPES_H
#define MTF_MESH_SHAPES_H

#include "cost/machine/mesh_map.h"
#include "layouts/placement/mesh.h"

#define MTF_MESH_SHAPES_MAX_AXES 3

/* All of them, fewest axes first, then by size of the first axis (MtfMesh). `devices` is 1 or more,
 * `max_axes` 1 to MTF_MESH_SHAPES_MAX_AXES. One device gives the mesh without axes. */
GArray *mtf_mesh_shapes(int devices, int max_axes);

/* The same without meshes that `machine` prices like an earlier one. Fails when the machine has too
 * few devices. */
GArray *mtf_mesh_shapes_on(const MtfMachine *machine, int devices, int max_axes, GError **error);

/* The mesh on which space is split among axes of their own, at most `spaces` (2 or 3), as evenly as can be, beside `data`
 * of the devices, which it divides, on an axis "data" before them; 1: there is none. False where what is left for space
 * is no product of two. */
bool mtf_mesh_for_space(int devices, int data, int spaces, MtfMesh *mesh);

#endif
