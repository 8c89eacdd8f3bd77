// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/builder.h"

#include "layouts/base/error.h"

MtfBuilder mtf_builder(MtfGraph *graph, MtfPhase phase) {
    return (MtfBuilder){ .graph = graph, .phase = phase, .attributes = MTF_NO_ATTRIBUTES };
}

int mtf_build(MtfBuilder *builder, int kind, const char *name, const MtfShape *shape, int n_inputs,
              const int *inputs) {
    MtfNewOperation operation = { .name = name,
                                  .kind = kind,
                                  .phase = builder->phase,
                                  .stage = builder->stage,
                                  .loop = builder->loop,
                                  .layer = builder->layer,
                                  .origin = builder->origin,
                                  .of = builder->of,
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .shape = shape,
                                  .has_dtype = builder->has_dtype,
                                  .dtype = builder->dtype,
                                  .attributes = builder->attributes };
    builder->attributes = MTF_NO_ATTRIBUTES;
    builder->has_dtype = false;
    if (builder->error != NULL)
        return -1;
    return mtf_graph_add_operation(builder->graph, &operation, &builder->error);
}

int mtf_build_constant(MtfBuilder *builder, const char *name, MtfDtype dtype, double value) {
    builder->attributes.value = value;
    builder->has_dtype = true;
    builder->dtype = dtype;
    return mtf_build(builder, MTF_OP_CONSTANT, name, &(MtfShape){ 0 }, 0, NULL);
}

/* The dimensions of `whole` that `part` has, in `whole`'s order. */
static MtfShape common_dims(const MtfShape *whole, const MtfShape *part) {
    MtfShape common = { 0 };
    for (int i = 0; i < whole->rank; i++)
        if (mtf_shape_find(part, whole->dims[i]) >= 0)
            mtf_shape_append(&common, whole->dims[i]);
    return common;
}

int mtf_build_fit(MtfBuilder *builder, const char *name, int tensor, const MtfShape *shape) {
    if (builder->error != NULL)
        return -1;
    MtfShape from = mtf_graph_tensor(builder->graph, tensor)->shape;
    MtfShape common = common_dims(shape, &from);
    if (mtf_shape_equal(&from, shape))
        return tensor;
    bool sums = common.rank < from.rank, repeats = common.rank < shape->rank;
    if (sums && !repeats)
        return MTF_BUILD(builder, MTF_OP_REDUCE_SUM, name, shape, tensor);
    if (!sums)
        return MTF_BUILD(builder, repeats ? MTF_OP_BROADCAST : MTF_OP_TRANSPOSE, name, shape,
                         tensor);
    g_autofree char *sum = g_strdup_printf("%s/sum", name);
    int summed = MTF_BUILD(builder, MTF_OP_REDUCE_SUM, sum, &common, tensor);
    return MTF_BUILD(builder, MTF_OP_BROADCAST, name, shape, summed);
}

int mtf_build_variable(MtfBuilder *builder, const char *name, const MtfShape *shape, MtfDtype dtype,
                       MtfInit init, MtfMemoryKind memory) {
    if (builder->error != NULL)
        return -1;
    int variable =
        mtf_graph_add_variable(builder->graph, name, shape, dtype, init, memory, &builder->error);
    if (variable >= 0)
        mtf_graph_tensor(builder->graph, variable)->layer = builder->layer;
    return variable;
}

int mtf_build_variable_like(MtfBuilder *builder, const MtfTensor *variable) {
    int copy = mtf_build_variable(builder, variable->name, &variable->shape, variable->dtype,
                                  variable->init, variable->memory);
    if (copy < 0)
        return -1;
    mtf_variable_take_facts(mtf_graph_tensor(builder->graph, copy), variable);
    return copy;
}

/* They are called after the operation. */
static void rename_further_outputs(MtfGraph *graph, const MtfOperation *operation) {
    for (int k = 1; k < operation->n_outputs; k++) {
        MtfTensor *t = mtf_graph_tensor(graph, operation->outputs[k]);
        g_hash_table_remove(graph->tensor_ids, t->name);
        g_free(t->name);
        t->name = g_strdup_printf("%s/%s", operation->name,
                                  mtf_operation_row(operation->kind)->suffixes[k]);
        g_hash_table_insert(graph->tensor_ids, t->name, GINT_TO_POINTER(operation->outputs[k] + 1));
    }
}

void mtf_build_rename(MtfBuilder *builder, int tensor, const char *name) {
    if (builder->error != NULL)
        return;
    if (mtf_graph_find_tensor(builder->graph, name) >= 0) {
        mtf_input_error(&builder->error, "the name \"%s\" is given to two tensors", name);
        return;
    }
    MtfTensor *t = mtf_graph_tensor(builder->graph, tensor);
    MtfOperation *operation = mtf_graph_operation(builder->graph, t->producer);
    g_hash_table_remove(builder->graph->tensor_ids, t->name);
    g_free(t->name);
    g_free(operation->name);
    t->name = g_strdup(name);
    operation->name = g_strdup(name);
    g_hash_table_insert(builder->graph->tensor_ids, t->name, GINT_TO_POINTER(tensor + 1));
    rename_further_outputs(builder->graph, operation);
}

bool mtf_builder_end(MtfBuilder *builder, GError **error) {
    if (builder->error == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&builder->error));
    return false;
}

void mtf_build_frame(MtfGraph *to, const MtfGraph *from) {
    mtf_graph_copy_dimensions(to, from);
    for (guint i = 0; i < from->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(from->repeats, MtfRepeat, i);
        mtf_graph_add_repeat(to, repeat->name, repeat->count);
    }
    for (guint i = 0; i < from->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(from->loops, MtfLoop, i);
        mtf_graph_add_loop(to, loop->name, loop->dimension, loop->reverse);
    }
    to->microbatches = from->microbatches;
    to->batch = from->batch;
    to->optimizer = from->optimizer;
    to->optimizer.kind = g_strdup(from->optimizer.kind);
    to->optimizer.schedule = g_strdup(from->optimizer.schedule);
}

MtfShape mtf_shape_without(const MtfShape *shape, int dim) {
    MtfShape rest = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != dim)
            mtf_shape_append(&rest, shape->dims[i]);
    return rest;
}
