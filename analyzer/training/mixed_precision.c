// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/mixed_precision.h"

#include "layouts/building/builder.h"
#include "layouts/graph/loops.h"

typedef struct {
    const MtfGraph *from;
    MtfBuilder b;
    int *tensors;          /* of `from` -> of the new graph */
    int *casts;            /* … -> the new tensor in the other type, or -1 */
    bool *wide;            /* of `from`: wanted in float32 where its operation can give it so */
    int *states;           /* mtf_graph_states of `from` */
    bool narrow_variables; /* they are kept in bfloat16 */
} Pass;

static const MtfOperationRow *row_of(const MtfOperation *op) {
    return mtf_operation_row(op->kind);
}

static bool is_update(const MtfOperation *op) {
    return op->phase == MTF_PHASE_CLIP || op->phase == MTF_PHASE_UPDATE;
}

static bool is_storage_input(const Pass *pass, const MtfOperation *op, int k) {
    MtfDtype dtype = mtf_graph_tensor(pass->from, op->inputs[k])->dtype;
    return mtf_operation_input_leads(row_of(op), k, dtype);
}

/* ---- What is wanted wide ------------------------------------------------------------------- */

/* Wide are the loss, what the model reads as a statistic, and what such a result follows from
 * through operations that keep the type. */
static void mark_inputs(Pass *pass, const MtfOperation *op) {
    MtfDtypeRule rule = row_of(op)->dtype;
    bool keeps = rule == MTF_DTYPE_AS_INPUTS || rule == MTF_DTYPE_TRUTH;
    bool follows = keeps && pass->wide[op->outputs[0]];
    for (int k = 0; k < op->n_inputs; k++)
        if (mtf_operation_mask_has(row_of(op)->wide_inputs, k) ||
            (follows && is_storage_input(pass, op, k)))
            pass->wide[op->inputs[k]] = true;
}

static void mark_wide(Pass *pass) {
    if (pass->from->loss >= 0)
        pass->wide[pass->from->loss] = true;
    for (int i = (int)pass->from->operations->len - 1; i >= 0; i--)
        if (!is_update(mtf_graph_operation(pass->from, i)))
            mark_inputs(pass, mtf_graph_operation(pass->from, i));
}

/* ---- Types of operations ------------------------------------------------------------------- */

/* How many storage inputs of the operation are bfloat16 by now, and how many are results. */
typedef struct {
    int inputs, narrow, results;
} Census;

static Census count_inputs(const Pass *pass, const MtfOperation *op) {
    Census census = { 0, 0, 0 };
    for (int k = 0; k < op->n_inputs; k++) {
        if (!is_storage_input(pass, op, k))
            continue;
        int t = op->inputs[k];
        census.inputs++;
        census.results += mtf_graph_tensor(pass->from, t)->producer >= 0;
        census.narrow += mtf_graph_tensor(pass->b.graph, pass->tensors[t])->dtype == MTF_BF16;
    }
    return census;
}

static bool is_constant(const MtfGraph *graph, int t) {
    int producer = mtf_graph_tensor(graph, t)->producer;
    return producer >= 0 && mtf_graph_operation(graph, producer)->n_inputs == 0;
}

/* Variables and inputs of the graph follow what they meet; among themselves they are narrow. A
 * loop's state keeps the type that it begins with: the constant it begins with says nothing. */
static MtfDtype storage_type(const Pass *pass, const MtfOperation *op) {
    MtfDtype given = mtf_operation_storage_dtype(pass->from, op);
    MtfDtypeRule rule = row_of(op)->dtype;
    Census census = count_inputs(pass, op);
    if (given != MTF_F32 || rule == MTF_DTYPE_GIVEN)
        return given;
    if (row_of(op)->loop == MTF_LOOP_HANDS_ON)
        return mtf_graph_tensor(pass->b.graph, pass->tensors[op->inputs[0]])->dtype;
    if (row_of(op)->loop == MTF_LOOP_BEGINS && pass->wide[op->outputs[0]])
        return MTF_F32;
    if (row_of(op)->loop == MTF_LOOP_BEGINS && is_constant(pass->from, op->inputs[0]))
        return MTF_BF16;
    if (is_update(op))
        return rule != MTF_DTYPE_AS_INPUTS && census.narrow == census.inputs ? MTF_BF16 : MTF_F32;
    return census.narrow > 0 || census.results == 0 ? MTF_BF16 : MTF_F32;
}

static bool wants_wide_result(const Pass *pass, const MtfOperation *op) {
    return is_update(op) || pass->wide[op->outputs[0]];
}

/* ---- The new graph ------------------------------------------------------------------------- */

/* Copies of variables count as variables, of gradients as gradients, all others as activations. What
 * changes in a loop is converted in it, all else before. */
static void build_cast(Pass *pass, int t, MtfDtype dtype) {
    const MtfTensor *tensor = mtf_graph_tensor(pass->from, t);
    MtfMemoryKind memory =
        tensor->memory == MTF_MEMORY_INPUT ? MTF_MEMORY_ACTIVATION : tensor->memory;
    g_autofree char *name = g_strdup_printf("%s/%s", tensor->name, mtf_dtype_short_name(dtype));
    pass->b.has_dtype = true;
    pass->b.dtype = dtype;
    pass->b.layer = tensor->layer;
    pass->b.loop = mtf_tensor_loop(pass->from, pass->states, t);
    int cast = MTF_BUILD(&pass->b, MTF_OP_CAST, name, NULL, pass->tensors[t]);
    if (cast >= 0)
        mtf_graph_tensor(pass->b.graph, cast)->memory = memory;
    pass->casts[t] = cast;
}

/* The tensor in that type. */
static int fetch(Pass *pass, int t, MtfDtype dtype) {
    if (mtf_graph_tensor(pass->b.graph, pass->tensors[t])->dtype == dtype)
        return pass->tensors[t];
    if (pass->casts[t] < 0)
        build_cast(pass, t, dtype);
    return pass->casts[t];
}

static void fetch_inputs(Pass *pass, const MtfOperation *op, MtfDtype storage, int *inputs) {
    for (int k = 0; k < op->n_inputs; k++) {
        int t = op->inputs[k];
        bool wide = mtf_operation_mask_has(row_of(op)->wide_inputs, k);
        bool follows =
            row_of(op)->dtype != MTF_DTYPE_GIVEN && (wide || is_storage_input(pass, op, k));
        inputs[k] =
            follows ? fetch(pass, t, wide ? mtf_dtype_wide(storage) : storage) : pass->tensors[t];
    }
}

static void copy_operation(Pass *pass, const MtfOperation *op) {
    const MtfTensor *output = mtf_graph_tensor(pass->from, op->outputs[0]);
    MtfDtypeRule rule = row_of(op)->dtype;
    pass->b.phase = op->phase;
    pass->b.stage = 0; /* of casts: where they are read */
    pass->b.origin = MTF_ORIGIN_WRITTEN;
    pass->b.of = NULL;
    MtfDtype storage = storage_type(pass, op);
    g_autofree int *inputs = g_new(int, op->n_inputs + 1);
    fetch_inputs(pass, op, storage, inputs);
    pass->b.attributes = op->attributes;
    bool given = rule == MTF_DTYPE_GIVEN || output->dtype == MTF_BOOL;
    pass->b.has_dtype = given || rule == MTF_DTYPE_EITHER;
    pass->b.dtype = given                         ? output->dtype
                    : wants_wide_result(pass, op) ? mtf_dtype_wide(storage)
                                                  : storage;
    pass->b.stage = op->stage;
    pass->b.loop = op->loop;
    pass->b.layer = op->layer;
    pass->b.origin = op->origin;
    pass->b.of = op->of;
    int first = mtf_build(&pass->b, op->kind, op->name, &output->shape, op->n_inputs, inputs);
    if (first < 0)
        return;
    const MtfOperation *made =
        mtf_graph_operation(pass->b.graph, mtf_graph_tensor(pass->b.graph, first)->producer);
    for (int k = 0; k < op->n_outputs; k++) {
        pass->tensors[op->outputs[k]] = made->outputs[k];
        mtf_graph_tensor(pass->b.graph, made->outputs[k])->memory =
            mtf_graph_tensor(pass->from, op->outputs[k])->memory;
    }
}

static void copy_source(Pass *pass, int t) {
    const MtfTensor *tensor = mtf_graph_tensor(pass->from, t);
    if (tensor->source == MTF_SOURCE_INPUT)
        pass->tensors[t] = mtf_graph_add_input(pass->b.graph, tensor->name, &tensor->shape,
                                               tensor->dtype, tensor->feed, &pass->b.error);
    else if (tensor->source == MTF_SOURCE_VARIABLE)
        pass->tensors[t] = mtf_build_variable_like(&pass->b, tensor);
    if (tensor->source == MTF_SOURCE_VARIABLE && pass->narrow_variables &&
        tensor->dtype == MTF_F32 && pass->tensors[t] >= 0)
        mtf_graph_tensor(pass->b.graph, pass->tensors[t])->dtype = MTF_BF16;
}

/* An assigned value in the type of the variable. */
static int in_type_of(Pass *pass, int value, int variable) {
    MtfDtype dtype = mtf_graph_tensor(pass->b.graph, variable)->dtype;
    const MtfTensor *tensor = mtf_graph_tensor(pass->b.graph, value);
    if (tensor->dtype == dtype)
        return value;
    g_autofree char *name = g_strdup_printf("%s/wide", tensor->name);
    pass->b.phase = MTF_PHASE_UPDATE;
    pass->b.loop = 0;
    pass->b.has_dtype = true;
    pass->b.dtype = dtype;
    return MTF_BUILD(&pass->b, MTF_OP_CAST, name, NULL, value);
}

static void copy_graph(Pass *pass) {
    const MtfGraph *from = pass->from;
    mtf_build_frame(pass->b.graph, from);
    for (int t = 0; t < (int)from->tensors->len && pass->b.error == NULL; t++)
        copy_source(pass, t);
    for (int i = 0; i < (int)from->operations->len && pass->b.error == NULL; i++)
        copy_operation(pass, mtf_graph_operation(from, i));
    if (pass->b.error != NULL)
        return;
    for (guint i = 0; i < from->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(from->updates, MtfUpdate, i);
        mtf_graph_add_update(
            pass->b.graph, pass->tensors[update->variable],
            in_type_of(pass, pass->tensors[update->value], pass->tensors[update->variable]));
    }
    pass->b.graph->loss = from->loss < 0 ? -1 : pass->tensors[from->loss];
}

static MtfGraph *make_mixed(const MtfGraph *training, bool narrow_variables, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_graph_new_like(training);
    gsize n = training->tensors->len;
    g_autofree int *tensors = g_new(int, n + 1);
    g_autofree int *casts = g_new(int, n + 1);
    g_autofree bool *wide = g_new0(bool, n + 1);
    g_autofree int *states = mtf_graph_states(training);
    for (gsize t = 0; t < n; t++)
        tensors[t] = casts[t] = -1;
    Pass pass = { .from = training,
                  .b = mtf_builder(graph, MTF_PHASE_FORWARD),
                  .tensors = tensors,
                  .casts = casts,
                  .wide = wide,
                  .states = states,
                  .narrow_variables = narrow_variables };
    mark_wide(&pass);
    copy_graph(&pass);
    if (!mtf_builder_end(&pass.b, error) || !mtf_graph_gather_loops(graph, NULL, error))
        return NULL;
    mtf_graph_canonicalize(graph);
    return g_steal_pointer(&graph);
}

MtfGraph *mtf_mixed_precision(const MtfGraph *training, GError **error) {
    return make_mixed(training, false, error);
}

MtfGraph *mtf_narrow_precision(const MtfGraph *graph, GError **error) {
    return make_mixed(graph, true, error);
}
