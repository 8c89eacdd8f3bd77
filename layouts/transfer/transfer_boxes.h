// SPDX-License-Identifier: GPL-3.0-or-later
/* What must travel when a tensor goes from one placement on one domain to another placement on another
 * domain: for every part of the source and every part of the target the box of elements that they
 * share, who holds it and who lacks it.
 *
 *     source, 2 devices: split by columns      target, 2 devices: split by rows
 *            +---+---+                               +-------+
 *            | 0 | 1 |                               |   2   |         four boxes: 0→2, 1→2,
 *            |   |   |                               +-------+                     0→3, 1→3
 *            |   |   |                               |   3   |
 *            +---+---+                               +-------+
 *
 * Devices that have equal parts are replicas: any of them may send, all of them must receive. A device
 * that is in both domains and holds a box already does not receive it. */
#ifndef MTF_TRANSFER_BOXES_H
#define MTF_TRANSFER_BOXES_H

#include "layouts/placement/mesh.h"

#define MTF_BOX_DIMENSIONS_MAX 8

/* Half-open ranges of indexes, one a dimension; those beyond the tensor's are [0, 1). */
typedef struct {
    int64_t begin[MTF_BOX_DIMENSIONS_MAX], end[MTF_BOX_DIMENSIONS_MAX];
} MtfBox;

/* A tensor's shape, and how one end of the transfer holds it: the devices first_device, … form `mesh`,
 * and dimension d is split over the mesh axes axis[d][0], axis[d][1], … (major to minor); axes that
 * split nothing hold copies. */
typedef struct {
    int dimensions;
    int64_t size[MTF_BOX_DIMENSIONS_MAX];
} MtfTransferShape;

typedef struct {
    MtfMesh mesh;
    int first_device;
    int axes[MTF_BOX_DIMENSIONS_MAX]; /* how many axes split dimension d */
    int8_t axis[MTF_BOX_DIMENSIONS_MAX][MTF_MAX_MESH_AXES];
} MtfTransferEnd;

/* One box: `senders` hold it, `receivers` lack it (device numbers, ascending). */
typedef struct {
    MtfBox box;
    int64_t elements;
    GArray *senders, *receivers; /* of int */
} MtfTransferBox;

/* "1024x1024x512": 1 to 8 sizes of at least 1, at most 2^48 elements in all. */
bool mtf_transfer_shape_parse(const char *text, MtfTransferShape *shape, GError **error);

/* "2x4:S0RR": a mesh, and for each dimension of `shape` R (whole) or S and the numbers of the mesh axes
 * that split it, S1 or S01 (axis 0 major). Each axis splits at most one dimension. `what` names the
 * text in messages. The first device is 0. */
bool mtf_transfer_end_parse(const char *what, const char *text, const MtfTransferShape *shape,
                            MtfTransferEnd *end, GError **error);

/* The part that one rank of the end's mesh holds. Parts may be empty. */
MtfBox mtf_transfer_part(const MtfTransferShape *shape, const MtfTransferEnd *end, int rank);

/* All boxes with somebody who lacks them, in the order of source parts and then target parts: a
 * GPtrArray of MtfTransferBox *, freed by g_ptr_array_unref. */
GPtrArray *mtf_transfer_boxes(const MtfTransferShape *shape, const MtfTransferEnd *from,
                              const MtfTransferEnd *to);

/* "[0:512, 0:1024]"; free with g_free. */
char *mtf_box_format(const MtfTransferShape *shape, const MtfBox *box);

#endif
