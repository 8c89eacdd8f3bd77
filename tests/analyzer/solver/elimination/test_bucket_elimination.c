// SPDX-License-Identifier: GPL-3.0-or-later
/* Bucket elimination against exhaustive search, with prices drawn at random: whatever they are, what it
 * finds is the optimum, what it refutes is not there, and its certificate proves both. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/elimination/bucket_elimination.h"
#include "analyzer/solver/elimination/elimination_tree.h"
#include "analyzer/solver/elimination/priced_terms.h"
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_values.h"
#include "tests/support/problems/layout_problems.h"

#include <string.h>

#define ROUNDS 4000
#define MAX_NODES 16
#define ALL_WORK 100000000

/* A third random, a third of repeated cells, and a third of near ties. */
static MtfLayoutProblem *some_problem(GRand *rand, int round) {
    switch (round % 3) {
    case 0:
        return mtf_test_random_problem(rand);
    case 1:
        return mtf_test_repeated_problem(rand);
    default:
        return mtf_test_magnified_problem(rand, INT64_C(1) << 36, 4);
    }
}

/* Half the rows have none; others up to `most` for all that fits. */
static double *random_prices(GRand *rand, const MtfCore *core, double most) {
    double *prices = g_new0(double, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        if (g_rand_boolean(rand))
            prices[r] = g_rand_double_range(rand, 0, most) / (double)MAX(1, core->capacity[r]);
    return prices;
}

/* What the certificate proves is the bound told, or nothing where none was. */
static void assert_certified(const MtfLayoutProblem *problem, const MtfCertificate *certificate,
                             int64_t bound) {
    MtfProven proven;
    g_autoptr(GError) error = NULL;
    if (!mtf_certificate_check(problem, mtf_certificate_text(certificate), &proven, &error))
        fail_msg("%s in\n%s", error->message, mtf_certificate_text(certificate));
    assert_int_equal(proven.has_bound, bound > -MTF_CORE_IMPOSSIBLE);
    assert_true(!proven.has_bound || proven.bound == bound);
}

TEST(what_is_found_is_the_optimum_and_what_is_refuted_is_not_there) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    int found = 0, refuted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 1000;
        int choice[MAX_NODES], values[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        mtf_certify_begin(core, certificate);
        g_autofree double *prices = random_prices(rand, core, fits ? (double)optimum : 100);
        MtfElimination elimination = { .cutoff = (int64_t)optimum + g_rand_int_range(rand, -3, 4),
                                       .prices = prices,
                                       .work = ALL_WORK,
                                       .known = -MTF_CORE_IMPOSSIBLE };
        int64_t bound;
        MtfEliminationStatus status = mtf_bucket_eliminate(core, &elimination, values, &bound);
        bool within = fits && elimination.cutoff >= optimum;
        assert_int_equal(status, within ? MTF_ELIMINATION_FOUND : MTF_ELIMINATION_NONE);
        assert_true(bound == (within ? (int64_t)optimum : elimination.cutoff + 1));
        assert_true(!within || mtf_core_cost(core, values) == optimum);
        assert_true(!within || mtf_core_allows(core, values));
        assert_certified(problem, certificate, bound);
        found += within;
        refuted += !within;
    }
    assert_true(found > ROUNDS / 4 && refuted > ROUNDS / 4);
}

/* Cut off anywhere, a bound is none above the optimum, and a cutoff far away changes nothing. */
TEST(little_work_proves_nothing_false) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(32);
    int open = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum;
        int choice[MAX_NODES], values[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        mtf_certify_begin(core, certificate);
        g_autofree double *prices = random_prices(rand, core, 3);
        MtfElimination elimination = { .cutoff = (int64_t)optimum + g_rand_int_range(rand, 0, 1000),
                                       .prices = prices,
                                       .work = g_rand_int_range(rand, 1, 300),
                                       .known = -MTF_CORE_IMPOSSIBLE };
        int64_t bound;
        MtfEliminationStatus status = mtf_bucket_eliminate(core, &elimination, values, &bound);
        assert_int_not_equal(status, MTF_ELIMINATION_NONE);
        assert_true(bound <= optimum);
        assert_certified(problem, certificate, bound);
        assert_true(status != MTF_ELIMINATION_FOUND || mtf_core_cost(core, values) == optimum);
        open += status == MTF_ELIMINATION_OPEN;
    }
    assert_true(open > ROUNDS / 10);
}

/* ---- the parts ---- */

static bool has_node(const GArray *scope, int node) {
    for (guint k = 0; k < scope->len; k++)
        if (g_array_index(scope, int, k) == node)
            return true;
    return false;
}

static bool reaches(const MtfEliminationTree *tree, int from, int node) {
    while (from >= 0 && tree->buckets[from].node != node)
        from = tree->buckets[from].parent;
    return from >= 0;
}

TEST(every_edge_lies_in_the_scope_of_its_first_end_and_scopes_in_their_parents) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(33);
    for (int round = 0; round < 300; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfEliminationTree) tree = mtf_elimination_tree_new(core, MAX_NODES);
        assert_int_equal(tree->count, mtf_core_size(core).nodes);
        for (guint e = 0; e < core->edges->len; e++) {
            const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
            int a = tree->position[edge->a], b = tree->position[edge->b];
            assert_true(has_node(tree->buckets[MIN(a, b)].scope, tree->buckets[MAX(a, b)].node));
        }
        for (int i = 0; i + 1 < tree->count; i++) {
            const MtfBucket *bucket = &tree->buckets[i], *parent = &tree->buckets[bucket->parent];
            assert_true(bucket->parent > i &&
                        reaches(tree, i, tree->buckets[tree->count - 1].node));
            for (guint k = 0; k < bucket->scope->len; k++) {
                int node = g_array_index(bucket->scope, int, k);
                assert_true(node == parent->node || has_node(parent->scope, node));
            }
        }
    }
}

/* A chain of four nodes is eliminated from its ends in scopes of one, a square in scopes of two. */
TEST(a_chain_has_width_one_and_a_square_two) {
    for (int square = 0; square <= 1; square++) {
        MtfCore *core = mtf_core_new_empty(4);
        for (int v = 0; v < 4; v++) {
            core->nodes[v].alive = true;
            core->nodes[v].values = 1;
            core->nodes[v].cost =
                mtf_shared_keep(core->shared, memset(mtf_core_new_costs(1), 0, sizeof(int64_t)));
        }
        const int64_t *matrix =
            mtf_shared_keep(core->shared, memset(mtf_core_new_costs(1), 0, sizeof(int64_t)));
        for (int v = 0; v < 3 + square; v++)
            mtf_core_join(core, v, (v + 1) % 4, matrix);
        mtf_shared_unref(core->shared, matrix);
        g_autoptr(MtfEliminationTree) narrow = mtf_elimination_tree_new(core, square);
        g_autoptr(MtfEliminationTree) wide = mtf_elimination_tree_new(core, 1 + square);
        assert_null(narrow);
        assert_non_null(wide);
        mtf_core_free(core);
    }
}

/* The terms of a choice of the core. */
static MtfInt128 terms_of(const MtfPricedTerms *terms, const int *values) {
    const MtfCore *core = terms->core;
    MtfInt128 sum = 0;
    for (int v = 0; v < core->node_count; v++)
        sum += terms->node[v][values[v]];
    for (guint e = 0; e < core->edges->len; e++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
        sum += terms->edge[e][values[edge->a] * core->nodes[edge->b].values + values[edge->b]];
    }
    return sum;
}

static bool next_choice(const MtfCore *core, int *values) {
    for (int v = 0; v < core->node_count; v++) {
        if (++values[v] < core->nodes[v].values)
            return true;
        values[v] = 0;
    }
    return false;
}

TEST(no_choice_that_fits_within_the_cutoff_exceeds_the_slack) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(34);
    int within = 0;
    for (int round = 0; round < 600; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            round % 2 ? mtf_test_random_problem(rand)
                      : mtf_test_magnified_problem(rand, INT64_C(1) << 36, 4);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        int values[MAX_NODES] = { 0 };
        int64_t cutoff = mtf_core_cost(core, values);
        g_autofree double *prices = random_prices(rand, core, (double)MAX(1, cutoff));
        g_autoptr(MtfPricedTerms) terms =
            cutoff < MTF_CORE_IMPOSSIBLE / 2 ? mtf_priced_terms_new(core, prices, cutoff) : NULL;
        if (terms == NULL)
            continue;
        do {
            if (mtf_core_cost(core, values) > cutoff || !mtf_core_allows(core, values))
                continue;
            assert_true(terms_of(terms, values) <= terms->slack);
            within++;
        } while (next_choice(core, values));
    }
    assert_true(within > 1000);
}
