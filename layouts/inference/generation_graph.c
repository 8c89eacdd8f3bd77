// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/inference/generation_graph.h"

#include "layouts/base/error.h"
#include "layouts/graph/operation_table.h"
#include "layouts/kernel_work/rotary_angles.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEVER_SEEN (-1e30) /* what causal_mask gives */

typedef struct {
    const MtfGraph *from;
    MtfGraph *graph;
    const MtfGenerationSizes *sizes;
    int batch, length, vocabulary; /* dimensions, the same in both graphs */
    int tokens, scores;            /* tensors of `from` */
    int position, last;            /* inputs */
    int place;      /* position + 0, 1, …: [batch, length] int32; -1: not made yet */
    int chosen;     /* 1 at `last`, else 0: [batch, length]; -1 … */
    bool *needed;   /* operations of `from` */
    bool *placed;   /* tensors of `from`: they count positions */
    int *tensors;   /* of `from` -> of the new graph; -1: not made */
    int *selected;  /* of the new graph -> at the last place; -1 */
    MtfLayer layer; /* of what is made */
    GError *error;  /* the first one */
} Making;

typedef struct {
    const char *name, *suffix; /* together the name */
    int kind;
    MtfAttributes attributes;
    const MtfShape *shape;
    bool has_dtype;
    MtfDtype dtype;
} Emission;

static int emit(Making *m, const Emission *e, int n, const int *inputs) {
    for (int k = 0; k < n; k++)
        if (inputs[k] < 0)
            return -1;
    if (m->error != NULL)
        return -1;
    g_autofree char *name = g_strconcat(e->name, e->suffix, NULL);
    MtfNewOperation operation = { .name = name,
                                  .kind = e->kind,
                                  .phase = MTF_PHASE_FORWARD,
                                  .layer = m->layer,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = e->shape,
                                  .has_dtype = e->has_dtype,
                                  .dtype = e->dtype,
                                  .attributes = e->attributes };
    return mtf_graph_add_operation(m->graph, &operation, &m->error);
}

static void fail_at(Making *m, const MtfOperation *op, const char *what) {
    if (m->error == NULL)
        mtf_input_error(&m->error, "%s: operation \"%s\" %s, so it cannot generate from a cache",
                        m->from->name, op->name, what);
}

static const MtfShape *shape_of(const Making *m, int tensor) {
    return &mtf_graph_tensor(m->graph, tensor)->shape;
}

static bool has(const MtfShape *shape, int dim) {
    return mtf_shape_find(shape, dim) >= 0;
}

/* ---- What the graph says --------------------------------------------------------------------- */

static int find_feed(const MtfGraph *graph, MtfFeed feed, int *count) {
    int found = -1;
    *count = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->feed != feed)
            continue;
        found = t;
        (*count)++;
    }
    return found;
}

int mtf_generation_input(const MtfGraph *graph, MtfFeed feed) {
    int count;
    return find_feed(graph, feed, &count);
}

static int find_variable(const MtfGraph *graph, MtfMemoryKind memory) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == memory)
            return t;
    }
    return -1;
}

int mtf_generation_scores(const MtfGraph *graph) {
    return find_variable(graph, MTF_MEMORY_OUTPUT);
}

bool mtf_graph_generates(const MtfGraph *graph) {
    return graph->loss < 0 && mtf_generation_scores(graph) >= 0;
}

int mtf_generation_length(const MtfGraph *graph) {
    int tokens = mtf_generation_input(graph, MTF_FEED_TOKENS);
    return tokens < 0 ? -1 : mtf_graph_tensor(graph, tokens)->shape.dims[1];
}

int mtf_generation_context(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        int cache = op->n_inputs == 3 ? op->inputs[1] : -1;
        if (cache >= 0 && mtf_graph_tensor(graph, cache)->memory == MTF_MEMORY_CACHE)
            return op->attributes.to;
    }
    return -1;
}

/* The scores that an operation compares with next tokens, or -1. */
static int compared_scores(const MtfGraph *graph, const MtfOperation *op) {
    if (op->n_inputs < 2 || op->phase != MTF_PHASE_FORWARD)
        return -1;
    const MtfTensor *labels = mtf_graph_tensor(graph, op->inputs[1]);
    const MtfTensor *scores = mtf_graph_tensor(graph, op->inputs[0]);
    bool compares = labels->source == MTF_SOURCE_INPUT && labels->feed == MTF_FEED_NEXT_TOKENS &&
                    scores->shape.rank == labels->shape.rank + 1;
    return compares ? op->inputs[0] : -1;
}

static bool find_scores(Making *m, GError **error) {
    const MtfGraph *g = m->from;
    int texts;
    m->tokens = find_feed(g, MTF_FEED_TOKENS, &texts);
    m->scores = -1;
    for (int i = 0; i < (int)g->operations->len && m->scores < 0; i++)
        m->scores = compared_scores(g, mtf_graph_operation(g, i));
    if (texts != 1 || m->scores < 0)
        return mtf_input_error(error,
                               "%s: only a model that reads one text and gives scores of its next "
                               "tokens generates; this one %s",
                               g->name,
                               texts == 0  ? "reads no tokens"
                               : texts > 1 ? "reads several texts"
                                           : "compares no scores with next tokens");
    const MtfShape *tokens = &mtf_graph_tensor(g, m->tokens)->shape;
    if (tokens->rank != 2)
        return mtf_input_error(error,
                               "%s: tokens \"%s\" have %d dimensions, not an example and a place",
                               g->name, mtf_graph_tensor(g, m->tokens)->name, tokens->rank);
    m->batch = tokens->dims[0];
    m->length = tokens->dims[1];
    const MtfShape *scores = &mtf_graph_tensor(g, m->scores)->shape;
    for (int i = 0; i < scores->rank; i++)
        if (scores->dims[i] != m->batch && scores->dims[i] != m->length)
            m->vocabulary = scores->dims[i];
    return true;
}

/* What the scores follow from. */
static void mark_needed(Making *m) {
    int n = (int)m->from->operations->len;
    g_autofree bool *wanted = g_new0(bool, m->from->tensors->len + 1);
    wanted[m->scores] = true;
    for (int i = n - 1; i >= 0; i--) {
        const MtfOperation *op = mtf_graph_operation(m->from, i);
        for (int k = 0; k < op->n_outputs; k++)
            m->needed[i] |= wanted[op->outputs[k]];
        for (int k = 0; k < op->n_inputs && m->needed[i]; k++)
            wanted[op->inputs[k]] = true;
    }
}

/* ---- Dimensions, inputs and variables -------------------------------------------------------- */

/* Memory dimensions: those that what counts the text is renamed to. */
static bool is_memory(const Making *m, int dim) {
    for (int i = 0; i < (int)m->from->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(m->from, i);
        if (m->needed[i] && mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED &&
            op->attributes.from == m->length && op->attributes.to == dim)
            return true;
    }
    return false;
}

/* The input of an operation that says where its tokens' choices have their places: what an operation
 * that gives places made; or -1. */
static int slots_read(const MtfGraph *graph, const MtfOperation *op) {
    for (int k = 0; k < op->n_inputs; k++) {
        int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
        const MtfOperation *maker = producer < 0 ? NULL : mtf_graph_operation(graph, producer);
        if (maker != NULL && mtf_operation_row(maker->kind)->scratch == MTF_SCRATCH_SLOTS)
            return op->inputs[k];
    }
    return -1;
}

static bool an_input_has(const MtfGraph *graph, const MtfOperation *op, int dim) {
    for (int k = 0; k < op->n_inputs; k++)
        if (has(&mtf_graph_tensor(graph, op->inputs[k])->shape, dim))
            return true;
    return false;
}

/* The choices of a token where `dim` holds places for the choices of all tokens of a text, as many as
 * there are: experts that drop nobody; else 0. Of the operations in `needed`, NULL: of all. */
static int64_t choices_of_places(const MtfGraph *graph, const bool *needed, int length, int dim) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        int slots = needed == NULL || needed[i] ? slots_read(graph, op) : -1;
        if (slots < 0 || an_input_has(graph, op, dim) ||
            !has(&mtf_graph_tensor(graph, op->outputs[0])->shape, dim))
            continue;
        int giver = mtf_graph_tensor(graph, slots)->producer;
        const MtfAttributes *a = &mtf_graph_operation(graph, giver)->attributes;
        int64_t choices = mtf_graph_size(graph, a->choices);
        if (a->capacity < 0 && a->dimension == length &&
            mtf_graph_size(graph, dim) == mtf_graph_size(graph, length) * choices)
            return choices;
    }
    return 0;
}

static void copy_dimensions(Making *m) {
    for (int d = 0; d < (int)m->from->dimensions->len; d++) {
        const MtfDimension *dimension = mtf_graph_dimension(m->from, d);
        int64_t size = dimension->size;
        if (d == m->batch && m->sizes->batch > 0)
            size = m->sizes->batch;
        if (d == m->length)
            size = m->sizes->length;
        if (is_memory(m, d) && m->sizes->context > 0)
            size = m->sizes->context;
        int64_t choices = choices_of_places(m->from, m->needed, m->length, d);
        if (choices > 0)
            size = m->sizes->length * choices;
        mtf_graph_add_dimension(m->graph, dimension->name, size, NULL);
        mtf_graph_dimension(m->graph, d)->unpadded = dimension->unpadded;
    }
    for (guint i = 0; i < m->from->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(m->from->repeats, MtfRepeat, i);
        mtf_graph_add_repeat(m->graph, repeat->name, repeat->count);
    }
}

/* A name that the graph does not have yet; free with g_free. */
static char *free_name(const Making *m, const char *name) {
    char *free = g_strdup(name);
    while (mtf_graph_find_tensor(m->graph, free) >= 0 ||
           mtf_graph_find_tensor(m->from, free) >= 0) {
        char *longer = g_strconcat(free, "_", NULL);
        g_free(free);
        free = longer;
    }
    return free;
}

static int add_input(Making *m, const char *name, const MtfShape *shape, MtfFeed feed) {
    g_autofree char *own = free_name(m, name);
    return m->error != NULL ? -1
                            : mtf_graph_add_input(m->graph, own, shape, MTF_I32, feed, &m->error);
}

static void add_inputs(Making *m) {
    const MtfTensor *tokens = mtf_graph_tensor(m->from, m->tokens);
    MtfShape each = { 1, { m->batch } };
    m->tensors[m->tokens] = mtf_graph_add_input(m->graph, tokens->name, &tokens->shape, MTF_I32,
                                                MTF_FEED_TOKENS, &m->error);
    m->position = add_input(m, "position", &each, MTF_FEED_POSITION);
    m->last = add_input(m, "last", &each, MTF_FEED_LAST);
    m->place = m->chosen = -1;
}

static int integer_range(Making *m, const char *name) {
    MtfShape along = { 1, { m->length } };
    g_autofree char *own = free_name(m, name);
    Emission e = { own, "", MTF_OP_RANGE, MTF_NO_ATTRIBUTES, &along, true, MTF_I32 };
    return emit(m, &e, 0, NULL);
}

/* The position of each token at hand in its text. */
static int place_of(Making *m) {
    MtfShape both = { 2, { m->batch, m->length } };
    MtfLayer reader = m->layer;
    m->layer = (MtfLayer){ 0 };
    if (m->place < 0) {
        g_autofree char *own = free_name(m, "place_in_text");
        Emission e = { own, "", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &both, false, MTF_I32 };
        m->place = emit(m, &e, 2, (int[]){ integer_range(m, "place_at_hand"), m->position });
    }
    m->layer = reader;
    return m->place;
}

/* 1 where a token is its example's last, else 0, in the type of `like`. */
static int chosen_of(Making *m, int like) {
    MtfShape both = { 2, { m->batch, m->length } };
    MtfLayer reader = m->layer;
    m->layer = (MtfLayer){ 0 };
    if (m->chosen < 0 && like >= 0) {
        g_autofree char *equal = free_name(m, "is_last");
        g_autofree char *own = free_name(m, "last_share");
        Emission compare = { equal, "", MTF_OP_EQUAL, MTF_NO_ATTRIBUTES, &both, false, MTF_I32 };
        int is = emit(m, &compare, 2, (int[]){ integer_range(m, "place_of_last"), m->last });
        Emission cast = { own,
                          "",
                          MTF_OP_CAST,
                          MTF_NO_ATTRIBUTES,
                          NULL,
                          true,
                          mtf_graph_tensor(m->graph, like)->dtype };
        m->chosen = emit(m, &cast, 1, &is);
    }
    m->layer = reader;
    return m->chosen;
}

/* The type in which all that is needed reads a variable: where it is cast for each of its readers,
 * it is kept so. */
static MtfDtype type_read(const Making *m, int variable) {
    MtfDtype own = mtf_graph_tensor(m->from, variable)->dtype, read = own;
    bool first = true;
    for (int i = 0; i < (int)m->from->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(m->from, i);
        for (int k = 0; k < op->n_inputs && m->needed[i]; k++) {
            if (op->inputs[k] != variable)
                continue;
            MtfDtype made = mtf_graph_tensor(m->from, op->outputs[0])->dtype;
            if (!mtf_operation_row(op->kind)->converts || (!first && made != read))
                return own;
            read = made;
            first = false;
        }
    }
    return read;
}

static int variable_like(Making *m, const MtfTensor *from, const MtfShape *shape) {
    if (m->error != NULL)
        return -1;
    MtfDtype dtype = type_read(m, mtf_graph_find_tensor(m->from, from->name));
    int variable = mtf_graph_add_variable(m->graph, from->name, shape, dtype, from->init,
                                          from->memory, &m->error);
    if (variable < 0)
        return -1;
    mtf_variable_take_facts(mtf_graph_tensor(m->graph, variable), from);
    return variable;
}

static bool holds_context(Making *m, const char *name, int64_t rows) {
    if (m->sizes->context <= rows)
        return true;
    if (m->error == NULL)
        mtf_input_error(&m->error,
                        "%s: a context of %" PRId64 " is longer than the %" PRId64
                        " positions that \"%s\" has learned",
                        m->from->name, m->sizes->context, rows, name);
    return false;
}

/* A variable along the text is a table of positions: only the rows of the tokens at hand are read. */
static int positions_table(Making *m, const MtfTensor *tensor) {
    int64_t rows = mtf_graph_size(m->from, m->length);
    const char *base = mtf_graph_dimension(m->from, m->length)->name;
    g_autofree char *dimension = g_strconcat("learned_", base, NULL);
    MtfShape shape = tensor->shape, read = { 1, { m->batch } };
    if (!holds_context(m, tensor->name, rows))
        return -1;
    int learned = mtf_graph_find_dimension(m->graph, dimension);
    if (learned < 0)
        learned = mtf_graph_add_dimension(m->graph, dimension, rows, &m->error);
    shape.dims[mtf_shape_find(&shape, m->length)] = learned;
    for (int i = 0; i < tensor->shape.rank; i++)
        if (!mtf_shape_append(&read, tensor->shape.dims[i])) {
            mtf_input_error(&m->error, "\"%s\" has too many dimensions", tensor->name);
            return -1;
        }
    int table = variable_like(m, tensor, &shape), place = place_of(m);
    MtfLayer reader = m->layer;
    Emission e = { tensor->name, "/at_hand", MTF_OP_EMBEDDING, MTF_NO_ATTRIBUTES, &read, false, 0 };
    m->layer = tensor->layer;
    int at_hand = emit(m, &e, 2, (int[]){ table, place });
    m->layer = reader;
    return at_hand;
}

/* The new graph's tensor; variables are made when they are first read. */
static int tensor_of(Making *m, int t) {
    const MtfTensor *tensor = mtf_graph_tensor(m->from, t);
    if (m->tensors[t] >= 0 || m->error != NULL)
        return m->tensors[t];
    if (tensor->source == MTF_SOURCE_INPUT) {
        mtf_input_error(&m->error,
                        "%s: it reads \"%s\" beside its tokens, which nobody has who generates",
                        m->from->name, tensor->name);
        return -1;
    }
    if (tensor->source == MTF_SOURCE_VARIABLE)
        m->tensors[t] = has(&tensor->shape, m->length) ? positions_table(m, tensor)
                                                       : variable_like(m, tensor, &tensor->shape);
    return m->tensors[t];
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* The new tensor at the last place of each example. */
static int select_last(Making *m, int tensor) {
    MtfShape shape = *shape_of(m, tensor);
    mtf_shape_remove(&shape, m->length);
    if (m->selected[tensor] < 0) {
        g_autofree char *name = g_strdup(mtf_graph_tensor(m->graph, tensor)->name);
        int share = chosen_of(m, tensor);
        Emission e = { name, "/last", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &shape, false, 0 };
        m->selected[tensor] = emit(m, &e, 2, (int[]){ tensor, share });
    }
    return m->selected[tensor];
}

/* The dimensions of an operation's result here: those that its inputs still have, or never had, and
 * the example's where a position brings it in. */
static MtfShape fitted_shape(const Making *m, const MtfOperation *op, const int *inputs) {
    const MtfShape *before = &mtf_graph_tensor(m->from, op->outputs[0])->shape;
    MtfShape shape = { 0 };
    bool batch = has(before, m->batch), had = batch, length = false, had_length = false;
    for (int k = 0; k < op->n_inputs; k++) {
        batch |= has(shape_of(m, inputs[k]), m->batch);
        had |= has(&mtf_graph_tensor(m->from, op->inputs[k])->shape, m->batch);
        length |= has(shape_of(m, inputs[k]), m->length);
        had_length |= has(&mtf_graph_tensor(m->from, op->inputs[k])->shape, m->length);
    }
    if (batch && !had)
        mtf_shape_append(&shape, m->batch);
    for (int i = 0; i < before->rank; i++)
        if (before->dims[i] != m->length || length || !had_length)
            mtf_shape_append(&shape, before->dims[i]);
    return shape;
}

static bool infers_shape(const MtfOperationRow *row) {
    return row->dims == MTF_DIMS_FIRST || row->dims == MTF_DIMS_RENAMED ||
           row->dims == MTF_DIMS_REPLACED;
}

/* Whether the result sums over the text, or looks along it. */
static bool mixes_places(const Making *m, const MtfOperation *op) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    const MtfShape *out = &mtf_graph_tensor(m->from, op->outputs[0])->shape;
    const MtfAttributes *a = &op->attributes;
    for (int k = 0; k < op->n_inputs; k++)
        if (has(&mtf_graph_tensor(m->from, op->inputs[k])->shape, m->length) &&
            (!has(out, m->length) ||
             (row->positional && (a->from == m->length || a->dimension == m->length))))
            return true;
    return a->dimension == m->length;
}

/* An embedding of positions needs rows for all of the context. */
static void check_rows(Making *m, const MtfOperation *op) {
    const MtfChoice *choice = &mtf_operation_row(op->kind)->choice;
    if (!choice->chooses || choice->of < 0 || !m->placed[op->inputs[choice->ids]])
        return;
    const MtfShape *table = mtf_operation_operand_shape(m->from, op, choice->of);
    const MtfShape *rest = mtf_operation_operand_shape(m->from, op, choice->without);
    for (int i = 0; i < table->rank; i++)
        if (!has(rest, table->dims[i]))
            holds_context(m, mtf_graph_tensor(m->from, op->inputs[choice->of])->name,
                          mtf_graph_size(m->from, table->dims[i]));
}

/* The product with the vocabulary sees one place an example. */
static bool is_head(const Making *m, const MtfOperation *op) {
    return mtf_operation_row(op->kind)->products == MTF_PRODUCTS_EINSUM &&
           has(&mtf_graph_tensor(m->from, op->outputs[0])->shape, m->vocabulary);
}

static int emit_copy(Making *m, const MtfOperation *op, int *inputs) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    for (int k = 0; k < op->n_inputs && m->error == NULL && is_head(m, op); k++)
        if (has(shape_of(m, inputs[k]), m->length))
            inputs[k] = select_last(m, inputs[k]);
    if (m->error != NULL)
        return -1;
    MtfShape shape = fitted_shape(m, op, inputs);
    Emission e = { .name = op->name,
                   .suffix = "",
                   .kind = op->kind,
                   .attributes = op->attributes,
                   .shape = infers_shape(row) ? NULL : &shape,
                   .has_dtype = mtf_operation_row_chooses_dtype(row),
                   .dtype = mtf_graph_tensor(m->from, op->outputs[0])->dtype };
    return emit(m, &e, op->n_inputs, inputs);
}

static int copy_operation(Making *m, const MtfOperation *op, int *inputs) {
    if (mixes_places(m, op))
        fail_at(m, op, "looks along the text");
    check_rows(m, op);
    return emit_copy(m, op, inputs);
}

/* Where nobody is dropped a token's result is the same whoever else is there. */
static int make_slots(Making *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    if (a->dimension != m->length)
        return copy_operation(m, op, inputs);
    if (a->capacity >= 0)
        fail_at(m, op, "drops choices beyond a capacity, in the order of the text");
    return emit_copy(m, op, inputs);
}

/* What is moved to the places of all choices of a text. */
static int make_routed(Making *m, const MtfOperation *op, int *inputs) {
    const MtfShape *places = &mtf_graph_tensor(m->from, op->outputs[0])->shape;
    bool all = false;
    for (int i = 0; i < places->rank; i++)
        all |= choices_of_places(m->from, m->needed, m->length, places->dims[i]) > 0;
    return (all ? emit_copy : copy_operation)(m, op, inputs);
}

// cppcheck-suppress constParameter
static int make_nothing(Making *m, const MtfOperation *op, int *inputs) {
    (void)m;
    (void)op;
    return inputs[0];
}

/* Keys or values of the tokens at hand go where those of the text are kept: heads apart, so that
 * the rows of one follow one another. */
static int make_cache(Making *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    if (a->from != m->length)
        return copy_operation(m, op, inputs);
    const MtfTensor *x = mtf_graph_tensor(m->graph, inputs[0]);
    MtfShape shape = { 0 };
    int last = x->shape.dims[x->shape.rank - 1];
    for (int i = 0; i < x->shape.rank; i++)
        if (x->shape.dims[i] != m->length && x->shape.dims[i] != last)
            mtf_shape_append(&shape, x->shape.dims[i]);
    mtf_shape_append(&shape, a->to);
    if (last != m->length)
        mtf_shape_append(&shape, last);
    g_autofree char *full = g_strconcat(op->name, "/cache", NULL);
    g_autofree char *name = free_name(m, full);
    int cache =
        mtf_graph_add_variable(m->graph, name, &shape, x->dtype, (MtfInit){ MTF_INIT_CONSTANT, 0 },
                               MTF_MEMORY_CACHE, &m->error);
    if (cache >= 0)
        mtf_graph_tensor(m->graph, cache)->layer = op->layer;
    Emission e = { op->name, "", MTF_OP_CACHE_UPDATE, MTF_NO_ATTRIBUTES, &shape, false, 0 };
    e.attributes.from = m->length;
    e.attributes.to = a->to;
    int next = emit(m, &e, 3, (int[]){ inputs[0], cache, m->position });
    if (next >= 0)
        mtf_graph_add_update(m->graph, cache, next);
    return next;
}

/* where(memory <= place, x, -1e30), under the name of `op`. */
static int hide_later(Making *m, const MtfOperation *op, const char *suffix, int memory_dim,
                      int x) {
    if (x < 0)
        return -1;
    MtfDtype dtype = mtf_graph_tensor(m->graph, x)->dtype;
    MtfShape along = { 1, { memory_dim } }, all = { 3, { m->batch, m->length, memory_dim } };
    MtfShape scalar = { 0 }, whole = *shape_of(m, x);
    Emission range = {
        op->name, "/memory", MTF_OP_RANGE, MTF_NO_ATTRIBUTES, &along, true, MTF_I32
    };
    Emission less = {
        op->name, "/seen_place", MTF_OP_LESS_EQUAL, MTF_NO_ATTRIBUTES, &all, false, 0
    };
    Emission cast = { op->name, "/seen", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, dtype };
    Emission low = {
        op->name, "/unseen", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, dtype
    };
    Emission choose = { op->name, suffix, MTF_OP_WHERE, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    low.attributes.value = NEVER_SEEN;
    int memory = emit(m, &range, 0, NULL), place = place_of(m);
    int seen_place = emit(m, &less, 2, (int[]){ memory, place });
    int seen = emit(m, &cast, 1, &seen_place), unseen = emit(m, &low, 0, NULL);
    return emit(m, &choose, 3, (int[]){ seen, x, unseen });
}

static int make_mask(Making *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    if (a->query != m->length || inputs[0] < 0)
        return copy_operation(m, op, inputs);
    return hide_later(m, op, "", a->memory, inputs[0]);
}

/* The scores of attention with something added, and their softmax: [batch, heads, length, memory]. */
static int biased_shares(Making *m, const MtfOperation *op, const int *inputs) {
    const MtfAttributes *a = &op->attributes;
    MtfShape all = *shape_of(m, inputs[0]);
    mtf_shape_remove(&all, a->dimension);
    if (!mtf_shape_append(&all, a->memory)) {
        fail_at(m, op, "has too many dimensions");
        return -1;
    }
    Emission product = { op->name, "/products", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &all, false, 0 };
    Emission scale = { op->name, "/scores", MTF_OP_SCALE, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    Emission add = { op->name, "/biased", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &all, false, 0 };
    Emission softmax = { op->name, "/shares", MTF_OP_SOFTMAX, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    scale.attributes.factor = a->factor;
    softmax.attributes.dimension = a->memory;
    int products = emit(m, &product, 2, inputs), scores = emit(m, &scale, 1, &products);
    int biased = emit(m, &add, 2, (int[]){ scores, inputs[3] });
    int seen = hide_later(m, op, "/causal", a->memory, biased);
    return emit(m, &softmax, 1, &seen);
}

/* Attention with a bias, by rows that there are: cached_attention adds none. */
static int make_biased_attention(Making *m, const MtfOperation *op, const int *inputs) {
    const MtfAttributes *a = &op->attributes;
    for (int k = 0; k < 4; k++)
        if (inputs[k] < 0)
            return -1;
    if (a->softcap != 0 || a->window != 0) {
        fail_at(m, op, "has a bias beside a cap or a window");
        return -1;
    }
    MtfShape out = *shape_of(m, inputs[0]);
    Emission e = { op->name, "", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &out, false, 0 };
    return emit(m, &e, 2, (int[]){ biased_shares(m, op, inputs), inputs[2] });
}

/* Attention to the caches; its lse is the next tensor. */
static int attend_cached(Making *m, const MtfOperation *op, const char *suffix, const int *inputs) {
    Emission e = { op->name, suffix, MTF_OP_CACHED_ATTENTION, op->attributes, NULL, false, 0 };
    e.attributes.causal = e.attributes.rate = 0;
    if (op->attributes.causal == 0)
        fail_at(m, op, "looks at what comes later, or at another text");
    return emit(m, &e, 4, (int[]){ inputs[0], inputs[1], inputs[2], m->position });
}

static int make_attention(Making *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.query != m->length)
        return copy_operation(m, op, inputs);
    if (op->n_inputs > 3 && op->attributes.causal != 0)
        return make_biased_attention(m, op, inputs);
    return attend_cached(m, op, "", inputs);
}

/* Attention that goes on from o and lse: what the caches hold makes e^lse' of e^lse' + e^lse, and o the rest. */
static int make_further_attention(Making *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.query != m->length)
        return copy_operation(m, op, inputs);
    if (op->n_inputs > 5)
        fail_at(m, op, "has a bias beside what it goes on from");
    int seen = attend_cached(m, op, "/seen", inputs), before = inputs[3];
    if (seen < 0)
        return -1;
    MtfShape whole = *shape_of(m, seen), rest = *shape_of(m, seen + 1);
    Emission apart = { op->name, "/apart", MTF_OP_SUBTRACT, MTF_NO_ATTRIBUTES, &rest, false, 0 };
    Emission share = { op->name, "/share", MTF_OP_SIGMOID, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    Emission narrow = { op->name, "/narrow", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, 0 };
    Emission beyond = { op->name, "/beyond", MTF_OP_SUBTRACT, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    Emission more = { op->name, "/more", MTF_OP_MULTIPLY, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    Emission sum = { op->name, "", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    narrow.dtype = mtf_graph_tensor(m->graph, seen)->dtype;
    int logs = emit(m, &apart, 2, (int[]){ seen + 1, inputs[4] });
    int part = emit(m, &share, 1, &logs);
    if (part >= 0 && mtf_graph_tensor(m->graph, part)->dtype != narrow.dtype)
        part = emit(m, &narrow, 1, &part);
    int change = emit(m, &beyond, 2, (int[]){ seen, before });
    return emit(m, &sum, 2, (int[]){ before, emit(m, &more, 2, (int[]){ change, part }) });
}

static int make_rotary(Making *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.position != m->length)
        return copy_operation(m, op, inputs);
    Emission e = { op->name, "", MTF_OP_ROTARY, op->attributes, NULL, false, 0 };
    /* How long the text is matters only where frequencies follow it. */
    int n = mtf_rotary_follows_length(&op->attributes) ? 3 : 2;
    return emit(m, &e, n, (int[]){ inputs[0], m->position, m->last });
}

static int make_range(Making *m, const MtfOperation *op, int *inputs) {
    const MtfTensor *out = mtf_graph_tensor(m->from, op->outputs[0]);
    if (!has(&out->shape, m->length))
        return copy_operation(m, op, inputs);
    m->placed[op->outputs[0]] = true;
    int place = place_of(m);
    if (out->dtype == MTF_I32)
        return place;
    Emission e = { op->name, "", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, out->dtype };
    return emit(m, &e, 1, &place);
}

/* Nothing, where the variable is kept in that type. */
static int make_cast(Making *m, const MtfOperation *op, int *inputs) {
    MtfDtype wanted = mtf_graph_tensor(m->from, op->outputs[0])->dtype;
    if (inputs[0] >= 0 && mtf_graph_tensor(m->graph, inputs[0])->dtype == wanted)
        return inputs[0];
    return copy_operation(m, op, inputs);
}

/* How operations are made, keyed like the operation table; NULL: copied. */
static int (*const makers[MTF_OPERATIONS])(Making *m, const MtfOperation *op, int *inputs) = {
    [MTF_OP_RENAME] = make_cache,          [MTF_OP_ATTENTION] = make_attention,
    [MTF_OP_ROTARY] = make_rotary,         [MTF_OP_RANGE] = make_range,
    [MTF_OP_CAUSAL_MASK] = make_mask,      [MTF_OP_DROPOUT] = make_nothing,
    [MTF_OP_STOP_GRADIENT] = make_nothing, [MTF_OP_CAST] = make_cast,
    [MTF_OP_SLOTS] = make_slots,           [MTF_OP_SLOT_IDS] = make_routed,
    [MTF_OP_DISPATCH] = make_routed,       [MTF_OP_ATTENTION_FURTHER] = make_further_attention,
};

static void make_operation(Making *m, int index) {
    const MtfOperation *op = mtf_graph_operation(m->from, index);
    g_autofree int *inputs = g_new(int, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++) {
        inputs[k] = tensor_of(m, op->inputs[k]);
        m->placed[op->outputs[0]] |= m->placed[op->inputs[k]];
    }
    if (m->error != NULL)
        return;
    m->layer = op->layer;
    int first = (makers[op->kind] != NULL ? makers[op->kind] : copy_operation)(m, op, inputs);
    if (first < 0)
        return;
    const MtfTensor *made = mtf_graph_tensor(m->graph, first);
    m->tensors[op->outputs[0]] = first;
    for (int k = 1; k < op->n_outputs && made->producer >= 0; k++)
        m->tensors[op->outputs[k]] = mtf_graph_operation(m->graph, made->producer)->outputs[k];
}

/* The scores are kept until they are asked for. */
static void keep_scores(Making *m) {
    int scores = m->error == NULL ? m->tensors[m->scores] : -1;
    if (scores < 0)
        return;
    if (has(shape_of(m, scores), m->length))
        scores = select_last(m, scores);
    if (scores < 0)
        return;
    g_autofree char *name = free_name(m, "scores");
    const MtfTensor *tensor = mtf_graph_tensor(m->graph, scores);
    MtfShape shape = tensor->shape;
    int kept =
        mtf_graph_add_variable(m->graph, name, &shape, tensor->dtype,
                               (MtfInit){ MTF_INIT_CONSTANT, 0 }, MTF_MEMORY_OUTPUT, &m->error);
    if (kept >= 0)
        mtf_graph_add_update(m->graph, kept, scores);
}

static void make_graph(Making *m) {
    copy_dimensions(m);
    add_inputs(m);
    for (int i = 0; i < (int)m->from->operations->len && m->error == NULL; i++)
        if (m->needed[i])
            make_operation(m, i);
    m->layer = (MtfLayer){ 0 };
    keep_scores(m);
}

/* New tensors there may be of each old one: itself, a cache, parts of a mask; and some in common. */
#define TENSORS_EACH 8
#define TENSORS_MORE 64

MtfGraph *mtf_generation_graph(const MtfGraph *graph, const MtfGenerationSizes *sizes,
                               GError **error) {
    gsize tensors = graph->tensors->len + 1, made = TENSORS_EACH * tensors + TENSORS_MORE;
    g_autoptr(MtfGraph) result = mtf_graph_new_like(graph);
    g_autofree bool *needed = g_new0(bool, graph->operations->len + 1);
    g_autofree bool *placed = g_new0(bool, tensors);
    g_autofree int *map = g_new(int, tensors), *selected = g_new(int, made);
    memset(map, -1, tensors * sizeof *map);
    memset(selected, -1, made * sizeof *selected);
    Making m = { .from = graph,
                 .graph = result,
                 .sizes = sizes,
                 .needed = needed,
                 .placed = placed,
                 .tensors = map,
                 .selected = selected };
    if (!find_scores(&m, error))
        return NULL;
    mark_needed(&m);
    make_graph(&m);
    if (m.error != NULL) {
        g_propagate_error(error, m.error);
        return NULL;
    }
    mtf_graph_canonicalize(result);
    return g_steal_pointer(&result);
}

void mtf_generation_set_length(MtfGraph *graph, int64_t length) {
    int dim = mtf_generation_length(graph), n = (int)graph->dimensions->len;
    g_autofree int64_t *choices = g_new(int64_t, n);
    for (int d = 0; d < n; d++)
        choices[d] = choices_of_places(graph, NULL, dim, d);
    mtf_graph_dimension(graph, dim)->size = length;
    for (int d = 0; d < n; d++)
        if (choices[d] > 0)
            mtf_graph_dimension(graph, d)->size = length * choices[d];
}
