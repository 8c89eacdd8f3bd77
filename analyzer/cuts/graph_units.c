// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/graph_units.h"

#include "layouts/graph/loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Narrow places that are wanted, so that there is a choice: a quarter of all, within these. */
#define FEWEST_PLACES 8
#define PLACES 24
/* No atom should be longer than 1 / 4 of the graph. */
#define LONG_ATOMS 4
/* Units before the part that repeats, and behind it, at most: so many, or a share of UNITS_BESIDE as
 * large as theirs of the operations. */
#define UNITS_AT_ENDS 3
#define UNITS_BESIDE 24
/* Where a graph has fewer units than this, what repeats may be cut within, too. */
#define FEW_UNITS 32

/* Infinitely wide: within loops. */
static void close_loops(const MtfGraph *graph, double *crossing) {
    g_autofree bool *within = mtf_loop_places(graph);
    for (int i = 1; i < (int)graph->operations->len; i++)
        if (within[i])
            crossing[i] = INFINITY;
}

/* Bytes that are made before operation i and read from it on, for i = 0 … n. Constants are made
 * anew where they are read. */
static double *find_crossing(const MtfGraph *graph) {
    int n = (int)graph->operations->len;
    double *crossing = g_new0(double, n + 2);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        int producer = mtf_graph_tensor(graph, t)->producer;
        if (producer < 0 || consumers->starts[t + 1] == consumers->starts[t] ||
            mtf_graph_operation(graph, producer)->n_inputs == 0)
            continue;
        double bytes = (double)mtf_graph_tensor_bytes(graph, t);
        crossing[producer + 1] += bytes;
        crossing[consumers->operations[consumers->starts[t + 1] - 1] + 1] -= bytes;
    }
    for (int i = 1; i <= n; i++)
        crossing[i] += crossing[i - 1];
    close_loops(graph, crossing);
    return crossing;
}

static int compare_bytes(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The most bytes that may cross where an atom ends. */
static double widest(const double *crossing, int n) {
    g_autofree double *sorted = g_memdup2(crossing + 1, sizeof(double) * (gsize)MAX(1, n - 1));
    qsort(sorted, (gsize)MAX(0, n - 1), sizeof(double), compare_bytes);
    int places = CLAMP(n / 4, FEWEST_PLACES, PLACES);
    return n > 1 ? sorted[MIN(places, n - 1) - 1] * (1 + 1e-9) : 0;
}

/* Whether more bytes cross at all places within `reach` operations; of equal ones the last counts. */
static bool is_narrowest_near(const double *crossing, int n, int i, int reach) {
    if (!isfinite(crossing[i]))
        return false;
    for (int j = MAX(1, i - reach); j <= MIN(n - 1, i + reach); j++)
        if (crossing[j] < crossing[i] || (j > i && crossing[j] == crossing[i]))
            return false;
    return true;
}

/* The longest stretch between places. */
static int longest_atom(const GArray *begins) {
    int longest = 0;
    for (guint i = 1; i < begins->len; i++)
        longest = MAX(longest, g_array_index(begins, int, i) - g_array_index(begins, int, i - 1));
    return longest;
}

/* Reads something and makes more than a scalar: constants are made anew where they are read, and
 * the loss of its sums may be made once a step (mtf_divide_by_weights). */
static bool is_work(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return op->n_inputs > 0 && mtf_graph_tensor(graph, op->outputs[0])->shape.rank > 0;
}

/* Leaves out places with no work before them, up to the place before, or none behind them. */
static GArray *keep_work(const MtfGraph *graph, GArray *places) {
    GArray *begins = g_array_new(FALSE, FALSE, sizeof(int));
    int n = (int)graph->operations->len, last = n, next = 0;
    while (last > 1 && !is_work(graph, last - 1))
        last--;
    for (guint i = 0; i < places->len; i++) {
        int place = g_array_index(places, int, i);
        bool works = place == 0;
        for (int j = next; j < place && !works; j++)
            works = is_work(graph, j);
        if (place != n && (place >= last || !works))
            continue;
        g_array_append_val(begins, place);
        next = place;
    }
    g_array_unref(places);
    return begins;
}

/* Where atoms begin, and the end: at the narrowest places of all; or where these leave a long stretch,
 * as in convolutional networks, whose activations shrink from layer to layer, at the narrowest of
 * their surroundings. */
static GArray *find_atoms(const MtfGraph *graph, const double *crossing) {
    int n = (int)graph->operations->len;
    GArray *begins = g_array_new(FALSE, FALSE, sizeof(int));
    double most = widest(crossing, n);
    for (int i = 0; i <= n; i++)
        if (i == 0 || i == n || (crossing[i] <= most && isfinite(crossing[i])))
            g_array_append_val(begins, i);
    if (longest_atom(begins) * LONG_ATOMS <= n)
        return keep_work(graph, begins);
    g_array_set_size(begins, 0);
    for (int i = 0; i <= n; i++)
        if (i == 0 || i == n || is_narrowest_near(crossing, n, i, MAX(2, n / (2 * PLACES))))
            g_array_append_val(begins, i);
    return keep_work(graph, begins);
}

static void write_shape(GString *text, const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    g_string_append_printf(text, "%d[", (int)t->dtype);
    for (int i = 0; i < t->shape.rank; i++)
        g_string_append_printf(text, "%d ", t->shape.dims[i]);
    g_string_append_c(text, ']');
}

/* An operation up to names: its row, numbers and shapes, and which of the operations before it in the
 * same stretch it reads. */
static void write_operation(GString *text, const MtfGraph *graph, int index, int begin) {
    const MtfOperation *op = mtf_graph_operation(graph, index);
    const MtfAttributes *a = &op->attributes;
    g_string_append_printf(text, ";%d %d %d %d %d %d %g %g %g %g(", op->kind, a->dimension, a->from,
                           a->to, a->query, a->memory, a->value, a->factor, a->causal, a->epsilon);
    for (int i = 0; i < op->n_inputs; i++) {
        const MtfTensor *input = mtf_graph_tensor(graph, op->inputs[i]);
        int back = input->producer >= begin ? index - input->producer : 0;
        g_string_append_printf(text, "%d:%d ", (int)input->source, back);
        write_shape(text, graph, op->inputs[i]);
    }
    g_string_append(text, ")>");
    for (int i = 0; i < op->n_outputs; i++)
        write_shape(text, graph, op->outputs[i]);
}

/* Numbers stretches of operations so that equal ones have equal numbers. */
static int *number_kinds(const MtfGraph *graph, const int *begin, int count, int *kinds) {
    int *kind = g_new(int, MAX(1, count));
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    *kinds = 0;
    for (int u = 0; u < count; u++) {
        GString *text = g_string_new(NULL);
        for (int i = begin[u]; i < begin[u + 1]; i++)
            write_operation(text, graph, i, begin[u]);
        gpointer number = g_hash_table_lookup(known, text->str);
        if (number == NULL) {
            number = GINT_TO_POINTER(++*kinds);
            g_hash_table_insert(known, g_strdup(text->str), number);
        }
        kind[u] = GPOINTER_TO_INT(number) - 1;
        g_string_free(text, TRUE);
    }
    return kind;
}

/* Atoms [first, first + period × times) repeat. */
typedef struct {
    int first, period, times;
} Repeat;

static void judge_period(const int *kind, int atoms, int period, Repeat *best) {
    int run = 0;
    for (int i = 0; i + period <= atoms; i++) {
        bool again = i + period < atoms && kind[i] == kind[i + period];
        if (again) {
            run++;
            continue;
        }
        int times = (run + period) / period;
        if (run > 0 && times >= 2 && times * period > best->times * best->period)
            *best = (Repeat){ i - run, period, times };
        run = 0;
    }
}

static Repeat find_repeat(const int *kind, int atoms) {
    Repeat best = { 0, 0, 0 };
    for (int period = 1; period <= atoms / 2; period++)
        judge_period(kind, atoms, period, &best);
    return best;
}

/* Divides atoms [from, to) into at most `parts` units of about as many operations. */
static void divide_evenly(const GArray *atoms, int from, int to, int parts, GArray *begins) {
    const int *at = (const int *)(void *)atoms->data;
    int total = at[to] - at[from], made = 0;
    for (int i = from; i < to; i++) {
        bool due = made == 0 || (int64_t)(at[i] - at[from]) * parts >= (int64_t)total * made;
        if (made >= parts || !due)
            continue;
        g_array_append_val(begins, at[i]);
        made++;
    }
}

int mtf_units_a_part(int times, int most) {
    int least = (times + most - 1) / most;
    for (int g = least; g <= 2 * least && g <= times; g++)
        if (times % g == 0)
            return g;
    return least;
}

static int units_of_end(const GArray *atoms, int from, int to) {
    const int *at = (const int *)(void *)atoms->data;
    return MAX(UNITS_AT_ENDS, UNITS_BESIDE * (at[to] - at[from]) / at[atoms->len - 1]);
}

/* Products in a stretch of operations: what is worth a unit of its own. */
static int count_products(const MtfGraph *graph, int begin, int end) {
    int products = 0;
    for (int i = begin; i < end; i++)
        products += mtf_operation_row(mtf_graph_operation(graph, i)->kind)->kernel_class ==
                    MTF_CLASS_MATMUL;
    return products;
}

/* Divides atoms [from, to), a period, into at most `parts` units where no more bytes cross than at its ends:
 * two layers of a perceptron are a period, since the names of their dimensions take turns, and so are
 * attention and the network behind it. */
static void divide_period(const double *crossing, const GArray *atoms, int from, int to, int parts,
                          GArray *begins) {
    const int *at = (const int *)(void *)atoms->data;
    double most = fmax(crossing[at[from]], crossing[at[to]]) * (1 + 1e-9);
    g_autoptr(GArray) narrow = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = from; i <= to; i++)
        if (i == from || i == to || crossing[at[i]] <= most)
            g_array_append_val(narrow, at[i]);
    divide_evenly(narrow, 0, (int)narrow->len - 1, parts, begins);
}

static GArray *merge_atoms(const MtfGraph *graph, const double *crossing, const GArray *atoms,
                           const int *kind, int most) {
    GArray *begins = g_array_new(FALSE, FALSE, sizeof(int));
    int count = (int)atoms->len - 1;
    Repeat repeat = find_repeat(kind, count);
    int end = repeat.first + repeat.period * repeat.times;
    const int *at = (const int *)(void *)atoms->data;
    if ((at[end] - at[repeat.first]) * 2 < at[count]) {
        divide_evenly(atoms, 0, count, most, begins);
        return begins;
    }
    int before = units_of_end(atoms, 0, repeat.first), behind = units_of_end(atoms, end, count);
    int step = repeat.period * mtf_units_a_part(repeat.times, MAX(2, most - before - behind));
    int products = count_products(graph, at[repeat.first], at[repeat.first + repeat.period]);
    int fine = MIN(products, (FEW_UNITS - before - behind) / repeat.times);
    int parts = step > repeat.period ? 1 : MAX(1, fine);
    divide_evenly(atoms, 0, repeat.first, before, begins);
    for (int i = repeat.first; i < end; i += step)
        divide_period(crossing, atoms, i, MIN(i + step, end), parts, begins);
    divide_evenly(atoms, end, count, behind, begins);
    return begins;
}

MtfGraphUnits *mtf_graph_units_new(const MtfGraph *forward, int most) {
    int n = (int)forward->operations->len, kinds;
    g_autofree double *crossing = find_crossing(forward);
    g_autoptr(GArray) atoms = find_atoms(forward, crossing);
    g_autofree int *kind =
        number_kinds(forward, (const int *)(void *)atoms->data, (int)atoms->len - 1, &kinds);
    GArray *begins = merge_atoms(forward, crossing, atoms, kind, most);
    MtfGraphUnits *units = g_new0(MtfGraphUnits, 1);
    units->units = (int)begins->len;
    g_array_append_val(begins, n);
    units->begin = (int *)(void *)g_array_free(begins, FALSE);
    units->kind = number_kinds(forward, units->begin, units->units, &units->kinds);
    units->crossing = g_new0(double, units->units + 1);
    for (int u = 1; u < units->units; u++)
        units->crossing[u] = crossing[units->begin[u]];
    return units;
}

void mtf_graph_units_free(MtfGraphUnits *units) {
    if (units == NULL)
        return;
    g_free(units->begin);
    g_free(units->kind);
    g_free(units->crossing);
    g_free(units);
}
