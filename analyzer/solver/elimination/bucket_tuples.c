// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/elimination/bucket_tuples.h"

#include <string.h>

#define ASK_EVERY 65536    /* values tried */
#define MOST_ROWS 30000000 /* in all tables: about a gigabyte */

/* A term of the value at one place of a join that depends on the value at an earlier place. */
typedef struct Beside {
    const int64_t *matrix;
    int place;
    gsize own_step, other_step;
} Beside;

/* A child that has the node of a place in its scope, there at number `level`. */
typedef struct Narrowing {
    int child, level;
} Narrowing;

/* One node of a join: the scope's, last eliminated first, and behind them the bucket's own. */
typedef struct Place {
    int values;
    const int64_t *terms;
    GArray *besides;    /* Beside */
    GArray *narrowings; /* Narrowing */
} Place;

/* Goes through all values of a bucket's nodes that its children allow, depth first. */
typedef struct Join {
    MtfBucketTuples *tuples;
    MtfBucketTable *table;
    const MtfBucketTable **children; /* [child_count] */
    int child_count;
    int **at;      /* [child_count][level] trie nodes of the values taken so far */
    Place *places; /* [width + 1] */
    int *values;   /* [width + 1] */
    int made;      /* levels of the table's trie that hold the values taken so far */
    int64_t slack, most_work;
    const MtfSearchControl *control;
    bool over;
} Join;

static MtfTrieNode *trie_node(const MtfBucketTable *table, int level, int index) {
    return &g_array_index(table->levels[level], MtfTrieNode, index);
}

int mtf_bucket_table_count(const MtfBucketTable *table) {
    return (int)table->levels[table->width]->len - 1;
}

const MtfTrieNode *mtf_bucket_table_tuple(const MtfBucketTable *table, int tuple) {
    return trie_node(table, table->width, tuple);
}

MtfBucketRow *mtf_bucket_table_row(const MtfBucketTable *table, int row) {
    return &g_array_index(table->rows, MtfBucketRow, row);
}

/* ---- making a table ---- */

static void append_node(const MtfBucketTable *table, int level, int value) {
    bool last = level == table->width;
    guint first = last ? table->rows->len : table->levels[level + 1]->len;
    MtfTrieNode node = { MTF_TERM_NEVER, (int)first, (int16_t)value };
    g_array_append_val(table->levels[level], node);
}

static void begin_table(MtfBucketTable *table, int width) {
    table->width = width;
    table->levels = g_new(GArray *, width + 1);
    for (int level = 0; level <= width; level++)
        table->levels[level] = g_array_new(FALSE, FALSE, sizeof(MtfTrieNode));
    table->rows = g_array_new(FALSE, FALSE, sizeof(MtfBucketRow));
    table->below = g_array_new(FALSE, FALSE, sizeof(int));
    append_node(table, 0, -1);
}

/* Closes the trie by a node behind all, and carries what is least up to the root. */
static void end_table(MtfBucketTable *table) {
    for (int level = 0; level <= table->width; level++)
        append_node(table, level, -1);
    for (int level = table->width - 1; level >= 0; level--)
        for (guint i = 0; i + 1 < table->levels[level]->len; i++) {
            MtfTrieNode *node = trie_node(table, level, (int)i);
            for (int k = node->first; k < node[1].first; k++)
                node->least = MIN(node->least, trie_node(table, level + 1, k)->least);
        }
    table->outside = g_new(int64_t, (gsize)mtf_bucket_table_count(table) + 1);
    for (int t = 0; t < mtf_bucket_table_count(table); t++)
        table->outside[t] = MTF_TERM_NEVER;
}

static void clear_table(MtfBucketTable *table) {
    for (int level = 0; table->levels != NULL && level <= table->width; level++)
        g_array_unref(table->levels[level]);
    g_free(table->levels);
    g_clear_pointer(&table->rows, g_array_unref);
    g_clear_pointer(&table->below, g_array_unref);
    g_free(table->outside);
}

/* ---- the join of a bucket ---- */

/* The terms at a place from an edge to a node at an earlier one, if the edge's other end is there. */
static void add_beside(const Join *join, const MtfBucket *bucket, int place, int node, int e) {
    const MtfPricedTerms *terms = join->tuples->terms;
    const MtfCoreEdge *edge = mtf_core_edge(terms->core, e);
    int other = mtf_core_other_end(edge, node);
    gsize width = (gsize)terms->core->nodes[edge->b].values;
    for (int d = 0; d < place; d++) {
        if (g_array_index(bucket->scope, int, d) != other)
            continue;
        bool first = edge->a == node;
        Beside beside = { terms->edge[e], d, first ? width : 1, first ? 1 : width };
        g_array_append_val(join->places[place].besides, beside);
    }
}

static void add_narrowings(const Join *join, const MtfBucket *bucket, int place, int node) {
    for (int c = 0; c < join->child_count; c++) {
        int child = g_array_index(bucket->children, int, c);
        const GArray *scope = join->tuples->tree->buckets[child].scope;
        for (guint level = 0; level < scope->len; level++) {
            Narrowing narrowing = { c, (int)level };
            if (g_array_index(scope, int, level) == node)
                g_array_append_val(join->places[place].narrowings, narrowing);
        }
    }
}

static void make_place(const Join *join, const MtfBucket *bucket, int place) {
    bool last = place == join->table->width;
    int node = last ? bucket->node : g_array_index(bucket->scope, int, place);
    const MtfPricedTerms *terms = join->tuples->terms;
    const MtfCoreNode *of_core = &terms->core->nodes[node];
    join->places[place] = (Place){ .values = of_core->values,
                                   .terms = terms->node[node],
                                   .besides = g_array_new(FALSE, FALSE, sizeof(Beside)),
                                   .narrowings = g_array_new(FALSE, FALSE, sizeof(Narrowing)) };
    for (guint k = 0; k < of_core->edges->len; k++)
        add_beside(join, bucket, place, node, g_array_index(of_core->edges, int, k));
    add_narrowings(join, bucket, place, node);
}

static void join_init(Join *join, MtfBucketTuples *tuples, int index) {
    const MtfBucket *bucket = &tuples->tree->buckets[index];
    int width = (int)bucket->scope->len, children = (int)bucket->children->len;
    *join = (Join){ .tuples = tuples, .table = &tuples->tables[index], .child_count = children };
    join->slack = tuples->terms->slack;
    join->children = g_new(const MtfBucketTable *, children + 1);
    join->at = g_new(int *, children + 1);
    for (int c = 0; c < children; c++) {
        join->children[c] = &tuples->tables[g_array_index(bucket->children, int, c)];
        join->at[c] = g_new0(int, join->children[c]->width + 1);
    }
    begin_table(join->table, width);
    join->places = g_new0(Place, width + 1);
    join->values = g_new0(int, width + 1);
    for (int place = 0; place <= width; place++)
        make_place(join, bucket, place);
}

static void join_clear(Join *join) {
    for (int place = 0; place <= join->table->width; place++) {
        g_array_unref(join->places[place].besides);
        g_array_unref(join->places[place].narrowings);
    }
    for (int c = 0; c < join->child_count; c++)
        g_free(join->at[c]);
    g_free(join->at);
    g_free(join->children);
    g_free(join->places);
    g_free(join->values);
}

/* The terms of a value beside those at earlier places, or more than the slack. */
static int64_t terms_of(const Join *join, const Place *place, int p) {
    int64_t sum = place->terms[p];
    for (guint k = 0; k < place->besides->len && sum <= join->slack; k++) {
        const Beside *beside = &g_array_index(place->besides, Beside, k);
        gsize q = (gsize)join->values[beside->place];
        sum += beside->matrix[(gsize)p * beside->own_step + q * beside->other_step];
    }
    return sum;
}

/* The child of trie node `parent` with that value, from number `*from` on, which moves along; -1: none. */
static int find_child(const MtfBucketTable *table, int level, int parent, int value, int *from) {
    const MtfTrieNode *node = trie_node(table, level, parent);
    int k = MAX(*from, node->first), end = node[1].first;
    while (k < end && trie_node(table, level + 1, k)->value < value)
        k++;
    *from = k;
    return k < end && trie_node(table, level + 1, k)->value == value ? k : -1;
}

/* Lets the children follow to value p of a place. Changes what they come to at least; false where one
 * of them does not allow it. */
static bool narrow(Join *join, const Place *place, int p, int *from, int64_t *ahead) {
    for (guint k = 0; k < place->narrowings->len; k++) {
        Narrowing narrowing = g_array_index(place->narrowings, Narrowing, k);
        const MtfBucketTable *child = join->children[narrowing.child];
        int *at = join->at[narrowing.child], level = narrowing.level;
        int found = find_child(child, level, at[level], p, &from[k]);
        if (found < 0)
            return false;
        *ahead +=
            trie_node(child, level + 1, found)->least - trie_node(child, level, at[level])->least;
        at[level + 1] = found;
    }
    return true;
}

/* Puts the values of the scope into the trie, if they are not there. */
static void make_tuple(Join *join) {
    for (; join->made < join->table->width; join->made++)
        append_node(join->table, join->made + 1, join->values[join->made]);
}

static void add_row(Join *join, int p, int64_t terms, int64_t ahead) {
    MtfBucketTable *table = join->table;
    make_tuple(join);
    MtfTrieNode *tuple = trie_node(table, table->width, (int)table->levels[table->width]->len - 1);
    tuple->least = MIN(tuple->least, terms + ahead);
    MtfBucketRow row = { terms, (int16_t)p };
    g_array_append_val(table->rows, row);
    join->over |= ++join->tuples->rows > MOST_ROWS;
    for (int c = 0; c < join->child_count; c++)
        g_array_append_val(table->below, join->at[c][join->children[c]->width]);
}

static bool is_over(Join *join) {
    if (++join->tuples->work % ASK_EVERY == 0)
        join->over |= mtf_search_is_over(join->control);
    join->over |= join->tuples->work > join->most_work;
    return join->over;
}

/* Tries all values at a place. `sum`: the terms of those before; `ahead`: the least that the children
 * come to beside them. */
static void extend(Join *join, int at, int64_t sum, int64_t ahead) {
    const Place *place = &join->places[at];
    g_autofree int *from = g_new0(int, place->narrowings->len + 1);
    for (int p = 0; p < place->values && !is_over(join); p++) {
        int64_t terms = terms_of(join, place, p), more = ahead;
        if (sum + terms + ahead > join->slack || !narrow(join, place, p, from, &more) ||
            sum + terms + more > join->slack)
            continue;
        join->values[at] = p;
        join->made = MIN(join->made, at);
        if (at < join->table->width)
            extend(join, at + 1, sum + terms, more);
        else
            add_row(join, p, terms, more);
    }
}

/* ---- up and down ---- */

static bool fill_table(MtfBucketTuples *tuples, int index, int64_t most_work,
                       const MtfSearchControl *control) {
    Join join;
    join_init(&join, tuples, index);
    join.most_work = most_work;
    join.control = control;
    int64_t ahead = 0;
    for (int c = 0; c < join.child_count; c++)
        ahead += trie_node(join.children[c], 0, 0)->least;
    extend(&join, 0, 0, ahead);
    join_clear(&join);
    end_table(&tuples->tables[index]);
    return !join.over;
}

/* Drops a row beyond the slack, or tells its children what is outside of them. */
static void settle_row(MtfBucketTuples *tuples, int index, int r, int64_t outside) {
    MtfBucketTable *table = &tuples->tables[index];
    const GArray *children = tuples->tree->buckets[index].children;
    MtfBucketRow *row = mtf_bucket_table_row(table, r);
    const int *below = &g_array_index(table->below, int, (gsize)r * children->len);
    int64_t sum = outside + row->terms;
    for (guint c = 0; c < children->len && sum <= tuples->terms->slack; c++) {
        const MtfBucketTable *child = &tuples->tables[g_array_index(children, int, c)];
        sum += mtf_bucket_table_tuple(child, below[c])->least;
    }
    if (sum > tuples->terms->slack) {
        row->terms = MTF_TERM_NEVER;
        return;
    }
    for (guint c = 0; c < children->len; c++) {
        MtfBucketTable *child = &tuples->tables[g_array_index(children, int, c)];
        int64_t least = mtf_bucket_table_tuple(child, below[c])->least;
        child->outside[below[c]] = MIN(child->outside[below[c]], sum - least);
    }
}

static void settle_table(MtfBucketTuples *tuples, int index) {
    const MtfBucketTable *table = &tuples->tables[index];
    for (int t = 0; t < mtf_bucket_table_count(table); t++) {
        const MtfTrieNode *tuple = mtf_bucket_table_tuple(table, t);
        for (int r = tuple->first; r < tuple[1].first; r++)
            settle_row(tuples, index, r, table->outside[t]);
    }
}

MtfTuplesStatus mtf_bucket_tuples_find(MtfBucketTuples *tuples, int64_t most_work,
                                       const MtfSearchControl *control) {
    int count = tuples->tree->count;
    if (tuples->terms->slack < 0)
        return MTF_TUPLES_NONE;
    for (int i = 0; i < count; i++) {
        if (!fill_table(tuples, i, most_work, control))
            return MTF_TUPLES_OPEN;
        if (tuples->tables[i].rows->len == 0)
            return MTF_TUPLES_NONE;
    }
    if (count > 0)
        tuples->tables[count - 1].outside[0] = 0;
    for (int i = count - 1; i >= 0; i--)
        settle_table(tuples, i);
    return MTF_TUPLES_COMPLETE;
}

MtfBucketTuples *mtf_bucket_tuples_new(const MtfEliminationTree *tree,
                                       const MtfPricedTerms *terms) {
    MtfBucketTuples *tuples = g_new0(MtfBucketTuples, 1);
    tuples->tree = tree;
    tuples->terms = terms;
    tuples->tables = g_new0(MtfBucketTable, tree->count + 1);
    return tuples;
}

void mtf_bucket_tuples_free(MtfBucketTuples *tuples) {
    if (tuples == NULL)
        return;
    for (int i = 0; i < tuples->tree->count; i++)
        clear_table(&tuples->tables[i]);
    g_free(tuples->tables);
    g_free(tuples);
}
