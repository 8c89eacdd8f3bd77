// SPDX-License-Identifier: GPL-3.0-or-later
/* A mesh is an n-dimensional array of processors with named axes. Processors are numbered row by
 * row, the last axis fastest: on `rows:2;cols:3`
 *
 *              cols
 *             0  1  2
 *     rows 0  0  1  2          rank = row * 3 + col
 *          1  3  4  5
 *
 * A set of axes is a bit mask (bit a = axis a). The processors that agree on all other axes form a
 * group of that set; a collective runs in every such group at once. */
#ifndef MTF_MESH_H
#define MTF_MESH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_MAX_MESH_AXES 8
#define MTF_MAX_MESH_SIZE (INT64_C(1) << 24) /* processors */
#define MTF_MAX_AXIS_NAME 32

typedef struct {
    char name[MTF_MAX_AXIS_NAME];
    int size; /* >= 1 */
} MtfMeshAxis;

/* A value type; axes beyond n_axes are zero. */
typedef struct {
    int n_axes;
    MtfMeshAxis axes[MTF_MAX_MESH_AXES];
} MtfMesh;

/* Reads Mesh-TensorFlow's syntax: "rows:4;cols:2"; `,` `.` and spaces separate as well as `;`. One
 * size may be -1 when `devices` > 0: it becomes what is left of `devices`. Fails on an unknown
 * form, a name given twice or with control characters, a size below 1, more than MTF_MAX_MESH_AXES
 * axes or more than MTF_MAX_MESH_SIZE processors. The empty text is the mesh of one processor. */
bool mtf_mesh_parse(const char *text, int64_t devices, MtfMesh *mesh, GError **error);

/* "rows:4;cols:2", which parses again; free with g_free. */
char *mtf_mesh_format(const MtfMesh *mesh);

/* The same for people: "one device" has no axes. */
char *mtf_mesh_title(const MtfMesh *mesh);

/* The number of processors. */
int mtf_mesh_size(const MtfMesh *mesh);

/* The index of the named axis, or -1. */
int mtf_mesh_axis(const MtfMesh *mesh, const char *name);

/* The processor's coordinate on one axis. */
int mtf_mesh_coordinate(const MtfMesh *mesh, int rank, int axis);

/* The number of processors in a group of the axes in `mask`. */
static inline int mtf_mesh_group_size(const MtfMesh *mesh, unsigned mask) {
    int size = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        size *= mask >> a & 1 ? mesh->axes[a].size : 1;
    return size;
}

/* The processor's position in its group of the axes in `mask`, row-major; and back: the processor
 * at `position` of the group that `rank` belongs to. */
int mtf_mesh_group_position(const MtfMesh *mesh, unsigned mask, int rank);
int mtf_mesh_group_member(const MtfMesh *mesh, unsigned mask, int rank, int position);

/* "rows" or "rows,cols"; free with g_free. */
char *mtf_mesh_mask_format(const MtfMesh *mesh, unsigned mask);

/* Whether axes have the same names and sizes in the same order. */
bool mtf_mesh_equal(const MtfMesh *a, const MtfMesh *b);

/* Splits Mesh-TensorFlow's list of pairs "a:b;c:d" (also `,` `.` or space between pairs) into two
 * arrays of strings of equal length. `what` names the text in messages. Free with g_strfreev. */
bool mtf_pairs_parse(const char *text, const char *what, char ***firsts, char ***seconds,
                     GError **error);

#endif
