// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/ilp.h"

#include <glib.h>
#include <math.h>

#define MAX_VARIABLES 9
#define MAX_ROWS 6

/* A random program over binaries, kept apart from MtfIlp for its naive twin. */
typedef struct Program {
    int variables, rows;
    double cost[MAX_VARIABLES];
    double a[MAX_ROWS][MAX_VARIABLES];
    double low[MAX_ROWS], high[MAX_ROWS];
} Program;

static Program random_program(GRand *rand) {
    Program p = { .variables = g_rand_int_range(rand, 1, MAX_VARIABLES + 1),
                  .rows = g_rand_int_range(rand, 0, MAX_ROWS + 1) };
    for (int j = 0; j < p.variables; j++)
        p.cost[j] = g_rand_int_range(rand, -50, 51);
    for (int i = 0; i < p.rows; i++) {
        for (int j = 0; j < p.variables; j++)
            p.a[i][j] = g_rand_int_range(rand, -3, 6);
        p.low[i] = g_rand_boolean(rand) ? (double)g_rand_int_range(rand, -4, 4) : -INFINITY;
        p.high[i] = g_rand_int_range(rand, 4, 12);
    }
    return p;
}

static bool program_holds(const Program *p, unsigned bits) {
    for (int i = 0; i < p->rows; i++) {
        double sum = 0;
        for (int j = 0; j < p->variables; j++)
            sum += (bits >> j & 1) * p->a[i][j];
        if (sum < p->low[i] || sum > p->high[i])
            return false;
    }
    return true;
}

static double program_cost(const Program *p, unsigned bits) {
    double sum = 0;
    for (int j = 0; j < p->variables; j++)
        sum += (bits >> j & 1) * p->cost[j];
    return sum;
}

/* INFINITY when nothing is feasible. */
static double exhaustive_optimum(const Program *p) {
    double best = INFINITY;
    for (unsigned bits = 0; bits < 1u << p->variables; bits++)
        if (program_holds(p, bits))
            best = fmin(best, program_cost(p, bits));
    return best;
}

static void add_row(MtfIlp *ilp, const Program *p, int i) {
    int variables[MAX_VARIABLES];
    for (int j = 0; j < p->variables; j++)
        variables[j] = j;
    mtf_ilp_add_row(ilp, p->variables, variables, p->a[i], p->low[i], p->high[i]);
}

static MtfIlp *build(const Program *p, int rows) {
    MtfIlp *ilp = mtf_ilp_new();
    for (int j = 0; j < p->variables; j++)
        mtf_ilp_add_binary(ilp, p->cost[j]);
    for (int i = 0; i < rows; i++)
        add_row(ilp, p, i);
    return ilp;
}

static void assert_is_optimum(const MtfIlp *ilp, const Program *p) {
    double optimum = exhaustive_optimum(p);
    if (isinf(optimum)) {
        assert_int_equal(mtf_ilp_status(ilp), MTF_ILP_INFEASIBLE);
        return;
    }
    assert_int_equal(mtf_ilp_status(ilp), MTF_ILP_OPTIMAL);
    assert_true(fabs(mtf_ilp_objective(ilp) - optimum) < 1e-6);
    assert_true(fabs(mtf_ilp_bound(ilp) - optimum) < 1e-6);
    unsigned bits = 0;
    for (int j = 0; j < p->variables; j++)
        bits |= (unsigned)(mtf_ilp_value(ilp, j) == 1) << j;
    assert_true(program_holds(p, bits));
    assert_true(program_cost(p, bits) == optimum);
}

TEST(random_programs_match_exhaustive_search) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < 1500; round++) {
        Program p = random_program(rand);
        g_autoptr(MtfIlp) ilp = build(&p, p.rows);
        assert_true(mtf_ilp_solve(ilp, NULL, NULL));
        assert_is_optimum(ilp, &p);
    }
}

static void add_broken_rows(MtfIlp *ilp, const double *values, void *user) {
    const Program *p = user;
    for (int i = 0; i < p->rows; i++) {
        double sum = 0;
        for (int j = 0; j < p->variables; j++)
            sum += p->a[i][j] * values[j];
        if (sum < p->low[i] - 1e-5 || sum > p->high[i] + 1e-5)
            add_row(ilp, p, i);
    }
}

TEST(lazy_rows_give_the_same_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    for (int round = 0; round < 1500; round++) {
        Program p = random_program(rand);
        g_autoptr(MtfIlp) ilp = build(&p, p.rows / 2);
        MtfIlpOptions options = { .separate = add_broken_rows, .user = &p };
        assert_true(mtf_ilp_solve(ilp, &options, NULL));
        assert_is_optimum(ilp, &p);
    }
}

TEST(a_start_never_spoils_the_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (int round = 0; round < 500; round++) {
        Program p = random_program(rand);
        g_autoptr(MtfIlp) ilp = build(&p, p.rows);
        unsigned bits = (unsigned)g_rand_int_range(rand, 0, 1 << p.variables);
        double start[MAX_VARIABLES];
        for (int j = 0; j < p.variables; j++)
            start[j] = bits >> j & 1;
        assert_int_equal(mtf_ilp_set_start(ilp, start), program_holds(&p, bits));
        assert_true(mtf_ilp_solve(ilp, NULL, NULL));
        assert_is_optimum(ilp, &p);
    }
}

/* minimise -a - b with 2a + 2b <= 3: one of the two, -1. */
TEST(a_cancelled_search_stops_without_an_answer) {
    g_autoptr(MtfIlp) ilp = mtf_ilp_new();
    int a = mtf_ilp_add_binary(ilp, -1), b = mtf_ilp_add_binary(ilp, -1);
    mtf_ilp_add_row(ilp, 2, (int[]){ a, b }, (double[]){ 2, 2 }, -INFINITY, 3);
    MtfSearchControl control;
    mtf_search_control_init(&control, 0);
    mtf_search_cancel(&control);
    MtfIlpOptions options = { .control = &control };
    assert_true(mtf_ilp_solve(ilp, &options, NULL));
    assert_int_equal(mtf_ilp_status(ilp), MTF_ILP_STOPPED);
    assert_true(mtf_ilp_solve(ilp, NULL, NULL));
    assert_true(mtf_ilp_objective(ilp) == -1);
}

/* A limit of simplex iterations is a limit by no clock: too little work stops without an answer, enough of it
 * changes nothing. */
TEST(too_little_work_stops_and_enough_does_not) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    int stopped = 0;
    for (int i = 0; i < 100; i++) {
        Program p = random_program(rand);
        g_autoptr(MtfIlp) ilp = build(&p, p.rows);
        MtfIlpOptions little = { .work = 1 }, enough = { .work = 1e9 };
        assert_true(mtf_ilp_solve(ilp, &little, NULL));
        stopped += mtf_ilp_status(ilp) == MTF_ILP_STOPPED;
        assert_true(mtf_ilp_bound(ilp) <= exhaustive_optimum(&p) + 1e-6);
        assert_true(mtf_ilp_solve(ilp, &enough, NULL));
        assert_is_optimum(ilp, &p);
    }
    assert_true(stopped >= 10);
}

/* Costs are scaled before GLPK sees them: x + y >= 1, x costs 2.13479e15, y twice as much. */
TEST(costs_of_any_size_are_solved) {
    g_autoptr(MtfIlp) ilp = mtf_ilp_new();
    int both[] = { mtf_ilp_add_binary(ilp, 2.13479e15), mtf_ilp_add_binary(ilp, 4.26958e15) };
    mtf_ilp_add_row(ilp, 2, both, (double[]){ 1, 1 }, 1, INFINITY);
    assert_true(mtf_ilp_solve(ilp, NULL, NULL));
    assert_int_equal(mtf_ilp_status(ilp), MTF_ILP_OPTIMAL);
    assert_true(mtf_ilp_value(ilp, both[0]) > 0.5 && mtf_ilp_value(ilp, both[1]) < 0.5);
}

TEST(a_failure_inside_glpk_is_an_error_and_not_an_abort) {
    g_autoptr(MtfIlp) ilp = mtf_ilp_new();
    int a = mtf_ilp_add_binary(ilp, 1);
    mtf_ilp_add_row(ilp, 2, (int[]){ a, a }, (double[]){ 1, 1 }, 0, 1);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_ilp_solve(ilp, NULL, &error));
    assert_non_null(error);
    g_autoptr(MtfIlp) next = mtf_ilp_new();
    mtf_ilp_add_binary(next, -2);
    assert_true(mtf_ilp_solve(next, NULL, NULL));
    assert_true(mtf_ilp_objective(next) == -2);
}

/* minimise 3x + y with x + y >= 2.5, 0 <= x <= 10 continuous and y binary: y = 1, x = 1.5. */
TEST(continuous_variables_keep_their_fractions) {
    g_autoptr(MtfIlp) ilp = mtf_ilp_new();
    int x = mtf_ilp_add_continuous(ilp, 0, 10, 3), y = mtf_ilp_add_binary(ilp, 1);
    mtf_ilp_add_row(ilp, 2, (int[]){ x, y }, (double[]){ 1, 1 }, 2.5, INFINITY);
    assert_true(mtf_ilp_solve(ilp, NULL, NULL));
    assert_true(fabs(mtf_ilp_value(ilp, x) - 1.5) < 1e-9);
    assert_true(fabs(mtf_ilp_objective(ilp) - 5.5) < 1e-9);
}
