// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/move.h"

#include "layouts/error.h"
#include "runtime/kernel_bfloat16.h"

#include <inttypes.h>
#include <math.h>

/* What every part of the preparation needs. */
typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfShape *shape;
    const MtfStep *step;
    const MtfMoveBuffers *buffers;
    int64_t element_bytes;
    int rank;
    MtfMove *move;
    MtfRange from[MTF_MAX_RANK]; /* the slice this processor has */
    MtfRange to[MTF_MAX_RANK];   /* the slice it gets */
} Preparation;

bool mtf_count_narrow(int64_t count, int64_t limit, int *narrow, GError **error) {
    if (count < 0 || count > limit || limit > INT_MAX)
        return mtf_failure(error,
                           "a message of %" PRId64 " elements exceeds the %" PRId64
                           " that one call can carry",
                           count, limit);
    *narrow = (int)count;
    return true;
}

static void get_slice(const Preparation *p, const MtfPlacement *placement, int rank,
                      MtfRange *slice) {
    for (int i = 0; i < p->shape->rank; i++)
        slice[i] = mtf_placement_range(p->mesh, placement, p->shape->dims[i],
                                       mtf_graph_size(p->graph, p->shape->dims[i]), rank);
}

static int member(const Preparation *p, int position) {
    return mtf_mesh_group_member(p->mesh, p->step->axes, p->rank, position);
}

/* Makes room for one message a member, packed one behind the other from `base`. */
static void messages_init(MtfMessages *messages, int n_members, char *base) {
    messages->base = base;
    messages->counts = g_new0(int, n_members);
    messages->offsets = g_new0(int, n_members);
    messages->total = 0;
}

static bool add_message(MtfMessages *messages, int position, int64_t count, GError **error) {
    if (!mtf_count_narrow(messages->total, MTF_MAX_MESSAGE, &messages->offsets[position], error) ||
        !mtf_count_narrow(count, MTF_MAX_MESSAGE, &messages->counts[position], error))
        return false;
    messages->total += count;
    return true;
}

/* The copy of `box` out of the slice this processor has, to element `at` of a packed area. */
static MtfBoxCopy pack(const Preparation *p, const MtfRange *box, int64_t at) {
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, p->shape->rank, p->element_bytes, box, p->from, box);
    copy.to_offset += at * p->element_bytes;
    return copy;
}

/* The copy from element `at` of a packed area to `box` of the slice this processor gets. */
static MtfBoxCopy unpack(const Preparation *p, const MtfRange *box, int64_t at) {
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, p->shape->rank, p->element_bytes, box, box, p->to);
    copy.from_offset += at * p->element_bytes;
    return copy;
}

static MtfBoxCopy *new_copies(int n) {
    return g_new0(MtfBoxCopy, n);
}

/* Whether the members' slices under `placement` lie in `frame` one after the other, so that a
 * message needs no packing. */
static bool slices_lie_in_order(const Preparation *p, const MtfPlacement *placement,
                                const MtfRange *frame) {
    int64_t next = 0;
    for (int i = 0; i < p->move->n_members; i++) {
        MtfRange slice[MTF_MAX_RANK];
        int64_t offset;
        get_slice(p, placement, member(p, i), slice);
        int64_t elements = mtf_box_elements(p->shape->rank, slice);
        if (elements == 0)
            continue;
        if (!mtf_box_is_contiguous(p->shape->rank, slice, frame, &offset) || offset != next)
            return false;
        next += elements;
    }
    return true;
}

static bool check_scratch(const Preparation *p, int64_t elements, GError **error) {
    int64_t bytes = elements * p->element_bytes;
    if (bytes <= p->buffers->scratch_bytes && (p->buffers->scratch != NULL || bytes == 0))
        return true;
    char *step = g_ascii_strup(mtf_step_name(p->step->kind), -1);
    mtf_failure(error, "%s of %" PRId64 " bytes has scratch of %" PRId64, step, bytes,
                p->buffers->scratch_bytes);
    g_free(step);
    return false;
}

/* One copy of the part that both slices have, from input to output. */
static bool prepare_local(Preparation *p, GError **error) {
    (void)error;
    MtfMove *move = p->move;
    move->before = new_copies(1);
    mtf_box_copy_init(&move->before[0], p->shape->rank, p->element_bytes, p->to, p->from, p->to);
    move->n_before =
        p->buffers->input != p->buffers->output ||
        mtf_box_elements(p->shape->rank, p->from) != mtf_box_elements(p->shape->rank, p->to);
    move->send.base = move->output;
    return true;
}

/* The axes along which the tensor becomes partial. */
static unsigned concealed_axes(const MtfStep *step) {
    return mtf_placement_partial_axes(&step->to) & ~mtf_placement_partial_axes(&step->from);
}

static bool prepare_conceal(Preparation *p, GError **error) {
    p->move->fills = mtf_mesh_group_position(p->mesh, concealed_axes(p->step), p->rank) != 0;
    p->move->count = mtf_box_elements(p->shape->rank, p->to);
    return p->move->fills || prepare_local(p, error);
}

static bool prepare_allreduce(Preparation *p, GError **error) {
    p->move->count = mtf_box_elements(p->shape->rank, p->from);
    return prepare_local(p, error);
}

static bool prepare_reduce_scatter(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    bool packs = !slices_lie_in_order(p, &p->step->to, p->from);
    char *base = packs ? p->buffers->scratch : p->buffers->input;
    messages_init(&move->send, move->n_members, base);
    messages_init(&move->receive, 1, move->output);
    move->before = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        MtfRange slice[MTF_MAX_RANK];
        get_slice(p, &p->step->to, member(p, i), slice);
        move->before[i] = pack(p, slice, move->send.total);
        if (!add_message(&move->send, i, mtf_box_elements(p->shape->rank, slice), error))
            return false;
    }
    move->n_before = packs ? move->n_members : 0;
    return add_message(&move->receive, 0, mtf_box_elements(p->shape->rank, p->to), error) &&
           (!packs || check_scratch(p, move->send.total, error));
}

static bool prepare_allgather(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    bool packs = !slices_lie_in_order(p, &p->step->from, p->to);
    messages_init(&move->send, 1, p->buffers->input);
    messages_init(&move->receive, move->n_members, packs ? p->buffers->scratch : move->output);
    move->after = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        MtfRange slice[MTF_MAX_RANK];
        get_slice(p, &p->step->from, member(p, i), slice);
        move->after[i] = unpack(p, slice, move->receive.total);
        if (!add_message(&move->receive, i, mtf_box_elements(p->shape->rank, slice), error))
            return false;
    }
    move->n_after = packs ? move->n_members : 0;
    return add_message(&move->send, 0, mtf_box_elements(p->shape->rank, p->from), error) &&
           (!packs || check_scratch(p, move->receive.total, error));
}

static int64_t get_box(const Preparation *p, int from, int to, MtfRange *box) {
    return mtf_step_box(p->graph, p->mesh, p->shape, p->step, (MtfRoute){ from, to }, box);
}

static bool prepare_alltoall(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    MtfRange box[MTF_MAX_RANK];
    messages_init(&move->send, move->n_members, p->buffers->scratch);
    messages_init(&move->receive, move->n_members, NULL);
    move->n_before = move->n_after = move->n_members;
    move->before = new_copies(move->n_members);
    move->after = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        int64_t sent = get_box(p, p->rank, member(p, i), box);
        if (sent > 0)
            move->before[i] = pack(p, box, move->send.total);
        int64_t received = get_box(p, member(p, i), p->rank, box);
        if (received > 0)
            move->after[i] = unpack(p, box, move->receive.total);
        if (!add_message(&move->send, i, sent, error) ||
            !add_message(&move->receive, i, received, error))
            return false;
    }
    if (!check_scratch(p, move->send.total + move->receive.total, error))
        return false;
    if (p->buffers->scratch != NULL)
        move->receive.base = p->buffers->scratch + move->send.total * p->element_bytes;
    return true;
}

static bool (*const prepare[MTF_STEPS])(Preparation *, GError **) = {
    [MTF_STEP_COPY] = prepare_local,
    [MTF_STEP_SLICE] = prepare_local,
    [MTF_STEP_CONCEAL] = prepare_conceal,
    [MTF_STEP_ALLREDUCE] = prepare_allreduce,
    [MTF_STEP_REDUCE_SCATTER] = prepare_reduce_scatter,
    [MTF_STEP_ALLGATHER] = prepare_allgather,
    [MTF_STEP_ALLTOALL] = prepare_alltoall,
};

bool mtf_move_init(MtfMove *move, const MtfProgram *program, int index, int rank,
                   const MtfMoveBuffers *buffers, GError **error) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfTensor *tensor = mtf_step_tensor(program, instruction);
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfStep *step = &instruction->step;
    *move = (MtfMove){ .kind = step->kind,
                       .reduction = step->reduction,
                       .dtype = tensor->dtype,
                       .axes = step->axes,
                       .position = mtf_mesh_group_position(mesh, step->axes, rank),
                       .n_members = mtf_mesh_group_size(mesh, step->axes),
                       .input = buffers->input,
                       .output = buffers->output };
    Preparation preparation = { .graph = program->graph,
                                .mesh = mesh,
                                .shape = &tensor->shape,
                                .step = step,
                                .buffers = buffers,
                                .element_bytes = mtf_dtype_bytes(tensor->dtype),
                                .rank = rank,
                                .move = move };
    get_slice(&preparation, &step->from, rank, preparation.from);
    get_slice(&preparation, &step->to, rank, preparation.to);
    if (prepare[step->kind](&preparation, error))
        return true;
    mtf_move_clear(move);
    return false;
}

static void clear_messages(MtfMessages *messages) {
    g_free(messages->counts);
    g_free(messages->offsets);
}

void mtf_move_clear(MtfMove *move) {
    clear_messages(&move->send);
    clear_messages(&move->receive);
    g_free(move->before);
    g_free(move->after);
    *move = (MtfMove){ 0 };
}

/* The neutral element of the reduction, `count` times. */
static void fill_neutral(const MtfMove *move) {
    bool maximum = move->reduction == MTF_REDUCE_MAX;
    void *output = move->output;
    float *f32 = output;
    double *f64 = output;
    int32_t *i32 = output;
    uint16_t *bf16 = output;
    for (int64_t i = 0; i < move->count; i++) {
        if (move->dtype == MTF_F32)
            f32[i] = maximum ? -INFINITY : 0;
        else if (move->dtype == MTF_F64)
            f64[i] = maximum ? -INFINITY : 0;
        else if (move->dtype == MTF_BF16)
            bf16[i] = mtf_bf16_rounded(maximum ? -INFINITY : 0);
        else
            i32[i] = maximum ? INT32_MIN : 0;
    }
}

void mtf_move_before(const MtfMove *move) {
    if (move->fills)
        fill_neutral(move);
    for (int i = 0; i < move->n_before; i++)
        mtf_box_copy_run(&move->before[i], move->input, move->send.base);
}

void mtf_move_after(const MtfMove *move) {
    for (int i = 0; i < move->n_after; i++)
        mtf_box_copy_run(&move->after[i], move->receive.base, move->output);
}
