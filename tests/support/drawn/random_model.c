// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/drawn/random_model.h"

#include "layouts/graph/optimizer.h"
#include "tests/support/drawn/random_draw.h"

#include <string.h>

/* ---- Operations that know one example -------------------------------------------------------- */

static bool has_batch(const MtfDraw *draw, int tensor) {
    return mtf_shape_find(shape_of(draw, tensor), 0) >= 0;
}

static bool has_batch_of_its_own(const MtfDraw *draw, int tensor) {
    return mtf_graph_tensor(draw->graph, tensor)->source == MTF_SOURCE_VARIABLE &&
           has_batch(draw, tensor);
}

/* Whether it names the batch, dimension 0, as one that it does more with than to go over it. */
static bool names_batch(const MtfAttributes *a) {
    const int named[] = { a->dimension, a->from,    a->to,      a->query, a->memory,
                          a->position,  a->experts, a->choices, a->keys,  a->capacity };
    for (gsize i = 0; i < G_N_ELEMENTS(named); i++)
        if (named[i] == 0)
            return true;
    for (int i = 0; i < a->n_windows; i++)
        if (a->windows[i].from == 0 || a->windows[i].to == 0 || a->windows[i].kernel == 0)
            return true;
    return false;
}

static bool mixes_examples(const MtfDraw *draw, const MtfOperation *op) {
    bool reads = false;
    for (int k = 0; k < op->n_inputs; k++)
        reads |= has_batch(draw, op->inputs[k]);
    for (int k = 0; k < op->n_outputs; k++)
        if (reads && !has_batch(draw, op->outputs[k]))
            return true;
    return names_batch(&op->attributes);
}

/* Whether tensors and operations from those on keep examples apart; inputs have them, variables do not. */
static bool are_apart(const MtfDraw *draw, int tensors, int operations) {
    for (int t = tensors; t < (int)draw->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(draw->graph, t);
        if (has_batch_of_its_own(draw, t) ||
            (tensor->source == MTF_SOURCE_INPUT && !has_batch(draw, t)))
            return false;
    }
    for (int i = operations; i < (int)draw->graph->operations->len; i++)
        if (mixes_examples(draw, mtf_graph_operation(draw->graph, i)))
            return false;
    return true;
}

/* Draws an operation more, or leaves all as it was. */
static void draw_apart(MtfDraw *draw) {
    g_autoptr(MtfGraph) before = mtf_graph_copy(draw->graph);
    guint pool = draw->pool->len;
    int y = mtf_draw_operation(draw);
    if (y < 0 || !are_apart(draw, (int)before->tensors->len, (int)before->operations->len)) {
        MtfGraph *drawn = draw->graph;
        draw->graph = g_steal_pointer(&before);
        mtf_graph_free(drawn);
        g_array_set_size(draw->pool, pool);
        draw->loop = 0;
        return;
    }
    g_array_append_val(draw->pool, y);
}

/* ---- One layer ------------------------------------------------------------------------------- */

static bool is_within_loop(const MtfDraw *draw, int tensor) {
    int producer = mtf_graph_tensor(draw->graph, tensor)->producer;
    const MtfOperation *op = mtf_graph_operation(draw->graph, producer);
    return op->loop > 0 && op->kind != MTF_OP_LOOP_STACK && op->kind != MTF_OP_LOOP_NEXT;
}

/* The mean of y over what x lacks. */
static int like(MtfDraw *draw, int y, int x) {
    MtfShape shared = { 0 };
    for (int i = 0; i < shape_of(draw, y)->rank; i++)
        if (mtf_shape_find(shape_of(draw, x), shape_of(draw, y)->dims[i]) >= 0)
            mtf_shape_append(&shared, shape_of(draw, y)->dims[i]);
    return emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &y, &shared);
}

/* tanh(x + all that nothing reads). */
static int end_layer(MtfDraw *draw, int x) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(draw->graph);
    int sum = x, n = (int)draw->graph->tensors->len;
    for (int t = 0; t < n; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(draw->graph, t);
        if (tensor->producer < 0 || !mtf_dtype_is_float(tensor->dtype) ||
            consumers->starts[t + 1] > consumers->starts[t] || is_within_loop(draw, t))
            continue;
        sum = emit_plain(draw, MTF_OP_ADD, 2, (int[]){ sum, like(draw, t, x) }, NULL);
    }
    return emit_unary(draw, MTF_OP_TANH, sum);
}

/* ---- Layers behind each other ---------------------------------------------------------------- */

/* A layer that is put into the model time and again: h is what it is given, `next` what it makes. */
typedef struct {
    const MtfGraph *body;
    int h, next, matrix; /* the matrix is trained */
    bool *shared;        /* of its variables: all layers have the same */
} Layer;

/* Sources of the layer in its iteration; h is `given`. */
static void put_sources(MtfDraw *draw, const Layer *layer, int iteration, int given, int *now) {
    for (int t = 0; t < (int)layer->body->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(layer->body, t);
        if (tensor->producer >= 0)
            continue;
        if (t == layer->h) {
            now[t] = given;
        } else if (tensor->source == MTF_SOURCE_INPUT && iteration == 0) {
            now[t] = mtf_graph_add_input(draw->graph, tensor->name, &tensor->shape, tensor->dtype,
                                         tensor->feed, NULL);
        } else if (tensor->source == MTF_SOURCE_VARIABLE && (iteration == 0 || !layer->shared[t])) {
            g_autofree char *own = g_strdup_printf("layer/%d/%s", iteration, tensor->name);
            now[t] = mtf_graph_add_variable(draw->graph, layer->shared[t] ? tensor->name : own,
                                            &tensor->shape, tensor->dtype, tensor->init,
                                            MTF_MEMORY_VARIABLE, NULL);
            mtf_graph_tensor(draw->graph, now[t])->frozen =
                t != layer->matrix && below(draw, 8) == 0;
            mtf_graph_tensor(draw->graph, now[t])->undecayed = below(draw, 8) == 0;
        }
    }
}

static int loop_in(MtfDraw *draw, const Layer *layer, int iteration, int loop, int *numbers) {
    if (loop == 0)
        return 0;
    const MtfLoop *of = &g_array_index(layer->body->loops, MtfLoop, loop - 1);
    g_autofree char *name = g_strdup_printf("layer/%d/%s", iteration, of->name);
    if (numbers[loop - 1] == 0)
        numbers[loop - 1] = mtf_graph_add_loop(draw->graph, name, of->dimension, of->reverse);
    return numbers[loop - 1];
}

static void put_operation(MtfDraw *draw, const Layer *layer, int iteration, int i, int *now,
                          int *loops) {
    const MtfOperation *op = mtf_graph_operation(layer->body, i);
    const MtfTensor *made = mtf_graph_tensor(layer->body, op->outputs[0]);
    g_autofree int *inputs = g_new(int, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++)
        inputs[k] = now[op->inputs[k]];
    g_autofree char *name = g_strdup_printf("layer/%d/%s", iteration, op->name);
    GError *error = NULL;
    int first = mtf_graph_add_operation(
        draw->graph,
        &(MtfNewOperation){ .name = name,
                            .kind = op->kind,
                            .loop = loop_in(draw, layer, iteration, op->loop, loops),
                            .layer = { 1, iteration },
                            .n_inputs = op->n_inputs,
                            .inputs = inputs,
                            .shape = &made->shape,
                            .has_dtype = mtf_operation_row(op->kind)->dtype == MTF_DTYPE_GIVEN,
                            .dtype = made->dtype,
                            .attributes = op->attributes },
        &error);
    if (first < 0)
        g_error("random model: %s", error->message);
    for (int k = 0; k < op->n_outputs; k++)
        now[op->outputs[k]] = first + k;
}

/* What the last of the layers makes of `given`. */
static int put_layers(MtfDraw *draw, const Layer *layer, int count, int given) {
    g_autofree int *now = g_new0(int, layer->body->tensors->len + 1);
    mtf_graph_add_repeat(draw->graph, "layer", count);
    for (int iteration = 0; iteration < count; iteration++) {
        g_autofree int *loops = g_new0(int, layer->body->loops->len + 1);
        put_sources(draw, layer, iteration, given, now);
        for (int i = 0; i < (int)layer->body->operations->len; i++)
            put_operation(draw, layer, iteration, i, now, loops);
        given = now[layer->next];
    }
    return given;
}

/* ---- What it is trained by ------------------------------------------------------------------- */

static int constant(MtfDraw *draw, double value) {
    MtfShape scalar = { 0 };
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.value = value;
    return emit(draw, (MtfNewOperation){
                          .kind = MTF_OP_CONSTANT, .shape = &scalar, .attributes = attributes });
}

/* Labels from -1 on, by what an input holds; those of -1 are to count nothing: `*counts` is 0 there, else 1. */
static int labels_some_ignored(MtfDraw *draw, const MtfShape *shape, int64_t classes, int *counts) {
    int goal = mtf_graph_add_input(draw->graph, "goal", shape, draw->options->dtype,
                                   MTF_FEED_TARGETS, NULL);
    int share = emit_unary(draw, MTF_OP_SIGMOID, goal);
    int number = emit_unary(draw, MTF_OP_FLOOR, emit_scaled(draw, share, (double)(classes + 1)));
    int one = constant(draw, 1);
    *counts = emit_plain(draw, MTF_OP_LESS_EQUAL, 2, (int[]){ one, number }, NULL);
    int label = emit_plain(draw, MTF_OP_SUBTRACT, 2, (int[]){ number, one }, NULL);
    return emit_typed(draw, MTF_OP_CAST, 1, &label, NULL, MTF_I32);
}

/* Losses of labels, softened or not, of which some draws ignore some. */
static int label_losses(MtfDraw *draw, int y, const MtfShape *rest, int64_t classes, int *counts) {
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.smoothing = below(draw, 2) * 0.1;
    attributes.z_loss = below(draw, 2) * 0.01;
    attributes.ignore = below(draw, 2);
    int labels = attributes.ignore > 0 ? labels_some_ignored(draw, rest, classes, counts)
                                       : mtf_graph_add_input(draw->graph, "labels", rest, MTF_I32,
                                                             MTF_FEED_LABELS, NULL);
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_SOFTMAX_CROSS_ENTROPY,
                                         .n_inputs = 2,
                                         .inputs = (int[]){ y, labels },
                                         .shape = rest,
                                         .attributes = attributes });
}

static int losses_of(MtfDraw *draw, int y, int *counts) {
    MtfShape all = *shape_of(draw, y);
    int last = all.dims[all.rank - 1];
    MtfShape rest = without(&all, last);
    if (last != 0 && below(draw, 2))
        return label_losses(draw, y, &rest, mtf_graph_size(draw->graph, last), counts);
    int goal = mtf_graph_add_input(draw->graph, "goal", &all, draw->options->dtype,
                                   MTF_FEED_TARGETS, NULL);
    return emit_unary(draw, MTF_OP_SQUARE,
                      emit_plain(draw, MTF_OP_SUBTRACT, 2, (int[]){ y, goal }, NULL));
}

/* The mean of losses, of some by a mask, or their sum; some are scaled as losses in narrow types are. */
static void add_loss(MtfDraw *draw, int y) {
    MtfShape scalar = { 0 };
    int counts = -1, losses = losses_of(draw, y, &counts), kind = below(draw, 6);
    if (counts < 0 && kind < 2)
        counts = mtf_graph_add_input(draw->graph, "counts", shape_of(draw, losses),
                                     draw->options->dtype, MTF_FEED_MASK, NULL);
    if (counts >= 0) {
        int top = emit_plain(draw, MTF_OP_EINSUM, 2, (int[]){ losses, counts }, &scalar);
        int bottom = emit_plain(draw, MTF_OP_REDUCE_SUM, 1, &counts, &scalar);
        draw->graph->loss = emit_plain(draw, MTF_OP_DIVIDE, 2, (int[]){ top, bottom }, NULL);
        return;
    }
    draw->graph->loss =
        emit_plain(draw, kind == 2 ? MTF_OP_REDUCE_SUM : MTF_OP_REDUCE_MEAN, 1, &losses, &scalar);
    if (below(draw, 4) == 0)
        draw->graph->loss = emit_scaled(draw, draw->graph->loss, 64);
}

/* A variable that x is moved by, and what it is assigned after each step: a mean over the examples of y. */
static int add_state(MtfDraw *draw, int x) {
    MtfShape shape = without(shape_of(draw, x), 0);
    int state = add_variable(draw, &shape);
    mtf_graph_tensor(draw->graph, state)->frozen = true;
    return state;
}

static void assign_state(MtfDraw *draw, int state, int y) {
    MtfShape shape = *shape_of(draw, state);
    mtf_graph_add_update(draw->graph, state, emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &y, &shape));
}

/* A large epsilon: a gradient that is zero but for rounding stays so. */
static bool is_tenth(const char *number) {
    return strcmp(number, "epsilon") == 0 || strcmp(number, "weight_decay") == 0;
}

static void set_optimizer(MtfDraw *draw) {
    const char *const *kinds = mtf_optimizer_kinds(), *const *schedules = mtf_schedules();
    int n = 0, n_schedules = 0;
    while (kinds[n] != NULL)
        n++;
    while (schedules[n_schedules] != NULL)
        n_schedules++;
    MtfOptimizer drawn = mtf_optimizer_standard(kinds[below(draw, n)], 0.05);
    g_free(drawn.schedule);
    drawn.schedule = g_strdup(schedules[below(draw, n_schedules)]);
    drawn.warmup = 1 + below(draw, 3);
    drawn.total = 6;
    drawn.cooldown = drawn.period = 2;
    for (const MtfOptimizerNumber *number = mtf_optimizer_numbers(); number->name != NULL; number++)
        if (mtf_optimizer_has(drawn.kind, number) && is_tenth(number->name))
            G_STRUCT_MEMBER(double, &drawn, number->offset) = 0.1;
    drawn.clip_norm = below(draw, 2) * 0.05;
    drawn.ema = below(draw, 3) == 0 ? 0.75 : 0;
    draw->graph->optimizer = drawn;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void add_dimensions(MtfDraw *draw, int64_t batch) {
    mtf_graph_add_dimension(draw->graph, "batch", batch, NULL);
    for (int d = 1; d < 6; d++) {
        g_autofree char *name = g_strdup_printf("d%d", d);
        int64_t size = d == 5 ? mtf_graph_size(draw->graph, 2) : (d < 3 ? 2 : 1) + below(draw, 5);
        mtf_graph_add_dimension(draw->graph, name, size, NULL);
    }
}

/* Draws the layer's operations. */
static void draw_body(MtfDraw *draw, const MtfShape *shape, int operations, Layer *layer) {
    layer->h =
        mtf_graph_add_input(draw->graph, "h", shape, draw->options->dtype, MTF_FEED_FEATURES, NULL);
    MtfShape matrix = { 2, { shape->dims[shape->rank - 1], 5 } }, made = *shape;
    made.dims[shape->rank - 1] = 5;
    layer->matrix = add_variable(draw, &matrix);
    int product = emit_plain(draw, MTF_OP_EINSUM, 2, (int[]){ layer->h, layer->matrix }, &made);
    g_array_append_val(draw->pool, layer->h);
    g_array_append_val(draw->pool, product);
    while ((int)draw->graph->operations->len < operations)
        draw_apart(draw);
    layer->next = end_layer(draw, layer->h);
    layer->body = draw->graph;
    layer->shared = g_new0(bool, draw->graph->tensors->len + 1);
    for (int t = 0; t < (int)draw->graph->tensors->len; t++)
        layer->shared[t] = below(draw, 4) == 0;
}

MtfGraph *mtf_random_model(const MtfRandomModel *options) {
    const MtfRandomGraph what = {
        .dtype = options->dtype, .composites = true, .more = true, .layers = true
    };
    MtfDraw draw = { .options = &what,
                     .random = g_rand_new_with_seed(options->seed),
                     .graph = mtf_graph_new("layer"),
                     .pool = g_array_new(FALSE, FALSE, sizeof(int)) };
    Layer layer = { 0 };
    add_dimensions(&draw, options->batch);
    MtfShape shape = { 1, { 0 } };
    if (below(&draw, 2))
        mtf_shape_append(&shape, 3 + below(&draw, 2));
    mtf_shape_append(&shape, 1 + below(&draw, 2));
    draw_body(&draw, &shape, options->operations, &layer);
    draw.graph = mtf_graph_new("drawn");
    mtf_graph_copy_dimensions(draw.graph, layer.body);
    int x = mtf_graph_add_input(draw.graph, "x", &shape, options->dtype, MTF_FEED_FEATURES, NULL);
    int state = below(&draw, 3) == 0 ? add_state(&draw, x) : -1;
    if (state >= 0)
        x = emit_plain(&draw, MTF_OP_ADD, 2, (int[]){ x, state }, NULL);
    int y = put_layers(&draw, &layer, options->layers, x);
    if (state >= 0)
        assign_state(&draw, state, y);
    add_loss(&draw, y);
    set_optimizer(&draw);
    mtf_graph_free((MtfGraph *)layer.body);
    g_free(layer.shared);
    g_array_unref(draw.pool);
    g_rand_free(draw.random);
    return draw.graph;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

enum { BATCH, PLACES, WIDTH, VOCABULARY };

/* Draws an operation more that reads nothing but what there is; false, and all as it was, where the draw did not suit. */
static bool draw_of_tokens(MtfDraw *draw) {
    g_autoptr(MtfGraph) before = mtf_graph_copy(draw->graph);
    guint pool = draw->pool->len;
    int y = mtf_draw_operation(draw);
    bool suits = y >= 0;
    for (int t = (int)before->tensors->len; t < (int)draw->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(draw->graph, t);
        suits &= tensor->source != MTF_SOURCE_INPUT && !has_batch_of_its_own(draw, t);
    }
    if (suits) {
        g_array_append_val(draw->pool, y);
        return true;
    }
    MtfGraph *drawn = draw->graph;
    draw->graph = g_steal_pointer(&before);
    mtf_graph_free(drawn);
    g_array_set_size(draw->pool, pool);
    draw->loop = 0;
    return false;
}

/* x and what nothing reads that has a value for each token. */
static int gather_tokens(MtfDraw *draw, int x) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(draw->graph);
    int sum = x, n = (int)draw->graph->tensors->len;
    for (int t = 0; t < n; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(draw->graph, t);
        bool is_read = consumers->starts[t + 1] > consumers->starts[t];
        if (tensor->producer < 0 || is_read || !mtf_dtype_is_float(tensor->dtype) ||
            mtf_shape_find(&tensor->shape, PLACES) < 0 || is_within_loop(draw, t))
            continue;
        sum = emit_plain(draw, MTF_OP_ADD, 2, (int[]){ sum, like(draw, t, x) }, NULL);
    }
    return emit_unary(draw, MTF_OP_TANH, sum);
}

static int embedded(MtfDraw *draw, int tokens) {
    const MtfShape table = { 2, { VOCABULARY, WIDTH } };
    const MtfShape shape = { 3, { BATCH, PLACES, WIDTH } };
    int x = emit_plain(draw, MTF_OP_EMBEDDING, 2, (int[]){ add_variable(draw, &table), tokens },
                       &shape);
    g_array_append_val(draw->pool, x);
    return x;
}

static void compare_with_next(MtfDraw *draw, int x, const MtfShape *text) {
    const MtfShape matrix = { 2, { WIDTH, VOCABULARY } }, scalar = { 0 };
    const MtfShape scores = { 3, { BATCH, PLACES, VOCABULARY } };
    GError *error = NULL;
    int logits = mtf_graph_add_operation(
        draw->graph,
        &(MtfNewOperation){ .name = "logits",
                            .kind = MTF_OP_EINSUM,
                            .n_inputs = 2,
                            .inputs = (int[]){ x, add_variable(draw, &matrix) },
                            .shape = &scores,
                            .attributes = MTF_NO_ATTRIBUTES },
        &error);
    if (logits < 0)
        g_error("random text: %s", error->message);
    int next = mtf_graph_add_input(draw->graph, "next", text, MTF_I32, MTF_FEED_NEXT_TOKENS, NULL);
    int losses = emit_plain(draw, MTF_OP_SOFTMAX_CROSS_ENTROPY, 2, (int[]){ logits, next }, text);
    draw->graph->loss = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &losses, &scalar);
}

MtfGraph *mtf_random_text_model(guint32 seed, int operations, int64_t batch, int64_t length,
                                int64_t vocabulary) {
    const MtfRandomGraph what = {
        .dtype = MTF_F64, .composites = true, .more = true, .layers = true
    };
    const int64_t sizes[] = { batch, length, 4, vocabulary, length, 3, 2 };
    const MtfShape text = { 2, { BATCH, PLACES } };
    MtfDraw draw = { .options = &what,
                     .random = g_rand_new_with_seed(seed),
                     .graph = mtf_graph_new("text"),
                     .pool = g_array_new(FALSE, FALSE, sizeof(int)) };
    for (int d = 0; d < (int)G_N_ELEMENTS(sizes); d++) {
        g_autofree char *name = d == BATCH ? g_strdup("batch") : g_strdup_printf("d%d", d);
        mtf_graph_add_dimension(draw.graph, name, sizes[d], NULL);
    }
    int tokens = mtf_graph_add_input(draw.graph, "tokens", &text, MTF_I32, MTF_FEED_TOKENS, NULL);
    int x = embedded(&draw, tokens);
    for (int made = 0; made < operations;)
        made += draw_of_tokens(&draw);
    compare_with_next(&draw, gather_tokens(&draw, x), &text);
    g_array_unref(draw.pool);
    g_rand_free(draw.random);
    return draw.graph;
}
