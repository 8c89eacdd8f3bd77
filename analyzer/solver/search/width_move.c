// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/width_move.h"

#include <math.h>
#include <string.h>

#define CLASSES 64 /* of tables, by the logarithm of their size to base 2 */
#define DRAWN 0.1  /* share of the nodes that are kept whatever their tables, at most */
#define PREFERENCE \
    4 /* what is kept is drawn by its neighbours times up to 2 to the power of minus it */
#define KEPT (-1)    /* turn of a node that is kept, */
#define WAITING (-2) /* and of one whose turn has not come */

/* The costs of the choices of some nodes; those of the last one lie side by side. */
typedef struct Table {
    int *scope;
    int rank;
    double *costs;
} Table;

/* An eliminated node, and its best choice for all choices of a scope. */
typedef struct Turn {
    int node;
    Table rest;
    uint16_t *best;
} Turn;

typedef struct Move {
    const MtfCore *core;
    GRand *rand;
    const int *values, *others; /* others NULL: a node may choose any value */
    const double *prefix;       /* [rows + 1] sums of prices before a row */
    int *turn;                  /* [node] KEPT, WAITING, or its place in `turns` */
    GArray **beside;            /* [node] int: neighbours that wait, by edges or earlier turns */
    double *bits;               /* [node] logarithm to base 2 of its table's size */
    double *weight;             /* [node] for the choice of what is kept */
    int *class;                 /* [node] where it is queued */
    GArray *queue[CLASSES];     /* int: nodes; those that are in another class now count no more */
    GArray *turns;              /* Turn */
    GPtrArray **due;            /* [node] Table: of earlier turns, for this node's; NULL: none */
    int *choice;                /* [node] */
} Move;

static int choices(const Move *move, int node) {
    if (move->others != NULL)
        return move->others[node] == move->values[node] ? 1 : 2;
    return move->core->nodes[node].values;
}

static int value_of(const Move *move, int node, int choice) {
    if (move->others != NULL)
        return choice == 0 ? move->values[node] : move->others[node];
    return choice;
}

/* ---- The order, and what is kept ------------------------------------------------------------- */

static void queue_node(Move *move, int node) {
    int class = CLAMP((int)move->bits[node], 0, CLASSES - 1);
    if (class == move->class[node])
        return;
    move->class[node] = class;
    g_array_append_val(move->queue[class], node);
}

static void add_beside(Move *move, int node, int other) {
    g_array_append_val(move->beside[node], other);
    move->bits[node] += log2(choices(move, other));
}

static int find_beside(const Move *move, int node, int other) {
    const GArray *beside = move->beside[node];
    for (guint i = 0; i < beside->len; i++)
        if (g_array_index(beside, int, i) == other)
            return (int)i;
    return -1;
}

/* Takes a node from the neighbours of its neighbours. */
static void leave(Move *move, int node) {
    const GArray *beside = move->beside[node];
    for (guint i = 0; i < beside->len; i++) {
        int other = g_array_index(beside, int, i);
        g_array_remove_index_fast(move->beside[other], (guint)find_beside(move, other, node));
        move->bits[other] -= log2(choices(move, node));
        queue_node(move, other);
    }
}

static void join(Move *move, int a, int b) {
    bool a_has_less = move->beside[a]->len < move->beside[b]->len;
    if (find_beside(move, a_has_less ? a : b, a_has_less ? b : a) >= 0)
        return;
    add_beside(move, a, b);
    add_beside(move, b, a);
}

/* Of a node whose table is too large, and its neighbours, keeps one. */
static void keep_one(Move *move, int node) {
    const GArray *beside = move->beside[node];
    int kept = node;
    double most = beside->len * move->weight[node];
    for (guint i = 0; i < beside->len; i++) {
        int other = g_array_index(beside, int, i);
        double score = move->beside[other]->len * move->weight[other];
        if (score <= most)
            continue;
        most = score;
        kept = other;
    }
    move->turn[kept] = KEPT;
    leave(move, kept);
    if (kept != node)
        queue_node(move, node);
}

static void eliminate(Move *move, int node) {
    const GArray *beside = move->beside[node];
    Table rest = { g_new(int, beside->len + 1), (int)beside->len, NULL };
    if (rest.rank > 0)
        memcpy(rest.scope, beside->data, beside->len * sizeof *rest.scope);
    Turn turn = { node, rest, NULL };
    move->turn[node] = (int)move->turns->len;
    g_array_append_val(move->turns, turn);
    leave(move, node);
    for (int i = 0; i < rest.rank; i++)
        for (int j = i + 1; j < rest.rank; j++)
            join(move, rest.scope[i], rest.scope[j]);
    for (int i = 0; i < rest.rank; i++)
        queue_node(move, rest.scope[i]);
}

/* One of the nodes with the smallest tables, drawn at random; -1 when none waits. */
static int next_node(Move *move) {
    for (int class = 0; class < CLASSES; class ++) {
        GArray *queue = move->queue[class];
        while (queue->len > 0) {
            guint at = (guint)g_rand_int_range(move->rand, 0, (gint32)queue->len);
            int node = g_array_index(queue, int, at);
            g_array_remove_index_fast(queue, at);
            if (move->turn[node] != WAITING || move->class[node] != class)
                continue;
            move->class[node] = -1;
            return node;
        }
    }
    return -1;
}

static void begin_order(Move *move) {
    const MtfCore *core = move->core;
    double drawn = move->others == NULL ? DRAWN * g_rand_double(move->rand) : 0;
    double preference = PREFERENCE * g_rand_double(move->rand);
    for (int v = 0; v < core->node_count; v++) {
        bool waits =
            core->nodes[v].alive && choices(move, v) > 1 && g_rand_double(move->rand) >= drawn;
        move->turn[v] = waits ? WAITING : KEPT;
        move->class[v] = -1;
        move->weight[v] = exp2(-preference * g_rand_double(move->rand));
        move->bits[v] = waits ? log2(choices(move, v)) : 0;
        move->beside[v] = waits ? g_array_new(FALSE, FALSE, sizeof(int)) : NULL;
    }
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        if (move->turn[edge->a] == KEPT || move->turn[edge->b] == KEPT)
            continue;
        add_beside(move, edge->a, edge->b);
        add_beside(move, edge->b, edge->a);
    }
    for (int v = 0; v < core->node_count; v++)
        if (move->turn[v] == WAITING)
            queue_node(move, v);
}

static void order_nodes(Move *move, double most) {
    begin_order(move);
    for (int node = next_node(move); node >= 0; node = next_node(move))
        if (move->bits[node] > log2(most))
            keep_one(move, node);
        else
            eliminate(move, node);
}

/* ---- The tables ------------------------------------------------------------------------------ */

static double as_double(int64_t cost) {
    return cost >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)cost;
}

static gsize entries_of(const Move *move, const Table *table) {
    gsize entries = 1;
    for (int i = 0; i < table->rank; i++)
        entries *= (gsize)choices(move, table->scope[i]);
    return entries;
}

static int find_in(const Table *table, int node) {
    for (int i = 0; i < table->rank; i++)
        if (table->scope[i] == node)
            return i;
    return -1;
}

/* One loop over a factor and the costs: so many entries, so far apart in the factor. */
typedef struct {
    gsize count, step;
} Loop;

/* The loops over a turn's costs, the inner one last, as few as do: two are one where the factor's entries lie
 * as evenly. Returns how many. */
static int join_loops(const Move *move, const Turn *turn, const gsize *steps, Loop *loops) {
    int rank = turn->rest.rank, count = 0;
    for (int i = 0; i <= rank; i++) {
        int node = i < rank ? turn->rest.scope[i] : turn->node;
        Loop loop = { (gsize)choices(move, node), steps[i] };
        if (count > 0 && loops[count - 1].step == loop.step * loop.count)
            loop.count *= loops[--count].count;
        loops[count++] = loop;
    }
    return count;
}

static void add_run(const double *restrict factor, const Loop *loop, double *restrict costs) {
    if (loop->step == 1)
        for (gsize p = 0; p < loop->count; p++)
            costs[p] += factor[p];
    else
        for (gsize p = 0; p < loop->count; p++)
            costs[p] += factor[p * loop->step];
}

/* Adds a factor to the costs [choices of the scope][choices of the node]; its entries lie steps[i] apart
 * along the scope's node i, and steps[rank] along the node itself. */
MTF_FOR_EACH_UNIT
static void add_factor(const Move *move, const Turn *turn, const double *factor, const gsize *steps,
                       double *costs) {
    g_autofree Loop *loops = g_new(Loop, turn->rest.rank + 1);
    int inner = join_loops(move, turn, steps, loops) - 1;
    g_autofree gsize *at = g_new0(gsize, inner + 1);
    for (int i = inner; i >= 0;) {
        add_run(factor, &loops[inner], costs);
        costs += loops[inner].count;
        for (i = inner - 1; i >= 0; i--) {
            factor += loops[i].step;
            if (++at[i] < loops[i].count)
                break;
            factor -= loops[i].step * at[i];
            at[i] = 0;
        }
    }
}

/* Own cost, priced memory, and edges to nodes that are kept. */
static void add_own(const Move *move, const Turn *turn, double *costs) {
    const MtfCoreNode *node = &move->core->nodes[turn->node];
    int count = choices(move, turn->node);
    g_autofree double *own = g_new(double, count);
    g_autofree gsize *steps = g_new0(gsize, turn->rest.rank + 1);
    steps[turn->rest.rank] = 1;
    for (int p = 0; p < count; p++) {
        int value = value_of(move, turn->node, p);
        own[p] = as_double(node->cost[value]);
        for (guint k = 0; k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            own[p] += (move->prefix[piece->last] - move->prefix[piece->first]) *
                      (double)piece->usage[value];
        }
    }
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(move->core, g_array_index(node->edges, int, k));
        int other = mtf_core_other_end(edge, turn->node);
        for (int p = 0; move->turn[other] == KEPT && p < count; p++)
            own[p] += as_double(mtf_core_edge_cost(
                move->core, edge, turn->node, value_of(move, turn->node, p), move->values[other]));
    }
    add_factor(move, turn, own, steps, costs);
}

static void add_edge(const Move *move, const Turn *turn, const MtfCoreEdge *edge, double *costs) {
    int other = mtf_core_other_end(edge, turn->node), at = find_in(&turn->rest, other);
    if (at < 0)
        return;
    int rows = choices(move, other), columns = choices(move, turn->node);
    g_autofree double *factor = g_new(double, (gsize)rows *(gsize)columns);
    g_autofree gsize *steps = g_new0(gsize, turn->rest.rank + 1);
    for (int q = 0; q < rows; q++)
        for (int p = 0; p < columns; p++)
            factor[q * columns + p] = as_double(mtf_core_edge_cost(move->core, edge, turn->node,
                                                                   value_of(move, turn->node, p),
                                                                   value_of(move, other, q)));
    steps[at] = (gsize)columns;
    steps[turn->rest.rank] = 1;
    add_factor(move, turn, factor, steps, costs);
}

/* A table of an earlier turn, over the node and some of its scope. */
static void add_table(const Move *move, const Turn *turn, Table *table, double *costs) {
    g_autofree gsize *steps = g_new0(gsize, turn->rest.rank + 1);
    gsize step = 1;
    for (int i = table->rank - 1; i >= 0; i--) {
        int at = find_in(&turn->rest, table->scope[i]);
        steps[at >= 0 ? at : turn->rest.rank] = step;
        step *= (gsize)choices(move, table->scope[i]);
    }
    add_factor(move, turn, table->costs, steps, costs);
    g_clear_pointer(&table->costs, g_free);
}

/* The best choice for each of the scope's, which is the node's own where none is better. */
static void take_best(const Move *move, Turn *turn, const double *costs) {
    gsize entries = entries_of(move, &turn->rest);
    int count = choices(move, turn->node);
    int own = move->others != NULL ? 0 : move->values[turn->node];
    turn->best = g_new(uint16_t, entries);
    turn->rest.costs = g_new(double, entries);
    for (gsize i = 0; i < entries; i++, costs += count) {
        int best = own;
        double least = costs[own];
        for (int p = 0; p < count; p++)
            if (costs[p] < least) {
                best = p;
                least = costs[p];
            }
        turn->best[i] = (uint16_t)best;
        turn->rest.costs[i] = least;
    }
}

/* Nodes of a scope that were kept later are no part of the table; of what is left, the node at whose turn it is
 * due comes last, and before it those of later and later turns, so that a table and the costs it is added to
 * have their entries in the same order. */
static void settle_scope(const Move *move, Table *rest) {
    int rank = 0;
    for (int i = 0; i < rest->rank; i++) {
        int node = rest->scope[i], at = rank;
        if (move->turn[node] == KEPT)
            continue;
        for (; at > 0 && move->turn[rest->scope[at - 1]] < move->turn[node]; at--)
            rest->scope[at] = rest->scope[at - 1];
        rest->scope[at] = node;
        rank++;
    }
    rest->rank = rank;
}

static void hand_on(Move *move, Table *rest) {
    if (rest->rank == 0)
        return;
    int first = rest->scope[rest->rank - 1];
    if (move->due[first] == NULL)
        move->due[first] = g_ptr_array_new();
    g_ptr_array_add(move->due[first], rest);
}

static void make_table(Move *move, Turn *turn) {
    const MtfCore *core = move->core;
    const GArray *edges = core->nodes[turn->node].edges;
    GPtrArray *due = move->due[turn->node];
    settle_scope(move, &turn->rest);
    g_autofree double *costs =
        g_new0(double, entries_of(move, &turn->rest) * (gsize)choices(move, turn->node));
    add_own(move, turn, costs);
    for (guint k = 0; k < edges->len; k++)
        add_edge(move, turn, mtf_core_edge(core, g_array_index(edges, int, k)), costs);
    for (guint i = 0; due != NULL && i < due->len; i++)
        add_table(move, turn, g_ptr_array_index(due, i), costs);
    take_best(move, turn, costs);
    hand_on(move, &turn->rest);
}

static void choose(Move *move, const Turn *turn) {
    gsize at = 0;
    for (int i = 0; i < turn->rest.rank; i++) {
        int node = turn->rest.scope[i];
        at = at * (gsize)choices(move, node) + (gsize)move->choice[node];
    }
    move->choice[turn->node] = turn->best[at];
}

/* From the last turn back, every node knows the choices of its scope. */
static void take_choices(Move *move, int *values) {
    for (guint i = move->turns->len; i-- > 0;)
        choose(move, &g_array_index(move->turns, Turn, i));
    for (int v = 0; v < move->core->node_count; v++)
        if (move->turn[v] != KEPT)
            move->choice[v] = value_of(move, v, move->choice[v]);
    for (int v = 0; v < move->core->node_count; v++)
        if (move->turn[v] != KEPT)
            values[v] = move->choice[v];
}

/* ---- The move ------------------------------------------------------------------------------ */

static void clear_turn(gpointer data) {
    Turn *turn = data;
    g_free(turn->rest.scope);
    g_free(turn->rest.costs);
    g_free(turn->best);
}

static void move_init(Move *move) {
    gsize count = (gsize)move->core->node_count + 1;
    move->turn = g_new(int, count);
    move->beside = g_new0(GArray *, count);
    move->bits = g_new(double, count);
    move->weight = g_new(double, count);
    move->class = g_new(int, count);
    for (int i = 0; i < CLASSES; i++)
        move->queue[i] = g_array_new(FALSE, FALSE, sizeof(int));
    move->turns = g_array_new(FALSE, FALSE, sizeof(Turn));
    g_array_set_clear_func(move->turns, clear_turn);
    move->due = g_new0(GPtrArray *, count);
    move->choice = g_new0(int, count);
}

static void move_clear(Move *move) {
    for (int v = 0; v < move->core->node_count; v++) {
        g_clear_pointer(&move->beside[v], g_array_unref);
        g_clear_pointer(&move->due[v], g_ptr_array_unref);
    }
    for (int i = 0; i < CLASSES; i++)
        g_array_unref(move->queue[i]);
    g_array_unref(move->turns);
    g_free(move->turn);
    g_free(move->beside);
    g_free(move->bits);
    g_free(move->weight);
    g_free(move->class);
    g_free(move->due);
    g_free(move->choice);
}

void mtf_width_move(const MtfCore *core, GRand *rand, const double *price, double most,
                    const int *others, int *values) {
    g_autofree double *prefix = g_new0(double, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        prefix[r + 1] = prefix[r] + price[r];
    Move move = {
        .core = core, .rand = rand, .values = values, .others = others, .prefix = prefix
    };
    move_init(&move);
    order_nodes(&move, most);
    for (guint i = 0; i < move.turns->len; i++)
        make_table(&move, &g_array_index(move.turns, Turn, i));
    take_choices(&move, values);
    move_clear(&move);
}
