// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/plan_file/pipeline_transfers.h"

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
    MtfTransferWay way = (MtfTransferWay)mtf_pipeline_transfer(pipeline, transfer)->way;
    return mtf_transfer_routes(&from, &to, way);
}

cJSON *mtf_pipeline_transfers_to_json(const MtfPipelinePlan *pipeline) {
    cJSON *object = NULL;
    for (int way = MTF_TRANSFER_DIRECT + 1; way < MTF_TRANSFER_WAYS; way++) {
        cJSON *list = NULL;
        for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++)
            if (mtf_pipeline_transfer(pipeline, i)->way == way) {
                list = list != NULL ? list : cJSON_CreateArray();
                cJSON_AddItemToArray(list, cJSON_CreateNumber(i));
            }
        if (list == NULL)
            continue;
        object = object != NULL ? object : cJSON_CreateObject();
        cJSON_AddItemToObject(object, mtf_transfer_way_name((MtfTransferWay)way), list);
    }
    return object;
}

/* One list: the transfers that go that way. */
static bool read_list(const MtfJson *list, MtfPipelinePlan *pipeline, int way, GError **error) {
    MtfJson item;
    if (!mtf_json_array(list, error))
        return false;
    for (bool more = mtf_json_first(list, &item); more; more = mtf_json_next(&item)) {
        int64_t number;
        if (!mtf_json_integer(&item, 0, mtf_pipeline_transfers(pipeline) - 1, &number, error))
            return false;
        MtfStageTransfer *transfer = mtf_pipeline_transfer(pipeline, (int)number);
        if (transfer->way != MTF_TRANSFER_DIRECT)
            return mtf_json_fail(&item, error, "transfer %" PRId64 " stands here twice", number);
        transfer->way = way;
    }
    return true;
}

bool mtf_pipeline_transfers_read(const MtfJson *where, MtfPipelinePlan *pipeline, GError **error) {
    const char *keys[MTF_TRANSFER_WAYS + 1] = { 0 };
    for (int way = MTF_TRANSFER_DIRECT + 1; way < MTF_TRANSFER_WAYS; way++)
        keys[way - 1] = mtf_transfer_way_name((MtfTransferWay)way);
    if (!mtf_json_object(where, error) || !mtf_json_keys(where, keys, error))
        return false;
    for (int way = MTF_TRANSFER_DIRECT + 1; way < MTF_TRANSFER_WAYS; way++) {
        MtfJson list;
        if (mtf_json_find(where, keys[way - 1], &list) && !read_list(&list, pipeline, way, error))
            return false;
    }
    return true;
}
