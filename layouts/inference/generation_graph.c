// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/inference/generation_graph.h"

#include "layouts/base/error.h"
#include "layouts/graph/loops.h"
#include "layouts/inference/generation_making.h"

#include <inttypes.h>

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

bool mtf_graph_has_results(const MtfGraph *graph) {
    return graph->loss < 0 && mtf_generation_scores(graph) >= 0;
}

bool mtf_graph_generates(const MtfGraph *graph) {
    return mtf_graph_has_results(graph) && mtf_generation_input(graph, MTF_FEED_LAST) >= 0;
}

int mtf_generation_length(const MtfGraph *graph) {
    int tokens = mtf_generation_input(graph, MTF_FEED_TOKENS);
    return tokens < 0 ? -1 : mtf_graph_tensor(graph, tokens)->shape.dims[1];
}

int mtf_generation_context(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        int cache = op->n_inputs == 3 && op->attributes.to >= 0 ? op->inputs[1] : -1;
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

static bool find_scores(MtfMaking *m, GError **error) {
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

/* What the scores follow from, where `wanted` are known to be wanted; states want what hands them on. Whether
 * that is more than was known. */
static bool mark_more(MtfMaking *m, bool *wanted) {
    bool more = false;
    for (int i = (int)m->from->operations->len - 1; i >= 0; i--) {
        const MtfOperation *op = mtf_graph_operation(m->from, i);
        bool known = m->needed[i];
        for (int k = 0; k < op->n_outputs; k++)
            m->needed[i] |= wanted[op->outputs[k]];
        if (mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON)
            m->needed[i] |= wanted[op->inputs[0]];
        for (int k = 0; k < op->n_inputs && m->needed[i]; k++)
            wanted[op->inputs[k]] = true;
        more |= m->needed[i] != known;
    }
    return more;
}

static void mark_needed(MtfMaking *m) {
    g_autofree bool *wanted = g_new0(bool, m->from->tensors->len + 1);
    wanted[m->scores] = true;
    while (mark_more(m, wanted))
        ;
}

/* ---- Dimensions, inputs and variables -------------------------------------------------------- */

/* Memory dimensions: those that what counts the text is renamed to. */
static bool is_memory(const MtfMaking *m, int dim) {
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

static void copy_dimensions(MtfMaking *m) {
    g_autofree int64_t *beyond = g_new(int64_t, m->from->dimensions->len + 1);
    mtf_making_places_beyond(m->from, m->length, beyond);
    for (int d = 0; d < (int)m->from->dimensions->len; d++) {
        const MtfDimension *dimension = mtf_graph_dimension(m->from, d);
        int64_t size = dimension->size;
        if (d == m->batch && m->sizes->batch > 0)
            size = m->sizes->batch;
        if (d == m->length || beyond[d] >= 0)
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
    for (guint i = 0; i < m->from->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(m->from->loops, MtfLoop, i);
        mtf_graph_add_loop(m->graph, loop->name, loop->dimension, loop->reverse);
    }
}

static int add_input(MtfMaking *m, const char *name, const MtfShape *shape, MtfFeed feed) {
    g_autofree char *own = mtf_making_free_name(m, name);
    return m->error != NULL ? -1
                            : mtf_graph_add_input(m->graph, own, shape, MTF_I32, feed, &m->error);
}

static void add_inputs(MtfMaking *m) {
    const MtfTensor *tokens = mtf_graph_tensor(m->from, m->tokens);
    MtfShape each = { 1, { m->batch } };
    m->tensors[m->tokens] = mtf_graph_add_input(m->graph, tokens->name, &tokens->shape, MTF_I32,
                                                MTF_FEED_TOKENS, &m->error);
    m->position = add_input(m, "position", &each, MTF_FEED_POSITION);
    m->last = add_input(m, "last", &each, MTF_FEED_LAST);
    m->place = m->chosen = -1;
}

static int integer_range(MtfMaking *m, const char *name) {
    MtfShape along = { 1, { m->length } };
    g_autofree char *own = mtf_making_free_name(m, name);
    MtfEmission e = { own, "", MTF_OP_RANGE, MTF_NO_ATTRIBUTES, &along, true, MTF_I32 };
    return mtf_making_emit(m, &e, 0, NULL);
}

/* The position of each token at hand in its text. */
int mtf_making_place(MtfMaking *m) {
    MtfShape both = { 2, { m->batch, m->length } };
    MtfLayer reader = m->layer;
    int loop = m->loop;
    m->layer = (MtfLayer){ 0 };
    m->loop = 0;
    if (m->place < 0) {
        g_autofree char *own = mtf_making_free_name(m, "place_in_text");
        MtfEmission e = { own, "", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &both, false, MTF_I32 };
        m->place =
            mtf_making_emit(m, &e, 2, (int[]){ integer_range(m, "place_at_hand"), m->position });
    }
    m->layer = reader;
    m->loop = loop;
    return m->place;
}

/* 1 where a token is its example's last, else 0, in the type of `like`. */
static int chosen_of(MtfMaking *m, int like) {
    MtfShape both = { 2, { m->batch, m->length } };
    MtfLayer reader = m->layer;
    m->layer = (MtfLayer){ 0 };
    if (m->chosen < 0 && like >= 0) {
        g_autofree char *equal = mtf_making_free_name(m, "is_last");
        g_autofree char *own = mtf_making_free_name(m, "last_share");
        MtfEmission compare = { equal, "", MTF_OP_EQUAL, MTF_NO_ATTRIBUTES, &both, false, MTF_I32 };
        int is =
            mtf_making_emit(m, &compare, 2, (int[]){ integer_range(m, "place_of_last"), m->last });
        MtfDtype dtype = mtf_graph_tensor(m->graph, like)->dtype;
        MtfEmission cast = { own, "", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, dtype };
        m->chosen = mtf_making_emit(m, &cast, 1, &is);
    }
    m->layer = reader;
    return m->chosen;
}

/* The type in which all that is needed reads a variable: where it is cast for each of its readers,
 * it is kept so. */
static MtfDtype type_read(const MtfMaking *m, int variable) {
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

static int variable_like(MtfMaking *m, const MtfTensor *from, const MtfShape *shape) {
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

static bool holds_context(MtfMaking *m, const char *name, int64_t rows) {
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
static int positions_table(MtfMaking *m, const MtfTensor *tensor) {
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
    int table = variable_like(m, tensor, &shape), place = mtf_making_place(m);
    MtfLayer reader = m->layer;
    MtfEmission e = {
        tensor->name, "/at_hand", MTF_OP_EMBEDDING, MTF_NO_ATTRIBUTES, &read, false, 0
    };
    m->layer = tensor->layer;
    int at_hand = mtf_making_emit(m, &e, 2, (int[]){ table, place });
    m->layer = reader;
    return at_hand;
}

/* The new graph's tensor; variables are made when they are first read. */
static int tensor_of(MtfMaking *m, int t) {
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
static int select_last(MtfMaking *m, int tensor) {
    MtfShape shape = *mtf_making_shape(m, tensor);
    mtf_shape_remove(&shape, m->length);
    if (m->selected[tensor] < 0) {
        g_autofree char *name = g_strdup(mtf_graph_tensor(m->graph, tensor)->name);
        int share = chosen_of(m, tensor);
        MtfEmission e = { name, "/last", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &shape, false, 0 };
        m->selected[tensor] = mtf_making_emit(m, &e, 2, (int[]){ tensor, share });
    }
    return m->selected[tensor];
}

/* The dimensions of an operation's result here: those that its inputs still have, or never had, and
 * the example's where a position brings it in. */
static MtfShape fitted_shape(const MtfMaking *m, const MtfOperation *op, const int *inputs) {
    const MtfShape *before = &mtf_graph_tensor(m->from, op->outputs[0])->shape;
    MtfShape shape = { 0 };
    bool batch = has(before, m->batch), had = batch, length = false, had_length = false;
    for (int k = 0; k < op->n_inputs; k++) {
        batch |= has(mtf_making_shape(m, inputs[k]), m->batch);
        had |= has(&mtf_graph_tensor(m->from, op->inputs[k])->shape, m->batch);
        length |= has(mtf_making_shape(m, inputs[k]), m->length);
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
static bool mixes_places(const MtfMaking *m, const MtfOperation *op) {
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

/* Whether places of the text are made of what has none: elements of a table that stand for places by their number, of
 * which the graph at hand would take the first for each. */
static bool makes_places(const MtfMaking *m, const MtfOperation *op) {
    MtfDimsRule dims = mtf_operation_row(op->kind)->dims;
    return op->n_inputs > 0 && dims != MTF_DIMS_RENAMED && dims != MTF_DIMS_SUPERSET &&
           !an_input_has(m->from, op, m->length) &&
           has(&mtf_graph_tensor(m->from, op->outputs[0])->shape, m->length);
}

/* Whether what an example gets follows from others, which are texts of their own, at places of their own. */
static bool mixes_examples(const MtfMaking *m, const MtfOperation *op) {
    const MtfAttributes *a = &op->attributes;
    const int named[] = { a->dimension, a->from,     a->to,      a->query,
                          a->memory,    a->position, a->experts, a->choices };
    bool reads = false, keeps = true, names = false;
    for (int k = 0; k < op->n_inputs; k++)
        reads |= has(&mtf_graph_tensor(m->from, op->inputs[k])->shape, m->batch);
    for (int k = 0; k < op->n_outputs; k++)
        keeps &= has(&mtf_graph_tensor(m->from, op->outputs[k])->shape, m->batch);
    for (gsize i = 0; i < G_N_ELEMENTS(named); i++)
        names |= named[i] == m->batch;
    return reads && (!keeps || names);
}

/* Whether an operation takes a cache together whose later places nothing has hidden: they are those of no text. */
static bool takes_all_memory(const MtfMaking *m, const MtfOperation *op) {
    bool takes = false;
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(m->from, op->inputs[k])->shape;
        if (m->hides[op->inputs[k]])
            return false;
        for (int i = 0; i < shape->rank; i++)
            takes |= is_memory(m, shape->dims[i]) &&
                     !has(&mtf_graph_tensor(m->from, op->outputs[0])->shape, shape->dims[i]);
    }
    return takes;
}

/* An embedding of positions needs rows for all of the context. */
static void check_rows(MtfMaking *m, const MtfOperation *op) {
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
static bool is_head(const MtfMaking *m, const MtfOperation *op) {
    return mtf_operation_row(op->kind)->products == MTF_PRODUCTS_EINSUM &&
           has(&mtf_graph_tensor(m->from, op->outputs[0])->shape, m->vocabulary);
}

int mtf_making_copy_along(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    for (int k = 0; k < op->n_inputs && m->error == NULL && is_head(m, op); k++)
        if (has(mtf_making_shape(m, inputs[k]), m->length))
            inputs[k] = select_last(m, inputs[k]);
    if (m->error != NULL)
        return -1;
    MtfShape shape = fitted_shape(m, op, inputs);
    MtfEmission e = { .name = op->name,
                      .suffix = "",
                      .kind = op->kind,
                      .attributes = op->attributes,
                      .shape = infers_shape(row) ? NULL : &shape,
                      .has_dtype = mtf_operation_row_chooses_dtype(row),
                      .dtype = mtf_graph_tensor(m->from, op->outputs[0])->dtype };
    return mtf_making_emit(m, &e, op->n_inputs, inputs);
}

int mtf_making_copy(MtfMaking *m, const MtfOperation *op, int *inputs) {
    if (mixes_places(m, op) || makes_places(m, op))
        mtf_making_fail(m, op, "looks along the text");
    if (takes_all_memory(m, op))
        mtf_making_fail(m, op, "takes all places of the text together, later ones as well");
    check_rows(m, op);
    return mtf_making_copy_along(m, op, inputs);
}

/* Where nobody is dropped a token's result is the same whoever else is there. */
static int make_slots(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    if (a->dimension != m->length)
        return mtf_making_copy(m, op, inputs);
    if (a->capacity >= 0)
        mtf_making_fail(m, op, "drops choices beyond a capacity, in the order of the text");
    return mtf_making_copy_along(m, op, inputs);
}

/* What is moved to the places of all choices of a text. */
static int make_routed(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfShape *places = &mtf_graph_tensor(m->from, op->outputs[0])->shape;
    bool all = false;
    for (int i = 0; i < places->rank; i++)
        all |= choices_of_places(m->from, m->needed, m->length, places->dims[i]) > 0;
    return (all ? mtf_making_copy_along : mtf_making_copy)(m, op, inputs);
}

// cppcheck-suppress constParameter
static int make_nothing(MtfMaking *m, const MtfOperation *op, int *inputs) {
    (void)m;
    (void)op;
    return inputs[0];
}

static int make_range(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfTensor *out = mtf_graph_tensor(m->from, op->outputs[0]);
    if (!has(&out->shape, m->length))
        return mtf_making_copy(m, op, inputs);
    m->placed[op->outputs[0]] = true;
    int place = mtf_making_place(m);
    if (out->dtype == MTF_I32)
        return place;
    MtfEmission e = { op->name, "", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, out->dtype };
    return mtf_making_emit(m, &e, 1, &place);
}

/* Nothing, where the variable is kept in that type. */
static int make_cast(MtfMaking *m, const MtfOperation *op, int *inputs) {
    MtfDtype wanted = mtf_graph_tensor(m->from, op->outputs[0])->dtype;
    if (inputs[0] >= 0 && mtf_graph_tensor(m->graph, inputs[0])->dtype == wanted)
        return inputs[0];
    return mtf_making_copy(m, op, inputs);
}

/* How operations are made, keyed like the operation table; NULL: copied. */
static int (*const makers[MTF_OPERATIONS])(MtfMaking *m, const MtfOperation *op, int *inputs) = {
    [MTF_OP_RENAME] = mtf_make_cache,
    [MTF_OP_ATTENTION] = mtf_make_attention,
    [MTF_OP_ROTARY] = mtf_make_rotary,
    [MTF_OP_RANGE] = make_range,
    [MTF_OP_CAUSAL_MASK] = mtf_make_mask,
    [MTF_OP_DROPOUT] = make_nothing,
    [MTF_OP_STOP_GRADIENT] = make_nothing,
    [MTF_OP_CAST] = make_cast,
    [MTF_OP_SLOTS] = make_slots,
    [MTF_OP_SLOT_IDS] = make_routed,
    [MTF_OP_DISPATCH] = make_routed,
    [MTF_OP_ATTENTION_FURTHER] = mtf_make_further_attention,
    [MTF_OP_CONV] = mtf_make_convolution,
    [MTF_OP_LINEAR_ATTENTION] = mtf_make_linear_attention,
    [MTF_OP_SELECTIVE_SCAN] = mtf_make_linear_attention,
    [MTF_OP_LOOP_BEGIN] = mtf_make_loop_begin,
    [MTF_OP_LOOP_SLICE] = mtf_making_copy_along,
    [MTF_OP_LOOP_STACK] = mtf_making_copy_along,
    [MTF_OP_LOOP_NEXT] = mtf_make_loop_next,
};

static void make_operation(MtfMaking *m, int index) {
    const MtfOperation *op = mtf_graph_operation(m->from, index);
    g_autofree int *inputs = g_new(int, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++) {
        inputs[k] = tensor_of(m, op->inputs[k]);
        m->placed[op->outputs[0]] |= m->placed[op->inputs[k]];
        m->hides[op->outputs[0]] |= m->hides[op->inputs[k]];
    }
    if (m->error == NULL && mixes_examples(m, op))
        mtf_making_fail(m, op, "mixes examples, each of which is a text of its own");
    if (m->error != NULL)
        return;
    m->layer = op->layer;
    m->loop = op->loop;
    int first = (makers[op->kind] != NULL ? makers[op->kind] : mtf_making_copy)(m, op, inputs);
    if (first < 0)
        return;
    const MtfTensor *made = mtf_graph_tensor(m->graph, first);
    m->tensors[op->outputs[0]] = first;
    for (int k = 1; k < op->n_outputs && made->producer >= 0; k++)
        m->tensors[op->outputs[k]] = mtf_graph_operation(m->graph, made->producer)->outputs[k];
}

/* The scores are kept until they are asked for. */
static void keep_scores(MtfMaking *m) {
    int scores = m->error == NULL ? m->tensors[m->scores] : -1;
    if (scores < 0)
        return;
    if (has(mtf_making_shape(m, scores), m->length))
        scores = select_last(m, scores);
    if (scores < 0)
        return;
    g_autofree char *name = mtf_making_free_name(m, "scores");
    const MtfTensor *tensor = mtf_graph_tensor(m->graph, scores);
    MtfShape shape = tensor->shape;
    int kept =
        mtf_graph_add_variable(m->graph, name, &shape, tensor->dtype,
                               (MtfInit){ MTF_INIT_CONSTANT, 0 }, MTF_MEMORY_OUTPUT, &m->error);
    if (kept >= 0)
        mtf_graph_add_update(m->graph, kept, scores);
}

static void make_graph(MtfMaking *m) {
    copy_dimensions(m);
    add_inputs(m);
    for (int i = 0; i < (int)m->from->operations->len && m->error == NULL; i++)
        if (m->needed[i])
            make_operation(m, i);
    m->layer = (MtfLayer){ 0 };
    m->loop = 0;
    keep_scores(m);
    if (m->error == NULL)
        mtf_graph_gather_loops(m->graph, NULL, &m->error);
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
    g_autofree bool *hides = g_new0(bool, tensors);
    g_autofree int *map = g_new(int, tensors), *selected = g_new(int, made);
    g_autofree int *kept = g_new0(int, tensors);
    memset(map, -1, tensors * sizeof *map);
    memset(selected, -1, made * sizeof *selected);
    MtfMaking m = { .from = graph,
                    .graph = result,
                    .sizes = sizes,
                    .needed = needed,
                    .placed = placed,
                    .hides = hides,
                    .tensors = map,
                    .kept = kept,
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
    g_autofree int64_t *choices = g_new(int64_t, n), *beyond = g_new(int64_t, n);
    for (int d = 0; d < n; d++)
        choices[d] = choices_of_places(graph, NULL, dim, d);
    mtf_making_places_beyond(graph, dim, beyond);
    mtf_graph_dimension(graph, dim)->size = length;
    for (int d = 0; d < n; d++)
        if (choices[d] > 0)
            mtf_graph_dimension(graph, d)->size = length * choices[d];
        else if (beyond[d] >= 0)
            mtf_graph_dimension(graph, d)->size = length + beyond[d];
}
