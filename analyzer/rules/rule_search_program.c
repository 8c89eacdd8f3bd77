// SPDX-License-Identifier: GPL-3.0-or-later
/* The integer program.
 *
 * Sets
 *     D        dimensions that occur in some scope            A  mesh axes
 *     S        maximal scopes (rule_search_terms.h)           K(s)  legal assignments of scope s
 *     C        tensor classes; scope(c) in S                  T  half-steps of the graph
 *     E        assignments of all of D that are excluded
 *
 * Variables
 *     x[d, a]  binary       dimension d lies on axis a
 *     z[s, k]  in [0, 1]    scope s follows its assignment k
 *     peak     >= 0         bytes (only when memory is minimised)
 *
 * Constraints
 *     one[s]           sum_k z[s, k] = 1
 *     agree[s, d, a]   sum_{k: d on a} z[s, k] = x[d, a]                      for d in s
 *     fits[t]          sum_{s, k} memory[t, s, k] z[s, k] <= limit            or <= peak
 *     differs[e]       sum_{(d, a) in e} (1 - x[d, a]) + sum_{d in D, not in e} sum_a x[d, a] >= 1
 *
 * Objective
 *     minimise         sum_{s, k} nanoseconds[s, k] z[s, k]                   or peak
 *
 * where memory[t, s, k] is the sum of slices[c, k] over the tensors of classes c with scope(c) = s
 * that live at t. That a dimension lies on one axis at most, and that two dimensions of one tensor
 * never share one, is in K(s): every tensor is inside some scope. Given binary x, one and agree
 * leave a single z[s, k] for each scope: z need not be binary. */
#include "analyzer/rules/rule_search_program.h"

#include "analyzer/rules/rule_search_close.h"

#include <math.h>
#include <string.h>

/* What GLPK's tolerances may hide of an objective, as a share of it. */
#define SOLVER_TOLERANCE 1e-6

/* Simplex iterations times terms that the first program may take: some seconds on one processor. Each that
 * was not enough for leaves a quarter to the next. */
#define MOST_WORK 4e9

/* Peak is counted in these, so that its coefficient is of the size of the others. */
#define PEAK_UNIT 1048576.0

typedef struct {
    const MtfRuleProgram *program;
    const MtfRuleTables *tables;
    MtfIlp *ilp;
    int n_axes;
    int *x;     /* x[d * n_axes + a]: variable, or -1 when d is in no scope */
    int *first; /* first[s]: variable of z[s, 0] */
    int peak;   /* variable, or -1 */
} Model;

static int n_scopes(const Model *model) {
    return (int)model->tables->terms->maximal->len;
}

static void add_variables(Model *model, bool minimise_memory) {
    int n_dims = (int)model->tables->terms->graph->dimensions->len;
    for (int i = 0; i < n_dims * model->n_axes; i++)
        model->x[i] = -1;
    for (int s = 0; s < n_scopes(model); s++) {
        const MtfRuleTable *table = &model->tables->tables[s];
        model->first[s] = mtf_ilp_variable_count(model->ilp);
        for (int k = 0; k < table->n; k++)
            mtf_ilp_add_continuous(model->ilp, 0, 1,
                                   minimise_memory ? 0 : (double)table->nanoseconds[k]);
        for (int i = 0; i < table->n_dims; i++)
            for (int a = 0; a < model->n_axes; a++) {
                int *x = &model->x[table->dims[i] * model->n_axes + a];
                *x = *x < 0 ? mtf_ilp_add_binary(model->ilp, 0) : *x;
            }
    }
    model->peak = minimise_memory ? mtf_ilp_add_continuous(model->ilp, 0, INFINITY, 1) : -1;
}

static void add_one(Model *model, int s) {
    int n = model->tables->tables[s].n;
    g_autofree int *variables = g_new(int, (gsize)n + 1);
    g_autofree double *ones = g_new(double, (gsize)n + 1);
    for (int k = 0; k < n; k++) {
        variables[k] = model->first[s] + k;
        ones[k] = 1;
    }
    mtf_ilp_add_row(model->ilp, n, variables, ones, 1, 1);
}

static void add_agree(Model *model, int s, int i, int axis) {
    const MtfRuleTable *table = &model->tables->tables[s];
    g_autofree int *variables = g_new(int, (gsize)table->n + 1);
    g_autofree double *coefficients = g_new(double, (gsize)table->n + 1);
    int count = 0;
    for (int k = 0; k < table->n; k++) {
        if (table->axes[k * table->n_dims + i] != axis)
            continue;
        variables[count] = model->first[s] + k;
        coefficients[count++] = 1;
    }
    variables[count] = model->x[table->dims[i] * model->n_axes + axis];
    coefficients[count++] = -1;
    mtf_ilp_add_row(model->ilp, count, variables, coefficients, 0, 0);
}

/* How many tensors of each class live at a half-step. Free with g_free. */
static int *count_live(const MtfRuleTerms *terms, int half_step) {
    int *count = g_new0(int, terms->classes->len + 1);
    for (int t = 0; t < (int)terms->graph->tensors->len; t++)
        if (terms->lives[t].begin <= half_step && half_step <= terms->lives[t].end)
            count[terms->tensor_class[t]]++;
    return count;
}

static void add_fits(Model *model, int half_step, double limit) {
    const MtfRuleTerms *terms = model->tables->terms;
    int n = mtf_ilp_variable_count(model->ilp);
    g_autofree int *live = count_live(terms, half_step);
    g_autofree double *bytes = g_new0(double, (gsize)n + 1);
    for (int c = 0; c < (int)terms->classes->len; c++) {
        int s = mtf_rule_class(terms, c)->maximal;
        for (int k = 0; k < model->tables->tables[s].n && live[c] > 0; k++)
            bytes[model->first[s] + k] += live[c] * (double)model->tables->slices[c][k];
    }
    g_autofree int *variables = g_new(int, (gsize)n + 1);
    int count = 0;
    for (int j = 0; j < n; j++) {
        if (bytes[j] == 0)
            continue;
        variables[count] = j;
        bytes[count++] = bytes[j];
    }
    if (model->peak >= 0) {
        variables[count] = model->peak;
        bytes[count++] = -PEAK_UNIT;
    }
    mtf_ilp_add_row(model->ilp, count, variables, bytes, -INFINITY, model->peak >= 0 ? 0 : limit);
}

static void add_differs(Model *model, const MtfRules *rules) {
    int n = rules->n_dims * model->n_axes, count = 0;
    g_autofree int *variables = g_new(int, (gsize)n + 1);
    g_autofree double *coefficients = g_new(double, (gsize)n + 1);
    double low = 1;
    for (int i = 0; i < n; i++) {
        if (model->x[i] < 0)
            continue;
        bool chosen = rules->axis[i / model->n_axes] == i % model->n_axes;
        bool elsewhere = rules->axis[i / model->n_axes] >= 0 && !chosen;
        if (elsewhere)
            continue;
        variables[count] = model->x[i];
        coefficients[count++] = chosen ? -1 : 1;
        low -= chosen;
    }
    mtf_ilp_add_row(model->ilp, count, variables, coefficients, low, INFINITY);
}

static void add_rows(Model *model, double limit) {
    for (int s = 0; s < n_scopes(model); s++) {
        add_one(model, s);
        for (int i = 0; i < model->tables->tables[s].n_dims; i++)
            for (int a = 0; a < model->n_axes; a++)
                add_agree(model, s, i, a);
    }
    for (guint r = 0; r < model->program->rows->len; r++)
        add_fits(model, g_array_index(model->program->rows, int, r), limit);
    for (guint e = 0; e < model->program->excluded->len; e++)
        add_differs(model, g_ptr_array_index(model->program->excluded, e));
}

static void model_init(Model *model, const MtfRuleProgram *program, bool minimise_memory,
                       double limit) {
    int n_dims = (int)program->tables->terms->graph->dimensions->len;
    *model = (Model){ .program = program,
                      .tables = program->tables,
                      .ilp = mtf_ilp_new(),
                      .n_axes = program->tables->mesh.n_axes };
    model->x = g_new(int, (gsize)(n_dims * model->n_axes) + 1);
    model->first = g_new(int, (gsize)n_scopes(model) + 1);
    add_variables(model, minimise_memory);
    add_rows(model, limit);
}

static void model_clear(Model *model) {
    mtf_ilp_free(model->ilp);
    g_free(model->x);
    g_free(model->first);
}

static MtfRules *rules_of(const Model *model) {
    MtfRules *rules = mtf_rules_new(model->tables->terms->graph);
    for (int i = 0; i < rules->n_dims * model->n_axes; i++)
        if (model->x[i] >= 0 && mtf_ilp_value(model->ilp, model->x[i]) > 0.5)
            rules->axis[i / model->n_axes] = i % model->n_axes;
    return rules;
}

/* What the solver proved, less what its tolerances may hide. */
static int64_t bound_of(double bound, double unit) {
    if (bound == INFINITY)
        return INT64_MAX;
    double safe = bound * unit * (1 - SOLVER_TOLERANCE);
    return safe > 0 ? (int64_t)ceil(fmin(safe, 9e18) - 0.5) : 0;
}

static bool solve_once(const MtfRuleProgram *program, bool minimise_memory, int64_t limit,
                       const MtfIlpOptions *options, MtfRuleSolution *solution, GError **error) {
    Model model;
    model_init(&model, program, minimise_memory, (double)limit);
    bool done = mtf_ilp_solve(model.ilp, options, error);
    *solution = (MtfRuleSolution){ .status = mtf_ilp_status(model.ilp) };
    solution->bound = bound_of(mtf_ilp_bound(model.ilp), minimise_memory ? PEAK_UNIT : 1);
    if (done && (solution->status == MTF_ILP_OPTIMAL || solution->status == MTF_ILP_FEASIBLE))
        solution->rules = rules_of(&model);
    model_clear(&model);
    return done;
}

static bool has_row(const MtfRuleProgram *program, int half_step) {
    for (guint r = 0; r < program->rows->len; r++)
        if (g_array_index(program->rows, int, r) == half_step)
            return true;
    return false;
}

/* Adds the row of the half-step where the solution needs most, unless it keeps the limit there or
 * the row is there already. */
static bool add_broken_row(MtfRuleProgram *program, const MtfRuleSolution *solution,
                           int64_t limit) {
    if (solution->rules == NULL)
        return false;
    int half_step;
    int64_t bytes = mtf_rule_tables_memory(program->tables, solution->rules, &half_step);
    if (bytes <= limit || has_row(program, half_step))
        return false;
    g_array_append_val(program->rows, half_step);
    return true;
}

/* Whether a search over the dimensions alone ends. The solution is what it found, with what is known without
 * it for a bound where it does not. */
static bool close_alone(const MtfRuleProgram *program, int64_t limit, MtfRuleSolution *solution) {
    g_autoptr(MtfRules) rules = mtf_rules_new(program->tables->terms->graph);
    int64_t cost = INT64_MAX;
    bool done = mtf_rule_close(program, limit, rules, &cost), found = cost < INT64_MAX;
    int64_t bound = done ? cost : mtf_rule_levels_bound(program->levels, program->tables);
    *solution = (MtfRuleSolution){ done    ? found ? MTF_ILP_OPTIMAL : MTF_ILP_INFEASIBLE
                                   : found ? MTF_ILP_FEASIBLE
                                           : MTF_ILP_STOPPED,
                                   found ? g_steal_pointer(&rules) : NULL, cost, bound };
    return done;
}

/* Of two solutions that the work was not enough to prove the better, with the better bound. */
static void merge_solutions(MtfRuleSolution *solution, MtfRuleSolution *known) {
    solution->bound = MAX(solution->bound, known->bound);
    if (known->rules == NULL || (solution->rules != NULL && solution->value <= known->value)) {
        mtf_rules_free(known->rules);
        return;
    }
    mtf_rules_free(solution->rules);
    solution->rules = known->rules;
    solution->value = known->value;
    if (solution->status != MTF_ILP_OPTIMAL)
        solution->status = MTF_ILP_FEASIBLE;
}

/* Solves the integer program, with a row for each half-step at which its answer breaks the limit. */
static bool solve_program(MtfRuleProgram *program, bool minimise_memory, int64_t limit,
                          const MtfIlpOptions *options, MtfRuleSolution *solution, GError **error) {
    MtfIlpOptions limited = *options;
    for (;;) {
        limited.work = program->work;
        if (!solve_once(program, minimise_memory, limit, &limited, solution, error))
            return false;
        if (solution->status == MTF_ILP_FEASIBLE || solution->status == MTF_ILP_STOPPED)
            program->work /= 4;
        if (!add_broken_row(program, solution, limit))
            return true;
        g_clear_pointer(&solution->rules, mtf_rules_free);
    }
}

/* By the integer program, where a search over the dimensions gave up with what is known. */
static bool solve_cheapest(MtfRuleProgram *program, int64_t limit, const MtfIlpOptions *options,
                           MtfRuleSolution *known, MtfRuleSolution *solution, GError **error) {
    if (!solve_program(program, false, limit, options, solution, error)) {
        mtf_rules_free(known->rules);
        return false;
    }
    if (solution->rules != NULL)
        solution->value = mtf_rule_tables_price(program->tables, solution->rules);
    bool optimal = solution->status == MTF_ILP_OPTIMAL;
    merge_solutions(solution, known);
    if (solution->rules == NULL)
        return true;
    if (optimal && options->gap == 0 &&
        mtf_rule_close(program, limit, solution->rules, &solution->value))
        solution->bound = solution->value;
    solution->bound = MIN(solution->bound, solution->value);
    return true;
}

bool mtf_rule_program_cheapest(MtfRuleProgram *program, int64_t limit, const MtfIlpOptions *options,
                               MtfRuleSolution *solution, GError **error) {
    MtfRuleSolution known;
    if (close_alone(program, limit, &known)) {
        *solution = known;
        return true;
    }
    bool solved = solve_cheapest(program, limit, options, &known, solution, error);
    program->nodes /= 4;
    return solved;
}

bool mtf_rule_program_smallest(MtfRuleProgram *program, const MtfIlpOptions *options,
                               MtfRuleSolution *solution, GError **error) {
    int half_step;
    int64_t bytes;
    g_autoptr(MtfRules) rules = mtf_rules_new(program->tables->terms->graph);
    if (mtf_rule_close_smallest(program, rules, &bytes)) {
        *solution = (MtfRuleSolution){ MTF_ILP_OPTIMAL, g_steal_pointer(&rules), bytes, bytes };
        return true;
    }
    bool found = bytes < INT64_MAX - 1;
    *solution = (MtfRuleSolution){ .status = MTF_ILP_STOPPED };
    if (!(program->drafts && found) && !solve_program(program, true, 0, options, solution, error))
        return false;
    if (solution->rules == NULL && found) {
        solution->rules = g_steal_pointer(&rules);
        solution->status = MTF_ILP_FEASIBLE;
    }
    if (solution->rules != NULL) {
        solution->value = mtf_rule_tables_memory(program->tables, solution->rules, &half_step);
        solution->bound = MIN(solution->bound, solution->value);
    }
    return true;
}

MtfRuleProgram *mtf_rule_program_new(const MtfRuleTables *tables) {
    MtfRuleProgram *program = g_new0(MtfRuleProgram, 1);
    program->tables = tables;
    program->work = MOST_WORK;
    program->nodes = MTF_RULE_CLOSE_NODES;
    program->levels = mtf_rule_levels_new(tables);
    program->rows = g_array_new(FALSE, FALSE, sizeof(int));
    program->excluded = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_rules_free);
    return program;
}

void mtf_rule_program_free(MtfRuleProgram *program) {
    if (program == NULL)
        return;
    mtf_rule_levels_free(program->levels);
    g_array_unref(program->rows);
    g_ptr_array_unref(program->excluded);
    g_free(program);
}

void mtf_rule_program_exclude(MtfRuleProgram *program, const MtfRules *rules) {
    MtfRules *copy = mtf_rules_new(program->tables->terms->graph);
    memcpy(copy->axis, rules->axis, (gsize)rules->n_dims * sizeof *rules->axis);
    g_ptr_array_add(program->excluded, copy);
}

void mtf_rule_program_size(const MtfRuleProgram *program, int *variables, int *rows) {
    Model model;
    model_init(&model, program, false, 0);
    *variables = mtf_ilp_variable_count(model.ilp);
    *rows = mtf_ilp_row_count(model.ilp);
    model_clear(&model);
}
