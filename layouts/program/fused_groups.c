// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/fused_groups.h"

#include "layouts/program/lifetimes.h"

#include <string.h>

/* A group that grows. */
typedef struct {
    MtfProgram *program;
    int64_t cache;  /* bytes of a tile */
    int number;     /* of the group, from 1 */
    int begin, end; /* instructions */
    int n_dims;
    int dims[MTF_MAX_RANK];      /* that are cut, outermost first */
    unsigned axes[MTF_MAX_RANK]; /* that split each of them */
    int64_t bytes;               /* of the storages that are cut */
    int64_t live;                /* of all storages that live somewhere in the group */
    int *touched;                /* by storage: the last group that touches it; 0: none */
    int *written;                /* by buffer: the last group that writes it */
    int64_t *live_at;            /* by instruction */
    int64_t *begun_at;           /* … of storages that begin to live there */
    int64_t most;                /* of live_at */
} Group;

static const MtfBuffer *buffer_at(const Group *group, int buffer) {
    return mtf_program_buffer(group->program, buffer);
}

static const MtfShape *shape_of(const Group *group, int buffer) {
    return &mtf_graph_tensor(group->program->graph, buffer_at(group, buffer)->tensor)->shape;
}

static int find_dim(const Group *group, int dim) {
    for (int i = 0; i < group->n_dims; i++)
        if (group->dims[i] == dim)
            return i;
    return -1;
}

/* Whether all dimensions that are cut lead the tensor. */
static bool is_cut(const Group *group, int buffer) {
    const MtfShape *shape = shape_of(group, buffer);
    return shape->rank >= group->n_dims &&
           memcmp(shape->dims, group->dims, sizeof *group->dims * (gsize)group->n_dims) == 0;
}

/* Whether the tensor has none of them. */
static bool is_whole(const Group *group, int buffer) {
    const MtfShape *shape = shape_of(group, buffer);
    for (int i = 0; i < shape->rank; i++)
        if (find_dim(group, shape->dims[i]) >= 0)
            return false;
    return true;
}

/* Whether those of them that the tensor has lead it in their order and are split as in the group, so
 * that a tile of it is one piece. */
static bool is_in_pieces(const Group *group, int buffer) {
    const MtfShape *shape = shape_of(group, buffer);
    const MtfPlacement *placement = &buffer_at(group, buffer)->placement;
    int least = 0; /* the place that the next one may have */
    for (int i = 0; i < shape->rank; i++) {
        int place = find_dim(group, shape->dims[i]);
        if (place >= 0 && (place < least || group->axes[place] != mtf_placement_split_axes(
                                                                      placement, shape->dims[i])))
            return false;
        least = place >= 0 ? place + 1 : group->n_dims;
    }
    return true;
}

/* ---- Which kernels can be cut ---------------------------------------------------------------- */

/* What a sum is taken of: the input that has every dimension of the operation; or -1. */
static int summed_input(const Group *group, const MtfInstruction *instruction) {
    MtfIteration iteration;
    mtf_operation_iteration(group->program->graph, instruction->operation, &iteration);
    for (int k = 0; k < instruction->n_inputs; k++)
        if (shape_of(group, instruction->inputs[k])->rank == iteration.n)
            return instruction->inputs[k];
    return -1;
}

/* Whether the kernel sums what is cut into a result that lacks it: element by element, since the
 * parts of a sum that runs along a piece of memory would depend on the tiles. */
static bool sums_over_tiles(const Group *group, const MtfInstruction *instruction) {
    const MtfOperation *op = mtf_graph_operation(group->program->graph, instruction->operation);
    int summed = summed_input(group, instruction);
    if (!mtf_operation_row(op->kind)->continues || summed < 0 || !is_cut(group, summed) ||
        !is_whole(group, instruction->outputs[0]))
        return false;
    const MtfShape *shape = shape_of(group, summed);
    int innermost = shape->dims[shape->rank - 1];
    return mtf_shape_find(shape_of(group, instruction->outputs[0]), innermost) >= 0;
}

/* Whether the kernel needs all of some dimension that is cut. */
static bool needs_what_is_cut(const Group *group, const MtfInstruction *instruction) {
    MtfIteration iteration;
    mtf_operation_iteration(group->program->graph, instruction->operation, &iteration);
    const MtfOperation *op = mtf_graph_operation(group->program->graph, instruction->operation);
    for (int i = 0; i < iteration.n; i++)
        if (iteration.index[i].whole && find_dim(group, iteration.index[i].dim) >= 0)
            return true;
    int along = mtf_operation_along(op);
    return along >= 0 && find_dim(group, along) >= 0;
}

/* Whether the kernel can be a part of the group as that is cut now. */
static bool can_be_cut(const Group *group, const MtfInstruction *instruction) {
    if (needs_what_is_cut(group, instruction))
        return false;
    for (int k = 0; k < instruction->n_inputs; k++) {
        int input = instruction->inputs[k];
        bool grows = group->written[input] == group->number && !is_cut(group, input);
        if (grows || !is_in_pieces(group, input))
            return false;
    }
    for (int k = 0; k < instruction->n_outputs; k++) {
        int output = instruction->outputs[k];
        if (!(is_cut(group, output) && is_in_pieces(group, output)) &&
            !sums_over_tiles(group, instruction))
            return false;
    }
    return true;
}

/* Whether a kernel may run in parts at all. */
static bool is_fit(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL || instruction->n_inputs == 0 ||
        instruction->kernel_class == MTF_CLASS_MATMUL || instruction->part > 0)
        return false;
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    return op->phase != MTF_PHASE_UPDATE && !row->accumulates && row->addend == 0 &&
           row->host == MTF_HOST_NOTHING && row->dims != MTF_DIMS_RENAMED &&
           row->dims != MTF_DIMS_RESHAPED;
}

/* ---- How a group grows ----------------------------------------------------------------------- */

/* Calls `use` for every buffer that an instruction touches. */
static void each_buffer(const MtfInstruction *instruction, void (*use)(Group *group, int buffer),
                        Group *group) {
    for (int k = 0; k < instruction->n_inputs; k++)
        use(group, instruction->inputs[k]);
    for (int k = 0; k < instruction->n_outputs; k++)
        use(group, instruction->outputs[k]);
    if (instruction->scratch >= 0)
        use(group, instruction->scratch);
}

static void touch(Group *group, int buffer) {
    int *touched = &group->touched[buffer_at(group, buffer)->storage];
    bool counts = buffer_at(group, buffer)->tensor >= 0 && is_cut(group, buffer);
    if (*touched != group->number && counts)
        group->bytes += buffer_at(group, buffer)->bytes;
    *touched = group->number;
}

static void add(Group *group, const MtfInstruction *instruction) {
    group->live += group->end > group->begin ? group->begun_at[group->end] : 0;
    each_buffer(instruction, touch, group);
    for (int k = 0; k < instruction->n_outputs; k++)
        group->written[instruction->outputs[k]] = group->number;
    group->end++;
}

/* Whether the kernel touches a tensor that is cut and touched before. */
static bool is_related(const Group *group, const MtfInstruction *instruction) {
    for (int k = 0; k < instruction->n_inputs; k++) {
        int input = instruction->inputs[k];
        if (is_cut(group, input) &&
            group->touched[buffer_at(group, input)->storage] == group->number)
            return true;
    }
    return false;
}

/* Rows of the tensors, as they are cut: the most that a rank has. */
static int64_t rows_of(const Group *group) {
    const MtfMesh *mesh = &group->program->layout->mesh;
    int64_t rows = 1;
    for (int i = 0; i < group->n_dims; i++) {
        int64_t size = mtf_graph_size(group->program->graph, group->dims[i]);
        int64_t parts = mtf_mesh_group_size(mesh, group->axes[i]);
        rows *= (size + parts - 1) / parts;
    }
    return rows;
}

/* Cuts along the leading dimensions of a tensor, as many as the kernel bears. */
static bool cut_along(Group *group, const MtfInstruction *instruction, int buffer) {
    const MtfShape *shape = shape_of(group, buffer);
    for (int i = 0; i < shape->rank; i++) {
        group->dims[i] = shape->dims[i];
        group->axes[i] =
            mtf_placement_split_axes(&buffer_at(group, buffer)->placement, shape->dims[i]);
    }
    for (group->n_dims = shape->rank; group->n_dims > 0; group->n_dims--)
        if (can_be_cut(group, instruction))
            return true;
    return false;
}

static bool begin_group(Group *group, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(group->program, index);
    group->number++;
    group->begin = group->end = index;
    group->bytes = 0;
    group->live = group->live_at[index];
    int summed = summed_input(group, instruction);
    return cut_along(group, instruction, instruction->outputs[0]) ||
           (summed >= 0 && cut_along(group, instruction, summed));
}

/* Lets the next kernel join, cut along fewer dimensions if need be, while a tile of one row stays
 * in the cache. */
static bool grow(Group *group) {
    const MtfInstruction *next = mtf_program_instruction(group->program, group->end);
    if (group->live + group->begun_at[group->end] > group->most)
        return false;
    int n_dims = group->n_dims;
    for (; group->n_dims > 0 && group->bytes <= group->cache * rows_of(group); group->n_dims--)
        if (can_be_cut(group, next) && is_related(group, next)) {
            add(group, next);
            return true;
        }
    group->n_dims = n_dims;
    return false;
}

static void keep(Group *group, int buffer) {
    MtfBuffer *owner = mtf_program_buffer(group->program, buffer_at(group, buffer)->storage);
    owner->first = MIN(owner->first, group->begin);
    owner->last = MAX(owner->last, group->end - 1);
}

/* Only what does not fit a cache as it is gains anything. */
static void finish_group(Group *group) {
    int64_t rows = rows_of(group);
    if (group->end - group->begin < 2 || group->bytes <= group->cache ||
        group->bytes > group->cache * rows)
        return;
    MtfFusedGroup *fused = &mtf_program_instruction(group->program, group->begin)->fused;
    *fused = (MtfFusedGroup){ .kernels = group->end - group->begin,
                              .n_dims = group->n_dims,
                              .tile_rows = MIN(rows, group->cache * rows / group->bytes) };
    memcpy(fused->dims, group->dims, sizeof fused->dims);
    for (int i = group->begin; i < group->end; i++)
        each_buffer(mtf_program_instruction(group->program, i), keep, group);
}

/* The group that begins at `index` and ends before `end`; returns where it ends. */
static int find_group(Group *group, int index, int end) {
    if (!is_fit(group->program, index) || !begin_group(group, index))
        return index + 1;
    add(group, mtf_program_instruction(group->program, index));
    while (group->end < end && group->end - group->begin < MTF_FUSED_KERNELS &&
           is_fit(group->program, group->end) && grow(group))
        ;
    finish_group(group);
    return group->end;
}

static int64_t *begun_at(const MtfProgram *program) {
    int64_t *begun = g_new0(int64_t, mtf_program_length(program) + 1);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->first <= buffer->last)
            begun[buffer->first] += mtf_buffer_aligned_bytes(buffer);
    }
    return begun;
}

void mtf_program_fuse(MtfProgram *program, int64_t cache) {
    int n = mtf_program_length(program);
    g_autofree int *touched = g_new0(int, program->buffers->len + 1);
    g_autofree int *written = g_new0(int, program->buffers->len + 1);
    g_autofree int64_t *live_at = mtf_program_live(program);
    g_autofree int64_t *begun = begun_at(program);
    Group group = { .program = program,
                    .cache = cache,
                    .touched = touched,
                    .written = written,
                    .live_at = live_at,
                    .begun_at = begun };
    for (int i = 0; i < n; i++) {
        group.most = MAX(group.most, live_at[i]);
        mtf_program_instruction(program, i)->fused = (MtfFusedGroup){ 0 };
    }
    for (int i = 0; i < n;)
        i = find_group(&group, i, mtf_program_part_end(program, i));
}
