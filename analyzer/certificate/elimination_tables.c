// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/elimination_tables.h"

#include "layouts/base/error.h"

#define MOST_NODES 2000
#define MOST_ROWS 20000000 /* of a table */

/* What all tables are made from. */
typedef struct Source {
    const MtfPointBound *bound;
    const MtfCertifiedProblem *problem;
    MtfInt128 slack;
} Source;

/* The values that a table's nodes take while its rows are found: those of the scope, then the node's own. */
typedef struct Walk {
    const Source *source;
    MtfTables *tables;
    MtfTable *table;
    int *nodes, *values; /* [width + 1] */
    GArray **edges; /* [width + 1] int, pairs: an edge to the node at an earlier place, the place */
    int **
        range_begin; /* [children][levels of theirs + 1] tuples that agree with the values so far */
    int **range_end;
    MtfInt128 ahead; /* the least of all children together */
} Walk;

MtfTableRow *mtf_table_row(const MtfTable *table, int row) {
    return &g_array_index(table->rows, MtfTableRow, row);
}

MtfTableTuple *mtf_table_tuple(const MtfTable *table, int tuple) {
    return &g_array_index(table->tuples, MtfTableTuple, tuple);
}

int mtf_table_tuple_count(const MtfTable *table) {
    return (int)table->tuples->len - 1;
}

int mtf_table_below(const MtfTable *table, int row, int child) {
    return g_array_index(table->below, int, (guint)row * table->children->len + (guint)child);
}

static int scope_at(const MtfTable *table, int place) {
    return g_array_index(table->scope, int, place);
}

static int width_of(const MtfTable *table) {
    return (int)table->scope->len;
}

static int child_at(const MtfTable *table, int c) {
    return g_array_index(table->children, int, c);
}

static MtfTable *child_of(const Walk *walk, int c) {
    return &walk->tables->tables[child_at(walk->table, c)];
}

/* ---- the order ---- */

/* Where each node stands in the order; -1: nowhere. NULL where that is no order of the living nodes. */
static int *find_positions(const MtfCertifiedProblem *problem, const GArray *order,
                           GError **error) {
    g_autofree int *position = g_new(int, problem->node_count + 1);
    for (int v = 0; v < problem->node_count; v++)
        position[v] = -1;
    for (guint i = 0; i < order->len; i++) {
        int v = g_array_index(order, int, i);
        if (position[v] >= 0) {
            mtf_input_error(error, "the order has node %d twice", v);
            return NULL;
        }
        position[v] = (int)i;
    }
    for (int v = 0; v < problem->node_count; v++)
        if (problem->nodes[v].alive && position[v] < 0) {
            mtf_input_error(error, "the order leaves out node %d", v);
            return NULL;
        }
    return g_steal_pointer(&position);
}

/* near[i * count + j]: the nodes at positions i and j have an edge. */
static bool *find_near(const MtfCertifiedProblem *problem, const int *position, int count) {
    bool *near = g_new0(bool, (gsize)count *(gsize)count + 1);
    for (guint e = 0; e < problem->edges->len; e++) {
        const MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, (int)e);
        if (edge->a < 0)
            continue;
        gsize i = (gsize)position[edge->a], j = (gsize)position[edge->b];
        near[i * (gsize)count + j] = near[j * (gsize)count + i] = true;
    }
    return near;
}

/* Finds scope and parent of the table at a position; those in the scope become near one another. */
static void find_scope(MtfTables *tables, const GArray *order, bool *near, int at) {
    gsize count = (gsize)tables->count;
    MtfTable *table = &tables->tables[at];
    int parent = at + 1; /* where the scope is empty, so that all tables are one tree */
    for (int j = tables->count - 1; j > at; j--) {
        if (!near[(gsize)at * count + (gsize)j])
            continue;
        g_array_append_val(table->scope, g_array_index(order, int, j));
        parent = j;
        for (int k = j + 1; k < tables->count; k++)
            if (near[(gsize)at * count + (gsize)k])
                near[(gsize)j * count + (gsize)k] = near[(gsize)k * count + (gsize)j] = true;
    }
    if (parent < tables->count)
        g_array_append_val(tables->tables[parent].children, at);
}

static MtfTables *new_tables(const GArray *order) {
    MtfTables *tables = g_new0(MtfTables, 1);
    tables->count = (int)order->len;
    tables->tables = g_new0(MtfTable, order->len + 1);
    for (int i = 0; i < tables->count; i++)
        tables->tables[i] = (MtfTable){
            .node = g_array_index(order, int, i),
            .scope = g_array_new(FALSE, FALSE, sizeof(int)),
            .children = g_array_new(FALSE, FALSE, sizeof(int)),
            .tuples = g_array_new(FALSE, FALSE, sizeof(MtfTableTuple)),
            .values = g_array_new(FALSE, FALSE, sizeof(int)),
            .rows = g_array_new(FALSE, FALSE, sizeof(MtfTableRow)),
            .below = g_array_new(FALSE, FALSE, sizeof(int)),
        };
    return tables;
}

void mtf_tables_free(MtfTables *tables) {
    if (tables == NULL)
        return;
    for (int i = 0; i < tables->count; i++) {
        const MtfTable *table = &tables->tables[i];
        GArray *lists[] = { table->scope,  table->children, table->tuples,
                            table->values, table->rows,     table->below };
        for (gsize k = 0; k < G_N_ELEMENTS(lists); k++)
            g_array_unref(lists[k]);
    }
    g_free(tables->tables);
    g_free(tables);
}

/* ---- the rows of a table ---- */

/* The edges between the node at a place and those at earlier ones. */
static GArray *edges_at(const Walk *walk, int place) {
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(int));
    for (int other = 0; other < place; other++) {
        int e = mtf_certified_edge(walk->source->problem, walk->nodes[place], walk->nodes[other]);
        if (e < 0)
            continue;
        g_array_append_val(edges, e);
        g_array_append_val(edges, other);
    }
    return edges;
}

static void walk_init(Walk *walk, const Source *source, MtfTables *tables, int at) {
    MtfTable *table = &tables->tables[at];
    int width = width_of(table), children = (int)table->children->len;
    *walk = (Walk){ source,
                    tables,
                    table,
                    g_new(int, width + 1),
                    g_new0(int, width + 1),
                    g_new0(GArray *, width + 1),
                    g_new0(int *, children + 1),
                    g_new0(int *, children + 1),
                    0 };
    for (int place = 0; place <= width; place++) {
        walk->nodes[place] = place < width ? scope_at(table, place) : table->node;
        walk->edges[place] = edges_at(walk, place);
    }
    for (int c = 0; c < children; c++) {
        const MtfTable *child = child_of(walk, c);
        MtfInt128 least = source->slack + 1;
        walk->range_begin[c] = g_new0(int, width_of(child) + 1);
        walk->range_end[c] = g_new0(int, width_of(child) + 1);
        walk->range_end[c][0] = mtf_table_tuple_count(child);
        for (int t = 0; t < mtf_table_tuple_count(child); t++)
            least = MIN(least, mtf_table_tuple(child, t)->least);
        walk->ahead += least;
    }
}

static void walk_clear(Walk *walk) {
    for (int place = 0; place <= width_of(walk->table); place++)
        g_array_unref(walk->edges[place]);
    for (guint c = 0; c < walk->table->children->len; c++) {
        g_free(walk->range_begin[c]);
        g_free(walk->range_end[c]);
    }
    g_free(walk->range_begin);
    g_free(walk->range_end);
    g_free(walk->edges);
    g_free(walk->nodes);
    g_free(walk->values);
}

/* The terms of the value at a place and of its entries beside those at earlier ones, and their cost; more
 * than the slack where one is impossible. */
static MtfInt128 terms_at(const Walk *walk, int place, MtfInt128 *cost) {
    const Source *source = walk->source;
    int node = walk->nodes[place], p = walk->values[place];
    MtfInt128 sum = mtf_point_bound_term(source->bound, node, p);
    *cost = source->problem->nodes[node].cost[p];
    for (guint k = 0; k < walk->edges[place]->len && sum <= source->slack; k += 2) {
        int e = g_array_index(walk->edges[place], int, k);
        int other = g_array_index(walk->edges[place], int, k + 1);
        const int64_t *entry =
            mtf_certified_entry(source->problem, e, node, p, walk->values[other]);
        sum += mtf_point_bound_entry_term(source->bound, e, node, p, walk->values[other]);
        *cost += *entry;
    }
    return sum;
}

/* The first tuple of those from `begin` to `end` whose value at a level is at least `value`. */
static int first_of(const MtfTable *table, int begin, int end, int level, int value) {
    while (begin < end) {
        int middle = begin + (end - begin) / 2;
        int found =
            g_array_index(table->values, int, (guint)middle * table->scope->len + (guint)level);
        if (found < value)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Leaves to each child the tuples with the value at a place; false where one has none. */
static bool narrow_children(const Walk *walk, int place) {
    for (guint c = 0; c < walk->table->children->len; c++) {
        const MtfTable *child = child_of(walk, (int)c);
        for (int level = 0; level < width_of(child); level++) {
            if (scope_at(child, level) != walk->nodes[place])
                continue;
            int end = walk->range_end[c][level], value = walk->values[place];
            int first = first_of(child, walk->range_begin[c][level], end, level, value);
            walk->range_begin[c][level + 1] = first;
            walk->range_end[c][level + 1] = first_of(child, first, end, level, value + 1);
            if (first == walk->range_end[c][level + 1])
                return false;
        }
    }
    return true;
}

/* The tuple that is left of a child once all places have a value. */
static int tuple_left(const Walk *walk, int c) {
    return walk->range_begin[c][width_of(child_of(walk, c))];
}

/* Whether the values of the scope are those of the table's last tuple. */
static bool is_last_tuple(const Walk *walk) {
    const MtfTable *table = walk->table;
    guint width = table->scope->len;
    for (guint k = 0; k < width; k++)
        if (table->tuples->len == 0 ||
            g_array_index(table->values, int, table->values->len - width + k) != walk->values[k])
            return false;
    return table->tuples->len > 0;
}

/* Adds the row of all values, where it can be within the slack: `before` are the terms of the scope. */
static void add_row(const Walk *walk, MtfInt128 before, MtfInt128 terms, MtfInt128 cost) {
    MtfTable *table = walk->table;
    MtfInt128 sum = terms;
    for (guint c = 0; c < table->children->len; c++)
        sum += mtf_table_tuple(child_of(walk, (int)c), tuple_left(walk, (int)c))->least;
    if (before + sum > walk->source->slack)
        return;
    if (!is_last_tuple(walk)) {
        MtfTableTuple tuple = { sum, walk->source->slack + 1, (int)table->rows->len };
        g_array_append_val(table->tuples, tuple);
        g_array_append_vals(table->values, walk->values, table->scope->len);
    }
    MtfTableTuple *tuple = mtf_table_tuple(table, (int)table->tuples->len - 1);
    tuple->least = MIN(tuple->least, sum);
    MtfTableRow row = { terms, cost, walk->values[table->scope->len], (int)table->tuples->len - 1 };
    g_array_append_val(table->rows, row);
    for (guint c = 0; c < table->children->len; c++) {
        int below = tuple_left(walk, (int)c);
        g_array_append_val(table->below, below);
    }
}

/* Tries all values from a place on; `before`: the terms of those at earlier ones. */
static void walk_values(const Walk *walk, int place, MtfInt128 before) {
    int values = walk->source->problem->nodes[walk->nodes[place]].values;
    for (int p = 0; p < values && walk->table->rows->len < MOST_ROWS; p++) {
        MtfInt128 cost;
        walk->values[place] = p;
        MtfInt128 terms = terms_at(walk, place, &cost);
        if (before + terms + walk->ahead > walk->source->slack || !narrow_children(walk, place))
            continue;
        if (place < width_of(walk->table))
            walk_values(walk, place + 1, before + terms);
        else
            add_row(walk, before, terms, cost);
    }
}

static bool fill_table(const Source *source, MtfTables *tables, int at, GError **error) {
    Walk walk;
    MtfTable *table = &tables->tables[at];
    walk_init(&walk, source, tables, at);
    walk_values(&walk, 0, 0);
    walk_clear(&walk);
    MtfTableTuple behind = { 0, 0, (int)table->rows->len };
    g_array_append_val(table->tuples, behind);
    return table->rows->len < MOST_ROWS ||
           mtf_input_error(error, "the table of node %d has too many rows", table->node);
}

/* ---- downwards ---- */

/* Tells the children of a row what is outside of them. */
static void tell_children(MtfTables *tables, const MtfTable *table, int r) {
    const MtfTableRow *row = mtf_table_row(table, r);
    MtfInt128 sum = row->terms + mtf_table_tuple(table, row->tuple)->outside;
    for (guint c = 0; c < table->children->len; c++) {
        const MtfTable *child = &tables->tables[child_at(table, (int)c)];
        sum += mtf_table_tuple(child, mtf_table_below(table, r, (int)c))->least;
    }
    for (guint c = 0; c < table->children->len; c++) {
        const MtfTable *child = &tables->tables[child_at(table, (int)c)];
        MtfTableTuple *tuple = mtf_table_tuple(child, mtf_table_below(table, r, (int)c));
        tuple->outside = MIN(tuple->outside, sum - tuple->least);
    }
}

static void go_down(MtfTables *tables) {
    const MtfTable *last = &tables->tables[tables->count - 1];
    if (mtf_table_tuple_count(last) > 0)
        mtf_table_tuple(last, 0)->outside = 0;
    for (int i = tables->count - 1; i >= 0; i--)
        for (guint r = 0; r < tables->tables[i].rows->len; r++)
            tell_children(tables, &tables->tables[i], (int)r);
}

MtfTables *mtf_tables_new(const MtfPointBound *bound, const MtfCertifiedProblem *problem,
                          const GArray *order, int64_t cost, GError **error) {
    if (order->len == 0 || order->len > MOST_NODES) {
        mtf_input_error(error, "an order of 1 to %d nodes is wanted", MOST_NODES);
        return NULL;
    }
    g_autofree int *position = find_positions(problem, order, error);
    if (position == NULL)
        return NULL;
    Source source = { bound, problem, mtf_point_bound_slack(bound, cost) };
    g_assert(source.slack >= 0);
    MtfTables *tables = new_tables(order);
    tables->slack = source.slack;
    g_autofree bool *near = find_near(problem, position, tables->count);
    for (int i = 0; i < tables->count; i++)
        find_scope(tables, order, near, i);
    for (int i = 0; i < tables->count; i++)
        if (!fill_table(&source, tables, i, error)) {
            mtf_tables_free(tables);
            return NULL;
        }
    go_down(tables);
    return tables;
}
