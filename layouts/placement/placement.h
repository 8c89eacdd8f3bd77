// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a tensor is: on each mesh axis it is
 *
 *     replicated   every processor along the axis holds the same elements
 *     sharded d    the axis cuts dimension d; each processor holds one part
 *     partial      every processor holds a term; their sum (or maximum) is the tensor
 *
 * Two axes may shard one dimension: major to minor in mesh order, so that on rows:2;cols:2 with
 * both sharding a dimension, processor (r, c) holds part 2r + c of 4. Part i of p over n elements
 * is [floor(i n / p), floor((i + 1) n / p)): sizes need not divide, and parts may be empty. */
#ifndef MTF_PLACEMENT_H
#define MTF_PLACEMENT_H

#include "layouts/graph/graph.h"
#include "layouts/placement/mesh.h"

enum { MTF_REPLICATED = -1, MTF_PARTIAL_SUM = -2, MTF_PARTIAL_MAX = -3 };

/* A value type: axis[a] is a dimension id or one of the above; axes beyond the mesh's are
 * MTF_REPLICATED, so that equal placements are equal bytes. */
typedef struct {
    int16_t axis[MTF_MAX_MESH_AXES];
} MtfPlacement;

/* A half-open range of indexes of one dimension. */
typedef struct {
    int64_t begin, end;
} MtfRange;

/* The placement that is replicated over every axis, and whether two are the same over all axes. */
MtfPlacement mtf_placement_replicated(void);
bool mtf_placement_equal(const MtfPlacement *a, const MtfPlacement *b);
static inline bool mtf_axis_is_partial(int axis_placement) {
    return axis_placement <= MTF_PARTIAL_SUM;
}

/* Bit masks of the mesh axes that are partial (of either kind), and that split `dim`. */
unsigned mtf_placement_partial_axes(const MtfPlacement *placement);
static inline unsigned mtf_placement_split_axes(const MtfPlacement *placement, int dim) {
    unsigned mask = 0;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        mask |= placement->axis[a] == dim ? 1U << a : 0;
    return mask;
}

/* Part `index` of `parts` over `size` elements. */
MtfRange mtf_part(int64_t size, int64_t index, int64_t parts);

/* The range of `dim` (of `size` elements) that processor `rank` holds. */
MtfRange mtf_placement_range(const MtfMesh *mesh, const MtfPlacement *placement, int dim,
                             int64_t size, int rank);

/* The size of the largest of `parts` parts. */
static inline int64_t mtf_largest_part(int64_t size, int64_t parts) {
    return parts == 1 ? size : (size + parts - 1) / parts;
}

/* Into how many parts each dimension of `shape` is split: parts[i] of the i-th. */
void mtf_placement_parts(const MtfMesh *mesh, const MtfShape *shape, const MtfPlacement *placement,
                         int64_t *parts);

/* Elements of a tensor of `shape` on processor `rank`; and on the processor that holds most, which
 * is the product of the dimensions' largest parts. */
int64_t mtf_local_elements(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                           const MtfPlacement *placement, int rank);
int64_t mtf_largest_elements(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                             const MtfPlacement *placement);

/* Fails, naming the tensor, unless every split dimension is one of the tensor's. */
bool mtf_placement_check(const MtfGraph *graph, const MtfMesh *mesh, int tensor,
                         const MtfPlacement *placement, GError **error);

/* "rows=batch cols=replicated"; free with g_free. One axis's value, "batch", "replicated", "partial:sum" or
 * "partial:max", is owned by the graph or static. */
char *mtf_placement_format(const MtfGraph *graph, const MtfMesh *mesh,
                           const MtfPlacement *placement);
const char *mtf_axis_placement_name(const MtfGraph *graph, int axis_placement);

#endif
