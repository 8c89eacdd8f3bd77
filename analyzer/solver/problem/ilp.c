// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/ilp.h"

#include "layouts/base/error.h"

#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <string.h>

#define LARGEST_SCALED_COST 1e6
#define ROW_TOLERANCE 1e-6

typedef struct Variable {
    double low, high, cost;
    bool binary;
} Variable;

typedef struct Row {
    double low, high;
    int first, count; /* its terms */
} Row;

typedef struct Term {
    int variable;
    double coefficient;
} Term;

struct MtfIlp {
    GArray *variables; /* Variable */
    GArray *rows;      /* Row */
    GArray *terms;     /* Term, row by row */
    double *start;     /* NULL, or one value for each variable */
    double *values;    /* of the last solve */
    MtfIlpStatus status;
    double objective, bound;
};

/* One run of GLPK. `scale` is GLPK's cost for one unit of the caller's. */
typedef struct Run {
    MtfIlp *ilp;
    const MtfIlpOptions *options;
    glp_prob *problem;
    double scale;
    int eager_rows; /* rows that GLPK had from the start; later ones are lazy */
    double *point;  /* values of a relaxation, for lazy rows */
    int *columns;   /* the row being handed over */
    double *coefficients;
    bool offered, failed, cancelled;
    jmp_buf escape;
} Run;

MtfIlp *mtf_ilp_new(void) {
    MtfIlp *ilp = g_new0(MtfIlp, 1);
    ilp->variables = g_array_new(FALSE, FALSE, sizeof(Variable));
    ilp->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    ilp->terms = g_array_new(FALSE, FALSE, sizeof(Term));
    ilp->status = MTF_ILP_STOPPED;
    ilp->bound = -INFINITY;
    return ilp;
}

void mtf_ilp_free(MtfIlp *ilp) {
    if (ilp == NULL)
        return;
    g_array_unref(ilp->variables);
    g_array_unref(ilp->rows);
    g_array_unref(ilp->terms);
    g_free(ilp->start);
    g_free(ilp->values);
    g_free(ilp);
}

static Variable *variable_at(const MtfIlp *ilp, int index) {
    return &g_array_index(ilp->variables, Variable, index);
}

static Row *row_at(const MtfIlp *ilp, int index) {
    return &g_array_index(ilp->rows, Row, index);
}

static Term *terms_of(const MtfIlp *ilp, const Row *row) {
    return &g_array_index(ilp->terms, Term, row->first);
}

int mtf_ilp_variable_count(const MtfIlp *ilp) {
    return (int)ilp->variables->len;
}

int mtf_ilp_row_count(const MtfIlp *ilp) {
    return (int)ilp->rows->len;
}

static int add_variable(MtfIlp *ilp, Variable variable) {
    g_array_append_val(ilp->variables, variable);
    g_clear_pointer(&ilp->start, g_free);
    return mtf_ilp_variable_count(ilp) - 1;
}

int mtf_ilp_add_binary(MtfIlp *ilp, double cost) {
    return add_variable(ilp, (Variable){ .low = 0, .high = 1, .cost = cost, .binary = true });
}

int mtf_ilp_add_continuous(MtfIlp *ilp, double low, double high, double cost) {
    return add_variable(ilp, (Variable){ .low = low, .high = high, .cost = cost });
}

int mtf_ilp_add_row(MtfIlp *ilp, int count, const int *variables, const double *coefficients,
                    double low, double high) {
    Row row = { .low = low, .high = high, .first = (int)ilp->terms->len, .count = count };
    for (int k = 0; k < count; k++) {
        Term term = { variables[k], coefficients[k] };
        g_array_append_val(ilp->terms, term);
    }
    g_array_append_val(ilp->rows, row);
    return mtf_ilp_row_count(ilp) - 1;
}

/* The row's value at a point; `*largest` is the size of its largest term. */
static double row_value(const MtfIlp *ilp, const Row *row, const double *point, double *largest) {
    double sum = 0;
    *largest = 1e-300;
    const Term *terms = terms_of(ilp, row);
    for (int k = 0; k < row->count; k++) {
        sum += terms[k].coefficient * point[terms[k].variable];
        *largest = fmax(*largest, fabs(terms[k].coefficient));
    }
    return sum;
}

static bool row_holds(const MtfIlp *ilp, const Row *row, const double *point) {
    double largest;
    double sum = row_value(ilp, row, point, &largest);
    return sum >= row->low - ROW_TOLERANCE * largest && sum <= row->high + ROW_TOLERANCE * largest;
}

bool mtf_ilp_set_start(MtfIlp *ilp, const double *values) {
    for (int j = 0; j < mtf_ilp_variable_count(ilp); j++) {
        const Variable *v = variable_at(ilp, j);
        bool whole = !v->binary || values[j] == 0 || values[j] == 1;
        if (!whole || values[j] < v->low - ROW_TOLERANCE || values[j] > v->high + ROW_TOLERANCE)
            return false;
    }
    for (int i = 0; i < mtf_ilp_row_count(ilp); i++)
        if (!row_holds(ilp, row_at(ilp, i), values))
            return false;
    g_free(ilp->start);
    ilp->start = g_memdup2(values, ilp->variables->len * sizeof *values);
    return true;
}

/* GLPK's kind of bound for a pair of limits. */
static int bound_kind(double low, double high) {
    if (low == high)
        return GLP_FX;
    if (isinf(low))
        return isinf(high) ? GLP_FR : GLP_UP;
    return isinf(high) ? GLP_LO : GLP_DB;
}

static void load_variables(Run *run) {
    const MtfIlp *ilp = run->ilp;
    int count = mtf_ilp_variable_count(ilp);
    if (count > 0)
        glp_add_cols(run->problem, count);
    for (int j = 0; j < count; j++) {
        const Variable *v = variable_at(ilp, j);
        if (v->binary)
            glp_set_col_kind(run->problem, j + 1, GLP_BV);
        else
            glp_set_col_bnds(run->problem, j + 1, bound_kind(v->low, v->high), v->low, v->high);
        glp_set_obj_coef(run->problem, j + 1, v->cost * run->scale);
    }
}

/* What makes the largest coefficient 1. */
static double scale_of(const Term *terms, int count) {
    double largest = 0;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(terms[k].coefficient));
    return largest > 0 ? 1 / largest : 1;
}

/* Hands row `index` to GLPK, divided by its largest coefficient. The two lists belong to the run:
 * GLPK may jump out of here. */
static void load_row(Run *run, glp_prob *problem, int index) {
    const Row *row = row_at(run->ilp, index);
    const Term *terms = terms_of(run->ilp, row);
    int *columns = run->columns = g_renew(int, run->columns, row->count + 1);
    double *coefficients = run->coefficients = g_renew(double, run->coefficients, row->count + 1);
    double scale = scale_of(terms, row->count);
    int count = 0;
    for (int k = 0; k < row->count; k++) {
        if (terms[k].coefficient == 0)
            continue;
        columns[++count] = terms[k].variable + 1;
        coefficients[count] = terms[k].coefficient * scale;
    }
    int at = glp_add_rows(problem, 1);
    glp_set_row_bnds(problem, at, bound_kind(row->low, row->high), row->low * scale,
                     row->high * scale);
    glp_set_mat_row(problem, at, count, columns, coefficients);
}

static double cost_scale(const MtfIlp *ilp) {
    double largest = 0;
    for (int j = 0; j < mtf_ilp_variable_count(ilp); j++)
        largest = fmax(largest, fabs(variable_at(ilp, j)->cost));
    return largest > 0 ? LARGEST_SCALED_COST / largest : 1;
}

static void load(Run *run) {
    run->scale = cost_scale(run->ilp);
    run->problem = glp_create_prob();
    load_variables(run);
    run->eager_rows = mtf_ilp_row_count(run->ilp);
    for (int i = 0; i < run->eager_rows; i++)
        load_row(run, run->problem, i);
}

static int milliseconds_left(const Run *run) {
    double left = 1e3 * mtf_search_seconds_left(run->options->control);
    return left < 1 ? 1 : left < (double)G_MAXINT ? (int)left : G_MAXINT;
}

/* Simplex iterations that the limit of work allows. */
static int most_iterations(const Run *run) {
    if (run->options->work <= 0)
        return G_MAXINT;
    return (int)CLAMP(run->options->work / (run->ilp->terms->len + 1.0), 1, G_MAXINT);
}

static bool is_cancelled(Run *run) {
    if (mtf_search_is_over(run->options->control))
        run->cancelled = true;
    return run->cancelled;
}

/* GLPK calls this before it would abort. */
static void on_error(void *info) {
    Run *run = info;
    run->failed = true;
    longjmp(run->escape, 1);
}

/* Swallows GLPK's output. The simplex method has no callback, but it prints a few times a second,
 * so this is also where a long relaxation is cancelled. */
static int on_print(void *info, const char *text) {
    (void)text;
    Run *run = info;
    if (is_cancelled(run))
        longjmp(run->escape, 1);
    return 1;
}

static void offer_start(Run *run, glp_tree *tree) {
    if (run->offered || run->ilp->start == NULL)
        return;
    run->offered = true;
    g_autofree double *values = g_new(double, run->ilp->variables->len + 1);
    memcpy(values + 1, run->ilp->start, run->ilp->variables->len * sizeof *values);
    glp_ios_heur_sol(tree, values);
}

/* Adds to the current subproblem the lazy rows that its relaxation breaks: rows made at other
 * nodes first, then new ones. */
static void add_lazy_rows(Run *run, glp_tree *tree) {
    glp_prob *problem = glp_ios_get_prob(tree);
    MtfIlp *ilp = run->ilp;
    for (int j = 0; j < mtf_ilp_variable_count(ilp); j++)
        run->point[j] = glp_get_col_prim(problem, j + 1);
    bool added = false;
    int old_rows = mtf_ilp_row_count(ilp);
    for (int i = run->eager_rows; i < old_rows; i++) {
        if (row_holds(ilp, row_at(ilp, i), run->point))
            continue;
        load_row(run, problem, i);
        added = true;
    }
    if (added)
        return;
    run->options->separate(ilp, run->point, run->options->user);
    for (int i = old_rows; i < mtf_ilp_row_count(ilp); i++)
        load_row(run, problem, i);
}

static void note_bound(Run *run, glp_tree *tree) {
    int best = glp_ios_best_node(tree);
    if (best != 0)
        run->ilp->bound = fmax(run->ilp->bound, glp_ios_node_bound(tree, best) / run->scale);
}

static void on_branch_and_bound(glp_tree *tree, void *info) {
    Run *run = info;
    if (is_cancelled(run) || glp_get_it_cnt(glp_ios_get_prob(tree)) >= most_iterations(run)) {
        glp_ios_terminate(tree);
        return;
    }
    switch (glp_ios_reason(tree)) {
    case GLP_IROWGEN:
        note_bound(run, tree);
        if (run->options->separate != NULL)
            add_lazy_rows(run, tree);
        break;
    case GLP_IHEUR:
        offer_start(run, tree);
        break;
    case GLP_IBINGO:
        note_bound(run, tree);
        break;
    default:
        break;
    }
}

/* Solves the root relaxation; true when branch and bound can go on from it. */
static bool solve_root(Run *run) {
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_ALL;
    options.out_frq = 200;
    options.meth = GLP_DUALP;
    options.presolve = GLP_ON;
    options.tm_lim = milliseconds_left(run);
    options.it_lim = most_iterations(run);
    int code = glp_simplex(run->problem, &options);
    int status = glp_get_status(run->problem);
    if (code == GLP_ENOPFS || status == GLP_NOFEAS || status == GLP_INFEAS)
        run->ilp->status =
            code == GLP_ETMLIM || code == GLP_EITLIM ? MTF_ILP_STOPPED : MTF_ILP_INFEASIBLE;
    if (code == 0 && status == GLP_OPT)
        run->ilp->bound = glp_get_obj_val(run->problem) / run->scale;
    return code == 0 && status == GLP_OPT;
}

static int branch_and_bound(Run *run) {
    glp_iocp options;
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_ALL;
    options.out_frq = 200;
    options.cb_func = on_branch_and_bound;
    options.cb_info = run;
    options.mip_gap = run->options->gap;
    options.tm_lim = milliseconds_left(run);
    int sees_all_rows = run->options->separate == NULL ? GLP_ON : GLP_OFF;
    options.fp_heur = sees_all_rows;
    options.sr_heur = sees_all_rows;
    return glp_intopt(run->problem, &options);
}

static void take_values(Run *run) {
    MtfIlp *ilp = run->ilp;
    ilp->objective = 0;
    for (int j = 0; j < mtf_ilp_variable_count(ilp); j++) {
        const Variable *v = variable_at(ilp, j);
        double value = glp_mip_col_val(run->problem, j + 1);
        ilp->values[j] = v->binary ? round(value) : value;
        ilp->objective += v->cost * ilp->values[j];
    }
}

static void take_answer(Run *run, int code) {
    MtfIlp *ilp = run->ilp;
    int status = glp_mip_status(run->problem);
    bool found = status == GLP_OPT || status == GLP_FEAS;
    if (found)
        take_values(run);
    bool proven = found && (status == GLP_OPT || code == GLP_EMIPGAP);
    ilp->status = proven                 ? MTF_ILP_OPTIMAL
                  : found                ? MTF_ILP_FEASIBLE
                  : status == GLP_NOFEAS ? MTF_ILP_INFEASIBLE
                                         : MTF_ILP_STOPPED;
    if (found && status == GLP_OPT && code == 0)
        ilp->bound = ilp->objective;
    if (found)
        ilp->bound = fmin(ilp->bound, ilp->objective);
}

static void solve_in_glpk(Run *run) {
    load(run);
    if (solve_root(run))
        take_answer(run, branch_and_bound(run));
    if (run->ilp->status == MTF_ILP_INFEASIBLE)
        run->ilp->bound = INFINITY;
    glp_delete_prob(run->problem);
}

/* Runs GLPK with a way out: after a jump its environment is undefined. Each thread has one of its
 * own, which is thrown away whole after each solve, as nothing tells when the thread ends. */
static void solve_guarded(Run *run) {
    glp_error_hook(on_error, run);
    glp_term_hook(on_print, run);
    if (setjmp(run->escape) != 0) {
        glp_free_env();
        return;
    }
    solve_in_glpk(run);
    glp_free_env();
}

static bool check_program(const MtfIlp *ilp, GError **error) {
    for (int j = 0; j < mtf_ilp_variable_count(ilp); j++) {
        const Variable *v = variable_at(ilp, j);
        if (!isfinite(v->cost) || !(v->low <= v->high))
            return mtf_failure(error, "variable %d of the integer program has cost %g in [%g, %g]",
                               j, v->cost, v->low, v->high);
    }
    for (int i = 0; i < mtf_ilp_row_count(ilp); i++) {
        const Row *row = row_at(ilp, i);
        double largest = 0;
        for (int k = 0; k < row->count; k++)
            largest += fabs(terms_of(ilp, row)[k].coefficient);
        if (!(largest < INFINITY) || !(row->low <= row->high))
            return mtf_failure(error, "row %d of the integer program is not finite", i);
    }
    return true;
}

bool mtf_ilp_solve(MtfIlp *ilp, const MtfIlpOptions *options, GError **error) {
    static const MtfIlpOptions none = { 0 };
    if (!check_program(ilp, error))
        return false;
    Run run = { .ilp = ilp, .options = options != NULL ? options : &none };
    g_autofree double *point = g_new0(double, ilp->variables->len + 1);
    run.point = point;
    g_free(ilp->values);
    ilp->values = g_new0(double, ilp->variables->len + 1);
    ilp->status = MTF_ILP_STOPPED;
    ilp->objective = INFINITY;
    ilp->bound = -INFINITY;
    solve_guarded(&run);
    g_free(run.columns);
    g_free(run.coefficients);
    return !run.failed || mtf_failure(error,
                                      "GLPK failed on an integer program of %d variables "
                                      "and %d rows",
                                      mtf_ilp_variable_count(ilp), mtf_ilp_row_count(ilp));
}

MtfIlpStatus mtf_ilp_status(const MtfIlp *ilp) {
    return ilp->status;
}

double mtf_ilp_value(const MtfIlp *ilp, int variable) {
    return ilp->values[variable];
}

double mtf_ilp_objective(const MtfIlp *ilp) {
    return ilp->objective;
}

double mtf_ilp_bound(const MtfIlp *ilp) {
    return ilp->bound;
}
