// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/combine_collectives.h"

#include "layouts/program/program_order.h"

/* Kinds of messages that can be open at once; exchanges of further kinds stay alone. */
#define MOST_OPEN 32

/* Allgathers of what updates made wait for the messages that those wait for, and are joined in the
 * next round. */
#define ROUNDS 3

/* A message that still takes tensors, in one of the places for open ones. */
typedef struct {
    bool open;
    MtfReshardOp reshard; /* kind, axes and reduction count */
    MtfDtype dtype;
    MtfTrafficGroup group;
    int first, last; /* members */
    int64_t payload;
} Open;

typedef struct {
    MtfProgram *program;
    int64_t bytes;
    MtfConsumers *consumers;
    MtfDependences *waits;
    Open places[MOST_OPEN];
    guint32 *mask; /* one an instruction: the open messages that it is in or waits for */
    int *next;     /* one an instruction: the next member of its message, or -1 */
    int *key;      /* one an instruction: behind which written instruction it comes, or itself */
} Join;

static MtfInstruction *instruction_at(const Join *join, int index) {
    return mtf_program_instruction(join->program, index);
}

static MtfPhase phase_of(const Join *join, int index) {
    int operation = instruction_at(join, index)->operation;
    return mtf_graph_operation(join->program->graph, operation)->phase;
}

/* ---- Which travel together ----------------------------------------------------------------- */

static bool is_small(const Join *join, int index) {
    const MtfInstruction *instruction = instruction_at(join, index);
    if (instruction->kind != MTF_INSTRUCTION_RESHARD || instruction->n_inputs > 1 ||
        instruction->reshard.column > 0 || instruction->payload_bytes > join->bytes)
        return false;
    const MtfReshardRow *row = mtf_reshard_row(instruction->reshard.kind);
    return row->reduces || row->gathers;
}

/* The open messages that an instruction waits for. A bit of an older message in the same place says
 * nothing. */
static guint32 waits_for(const Join *join, int index) {
    guint32 mask = 0;
    for (int k = join->waits->begins[index]; k < join->waits->begins[index + 1]; k++) {
        int before = join->waits->before[k];
        for (int p = 0; p < MOST_OPEN && join->mask[before] >> p; p++)
            if (join->places[p].open && before >= join->places[p].first)
                mask |= join->mask[before] & 1u << p;
    }
    return mask;
}

static void close_messages(Join *join, guint32 mask) {
    for (int p = 0; p < MOST_OPEN; p++)
        if (mask >> p & 1)
            join->places[p].open = false;
}

static bool takes(const Open *open, const Open *wanted) {
    return open->open && open->reshard.kind == wanted->reshard.kind &&
           open->reshard.axes == wanted->reshard.axes &&
           open->reshard.reduction == wanted->reshard.reduction && open->dtype == wanted->dtype &&
           open->group == wanted->group;
}

/* Whether a member reads the same buffer already. */
static bool reads_twice(const Join *join, const Open *open, int index) {
    int input = instruction_at(join, index)->inputs[0];
    for (int i = open->first; i >= 0; i = join->next[i])
        if (instruction_at(join, i)->inputs[0] == input)
            return true;
    return false;
}

static void add_member(Join *join, Open *open, int index) {
    if (open->first < 0)
        open->first = index;
    else
        join->next[open->last] = index;
    open->last = index;
    open->payload += instruction_at(join, index)->payload_bytes;
    join->mask[index] = 1u << (open - join->places);
}

/* Puts a small exchange that waits for nothing into the open message of its kind, or begins one. */
static void enter(Join *join, int index) {
    const MtfInstruction *instruction = instruction_at(join, index);
    Open wanted = { .open = true, .reshard = instruction->reshard, .first = -1, .last = -1 };
    wanted.dtype = mtf_reshard_tensor(join->program, instruction)->dtype;
    wanted.group = mtf_instruction_traffic_group(join->program, join->consumers, index);
    int place = 0;
    while (place < MOST_OPEN && !takes(&join->places[place], &wanted))
        place++;
    if (place < MOST_OPEN &&
        join->places[place].payload + instruction->payload_bytes <= join->bytes &&
        !reads_twice(join, &join->places[place], index)) {
        add_member(join, &join->places[place], index);
        return;
    }
    if (place == MOST_OPEN)
        for (place = 0; place < MOST_OPEN && join->places[place].open;)
            place++;
    if (place == MOST_OPEN)
        return;
    join->places[place] = wanted;
    add_member(join, &join->places[place], index);
}

static void visit(Join *join, int index) {
    guint32 mask = waits_for(join, index);
    MtfPhase phase = phase_of(join, index);
    bool may_wait = phase == MTF_PHASE_CLIP || phase == MTF_PHASE_UPDATE;
    if (mask != 0 && may_wait) {
        join->mask[index] = mask;
        return;
    }
    close_messages(join, mask);
    if (is_small(join, index))
        enter(join, index);
}

static void find_messages(Join *join) {
    int ends[MTF_SEGMENTS], n = mtf_program_length(join->program);
    mtf_program_segments(join->program, ends);
    for (int i = 0, s = 0; i < n; i++) {
        for (; i == ends[s]; s++)
            close_messages(join, ~0u);
        if (i > 0 && instruction_at(join, i)->loop != instruction_at(join, i - 1)->loop)
            close_messages(join, ~0u);
        visit(join, i);
    }
}

/* ---- The new program ----------------------------------------------------------------------- */

/* Members come where the last of them stands, what waits for them behind it. Returns how many
 * members will be part of another instruction. */
static int find_keys(Join *join) {
    int n = mtf_program_length(join->program), joined = 0;
    for (int i = n - 1; i >= 0; i--) {
        join->key[i] = join->next[i] >= 0 ? join->key[join->next[i]] : i;
        joined += join->next[i] >= 0;
    }
    for (int i = 0; i < n; i++)
        for (int k = join->waits->begins[i]; k < join->waits->begins[i + 1]; k++)
            join->key[i] = MAX(join->key[i], join->key[join->waits->before[k]]);
    return joined;
}

static int64_t room(const Join *join, const MtfTensor *tensor, const MtfPlacement *placement) {
    return mtf_largest_elements(join->program->graph, &join->program->layout->mesh, &tensor->shape,
                                placement);
}

/* Elements of scratch that the k-th tensor takes: what is sent, and but for an allreduce what is
 * received behind all that is sent. */
static int64_t scratch_elements(const Join *join, const MtfInstruction *message, int k) {
    MtfReshardOp op = mtf_reshard_of_tensor(join->program, message, k);
    int tensor_index = mtf_program_buffer(join->program, message->inputs[k])->tensor;
    const MtfTensor *tensor = mtf_graph_tensor(join->program->graph, tensor_index);
    int64_t sent = room(join, tensor, &op.from);
    return mtf_reshard_row(op.kind)->in_place ? sent : sent + room(join, tensor, &op.to);
}

/* All tensors are read and written once when they are gathered and once when they are brought to
 * their places; an allreduce uses the same scratch for both. */
static void add_scratch(const Join *join, MtfInstruction *message) {
    int64_t elements = 0;
    for (int k = 0; k < message->n_inputs; k++)
        elements += scratch_elements(join, message, k);
    MtfBuffer scratch = { .tensor = -1,
                          .placement = mtf_placement_replicated(),
                          .memory = MTF_MEMORY_COMMUNICATION,
                          .storage = (int)join->program->buffers->len };
    scratch.bytes = elements * mtf_dtype_bytes(mtf_reshard_tensor(join->program, message)->dtype);
    message->scratch = scratch.storage;
    message->traffic_bytes =
        (mtf_reshard_row(message->reshard.kind)->in_place ? 4.0 : 2.0) * (double)scratch.bytes;
    g_array_append_val(join->program->buffers, scratch);
}

/* The message whose first member is instruction `first`, as the last one's instruction. */
static MtfInstruction make_message(const Join *join, int first) {
    g_autoptr(GArray) inputs = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) outputs = g_array_new(FALSE, FALSE, sizeof(int));
    MtfInstruction message = { 0 };
    int64_t payload = 0;
    for (int i = first; i >= 0; i = join->next[i]) {
        message = *instruction_at(join, i);
        g_array_append_val(inputs, message.inputs[0]);
        g_array_append_val(outputs, message.outputs[0]);
        payload += message.payload_bytes;
    }
    message.n_inputs = message.n_outputs = (int)inputs->len;
    message.inputs = g_memdup2(inputs->data, sizeof(int) * inputs->len);
    message.outputs = g_memdup2(outputs->data, sizeof(int) * outputs->len);
    message.payload_bytes = payload;
    message.reshard = instruction_at(join, first)->reshard;
    add_scratch(join, &message);
    return message;
}

static int compare_places(gconstpointer left, gconstpointer right, gpointer data) {
    const Join *join = data;
    int a = *(const int *)left, b = *(const int *)right;
    if (join->key[a] != join->key[b])
        return join->key[a] < join->key[b] ? -1 : 1;
    /* The instruction in whose place the others come, then those in their order. */
    if (join->key[a] == a || join->key[b] == b)
        return join->key[a] == a ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Replaces the instructions by those in the new order, members by their messages. */
static void rewrite(Join *join) {
    int n = mtf_program_length(join->program), repeated = 0, leading = 0;
    g_autofree int *order = g_new(int, n + 1);
    g_autofree int *first = g_new(int, n + 1); /* of the message whose last member this is */
    for (int i = 0; i < n; i++)
        order[i] = first[i] = i;
    for (int i = 0; i < n; i++)
        if (join->next[i] >= 0)
            first[join->next[i]] = first[i];
    g_qsort_with_data(order, n, sizeof *order, compare_places, join);
    GArray *instructions = g_array_new(FALSE, TRUE, sizeof(MtfInstruction));
    g_array_set_clear_func(instructions, mtf_instruction_clear);
    for (int k = 0; k < n; k++) {
        int i = order[k];
        if (join->next[i] >= 0)
            continue;
        repeated += i < join->program->n_repeated;
        leading += i < join->program->weight_gradients;
        bool alone = first[i] == i;
        MtfInstruction instruction =
            alone ? *instruction_at(join, i) : make_message(join, first[i]);
        if (alone)
            instruction_at(join, i)->inputs = instruction_at(join, i)->outputs = NULL;
        g_array_append_val(instructions, instruction);
    }
    g_array_unref(join->program->instructions);
    join->program->instructions = instructions;
    join->program->n_repeated = repeated;
    join->program->weight_gradients = leading;
}

/* Whether anything was joined. */
static bool join_once(MtfProgram *program, MtfConsumers *consumers, int64_t bytes) {
    int n = mtf_program_length(program);
    g_autoptr(MtfDependences) waits = mtf_dependences_new(program);
    g_autofree guint32 *mask = g_new0(guint32, n + 1);
    g_autofree int *next = g_new(int, n + 1);
    g_autofree int *key = g_new(int, n + 1);
    Join join = { .program = program,
                  .bytes = bytes,
                  .consumers = consumers,
                  .waits = waits,
                  .mask = mask,
                  .next = next,
                  .key = key };
    for (int i = 0; i < n; i++)
        next[i] = -1;
    find_messages(&join);
    if (find_keys(&join) == 0)
        return false;
    rewrite(&join);
    return true;
}

/* ---- Scratch that nobody uses any more ---------------------------------------------------------
 */

/* The new number of every buffer; those that stay keep their order. */
static int *renumber(MtfProgram *program) {
    guint n = program->buffers->len;
    int *numbers = g_new(int, n + 1), next = 0;
    for (guint b = 0; b < n; b++)
        numbers[b] = mtf_program_buffer(program, (int)b)->tensor < 0 ? -1 : 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        if (mtf_program_instruction(program, i)->scratch >= 0)
            numbers[mtf_program_instruction(program, i)->scratch] = 0;
    for (guint b = 0; b < n; b++)
        if (numbers[b] == 0) {
            *mtf_program_buffer(program, next) = *mtf_program_buffer(program, (int)b);
            numbers[b] = next++;
        }
    g_array_set_size(program->buffers, (guint)next);
    return numbers;
}

static void rename_all(int *buffers, int n, const int *numbers) {
    for (int k = 0; k < n; k++)
        if (buffers[k] >= 0)
            buffers[k] = numbers[buffers[k]];
}

/* What the members copied through alone. */
static void drop_unused_scratch(MtfProgram *program) {
    g_autofree int *numbers = renumber(program);
    for (int i = 0; i < mtf_program_length(program); i++) {
        MtfInstruction *instruction = mtf_program_instruction(program, i);
        rename_all(instruction->inputs, instruction->n_inputs, numbers);
        rename_all(instruction->outputs, instruction->n_outputs, numbers);
        rename_all(&instruction->scratch, 1, numbers);
    }
    for (int b = 0; b < (int)program->buffers->len; b++)
        rename_all(&mtf_program_buffer(program, b)->storage, 1, numbers);
    rename_all(program->tensor_buffers, (int)program->graph->tensors->len, numbers);
}

void mtf_program_combine_collectives(MtfProgram *program, int64_t bytes) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(program->graph);
    int round = 0;
    while (round < ROUNDS && join_once(program, consumers, bytes))
        round++;
    if (round > 0)
        drop_unused_scratch(program);
}
