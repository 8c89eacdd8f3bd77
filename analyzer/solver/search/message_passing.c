// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/message_passing.h"

#include "analyzer/solver/search/message_state.h"

#include <math.h>
#include <string.h>

static double *new_block(MtfMessages *messages, gsize count) {
    double *block = g_new0(double, count + 1);
    g_ptr_array_add(messages->blocks, block);
    return block;
}

/* Edges count as ahead of their earlier node and behind their later one. */
static void make_spots(MtfMessages *messages) {
    const MtfCore *core = messages->core;
    int most = 1;
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        messages->position[v] = -1;
        if (!node->alive)
            continue;
        MtfSpot *spot = &messages->spots[messages->count];
        messages->position[v] = messages->count++;
        spot->node = v;
        spot->copies = messages->fold != NULL ? messages->fold->node_copies[v] : 1;
        spot->values = node->values;
        spot->cost = new_block(messages, (gsize)node->values);
        spot->priced = new_block(messages, (gsize)node->values);
        spot->theta = new_block(messages, (gsize)node->values);
        spot->ends = g_new0(MtfSpotEnd, node->edges->len + 1);
        for (int p = 0; p < node->values; p++)
            spot->cost[p] = (double)node->cost[p];
        most = MAX(most, node->values);
    }
    messages->scratch = new_block(messages, (gsize)most);
    messages->shared = new_block(messages, (gsize)most);
    messages->offsets = new_block(messages, (gsize)mtf_distinct_filled(most));
    messages->lowered = new_block(messages, (gsize)mtf_distinct_filled(most));
}

/* Edges of the same shared matrix share what is made of it. */
static const MtfDistinctMatrix *matrix_of(MtfMessages *messages, const MtfCoreEdge *edge, int rows,
                                          int columns) {
    MtfMatrixKey key = { edge->cost, rows };
    MtfDistinctMatrix *matrix = g_hash_table_lookup(messages->matrices, &key);
    if (matrix == NULL) {
        matrix = mtf_distinct_matrix_new(edge->cost, rows, columns);
        g_hash_table_insert(messages->matrices, g_memdup2(&key, sizeof key), matrix);
    }
    return matrix;
}

/* Adds one end to its spot: of the matrix as it stands, or turned. */
static void add_end(MtfSpot *spot, const MtfDistinctMatrix *matrix, bool turned, MtfSpotEnd end) {
    end.rows = turned ? matrix->columns : matrix->rows;
    end.columns = turned ? matrix->rows : matrix->columns;
    end.matrix = matrix;
    end.turned = turned;
    end.row_of = turned ? matrix->column_of : matrix->row_of;
    end.column_of = turned ? matrix->row_of : matrix->column_of;
    spot->ends[spot->behind + spot->ahead] = end;
}

static void add_edge(MtfMessages *messages, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(messages->core, index);
    int a = messages->position[edge->a], b = messages->position[edge->b];
    MtfSpot *left = &messages->spots[a], *right = &messages->spots[b];
    const MtfDistinctMatrix *matrix = matrix_of(messages, edge, left->values, right->values);
    double *to_left = new_block(messages, (gsize)left->values);
    double *to_right = new_block(messages, (gsize)right->values);
    double copies = messages->fold != NULL ? messages->fold->edge_copies[index] : 1;
    MtfSpotEnd end = { .edge = index, .copies = copies };
    end.other = b, end.in = to_left, end.out = to_right;
    add_end(left, matrix, false, end);
    end.other = a, end.in = to_right, end.out = to_left;
    add_end(right, matrix, true, end);
    *(a < b ? &left->ahead : &left->behind) += 1;
    *(a < b ? &right->behind : &right->ahead) += 1;
    messages->edge_count++;
}

/* Puts the ends to earlier nodes first. */
static void sort_ends(MtfSpot *spot, int position) {
    int count = spot->behind + spot->ahead, behind = 0;
    for (int k = 0; k < count; k++) {
        if (spot->ends[k].other > position)
            continue;
        MtfSpotEnd swap = spot->ends[k];
        spot->ends[k] = spot->ends[behind];
        spot->ends[behind++] = swap;
    }
    spot->share = 1.0 / MAX(1, MAX(spot->behind, spot->ahead));
}

static MtfMessages *new_messages(const MtfCore *core, const MtfFold *fold) {
    MtfMessages *messages = g_new0(MtfMessages, 1);
    messages->core = core;
    messages->fold = fold;
    messages->blocks = g_ptr_array_new_with_free_func(g_free);
    messages->matrices = g_hash_table_new_full(mtf_matrix_key_hash, mtf_matrix_key_equal, g_free,
                                               (GDestroyNotify)mtf_distinct_matrix_free);
    messages->spots = g_new0(MtfSpot, core->node_count + 1);
    messages->position = g_new(int, core->node_count + 1);
    messages->price = new_block(messages, (gsize)core->rows);
    messages->prefix = new_block(messages, (gsize)core->rows + 1);
    make_spots(messages);
    for (guint e = 0; e < core->edges->len; e++)
        if (mtf_core_edge(core, (int)e)->a >= 0)
            add_edge(messages, (int)e);
    for (int i = 0; i < messages->count; i++)
        sort_ends(&messages->spots[i], i);
    mtf_messages_set_prices(messages, messages->price);
    return messages;
}

MtfMessages *mtf_messages_new(const MtfCore *core) {
    return new_messages(core, NULL);
}

MtfMessages *mtf_messages_new_folded(const MtfFold *fold) {
    return new_messages(fold->core, fold);
}

/* The message to the node at `position` over that edge. */
static double *message_to(const MtfMessages *messages, int position, int edge) {
    const MtfSpotEnd *end = messages->spots[position].ends;
    while (end->edge != edge)
        end++;
    return end->in;
}

void mtf_messages_unfold(MtfMessages *messages, const MtfMessages *folded) {
    const MtfFold *fold = folded->fold;
    for (int i = 0; i < messages->count; i++) {
        const MtfSpot *spot = &messages->spots[i];
        for (int k = 0; k < spot->behind + spot->ahead; k++) {
            const MtfSpotEnd *end = &spot->ends[k];
            const MtfCoreEdge *edge = mtf_core_edge(folded->core, fold->edge[end->edge]);
            bool first = mtf_core_edge(messages->core, end->edge)->a == spot->node;
            int from = folded->position[first ? edge->a : edge->b];
            memcpy(end->in, message_to(folded, from, fold->edge[end->edge]),
                   (gsize)spot->values * sizeof *end->in);
        }
    }
    mtf_messages_set_prices(messages, folded->price);
}

void mtf_messages_free(MtfMessages *messages) {
    if (messages == NULL)
        return;
    for (int i = 0; i < messages->count; i++)
        g_free(messages->spots[i].ends);
    g_ptr_array_unref(messages->blocks);
    g_hash_table_unref(messages->matrices);
    g_free(messages->spots);
    g_free(messages->position);
    g_free(messages);
}

static void price_spot(MtfMessages *messages, MtfSpot *spot) {
    const MtfCoreNode *node = &messages->core->nodes[spot->node];
    memcpy(spot->priced, spot->cost, (gsize)spot->values * sizeof *spot->cost);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        double price = messages->fold != NULL
                           ? mtf_fold_price(messages->fold, spot->node, k, messages->prefix)
                           : messages->prefix[piece->last] - messages->prefix[piece->first];
        if (price <= 0)
            continue;
        for (int p = 0; p < spot->values; p++)
            spot->priced[p] += price * (double)piece->usage[p];
    }
}

void mtf_messages_set_prices(MtfMessages *messages, const double *price) {
    const MtfCore *core = messages->core;
    memmove(messages->price, price, (gsize)core->rows * sizeof *price);
    messages->paid_room = 0;
    for (int r = 0; r < core->rows; r++) {
        messages->prefix[r + 1] = messages->prefix[r] + messages->price[r];
        messages->paid_room += messages->price[r] * (double)core->room[r];
    }
    for (int i = 0; i < messages->count; i++)
        price_spot(messages, &messages->spots[i]);
}

/* The least of so many numbers, of which there is one at least. Four at a time, since each
 * comparison waits for the one before. */
static double least_of(const double *numbers, int count) {
    double least[4] = { numbers[0], numbers[0], numbers[0], numbers[0] };
    for (int i = 0; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            least[k] = MIN(numbers[i + k], least[k]);
    for (int i = count & ~3; i < count; i++)
        least[0] = MIN(numbers[i], least[0]);
    return MIN(MIN(least[0], least[1]), MIN(least[2], least[3]));
}

/* theta = own priced costs and all incoming messages; notes its minimum. */
static void gather(MtfSpot *spot) {
    memcpy(spot->theta, spot->priced, (gsize)spot->values * sizeof *spot->theta);
    for (int k = 0; k < spot->behind + spot->ahead; k++) {
        const double *in = spot->ends[k].in;
        for (int p = 0; p < spot->values; p++)
            spot->theta[p] += in[p];
    }
    spot->least = least_of(spot->theta, spot->values);
}

static void fill(double *numbers, int count, double number) {
    for (int i = 0; i < count; i++)
        numbers[i] = number;
}

/* What the edge costs where this node takes value p and the other q. */
static double cost_at(const MtfSpotEnd *end, int p, int q) {
    return mtf_distinct_cost(end->matrix, end->turned, end->row_of[p], end->column_of[q]);
}

/* Sends one message: values whose rows are the same go as the cheapest of them. Returns the minimum
 * that is taken out of it into the bound. */
static double send(const MtfMessages *messages, const MtfSpot *spot, const MtfSpotEnd *end) {
    double *offsets = messages->offsets, *lowered = messages->lowered;
    fill(offsets, mtf_distinct_filled(end->rows), INFINITY);
    for (int p = 0; p < spot->values; p++) {
        double offset = messages->shared[p] - end->in[p];
        int row = end->row_of[p];
        offsets[row] = offset < offsets[row] ? offset : offsets[row];
    }
    mtf_distinct_lower(end->matrix, end->turned, offsets, lowered);
    double least = least_of(lowered, end->columns);
    for (int q = 0; q < messages->spots[end->other].values; q++)
        end->out[q] = lowered[end->column_of[q]] - least;
    return least;
}

static void visit(MtfMessages *messages, MtfSpot *spot, int first, int last) {
    gather(spot);
    messages->bound += spot->copies * spot->least;
    for (int p = 0; first < last && p < spot->values; p++)
        messages->shared[p] = spot->share * (spot->theta[p] - spot->least);
    for (int k = first; k < last; k++)
        messages->bound += spot->ends[k].copies * send(messages, spot, &spot->ends[k]);
}

double mtf_messages_pass(MtfMessages *messages) {
    for (int i = 0; i < messages->count; i++) {
        MtfSpot *spot = &messages->spots[i];
        visit(messages, spot, spot->behind, spot->behind + spot->ahead);
    }
    messages->bound = 0;
    for (int i = messages->count - 1; i >= 0; i--)
        visit(messages, &messages->spots[i], 0, messages->spots[i].behind);
    messages->bound += (double)messages->core->constant - messages->paid_room;
    return messages->bound;
}

/* The numbers of a state: for each spot the messages to it, then its theta. */
static gsize state_size(const MtfMessages *messages) {
    gsize size = 0;
    for (int i = 0; i < messages->count; i++) {
        const MtfSpot *spot = &messages->spots[i];
        size += (gsize)spot->values * (gsize)(spot->behind + spot->ahead + 1);
    }
    return size;
}

double *mtf_messages_save(const MtfMessages *messages, double *saved) {
    double *state = saved != NULL ? saved : g_new(double, state_size(messages) + 1);
    double *to = state;
    for (int i = 0; i < messages->count; i++) {
        const MtfSpot *spot = &messages->spots[i];
        gsize bytes = (gsize)spot->values * sizeof *to;
        for (int k = 0; k < spot->behind + spot->ahead; k++, to += spot->values)
            memcpy(to, spot->ends[k].in, bytes);
        memcpy(to, spot->theta, bytes);
        to += spot->values;
    }
    return state;
}

void mtf_messages_restore(MtfMessages *messages, const double *saved) {
    for (int i = 0; i < messages->count; i++) {
        MtfSpot *spot = &messages->spots[i];
        gsize bytes = (gsize)spot->values * sizeof *saved;
        for (int k = 0; k < spot->behind + spot->ahead; k++, saved += spot->values)
            memcpy(spot->ends[k].in, saved, bytes);
        memcpy(spot->theta, saved, bytes);
        spot->least = least_of(spot->theta, spot->values);
        saved += spot->values;
    }
}

void mtf_messages_hold(MtfMessages *messages, int node, int value) {
    const MtfSpot *spot = &messages->spots[messages->position[node]];
    for (int p = 0; p < spot->values; p++)
        if (p != value)
            spot->priced[p] = INFINITY;
}

void mtf_messages_release(MtfMessages *messages, int node) {
    price_spot(messages, &messages->spots[messages->position[node]]);
}

void mtf_messages_forbid(MtfMessages *messages, int node, int value) {
    messages->spots[messages->position[node]].cost[value] = INFINITY;
    mtf_messages_release(messages, node);
}

/* Costs of the spot's values beside the nodes before it, and messages from those after it. */
static void condition(MtfMessages *messages, const MtfSpot *spot, const int *values, double *cost) {
    memcpy(cost, spot->priced, (gsize)spot->values * sizeof *cost);
    for (int k = 0; k < spot->behind + spot->ahead; k++) {
        const MtfSpotEnd *end = &spot->ends[k];
        const MtfSpot *other = &messages->spots[end->other];
        for (int p = 0; p < spot->values; p++)
            cost[p] += k < spot->behind ? cost_at(end, p, values[other->node]) : end->in[p];
    }
}

bool mtf_messages_decode(MtfMessages *messages, int *values) {
    bool possible = true;
    for (int i = 0; i < messages->count; i++) {
        const MtfSpot *spot = &messages->spots[i];
        double *cost = messages->scratch;
        condition(messages, spot, values, cost);
        int best = 0;
        for (int p = 1; p < spot->values; p++)
            if (cost[p] < cost[best])
                best = p;
        values[spot->node] = best;
        possible &= cost[best] < INFINITY;
    }
    return possible;
}

/* ---- writing back ---- */

/* Impossible values have infinite messages, and cost nothing more for them. */
static int64_t whole(double message) {
    return isfinite(message) ? (int64_t)llround(message) : 0;
}

static void bake_message(MtfCore *core, int node, const double *message) {
    int values = core->nodes[node].values;
    int64_t *cost = mtf_core_new_costs((gsize)values);
    for (int p = 0; p < values; p++)
        cost[p] = mtf_core_add(core->nodes[node].cost[p], whole(message[p]));
    mtf_core_set_cost(core, node, cost);
}

static void bake_edge(MtfCore *core, const MtfSpot *spot, const MtfSpotEnd *end,
                      const MtfSpot *other) {
    MtfCoreView view = mtf_core_view(core, mtf_core_edge(core, end->edge), spot->node);
    int64_t *matrix = mtf_core_new_costs((gsize)spot->values * (gsize)other->values);
    for (int p = 0; p < spot->values; p++)
        for (int q = 0; q < other->values; q++)
            matrix[(gsize)p * view.down + (gsize)q * view.across] =
                mtf_core_add(mtf_view_cost(&view, p, q), -whole(end->in[p]) - whole(end->out[q]));
    mtf_core_set_matrix(core, end->edge, matrix);
    bake_message(core, spot->node, end->in);
    bake_message(core, other->node, end->out);
}

void mtf_messages_bake(const MtfMessages *messages, MtfCore *core) {
    for (int i = 0; i < messages->count; i++) {
        const MtfSpot *spot = &messages->spots[i];
        for (int k = spot->behind; k < spot->behind + spot->ahead; k++)
            bake_edge(core, spot, &spot->ends[k], &messages->spots[spot->ends[k].other]);
    }
}
