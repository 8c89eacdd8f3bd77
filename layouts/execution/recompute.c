// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/recompute.h"

#include "layouts/base/error.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/random.h"
#include "layouts/graph/stage_split.h"

/* A chain of more operations is not recomputed for one result. */
#define MAX_CHAIN 16

/* A result this much smaller than what it is computed from is kept. */
#define MIN_SHARE 0.25

typedef struct {
    MtfGraph *graph;
    MtfConsumers *consumers; /* of the graph as it was */
    bool *needed;            /* by tensor: stays until the backward pass */
    bool *dropped;           /* …: the backward pass reads a clone */
    int *clones;             /* …: the clone, or -1 */
    const MtfKept *kept;     /* of n parts: of the whole graph, or of its stages, from stage 1 on */
    int n;
    GArray *order;  /* int: operations, clones among them */
    GError **error; /* the first; then nothing more is cloned */
    bool failed;
} Recomputation;

static const MtfOperation *producer_of(const Recomputation *r, int tensor) {
    int producer = mtf_graph_tensor(r->graph, tensor)->producer;
    return producer < 0 ? NULL : mtf_graph_operation(r->graph, producer);
}

static bool is_backward(const Recomputation *r, int operation) {
    return mtf_graph_operation(r->graph, operation)->phase == MTF_PHASE_BACKWARD;
}

/* Whether an operation of the forward pass can run again, by itself: those of loops cannot. */
static bool can_repeat(const MtfOperation *op) {
    return op != NULL && op->phase == MTF_PHASE_FORWARD && op->n_outputs == 1 &&
           !mtf_operation_row(op->kind)->accumulates && op->loop == 0 &&
           mtf_operation_row(op->kind)->loop == MTF_LOOP_NOTHING;
}

/* What is kept of the part of the graph that the operation belongs to. */
static const MtfKept *kept_of(const Recomputation *r, const MtfOperation *op) {
    return &r->kept[r->n > 1 ? op->stage - 1 : 0];
}

/* Whether the operation is of a part of the graph that is recomputed that way. */
static bool is_recomputed_by(const Recomputation *r, const MtfOperation *op, MtfRecompute way) {
    return kept_of(r, op)->recompute == way;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Whether a result of a repeated block is read in the forward pass outside of its iteration. */
static bool leaves_block(const Recomputation *r, int tensor) {
    const MtfGraph *graph = r->graph;
    MtfLayer layer = mtf_graph_tensor(graph, tensor)->layer;
    for (int c = r->consumers->starts[tensor]; c < r->consumers->starts[tensor + 1]; c++) {
        const MtfOperation *reader = mtf_graph_operation(graph, r->consumers->operations[c]);
        if (reader->phase == MTF_PHASE_FORWARD &&
            (layer.block == 0 || !mtf_layer_equal(reader->layer, layer)))
            return true;
    }
    return false;
}

int mtf_graph_number_layers(const MtfGraph *graph, int *layer) {
    int layers = 0;
    g_autoptr(GHashTable) numbers =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        layer[t] = -1;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        int64_t key = ((int64_t)op->layer.block << 32) + op->layer.iteration;
        if (op->phase != MTF_PHASE_FORWARD || op->layer.block == 0)
            continue;
        if (!g_hash_table_contains(numbers, &key))
            g_hash_table_insert(numbers, g_memdup2(&key, sizeof key), GINT_TO_POINTER(layers++));
        for (int k = 0; k < op->n_outputs; k++)
            layer[op->outputs[k]] = GPOINTER_TO_INT(g_hash_table_lookup(numbers, &key));
    }
    return layers;
}

int mtf_graph_recomputable_layers(const MtfGraph *graph) {
    g_autofree int *layer = g_new(int, graph->tensors->len + 1);
    return mtf_graph_number_layers(graph, layer);
}

/* Numbers layers from the first of each pipeline stage. Returns the most that a stage has. */
static int number_in_stages(const MtfGraph *graph, int *layer) {
    int n_stages = mtf_graph_stages(graph), most = 0;
    g_autofree int *first = g_new(int, n_stages + 1);
    for (int s = 0; s <= n_stages; s++)
        first[s] = G_MAXINT;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        int producer = mtf_graph_tensor(graph, t)->producer;
        int *of = layer[t] < 0 ? NULL : &first[mtf_graph_operation(graph, producer)->stage];
        if (of != NULL)
            *of = MIN(*of, layer[t]);
    }
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (layer[t] >= 0) {
            int producer = mtf_graph_tensor(graph, t)->producer;
            layer[t] -= first[mtf_graph_operation(graph, producer)->stage];
            most = MAX(most, layer[t] + 1);
        }
    return most;
}

static bool check_layers(const Recomputation *r, int there) {
    const MtfGraph *graph = r->graph;
    if (graph->repeats->len == 0)
        return mtf_input_error(r->error,
                               "the graph \"%s\" repeats no block, so there are no layers to "
                               "recompute",
                               graph->name);
    for (int s = 0; s < r->n; s++)
        if (r->kept[s].recomputed_layers > there && there > 0)
            return mtf_input_error(r->error,
                                   "--recompute layers:%d: the graph \"%s\" repeats %d layers%s",
                                   r->kept[s].recomputed_layers, graph->name, there,
                                   mtf_graph_stages(graph) > 0 ? " in a stage" : "");
    return true;
}

/* Whether a result is of a layer that is recomputed, and not what the layer hands on. */
static bool is_inside_layer(const Recomputation *r, int tensor, int layer) {
    const MtfOperation *op = producer_of(r, tensor);
    if (layer < 0 || !can_repeat(op) || !is_recomputed_by(r, op, MTF_RECOMPUTE_LAYERS))
        return false;
    int layers = kept_of(r, op)->recomputed_layers;
    return (layers == 0 || layer < layers) && !leaves_block(r, tensor);
}

static bool drop_blocks(Recomputation *r) {
    const MtfGraph *graph = r->graph;
    g_autofree int *layer = g_new(int, graph->tensors->len + 1);
    int there = mtf_graph_number_layers(graph, layer);
    if (mtf_graph_stages(graph) > 0)
        there = number_in_stages(graph, layer);
    if (!check_layers(r, there))
        return false;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        r->dropped[t] = is_inside_layer(r, t, layer[t]);
    return true;
}

/* ---- Cheap operations ------------------------------------------------------------------------ */

static double bytes_of(const Recomputation *r, int tensor) {
    return (double)mtf_graph_tensor_bytes(r->graph, tensor);
}

static double input_bytes(const Recomputation *r, const MtfOperation *op) {
    double sum = 0;
    for (int k = 0; k < op->n_inputs; k++)
        sum += bytes_of(r, op->inputs[k]);
    return sum;
}

/* A product of two results, like attention scores, that is larger than both together: then few
 * products are added up in each of its elements. */
static bool is_outer(const Recomputation *r, const MtfOperation *op) {
    for (int k = 0; k < op->n_inputs; k++)
        if (mtf_graph_tensor(r->graph, op->inputs[k])->producer < 0)
            return false;
    return bytes_of(r, op->outputs[0]) > input_bytes(r, op);
}

static bool is_cheap(const Recomputation *r, int tensor) {
    const MtfOperation *op = producer_of(r, tensor);
    if (!can_repeat(op) || !is_recomputed_by(r, op, MTF_RECOMPUTE_CHEAP) || leaves_block(r, tensor))
        return false;
    switch (mtf_operation_row(op->kind)->kernel_class) {
    case MTF_CLASS_ELEMENTWISE:
    case MTF_CLASS_MOVE:
        return bytes_of(r, tensor) >= MIN_SHARE * input_bytes(r, op);
    case MTF_CLASS_MATMUL:
        return is_outer(r, op);
    default:
        return false;
    }
}

/* What computing one result again would take. */
typedef struct {
    GArray *chain;  /* int: results recomputed, this one included */
    GArray *leaves; /* int: results they start from */
    double kept;    /* bytes of leaves that would else be gone by then */
} Chain;

static bool contains(const GArray *list, int value) {
    for (guint i = 0; i < list->len; i++)
        if (g_array_index(list, int, i) == value)
            return true;
    return false;
}

static void follow(const Recomputation *r, Chain *chain, int tensor) {
    if (contains(chain->chain, tensor) || chain->chain->len > MAX_CHAIN)
        return;
    g_array_append_val(chain->chain, tensor);
    const MtfOperation *op = producer_of(r, tensor);
    for (int k = 0; k < op->n_inputs; k++) {
        int t = op->inputs[k];
        if (producer_of(r, t) == NULL || contains(chain->leaves, t))
            continue;
        if (r->dropped[t] || (!r->needed[t] && is_cheap(r, t))) {
            follow(r, chain, t);
            continue;
        }
        g_array_append_val(chain->leaves, t);
        chain->kept += r->needed[t] ? 0 : bytes_of(r, t);
    }
}

static void mark(const GArray *tensors, bool *marks) {
    for (guint i = 0; i < tensors->len; i++)
        marks[g_array_index(tensors, int, i)] = true;
}

static void drop_if_worth_it(Recomputation *r, int tensor) {
    Chain chain = { g_array_new(FALSE, FALSE, sizeof(int)), g_array_new(FALSE, FALSE, sizeof(int)),
                    0 };
    follow(r, &chain, tensor);
    if (chain.chain->len <= MAX_CHAIN && chain.kept < bytes_of(r, tensor)) {
        mark(chain.chain, r->dropped);
        mark(chain.leaves, r->needed);
    }
    g_array_unref(chain.chain);
    g_array_unref(chain.leaves);
}

static void drop_cheap(Recomputation *r) {
    int n = (int)r->graph->tensors->len;
    for (int t = 0; t < n; t++)
        for (int c = r->consumers->starts[t]; c < r->consumers->starts[t + 1]; c++)
            r->needed[t] |= is_backward(r, r->consumers->operations[c]);
    for (int t = 0; t < n; t++)
        if (r->needed[t] && is_cheap(r, t))
            drop_if_worth_it(r, t);
}

/* ---- Clones ---------------------------------------------------------------------------------- */

static int clone_of(Recomputation *r, int tensor);

/* The same row on the same values: random ones of the original's stream. */
static int build_clone(Recomputation *r, const MtfOperation *op, const int *inputs) {
    MtfTensor original = *mtf_graph_tensor(r->graph, op->outputs[0]);
    g_autofree char *name = g_strdup_printf("recompute/%s", op->name);
    MtfNewOperation clone = {
        .name = name,
        .kind = op->kind,
        .phase = MTF_PHASE_BACKWARD,
        .stage = op->stage,
        .layer = op->layer,
        .origin = MTF_ORIGIN_CLONE,
        .of = op->name,
        .n_inputs = op->n_inputs,
        .inputs = inputs,
        .shape = &original.shape,
        .has_dtype = mtf_operation_row_chooses_dtype(mtf_operation_row(op->kind)),
        .dtype = original.dtype,
        .attributes = op->attributes,
    };
    if (mtf_operation_is_random(op) && op->attributes.stream == NULL)
        clone.attributes.stream = op->name;
    int made = mtf_graph_add_operation(r->graph, &clone, r->error);
    if (made < 0)
        r->failed = true;
    else
        mtf_graph_tensor(r->graph, made)->memory = original.memory;
    return made;
}

/* Where the backward pass reads a tensor. */
static int read_back(Recomputation *r, int tensor) {
    return r->dropped[tensor] ? clone_of(r, tensor) : tensor;
}

/* Clones are made when they are first asked for, behind those that they are computed from. */
static int clone_of(Recomputation *r, int tensor) {
    if (r->clones[tensor] >= 0 || r->failed)
        return r->clones[tensor];
    MtfOperation op = *producer_of(r, tensor);
    g_autofree int *inputs = g_new(int, op.n_inputs + 1);
    for (int k = 0; k < op.n_inputs; k++)
        inputs[k] = read_back(r, op.inputs[k]);
    r->clones[tensor] = build_clone(r, &op, inputs);
    int made = (int)r->graph->operations->len - 1;
    g_array_append_val(r->order, made);
    return r->clones[tensor];
}

static void place_operation(Recomputation *r, int operation) {
    int n = mtf_graph_operation(r->graph, operation)->n_inputs;
    for (int k = 0; k < n && is_backward(r, operation); k++) {
        int tensor = mtf_graph_operation(r->graph, operation)->inputs[k];
        int read = read_back(r, tensor);
        if (read >= 0)
            mtf_graph_operation(r->graph, operation)->inputs[k] = read;
    }
    g_array_append_val(r->order, operation);
}

static bool rewire(Recomputation *r) {
    int n = (int)r->graph->operations->len;
    for (int i = 0; i < n && !r->failed; i++)
        place_operation(r, i);
    if (r->failed)
        return false;
    mtf_graph_arrange(r->graph, (const int *)(const void *)r->order->data, (int)r->order->len);
    return true;
}

/* What another pipeline stage reads is kept: it was received there, and is not sent again. */
static void keep_sent(Recomputation *r) {
    for (int t = 0; t < (int)r->graph->tensors->len; t++) {
        const MtfOperation *op = producer_of(r, t);
        for (int c = r->consumers->starts[t]; op != NULL && c < r->consumers->starts[t + 1]; c++)
            if (mtf_graph_operation(r->graph, r->consumers->operations[c])->stage != op->stage)
                r->dropped[t] = false;
    }
}

/* Whether some part of the graph is recomputed that way. */
static bool has_way(const Recomputation *r, MtfRecompute way) {
    bool found = false;
    for (int s = 0; s < r->n; s++)
        found |= r->kept[s].recompute == way;
    return found;
}

/* Clones are told from what they repeat by their origin, so there are none yet. */
static bool check_no_clones(const MtfGraph *graph, GError **error) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->origin == MTF_ORIGIN_CLONE)
            return mtf_input_error(error,
                                   "--recompute: the graph \"%s\" recomputes \"%s\" by itself",
                                   graph->name, op->of);
    }
    return true;
}

static bool recompute(Recomputation *r) {
    if (has_way(r, MTF_RECOMPUTE_LAYERS) && !drop_blocks(r))
        return false;
    if (has_way(r, MTF_RECOMPUTE_CHEAP))
        drop_cheap(r);
    keep_sent(r);
    return rewire(r);
}

bool mtf_graph_recompute(MtfGraph *graph, const MtfKept *kept, int n, GError **error) {
    gsize size = graph->tensors->len;
    g_autofree bool *needed = g_new0(bool, size + 1);
    g_autofree bool *dropped = g_new0(bool, size + 1);
    g_autofree int *clones = g_new(int, size + 1);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(int));
    for (gsize t = 0; t < size; t++)
        clones[t] = -1;
    Recomputation r = { graph, consumers, needed, dropped, clones, kept, n, order, error, false };
    if (!has_way(&r, MTF_RECOMPUTE_CHEAP) && !has_way(&r, MTF_RECOMPUTE_LAYERS))
        return true;
    return check_no_clones(graph, error) && recompute(&r);
}
