// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/differentiate.h"

#include "analyzer/training/gradient_table.h"
#include "analyzer/training/loop_gradient.h"
#include "layouts/base/error.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/stage_split.h"

#include <string.h>

static bool is_trained(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE &&
           !tensor->frozen && mtf_dtype_is_float(tensor->dtype);
}

static bool any_input_wanted(const Differentiation *d, const MtfOperation *operation) {
    if (mtf_gradient_row(operation->kind)->state == MTF_GRADIENT_ZERO)
        return false;
    for (int k = 0; k < operation->n_inputs; k++)
        if (d->wanted[operation->inputs[k]])
            return true;
    return false;
}

static void mark_tensors(Differentiation *d, const bool *forced) {
    for (int t = 0; t < d->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(d->b.graph, t);
        if (tensor->source != MTF_SOURCE_OPERATION)
            d->wanted[t] = is_trained(tensor);
        else if (mtf_dtype_is_float(tensor->dtype))
            d->wanted[t] =
                forced[t] || any_input_wanted(d, mtf_graph_operation(d->b.graph, tensor->producer));
    }
}

/* Whether what a loop hands on is wanted in a state that was not; marks those states. */
static bool force_states(const Differentiation *d, bool *forced) {
    bool changed = false;
    for (int i = 0; i < (int)d->b.graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(d->b.graph, i);
        if (mtf_operation_row(op->kind)->loop != MTF_LOOP_HANDS_ON || d->wanted[op->inputs[0]] ||
            !d->wanted[op->inputs[1]])
            continue;
        forced[op->inputs[0]] = changed = true;
    }
    return changed;
}

static void mark_wanted(Differentiation *d) {
    g_autofree bool *forced = g_new0(bool, d->n_tensors + 1);
    do
        mark_tensors(d, forced);
    while (force_states(d, forced));
}

static bool check_loss(const Differentiation *d, GError **error) {
    if (d->b.graph->loss < 0)
        return mtf_input_error(error,
                               "the graph has no loss to differentiate: --loss gives an ONNX file "
                               "one, --infer searches for plans that run a model");
    const MtfTensor *loss = mtf_graph_tensor(d->b.graph, d->b.graph->loss);
    if (loss->shape.rank > 0)
        return mtf_input_error(error,
                               "the loss \"%s\" must be a scalar but has dimension \"%s\"; reduce "
                               "it with reduce_mean or reduce_sum",
                               loss->name,
                               mtf_graph_dimension(d->b.graph, loss->shape.dims[0])->name);
    if (!mtf_dtype_is_float(loss->dtype))
        return mtf_input_error(error, "the loss \"%s\" must be of a float type", loss->name);
    return d->wanted[d->b.graph->loss] ||
           mtf_input_error(error, "no variable leads to the loss \"%s\"", loss->name);
}

/* How often such a loop has run is not known when its backward pass is planned. */
static bool check_loop_end(Differentiation *d, int tensor) {
    int producer = mtf_graph_tensor(d->b.graph, tensor)->producer;
    int loop = producer < 0 ? 0 : mtf_graph_operation(d->b.graph, producer)->loop;
    return loop == 0 || mtf_loop_condition(d->b.graph, loop) < 0 ||
           mtf_input_error(
               &d->b.error,
               "no gradient passes through the \"while\" block \"%s\", which would come "
               "to \"%s\": stop it there (stop_gradient), or take a \"loop\" with a count",
               mtf_graph_loop(d->b.graph, loop)->name, mtf_graph_tensor(d->b.graph, tensor)->name);
}

void mtf_gradient_give(MtfGradient *gradient, int tensor, int share) {
    Differentiation *d = gradient->taker;
    if (share >= 0 && d->wanted[tensor] && !check_loop_end(d, tensor))
        return;
    if (share < 0 || !d->wanted[tensor] || mtf_loop_gradient_defer(d, tensor, share))
        return;
    g_assert(mtf_shape_equal(&mtf_graph_tensor(d->b.graph, tensor)->shape,
                             &mtf_graph_tensor(d->b.graph, share)->shape));
    if (d->shares[tensor] == NULL)
        d->shares[tensor] = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(d->shares[tensor], share);
}

static int stage_of_share(const Differentiation *d, int share) {
    return mtf_graph_operation(d->b.graph, mtf_graph_tensor(d->b.graph, share)->producer)->stage;
}

int mtf_gradient_take(MtfGradient *gradient, int tensor, MtfDtype dtype) {
    Differentiation *d = gradient->taker;
    GArray *shares = d->shares[tensor];
    if (shares == NULL || shares->len != 1 || d->b.loop > 0)
        return -1;
    int share = g_array_index(shares, int, 0);
    if (mtf_graph_tensor(d->b.graph, share)->dtype != dtype ||
        stage_of_share(d, share) != d->b.stage)
        return -1;
    g_array_set_size(shares, 0);
    return share;
}

/* Whether a tensor is the first result of an operation that a gradient's rule made and that has no
 * other meaning yet: then it may become the gradient itself. */
static bool is_unclaimed(const Differentiation *d, int tensor) {
    const MtfOperation *maker =
        mtf_graph_operation(d->b.graph, mtf_graph_tensor(d->b.graph, tensor)->producer);
    return maker->outputs[0] == tensor && maker->phase == MTF_PHASE_BACKWARD &&
           (maker->origin == MTF_ORIGIN_WRITTEN || maker->origin == MTF_ORIGIN_BACKWARD);
}

/* A gradient is of its tensor's layer, whichever layer's rule made it. */
static int mark_gradient(Differentiation *d, int gradient, int of) {
    if (gradient < 0)
        return gradient;
    mtf_graph_set_layer(d->b.graph, gradient, mtf_graph_tensor(d->b.graph, of)->layer);
    mtf_graph_set_origin(d->b.graph, gradient, MTF_ORIGIN_GRADIENT,
                         mtf_graph_tensor(d->b.graph, of)->name);
    return gradient;
}

static int sum_of_shares(Differentiation *d, int tensor, const GArray *shares, const char *name) {
    int first = g_array_index(shares, int, 0);
    if (shares->len > 1) {
        MtfShape shape = mtf_graph_tensor(d->b.graph, tensor)->shape;
        return mtf_build(&d->b, MTF_OP_ADD, name, &shape, (int)shares->len, (int *)shares->data);
    }
    if (is_unclaimed(d, first)) {
        mtf_build_rename(&d->b, first, name);
        return first;
    }
    if (!is_trained(mtf_graph_tensor(d->b.graph, tensor)))
        return first;
    d->b.attributes.factor = 1;
    return MTF_BUILD(&d->b, MTF_OP_SCALE, name, NULL, first);
}

/* The sum of some shares of a variable's gradient. */
static int summed_gradient(Differentiation *d, int tensor, const GArray *shares, const char *what) {
    g_autofree char *name = g_strdup_printf("grad/%s", what);
    int gradient = sum_of_shares(d, tensor, shares, name);
    if (gradient >= 0)
        mtf_graph_tensor(d->b.graph, gradient)->memory = MTF_MEMORY_GRADIENT;
    return gradient;
}

/* The shares that were made in `stage`; free with g_array_unref. */
static GArray *shares_of_stage(const Differentiation *d, const GArray *shares, int stage) {
    GArray *own = g_array_new(FALSE, FALSE, sizeof(int));
    for (guint i = 0; i < shares->len; i++) {
        int share = g_array_index(shares, int, i);
        if (stage_of_share(d, share) == stage)
            g_array_append_val(own, share);
    }
    return own;
}

static int last_stage(const Differentiation *d, const GArray *shares) {
    int last = 0;
    for (guint i = 0; i < shares->len; i++)
        last = MAX(last, stage_of_share(d, g_array_index(shares, int, i)));
    return last;
}

/* The gradient of a variable. Where several stages read it (a tied embedding), each sums its own
 * shares; the sums take the place of the shares, and meet behind the backward pass (add_stage_sums), once
 * a step whatever its micro-batches. */
static int variable_gradient(Differentiation *d, int tensor) {
    g_autofree char *name = g_strdup(mtf_graph_tensor(d->b.graph, tensor)->name);
    GArray *shares = d->shares[tensor];
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(int));
    int last = last_stage(d, shares);
    for (int stage = 0; stage <= last; stage++) {
        g_autoptr(GArray) own = shares_of_stage(d, shares, stage);
        g_autofree char *sum = g_strdup_printf("%s/stage/%d", name, stage);
        d->b.stage = stage;
        if (own->len == shares->len)
            return mark_gradient(d, summed_gradient(d, tensor, own, name), tensor);
        if (own->len > 0)
            g_array_append_val(sums, (int){ summed_gradient(d, tensor, own, sum) });
    }
    g_array_set_size(shares, 0);
    g_array_append_vals(shares, sums->data, sums->len);
    d->meets[tensor] = true;
    return -1;
}

/* The gradients of variables that several stages read, in the variable's stage. */
static void add_stage_sums(Differentiation *d) {
    d->b.phase = MTF_PHASE_CLIP;
    for (int t = 0; t < d->n_tensors && d->b.error == NULL; t++) {
        if (!d->meets[t])
            continue;
        g_autofree char *name = g_strdup_printf("grad/%s", mtf_graph_tensor(d->b.graph, t)->name);
        MtfShape shape = mtf_graph_tensor(d->b.graph, t)->shape;
        const GArray *sums = d->shares[t];
        d->b.stage = d->stages[t];
        d->b.layer = mtf_graph_tensor(d->b.graph, t)->layer;
        int gradient =
            mtf_build(&d->b, MTF_OP_ADD, name, &shape, (int)sums->len, (int *)(void *)sums->data);
        if (gradient >= 0)
            mtf_graph_tensor(d->b.graph, gradient)->memory = MTF_MEMORY_GRADIENT;
        d->gradients[t] = mark_gradient(d, gradient, t);
    }
    d->b.phase = MTF_PHASE_BACKWARD;
    d->b.layer = (MtfLayer){ 0 };
}

/* Shares that were all made in one stage are summed there, and one tensor goes on to the stage of what they are
 * the gradient of; else they are summed in that. */
static int stage_of_sum(const Differentiation *d, int tensor) {
    const GArray *shares = d->shares[tensor];
    int stage = stage_of_share(d, g_array_index(shares, int, 0));
    for (guint i = 1; i < shares->len; i++)
        if (stage_of_share(d, g_array_index(shares, int, i)) != stage)
            return d->stages[tensor];
    return stage;
}

static void make_gradient(Differentiation *d, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(d->b.graph, tensor);
    if (is_trained(t)) {
        d->gradients[tensor] = variable_gradient(d, tensor);
        return;
    }
    g_autofree char *name = g_strdup_printf("grad/%s", t->name);
    d->b.stage = stage_of_sum(d, tensor);
    int gradient = sum_of_shares(d, tensor, d->shares[tensor], name);
    /* What is handed on as it is stays the gradient of what it was. */
    if (gradient >= 0 && is_unclaimed(d, gradient))
        mark_gradient(d, gradient, tensor);
    d->gradients[tensor] = gradient;
}

/* All consumers of `tensor` have been visited: makes its gradient, if it was given any share, where that belongs. What
 * the caller builds next stays in its own stage. */
void mtf_gradient_complete(Differentiation *d, int tensor) {
    MtfLayer outer = d->b.layer;
    int stage = d->b.stage;
    if (d->shares[tensor] == NULL || d->b.error != NULL)
        return;
    d->b.layer = mtf_graph_tensor(d->b.graph, tensor)->layer;
    make_gradient(d, tensor);
    d->b.layer = outer;
    d->b.stage = stage;
}

/* Lets the row's rule give the operation's inputs their shares of the gradients of its first two outputs. */
static void apply_rule(Differentiation *d, const MtfOperation *operation, const int *dy) {
    const MtfGradientRow *row = mtf_gradient_row(operation->kind);
    if (row->state != MTF_GRADIENT_RULE) {
        mtf_input_error(&d->b.error, "operation \"%s\" (%s) has no gradient", operation->name,
                        mtf_operation_row(operation->kind)->name);
        return;
    }
    d->b.stage = operation->stage;
    MtfGradient gradient = { &d->b, *operation, dy[0], dy[1], d->wanted, d };
    MtfLayer outer = d->b.layer;
    d->b.layer = operation->layer;
    d->b.origin = MTF_ORIGIN_BACKWARD;
    d->b.of = operation->name;
    row->rule(&gradient);
    d->b.layer = outer;
    d->b.origin = MTF_ORIGIN_WRITTEN;
    d->b.of = NULL;
}

/* All shares of the gradients of variables that operation `index` reads first are known now. */
static void complete_variables(Differentiation *d, const MtfConsumers *consumers, int index) {
    const MtfOperation *operation = mtf_graph_operation(d->b.graph, index);
    int n = operation->n_inputs;
    g_autofree int *inputs = g_memdup2(operation->inputs, sizeof(int) * (gsize)n);
    for (int k = 0; k < n; k++) {
        int t = inputs[k];
        bool first = consumers->operations[consumers->starts[t]] == index;
        if (first && d->gradients[t] < 0 && !d->meets[t] &&
            mtf_graph_tensor(d->b.graph, t)->producer < 0)
            mtf_gradient_complete(d, t);
    }
}

/* Completing a gradient may append operations, which moves those that are there. Outputs behind the second are of
 * gradients and updates. */
void mtf_gradient_visit(Differentiation *d, int index) {
    int dy[2] = { -1, -1 }, n = MIN(mtf_graph_operation(d->b.graph, index)->n_outputs, 2);
    for (int k = 0; k < n; k++) {
        int y = mtf_graph_operation(d->b.graph, index)->outputs[k];
        mtf_gradient_complete(d, y);
        dy[k] = d->gradients[y];
    }
    const MtfOperation *operation = mtf_graph_operation(d->b.graph, index);
    if ((dy[0] >= 0 || dy[1] >= 0) && any_input_wanted(d, operation))
        apply_rule(d, operation, dy);
}

static GArray *collect(const Differentiation *d) {
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(MtfVariableGradient));
    for (int t = 0; t < d->n_tensors; t++) {
        MtfVariableGradient pair = { t, d->gradients[t] };
        if (pair.gradient >= 0 && is_trained(mtf_graph_tensor(d->b.graph, t)))
            g_array_append_val(pairs, pair);
    }
    return pairs;
}

static void run_backward(Differentiation *d) {
    MtfGraph *graph = d->b.graph;
    int n = (int)graph->operations->len, loss = graph->loss;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    const MtfTensor *loss_tensor = mtf_graph_tensor(graph, loss);
    g_autofree char *name = g_strdup_printf("back/%s", loss_tensor->name);
    d->b.stage = d->stages[loss];
    d->b.layer = loss_tensor->layer;
    int one = mtf_build_constant(&d->b, name, loss_tensor->dtype, 1);
    d->b.layer = (MtfLayer){ 0 };
    MtfGradient seed = { .taker = d };
    mtf_gradient_give(&seed, loss, one);
    if (mtf_graph_tensor(graph, loss)->producer < 0)
        mtf_gradient_complete(d, loss);
    for (int i = n - 1, begin; i >= 0 && d->b.error == NULL; i = begin - 1) {
        int loop = mtf_graph_operation(graph, i)->loop;
        for (begin = i;
             loop > 0 && begin > 0 && mtf_graph_operation(graph, begin - 1)->loop == loop;)
            begin--;
        if (loop > 0)
            mtf_loop_gradient(d, begin, i + 1);
        else
            mtf_gradient_visit(d, i);
        for (int j = i; j >= begin; j--)
            complete_variables(d, consumers, j);
    }
    add_stage_sums(d);
}

static void free_shares(Differentiation *d) {
    for (int t = 0; t < d->n_tensors; t++)
        if (d->shares[t] != NULL)
            g_array_unref(d->shares[t]);
    g_free(d->shares);
}

GArray *mtf_differentiate(MtfGraph *graph, GError **error) {
    int n = (int)graph->tensors->len;
    g_autofree bool *wanted = g_new0(bool, n + 1);
    g_autofree int *gradients = g_new(int, n + 1);
    g_autofree bool *meets = g_new0(bool, n + 1);
    g_autofree int *stages = mtf_graph_tensor_stages(graph);
    for (int t = 0; t < n; t++)
        gradients[t] = -1;
    Differentiation d = { .b = mtf_builder(graph, MTF_PHASE_BACKWARD),
                          .n_tensors = n,
                          .wanted = wanted,
                          .gradients = gradients,
                          .meets = meets,
                          .stages = stages };
    mark_wanted(&d);
    if (!check_loss(&d, error))
        return NULL;
    d.shares = g_new0(GArray *, n + 1);
    d.loops = graph->loops->len > 0 ? mtf_loop_gradients_new(graph) : NULL;
    run_backward(&d);
    free_shares(&d);
    if (d.loops != NULL && d.b.error == NULL)
        mtf_loop_gradient_read_saved(&d);
    mtf_loop_gradients_free(d.loops);
    return mtf_builder_end(&d.b, error) ? collect(&d) : NULL;
}
