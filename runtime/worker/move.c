// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/move.h"

#include "layouts/base/error.h"
#include "runtime/kernels/base/kernel_bfloat16.h"

#include <inttypes.h>
#include <math.h>

/* What every part of the preparation needs, of one tensor. */
typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfShape *shape;
    MtfReshardOp reshard;
    char *input, *output, *scratch; /* scratch: NULL when the instruction has none */
    int64_t scratch_bytes;
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

/* The slice that this processor has in a buffer of the tensor. */
static void get_buffer_slice(const Preparation *p, const MtfProgram *program, int buffer,
                             MtfRange *slice) {
    for (int i = 0; i < p->shape->rank; i++)
        slice[i] = mtf_buffer_range(program, mtf_program_buffer(program, buffer), p->shape->dims[i],
                                    p->rank);
}

static int member(const Preparation *p, int position) {
    return mtf_mesh_group_member(p->mesh, p->reshard.axes, p->rank, position);
}

/* Makes room for one message a member, packed one behind the other from `base`. */
static void messages_init(MtfPeerMessages *messages, int n_members, char *base) {
    messages->base = base;
    messages->counts = g_new0(int, n_members);
    messages->offsets = g_new0(int, n_members);
    messages->total = 0;
}

static bool add_message(MtfPeerMessages *messages, int position, int64_t count, GError **error) {
    if (!mtf_count_narrow(messages->total, MTF_MAX_MESSAGE, &messages->offsets[position], error) ||
        !mtf_count_narrow(count, MTF_MAX_MESSAGE, &messages->counts[position], error))
        return false;
    messages->total += count;
    return true;
}

/* Adds the copy of `box` out of the slice this processor has, to element `at` of what is sent. */
static void pack(const Preparation *p, const MtfRange *box, int64_t at) {
    MtfMoveCopy *copy = &p->move->before[p->move->n_before++];
    *copy = (MtfMoveCopy){ .from = p->input, .to = p->move->send.base };
    mtf_box_copy_init(&copy->box, p->shape->rank, p->element_bytes, box, p->from, box);
    copy->box.to_offset += at * p->element_bytes;
}

/* The slice this processor gets, from where `box` lies in it: in elements of the whole tensor, what lies
 * behind the end of one that turns as well. */
static void get_target(const Preparation *p, const MtfRange *box, MtfRange *target) {
    for (int i = 0; i < p->shape->rank; i++) {
        int64_t size = mtf_graph_size(p->graph, p->shape->dims[i]);
        int64_t by = box[i].begin < p->to[i].begin ? size : 0;
        target[i] = (MtfRange){ p->to[i].begin - by, p->to[i].end - by };
    }
}

/* Adds the copy from element `at` of what is received to `box` of the slice this processor gets. */
static void unpack(const Preparation *p, const MtfRange *box, int64_t at) {
    MtfRange target[MTF_MAX_RANK];
    get_target(p, box, target);
    MtfMoveCopy *copy = &p->move->after[p->move->n_after++];
    *copy = (MtfMoveCopy){ .from = p->move->receive.base, .to = p->output };
    mtf_box_copy_init(&copy->box, p->shape->rank, p->element_bytes, box, box, target);
    copy->box.from_offset += at * p->element_bytes;
}

static MtfMoveCopy *new_copies(int n) {
    return g_new0(MtfMoveCopy, n);
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
    if (bytes <= p->scratch_bytes && (p->scratch != NULL || bytes == 0))
        return true;
    char *op = g_ascii_strup(mtf_reshard_row(p->reshard.kind)->name, -1);
    mtf_failure(error, "%s of %" PRId64 " bytes has scratch of %" PRId64, op, bytes,
                p->scratch_bytes);
    g_free(op);
    return false;
}

/* One copy of the part that both slices have, from input to output. */
static bool prepare_local(Preparation *p, GError **error) {
    (void)error;
    MtfMove *move = p->move;
    move->before = new_copies(1);
    move->before[0] = (MtfMoveCopy){ .from = p->input, .to = p->output };
    mtf_box_copy_init(&move->before[0].box, p->shape->rank, p->element_bytes, p->to, p->from,
                      p->to);
    move->n_before = p->input != p->output || mtf_box_elements(p->shape->rank, p->from) !=
                                                  mtf_box_elements(p->shape->rank, p->to);
    return true;
}

/* The axes along which the tensor becomes partial. */
static unsigned concealed_axes(const MtfReshardOp *op) {
    return mtf_placement_partial_axes(&op->to) & ~mtf_placement_partial_axes(&op->from);
}

static bool prepare_conceal(Preparation *p, GError **error) {
    p->move->fills = mtf_mesh_group_position(p->mesh, concealed_axes(&p->reshard), p->rank) != 0;
    p->move->count = mtf_box_elements(p->shape->rank, p->to);
    return p->move->fills || prepare_local(p, error);
}

static bool prepare_allreduce(Preparation *p, GError **error) {
    p->move->count = mtf_box_elements(p->shape->rank, p->from);
    return prepare_local(p, error);
}

static bool prepare_reduce_scatter(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    bool packs = !slices_lie_in_order(p, &p->reshard.to, p->from);
    messages_init(&move->send, move->n_members, packs ? p->scratch : p->input);
    messages_init(&move->receive, 1, move->output);
    move->before = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        MtfRange slice[MTF_MAX_RANK];
        get_slice(p, &p->reshard.to, member(p, i), slice);
        if (packs)
            pack(p, slice, move->send.total);
        if (!add_message(&move->send, i, mtf_box_elements(p->shape->rank, slice), error))
            return false;
    }
    return add_message(&move->receive, 0, mtf_box_elements(p->shape->rank, p->to), error) &&
           (!packs || check_scratch(p, move->send.total, error));
}

static bool prepare_allgather(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    bool packs = !slices_lie_in_order(p, &p->reshard.from, p->to);
    messages_init(&move->send, 1, p->input);
    messages_init(&move->receive, move->n_members, packs ? p->scratch : move->output);
    move->after = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        MtfRange slice[MTF_MAX_RANK];
        get_slice(p, &p->reshard.from, member(p, i), slice);
        if (packs)
            unpack(p, slice, move->receive.total);
        if (!add_message(&move->receive, i, mtf_box_elements(p->shape->rank, slice), error))
            return false;
    }
    return add_message(&move->send, 0, mtf_box_elements(p->shape->rank, p->from), error) &&
           (!packs || check_scratch(p, move->receive.total, error));
}

static int64_t get_box(const Preparation *p, int from, int to, MtfRange *box) {
    return mtf_reshard_box(p->graph, p->mesh, p->shape, &p->reshard, (MtfRoute){ from, to }, box);
}

/* Elements that this processor sends in all. */
static int64_t all_sent(const Preparation *p) {
    MtfRange box[MTF_MAX_RANK];
    int64_t sent = 0;
    for (int i = 0; i < p->move->n_members; i++)
        sent += get_box(p, p->rank, member(p, i), box);
    return sent;
}

/* Adds the copy of `box`, which this processor has and keeps. */
static void copy_own(const Preparation *p, const MtfRange *box, int64_t elements) {
    if (elements == 0)
        return;
    MtfRange target[MTF_MAX_RANK];
    get_target(p, box, target);
    MtfMoveCopy *copy = &p->move->before[p->move->n_before++];
    *copy = (MtfMoveCopy){ .from = p->input, .to = p->output };
    mtf_box_copy_init(&copy->box, p->shape->rank, p->element_bytes, box, p->from, target);
}

static bool prepare_alltoall(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    MtfRange box[MTF_MAX_RANK];
    char *received_at = p->scratch != NULL ? p->scratch + all_sent(p) * p->element_bytes : NULL;
    messages_init(&move->send, move->n_members, p->scratch);
    messages_init(&move->receive, move->n_members, received_at);
    move->before = new_copies(move->n_members);
    move->after = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        int64_t sent = get_box(p, p->rank, member(p, i), box);
        if (sent > 0)
            pack(p, box, move->send.total);
        int64_t received = get_box(p, member(p, i), p->rank, box);
        if (received > 0)
            unpack(p, box, move->receive.total);
        if (!add_message(&move->send, i, sent, error) ||
            !add_message(&move->receive, i, received, error))
            return false;
    }
    return check_scratch(p, move->send.total + move->receive.total, error);
}

/* As an all-to-all, but what it holds itself takes no way round. */
static bool prepare_halo(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    MtfRange box[MTF_MAX_RANK];
    int64_t sent_to_others = all_sent(p) - get_box(p, p->rank, p->rank, box);
    messages_init(&move->send, move->n_members, p->scratch);
    messages_init(&move->receive, move->n_members,
                  p->scratch != NULL ? p->scratch + sent_to_others * p->element_bytes : NULL);
    move->before = new_copies(move->n_members);
    move->after = new_copies(move->n_members);
    for (int i = 0; i < move->n_members; i++) {
        int peer = member(p, i);
        int64_t sent = get_box(p, p->rank, peer, box), received = 0;
        if (peer == p->rank) {
            copy_own(p, box, sent);
            sent = 0;
        }
        if (sent > 0)
            pack(p, box, move->send.total);
        if (peer != p->rank)
            received = get_box(p, peer, p->rank, box);
        if (received > 0)
            unpack(p, box, move->receive.total);
        if (!add_message(&move->send, i, sent, error) ||
            !add_message(&move->receive, i, received, error))
            return false;
    }
    return check_scratch(p, move->send.total + move->receive.total, error);
}

/* Message i, which lies at element `offset`. */
static bool set_column_message(const Preparation *p, MtfPeerMessages *messages, int i,
                               MtfRoute route, int64_t offset, GError **error) {
    int64_t elements = mtf_reshard_column_elements(p->graph, p->mesh, p->shape, &p->reshard, route);
    messages->total += elements;
    return mtf_count_narrow(elements, MTF_MAX_MESSAGE, &messages->counts[i], error) &&
           mtf_count_narrow(offset, MTF_MAX_MESSAGE, &messages->offsets[i], error);
}

/* Blocks of columns lie where they are sent from and go to: one a member, or one for those before this processor in
 * the group and one for those behind it; of an allgather the one block goes to all. */
static bool prepare_columns(Preparation *p, GError **error) {
    MtfMove *move = p->move;
    bool halves = mtf_reshard_row(p->reshard.kind)->margins;
    bool gathers = mtf_reshard_row(p->reshard.kind)->gathers;
    MtfRoute first = { member(p, 0), member(p, 1) };
    int64_t block = mtf_reshard_column_elements(p->graph, p->mesh, p->shape, &p->reshard, first);
    messages_init(&move->send, gathers ? 1 : move->n_members, p->input);
    messages_init(&move->receive, move->n_members, p->output);
    for (int i = 0; i < move->n_members; i++) {
        int64_t offset = block * (halves ? i > move->position : i);
        MtfRoute out = { p->rank, member(p, i) }, in = { member(p, i), p->rank };
        if ((!gathers || i == 0) && !set_column_message(p, &move->send, i, out, offset, error))
            return false;
        if (!set_column_message(p, &move->receive, i, in, offset, error))
            return false;
    }
    return true;
}

/* ---- Several tensors in one message ---------------------------------------------------------- */

/* What message `i` holds of a tensor that is in `placement` on the members: of one message to or
 * from all, this processor's own slice. */
static void message_slice(const Preparation *p, const MtfPlacement *placement, bool one, int i,
                          MtfRange *slice) {
    get_slice(p, placement, one ? p->rank : member(p, i), slice);
}

/* Message i of what is sent: its part of every tensor, one behind the other. */
static bool pack_message(Preparation *parts, int n, int i, GError **error) {
    MtfMove *move = parts[0].move;
    bool scatters = !mtf_reshard_row(move->kind)->gathers;
    int64_t at = move->send.total;
    for (int k = 0; k < n; k++) {
        MtfRange slice[MTF_MAX_RANK];
        const MtfReshardOp *op = &parts[k].reshard;
        message_slice(&parts[k], scatters ? &op->to : &op->from, !scatters, i, slice);
        pack(&parts[k], slice, at);
        at += mtf_box_elements(parts[k].shape->rank, slice);
    }
    return add_message(&move->send, i, at - move->send.total, error);
}

static bool unpack_message(Preparation *parts, int n, int i, GError **error) {
    MtfMove *move = parts[0].move;
    bool gathers = !mtf_reshard_row(move->kind)->reduces;
    int64_t at = move->receive.total;
    for (int k = 0; k < n; k++) {
        MtfRange slice[MTF_MAX_RANK];
        const MtfReshardOp *op = &parts[k].reshard;
        message_slice(&parts[k], gathers ? &op->from : &op->to, !gathers, i, slice);
        unpack(&parts[k], slice, at);
        at += mtf_box_elements(parts[k].shape->rank, slice);
    }
    return add_message(&move->receive, i, at - move->receive.total, error);
}

/* All tensors are gathered in scratch and go to their places from there. An allreduce combines them
 * where they were gathered; the others receive behind what is sent. */
static bool prepare_bucket(Preparation *parts, int n, GError **error) {
    MtfMove *move = parts[0].move;
    const MtfReshardRow *row = mtf_reshard_row(move->kind);
    bool in_place = row->in_place;
    int n_sent = row->gathers ? 1 : move->n_members;
    int n_received = row->reduces ? 1 : move->n_members;
    move->before = new_copies(n * n_sent);
    move->after = new_copies(n * n_received);
    messages_init(&move->send, n_sent, parts[0].scratch);
    for (int i = 0; i < n_sent; i++)
        if (!pack_message(parts, n, i, error))
            return false;
    int64_t sent = move->send.total;
    messages_init(&move->receive, n_received,
                  parts[0].scratch + (in_place ? 0 : sent * parts[0].element_bytes));
    for (int i = 0; i < n_received; i++)
        if (!unpack_message(parts, n, i, error))
            return false;
    move->output = parts[0].scratch;
    move->count = sent;
    return check_scratch(&parts[0], in_place ? sent : sent + move->receive.total, error);
}

/* ---- Entry ------------------------------------------------------------------------------------
 */

static bool (*const prepare[MTF_RESHARD_KINDS])(Preparation *, GError **) = {
    [MTF_RESHARD_COPY] = prepare_local,
    [MTF_RESHARD_SLICE] = prepare_local,
    [MTF_RESHARD_CONCEAL] = prepare_conceal,
    [MTF_RESHARD_ALLREDUCE] = prepare_allreduce,
    [MTF_RESHARD_REDUCE_SCATTER] = prepare_reduce_scatter,
    [MTF_RESHARD_ALLGATHER] = prepare_allgather,
    [MTF_RESHARD_ALLTOALL] = prepare_alltoall,
    [MTF_RESHARD_HALO] = prepare_halo,
    [MTF_RESHARD_PERMUTE] = prepare_halo,
};

/* What is to be known of an instruction's k-th tensor. */
static void preparation_init(Preparation *p, const MtfProgram *program, int index, int k,
                             const MtfMoveBuffers *buffers) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    int tensor = mtf_program_buffer(program, instruction->inputs[k])->tensor;
    const MtfTensor *t = mtf_graph_tensor(program->graph, tensor);
    *p = (Preparation){ .graph = program->graph,
                        .mesh = &program->layout->mesh,
                        .shape = &t->shape,
                        .reshard = mtf_reshard_of_tensor(program, instruction, k),
                        .input = buffers->base + buffers->offsets[instruction->inputs[k]],
                        .output = buffers->base + buffers->offsets[instruction->outputs[k]],
                        .element_bytes = mtf_dtype_bytes(t->dtype) };
    if (instruction->scratch < 0)
        return;
    p->scratch = buffers->base + buffers->offsets[instruction->scratch];
    p->scratch_bytes = mtf_program_buffer(program, instruction->scratch)->bytes;
}

bool mtf_move_init(MtfMove *move, const MtfProgram *program, int index, int rank,
                   const MtfMoveBuffers *buffers, GError **error) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfReshardOp *op = &instruction->reshard;
    int n = instruction->n_inputs;
    g_autofree Preparation *parts = g_new(Preparation, n);
    for (int k = 0; k < n; k++) {
        preparation_init(&parts[k], program, index, k, buffers);
        parts[k].rank = rank;
        parts[k].move = move;
        get_slice(&parts[k], &parts[k].reshard.from, rank, parts[k].from);
        get_buffer_slice(&parts[k], program, instruction->outputs[k], parts[k].to);
    }
    *move = (MtfMove){ .kind = op->kind,
                       .algorithm = instruction->algorithm,
                       .reduction = op->reduction,
                       .dtype = mtf_reshard_tensor(program, instruction)->dtype,
                       .axes = op->axes,
                       .position = mtf_mesh_group_position(mesh, op->axes, rank),
                       .n_members = mtf_mesh_group_size(mesh, op->axes),
                       .output = parts[0].output };
    if (n > 1            ? prepare_bucket(parts, n, error)
        : op->column > 0 ? prepare_columns(parts, error)
                         : prepare[op->kind](parts, error))
        return true;
    mtf_move_clear(move);
    return false;
}

static void clear_messages(MtfPeerMessages *messages) {
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
    int64_t *i64 = output;
    uint8_t *truths = output;
    for (int64_t i = 0; i < move->count; i++) {
        if (move->dtype == MTF_F32)
            f32[i] = maximum ? -INFINITY : 0;
        else if (move->dtype == MTF_F64)
            f64[i] = maximum ? -INFINITY : 0;
        else if (move->dtype == MTF_BF16)
            bf16[i] = mtf_bf16_rounded(maximum ? -INFINITY : 0);
        else if (move->dtype == MTF_I64)
            i64[i] = maximum ? INT64_MIN : 0;
        else if (move->dtype == MTF_BOOL)
            truths[i] = 0;
        else
            i32[i] = maximum ? INT32_MIN : 0;
    }
}

static void run_copies(const MtfMoveCopy *copies, int n) {
    for (int i = 0; i < n; i++)
        mtf_box_copy_run(&copies[i].box, copies[i].from, copies[i].to);
}

void mtf_move_before(const MtfMove *move) {
    if (move->fills)
        fill_neutral(move);
    run_copies(move->before, move->n_before);
}

void mtf_move_after(const MtfMove *move) {
    run_copies(move->after, move->n_after);
}
