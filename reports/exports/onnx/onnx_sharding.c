// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/onnx/onnx_sharding.h"

static void put_inner(GByteArray *message, uint32_t field, GByteArray *inner) {
    mtf_wire_put_message(message, field, inner);
    g_byte_array_unref(inner);
}

/* Which part of the tensor a processor holds: a number with the first dimension outermost, and within
 * a dimension the first mesh axis. */
static int part_of(const MtfPlan *plan, int tensor, int processor) {
    const MtfMesh *mesh = &plan->layout->mesh;
    const MtfPlacement *placement = &plan->layout->tensors[tensor];
    const MtfShape *shape = &mtf_graph_tensor(plan->graph, tensor)->shape;
    int at[MTF_MAX_MESH_AXES], part = 0;
    for (int a = mesh->n_axes - 1; a >= 0; a--) {
        at[a] = processor % mesh->axes[a].size;
        processor /= mesh->axes[a].size;
    }
    for (int i = 0; i < shape->rank; i++)
        for (int a = 0; a < mesh->n_axes; a++)
            if (placement->axis[a] == shape->dims[i])
                part = part * mesh->axes[a].size + at[a];
    return part;
}

/* Parts along dimension `i`, 1 where it is whole. */
static int parts_along(const MtfPlan *plan, int tensor, int i) {
    const MtfMesh *mesh = &plan->layout->mesh;
    const MtfShape *shape = &mtf_graph_tensor(plan->graph, tensor)->shape;
    int parts = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        if (plan->layout->tensors[tensor].axis[a] == shape->dims[i])
            parts *= mesh->axes[a].size;
    return parts;
}

static void put_dimension(GByteArray *spec, const MtfPlan *plan, int tensor, int i) {
    const MtfShape *shape = &mtf_graph_tensor(plan->graph, tensor)->shape;
    int parts = parts_along(plan, tensor, i);
    if (parts == 1)
        return;
    GByteArray *dim = g_byte_array_new(), *simple = g_byte_array_new();
    mtf_wire_put_varint(simple, 1, (uint64_t)mtf_graph_size(plan->graph, shape->dims[i]));
    mtf_wire_put_varint(simple, 3, (uint64_t)parts);
    mtf_wire_put_varint(dim, 1, (uint64_t)i);
    put_inner(dim, 2, simple);
    put_inner(spec, 4, dim);
}

/* The devices that hold part `part`, as an entry of the map of groups. */
static void put_group(GByteArray *spec, const MtfPlan *plan, int tensor, int part, int first) {
    GByteArray *entry = g_byte_array_new();
    int n = mtf_mesh_size(&plan->layout->mesh);
    mtf_wire_put_varint(entry, 1, (uint64_t)(int64_t)(-1 - part));
    for (int processor = 0; processor < n; processor++)
        if (part_of(plan, tensor, processor) == part)
            mtf_wire_put_varint(entry, 2, (uint64_t)(first + processor));
    put_inner(spec, 3, entry);
}

static int holder_of(const MtfPlan *plan, int tensor, int part) {
    int processor = 0;
    while (part_of(plan, tensor, processor) != part)
        processor++;
    return processor;
}

GByteArray *mtf_onnx_sharding(const MtfPlan *plan, int tensor, const char *name, int first) {
    int rank = mtf_graph_tensor(plan->graph, tensor)->shape.rank, parts = 1;
    if (mtf_placement_partial_axes(&plan->layout->tensors[tensor]) != 0)
        return NULL;
    for (int i = 0; i < rank; i++)
        parts *= parts_along(plan, tensor, i);
    bool alone = parts == mtf_mesh_size(&plan->layout->mesh);
    GByteArray *spec = g_byte_array_new();
    mtf_wire_put_string(spec, 1, name);
    for (int part = 0; part < parts; part++)
        mtf_wire_put_varint(spec, 2,
                            alone ? (uint64_t)(first + holder_of(plan, tensor, part))
                                  : (uint64_t)(int64_t)(-1 - part));
    for (int part = 0; part < parts && !alone; part++)
        put_group(spec, plan, tensor, part, first);
    for (int i = 0; i < rank; i++)
        put_dimension(spec, plan, tensor, i);
    return spec;
}
