// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/message_passing.h"

#include "analyzer/solver/bounds/message_state.h"
#include "analyzer/solver/reduce/core_certificate.h"

#include <math.h>
#include <string.h>

static double *new_block(MtfMessages *messages, gsize count) {
    double *block = g_new0(double, count + 1);
    g_ptr_array_add(messages->blocks, block);
    return block;
}

/* Edges count as ahead of their earlier node and behind their later one. */
static void make_node_states(MtfMessages *messages) {
    const MtfCore *core = messages->core;
    int most = 1;
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        messages->position[v] = -1;
        if (!node->alive)
            continue;
        MtfNodeState *node_state = &messages->node_states[messages->count];
        messages->position[v] = messages->count++;
        node_state->node = v;
        node_state->copies = messages->quotient != NULL ? messages->quotient->node_copies[v] : 1;
        node_state->values = node->values;
        node_state->cost = new_block(messages, (gsize)node->values);
        node_state->priced = new_block(messages, (gsize)node->values);
        node_state->theta = new_block(messages, (gsize)node->values);
        node_state->half_edges = g_new0(MtfHalfEdge, node->edges->len + 1);
        node_state->classes = g_array_new(FALSE, FALSE, sizeof(MtfValueClasses));
        for (int p = 0; p < node->values; p++)
            node_state->cost[p] = (double)node->cost[p];
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

/* The node's classes that are those of a matrix's rows. */
static int find_classes(const MtfNodeState *node_state, int count, const int *of) {
    gsize bytes = (gsize)node_state->values * sizeof *of;
    for (guint i = 0; i < node_state->classes->len; i++) {
        const MtfValueClasses *classes = &g_array_index(node_state->classes, MtfValueClasses, i);
        if (classes->count == count && (classes->of == NULL || memcmp(classes->of, of, bytes) == 0))
            return (int)i;
    }
    return -1;
}

/* Classes are numbered as they turn up: as many as there are values are those values themselves. */
static int take_classes(MtfNodeState *node_state, int count, const int *of) {
    int index = find_classes(node_state, count, of);
    if (index < 0) {
        index = (int)node_state->classes->len;
        MtfValueClasses classes = { .count = count, .of = count < node_state->values ? of : NULL };
        g_array_append_val(node_state->classes, classes);
    }
    g_array_index(node_state->classes, MtfValueClasses, index).ends++;
    return index;
}

/* Adds one half-edge to its node: of the matrix as it stands, or turned. */
static void add_half_edge(MtfNodeState *node_state, const MtfDistinctMatrix *matrix, bool turned,
                          MtfHalfEdge half_edge) {
    half_edge.rows = turned ? matrix->columns : matrix->rows;
    half_edge.columns = turned ? matrix->rows : matrix->columns;
    half_edge.matrix = matrix;
    half_edge.turned = turned;
    half_edge.row_of = turned ? matrix->column_of : matrix->row_of;
    half_edge.column_of = turned ? matrix->row_of : matrix->column_of;
    half_edge.classes = take_classes(node_state, half_edge.rows, half_edge.row_of);
    node_state->half_edges[node_state->behind + node_state->ahead] = half_edge;
}

static void add_edge(MtfMessages *messages, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(messages->core, index);
    int a = messages->position[edge->a], b = messages->position[edge->b];
    MtfNodeState *left = &messages->node_states[a], *right = &messages->node_states[b];
    const MtfDistinctMatrix *matrix = matrix_of(messages, edge, left->values, right->values);
    double *to_left = new_block(messages, (gsize)matrix->rows);
    double *to_right = new_block(messages, (gsize)matrix->columns);
    double copies = messages->quotient != NULL ? messages->quotient->edge_copies[index] : 1;
    MtfHalfEdge half_edge = { .edge = index, .copies = copies };
    half_edge.other = b, half_edge.in = to_left, half_edge.out = to_right;
    add_half_edge(left, matrix, false, half_edge);
    half_edge.other = a, half_edge.in = to_right, half_edge.out = to_left;
    add_half_edge(right, matrix, true, half_edge);
    *(a < b ? &left->ahead : &left->behind) += 1;
    *(a < b ? &right->behind : &right->ahead) += 1;
    messages->edge_count++;
}

/* Puts the ends to earlier nodes first. */
static void sort_half_edges(MtfNodeState *node_state, int position) {
    int count = node_state->behind + node_state->ahead, behind = 0;
    for (int k = 0; k < count; k++) {
        if (node_state->half_edges[k].other > position)
            continue;
        MtfHalfEdge swap = node_state->half_edges[k];
        node_state->half_edges[k] = node_state->half_edges[behind];
        node_state->half_edges[behind++] = swap;
    }
    for (int k = 0; k < count; k++)
        g_array_index(node_state->classes, MtfValueClasses, node_state->half_edges[k].classes)
            .leads[k >= behind] = true;
    node_state->share = 1.0 / MAX(1, MAX(node_state->behind, node_state->ahead));
}

/* Gives the classes of a node their places in scratch that is large enough for any node. */
static void place_classes(MtfMessages *messages) {
    int most = 0;
    for (int i = 0; i < messages->count; i++) {
        GArray *all = messages->node_states[i].classes;
        int count = 0;
        for (guint k = 0; k < all->len; k++) {
            g_array_index(all, MtfValueClasses, k).at = count;
            count += g_array_index(all, MtfValueClasses, k).count;
        }
        most = MAX(most, count);
    }
    messages->cheapest = new_block(messages, (gsize)most);
    messages->sums = new_block(messages, (gsize)most);
}

static void add_edges(MtfMessages *messages) {
    for (int e = -1; mtf_core_next_edge(messages->core, &e);)
        add_edge(messages, e);
    for (int i = 0; i < messages->count; i++)
        sort_half_edges(&messages->node_states[i], i);
    place_classes(messages);
}

static MtfMessages *new_messages(const MtfCore *core, const MtfLayerQuotient *quotient) {
    MtfMessages *messages = g_new0(MtfMessages, 1);
    messages->core = core;
    messages->quotient = quotient;
    messages->blocks = g_ptr_array_new_with_free_func(g_free);
    messages->matrices = g_hash_table_new_full(mtf_matrix_key_hash, mtf_matrix_key_equal, g_free,
                                               (GDestroyNotify)mtf_distinct_matrix_free);
    messages->node_states = g_new0(MtfNodeState, core->node_count + 1);
    messages->position = g_new(int, core->node_count + 1);
    messages->price = new_block(messages, (gsize)core->rows);
    messages->prefix = new_block(messages, (gsize)core->rows + 1);
    make_node_states(messages);
    add_edges(messages);
    mtf_messages_set_prices(messages, messages->price);
    return messages;
}

MtfMessages *mtf_messages_new(const MtfCore *core) {
    return new_messages(core, NULL);
}

MtfMessages *mtf_messages_new_of_quotient(const MtfLayerQuotient *quotient) {
    return new_messages(quotient->core, quotient);
}

/* The end of that edge at the node at `position`. */
static const MtfHalfEdge *end_at(const MtfMessages *messages, int position, int edge) {
    const MtfHalfEdge *half_edge = messages->node_states[position].half_edges;
    while (half_edge->edge != edge)
        half_edge++;
    return half_edge;
}

void mtf_messages_expand(MtfMessages *messages, const MtfMessages *folded) {
    const MtfLayerQuotient *quotient = folded->quotient;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        for (int k = 0; k < node_state->behind + node_state->ahead; k++) {
            const MtfHalfEdge *half_edge = &node_state->half_edges[k];
            const MtfCoreEdge *edge = mtf_core_edge(folded->core, quotient->edge[half_edge->edge]);
            bool first = mtf_core_edge(messages->core, half_edge->edge)->a == node_state->node;
            int from = folded->position[first ? edge->a : edge->b];
            const MtfHalfEdge *model = end_at(folded, from, quotient->edge[half_edge->edge]);
            g_assert(model->rows == half_edge->rows);
            memcpy(half_edge->in, model->in, (gsize)model->rows * sizeof *model->in);
        }
    }
    mtf_messages_set_prices(messages, folded->price);
}

void mtf_messages_free(MtfMessages *messages) {
    if (messages == NULL)
        return;
    for (int i = 0; i < messages->count; i++) {
        g_free(messages->node_states[i].half_edges);
        g_array_unref(messages->node_states[i].classes);
    }
    g_ptr_array_unref(messages->blocks);
    g_hash_table_unref(messages->matrices);
    g_free(messages->node_states);
    g_free(messages->position);
    g_free(messages);
}

static void price_node(MtfMessages *messages, MtfNodeState *node_state) {
    const MtfCoreNode *node = &messages->core->nodes[node_state->node];
    memcpy(node_state->priced, node_state->cost,
           (gsize)node_state->values * sizeof *node_state->cost);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        double price = messages->quotient != NULL
                           ? mtf_layer_quotient_price(messages->quotient, node_state->node, k,
                                                      messages->prefix)
                           : messages->prefix[piece->last] - messages->prefix[piece->first];
        if (price <= 0)
            continue;
        for (int p = 0; p < node_state->values; p++)
            node_state->priced[p] += price * (double)piece->usage[p];
    }
}

void mtf_messages_set_prices(MtfMessages *messages, const double *price) {
    const MtfCore *core = messages->core;
    memmove(messages->price, price, (gsize)core->rows * sizeof *price);
    messages->paid_capacity = 0;
    for (int r = 0; r < core->rows; r++) {
        messages->prefix[r + 1] = messages->prefix[r] + messages->price[r];
        messages->paid_capacity += messages->price[r] * (double)core->capacity[r];
    }
    for (int i = 0; i < messages->count; i++)
        price_node(messages, &messages->node_states[i]);
}

/* The least of `count` >= 1 numbers. Four at a time, since each comparison waits for the one before. */
static double least_of(const double *numbers, int count) {
    double least[4] = { numbers[0], numbers[0], numbers[0], numbers[0] };
    for (int i = 0; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            least[k] = MIN(numbers[i + k], least[k]);
    for (int i = count & ~3; i < count; i++)
        least[0] = MIN(numbers[i], least[0]);
    return MIN(MIN(least[0], least[1]), MIN(least[2], least[3]));
}

/* Adds to each number another. */
MTF_FOR_EACH_UNIT static void add(double *restrict numbers, const double *restrict others,
                                  int count) {
    for (int i = 0; i < count; i++)
        numbers[i] += others[i];
}

static void fill(double *numbers, int count, double number) {
    for (int i = 0; i < count; i++)
        numbers[i] = number;
}

/* Adds to each value's number that of its class. */
static void add_by_class(double *restrict numbers, const double *restrict of_class,
                         const int *restrict class_of, int count) {
    for (int p = 0; p < count; p++)
        numbers[p] += of_class[class_of[p]];
}

/* Adds what an end says to its node's values: `told`, by class. Where ends share classes, their sums are
 * added later, by add_sums. */
static void add_told(const MtfMessages *messages, const MtfNodeState *node_state,
                     const MtfHalfEdge *half_edge, const double *told, double *to) {
    const MtfValueClasses *classes =
        &g_array_index(node_state->classes, MtfValueClasses, half_edge->classes);
    if (classes->of == NULL)
        add(to, told, node_state->values);
    else if (classes->ends == 1)
        add_by_class(to, told, classes->of, node_state->values);
    else
        add(messages->sums + classes->at, told, classes->count);
}

static bool has_sums(const MtfValueClasses *classes) {
    return classes->of != NULL && classes->ends > 1;
}

static void clear_sums(const MtfMessages *messages, const MtfNodeState *node_state) {
    for (guint i = 0; i < node_state->classes->len; i++) {
        const MtfValueClasses *classes = &g_array_index(node_state->classes, MtfValueClasses, i);
        if (has_sums(classes))
            fill(messages->sums + classes->at, classes->count, 0);
    }
}

static void add_sums(const MtfMessages *messages, const MtfNodeState *node_state, double *to) {
    for (guint i = 0; i < node_state->classes->len; i++) {
        const MtfValueClasses *classes = &g_array_index(node_state->classes, MtfValueClasses, i);
        if (has_sums(classes))
            add_by_class(to, messages->sums + classes->at, classes->of, node_state->values);
    }
}

/* theta = own priced costs and all incoming messages; notes its minimum. */
static void gather(const MtfMessages *messages, MtfNodeState *node_state) {
    memcpy(node_state->theta, node_state->priced,
           (gsize)node_state->values * sizeof *node_state->theta);
    clear_sums(messages, node_state);
    for (int k = 0; k < node_state->behind + node_state->ahead; k++)
        add_told(messages, node_state, &node_state->half_edges[k], node_state->half_edges[k].in,
                 node_state->theta);
    add_sums(messages, node_state, node_state->theta);
    node_state->least = least_of(node_state->theta, node_state->values);
}

/* What the cheapest value of each class has to send to earlier nodes, or `ahead`. */
static void find_cheapest(const MtfMessages *messages, const MtfNodeState *node_state, bool ahead) {
    for (guint i = 0; i < node_state->classes->len; i++) {
        const MtfValueClasses *classes = &g_array_index(node_state->classes, MtfValueClasses, i);
        double *cheapest = messages->cheapest + classes->at;
        if (!classes->leads[ahead])
            continue;
        if (classes->of == NULL) {
            memcpy(cheapest, messages->shared, (gsize)classes->count * sizeof *cheapest);
            continue;
        }
        fill(cheapest, classes->count, INFINITY);
        for (int p = 0; p < node_state->values; p++) {
            double *least = &cheapest[classes->of[p]];
            *least = messages->shared[p] < *least ? messages->shared[p] : *least;
        }
    }
}

/* The offsets of a message's rows: INFINITY where what is sent is impossible, whatever came. */
static void find_offsets(const MtfMessages *messages, const MtfNodeState *node_state,
                         const MtfHalfEdge *half_edge) {
    const double *cheapest =
        messages->cheapest +
        g_array_index(node_state->classes, MtfValueClasses, half_edge->classes).at;
    double *offsets = messages->offsets;
    for (int i = 0; i < half_edge->rows; i++) {
        double offset = cheapest[i] - half_edge->in[i];
        offsets[i] = offset < INFINITY ? offset : INFINITY;
    }
    for (int i = half_edge->rows; i < mtf_distinct_filled(half_edge->rows); i++)
        offsets[i] = INFINITY;
}

/* Sends one message. Returns the minimum that is taken out of it into the bound. */
static double send(const MtfMessages *messages, const MtfNodeState *node_state,
                   const MtfHalfEdge *half_edge) {
    double *lowered = messages->lowered;
    find_offsets(messages, node_state, half_edge);
    mtf_distinct_lower(half_edge->matrix, half_edge->turned, messages->offsets, lowered);
    double least = least_of(lowered, half_edge->columns);
    for (int j = 0; j < half_edge->columns; j++)
        half_edge->out[j] = lowered[j] - least;
    return least;
}

/* Sends to the nodes behind, or to those ahead. */
static void visit(MtfMessages *messages, MtfNodeState *node_state, bool ahead) {
    int first = ahead ? node_state->behind : 0;
    int last = ahead ? node_state->behind + node_state->ahead : node_state->behind;
    gather(messages, node_state);
    messages->bound += node_state->copies * node_state->least;
    if (first == last)
        return;
    for (int p = 0; p < node_state->values; p++)
        messages->shared[p] = node_state->share * (node_state->theta[p] - node_state->least);
    find_cheapest(messages, node_state, ahead);
    for (int k = first; k < last; k++)
        messages->bound += node_state->half_edges[k].copies *
                           send(messages, node_state, &node_state->half_edges[k]);
}

double mtf_messages_pass(MtfMessages *messages) {
    for (int i = 0; i < messages->count; i++)
        visit(messages, &messages->node_states[i], true);
    messages->bound = 0;
    for (int i = messages->count - 1; i >= 0; i--)
        visit(messages, &messages->node_states[i], false);
    messages->bound += (double)messages->core->constant - messages->paid_capacity;
    return messages->bound;
}

gsize mtf_messages_state_size(const MtfMessages *messages) {
    gsize size = 0;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        for (int k = 0; k < node_state->behind + node_state->ahead; k++)
            size += (gsize)node_state->half_edges[k].rows;
        size += (gsize)node_state->values;
    }
    return size;
}

/* A state: for each node the messages to it, then its theta. */
double *mtf_messages_save(const MtfMessages *messages, double *saved) {
    double *state = saved != NULL ? saved : g_new(double, mtf_messages_state_size(messages) + 1);
    double *to = state;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        for (int k = 0; k < node_state->behind + node_state->ahead; k++) {
            const MtfHalfEdge *half_edge = &node_state->half_edges[k];
            memcpy(to, half_edge->in, (gsize)half_edge->rows * sizeof *to);
            to += half_edge->rows;
        }
        memcpy(to, node_state->theta, (gsize)node_state->values * sizeof *to);
        to += node_state->values;
    }
    return state;
}

void mtf_messages_restore(MtfMessages *messages, const double *saved) {
    for (int i = 0; i < messages->count; i++) {
        MtfNodeState *node_state = &messages->node_states[i];
        for (int k = 0; k < node_state->behind + node_state->ahead; k++) {
            const MtfHalfEdge *half_edge = &node_state->half_edges[k];
            memcpy(half_edge->in, saved, (gsize)half_edge->rows * sizeof *saved);
            saved += half_edge->rows;
        }
        memcpy(node_state->theta, saved, (gsize)node_state->values * sizeof *saved);
        node_state->least = least_of(node_state->theta, node_state->values);
        saved += node_state->values;
    }
}

/* Infinite messages stay. */
static void leap(double *numbers, const double *from, double times, int count) {
    for (int i = 0; i < count; i++) {
        double further = numbers[i] + times * (numbers[i] - from[i]);
        numbers[i] = isfinite(further) ? further : numbers[i];
    }
}

void mtf_messages_leap(MtfMessages *messages, const double *from, double times) {
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        int ends = node_state->behind + node_state->ahead;
        for (int k = 0; k < ends; k++) {
            const MtfHalfEdge *half_edge = &node_state->half_edges[k];
            leap(half_edge->in, from, times, half_edge->rows);
            from += half_edge->rows;
        }
        from += node_state->values; /* its theta, which the next pass makes anew */
    }
}

void mtf_messages_clamp(MtfMessages *messages, int node, int value) {
    const MtfNodeState *node_state = &messages->node_states[messages->position[node]];
    for (int p = 0; p < node_state->values; p++)
        if (p != value)
            node_state->priced[p] = INFINITY;
}

void mtf_messages_unclamp(MtfMessages *messages, int node) {
    price_node(messages, &messages->node_states[messages->position[node]]);
}

void mtf_messages_forbid(MtfMessages *messages, int node, int value) {
    messages->node_states[messages->position[node]].cost[value] = INFINITY;
    mtf_messages_unclamp(messages, node);
}

/* What the edge costs each class of this node's values where the other takes value q, into `told`. */
static void tell_costs(const MtfHalfEdge *half_edge, int q, double *told) {
    for (int i = 0; i < half_edge->rows; i++)
        told[i] =
            mtf_distinct_cost(half_edge->matrix, !half_edge->turned, half_edge->column_of[q], i);
}

/* Costs of the node's values beside the nodes before it, and messages from those after it. */
static void condition(const MtfMessages *messages, const MtfNodeState *node_state,
                      const int *values, double *cost) {
    memcpy(cost, node_state->priced, (gsize)node_state->values * sizeof *cost);
    clear_sums(messages, node_state);
    for (int k = 0; k < node_state->behind + node_state->ahead; k++) {
        const MtfHalfEdge *half_edge = &node_state->half_edges[k];
        const double *told = half_edge->in;
        if (k < node_state->behind) {
            int other = messages->node_states[half_edge->other].node;
            tell_costs(half_edge, values[other], messages->offsets);
            told = messages->offsets;
        }
        add_told(messages, node_state, half_edge, told, cost);
    }
    add_sums(messages, node_state, cost);
}

bool mtf_messages_decode(MtfMessages *messages, int *values) {
    bool possible = true;
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        double *cost = messages->scratch;
        condition(messages, node_state, values, cost);
        int best = 0;
        for (int p = 1; p < node_state->values; p++)
            if (cost[p] < cost[best])
                best = p;
        values[node_state->node] = best;
        possible &= cost[best] < INFINITY;
    }
    return possible;
}

/* ---- writing back ---- */

/* Impossible values have infinite messages, and cost nothing more for them. */
static int64_t whole(double message) {
    return isfinite(message) ? (int64_t)llround(message) : 0;
}

/* A message as costs of the node's values. */
static int64_t *whole_message(const double *message, const int *class_of, int values) {
    int64_t *cost = mtf_core_new_costs((gsize)values);
    for (int p = 0; p < values; p++)
        cost[p] = whole(message[class_of[p]]);
    return cost;
}

/* Adds the costs to the node's own and keeps them. */
static void move_costs(MtfCore *core, int node, int other, int64_t *cost) {
    mtf_certify_move(core, node, other, cost);
    for (int p = 0; p < core->nodes[node].values; p++)
        cost[p] = mtf_core_add(core->nodes[node].cost[p], cost[p]);
    mtf_core_set_cost(core, node, cost);
}

static void reparametrize_edge(MtfCore *core, const MtfNodeState *node_state,
                               const MtfHalfEdge *half_edge, const MtfNodeState *other) {
    const MtfCoreEdge *edge = mtf_core_edge(core, half_edge->edge);
    int64_t *here = whole_message(half_edge->in, half_edge->row_of, node_state->values);
    int64_t *there = whole_message(half_edge->out, half_edge->column_of, other->values);
    bool is_first = edge->a == node_state->node;
    const int64_t *of_row = is_first ? here : there, *of_column = is_first ? there : here;
    gsize rows = (gsize)core->nodes[edge->a].values, columns = (gsize)core->nodes[edge->b].values;
    int64_t *matrix = mtf_core_new_costs(rows * columns);
    for (gsize p = 0; p < rows; p++)
        for (gsize q = 0; q < columns; q++)
            matrix[p * columns + q] =
                mtf_core_add(edge->cost[p * columns + q], -of_row[p] - of_column[q]);
    mtf_core_set_matrix(core, half_edge->edge, matrix);
    move_costs(core, node_state->node, other->node, here);
    move_costs(core, other->node, node_state->node, there);
}

void mtf_messages_reparametrize(const MtfMessages *messages, MtfCore *core) {
    for (int i = 0; i < messages->count; i++) {
        const MtfNodeState *node_state = &messages->node_states[i];
        for (int k = node_state->behind; k < node_state->behind + node_state->ahead; k++)
            reparametrize_edge(core, node_state, &node_state->half_edges[k],
                               &messages->node_states[node_state->half_edges[k].other]);
    }
}
