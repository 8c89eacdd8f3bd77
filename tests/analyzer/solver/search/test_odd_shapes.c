// SPDX-License-Identifier: GPL-3.0-or-later
/* Problems of shapes that networks do not have and strangers try, to their optimum as exhaustive search finds
 * it, each with a certificate that proves it to a reader that shares nothing with the solver. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/search/layout_solve.h"
#include "layouts/base/error.h"
#include "tests/support/problems/layout_problems.h"

#define SEEDS 40
#define NODES 7
#define VALUES 4
#define TIMES 6

typedef enum { EDGES_CLIQUE, EDGES_STAR, EDGES_RING, EDGES_NONE } Edges;
typedef enum { LIMIT_NONE, LIMIT_LEAST_PEAK } Limit;

typedef struct {
    const char *name;
    Edges edges;
    int most_values;
    int64_t least_cost, most_cost, most_edge_cost;
    int64_t most_usage;
    bool has_empty_intervals; /* and no others */
    Limit limit;
} Shape;

static const Shape shapes[] = {
    { "clique", EDGES_CLIQUE, VALUES, 0, 20, 20, 9, false, LIMIT_NONE },
    { "clique at its least peak", EDGES_CLIQUE, VALUES, 0, 20, 20, 1000, false, LIMIT_LEAST_PEAK },
    { "star at its least peak", EDGES_STAR, VALUES, 0, 20, 20, 9, false, LIMIT_LEAST_PEAK },
    { "edges that cost nothing", EDGES_CLIQUE, VALUES, 0, 20, 0, 20, false, LIMIT_LEAST_PEAK },
    { "everything costs nothing", EDGES_RING, VALUES, 0, 0, 0, 9, false, LIMIT_LEAST_PEAK },
    { "the largest costs", EDGES_CLIQUE, VALUES, MTF_LAYOUT_MAX_COST - 9, MTF_LAYOUT_MAX_COST,
      MTF_LAYOUT_MAX_COST, 9, false, LIMIT_LEAST_PEAK },
    { "the largest gains", EDGES_RING, VALUES, -MTF_LAYOUT_MAX_COST, 9 - MTF_LAYOUT_MAX_COST, 9, 9,
      false, LIMIT_LEAST_PEAK },
    { "the largest usages", EDGES_RING, VALUES, 0, 20, 20, MTF_LAYOUT_MAX_COST, false,
      LIMIT_LEAST_PEAK },
    { "memory at no time", EDGES_RING, VALUES, 0, 20, 20, 9, true, LIMIT_LEAST_PEAK },
    { "one value a node", EDGES_CLIQUE, 1, 0, 20, 20, 9, false, LIMIT_LEAST_PEAK },
    { "nodes alone", EDGES_NONE, VALUES, 0, 20, 0, 9, false, LIMIT_LEAST_PEAK },
};

/* Any of least to most, whatever their sizes. */
static int64_t draw(GRand *rand, int64_t least, int64_t most) {
    return least + (int64_t)(g_rand_double(rand) * (double)(most - least + 1));
}

static void add_node(MtfLayoutProblem *problem, const Shape *shape, GRand *rand) {
    int64_t costs[VALUES], usages[VALUES];
    int64_t start = g_rand_int_range(rand, 0, TIMES);
    int64_t length = shape->has_empty_intervals ? 0 : g_rand_int_range(rand, 1, TIMES);
    int values = g_rand_int_range(rand, 1, shape->most_values + 1);
    for (int s = 0; s < values; s++) {
        costs[s] = draw(rand, shape->least_cost, shape->most_cost);
        usages[s] = draw(rand, 0, shape->most_usage);
    }
    mtf_layout_problem_add_node(problem,
                                (MtfLayoutNode){ start, start + length, values, costs, usages });
}

static bool has_edge(Edges edges, int u, int v) {
    return edges == EDGES_CLIQUE || (edges == EDGES_STAR && u == 0) ||
           (edges == EDGES_RING && (v == u + 1 || v == u + NODES - 1));
}

static void add_edge(MtfLayoutProblem *problem, const Shape *shape, GRand *rand, int u, int v) {
    int64_t costs[VALUES * VALUES];
    for (int i = 0; i < VALUES * VALUES; i++)
        costs[i] = draw(rand, 0, shape->most_edge_cost);
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ u, v, costs });
}

static MtfLayoutProblem *draw_problem(const Shape *shape, guint32 seed) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    MtfLayoutProblem *problem = mtf_layout_problem_new(shape->name);
    for (int v = 0; v < NODES; v++)
        add_node(problem, shape, rand);
    for (int u = 0; u < NODES; u++)
        for (int v = u + 1; v < NODES; v++)
            if (has_edge(shape->edges, u, v))
                add_edge(problem, shape, rand, u, v);
    if (shape->limit == LIMIT_LEAST_PEAK)
        mtf_layout_problem_set_limit(problem, mtf_test_least_peak(problem));
    return problem;
}

TEST(every_optimum_is_found_and_certified) {
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (guint32 seed = 0; seed < SEEDS; seed++) {
            g_autoptr(MtfLayoutProblem) problem = draw_problem(&shapes[i], seed);
            MtfInt128 optimum = 0;
            int choice[NODES];
            assert_true(mtf_test_exhaustive_search(problem, &optimum, choice));
            g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
            MtfSolveOptions options = { .certificate = certificate };
            g_autoptr(GError) error = NULL;
            g_autoptr(MtfLayoutSolution) found = mtf_layout_solve(problem, &options, NULL, &error);
            if (found == NULL)
                fail_msg("%s %u: %s", shapes[i].name, seed, error->message);
            if (found->cost != optimum || found->bound != optimum || found->tolerance > 0)
                fail_msg("%s %u: not the optimum, or not proven", shapes[i].name, seed);
            MtfProven proven;
            if (!mtf_certificate_check(problem, mtf_certificate_text(certificate), &proven, &error))
                fail_msg("%s %u: %s", shapes[i].name, seed, error->message);
            assert_true(proven.cost == optimum && proven.bound == optimum);
        }
}

/* A byte below the least peak nothing fits, and the least peak is what would do. */
TEST(a_byte_less_than_the_least_peak_is_refused) {
    int refused = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (guint32 seed = 0; seed < SEEDS / 4; seed++) {
            g_autoptr(MtfLayoutProblem) problem = draw_problem(&shapes[i], seed);
            int64_t peak = mtf_test_least_peak(problem);
            if (peak == 0)
                continue;
            mtf_layout_problem_set_limit(problem, peak - 1);
            MtfInfeasibility infeasibility = { 0 };
            g_autoptr(GError) error = NULL;
            g_autoptr(MtfLayoutSolution) found =
                mtf_layout_solve(problem, NULL, &infeasibility, &error);
            assert_null(found);
            assert_int_equal(mtf_error_exit_status(error), 3);
            assert_true(infeasibility.needed <= peak && infeasibility.enough >= peak);
            g_free(infeasibility.nodes);
            refused++;
        }
    assert_true(refused > SEEDS);
}
