// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/placement/strategy.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define HEAD                                                                                      \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'io': 4, 'hidden': 6, 'vocab': " \
    "16, 'other': 4}, 'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}, "    \
    "{'name': 'ids', 'dims': ['batch'], 'dtype': 'int32', 'feed': 'labels'}], 'variables': ["     \
    "{'name': 'w', 'dims': ['io', 'hidden'], 'init': 'ones'}, {'name': 'table', 'dims': "         \
    "['vocab', 'io'], 'init': 'ones'}, {'name': 'logits', 'dims': ['batch', 'vocab'], 'init': "   \
    "'ones'}, {'name': 'bias', 'dims': ['io'], 'init': 'ones'}], 'operations': ["

/* A graph with one operation "y". */
static MtfGraph *graph_of(const char *operation) {
    g_autofree char *text = g_strconcat(HEAD "{'name': 'y', ", operation, "}]}", NULL);
    return mtf_test_graph(text);
}

static MtfMesh one_axis(void) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("m:2", 0, &mesh, NULL));
    return mesh;
}

/* The iteration space as text: "batch hidden io*", a star for reduced indexes. */
static void assert_iteration(const MtfGraph *graph, const char *expected) {
    g_autoptr(GString) text = g_string_new(NULL);
    MtfIteration iteration;
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++) {
        const MtfIndex *index = &iteration.index[i];
        g_string_append_printf(text, "%s%s%s", i > 0 ? " " : "",
                               mtf_graph_dimension(graph, index->dim)->name,
                               index->reduced ? "*" : "");
        assert_int_equal(index->size, mtf_graph_size(graph, index->dim));
    }
    assert_string_equal(text->str, expected);
}

/* Splits along `choice` on the one axis and says what follows, "batch replicated -> batch". */
static void assert_placements(const MtfGraph *graph, const char *choice, const char *expected) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const MtfOperation *operation = mtf_graph_operation(graph, 0);
    MtfStrategy strategy = mtf_strategy_duplicated();
    MtfMesh mesh = one_axis();
    MtfIteration iteration;
    int value;
    assert_true(mtf_strategy_axis_parse(graph, 0, choice, &value, NULL));
    strategy.axis[0] = (int8_t)value;
    if (!mtf_strategy_check(graph, &mesh, 0, &strategy, &error))
        fail_msg("%s", error->message);
    mtf_operation_iteration(graph, 0, &iteration);
    for (int k = 0; k < operation->n_inputs; k++) {
        MtfPlacement placement = mtf_strategy_input(graph, 0, &iteration, &strategy, k);
        g_string_append_printf(text, "%s ", mtf_axis_placement_name(graph, placement.axis[0]));
        assert_int_equal(placement.axis[1], MTF_REPLICATED);
    }
    g_string_append(text, "->");
    for (int k = 0; k < operation->n_outputs; k++) {
        MtfPlacement placement = mtf_strategy_output(graph, 0, &iteration, &strategy, k);
        g_string_append_printf(text, " %s", mtf_axis_placement_name(graph, placement.axis[0]));
    }
    assert_string_equal(text->str, expected);
    g_autofree char *printed = mtf_strategy_axis_format(graph, 0, value);
    assert_string_equal(printed, choice);
}

static void assert_refused(const MtfGraph *graph, const char *choice, const char *message) {
    g_autoptr(GError) error = NULL;
    MtfStrategy strategy = mtf_strategy_duplicated();
    MtfMesh mesh = one_axis();
    int value;
    assert_true(mtf_strategy_axis_parse(graph, 0, choice, &value, NULL));
    strategy.axis[0] = (int8_t)value;
    assert_false(mtf_strategy_check(graph, &mesh, 0, &strategy, &error));
    assert_string_equal(error->message, message);
}

TEST(an_einsum_splits_parallel_and_reduced_dimensions) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']");
    assert_iteration(graph, "batch hidden io*");
    assert_placements(graph, "batch", "batch replicated -> batch");
    assert_placements(graph, "hidden", "replicated hidden -> hidden");
    assert_placements(graph, "io", "io io -> partial:sum");
    assert_placements(graph, "duplicated", "replicated replicated -> replicated");
}

/* (x1 + x2) w = x1 w + x2 w, and the same for w; never both at once. */
TEST(an_einsum_is_linear_in_each_input) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']");
    assert_placements(graph, "partial", "partial:sum replicated -> partial:sum");
    assert_placements(graph, "partial:1", "replicated partial:sum -> partial:sum");
    assert_refused(graph, "partial:2",
                   "operation \"y\" is not linear in its input 2, so that input cannot stay "
                   "partial on axis \"m\"");
}

/* The square of a sum is not the sum of the squares. */
TEST(a_product_with_itself_is_not_linear) {
    g_autoptr(MtfGraph) graph = graph_of("'op': 'multiply', 'inputs': ['x', 'x']");
    assert_refused(graph, "partial",
                   "operation \"y\" is not linear in its input 0, so that input cannot stay "
                   "partial on axis \"m\"");
    g_autoptr(MtfGraph) mixed =
        graph_of("'op': 'einsum', 'inputs': ['x', 'bias', 'x'], 'dims': ['batch']");
    assert_refused(mixed, "partial:2",
                   "operation \"y\" is not linear in its input 2, so that input cannot stay "
                   "partial on axis \"m\"");
    assert_placements(mixed, "partial:1", "replicated partial:sum replicated -> partial:sum");
}

/* Half and half are one, but each alone becomes 0. */
TEST(a_cast_to_integers_is_not_linear) {
    g_autoptr(MtfGraph) truncated = graph_of("'op': 'cast', 'inputs': ['x'], 'dtype': 'int32'");
    assert_refused(truncated, "partial",
                   "operation \"y\" is not linear in its input 0, so that input cannot stay "
                   "partial on axis \"m\"");
    g_autoptr(MtfGraph) rounded = graph_of("'op': 'cast', 'inputs': ['x'], 'dtype': 'bfloat16'");
    assert_placements(rounded, "partial", "partial:sum -> partial:sum");
    g_autoptr(MtfGraph) exact = graph_of("'op': 'cast', 'inputs': ['ids'], 'dtype': 'float32'");
    assert_placements(exact, "partial", "partial:sum -> partial:sum");
}

/* A vocabulary split gives each processor its own rows; the others add nothing. */
TEST(an_embedding_splits_its_vocabulary_into_partial_sums) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'embedding', 'inputs': ['table', 'ids'], 'dims': ['batch', 'io']");
    assert_iteration(graph, "batch io vocab*");
    assert_placements(graph, "batch", "replicated batch -> batch");
    assert_placements(graph, "io", "io replicated -> io");
    assert_placements(graph, "vocab", "vocab replicated -> partial:sum");
    assert_placements(graph, "partial", "partial:sum replicated -> partial:sum");
    assert_refused(graph, "partial:1",
                   "operation \"y\" is not linear in its input 1, so that input cannot stay "
                   "partial on axis \"m\"");
}

TEST(an_embedding_gradient_sums_over_the_batch) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'embedding_grad', 'inputs': ['ids', 'x'], 'dims': ['vocab', 'io']");
    assert_iteration(graph, "vocab io batch*");
    assert_placements(graph, "vocab", "replicated replicated -> vocab");
    assert_placements(graph, "io", "replicated io -> io");
    assert_placements(graph, "batch", "batch batch -> partial:sum");
    assert_placements(graph, "partial:1", "replicated partial:sum -> partial:sum");
}

TEST(what_an_embedding_gradient_is_added_to_is_placed_as_the_sum) {
    g_autoptr(MtfGraph) graph = graph_of(
        "'op': 'embedding_grad', 'inputs': ['ids', 'x', 'table'], 'dims': ['vocab', 'io']");
    assert_placements(graph, "vocab", "replicated replicated vocab -> vocab");
    assert_placements(graph, "io", "replicated io io -> io");
    assert_placements(graph, "batch", "batch batch partial:sum -> partial:sum");
    assert_placements(graph, "partial:1", "replicated partial:sum partial:sum -> partial:sum");
    assert_placements(graph, "duplicated", "replicated replicated replicated -> replicated");
    assert_refused(graph, "partial:2",
                   "operation \"y\" is not linear in its input 2, so that input cannot stay "
                   "partial on axis \"m\"");
}

TEST(a_label_logit_sums_over_the_classes) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'label_logit', 'inputs': ['logits', 'ids'], 'dims': ['batch']");
    assert_iteration(graph, "batch vocab*");
    assert_placements(graph, "batch", "batch batch -> batch");
    assert_placements(graph, "vocab", "vocab replicated -> partial:sum");
}

/* One index with two names: io as the input calls it, other as the output does. */
TEST(a_rename_splits_under_both_names) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'rename', 'inputs': ['x'], 'from': 'io', 'to': 'other'");
    assert_iteration(graph, "batch other");
    assert_placements(graph, "batch", "batch -> batch");
    assert_placements(graph, "other", "io -> other");
    assert_placements(graph, "partial", "partial:sum -> partial:sum");
    int value = 77;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_strategy_axis_parse(graph, 0, "io", &value, &error));
    assert_int_equal(value, 77);
    assert_string_equal(error->message, "operation \"y\": \"io\" is not a dimension it runs over, "
                                        "nor \"duplicated\" or \"partial\"");
}

TEST(a_maximum_is_partial_by_maximum_and_not_linear) {
    g_autoptr(MtfGraph) graph = graph_of("'op': 'reduce_max', 'inputs': ['x'], 'dims': ['batch']");
    assert_iteration(graph, "batch io*");
    assert_placements(graph, "io", "io -> partial:max");
    assert_placements(graph, "batch", "batch -> batch");
    assert_refused(graph, "partial",
                   "operation \"y\" is not linear in its input 0, so that input cannot stay "
                   "partial on axis \"m\"");
}

TEST(a_sum_passes_partial_inputs_together) {
    g_autoptr(MtfGraph) graph = graph_of("'op': 'add', 'inputs': ['x', 'bias', 'x']");
    assert_iteration(graph, "batch io");
    assert_placements(graph, "batch", "batch replicated batch -> batch");
    assert_placements(graph, "io", "io io io -> io");
    assert_placements(graph, "partial", "partial:sum partial:sum partial:sum -> partial:sum");
    assert_refused(graph, "partial:1",
                   "operation \"y\" is a sum: on axis \"m\" all its inputs are partial, or none");
}

/* A statistic of a layer is needed whole: rows that reduce nothing refuse what their result lacks.
 */
TEST(what_does_not_add_up_cannot_be_split) {
    g_autoptr(MtfGraph) graph =
        graph_of("'op': 'softmax_cross_entropy', 'inputs': ['logits', 'ids'], 'dims': ['batch']");
    assert_iteration(graph, "batch vocab*");
    assert_refused(graph, "vocab",
                   "operation \"y\" (softmax_cross_entropy) cannot be split along \"vocab\" on "
                   "axis \"m\": its result lacks that dimension and its parts do not add up");
}

TEST(every_output_of_an_optimizer_is_split_alike) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4}, 'variables': [{'name': 'w', "
        "'dims': ['a'], 'init': 'ones'}, {'name': 'g', 'dims': ['a'], 'init': 'ones'}, {'name': "
        "'m', 'dims': ['a'], 'init': 'ones'}, {'name': 'v', 'dims': ['a'], 'init': 'ones'}, "
        "{'name': 'r', 'dims': [], 'init': 'ones'}], 'operations': [{'name': 'y', 'op': 'adam', "
        "'inputs': ['w', 'g', 'm', 'v', 'r']}]}");
    assert_iteration(graph, "a");
    assert_placements(graph, "a", "a a a a replicated -> a a a");
}

TEST(an_index_beyond_the_space_or_an_axis_beyond_the_mesh_is_refused) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = graph_of("'op': 'relu', 'inputs': ['x']");
    MtfMesh mesh = one_axis();
    MtfStrategy strategy = mtf_strategy_duplicated();
    strategy.axis[0] = 2;
    assert_false(mtf_strategy_check(graph, &mesh, 0, &strategy, &error));
    assert_string_equal(error->message, "operation \"y\" has no index 2 to split on axis \"m\"");
    g_clear_error(&error);
    strategy = mtf_strategy_duplicated();
    strategy.axis[1] = 0;
    assert_false(mtf_strategy_check(graph, &mesh, 0, &strategy, &error));
    assert_string_equal(error->message, "operation \"y\" uses an axis the mesh lacks");
}

/* Every choice that a row allows gives placements that the tensors can have. */
TEST(what_follows_from_a_legal_strategy_is_legal) {
    static const char *const operations[] = {
        "'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']",
        "'op': 'embedding', 'inputs': ['table', 'ids'], 'dims': ['batch', 'io']",
        "'op': 'add', 'inputs': ['x', 'bias']",
        "'op': 'rename', 'inputs': ['x'], 'from': 'io', 'to': 'other'",
        "'op': 'broadcast', 'inputs': ['bias'], 'dims': ['hidden', 'io', 'batch']",
        "'op': 'constant', 'dims': ['batch', 'io'], 'value': 1",
    };
    MtfMesh mesh = one_axis();
    for (gsize i = 0; i < G_N_ELEMENTS(operations); i++) {
        g_autoptr(MtfGraph) graph = graph_of(operations[i]);
        const MtfOperation *operation = mtf_graph_operation(graph, 0);
        MtfIteration iteration;
        mtf_operation_iteration(graph, 0, &iteration);
        for (int choice = MTF_PARTIAL_INPUT - 3; choice < iteration.n + 2; choice++) {
            MtfStrategy strategy = mtf_strategy_duplicated();
            strategy.axis[0] = (int8_t)choice;
            if (!mtf_strategy_check(graph, &mesh, 0, &strategy, NULL))
                continue;
            for (int k = 0; k < operation->n_inputs; k++) {
                MtfPlacement placement = mtf_strategy_input(graph, 0, &iteration, &strategy, k);
                assert_true(
                    mtf_placement_check(graph, &mesh, operation->inputs[k], &placement, NULL));
            }
            MtfPlacement placement = mtf_strategy_output(graph, 0, &iteration, &strategy, 0);
            assert_true(mtf_placement_check(graph, &mesh, operation->outputs[0], &placement, NULL));
        }
    }
}

#define ATTENTION                                                                              \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'query': 4, 'memory': 6, "    \
    "'d': 2}, 'inputs': [{'name': 'q', 'dims': ['batch', 'query', 'd'], 'feed': 'features'}, " \
    "{'name': 'k', 'dims': ['batch', 'memory', 'd'], 'feed': 'features'}, {'name': 'lse', "    \
    "'dims': ['batch', 'query'], 'feed': 'features'}, {'name': 'w', 'dims': ['query', "        \
    "'memory'], 'feed': 'features'}], 'operations': [{'name': 'y', 'query': "                  \
    "'query', 'memory': 'memory', 'dimension': 'd', 'factor': 1, "

/* Without all of memory a query's softmax is unknown, and without all features its scores are. */
TEST(attention_holds_memory_and_features_whole) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(ATTENTION "'op': 'attention', 'inputs': ['q', 'k', 'k']}]}");
    assert_iteration(graph, "batch query d* memory*");
    assert_placements(graph, "batch", "batch batch batch -> batch batch");
    assert_placements(graph, "query", "query replicated replicated -> query query");
    assert_refused(
        graph, "memory",
        "operation \"y\" (attention) cannot be split along \"memory\" on axis \"m\": its "
        "result lacks that dimension and its parts do not add up");
    assert_refused(graph, "d",
                   "operation \"y\" (attention) cannot be split along \"d\" on axis \"m\": its "
                   "result lacks that dimension and its parts do not add up");
}

/* Backward every pair of query and memory counts for itself once lse is known. */
TEST(attention_gradients_add_up_over_queries_and_memory) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        ATTENTION "'op': 'attention_grad', 'inputs': ['q', 'k', 'k', 'q', 'lse', 'q']}]}");
    assert_placements(
        graph, "query",
        "query replicated replicated query query query -> query partial:sum partial:sum");
    assert_placements(
        graph, "memory",
        "replicated memory memory replicated replicated replicated -> partial:sum memory memory");
    assert_refused(graph, "d",
                   "operation \"y\" (attention_grad) cannot be split along \"d\" on axis \"m\": it "
                   "needs all of that dimension at once");
}

/* What is added to scores has the gradient of all that share it. */
TEST(the_gradient_of_a_bias_adds_up_over_examples) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        ATTENTION
        "'op': 'attention_bias_grad', 'inputs': ['q', 'k', 'k', 'q', 'lse', 'q', 'w']}]}");
    assert_placements(graph, "batch",
                      "batch batch batch batch batch batch replicated -> batch batch batch "
                      "partial:sum");
    assert_placements(graph, "query",
                      "query replicated replicated query query query query -> query partial:sum "
                      "partial:sum query");
    assert_placements(graph, "memory",
                      "replicated memory memory replicated replicated replicated memory -> "
                      "partial:sum memory memory memory");
}

/* x, then one element, then x and y; what gives one element alone is read whole. */
TEST(joined_inputs_are_split_along_dimensions_of_their_own) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'u': 3, 'v': 5, 'one': 1, "
        "'all': 13}, 'inputs': [{'name': 'x', 'dims': ['batch', 'u'], 'feed': 'features'}, "
        "{'name': 'y', 'dims': ['batch', 'v'], 'feed': 'features'}, {'name': 'p', 'dims': "
        "['batch', 'one'], 'feed': 'features'}, {'name': 'q', 'dims': ['batch'], 'feed': "
        "'features'}], 'operations': [{'name': 'z', 'op': 'concat', 'inputs': ['x', 'p', 'x', "
        "'y', 'q'], 'dims': ['batch', 'all']}]}");
    assert_iteration(graph, "batch all");
    assert_placements(graph, "all", "u replicated u v replicated -> all");
    assert_placements(graph, "batch", "batch batch batch batch batch -> batch");
    assert_placements(graph, "partial",
                      "partial:sum partial:sum partial:sum partial:sum partial:sum -> partial:sum");
}

/* 13 elements, 8 of which are those of a dimension that is split evenly alone. */
TEST(joined_parts_are_even_where_those_of_an_input_must_be) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'u': 8, 'v': 5, 'all': 13}, 'inputs': ["
        "{'name': 'x', 'dims': ['u'], 'feed': 'features'}, {'name': 'y', 'dims': ['v'], 'feed': "
        "'features'}], 'operations': [{'name': 'z', 'op': 'concat', 'inputs': ['x', 'y'], 'dims': "
        "['all']}]}");
    mtf_graph_dimension(graph, mtf_graph_find_dimension(graph, "u"))->even = true;
    MtfIteration iteration;
    mtf_operation_iteration(graph, 0, &iteration);
    assert_true(mtf_index_splits(&iteration.index[0], 2));
    assert_true(mtf_index_splits(&iteration.index[0], 8));
    assert_false(mtf_index_splits(&iteration.index[0], 3));
}
