// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/loop_gradient.h"

#include "analyzer/training/gradient_table.h"
#include "layouts/building/replace_operations.h"
#include "layouts/graph/loops.h"

/* A share of a tensor that was there before the loop, made in every iteration. */
typedef struct {
    int tensor, share;
} Deferred;

struct MtfLoopGradients {
    int *states;      /* mtf_graph_states of the forward graph */
    GArray *backs;    /* int: for each backward loop, from 1, the forward one; 0 where it is none */
    int loop;         /* the forward loop that is being differentiated; 0: none */
    GArray *deferred; /* Deferred */
    GHashTable *stacks; /* tensor -> what stacks it, plus 1 */
    GHashTable *slices; /* "loop tensor" -> its slice in that backward loop, plus 1 */
};

MtfLoopGradients *mtf_loop_gradients_new(const MtfGraph *graph) {
    MtfLoopGradients *loops = g_new0(MtfLoopGradients, 1);
    loops->states = mtf_graph_states(graph);
    loops->backs = g_array_new(FALSE, TRUE, sizeof(int));
    g_array_set_size(loops->backs, graph->loops->len + 1);
    loops->deferred = g_array_new(FALSE, FALSE, sizeof(Deferred));
    loops->stacks = g_hash_table_new(NULL, NULL);
    loops->slices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return loops;
}

void mtf_loop_gradients_free(MtfLoopGradients *loops) {
    if (loops == NULL)
        return;
    g_free(loops->states);
    g_array_unref(loops->backs);
    g_array_unref(loops->deferred);
    g_hash_table_unref(loops->stacks);
    g_hash_table_unref(loops->slices);
    g_free(loops);
}

static const MtfOperation *maker_of(const Differentiation *d, int tensor) {
    int producer = mtf_graph_tensor(d->b.graph, tensor)->producer;
    return producer < 0 ? NULL : mtf_graph_operation(d->b.graph, producer);
}

static MtfLoopPart part_of(const MtfOperation *op) {
    return op == NULL ? MTF_LOOP_NOTHING : mtf_operation_row(op->kind)->loop;
}

/* Whether a tensor of the forward graph changes in the iterations of `loop`. */
static bool changes_in(const Differentiation *d, int tensor, int loop) {
    if (tensor < d->n_tensors && d->loops->states[tensor] > 0)
        return d->loops->states[tensor] == loop;
    const MtfOperation *op = maker_of(d, tensor);
    return op != NULL && op->loop == loop;
}

bool mtf_loop_gradient_defer(Differentiation *d, int tensor, int share) {
    MtfLoopGradients *loops = d->loops;
    if (loops == NULL || loops->loop == 0 || changes_in(d, tensor, loops->loop))
        return false;
    Deferred deferred = { tensor, share };
    g_array_append_val(loops->deferred, deferred);
    return true;
}

/* ---- Stacks -------------------------------------------------------------------------------- */

/* A name nobody has, in the form of the others. */
static char *new_name(const Differentiation *d, const char *what, int tensor) {
    const char *name = mtf_graph_tensor(d->b.graph, tensor)->name;
    return g_strdup_printf("%s/%s", what, name);
}

static int dimension_of(const Differentiation *d, int loop) {
    return mtf_graph_loop(d->b.graph, loop)->dimension;
}

/* Whether a tensor has the dimension of a loop, whose iterations see all of it then. */
static bool has_dimension_of(const Differentiation *d, int tensor, int loop) {
    return mtf_shape_find(&mtf_graph_tensor(d->b.graph, tensor)->shape, dimension_of(d, loop)) >= 0;
}

/* What a loop's dimension is called in stacks of what has it already. */
static int other_dimension(Differentiation *d, int loop) {
    int dim = dimension_of(d, loop);
    return mtf_dimension_below(&d->b, dim, "whole", mtf_graph_size(d->b.graph, dim));
}

static int renamed(Differentiation *d, const char *what, int tensor, int from, int to) {
    if (tensor < 0)
        return -1;
    g_autofree char *name = new_name(d, what, tensor);
    d->b.attributes.from = from;
    d->b.attributes.to = to;
    return MTF_BUILD(&d->b, MTF_OP_RENAME, name, NULL, tensor);
}

/* All elements of a result of `loop`: what it was sliced from, or a stack that its iterations leave, in which the
 * loop's dimension that it had before has its other name. */
static int stacked(Differentiation *d, int tensor, int loop) {
    MtfLoopGradients *loops = d->loops;
    int known = GPOINTER_TO_INT(g_hash_table_lookup(loops->stacks, GINT_TO_POINTER(tensor))) - 1;
    const MtfOperation *op = maker_of(d, tensor);
    if (known >= 0 || d->b.error != NULL)
        return known;
    if (part_of(op) == MTF_LOOP_SLICES)
        return op->inputs[0];
    MtfBuilder of_before = d->b;
    g_autofree char *name = new_name(d, "saved", tensor);
    d->b.loop = loop;
    d->b.phase = op->phase;
    d->b.stage = op->stage;
    int element = tensor;
    if (has_dimension_of(d, tensor, loop))
        element = renamed(d, "whole", tensor, dimension_of(d, loop), other_dimension(d, loop));
    d->b.attributes.dimension = dimension_of(d, loop);
    int made = element < 0 ? -1 : MTF_BUILD(&d->b, MTF_OP_LOOP_STACK, name, NULL, element);
    d->b.loop = of_before.loop;
    d->b.phase = of_before.phase;
    d->b.stage = of_before.stage;
    g_hash_table_insert(loops->stacks, GINT_TO_POINTER(tensor), GINT_TO_POINTER(made + 1));
    return made;
}

/* The element of a forward loop's tensor in a backward loop's iteration. */
static int slice_of(Differentiation *d, int tensor, int back) {
    MtfLoopGradients *loops = d->loops;
    g_autofree char *key = g_strdup_printf("%d %d", back, tensor);
    int known = GPOINTER_TO_INT(g_hash_table_lookup(loops->slices, key)) - 1;
    if (known >= 0)
        return known;
    g_autofree char *name = new_name(d, "back/slice", tensor);
    int all = stacked(d, tensor, g_array_index(loops->backs, int, back));
    d->b.loop = back;
    d->b.stage = maker_of(d, tensor)->stage;
    d->b.attributes.dimension = dimension_of(d, back);
    int made = MTF_BUILD(&d->b, MTF_OP_LOOP_SLICE, name, NULL, all);
    if (has_dimension_of(d, tensor, back))
        made = renamed(d, "back/whole", made, other_dimension(d, back), dimension_of(d, back));
    d->b.loop = 0;
    g_hash_table_insert(loops->slices, g_steal_pointer(&key), GINT_TO_POINTER(made + 1));
    return made;
}

/* ---- What iterations add up ------------------------------------------------------------------ */

/* The loop that a tensor changes in, forward or `back`; 0: neither. */
static int loop_of(const Differentiation *d, int tensor, int back) {
    if (changes_in(d, tensor, d->loops->loop))
        return d->loops->loop;
    const MtfOperation *op = maker_of(d, tensor);
    bool is_state = part_of(op) == MTF_LOOP_BEGINS && tensor >= d->n_tensors;
    return op != NULL && (op->loop == back || is_state) ? back : 0;
}

/* Whether the sum over iterations of an operation's result is the operation of stacked inputs: where it is a product,
 * others may be what no iteration changes; and none has the dimension of stacks before. */
static bool adds_up(const Differentiation *d, const MtfOperation *op, int back) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    bool changes = false, all_change = true,
         has_dimension = has_dimension_of(d, op->outputs[0], back);
    for (int k = 0; k < op->n_inputs; k++) {
        bool does = loop_of(d, op->inputs[k], back) > 0;
        changes |= does;
        all_change &= does;
        has_dimension |= has_dimension_of(d, op->inputs[k], back);
    }
    return row->adds_up && op->loop == back && changes && !has_dimension &&
           (all_change || row->linearity == MTF_LINEAR_EACH);
}

/* The operation that made `share`, of all iterations at once. */
static int made_at_once(Differentiation *d, int share, int back, const char *name) {
    MtfOperation op = *maker_of(d, share);
    MtfShape shape = mtf_graph_tensor(d->b.graph, share)->shape;
    MtfDtype dtype = mtf_graph_tensor(d->b.graph, share)->dtype;
    g_autofree int *inputs = g_memdup2(op.inputs, sizeof(int) * (gsize)op.n_inputs);
    for (int k = 0; k < op.n_inputs; k++) {
        int loop = loop_of(d, inputs[k], back);
        if (loop > 0)
            inputs[k] = stacked(d, inputs[k], loop);
    }
    MtfDtypeRule rule = mtf_operation_row(op.kind)->dtype;
    d->b.attributes = op.attributes;
    d->b.has_dtype = rule == MTF_DTYPE_GIVEN || rule == MTF_DTYPE_EITHER;
    d->b.dtype = dtype;
    return mtf_build(&d->b, op.kind, name, &shape, op.n_inputs, inputs);
}

/* The sum of a stack of what a tensor before the loop was given in each iteration. */
static int summed(Differentiation *d, const Deferred *deferred, int back, const char *name) {
    MtfShape shape = mtf_graph_tensor(d->b.graph, deferred->tensor)->shape;
    int stack = stacked(d, deferred->share, back), dim = dimension_of(d, back);
    if (d->b.error != NULL || !has_dimension_of(d, deferred->tensor, back))
        return d->b.error != NULL ? -1 : MTF_BUILD(&d->b, MTF_OP_REDUCE_SUM, name, &shape, stack);
    int other = other_dimension(d, back);
    shape.dims[mtf_shape_find(&shape, dim)] = other;
    return renamed(d, "whole", MTF_BUILD(&d->b, MTF_OP_REDUCE_SUM, name, &shape, stack), other,
                   dim);
}

static void give_deferred(Differentiation *d, const Deferred *deferred, int back) {
    MtfGradient gradient = { .taker = d };
    const MtfOperation *op = maker_of(d, deferred->share);
    g_autofree char *name = new_name(d, "back/all", deferred->share);
    int share = op != NULL && adds_up(d, op, back) ? made_at_once(d, deferred->share, back, name)
                                                   : summed(d, deferred, back, name);
    d->loops->loop = 0;
    mtf_gradient_give(&gradient, deferred->tensor, share);
}

/* ---- The loop ------------------------------------------------------------------------------ */

/* A state and what goes with it on the way back. */
typedef struct {
    int state, next, last;
    int carried; /* the backward loop's state */
} Carry;

/* The states that are wanted, begun with the gradients of their last values. */
static GArray *begin_states(Differentiation *d, int begin, int end) {
    GArray *carries = g_array_new(FALSE, FALSE, sizeof(Carry));
    for (int i = begin; i < end && d->b.error == NULL; i++) {
        const MtfOperation *op = mtf_graph_operation(d->b.graph, i);
        if (part_of(op) != MTF_LOOP_HANDS_ON || !d->wanted[op->inputs[0]])
            continue;
        Carry carry = { op->inputs[0], op->inputs[1], op->outputs[0], -1 };
        mtf_gradient_complete(d, carry.last);
        int first = d->gradients[carry.last];
        g_autofree char *zero = new_name(d, "back/zero", carry.state);
        g_autofree char *name = new_name(d, "back", carry.state);
        MtfTensor state = *mtf_graph_tensor(d->b.graph, carry.state);
        if (first < 0) {
            d->b.has_dtype = true;
            d->b.dtype = state.dtype;
            d->b.attributes.value = 0;
            first = mtf_build(&d->b, MTF_OP_CONSTANT, zero, &state.shape, 0, NULL);
        }
        carry.carried = MTF_BUILD(&d->b, MTF_OP_LOOP_BEGIN, name, NULL, first);
        g_array_append_val(carries, carry);
    }
    return carries;
}

/* The gradients of stacks, which iterations take apart. */
static void complete_stacks(Differentiation *d, int begin, int end) {
    for (int i = begin; i < end; i++)
        if (mtf_operation_loop_part(d->b.graph, i) == MTF_LOOP_STACKS)
            mtf_gradient_complete(d, mtf_graph_operation(d->b.graph, i)->outputs[0]);
}

static int sliced(Differentiation *d, int tensor, int back) {
    g_autofree char *name = new_name(d, "back/slice", tensor);
    d->b.attributes.dimension = dimension_of(d, back);
    return MTF_BUILD(&d->b, MTF_OP_LOOP_SLICE, name, NULL, tensor);
}

/* Gives what iterations slice all that they make of its gradient, which is complete behind the loop, in the order of
 * its own dimensions: a stack has the loop's first. */
static void give_stacked(Differentiation *d, int tensor, int gradient, int back) {
    MtfGradient to = { .taker = d };
    MtfShape shape = mtf_graph_tensor(d->b.graph, tensor)->shape;
    int share = stacked(d, gradient, back), outer = d->loops->loop;
    d->b.loop = d->loops->loop = 0;
    if (share >= 0 && !mtf_shape_equal(&mtf_graph_tensor(d->b.graph, share)->shape, &shape)) {
        g_autofree char *name = new_name(d, "back/turned", share);
        share = MTF_BUILD(&d->b, MTF_OP_TRANSPOSE, name, &shape, share);
    }
    mtf_gradient_give(&to, tensor, share);
    d->b.loop = back;
    d->loops->loop = outer;
}

/* One operation of the body, on the way back. */
static void visit_body(Differentiation *d, int index, int back) {
    MtfGradient gradient = { .taker = d };
    const MtfOperation *op = mtf_graph_operation(d->b.graph, index);
    int x = op->n_inputs > 0 ? op->inputs[0] : -1, y = op->outputs[0];
    switch (part_of(op)) {
    case MTF_LOOP_HANDS_ON:
        return;
    case MTF_LOOP_STACKS:
        if (d->gradients[y] >= 0 && d->wanted[x])
            mtf_gradient_give(&gradient, x, sliced(d, d->gradients[y], back));
        return;
    case MTF_LOOP_SLICES:
        mtf_gradient_complete(d, y);
        if (d->gradients[y] >= 0 && d->wanted[x])
            give_stacked(d, x, d->gradients[y], back);
        return;
    default:
        mtf_gradient_visit(d, index);
    }
}

/* What a state's gradient hands on is a result of the loop, not another state and nothing of before. */
static int result_of_body(Differentiation *d, const Carry *carry, int back) {
    mtf_gradient_complete(d, carry->state);
    int gradient = d->gradients[carry->state];
    MtfTensor state = *mtf_graph_tensor(d->b.graph, carry->state);
    g_autofree char *name = new_name(d, "back/next", carry->state);
    if (d->b.error != NULL || (gradient >= 0 && maker_of(d, gradient)->loop == back))
        return gradient;
    if (gradient >= 0) {
        d->b.attributes.factor = 1;
        return MTF_BUILD(&d->b, MTF_OP_SCALE, name, NULL, gradient);
    }
    d->b.has_dtype = true;
    d->b.dtype = state.dtype;
    d->b.attributes.value = 0;
    return mtf_build(&d->b, MTF_OP_CONSTANT, name, &state.shape, 0, NULL);
}

static void end_states(Differentiation *d, const GArray *carries, int back) {
    g_autofree int *nexts = g_new(int, carries->len + 1);
    for (guint c = 0; c < carries->len; c++)
        nexts[c] = result_of_body(d, &g_array_index(carries, Carry, c), back);
    for (guint c = 0; c < carries->len && d->b.error == NULL; c++) {
        const Carry *carry = &g_array_index(carries, Carry, c);
        g_autofree char *name = new_name(d, "back/last", carry->state);
        d->gradients[carry->state] =
            MTF_BUILD(&d->b, MTF_OP_LOOP_NEXT, name, NULL, carry->carried, nexts[c]);
        g_clear_pointer(&d->shares[carry->state], g_array_unref);
    }
}

static int add_back_loop(Differentiation *d, int loop) {
    MtfLoop forward = *mtf_graph_loop(d->b.graph, loop);
    g_autofree char *name = g_strdup_printf("back/%s", forward.name);
    g_array_append_val(d->loops->backs, loop);
    return mtf_graph_add_loop(d->b.graph, name, forward.dimension, !forward.reverse);
}

void mtf_loop_gradient(Differentiation *d, int begin, int end) {
    int loop = mtf_graph_operation(d->b.graph, begin)->loop;
    MtfGradient gradient = { .taker = d };
    d->b.stage = mtf_graph_operation(d->b.graph, begin)->stage;
    complete_stacks(d, begin, end);
    g_autoptr(GArray) carries = begin_states(d, begin, end);
    int back = add_back_loop(d, loop);
    d->b.loop = back;
    d->loops->loop = loop;
    for (guint c = 0; c < carries->len; c++)
        mtf_gradient_give(&gradient, g_array_index(carries, Carry, c).next,
                          g_array_index(carries, Carry, c).carried);
    for (int i = end - 1; i >= begin && d->b.error == NULL; i--)
        visit_body(d, i, back);
    end_states(d, carries, back);
    d->b.loop = 0;
    g_autoptr(GArray) deferred = g_steal_pointer(&d->loops->deferred);
    d->loops->deferred = g_array_new(FALSE, FALSE, sizeof(Deferred));
    for (guint i = 0; i < deferred->len && d->b.error == NULL; i++) {
        d->loops->loop = loop;
        Deferred share = g_array_index(deferred, Deferred, i);
        give_deferred(d, &share, back);
    }
    d->loops->loop = 0;
}

/* ---- Afterwards ---------------------------------------------------------------------------- */

void mtf_loop_gradient_read_saved(Differentiation *d) {
    int n = (int)d->b.graph->operations->len;
    for (int i = 0; i < n && d->b.error == NULL; i++) {
        int back = mtf_graph_operation(d->b.graph, i)->loop;
        int loop = back > 0 ? g_array_index(d->loops->backs, int, back) : 0;
        for (int k = 0; loop > 0 && k < mtf_graph_operation(d->b.graph, i)->n_inputs; k++) {
            int tensor = mtf_graph_operation(d->b.graph, i)->inputs[k];
            if (!changes_in(d, tensor, loop))
                continue;
            int slice = slice_of(d, tensor, back);
            mtf_graph_operation(d->b.graph, i)->inputs[k] = slice;
        }
    }
}

/* Marks what `operation` reads, and what that reads; a state is read with what is handed on to it. */
static void mark_needed(const MtfGraph *graph, const int *hands_on, int operation, bool *needed) {
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(stack, operation);
    while (stack->len > 0) {
        int i = g_array_index(stack, int, stack->len - 1);
        g_array_set_size(stack, stack->len - 1);
        if (needed[i])
            continue;
        needed[i] = true;
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++) {
            int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
            if (producer >= 0)
                g_array_append_val(stack, producer);
            if (hands_on[op->inputs[k]] >= 0)
                g_array_append_val(stack, hands_on[op->inputs[k]]);
        }
    }
}

bool mtf_loop_gradient_tidy(MtfGraph *graph, GError **error) {
    int n = (int)graph->operations->len;
    g_autofree bool *needed = g_new0(bool, n + 1);
    g_autofree int *hands_on = g_new(int, graph->tensors->len + 1);
    if (graph->loops->len == 0)
        return true;
    for (guint t = 0; t < graph->tensors->len; t++)
        hands_on[t] = -1;
    for (int i = 0; i < n; i++)
        if (mtf_operation_loop_part(graph, i) == MTF_LOOP_HANDS_ON)
            hands_on[mtf_graph_operation(graph, i)->inputs[0]] = i;
    /* What the user wrote stays, and all that is in no loop. */
    for (int i = 0; i < n; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if ((op->loop == 0 && mtf_operation_row(op->kind)->loop == MTF_LOOP_NOTHING) ||
            op->phase == MTF_PHASE_FORWARD)
            mark_needed(graph, hands_on, i, needed);
    }
    for (int i = 0; i < n; i++)
        needed[i] = !needed[i];
    return mtf_graph_gather_loops(graph, needed, error);
}
