// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/stage_transfers.h"

#include "runtime/exchange/communicators.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

#define TRANSFERS_NAME "meshtf stages"

typedef struct {
    int peer; /* rank of the communicator */
    MPI_Datatype type;
} Message;

typedef struct {
    MtfStageEvent public;
    bool once;
    int buffer;
    GArray *messages;      /* Message */
    MPI_Request *requests; /* [slots][messages] */
} Event;

struct MtfStageTransfers {
    MPI_Comm communicator;
    const MtfPipelinePlan *pipeline;
    const MtfProgram *program;
    GArray *events; /* Event */
    int slots, microbatches;
    int64_t sent; /* bytes */
};

/* ---- Boxes --------------------------------------------------------------------------------- */

/* A tensor as one stage holds it. */
typedef struct {
    const MtfGraph *graph;
    const MtfLayout *layout;
    int tensor, first_rank, ranks;
} Side;

typedef struct {
    int rank; /* of dimensions */
    MtfRange range[MTF_MAX_RANK];
} Box;

static Side side_of(const MtfPipelinePlan *pipeline, int stage, int tensor) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    int domain = pipeline->order->rank_of_stage[stage];
    return (Side){ plan->graph, plan->layout, tensor, mtf_pipeline_first_device(pipeline, domain),
                   mtf_mesh_size(&plan->layout->mesh) };
}

static Box box_of(const Side *side, int processor) {
    const MtfShape *shape = &mtf_graph_tensor(side->graph, side->tensor)->shape;
    Box box = { .rank = shape->rank };
    for (int i = 0; i < shape->rank; i++)
        box.range[i] = mtf_placement_range(&side->layout->mesh,
                                           &side->layout->tensors[side->tensor], shape->dims[i],
                                           mtf_graph_size(side->graph, shape->dims[i]), processor);
    return box;
}

static bool is_same_box(const Box *a, const Box *b) {
    for (int i = 0; i < a->rank; i++)
        if (a->range[i].begin != b->range[i].begin || a->range[i].end != b->range[i].end)
            return false;
    return true;
}

/* What two boxes have in common; false when that is nothing. */
static bool intersect(const Box *a, const Box *b, Box *common) {
    common->rank = a->rank;
    for (int i = 0; i < a->rank; i++) {
        common->range[i].begin = MAX(a->range[i].begin, b->range[i].begin);
        common->range[i].end = MIN(a->range[i].end, b->range[i].end);
        if (common->range[i].begin >= common->range[i].end)
            return false;
    }
    return true;
}

/* Whether `sender` serves `receiver`: of those that hold its box, k of n serve the receivers whose
 * number leaves k when divided by n. */
static bool serves(const Side *from, int sender, int receiver) {
    Box own = box_of(from, sender);
    int before = 0, alike = 1;
    for (int i = 0; i < from->ranks; i++) {
        Box other = box_of(from, i);
        bool same = i != sender && is_same_box(&own, &other);
        before += same && i < sender;
        alike += same;
    }
    return receiver % alike == before;
}

/* ---- Messages ------------------------------------------------------------------------------ */

/* `part` of the slice `whole` as a datatype relative to the slice. */
static MPI_Datatype type_of(const Box *whole, const Box *part, MtfDtype dtype) {
    int sizes[MTF_MAX_RANK], subsizes[MTF_MAX_RANK], starts[MTF_MAX_RANK];
    MPI_Datatype type;
    for (int i = 0; i < whole->rank; i++) {
        sizes[i] = (int)(whole->range[i].end - whole->range[i].begin);
        subsizes[i] = (int)(part->range[i].end - part->range[i].begin);
        starts[i] = (int)(part->range[i].begin - whole->range[i].begin);
    }
    if (whole->rank == 0)
        mtf_mpi_require(MPI_Type_contiguous(1, mtf_element_type(dtype), &type),
                        "MPI_Type_contiguous");
    else
        mtf_mpi_require(MPI_Type_create_subarray(whole->rank, sizes, subsizes, starts, MPI_ORDER_C,
                                                 mtf_element_type(dtype), &type),
                        "MPI_Type_create_subarray");
    mtf_mpi_require(MPI_Type_commit(&type), "MPI_Type_commit");
    return type;
}

static int64_t box_bytes(const Box *box, MtfDtype dtype) {
    int64_t bytes = mtf_dtype_bytes(dtype);
    for (int i = 0; i < box->rank; i++)
        bytes *= box->range[i].end - box->range[i].begin;
    return bytes;
}

/* Adds what goes between processor `own` of one side and `other` of the other, if anything does. */
static void add_message(Event *event, const Side *from, const Side *to, int sender, int receiver) {
    MtfDtype dtype = mtf_graph_tensor(from->graph, from->tensor)->dtype;
    Box held = box_of(from, sender), wanted = box_of(to, receiver), common;
    bool sends = event->public.sends;
    if (!intersect(&held, &wanted, &common) || !serves(from, sender, receiver))
        return;
    Message message = { .peer = sends ? to->first_rank + receiver : from->first_rank + sender,
                        .type = type_of(sends ? &held : &wanted, &common, dtype) };
    g_array_append_val(event->messages, message);
    event->public.bytes += box_bytes(&common, dtype);
}

static void find_messages(Event *event, const Side *from, const Side *to, int rank) {
    bool sends = event->public.sends;
    for (int i = 0; i < (sends ? to->ranks : from->ranks); i++)
        add_message(event, from, to, sends ? rank : i, sends ? i : rank);
}

/* ---- Where in the step --------------------------------------------------------------------- */

static bool reads(const MtfInstruction *instruction, int buffer) {
    for (int k = 0; k < instruction->n_inputs; k++)
        if (instruction->inputs[k] == buffer)
            return true;
    return false;
}

static bool writes(const MtfInstruction *instruction, int buffer) {
    for (int k = 0; k < instruction->n_outputs; k++)
        if (instruction->outputs[k] == buffer)
            return true;
    return false;
}

static int first_reader(const MtfProgram *program, int buffer) {
    int i = 0, n = mtf_program_length(program);
    while (i < n && !reads(mtf_program_instruction(program, i), buffer))
        i++;
    return i;
}

static int last_writer(const MtfProgram *program, int buffer) {
    int i = mtf_program_length(program) - 1;
    while (i >= 0 && !writes(mtf_program_instruction(program, i), buffer))
        i--;
    return i;
}

static MtfStagePart part_of(const MtfProgram *program, int first_update, int instruction) {
    return instruction < mtf_program_forward(program) ? MTF_PART_FORWARD
           : instruction < program->weight_gradients  ? MTF_PART_INPUT_GRADIENT
           : instruction < program->n_repeated        ? MTF_PART_WEIGHT_GRADIENT
           : instruction < first_update               ? MTF_PART_ONCE
                                                      : MTF_PART_UPDATE;
}

/* Where the loop begins that instruction `index` belongs to; `index` when it is in none. */
static int loop_begin(const MtfProgram *program, int index) {
    int loop =
        index < mtf_program_length(program) ? mtf_program_instruction(program, index)->loop : 0;
    while (loop > 0 && index > 0 && mtf_program_instruction(program, index - 1)->loop == loop)
        index--;
    return index;
}

static bool holds_variable(const MtfProgram *program, int buffer) {
    int tensor = mtf_program_buffer(program, buffer)->tensor;
    return mtf_graph_tensor(program->graph, tensor)->source == MTF_SOURCE_VARIABLE;
}

/* A receive stands before the first instruction that reads the tensor (before the loop of it), what
 * travels once a step but is read by every micro-batch before all of them; of variables before all. */
static void place_receive(Event *event, const MtfProgram *program, int first_update) {
    int reader = loop_begin(program, first_reader(program, event->buffer));
    bool early =
        event->once && (reader < program->n_repeated || holds_variable(program, event->buffer));
    event->public.part = early ? MTF_PART_BEGIN : part_of(program, first_update, reader);
    event->public.before = early ? 0 : reader;
}

/* A send stands behind the last instruction that writes the tensor (behind its loop); of sums over micro-batches
 * behind the last of these; of variables before all. */
static void place_send(Event *event, const MtfProgram *program, int first_update) {
    int writer = last_writer(program, event->buffer);
    if (mtf_program_buffer(program, event->buffer)->persistent) {
        event->public.part = MTF_PART_BEGIN;
        return;
    }
    bool sum = event->once && writer < program->n_repeated;
    event->public.part = sum ? MTF_PART_ONCE : part_of(program, first_update, writer);
    event->public.before = sum ? program->n_repeated : mtf_program_loop_end(program, writer);
}

static gint compare_events(gconstpointer a, gconstpointer b) {
    const Event *x = a, *y = b;
    if (x->public.part != y->public.part)
        return x->public.part < y->public.part ? -1 : 1;
    if (x->public.before != y->public.before)
        return x->public.before < y->public.before ? -1 : 1;
    if (x->public.sends != y->public.sends)
        return x->public.sends ? -1 : 1;
    return x->public.number < y->public.number ? -1 : x->public.number > y->public.number;
}

/* ---- Making -------------------------------------------------------------------------------- */

static void add_event(MtfStageTransfers *t, int number, const MtfStagePlace *place) {
    const MtfStageTransfer *transfer =
        &g_array_index(t->pipeline->split->transfers, MtfStageTransfer, number);
    if (transfer->from != place->stage && transfer->to != place->stage)
        return;
    Side from = side_of(t->pipeline, transfer->from, transfer->sent);
    Side to = side_of(t->pipeline, transfer->to, transfer->received);
    Event event = { .public.number = number,
                    .once = transfer->once,
                    .messages = g_array_new(FALSE, FALSE, sizeof(Message)) };
    event.public.sends = transfer->from == place->stage;
    event.buffer =
        t->program->tensor_buffers[event.public.sends ? transfer->sent : transfer->received];
    find_messages(&event, &from, &to, place->rank);
    (event.public.sends ? place_send : place_receive)(&event, t->program, place->first_update);
    guint n = event.messages->len * (guint)t->slots;
    event.requests = g_new(MPI_Request, n + 1);
    for (guint i = 0; i < n; i++)
        event.requests[i] = MPI_REQUEST_NULL;
    g_array_append_val(t->events, event);
}

MPI_Comm mtf_stage_communicator_new(MPI_Comm control) {
    MPI_Comm communicator;
    mtf_mpi_require(MPI_Comm_dup(control, &communicator), "MPI_Comm_dup");
    mtf_mpi_require(MPI_Comm_set_name(communicator, TRANSFERS_NAME), "MPI_Comm_set_name");
    return communicator;
}

MtfStageTransfers *mtf_stage_transfers_new(MPI_Comm communicator, const MtfStagePlace *place) {
    MtfStageTransfers *t = g_new0(MtfStageTransfers, 1);
    t->communicator = communicator;
    t->pipeline = place->pipeline;
    t->program = place->program;
    t->slots = place->program->layout->execution.stage.in_flight;
    t->microbatches = place->program->microbatches;
    t->events = g_array_new(FALSE, FALSE, sizeof(Event));
    for (int i = 0; i < (int)place->pipeline->split->transfers->len; i++)
        add_event(t, i, place);
    g_array_sort(t->events, compare_events);
    return t;
}

static Event *event_at(const MtfStageTransfers *transfers, int event) {
    return &g_array_index(transfers->events, Event, event);
}

void mtf_stage_transfers_free(MtfStageTransfers *transfers) {
    if (transfers == NULL)
        return;
    for (int e = 0; e < (int)transfers->events->len; e++) {
        Event *event = event_at(transfers, e);
        for (guint i = 0; i < event->messages->len; i++)
            mtf_mpi_require(MPI_Type_free(&g_array_index(event->messages, Message, i).type),
                            "MPI_Type_free");
        g_array_unref(event->messages);
        g_free(event->requests);
    }
    g_array_unref(transfers->events);
    g_free(transfers);
}

int mtf_stage_transfers_count(const MtfStageTransfers *transfers) {
    return (int)transfers->events->len;
}

const MtfStageEvent *mtf_stage_transfers_event(const MtfStageTransfers *transfers, int event) {
    return &event_at(transfers, event)->public;
}

int64_t mtf_stage_transfers_bytes(const MtfStageTransfers *transfers) {
    int64_t bytes = 0;
    for (int e = 0; e < (int)transfers->events->len; e++) {
        const Event *event = event_at(transfers, e);
        bytes += event->public.sends
                     ? event->public.bytes * (event->once ? 1 : transfers->microbatches)
                     : 0;
    }
    return bytes;
}

int64_t mtf_stage_transfers_sent(const MtfStageTransfers *transfers) {
    return transfers->sent;
}

void mtf_stage_transfers_set_sent(MtfStageTransfers *transfers, int64_t sent) {
    transfers->sent = sent;
}

/* ---- Doing --------------------------------------------------------------------------------- */

static MPI_Request *requests_of(const Event *event, int slot) {
    return event->requests + (gsize)slot * event->messages->len;
}

static void wait_for(const Event *event, int slot) {
    mtf_mpi_require(
        MPI_Waitall((int)event->messages->len, requests_of(event, slot), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
}

/* Returns the bytes that are on their way. */
static int send(char *base, const Message *message, int tag, MPI_Comm communicator,
                MPI_Request *request) {
    int bytes;
    mtf_mpi_require(MPI_Isend(base, 1, message->type, message->peer, tag, communicator, request),
                    "MPI_Isend");
    mtf_mpi_require(MPI_Type_size(message->type, &bytes), "MPI_Type_size");
    return bytes;
}

void mtf_stage_transfer_do(MtfStageTransfers *transfers, int number, const MtfWorker *worker,
                           int slot, int microbatch) {
    const Event *event = event_at(transfers, number);
    char *base = worker->operands[event->buffer].data;
    int own_slot = event->once ? 0 : slot;
    int tag = event->public.number * transfers->microbatches + (event->once ? 0 : microbatch);
    for (guint i = 0; i < event->messages->len; i++) {
        const Message *message = &g_array_index(event->messages, Message, i);
        MPI_Request *request = &requests_of(event, own_slot)[i];
        if (event->public.sends)
            transfers->sent += send(base, message, tag, transfers->communicator, request);
        else
            mtf_mpi_require(MPI_Irecv(base, 1, message->type, message->peer, tag,
                                      transfers->communicator, request),
                            "MPI_Irecv");
    }
    if (!event->public.sends)
        wait_for(event, own_slot);
}

bool mtf_stage_transfer_has_come(MtfStageTransfers *transfers, int number) {
    const Event *event = event_at(transfers, number);
    int tag = event->public.number * transfers->microbatches, here = 1;
    for (guint i = 0; here && i < event->messages->len; i++) {
        int peer = g_array_index(event->messages, Message, i).peer;
        mtf_mpi_require(MPI_Iprobe(peer, tag, transfers->communicator, &here, MPI_STATUS_IGNORE),
                        "MPI_Iprobe");
    }
    return here != 0;
}

void mtf_stage_transfers_progress(MtfStageTransfers *transfers) {
    int there;
    mtf_mpi_require(
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, transfers->communicator, &there, MPI_STATUS_IGNORE),
        "MPI_Iprobe");
}

void mtf_stage_transfers_wait(MtfStageTransfers *transfers, MtfStagePart part, int slot) {
    for (int e = 0; e < (int)transfers->events->len; e++) {
        const Event *event = event_at(transfers, e);
        if (event->public.part == part)
            wait_for(event, event->once ? 0 : slot);
    }
}

void mtf_stage_transfers_wait_all(MtfStageTransfers *transfers) {
    for (int part = 0; part < MTF_PARTS; part++)
        for (int slot = 0; slot < transfers->slots; slot++)
            mtf_stage_transfers_wait(transfers, (MtfStagePart)part, slot);
}
