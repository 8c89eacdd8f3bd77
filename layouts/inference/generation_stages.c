// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/inference/generation_stages.h"

#include "layouts/base/error.h"
#include "layouts/inference/generation_layout.h"

#include <string.h>

/* ---- Which stage runs an operation ----------------------------------------------------------- */

/* The last stage that makes an operand; 0 where all follow from inputs and variables alone. */
static int stage_of_operands(const MtfGraph *graph, const MtfOperation *op) {
    int stage = 0;
    for (int k = 0; k < op->n_inputs; k++) {
        int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
        if (producer >= 0)
            stage = MAX(stage, mtf_graph_operation(graph, producer)->stage);
    }
    return stage;
}

/* The others go where they are read first. */
static void complete_by_first_readers(MtfGraph *graph) {
    g_autofree int *first = g_new0(int, graph->tensors->len + 1);
    for (int i = (int)graph->operations->len - 1; i >= 0; i--) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->stage == 0)
            op->stage = MAX(first[op->outputs[0]], 1);
        for (int k = 0; k < op->n_inputs; k++) {
            int *stage = &first[op->inputs[k]];
            *stage = *stage == 0 ? op->stage : MIN(*stage, op->stage);
        }
    }
}

void mtf_generation_give_stages(MtfGraph *graph, const MtfGraph *trained) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        int old = mtf_graph_find_operation(trained, op->name);
        op->stage =
            old >= 0 ? mtf_graph_operation(trained, old)->stage : stage_of_operands(graph, op);
    }
    complete_by_first_readers(graph);
}

/* ---- The pipeline ---------------------------------------------------------------------------- */

/* One forward pass a stage, each on the domain that has it in `like`; NULL: each on its own. */
static MtfPipelineOrder *forward_order(int stages, const MtfPipelineOrder *like) {
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(like != NULL ? like->ranks : stages, stages, 1, MTF_STAGES_LOOP);
    if (like != NULL)
        memcpy(order->rank_of_stage, like->rank_of_stage,
               (gsize)stages * sizeof *order->rank_of_stage);
    for (int s = 0; s < stages; s++)
        mtf_pipeline_order_add(order, MTF_WORK_FORWARD, s, 0);
    return order;
}

static void free_plan(gpointer plan) {
    mtf_plan_free(plan);
}

static void free_graph(gpointer graph) {
    mtf_graph_free(graph);
}

/* All of a graph that is not cut. */
static MtfStageSplit *uncut(const MtfGraph *graph) {
    MtfStageSplit *split = g_new0(MtfStageSplit, 1);
    split->graphs = g_ptr_array_new_with_free_func(free_graph);
    split->transfers = g_array_new(FALSE, FALSE, sizeof(MtfStageTransfer));
    g_ptr_array_add(split->graphs, mtf_graph_copy(graph));
    return split;
}

/* Without plans of its stages yet; takes the graph over. */
static MtfPipelinePlan *pipeline_new(MtfGraph *graph, const MtfPipelineOrder *like,
                                     GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = g_new0(MtfPipelinePlan, 1);
    pipeline->graph = graph;
    pipeline->schedule = g_strdup("forward");
    pipeline->stages = g_ptr_array_new_with_free_func(free_plan);
    pipeline->order = forward_order(MAX(mtf_graph_stages(graph), 1), like);
    pipeline->split = mtf_graph_stages(graph) == 0 ? uncut(graph) : mtf_stage_split(graph, error);
    return pipeline->split == NULL ? NULL : g_steal_pointer(&pipeline);
}

MtfPipelinePlan *mtf_generation_pipeline_new(MtfGraph *graph, GError **error) {
    return pipeline_new(graph, NULL, error);
}

/* Appends a stage with a layout, which it takes over, of its part of the graph. */
static void add_stage(MtfPipelinePlan *pipeline, MtfLayout *layout) {
    guint stage = pipeline->stages->len;
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->graph = mtf_graph_copy(pipeline->split->graphs->pdata[stage]);
    plan->layout = layout;
    g_ptr_array_add(pipeline->stages, plan);
}

/* ---- From the one that is trained ------------------------------------------------------------ */

static bool is_received(const MtfPipelinePlan *pipeline, int stage, int tensor) {
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        if (t->to == stage && t->received == tensor)
            return true;
    }
    return false;
}

/* Whether a stage's weights are those that it trains, or come from one that does. */
static bool has_weights(const MtfPipelinePlan *pipeline, int stage, const MtfGraph *trained,
                        GError **error) {
    const MtfGraph *graph = pipeline->split->graphs->pdata[stage];
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        bool weight =
            tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE;
        int old = mtf_graph_find_tensor(trained, tensor->name);
        bool own = old >= 0 && mtf_graph_tensor(trained, old)->source == MTF_SOURCE_VARIABLE;
        if (weight && !own && !is_received(pipeline, stage, t))
            return mtf_input_error(error,
                                   "stage %d generates with \"%s\", which another stage trains",
                                   stage, tensor->name);
    }
    return true;
}

MtfPipelinePlan *mtf_generation_pipeline(const MtfPipelinePlan *trained,
                                         const MtfGenerationSizes *sizes, GError **error) {
    MtfGraph *graph = mtf_generation_graph(trained->graph, sizes, error);
    if (graph == NULL)
        return NULL;
    mtf_generation_give_stages(graph, trained->graph);
    g_autoptr(MtfPipelinePlan) pipeline = pipeline_new(graph, trained->order, error);
    for (int s = 0; pipeline != NULL && s < pipeline->order->stages; s++) {
        const MtfPlan *from = mtf_pipeline_stage(trained, s);
        if (!has_weights(pipeline, s, from->graph, error))
            return NULL;
        add_stage(pipeline, mtf_generation_layout(pipeline->split->graphs->pdata[s], from->graph,
                                                  from->layout));
    }
    return g_steal_pointer(&pipeline);
}

MtfPipelinePlan *mtf_generation_whole(const MtfGraph *graph, const MtfLayout *layout) {
    MtfPipelinePlan *pipeline = pipeline_new(mtf_graph_copy(graph), NULL, NULL);
    add_stage(pipeline, mtf_layout_copy(layout));
    return pipeline;
}

MtfPipelinePlan *mtf_generation_pipeline_at(const MtfPipelinePlan *pipeline, int64_t length) {
    MtfGraph *graph = mtf_graph_copy(pipeline->graph);
    mtf_generation_set_length(graph, length);
    MtfPipelinePlan *result = pipeline_new(graph, pipeline->order, NULL);
    g_assert(result != NULL);
    for (int s = 0; s < result->order->stages; s++)
        add_stage(result, mtf_layout_copy(mtf_pipeline_stage(pipeline, s)->layout));
    return result;
}
