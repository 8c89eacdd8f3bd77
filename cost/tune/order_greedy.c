// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/order_greedy.h"

typedef struct {
    const MtfOrderModel *model;
    int *left;                    /* of each value: readers that have not run */
    int *missing;                 /* of each instruction: what it waits for that has not run */
    int *next_begins, *followers; /* what waits for an instruction */
    GArray *ready;                /* int, ascending within a stretch's begin */
} Greedy;

static void count_waits(Greedy *greedy) {
    const MtfDependences *waits = greedy->model->waits;
    int n = greedy->model->n;
    greedy->missing = g_new0(int, (gsize)n + 1);
    greedy->next_begins = g_new0(int, (gsize)n + 2);
    greedy->followers = g_new(int, (gsize)waits->begins[n] + 1);
    for (int k = 0; k < waits->begins[n]; k++)
        greedy->next_begins[waits->before[k] + 2]++;
    for (int i = 0; i < n; i++)
        greedy->next_begins[i + 2] += greedy->next_begins[i + 1];
    for (int i = 0; i < n; i++) {
        greedy->missing[i] = waits->begins[i + 1] - waits->begins[i];
        for (int k = waits->begins[i]; k < waits->begins[i + 1]; k++)
            greedy->followers[greedy->next_begins[waits->before[k] + 1]++] = i;
    }
}

static void count_readers(Greedy *greedy) {
    const MtfOrderModel *model = greedy->model;
    greedy->left = g_new0(int, (gsize)model->n_values + 1);
    for (int k = 0; k < model->read_begins[model->n]; k++)
        greedy->left[model->reads[k]]++;
    for (int v = 0; v < model->n_values; v++)
        greedy->left[v] += model->stays[v] ? 1 : 0;
}

/* What running the instruction now adds to the live bytes. */
static int64_t growth(const Greedy *greedy, int i) {
    const MtfOrderModel *model = greedy->model;
    int64_t bytes = 0;
    for (int k = model->write_begins[i]; k < model->write_begins[i + 1]; k++) {
        int value = model->writes[k];
        if (!model->early[value] && greedy->left[value] > 0)
            bytes += model->bytes[value];
    }
    for (int k = model->read_begins[i]; k < model->read_begins[i + 1]; k++)
        if (greedy->left[model->reads[k]] == 1)
            bytes -= model->bytes[model->reads[k]];
    return bytes;
}

/* The index in `ready` of what is run next. */
static guint choose(const Greedy *greedy) {
    guint best = 0;
    int64_t best_growth = INT64_MAX;
    for (guint r = 0; r < greedy->ready->len; r++) {
        int i = g_array_index(greedy->ready, int, r);
        int64_t bytes = growth(greedy, i);
        if (bytes < best_growth ||
            (bytes == best_growth && i < g_array_index(greedy->ready, int, best))) {
            best = r;
            best_growth = bytes;
        }
    }
    return best;
}

/* Runs an instruction: its readings are over, and what waited for it alone is ready, if it lies
 * before the stretch's end; the next segment collects the others when it begins. */
static void run(Greedy *greedy, int i, int end) {
    const MtfOrderModel *model = greedy->model;
    for (int k = model->read_begins[i]; k < model->read_begins[i + 1]; k++)
        greedy->left[model->reads[k]]--;
    for (int k = greedy->next_begins[i]; k < greedy->next_begins[i + 1]; k++) {
        int follower = greedy->followers[k];
        greedy->missing[follower]--;
        if (follower < end && greedy->missing[follower] == 0)
            g_array_append_val(greedy->ready, follower);
    }
}

static bool order_stretch(Greedy *greedy, int *order, int begin, int end, int64_t *work) {
    for (int i = begin; i < end; i++)
        if (greedy->missing[i] == 0)
            g_array_append_val(greedy->ready, i);
    for (int p = begin; p < end; p++) {
        *work -= greedy->ready->len;
        if (*work < 0)
            return false;
        guint r = choose(greedy);
        order[p] = g_array_index(greedy->ready, int, r);
        g_array_remove_index_fast(greedy->ready, r);
        run(greedy, order[p], end);
    }
    return true;
}

int *mtf_order_greedy(const MtfOrderModel *model, int64_t most_work) {
    Greedy greedy = { .model = model, .ready = g_array_new(FALSE, FALSE, sizeof(int)) };
    int *order = g_new(int, (gsize)model->n + 1);
    count_waits(&greedy);
    count_readers(&greedy);
    bool done = true;
    for (int s = 0, begin = 0; s < MTF_SEGMENTS && done; begin = model->ends[s++])
        done = order_stretch(&greedy, order, begin, model->ends[s], &most_work);
    if (!done)
        g_clear_pointer(&order, g_free);
    g_array_unref(greedy.ready);
    g_free(greedy.left);
    g_free(greedy.missing);
    g_free(greedy.next_begins);
    g_free(greedy.followers);
    return order;
}
