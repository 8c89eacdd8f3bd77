// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/bounds/probing.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 1000
#define MAX_NODES 16

/* Three nodes of two values, each pair of which costs 1 where the two agree. */
static MtfCore *odd_cycle(void) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("odd cycle");
    int64_t none[2] = { 0 };
    for (int v = 0; v < 3; v++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, none, none });
    for (int v = 0; v < 3; v++)
        mtf_layout_problem_add_edge(problem,
                                    (MtfLayoutEdge){ v, (v + 1) % 3, (int64_t[]){ 1, 0, 0, 1 } });
    return mtf_core_new(problem);
}

/* Two of three nodes agree, so the optimum is 1, while half of each value everywhere costs 0 and is
 * all that the bound can see. Beside one value alone the others disagree with it and so agree. */
TEST(the_gap_of_an_odd_cycle_is_closed) {
    for (int cutoff = 0; cutoff <= 1; cutoff++) {
        g_autoptr(MtfCore) core = odd_cycle();
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        double bound = 0;
        for (int pass = 0; pass < 20; pass++)
            bound = mtf_messages_pass(messages);
        assert_true(bound <= 1e-9);
        int found = mtf_probe(messages, core, bound, cutoff, NULL);
        assert_int_equal(found, cutoff == 0 ? 6 : 0);
    }
}

TEST(probing_keeps_every_choice_within_the_cutoff) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    int found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES], values[MAX_NODES];
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_reduce_rows(core);
        mtf_reduce_consistency(core);
        if (!mtf_core_project(core, choice, values))
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        g_autofree double *price = g_new0(double, core->rows + 1);
        for (int r = 0; r < core->rows; r++)
            price[r] = g_rand_boolean(rand) ? g_rand_double(rand) * 3 : 0;
        mtf_messages_set_prices(messages, price);
        double bound = mtf_messages_pass(messages);
        found += mtf_probe(messages, core, bound, (int64_t)optimum, NULL);
        assert_true(mtf_core_cost(core, values) == optimum);
        assert_true(mtf_messages_pass(messages) <= (double)optimum + 1e-9);
    }
    assert_true(found > ROUNDS / 2);
}
