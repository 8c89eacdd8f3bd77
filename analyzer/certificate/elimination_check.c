// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/elimination_check.h"

#include "analyzer/certificate/elimination_tables.h"
#include "layouts/base/error.h"

#define MOST_LABELS 20000000 /* of a table */

/* The numbers of a label; those of rows follow. */
enum { OF_TERMS, OF_COST, OF_USES };

/* The labels of a table: numbers, [labels][OF_USES + rows], and the first label of each tuple. */
typedef struct TableLabels {
    GArray *numbers; /* MtfInt128 */
    GArray *first;   /* int, and one behind all */
} TableLabels;

/* The least and the most that nodes can use of a row. */
typedef struct Range {
    MtfInt128 least, most;
} Range;

typedef struct Labelling {
    const MtfCertifiedProblem *problem;
    const MtfTables *tables;
    const MtfEliminationClaim *claim;
    guint width;         /* numbers of a label */
    bool all_count;      /* every row with a price is one of those that count */
    MtfInt128 **use;     /* [tables] of their nodes, [values][rows] */
    Range **outside;     /* [tables][rows] of all nodes but those of a table and below it */
    MtfInt128 *capacity; /* [rows] but not more than all nodes can use */
    TableLabels *labels; /* [tables] */
} Labelling;

static guint row_count(const Labelling *labelling) {
    return labelling->claim->rows->len;
}

static int row_at(const Labelling *labelling, guint k) {
    return g_array_index(labelling->claim->rows, int, k);
}

static MtfInt128 *label_at(const GArray *numbers, guint width, guint label) {
    return &g_array_index(numbers, MtfInt128, label * width);
}

static const MtfTable *child_of(const Labelling *labelling, const MtfTable *table, guint c) {
    return &labelling->tables->tables[g_array_index(table->children, int, c)];
}

/* ---- memory ---- */

/* [values][rows] of a table's node; NULL where a sum is too large. */
static MtfInt128 *find_use(const Labelling *labelling, const MtfTable *table) {
    GPtrArray *spans = mtf_certified_spans(labelling->problem, table->node);
    if (spans == NULL)
        return NULL;
    int values = labelling->problem->nodes[table->node].values;
    guint rows = row_count(labelling);
    MtfInt128 *use = g_new0(MtfInt128, (gsize)values * rows + 1);
    for (guint s = 0; s < spans->len; s++) {
        const MtfCertifiedSpan *span = g_ptr_array_index(spans, s);
        for (guint k = 0; k < rows; k++) {
            int r = row_at(labelling, k);
            for (int p = 0; p < values && span->first <= r && r < span->last; p++)
                use[(guint)p * rows + k] += span->usage[p];
        }
    }
    g_ptr_array_unref(spans);
    return use;
}

static Range range_of(const MtfInt128 *use, int values, guint rows, guint k) {
    Range range = { use[k], use[k] };
    for (int p = 1; p < values; p++) {
        range.least = MIN(range.least, use[(guint)p * rows + k]);
        range.most = MAX(range.most, use[(guint)p * rows + k]);
    }
    return range;
}

/* What lies at and below each table, children first; then what lies outside is the rest of the whole. */
static void find_outside(Labelling *labelling) {
    guint rows = row_count(labelling);
    int count = labelling->tables->count;
    for (int i = 0; i < count; i++) {
        const MtfTable *table = &labelling->tables->tables[i];
        int values = labelling->problem->nodes[table->node].values;
        labelling->outside[i] = g_new0(Range, rows + 1);
        for (guint k = 0; k < rows; k++) {
            Range range = range_of(labelling->use[i], values, rows, k);
            for (guint c = 0; c < table->children->len; c++) {
                Range of_child = labelling->outside[g_array_index(table->children, int, c)][k];
                range.least += of_child.least;
                range.most += of_child.most;
            }
            labelling->outside[i][k] = range;
        }
    }
    for (guint k = 0; k < rows; k++) {
        Range whole = labelling->outside[count - 1][k];
        labelling->capacity[k] =
            MIN(labelling->problem->capacity[row_at(labelling, k)], whole.most);
        for (int i = 0; i < count; i++) {
            Range *range = &labelling->outside[i][k];
            *range = (Range){ whole.least - range->least, whole.most - range->most };
        }
    }
}

/* False where a row overflows even if all nodes outside use their least. */
static bool fits(const Labelling *labelling, int at, const MtfInt128 *label) {
    for (guint k = 0; k < row_count(labelling); k++)
        if (label[OF_USES + k] + labelling->outside[at][k].least > labelling->capacity[k])
            return false;
    return true;
}

/* Where a row does not overflow even if all nodes outside use their most, less use is no better. Raised uses
 * stay within the most of their nodes, as the capacity is within that of all; so where one was raised, they
 * fit together whatever the others use. */
static void level_uses(const Labelling *labelling, int at, GArray *labels) {
    for (guint i = 0; i < labels->len / labelling->width; i++)
        for (guint k = 0; k < row_count(labelling); k++) {
            MtfInt128 *use = &label_at(labels, labelling->width, i)[OF_USES + k];
            *use = MAX(*use, labelling->capacity[k] - labelling->outside[at][k].most);
        }
}

/* ---- which labels are needed ---- */

static int compare_labels(gconstpointer left, gconstpointer right, gpointer width) {
    const MtfInt128 *x = left, *y = right;
    for (guint i = OF_COST; i < GPOINTER_TO_UINT(width); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return x[OF_TERMS] < y[OF_TERMS] ? -1 : x[OF_TERMS] > y[OF_TERMS];
}

/* Whether x is more than y in nothing that decides what can be added: where all rows with a price count, terms
 * decide nothing that cost and use do not. */
static bool is_no_more(const Labelling *labelling, const MtfInt128 *x, const MtfInt128 *y) {
    for (guint i = labelling->all_count ? OF_COST : OF_TERMS; i < labelling->width; i++)
        if (x[i] > y[i])
            return false;
    return true;
}

/* Appends to `kept` what no label of `labels` makes needless; with a single row the last one kept is that of
 * least use. */
static void keep_needed(const Labelling *labelling, GArray *labels, GArray *kept) {
    guint width = labelling->width, count = labels->len / width, first = kept->len / width;
    bool only_last = labelling->all_count && row_count(labelling) <= 1;
    g_qsort_with_data(labels->data, (gint)count, width * sizeof(MtfInt128), compare_labels,
                      GUINT_TO_POINTER(width));
    for (guint i = 0; i < count; i++) {
        const MtfInt128 *label = label_at(labels, width, i);
        bool needed = true;
        for (guint k = kept->len / width; k > first && needed; k--) {
            needed = !is_no_more(labelling, label_at(kept, width, k - 1), label);
            if (only_last)
                break;
        }
        if (needed)
            g_array_append_vals(kept, label, width);
    }
}

/* ---- the labels of a tuple ---- */

/* The label of a row without its children. */
static void begin_row(const Labelling *labelling, int at, const MtfTableRow *row, GArray *labels) {
    guint rows = row_count(labelling);
    MtfInt128 numbers[OF_USES] = { row->terms, row->cost };
    g_array_set_size(labels, 0);
    g_array_append_vals(labels, numbers, OF_USES);
    g_array_append_vals(labels, labelling->use[at] + (guint)row->value * rows, rows);
}

/* Every label at hand with every one of a child's tuple, as far as that can be of use: `rest` is the least that
 * all other terms come to. */
static void add_child(const Labelling *labelling, int at, const MtfInt128 rest, GArray *labels,
                      const TableLabels *of_child, int tuple) {
    guint width = labelling->width;
    guint first = (guint)g_array_index(of_child->first, int, tuple);
    guint end = (guint)g_array_index(of_child->first, int, tuple + 1);
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(MtfInt128));
    g_autofree MtfInt128 *sum = g_new(MtfInt128, width);
    for (guint i = 0; i < labels->len / width; i++)
        for (guint l = first; l < end; l++) {
            for (guint k = 0; k < width; k++)
                sum[k] = label_at(labels, width, i)[k] + label_at(of_child->numbers, width, l)[k];
            if (sum[OF_TERMS] + rest <= labelling->tables->slack && fits(labelling, at, sum))
                g_array_append_vals(sums, sum, width);
        }
    g_array_set_size(labels, 0);
    keep_needed(labelling, sums, labels);
}

/* Appends the labels of a row to those of its tuple. */
static void find_row(const Labelling *labelling, int at, int r, GArray *of_tuple) {
    const MtfTable *table = &labelling->tables->tables[at];
    const MtfTableRow *row = mtf_table_row(table, r);
    MtfInt128 rest = mtf_table_tuple(table, row->tuple)->outside;
    for (guint c = 0; c < table->children->len; c++)
        rest += mtf_table_tuple(child_of(labelling, table, c), mtf_table_below(table, r, (int)c))
                    ->least;
    if (row->terms + rest > labelling->tables->slack)
        return;
    g_autoptr(GArray) labels = g_array_new(FALSE, FALSE, sizeof(MtfInt128));
    begin_row(labelling, at, row, labels);
    if (!fits(labelling, at, label_at(labels, labelling->width, 0)))
        return;
    for (guint c = 0; c < table->children->len; c++) {
        int tuple = mtf_table_below(table, r, (int)c);
        rest -= mtf_table_tuple(child_of(labelling, table, c), tuple)->least;
        add_child(labelling, at, rest, labels,
                  &labelling->labels[g_array_index(table->children, int, c)], tuple);
    }
    g_array_append_vals(of_tuple, labels->data, labels->len);
}

static bool find_labels(const Labelling *labelling, int at, GError **error) {
    const MtfTable *table = &labelling->tables->tables[at];
    TableLabels *labels = &labelling->labels[at];
    g_autoptr(GArray) of_tuple = g_array_new(FALSE, FALSE, sizeof(MtfInt128));
    for (int t = 0; t < mtf_table_tuple_count(table); t++) {
        int first = (int)(labels->numbers->len / labelling->width);
        g_array_append_val(labels->first, first);
        g_array_set_size(of_tuple, 0);
        for (int r = mtf_table_tuple(table, t)->first; r < mtf_table_tuple(table, t + 1)->first;
             r++)
            find_row(labelling, at, r, of_tuple);
        level_uses(labelling, at, of_tuple);
        keep_needed(labelling, of_tuple, labels->numbers);
        if (labels->numbers->len / labelling->width > MOST_LABELS)
            return mtf_input_error(error, "the table of node %d has too many labels", table->node);
    }
    int end = (int)(labels->numbers->len / labelling->width);
    g_array_append_val(labels->first, end);
    return true;
}

/* ---- the claim ---- */

/* Whether the last table has a label of at most K. */
static bool is_within(const Labelling *labelling) {
    const GArray *numbers = labelling->labels[labelling->tables->count - 1].numbers;
    for (guint i = 0; i < numbers->len / labelling->width; i++)
        if (labelling->problem->constant + label_at(numbers, labelling->width, i)[OF_COST] <=
            labelling->claim->cutoff)
            return true;
    return false;
}

static bool find_all_labels(Labelling *labelling, GError **error) {
    int count = labelling->tables->count;
    for (int i = 0; i < count; i++) {
        labelling->use[i] = find_use(labelling, &labelling->tables->tables[i]);
        if (labelling->use[i] == NULL)
            return mtf_input_error(error, "a sum leaves 64 bits");
    }
    find_outside(labelling);
    for (int i = 0; i < count; i++)
        if (!find_labels(labelling, i, error))
            return false;
    return true;
}

static Labelling *new_labelling(const MtfCertifiedProblem *problem, const MtfTables *tables,
                                const MtfEliminationClaim *claim, bool all_count) {
    Labelling *labelling = g_new(Labelling, 1);
    gsize count = (gsize)tables->count;
    *labelling = (Labelling){ problem,
                              tables,
                              claim,
                              OF_USES + claim->rows->len,
                              all_count,
                              g_new0(MtfInt128 *, count),
                              g_new0(Range *, count),
                              g_new0(MtfInt128, claim->rows->len + 1),
                              g_new0(TableLabels, count) };
    for (gsize i = 0; i < count; i++)
        labelling->labels[i] = (TableLabels){ g_array_new(FALSE, FALSE, sizeof(MtfInt128)),
                                              g_array_new(FALSE, FALSE, sizeof(int)) };
    return labelling;
}

static void free_labelling(Labelling *labelling) {
    for (int i = 0; i < labelling->tables->count; i++) {
        g_free(labelling->use[i]);
        g_free(labelling->outside[i]);
        g_array_unref(labelling->labels[i].numbers);
        g_array_unref(labelling->labels[i].first);
    }
    g_free(labelling->use);
    g_free(labelling->outside);
    g_free(labelling->capacity);
    g_free(labelling->labels);
    g_free(labelling);
}

/* Whether every row that the point has a price for is one of the claim's. */
static bool priced_rows_count(const MtfPointBound *bound, const MtfCertifiedProblem *problem,
                              const GArray *rows) {
    for (int r = 0; r < problem->rows; r++) {
        bool counts = mtf_point_bound_price(bound, r) == 0;
        for (guint k = 0; k < rows->len && !counts; k++)
            counts = g_array_index(rows, int, k) == r;
        if (!counts)
            return false;
    }
    return true;
}

bool mtf_elimination_holds(const MtfPointBound *bound, const MtfCertifiedProblem *problem,
                           const MtfEliminationClaim *claim, GError **error) {
    if (mtf_point_bound_exceeds(bound, claim->cutoff))
        return true;
    MtfTables *tables = mtf_tables_new(bound, problem, claim->order, claim->cutoff, error);
    if (tables == NULL)
        return false;
    bool all_count = priced_rows_count(bound, problem, claim->rows);
    Labelling *labelling = new_labelling(problem, tables, claim, all_count);
    bool found = find_all_labels(labelling, error);
    bool holds = found && !is_within(labelling);
    free_labelling(labelling);
    mtf_tables_free(tables);
    return holds ||
           (found && mtf_input_error(error, "a choice of at most %" G_GINT64_FORMAT " is left",
                                     claim->cutoff));
}
