// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs inside of nodes: the branches of If, the bodies of Loop and Scan. They are translated in the place of
 * the node:
 *
 *     If     known condition: that branch; else both, and `where` between what they give
 *     Loop   a loop of ours, whose body is translated once; a while loop where data end one that may run often
 *     Scan   likewise, with a slice of each sequence for each iteration
 *
 * What our loops are not for (bodies that want to know which iteration it is, loops inside of loops, data that
 * end short ones, so that gradients pass) is translated iteration by iteration:
 *
 *     state ──body 0──► state ──body 1──► … as often as is known; where a condition depends on data, what
 *     comes behind its end changes nothing: state = where(goes on, next state, state)
 *
 * A name inside may be one outside. Inner names mean in each iteration what that iteration gave them. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define MOST_ITERATIONS 512

/* ---- A graph in the place of a node ---------------------------------------------------------- */

static const MtfOnnxModel *inner_graph(MtfOnnxCall *call, const char *name) {
    const MtfOnnxAttribute *attribute = mtf_onnx_attribute(call->node, name);
    if (attribute == NULL || attribute->g == NULL)
        mtf_onnx_fail(call->t, "it has no graph \"%s\"", name);
    return attribute == NULL ? NULL : attribute->g;
}

static MtfOnnxValue *found(MtfOnnxTranslation *t, const char *name) {
    return g_hash_table_lookup(t->values, name);
}

/* What is the same in all iterations stays what it was in the first. */
static void take_initial_values(MtfOnnxTranslation *t, const MtfOnnxModel *graph) {
    for (guint i = 0; i < graph->initializers->len; i++) {
        MtfOnnxTensor *tensor = graph->initializers->pdata[i];
        const MtfOnnxValue *before = found(t, tensor->name);
        if (before == NULL || before->stored != tensor)
            g_hash_table_insert(t->values, tensor->name, mtf_onnx_stored(t, tensor, true));
    }
}

static bool is_done(MtfOnnxTranslation *t, const MtfOnnxNode *node) {
    return strcmp(node->op, "Constant") == 0 && node->outputs->len > 0 &&
           found(t, node->outputs->pdata[0]) != NULL;
}

/* Known results of the nodes are not made again by them: their inputs are others then. */
static void forget_makers(MtfOnnxTranslation *t, guint first) {
    for (guint i = first; i < t->all->len; i++) {
        MtfOnnxValue *value = t->all->pdata[i];
        if (value->node != NULL && value->node->inputs->len > 0)
            value->node = NULL;
    }
}

/* What is known inside is worked out even where the node's own results are to be tensors. */
static bool translate_inside(MtfOnnxTranslation *t, const MtfOnnxModel *graph) {
    const MtfOnnxNode *outer = t->node;
    bool plain = t->plain;
    int number = t->number, steps = t->steps;
    t->plain = false;
    for (guint i = 0; i < graph->nodes->len && t->error == NULL; i++) {
        const MtfOnnxNode *node = graph->nodes->pdata[i];
        t->node = node;
        t->number = (int)i;
        t->steps = 0;
        if (!is_done(t, node) && mtf_onnx_translate_node(t, node, -1) == NULL)
            mtf_onnx_fail(t, "it cannot be translated");
    }
    t->node = outer;
    t->plain = plain;
    t->number = number;
    t->steps = steps;
    return t->error == NULL;
}

/* Runs a graph from `inputs`, as many as it has (NULL: none), to `outputs`. */
static bool run_inside(MtfOnnxTranslation *t, const MtfOnnxModel *graph,
                       MtfOnnxValue *const *inputs, MtfOnnxValue **outputs) {
    guint first = t->all->len;
    for (guint i = 0; inputs != NULL && i < graph->inputs->len; i++)
        g_hash_table_insert(t->values, ((MtfOnnxInput *)graph->inputs->pdata[i])->name, inputs[i]);
    take_initial_values(t, graph);
    if (t->error != NULL || !translate_inside(t, graph))
        return false;
    for (guint i = 0; i < graph->outputs->len; i++) {
        const char *name = ((MtfOnnxInput *)graph->outputs->pdata[i])->name;
        outputs[i] = found(t, name);
        if (outputs[i] == NULL)
            return mtf_onnx_fail(t, "its inner output \"%s\" is made by no node", name) != NULL;
    }
    forget_makers(t, first);
    return true;
}

/* ---- Conditions ------------------------------------------------------------------------------ */

/* A condition of one element as a scalar. */
static MtfOnnxValue *scalar(MtfOnnxTranslation *t, MtfOnnxValue *condition) {
    if (mtf_onnx_elements(condition) != 1 || condition->members != NULL)
        return mtf_onnx_fail(t, "its condition should be one bool");
    return mtf_onnx_squeeze(t, condition, (1U << condition->rank) - 1);
}

/* `a` where the condition holds, else `b`, which is like it. */
static MtfOnnxValue *chosen(MtfOnnxTranslation *t, MtfOnnxValue *condition, MtfOnnxValue *a,
                            MtfOnnxValue *b) {
    bool alike = a->members == NULL && b->members == NULL && a->type == b->type &&
                 a->rank == b->rank &&
                 memcmp(a->sizes, b->sizes, (gsize)a->rank * sizeof *a->sizes) == 0;
    if (!alike)
        return mtf_onnx_fail(t, "what it gives has another type or shape where its condition, "
                                "which depends on data, does not hold");
    return a == b ? a : mtf_onnx_where(t, condition, a, b);
}

static MtfOnnxValue *condition_of_both(MtfOnnxCall *call, const MtfOnnxModel *const graphs[2]) {
    MtfOnnxTranslation *t = call->t;
    guint n = (guint)call->n_outputs;
    g_autofree MtfOnnxValue **one = g_new0(MtfOnnxValue *, n + 1),
                            **other = g_new0(MtfOnnxValue *, n + 1);
    MtfOnnxValue *condition = scalar(t, call->inputs[0]);
    if (condition == NULL || !run_inside(t, graphs[0], NULL, one) ||
        !run_inside(t, graphs[1], NULL, other))
        return NULL;
    mtf_onnx_say(t,
                 "both branches of If (\"%s\") are computed, since its condition depends on data",
                 (char *)call->node->outputs->pdata[0]);
    for (guint k = 0; k < n; k++)
        if ((call->outputs[k] = chosen(t, condition, one[k], other[k])) == NULL)
            return NULL;
    return call->outputs[0];
}

static MtfOnnxValue *branch(MtfOnnxCall *call) {
    const MtfOnnxModel *graphs[] = { inner_graph(call, "then_branch"),
                                     inner_graph(call, "else_branch") };
    double holds;
    for (int k = 0; k < 2; k++) {
        if (graphs[k] == NULL)
            return NULL;
        if (graphs[k]->inputs->len != 0 || (int)graphs[k]->outputs->len != call->n_outputs)
            return mtf_onnx_fail(call->t, "a branch has no inputs, and as many outputs as it has");
    }
    if (!mtf_onnx_is_number(call->t, call->inputs[0], &holds))
        return condition_of_both(call, graphs);
    return run_inside(call->t, graphs[holds == 0], NULL, call->outputs) ? call->outputs[0] : NULL;
}

/* ---- Iterations ------------------------------------------------------------------------------ */

/* A loop while it is translated, and unrolled where it can be none of ours. The body takes `first` values
 * that only a Loop has (the number of the iteration and the condition), states and slices, and gives the new
 * condition where it took one, states and elements. */
typedef struct {
    MtfOnnxCall *call;
    const MtfOnnxModel *body;
    int states, slices, elements;
    MtfOnnxValue **inputs, **outputs; /* of the body */
    GPtrArray **gathered;             /* of each output that is stacked */
    MtfOnnxValue *alive;              /* whether the iteration counts, or NULL: all do */
    MtfOnnxValue *trips;              /* how often data say it runs at most, or NULL */
    GArray *tensors;                  /* that values had before an attempt to make a loop of ours */
} Unrolled;

static bool unrolled_init(Unrolled *u, MtfOnnxCall *call, int loops, int states, int slices) {
    *u = (Unrolled){ .call = call, .body = inner_graph(call, "body") };
    u->states = states;
    u->slices = slices;
    u->elements = call->n_outputs - states;
    if (u->body == NULL)
        return false;
    int takes = (loops > 0 ? 2 : 0) + states + slices,
        gives = (loops > 0) + states + MAX(u->elements, 0);
    if (u->elements < 0 || states < 0 || (int)u->body->inputs->len != takes ||
        (int)u->body->outputs->len != gives)
        return mtf_onnx_fail(call->t,
                             "its body takes %u values and gives %u, and should take %d "
                             "and give %d",
                             u->body->inputs->len, u->body->outputs->len, takes, gives) != NULL;
    u->inputs = g_new0(MtfOnnxValue *, takes + 1);
    u->outputs = g_new0(MtfOnnxValue *, gives + 1);
    u->gathered = g_new0(GPtrArray *, u->elements + 1);
    u->tensors = g_array_new(FALSE, FALSE, sizeof(int));
    for (int k = 0; k < u->elements; k++)
        u->gathered[k] = g_ptr_array_new();
    return true;
}

static void unrolled_clear(Unrolled *u) {
    for (int k = 0; u->gathered != NULL && k < u->elements; k++)
        g_ptr_array_unref(u->gathered[k]);
    if (u->tensors != NULL)
        g_array_unref(u->tensors);
    g_free(u->gathered);
    g_free(u->inputs);
    g_free(u->outputs);
}

/* One iteration, whose states begin at `first_in` and `first_out`. */
static bool iterate(Unrolled *u, int first_in, int first_out) {
    MtfOnnxTranslation *t = u->call->t;
    if (!run_inside(t, u->body, u->inputs, u->outputs))
        return false;
    for (int k = 0; k < u->states; k++) {
        MtfOnnxValue **state = &u->inputs[first_in + k], *next = u->outputs[first_out + k];
        *state = u->alive == NULL ? next : chosen(t, u->alive, next, *state);
        if (*state == NULL)
            return false;
    }
    for (int k = 0; k < u->elements; k++)
        g_ptr_array_add(u->gathered[k], u->outputs[first_out + u->states + k]);
    return true;
}

/* What iterations gave along a new axis, in their order or the other way round. */
static MtfOnnxValue *stacked(MtfOnnxTranslation *t, GPtrArray *elements, int64_t axis,
                             bool reverse) {
    guint n = elements->len;
    int rank = n > 0 ? ((MtfOnnxValue *)elements->pdata[0])->rank + 1 : 0;
    g_autofree MtfOnnxValue **parts = g_new0(MtfOnnxValue *, n + 1);
    if (n == 0 || axis < -rank || axis >= rank)
        return mtf_onnx_fail(t, n == 0 ? "it runs no times, and what it stacks has no elements"
                                       : "what it stacks has no such axis");
    axis += axis < 0 ? rank : 0;
    for (guint i = 0; i < n; i++)
        parts[i] =
            mtf_onnx_unsqueeze(t, elements->pdata[reverse ? n - 1 - i : i], rank, 1U << axis);
    return mtf_onnx_concat(t, (int)axis, (int)n, parts);
}

/* Begins the states, which the body takes from its input `first` on, as those of a loop. */
static bool begin_states(Unrolled *u, int loop, int first, MtfOnnxValue *const *init) {
    for (int k = 0; k < u->states; k++) {
        if (init[k] == NULL || init[k]->members != NULL)
            return false;
        u->inputs[first + k] = mtf_onnx_loop_begin(u->call->t, loop, init[k]);
        if (u->inputs[first + k] == NULL)
            return false;
    }
    return true;
}

static bool run_once(Unrolled *u) {
    MtfOnnxTranslation *t = u->call->t;
    t->looping = true;
    bool done = run_inside(t, u->body, u->inputs, u->outputs);
    t->looping = false;
    return done;
}

/* What the loop leaves of its states. */
static bool end_states(Unrolled *u, int loop, int first_in, int first_out) {
    for (int k = 0; k < u->states; k++) {
        MtfOnnxValue *next = u->outputs[first_out + k];
        if (next->members != NULL)
            return false;
        u->call->outputs[k] =
            mtf_onnx_loop_next(u->call->t, loop, u->inputs[first_in + k], next, u->alive);
        if (u->call->outputs[k] == NULL)
            return false;
    }
    return true;
}

/* What all iterations give of element k, along a new axis. */
static bool stack_element(Unrolled *u, int loop, int first_out, int k, int64_t axis) {
    MtfOnnxTranslation *t = u->call->t;
    MtfOnnxValue *each = u->outputs[first_out + u->states + k];
    int order[MTF_ONNX_MAX_RANK], rank = each->rank + 1;
    if (each->members != NULL || axis < -rank || axis >= rank)
        return false;
    axis += axis < 0 ? rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    MtfOnnxValue *all = mtf_onnx_loop_stack(t, loop, each);
    u->call->outputs[u->states + k] = all == NULL ? NULL : mtf_onnx_transpose(t, all, order);
    return u->call->outputs[u->states + k] != NULL;
}

/* Begins an attempt to make a loop of ours, and returns its number. */
static int attempt(Unrolled *u, int64_t count, bool reverse) {
    MtfOnnxTranslation *t = u->call->t;
    g_array_set_size(u->tensors, 0);
    for (guint i = 0; i < t->all->len; i++)
        g_array_append_val(u->tensors, ((MtfOnnxValue *)t->all->pdata[i])->tensor);
    return mtf_onnx_loop(t, count, reverse);
}

/* Forgets an attempt: what is known is worked out again where it had become a tensor. */
static MtfOnnxValue *given_up(Unrolled *u) {
    MtfOnnxTranslation *t = u->call->t;
    for (guint i = 0; i < t->all->len; i++) {
        MtfOnnxValue *value = t->all->pdata[i];
        bool had = i < u->tensors->len && g_array_index(u->tensors, int, i) >= 0;
        if (!had && (value->known != NULL || value->stored != NULL))
            value->tensor = -1;
    }
    u->alive = NULL;
    g_clear_error(&t->error);
    return NULL;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

enum { ITERATION, CONDITION, STATES };

/* As a loop of ours that runs `count` times; NULL without an error where data may end it, or it is none. */
static MtfOnnxValue *counted_loop(Unrolled *u, int64_t count) {
    MtfOnnxCall *call = u->call;
    MtfOnnxTranslation *t = call->t;
    double holds = 1;
    MtfOnnxValue *condition = mtf_onnx_input(call, 1);
    if (condition != NULL && !(mtf_onnx_is_number(t, condition, &holds) && holds != 0))
        return NULL;
    int loop = attempt(u, count, false);
    MtfOnnxValue *numbers = mtf_onnx_range(t, MTF_ONNX_INT64, 1, &count, 0);
    u->inputs[ITERATION] = mtf_onnx_loop_slice(t, loop, numbers, 0);
    u->inputs[CONDITION] = mtf_onnx_scalar(t, MTF_ONNX_BOOL, 1);
    bool good = u->inputs[ITERATION] != NULL && begin_states(u, loop, STATES, call->inputs + 2) &&
                run_once(u) && mtf_onnx_is_number(t, u->outputs[0], &holds) && holds != 0 &&
                end_states(u, loop, STATES, 1);
    for (int k = 0; good && k < u->elements; k++)
        good = stack_element(u, loop, 1, k, 0);
    return good ? call->outputs[0] : given_up(u);
}

/* The condition, as long as iteration `number` is one of those that data allow. */
static MtfOnnxValue *within_trips(const Unrolled *u, MtfOnnxValue *condition,
                                  MtfOnnxValue *number) {
    MtfOnnxTranslation *t = u->call->t;
    if (u->trips == NULL || condition == NULL)
        return condition;
    MtfOnnxValue *left = mtf_onnx_truth(t, MTF_OP_LESS, number, scalar(t, u->trips));
    return mtf_onnx_binary(t, MTF_OP_LOGICAL_AND, left, condition);
}

/* The number of the iteration, and the condition; then what goes on while it holds. */
static bool begin_while(Unrolled *u, int loop) {
    MtfOnnxTranslation *t = u->call->t;
    MtfOnnxValue *condition = mtf_onnx_input(u->call, 1);
    MtfOnnxValue *first = mtf_onnx_scalar(t, MTF_ONNX_INT64, 0);
    condition = condition == NULL ? mtf_onnx_scalar(t, MTF_ONNX_BOOL, 1) : scalar(t, condition);
    condition = within_trips(u, condition, first);
    u->inputs[ITERATION] = mtf_onnx_loop_begin(t, loop, first);
    u->inputs[CONDITION] = u->alive = mtf_onnx_loop_begin(t, loop, condition);
    return u->inputs[ITERATION] != NULL && u->alive != NULL;
}

/* Whether an iteration makes a condition, which is no number and not the one that there was, or data count. */
static bool may_end(const Unrolled *u) {
    double number;
    if (u->trips != NULL)
        return true;
    return !mtf_onnx_is_number(u->call->t, u->outputs[0], &number) &&
           u->outputs[0]->tensor != u->alive->tensor;
}

/* As a loop that goes on while its condition holds, at most `most` times; NULL without an error where it is
 * none. */
static MtfOnnxValue *while_loop(Unrolled *u, int64_t most) {
    MtfOnnxCall *call = u->call;
    MtfOnnxTranslation *t = call->t;
    int loop = attempt(u, most, false);
    bool good = u->elements == 0 && begin_while(u, loop) &&
                begin_states(u, loop, STATES, call->inputs + 2) && run_once(u) && may_end(u);
    MtfOnnxValue *on = good ? scalar(t, u->outputs[0]) : NULL;
    if (on == NULL || !end_states(u, loop, STATES, 1))
        return given_up(u);
    MtfOnnxValue *later = mtf_onnx_affine(t, u->inputs[ITERATION], 1, 1);
    on = within_trips(u, on, later);
    bool ends = mtf_onnx_loop_next(t, loop, u->inputs[ITERATION], later, u->alive) != NULL &&
                mtf_onnx_loop_next(t, loop, u->alive, on, u->alive) != NULL;
    return ends ? call->outputs[0] : given_up(u);
}

/* Whether the loop goes on, as far as that is known; then `alive` says it of data. */
static bool goes_on(Unrolled *u) {
    MtfOnnxTranslation *t = u->call->t;
    MtfOnnxValue *condition = u->inputs[CONDITION];
    double number = 1;
    if (mtf_onnx_is_number(t, condition, &number))
        return number != 0;
    condition = scalar(t, condition);
    u->alive = u->alive == NULL || condition == NULL
                   ? condition
                   : mtf_onnx_binary(t, MTF_OP_LOGICAL_AND, u->alive, condition);
    if (u->elements > 0)
        mtf_onnx_fail(t, "how many elements it stacks depends on data");
    return t->error == NULL;
}

static bool loop_states(Unrolled *u, double count) {
    MtfOnnxTranslation *t = u->call->t;
    for (int i = 0; i < count && goes_on(u); i++) {
        if (i == MOST_ITERATIONS)
            return mtf_onnx_fail(t, "it may run more than %d times", MOST_ITERATIONS) != NULL;
        u->inputs[ITERATION] = mtf_onnx_scalar(t, MTF_ONNX_INT64, i);
        if (!iterate(u, STATES, 1))
            return false;
        u->inputs[CONDITION] = u->outputs[0];
    }
    return t->error == NULL;
}

static MtfOnnxValue *loop_unrolled(Unrolled *u, double count) {
    MtfOnnxCall *call = u->call;
    MtfOnnxValue *condition = mtf_onnx_input(call, 1);
    u->inputs[CONDITION] =
        condition != NULL ? condition : mtf_onnx_scalar(call->t, MTF_ONNX_BOOL, 1);
    for (int k = 0; k < u->states; k++)
        if ((u->inputs[STATES + k] = mtf_onnx_input(call, 2 + k)) == NULL)
            return mtf_onnx_fail(call->t, "input %d is missing", 2 + k);
    if (!loop_states(u, count))
        return NULL;
    for (int k = 0; k < u->states; k++)
        call->outputs[k] = u->inputs[STATES + k];
    for (int k = 0; k < u->elements; k++)
        if ((call->outputs[u->states + k] = stacked(call->t, u->gathered[k], 0, false)) == NULL)
            return NULL;
    return call->outputs[0];
}

/* As a loop of ours, where it is one. */
static MtfOnnxValue *own_loop(Unrolled *u, double count) {
    MtfOnnxValue *made = NULL;
    if (u->call->t->looping || u->states == 0)
        return NULL;
    if (u->trips == NULL && count >= 2 && count <= MTF_MAX_ITERATIONS)
        made = counted_loop(u, (int64_t)count);
    if (made == NULL && count > MOST_ITERATIONS)
        made = while_loop(u, (int64_t)fmin(count, MTF_MAX_ITERATIONS));
    return made;
}

static MtfOnnxValue *loop(MtfOnnxCall *call) {
    Unrolled u;
    double count = HUGE_VAL;
    MtfOnnxValue *made = NULL, *trips = mtf_onnx_input(call, 0);
    if (unrolled_init(&u, call, 1, MAX(call->n_inputs - 2, 0), 0)) {
        u.trips = trips == NULL || mtf_onnx_is_number(call->t, trips, &count) ? NULL : trips;
        made = own_loop(&u, count);
        if (made == NULL && mtf_onnx_known_input(call, 0, HUGE_VAL, &count))
            made = loop_unrolled(&u, count);
    }
    unrolled_clear(&u);
    return made;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

/* Element k of a list attribute, 0 where it is left out. */
static int64_t listed(const MtfOnnxCall *call, const char *name, int k) {
    const MtfOnnxAttribute *list = mtf_onnx_attribute(call->node, name);
    return list != NULL && k < (int)list->ints->len ? g_array_index(list->ints, int64_t, k) : 0;
}

/* Slice `i` of `count` of sequence k. */
static MtfOnnxValue *slice_of(Unrolled *u, int k, int64_t i, int64_t *count) {
    MtfOnnxCall *call = u->call;
    MtfOnnxValue *x = call->inputs[u->states + k];
    int axis = mtf_onnx_axis(call, listed(call, "scan_input_axes", k), x->rank);
    if (axis < 0)
        return NULL;
    if (*count >= 0 && *count != x->sizes[axis])
        return mtf_onnx_fail(call->t, "its sequences have %" PRId64 " and %" PRId64 " elements",
                             *count, x->sizes[axis]);
    *count = x->sizes[axis];
    int64_t at = listed(call, "scan_input_directions", k) != 0 ? *count - 1 - i : i;
    return mtf_onnx_squeeze(call->t, mtf_onnx_slice(call->t, x, axis, at, 1, 1), 1U << axis);
}

/* How many elements its sequences have, and whether all go forward (0) or backward (1); -1 where that differs. */
static int64_t scan_count(const Unrolled *u, int *direction) {
    const MtfOnnxCall *call = u->call;
    int64_t count = -1;
    *direction = (int)listed(call, "scan_input_directions", 0);
    for (int k = 0; k < u->slices; k++) {
        const MtfOnnxValue *x = call->inputs[u->states + k];
        int64_t axis = listed(call, "scan_input_axes", k);
        axis += axis < 0 ? x->rank : 0;
        if (x->members != NULL || axis < 0 || axis >= x->rank ||
            (k > 0 && x->sizes[axis] != count) ||
            listed(call, "scan_input_directions", k) != *direction)
            return -1;
        count = x->sizes[axis];
    }
    for (int k = 0; k < u->elements; k++)
        if (listed(call, "scan_output_directions", k) != *direction)
            return -1;
    return count;
}

/* As a loop of ours; NULL without an error where it is none. */
static MtfOnnxValue *scan_loop(Unrolled *u) {
    MtfOnnxCall *call = u->call;
    int direction;
    int64_t count = scan_count(u, &direction);
    if (count < 2 || count > MTF_MAX_ITERATIONS)
        return NULL;
    int loop = attempt(u, count, direction != 0);
    bool good = begin_states(u, loop, 0, call->inputs);
    for (int k = 0; good && k < u->slices; k++) {
        MtfOnnxValue *x = call->inputs[u->states + k];
        int axis = mtf_onnx_axis(call, listed(call, "scan_input_axes", k), x->rank);
        good = (u->inputs[u->states + k] = mtf_onnx_loop_slice(call->t, loop, x, axis)) != NULL;
    }
    good = good && run_once(u) && end_states(u, loop, 0, 0);
    for (int k = 0; good && k < u->elements; k++)
        good = stack_element(u, loop, 0, k, listed(call, "scan_output_axes", k));
    return good ? call->outputs[0] : given_up(u);
}

static MtfOnnxValue *scan_unrolled(Unrolled *u) {
    MtfOnnxCall *call = u->call;
    int64_t count = -1;
    for (int k = 0; k < u->states; k++)
        u->inputs[k] = call->inputs[k];
    for (int64_t i = 0; count < 0 || i < count; i++) {
        for (int k = 0; k < u->slices; k++)
            if ((u->inputs[u->states + k] = slice_of(u, k, i, &count)) == NULL)
                return NULL;
        if (count > MOST_ITERATIONS)
            return mtf_onnx_fail(call->t, "it runs more than %d times", MOST_ITERATIONS);
        if (!iterate(u, 0, 0))
            return NULL;
    }
    for (int k = 0; k < u->states; k++)
        call->outputs[k] = u->inputs[k];
    for (int k = 0; k < u->elements; k++) {
        bool reverse = listed(call, "scan_output_directions", k) != 0;
        call->outputs[u->states + k] =
            stacked(call->t, u->gathered[k], listed(call, "scan_output_axes", k), reverse);
        if (call->outputs[u->states + k] == NULL)
            return NULL;
    }
    return call->outputs[0];
}

static MtfOnnxValue *scan(MtfOnnxCall *call) {
    int64_t slices = mtf_onnx_int(call, "num_scan_inputs", 0);
    Unrolled u;
    if (call->opset < 9)
        return mtf_onnx_fail(call->t, "as before version 9, with a batch, it is not supported");
    for (int k = 0; k < call->n_inputs; k++)
        if (call->inputs[k] == NULL)
            return mtf_onnx_fail(call->t, "input %d is missing", k);
    if (slices < 1 || slices > call->n_inputs)
        return mtf_onnx_fail(call->t, "its num_scan_inputs are not 1 to %d", call->n_inputs);
    bool good = unrolled_init(&u, call, 0, call->n_inputs - (int)slices, (int)slices);
    MtfOnnxValue *made = good && !call->t->looping ? scan_loop(&u) : NULL;
    if (good && made == NULL)
        made = scan_unrolled(&u);
    unrolled_clear(&u);
    return made;
}

const MtfOnnxOperator mtf_onnx_control_operators[] = {
    { "If", branch, 0, 0, 1, 1, NULL },
    { "Loop", loop, 0, 0, 0, INT_MAX, NULL },
    { "Scan", scan, 0, 0, 1, INT_MAX, NULL },
    { 0 },
};
