// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/loops.h"

#include "layouts/base/error.h"

const MtfLoop *mtf_graph_loop(const MtfGraph *graph, int loop) {
    return &g_array_index(graph->loops, MtfLoop, loop - 1);
}

int64_t mtf_loop_count(const MtfGraph *graph, int loop) {
    return loop == 0 ? 1 : mtf_graph_size(graph, mtf_graph_loop(graph, loop)->dimension);
}

int64_t mtf_loop_element(const MtfGraph *graph, int loop, int64_t iteration) {
    return loop > 0 && mtf_graph_loop(graph, loop)->reverse
               ? mtf_loop_count(graph, loop) - 1 - iteration
               : iteration;
}

static bool is_condition(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON && op->attributes.condition != 0;
}

int mtf_loop_condition(const MtfGraph *graph, int loop) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->loop == loop && is_condition(op))
            return op->inputs[0];
    }
    return -1;
}

MtfLoopPart mtf_operation_loop_part(const MtfGraph *graph, int operation) {
    return mtf_operation_row(mtf_graph_operation(graph, operation)->kind)->loop;
}

MtfLoopSpans mtf_loop_spans(const MtfGraph *graph) {
    int n = (int)graph->operations->len;
    MtfLoopSpans spans = { g_new0(int, graph->loops->len + 2), g_new0(int, graph->loops->len + 2) };
    for (int i = 0; i < n; i++)
        spans.ends[mtf_graph_operation(graph, i)->loop] = i + 1;
    for (int i = n - 1; i >= 0; i--)
        spans.begins[mtf_graph_operation(graph, i)->loop] = i;
    return spans;
}

void mtf_loop_spans_clear(MtfLoopSpans *spans) {
    g_free(spans->begins);
    g_free(spans->ends);
}

bool mtf_operation_reads_anew(const MtfGraph *graph, const MtfOperation *operation, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (operation->loop == 0 || t->producer < 0)
        return t->is_anew;
    return mtf_operation_loop_part(graph, t->producer) == MTF_LOOP_BEGINS ||
           mtf_graph_operation(graph, t->producer)->loop == operation->loop;
}

int *mtf_graph_next_values(const MtfGraph *graph) {
    int *of = g_new(int, graph->tensors->len + 1);
    for (guint t = 0; t < graph->tensors->len; t++)
        of[t] = -1;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        of[update->value] = update->variable;
    }
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_operation_loop_part(graph, i) == MTF_LOOP_HANDS_ON)
            of[mtf_graph_operation(graph, i)->outputs[0]] =
                mtf_graph_operation(graph, i)->inputs[0];
    return of;
}

/* What a reader in a loop asks of a tensor: one of the time before the loop stays to its end, a state
 * too, and as long as its last value is read. */
static void prolong_for(const MtfGraph *graph, const MtfConsumers *consumers, const int *ends,
                        int reader, int tensor, int *end) {
    const MtfOperation *op = mtf_graph_operation(graph, reader);
    bool hands_on = mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON;
    int last = op->outputs[0];
    if (op->loop > 0 && (hands_on || !mtf_operation_reads_anew(graph, op, tensor)))
        *end = MAX(*end, ends[op->loop]);
    if (hands_on && op->inputs[0] == tensor &&
        consumers->starts[last + 1] > consumers->starts[last])
        *end = MAX(*end, consumers->operations[consumers->starts[last + 1] - 1] + 1);
}

void mtf_loop_prolong(const MtfGraph *graph, const MtfConsumers *consumers,
                      const MtfLoopSpans *spans, int tensor, int *first, int *end) {
    const int *begins = spans->begins, *ends = spans->ends;
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    if (producer >= 0 && mtf_operation_loop_part(graph, producer) == MTF_LOOP_STACKS) {
        *first = begins[mtf_graph_operation(graph, producer)->loop];
        *end = MAX(*end, ends[mtf_graph_operation(graph, producer)->loop]);
    }
    for (int c = consumers->starts[tensor]; c < consumers->starts[tensor + 1]; c++)
        prolong_for(graph, consumers, ends, consumers->operations[c], tensor, end);
}

int *mtf_graph_states(const MtfGraph *graph) {
    int *states = g_new0(int, graph->tensors->len + 1);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON)
            states[op->inputs[0]] = op->loop;
    }
    return states;
}

int mtf_tensor_loop(const MtfGraph *graph, const int *states, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    if (states[tensor] > 0 || producer < 0)
        return states[tensor];
    MtfLoopPart part = mtf_operation_loop_part(graph, producer);
    return part == MTF_LOOP_STACKS || part == MTF_LOOP_HANDS_ON
               ? 0
               : mtf_graph_operation(graph, producer)->loop;
}

bool *mtf_loop_places(const MtfGraph *graph) {
    int n = (int)graph->operations->len;
    bool *within = g_new0(bool, n + 1);
    g_auto(MtfLoopSpans) spans = mtf_loop_spans(graph);
    for (int loop = 1; loop <= (int)graph->loops->len; loop++)
        for (int i = spans.begins[loop] + 1; i < spans.ends[loop]; i++)
            within[i] = true;
    for (int i = 0; i < n; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->loop != MTF_LOOP_HANDS_ON)
            continue;
        int begin = mtf_graph_tensor(graph, op->inputs[0])->producer;
        for (int k = begin + 1; k <= spans.begins[op->loop]; k++)
            within[k] = true;
    }
    return within;
}

/* ---- Gathering ----------------------------------------------------------------------------- */

typedef enum { WAITING, OPEN, DONE } State;

/* A node of a search: which member of it is looked at, and which of that one's inputs. */
typedef struct {
    int node, member, input;
} Frame;

/* Two searches of the same form: over units (an operation that is in no loop, or a whole loop), and,
 * when a loop's turn comes, over its operations. */
typedef struct {
    const MtfGraph *graph;
    const bool *dead;
    GArray **bodies; /* by loop: its operations */
    State *units;    /* operations, then behind them loops from 1 */
    State *members;  /* operations inside of their loops */
    GArray *order;
} Gathering;

static int unit_of(const Gathering *g, int operation) {
    int loop = mtf_graph_operation(g->graph, operation)->loop;
    return loop > 0 ? (int)g->graph->operations->len + loop : operation;
}

/* The operation that makes what the frame comes to next, or -1 at its end. */
static int next_producer(const Gathering *g, Frame *frame, bool inside) {
    int n = (int)g->graph->operations->len;
    const GArray *body = !inside && frame->node >= n ? g->bodies[frame->node - n] : NULL;
    for (int members = body != NULL ? (int)body->len : 1; frame->member < members;
         frame->member++, frame->input = 0) {
        int operation = body != NULL ? g_array_index(body, int, frame->member) : frame->node;
        const MtfOperation *op = mtf_graph_operation(g->graph, operation);
        while (frame->input < op->n_inputs) {
            int producer = mtf_graph_tensor(g->graph, op->inputs[frame->input++])->producer;
            if (producer >= 0)
                return producer;
        }
    }
    return -1;
}

/* The node behind the frame's next input that this search has to do with, or -1. */
static int next_node(const Gathering *g, Frame *frame, bool inside) {
    for (int producer = next_producer(g, frame, inside); producer >= 0;
         producer = next_producer(g, frame, inside)) {
        bool same = unit_of(g, producer) == (inside ? unit_of(g, frame->node) : frame->node);
        if (same == inside)
            return inside ? producer : unit_of(g, producer);
    }
    return -1;
}

static bool place_body(Gathering *g, int loop, GError **error);

static bool leave(Gathering *g, int node, bool inside, GError **error) {
    int n = (int)g->graph->operations->len;
    if (!inside && node >= n)
        return place_body(g, node - n, error);
    g_array_append_val(g->order, node);
    return true;
}

/* Depth first, on a stack of our own. */
static bool visit(Gathering *g, int start, bool inside, GError **error) {
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(Frame));
    State *states = inside ? g->members : g->units;
    if (states[start] == DONE)
        return true;
    g_array_append_val(stack, ((Frame){ start, 0, 0 }));
    states[start] = OPEN;
    while (stack->len > 0) {
        Frame *top = &g_array_index(stack, Frame, stack->len - 1);
        int next = next_node(g, top, inside), node = top->node;
        if (next < 0) {
            states[node] = DONE;
            g_array_set_size(stack, stack->len - 1);
            if (!leave(g, node, inside, error))
                return false;
        } else if (states[next] == OPEN) {
            int operation = next < (int)g->graph->operations->len ? next : start;
            return mtf_input_error(error, "operation \"%s\" and a loop need each other's results",
                                   mtf_graph_operation(g->graph, operation)->name);
        } else if (states[next] == WAITING) {
            states[next] = OPEN;
            g_array_append_val(stack, ((Frame){ next, 0, 0 }));
        }
    }
    return true;
}

/* The operations of a loop, those that hand states on behind all that may read them. */
static bool place_body(Gathering *g, int loop, GError **error) {
    const GArray *body = g->bodies[loop];
    for (int last = 0; last < 2; last++)
        for (guint i = 0; i < body->len; i++) {
            int operation = g_array_index(body, int, i);
            bool hands_on = mtf_operation_loop_part(g->graph, operation) == MTF_LOOP_HANDS_ON;
            if (hands_on == (last == 1) && !visit(g, operation, true, error))
                return false;
        }
    return true;
}

static bool gather(Gathering *g, GError **error) {
    int n = (int)g->graph->operations->len;
    for (int i = 0; i < n; i++)
        if (mtf_graph_operation(g->graph, i)->loop > 0 && (g->dead == NULL || !g->dead[i]))
            g_array_append_val(g->bodies[mtf_graph_operation(g->graph, i)->loop], i);
    for (int i = 0; i < n; i++)
        if ((g->dead == NULL || !g->dead[i]) && !visit(g, unit_of(g, i), false, error))
            return false;
    return true;
}

bool mtf_graph_gather_loops(MtfGraph *graph, const bool *dead, GError **error) {
    int n = (int)graph->operations->len, loops = (int)graph->loops->len;
    if (loops == 0)
        return true;
    Gathering g = { graph,
                    dead,
                    g_new(GArray *, loops + 1),
                    g_new0(State, n + loops + 2),
                    g_new0(State, n + 1),
                    g_array_new(FALSE, FALSE, sizeof(int)) };
    for (int l = 0; l <= loops; l++)
        g.bodies[l] = g_array_new(FALSE, FALSE, sizeof(int));
    bool done = gather(&g, error);
    if (done)
        mtf_graph_arrange(graph, (const int *)(const void *)g.order->data, (int)g.order->len);
    for (int l = 0; l <= loops; l++)
        g_array_unref(g.bodies[l]);
    g_free(g.bodies);
    g_free(g.units);
    g_free(g.members);
    g_array_unref(g.order);
    return done;
}

/* ---- Checks -------------------------------------------------------------------------------- */

static bool fail(const MtfGraph *graph, int operation, GError **error, const char *what) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return mtf_input_error(error, "operation \"%s\" (%s) %s", op->name,
                           mtf_operation_row(op->kind)->name, what);
}

/* What an operation reads changes only in its own loop. */
static bool check_input(const MtfGraph *graph, const int *states, int operation, int tensor,
                        GError **error) {
    int loop = mtf_graph_operation(graph, operation)->loop;
    int changes = mtf_tensor_loop(graph, states, tensor);
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    bool own = t->producer >= 0 && loop > 0 && changes == 0 &&
               mtf_graph_operation(graph, t->producer)->loop == loop;
    if (own)
        return mtf_input_error(error,
                               "operation \"%s\" reads \"%s\", which is complete when its loop "
                               "\"%s\" is over",
                               mtf_graph_operation(graph, operation)->name, t->name,
                               mtf_graph_loop(graph, loop)->name);
    return changes == 0 || changes == loop ||
           mtf_input_error(error,
                           "operation \"%s\" reads \"%s\", which changes in every iteration of "
                           "loop \"%s\"; outside of it carried values and outputs can be read",
                           mtf_graph_operation(graph, operation)->name, t->name,
                           mtf_graph_loop(graph, changes)->name);
}

static bool check_state(const MtfGraph *graph, const int *states, int operation, bool *handed,
                        GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    int state = op->inputs[0], producer = mtf_graph_tensor(graph, state)->producer;
    if (producer < 0 || mtf_operation_loop_part(graph, producer) != MTF_LOOP_BEGINS)
        return fail(graph, operation, error, "hands on what no loop_begin made");
    int begins = mtf_graph_operation(graph, producer)->stage;
    if (begins > 0 && begins != op->stage)
        return fail(graph, operation, error, "is of another stage than what begins its state");
    if (handed[state])
        return fail(graph, operation, error, "hands on a state that another operation hands on");
    if (is_condition(op) && mtf_loop_condition(graph, op->loop) != state)
        return fail(graph, operation, error, "is the second condition of its loop");
    handed[state] = true;
    producer = mtf_graph_tensor(graph, op->inputs[1])->producer;
    return (states[op->inputs[1]] == 0 && producer >= 0 &&
            mtf_graph_operation(graph, producer)->loop == op->loop) ||
           mtf_input_error(error,
                           "loop \"%s\" carries on \"%s\", which is not the result of an "
                           "operation inside of it",
                           mtf_graph_loop(graph, op->loop)->name,
                           mtf_graph_tensor(graph, op->inputs[1])->name);
}

static bool check_part(const MtfGraph *graph, const int *states, int operation, bool *handed,
                       GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfLoopPart part = mtf_operation_row(op->kind)->loop;
    if (part == MTF_LOOP_NOTHING)
        return true;
    if (part == MTF_LOOP_BEGINS)
        return states[op->outputs[0]] == 0
                   ? fail(graph, operation, error, "begins what no loop carries")
               : op->loop > 0 ? fail(graph, operation, error, "stands inside of a loop")
                              : true;
    if (op->loop == 0)
        return fail(graph, operation, error, "is part of a loop and must name its \"loop\"");
    if (part == MTF_LOOP_HANDS_ON)
        return check_state(graph, states, operation, handed, error);
    if (part == MTF_LOOP_STACKS && mtf_loop_condition(graph, op->loop) >= 0)
        return fail(graph, operation, error,
                    "keeps every iteration of a loop that may end before the last");
    return op->attributes.dimension == mtf_graph_loop(graph, op->loop)->dimension ||
           fail(graph, operation, error, "is about another dimension than its loop's");
}

/* The body of a loop is one part of a step. */
static bool check_together(const MtfGraph *graph, int operation, GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperation *before = operation > 0 ? mtf_graph_operation(graph, operation - 1) : op;
    if (op->loop == 0)
        return true;
    if (op->phase > MTF_PHASE_BACKWARD)
        return fail(graph, operation, error,
                    "is part of a loop, which clipping and updates have not");
    if (before->loop == op->loop && before->stage != op->stage)
        return fail(graph, operation, error, "is of another stage than the rest of its loop");
    return before->loop != op->loop || before->phase == op->phase ||
           fail(graph, operation, error, "is of another phase than the rest of its loop");
}

bool mtf_graph_check_loops(const MtfGraph *graph, GError **error) {
    g_autofree int *states = mtf_graph_states(graph);
    g_autofree bool *handed = g_new0(bool, graph->tensors->len + 1);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (!check_part(graph, states, i, handed, error) || !check_together(graph, i, error))
            return false;
        for (int k = 0; k < op->n_inputs; k++)
            if (!check_input(graph, states, i, op->inputs[k], error))
                return false;
    }
    return true;
}
