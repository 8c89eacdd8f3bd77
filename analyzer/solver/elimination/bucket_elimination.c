// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/elimination/bucket_elimination.h"

#include "analyzer/solver/elimination/bucket_labels.h"
#include "analyzer/solver/reduce/core_values.h"

#define MOST_WIDTH 30

static void first_rows(const MtfCore *core, const double *prices, MtfLabelRows *rows) {
    *rows = (MtfLabelRows){ .all_priced = true };
    for (int r = 0; r < core->rows; r++) {
        bool more = rows->count < MTF_MOST_LABEL_ROWS;
        if (prices[r] > 0 && more)
            rows->rows[rows->count++] = r;
        rows->all_priced &= more || prices[r] <= 0;
    }
}

/* The row that the values overfill by the largest share of its capacity, or -1. */
static int worst_row(const MtfCore *core, const int *values) {
    g_autofree int64_t *use = g_new0(int64_t, core->rows + 1);
    mtf_core_use(core, values, use);
    int worst = -1;
    double most = 0;
    for (int r = 0; r < core->rows; r++) {
        double excess = (double)(use[r] - core->capacity[r]) / (double)MAX(1, core->capacity[r]);
        if (use[r] <= core->capacity[r] || (worst >= 0 && excess <= most))
            continue;
        most = excess;
        worst = r;
    }
    return worst;
}

/* Labels in more and more rows; `*bound` is what the rows `*proving` prove. */
static MtfEliminationStatus search_labels(MtfBucketTuples *tuples,
                                          const MtfElimination *elimination, int *values,
                                          int64_t *bound, MtfLabelRows *proving) {
    const MtfCore *core = tuples->terms->core;
    MtfLabelRows rows;
    first_rows(core, elimination->prices, &rows);
    for (;;) {
        int64_t work = elimination->work - tuples->work;
        MtfLabelsStatus status =
            mtf_bucket_labels_find(tuples, &rows, work, elimination->control, values);
        if (status == MTF_LABELS_OPEN)
            return MTF_ELIMINATION_OPEN;
        *proving = rows;
        if (status == MTF_LABELS_NONE)
            break;
        *bound = mtf_core_cost(core, values);
        int worst = worst_row(core, values);
        if (*bound > elimination->cutoff)
            break;
        if (worst < 0)
            return MTF_ELIMINATION_FOUND;
        if (rows.count == MTF_MOST_LABEL_ROWS)
            return MTF_ELIMINATION_OPEN;
        rows.rows[rows.count++] = worst;
    }
    *bound = elimination->cutoff + 1;
    return MTF_ELIMINATION_NONE;
}

/* Says in which order the nodes go, and which rows' memory then proves the bound. */
static void certify(const MtfBucketTuples *tuples, const MtfLabelRows *rows, int64_t bound) {
    const MtfPricedTerms *terms = tuples->terms;
    const MtfCore *core = terms->core;
    MtfCertificate *certificate = core->certificate;
    mtf_certificate_one(certificate, "guess", bound - 1);
    mtf_certificate_two(certificate, "point", terms->shift, terms->price_shift);
    for (int r = 0; r < core->rows; r++)
        if (terms->price[r] > 0)
            mtf_certificate_two(certificate, "price", core->row_time[r], terms->price[r]);
    mtf_certificate_word(certificate, "end");
    mtf_certificate_begin_line(certificate, "order");
    for (int i = 0; i < tuples->tree->count; i++)
        mtf_certificate_add(certificate, tuples->tree->buckets[i].node);
    mtf_certificate_end_line(certificate);
    mtf_certificate_begin_line(certificate, "buckets");
    mtf_certificate_add(certificate, bound - 1);
    for (int k = 0; k < rows->count; k++)
        mtf_certificate_add(certificate, core->row_time[rows->rows[k]]);
    mtf_certificate_end_line(certificate);
    mtf_certificate_word(certificate, "done");
}

MtfEliminationStatus mtf_bucket_eliminate(const MtfCore *core, const MtfElimination *elimination,
                                          int *values, int64_t *bound) {
    *bound = -MTF_CORE_IMPOSSIBLE;
    g_autoptr(MtfEliminationTree) tree = mtf_elimination_tree_new(core, MOST_WIDTH);
    g_autoptr(MtfPricedTerms) terms =
        tree != NULL ? mtf_priced_terms_new(core, elimination->prices, elimination->cutoff) : NULL;
    if (terms == NULL)
        return MTF_ELIMINATION_WIDE;
    g_autoptr(MtfBucketTuples) tuples = mtf_bucket_tuples_new(tree, terms);
    MtfTuplesStatus status =
        mtf_bucket_tuples_find(tuples, elimination->work, elimination->control);
    if (status == MTF_TUPLES_OPEN)
        return MTF_ELIMINATION_OPEN;
    MtfLabelRows proving = { 0 };
    MtfEliminationStatus found = MTF_ELIMINATION_NONE;
    if (status == MTF_TUPLES_COMPLETE)
        found = search_labels(tuples, elimination, values, bound, &proving);
    else
        *bound = elimination->cutoff + 1;
    if (*bound > elimination->known)
        certify(tuples, &proving, *bound);
    return found;
}
