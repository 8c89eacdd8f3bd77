// SPDX-License-Identifier: GPL-3.0-or-later
/* Reading with margins. A placement is a partition, but windows (layouts/graph/window.h) reach over
 * the edges of a part: a processor that makes part [b, e) of one side of a window needs of the other
 *
 *     windows over the larger side     from b stride - before to (e - 1) stride - before + (places - 1) dilation
 *     from the smaller to the larger   from ceil((b + before - (places - 1) dilation) / stride)
 *                                      to floor((e - 1 + before) / stride)
 *
 * within its size, less what no place of a window meets at either end: strides and dilations leave
 * gaps. Parts and margins of a split of 14 elements in 4, by windows of 3 with a stride of 2:
 *
 *     held      [0 1 2][3 4 5 6][7 8 9][10 11 12 13]
 *     windows    0      1 2      3      4  5  6           of 7, element o between 2o - 1 and 2o + 1
 *     reached  [0 1][1 2 3 4 5][5 6 7][7 8 9 10 11 12 13]
 *
 * A part that has all that its windows reach is read as it is; elements that some part lacks are
 * what a halo exchange (reshard.h) takes from those that hold them, however far away.
 *
 * Inputs that are joined (layouts/graph/reshape.h) are read by such windows, too, of one place that is
 * moved: x of 5 and y of 3 elements, their result of 8 in 2 parts, where each reads nothing but its own
 *
 *     held      [x0 x1][x2 x3 x4]   [y0][y1 y2]
 *     made      [x0 x1 x2 x3][x4 y0 y1 y2]
 *
 * What turns (`resample` with `wrap`) goes on at 0 behind the end, and so do ranges of what is read: of 7
 * elements in 3 parts, turned by one,
 *
 *     held      [0 1][2 3][4 5 6]
 *     read      [6 7)   [1 2]   [3 4 5]       7 being element 0, whose range is [6, 8) */
#ifndef MTF_MARGINS_H
#define MTF_MARGINS_H

#include "layouts/placement/placement.h"

/* How one window reaches from one of its sides to the other. */
typedef struct {
    int parted;                /* the dimension whose parts are worked on */
    int64_t parted_size, size; /* of that dimension, and of the one that is read */
    int64_t stride, before, dilation, places;
    bool gathers;  /* the larger side is read */
    bool exact;    /* what lies beyond the reach is not read, whoever holds it */
    bool turns;    /* behind the end comes the beginning, and ranges go on there */
    bool backward; /* the last window comes first */
} MtfReach;

/* Who reads: an operation, its input of this number. */
typedef struct {
    int operation, input;
} MtfReader;

/* How dimension `dim` is read; false where that is done without windows. */
bool mtf_reach_init(MtfReach *reach, const MtfGraph *graph, MtfReader reader, int dim);

/* What windows meet from `part`: from the first element to the last; empty where there is none. Where
 * `turns`, element `size` is element 0 again, and so on. */
MtfRange mtf_reach_range(const MtfReach *reach, MtfRange part);

/* The range of `dim` that processor `rank` reads of an input in `placement`. */
MtfRange mtf_margins_range(const MtfGraph *graph, const MtfMesh *mesh,
                           const MtfPlacement *placement, MtfReader reader, int dim, int rank);

/* The mesh axes along which processors lack some of what they read; 0: none does. */
unsigned mtf_margins_axes(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                          const MtfPlacement *placement, MtfReader reader);

/* What both of two ranges of a dimension of `size` have, in its elements, where `wanted` may go on behind its
 * end; `held`, which is another part or ends there, has no more than one piece of it. */
MtfRange mtf_range_common(MtfRange held, MtfRange wanted, int64_t size);

/* The most over processors, in elements: of what one reads; of what one sends to all others; and of
 * that with what it gets from them. */
typedef struct {
    int64_t read, sent, exchanged;
    int64_t
        side; /* to one side, added up over the dimensions whose parts lack some: half of what is sent where as
                     much goes to either, all of it where everyone reads of one neighbour alone */
    int64_t
        places; /* how many parts on, the shorter way round, the farthest of it goes; 1: to neighbours */
} MtfMarginsMost;

/* Of an input of this shape in `placement`. */
MtfMarginsMost mtf_margins_most(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                                const MtfPlacement *placement, MtfReader reader);

#endif
