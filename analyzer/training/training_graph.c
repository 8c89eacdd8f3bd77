// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/training_graph.h"

#include "analyzer/composites/expand.h"
#include "analyzer/training/differentiate.h"
#include "analyzer/training/loop_gradient.h"
#include "analyzer/training/optimizer_updates.h"
#include "layouts/base/error.h"

/* Which parts of a step are bfloat16 is decided for the whole of it. */
static bool check_types(const MtfGraph *forward, GError **error) {
    for (int t = 0; t < (int)forward->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(forward, t);
        if (tensor->dtype == MTF_BF16)
            return mtf_input_error(error,
                                   "tensor \"%s\" is bfloat16; write the graph in float32 and plan "
                                   "it with --precision bf16",
                                   tensor->name);
        if (tensor->dtype == MTF_I8)
            return mtf_input_error(
                error,
                "tensor \"%s\" is int8, which is not trained; write the graph in "
                "float32 and plan it with --infer decode --weights int8",
                tensor->name);
    }
    return true;
}

/* What the file assigns to variables after each step, taken out until all else that a step does is
 * there; free with g_array_unref. */
static GArray *take_assignments(MtfGraph *graph) {
    GArray *assignments = graph->updates;
    graph->updates = g_array_new(FALSE, FALSE, sizeof(MtfUpdate));
    return assignments;
}

/* Assignments are copies among the updates: they wait, as all updates do, until the step's loss is
 * agreed on. */
static bool add_assignments(MtfGraph *graph, const GArray *assignments, GError **error) {
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_UPDATE);
    for (guint i = 0; i < assignments->len && b.error == NULL; i++) {
        MtfUpdate update = g_array_index(assignments, MtfUpdate, i);
        const MtfTensor *value = mtf_graph_tensor(graph, update.value);
        g_autofree char *name =
            g_strdup_printf("next/%s", mtf_graph_tensor(graph, update.variable)->name);
        b.attributes.factor = 1;
        int copy = mtf_dtype_is_float(value->dtype) ? MTF_OP_SCALE : MTF_OP_STOP_GRADIENT;
        update.value = MTF_BUILD(&b, copy, name, NULL, update.value);
        if (update.value < 0)
            break;
        mtf_graph_tensor(graph, update.value)->memory =
            mtf_graph_tensor(graph, update.variable)->memory;
        mtf_graph_add_update(graph, update.variable, update.value);
    }
    return mtf_builder_end(&b, error);
}

bool mtf_training_graph_check(const MtfGraph *graph, GError **error) {
    for (guint i = 0; graph->loss >= 0 && i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        const MtfTensor *variable = mtf_graph_tensor(graph, update->variable);
        const MtfTensor *value = mtf_graph_tensor(graph, update->value);
        if (variable->frozen ||
            (value->producer >= 0 &&
             mtf_graph_operation(graph, value->producer)->phase == MTF_PHASE_UPDATE))
            continue;
        return mtf_input_error(
            error,
            "variable \"%s\" is trained, and becomes \"%s\": say \"frozen\" of it where "
            "nothing else is to change it, or that what makes \"%s\" is of phase "
            "\"update\" where the graph is a whole training step",
            variable->name, value->name, value->name);
    }
    return true;
}

MtfGraph *mtf_training_graph(const MtfGraph *forward, GError **error) {
    g_autoptr(MtfGraph) graph = NULL;
    if (!check_types(forward, error) || (graph = mtf_expand(forward, error)) == NULL)
        return NULL;
    g_autoptr(GArray) assignments = take_assignments(graph);
    g_autoptr(GArray) gradients = mtf_differentiate(graph, error);
    if (gradients == NULL || !mtf_add_updates(graph, gradients, error) ||
        !add_assignments(graph, assignments, error) || !mtf_loop_gradient_tidy(graph, error))
        return NULL;
    mtf_graph_canonicalize(graph);
    return g_steal_pointer(&graph);
}

void mtf_graph_set_precision(MtfGraph *graph, MtfDtype dtype) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_dtype_is_float(mtf_graph_tensor(graph, t)->dtype))
            mtf_graph_tensor(graph, t)->dtype = dtype;
}
