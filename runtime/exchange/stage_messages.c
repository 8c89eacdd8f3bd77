// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/stage_messages.h"

#include "runtime/exchange/communicators.h"
#include "runtime/support/mpi_check.h"

/* ---- Boxes --------------------------------------------------------------------------------- */

/* A tensor as one stage holds it. */
typedef struct {
    const MtfGraph *graph;
    const MtfLayout *layout;
    int stage, tensor, first_rank, ranks;
} Side;

typedef struct {
    int rank; /* of dimensions */
    MtfRange range[MTF_MAX_RANK];
} Box;

static Side side_of(const MtfPipelinePlan *pipeline, int stage, int tensor) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    int domain = pipeline->order->rank_of_stage[stage];
    return (Side){ plan->graph,
                   plan->layout,
                   stage,
                   tensor,
                   mtf_pipeline_first_device(pipeline, domain),
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

/* What goes from one processor to another. */
typedef struct {
    const MtfStageMessageSide *whose;
    Side from, to;
    int sender, receiver; /* processors of the two */
    Box held, wanted, common;
} Pair;

static MtfStageMessage message_of(const Pair *pair, MtfDtype dtype) {
    bool sends = pair->whose->sends;
    int sender = pair->from.first_rank + pair->sender,
        receiver = pair->to.first_rank + pair->receiver;
    MtfStageRoute route = { pair->whose->transfer, sender, receiver };
    MtfStageMessage message = {
        .peer = sends ? receiver : sender,
        .bytes = box_bytes(&pair->common, dtype),
        .type = type_of(sends ? &pair->held : &pair->wanted, &pair->common, dtype),
        .cells = mtf_stage_windows_cells(pair->whose->windows, &route),
    };
    if (message.cells == NULL || sends)
        return message;
    message.arena = mtf_stage_windows_arena(pair->whose->windows, sender, pair->from.stage);
    mtf_box_copy_init(&message.copy, pair->common.rank, mtf_dtype_bytes(dtype), pair->common.range,
                      pair->held.range, pair->wanted.range);
    return message;
}

/* Adds what goes from a sender to a receiver, if anything does. */
static void add_message(GArray *messages, Pair *pair) {
    const Side *from = &pair->from;
    MtfDtype dtype = mtf_graph_tensor(from->graph, from->tensor)->dtype;
    pair->held = box_of(from, pair->sender);
    pair->wanted = box_of(&pair->to, pair->receiver);
    if (!intersect(&pair->held, &pair->wanted, &pair->common) ||
        !serves(from, pair->sender, pair->receiver))
        return;
    MtfStageMessage message = message_of(pair, dtype);
    g_array_append_val(messages, message);
}

GArray *mtf_stage_messages_new(const MtfStageMessageSide *side) {
    const MtfStageTransfer *transfer =
        &g_array_index(side->pipeline->split->transfers, MtfStageTransfer, side->transfer);
    GArray *messages = g_array_new(FALSE, FALSE, sizeof(MtfStageMessage));
    Pair pair = { .whose = side,
                  .from = side_of(side->pipeline, transfer->from, transfer->sent),
                  .to = side_of(side->pipeline, transfer->to, transfer->received) };
    for (int i = 0; i < (side->sends ? pair.to.ranks : pair.from.ranks); i++) {
        pair.sender = side->sends ? side->rank : i;
        pair.receiver = side->sends ? i : side->rank;
        add_message(messages, &pair);
    }
    return messages;
}

void mtf_stage_messages_free(GArray *messages) {
    for (guint i = 0; i < messages->len; i++)
        mtf_mpi_require(MPI_Type_free(&g_array_index(messages, MtfStageMessage, i).type),
                        "MPI_Type_free");
    g_array_unref(messages);
}
