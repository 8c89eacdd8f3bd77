// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/accumulation.h"

#include "layouts/base/error.h"
#include "layouts/building/builder.h"
#include "layouts/execution/batch_terms.h"
#include "layouts/graph/microbatches.h"

#include <stdlib.h>

/* Where an operation goes: before, at or behind the place of one that was there, ties in the order
 * in which they were made. */
enum { BEFORE, AT, BEHIND, SIDES };

typedef struct {
    int place, operation;
} Place;

typedef struct {
    MtfBuilder b;
    int tensors, operations; /* of the graph as it was */
    const MtfBatchClass *classes;
    const MtfConsumers *consumers; /* as they were */
    int division;                  /* that makes the loss a weighted mean, or -1 */
    int *now;                      /* of a tensor: what is read once a step in its place */
    GArray *places;                /* Place, of all that is kept or made */
} Accumulation;

static bool runs_once(const MtfOperation *op) {
    return op->phase > MTF_PHASE_BACKWARD;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static void put(Accumulation *a, int side, int anchor, int operation) {
    Place place = { anchor * SIDES + side, operation };
    g_array_append_val(a->places, place);
}

/* Puts what was made since there were `from` operations. */
static void put_made(Accumulation *a, int from, int side, int anchor) {
    for (int i = from; i < (int)a->b.graph->operations->len; i++)
        put(a, side, anchor, i);
}

static int compare_places(const void *left, const void *right) {
    const Place *a = left, *b = right;
    return a->place != b->place ? a->place - b->place : a->operation - b->operation;
}

static void arrange(Accumulation *a) {
    int n = (int)a->places->len;
    g_autofree int *order = g_new(int, n + 1);
    qsort(a->places->data, (size_t)n, sizeof(Place), compare_places);
    for (int i = 0; i < n; i++)
        order[i] = g_array_index(a->places, Place, i).operation;
    mtf_graph_arrange(a->b.graph, order, n);
}

/* The operation, or the last of the loop that it belongs to: in its midst the loop would run as two. */
static int last_of_loop(const Accumulation *a, int operation) {
    int loop = mtf_graph_operation(a->b.graph, operation)->loop;
    while (loop > 0 && operation + 1 < a->operations &&
           mtf_graph_operation(a->b.graph, operation + 1)->loop == loop)
        operation++;
    return operation;
}

/* The first of what is run once a step that reads the tensor, or -1. */
static int first_reader(const Accumulation *a, int tensor) {
    for (int c = a->consumers->starts[tensor]; c < a->consumers->starts[tensor + 1]; c++)
        if (runs_once(mtf_graph_operation(a->b.graph, a->consumers->operations[c])))
            return a->consumers->operations[c];
    return -1;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static MtfTensor *tensor_of(const Accumulation *a, int tensor) {
    return mtf_graph_tensor(a->b.graph, tensor);
}

static MtfOperation *maker_of(const Accumulation *a, int tensor) {
    return mtf_graph_operation(a->b.graph, tensor_of(a, tensor)->producer);
}

/* What is built next is of the stage and layer of a tensor. */
static void begin_like(Accumulation *a, int tensor, MtfPhase phase) {
    a->b.phase = phase;
    a->b.stage = maker_of(a, tensor)->stage;
    a->b.layer = tensor_of(a, tensor)->layer;
}

/* step/NAME, behind the forward pass. */
static int sum_of_term(Accumulation *a, int tensor) {
    g_autofree char *of = g_strdup(tensor_of(a, tensor)->name);
    g_autofree char *name = g_strdup_printf("step/%s", of);
    int sum = MTF_BUILD(&a->b, MTF_OP_ACCUMULATE, name, NULL, tensor);
    if (sum >= 0)
        mtf_graph_set_origin(a->b.graph, sum, MTF_ORIGIN_ACCUMULATION, of);
    return sum;
}

/* The mean over micro-batches of what each of them gives. */
static int mean_of_statistic(Accumulation *a, int tensor) {
    g_autofree char *name = g_strdup_printf("share/%s", tensor_of(a, tensor)->name);
    a->b.attributes.factor = 1.0 / mtf_graph_microbatches(a->b.graph);
    int share = MTF_BUILD(&a->b, MTF_OP_SCALE, name, NULL, tensor);
    return share < 0 ? -1 : sum_of_term(a, share);
}

static int last_of_forward(const Accumulation *a) {
    int last = a->operations - 1;
    while (mtf_graph_operation(a->b.graph, last)->phase != MTF_PHASE_FORWARD)
        last--;
    return last;
}

static bool is_wanted(const Accumulation *a, int tensor) {
    const MtfOperation *loss = maker_of(a, a->b.graph->loss);
    bool divided = a->division >= 0 && (tensor == loss->inputs[0] || tensor == loss->inputs[1]);
    return divided || tensor == a->b.graph->loss || first_reader(a, tensor) >= 0;
}

/* What the forward pass leaves for once a step: the loss and what variables are assigned. */
static void sum_forward(Accumulation *a, int tensor) {
    MtfBatchClass class = a->classes[tensor];
    if (!is_wanted(a, tensor) || (class != MTF_BATCH_STATISTIC && class != MTF_BATCH_TERM))
        return;
    begin_like(a, tensor, MTF_PHASE_FORWARD);
    a->now[tensor] =
        class == MTF_BATCH_TERM ? sum_of_term(a, tensor) : mean_of_statistic(a, tensor);
}

/* part/W, of one micro-batch, and its sum, which is the gradient of W from now on. Of stages that
 * share W each has its own, which is the gradient of nothing yet. */
static void sum_gradient(Accumulation *a, int tensor) {
    MtfGraph *graph = a->b.graph;
    int variable = mtf_graph_gradient_of(graph, tensor);
    g_autofree char *name = g_strdup(tensor_of(a, tensor)->name);
    g_autofree char *of = g_strdup(tensor_of(a, variable >= 0 ? variable : tensor)->name);
    g_autofree char *part = g_strdup_printf("part/%s", of), *sum = g_strdup_printf("sum/%s", of);
    bool divided = variable >= 0 && a->division >= 0;
    mtf_build_rename(&a->b, tensor, part);
    mtf_graph_set_origin(graph, tensor, MTF_ORIGIN_WRITTEN, NULL);
    tensor_of(a, tensor)->memory = MTF_MEMORY_ACTIVATION;
    begin_like(a, tensor, MTF_PHASE_BACKWARD);
    int total = MTF_BUILD(&a->b, MTF_OP_ACCUMULATE, divided ? sum : name, NULL, tensor);
    if (total < 0)
        return;
    tensor_of(a, total)->memory = MTF_MEMORY_GRADIENT;
    if (variable >= 0 && !divided)
        mtf_graph_set_origin(graph, total, MTF_ORIGIN_GRADIENT, of);
    a->now[tensor] = total;
}

static bool is_gradient(const Accumulation *a, int tensor) {
    const MtfOperation *maker = maker_of(a, tensor);
    return tensor_of(a, tensor)->memory == MTF_MEMORY_GRADIENT &&
           maker->phase == MTF_PHASE_BACKWARD && maker->outputs[0] == tensor;
}

/* Sums stand behind what they are of, those of the forward pass behind all of it. */
static void sum_all(Accumulation *a) {
    int forward = last_of_forward(a);
    for (int t = 0; t < a->tensors && a->b.error == NULL; t++) {
        int producer = tensor_of(a, t)->producer, from = (int)a->b.graph->operations->len;
        if (producer < 0)
            continue;
        bool gradient = is_gradient(a, t);
        if (gradient)
            sum_gradient(a, t);
        else if (mtf_graph_operation(a->b.graph, producer)->phase == MTF_PHASE_FORWARD)
            sum_forward(a, t);
        put_made(a, from, BEHIND, gradient ? last_of_loop(a, producer) : forward);
    }
}

/* A sum in the type that what it is of has: sums are wide. */
static int rounded(Accumulation *a, int sum, MtfDtype dtype) {
    if (sum < 0 || tensor_of(a, sum)->dtype == dtype)
        return sum;
    g_autofree char *name =
        g_strdup_printf("%s/%s", tensor_of(a, sum)->name, mtf_dtype_short_name(dtype));
    a->b.has_dtype = true;
    a->b.dtype = dtype;
    int cast = MTF_BUILD(&a->b, MTF_OP_CAST, name, NULL, sum);
    if (cast >= 0)
        tensor_of(a, cast)->memory = tensor_of(a, sum)->memory;
    return cast;
}

static bool is_sum(const Accumulation *a, int tensor) {
    int producer = tensor_of(a, tensor)->producer;
    return producer >= a->operations && mtf_operation_accumulates(a->b.graph, producer);
}

/* Before the first that reads it. */
static void round_sums(Accumulation *a) {
    for (int t = 0; t < a->tensors && a->b.error == NULL; t++) {
        int reader = first_reader(a, t), from = (int)a->b.graph->operations->len;
        if (!is_sum(a, a->now[t]) || reader < 0)
            continue;
        begin_like(a, a->now[t], mtf_graph_operation(a->b.graph, reader)->phase);
        a->now[t] = rounded(a, a->now[t], tensor_of(a, t)->dtype);
        put_made(a, from, BEFORE, reader);
    }
}

/* ---- Weighted means -------------------------------------------------------------------------- */

/* What divides the gradient of the quotient by the sum of weights, for its dividend; or -1. */
static int find_division_back(const Accumulation *a, int weights) {
    const MtfGraph *graph = a->b.graph;
    for (int i = 0; i < a->operations; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->phase == MTF_PHASE_BACKWARD && mtf_operation_row(op->kind)->ratio &&
            op->inputs[1] == weights && mtf_graph_gradient_of(graph, op->inputs[0]) == graph->loss)
            return i;
    }
    return -1;
}

static void read_instead(MtfGraph *graph, int tensor, int other) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            op->inputs[k] = op->inputs[k] == tensor ? other : op->inputs[k];
    }
}

/* The loss is divided once a step, and the backward pass begins with its dividend. Returns the operation that
 * has nothing to do then, or -1. */
static int divide_loss(Accumulation *a) {
    MtfOperation *division = mtf_graph_operation(a->b.graph, a->division);
    int back = find_division_back(a, division->inputs[1]);
    if (back >= 0) {
        const MtfOperation *op = mtf_graph_operation(a->b.graph, back);
        read_instead(a->b.graph, op->outputs[0], op->inputs[0]);
    }
    division->phase = MTF_PHASE_CLIP;
    for (int k = 0; k < division->n_inputs; k++)
        division->inputs[k] = a->now[division->inputs[k]];
    return back;
}

/* The share of one weight. */
static int share_of_weight(Accumulation *a, int weights) {
    begin_like(a, weights, MTF_PHASE_CLIP);
    int one = mtf_build_constant(&a->b, "step/one", tensor_of(a, a->b.graph->loss)->dtype, 1);
    return MTF_BUILD(&a->b, MTF_OP_DIVIDE, "step/share", NULL, one, weights);
}

/* sum/W becomes grad/W = sum/W times the share of one weight, in the loss's type, which sums have, too. */
static void divide_gradient(Accumulation *a, int variable, int gradient, int share) {
    MtfGraph *graph = a->b.graph;
    g_autofree char *of = g_strdup(tensor_of(a, variable)->name);
    g_autofree char *sum = g_strdup_printf("sum/%s", of), *name = g_strdup_printf("grad/%s", of);
    MtfShape shape = tensor_of(a, gradient)->shape;
    begin_like(a, gradient, MTF_PHASE_CLIP);
    if (a->now[gradient] == gradient) {
        mtf_build_rename(&a->b, gradient, sum);
        mtf_graph_set_origin(graph, gradient, MTF_ORIGIN_WRITTEN, NULL);
    }
    int total = rounded(a, a->now[gradient], tensor_of(a, share)->dtype);
    a->b.layer = tensor_of(a, variable)->layer;
    int quotient = MTF_BUILD(&a->b, MTF_OP_MULTIPLY, name, &shape, total, share);
    if (quotient < 0)
        return;
    tensor_of(a, quotient)->memory = MTF_MEMORY_GRADIENT;
    mtf_graph_set_origin(graph, quotient, MTF_ORIGIN_GRADIENT, of);
    a->now[gradient] = rounded(a, quotient, tensor_of(a, gradient)->dtype);
}

/* The first operation that runs once a step but for those that add what stages give. */
static int first_behind_sums(const Accumulation *a) {
    int i = 0;
    for (; i < a->operations; i++) {
        const MtfOperation *op = mtf_graph_operation(a->b.graph, i);
        if (runs_once(op) && mtf_graph_gradient_of(a->b.graph, op->outputs[0]) < 0)
            break;
    }
    return i;
}

/* Returns the operation that is dropped, or -1. `gradients` are those of variables. */
static int divide(Accumulation *a, const int *gradients) {
    int behind = first_behind_sums(a), from = (int)a->b.graph->operations->len;
    int weights = a->now[mtf_graph_operation(a->b.graph, a->division)->inputs[1]];
    int back = divide_loss(a), share = share_of_weight(a, weights);
    put(a, BEFORE, behind, a->division);
    put_made(a, from, BEFORE, behind);
    /* Of stages that share a variable the sum may stand behind what another gradient is read by. */
    for (int t = 0; t < a->tensors && a->b.error == NULL; t++) {
        if (gradients[t] < 0)
            continue;
        int reader = first_reader(a, gradients[t]);
        from = (int)a->b.graph->operations->len;
        divide_gradient(a, t, gradients[t], share);
        put_made(a, from, reader < 0 ? BEHIND : BEFORE, reader < 0 ? a->operations - 1 : reader);
    }
    return back;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Whether results follow from inputs, and so differ from one micro-batch to the next; free with g_free. */
static bool *find_varying(const MtfGraph *graph) {
    bool *varying = g_new0(bool, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        varying[t] = mtf_graph_tensor(graph, t)->source == MTF_SOURCE_INPUT;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool varies = false;
        for (int k = 0; k < op->n_inputs; k++)
            varies |= varying[op->inputs[k]];
        for (int k = 0; k < op->n_outputs; k++)
            varying[op->outputs[k]] = varies;
    }
    return varying;
}

/* Of the backward pass gradients alone are summed: what else it leaves to once a step would be the last
 * micro-batch's. */
static bool check_backward(const Accumulation *a, GError **error) {
    const MtfGraph *graph = a->b.graph;
    g_autofree bool *varying = find_varying(graph);
    for (int t = 0; t < a->tensors; t++) {
        int producer = tensor_of(a, t)->producer, reader = first_reader(a, t);
        if (producer < 0 || reader < 0 || !varying[t] || is_gradient(a, t) ||
            mtf_graph_operation(graph, producer)->phase != MTF_PHASE_BACKWARD)
            continue;
        return mtf_input_error(error,
                               "operation \"%s\" runs once a step and reads \"%s\" of the backward "
                               "pass, whose \"memory_kind\" does not say \"gradients\": what "
                               "micro-batches give of it is not summed",
                               mtf_graph_operation(graph, reader)->name, tensor_of(a, t)->name);
    }
    return true;
}

/* What variables become is worked out once a step. */
static bool check_updates(const MtfGraph *graph, GError **error) {
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        const MtfTensor *value = mtf_graph_tensor(graph, update->value);
        if (value->producer < 0 || !runs_once(mtf_graph_operation(graph, value->producer)))
            return mtf_input_error(error,
                                   "variable \"%s\" becomes \"%s\", which every micro-batch has "
                                   "anew, and not what an operation of phase \"update\" makes",
                                   mtf_graph_tensor(graph, update->variable)->name, value->name);
    }
    return true;
}

/* A mean by weights is divided when nothing of a micro-batch can read it any more. */
static bool check_quotient(const Accumulation *a, GError **error) {
    const MtfGraph *graph = a->b.graph;
    int first = a->consumers->starts[graph->loss];
    if (a->division < 0 || first == a->consumers->starts[graph->loss + 1])
        return true;
    const MtfOperation *reader = mtf_graph_operation(graph, a->consumers->operations[first]);
    return runs_once(reader) ||
           mtf_input_error(error,
                           "operation \"%s\" reads the loss \"%s\", a mean by weights, which is "
                           "divided once a step: one micro-batch has none",
                           reader->name, mtf_graph_tensor(graph, graph->loss)->name);
}

/* For each variable its gradient, or -1. */
static int *find_gradients(const MtfGraph *graph) {
    int *gradients = g_new(int, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        gradients[t] = -1;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        int made = mtf_graph_operation(graph, i)->outputs[0];
        int of = mtf_graph_gradient_of(graph, made);
        if (of >= 0 && mtf_graph_tensor(graph, of)->source == MTF_SOURCE_VARIABLE)
            gradients[of] = made;
    }
    return gradients;
}

static void read_sums(Accumulation *a) {
    for (int i = 0; i < a->operations; i++) {
        MtfOperation *op = mtf_graph_operation(a->b.graph, i);
        for (int k = 0; runs_once(op) && k < op->n_inputs; k++)
            if (op->inputs[k] < a->tensors)
                op->inputs[k] = a->now[op->inputs[k]];
    }
}

static void keep_all_but(Accumulation *a, int dropped) {
    for (int i = 0; i < a->operations; i++)
        if (i != a->division && i != dropped)
            put(a, AT, i, i);
}

static bool accumulate(Accumulation *a, GError **error) {
    MtfGraph *graph = a->b.graph;
    g_autofree int *gradients = find_gradients(graph);
    sum_all(a);
    int dropped = a->division < 0 || a->b.error != NULL ? -1 : divide(a, gradients);
    round_sums(a);
    if (!mtf_builder_end(&a->b, error))
        return false;
    read_sums(a);
    if (a->division < 0)
        graph->loss = a->now[graph->loss];
    keep_all_but(a, dropped);
    arrange(a);
    return true;
}

/* Whether the operation takes means over the examples of a micro-batch alone. */
static bool averages_part(const MtfGraph *graph, int operation, int batch) {
    const MtfOperation *op = operation < 0 ? NULL : mtf_graph_operation(graph, operation);
    return op != NULL && op->attributes.per_microbatch != 0 &&
           mtf_shape_find(mtf_operation_operand_shape(graph, op, 0), batch) >= 0 &&
           mtf_shape_find(mtf_operation_operand_shape(graph, op, MTF_OUTPUT), batch) < 0;
}

/* The gradient of such a mean is a share of 1/n, of as many examples as there are. */
static void share_parts(MtfGraph *graph, int batch) {
    if (!mtf_graph_has_batch_statistics(graph))
        return;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->origin == MTF_ORIGIN_BACKWARD &&
            averages_part(graph, mtf_graph_find_operation(graph, op->of), batch))
            op->attributes.factor *= mtf_graph_microbatches(graph);
    }
}

static bool check_sums(const MtfGraph *graph, GError **error) {
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_operation_accumulates(graph, i))
            return mtf_input_error(error,
                                   "operation \"%s\" adds up over micro-batches, which the graph "
                                   "of a whole step does not do by itself",
                                   mtf_graph_operation(graph, i)->name);
    return true;
}

bool mtf_graph_accumulate(MtfGraph *graph, GError **error) {
    int batch = mtf_graph_batch(graph), division;
    if (batch < 0)
        return true;
    if (!mtf_batch_check_positions(graph, batch, error) || !check_sums(graph, error))
        return false;
    if (graph->loss < 0)
        return true;
    g_autofree MtfBatchClass *classes = mtf_batch_classes(graph, batch, &division, error);
    if (classes == NULL)
        return false;
    share_parts(graph, batch);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(Place));
    g_autofree int *now = g_new(int, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        now[t] = t;
    Accumulation a = { .b = mtf_builder(graph, MTF_PHASE_FORWARD),
                       .tensors = (int)graph->tensors->len,
                       .operations = (int)graph->operations->len,
                       .classes = classes,
                       .consumers = consumers,
                       .division = division,
                       .now = now,
                       .places = places };
    return check_updates(graph, error) && check_quotient(&a, error) && check_backward(&a, error) &&
           accumulate(&a, error);
}
