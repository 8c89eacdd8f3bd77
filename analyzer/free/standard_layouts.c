// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/standard_layouts.h"

#include "analyzer/free/alternatives.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "layouts/graph/microbatches.h"

static const char *const names[MTF_STANDARD_KINDS][MTF_STANDARD_SHARDINGS] = {
    { "data parallelism", "data parallelism, ZeRO-1", "data parallelism, ZeRO-3" },
    { "Megatron", "Megatron, ZeRO-1", "Megatron, ZeRO-3" },
    { "Megatron, sequence parallel", "Megatron, sequence parallel, ZeRO-1",
      "Megatron, sequence parallel, ZeRO-3" },
    { "hybrid parallelism", "hybrid parallelism, ZeRO-1", "hybrid parallelism, ZeRO-3" },
};

/* Of a network over space whose batch no axis splits. */
static const char *const spatial_names[MTF_STANDARD_SHARDINGS] = { "spatial parallelism",
                                                                   "spatial parallelism, ZeRO-1",
                                                                   "spatial parallelism, ZeRO-3" };

typedef struct {
    MtfFreeProblem *free_problem;
    const MtfLayoutProblem *problem;
    const MtfGraph *graph;
    const MtfMesh *mesh;
    GPtrArray *edges; /* by node */
    GArray *
        indexes; /* MtfIndex: those of all operations' iterations, one operation after the other; */
    int *first;  /* … where those of each begin, and behind the last where they end */
    int batch;   /* dimensions, or -1 */
    int model[4]; /* heads, d_ff, d_expert, vocab */
    int length;
    int *space; /* by dimension: which of the dimensions of space it is a size of, from 1; 0:
                   none */
    int n_spaces;
} Context;

/* One layout to be made. */
typedef struct {
    unsigned model_axes; /* that split heads, d_ff, d_expert, positions or space; the others
                            split the batch */
    MtfStandardKind style;
    MtfStandardSharding sharding;
} StandardStyle;

/* ---- How operations run ---------------------------------------------------------------------- */

/* An operation while its axes are dealt. */
typedef struct {
    int operation;
    MtfIteration iteration;
    MtfStrategy strategy;
    int64_t parts[MTF_MAX_INDEXES]; /* that each index is cut into so far */
    int64_t own[MTF_MAX_INDEXES];   /* … by axes that are there for it */
    bool reduces;
} Assignment;

/* Whether the axis may split index `i`: it has as many points as there are parts. */
static bool may_split(const Context *context, const Assignment *assignment, int axis, int i) {
    const MtfIndex *index = &assignment->iteration.index[i];
    return (assignment->reduces || !index->reduced) &&
           mtf_index_splits(index, assignment->parts[i] * context->mesh->axes[axis].size);
}

static bool split(const Context *context, Assignment *assignment, int axis, int i) {
    if (!may_split(context, assignment, axis, i))
        return false;
    assignment->parts[i] *= context->mesh->axes[axis].size;
    assignment->strategy.axis[axis] = (int8_t)i;
    return true;
}

static bool split_dimension(const Context *context, Assignment *assignment, int axis, int dim) {
    for (int i = 0; dim >= 0 && i < assignment->iteration.n; i++)
        if (assignment->iteration.index[i].dim == dim && split(context, assignment, axis, i))
            return true;
    return false;
}

/* Splits an index that no axis is there for, so that pieces of pieces are not dealt anew, or else any; each time
 * the first that gives equal parts, or else the first that can be split at all. So pieces over several axes are
 * cut from one index where it is large enough, and travel over all of them at once. */
static bool split_anything(const Context *context, Assignment *assignment, int axis) {
    int64_t size = context->mesh->axes[axis].size;
    for (int trial = 0; trial < 4; trial++) {
        bool whole = trial % 2 == 0, equal = trial < 2;
        for (int i = 0; i < assignment->iteration.n; i++)
            if ((!whole || assignment->own[i] == 1) &&
                (!equal ||
                 assignment->iteration.index[i].size % (assignment->parts[i] * size) == 0) &&
                split(context, assignment, axis, i))
                return true;
    }
    return false;
}

/* Whether the operation adds partial sums: it is linear in all inputs together, or adds one up over
 * micro-batches, and each is left partial on the axis by what makes it. So the shares of a gradient
 * are reduced once a step. */
static bool adds_partials(const Context *context, const MtfLayout *layout, int operation,
                          int axis) {
    const MtfOperation *op = mtf_graph_operation(context->graph, operation);
    if ((mtf_operation_row(op->kind)->linearity != MTF_LINEAR_JOINT &&
         !mtf_operation_row(op->kind)->converts &&
         !mtf_operation_accumulates(context->graph, operation)) ||
        !mtf_operation_passes_partial(context->graph, operation, 0))
        return false;
    for (int k = 0; k < op->n_inputs; k++)
        if (layout->tensors[op->inputs[k]].axis[axis] != MTF_PARTIAL_SUM)
            return false;
    return true;
}

/* Whether the operation brings a variable into the type that products read: in mixed precision the
 * variable is the optimizer's master copy, and its result is the weight. */
static bool casts_weight(const Context *context, int operation) {
    const MtfOperation *op = mtf_graph_operation(context->graph, operation);
    bool forward = op->phase == MTF_PHASE_FORWARD || op->origin == MTF_ORIGIN_CLONE;
    return forward && mtf_operation_row(op->kind)->converts &&
           mtf_graph_tensor(context->graph, op->inputs[0])->source == MTF_SOURCE_VARIABLE;
}

/* Casts run once a micro-batch. With one, half the bytes travel where pieces are cast and then
 * gathered; with several, variables are gathered once a step and replicated. */
static bool casts_in_pieces(const Context *context, MtfStandardSharding sharding, int operation) {
    return casts_weight(context, operation) &&
           (sharding == MTF_STANDARD_ZERO_3 || mtf_graph_batch(context->graph) < 0);
}

/* Whether the operation runs in pieces over all axes: updates and casts of weights; where variables
 * are in pieces, gradients are added up in pieces, too, as FSDP does. */
static bool runs_in_pieces(const Context *context, const StandardStyle *style_choice,
                           int operation) {
    MtfPhase phase = mtf_graph_operation(context->graph, operation)->phase;
    if (style_choice->sharding == MTF_STANDARD_REPLICATED)
        return false;
    return phase == MTF_PHASE_CLIP || phase == MTF_PHASE_UPDATE ||
           casts_in_pieces(context, style_choice->sharding, operation) ||
           (style_choice->sharding == MTF_STANDARD_ZERO_3 &&
            mtf_operation_accumulates(context->graph, operation));
}

/* Splits rows, columns or layers, whatever their size is called: the one whose turn it is, or another. */
static bool split_space(const Context *context, Assignment *assignment, int axis, int turn) {
    for (int other = 0; other < context->n_spaces; other++)
        for (int i = 0; i < assignment->iteration.n; i++)
            if (context->space[assignment->iteration.index[i].dim] ==
                    1 + (turn + other) % context->n_spaces &&
                split(context, assignment, axis, i))
                return true;
    return false;
}

/* Axes that split space take its dimensions in turn. What has no space, or too little, splits the
 * batch there. */
static bool assign_space_axis(const Context *context, const StandardStyle *style_choice,
                              Assignment *assignment, int axis) {
    int turn = 0;
    for (int a = 0; a < axis; a++)
        turn += (style_choice->model_axes >> a & 1) != 0;
    return split_space(context, assignment, axis, turn) ||
           split_dimension(context, assignment, axis, context->batch);
}

static bool assign_model_axis(const Context *context, const StandardStyle *style_choice,
                              Assignment *assignment, int axis) {
    if (style_choice->style == MTF_STANDARD_SPATIAL)
        return assign_space_axis(context, style_choice, assignment, axis);
    for (gsize i = 0; i < G_N_ELEMENTS(context->model); i++)
        if (split_dimension(context, assignment, axis, context->model[i]))
            return true;
    return style_choice->style == MTF_STANDARD_SEQUENCE &&
           split_dimension(context, assignment, axis, context->length);
}

/* What the axis is there for: the model, or the batch. */
static bool assign_own_axis(const Context *context, const StandardStyle *style_choice,
                            Assignment *assignment, int axis) {
    return style_choice->model_axes >> axis & 1
               ? assign_model_axis(context, style_choice, assignment, axis)
               : split_dimension(context, assignment, axis, context->batch);
}

static void assign_other_axis(const Context *context, const StandardStyle *style_choice,
                              const MtfLayout *layout, Assignment *assignment, int axis) {
    if (runs_in_pieces(context, style_choice, assignment->operation) &&
        split_anything(context, assignment, axis))
        return;
    if (adds_partials(context, layout, assignment->operation, axis))
        assignment->strategy.axis[axis] = MTF_PARTIAL_INPUT;
}

/* Says how an operation runs, and notes in `layout` where it leaves its results. */
static void assign_operation(const Context *context, const StandardStyle *style_choice,
                             int operation, MtfLayout *layout) {
    const MtfOperation *op = mtf_graph_operation(context->graph, operation);
    Assignment assignment;
    int first = context->first[operation];
    assignment.operation = operation;
    assignment.strategy = mtf_strategy_duplicated();
    assignment.reduces = mtf_operation_row(op->kind)->reduction != MTF_REDUCE_NONE;
    assignment.iteration.n = context->first[operation + 1] - first;
    for (int i = 0; i < assignment.iteration.n; i++) {
        assignment.iteration.index[i] = g_array_index(context->indexes, MtfIndex, first + i);
        assignment.parts[i] = 1;
    }
    unsigned left = 0;
    for (int a = 0; a < context->mesh->n_axes; a++)
        if (!assign_own_axis(context, style_choice, &assignment, a))
            left |= 1U << a;
    memcpy(assignment.own, assignment.parts, sizeof assignment.own);
    for (int a = 0; a < context->mesh->n_axes; a++)
        if (left >> a & 1)
            assign_other_axis(context, style_choice, layout, &assignment, a);
    layout->operations[operation] = assignment.strategy;
    for (int k = 0; k < op->n_outputs; k++)
        layout->tensors[op->outputs[k]] = mtf_strategy_output(
            context->graph, operation, &assignment.iteration, &assignment.strategy, k);
}

/* ---- Where tensors are ----------------------------------------------------------------------- */

/* The most placements of a tensor that are tried. */
#define MAX_TRIED 12

typedef struct {
    int n, strategies[MAX_TRIED];
} Trials;

static void add_trial(Trials *trials, int strategy) {
    for (int i = 0; i < trials->n; i++)
        if (trials->strategies[i] == strategy)
            return;
    if (trials->n < MAX_TRIED)
        trials->strategies[trials->n++] = strategy;
}

static const MtfLayoutEdge *edge_at(const Context *context, int node, guint i) {
    const GArray *edges = g_ptr_array_index(context->edges, node);
    return mtf_layout_problem_edge(context->problem, g_array_index(edges, int, i));
}

static int other_end(const MtfLayoutEdge *edge, int node) {
    return edge->from == node ? edge->to : edge->from;
}

static bool is_operation(const Context *context, int node) {
    return mtf_free_problem_node_operation(context->free_problem, node) >= 0;
}

/* The strategy of `node` that one edge likes best. */
static int cheapest_beside(const Context *context, const MtfLayoutEdge *edge, const int *choice,
                           int node) {
    int best = 0, n = mtf_layout_problem_node(context->problem, node)->strategies;
    int64_t least = INT64_MAX;
    for (int s = 0; s < n && least > 0; s++) {
        int64_t cost = mtf_edge_cost(context->problem, edge, choice, node, s);
        if (cost < least)
            best = s;
        least = MIN(least, cost);
    }
    return best;
}

/* The strategies of `node` that suit one of the operations at it best. */
static void add_suitable(const Context *context, const int *choice, int node, Trials *trials) {
    const GArray *edges = g_ptr_array_index(context->edges, node);
    for (guint e = 0; e < edges->len; e++) {
        const MtfLayoutEdge *edge = edge_at(context, node, e);
        if (!is_operation(context, other_end(edge, node)))
            continue;
        add_trial(trials, cheapest_beside(context, edge, choice, node));
    }
}

/* What the edges between `node` at `strategy` and operations cost. */
static int64_t operations_cost(const Context *context, const int *choice, int node, int strategy) {
    const GArray *edges = g_ptr_array_index(context->edges, node);
    int64_t cost = 0;
    for (guint e = 0; e < edges->len; e++) {
        const MtfLayoutEdge *edge = edge_at(context, node, e);
        if (is_operation(context, other_end(edge, node)))
            cost += mtf_edge_cost(context->problem, edge, choice, node, strategy);
    }
    return cost;
}

/* Gives gathered copy `node` the best of `trials` while the tensor is kept as `choice` says. Returns what
 * it costs. */
static int64_t choose_gathered_copy(const Context *context, int *choice, int node,
                                    const MtfLayoutEdge *kept, const Trials *trials) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < trials->n; i++) {
        int s = trials->strategies[i];
        int64_t cost = operations_cost(context, choice, node, s) +
                       mtf_edge_cost(context->problem, kept, choice, node, s);
        if (cost < best) {
            best = cost;
            choice[node] = s;
        }
    }
    return best;
}

/* Settles all gathered copies of the tensor of `node` and returns what they cost. */
static int64_t choose_gathered_copies(const Context *context, int *choice, int node,
                                      const Trials *trials) {
    const GArray *edges = g_ptr_array_index(context->edges, node);
    int64_t cost = 0;
    for (guint e = 0; e < edges->len; e++) {
        const MtfLayoutEdge *edge = edge_at(context, node, e);
        int other = other_end(edge, node);
        if (!is_operation(context, other))
            cost += choose_gathered_copy(context, choice, other, edge, trials);
    }
    return cost;
}

static void add_suitable_to_gathered_copies(const Context *context, const int *choice, int node,
                                            Trials *trials) {
    const GArray *edges = g_ptr_array_index(context->edges, node);
    for (guint e = 0; e < edges->len; e++) {
        int other = other_end(edge_at(context, node, e), node);
        if (!is_operation(context, other))
            add_suitable(context, choice, other, trials);
    }
}

/* Where a tensor may be kept: a strategy of its node, or -1. */
typedef struct {
    int only, not ;
} Keeping;

static int smallest_strategy(const MtfLayoutNode *node) {
    int smallest = 0;
    for (int s = 1; s < node->strategies; s++)
        if (node->usages[s] < node->usages[smallest])
            smallest = s;
    return smallest;
}

/* Keeps a tensor where it costs least, of equals (as where nobody reads it) where it takes least memory,
 * and reads it where that costs least. */
static void choose_tensor(const Context *context, int *choice, int node, Keeping keeping) {
    const MtfLayoutNode *n = mtf_layout_problem_node(context->problem, node);
    Trials trials = { 0 };
    if (keeping.only >= 0)
        add_trial(&trials, keeping.only);
    add_suitable(context, choice, node, &trials);
    add_suitable_to_gathered_copies(context, choice, node, &trials);
    if (trials.n == 0)
        add_trial(&trials, smallest_strategy(n));
    int kept = keeping.only >= 0 ? 1 : trials.n, best = trials.strategies[0];
    int64_t best_cost = INT64_MAX;
    for (int i = 0; i < kept; i++) {
        int s = trials.strategies[i];
        if (s == keeping.not &&kept > 1)
            continue;
        choice[node] = s;
        int64_t cost = operations_cost(context, choice, node, s) +
                       choose_gathered_copies(context, choice, node, &trials);
        if (cost < best_cost || (cost == best_cost && n->usages[s] < n->usages[best])) {
            best = s;
            best_cost = cost;
        }
    }
    choice[node] = best;
    choose_gathered_copies(context, choice, node, &trials);
}

static int find_piece(const Context *context, int tensor, const MtfPlacement *placement) {
    int node = mtf_free_problem_tensor_node(context->free_problem, tensor);
    return node < 0 ? -1 : mtf_free_problem_find_placement(context->free_problem, node, placement);
}

/* For each variable that is updated, and for the weight that it is cast to: the strategy of its node
 * that updates want; -1 elsewhere. `cast[t]`: the weight that variable t is
 * cast to in pieces, else -1. */
static int *pieces_of_variables(const Context *context, MtfStandardSharding sharding,
                                const MtfLayout *layout, int *cast) {
    int n = layout->n_tensors;
    int *pieces = g_new(int, n + 1);
    for (int t = 0; t < n; t++)
        pieces[t] = cast[t] = -1;
    for (guint i = 0; i < context->graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(context->graph->updates, MtfUpdate, i);
        pieces[update->variable] =
            find_piece(context, update->variable, &layout->tensors[update->value]);
    }
    for (int o = 0; o < layout->n_operations; o++) {
        const MtfOperation *op = mtf_graph_operation(context->graph, o);
        if (!casts_in_pieces(context, sharding, o))
            continue;
        if (op->origin == MTF_ORIGIN_CLONE) /* which is not kept from pass to pass */
            continue;
        cast[op->inputs[0]] = op->outputs[0];
        pieces[op->outputs[0]] =
            find_piece(context, op->outputs[0], &layout->tensors[op->outputs[0]]);
    }
    return pieces;
}

/* ZeRO-3 keeps variables and weights in pieces, ZeRO-1 master copies and state alone: weights are
 * gathered once a step, after the update. */
static Keeping keeping_of(const Context *context, MtfStandardSharding sharding, int tensor,
                          const int *pieces, const int *cast) {
    const MtfTensor *t = mtf_graph_tensor(context->graph, tensor);
    bool state = t->memory == MTF_MEMORY_OPTIMIZER || cast[tensor] >= 0;
    if (pieces[tensor] < 0 || sharding == MTF_STANDARD_REPLICATED)
        return (Keeping){ -1, -1 };
    if (sharding == MTF_STANDARD_ZERO_3 || state)
        return (Keeping){ pieces[tensor], -1 };
    return (Keeping){ -1, pieces[tensor] };
}

static void choose_tensors(const Context *context, const StandardStyle *style_choice,
                           const MtfLayout *layout, int *choice) {
    g_autofree int *cast = g_new(int, layout->n_tensors + 1);
    g_autofree int *pieces = pieces_of_variables(context, style_choice->sharding, layout, cast);
    for (int t = 0; t < layout->n_tensors; t++) {
        int node = mtf_free_problem_tensor_node(context->free_problem, t);
        if (node >= 0)
            choose_tensor(context, choice, node,
                          keeping_of(context, style_choice->sharding, t, pieces, cast));
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

void mtf_standard_layout_free(MtfStandardLayout *standard) {
    if (standard == NULL)
        return;
    g_free(standard->choice);
    g_free(standard);
}

static void standard_free(gpointer data) {
    mtf_standard_layout_free(data);
}

int mtf_standard_style(MtfStandardKind kind, MtfStandardSharding sharding, unsigned model_axes) {
    return (int)model_axes * MTF_STANDARD_STYLES + (int)kind * MTF_STANDARD_SHARDINGS +
           (int)sharding;
}

/* The layout of a recipe; NULL when the problem lacks one of its strategies. */
static MtfStandardLayout *make(const Context *context, const StandardStyle *style_choice) {
    g_autoptr(MtfLayout) layout = mtf_layout_new(context->graph, context->mesh);
    for (int i = 0; i < layout->n_operations; i++)
        assign_operation(context, style_choice, i, layout);
    MtfStandardLayout *standard = g_new0(MtfStandardLayout, 1);
    bool no_batch = style_choice->style == MTF_STANDARD_SPATIAL &&
                    style_choice->model_axes == (1U << context->mesh->n_axes) - 1;
    standard->name = no_batch ? spatial_names[style_choice->sharding]
                              : names[style_choice->style][style_choice->sharding];
    standard->style =
        mtf_standard_style(style_choice->style, style_choice->sharding, style_choice->model_axes);
    standard->megatron = style_choice->style != MTF_STANDARD_SPATIAL &&
                         style_choice->sharding != MTF_STANDARD_ZERO_3;
    standard->choice = g_new0(int, mtf_layout_problem_node_count(context->problem));
    mtf_free_problem_choice(context->free_problem, layout, standard->choice);
    for (int i = 0; i < layout->n_operations; i++) {
        if (standard->choice[i] < 0) {
            standard_free(standard);
            return NULL;
        }
    }
    choose_tensors(context, style_choice, layout, standard->choice);
    standard->value = mtf_layout_problem_evaluate(context->problem, standard->choice);
    return standard;
}

static bool is_possible(const Context *context, const StandardStyle *style_choice) {
    unsigned all = (1U << context->mesh->n_axes) - 1;
    bool splits_batch = style_choice->model_axes != all;
    if (splits_batch && context->batch < 0)
        return false;
    if (style_choice->style == MTF_STANDARD_DATA)
        return style_choice->model_axes == 0;
    if (style_choice->style == MTF_STANDARD_SPATIAL)
        return style_choice->model_axes != 0 && context->n_spaces > 0;
    return style_choice->model_axes != 0 && (context->model[0] >= 0 || context->model[1] >= 0) &&
           (style_choice->style == MTF_STANDARD_TENSOR || context->length >= 0);
}

static gint compare(gconstpointer a, gconstpointer b) {
    const MtfStandardLayout *x = *(MtfStandardLayout *const *)a,
                            *y = *(MtfStandardLayout *const *)b;
    return (x->value.cost > y->value.cost) - (x->value.cost < y->value.cost);
}

/* All recipes, and what they make. */
typedef struct {
    const Context *context;
    GArray *style_choices;    /* StandardStyle */
    MtfStandardLayout **made; /* one a recipe, or NULL */
} StyleChoices;

static void make_one(int i, void *data) {
    const StyleChoices *choices = data;
    choices->made[i] =
        make(choices->context, &g_array_index(choices->style_choices, StandardStyle, i));
}

static void add_all(const Context *context, GPtrArray *standards) {
    g_autoptr(GArray) style_choices = g_array_new(FALSE, FALSE, sizeof(StandardStyle));
    for (unsigned axes = 0; axes < 1U << context->mesh->n_axes; axes++) {
        for (int i = 0; i < MTF_STANDARD_KINDS * MTF_STANDARD_SHARDINGS; i++) {
            StandardStyle style_choice = { axes, (MtfStandardKind)(i / MTF_STANDARD_SHARDINGS),
                                           (MtfStandardSharding)(i % MTF_STANDARD_SHARDINGS) };
            if (is_possible(context, &style_choice))
                g_array_append_val(style_choices, style_choice);
        }
    }
    g_autofree MtfStandardLayout **made = g_new0(MtfStandardLayout *, style_choices->len + 1);
    StyleChoices choices = { context, style_choices, made };
    mtf_in_parallel((int)style_choices->len, make_one, &choices);
    for (guint i = 0; i < style_choices->len; i++)
        if (made[i] != NULL)
            g_ptr_array_add(standards, made[i]);
}

/* Which dimensions windows go over: rows are what the first window of a convolution reads and makes. */
static void find_space(Context *context) {
    const MtfGraph *graph = context->graph;
    context->space = g_new0(int, graph->dimensions->len + 1);
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        const MtfAttributes *a = &op->attributes;
        if (mtf_operation_row(op->kind)->samples)
            continue;
        for (int w = 0; w < a->n_windows; w++)
            context->space[a->windows[w].from] = context->space[a->windows[w].to] = w + 1;
        context->n_spaces = MAX(context->n_spaces, a->n_windows);
    }
}

/* All recipes ask for them. */
static void find_indexes(Context *context) {
    int n = (int)context->graph->operations->len;
    context->indexes = g_array_new(FALSE, FALSE, sizeof(MtfIndex));
    context->first = g_new0(int, n + 1);
    for (int o = 0; o < n; o++) {
        MtfIteration iteration;
        mtf_operation_iteration(context->graph, o, &iteration);
        g_array_append_vals(context->indexes, iteration.index, (guint)iteration.n);
        context->first[o + 1] = (int)context->indexes->len;
    }
}

static void context_init(Context *context, MtfFreeProblem *problem) {
    const MtfGraph *graph = mtf_free_problem_graph(problem);
    *context = (Context){
        .free_problem = problem,
        .problem = mtf_free_problem_get(problem),
        .graph = graph,
        .mesh = mtf_free_problem_mesh(problem),
        .batch = mtf_graph_find_batch(graph),
        .model = { mtf_graph_find_dimension(graph, "heads"),
                   mtf_graph_find_dimension(graph, "d_ff"),
                   mtf_graph_find_dimension(graph, "d_expert"),
                   mtf_graph_find_dimension(graph, "vocab") },
        .length = mtf_graph_find_dimension(graph, "length"),
    };
    context->edges = mtf_edges_by_node(context->problem);
    find_space(context);
    find_indexes(context);
}

static void context_clear(Context *context) {
    g_ptr_array_unref(context->edges);
    g_array_unref(context->indexes);
    g_free(context->first);
    g_free(context->space);
}

MtfStandardLayout *mtf_standard_layout(MtfFreeProblem *problem, int style) {
    int rest = style % MTF_STANDARD_STYLES;
    StandardStyle choice = { (unsigned)(style / MTF_STANDARD_STYLES),
                             (MtfStandardKind)(rest / MTF_STANDARD_SHARDINGS),
                             (MtfStandardSharding)(rest % MTF_STANDARD_SHARDINGS) };
    Context context;
    context_init(&context, problem);
    MtfStandardLayout *standard = is_possible(&context, &choice) ? make(&context, &choice) : NULL;
    context_clear(&context);
    return standard;
}

GPtrArray *mtf_standard_layouts(MtfFreeProblem *problem) {
    Context context;
    context_init(&context, problem);
    GPtrArray *standards = g_ptr_array_new_with_free_func(standard_free);
    add_all(&context, standards);
    g_ptr_array_sort(standards, compare); /* a stable merge sort */
    context_clear(&context);
    return standards;
}
