// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/stage_messages.h"

#include "layouts/plan_file/pipeline_transfers.h"
#include "runtime/exchange/communicators.h"
#include "runtime/support/mpi_check.h"

/* `part` of the slice `whole` as a datatype relative to the slice. */
static MPI_Datatype type_of(int rank, const MtfRange *whole, const MtfRange *part, MtfDtype dtype) {
    int sizes[MTF_MAX_RANK], subsizes[MTF_MAX_RANK], starts[MTF_MAX_RANK];
    MPI_Datatype type;
    for (int i = 0; i < rank; i++) {
        sizes[i] = (int)(whole[i].end - whole[i].begin);
        subsizes[i] = (int)(part[i].end - part[i].begin);
        starts[i] = (int)(part[i].begin - whole[i].begin);
    }
    if (rank == 0)
        mtf_mpi_require(MPI_Type_contiguous(1, mtf_element_type(dtype), &type),
                        "MPI_Type_contiguous");
    else
        mtf_mpi_require(MPI_Type_create_subarray(rank, sizes, subsizes, starts, MPI_ORDER_C,
                                                 mtf_element_type(dtype), &type),
                        "MPI_Type_create_subarray");
    mtf_mpi_require(MPI_Type_commit(&type), "MPI_Type_commit");
    return type;
}

/* The first rank of a stage. */
static int first_rank(const MtfPipelinePlan *pipeline, int stage) {
    return mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
}

/* Where the sender's arena is, and what is copied from there. */
static void add_copy(MtfStageMessage *message, const MtfStageMessageSide *side,
                     const MtfTransferRoute *route, const MtfRange *wanted) {
    MtfTransferSide from = mtf_pipeline_sender(side->pipeline, side->transfer);
    const MtfTensor *tensor = mtf_graph_tensor(from.graph, from.tensor);
    int stage = mtf_pipeline_transfer(side->pipeline, side->transfer)->from;
    MtfRange held[MTF_MAX_RANK];
    mtf_transfer_part_ranges(&from, route->sender, held);
    message->arena = mtf_stage_windows_arena(side->windows, message->peer, stage);
    mtf_box_copy_init(&message->copy, tensor->shape.rank, mtf_dtype_bytes(tensor->dtype),
                      route->range, held, wanted);
}

static MtfStageMessage message_of(const MtfStageMessageSide *side, const MtfTransferRoute *route,
                                  bool sends) {
    const MtfStageTransfer *transfer = mtf_pipeline_transfer(side->pipeline, side->transfer);
    MtfTransferSide own =
        (side->sends ? mtf_pipeline_sender : mtf_pipeline_receiver)(side->pipeline, side->transfer);
    const MtfTensor *tensor = mtf_graph_tensor(own.graph, own.tensor);
    int from = route->inside ? transfer->to : transfer->from;
    MtfStageRoute ranks = { side->transfer, first_rank(side->pipeline, from) + route->sender,
                            first_rank(side->pipeline, transfer->to) + route->receiver };
    MtfRange held[MTF_MAX_RANK];
    mtf_transfer_part_ranges(&own, side->rank, held);
    MtfStageMessage message = {
        .peer = sends ? ranks.receiver : ranks.sender,
        .sends = sends,
        .bytes = route->bytes,
        .type = type_of(tensor->shape.rank, held, route->range, tensor->dtype),
    };
    if (transfer->way == MTF_TRANSFER_DIRECT)
        message.cells = mtf_stage_windows_cells(side->windows, &ranks);
    if (message.cells != NULL && !sends)
        add_copy(&message, side, route, held);
    return message;
}

GArray *mtf_stage_messages_new(const MtfStageMessageSide *side, bool inside) {
    GArray *messages = g_array_new(FALSE, FALSE, sizeof(MtfStageMessage));
    g_autoptr(GArray) routes = mtf_pipeline_routes(side->pipeline, side->transfer);
    for (guint i = 0; i < routes->len; i++) {
        const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
        bool sends = route->sender == side->rank && side->sends != inside;
        bool receives = route->receiver == side->rank && !side->sends;
        if (route->inside != inside || (!sends && !receives))
            continue;
        MtfStageMessage message = message_of(side, route, sends);
        g_array_append_val(messages, message);
    }
    return messages;
}

void mtf_stage_messages_free(GArray *messages) {
    for (guint i = 0; i < messages->len; i++)
        mtf_mpi_require(MPI_Type_free(&g_array_index(messages, MtfStageMessage, i).type),
                        "MPI_Type_free");
    g_array_unref(messages);
}
