// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/offload.h"

#include "layouts/base/error.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/stage_split.h"

/* A result this much smaller than the largest that goes to the host stays. */
#define MIN_SHARE 0.125

/* A result that waits with the host. */
typedef struct {
    int tensor, layer; /* the layer that waits for it, numbered as the forward pass comes to them */
    int needed;        /* the first operation of the backward pass that reads it */
    int fetched;       /* the operation before which it is fetched */
    int to, from;      /* operations */
    int sibling;       /* the last before it, of the same operation's results; -1: none */
} Waiting;

typedef struct {
    MtfGraph *graph;
    MtfConsumers *consumers; /* of the graph as it was */
    const int *layer;        /* by tensor: of results of layers, else -1 */
    GArray *waiting;         /* Waiting, in the order in which the backward pass needs them */
    int first_backward;      /* operation */
} Offloading;

/* ---- What waits ------------------------------------------------------------------------------ */

static Waiting *waiting_at(const Offloading *o, int w) {
    return &g_array_index(o->waiting, Waiting, w);
}

static int producer_of(const Offloading *o, int tensor) {
    return mtf_graph_tensor(o->graph, tensor)->producer;
}

static const MtfOperation *reader(const Offloading *o, int c) {
    return mtf_graph_operation(o->graph, o->consumers->operations[c]);
}

/* The first layer whose forward pass reads a tensor that it has not made; -1: none does. */
static int reading_layer(const Offloading *o, int tensor) {
    int first = -1;
    for (int c = o->consumers->starts[tensor]; c < o->consumers->starts[tensor + 1]; c++) {
        const MtfOperation *op = reader(o, c);
        int layer = op->phase == MTF_PHASE_FORWARD ? o->layer[op->outputs[0]] : -1;
        if (layer >= 0 && layer != o->layer[tensor] && (first < 0 || layer < first))
            first = layer;
    }
    return first;
}

/* The first operation of the backward pass that reads a tensor; -1: none does. */
static int first_need(const Offloading *o, int tensor) {
    for (int c = o->consumers->starts[tensor]; c < o->consumers->starts[tensor + 1]; c++)
        if (reader(o, c)->phase == MTF_PHASE_BACKWARD)
            return o->consumers->operations[c];
    return -1;
}

/* Whether a tensor can leave the device: a result of the forward pass, outside of loops. */
static bool can_leave(const Offloading *o, int tensor) {
    int producer = producer_of(o, tensor);
    if (producer < 0 || tensor == o->graph->loss)
        return false;
    const MtfOperation *op = mtf_graph_operation(o->graph, producer);
    return op->phase == MTF_PHASE_FORWARD && op->loop == 0 &&
           mtf_operation_row(op->kind)->loop == MTF_LOOP_NOTHING &&
           !mtf_operation_row(op->kind)->accumulates &&
           mtf_operation_row(op->kind)->host == MTF_HOST_NOTHING;
}

/* By need, latest layers first as a rule; ties by tensor. */
static int compare_needs(const void *left, const void *right) {
    const Waiting *a = left, *b = right;
    return a->needed != b->needed ? (a->needed < b->needed ? -1 : 1) : a->tensor - b->tensor;
}

static int compare_fetches(const void *left, const void *right) {
    const Waiting *a = left, *b = right;
    return a->fetched != b->fetched ? (a->fetched < b->fetched ? -1 : 1) : compare_needs(a, b);
}

static void drop_small(Offloading *o) {
    int64_t largest = 0;
    int kept = 0;
    for (int w = 0; w < (int)o->waiting->len; w++)
        largest = MAX(largest, mtf_graph_tensor_bytes(o->graph, waiting_at(o, w)->tensor));
    for (int w = 0; w < (int)o->waiting->len; w++) {
        int64_t bytes = mtf_graph_tensor_bytes(o->graph, waiting_at(o, w)->tensor);
        if ((double)bytes >= MIN_SHARE * (double)largest)
            *waiting_at(o, kept++) = *waiting_at(o, w);
    }
    g_array_set_size(o->waiting, (guint)kept);
}

static void choose(Offloading *o, MtfOffload offload, int layers) {
    for (int t = 0; t < (int)o->graph->tensors->len; t++) {
        Waiting waiting = { .tensor = t, .layer = reading_layer(o, t), .needed = first_need(o, t) };
        if (waiting.layer < 0 && offload == MTF_OFFLOAD_ACTIVATIONS)
            waiting.layer = o->layer[t];
        if (waiting.layer >= 0 && waiting.needed >= 0 && can_leave(o, t) &&
            (layers == 0 || waiting.layer < layers))
            g_array_append_val(o->waiting, waiting);
    }
    drop_small(o);
    g_array_sort(o->waiting, compare_needs);
}

/* What a layer waits for is fetched when the backward pass comes to the one before it in that pass; for
 * the first at its beginning. */
static void place_fetches(Offloading *o) {
    int fetched = o->first_backward, begin = -1;
    for (int w = 0; w < (int)o->waiting->len; w++) {
        Waiting *waiting = waiting_at(o, w);
        bool next = w == 0 || waiting->layer != waiting_at(o, w - 1)->layer;
        if (next && begin >= 0)
            fetched = begin;
        if (next)
            begin = waiting->needed;
        waiting->fetched = CLAMP(fetched, producer_of(o, waiting->tensor) + 1, waiting->needed);
    }
    g_array_sort(o->waiting, compare_fetches);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static int build_copy(Offloading *o, int kind, const MtfOperation *like, int of, int input,
                      GError **error) {
    const char *tensor = mtf_graph_tensor(o->graph, of)->name;
    g_autofree char *name = g_strdup_printf("%s/%s", mtf_operation_row(kind)->name, tensor);
    MtfNewOperation copy = { .name = name,
                             .kind = kind,
                             .phase = like->phase,
                             .layer = like->layer,
                             .n_inputs = 1,
                             .inputs = &input,
                             .attributes = MTF_NO_ATTRIBUTES };
    return mtf_graph_add_operation(o->graph, &copy, error);
}

static void read_from(Offloading *o, int tensor, int copy) {
    for (int c = o->consumers->starts[tensor]; c < o->consumers->starts[tensor + 1]; c++) {
        MtfOperation *op = mtf_graph_operation(o->graph, o->consumers->operations[c]);
        for (int k = 0; k < op->n_inputs && op->phase == MTF_PHASE_BACKWARD; k++)
            if (op->inputs[k] == tensor)
                op->inputs[k] = copy;
    }
}

static bool build_copies(Offloading *o, Waiting *waiting, GError **error) {
    int tensor = waiting->tensor;
    MtfOperation maker = *mtf_graph_operation(o->graph, producer_of(o, tensor));
    MtfOperation user = *mtf_graph_operation(o->graph, waiting->needed);
    waiting->to = (int)o->graph->operations->len;
    waiting->from = waiting->to + 1;
    int there = build_copy(o, MTF_OP_TO_HOST, &maker, tensor, tensor, error);
    if (there < 0)
        return false;
    int back = build_copy(o, MTF_OP_FROM_HOST, &user, tensor, there, error);
    if (back >= 0)
        read_from(o, tensor, back);
    return back >= 0;
}

/* For each operation the last of its results that waits, or -1. */
static int *link_siblings(const Offloading *o, int n) {
    int *made = g_new(int, n + 1);
    for (int i = 0; i < n; i++)
        made[i] = -1;
    for (int w = 0; w < (int)o->waiting->len; w++) {
        int *last = &made[producer_of(o, waiting_at(o, w)->tensor)];
        waiting_at(o, w)->sibling = *last;
        *last = w;
    }
    return made;
}

/* The order of all operations: copies to the host behind what makes their inputs, back where they are to be
 * fetched. */
static GArray *order_of(const Offloading *o, int n) {
    GArray *order = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree int *made = link_siblings(o, n);
    guint next = 0;
    for (int i = 0; i < n; i++) {
        while (next < o->waiting->len && waiting_at(o, (int)next)->fetched <= i)
            g_array_append_val(order, waiting_at(o, (int)next++)->from);
        g_array_append_val(order, i);
        for (int w = made[i]; w >= 0; w = waiting_at(o, w)->sibling)
            g_array_append_val(order, waiting_at(o, w)->to);
    }
    return order;
}

static bool rewrite(Offloading *o, GError **error) {
    int n = (int)o->graph->operations->len;
    place_fetches(o);
    for (int w = 0; w < (int)o->waiting->len; w++)
        if (!build_copies(o, waiting_at(o, w), error))
            return false;
    g_autoptr(GArray) order = order_of(o, n);
    mtf_graph_arrange(o->graph, (const int *)(const void *)order->data, (int)order->len);
    return true;
}

/* ---- Entry ----------------------------------------------------------------------------------- */

/* Copies are told from what they copy by their kind, so there are none yet. */
static bool check_no_copies(const MtfGraph *graph, GError **error) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->host != MTF_HOST_NOTHING)
            return mtf_input_error(error,
                                   "--offload: the graph \"%s\" uses the host's memory by itself "
                                   "(\"%s\")",
                                   graph->name, op->name);
    }
    return true;
}

static bool check(const MtfGraph *graph, int there, int layers, GError **error) {
    if (mtf_graph_stages(graph) > 0)
        return mtf_input_error(error,
                               "--offload: the stages of a pipeline keep what waits for their "
                               "backward pass on the device; leave out --offload or --stages");
    if (there == 0)
        return mtf_input_error(
            error,
            "--offload: the graph \"%s\" repeats no block, so there are no layers "
            "to offload",
            graph->name);
    if (layers > there)
        return mtf_input_error(error, "--offload: the graph \"%s\" repeats %d layers, not %d",
                               graph->name, there, layers);
    return check_no_copies(graph, error);
}

static int first_backward(const MtfGraph *graph) {
    int i = 0;
    while (i < (int)graph->operations->len &&
           mtf_graph_operation(graph, i)->phase != MTF_PHASE_BACKWARD)
        i++;
    return i;
}

bool mtf_graph_offload(MtfGraph *graph, const MtfKept *kept, GError **error) {
    if (kept->offload == MTF_OFFLOAD_NONE)
        return true;
    g_autofree int *layer = g_new(int, graph->tensors->len + 1);
    if (!check(graph, mtf_graph_number_layers(graph, layer), kept->offloaded_layers, error))
        return false;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autoptr(GArray) waiting = g_array_new(FALSE, TRUE, sizeof(Waiting));
    Offloading o = { graph, consumers, layer, waiting, first_backward(graph) };
    choose(&o, kept->offload, kept->offloaded_layers);
    if (waiting->len == 0)
        return mtf_input_error(error,
                               "--offload: nothing of \"%s\" waits for a backward pass outside of "
                               "loops",
                               graph->name);
    return rewrite(&o, error);
}
