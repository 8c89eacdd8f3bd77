// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/recompute.h"

#include "analyzer/composites/builder.h"
#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "layouts/graph/stage_split.h"

#include <string.h>

/* A chain of more operations is not recomputed for one result. */
#define MAX_CHAIN 16

/* A result this much smaller than what it is computed from is kept. */
#define MIN_SHARE 0.25

typedef struct {
    MtfBuilder b;
    MtfConsumers *consumers;  /* of the graph as it was */
    bool *needed;             /* by tensor: stays until the backward pass */
    bool *dropped;            /* …: the backward pass reads a clone */
    int *clones;              /* …: the clone, or -1 */
    MtfRecompute all;         /* of the whole graph; or */
    const MtfRecompute *each; /* of its stages, from stage 1 on; or NULL */
    GArray *order;            /* int: operations, clones among them */
} Recomputation;

char *mtf_recompute_format_stages(const MtfRecompute *each, int stages) {
    GString *text = g_string_new(NULL);
    for (int s = 0; s < stages; s++)
        g_string_append_printf(text, "%s%s", s > 0 ? "," : "", mtf_recompute_name(each[s]));
    return g_string_free(text, FALSE);
}

MtfRecompute *mtf_recompute_parse_stages(const char *text, int stages, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    int count = (int)g_strv_length(words);
    if (count != stages) {
        mtf_input_error(error,
                        "--recompute \"%s\" says of %d what is recomputed, and there are %d stages",
                        text, count, stages);
        return NULL;
    }
    g_autofree MtfRecompute *each = g_new(MtfRecompute, stages);
    for (int s = 0; s < stages; s++) {
        int layers;
        if (!mtf_recompute_parse(words[s], &each[s], &layers, error))
            return NULL;
        if (layers == 0)
            continue;
        mtf_input_error(error,
                        "--recompute \"%s\": a list has none, cheap or layers for each stage, "
                        "not numbers of layers",
                        text);
        return NULL;
    }
    return g_steal_pointer(&each);
}

static const MtfOperation *producer_of(const Recomputation *r, int tensor) {
    int producer = mtf_graph_tensor(r->b.graph, tensor)->producer;
    return producer < 0 ? NULL : mtf_graph_operation(r->b.graph, producer);
}

static bool is_backward(const Recomputation *r, int operation) {
    return mtf_graph_operation(r->b.graph, operation)->phase == MTF_PHASE_BACKWARD;
}

/* Whether an operation of the forward pass can run again, by itself: those of loops cannot. */
static bool can_repeat(const MtfOperation *op) {
    return op != NULL && op->phase == MTF_PHASE_FORWARD && op->n_outputs == 1 &&
           !mtf_operation_row(op->kind)->accumulates && op->loop == 0 &&
           mtf_operation_row(op->kind)->loop == MTF_LOOP_NOTHING;
}

/* Whether the operation is of a part of the graph that is recomputed that way. */
static bool is_recomputed_by(const Recomputation *r, const MtfOperation *op, MtfRecompute way) {
    if (r->each == NULL)
        return r->all == way;
    return op->stage > 0 && r->each[op->stage - 1] == way;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Whether a result of a repeated block is read in the forward pass outside of its iteration. */
static bool leaves_block(const Recomputation *r, int tensor) {
    const MtfGraph *graph = r->b.graph;
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

static bool drop_blocks(Recomputation *r, int layers, GError **error) {
    const MtfGraph *graph = r->b.graph;
    g_autofree int *layer = g_new(int, graph->tensors->len + 1);
    int there = mtf_graph_number_layers(graph, layer);
    if (mtf_graph_stages(graph) > 0)
        there = number_in_stages(graph, layer);
    if (layers > there && there > 0)
        return mtf_input_error(error, "--recompute layers:%d: the graph \"%s\" repeats %d layers%s",
                               layers, graph->name, there,
                               mtf_graph_stages(graph) > 0 ? " in a stage" : "");
    if (graph->repeats->len == 0)
        return mtf_input_error(error,
                               "the graph \"%s\" repeats no block, so there are no layers to "
                               "recompute",
                               graph->name);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        r->dropped[t] = can_repeat(producer_of(r, t)) && layer[t] >= 0 &&
                        is_recomputed_by(r, producer_of(r, t), MTF_RECOMPUTE_LAYERS) &&
                        (layers == 0 || layer[t] < layers) && !leaves_block(r, t);
    return true;
}

/* ---- Cheap operations ------------------------------------------------------------------------ */

static double bytes_of(const Recomputation *r, int tensor) {
    return (double)mtf_graph_tensor_bytes(r->b.graph, tensor);
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
        if (mtf_graph_tensor(r->b.graph, op->inputs[k])->producer < 0)
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
    int n = (int)r->b.graph->tensors->len;
    for (int t = 0; t < n; t++)
        for (int c = r->consumers->starts[t]; c < r->consumers->starts[t + 1]; c++)
            r->needed[t] |= is_backward(r, r->consumers->operations[c]);
    for (int t = 0; t < n; t++)
        if (r->needed[t] && is_cheap(r, t))
            drop_if_worth_it(r, t);
}

/* ---- Clones ---------------------------------------------------------------------------------- */

static int clone_of(Recomputation *r, int tensor);

static int build_clone(Recomputation *r, const MtfOperation *op, int *inputs) {
    const MtfTensor *original = mtf_graph_tensor(r->b.graph, op->outputs[0]);
    MtfShape shape = original->shape;
    MtfMemoryKind memory = original->memory;
    g_autofree char *repeated = g_strdup(op->name);
    g_autofree char *name = g_strdup_printf("recompute/%s", op->name);
    g_autofree char *stream =
        g_strdup(op->attributes.stream != NULL ? op->attributes.stream : op->name);
    r->b.has_dtype = mtf_operation_row_chooses_dtype(mtf_operation_row(op->kind));
    r->b.dtype = original->dtype;
    r->b.attributes = op->attributes;
    r->b.stage = op->stage;
    r->b.layer = op->layer;
    if (mtf_operation_is_random(op))
        r->b.attributes.stream = stream;
    int made = mtf_build(&r->b, op->kind, name, &shape, op->n_inputs, inputs);
    if (made >= 0) {
        mtf_graph_tensor(r->b.graph, made)->memory = memory;
        mtf_graph_set_origin(r->b.graph, made, MTF_ORIGIN_CLONE, repeated);
    }
    return made;
}

/* Where the backward pass reads a tensor. */
static int read_back(Recomputation *r, int tensor) {
    return r->dropped[tensor] ? clone_of(r, tensor) : tensor;
}

/* Clones are made when they are first asked for, behind those that they are computed from. */
static int clone_of(Recomputation *r, int tensor) {
    if (r->clones[tensor] >= 0 || r->b.error != NULL)
        return r->clones[tensor];
    MtfOperation op = *producer_of(r, tensor);
    g_autofree int *inputs = g_new(int, op.n_inputs + 1);
    for (int k = 0; k < op.n_inputs; k++)
        inputs[k] = read_back(r, op.inputs[k]);
    r->clones[tensor] = build_clone(r, &op, inputs);
    int made = (int)r->b.graph->operations->len - 1;
    g_array_append_val(r->order, made);
    return r->clones[tensor];
}

static void place_operation(Recomputation *r, int operation) {
    int n = mtf_graph_operation(r->b.graph, operation)->n_inputs;
    for (int k = 0; k < n && is_backward(r, operation); k++) {
        int tensor = mtf_graph_operation(r->b.graph, operation)->inputs[k];
        int read = read_back(r, tensor);
        if (read >= 0)
            mtf_graph_operation(r->b.graph, operation)->inputs[k] = read;
    }
    g_array_append_val(r->order, operation);
}

static bool rewire(Recomputation *r, GError **error) {
    int n = (int)r->b.graph->operations->len;
    for (int i = 0; i < n && r->b.error == NULL; i++)
        place_operation(r, i);
    if (!mtf_builder_end(&r->b, error))
        return false;
    mtf_graph_arrange(r->b.graph, (const int *)(const void *)r->order->data, (int)r->order->len);
    return true;
}

/* What another pipeline stage reads is kept: it was received there, and is not sent again. */
static void keep_sent(Recomputation *r) {
    for (int t = 0; t < (int)r->b.graph->tensors->len; t++) {
        const MtfOperation *op = producer_of(r, t);
        for (int c = r->consumers->starts[t]; op != NULL && c < r->consumers->starts[t + 1]; c++)
            if (mtf_graph_operation(r->b.graph, r->consumers->operations[c])->stage != op->stage)
                r->dropped[t] = false;
    }
}

/* Whether some part of the graph is recomputed that way. */
static bool has_way(const Recomputation *r, MtfRecompute way) {
    int stages = r->each == NULL ? 0 : mtf_graph_stages(r->b.graph);
    bool found = r->each == NULL && r->all == way;
    for (int s = 0; s < stages; s++)
        found |= r->each[s] == way;
    return found;
}

/* Parts as `all` says, or `each` stage as it says. */
static bool recompute_parts(MtfGraph *graph, MtfRecompute all, const MtfRecompute *each, int layers,
                            GError **error) {
    gsize n = graph->tensors->len;
    g_autofree bool *needed = g_new0(bool, n + 1);
    g_autofree bool *dropped = g_new0(bool, n + 1);
    g_autofree int *clones = g_new(int, n + 1);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(int));
    for (gsize t = 0; t < n; t++)
        clones[t] = -1;
    Recomputation r = {
        mtf_builder(graph, MTF_PHASE_BACKWARD), consumers, needed, dropped, clones, all, each, order
    };
    if (has_way(&r, MTF_RECOMPUTE_LAYERS) && !drop_blocks(&r, layers, error))
        return false;
    if (has_way(&r, MTF_RECOMPUTE_CHEAP))
        drop_cheap(&r);
    keep_sent(&r);
    return rewire(&r, error);
}

bool mtf_graph_recompute(MtfGraph *graph, MtfRecompute recompute, GError **error) {
    return mtf_graph_recompute_layers(graph, recompute, 0, error);
}

bool mtf_graph_recompute_layers(MtfGraph *graph, MtfRecompute recompute, int layers,
                                GError **error) {
    return recompute == MTF_RECOMPUTE_NONE ||
           recompute_parts(graph, recompute, NULL, layers, error);
}

bool mtf_graph_recompute_stages(MtfGraph *graph, const MtfRecompute *each, GError **error) {
    return recompute_parts(graph, MTF_RECOMPUTE_NONE, each, 0, error);
}
