// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/bounds/node_pairs.h"
#include "analyzer/solver/reduce/core_part.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 1500
#define MAX_NODES 16

/* A core of a problem with a legal choice, and its values. */
static MtfCore *random_core(GRand *rand, MtfInt128 *optimum, int *values) {
    g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
    if (!mtf_test_exhaustive_search(problem, optimum, values))
        return NULL;
    return mtf_core_new(problem);
}

static void random_values(const MtfCore *core, GRand *rand, int *values) {
    for (int v = 0; v < core->node_count; v++)
        values[v] = g_rand_int_range(rand, 0, core->nodes[v].values);
}

/* What changes from one choice of the free nodes to another changes alike in the core, and what is
 * too much memory for the part is too much for the core. */
TEST(a_part_costs_and_fits_what_the_core_does) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    int compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int values[MAX_NODES], other[MAX_NODES], nodes[MAX_NODES], free[MAX_NODES], count = 0;
        g_autoptr(MtfCore) core = random_core(rand, &optimum, values);
        if (core == NULL)
            continue;
        int64_t *use = g_new0(int64_t, core->rows + 1);
        mtf_core_use(core, values, use);
        random_values(core, rand, other);
        for (int v = core->node_count - 1; v >= 0; v--) {
            bool chosen = g_rand_boolean(rand);
            other[v] = chosen ? other[v] : values[v];
            free[count] = other[v];
            nodes[count] = v;
            count += chosen;
        }
        g_autoptr(MtfCore) part = mtf_core_part(core, nodes, count, values, use);
        g_free(use);
        int before[MAX_NODES];
        for (int i = 0; i < count; i++)
            before[i] = values[nodes[i]];
        assert_true(mtf_core_allows(part, before));
        assert_int_equal(mtf_core_allows(part, free), mtf_core_allows(core, other));
        if (!mtf_core_allows(core, other))
            continue;
        assert_true(mtf_core_cost(part, free) - mtf_core_cost(part, before) ==
                    mtf_core_cost(core, other) - mtf_core_cost(core, values));
        compared++;
    }
    assert_true(compared > ROUNDS / 10);
}

/* The least cost over all values of what is left of a core; false where nothing fits. */
static bool least_of_core(const MtfCore *core, int64_t *least) {
    int at[MAX_NODES] = { 0 };
    bool found = false;
    for (;;) {
        int64_t cost = mtf_core_allows(core, at) ? mtf_core_cost(core, at) : 0;
        if (mtf_core_allows(core, at) && (!found || cost < *least)) {
            *least = cost;
            found = true;
        }
        int v = 0;
        while (v < core->node_count && (!core->nodes[v].alive || ++at[v] >= core->nodes[v].values))
            at[v++] = 0;
        if (v == core->node_count)
            return found;
    }
}

TEST(joined_nodes_keep_the_optimum_and_lift_to_it) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(32);
    int joined = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int values[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, values);
        if (core == NULL)
            continue;
        mtf_reduce_consistency(core);
        int count = mtf_core_pair_nodes(core, NULL, 3000, 120);
        int64_t least = 0;
        assert_true(!core->infeasible && least_of_core(core, &least));
        assert_true(least == optimum);
        joined += count;
    }
    assert_true(joined > ROUNDS / 10);
}
