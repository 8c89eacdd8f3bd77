// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/key_ring.h"

#include "layouts/building/replace_operations.h"

#include <string.h>

/* The inputs of attention, in this order; its gradient has those behind as well. */
enum { Q, K, V, O, LSE, DO, INPUTS };

/* The gradient of what is added to scores, behind those of queries, keys and values. */
enum { ADDED = V + 1, GRADIENTS };

/* What is added to scores. */
typedef struct {
    int parts;      /* the same in parts */
    MtfShape first; /* of those, before memory becomes their last dimension */
    bool stays;     /* with its queries, from which to which it differs; else it is handed on with
                       memory */
} Added;

/* One operation that is rewritten. */
typedef struct {
    MtfBuilder *b;
    const MtfOperation *op; /* as it was */
    char *name;             /* of it */
    int n_parts;
    int turns; /* how many parts of memory a part of queries meets */
    int parts,
        turned; /* dimensions whose size is the number of parts; the second while they are handed on */
    int query, memory; /* positions within one */
    bool striped;      /* part p of P has positions p, p + P, …, not neighbours */
    Added added[2];
    int n_added;
    int met; /* where something that is added stays, its parts along memory; else -1 */
    int own; /* then: the numbers of the parts of queries, … */
    int ids; /* … and of the parts of memory that they meet in the turn at hand */
} Ring;

/* ---- Which ----------------------------------------------------------------------------------- */

static bool divides(const MtfGraph *graph, int dim, int parts) {
    const MtfDimension *dimension = mtf_graph_dimension(graph, dim);
    return dimension->unpadded == 0 && dimension->size % parts == 0;
}

/* Where queries look back only, stripes have all as much to do in every turn; of parts of neighbours the last
 * one works in all turns and the first in one. A window ends the turns of neighbours early. */
static bool stripes(const MtfAttributes *a) {
    return a->causal != 0 && a->window == 0 && a->rate == 0;
}

/* Tensors get a dimension more for each of queries and memory that they have. */
static bool has_room(const MtfGraph *graph, const MtfOperation *op) {
    const MtfAttributes *a = &op->attributes;
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, op->inputs[k])->shape;
        int more = (mtf_shape_find(shape, a->query) >= 0) + (mtf_shape_find(shape, a->memory) >= 0);
        if (shape->rank + more > MTF_MAX_RANK)
            return false;
    }
    return true;
}

bool mtf_operation_rings(const MtfGraph *graph, const MtfOperation *op, int parts) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    const MtfAttributes *a = &op->attributes;
    bool back = row->products == MTF_PRODUCTS_ATTENTION_GRAD;
    if (!(row->in_parts || back) || op->loop != 0 || a->parts >= 0)
        return false;
    bool alike = mtf_graph_size(graph, a->query) == mtf_graph_size(graph, a->memory);
    return has_room(graph, op) && (a->causal == 0 || alike || stripes(a)) &&
           divides(graph, a->query, parts) && divides(graph, a->memory, parts);
}

/* The nearest query of a part looks back turn m - (m - 1) positions, m being those of a part. */
static int turns_of(const MtfGraph *graph, const MtfAttributes *a, int parts) {
    double m = (double)(mtf_graph_size(graph, a->memory) / parts);
    if (a->window == 0)
        return parts;
    return 1 + (int)MIN((double)parts - 1, (a->window - 2 + m) / m);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static MtfShape shape_of(const Ring *r, int tensor) {
    MtfShape none = { 0 };
    return tensor < 0 ? none : mtf_graph_tensor(r->b->graph, tensor)->shape;
}

/* NAME/TURN/WHAT */
static char *name_of(const Ring *r, int turn, const char *what) {
    return g_strdup_printf("%s/%d/%s", r->name, turn, what);
}

/* That of a tensor along positions of queries or of memory, with those in parts; along memory in parts of
 * their own where it has both. */
static MtfShape divided_shape(const Ring *r, int tensor) {
    const MtfAttributes *a = &r->op->attributes;
    MtfShape whole = shape_of(r, tensor), shape = { 0 };
    bool both = mtf_shape_find(&whole, a->query) >= 0 && mtf_shape_find(&whole, a->memory) >= 0;
    for (int i = 0; i < whole.rank; i++) {
        int dim = whole.dims[i];
        bool along = dim == a->query || dim == a->memory;
        int parts = both && dim == a->memory ? r->met : r->parts;
        if (along && !r->striped)
            mtf_shape_append(&shape, parts);
        mtf_shape_append(&shape, !along ? dim : dim == a->query ? r->query : r->memory);
        if (along && r->striped)
            mtf_shape_append(&shape, parts);
    }
    return shape;
}

static int divided(Ring *r, const char *what, int tensor) {
    MtfShape shape = divided_shape(r, tensor);
    g_autofree char *name = name_of(r, 0, what);
    return MTF_BUILD(r->b, MTF_OP_RESHAPE, name, &shape, tensor);
}

/* What is added to scores, its memory last. */
static int divide_added(Ring *r, const Added *added, int tensor, const char *name) {
    g_autofree char *first = g_strdup_printf("%s/first", name);
    int parts = MTF_BUILD(r->b, MTF_OP_RESHAPE, r->striped ? first : name, &added->first, tensor);
    if (!r->striped)
        return parts;
    MtfShape shape = added->first;
    mtf_shape_remove(&shape, r->memory);
    mtf_shape_append(&shape, r->memory);
    return MTF_BUILD(r->b, MTF_OP_TRANSPOSE, name, &shape, parts);
}

/* Layers that add the same to scores of the same queries share it in parts, BIAS/parts_of/QUERY/STAGE. */
static int divided_added(Ring *r, const Added *added, int tensor) {
    const MtfTensor *bias = mtf_graph_tensor(r->b->graph, tensor);
    const char *query = mtf_graph_dimension(r->b->graph, r->op->attributes.query)->name;
    g_autofree char *name = g_strdup_printf(
        "%s/%s/%s/%d", bias->name, r->striped ? "stripes_of" : "parts_of", query, r->b->stage);
    MtfLayer own = r->b->layer;
    int parts = mtf_graph_find_tensor(r->b->graph, name);
    if (parts >= 0)
        return parts;
    r->b->layer = bias->layer;
    parts = divide_added(r, added, tensor, name);
    r->b->layer = own;
    return parts;
}

/* An int32, of the type of the numbers of parts. */
static int whole_number(Ring *r, int turn, const char *what, int64_t value) {
    g_autofree char *name = name_of(r, turn, what);
    return mtf_build_constant(r->b, name, MTF_I32, (double)value);
}

static int numbers_of_parts(Ring *r) {
    MtfShape shape = { .rank = 1, .dims = { r->parts } };
    g_autofree char *name = name_of(r, 0, "own");
    r->b->has_dtype = true;
    r->b->dtype = MTF_I32;
    return mtf_build(r->b, MTF_OP_RANGE, name, &shape, 0, NULL);
}

/* Part p of P meets part (p + P - turn) mod P. */
static void number_met(Ring *r, int turn) {
    g_autofree char *ahead = name_of(r, turn, "ahead"), *met = name_of(r, turn, "met");
    int further = whole_number(r, turn, "parts_less_turn", r->n_parts - turn);
    int sum = MTF_BUILD(r->b, MTF_OP_ADD, ahead, NULL, r->own, further);
    int n = whole_number(r, turn, "n_parts", r->n_parts);
    r->ids = MTF_BUILD(r->b, MTF_OP_MODULO, met, NULL, sum, n);
}

/* What is added in a turn: of what stays with its queries each takes what belongs to the memory that is there. */
static int added_in(Ring *r, int turn, int i) {
    const Added *added = &r->added[i];
    if (!added->stays)
        return added->parts;
    g_autofree char *name = name_of(r, turn, i == 0 ? "added/met" : "more_added/met");
    MtfShape shape = shape_of(r, added->parts);
    mtf_shape_remove(&shape, r->met);
    return MTF_BUILD(r->b, MTF_OP_EMBEDDING, name, &shape, added->parts, r->ids);
}

/* What the parts made as one, like what the operation made. */
static int joined(Ring *r, const char *name, int output, int tensor) {
    MtfShape shape = shape_of(r, r->op->outputs[output]);
    return MTF_BUILD(r->b, MTF_OP_RESHAPE, name, &shape, tensor);
}

/* Part p becomes part p + by. */
static int turn_by(Ring *r, int turn, const char *what, int tensor, int by) {
    g_autofree char *there = g_strdup_printf("%s/%d/%s/sent", r->name, turn, what);
    g_autofree char *name = name_of(r, turn, what);
    MtfAttributes *a = &r->b->attributes;
    a->from = r->parts;
    a->to = r->turned;
    a->start = 0 - by;
    a->stride = a->dilation = a->wrap = 1;
    int sent = MTF_BUILD(r->b, MTF_OP_RESAMPLE, there, NULL, tensor);
    a->from = r->turned;
    a->to = r->parts;
    return MTF_BUILD(r->b, MTF_OP_RENAME, name, NULL, sent);
}

static void hand_on(Ring *r, int turn, int *inputs) {
    inputs[K] = turn_by(r, turn, "keys", inputs[K], 1);
    inputs[V] = turn_by(r, turn, "values", inputs[V], 1);
    for (int i = 0; i < r->n_added; i++)
        if (!r->added[i].stays)
            r->added[i].parts =
                turn_by(r, turn, i == 0 ? "added" : "more_added", r->added[i].parts, 1);
}

/* Attention, or its gradient, of all parts in a turn. Parts that meet their own are heads, or, where shares
 * are dropped, which are numbered by their places in all parts, in a turn of all parts. */
static int meet(Ring *r, int kind, int turn, int n_inputs, const int *inputs) {
    g_autofree char *name = name_of(r, turn, "parts");
    MtfAttributes *a = &r->b->attributes;
    int all[INPUTS + G_N_ELEMENTS(r->added)];
    memcpy(all, inputs, (gsize)n_inputs * sizeof *all);
    if (r->met >= 0)
        number_met(r, turn);
    for (int i = 0; i < r->n_added; i++)
        all[n_inputs++] = added_in(r, turn, i);
    *a = r->op->attributes;
    a->query = r->query;
    a->memory = r->memory;
    a->turn = turn > 0 || a->rate == 0 ? turn : r->n_parts;
    a->parts = a->turn > 0 ? r->parts : -1;
    a->striped = a->turn > 0 && r->striped;
    if (a->rate > 0 && a->stream == NULL)
        a->stream = r->name;
    return mtf_build(r->b, kind, name, NULL, n_inputs, all);
}

static void begin_added(Ring *r, int tensor) {
    const MtfAttributes *a = &r->op->attributes;
    MtfShape shape = shape_of(r, tensor);
    Added *added = &r->added[r->n_added++];
    added->stays = mtf_shape_find(&shape, a->query) >= 0;
    if (added->stays && r->met < 0) {
        r->met = mtf_dimension_below(r->b, a->memory, "met", r->n_parts);
        r->own = numbers_of_parts(r);
    }
    added->first = divided_shape(r, tensor);
    added->parts = divided_added(r, added, tensor);
}

static Ring ring_of(MtfBuilder *b, const MtfOperation *op, char *name, int parts) {
    const MtfAttributes *a = &op->attributes;
    int bias = mtf_operation_row(op->kind)->in_parts ? O : INPUTS;
    Ring r = { .b = b,
               .op = op,
               .name = name,
               .n_parts = parts,
               .turns = turns_of(b->graph, a, parts),
               .striped = stripes(a),
               .met = -1 };
    r.parts = mtf_dimension_below(b, a->query, "parts", parts);
    r.turned = mtf_dimension_below(b, a->query, "turned", parts);
    r.query =
        mtf_dimension_below(b, a->query, "within", mtf_graph_size(b->graph, a->query) / parts);
    r.memory =
        mtf_dimension_below(b, a->memory, "within", mtf_graph_size(b->graph, a->memory) / parts);
    for (int k = bias; k < op->n_inputs; k++)
        begin_added(&r, op->inputs[k]);
    return r;
}

/* ---- Forward and back ------------------------------------------------------------------------ */

static void ring_forward(Ring *r, int *results) {
    const int *in = r->op->inputs;
    int x[] = { [Q] = divided(r, "queries", in[Q]),
                [K] = divided(r, "keys", in[K]),
                [V] = divided(r, "values", in[V]),
                [O] = -1,
                [LSE] = -1 };
    x[O] = meet(r, MTF_OP_ATTENTION, 0, O, x);
    for (int turn = 1; turn < r->turns; turn++) {
        hand_on(r, turn, x);
        x[LSE] = x[O] + 1;
        x[O] = meet(r, MTF_OP_ATTENTION_FURTHER, turn, LSE + 1, x);
    }
    g_autofree char *lse = g_strdup_printf("%s/lse", r->name);
    results[1] = joined(r, lse, 1, x[O] + 1);
    r->b->origin = r->op->origin;
    r->b->of = r->op->of;
    results[0] = joined(r, r->name, 0, x[O]);
}

/* The sum of a gradient so far and that of a turn. */
static int added(Ring *r, int turn, const char *what, int sum, int more) {
    g_autofree char *name = name_of(r, turn, what);
    return MTF_BUILD(r->b, MTF_OP_ADD, name, NULL, sum, more);
}

/* Of what stays with its queries each turn has its own part, and the rest goes along with its memory. */
static int add_bias_gradient(Ring *r, int turn, int sum, int more) {
    if (!r->added[0].stays && sum < 0)
        return more;
    if (!r->added[0].stays)
        return added(r, turn, "added_gradients", turn_by(r, turn, "added_gradients/so_far", sum, 1),
                     more);
    g_autofree char *name = name_of(r, turn, "added_gradients");
    MtfShape shape = shape_of(r, r->added[0].parts);
    int inputs[] = { r->ids, more, sum };
    return mtf_build(r->b, MTF_OP_EMBEDDING_GRAD, name, &shape, sum < 0 ? 2 : 3, inputs);
}

/* Whether what is added to scores learns. */
static bool learns(const Ring *r) {
    return r->op->n_outputs > ADDED;
}

/* What the parts made of the bias's gradient, like the bias. */
static int joined_bias(Ring *r, int gradient) {
    g_autofree char *name = g_strdup_printf("%s/bias", r->name),
                    *first = name_of(r, r->turns, "added_gradients/first");
    if (r->striped)
        gradient = MTF_BUILD(r->b, MTF_OP_TRANSPOSE, first, &r->added[0].first, gradient);
    return joined(r, name, ADDED, gradient);
}

/* What has come of the gradients goes along with their keys and values. */
static void add_turn(Ring *r, int turn, int made, int *d) {
    d[Q] = added(r, turn, "query_gradients", d[Q], made);
    d[K] = turn_by(r, turn, "key_gradients/so_far", d[K], 1);
    d[V] = turn_by(r, turn, "value_gradients/so_far", d[V], 1);
    d[K] = added(r, turn, "key_gradients", d[K], made + K);
    d[V] = added(r, turn, "value_gradients", d[V], made + V);
    if (learns(r))
        d[ADDED] = add_bias_gradient(r, turn, d[ADDED], made + ADDED);
}

static void ring_back(Ring *r, int *results) {
    static const char *const what[] = {
        "queries", "keys", "values", "results", "lse", "gradients"
    };
    int x[INPUTS];
    for (int k = 0; k < INPUTS; k++)
        x[k] = divided(r, what[k], r->op->inputs[k]);
    int kind = r->op->kind, made = meet(r, kind, 0, INPUTS, x);
    int d[GRADIENTS] = { made, made + K, made + V };
    if (learns(r))
        d[ADDED] = add_bias_gradient(r, 0, -1, made + ADDED);
    for (int turn = 1; turn < r->turns; turn++) {
        hand_on(r, turn, x);
        add_turn(r, turn, meet(r, kind, turn, INPUTS, x), d);
    }
    int last = learns(r) && !r->added[0].stays ? ADDED : V;
    for (int k = K; k <= last && r->turns > 1; k++)
        d[k] = turn_by(r, r->turns, k == ADDED ? "added" : what[k], d[k], 1 - r->turns);
    if (learns(r))
        results[ADDED] = joined_bias(r, d[ADDED]);
    g_autofree char *dk = g_strdup_printf("%s/k", r->name), *dv = g_strdup_printf("%s/v", r->name);
    results[K] = joined(r, dk, K, d[K]);
    results[V] = joined(r, dv, V, d[V]);
    r->b->origin = r->op->origin;
    r->b->of = r->op->of;
    results[Q] = joined(r, r->name, Q, d[Q]);
}

static void build(MtfBuilder *b, const MtfOperation *op, char *name, int parts, int *results) {
    Ring r = ring_of(b, op, name, parts);
    (mtf_operation_row(op->kind)->in_parts ? ring_forward : ring_back)(&r, results);
}

bool mtf_graph_ring_keys(MtfGraph *graph, int parts, GError **error) {
    static const MtfReplacement replacement = { "--ring", "attention whose queries and memory",
                                                mtf_operation_rings, build };
    return mtf_replace_operations(graph, &replacement, parts, error);
}
