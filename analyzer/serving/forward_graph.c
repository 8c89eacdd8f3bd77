// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/forward_graph.h"

#include "analyzer/training/live_graph.h"
#include "layouts/base/error.h"
#include "layouts/graph/loops.h"

/* The input, from 1, that stands for an operation where nothing is learned; 0: it is computed there, too. */
static const int stand_ins[MTF_OPERATIONS] = {
    [MTF_OP_DROPOUT] = 1, [MTF_OP_STOP_GRADIENT] = 1, [MTF_OP_IN_TRAIN_PHASE] = 2
};

/* ---- What the graph is run for ----------------------------------------------------------------- */

static bool is_answer(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_INPUT &&
           (tensor->feed == MTF_FEED_LABELS || tensor->feed == MTF_FEED_NEXT_TOKENS ||
            tensor->feed == MTF_FEED_TARGETS);
}

/* Which tensors follow from answers: MIXED, from other inputs as well. */
typedef enum { NOT_ANSWERS, ANSWERS, MIXED } Following;

/* What an operation's results follow from. Variables and constants tell nothing of an example. */
static Following follow(const MtfGraph *graph, const MtfOperation *op, const Following *of) {
    bool answers = false, others = false;
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, op->inputs[k]);
        answers |= of[op->inputs[k]] != NOT_ANSWERS;
        others |= of[op->inputs[k]] != ANSWERS && tensor->source != MTF_SOURCE_VARIABLE;
    }
    return !answers ? NOT_ANSWERS : others ? MIXED : ANSWERS;
}

/* By tensor; free with g_free. */
static Following *follow_answers(const MtfGraph *graph) {
    Following *of = g_new0(Following, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (is_answer(mtf_graph_tensor(graph, t)))
            of[t] = ANSWERS;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        for (int k = 0; k < op->n_outputs; k++)
            of[op->outputs[k]] = follow(graph, op, of);
    }
    return of;
}

/* Whether an operation compares scores of classes with the right ones, an input. */
static bool scores_classes(const MtfGraph *graph, const MtfOperation *op) {
    const MtfTensor *scores = mtf_graph_tensor(graph, op->inputs[0]);
    const MtfTensor *classes = op->n_inputs > 1 ? mtf_graph_tensor(graph, op->inputs[1]) : scores;
    bool within = classes->shape.rank + 1 == scores->shape.rank;
    for (int i = 0; within && i < classes->shape.rank; i++)
        within = mtf_shape_find(&scores->shape, classes->shape.dims[i]) >= 0;
    return within && scores->producer >= 0 && classes->source == MTF_SOURCE_INPUT &&
           mtf_dtype_is_integer(classes->dtype);
}

/* What is compared with answers. */
static void mark_compared(const MtfGraph *graph, const Following *of, bool *results) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        bool compares = false;
        for (int k = 0; k < op->n_inputs; k++)
            compares |= of[op->inputs[k]] == ANSWERS;
        int n = op->n_inputs > 0 && scores_classes(graph, op) ? 1 : op->n_inputs;
        for (int k = 0; compares && k < n; k++)
            results[op->inputs[k]] |= of[op->inputs[k]] == NOT_ANSWERS &&
                                      mtf_graph_tensor(graph, op->inputs[k])->producer >= 0;
    }
}

/* Scores of what the graph reads itself, as of hidden words; else the loss. */
static void mark_scores(const MtfGraph *graph, bool *results) {
    bool any = false;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        bool scores = op->n_inputs > 0 && scores_classes(graph, op);
        if (scores)
            results[op->inputs[0]] = any = true;
    }
    results[graph->loss] = !any;
}

/* By tensor, whether an operation reads it; free with g_free. */
static bool *find_read(const MtfGraph *graph) {
    bool *read = g_new0(bool, graph->tensors->len + 1);
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        for (int k = 0; k < op->n_inputs; k++)
            read[op->inputs[k]] = true;
    }
    return read;
}

/* The results of operations none of whose results is read; not those of single iterations. */
static void mark_unread(const MtfGraph *graph, bool *results) {
    g_autofree bool *read = find_read(graph);
    g_autofree int *states = mtf_graph_states(graph);
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        bool any = false;
        for (int k = 0; k < op->n_outputs; k++)
            any |= read[op->outputs[k]];
        for (int k = 0; k < op->n_outputs; k++)
            results[op->outputs[k]] |= !any && mtf_tensor_loop(graph, states, op->outputs[k]) == 0;
    }
}

/* The tensors (int); the caller frees it with g_array_unref. */
static GArray *find_results(const MtfGraph *graph) {
    GArray *found = mtf_graph_outputs(graph);
    if (found->len > 0)
        return found;
    g_autofree bool *results = g_new0(bool, graph->tensors->len + 1);
    g_autofree Following *of = follow_answers(graph);
    if (graph->loss < 0)
        mark_unread(graph, results);
    else if (of[graph->loss] == NOT_ANSWERS)
        mark_scores(graph, results);
    else
        mark_compared(graph, of, results);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (results[t])
            g_array_append_val(found, t);
    return found;
}

/* ---- The graph ----------------------------------------------------------------------------------- */

/* The tensor that a reader of `tensor` reads where nothing is learned. */
static int untrained(const MtfGraph *graph, int tensor) {
    for (;;) {
        int producer = mtf_graph_tensor(graph, tensor)->producer;
        const MtfOperation *op = producer < 0 ? NULL : mtf_graph_operation(graph, producer);
        if (op == NULL || stand_ins[op->kind] == 0)
            return tensor;
        tensor = op->inputs[stand_ins[op->kind] - 1];
    }
}

/* What stands in must look like what it stands for. */
static bool check_stand_in(const MtfGraph *graph, const MtfOperation *op, GError **error) {
    int which = stand_ins[op->kind] - 1;
    const MtfTensor *other = which < 0 ? NULL : mtf_graph_tensor(graph, op->inputs[which]);
    return which < 0 ||
           mtf_shape_equal(&other->shape, &mtf_graph_tensor(graph, op->outputs[0])->shape) ||
           mtf_input_error(error,
                           "operation \"%s\": \"%s\" must have its dimensions in their order "
                           "to stand for it where nothing is learned",
                           op->name, other->name);
}

static bool leave_training(MtfGraph *graph, GError **error) {
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (!check_stand_in(graph, mtf_graph_operation(graph, o), error))
            return false;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        MtfOperation *op = mtf_graph_operation(graph, o);
        op->attributes.rate = 0; /* which attention drops */
        for (int k = 0; k < op->n_inputs; k++)
            op->inputs[k] = untrained(graph, op->inputs[k]);
        if (stand_ins[op->kind] > 0) /* what it is, should it be a result itself */
            op->inputs[0] = op->inputs[stand_ins[op->kind] - 1];
    }
    graph->loss = -1;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        mtf_graph_tensor(graph, t)->output = 0;
    g_array_set_size(graph->updates, 0);
    g_clear_pointer(&graph->optimizer.kind, g_free);
    return true;
}

/* A value that an operation makes goes to one variable. */
static bool may_be_kept(const MtfGraph *graph, int value) {
    bool made = mtf_graph_tensor(graph, value)->producer >= 0;
    for (guint i = 0; made && i < graph->updates->len; i++)
        made = g_array_index(graph->updates, MtfUpdate, i).value != value;
    return made;
}

/* A variable that takes what `tensor` is: what stands in for it, or the operation that makes the same. */
static bool keep_result(MtfGraph *graph, int tensor, GError **error) {
    int value = untrained(graph, tensor);
    if (!may_be_kept(graph, value))
        value = tensor;
    const MtfTensor *result = mtf_graph_tensor(graph, tensor);
    g_autofree char *name = g_strconcat(result->name, "/result", NULL);
    MtfShape shape = result->shape;
    int kept = mtf_graph_add_variable(graph, name, &shape, result->dtype,
                                      (MtfInit){ MTF_INIT_CONSTANT, 0 }, MTF_MEMORY_OUTPUT, error);
    if (kept >= 0)
        mtf_graph_add_update(graph, kept, value);
    return kept >= 0;
}

/* What nobody is asked for: the answers. */
static void drop_unread_inputs(MtfGraph *graph) {
    g_autofree bool *read = find_read(graph);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_INPUT && !read[t])
            mtf_graph_drop_variable(graph, t);
    mtf_graph_canonicalize(graph);
}

MtfGraph *mtf_forward_graph(const MtfGraph *written, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_graph_copy(written);
    if (mtf_graph_is_training(written)) {
        mtf_input_error(error,
                        "%s: it is a graph of training already: --infer forward wants the "
                        "one that it was made from",
                        written->name);
        return NULL;
    }
    g_autoptr(GArray) results = find_results(graph);
    if (!leave_training(graph, error))
        return NULL;
    for (guint i = 0; i < results->len; i++)
        if (!keep_result(graph, g_array_index(results, int, i), error))
            return NULL;
    if (graph->updates->len == 0) {
        mtf_input_error(error,
                        "%s: none of its operations makes anything without labels, next "
                        "tokens or targets, so there is nothing to run forward",
                        graph->name);
        return NULL;
    }
    mtf_graph_keep_needed(graph);
    drop_unread_inputs(graph);
    return g_steal_pointer(&graph);
}
