// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/bands.h"

#include "layouts/program/lifetimes.h"

#include <string.h>

/* A row of kernels that grows. */
typedef struct {
    MtfProgram *program;
    int64_t cache;  /* bytes of a band */
    int number;     /* of the row, from 1 */
    int begin, end; /* instructions */
    int n_dims;
    int dims[MTF_MAX_RANK];      /* that are cut, outermost first */
    unsigned axes[MTF_MAX_RANK]; /* that split each of them */
    int64_t bytes;               /* of the storages that are cut */
    int64_t live;                /* of all storages that live somewhere in the row */
    int *touched;                /* by storage: the last row that touches it; 0: none */
    int *written;                /* by buffer: the last row that writes it */
    int64_t *live_at;            /* by instruction */
    int64_t *begun_at;           /* … of storages that begin to live there */
    int64_t most;                /* of live_at */
} Row;

static const MtfBuffer *buffer_at(const Row *row, int buffer) {
    return mtf_program_buffer(row->program, buffer);
}

static const MtfShape *shape_of(const Row *row, int buffer) {
    return &mtf_graph_tensor(row->program->graph, buffer_at(row, buffer)->tensor)->shape;
}

static int find_dim(const Row *row, int dim) {
    for (int i = 0; i < row->n_dims; i++)
        if (row->dims[i] == dim)
            return i;
    return -1;
}

/* Whether all dimensions that are cut lead the tensor. */
static bool is_cut(const Row *row, int buffer) {
    const MtfShape *shape = shape_of(row, buffer);
    return shape->rank >= row->n_dims &&
           memcmp(shape->dims, row->dims, sizeof *row->dims * (gsize)row->n_dims) == 0;
}

/* Whether the tensor has none of them. */
static bool is_whole(const Row *row, int buffer) {
    const MtfShape *shape = shape_of(row, buffer);
    for (int i = 0; i < shape->rank; i++)
        if (find_dim(row, shape->dims[i]) >= 0)
            return false;
    return true;
}

/* Whether those of them that the tensor has lead it in their order and are split as in the row, so
 * that a band of it is one piece. */
static bool is_in_pieces(const Row *row, int buffer) {
    const MtfShape *shape = shape_of(row, buffer);
    const MtfPlacement *placement = &buffer_at(row, buffer)->placement;
    int least = 0; /* the place that the next one may have */
    for (int i = 0; i < shape->rank; i++) {
        int place = find_dim(row, shape->dims[i]);
        if (place >= 0 && (place < least ||
                           row->axes[place] != mtf_placement_split_axes(placement, shape->dims[i])))
            return false;
        least = place >= 0 ? place + 1 : row->n_dims;
    }
    return true;
}

/* ---- Which kernels can be cut ---------------------------------------------------------------- */

/* What a sum is taken of: the input that has every dimension of the operation; or -1. */
static int summed_input(const Row *row, const MtfInstruction *instruction) {
    MtfIteration iteration;
    mtf_operation_iteration(row->program->graph, instruction->operation, &iteration);
    for (int k = 0; k < instruction->n_inputs; k++)
        if (shape_of(row, instruction->inputs[k])->rank == iteration.n)
            return instruction->inputs[k];
    return -1;
}

/* Whether the kernel sums what is cut into a result that lacks it: element by element, since the
 * parts of a sum that runs along a piece of memory would depend on the bands. */
static bool sums_bands(const Row *row, const MtfInstruction *instruction) {
    const MtfOperation *op = mtf_graph_operation(row->program->graph, instruction->operation);
    int summed = summed_input(row, instruction);
    if (!mtf_operation_row(op->kind)->continues || summed < 0 || !is_cut(row, summed) ||
        !is_whole(row, instruction->outputs[0]))
        return false;
    const MtfShape *shape = shape_of(row, summed);
    int innermost = shape->dims[shape->rank - 1];
    return mtf_shape_find(shape_of(row, instruction->outputs[0]), innermost) >= 0;
}

/* Whether the kernel needs all of some dimension that is cut. */
static bool needs_what_is_cut(const Row *row, const MtfInstruction *instruction) {
    MtfIteration iteration;
    mtf_operation_iteration(row->program->graph, instruction->operation, &iteration);
    for (int i = 0; i < iteration.n; i++)
        if (iteration.index[i].whole && find_dim(row, iteration.index[i].dim) >= 0)
            return true;
    return false;
}

/* Whether the kernel can be a part of the row as that is cut now. */
static bool can_be_cut(const Row *row, const MtfInstruction *instruction) {
    if (needs_what_is_cut(row, instruction))
        return false;
    for (int k = 0; k < instruction->n_inputs; k++) {
        int input = instruction->inputs[k];
        bool grows = row->written[input] == row->number && !is_cut(row, input);
        if (grows || !is_in_pieces(row, input))
            return false;
    }
    for (int k = 0; k < instruction->n_outputs; k++) {
        int output = instruction->outputs[k];
        if (!(is_cut(row, output) && is_in_pieces(row, output)) && !sums_bands(row, instruction))
            return false;
    }
    return true;
}

/* Whether a kernel may run in parts at all. */
static bool is_fit(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL || instruction->n_inputs == 0 ||
        instruction->kernel_class == MTF_CLASS_MATMUL)
        return false;
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    return op->phase != MTF_PHASE_UPDATE && !row->accumulates && row->addend == 0 &&
           row->dims != MTF_DIMS_RENAMED;
}

/* ---- How a row grows ------------------------------------------------------------------------- */

/* Calls `use` for every buffer that an instruction touches. */
static void each_buffer(const MtfInstruction *instruction, void (*use)(Row *row, int buffer),
                        Row *row) {
    for (int k = 0; k < instruction->n_inputs; k++)
        use(row, instruction->inputs[k]);
    for (int k = 0; k < instruction->n_outputs; k++)
        use(row, instruction->outputs[k]);
    if (instruction->scratch >= 0)
        use(row, instruction->scratch);
}

static void touch(Row *row, int buffer) {
    int *touched = &row->touched[buffer_at(row, buffer)->storage];
    bool counts = buffer_at(row, buffer)->tensor >= 0 && is_cut(row, buffer);
    if (*touched != row->number && counts)
        row->bytes += buffer_at(row, buffer)->bytes;
    *touched = row->number;
}

static void add(Row *row, const MtfInstruction *instruction) {
    row->live += row->end > row->begin ? row->begun_at[row->end] : 0;
    each_buffer(instruction, touch, row);
    for (int k = 0; k < instruction->n_outputs; k++)
        row->written[instruction->outputs[k]] = row->number;
    row->end++;
}

/* Whether the kernel touches a tensor that is cut and touched before. */
static bool is_related(const Row *row, const MtfInstruction *instruction) {
    for (int k = 0; k < instruction->n_inputs; k++) {
        int input = instruction->inputs[k];
        if (is_cut(row, input) && row->touched[buffer_at(row, input)->storage] == row->number)
            return true;
    }
    return false;
}

/* Rows of the tensors, as they are cut: the most that a rank has. */
static int64_t rows_of(const Row *row) {
    const MtfMesh *mesh = &row->program->layout->mesh;
    int64_t rows = 1;
    for (int i = 0; i < row->n_dims; i++) {
        int64_t size = mtf_graph_size(row->program->graph, row->dims[i]);
        int64_t parts = mtf_mesh_group_size(mesh, row->axes[i]);
        rows *= (size + parts - 1) / parts;
    }
    return rows;
}

/* Cuts along the leading dimensions of a tensor, as many as the kernel bears. */
static bool cut_along(Row *row, const MtfInstruction *instruction, int buffer) {
    const MtfShape *shape = shape_of(row, buffer);
    for (int i = 0; i < shape->rank; i++) {
        row->dims[i] = shape->dims[i];
        row->axes[i] = mtf_placement_split_axes(&buffer_at(row, buffer)->placement, shape->dims[i]);
    }
    for (row->n_dims = shape->rank; row->n_dims > 0; row->n_dims--)
        if (can_be_cut(row, instruction))
            return true;
    return false;
}

static bool begin_row(Row *row, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(row->program, index);
    row->number++;
    row->begin = row->end = index;
    row->bytes = 0;
    row->live = row->live_at[index];
    int summed = summed_input(row, instruction);
    return cut_along(row, instruction, instruction->outputs[0]) ||
           (summed >= 0 && cut_along(row, instruction, summed));
}

/* Lets the next kernel join, cut along fewer dimensions if need be, while a band of one row stays
 * in the cache. */
static bool grow(Row *row) {
    const MtfInstruction *next = mtf_program_instruction(row->program, row->end);
    if (row->live + row->begun_at[row->end] > row->most)
        return false;
    int n_dims = row->n_dims;
    for (; row->n_dims > 0 && row->bytes <= row->cache * rows_of(row); row->n_dims--)
        if (can_be_cut(row, next) && is_related(row, next)) {
            add(row, next);
            return true;
        }
    row->n_dims = n_dims;
    return false;
}

static void keep(Row *row, int buffer) {
    MtfBuffer *owner = mtf_program_buffer(row->program, buffer_at(row, buffer)->storage);
    owner->first = MIN(owner->first, row->begin);
    owner->last = MAX(owner->last, row->end - 1);
}

/* Only what does not fit a cache as it is gains anything. */
static void settle_row(Row *row) {
    int64_t rows = rows_of(row);
    if (row->end - row->begin < 2 || row->bytes <= row->cache || row->bytes > row->cache * rows)
        return;
    MtfBand *band = &mtf_program_instruction(row->program, row->begin)->band;
    *band = (MtfBand){ .kernels = row->end - row->begin,
                       .n_dims = row->n_dims,
                       .rows = MIN(rows, row->cache * rows / row->bytes) };
    memcpy(band->dims, row->dims, sizeof band->dims);
    for (int i = row->begin; i < row->end; i++)
        each_buffer(mtf_program_instruction(row->program, i), keep, row);
}

/* The row that begins at `index` and ends before `end`; returns where it ends. */
static int find_row(Row *row, int index, int end) {
    if (!is_fit(row->program, index) || !begin_row(row, index))
        return index + 1;
    add(row, mtf_program_instruction(row->program, index));
    while (row->end < end && row->end - row->begin < MTF_BAND_KERNELS &&
           is_fit(row->program, row->end) && grow(row))
        ;
    settle_row(row);
    return row->end;
}

static int64_t *begun_at(const MtfProgram *program) {
    int64_t *begun = g_new0(int64_t, mtf_program_length(program) + 1);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->first <= buffer->last)
            begun[buffer->first] += mtf_buffer_room(buffer);
    }
    return begun;
}

void mtf_program_find_bands(MtfProgram *program, int64_t cache) {
    int n = mtf_program_length(program);
    g_autofree int *touched = g_new0(int, program->buffers->len + 1);
    g_autofree int *written = g_new0(int, program->buffers->len + 1);
    g_autofree int64_t *live_at = mtf_program_live(program);
    g_autofree int64_t *begun = begun_at(program);
    Row row = { .program = program,
                .cache = cache,
                .touched = touched,
                .written = written,
                .live_at = live_at,
                .begun_at = begun };
    for (int i = 0; i < n; i++) {
        row.most = MAX(row.most, live_at[i]);
        mtf_program_instruction(program, i)->band = (MtfBand){ 0 };
    }
    for (int i = 0; i < n;)
        i = find_row(&row, i, i < program->n_repeated ? program->n_repeated : n);
}
