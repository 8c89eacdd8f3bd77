// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/eager.h"

#include "layouts/graph/operation_table.h"

/* Operands that a mask has bits for. */
#define MARKED 32

/* What a tensor is made from; of several the last. */
typedef enum { FROM_NOTHING, FROM_VARIABLES, FROM_STATISTICS, FROM_DATA } Origin;

typedef struct {
    MtfGraph *graph;
    MtfConsumers *consumers;
    Origin *from; /* one a tensor */
    bool *wide;   /* likewise: kept in float32 */
    bool *cast;   /* likewise: a narrow copy of it was made */
} Eager;

static MtfKernelClass class_of(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->kernel_class;
}

/* Pools reduce windows: they are maps here. */
static bool reduces(const MtfOperation *op) {
    return class_of(op) == MTF_CLASS_REDUCTION && op->attributes.n_windows == 0;
}

static bool is_forward(const MtfOperation *op) {
    return op->phase == MTF_PHASE_FORWARD || op->origin == MTF_ORIGIN_CLONE;
}

static bool has_dimension(const MtfGraph *graph, int tensor, int dimension) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    for (int d = 0; d < shape->rank; d++)
        if (shape->dims[d] == dimension)
            return true;
    return false;
}

static bool is_product(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    return producer >= 0 && class_of(mtf_graph_operation(graph, producer)) == MTF_CLASS_MATMUL;
}

/* product + variable, of the product's type; the product's kernel adds it unless it has windows. */
static bool adds_bias(const Eager *eager, const MtfOperation *op, bool *inside) {
    *inside = false;
    if (class_of(op) != MTF_CLASS_ELEMENTWISE || op->n_inputs != 2)
        return false;
    int first = op->inputs[0], second = op->inputs[1];
    int product = eager->from[first] == FROM_DATA ? first : second;
    int other = product == first ? second : first;
    const MtfGraph *graph = eager->graph;
    if (eager->from[other] != FROM_VARIABLES || !is_product(graph, product))
        return false;
    int producer = mtf_graph_tensor(graph, product)->producer;
    *inside = mtf_graph_operation(graph, producer)->attributes.n_windows == 0;
    return true;
}

/* Whether an operation reads statistics; over rows where these know examples apart. */
static bool reads_statistics(const Eager *eager, const MtfOperation *op, bool *rows) {
    bool found = false;
    *rows = false;
    if (op->n_inputs == 0)
        return false;
    const MtfShape *shape = &mtf_graph_tensor(eager->graph, op->inputs[0])->shape;
    for (int k = 0; k < op->n_inputs; k++) {
        bool statistic = eager->from[op->inputs[k]] == FROM_STATISTICS;
        found |= statistic;
        *rows |= statistic && shape->rank > 0 &&
                 has_dimension(eager->graph, op->inputs[k], shape->dims[0]);
    }
    return found;
}

/* A map of data by its statistics, as a norm or a softmax is. */
static bool normalizes(const Eager *eager, const MtfOperation *op, bool *rows) {
    bool data = false;
    for (int k = 0; k < op->n_inputs; k++)
        data |= eager->from[op->inputs[k]] == FROM_DATA;
    return reads_statistics(eager, op, rows) && data && is_forward(op) &&
           class_of(op) == MTF_CLASS_ELEMENTWISE;
}

/* ---- Types, in the order of operations ----------------------------------------------------------- */

static Origin origin_of(const Eager *eager, const MtfOperation *op) {
    Origin from = FROM_NOTHING;
    for (int k = 0; k < op->n_inputs; k++)
        from = MAX(from, eager->from[op->inputs[k]]);
    if (class_of(op) == MTF_CLASS_MATMUL)
        return FROM_DATA;
    return reduces(op) ? MIN(from, FROM_STATISTICS) : from;
}

/* Whether a map's result is float32: one of its operands is, a parameter for one. */
static bool promotes(const Eager *eager, const MtfOperation *op, bool batch_norm) {
    for (int k = 0; k < op->n_inputs; k++) {
        Origin from = eager->from[op->inputs[k]];
        if ((from == FROM_DATA && eager->wide[op->inputs[k]]) ||
            (from == FROM_VARIABLES && !batch_norm))
            return true;
    }
    return false;
}

static bool is_wide_forward(const Eager *eager, const MtfOperation *op) {
    bool inside, rows, norm = normalizes(eager, op, &rows);
    switch (class_of(op)) {
    case MTF_CLASS_MATMUL:
        return false;
    case MTF_CLASS_GATHER:
        return true;
    default:
        return rows || (!adds_bias(eager, op, &inside) && promotes(eager, op, norm));
    }
}

/* The tensor whose gradient an operation gives, or -1. */
static int gradient_of(const Eager *eager, const MtfOperation *op) {
    return op->origin == MTF_ORIGIN_GRADIENT && op->of != NULL
               ? mtf_graph_find_tensor(eager->graph, op->of)
               : -1;
}

/* A gradient has its tensor's type, and so has one of the parts that are summed to it. */
static bool is_wide_backward(const Eager *eager, const MtfOperation *op) {
    int of = gradient_of(eager, op), output = op->outputs[0];
    for (int c = eager->consumers->starts[output];
         of < 0 && c < eager->consumers->starts[output + 1]; c++) {
        const MtfOperation *reader =
            mtf_graph_operation(eager->graph, eager->consumers->operations[c]);
        if (class_of(reader) != MTF_CLASS_MATMUL)
            of = gradient_of(eager, reader);
    }
    if (of >= 0)
        return eager->wide[of];
    return class_of(op) != MTF_CLASS_MATMUL && promotes(eager, op, true);
}

static void settle_types(const Eager *eager, const MtfOperation *op) {
    bool wide = is_forward(op) ? is_wide_forward(eager, op) : is_wide_backward(eager, op);
    for (int k = 0; k < op->n_outputs; k++) {
        eager->from[op->outputs[k]] = is_forward(op) ? origin_of(eager, op) : FROM_DATA;
        eager->wide[op->outputs[k]] = wide;
    }
}

static void settle_sources(const Eager *eager) {
    for (int i = 0; i < (int)eager->graph->tensors->len; i++) {
        const MtfTensor *tensor = mtf_graph_tensor(eager->graph, i);
        eager->from[i] = tensor->source == MTF_SOURCE_VARIABLE ? FROM_VARIABLES : FROM_DATA;
        eager->wide[i] = true;
    }
}

/* ---- Marks ----------------------------------------------------------------------------------------- */

static void skip_all(MtfOperation *op) {
    op->eager.joined = true;
    op->eager.skipped[0] = op->eager.skipped[1] = ~0U;
}

/* What else of an operation's pass reads the tensor: a norm, or a reduction before this operation. */
static void find_readers(const Eager *eager, const MtfOperation *op, int tensor, bool *norm,
                         bool *rows, bool *earlier) {
    *norm = *rows = *earlier = false;
    for (int c = eager->consumers->starts[tensor]; c < eager->consumers->starts[tensor + 1]; c++) {
        const MtfOperation *other =
            mtf_graph_operation(eager->graph, eager->consumers->operations[c]);
        bool over_rows;
        if (other->phase != op->phase)
            continue;
        if (normalizes(eager, other, &over_rows)) {
            *norm = true;
            *rows |= over_rows;
        }
        *earlier |= other < op && reduces(other);
    }
}

/* What reads float32, whatever is given. */
static void mark_float_rows(const Eager *eager, MtfOperation *op) {
    for (int k = 0; k < MIN(op->n_inputs, MARKED); k++)
        if (eager->from[op->inputs[k]] == FROM_DATA && !eager->wide[op->inputs[k]]) {
            op->eager.cast[0] |= 1U << k;
            op->eager.wide[0] |= 1U << k;
        }
}

/* Statistics belong to their norm's call, which reads rows once and a batch twice; those of a loss over
 * rows, which is float32, to the first of them. */
static void mark_reduction(const Eager *eager, MtfOperation *op) {
    bool norm, rows, earlier;
    if (eager->from[op->inputs[0]] != FROM_DATA) {
        skip_all(op);
        return;
    }
    find_readers(eager, op, op->inputs[0], &norm, &rows, &earlier);
    bool part = op->origin == MTF_ORIGIN_PART;
    op->eager.joined = op->eager.over_batch = norm;
    if (rows || ((norm || part) && earlier))
        skip_all(op);
    else if (part && !norm)
        mark_float_rows(eager, op);
}

/* Whether a product reads the copy of a variable; a norm takes the variable as it is. */
static bool is_multiplied(const Eager *eager, const MtfOperation *op) {
    int copy = op->outputs[0];
    for (int c = eager->consumers->starts[copy]; c < eager->consumers->starts[copy + 1]; c++) {
        const MtfOperation *reader =
            mtf_graph_operation(eager->graph, eager->consumers->operations[c]);
        bool inside;
        if (class_of(reader) == MTF_CLASS_MATMUL || adds_bias(eager, reader, &inside))
            return true;
    }
    return false;
}

static void mark_types(const Eager *eager, MtfOperation *op) {
    for (int k = 0; k < MIN(op->n_inputs, MARKED); k++)
        if (eager->wide[op->inputs[k]] && eager->from[op->inputs[k]] == FROM_DATA)
            op->eager.wide[0] |= 1U << k;
    for (int k = 0; k < op->n_outputs; k++)
        if (eager->wide[op->outputs[k]])
            op->eager.wide[1] |= 1U << k;
}

static void mark_forward(const Eager *eager, MtfOperation *op) {
    MtfKernelClass class = class_of(op);
    bool inside, rows, light = eager->from[op->outputs[0]] != FROM_DATA;
    bool copy = mtf_operation_row(op->kind)->converts && is_multiplied(eager, op);
    mark_types(eager, op);
    if (copy)
        op->eager.wide[1] = 0;
    if (class == MTF_CLASS_MATMUL)
        op->eager.cast[0] = op->eager.wide[0];
    else if (reduces(op))
        mark_reduction(eager, op);
    else if ((light && !copy) || (adds_bias(eager, op, &inside) && inside))
        skip_all(op);
    else if (normalizes(eager, op, &rows) && rows)
        mark_float_rows(eager, op);
    else
        op->eager.over_batch = normalizes(eager, op, &rows);
}

/* The forward operation that this one helps to pass a gradient on through, or -1. */
static int operation_behind(const Eager *eager, int operation) {
    const MtfOperation *op = operation >= 0 ? mtf_graph_operation(eager->graph, operation) : NULL;
    return op != NULL && op->origin == MTF_ORIGIN_BACKWARD && op->of != NULL
               ? mtf_graph_find_operation(eager->graph, op->of)
               : -1;
}

/* Whether all that the reader has from the backward pass is the gradient that came to the operation
 * `behind`, and what was prepared from it: no sum of several operations' gradients. */
static bool goes_on_alone(const Eager *eager, const MtfOperation *reader, int behind) {
    int result = mtf_graph_operation(eager->graph, behind)->outputs[0];
    for (int k = 0; k < reader->n_inputs; k++) {
        int producer = mtf_graph_tensor(eager->graph, reader->inputs[k])->producer;
        const MtfOperation *from =
            producer >= 0 ? mtf_graph_operation(eager->graph, producer) : NULL;
        if (from != NULL && !is_forward(from) && operation_behind(eager, producer) != behind &&
            gradient_of(eager, from) != result)
            return false;
    }
    return true;
}

/* The gradient of a map is one call: whether an operation only prepares something for it. */
static bool prepares_gradient(const Eager *eager, int operation) {
    int behind = operation_behind(eager, operation);
    int output = mtf_graph_operation(eager->graph, operation)->outputs[0];
    if (behind < 0 || class_of(mtf_graph_operation(eager->graph, behind)) == MTF_CLASS_MATMUL)
        return false;
    for (int c = eager->consumers->starts[output]; c < eager->consumers->starts[output + 1]; c++) {
        const MtfOperation *reader =
            mtf_graph_operation(eager->graph, eager->consumers->operations[c]);
        if (!goes_on_alone(eager, reader, behind))
            return false;
    }
    return true;
}

/* A gradient in float32 is narrowed for the products that read it, once. */
static void mark_gradient_products(const Eager *eager, MtfOperation *op) {
    op->eager.cast[1] = op->eager.wide[1];
    for (int k = 0; k < MIN(op->n_inputs, MARKED); k++) {
        int tensor = op->inputs[k], producer = mtf_graph_tensor(eager->graph, tensor)->producer;
        bool made_here = producer >= 0 && !is_forward(mtf_graph_operation(eager->graph, producer));
        if (!made_here || !eager->wide[tensor] || eager->cast[tensor])
            continue;
        eager->cast[tensor] = true;
        op->eager.cast[0] |= 1U << k;
    }
}

/* Gradients of a norm's parameters: its call reads what they read once more, for all of them. */
static void mark_parameter_gradient(const Eager *eager, MtfOperation *op) {
    int given = op->inputs[0];
    for (int c = eager->consumers->starts[given]; c < eager->consumers->starts[given + 1]; c++) {
        const MtfOperation *other =
            mtf_graph_operation(eager->graph, eager->consumers->operations[c]);
        if (other < op && !is_forward(other) && reduces(other))
            skip_all(op);
    }
}

/* What passes a norm over rows comes in float32, and is narrowed where its tensor is. */
static void mark_backward(const Eager *eager, MtfOperation *op) {
    bool rows, norm = reads_statistics(eager, op, &rows);
    if (prepares_gradient(eager, (int)(op - mtf_graph_operation(eager->graph, 0)))) {
        skip_all(op);
        return;
    }
    mark_types(eager, op);
    op->eager.over_batch = norm && !rows;
    if (class_of(op) == MTF_CLASS_MATMUL)
        mark_gradient_products(eager, op);
    else if (reduces(op))
        mark_parameter_gradient(eager, op);
    else if (norm && rows)
        op->eager.cast[1] = ~op->eager.wide[1] & 1;
}

void mtf_graph_mark_eager(MtfGraph *graph) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autofree Origin *from = g_new0(Origin, graph->tensors->len + 1);
    g_autofree bool *wide = g_new0(bool, graph->tensors->len + 1);
    g_autofree bool *cast = g_new0(bool, graph->tensors->len + 1);
    Eager eager = { graph, consumers, from, wide, cast };
    settle_sources(&eager);
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->phase <= MTF_PHASE_BACKWARD)
            settle_types(&eager, mtf_graph_operation(graph, i));
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        op->eager = (MtfEagerMarks){ .joined = false };
        if (op->phase > MTF_PHASE_BACKWARD || op->n_outputs == 0)
            continue;
        (is_forward(op) ? mark_forward : mark_backward)(&eager, op);
    }
}
