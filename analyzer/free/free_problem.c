// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/free_problem.h"

#include "analyzer/free/operation_profile.h"
#include "analyzer/free/placement_lists.h"
#include "analyzer/free/reshard_prices.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/solver/problem/shared_blocks.h"
#include "layouts/base/error.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/placement/compared_tensors.h"

#include <string.h>

struct MtfFreeProblem {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfPricer *pricer;
    MtfStageExecution stage; /* of the layouts */
    MtfLayoutProblem *problem;
    MtfOperationProfiles *profiles;
    MtfReshardPrices *prices;
    MtfPlacementLists *lists;               /* of candidates */
    GHashTable *edges;                      /* EdgeKey -> its place in edge_kinds, plus 1 */
    GArray *edge_kinds;                     /* EdgeKind */
    GArray *edge_uses;                      /* EdgeUse, in the order of the edges */
    const MtfOperationProfile **operations; /* one an operation, node i */
    int *tensor_node;                       /* for each tensor: its node, or -1 */
    int *gathered_node;         /* MTF_PHASES a tensor: the node of its gathered copy, or -1 */
    GArray *node_tensors;       /* int: for each node: its tensor, or -1 */
    GArray *node_phases;        /* int: for each node: the phase whose reading it is, or -1 */
    GPtrArray *node_names;      /* for each node: its name */
    GPtrArray *node_placements; /* for each node: GArray of MtfPlacement, or NULL */
    int *updated_variable;      /* for each tensor: the variable whose next value it is, or -1 */
    MtfConsumers *consumers;
    bool *compared; /* by tensor (compared_tensors.h) */
    int repeated;   /* operations that every micro-batch runs */
    MtfLoopSpans loops;
};

/* ---- Nodes --------------------------------------------------------------------------------- */

/* Bytes of the device's memory. */
static int64_t slice_bytes(const MtfFreeProblem *problem, int tensor,
                           const MtfPlacement *placement) {
    if (mtf_tensor_is_on_host(problem->graph, tensor))
        return 0;
    const MtfTensor *t = mtf_graph_tensor(problem->graph, tensor);
    return mtf_largest_elements(problem->graph, problem->mesh, &t->shape, placement) *
           mtf_dtype_bytes(t->dtype);
}

static int consumer_count(const MtfFreeProblem *problem, int tensor) {
    return problem->consumers->starts[tensor + 1] - problem->consumers->starts[tensor];
}

/* The time at which a tensor's slice is no longer needed: after its last consumer, or when that
 * begins if it may write its result there. */
static int64_t end_in_order(const MtfFreeProblem *problem, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(problem->graph, tensor);
    int64_t steps = (int64_t)problem->graph->operations->len;
    int n = consumer_count(problem, tensor);
    if (t->producer < 0 || tensor == problem->graph->loss)
        return steps;
    if (n == 0)
        return t->producer + 1;
    int last = problem->consumers->operations[problem->consumers->starts[tensor + 1] - 1];
    const MtfOperation *op = mtf_graph_operation(problem->graph, last);
    return last + (mtf_operation_row(op->kind)->in_place == 0);
}

/* The same with loops that run more than once; *start is prolonged likewise. */
static int64_t end_of_life(const MtfFreeProblem *problem, int tensor, int *start) {
    int end = (int)end_in_order(problem, tensor);
    mtf_loop_prolong(problem->graph, problem->consumers, &problem->loops, tensor, start, &end);
    return end;
}

/* Whether a tensor has a node of its own: a state, or a result with several consumers, unless it is a
 * variable's next value, which its producer writes in place where it can. */
static bool has_node(const MtfFreeProblem *problem, int tensor) {
    int producer = mtf_graph_tensor(problem->graph, tensor)->producer;
    return producer < 0 || mtf_operation_loop_part(problem->graph, producer) == MTF_LOOP_BEGINS ||
           (consumer_count(problem, tensor) > 1 && problem->updated_variable[tensor] < 0);
}

/* What a node stands for: an operation, a tensor (with a phase: its copy there), named `name`,
 * which it takes over. */
static void describe_node(MtfFreeProblem *problem, int tensor, int phase, GArray *placements,
                          char *name) {
    g_array_append_val(problem->node_tensors, tensor);
    g_array_append_val(problem->node_phases, phase);
    g_ptr_array_add(problem->node_placements, placements);
    g_ptr_array_add(problem->node_names, name);
}

static void add_operation_node(MtfFreeProblem *problem, int operation) {
    const MtfOperation *op = mtf_graph_operation(problem->graph, operation);
    const MtfOperationProfile *profile = problem->operations[operation];
    int n = (int)profile->strategies->len;
    g_autofree int64_t *usages = g_new0(int64_t, n);
    MtfLayoutNode node = { .start = operation,
                           .end = operation,
                           .strategies = n,
                           .costs = profile->costs,
                           .usages = usages };
    int result = op->outputs[0];
    bool adds = mtf_operation_accumulates(problem->graph, operation);
    bool kept = !has_node(problem, result) && problem->updated_variable[result] < 0;
    if (adds) {
        node.start = 0;
        node.end = problem->repeated;
    }
    int start = (int)node.start;
    if (kept)
        node.end = MAX(node.end, end_of_life(problem, result, &start));
    node.start = start;
    if (kept || adds) {
        for (int s = 0; s < n; s++)
            usages[s] = slice_bytes(problem, result,
                                    &g_array_index(profile->outputs[0].placements, MtfPlacement,
                                                   profile->outputs[0].of[s]));
    }
    mtf_layout_problem_add_node(problem->problem, node);
    describe_node(problem, -1, -1, NULL, g_strdup(op->name));
}

/* Notes a list of placements, once. */
static void add_list(GPtrArray *lists, GArray *placements) {
    if (!g_ptr_array_find(lists, placements, NULL))
        g_ptr_array_add(lists, placements);
}

/* Notes what the producer of a tensor leaves it in. */
static void add_produced(const MtfFreeProblem *problem, int tensor, GPtrArray *lists) {
    int producer = mtf_graph_tensor(problem->graph, tensor)->producer;
    const MtfOperation *op = producer >= 0 ? mtf_graph_operation(problem->graph, producer) : NULL;
    for (int k = 0; op != NULL && k < op->n_outputs; k++)
        if (op->outputs[k] == tensor)
            add_list(lists, problem->operations[producer]->outputs[k].placements);
}

/* The lists of what the producer of a tensor leaves it in, then of what its consumers want; a variable that has
 * none, as results have, may be kept as its next value is left. */
static GPtrArray *lists_of(const MtfFreeProblem *problem, int tensor) {
    GPtrArray *lists = g_ptr_array_new();
    const GArray *updates = problem->graph->updates;
    add_produced(problem, tensor, lists);
    for (guint i = 0; consumer_count(problem, tensor) == 0 && i < updates->len; i++) {
        const MtfUpdate *update = &g_array_index(updates, MtfUpdate, i);
        if (update->variable == tensor)
            add_produced(problem, update->value, lists);
    }
    for (int c = problem->consumers->starts[tensor]; c < problem->consumers->starts[tensor + 1];
         c++) {
        int consumer = problem->consumers->operations[c];
        const MtfOperation *op = mtf_graph_operation(problem->graph, consumer);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == tensor)
                add_list(lists, problem->operations[consumer]->inputs[k].placements);
    }
    return lists;
}

/* The placements a tensor may be kept in: those its producer leaves and those its consumers want; of inputs and variables,
 * of what other pipeline stages read and of what is compared, without pending reductions. Returns a reference. */
static GArray *candidate_placements(MtfFreeProblem *problem, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(problem->graph, tensor);
    bool computed = t->producer >= 0 && !t->is_sent && !problem->compared[tensor];
    g_autoptr(GPtrArray) lists = lists_of(problem, tensor);
    return mtf_placement_lists_merge(problem->lists, lists, computed);
}

/* The consumers of a tensor in one phase: how many there are and which comes first. */
typedef struct {
    int count;
    int first; /* operation */
} Readers;

static Readers readers_of(const MtfFreeProblem *problem, int tensor, MtfPhase phase) {
    Readers readers = { 0, -1 };
    const MtfConsumers *consumers = problem->consumers;
    for (int c = consumers->starts[tensor]; c < consumers->starts[tensor + 1]; c++) {
        int consumer = consumers->operations[c];
        if (mtf_graph_operation(problem->graph, consumer)->phase != phase)
            continue;
        if (readers.count++ == 0)
            readers.first = consumer;
    }
    return readers;
}

/* Whether the next value of `tensor`, a variable, is computed in `phase`. Its producer may write it
 * in place, which a copy in between would change the price of. */
static bool is_updated_in(const MtfFreeProblem *problem, int tensor, MtfPhase phase) {
    const GArray *updates = problem->graph->updates;
    for (guint i = 0; mtf_graph_tensor(problem->graph, tensor)->producer < 0 && i < updates->len;
         i++) {
        const MtfUpdate *update = &g_array_index(updates, MtfUpdate, i);
        int producer = mtf_graph_tensor(problem->graph, update->value)->producer;
        if (update->variable == tensor && producer >= 0 &&
            mtf_graph_operation(problem->graph, producer)->phase == phase)
            return true;
    }
    return false;
}

/* Whether a copy may serve the consumers of a phase: several, when there are others besides. If
 * there are none the tensor may just as well be kept as they want it. */
static bool has_gathered_copy(const MtfFreeProblem *problem, int tensor, MtfPhase phase) {
    Readers readers = readers_of(problem, tensor, phase);
    return readers.count > 1 && readers.count < consumer_count(problem, tensor) &&
           !is_updated_in(problem, tensor, phase);
}

/* The phase of the tensor's last consumer, where it has a copy and all its consumers come after
 * all others: the kept slice may go when the first of them has fetched. Otherwise -1. */
static int last_gathered_copy(const MtfFreeProblem *problem, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(problem->graph, tensor);
    if (t->producer < 0 || tensor == problem->graph->loss || consumer_count(problem, tensor) == 0)
        return -1;
    const int *end = &problem->consumers->operations[problem->consumers->starts[tensor + 1]];
    MtfPhase phase = mtf_graph_operation(problem->graph, end[-1])->phase;
    Readers readers = readers_of(problem, tensor, phase);
    bool after = end[-readers.count] == readers.first;
    return after && has_gathered_copy(problem, tensor, phase) ? (int)phase : -1;
}

static int add_placement_node(MtfFreeProblem *problem, int tensor, GArray *candidates,
                              int64_t start, int64_t end) {
    int n = (int)candidates->len;
    g_autofree int64_t *costs = g_new0(int64_t, n);
    g_autofree int64_t *usages = g_new0(int64_t, n);
    for (int i = 0; i < n; i++)
        usages[i] = slice_bytes(problem, tensor, &g_array_index(candidates, MtfPlacement, i));
    return mtf_layout_problem_add_node(problem->problem, (MtfLayoutNode){ .start = start,
                                                                          .end = MAX(start, end),
                                                                          .strategies = n,
                                                                          .costs = costs,
                                                                          .usages = usages });
}

/* The node of the placement a tensor is kept in, and those of its gathered copies. */
static void add_tensor_nodes(MtfFreeProblem *problem, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(problem->graph, tensor);
    GArray *candidates = candidate_placements(problem, tensor);
    int last = last_gathered_copy(problem, tensor), start = MAX(0, t->producer);
    if (t->producer >= 0 && mtf_operation_accumulates(problem->graph, t->producer))
        start = problem->repeated;
    int64_t end = end_of_life(problem, tensor, &start);
    int64_t fetched = last >= 0 ? readers_of(problem, tensor, (MtfPhase)last).first : end;
    problem->tensor_node[tensor] =
        add_placement_node(problem, tensor, candidates, start, MIN(fetched, end));
    describe_node(problem, tensor, -1, candidates, g_strdup(t->name));
    for (int phase = 0; phase < MTF_PHASES; phase++) {
        if (!has_gathered_copy(problem, tensor, (MtfPhase)phase))
            continue;
        problem->gathered_node[tensor * MTF_PHASES + phase] =
            add_placement_node(problem, tensor, candidates, fetched, phase == last ? end : fetched);
        describe_node(problem, tensor, phase, g_array_ref(candidates),
                      g_strdup_printf("%s@%s", t->name, mtf_phase_name((MtfPhase)phase)));
    }
}

/* ---- Edges --------------------------------------------------------------------------------- */

/* One end of an edge: the placements it stands for, one for each strategy of its node. */
typedef struct {
    int node;
    const GArray *placements;
    const int *of; /* NULL: strategy i has placement i */
    int n;
} End;

static End operation_end(const MtfFreeProblem *problem, int operation,
                         const MtfOperationPort *port) {
    return (End){ operation, port->placements, port->of,
                  (int)problem->operations[operation]->strategies->len };
}

static End placement_end(const MtfFreeProblem *problem, int node) {
    const GArray *placements = g_ptr_array_index(problem->node_placements, node);
    return (End){ node, placements, NULL, (int)placements->len };
}

static End tensor_end(const MtfFreeProblem *problem, int tensor) {
    return placement_end(problem, problem->tensor_node[tensor]);
}

static int end_placement(const End *end, int strategy) {
    return end->of != NULL ? end->of[strategy] : strategy;
}

/* A tensor that is moved `times` a step. */
typedef struct {
    MtfTravel travel;
    int times;
} Move;

/* The price of every resharding between two ends; each pair of placements is priced once. */
static int64_t *edge_costs(MtfFreeProblem *problem, const Move *move, const End *from,
                           const End *to) {
    int n_to = (int)to->placements->len;
    g_autofree int64_t *prices = mtf_reshard_prices_of_pairs(problem->prices, move->travel,
                                                             from->placements, to->placements);
    int64_t *costs = g_new(int64_t, (gsize)from->n * (gsize)to->n);
    for (int p = 0; p < from->n; p++)
        for (int q = 0; q < to->n; q++)
            costs[p * to->n + q] =
                move->times * prices[end_placement(from, p) * n_to + end_placement(to, q)];
    return costs;
}

/* What the costs of an edge depend on. Lists and maps are compared by their addresses: layers that
 * repeat have the same profiles and share their lists. */
typedef struct {
    MtfShape shape; /* unused places are zero */
    gint64 dtype;
    const void *lists[2];
    const int *maps[2];
    const int64_t *copies;         /* of an update, or NULL */
    gint64 times, launch, on_host; /* launch: nanoseconds of the host for a local step */
} EdgeKey;

static guint edge_hash(gconstpointer data) {
    return mtf_hash_words(data, sizeof(EdgeKey));
}

static gboolean edge_equal(gconstpointer a, gconstpointer b) {
    return memcmp(a, b, sizeof(EdgeKey)) == 0;
}

static EdgeKey edge_key(const MtfFreeProblem *problem, const Move *move, const End *from,
                        const End *to, const int64_t *copies) {
    const MtfTensor *t = mtf_graph_tensor(problem->graph, move->travel.tensor);
    EdgeKey key;
    memset(&key, 0, sizeof key);
    key.shape.rank = t->shape.rank;
    memcpy(key.shape.dims, t->shape.dims, sizeof(int) * (gsize)t->shape.rank);
    key.dtype = t->dtype;
    key.lists[0] = from->placements;
    key.lists[1] = to->placements;
    key.maps[0] = from->of;
    key.maps[1] = to->of;
    key.copies = copies;
    key.times = move->times;
    key.launch = mtf_travel_launch(problem->prices, move->travel);
    key.on_host = mtf_tensor_is_on_host(problem->graph, move->travel.tensor);
    return key;
}

/* Where the ends of an update agree the value is written in place, or copied. */
static void use_copies(int64_t *costs, const End *from, const End *to, const int64_t *copies) {
    for (int p = 0; p < from->n; p++)
        for (int q = 0; q < to->n; q++)
            if (mtf_placement_equal(
                    &g_array_index(from->placements, MtfPlacement, end_placement(from, p)),
                    &g_array_index(to->placements, MtfPlacement, end_placement(to, q))))
                costs[p * to->n + q] = copies[p];
}

/* Edges of equal costs, which are priced once. */
typedef struct {
    Move move; /* of the first of the kind */
    End from, to;
    const int64_t *copies; /* NULL but for updates */
    int64_t *costs;        /* NULL: not priced yet, or handed on */
    int edge;              /* the first of the kind; -1: none yet */
} EdgeKind;

typedef struct {
    int kind, from, to;
} EdgeUse;

/* Notes an edge. */
static void add_priced_edge(MtfFreeProblem *problem, const Move *move, const End *from,
                            const End *to, const int64_t *copies) {
    EdgeKey key = edge_key(problem, move, from, to, copies);
    int kind = GPOINTER_TO_INT(g_hash_table_lookup(problem->edges, &key)) - 1;
    if (kind < 0) {
        EdgeKind fresh = { *move, *from, *to, copies, NULL, -1 };
        kind = (int)problem->edge_kinds->len;
        g_array_append_val(problem->edge_kinds, fresh);
        g_hash_table_insert(problem->edges, g_memdup2(&key, sizeof key), GINT_TO_POINTER(kind + 1));
    }
    EdgeUse use = { kind, from->node, to->node };
    g_array_append_val(problem->edge_uses, use);
}

/* What lies with the host is fetched as it was brought there. */
static void bar_reshardings(int64_t *costs, const End *from, const End *to) {
    for (int p = 0; p < from->n; p++)
        for (int q = 0; q < to->n; q++)
            if (!mtf_placement_equal(
                    &g_array_index(from->placements, MtfPlacement, end_placement(from, p)),
                    &g_array_index(to->placements, MtfPlacement, end_placement(to, q))))
                costs[p * to->n + q] = MTF_IMPOSSIBLE;
}

static void price_kind(int i, void *data) {
    MtfFreeProblem *problem = data;
    EdgeKind *kind = &g_array_index(problem->edge_kinds, EdgeKind, i);
    kind->costs = edge_costs(problem, &kind->move, &kind->from, &kind->to);
    if (kind->copies != NULL)
        use_copies(kind->costs, &kind->from, &kind->to, kind->copies);
    if (mtf_tensor_is_on_host(problem->graph, kind->move.travel.tensor))
        bar_reshardings(kind->costs, &kind->from, &kind->to);
}

/* Prices all kinds of edges that were noted, which takes most of the time, and adds the edges. */
static void price_edges(MtfFreeProblem *problem) {
    for (guint i = 0; i < problem->edge_kinds->len; i++) {
        const EdgeKind *kind = &g_array_index(problem->edge_kinds, EdgeKind, i);
        mtf_reshard_prices_expect(problem->prices, kind->move.travel, kind->from.placements);
        mtf_reshard_prices_expect(problem->prices, kind->move.travel, kind->to.placements);
    }
    mtf_in_parallel((int)problem->edge_kinds->len, price_kind, problem);
    for (guint i = 0; i < problem->edge_uses->len; i++) {
        const EdgeUse *use = &g_array_index(problem->edge_uses, EdgeUse, i);
        EdgeKind *kind = &g_array_index(problem->edge_kinds, EdgeKind, use->kind);
        if (kind->edge >= 0) {
            mtf_layout_problem_repeat_edge(problem->problem, kind->edge, use->from, use->to);
            continue;
        }
        kind->edge = mtf_layout_problem_add_edge(
            problem->problem, (MtfLayoutEdge){ use->from, use->to, kind->costs });
        g_clear_pointer(&kind->costs, g_free);
    }
}

static void add_edge(MtfFreeProblem *problem, const Move *move, const End *from, const End *to) {
    add_priced_edge(problem, move, from, to, NULL);
}

/* A variable's next value: in place, or by a copy, where producer and variable agree. */
static void add_update_edge(MtfFreeProblem *problem, int operation, int k, int variable) {
    const MtfOperation *op = mtf_graph_operation(problem->graph, operation);
    const MtfOperationProfile *profile = problem->operations[operation];
    Move move = { { operation, op->outputs[k] }, mtf_operation_times(problem->graph, operation) };
    End from = operation_end(problem, operation, &profile->outputs[k]);
    End to = tensor_end(problem, variable);
    add_priced_edge(problem, &move, &from, &to, profile->copies[k]);
}

/* What micro-batches add up is moved when the last is done. */
static void add_output_edges(MtfFreeProblem *problem, int operation) {
    const MtfOperation *op = mtf_graph_operation(problem->graph, operation);
    const MtfOperationProfile *profile = problem->operations[operation];
    int times = mtf_output_times(problem->graph, operation);
    for (int k = 0; k < op->n_outputs; k++) {
        int tensor = op->outputs[k];
        if (problem->updated_variable[tensor] >= 0)
            add_update_edge(problem, operation, k, problem->updated_variable[tensor]);
        if (problem->tensor_node[tensor] < 0)
            continue;
        End from = operation_end(problem, operation, &profile->outputs[k]);
        End to = tensor_end(problem, tensor);
        add_edge(problem, &(Move){ { operation, tensor }, times }, &from, &to);
    }
}

/* The end that a consumer fetches a tensor from: the node of its copy, its own or its
 * producer's. */
static End source_end(const MtfFreeProblem *problem, int tensor, MtfPhase phase) {
    int gathered_copy = problem->gathered_node[tensor * MTF_PHASES + (int)phase];
    if (gathered_copy >= 0)
        return placement_end(problem, gathered_copy);
    if (problem->tensor_node[tensor] >= 0)
        return tensor_end(problem, tensor);
    int producer = mtf_graph_tensor(problem->graph, tensor)->producer;
    const MtfOperation *op = mtf_graph_operation(problem->graph, producer);
    int k = 0;
    while (op->outputs[k] != tensor)
        k++;
    return operation_end(problem, producer, &problem->operations[producer]->outputs[k]);
}

static void add_input_edges(MtfFreeProblem *problem, int operation) {
    const MtfOperation *op = mtf_graph_operation(problem->graph, operation);
    for (int k = 0; k < op->n_inputs; k++) {
        End from = source_end(problem, op->inputs[k], op->phase);
        End to = operation_end(problem, operation, &problem->operations[operation]->inputs[k]);
        Move move = { { operation, op->inputs[k] }, mtf_input_times(problem->graph, operation, k) };
        add_edge(problem, &move, &from, &to);
    }
}

static void add_gathered_edges(MtfFreeProblem *problem, int tensor) {
    End kept = tensor_end(problem, tensor);
    for (int phase = 0; phase < MTF_PHASES; phase++) {
        int node = problem->gathered_node[tensor * MTF_PHASES + phase];
        if (node < 0)
            continue;
        End gathered_copy = placement_end(problem, node);
        Move move = { { readers_of(problem, tensor, (MtfPhase)phase).first, tensor },
                      mtf_phase_times(problem->graph, (MtfPhase)phase) };
        add_edge(problem, &move, &kept, &gathered_copy);
    }
}

/* ---- Entry --------------------------------------------------------------------------------- */

static bool find_profiles(MtfFreeProblem *problem, GError **error) {
    for (int i = 0; i < (int)problem->graph->operations->len; i++) {
        problem->operations[i] = mtf_operation_profile(problem->profiles, i);
        if (problem->operations[i]->strategies->len == 0)
            return mtf_input_error(error, "the pins leave no way to run operation \"%s\"",
                                   mtf_graph_operation(problem->graph, i)->name);
    }
    return true;
}

/* False where pins leave an operation without a strategy. */
static bool build(MtfFreeProblem *problem, const MtfPin *pins, int n_pins, GError **error) {
    int n_operations = (int)problem->graph->operations->len;
    problem->profiles = mtf_operation_profiles_new(problem->graph, problem->mesh, problem->pricer,
                                                   problem->updated_variable, pins, n_pins);
    if (!find_profiles(problem, error))
        return false;
    for (int i = 0; i < n_operations; i++)
        add_operation_node(problem, i);
    for (int t = 0; t < (int)problem->graph->tensors->len; t++)
        if (has_node(problem, t))
            add_tensor_nodes(problem, t);
    for (int i = 0; i < n_operations; i++) {
        add_input_edges(problem, i);
        add_output_edges(problem, i);
    }
    for (int t = 0; t < (int)problem->graph->tensors->len; t++)
        if (problem->tensor_node[t] >= 0)
            add_gathered_edges(problem, t);
    price_edges(problem);
    return true;
}

static int *filled_with_none(guint n) {
    int *array = g_new(int, n + 1);
    for (guint i = 0; i <= n; i++)
        array[i] = -1;
    return array;
}

/* Without nodes or edges. */
static MtfFreeProblem *empty_problem(const MtfGraph *graph, const MtfMesh *mesh,
                                     const MtfPricer *pricer, MtfKnownPaths *paths) {
    MtfFreeProblem *problem = g_new0(MtfFreeProblem, 1);
    *problem = (MtfFreeProblem){
        .graph = graph,
        .mesh = mesh,
        .pricer = pricer,
        .problem = mtf_layout_problem_new(graph->name),
        .prices = mtf_reshard_prices_new(graph, mesh, pricer, paths),
        .lists = mtf_placement_lists_new(),
        .edges = g_hash_table_new_full(edge_hash, edge_equal, g_free, NULL),
        .edge_kinds = g_array_new(FALSE, FALSE, sizeof(EdgeKind)),
        .edge_uses = g_array_new(FALSE, FALSE, sizeof(EdgeUse)),
        .operations = g_new0(const MtfOperationProfile *, graph->operations->len + 1),
        .tensor_node = filled_with_none(graph->tensors->len),
        .gathered_node = filled_with_none(graph->tensors->len * MTF_PHASES),
        .updated_variable = mtf_graph_next_values(graph),
        .node_tensors = g_array_new(FALSE, FALSE, sizeof(int)),
        .node_phases = g_array_new(FALSE, FALSE, sizeof(int)),
        .node_names = g_ptr_array_new_with_free_func(g_free),
        .node_placements = g_ptr_array_new(),
        .consumers = mtf_graph_consumers(graph),
        .compared = mtf_compared_tensors(graph),
        .repeated = mtf_graph_repeated(graph),
        .loops = mtf_loop_spans(graph),
    };
    return problem;
}

MtfFreeProblem *mtf_free_problem_new(const MtfGraph *graph, const MtfMesh *mesh,
                                     const MtfPricer *pricer, const MtfPin *pins, int n_pins,
                                     GError **error) {
    g_autoptr(MtfFreeProblem) problem = empty_problem(graph, mesh, pricer, NULL);
    return build(problem, pins, n_pins, error) ? g_steal_pointer(&problem) : NULL;
}

MtfFreeProblem *mtf_free_problem_new_sharing(const MtfGraph *graph, const MtfMesh *mesh,
                                             const MtfPricer *pricer, MtfKnownPaths *paths) {
    g_autoptr(MtfFreeProblem) problem = empty_problem(graph, mesh, pricer, paths);
    return build(problem, NULL, 0, NULL) ? g_steal_pointer(&problem) : NULL;
}

void mtf_free_problem_free(MtfFreeProblem *problem) {
    if (problem == NULL)
        return;
    for (guint i = 0; i < problem->node_placements->len; i++)
        g_clear_pointer((GArray **)&problem->node_placements->pdata[i], g_array_unref);
    g_ptr_array_unref(problem->node_placements);
    g_array_unref(problem->node_tensors);
    g_array_unref(problem->node_phases);
    g_ptr_array_unref(problem->node_names);
    mtf_layout_problem_free(problem->problem);
    mtf_operation_profiles_free(problem->profiles);
    mtf_reshard_prices_free(problem->prices);
    mtf_placement_lists_free(problem->lists);
    g_hash_table_unref(problem->edges);
    g_array_unref(problem->edge_kinds);
    g_array_unref(problem->edge_uses);
    mtf_consumers_free(problem->consumers);
    g_free(problem->compared);
    g_free(problem->operations);
    g_free(problem->tensor_node);
    g_free(problem->gathered_node);
    g_free(problem->updated_variable);
    mtf_loop_spans_clear(&problem->loops);
    g_free(problem);
}

MtfFreeMove mtf_free_problem_move(const MtfFreeProblem *problem, int edge, int from, int to) {
    int number = g_array_index(problem->edge_uses, EdgeUse, edge).kind;
    const EdgeKind *kind = &g_array_index(problem->edge_kinds, EdgeKind, number);
    int left = end_placement(&kind->from, from), wanted = end_placement(&kind->to, to);
    return (MtfFreeMove){ number, kind->move.travel.tensor,
                          &g_array_index(kind->from.placements, MtfPlacement, left),
                          &g_array_index(kind->to.placements, MtfPlacement, wanted) };
}

const MtfLayoutProblem *mtf_free_problem_get(const MtfFreeProblem *problem) {
    return problem->problem;
}

const MtfGraph *mtf_free_problem_graph(const MtfFreeProblem *problem) {
    return problem->graph;
}

const MtfMesh *mtf_free_problem_mesh(const MtfFreeProblem *problem) {
    return problem->mesh;
}

const MtfPricer *mtf_free_problem_pricer(const MtfFreeProblem *problem) {
    return problem->pricer;
}

void mtf_free_problem_set_stage(MtfFreeProblem *problem, const MtfStageExecution *stage) {
    problem->stage = *stage;
}

MtfLayout *mtf_free_problem_layout(const MtfFreeProblem *problem, const int *choice) {
    MtfLayout *layout = mtf_layout_new(problem->graph, problem->mesh);
    layout->execution.stage = problem->stage;
    for (int i = 0; i < layout->n_operations; i++) {
        const MtfOperation *op = mtf_graph_operation(problem->graph, i);
        const MtfOperationProfile *profile = problem->operations[i];
        layout->operations[i] = g_array_index(profile->strategies, MtfStrategy, choice[i]);
        for (int k = 0; k < op->n_outputs; k++)
            layout->tensors[op->outputs[k]] = g_array_index(
                profile->outputs[k].placements, MtfPlacement, profile->outputs[k].of[choice[i]]);
    }
    for (int v = layout->n_operations; v < (int)problem->node_tensors->len; v++) {
        const GArray *placements = g_ptr_array_index(problem->node_placements, v);
        const MtfPlacement *placement = &g_array_index(placements, MtfPlacement, choice[v]);
        int tensor = mtf_free_problem_node_tensor(problem, v);
        int phase = g_array_index(problem->node_phases, int, v);
        if (phase >= 0)
            mtf_layout_set_gathered_copy(layout, tensor, (MtfPhase)phase, placement);
        else
            layout->tensors[tensor] = *placement;
    }
    return layout;
}

static int find_strategy(const MtfOperationProfile *profile, const MtfStrategy *strategy) {
    for (guint s = 0; s < profile->strategies->len; s++)
        if (mtf_strategy_equal(&g_array_index(profile->strategies, MtfStrategy, s), strategy))
            return (int)s;
    return -1;
}

bool mtf_free_problem_choice(const MtfFreeProblem *problem, const MtfLayout *layout, int *choice) {
    bool found = true;
    for (int i = 0; i < layout->n_operations; i++) {
        choice[i] = find_strategy(problem->operations[i], &layout->operations[i]);
        found &= choice[i] >= 0;
    }
    for (int v = layout->n_operations; v < (int)problem->node_tensors->len; v++) {
        int tensor = mtf_free_problem_node_tensor(problem, v);
        int phase = g_array_index(problem->node_phases, int, v);
        choice[v] = mtf_placements_find(
            g_ptr_array_index(problem->node_placements, v),
            phase >= 0 ? mtf_layout_phase_placement(layout, tensor, (MtfPhase)phase)
                       : &layout->tensors[tensor]);
        found &= choice[v] >= 0;
    }
    return found;
}

int mtf_free_problem_node_operation(const MtfFreeProblem *problem, int node) {
    return node < (int)problem->graph->operations->len ? node : -1;
}

int mtf_free_problem_node_tensor(const MtfFreeProblem *problem, int node) {
    return g_array_index(problem->node_tensors, int, node);
}

int mtf_free_problem_tensor_node(const MtfFreeProblem *problem, int tensor) {
    return problem->tensor_node[tensor];
}

int mtf_free_problem_find_placement(const MtfFreeProblem *problem, int node,
                                    const MtfPlacement *placement) {
    return mtf_placements_find(g_ptr_array_index(problem->node_placements, node), placement);
}

static bool strategies_equal(const GArray *a, const GArray *b) {
    for (guint s = 0; a != b && s < a->len && a->len == b->len; s++)
        if (!mtf_strategy_equal(&g_array_index(a, MtfStrategy, s),
                                &g_array_index(b, MtfStrategy, s)))
            return false;
    return a->len == b->len;
}

bool mtf_free_problem_nodes_alike(const MtfFreeProblem *problem, int a, int b) {
    int first = mtf_free_problem_node_operation(problem, a);
    int second = mtf_free_problem_node_operation(problem, b);
    if ((first < 0) != (second < 0))
        return false;
    if (first >= 0)
        return strategies_equal(problem->operations[first]->strategies,
                                problem->operations[second]->strategies);
    return g_ptr_array_index(problem->node_placements, a) ==
           g_ptr_array_index(problem->node_placements, b); /* equal lists are one */
}

const char *mtf_free_problem_node_name(const MtfFreeProblem *problem, int node) {
    return g_ptr_array_index(problem->node_names, node);
}

int mtf_free_problem_find_node(const MtfFreeProblem *problem, const char *name) {
    for (guint v = 0; v < problem->node_names->len; v++)
        if (strcmp(g_ptr_array_index(problem->node_names, v), name) == 0)
            return (int)v;
    return -1;
}

char *mtf_free_problem_strategy_format(const MtfFreeProblem *problem, int node, int strategy) {
    const MtfMesh *mesh = problem->mesh;
    int operation = mtf_free_problem_node_operation(problem, node);
    if (operation < 0) {
        const GArray *placements = g_ptr_array_index(problem->node_placements, node);
        return mtf_placement_format(problem->graph, mesh,
                                    &g_array_index(placements, MtfPlacement, strategy));
    }
    const MtfStrategy *s =
        &g_array_index(problem->operations[operation]->strategies, MtfStrategy, strategy);
    GString *text = g_string_new(NULL);
    for (int a = 0; a < mesh->n_axes; a++) {
        g_autofree char *value = mtf_strategy_axis_format(problem->graph, operation, s->axis[a]);
        g_string_append_printf(text, "%s%s=%s", a > 0 ? " " : "", mesh->axes[a].name, value);
    }
    return g_string_free(text, FALSE);
}
