// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/stage_transfers.h"

#include "runtime/exchange/stage_messages.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

#define TRANSFERS_NAME "meshtf stages"

typedef struct {
    MtfStageEvent public;
    bool once;
    int buffer;
    GArray *messages;       /* MtfStageMessage */
    GArray *inside;         /* likewise, with other receivers when all of `messages` have come */
    MPI_Request *requests;  /* [slots][messages] */
    MtfStageCell **cells;   /* likewise: where it was offered last; NULL: nowhere */
    MPI_Request *gathering; /* [inside] */
    int *turns;             /* [micro-batches]: how often it was offered, or taken */
} Event;

struct MtfStageTransfers {
    MPI_Comm communicator;
    const MtfPipelinePlan *pipeline;
    const MtfStageWindows *windows;
    const MtfProgram *program;
    GArray *events; /* Event */
    int slots, microbatches;
    bool uses_mpi;
    MtfStageTraffic counted;
};

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
    if (instruction >= program->n_repeated)
        return instruction < first_update ? MTF_PART_ONCE : MTF_PART_UPDATE;
    return instruction < mtf_program_forward(program) ? MTF_PART_FORWARD
           : instruction < program->weight_gradients  ? MTF_PART_INPUT_GRADIENT
                                                      : MTF_PART_WEIGHT_GRADIENT;
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

/* A send stands behind the last instruction that writes the tensor (behind its loop); of sums over
 * micro-batches behind the last of these; of variables before all. */
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

/* Nothing is on its way. */
static void make_room(Event *event, const MtfStageTransfers *t) {
    guint n = event->messages->len * (guint)t->slots;
    event->cells = g_new0(MtfStageCell *, n + 1);
    event->turns = g_new0(int, t->microbatches);
    event->requests = g_new(MPI_Request, n + 1);
    event->gathering = g_new(MPI_Request, event->inside->len + 1);
    for (guint i = 0; i < n; i++)
        event->requests[i] = MPI_REQUEST_NULL;
}

static MtfStageMessage *message_at(const Event *event, guint i) {
    return &g_array_index(event->messages, MtfStageMessage, i);
}

static MtfStageMessage *inside_at(const Event *event, guint i) {
    return &g_array_index(event->inside, MtfStageMessage, i);
}

static void add_event(MtfStageTransfers *t, int number, const MtfStagePlace *place) {
    const MtfStageTransfer *transfer =
        &g_array_index(t->pipeline->split->transfers, MtfStageTransfer, number);
    bool sends = transfer->from == place->stage;
    if (!sends && transfer->to != place->stage)
        return;
    MtfStageMessageSide side = { t->pipeline, t->windows, number, sends, place->rank };
    Event event = { .public = { .number = number, .sends = sends },
                    .once = transfer->once,
                    .messages = mtf_stage_messages_new(&side, false),
                    .inside = mtf_stage_messages_new(&side, true) };
    event.buffer = t->program->tensor_buffers[sends ? transfer->sent : transfer->received];
    (sends ? place_send : place_receive)(&event, t->program, place->first_update);
    for (guint i = 0; i < event.messages->len; i++) {
        event.public.bytes += message_at(&event, i)->bytes;
        t->uses_mpi |= message_at(&event, i)->cells == NULL;
    }
    make_room(&event, t);
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
    t->windows = place->windows;
    t->program = place->program;
    t->slots = MAX(1, place->program->layout->execution.stage.in_flight);
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
        mtf_stage_messages_free(event->messages);
        mtf_stage_messages_free(event->inside);
        g_free(event->cells);
        g_free(event->turns);
        g_free(event->requests);
        g_free(event->gathering);
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

MtfStageTraffic mtf_stage_transfers_planned(const MtfStageTransfers *transfers) {
    MtfStageTraffic planned = { 0 };
    for (int e = 0; e < (int)transfers->events->len; e++) {
        const Event *event = event_at(transfers, e);
        int times = event->once ? 1 : transfers->microbatches;
        planned.sent += event->public.sends ? event->public.bytes * times : 0;
        for (guint i = 0; i < event->inside->len; i++)
            planned.sent += inside_at(event, i)->sends ? inside_at(event, i)->bytes * times : 0;
        for (guint i = 0; !event->public.sends && i < event->messages->len; i++)
            if (message_at(event, i)->cells != NULL)
                planned.copied += message_at(event, i)->bytes * times;
    }
    return planned;
}

MtfStageTraffic mtf_stage_transfers_counted(const MtfStageTransfers *transfers) {
    return transfers->counted;
}

void mtf_stage_transfers_set_counted(MtfStageTransfers *transfers, MtfStageTraffic counted) {
    transfers->counted = counted;
}

/* ---- Doing --------------------------------------------------------------------------------- */

/* One message of an event, of a micro-batch in a slot. */
typedef struct {
    MtfStageTransfers *transfers;
    const Event *event;
    guint message;
    const MtfWorker *worker;
    int microbatch;
    gsize at; /* among requests and cells */
} Doing;

static char *slice_of(const Doing *d) {
    return d->worker->operands[d->event->buffer].data;
}

/* The cell that this use of a micro-batch's has its turn in. */
static MtfStageCell *cell_of(const MtfStageTransfers *t, const Event *event, guint message,
                             int microbatch) {
    int rounds = mtf_stage_windows_rounds(t->windows);
    return &message_at(event, message)
                ->cells[microbatch * rounds + event->turns[microbatch] % rounds];
}

/* Of messages between the stages, and of those inside one. */
static int tag_of(const Doing *d, bool inside) {
    int place = d->event->public.number * d->transfers->microbatches + d->microbatch;
    return 2 * place + inside;
}

/* By MPI, which has its own count of what is sent. */
static void begin_message(const Doing *d, const MtfStageMessage *message, int tag,
                          MPI_Request *request) {
    MPI_Comm communicator = d->transfers->communicator;
    int bytes = 0;
    if (message->sends) {
        mtf_mpi_require(
            MPI_Isend(slice_of(d), 1, message->type, message->peer, tag, communicator, request),
            "MPI_Isend");
        mtf_mpi_require(MPI_Type_size(message->type, &bytes), "MPI_Type_size");
    } else
        mtf_mpi_require(
            MPI_Irecv(slice_of(d), 1, message->type, message->peer, tag, communicator, request),
            "MPI_Irecv");
    d->transfers->counted.sent += bytes;
}

static void offer(const Doing *d, const MtfStageMessage *message) {
    MtfStageCell *cell = cell_of(d->transfers, d->event, d->message, d->microbatch);
    d->event->cells[d->at] = cell;
    mtf_stage_cell_offer(cell, slice_of(d) - d->worker->memory.base);
    d->transfers->counted.sent += message->bytes;
}

static void copy(const Doing *d, const MtfStageMessage *message) {
    MtfStageCell *cell = cell_of(d->transfers, d->event, d->message, d->microbatch);
    mtf_stage_windows_await(d->transfers->windows, cell, true);
    mtf_box_copy_run(&message->copy, message->arena + cell->offset, slice_of(d));
    d->transfers->counted.copied += mtf_box_copy_bytes(&message->copy);
    mtf_stage_cell_take(cell);
}

static void do_message(const Doing *d) {
    const MtfStageMessage *message = message_at(d->event, d->message);
    if (message->cells == NULL)
        begin_message(d, message, tag_of(d, false), &d->event->requests[d->at]);
    else
        (message->sends ? offer : copy)(d, message);
}

/* Until what was sent from a slot has been taken, or what was received in it has come. */
static void wait_for(const MtfStageTransfers *t, const Event *event, int slot) {
    gsize first = (gsize)slot * event->messages->len;
    for (guint i = 0; i < event->messages->len; i++)
        if (event->cells[first + i] != NULL)
            mtf_stage_windows_await(t->windows, event->cells[first + i], false);
    if (t->uses_mpi)
        mtf_mpi_require(
            MPI_Waitall((int)event->messages->len, event->requests + first, MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

/* Receivers of the same part give each other the pieces that each of them got. */
static void gather(const Doing *d) {
    const Event *event = d->event;
    for (guint i = 0; i < event->inside->len; i++)
        begin_message(d, inside_at(event, i), tag_of(d, true), &event->gathering[i]);
    mtf_mpi_require(MPI_Waitall((int)event->inside->len, event->gathering, MPI_STATUSES_IGNORE),
                    "MPI_Waitall");
}

void mtf_stage_transfer_do(MtfStageTransfers *transfers, int number, const MtfWorker *worker,
                           int slot, int microbatch) {
    const Event *event = event_at(transfers, number);
    int own_slot = event->once ? 0 : slot, own_microbatch = event->once ? 0 : microbatch;
    for (guint i = 0; i < event->messages->len; i++) {
        Doing d = { transfers, event,          i,
                    worker,    own_microbatch, (gsize)own_slot * event->messages->len + i };
        do_message(&d);
    }
    event->turns[own_microbatch]++;
    if (event->public.sends)
        return;
    wait_for(transfers, event, own_slot);
    gather(&(Doing){ transfers, event, 0, worker, own_microbatch, 0 });
}

bool mtf_stage_transfer_has_come(MtfStageTransfers *transfers, int number) {
    const Event *event = event_at(transfers, number);
    int tag = 2 * event->public.number * transfers->microbatches, here = 1;
    for (guint i = 0; here && i < event->messages->len; i++) {
        const MtfStageMessage *message = message_at(event, i);
        if (message->cells != NULL)
            here = !mtf_stage_cell_is_free(cell_of(transfers, event, i, 0));
        else
            mtf_mpi_require(
                MPI_Iprobe(message->peer, tag, transfers->communicator, &here, MPI_STATUS_IGNORE),
                "MPI_Iprobe");
    }
    return here != 0;
}

void mtf_stage_transfers_progress(MtfStageTransfers *transfers) {
    int there;
    if (transfers->uses_mpi)
        mtf_mpi_require(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, transfers->communicator, &there,
                                   MPI_STATUS_IGNORE),
                        "MPI_Iprobe");
}

void mtf_stage_transfers_wait(MtfStageTransfers *transfers, MtfStagePart part, int slot) {
    for (int e = 0; e < (int)transfers->events->len; e++) {
        const Event *event = event_at(transfers, e);
        if (event->public.part == part)
            wait_for(transfers, event, event->once ? 0 : slot);
    }
}

void mtf_stage_transfers_wait_all(MtfStageTransfers *transfers) {
    for (int part = 0; part < MTF_PARTS; part++)
        for (int slot = 0; slot < transfers->slots; slot++)
            mtf_stage_transfers_wait(transfers, (MtfStagePart)part, slot);
}
