// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/import/find_layers.h"

#include "analyzer/import/layer_names.h"
#include "layouts/graph/operation_table.h"

/* Fewer operations are no layer, and more are not looked for. */
#define LEAST_PERIOD 4
#define MOST_PERIOD 4096

#define NONE (-1)

/* The operations that follow from an input, the chain, among which layers are looked for; what follows from
 * variables and constants alone goes with its readers. */
typedef struct {
    MtfGraph *graph;
    GArray *chain; /* operations (int) */
    int *place;    /* by operation: in the chain, or NONE */
    int *kind;     /* by operation: a number that operations of one signature share */
    int *crossing; /* by place: tensors made before it and read from it on */
    bool *taken;   /* by place: it belongs to layers */
    int *first;    /* by tensor: its twin in layer 0 of its block, or NONE */
} Search;

/* `count` times `period` places, from `start` on. */
typedef struct {
    int start, period, count;
} Row;

/* ---- What is alike --------------------------------------------------------------------------- */

static void say_shape(const Search *s, GString *text, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(s->graph, tensor);
    g_string_append_printf(text, " %d[", t->dtype);
    for (int i = 0; i < t->shape.rank; i++)
        g_string_append_printf(text, "%d,", t->shape.dims[i]);
    g_string_append_c(text, ']');
}

static void say_attribute(GString *text, const MtfAttributes *attributes,
                          const MtfAttributeSpec *spec) {
    const void *slot = G_STRUCT_MEMBER_P(attributes, (glong)spec->offset);
    if (spec->type == MTF_ATTRIBUTE_NUMBER)
        g_string_append_printf(text, " %.17g", *(const double *)slot);
    else if (spec->type == MTF_ATTRIBUTE_DIMENSION)
        g_string_append_printf(text, " %d", *(const int *)slot);
    else if (spec->type == MTF_ATTRIBUTE_STRING)
        g_string_append_printf(text, " '%s'", *(char *const *)slot);
    for (int i = 0; spec->type == MTF_ATTRIBUTE_WINDOWS && i < attributes->n_windows; i++) {
        const MtfWindow *w = &attributes->windows[i];
        g_string_append_printf(text, " (%d %d %d %d %d %d %d %d)", w->from, w->to, w->kernel,
                               w->size, w->stride, w->dilation, w->before, w->after);
    }
}

/* What operations of two layers must agree in, but for what they read; free with g_free. */
static char *signature(const Search *s, const MtfOperation *op) {
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%d", op->kind);
    for (const MtfAttributeSpec *spec = mtf_operation_row(op->kind)->attributes; spec->name != NULL;
         spec++)
        say_attribute(text, &op->attributes, spec);
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfTensor *t = mtf_graph_tensor(s->graph, op->inputs[k]);
        g_string_append_c(text, t->source != MTF_SOURCE_VARIABLE ? 'x' : t->frozen ? 'f' : 'v');
        say_shape(s, text, op->inputs[k]);
    }
    for (int k = 0; k < op->n_outputs; k++)
        say_shape(s, text, op->outputs[k]);
    return g_string_free(text, FALSE);
}

static void number_kinds(Search *s) {
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int o = 0; o < (int)s->graph->operations->len; o++) {
        char *text = signature(s, mtf_graph_operation(s->graph, o));
        gpointer number = g_hash_table_lookup(numbers, text);
        if (number == NULL) {
            number = GINT_TO_POINTER((int)g_hash_table_size(numbers) + 1);
            g_hash_table_insert(numbers, g_steal_pointer(&text), number);
        }
        s->kind[o] = GPOINTER_TO_INT(number);
        g_free(text);
    }
}

static void find_chain(Search *s) {
    g_autofree bool *follows = g_new0(bool, s->graph->tensors->len + 1);
    for (int t = 0; t < (int)s->graph->tensors->len; t++)
        follows[t] = mtf_graph_tensor(s->graph, t)->source == MTF_SOURCE_INPUT;
    for (int o = 0; o < (int)s->graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(s->graph, o);
        bool any = false;
        for (int k = 0; k < op->n_inputs; k++)
            any |= follows[op->inputs[k]];
        s->place[o] = any ? (int)s->chain->len : NONE;
        if (any)
            g_array_append_val(s->chain, o);
        for (int k = 0; k < op->n_outputs; k++)
            follows[op->outputs[k]] = any;
    }
}

static const MtfOperation *at(const Search *s, int place) {
    return mtf_graph_operation(s->graph, g_array_index(s->chain, int, place));
}

/* Where in the chain a tensor is made; NONE: elsewhere. */
static int made_at(const Search *s, int tensor) {
    int producer = mtf_graph_tensor(s->graph, tensor)->producer;
    return producer < 0 ? NONE : s->place[producer];
}

static void count_crossing(Search *s) {
    int n = (int)s->chain->len;
    g_autofree int *last = g_new0(int, s->graph->tensors->len + 1);
    for (int p = 0; p < n; p++)
        for (int k = 0; k < at(s, p)->n_inputs; k++)
            last[at(s, p)->inputs[k]] = p;
    for (int t = 0; t < (int)s->graph->tensors->len; t++) {
        int made = made_at(s, t);
        for (int p = made + 1; made != NONE && p <= last[t]; p++)
            s->crossing[p]++;
    }
}

/* ---- Whether a row of operations is layers ------------------------------------------------------ */

static int layer_start(const Row *row, int layer) {
    return row->start + layer * row->period;
}

static bool is_twin(const Search *s, int before, int own);

/* What follows from no input: the same operation on twins. */
static bool is_twin_made(const Search *s, const MtfTensor *before, const MtfTensor *own) {
    if (before->producer < 0 || own->producer < 0 ||
        s->kind[before->producer] != s->kind[own->producer])
        return false;
    const MtfOperation *a = mtf_graph_operation(s->graph, before->producer);
    const MtfOperation *b = mtf_graph_operation(s->graph, own->producer);
    for (int k = 0; k < a->n_inputs; k++)
        if (!is_twin(s, a->inputs[k], b->inputs[k]))
            return false;
    return true;
}

/* Whether two layers may have these tensors, which nothing of the chain makes, in one place. Twins have the same
 * twin in layer 0 wherever they are read. */
static bool is_twin(const Search *s, int before, int own) {
    if (before == own)
        return true;
    int first = s->first[before] == NONE ? before : s->first[before];
    const MtfTensor *a = mtf_graph_tensor(s->graph, before), *b = mtf_graph_tensor(s->graph, own);
    if (a->source != b->source || (s->first[own] != NONE && s->first[own] != first) ||
        (a->source != MTF_SOURCE_VARIABLE && !is_twin_made(s, a, b)))
        return false;
    s->first[own] = first;
    return true;
}

/* Whether an operation of `layer`, at least 1, may read `own` where that of the layer before reads `before`. */
static bool reads_alike(const Search *s, const Row *row, int layer, int before, int own) {
    int made = made_at(s, own);
    if (before == own)
        return true;
    if (made == NONE)
        return made_at(s, before) == NONE && is_twin(s, before, own);
    if (layer == 1 && made >= row->start && made < layer_start(row, 1))
        return made_at(s, before) < row->start; /* what layer 0 begins with */
    if (made < layer_start(row, layer - 1) || made_at(s, before) != made - row->period)
        return false;
    int k = 0;
    while (at(s, made)->outputs[k] != own)
        k++;
    return at(s, made - row->period)->outputs[k] == before;
}

static bool is_alike(const Search *s, const Row *row, int layer) {
    for (int p = layer_start(row, layer); p < layer_start(row, layer + 1); p++) {
        const MtfOperation *before = at(s, p - row->period), *own = at(s, p);
        for (int k = 0; k < own->n_inputs; k++)
            if (!reads_alike(s, row, layer, before->inputs[k], own->inputs[k]))
                return false;
    }
    return true;
}

/* Whether a variable is multiplied in the row, no place is another row's, and no loop is there. */
static bool is_fit(const Search *s, const Row *row) {
    bool weights = false;
    for (int p = row->start; p < layer_start(row, row->count); p++) {
        const MtfOperation *op = at(s, p);
        if (s->taken[p] || op->loop != 0 || mtf_operation_row(op->kind)->loop != MTF_LOOP_NOTHING)
            return false;
        for (int k = 0;
             mtf_operation_row(op->kind)->products != MTF_PRODUCTS_NONE && k < op->n_inputs; k++)
            weights |= made_at(s, op->inputs[k]) == NONE;
    }
    return weights;
}

/* How many layers of the row are alike, whose twins are known then. */
static int find_twins(Search *s, const Row *row) {
    for (int t = 0; t < (int)s->graph->tensors->len; t++)
        s->first[t] = NONE;
    int layer = 1;
    while (layer < row->count && is_alike(s, row, layer))
        layer++;
    return layer;
}

/* Checks the layers of a row, which ends before the first one that reads otherwise. */
static bool check_row(Search *s, Row *row) {
    if (!is_fit(s, row))
        return false;
    row->count = find_twins(s, row);
    return row->count > 1;
}

/* ---- Finding rows ------------------------------------------------------------------------------ */

static gint by_length(gconstpointer a, gconstpointer b) {
    const Row *one = a, *other = b;
    const int lengths[] = { one->period * one->count, other->period * other->count };
    return lengths[0] != lengths[1]       ? lengths[1] - lengths[0]
           : one->period != other->period ? one->period - other->period
                                          : one->start - other->start;
}

static int kind_at(const Search *s, int place) {
    return s->kind[g_array_index(s->chain, int, place)];
}

/* Rows of operations of the same kinds, the longest first, each from its first place on. */
static GArray *find_rows(const Search *s) {
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    int n = (int)s->chain->len;
    for (int period = LEAST_PERIOD; period <= MIN(n / 2, MOST_PERIOD); period++)
        for (int p = 0, run = 0; p + period <= n; p++) {
            bool same = p + period < n && kind_at(s, p) == kind_at(s, p + period);
            const Row row = { p - run, period, run / period + 1 };
            if (!same && run >= period)
                g_array_append_val(rows, row);
            run = same ? run + 1 : 0;
        }
    g_array_sort(rows, by_length);
    return rows;
}

/* Of the places where the first layer may begin, that across which least goes. */
static Row best_start(const Search *s, const Row *row) {
    Row best = *row;
    int end = layer_start(row, row->count);
    while (end < (int)s->chain->len && kind_at(s, end) == kind_at(s, end - row->period))
        end++;
    for (int p = row->start + 1; p + row->count * row->period <= end; p++)
        if (s->crossing[p] < s->crossing[best.start])
            best.start = p;
    return best;
}

/* ---- Marking ----------------------------------------------------------------------------------- */

#define SHARED (-1)

/* By tensor: 0, or from 1 the layer of a block whose operations alone read it, or SHARED. */
static void note_reader(int *layer, int reader) {
    *layer = *layer == 0 || *layer == reader ? reader : SHARED;
}

/* Whose each tensor is that no chain makes: of the row's layer, from 1, that alone reads it. */
static int *find_owners(const Search *s, const Row *row) {
    int *owner = g_new0(int, s->graph->tensors->len + 1);
    for (int o = (int)s->graph->operations->len - 1; o >= 0; o--) {
        const MtfOperation *op = mtf_graph_operation(s->graph, o);
        int p = s->place[o], reader = p == NONE ? owner[op->outputs[0]] : SHARED;
        if (p >= row->start && p < layer_start(row, row->count))
            reader = 1 + (p - row->start) / row->period;
        for (int k = 0; p == NONE && k < op->n_outputs; k++)
            if (owner[op->outputs[k]] != reader ||
                mtf_graph_tensor(s->graph, op->outputs[k])->output > 0)
                reader = SHARED;
        for (int k = 0; reader != 0 && k < op->n_inputs; k++)
            note_reader(&owner[op->inputs[k]], reader);
    }
    /* What one layer shares, none has of its own. */
    for (int t = 0; t < (int)s->graph->tensors->len; t++)
        if (mtf_graph_tensor(s->graph, t)->source == MTF_SOURCE_INPUT)
            owner[t] = SHARED;
        else if (s->first[t] != NONE && owner[t] <= 0)
            owner[s->first[t]] = SHARED;
    for (int t = 0; t < (int)s->graph->tensors->len; t++) {
        int made = made_at(s, t);
        bool inside = made >= row->start && made < layer_start(row, row->count);
        if (made != NONE)
            owner[t] = inside ? 1 + (made - row->start) / row->period : SHARED;
        else if (s->first[t] != NONE && owner[s->first[t]] == SHARED)
            owner[t] = SHARED;
    }
    return owner;
}

/* Twins of what the chain makes. */
static void note_chain_twins(const Search *s, const Row *row) {
    for (int p = layer_start(row, 1); p < layer_start(row, row->count); p++) {
        const MtfOperation *first = at(s, row->start + (p - row->start) % row->period);
        for (int k = 0; k < first->n_outputs; k++)
            s->first[at(s, p)->outputs[k]] = first->outputs[k];
    }
}

/* Gives what is a layer's its layer, and a name. */
static void mark_row(const Search *s, const Row *row) {
    note_chain_twins(s, row);
    g_autofree int *owner = find_owners(s, row);
    const MtfFoundLayers found = { s->graph, row->count, owner, s->first };
    mtf_found_layers_mark(&found);
}

static gint by_start(gconstpointer a, gconstpointer b) {
    return ((const Row *)a)->start - ((const Row *)b)->start;
}

/* The rows that are layers, the longest of those that overlap, in the order of the graph. */
static GArray *find_layers(Search *s) {
    g_autoptr(GArray) rows = find_rows(s);
    GArray *found = g_array_new(FALSE, FALSE, sizeof(Row));
    for (guint i = 0; i < rows->len; i++) {
        Row row = best_start(s, &g_array_index(rows, Row, i));
        if (!check_row(s, &row))
            continue;
        g_array_append_val(found, row);
        for (int p = row.start; p < layer_start(&row, row.count); p++)
            s->taken[p] = true;
    }
    g_array_sort(found, by_start);
    return found;
}

static void clear_search(Search *s) {
    g_array_unref(s->chain);
    g_free(s->place);
    g_free(s->kind);
    g_free(s->crossing);
    g_free(s->taken);
    g_free(s->first);
}

void mtf_graph_find_layers(MtfGraph *graph) {
    guint n = graph->operations->len;
    if (graph->repeats->len > 0)
        return;
    Search s = { .graph = graph,
                 .chain = g_array_new(FALSE, FALSE, sizeof(int)),
                 .place = g_new(int, n + 1),
                 .kind = g_new0(int, n + 1),
                 .crossing = g_new0(int, n + 2),
                 .taken = g_new0(bool, n + 1),
                 .first = g_new(int, graph->tensors->len + 1) };
    number_kinds(&s);
    find_chain(&s);
    count_crossing(&s);
    g_autoptr(GArray) rows = find_layers(&s);
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = &g_array_index(rows, Row, i);
        find_twins(&s, row);
        mark_row(&s, row);
    }
    clear_search(&s);
}
