// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/local_search.h"

#include "analyzer/solver/reduce/core_values.h"

#include <math.h>
#include <string.h>

#define WINDOWS 16         /* stretches of rows that each get a new watched row at a time */
#define MAX_REPAIRS 100    /* times that newly overfull rows are watched and repaired */
#define LEAST_WORK 4000000 /* memory shares that one improvement may look at, */
#define VALUE_WORK 64      /* or this for each value, where that is more */
#define TABU_MOVES 12      /* moves that a node waits after it moved in a repair */
#define MAX_PUSHES 24      /* pushed nodes in one polish */
#define MAX_SWEEPS 6       /* over all nodes in one descent */

/* A node's memory in one watched row. */
typedef struct Share {
    int watch;            /* index of the watched row */
    const int64_t *usage; /* [values] */
} Share;

typedef struct Watch {
    int row;
    int64_t use;
    GArray *nodes; /* int: those with a share in it */
} Watch;

/* One move, for taking it back. */
typedef struct Move {
    int node, from;
} Move;

struct MtfLocalSearch {
    const MtfCore *core;
    GRand *rand;
    int *living; /* the living nodes */
    int living_count;
    int64_t impossible; /* what an impossible term weighs here: much, but sums do not overflow */
    int *values;
    int64_t **cost;    /* [node][value]: own cost and edges beside the neighbours' values */
    GArray **shares;   /* [node]: Share */
    GArray *watches;   /* Watch */
    bool *watched;     /* [rows] */
    int64_t *use;      /* [rows] scratch */
    int64_t *beside;   /* [values of any node] scratch */
    int *moved;        /* [node] the move after which it last moved in this repair */
    GArray *log;       /* Move, when moves may be taken back */
    int64_t work;      /* done in this improvement, */
    int64_t most_work; /* which ends it */
    GHashTable *least; /* MtfMatrixKey -> the least weight in each row of the matrix */
    const int64_t **least_rows; /* [edge] of its matrix; NULL: not looked for yet */
};

static Watch *watch_at(const MtfLocalSearch *search, int index) {
    return &g_array_index(search->watches, Watch, index);
}

static const Share *share_at(const MtfLocalSearch *search, int node, guint k) {
    return &g_array_index(search->shares[node], Share, k);
}

static int64_t capacity_of(const MtfLocalSearch *search, int watch) {
    return search->core->capacity[watch_at(search, watch)->row];
}

static int64_t weight(const MtfLocalSearch *search, int64_t cost) {
    return cost >= MTF_CORE_IMPOSSIBLE ? search->impossible : cost;
}

MtfLocalSearch *mtf_local_search_new(const MtfCore *core, guint64 seed) {
    MtfLocalSearch *search = g_new0(MtfLocalSearch, 1);
    search->core = core;
    search->rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32)));
    gsize count = (gsize)core->node_count + 1;
    search->living = g_new(int, count);
    search->values = g_new0(int, count);
    search->cost = g_new0(int64_t *, count);
    search->shares = g_new0(GArray *, count);
    search->moved = g_new0(int, count);
    search->watches = g_array_new(FALSE, FALSE, sizeof(Watch));
    search->watched = g_new0(bool, core->rows + 1);
    search->use = g_new0(int64_t, core->rows + 1);
    search->log = g_array_new(FALSE, FALSE, sizeof(Move));
    guint degree = 1;
    int values = 0;
    for (int v = 0; v < core->node_count; v++) {
        if (!core->nodes[v].alive)
            continue;
        search->living[search->living_count++] = v;
        search->cost[v] = g_new0(int64_t, core->nodes[v].values);
        search->shares[v] = g_array_new(FALSE, FALSE, sizeof(Share));
        degree = MAX(degree, core->nodes[v].edges->len);
        values = MAX(values, core->nodes[v].values);
        search->most_work += VALUE_WORK * (int64_t)core->nodes[v].values;
    }
    search->most_work = MAX(search->most_work, LEAST_WORK);
    search->beside = g_new(int64_t, (gsize)values + 1);
    search->least =
        g_hash_table_new_full(mtf_matrix_key_hash, mtf_matrix_key_equal, g_free, g_free);
    search->least_rows = g_new0(const int64_t *, core->edges->len + 1);
    search->impossible = (INT64_C(1) << 60) / (degree + 2);
    return search;
}

void mtf_local_search_free(MtfLocalSearch *search) {
    if (search == NULL)
        return;
    for (int i = 0; i < search->living_count; i++) {
        g_free(search->cost[search->living[i]]);
        g_array_unref(search->shares[search->living[i]]);
    }
    for (guint w = 0; w < search->watches->len; w++)
        g_array_unref(watch_at(search, (int)w)->nodes);
    g_array_unref(search->watches);
    g_array_unref(search->log);
    g_rand_free(search->rand);
    g_free(search->living);
    g_free(search->values);
    g_free(search->cost);
    g_free(search->shares);
    g_free(search->moved);
    g_free(search->watched);
    g_free(search->use);
    g_free(search->beside);
    g_hash_table_unref(search->least);
    g_free(search->least_rows);
    g_free(search);
}

/* ---- the state: values, costs beside them, memory of the watched rows ---- */

/* Adds `sign` times the edge's costs beside value q of `from` to the costs of its other end. */
static void add_edge_costs(MtfLocalSearch *search, const MtfCoreEdge *edge, int from, int q,
                           int sign) {
    const MtfCore *core = search->core;
    int to = mtf_core_other_end(edge, from), count = core->nodes[to].values;
    gsize width = (gsize)core->nodes[edge->b].values;
    gsize stride = edge->a == to ? width : 1;
    const int64_t *matrix = edge->cost + (edge->a == to ? (gsize)q : (gsize)q * width);
    int64_t *cost = search->cost[to];
    for (int p = 0; p < count; p++)
        cost[p] += sign * weight(search, matrix[(gsize)p * stride]);
}

static const MtfCoreEdge *edge_of(const MtfLocalSearch *search, int node, guint k) {
    return mtf_core_edge(search->core, g_array_index(search->core->nodes[node].edges, int, k));
}

static void move_to(MtfLocalSearch *search, int node, int value) {
    int from = search->values[node];
    if (from == value)
        return;
    for (guint k = 0; k < search->core->nodes[node].edges->len; k++) {
        const MtfCoreEdge *edge = edge_of(search, node, k);
        add_edge_costs(search, edge, node, from, -1);
        add_edge_costs(search, edge, node, value, 1);
    }
    for (guint k = 0; k < search->shares[node]->len; k++) {
        const Share *share = share_at(search, node, k);
        watch_at(search, share->watch)->use += share->usage[value] - share->usage[from];
    }
    search->values[node] = value;
    Move move = { node, from };
    g_array_append_val(search->log, move);
}

/* Takes back the moves after the log was `length` long. */
static void take_back(MtfLocalSearch *search, guint length) {
    while (search->log->len > length) {
        Move move = g_array_index(search->log, Move, search->log->len - 1);
        move_to(search, move.node, move.from);
        g_array_set_size(search->log, search->log->len - 2);
    }
}

static void watch_row(MtfLocalSearch *search, int row) {
    const MtfCore *core = search->core;
    Watch watch = { row, 0, g_array_new(FALSE, FALSE, sizeof(int)) };
    int index = (int)search->watches->len;
    search->watched[row] = true;
    for (int i = 0; i < search->living_count; i++) {
        int v = search->living[i];
        guint before = search->shares[v]->len;
        for (guint k = 0; k < core->nodes[v].pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(core->nodes[v].pieces, MtfCorePiece, k);
            if (row < piece->first || row >= piece->last)
                continue;
            Share share = { index, piece->usage };
            g_array_append_val(search->shares[v], share);
            watch.use += piece->usage[search->values[v]];
        }
        if (search->shares[v]->len > before)
            g_array_append_val(watch.nodes, v);
    }
    g_array_append_val(search->watches, watch);
}

/* What each value of each node costs beside the others' values. */
static void load_costs(MtfLocalSearch *search, const int *values) {
    const MtfCore *core = search->core;
    for (int i = 0; i < search->living_count; i++) {
        int v = search->living[i];
        for (int p = 0; p < core->nodes[v].values; p++)
            search->cost[v][p] = weight(search, core->nodes[v].cost[p]);
    }
    for (int i = 0; i < search->living_count; i++) {
        int v = search->living[i];
        for (guint k = 0; k < core->nodes[v].edges->len; k++)
            add_edge_costs(search, edge_of(search, v, k), v, values[v], 1);
    }
}

static void load(MtfLocalSearch *search, const int *values) {
    const MtfCore *core = search->core;
    memcpy(search->values, values, (gsize)core->node_count * sizeof *values);
    load_costs(search, values);
    mtf_core_use(core, values, search->use);
    for (guint w = 0; w < search->watches->len; w++) {
        Watch *watch = watch_at(search, (int)w);
        watch->use = search->use[watch->row];
    }
    g_array_set_size(search->log, 0);
}

/* Of rows `first` to before `end` the one that exceeds its capacity most and is not watched, or -1. */
static int most_overfull(const MtfLocalSearch *search, int first, int end) {
    int worst = -1;
    int64_t most = 0;
    for (int r = first; r < end; r++) {
        int64_t excess = search->use[r] - search->core->capacity[r];
        if (search->watched[r] || excess <= most)
            continue;
        most = excess;
        worst = r;
    }
    return worst;
}

/* Watches, in each of WINDOWS stretches of rows, the fullest overfull row that is not watched yet;
 * false when there is none. */
static bool watch_overfull(MtfLocalSearch *search) {
    const MtfCore *core = search->core;
    mtf_core_use(core, search->values, search->use);
    bool found = false;
    int width = core->rows / WINDOWS + 1;
    for (int first = 0; first < core->rows; first += width) {
        int worst = most_overfull(search, first, MIN(first + width, core->rows));
        if (worst >= 0)
            watch_row(search, worst);
        found |= worst >= 0;
    }
    return found;
}

/* ---- repair ---- */

static double excess_in(const MtfLocalSearch *search, int watch, int64_t use) {
    int64_t capacity = capacity_of(search, watch);
    return use <= capacity ? 0 : (double)(use - capacity) / fmax(1, (double)capacity);
}

/* How much the move takes from what is too much, over all rows it touches. */
static double relief_of(const MtfLocalSearch *search, int node, int value) {
    double relief = 0;
    int from = search->values[node];
    for (guint k = 0; k < search->shares[node]->len; k++) {
        const Share *share = share_at(search, node, k);
        int64_t use = watch_at(search, share->watch)->use;
        int64_t after = use + share->usage[value] - share->usage[from];
        relief += excess_in(search, share->watch, use) - excess_in(search, share->watch, after);
    }
    return relief;
}

/* The overfull watched row with the largest excess, or -1. */
static int worst_watch(const MtfLocalSearch *search) {
    int worst = -1;
    double most = 0;
    for (guint w = 0; w < search->watches->len; w++) {
        double excess = excess_in(search, (int)w, watch_at(search, (int)w)->use);
        if (excess <= most)
            continue;
        most = excess;
        worst = (int)w;
    }
    return worst;
}

typedef struct Candidate {
    int node, value;
    double score; /* cost for one unit of relief; less is better */
} Candidate;

static void consider_node(MtfLocalSearch *search, int node, Candidate *best) {
    search->work += search->core->nodes[node].values * (int64_t)search->shares[node]->len;
    const int64_t *cost = search->cost[node];
    int from = search->values[node];
    for (int p = 0; p < search->core->nodes[node].values; p++) {
        if (p == from)
            continue;
        double relief = relief_of(search, node, p);
        if (relief <= 0)
            continue;
        double more = (double)(cost[p] - cost[from]);
        double score = more > 0 ? more / relief : more * relief;
        if (score >= best->score)
            continue;
        *best = (Candidate){ node, p, score };
    }
}

/* The move of one of `nodes` that relieves cheapest, of those that were not moved lately. */
static Candidate best_relief(MtfLocalSearch *search, const GArray *nodes, int now) {
    Candidate best = { -1, 0, INFINITY };
    for (guint i = 0; i < nodes->len; i++) {
        int v = g_array_index(nodes, int, i);
        if (search->moved[v] == 0 || search->moved[v] + TABU_MOVES < now)
            consider_node(search, v, &best);
    }
    return best;
}

/* Moves until no watched row is overfull; false when it gets stuck or exceeds `max_moves`. Nodes
 * with moved[v] > `now` wait. */
static bool repair(MtfLocalSearch *search, int max_moves) {
    for (int now = 1; now <= max_moves; now++) {
        int worst = worst_watch(search);
        if (worst < 0)
            return true;
        if (search->work > search->most_work)
            return false;
        Candidate best = best_relief(search, watch_at(search, worst)->nodes, now);
        if (best.node < 0)
            return false;
        search->moved[best.node] = now;
        move_to(search, best.node, best.value);
    }
    return worst_watch(search) < 0;
}

static void forget_moves(MtfLocalSearch *search) {
    memset(search->moved, 0, (gsize)search->core->node_count * sizeof *search->moved);
}

/* ---- polish ---- */

/* Whether the move leaves no watched row overfull that it makes fuller. */
static bool fits(const MtfLocalSearch *search, int node, int value) {
    int from = search->values[node];
    for (guint k = 0; k < search->shares[node]->len; k++) {
        const Share *share = share_at(search, node, k);
        int64_t more = share->usage[value] - share->usage[from];
        if (more > 0 &&
            watch_at(search, share->watch)->use + more > capacity_of(search, share->watch))
            return false;
    }
    return true;
}

static bool descend_node(MtfLocalSearch *search, int node) {
    const int64_t *cost = search->cost[node];
    int best = search->values[node];
    for (int p = 0; p < search->core->nodes[node].values; p++)
        if (cost[p] < cost[best] && fits(search, node, p))
            best = p;
    bool moved = best != search->values[node];
    move_to(search, node, best);
    return moved;
}

static void descend(MtfLocalSearch *search) {
    bool moved = true;
    for (int sweep = 0; moved && sweep < MAX_SWEEPS; sweep++) {
        moved = false;
        for (int i = 0; i < search->living_count; i++)
            moved |= descend_node(search, search->living[i]);
    }
}

static int64_t least_of(const int64_t *numbers, int count) {
    int64_t least = numbers[0];
    for (int i = 1; i < count; i++)
        least = MIN(least, numbers[i]);
    return least;
}

/* The least weight in each row of an edge's matrix, found once for equal matrices. */
static const int64_t *least_rows_of(MtfLocalSearch *search, const MtfCoreEdge *edge) {
    int rows = search->core->nodes[edge->a].values, columns = search->core->nodes[edge->b].values;
    MtfMatrixKey key = { edge->cost, rows };
    int64_t *least = g_hash_table_lookup(search->least, &key);
    if (least != NULL)
        return least;
    least = g_new(int64_t, rows);
    for (int p = 0; p < rows; p++) {
        const int64_t *row = edge->cost + (gsize)p * (gsize)columns;
        least[p] = weight(search, row[0]);
        for (int q = 1; q < columns; q++)
            least[p] = MIN(least[p], weight(search, row[q]));
    }
    g_hash_table_insert(search->least, g_memdup2(&key, sizeof key), least);
    return least;
}

/* Moves both ends when that is cheaper and fits. What a pair (p, q) costs is the cost of each end
 * beside the other as it is, corrected by the edge's own entries; most rows cannot come to less
 * than the present pair whatever q is, and are not looked through. */
static void descend_pair(MtfLocalSearch *search, const MtfCoreEdge *edge, const int64_t *lowest) {
    int rows = search->core->nodes[edge->a].values, columns = search->core->nodes[edge->b].values;
    int p0 = search->values[edge->a], q0 = search->values[edge->b], best_p = p0, best_q = q0;
    const int64_t *row = edge->cost + (gsize)p0 * (gsize)columns;
    int64_t *beside = search->beside; /* the part of the cost that depends on q alone */
    for (int q = 0; q < columns; q++)
        beside[q] = search->cost[edge->b][q] - weight(search, row[q]);
    int64_t least = search->cost[edge->a][p0] + beside[q0];
    int64_t least_beside = least_of(beside, columns);
    row = edge->cost;
    for (int p = 0; p < rows; p++, row += columns) {
        int64_t base = search->cost[edge->a][p] - weight(search, row[q0]);
        if (base + least_beside + lowest[p] >= least)
            continue;
        for (int q = 0; q < columns; q++) {
            int64_t cost = base + beside[q] + weight(search, row[q]);
            if (cost >= least)
                continue;
            least = cost;
            best_p = p;
            best_q = q;
        }
    }
    if (best_p == p0 && best_q == q0)
        return;
    guint length = search->log->len;
    move_to(search, edge->a, best_p);
    bool half = fits(search, edge->b, best_q);
    move_to(search, edge->b, best_q);
    if (!half || worst_watch(search) >= 0)
        take_back(search, length);
}

static void descend_pairs(MtfLocalSearch *search) {
    for (int e = -1; mtf_core_next_edge(search->core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(search->core, e);
        if (search->least_rows[e] == NULL)
            search->least_rows[e] = least_rows_of(search, edge);
        descend_pair(search, edge, search->least_rows[e]);
    }
}

/* More than any legal choice costs: many impossible entries together would overflow. */
#define MOST_COST (INT64_MAX / 4)

/* The cost of the moves since the log was `length` long, by taking them back and doing them again
 * is costly; instead the cost of the core's values is recomputed. */
static int64_t total_cost(const MtfLocalSearch *search) {
    const MtfCore *core = search->core;
    int64_t sum = 0;
    for (int i = 0; i < search->living_count; i++) {
        int v = search->living[i];
        sum = MIN(sum + weight(search, core->nodes[v].cost[search->values[v]]), MOST_COST);
    }
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        int64_t cost = mtf_core_edge_cost(core, edge, edge->a, search->values[edge->a],
                                          search->values[edge->b]);
        sum = MIN(sum + weight(search, cost), MOST_COST);
    }
    return sum;
}

static int cheapest_value(const MtfLocalSearch *search, int node) {
    const int64_t *cost = search->cost[node];
    int best = search->values[node];
    for (int p = 0; p < search->core->nodes[node].values; p++)
        if (cost[p] < cost[best])
            best = p;
    return best;
}

/* Pushes one random node to a cheaper value that does not fit, repairs and descends; keeps the
 * result when the whole got cheaper. */
static void push_node(MtfLocalSearch *search, int node, int64_t *total) {
    int best = cheapest_value(search, node);
    if (best == search->values[node])
        return;
    guint length = search->log->len;
    forget_moves(search);
    move_to(search, node, best);
    search->moved[node] = G_MAXINT - TABU_MOVES - 1;
    bool repaired = repair(search, 60);
    if (repaired)
        descend(search);
    int64_t after = repaired ? total_cost(search) : *total;
    if (after < *total)
        *total = after;
    else
        take_back(search, length);
}

static void push_nodes(MtfLocalSearch *search) {
    int64_t total = total_cost(search);
    for (int i = 0; i < MAX_PUSHES && search->watches->len > 0; i++) {
        if (search->work > search->most_work)
            return;
        const GArray *nodes =
            watch_at(search, g_rand_int_range(search->rand, 0, (gint32)search->watches->len))
                ->nodes;
        if (nodes->len == 0)
            continue;
        guint pick = (guint)g_rand_int_range(search->rand, 0, (gint32)nodes->len);
        push_node(search, g_array_index(nodes, int, pick), &total);
    }
}

/* Repairs until no row is overfull, watched or not. */
static bool repair_all(MtfLocalSearch *search) {
    for (int i = 0; i < MAX_REPAIRS; i++) {
        forget_moves(search);
        if (!repair(search, 2 * search->living_count + 100))
            return false;
        if (!watch_overfull(search))
            return true;
    }
    return false;
}

bool mtf_local_search_improve(MtfLocalSearch *search, int *values) {
    load(search, values);
    search->work = 0;
    bool fitting = repair_all(search);
    if (fitting) {
        descend(search);
        descend_pairs(search);
        push_nodes(search);
        search->work = 0;
        fitting = repair_all(search);
    }
    memcpy(values, search->values, (gsize)search->core->node_count * sizeof *values);
    return fitting && mtf_core_allows(search->core, values);
}
