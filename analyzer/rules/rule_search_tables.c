// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search_tables.h"

#include "analyzer/solver/problem/in_parallel.h"
#include "layouts/graph/iteration.h"

#include <stdlib.h>
#include <string.h>

/* ---- Assignments of a scope ----------------------------------------------------------------- */

typedef struct {
    const MtfRuleTerms *terms;
    const unsigned *allowed;
    int n_axes;
    const MtfScope *scope;
    GArray *axes; /* int8_t: the rows found so far */
    int8_t row[MTF_MAX_INDEXES * 4];
} Enumeration;

/* Whether dims[i] may lie where the row so far puts it. */
static bool is_legal(const Enumeration *e, int i) {
    int n = (int)e->terms->graph->dimensions->len, dim = e->scope->dims[i];
    if (!(e->allowed[dim] >> (e->row[i] + 1) & 1))
        return false;
    for (int j = 0; j < i && e->row[i] >= 0; j++)
        if (e->row[j] == e->row[i] && e->terms->conflicts[dim * n + e->scope->dims[j]])
            return false;
    return true;
}

static void enumerate(Enumeration *e, int i) {
    if (i == e->scope->n) {
        g_array_append_vals(e->axes, e->row, (guint)e->scope->n);
        return;
    }
    for (int axis = -1; axis < e->n_axes; axis++) {
        e->row[i] = (int8_t)axis;
        if (is_legal(e, i))
            enumerate(e, i + 1);
    }
}

/* All legal assignments of a scope, without prices. A scope without dimensions has one. */
static MtfRuleTable table_of(const MtfRuleTables *tables, const unsigned *allowed,
                             const MtfScope *scope) {
    MtfRuleTable table = { .n_dims = scope->n, .dims = scope->dims, .n = 1 };
    Enumeration e = { .terms = tables->terms,
                      .allowed = allowed,
                      .n_axes = tables->mesh.n_axes,
                      .scope = scope,
                      .axes = g_array_new(FALSE, FALSE, sizeof(int8_t)) };
    g_assert(scope->n <= (int)sizeof e.row);
    enumerate(&e, 0);
    if (scope->n > 0)
        table.n = (int)e.axes->len / scope->n;
    table.axes = (int8_t *)(void *)g_array_free(e.axes, FALSE);
    table.nanoseconds = g_new0(int64_t, (gsize)table.n + 1);
    return table;
}

static void clear_table(MtfRuleTable *table) {
    g_free(table->axes);
    g_free(table->nanoseconds);
}

static int compare_rows(const int8_t *a, const int8_t *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* The index of a row, which must be there. */
static int find_row(const MtfRuleTable *table, const int8_t *row) {
    int low = 0, high = table->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compare_rows(table->axes + middle * table->n_dims, row, table->n_dims) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    g_assert(compare_rows(table->axes + low * table->n_dims, row, table->n_dims) == 0);
    return low;
}

/* The assignment of the smaller scope that assignment `k` of the larger one agrees with. */
static int project(const MtfRuleTable *larger, int k, const MtfRuleTable *smaller) {
    int8_t row[MTF_MAX_INDEXES * 4];
    for (int i = 0, at = 0; at < smaller->n_dims; i++)
        if (larger->dims[i] == smaller->dims[at])
            row[at++] = larger->axes[k * larger->n_dims + i];
    return find_row(smaller, row);
}

static void apply_row(const MtfRuleTable *table, int k, MtfRules *rules) {
    for (int i = 0; i < table->n_dims; i++)
        rules->axis[table->dims[i]] = table->axes[k * table->n_dims + i];
}

static void reset_row(const MtfRuleTable *table, MtfRules *rules) {
    for (int i = 0; i < table->n_dims; i++)
        rules->axis[table->dims[i]] = -1;
}

/* ---- Prices of one term ---------------------------------------------------------------------- */

typedef struct {
    const MtfRuleTables *tables;
    const unsigned *allowed;
    MtfOperationPrices *operations;
    MtfRules *rules;   /* all -1 between uses */
    MtfLayout *layout; /* of the whole graph, scratch */
} Fill;

/* A term that is being priced: assignments that differ elsewhere alone lay its operation out alike. */
typedef struct {
    const MtfRuleTerm *term;
    MtfLayout *alone; /* scratch */
    MtfPlacedPrices *prices;
} PricedTerm;

static MtfPlacement settled(const MtfShape *shape, const MtfRules *rules) {
    MtfPlacement placement = mtf_placement_replicated();
    for (int i = 0; i < shape->rank; i++)
        if (rules->axis[shape->dims[i]] >= 0)
            placement.axis[rules->axis[shape->dims[i]]] = (int16_t)shape->dims[i];
    return placement;
}

/* The layout of the operation alone: as the whole layout has it, variables that it only updates by
 * the rules of their dimensions. */
static void take_layout(const Fill *fill, const MtfRuleTerm *term, MtfLayout *alone) {
    const MtfGraph *graph = fill->tables->terms->graph;
    const MtfOperation *op = mtf_graph_operation(graph, term->operation);
    for (int t = 0; t < alone->n_tensors; t++) {
        int tensor = g_array_index(term->alone.tensors, int, t);
        const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
        alone->tensors[t] = settled(shape, fill->rules);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == tensor)
                alone->tensors[t] = fill->layout->tensors[tensor];
        for (int k = 0; k < op->n_outputs; k++)
            if (op->outputs[k] == tensor)
                alone->tensors[t] = fill->layout->tensors[tensor];
    }
    alone->operations[0] = fill->layout->operations[term->operation];
}

/* In the whole program an update whose variable is read later, or whose value a loop leaves, waits as a copy of
 * its own. Alone, the operation makes the value in the variable's place, or where a loop does, not yet. */
static void add_late_copies(const MtfRuleTerm *term, MtfProgram *program) {
    const MtfOperation *op = mtf_graph_operation(term->alone.graph, 0);
    for (int k = 0; k < MTF_MAX_OUTPUTS; k++) {
        if (!(term->late >> k & 1))
            continue;
        int buffer = program->tensor_buffers[op->outputs[k]];
        const MtfBuffer *value = mtf_program_buffer(program, buffer);
        if (value->storage == buffer && op->loop == 0)
            continue;
        MtfInstruction copy = { .kind = MTF_INSTRUCTION_RESHARD,
                                .reshard = { .kind = MTF_RESHARD_COPY },
                                .n_inputs = 1,
                                .inputs = g_memdup2(&buffer, sizeof buffer),
                                .scratch = -1,
                                .kernel_class = MTF_CLASS_MOVE,
                                .traffic_bytes = 2.0 * (double)value->bytes };
        g_array_append_val(program->instructions, copy);
    }
}

static int64_t price_alone(const Fill *fill, const PricedTerm *priced) {
    g_autoptr(MtfProgram) program =
        mtf_lower_operation(priced->term->alone.graph, priced->alone, 0);
    add_late_copies(priced->term, program);
    return mtf_price_program(fill->tables->pricer, program);
}

static int64_t price_term(const Fill *fill, const PricedTerm *priced) {
    const GArray *visits = priced->term->visits, *dimensions = priced->term->dimensions;
    int64_t price;
    mtf_rules_derive(fill->tables->terms->scopes, fill->rules,
                     (const int *)(const void *)visits->data, (int)visits->len, fill->layout);
    take_layout(fill, priced->term, priced->alone);
    if (mtf_placed_prices_find(priced->prices, priced->alone, dimensions, &price))
        return price;
    price = price_alone(fill, priced);
    mtf_placed_prices_add(priced->prices, priced->alone, dimensions, price);
    return price;
}

/* Bytes of the slices of the term's outputs, as it keeps them; in the host's memory they take none. */
static void measure_outputs(const Fill *fill, const MtfRuleTerm *term, int64_t *slices) {
    const MtfGraph *graph = fill->tables->terms->graph;
    const MtfOperation *op = mtf_graph_operation(graph, term->operation);
    bool on_host = mtf_operation_row(op->kind)->host == MTF_HOST_TO;
    for (int k = 0; k < op->n_outputs && !on_host; k++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, op->outputs[k]);
        slices[k] = mtf_dtype_bytes(tensor->dtype) *
                    mtf_largest_elements(graph, &fill->tables->mesh, &tensor->shape,
                                         &fill->layout->tensors[op->outputs[k]]);
    }
}

/* Prices of a term's assignments, and slices of its outputs. */
typedef struct {
    MtfRuleTable table;
    int64_t *slices; /* [assignments][MTF_MAX_OUTPUTS] */
} TermPrices;

static void price_assignments(const Fill *fill, int index, TermPrices *prices) {
    const MtfRuleTerm *term = mtf_rule_term(fill->tables->terms, index);
    MtfRuleTable *table = &prices->table;
    *table = table_of(fill->tables, fill->allowed, &term->scope);
    prices->slices = g_new0(int64_t, (gsize)table->n * MTF_MAX_OUTPUTS + 1);
    g_autoptr(MtfLayout) alone = mtf_layout_new(term->alone.graph, &fill->tables->mesh);
    PricedTerm priced = {
        term, alone, mtf_operation_prices_of(fill->operations, term->text, &fill->tables->mesh)
    };
    alone->rules = g_strdup("");
    for (int k = 0; k < table->n; k++) {
        apply_row(table, k, fill->rules);
        table->nanoseconds[k] = price_term(fill, &priced);
        measure_outputs(fill, term, prices->slices + k * MTF_MAX_OUTPUTS);
    }
    reset_row(table, fill->rules);
}

/* ---- Prices of all terms ---------------------------------------------------------------------- */

/* Adds a term's prices, projected, to its maximal scope; and hands out its outputs' slices. */
static void spread_term(MtfRuleTables *tables, int index, const MtfRuleTable *table,
                        const int64_t *slices) {
    const MtfRuleTerm *term = mtf_rule_term(tables->terms, index);
    MtfRuleTable *maximal = &tables->tables[term->maximal];
    g_autofree int *small = g_new(int, (gsize)maximal->n + 1);
    for (int k = 0; k < maximal->n; k++) {
        small[k] = project(maximal, k, table);
        maximal->nanoseconds[k] += term->count * table->nanoseconds[small[k]];
    }
    for (guint c = 0; c < tables->terms->classes->len; c++) {
        const MtfRuleClass *class = mtf_rule_class(tables->terms, (int)c);
        if (class->term != index)
            continue;
        for (int k = 0; k < maximal->n; k++)
            tables->slices[c][k] = slices[small[k] * MTF_MAX_OUTPUTS + class->output];
    }
}

/* Terms are priced at once, each by the first thread that is free, which has scratch of its own. */
typedef struct {
    MtfRuleTables *tables;
    const MtfRuleTablesOptions *options;
    const int *order;      /* of terms */
    TermPrices *prices;    /* [terms]; without a table where time was up, or too much is known */
    gint next;             /* of the order, the one to price next; atomic */
    _Atomic int64_t least; /* that the terms cost which are priced, each for itself */
} Pricing;

static bool costs_more(const Pricing *pricing) {
    return pricing->least > pricing->options->most;
}

static int64_t least_price(const MtfRuleTable *table) {
    int64_t least = table->nanoseconds[0];
    for (int k = 1; k < table->n; k++)
        least = MIN(least, table->nanoseconds[k]);
    return least;
}

static void price_terms(int thread, void *data) {
    (void)thread;
    Pricing *pricing = data;
    const MtfRuleTerms *terms = pricing->tables->terms;
    const MtfRuleTablesOptions *options = pricing->options;
    g_autoptr(MtfRules) rules = mtf_rules_new(terms->graph);
    g_autoptr(MtfLayout) layout = mtf_layout_new(terms->graph, &pricing->tables->mesh);
    Fill fill = { pricing->tables, options->allowed, options->operations, rules, layout };
    int i = g_atomic_int_add(&pricing->next, 1);
    while (i < (int)terms->terms->len && !mtf_search_is_over(options->control) &&
           !costs_more(pricing)) {
        int t = pricing->order[i];
        price_assignments(&fill, t, &pricing->prices[t]);
        pricing->least += mtf_rule_term(terms, t)->count * least_price(&pricing->prices[t].table);
        i = g_atomic_int_add(&pricing->next, 1);
    }
}

/* A term and the points that its operations run over. */
typedef struct {
    int term;
    double points;
} TermWork;

static int compare_works(const void *left, const void *right) {
    const TermWork *a = left, *b = right;
    if (a->points != b->points)
        return a->points > b->points ? -1 : 1;
    return a->term - b->term;
}

/* All terms, those with most to do first. */
static int *order_terms(const MtfRuleTerms *terms) {
    int n = (int)terms->terms->len, *order = g_new(int, (gsize)n + 1);
    g_autofree TermWork *works = g_new(TermWork, (gsize)n + 1);
    for (int t = 0; t < n; t++) {
        const MtfRuleTerm *term = mtf_rule_term(terms, t);
        MtfIteration iteration;
        mtf_operation_iteration(terms->graph, term->operation, &iteration);
        works[t] = (TermWork){ t, term->count };
        for (int i = 0; i < iteration.n; i++)
            works[t].points *= (double)iteration.index[i].size;
    }
    qsort(works, (gsize)n, sizeof *works, compare_works);
    for (int i = 0; i < n; i++)
        order[i] = works[i].term;
    return order;
}

/* Whether all were priced. */
static bool fill_terms(MtfRuleTables *tables, const MtfRuleTablesOptions *options, bool *more) {
    int n = (int)tables->terms->terms->len;
    g_autofree TermPrices *prices = g_new0(TermPrices, (gsize)n + 1);
    g_autofree int *order = order_terms(tables->terms);
    Pricing pricing = { tables, options, order, prices, 0, 0 };
    mtf_in_parallel(MIN(n, mtf_in_parallel_threads()), price_terms, &pricing);
    *more = costs_more(&pricing);
    bool done = !*more;
    for (int i = 0; i < n; i++) {
        done &= prices[i].slices != NULL;
        if (done)
            spread_term(tables, i, &prices[i].table, prices[i].slices);
        clear_table(&prices[i].table);
        g_free(prices[i].slices);
    }
    return done;
}

/* The slices of stored tensors follow from the rules of their dimensions. */
static void fill_stored_class(MtfRuleTables *tables, int index, MtfRules *rules) {
    const MtfGraph *graph = tables->terms->graph;
    const MtfRuleClass *class = mtf_rule_class(tables->terms, index);
    const MtfTensor *tensor = mtf_graph_tensor(graph, class->example);
    const MtfRuleTable *table = &tables->tables[class->maximal];
    for (int k = 0; k < table->n; k++) {
        apply_row(table, k, rules);
        MtfPlacement placement = settled(&tensor->shape, rules);
        tables->slices[index][k] =
            mtf_dtype_bytes(tensor->dtype) *
            mtf_largest_elements(graph, &tables->mesh, &tensor->shape, &placement);
    }
    reset_row(table, rules);
}

static void fill_stored_classes(MtfRuleTables *tables) {
    g_autoptr(MtfRules) rules = mtf_rules_new(tables->terms->graph);
    for (int c = 0; c < (int)tables->terms->classes->len; c++)
        if (mtf_rule_class(tables->terms, c)->term < 0)
            fill_stored_class(tables, c, rules);
}

/* ---- Entry ---------------------------------------------------------------------------------- */

/* Makes the tables without prices. */
static void make_tables(MtfRuleTables *tables, const unsigned *allowed) {
    const MtfRuleTerms *terms = tables->terms;
    tables->tables = g_new0(MtfRuleTable, terms->maximal->len + 1);
    tables->slices = g_new0(int64_t *, terms->classes->len + 1);
    for (guint i = 0; i < terms->maximal->len; i++) {
        tables->tables[i] = table_of(tables, allowed, mtf_rule_maximal(terms, (int)i));
        g_assert(tables->tables[i].n > 0);
    }
    for (guint c = 0; c < terms->classes->len; c++)
        tables->slices[c] =
            g_new0(int64_t, (gsize)tables->tables[mtf_rule_class(terms, (int)c)->maximal].n + 1);
}

MtfRuleTables *mtf_rule_tables_new(const MtfRuleTerms *terms, const MtfRuleTablesOptions *options,
                                   bool *costs_more) {
    g_autoptr(MtfRuleTables) tables = g_new0(MtfRuleTables, 1);
    tables->terms = terms;
    tables->pricer = options->pricer;
    tables->mesh = *options->mesh;
    make_tables(tables, options->allowed);
    g_autoptr(MtfOperationPrices) own =
        options->operations == NULL ? mtf_operation_prices_new() : NULL;
    MtfRuleTablesOptions filled = *options;
    filled.operations = own != NULL ? own : options->operations;
    if (!fill_terms(tables, &filled, costs_more))
        return NULL;
    fill_stored_classes(tables);
    return g_steal_pointer(&tables);
}

void mtf_rule_tables_free(MtfRuleTables *tables) {
    if (tables == NULL)
        return;
    for (guint i = 0; tables->tables != NULL && i < tables->terms->maximal->len; i++)
        clear_table(&tables->tables[i]);
    for (guint c = 0; tables->slices != NULL && c < tables->terms->classes->len; c++)
        g_free(tables->slices[c]);
    g_free(tables->tables);
    g_free(tables->slices);
    g_free(tables);
}

int mtf_rule_tables_find(const MtfRuleTables *tables, int maximal, const MtfRules *rules) {
    const MtfRuleTable *table = &tables->tables[maximal];
    int8_t row[MTF_MAX_INDEXES * 4];
    for (int i = 0; i < table->n_dims; i++)
        row[i] = (int8_t)rules->axis[table->dims[i]];
    return find_row(table, row);
}

int64_t mtf_rule_tables_price(const MtfRuleTables *tables, const MtfRules *rules) {
    int64_t sum = 0;
    for (int i = 0; i < (int)tables->terms->maximal->len; i++)
        sum += tables->tables[i].nanoseconds[mtf_rule_tables_find(tables, i, rules)];
    return sum;
}

int64_t mtf_rule_tables_floor(const MtfRuleTables *tables) {
    int64_t sum = 0;
    for (int i = 0; i < (int)tables->terms->maximal->len; i++)
        sum += least_price(&tables->tables[i]);
    return sum;
}

int64_t mtf_rule_tables_memory(const MtfRuleTables *tables, const MtfRules *rules, int *half_step) {
    const MtfRuleTerms *terms = tables->terms;
    int n = 2 * (int)terms->graph->operations->len + 1;
    g_autofree int64_t *live = g_new0(int64_t, (gsize)n + 1);
    g_autofree int *found = g_new(int, terms->maximal->len + 1);
    for (int i = 0; i < (int)terms->maximal->len; i++)
        found[i] = mtf_rule_tables_find(tables, i, rules);
    for (int t = 0; t < (int)terms->graph->tensors->len; t++) {
        const MtfRuleLife *life = &terms->lives[t];
        if (life->begin > life->end)
            continue;
        int class = terms->tensor_class[t];
        int64_t bytes = tables->slices[class][found[mtf_rule_class(terms, class)->maximal]];
        live[life->begin] += bytes;
        live[life->end + 1] -= bytes;
    }
    *half_step = 0;
    int64_t most = live[0];
    for (int i = 1; i < n; i++) {
        live[i] += live[i - 1];
        if (live[i] <= most)
            continue;
        most = live[i];
        *half_step = i;
    }
    return most;
}
