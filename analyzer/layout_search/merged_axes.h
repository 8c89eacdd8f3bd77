// SPDX-License-Identifier: GPL-3.0-or-later
/* Meshes of many axes, searched with neighbouring axes merged. An operation has as many strategies as
 * its dimensions to the power of the axes, and an edge the square of that, so beyond three axes posing
 * all free layouts takes too long:
 *
 *     mesh      a:2  b:4  c:2  d:8        merges   (a b) c d     a (b c) d     a b (c d)
 *     merged    ab:8      c:2  d:8
 *
 * Splits nest in mesh order, so a layout of the merged mesh is one of the mesh itself: what lies on ab
 * lies on a and b. */
#ifndef MTF_MERGED_AXES_H
#define MTF_MERGED_AXES_H

#include "layouts/placement/layout.h"

/* Axes that free layouts are posed on without merging, whatever the graph. */
#define MTF_UNMERGED_AXES 3

/* Neighbouring axes alone: where all axes are of one size, the mapping makes any others neighbours. */
typedef struct {
    MtfMesh mesh;
    int axis[MTF_MAX_MESH_AXES]; /* of the merged mesh, for each axis of the mesh itself */
} MtfAxisMerge;

/* All merges of a mesh to `axes` axes, fewer than it has (MtfAxisMerge). */
GArray *mtf_axis_merges(const MtfMesh *mesh, int axes);

/* The layout of the mesh itself that a layout of the merged mesh is, in the order of the operations. */
MtfLayout *mtf_axis_merge_expand(const MtfGraph *graph, const MtfMesh *mesh,
                                 const MtfAxisMerge *merge, const MtfLayout *layout);

/* Whether the free layouts of a graph on the mesh are too many to be posed. */
bool mtf_axes_should_merge(const MtfGraph *graph, const MtfMesh *mesh);

#endif
