// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/pipeline_transfers.h"

#include <inttypes.h>

int mtf_pipeline_transfers(const MtfPipelinePlan *pipeline) {
    return (int)pipeline->split->transfers->len;
}

MtfStageTransfer *mtf_pipeline_transfer(const MtfPipelinePlan *pipeline, int transfer) {
    return &g_array_index(pipeline->split->transfers, MtfStageTransfer, transfer);
}

static MtfTransferSide side_of(const MtfPipelinePlan *pipeline, int stage, int tensor) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    return (MtfTransferSide){ plan->graph, plan->layout, tensor };
}

MtfTransferSide mtf_pipeline_sender(const MtfPipelinePlan *pipeline, int transfer) {
    const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, transfer);
    return side_of(pipeline, t->from, t->sent);
}

MtfTransferSide mtf_pipeline_receiver(const MtfPipelinePlan *pipeline, int transfer) {
    const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, transfer);
    return side_of(pipeline, t->to, t->received);
}

GArray *mtf_pipeline_routes(const MtfPipelinePlan *pipeline, int transfer) {
    MtfTransferSide from = mtf_pipeline_sender(pipeline, transfer);
    MtfTransferSide to = mtf_pipeline_receiver(pipeline, transfer);
    return mtf_transfer_routes(&from, &to);
}

cJSON *mtf_pipeline_transfers_to_json(const MtfPipelinePlan *pipeline) {
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++)
        if (mtf_pipeline_transfer(pipeline, i)->algorithm == MTF_EXCHANGE_MPI)
            g_array_append_val(numbers, i);
    if (numbers->len == 0)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToObject(
        object, mtf_exchange_algorithm_name(MTF_EXCHANGE_MPI),
        cJSON_CreateIntArray((const int *)(void *)numbers->data, (int)numbers->len));
    return object;
}

bool mtf_pipeline_transfers_read(const MtfJson *where, MtfPipelinePlan *pipeline, GError **error) {
    const char *const keys[] = { mtf_exchange_algorithm_name(MTF_EXCHANGE_MPI), NULL };
    MtfJson list, item;
    if (!mtf_json_object(where, error) || !mtf_json_keys(where, keys, error) ||
        !mtf_json_get_array(where, keys[0], &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &item); more; more = mtf_json_next(&item)) {
        int64_t number;
        if (!mtf_json_integer(&item, 0, mtf_pipeline_transfers(pipeline) - 1, &number, error))
            return false;
        MtfStageTransfer *transfer = mtf_pipeline_transfer(pipeline, (int)number);
        if (transfer->algorithm != MTF_EXCHANGE_DIRECT)
            return mtf_json_fail(&item, error, "transfer %" PRId64 " stands here twice", number);
        transfer->algorithm = MTF_EXCHANGE_MPI;
    }
    return true;
}
