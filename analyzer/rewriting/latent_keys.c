// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/latent_keys.h"

#include "layouts/building/replace_operations.h"

/* One attention whose keys and values come from a few features. Tensors, then dimensions. */
typedef struct {
    const MtfOperation *attention;
    int few, turned;                /* [batch, length, latent], [batch, length, turned] */
    int still_query, turning_query; /* of queries, joined like keys */
    int key_weights, value_weights;
    int still_key, turned_key, value; /* tensors of keys and values, which have heads */
    int latent, turning;
    bool widened; /* values are filled up to the width of keys, and results cut off */
} Latent;

/* ---- What such attention is made of ---------------------------------------------------------- */

typedef enum { OTHER, ATTENDS, CALLS, JOINS, SPREADS, MULTIPLIES, FILLS, CUTS } Part;

static const unsigned char parts[MTF_OPERATIONS] = {
    [MTF_OP_ATTENTION] = ATTENDS, [MTF_OP_RENAME] = CALLS,      [MTF_OP_CONCAT] = JOINS,
    [MTF_OP_BROADCAST] = SPREADS, [MTF_OP_EINSUM] = MULTIPLIES, [MTF_OP_PAD] = FILLS,
    [MTF_OP_SLICE] = CUTS,
};

/* What made a tensor, if it is such a part; or NULL. */
static const MtfOperation *made_by(const MtfGraph *graph, int tensor, Part part) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    const MtfOperation *op = producer < 0 ? NULL : mtf_graph_operation(graph, producer);
    return op != NULL && parts[op->kind] == part ? op : NULL;
}

/* What is called by memory's name in an input of attention. */
static int called(const MtfGraph *graph, const MtfOperation *attention, int k) {
    const MtfOperation *op = made_by(graph, attention->inputs[k], CALLS);
    return op != NULL && op->attributes.from == attention->attributes.query ? op->inputs[0] : -1;
}

/* The weights of a product with a variable, and what they are multiplied with. */
static bool find_product(const MtfGraph *graph, int tensor, int *weights, int *with) {
    const MtfOperation *op = made_by(graph, tensor, MULTIPLIES);
    for (int k = 0; op != NULL && op->n_inputs == 2 && k < 2; k++) {
        *weights = op->inputs[k];
        *with = op->inputs[1 - k];
        if (mtf_graph_tensor(graph, *weights)->source == MTF_SOURCE_VARIABLE)
            return true;
    }
    return false;
}

/* Both parts of queries or keys, one behind the other. */
static bool find_parts(const MtfGraph *graph, int tensor, int *still, int *turning) {
    const MtfOperation *join = tensor < 0 ? NULL : made_by(graph, tensor, JOINS);
    if (join == NULL || join->n_inputs != 2)
        return false;
    *still = join->inputs[0];
    *turning = join->inputs[1];
    return true;
}

static int last_dimension(const MtfGraph *graph, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    return shape->dims[shape->rank - 1];
}

static bool find_keys(const MtfGraph *graph, Latent *l) {
    if (!find_parts(graph, called(graph, l->attention, 1), &l->still_key, &l->turned_key) ||
        !find_product(graph, l->still_key, &l->key_weights, &l->few))
        return false;
    const MtfOperation *spread = made_by(graph, l->turned_key, SPREADS);
    if (spread == NULL)
        return false;
    l->turned = spread->inputs[0];
    l->latent = last_dimension(graph, l->few);
    l->turning = last_dimension(graph, l->turned);
    return mtf_graph_tensor(graph, l->few)->shape.rank == 3 &&
           mtf_graph_tensor(graph, l->turned)->shape.rank == 3;
}

static bool find_values(const MtfGraph *graph, Latent *l) {
    int with;
    l->value = called(graph, l->attention, 2);
    const MtfOperation *fill = l->value < 0 ? NULL : made_by(graph, l->value, FILLS);
    l->value = fill != NULL ? fill->inputs[0] : l->value;
    return l->value >= 0 && (fill != NULL) == l->widened &&
           find_product(graph, l->value, &l->value_weights, &with) && with == l->few;
}

/* Whether an operation is the last of such attention: itself, or what cuts off its results. */
static bool find_latent(const MtfGraph *graph, const MtfOperation *op, Latent *l) {
    *l = (Latent){ .widened = parts[op->kind] == CUTS };
    l->attention = l->widened ? made_by(graph, op->inputs[0], ATTENDS) : op;
    if (l->attention == NULL || parts[l->attention->kind] != ATTENDS ||
        l->attention->n_inputs != 3 || l->attention->loop != 0)
        return false;
    return find_keys(graph, l) && find_values(graph, l) &&
           find_parts(graph, l->attention->inputs[0], &l->still_query, &l->turning_query);
}

static bool is_latent(const MtfGraph *graph, const MtfOperation *op, int count) {
    Latent l;
    (void)count;
    return find_latent(graph, op, &l);
}

/* ---- The same another way -------------------------------------------------------------------- */

typedef struct {
    MtfBuilder *b;
    Latent of;
    const char *name; /* of the last operation */
    int memory;       /* what is remembered, called by memory's name */
    int joined;       /* its features' dimension */
} Making;

static MtfShape shape_of(const Making *m, int tensor) {
    return mtf_graph_tensor(m->b->graph, tensor)->shape;
}

/* The shape of a tensor with another dimension in the place of one. */
static MtfShape with(const Making *m, int tensor, int from, int to) {
    MtfShape shape = shape_of(m, tensor);
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] == from)
            shape.dims[i] = to;
    return shape;
}

static int build(Making *m, int kind, const char *what, const MtfShape *shape, int x, int y) {
    g_autofree char *name = g_strdup_printf("%s/%s", m->name, what);
    return mtf_build(m->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

/* Features from `start` on. */
static int cut(Making *m, const char *what, int x, int to, int64_t start) {
    m->b->attributes.from = m->joined;
    m->b->attributes.to = to;
    m->b->attributes.start = (double)start;
    m->b->attributes.stride = 1;
    return build(m, MTF_OP_SLICE, what, NULL, x, -1);
}

static int attend(Making *m, const char *name, int dimension, int q, int k, int v) {
    m->b->attributes = m->of.attention->attributes;
    m->b->attributes.dimension = dimension;
    return MTF_BUILD(m->b, MTF_OP_ATTENTION, name, NULL, q, k, v);
}

/* Features of both, joined. */
static int join(Making *m, const char *what, int few, int turned) {
    MtfShape shape = with(m, few, m->of.latent, m->joined);
    return build(m, MTF_OP_CONCAT, what, &shape, few, turned);
}

static void remember(Making *m) {
    const MtfAttributes *a = &m->of.attention->attributes;
    int64_t latent = mtf_graph_size(m->b->graph, m->of.latent);
    int64_t turning = mtf_graph_size(m->b->graph, m->of.turning);
    m->joined = mtf_dimension_below(m->b, m->of.latent, "joined", latent + turning);
    int joined = join(m, "joined", m->of.few, m->of.turned);
    m->b->attributes.from = a->query;
    m->b->attributes.to = a->memory;
    m->memory = build(m, MTF_OP_RENAME, "remembered", NULL, joined, -1);
}

/* Queries that meet what is remembered as it is. */
static int few_queries(Making *m) {
    const Latent *l = &m->of;
    int still = last_dimension(m->b->graph, l->still_query);
    MtfShape shape = with(m, l->still_query, still, l->latent);
    int q = build(m, MTF_OP_EINSUM, "query", &shape, l->still_query, l->key_weights);
    q = join(m, "queries", q, l->turning_query);
    g_autofree char *name = g_strdup_printf("%s/attention", m->name);
    int seen = attend(m, name, m->joined, q, m->memory, m->memory);
    seen = cut(m, "seen", seen, l->latent, 0);
    MtfShape out = with(m, l->still_query, still, last_dimension(m->b->graph, l->value));
    return MTF_BUILD(m->b, MTF_OP_EINSUM, m->name, &out, seen, l->value_weights);
}

/* A part of what is remembered, as features of every head. */
static int of_heads(Making *m, int kind, const char *what, int like, int part, int weights) {
    const MtfAttributes *a = &m->of.attention->attributes;
    MtfShape shape = with(m, like, a->query, a->memory);
    return build(m, kind, what, &shape, part, weights);
}

/* Attention whose values are narrower than its keys: filled up, and what is made of that cut off. */
static int attend_narrow(Making *m, int keys, int value, int q, int k, int v) {
    g_autofree char *name = g_strdup_printf("%s/attention", m->name);
    m->b->attributes.from = value;
    m->b->attributes.to = keys;
    v = build(m, MTF_OP_PAD, "filled", NULL, v, -1);
    int seen = attend(m, name, keys, q, k, v);
    m->b->attributes.from = keys;
    m->b->attributes.to = value;
    m->b->attributes.start = 0;
    m->b->attributes.stride = 1;
    return MTF_BUILD(m->b, MTF_OP_SLICE, m->name, NULL, seen);
}

/* Keys and values of all that is remembered. */
static int many_queries(Making *m) {
    const Latent *l = &m->of;
    const MtfGraph *graph = m->b->graph;
    const MtfAttributes *a = &l->attention->attributes;
    int q = l->attention->inputs[0], value = last_dimension(graph, l->value);
    int few = cut(m, "few", m->memory, l->latent, 0);
    int turned = cut(m, "turned", m->memory, l->turning, mtf_graph_size(graph, l->latent));
    int k = of_heads(m, MTF_OP_EINSUM, "still", l->still_key, few, l->key_weights);
    int same = of_heads(m, MTF_OP_BROADCAST, "of_all_heads", l->turned_key, turned, -1);
    MtfShape keys = with(m, q, a->query, a->memory);
    k = build(m, MTF_OP_CONCAT, "keys", &keys, k, same);
    int v = of_heads(m, MTF_OP_EINSUM, "values", l->value, few, l->value_weights);
    return l->widened ? attend_narrow(m, a->dimension, value, q, k, v)
                      : attend(m, m->name, a->dimension, q, k, v);
}

/* ---- In its place ---------------------------------------------------------------------------- */

typedef int (*Way)(Making *m);

static void make(MtfBuilder *b, const MtfOperation *op, char *name, Way way, int *results) {
    Making m = { .b = b, .name = name };
    find_latent(b->graph, op, &m.of);
    remember(&m);
    results[0] = way(&m);
    results[1] = op->n_outputs > 1 ? op->outputs[1] : -1;
}

static void for_few(MtfBuilder *b, const MtfOperation *op, char *name, int count, int *results) {
    (void)count;
    make(b, op, name, few_queries, results);
}

static void for_many(MtfBuilder *b, const MtfOperation *op, char *name, int count, int *results) {
    (void)count;
    make(b, op, name, many_queries, results);
}

/* Multiplications of a head of an example, either way. */
static bool are_few(const MtfGraph *graph, const Latent *l, int64_t queries, int64_t context) {
    double n = (double)queries, m = (double)context;
    double latent = (double)mtf_graph_size(graph, l->latent);
    double joined = latent + (double)mtf_graph_size(graph, l->turning);
    double still = (double)mtf_graph_size(graph, last_dimension(graph, l->still_key));
    double value = (double)mtf_graph_size(graph, last_dimension(graph, l->value));
    double key = (double)mtf_graph_size(graph, l->attention->attributes.dimension);
    return n * (latent * (still + value) + 2 * m * joined) <=
           m * latent * (still + value) + 2 * n * m * key;
}

bool mtf_graph_remember_latents(MtfGraph *graph, int64_t queries, int64_t context, GError **error) {
    MtfReplacement replacement = { "--infer", "latent keys", is_latent, for_many };
    Latent l;
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (find_latent(graph, mtf_graph_operation(graph, i), &l)) {
            replacement.build = are_few(graph, &l, queries, context) ? for_few : for_many;
            return mtf_replace_operations(graph, &replacement, 2, error);
        }
    return true;
}
