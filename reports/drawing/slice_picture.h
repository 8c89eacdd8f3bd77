// SPDX-License-Identifier: GPL-3.0-or-later
/* Which slice of a tensor sits on which processor. The picture depends only on the axes that split
 * and those that hold partial sums, so tensors share a few of them: on rows:2;cols:2, for a tensor
 * split over the rows alone
 *
 *     +-----+-----+
 *     | 0   | 0   |      processors 0 and 1 hold slice 0,
 *     +-----+-----+
 *     | 1   | 1   |      processors 2 and 3 slice 1
 *     +-----+-----+
 */
#ifndef MTF_SLICE_PICTURE_H
#define MTF_SLICE_PICTURE_H

#include "layouts/placement/layout.h"

/* The axes that split, and those that are partial: what a picture is of. */
typedef struct {
    unsigned split, partial;
} MtfSlicePattern;

/* Which part of a tensor each rank of the mesh holds, for drawing. */
MtfSlicePattern mtf_slice_pattern(const MtfMesh *mesh, const MtfPlacement *placement);

/* "split over rows, replicated along cols"; free with g_free. */
char *mtf_slice_pattern_format(const MtfMesh *mesh, const MtfSlicePattern *pattern);

/* The picture's colours alone as a style's "url('data:…')", for rows of tables: one image for all
 * that show it, where elements would be copied into every row. Free with g_free. */
char *mtf_slice_thumbnail(const MtfMesh *mesh, const MtfSlicePattern *pattern);

/* Appends the picture with processor numbers and what a tensor's slices are on each of them:
 * ranges where the mesh is small, slice numbers otherwise. */
void mtf_slice_picture(GString *page, const MtfGraph *graph, const MtfLayout *layout, int tensor);

/* Appends the tint of a slice: hues around the circle, light and lighter in turn, all light enough
 * for black text. */
void mtf_slice_fill(GString *page, int slice, int slices);

/* The same as "#rrggbb", for drawings; free with g_free. */
char *mtf_slice_color(int slice, int slices);

#endif
