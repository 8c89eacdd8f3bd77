// SPDX-License-Identifier: GPL-3.0-or-later
/* Experts as ONNX nodes: who is served where, and what goes there and back, by index. Values between have
 * merged axes: groups that share nothing, choices (tokens and the choices of each), places, features. */
#include "reports/exports/onnx/onnx_nodes.h"

static const MtfShape *shape_of(const MtfOnnxNodes *e, int k) {
    return &mtf_node_input(e, k)->shape;
}

static const char *name_of(const MtfOnnxNodes *e, int k) {
    return mtf_node_input(e, k)->name;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static const char *whole(MtfOnnxNodes *e, double value) {
    return mtf_node_number(e, MTF_ONNX_INT64, value);
}

static const char *list(MtfOnnxNodes *e, double value) {
    return mtf_node_list(e, &value, 1);
}

static const char *new_axis(MtfOnnxNodes *e, const char *x, int axis) {
    return mtf_node_two(e, "Unsqueeze", x, list(e, axis));
}

static const char *sum(MtfOnnxNodes *e, const char *x, int axis) {
    const char *name = mtf_node_step(e), *inputs[] = { x, list(e, axis) };
    GByteArray *node = mtf_node_begin("ReduceSum", 2, inputs, name);
    mtf_node_put_int(node, "keepdims", 0);
    mtf_node_put(e, node);
    return name;
}

/* The sum of all elements before each along axis 1. */
static const char *sum_before(MtfOnnxNodes *e, const char *x) {
    const char *name = mtf_node_step(e), *inputs[] = { x, whole(e, 1) };
    GByteArray *node = mtf_node_begin("CumSum", 2, inputs, name);
    mtf_node_put_int(node, "exclusive", 1);
    mtf_node_put(e, node);
    return name;
}

static const char *taken(MtfOnnxNodes *e, const char *x, const char *places) {
    const char *name = mtf_node_step(e), *inputs[] = { x, places };
    GByteArray *node = mtf_node_begin("GatherElements", 2, inputs, name);
    mtf_node_put_int(node, "axis", 1);
    mtf_node_put(e, node);
    return name;
}

static const char *filled(MtfOnnxNodes *e, int type, const double *sizes, int rank) {
    return mtf_node_two(e, "Expand", mtf_node_number(e, type, 0), mtf_node_list(e, sizes, rank));
}

/* Zeros of those sizes, to which rows are added at their places along axis 1. */
static const char *added(MtfOnnxNodes *e, int type, const double *sizes, int rank,
                         const char *places, const char *rows) {
    const char *name = mtf_node_step(e), *inputs[] = { filled(e, type, sizes, rank), places, rows };
    GByteArray *node = mtf_node_begin("ScatterElements", 3, inputs, name);
    mtf_node_put_int(node, "axis", 1);
    mtf_node_put_text(node, "reduction", "add");
    mtf_node_put(e, node);
    return name;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

/* The dimensions of `of` that are, or are not, among those of `other`, appended. */
static void append(MtfShape *to, const MtfShape *of, const MtfShape *other, bool has) {
    for (int i = 0; i < of->rank; i++)
        if ((mtf_shape_find(other, of->dims[i]) >= 0) == has)
            mtf_shape_append(to, of->dims[i]);
}

static void join(MtfShape *to, const MtfShape *more) {
    for (int i = 0; i < more->rank; i++)
        mtf_shape_append(to, more->dims[i]);
}

/* What slots stand between; choices have the dimensions of tokens first. */
enum { GROUPS, CHOICES, PLACES, FEATURES, PARTS };

typedef struct {
    MtfShape parts[PARTS], tokens, choice;
    double sizes[PARTS];
} Route;

static Route route_of(const MtfOnnxNodes *e, const MtfShape *slot, const MtfShape *tokens,
                      const MtfShape *places) {
    Route r = { 0 };
    MtfShape common = { 0 };
    append(&common, tokens, places, true);
    append(&r.parts[GROUPS], slot, &common, true);
    append(&r.tokens, slot, tokens, true);
    for (int i = 0; i < r.parts[GROUPS].rank; i++)
        mtf_shape_remove(&r.tokens, r.parts[GROUPS].dims[i]);
    append(&r.choice, slot, tokens, false);
    r.parts[CHOICES] = r.tokens;
    join(&r.parts[CHOICES], &r.choice);
    append(&r.parts[PLACES], places, tokens, false);
    append(&r.parts[FEATURES], &common, slot, false);
    for (int k = 0; k < PARTS; k++)
        r.sizes[k] = (double)mtf_graph_elements(e->graph, &r.parts[k]);
    return r;
}

/* The place of every choice, of input k; those that have none go behind the last. */
static const char *places_of(MtfOnnxNodes *e, const Route *r, int k) {
    const char *slot = mtf_node_cast(
        e, mtf_node_merged(e, name_of(e, k), shape_of(e, k), r->parts, 2), MTF_ONNX_INT64);
    return mtf_node_three(e, "Where", mtf_node_two(e, "Less", slot, whole(e, 0)),
                          whole(e, r->sizes[PLACES]), slot);
}

/* … of every feature of the choice. */
static const char *places_of_features(MtfOnnxNodes *e, const Route *r) {
    const double sizes[] = { r->sizes[GROUPS], r->sizes[CHOICES], r->sizes[FEATURES] };
    return mtf_node_two(e, "Expand", new_axis(e, places_of(e, r, 1), 2),
                        mtf_node_list(e, sizes, 3));
}

/* The first of axis 1, without what lies behind. */
static const char *in_place(MtfOnnxNodes *e, const Route *r, const char *x) {
    const char *inputs[] = { x, list(e, 0), list(e, r->sizes[PLACES]), list(e, 1) };
    const char *name = mtf_node_step(e);
    mtf_node_put(e, mtf_node_begin("Slice", 4, inputs, name));
    return name;
}

/* ---- There and back -------------------------------------------------------------------------- */

/* The row of each choice, times its gate: [groups, choices, features]. */
static const char *rows_of_choices(MtfOnnxNodes *e, const Route *r) {
    MtfShape full = r->parts[GROUPS];
    join(&full, &r->parts[CHOICES]);
    join(&full, &r->parts[FEATURES]);
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < full.rank; i++)
        sizes[i] = (double)mtf_node_size(e, full.dims[i]);
    const char *rows = mtf_node_aligned_input(e, 0, &full);
    if (mtf_node_operation(e)->n_inputs > 2)
        rows = mtf_node_two(e, "Mul", rows, mtf_node_aligned_input(e, 2, &full));
    rows = mtf_node_two(e, "Expand", rows, mtf_node_list(e, sizes, full.rank));
    const MtfShape groups[] = { r->parts[GROUPS], r->parts[CHOICES], r->parts[FEATURES] };
    return mtf_node_merged(e, rows, &full, groups, 3);
}

static bool write_dispatch(MtfOnnxNodes *e) {
    Route r = route_of(e, shape_of(e, 1), shape_of(e, 0), &mtf_node_result(e)->shape);
    const double sizes[] = { r.sizes[GROUPS], r.sizes[PLACES] + 1, r.sizes[FEATURES] };
    const MtfShape made[] = { r.parts[GROUPS], r.parts[PLACES], r.parts[FEATURES] };
    const char *rows = rows_of_choices(e, &r);
    return mtf_node_last_unmerged(
        e,
        in_place(e, &r,
                 added(e, mtf_node_result_type(e), sizes, 3, places_of_features(e, &r), rows)),
        made, 3);
}

/* Choices without a place read a row of zeros behind the last. */
static bool write_combine(MtfOnnxNodes *e) {
    Route r = route_of(e, shape_of(e, 1), &mtf_node_result(e)->shape, shape_of(e, 0));
    const MtfShape from[] = { r.parts[GROUPS], r.parts[PLACES], r.parts[FEATURES] },
                   made[] = { r.parts[GROUPS], r.tokens, r.parts[FEATURES] };
    const double row[] = { r.sizes[GROUPS], 1, r.sizes[FEATURES] };
    double apart[] = { r.sizes[GROUPS], (double)mtf_graph_elements(e->graph, &r.tokens),
                       (double)mtf_graph_elements(e->graph, &r.choice), r.sizes[FEATURES] };
    const char *joined[] = { mtf_node_merged(e, name_of(e, 0), shape_of(e, 0), from, 3),
                             filled(e, mtf_node_result_type(e), row, 3) };
    const char *all = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("Concat", 2, joined, all);
    mtf_node_put_int(node, "axis", 1);
    mtf_node_put(e, node);
    const char *rows = taken(e, all, places_of_features(e, &r));
    if (mtf_node_operation(e)->n_inputs > 2)
        rows = mtf_node_two(
            e, "Mul", rows,
            new_axis(e, mtf_node_merged(e, name_of(e, 2), shape_of(e, 2), r.parts, 2), 2));
    rows = mtf_node_two(e, "Reshape", rows, mtf_node_list(e, apart, 4));
    return mtf_node_last_unmerged(e, sum(e, rows, 2), made, 3);
}

/* What was chosen plus one is added, so that one less is -1 where nobody is. */
static bool write_slot_ids(MtfOnnxNodes *e) {
    const MtfShape *slot = shape_of(e, 1), *shape = &mtf_node_result(e)->shape;
    Route r = { 0 };
    append(&r.parts[GROUPS], slot, shape, true);
    append(&r.parts[CHOICES], slot, shape, false);
    append(&r.parts[PLACES], shape, slot, false);
    for (int k = 0; k < PARTS; k++)
        r.sizes[k] = (double)mtf_graph_elements(e->graph, &r.parts[k]);
    const double sizes[] = { r.sizes[GROUPS], r.sizes[PLACES] + 1 };
    const MtfShape made[] = { r.parts[GROUPS], r.parts[PLACES] };
    int type = mtf_node_result_type(e);
    const char *one = mtf_node_number(e, type, 1);
    const char *ids = mtf_node_merged(e, name_of(e, 0), shape_of(e, 0), r.parts, 2);
    const char *more = mtf_node_two(e, "Add", ids, one);
    const char *all = added(e, type, sizes, 2, places_of(e, &r, 1), more);
    return mtf_node_last_unmerged(e, mtf_node_two(e, "Sub", in_place(e, &r, all), one), made, 2);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Choices in a row, [groups, tokens x choices], by tokens or by the first choices of all, the second, … */
typedef struct {
    MtfShape groups[3]; /* groups, and what is merged, in order */
    double tokens, choices;
    bool by_choice;
} Queue;

/* Places along axis 1 of the largest first, of equal ones in their order. */
static const char *largest_first(MtfOnnxNodes *e, const char *x, double n) {
    const char *inputs[] = { x, list(e, n) }, *places = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("TopK", 2, inputs, mtf_node_step(e));
    mtf_wire_put_string(node, 2, places);
    mtf_node_put_int(node, "axis", 1);
    mtf_node_put(e, node);
    return places;
}

/* The order in which a queue is served, where that is not its own; else NULL. By gates of choices a queue
 * is one of tokens. */
static const char *order_of(MtfOnnxNodes *e, const Queue *q) {
    double priority = mtf_node_operation(e)->attributes.priority, n = q->tokens * q->choices;
    if (priority == 0)
        return NULL;
    const char *gates = mtf_node_merged(e, name_of(e, 1), shape_of(e, 1), q->groups, 3);
    if (priority == 1)
        return largest_first(
            e, mtf_node_two(e, "Reshape", gates, mtf_node_list(e, (const double[]){ 0, n }, 2)), n);
    int at = q->by_choice ? 1 : 2, other = 3 - at;
    const char *inputs[] = { gates, list(e, 0), list(e, 1), list(e, at) };
    const char *first = mtf_node_step(e);
    mtf_node_put(e, mtf_node_begin("Slice", 4, inputs, first));
    const char *tokens =
        largest_first(e, mtf_node_two(e, "Squeeze", first, list(e, at)), q->tokens);
    double stride = q->by_choice ? 1 : q->choices, step = q->by_choice ? q->tokens : 1;
    const char *starts = new_axis(e, mtf_node_two(e, "Mul", tokens, whole(e, stride)), at);
    const char *range =
        mtf_node_three(e, "Range", whole(e, 0), whole(e, step * q->choices), whole(e, step));
    const char *places = mtf_node_two(e, "Add", starts, new_axis(e, range, other - 1));
    return mtf_node_two(e, "Reshape", places, mtf_node_list(e, (const double[]){ 0, n }, 2));
}

/* 1 at the expert of every choice, [groups, choices, experts]. */
static const char *marks(MtfOnnxNodes *e, const char *queue) {
    const char *experts =
        mtf_node_range(e, mtf_node_operation(e)->attributes.experts, MTF_ONNX_INT64);
    return mtf_node_cast(e, mtf_node_two(e, "Equal", new_axis(e, queue, 2), experts),
                         MTF_ONNX_INT64);
}

/* How many of the same expert stand before each. */
static const char *waiting(MtfOnnxNodes *e, const char *marked) {
    return sum(e, mtf_node_two(e, "Mul", marked, sum_before(e, marked)), 2);
}

/* How many wait before each choice of a queue that is served in another order. */
static const char *waiting_in_order(MtfOnnxNodes *e, const Queue *q, const char *queue,
                                    const char *order) {
    const double sizes[] = { (double)mtf_graph_elements(e->graph, &q->groups[0]),
                             q->tokens * q->choices };
    const char *served = waiting(e, marks(e, taken(e, queue, order)));
    return added(e, MTF_ONNX_INT64, sizes, 2, order, served);
}

/* Where each expert's places begin: at its number times the capacity, or behind those of lesser experts. */
static const char *starts(MtfOnnxNodes *e, const char *queue, const char *marked) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    if (a->capacity >= 0)
        return mtf_node_two(e, "Mul", queue, whole(e, (double)mtf_node_size(e, a->capacity)));
    const char *lesser = new_axis(e, sum_before(e, sum(e, marked, 1)), 1);
    return sum(e, mtf_node_two(e, "Mul", marked, lesser), 2);
}

static Queue queue_of(const MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    const MtfShape token = { .rank = 1, .dims = { a->dimension } },
                   choice = { .rank = 1, .dims = { a->choices } };
    Queue q = { .tokens = (double)mtf_node_size(e, a->dimension),
                .choices = (double)mtf_node_size(e, a->choices),
                .by_choice = a->queue == 1 && a->priority != 1 };
    q.groups[0] = *shape_of(e, 0);
    mtf_shape_remove(&q.groups[0], a->dimension);
    mtf_shape_remove(&q.groups[0], a->choices);
    q.groups[1] = q.by_choice ? choice : token;
    q.groups[2] = q.by_choice ? token : choice;
    return q;
}

/* Those who come first have the places; by gates of choices, they take them in the order of tokens. */
static bool write_slots(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    Queue q = queue_of(e);
    MtfShape row[2] = { q.groups[0], q.groups[1] };
    mtf_shape_append(&row[1], q.groups[2].dims[0]);
    const char *queue =
        mtf_node_cast(e, mtf_node_merged(e, name_of(e, 0), shape_of(e, 0), row, 2), MTF_ONNX_INT64);
    const char *order = order_of(e, &q), *marked = marks(e, queue);
    const char *before = order != NULL ? waiting_in_order(e, &q, queue, order) : waiting(e, marked);
    const char *served = sum(e, marked, 2); /* 0 where no expert was chosen */
    if (a->capacity >= 0)
        served = mtf_node_two(
            e, "Mul", served,
            mtf_node_cast(
                e, mtf_node_two(e, "Less", before, whole(e, (double)mtf_node_size(e, a->capacity))),
                MTF_ONNX_INT64));
    if (a->priority == 1)
        before = waiting(e, mtf_node_two(e, "Mul", marked, new_axis(e, served, 2)));
    const char *place = mtf_node_two(e, "Add", starts(e, queue, marked), before);
    const char *slot =
        mtf_node_three(e, "Where", mtf_node_cast(e, served, MTF_ONNX_BOOL), place, whole(e, -1));
    return mtf_node_last_unmerged(e, mtf_node_cast(e, slot, mtf_node_result_type(e)), row, 2);
}

/* ---- Products of experts --------------------------------------------------------------------- */

/* The sum over experts of the products of rows that are theirs. */
static bool write_expert_einsum(MtfOnnxNodes *e) {
    int experts = mtf_node_operation(e)->attributes.experts;
    MtfShape marked = *shape_of(e, 2);
    mtf_shape_append(&marked, experts);
    const char *ids = new_axis(e, mtf_node_cast(e, name_of(e, 2), MTF_ONNX_INT64), marked.rank - 1);
    const char *own =
        mtf_node_cast(e, mtf_node_two(e, "Equal", ids, mtf_node_range(e, experts, MTF_ONNX_INT64)),
                      mtf_node_result_type(e));
    const char *names[] = { own, name_of(e, 0), name_of(e, 1) };
    const MtfShape shapes[] = { marked, *shape_of(e, 0), *shape_of(e, 1) };
    mtf_node_einsum(e, 3, names, shapes, &mtf_node_result(e)->shape, true);
    return true;
}

const MtfOnnxWriter mtf_onnx_routing[] = {
    { MTF_OP_SLOTS, write_slots },
    { MTF_OP_SLOT_IDS, write_slot_ids },
    { MTF_OP_DISPATCH, write_dispatch },
    { MTF_OP_COMBINE, write_combine },
    { MTF_OP_EXPERT_EINSUM, write_expert_einsum },
    { 0, NULL },
};
