// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/rules/rule_search_levels.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph_file/graph_json.h"

/* What one random graph's levels are held against. */
typedef struct {
    const MtfGraph *graph;
    const MtfRuleTables *tables;
    const MtfRuleLevels *levels;
    MtfRules *rules;
    int64_t cheapest;
    int seen;
} Check;

static int64_t levelled_price(const Check *check) {
    int64_t sum = 0;
    for (int s = 0; s < check->levels->n_scopes; s++)
        sum += check->levels->nanoseconds[s][mtf_rule_tables_find(check->tables, s, check->rules)];
    return sum;
}

static void check_from(Check *check, int dim) {
    if (dim < check->rules->n_dims) {
        for (int axis = -1; axis < check->tables->mesh.n_axes; axis++) {
            check->rules->axis[dim] = axis;
            check_from(check, dim + 1);
        }
    } else if (mtf_rules_check(check->graph, &check->tables->mesh, check->rules, NULL)) {
        int64_t price = mtf_rule_tables_price(check->tables, check->rules);
        assert_int_equal(levelled_price(check), price);
        check->cheapest = MIN(check->cheapest, price);
        check->seen++;
    }
}

/* Prices at random make scopes disagree, as those of graphs seldom do. */
static void spoil_prices(MtfRuleTables *tables, guint32 seed) {
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    for (int s = 0; s < (int)tables->terms->maximal->len; s++)
        for (int k = 0; k < tables->tables[s].n; k++)
            tables->tables[s].nanoseconds[k] = g_rand_int_range(random, 0, 1000000);
}

/* One trial of prices; whether levels say more than the prices themselves, and whether they say all. */
static void check_prices(MtfRuleTables *tables, guint32 seed, int *better, int *met) {
    const MtfGraph *graph = tables->terms->graph;
    spoil_prices(tables, seed);
    g_autoptr(MtfRuleLevels) levels = mtf_rule_levels_new(tables);
    g_autoptr(MtfRules) rules = mtf_rules_new(graph);
    Check check = { graph, tables, levels, rules, INT64_MAX, 0 };
    check_from(&check, 0);
    int64_t bound = mtf_rule_levels_bound(levels, tables);
    assert_true(check.seen > 0 && bound <= check.cheapest);
    assert_true(bound >= mtf_rule_tables_floor(tables));
    *better += bound > mtf_rule_tables_floor(tables);
    *met += bound == check.cheapest;
}

/* A two-layer network of four dimensions on two axes. */
TEST(every_assignment_keeps_its_price_and_none_is_below_the_bound) {
    int better = 0, met = 0;
    unsigned allowed[16];
    MtfMesh mesh;
    MtfPricer pricer;
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    g_autoptr(MtfGraph) forward = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    for (guint d = 0; d < G_N_ELEMENTS(allowed); d++)
        allowed[d] = ~0U;
    assert_true(graph->dimensions->len <= G_N_ELEMENTS(allowed));
    assert_true(mtf_mesh_parse("a:2;b:4", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(MtfRuleTerms) terms = mtf_rule_terms_new(graph);
    bool costs_more;
    MtfRuleTablesOptions options = {
        .pricer = &pricer, .mesh = &mesh, .allowed = allowed, .most = INT64_MAX
    };
    g_autoptr(MtfRuleTables) tables = mtf_rule_tables_new(terms, &options, &costs_more);
    for (guint32 seed = 0; seed < 300; seed++)
        check_prices(tables, seed, &better, &met);
    if (better < 100 || met < 30 || met == 300)
        fail_msg("%d of 300 better, %d met", better, met);
}
