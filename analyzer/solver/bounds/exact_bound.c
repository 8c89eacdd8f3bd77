// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/exact_bound.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/bounds/message_state.h"
#include "analyzer/solver/reduce/core_certificate.h"

#include <math.h>
#include <string.h>

#define MOST_SHIFT 20
#define LARGEST (INT64_C(1) << 58) /* of scaled costs and messages; */
#define ROOM 16                    /* times the range of costs that messages may use */
#define NEVER MTF_REGRET_NEVER
#define BARRED (INT64_C(1) << 61) /* an impossible entry, or minus that: a class without values */
#define LARGEST_PREFIX 0x1p60     /* of scaled prices added up over rows */

struct MtfExactBound {
    const MtfMessages *messages;
    int shift, price_shift;
    bool is_usable;      /* costs are within reach */
    int *state_at;       /* [nodes] where a node's values begin */
    int *end_at;         /* [nodes] the number of its first end */
    gsize *message_at;   /* [ends] where the values of an end begin */
    int *end_of;         /* [2 edges] the ends of an edge, the earlier node's first */
    int64_t *theta;      /* by node, value: less its minimum; NEVER where shut */
    int64_t *regret;     /* likewise */
    int64_t *message;    /* by end, value: to this end's node */
    int64_t *least;      /* by end, value: least held beside the value, less the edge's least */
    int64_t *edge_least; /* [edges] */
    int64_t *price, *prefix;
    int64_t *row_best, *column_best, *row_least, *column_least; /* scratch */
    MtfInt128 bound;
};

/* ---- room ---- */

static int64_t largest_of(const int64_t *costs, gsize count) {
    int64_t largest = 0;
    for (gsize i = 0; i < count; i++)
        if (costs[i] < MTF_CORE_IMPOSSIBLE)
            largest = MAX(largest, ABS(costs[i]));
    return largest;
}

/* Each distinct matrix is looked through once. */
static int64_t largest_entry(const MtfMessages *messages) {
    GHashTableIter iter;
    gpointer value;
    int64_t largest = 0;
    g_hash_table_iter_init(&iter, messages->matrices);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const MtfDistinctMatrix *matrix = value;
        gsize count = (gsize)matrix->rows * (gsize)matrix->columns;
        largest = MAX(largest, matrix->is_small ? INT32_MAX : largest_of(matrix->whole, count));
    }
    return largest;
}

static int64_t largest_cost(const MtfMessages *messages) {
    int64_t largest = largest_entry(messages);
    for (int i = 0; i < messages->count; i++) {
        const MtfCoreNode *node = &messages->core->nodes[messages->node_states[i].node];
        largest = MAX(largest, largest_of(node->cost, (gsize)node->values));
    }
    return largest;
}

static void choose_shift(MtfExactBound *exact) {
    int64_t largest = largest_cost(exact->messages);
    exact->is_usable = largest < LARGEST;
    while (exact->shift < MOST_SHIFT && largest < (LARGEST / ROOM) >> (exact->shift + 1))
        exact->shift++;
}

/* Numbers the ends; returns how many values they have together. */
static gsize number_ends(MtfExactBound *exact) {
    const MtfMessages *messages = exact->messages;
    int ends = 0;
    gsize values = 0;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *at = &messages->node_states[i];
        exact->end_at[i] = ends;
        for (int k = 0; k < at->behind + at->ahead; k++) {
            exact->message_at[ends] = values;
            exact->end_of[2 * at->half_edges[k].edge + (k < at->behind)] = ends++;
            values += (gsize)at->values;
        }
    }
    return values;
}

static int number_values(MtfExactBound *exact, int *most) {
    int values = 0;
    *most = 1;
    for (int i = 0; i < exact->messages->count; i++) {
        exact->state_at[i] = values;
        values += exact->messages->node_states[i].values;
        *most = MAX(*most, exact->messages->node_states[i].values);
    }
    return values;
}

MtfExactBound *mtf_exact_bound_new(const MtfMessages *messages) {
    g_assert(messages->quotient == NULL);
    MtfExactBound *exact = g_new0(MtfExactBound, 1);
    exact->messages = messages;
    gsize nodes = (gsize)messages->count + 1, edges = messages->core->edges->len + 1;
    exact->state_at = g_new0(int, nodes);
    exact->end_at = g_new0(int, nodes);
    exact->message_at = g_new0(gsize, 2 * (gsize)messages->edge_count + 1);
    exact->end_of = g_new0(int, 2 * edges);
    exact->edge_least = g_new0(int64_t, edges);
    int most;
    gsize values = (gsize)number_values(exact, &most) + 1, entries = number_ends(exact) + 1;
    exact->theta = g_new0(int64_t, values);
    exact->regret = g_new0(int64_t, values);
    exact->message = g_new0(int64_t, entries);
    exact->least = g_new0(int64_t, entries);
    exact->price = g_new0(int64_t, messages->core->rows + 1);
    exact->prefix = g_new0(int64_t, messages->core->rows + 1);
    exact->row_best = g_new0(int64_t, 4 * (gsize)most);
    exact->column_best = exact->row_best + most;
    exact->row_least = exact->column_best + most;
    exact->column_least = exact->row_least + most;
    choose_shift(exact);
    return exact;
}

void mtf_exact_bound_free(MtfExactBound *exact) {
    if (exact == NULL)
        return;
    g_free(exact->state_at);
    g_free(exact->end_at);
    g_free(exact->message_at);
    g_free(exact->end_of);
    g_free(exact->edge_least);
    g_free(exact->theta);
    g_free(exact->regret);
    g_free(exact->message);
    g_free(exact->least);
    g_free(exact->price);
    g_free(exact->prefix);
    g_free(exact->row_best);
    g_free(exact);
}

/* ---- the point ---- */

/* A number in whole multiples of 1 / unit, of a size below LARGEST; any whole number would do. */
static int64_t whole(double number, double unit) {
    double scaled = number * unit;
    if (!isfinite(scaled))
        return 0;
    return (int64_t)fmin(fmax(rint(scaled), -(double)LARGEST), (double)LARGEST);
}

/* Prices are rounded down, to multiples that are as fine as their sum allows; where these are coarser than those of
 * costs prices are above any cost, and paying none is sound. */
static void round_prices(MtfExactBound *exact) {
    const MtfMessages *messages = exact->messages;
    int rows = messages->core->rows, bits = 0;
    (void)frexp(messages->prefix[rows], &bits);
    bool fine = 59 - bits >= exact->shift;
    exact->price_shift = fine ? MIN(59 - bits, 100) : exact->shift;
    double unit = ldexp(1, exact->price_shift);
    for (int r = 0; r < rows; r++) {
        double price = fine ? floor(messages->price[r] * unit) : 0;
        exact->price[r] = (int64_t)fmin(price, LARGEST_PREFIX);
        exact->prefix[r + 1] = exact->prefix[r] + exact->price[r];
        if (exact->prefix[r + 1] > (INT64_C(1) << 61)) /* not with sums of what frexp saw */
            exact->prefix[r + 1] = exact->prefix[r], exact->price[r] = 0;
    }
}

/* A product of a scaled price and memory in multiples of 2^-shift, rounded down. */
static MtfInt128 payment(const MtfExactBound *exact, MtfInt128 product) {
    return product >> (exact->price_shift - exact->shift);
}

/* Rounded up: what the rooms take from the bound. */
static MtfInt128 paid_rooms(const MtfExactBound *exact) {
    const MtfCore *core = exact->messages->core;
    MtfInt128 sum = 0;
    for (int r = 0; r < core->rows; r++)
        sum += (MtfInt128)exact->price[r] * core->capacity[r];
    return -((-sum) >> (exact->price_shift - exact->shift));
}

/* An edge's message to a node, with what the node sent on to it in the pass back: that moves from
 * the node's term to the edge's. */
static void round_messages(MtfExactBound *exact, const MtfNodeState *at, int first) {
    double unit = ldexp(1, exact->shift);
    for (int k = 0; k < at->behind + at->ahead; k++) {
        const MtfHalfEdge *end = &at->half_edges[k];
        int64_t *to = exact->message + exact->message_at[first + k];
        double share = k < at->behind ? at->share : 0;
        for (int p = 0; p < at->values; p++) {
            double in = end->in[end->row_of[p]];
            to[p] = whole(share > 0 ? in - share * (at->theta[p] - at->least) : in, unit);
        }
    }
}

/* ---- the terms of the bound ---- */

static bool is_open(const MtfExactBound *exact, const MtfNodeState *at, int p) {
    return at->priced[p] < INFINITY &&
           exact->messages->core->nodes[at->node].cost[p] < MTF_CORE_IMPOSSIBLE;
}

/* Own cost and priced memory of a value. */
static MtfInt128 own_cost(const MtfExactBound *exact, const MtfCoreNode *node, int p) {
    MtfInt128 sum = (MtfInt128)node->cost[p] * ((MtfInt128)1 << exact->shift);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        int64_t price = exact->prefix[piece->last] - exact->prefix[piece->first];
        if (price > 0 && piece->usage[p] > 0)
            sum += payment(exact, (MtfInt128)price * piece->usage[p]);
    }
    return sum;
}

/* Fills theta, the values' costs less their minimum, which goes into the bound. False where no value
 * is open. */
static bool sum_spot(MtfExactBound *exact, int i) {
    const MtfNodeState *at = &exact->messages->node_states[i];
    const MtfCoreNode *node = &exact->messages->core->nodes[at->node];
    int64_t *theta = exact->theta + exact->state_at[i];
    g_autofree MtfInt128 *sums = g_new(MtfInt128, at->values);
    MtfInt128 least = 0;
    bool found = false;
    for (int p = 0; p < at->values; p++) {
        theta[p] = is_open(exact, at, p) ? 0 : NEVER;
        if (theta[p] == NEVER)
            continue;
        sums[p] = own_cost(exact, node, p);
        for (int k = 0; k < at->behind + at->ahead; k++)
            sums[p] += exact->message[exact->message_at[exact->end_at[i] + k] + (gsize)p];
        least = found ? MIN(least, sums[p]) : sums[p];
        found = true;
    }
    for (int p = 0; p < at->values; p++)
        if (theta[p] < NEVER)
            theta[p] = (int64_t)MIN(sums[p] - least, NEVER - 1);
    exact->bound += least;
    return found;
}

/* An end of an edge: its node's values, and the classes of equal rows that they fall into. */
typedef struct Side {
    int values, classes;
    const int *class_of;    /* [values] */
    const int64_t *theta;   /* [values] */
    const int64_t *message; /* [values] */
    int64_t *least;         /* [values] */
    int64_t *best;          /* [classes] the largest message among its open values */
    const int64_t *lowered; /* [classes] the least cost less the other side's best */
} Side;

static void find_best(const Side *side) {
    for (int i = 0; i < side->classes; i++)
        side->best[i] = -BARRED;
    for (int p = 0; p < side->values; p++)
        if (side->theta[p] < NEVER)
            side->best[side->class_of[p]] = MAX(side->best[side->class_of[p]], side->message[p]);
}

/* The scaled cost of an entry, or BARRED. */
static int64_t entry_of(const MtfExactBound *exact, const MtfDistinctMatrix *matrix, int i, int j) {
    int64_t cost =
        matrix->is_small
            ? matrix->small[0][(gsize)i * (gsize)mtf_distinct_filled(matrix->columns) + (gsize)j]
            : matrix->whole[(gsize)i * (gsize)matrix->columns + (gsize)j];
    return cost >= MTF_CORE_IMPOSSIBLE ? BARRED : cost * (INT64_C(1) << exact->shift);
}

/* row_least[i] = min_j cost[i][j] - column_best[j], and likewise for columns. */
static void lower_classes(MtfExactBound *exact, const MtfDistinctMatrix *matrix) {
    for (int j = 0; j < matrix->columns; j++)
        exact->column_least[j] = 2 * BARRED;
    for (int i = 0; i < matrix->rows; i++) {
        int64_t least = 2 * BARRED;
        for (int j = 0; j < matrix->columns; j++) {
            int64_t cost = entry_of(exact, matrix, i, j);
            int64_t of_row = cost - exact->column_best[j], of_column = cost - exact->row_best[i];
            least = MIN(least, of_row);
            exact->column_least[j] = MIN(exact->column_least[j], of_column);
        }
        exact->row_least[i] = least;
    }
}

/* The least held anywhere; NEVER where nothing is possible. */
static int64_t find_floor(const Side *side) {
    int64_t floor = NEVER;
    for (int c = 0; c < side->classes; c++)
        if (side->lowered[c] < NEVER && side->best[c] > -BARRED)
            floor = MIN(floor, side->lowered[c] - side->best[c]);
    return floor;
}

/* The least held beside each value, less the edge's least. */
static void spread_least(const Side *side, int64_t floor) {
    for (int p = 0; p < side->values; p++) {
        int64_t lowered = side->lowered[side->class_of[p]];
        bool possible = side->theta[p] < NEVER && lowered < NEVER;
        side->least[p] = possible ? MIN(lowered - side->message[p] - floor, NEVER - 1) : NEVER;
    }
}

/* One end of an edge (0: the earlier node's), whose values are rows of the matrix or columns. */
static Side side_of(const MtfExactBound *exact, int i, const MtfHalfEdge *end, int which,
                    bool is_rows) {
    gsize at = exact->message_at[exact->end_of[2 * end->edge + which]];
    return (Side){ .values = exact->messages->node_states[i].values,
                   .classes = is_rows ? end->matrix->rows : end->matrix->columns,
                   .class_of = is_rows ? end->matrix->row_of : end->matrix->column_of,
                   .theta = exact->theta + exact->state_at[i],
                   .message = exact->message + at,
                   .least = exact->least + at,
                   .best = is_rows ? exact->row_best : exact->column_best,
                   .lowered = is_rows ? exact->row_least : exact->column_least };
}

/* The term of an edge, seen from its earlier node. False where nothing is possible. */
static bool sum_edge(MtfExactBound *exact, int i, const MtfHalfEdge *end) {
    Side here = side_of(exact, i, end, 0, !end->turned);
    Side there = side_of(exact, end->other, end, 1, end->turned);
    find_best(&here);
    find_best(&there);
    lower_classes(exact, end->matrix);
    int64_t floor = find_floor(&here);
    if (floor >= NEVER)
        return false;
    exact->edge_least[end->edge] = floor;
    exact->bound += floor;
    spread_least(&here, floor);
    spread_least(&there, floor);
    return true;
}

/* Impossible when one is; sums too large stay just below that. */
static int64_t add_regrets(int64_t a, int64_t b) {
    return a >= NEVER || b >= NEVER ? NEVER : MIN(a + b, NEVER - 1);
}

static void sum_regrets(MtfExactBound *exact, int i) {
    const MtfNodeState *at = &exact->messages->node_states[i];
    int64_t *regret = exact->regret + exact->state_at[i];
    memcpy(regret, exact->theta + exact->state_at[i], (gsize)at->values * sizeof *regret);
    for (int k = 0; k < at->behind + at->ahead; k++) {
        const int64_t *least = exact->least + exact->message_at[exact->end_at[i] + k];
        for (int p = 0; p < at->values; p++)
            regret[p] = add_regrets(regret[p], least[p]);
    }
}

static bool sum_terms(MtfExactBound *exact) {
    const MtfMessages *messages = exact->messages;
    for (int i = 0; i < messages->count; i++) {
        round_messages(exact, &messages->node_states[i], exact->end_at[i]);
        if (!sum_spot(exact, i))
            return false;
    }
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *at = &messages->node_states[i];
        for (int k = at->behind; k < at->behind + at->ahead; k++)
            if (!sum_edge(exact, i, &at->half_edges[k]))
                return false;
    }
    for (int i = 0; i < messages->count; i++)
        sum_regrets(exact, i);
    return true;
}

void mtf_exact_bound_update(MtfExactBound *exact) {
    if (!exact->is_usable) {
        exact->bound = -((MtfInt128)MTF_CORE_IMPOSSIBLE << exact->shift);
        return;
    }
    round_prices(exact);
    exact->bound = (MtfInt128)exact->messages->core->constant << exact->shift;
    exact->bound -= paid_rooms(exact);
    if (!sum_terms(exact))
        exact->bound = (MtfInt128)MTF_CORE_IMPOSSIBLE << exact->shift;
}

/* ---- what it says ---- */

int64_t mtf_exact_bound_cost(const MtfExactBound *exact) {
    MtfInt128 cost = -((-exact->bound) >> exact->shift);
    return (int64_t)CLAMP(cost, -(MtfInt128)MTF_CORE_IMPOSSIBLE, (MtfInt128)MTF_CORE_IMPOSSIBLE);
}

const int64_t *mtf_exact_bound_regrets(const MtfExactBound *exact, int node) {
    return exact->regret + exact->state_at[exact->messages->position[node]];
}

int64_t mtf_exact_bound_slack(const MtfExactBound *exact, int64_t cutoff) {
    MtfInt128 slack = ((MtfInt128)cutoff << exact->shift) - exact->bound;
    if (!exact->is_usable || slack >= NEVER)
        return INT64_MAX;
    return (int64_t)MAX(slack, -1);
}

/* The matrix of an edge with what the cutoff excludes made impossible, or NULL when that is nothing
 * new. Seen from the earlier at i. */
static int64_t *pruned_matrix(const MtfExactBound *exact, int i, const MtfHalfEdge *end,
                              int64_t slack) {
    const MtfMessages *messages = exact->messages;
    const MtfNodeState *at = &messages->node_states[i], *other = &messages->node_states[end->other];
    MtfCoreView view =
        mtf_core_view(messages->core, mtf_core_edge(messages->core, end->edge), at->node);
    gsize here = exact->message_at[exact->end_of[2 * end->edge]];
    gsize there = exact->message_at[exact->end_of[2 * end->edge + 1]];
    const int64_t *regret = exact->regret + exact->state_at[i];
    const int64_t *other_regret = exact->regret + exact->state_at[end->other];
    int64_t *matrix = mtf_core_new_costs((gsize)at->values * (gsize)other->values);
    bool changed = false;
    for (int p = 0; p < at->values; p++) {
        /* regrets beside this edge, less its least and the messages */
        int64_t row = regret[p] - exact->least[here + (gsize)p] - exact->edge_least[end->edge] -
                      exact->message[here + (gsize)p];
        for (int q = 0; q < other->values; q++) {
            int64_t *entry = &matrix[(gsize)p * view.down + (gsize)q * view.across];
            *entry = mtf_view_cost(&view, p, q);
            if (*entry >= MTF_CORE_IMPOSSIBLE)
                continue;
            int64_t column =
                other_regret[q] - exact->least[there + (gsize)q] - exact->message[there + (gsize)q];
            bool shut = regret[p] >= NEVER || other_regret[q] >= NEVER;
            if (!shut && row + column + *entry * (INT64_C(1) << exact->shift) <= slack)
                continue;
            *entry = MTF_CORE_IMPOSSIBLE;
            changed = true;
        }
    }
    if (!changed)
        mtf_shared_drop(matrix);
    return changed ? matrix : NULL;
}

static bool prune_values(const MtfExactBound *exact, MtfCore *core, int i, int64_t slack) {
    const MtfNodeState *at = &exact->messages->node_states[i];
    const int64_t *regret = exact->regret + exact->state_at[i];
    bool changed = false;
    int64_t *cost = mtf_core_new_costs((gsize)at->values);
    for (int p = 0; p < at->values; p++) {
        cost[p] = regret[p] <= slack ? core->nodes[at->node].cost[p] : MTF_CORE_IMPOSSIBLE;
        changed |= regret[p] > slack;
    }
    mtf_certify_values(core, at->node, cost);
    mtf_core_set_cost(core, at->node, cost);
    return changed;
}

/* Where nothing is possible at all the regrets say nothing: one node without values says it. */
static bool prune_all(MtfCore *core, const MtfNodeState *at) {
    int64_t *cost = mtf_core_new_costs((gsize)at->values);
    for (int p = 0; p < at->values; p++)
        cost[p] = MTF_CORE_IMPOSSIBLE;
    mtf_core_set_cost(core, at->node, cost);
    return true;
}

/* All but those of a slack without an end. */
static bool prune(const MtfExactBound *exact, MtfCore *core, int64_t slack) {
    const MtfMessages *messages = exact->messages;
    if (messages->count > 0 && slack < 0)
        return prune_all(core, &messages->node_states[0]);
    bool changed = false;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *at = &messages->node_states[i];
        changed |= prune_values(exact, core, i, slack);
        for (int k = at->behind; k < at->behind + at->ahead; k++) {
            int64_t *matrix = pruned_matrix(exact, i, &at->half_edges[k], slack);
            changed |= matrix != NULL;
            if (matrix == NULL)
                continue;
            mtf_certify_entries(core, at->half_edges[k].edge, matrix);
            mtf_core_set_matrix(core, at->half_edges[k].edge, matrix);
        }
    }
    return changed;
}

bool mtf_exact_bound_prune(const MtfExactBound *exact, MtfCore *core, int64_t cutoff) {
    int64_t slack = mtf_exact_bound_slack(exact, cutoff);
    if (slack == INT64_MAX)
        return false;
    mtf_certify_point(core->certificate, exact, core);
    mtf_certificate_one(core->certificate, "prune", cutoff);
    bool changed = prune(exact, core, slack);
    mtf_certificate_word(core->certificate, "end");
    return changed;
}

/* ---- the point, for checkers ---- */

int mtf_exact_bound_shift(const MtfExactBound *exact) {
    return exact->shift;
}

int mtf_exact_bound_price_shift(const MtfExactBound *exact) {
    return exact->price_shift;
}

int64_t mtf_exact_bound_price(const MtfExactBound *exact, int row) {
    return exact->price[row];
}

const int64_t *mtf_exact_bound_message(const MtfExactBound *exact, int edge, int node) {
    const MtfCoreEdge *core_edge = mtf_core_edge(exact->messages->core, edge);
    int other = mtf_core_other_end(core_edge, node);
    bool later = exact->messages->position[node] > exact->messages->position[other];
    return exact->message + exact->message_at[exact->end_of[2 * edge + later]];
}
