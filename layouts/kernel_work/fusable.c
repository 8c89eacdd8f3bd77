// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/fusable.h"

#include "layouts/graph/operation_table.h"
#include "layouts/kernel_work/eager.h"

/* Operands that a mask has bits for. */
#define MARKED 32

typedef struct {
    const MtfGraph *graph;
    MtfConsumers *consumers;
    int *products; /* one an operation: on the longest way to it, itself left out */
} Marking;

/* Of a loop's body: an index of what it reads, or a place for what it writes. */
static bool moves_in_loop(const MtfOperation *op) {
    return op->loop != 0 && mtf_operation_row(op->kind)->kernel_class == MTF_CLASS_MOVE;
}

static bool is_fusable(const MtfOperation *op) {
    MtfKernelClass class = mtf_operation_row(op->kind)->kernel_class;
    bool passes = class == MTF_CLASS_ELEMENTWISE || class == MTF_CLASS_REDUCTION;
    return (passes || moves_in_loop(op)) && op->phase <= MTF_PHASE_BACKWARD;
}

static bool copies_variable(const MtfGraph *graph, const MtfOperation *op) {
    return mtf_operation_row(op->kind)->converts &&
           mtf_graph_tensor(graph, op->inputs[0])->source == MTF_SOURCE_VARIABLE;
}

static int *count_products(const MtfGraph *graph) {
    int *products = g_new0(int, graph->operations->len + 1);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++) {
            int from = mtf_graph_tensor(graph, op->inputs[k])->producer;
            if (from < 0 || from >= i)
                continue;
            bool passes = mtf_operation_row(mtf_graph_operation(graph, from)->kind)->kernel_class !=
                          MTF_CLASS_MATMUL;
            products[i] = MAX(products[i], products[from] + (passes ? 0 : 1));
        }
    }
    return products;
}

static bool are_near(const Marking *marking, int a, int b) {
    const MtfOperation *first = mtf_graph_operation(marking->graph, a);
    const MtfOperation *second = mtf_graph_operation(marking->graph, b);
    return is_fusable(first) && is_fusable(second) && first->phase == second->phase &&
           first->stage == second->stage && first->loop == second->loop &&
           marking->products[a] == marking->products[b];
}

/* The operation that wrote what `tensor` is, wherever a loop's body moved it; -1 where none did, as a constant. */
static int written_by(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    while (producer >= 0 && moves_in_loop(mtf_graph_operation(graph, producer))) {
        const MtfOperation *op = mtf_graph_operation(graph, producer);
        producer = op->n_inputs > 0 ? mtf_graph_tensor(graph, op->inputs[0])->producer : -1;
    }
    return producer;
}

/* A neighbour wrote it, or reads it before this operation does. */
static bool is_near_input(const Marking *marking, int operation, int tensor) {
    int producer = written_by(marking->graph, tensor);
    if (producer >= 0 && are_near(marking, producer, operation))
        return true;
    for (int c = marking->consumers->starts[tensor]; c < marking->consumers->starts[tensor + 1];
         c++) {
        int other = marking->consumers->operations[c];
        if (other < operation && are_near(marking, other, operation))
            return true;
    }
    return false;
}

/* Neighbours read it, and none else of its phase. */
static bool is_near_output(const Marking *marking, int operation, int tensor) {
    const MtfOperation *op = mtf_graph_operation(marking->graph, operation);
    bool near = false;
    if (tensor == marking->graph->loss)
        return false;
    for (int c = marking->consumers->starts[tensor]; c < marking->consumers->starts[tensor + 1];
         c++) {
        int reader = marking->consumers->operations[c];
        bool reads = are_near(marking, operation, reader);
        if (!reads && mtf_graph_operation(marking->graph, reader)->phase == op->phase)
            return false;
        near |= reads;
    }
    return near;
}

static void mark_operation(const Marking *marking, int operation) {
    MtfOperation *op = mtf_graph_operation(marking->graph, operation);
    bool copy = copies_variable(marking->graph, op) || moves_in_loop(op);
    op->near_inputs = op->near_outputs = 0;
    if (!copy && !is_fusable(op))
        return;
    for (int k = 0; k < MIN(op->n_inputs, MARKED); k++)
        if (copy || is_near_input(marking, operation, op->inputs[k]))
            op->near_inputs |= 1U << k;
    for (int k = 0; k < op->n_outputs; k++)
        if (copy || is_near_output(marking, operation, op->outputs[k]))
            op->near_outputs |= 1U << k;
}

/* Names of the operations that have clones; none where no product has one, since then single
 * operations are recomputed and no layers. */
static GHashTable *find_cloned(const MtfGraph *graph) {
    GHashTable *cloned = g_hash_table_new(g_str_hash, g_str_equal);
    bool products = false;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->origin != MTF_ORIGIN_CLONE || op->of == NULL)
            continue;
        g_hash_table_add(cloned, op->of);
        products |= mtf_operation_row(op->kind)->kernel_class == MTF_CLASS_MATMUL;
    }
    if (!products)
        g_hash_table_remove_all(cloned);
    return cloned;
}

static void mark_redone(MtfGraph *graph) {
    g_autoptr(GHashTable) cloned = find_cloned(graph);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        op->near_redone = false;
        bool forward = op->phase == MTF_PHASE_FORWARD && !g_hash_table_contains(cloned, op->name);
        for (int k = 0; forward && k < op->n_inputs; k++) {
            int from = mtf_graph_tensor(graph, op->inputs[k])->producer;
            op->near_redone |=
                from >= 0 && g_hash_table_contains(cloned, mtf_graph_operation(graph, from)->name);
        }
    }
}

/* By tensor whether a variable is among what it is made of. Free with g_free. */
static bool *find_learned(const MtfGraph *graph) {
    bool *learned = g_new0(bool, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        learned[t] = mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool any = false;
        for (int k = 0; k < op->n_inputs; k++)
            any |= op->inputs[k] >= 0 && learned[op->inputs[k]];
        for (int k = 0; k < op->n_outputs; k++)
            learned[op->outputs[k]] |= any;
    }
    return learned;
}

static bool attends(const MtfOperation *op, bool back) {
    MtfProductsKind products = mtf_operation_row(op->kind)->products;
    return products == MTF_PRODUCTS_ATTENTION || (back && products == MTF_PRODUCTS_ATTENTION_GRAD);
}

/* Attention adds to its scores what it reads beyond the operands that it must have. */
static void mark_biased(MtfGraph *graph) {
    g_autofree bool *learned = find_learned(graph);
    bool biased = false;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = mtf_operation_row(op->kind)->min_inputs; k < op->n_inputs; k++)
            biased |= attends(op, false) && learned[op->inputs[k]];
    }
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        op->near_biased = biased && attends(op, true);
    }
}

MtfFramework mtf_framework_of_profile(const cJSON *software) {
    const cJSON *kept = cJSON_GetObjectItemCaseSensitive(software, "kept_bytes");
    const cJSON *logits = cJSON_GetObjectItemCaseSensitive(kept, "logits");
    return (MtfFramework){
        .eager = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(software, "eager")),
        .logit_bytes = cJSON_IsNumber(logits) ? logits->valuedouble : 0,
    };
}

void mtf_graph_mark_near(MtfGraph *graph, MtfFramework framework) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autofree int *products = count_products(graph);
    Marking marking = { graph, consumers, products };
    for (int i = 0; i < (int)graph->operations->len; i++)
        mark_operation(&marking, i);
    mark_redone(graph);
    mark_biased(graph);
    graph->logit_bytes = framework.logit_bytes;
    if (framework.eager)
        mtf_graph_mark_eager(graph);
}
