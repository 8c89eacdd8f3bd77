// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/elimination/bucket_labels.h"

#include <string.h>

#define ASK_EVERY 65536      /* labels combined */
#define MOST_LABELS 30000000 /* that are kept of all tuples */

/* What each label holds, in a list of numbers. */
enum { OF_TERMS, OF_COST, OF_USES };

/* Labels in a list: numbers, [labels][OF_USES + rows], and what they were made of, [labels][1 + children]:
 * the row of the table and a label of each child. */
typedef struct Labels {
    GArray *numbers, *parts; /* int64_t, int */
    int count;
} Labels;

/* The labels of a bucket, by tuple: those of tuple t begin at first[t]. */
typedef struct BucketLabels {
    Labels all;
    int *first; /* [tuples + 1] */
} BucketLabels;

/* Most and least use of a row over all values, of the nodes below a bucket or outside of it. */
typedef struct Range {
    int64_t least, most;
} Range;

typedef struct Search {
    MtfBucketTuples *tuples;
    const MtfLabelRows *rows;
    BucketLabels *buckets;
    int64_t capacity[MTF_MOST_LABEL_ROWS]; /* at most what all values can use */
    Range *outside;                        /* [buckets][rows] */
    int64_t **use;                         /* [buckets] of its node, [values][rows] */
    Labels now, more;                      /* scratch: of one tuple */
    guint parts;                           /* of each label at hand */
    GArray *order;                         /* int, scratch */
    int64_t work, most_work, kept;
    const MtfSearchControl *control;
    bool over;
} Search;

/* The first number by which labels are compared. What costs less and uses less in all rows with a price has
 * the smaller terms anyway, or fits wherever the other does; else terms count, too. */
static gsize first_of(const Search *search) {
    return search->rows->all_priced ? OF_COST : OF_TERMS;
}

static gsize width_of(const Search *search) {
    return OF_USES + (gsize)search->rows->count;
}

static int64_t *numbers_of(const Search *search, const Labels *labels, int label) {
    return &g_array_index(labels->numbers, int64_t, (gsize)label * width_of(search));
}

/* What a label was made of, in a list whose labels are made of `parts` each. */
static const int *parts_of(const Labels *labels, int label, guint parts) {
    gsize first = (gsize)label * parts;
    return &g_array_index(labels->parts, int, first);
}

static const GArray *children_of(const Search *search, int index) {
    return search->tuples->tree->buckets[index].children;
}

static void labels_init(Labels *labels) {
    labels->numbers = g_array_new(FALSE, FALSE, sizeof(int64_t));
    labels->parts = g_array_new(FALSE, FALSE, sizeof(int));
    labels->count = 0;
}

static void labels_clear(Labels *labels) {
    g_clear_pointer(&labels->numbers, g_array_unref);
    g_clear_pointer(&labels->parts, g_array_unref);
}

static void labels_empty(Labels *labels) {
    g_array_set_size(labels->numbers, 0);
    g_array_set_size(labels->parts, 0);
    labels->count = 0;
}

/* ---- memory ---- */

static int64_t use_of(const MtfCoreNode *node, int row, int p) {
    int64_t sum = 0;
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        sum += row >= piece->first && row < piece->last ? piece->usage[p] : 0;
    }
    return sum;
}

static Range range_of(const int64_t *use, int values, int rows, int k) {
    Range range = { INT64_MAX, 0 };
    for (int p = 0; p < values; p++) {
        range.least = MIN(range.least, use[p * rows + k]);
        range.most = MAX(range.most, use[p * rows + k]);
    }
    return range;
}

/* What lies below each bucket, children first; then what lies outside is the rest of the whole. */
static void find_ranges(Search *search) {
    const MtfEliminationTree *tree = search->tuples->tree;
    int rows = search->rows->count, last = tree->count - 1;
    Range *below = search->outside;
    for (int i = 0; i <= last; i++)
        for (int k = 0; k < rows; k++) {
            Range *range = &below[i * rows + k];
            int values = search->tuples->terms->core->nodes[tree->buckets[i].node].values;
            *range = range_of(search->use[i], values, rows, k);
            for (guint c = 0; c < tree->buckets[i].children->len; c++) {
                int child = g_array_index(tree->buckets[i].children, int, c);
                range->least += below[child * rows + k].least;
                range->most += below[child * rows + k].most;
            }
        }
    for (int k = 0; k < rows; k++) {
        int64_t capacity = search->tuples->terms->core->capacity[search->rows->rows[k]];
        search->capacity[k] = MIN(capacity, below[last * rows + k].most);
    }
    for (int i = 0; i <= last; i++)
        for (int k = 0; k < rows; k++) {
            Range *range = &search->outside[i * rows + k], whole = below[last * rows + k];
            *range = (Range){ whole.least - range->least, whole.most - range->most };
        }
}

static void find_uses(Search *search) {
    const MtfEliminationTree *tree = search->tuples->tree;
    for (int i = 0; i < tree->count; i++) {
        const MtfCoreNode *node = &search->tuples->terms->core->nodes[tree->buckets[i].node];
        int rows = search->rows->count;
        search->use[i] = g_new(int64_t, node->values * rows + 1);
        for (int p = 0; p < node->values; p++)
            for (int k = 0; k < rows; k++)
                search->use[i][p * rows + k] = use_of(node, search->rows->rows[k], p);
    }
}

/* What a row has left for what is below a bucket when all outside of it uses its least, or its most. */
static Range room_of(const Search *search, int index, int k) {
    int64_t capacity = search->capacity[k];
    const Range *outside = &search->outside[index * search->rows->count + k];
    return (Range){ capacity - outside->most, capacity - outside->least };
}

/* False where a row cannot but overflow. */
static bool fits(const Search *search, int index, const int64_t *numbers) {
    for (int k = 0; k < search->rows->count; k++)
        if (numbers[OF_USES + k] > room_of(search, index, k).most)
            return false;
    return true;
}

/* Raises the uses of whole labels to what can never matter. */
static void raise_uses(const Search *search, int index, Labels *labels) {
    for (int i = 0; i < labels->count; i++)
        for (int k = 0; k < search->rows->count; k++) {
            int64_t *use = &numbers_of(search, labels, i)[OF_USES + k];
            *use = MAX(*use, room_of(search, index, k).least);
        }
}

/* ---- the labels of a tuple ---- */

static int compare_labels(gconstpointer left, gconstpointer right, gpointer data) {
    const Search *search = data;
    const int64_t *x = numbers_of(search, &search->now, *(const int *)left);
    const int64_t *y = numbers_of(search, &search->now, *(const int *)right);
    for (gsize i = OF_COST; i < width_of(search); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    if (x[OF_TERMS] != y[OF_TERMS])
        return x[OF_TERMS] < y[OF_TERMS] ? -1 : 1;
    return *(const int *)left - *(const int *)right;
}

static bool is_no_worse(const Search *search, const int64_t *x, const int64_t *y) {
    for (gsize i = first_of(search); i < width_of(search); i++)
        if (x[i] > y[i])
            return false;
    return true;
}

static void append_label(const Search *search, Labels *to, const Labels *from, int label,
                         guint parts) {
    g_array_append_vals(to->numbers, numbers_of(search, from, label), (guint)width_of(search));
    g_array_append_vals(to->parts, parts_of(from, label, parts), parts);
    to->count++;
}

/* Whether one of the labels from number `first` on, which cost no more, dominates this one. With a single
 * row the last of them uses the least. */
static bool is_needless(Search *search, const Labels *labels, int first, const int64_t *numbers) {
    if (search->rows->count <= 1 && search->rows->all_priced)
        first = MAX(first, labels->count - 1);
    for (int i = labels->count - 1; i >= first; i--) {
        search->work++;
        if (is_no_worse(search, numbers_of(search, labels, i), numbers))
            return true;
    }
    return false;
}

/* Appends those of the labels at hand that no other one makes needless, cheapest first. */
static void append_best(Search *search, Labels *to, guint parts) {
    int first = to->count;
    g_array_set_size(search->order, (guint)search->now.count);
    for (int i = 0; i < search->now.count; i++)
        g_array_index(search->order, int, i) = i;
    g_array_sort_with_data(search->order, compare_labels, search);
    for (int i = 0; i < search->now.count && !search->over; i++) {
        int label = g_array_index(search->order, int, i);
        if (!is_needless(search, to, first, numbers_of(search, &search->now, label)))
            append_label(search, to, &search->now, label, parts);
        search->over |= search->work > search->most_work;
    }
}

/* Adds a child's label to one at hand, if that may still come to something: `rest` is what all terms
 * elsewhere come to at least. */
static void combine(Search *search, int index, int at_hand, int64_t rest, const Labels *child,
                    int label) {
    gsize width = width_of(search);
    const int64_t *x = numbers_of(search, &search->now, at_hand);
    const int64_t *y = numbers_of(search, child, label);
    if (x[OF_TERMS] + y[OF_TERMS] + rest > search->tuples->terms->slack)
        return;
    Labels *to = &search->more;
    g_array_set_size(to->numbers, (guint)((gsize)(to->count + 1) * width));
    int64_t *sum = numbers_of(search, to, to->count);
    for (gsize i = 0; i < width; i++)
        sum[i] = x[i] + y[i];
    if (!fits(search, index, sum))
        return;
    g_array_append_vals(to->parts, parts_of(&search->now, at_hand, search->parts), search->parts);
    g_array_append_val(to->parts, label);
    to->count++;
}

static void swap_scratch(Search *search) {
    Labels labels = search->now;
    search->now = search->more;
    search->more = labels;
    labels_empty(&search->more);
}

/* All labels at hand with all of a child's tuple, and the best of them. */
static void combine_child(Search *search, int index, int child, int tuple, int64_t rest) {
    const BucketLabels *of_child = &search->buckets[child];
    for (int i = 0; i < search->now.count && !search->over; i++)
        for (int l = of_child->first[tuple]; l < of_child->first[tuple + 1]; l++) {
            if (++search->work % ASK_EVERY == 0)
                search->over |= mtf_search_is_over(search->control);
            combine(search, index, i, rest, &of_child->all, l);
        }
    search->over |= search->work > search->most_work;
    swap_scratch(search);
    append_best(search, &search->more, ++search->parts);
    swap_scratch(search);
}

/* The label of a row before its children, alone at hand. */
static void begin_row(Search *search, int index, int r) {
    const MtfPricedTerms *terms = search->tuples->terms;
    const MtfBucketRow *row = mtf_bucket_table_row(&search->tuples->tables[index], r);
    int node = search->tuples->tree->buckets[index].node, rows = search->rows->count;
    int64_t edges = (row->terms - terms->node[node][row->value]) >> terms->shift;
    int64_t cost = terms->core->nodes[node].cost[row->value] + edges;
    labels_empty(&search->now);
    g_array_append_val(search->now.numbers, row->terms);
    g_array_append_val(search->now.numbers, cost);
    g_array_append_vals(search->now.numbers, search->use[index] + row->value * rows, (guint)rows);
    g_array_append_val(search->now.parts, r);
    search->now.count = 1;
    search->parts = 1;
}

/* Leaves at hand the best labels of a row. */
static void find_row(Search *search, int index, int r, int64_t outside) {
    const GArray *children = children_of(search, index);
    const MtfBucketTable *table = &search->tuples->tables[index];
    const int *below = &g_array_index(table->below, int, (gsize)r * children->len);
    int64_t rest = outside;
    for (guint c = 0; c < children->len; c++) {
        const MtfBucketTable *child = &search->tuples->tables[g_array_index(children, int, c)];
        rest += mtf_bucket_table_tuple(child, below[c])->least;
    }
    begin_row(search, index, r);
    if (!fits(search, index, numbers_of(search, &search->now, 0)))
        labels_empty(&search->now);
    for (guint c = 0; c < children->len && !search->over; c++) {
        int child = g_array_index(children, int, c);
        rest -= mtf_bucket_table_tuple(&search->tuples->tables[child], below[c])->least;
        combine_child(search, index, child, below[c], rest);
    }
}

static void find_tuple(Search *search, int index, int t) {
    const MtfBucketTable *table = &search->tuples->tables[index];
    const MtfTrieNode *tuple = mtf_bucket_table_tuple(table, t);
    guint parts = 1 + children_of(search, index)->len;
    Labels all;
    labels_init(&all);
    for (int r = tuple->first; r < tuple[1].first && !search->over; r++) {
        if (mtf_bucket_table_row(table, r)->terms >= MTF_TERM_NEVER)
            continue;
        find_row(search, index, r, table->outside[t]);
        for (int i = 0; i < search->now.count; i++)
            append_label(search, &all, &search->now, i, parts);
    }
    Labels scratch = search->now;
    search->now = all;
    raise_uses(search, index, &search->now);
    append_best(search, &search->buckets[index].all, parts);
    search->now = scratch;
    labels_clear(&all);
}

/* ---- all buckets ---- */

static void find_bucket(Search *search, int index) {
    int count = mtf_bucket_table_count(&search->tuples->tables[index]);
    BucketLabels *labels = &search->buckets[index];
    labels_init(&labels->all);
    labels->first = g_new(int, count + 1);
    for (int t = 0; t < count; t++) {
        labels->first[t] = labels->all.count;
        if (!search->over)
            find_tuple(search, index, t);
    }
    labels->first[count] = labels->all.count;
    search->kept += labels->all.count;
    search->over |= search->kept > MOST_LABELS;
}

/* Takes the values of a label and of those it was made of. */
static void take_values(const Search *search, int index, int label, int *values) {
    const GArray *children = children_of(search, index);
    const int *parts = parts_of(&search->buckets[index].all, label, 1 + children->len);
    const MtfBucketRow *row = mtf_bucket_table_row(&search->tuples->tables[index], parts[0]);
    values[search->tuples->tree->buckets[index].node] = row->value;
    for (guint c = 0; c < children->len; c++)
        take_values(search, g_array_index(children, int, c), parts[1 + c], values);
}

static void search_init(Search *search, int count) {
    gsize rows = (gsize)search->rows->count;
    search->buckets = g_new0(BucketLabels, count + 1);
    search->outside = g_new0(Range, (gsize)count * rows + 1);
    search->use = g_new0(int64_t *, count + 1);
    search->order = g_array_new(FALSE, FALSE, sizeof(int));
    labels_init(&search->now);
    labels_init(&search->more);
    find_uses(search);
    find_ranges(search);
}

static void search_clear(Search *search, int count) {
    for (int i = 0; i < count; i++) {
        labels_clear(&search->buckets[i].all);
        g_free(search->buckets[i].first);
        g_free(search->use[i]);
    }
    labels_clear(&search->now);
    labels_clear(&search->more);
    g_array_unref(search->order);
    g_free(search->use);
    g_free(search->outside);
    g_free(search->buckets);
}

MtfLabelsStatus mtf_bucket_labels_find(MtfBucketTuples *tuples, const MtfLabelRows *rows,
                                       int64_t most_work, const MtfSearchControl *control,
                                       int *values) {
    int count = tuples->tree->count;
    Search search = { .tuples = tuples, .rows = rows, .most_work = most_work, .control = control };
    search_init(&search, count);
    for (int i = 0; i < count && !search.over; i++)
        find_bucket(&search, i);
    tuples->work += search.work;
    bool found = !search.over && count > 0 && search.buckets[count - 1].all.count > 0;
    if (found) /* the cheapest comes first */
        take_values(&search, count - 1, 0, values);
    MtfLabelsStatus status = search.over ? MTF_LABELS_OPEN
                             : found     ? MTF_LABELS_FOUND
                                         : MTF_LABELS_NONE;
    search_clear(&search, count);
    return status;
}
