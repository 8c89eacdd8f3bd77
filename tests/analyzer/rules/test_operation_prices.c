// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/strategies.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/planning.h"
#include "analyzer/rules/operation_alone.h"
#include "analyzer/rules/operation_prices.h"
#include "analyzer/rules/rule_search.h"
#include "layouts/program/program.h"

static const MtfModelFamily *const families[] = {
    &mtf_model_resnet, &mtf_model_unet,    &mtf_model_llama,
    &mtf_model_switch, &mtf_model_lstm_lm, &mtf_model_transformer,
};

static MtfGraph *step_of(const MtfModelFamily *family, MtfRecompute recompute) {
    g_autoptr(MtfGraph) forward = mtf_model_build(family, &family->presets[0], NULL, NULL);
    assert_non_null(forward);
    MtfStepVariant variant = { .recompute = recompute, .fuses = true };
    return mtf_planning_executed_graph(forward, &variant, NULL);
}

typedef struct {
    MtfOperationAlone alone;
    GArray *dimensions;
    char *text;
} Numbered;

static Numbered *numbered_new(const MtfGraph *graph, int operation, const int *updated) {
    Numbered *numbered = g_new0(Numbered, 1);
    mtf_operation_alone_init(&numbered->alone, graph, operation, updated);
    numbered->dimensions = mtf_operation_alone_dimensions(&numbered->alone);
    numbered->text = mtf_operation_alone_text(&numbered->alone, numbered->dimensions);
    return numbered;
}

static void numbered_free(gpointer data) {
    Numbered *numbered = data;
    mtf_operation_alone_clear(&numbered->alone);
    g_array_unref(numbered->dimensions);
    g_free(numbered->text);
    g_free(numbered);
}

static MtfPlacement placement_at_random(GRand *rand, const MtfShape *shape, int axes) {
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < axes && shape->rank > 0; a++)
        if (g_rand_boolean(rand))
            placement.axis[a] = (int16_t)shape->dims[g_rand_int_range(rand, 0, shape->rank)];
    return placement;
}

/* Lays both out alike, at random, by the numbers of their dimensions. */
static void place_both(GRand *rand, const Numbered *a, const Numbered *b, MtfLayout *of_a,
                       MtfLayout *of_b) {
    g_autoptr(GArray) strategies = mtf_strategies(a->alone.graph, &of_a->mesh, 0, NULL, 0);
    of_a->operations[0] = of_b->operations[0] =
        g_array_index(strategies, MtfStrategy, g_rand_int_range(rand, 0, (gint32)strategies->len));
    for (int t = 0; t < of_a->n_tensors; t++) {
        const MtfShape *shape = &mtf_graph_tensor(a->alone.graph, t)->shape;
        MtfPlacement placement = placement_at_random(rand, shape, of_a->mesh.n_axes);
        of_a->tensors[t] = of_b->tensors[t] = placement;
        for (int i = 0; i < of_a->mesh.n_axes; i++)
            if (placement.axis[i] >= 0)
                of_b->tensors[t].axis[i] = (int16_t)g_array_index(
                    b->dimensions, int,
                    mtf_operation_alone_number(a->dimensions, placement.axis[i]));
    }
}

static int64_t price_of(const MtfPricer *pricer, const Numbered *numbered,
                        const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower_operation(numbered->alone.graph, layout, 0);
    return mtf_price_program(pricer, program);
}

/* Whether two operations that are said to be the same cost the same; and so they are found under each other's names. */
static void assert_same_prices(GRand *rand, const MtfPricer *pricer, const MtfMesh *mesh,
                               const Numbered *a, const Numbered *b) {
    g_autoptr(MtfOperationPrices) prices = mtf_operation_prices_new();
    g_autoptr(MtfLayout) of_a = mtf_layout_new(a->alone.graph, mesh);
    g_autoptr(MtfLayout) of_b = mtf_layout_new(b->alone.graph, mesh);
    assert_int_equal(of_a->n_tensors, of_b->n_tensors);
    for (int k = 0; k < 2; k++) {
        int64_t found;
        place_both(rand, a, b, of_a, of_b);
        int64_t price = price_of(pricer, a, of_a);
        if (price != price_of(pricer, b, of_b))
            fail_msg("%s costs other than %s", mtf_graph_operation(a->alone.graph, 0)->name,
                     mtf_graph_operation(b->alone.graph, 0)->name);
        mtf_placed_prices_add(mtf_operation_prices_of(prices, a->text, mesh), of_a, a->dimensions,
                              price);
        assert_true(mtf_placed_prices_find(mtf_operation_prices_of(prices, b->text, mesh), of_b,
                                           b->dimensions, &found));
        assert_int_equal(found, price);
    }
}

/* Over steps that recompute and that do not, of networks with windows, loops, experts and attention. */
TEST(operations_of_equal_texts_cost_the_same) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    g_autoptr(MtfMachine) machine = mtf_planning_machine("v100", "pytorch", NULL);
    MtfMesh mesh;
    MtfPricer pricer;
    assert_true(mtf_mesh_parse("rows:2;cols:4", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, numbered_free);
    int renamed = 0;
    for (gsize f = 0; f < 2 * G_N_ELEMENTS(families); f++) {
        g_autoptr(MtfGraph) graph =
            step_of(families[f / 2], f % 2 == 0 ? MTF_RECOMPUTE_NONE : MTF_RECOMPUTE_LAYERS);
        if (graph == NULL)
            continue;
        g_autofree int *updated = mtf_graph_next_values(graph);
        for (int i = 0; i < (int)graph->operations->len; i++) {
            Numbered *own = numbered_new(graph, i, updated);
            const Numbered *before = g_hash_table_lookup(known, own->text);
            if (before == NULL) {
                g_hash_table_insert(known, own->text, own);
                continue;
            }
            assert_same_prices(rand, &pricer, &mesh, before, own);
            for (guint d = 0; d < own->dimensions->len; d++)
                renamed += g_array_index(own->dimensions, int, d) !=
                           g_array_index(before->dimensions, int, d);
            numbered_free(own);
        }
    }
    assert_true(renamed > 100);
}

/* Of another mesh, of another operation, and where it lies otherwise nothing is known. */
TEST(nothing_is_known_of_others) {
    g_autoptr(MtfOperationPrices) prices = mtf_operation_prices_new();
    g_autoptr(MtfGraph) graph = step_of(&mtf_model_llama, MTF_RECOMPUTE_NONE);
    g_autofree int *updated = mtf_graph_next_values(graph);
    MtfMesh mesh, other;
    int64_t found;
    assert_true(mtf_mesh_parse("rows:2;cols:4", 0, &mesh, NULL));
    assert_true(mtf_mesh_parse("rows:4;cols:2", 0, &other, NULL));
    int operation = 0;
    while (mtf_graph_tensor(graph, mtf_graph_operation(graph, operation)->outputs[0])->shape.rank ==
           0)
        operation++;
    Numbered *first = numbered_new(graph, operation, updated);
    g_autoptr(MtfLayout) layout = mtf_layout_new(first->alone.graph, &mesh);
    MtfPlacedPrices *placed = mtf_operation_prices_of(prices, first->text, &mesh);
    assert_ptr_equal(mtf_operation_prices_of(prices, first->text, &mesh), placed);
    assert_ptr_not_equal(mtf_operation_prices_of(prices, first->text, &other), placed);
    assert_ptr_not_equal(mtf_operation_prices_of(prices, "other", &mesh), placed);
    assert_false(mtf_placed_prices_find(placed, layout, first->dimensions, &found));
    mtf_placed_prices_add(placed, layout, first->dimensions, 7);
    assert_true(mtf_placed_prices_find(placed, layout, first->dimensions, &found));
    assert_int_equal(found, 7);
    int output = mtf_graph_operation(first->alone.graph, 0)->outputs[0];
    layout->tensors[output].axis[1] =
        (int16_t)mtf_graph_tensor(first->alone.graph, output)->shape.dims[0];
    assert_false(mtf_placed_prices_find(placed, layout, first->dimensions, &found));
    layout->tensors[output].axis[1] = MTF_REPLICATED;
    layout->operations[0].axis[0] = 0;
    assert_false(mtf_placed_prices_find(placed, layout, first->dimensions, &found));
    numbered_free(first);
}

/* Searches of other variants of a step find with shared prices what each finds alone. */
TEST(shared_prices_of_operations_change_no_answer) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("v100", "pytorch", NULL);
    g_autoptr(MtfOperationPrices) operations = mtf_operation_prices_new();
    g_autoptr(GArray) meshes = mtf_mesh_shapes(4, 2);
    for (gsize f = 0; f < 2 * G_N_ELEMENTS(families); f++) {
        g_autoptr(MtfGraph) graph =
            step_of(families[f / 2], f % 2 == 0 ? MTF_RECOMPUTE_NONE : MTF_RECOMPUTE_LAYERS);
        if (graph == NULL)
            continue;
        g_autoptr(MtfRulePrices) prices = mtf_rule_prices_new(graph, operations);
        MtfRuleSearchOptions own = { .machine = machine, .memory_limit = INT64_MAX, .draft = true };
        MtfRuleSearchOptions sharing = own;
        sharing.prices = prices;
        MtfRuleAnswer alone, shared;
        assert_true(mtf_rule_search(graph, meshes, &own, &alone, NULL));
        assert_true(mtf_rule_search(graph, meshes, &sharing, &shared, NULL));
        assert_true(alone.found && shared.found);
        assert_int_equal(alone.cost, shared.cost);
        assert_int_equal(alone.bound, shared.bound);
        assert_memory_equal(alone.rules->axis, shared.rules->axis,
                            (gsize)alone.rules->n_dims * sizeof *alone.rules->axis);
        mtf_rule_answer_clear(&alone);
        mtf_rule_answer_clear(&shared);
    }
}
