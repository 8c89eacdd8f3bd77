// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/reshard_program.h"

#include <math.h>

MtfGraph *mtf_reshard_graph(int rank, const int64_t *sizes, MtfDtype dtype) {
    MtfGraph *graph = mtf_graph_new("reshard");
    MtfShape shape = { 0 };
    for (int i = 0; i < rank; i++) {
        g_autofree char *name = g_strdup_printf("d%d", i);
        mtf_shape_append(&shape, mtf_graph_add_dimension(graph, name, sizes[i], NULL));
    }
    mtf_graph_add_input(graph, "x", &shape, dtype, MTF_FEED_FEATURES, NULL);
    return graph;
}

static int add_buffer(MtfProgram *program, int tensor, const MtfPlacement *placement,
                      int64_t elements) {
    int id = (int)program->buffers->len;
    MtfBuffer buffer = { .tensor = tensor,
                         .placement = *placement,
                         .bytes =
                             elements * mtf_dtype_bytes(mtf_graph_tensor(program->graph, 0)->dtype),
                         .storage = id,
                         .persistent = true };
    g_array_append_val(program->buffers, buffer);
    return id;
}

static int add_copy(MtfProgram *program, const MtfPlacement *placement) {
    return add_buffer(program, 0, placement,
                      mtf_largest_elements(program->graph, &program->layout->mesh,
                                           &mtf_graph_tensor(program->graph, 0)->shape, placement));
}

static void add_step(MtfProgram *program, const MtfReshardOp *op, int source, int target) {
    const MtfGraph *graph = program->graph;
    MtfPlacement whole = mtf_placement_replicated();
    const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
    int64_t scratch = mtf_reshard_scratch(graph, &program->layout->mesh, shape, op);
    MtfInstruction instruction = { .kind = MTF_INSTRUCTION_RESHARD,
                                   .reshard = *op,
                                   .n_inputs = 1,
                                   .inputs = g_memdup2(&source, sizeof source),
                                   .n_outputs = 1,
                                   .outputs = g_memdup2(&target, sizeof target),
                                   .scratch = -1 };
    if (scratch > 0)
        instruction.scratch = add_buffer(program, -1, &whole, scratch);
    g_array_append_val(program->instructions, instruction);
}

MtfProgram *mtf_reshard_program(const MtfGraph *graph, const MtfLayout *layout,
                                const MtfPlacement *from, const MtfPlacement *to, int *target) {
    MtfProgram *program = g_new0(MtfProgram, 1);
    program->graph = graph;
    program->layout = layout;
    program->instructions = g_array_new(FALSE, TRUE, sizeof(MtfInstruction));
    g_array_set_clear_func(program->instructions, mtf_instruction_clear);
    program->buffers = g_array_new(FALSE, TRUE, sizeof(MtfBuffer));
    program->tensor_buffers = g_new0(int, 1);
    MtfReshardPath path;
    mtf_reshard_path(graph, &layout->mesh, &mtf_graph_tensor(graph, 0)->shape, from, to, &path);
    *target = add_copy(program, from);
    for (int i = 0; i < path.n_ops; i++) {
        int source = *target;
        *target = add_copy(program, &path.ops[i].to);
        add_step(program, &path.ops[i], source, *target);
    }
    for (int b = 0; b < (int)program->buffers->len; b++)
        mtf_program_buffer(program, b)->last = MAX(path.n_ops - 1, 0);
    return program;
}

double mtf_reshard_term(MtfDtype dtype, const MtfMesh *mesh, const MtfPlacement *from,
                        int64_t index, int rank) {
    unsigned partial = mtf_placement_partial_axes(from);
    uint64_t mixed = (uint64_t)index * 2654435761U +
                     (uint64_t)mtf_mesh_group_position(mesh, partial, rank) * 40503U + 17;
    mixed ^= mixed >> 13;
    double term = (double)(mixed * 2246822519U >> 7 & 31) - 16;
    return dtype == MTF_BOOL ? term > 8 : term;
}

double mtf_reshard_value(MtfDtype dtype, const MtfMesh *mesh, const MtfPlacement *from,
                         int64_t index) {
    unsigned partial = mtf_placement_partial_axes(from);
    double value = mtf_reshard_term(dtype, mesh, from, index, 0);
    bool maximum = dtype == MTF_BOOL;
    for (int a = 0; a < mesh->n_axes; a++)
        maximum |= from->axis[a] == MTF_PARTIAL_MAX;
    for (int p = 1; p < mtf_mesh_group_size(mesh, partial); p++) {
        double term =
            mtf_reshard_term(dtype, mesh, from, index, mtf_mesh_group_member(mesh, partial, 0, p));
        value = maximum ? fmax(value, term) : value + term;
    }
    return value;
}

static bool mixes(const MtfPlacement *placement) {
    bool sum = false, maximum = false;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        sum |= placement->axis[a] == MTF_PARTIAL_SUM;
        maximum |= placement->axis[a] == MTF_PARTIAL_MAX;
    }
    return sum && maximum;
}

GArray *mtf_reshard_placements(const MtfMesh *mesh, int rank) {
    GArray *placements = g_array_new(FALSE, FALSE, sizeof(MtfPlacement));
    int choices = rank + 3;
    int total = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        total *= choices;
    for (int code = 0; code < total; code++) {
        MtfPlacement placement = mtf_placement_replicated();
        int rest = code;
        for (int a = 0; a < mesh->n_axes; a++, rest /= choices)
            placement.axis[a] = (int16_t)(rest % choices - 3);
        if (!mixes(&placement))
            g_array_append_val(placements, placement);
    }
    return placements;
}
