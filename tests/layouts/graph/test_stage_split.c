// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs cut into pipeline stages. That stages compute what the whole does is shown in
 * tests/e2e/pipelines.sh. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/graph/stage_split.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* w is read by both stages; s follows from its input, c from its reader. */
#define GRAPH(stage_of_b)                                                                          \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 4, 'd': 3}, 'inputs': [{'name': 'x', "   \
    "'dims': ['n', 'd'], 'feed': 'features'}], 'variables': [{'name': 'w', 'dims': ['d'], "        \
    "'init': 'ones'}, {'name': 'v', 'dims': ['d'], 'init': 'ones'}], 'operations': [{'name': "     \
    "'c', 'op': 'constant', 'inputs': [], 'dims': [], 'dtype': 'float32', 'value': 2}, {'name': "  \
    "'a', 'op': 'multiply', 'inputs': ['x', 'w'], 'stage': 1}, {'name': 's', 'op': 'square', "     \
    "'inputs': ['a']}, {'name': 'b', 'op': 'multiply', 'inputs': ['s', 'v'], 'stage': " stage_of_b \
    "}, {'name': 'e', 'op': 'multiply', 'inputs': ['b', 'w'], 'stage': 2}, {'name': 'f', 'op': "   \
    "'multiply', 'inputs': ['e', 'c'], 'stage': 2}, {'name': 'l', 'op': 'reduce_mean', "           \
    "'inputs': ['f'], 'dims': []}], 'loss': 'l'}"

static MtfStageSplit *split_of(const char *text) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    mtf_graph_complete_stages(graph);
    MtfStageSplit *split = mtf_stage_split(graph, NULL);
    assert_non_null(split);
    return split;
}

static int stage_of(const MtfGraph *graph, const char *operation) {
    return mtf_graph_operation(graph, mtf_graph_find_operation(graph, operation))->stage;
}

TEST(operations_without_a_stage_follow_their_inputs) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(GRAPH("2"));
    mtf_graph_complete_stages(graph);
    assert_int_equal(stage_of(graph, "s"), 1);
    assert_int_equal(stage_of(graph, "l"), 2);
    assert_int_equal(stage_of(graph, "c"), 2);
    assert_int_equal(mtf_graph_stages(graph), 2);
}

static const MtfTensor *tensor_of(const MtfStageSplit *split, int stage, const char *name) {
    const MtfGraph *graph = split->graphs->pdata[stage];
    int tensor = mtf_graph_find_tensor(graph, name);
    return tensor < 0 ? NULL : mtf_graph_tensor(graph, tensor);
}

/* k is a number, and so is the share that clipping leaves of its gradient, which the last stage knows; m takes
 * what the last stage makes. */
#define UPDATED_GRAPH                                                                              \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 4, 'd': 3}, 'inputs': [{'name': 'x', "   \
    "'dims': ['n', 'd'], 'feed': 'features'}], 'variables': [{'name': 'k', 'dims': [], 'init': "   \
    "'ones'}, {'name': 'v', 'dims': ['d'], 'init': 'ones'}, {'name': 'm', 'dims': ['d'], "         \
    "'init': 'ones', 'frozen': true}], 'operations': [{'name': 'a', 'op': 'multiply', 'inputs': "  \
    "['x', 'k'], 'stage': 1}, {'name': 'b', 'op': 'multiply', 'inputs': ['a', 'm'], 'stage': 1}, " \
    "{'name': 'c', 'op': 'multiply', 'inputs': ['b', 'v'], 'stage': 2}, {'name': 'e', 'op': "      \
    "'reduce_mean', 'inputs': ['c'], 'dims': ['d'], 'stage': 2}, {'name': 'l', 'op': "             \
    "'reduce_mean', 'inputs': ['e'], 'dims': [], 'stage': 2}], 'loss': 'l', 'updates': "           \
    "[{'variable': 'm', 'value': 'e'}], 'optimizer': {'kind': 'sgd', 'rate': 0.1, 'clip_norm': "   \
    "0.1}}"

/* Else the next value would be another stage's, and the variable stay as it began. */
TEST(variables_are_updated_in_their_stage) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph(UPDATED_GRAPH);
    g_autoptr(MtfGraph) training = mtf_training_graph(forward, NULL);
    mtf_graph_complete_stages(training);
    assert_int_equal(stage_of(training, "clip"), 2);
    assert_int_equal(stage_of(training, "update/k"), 1);
    assert_int_equal(stage_of(training, "update/v"), 2);
    assert_int_equal(stage_of(training, "next/m"), 1);
    g_autoptr(MtfStageSplit) split = mtf_stage_split(training, NULL);
    assert_int_equal(((MtfGraph *)split->graphs->pdata[0])->updates->len, 2);
    mtf_graph_operation(training, mtf_graph_find_operation(training, "update/k"))->stage = 2;
    assert_null(mtf_stage_split(training, &error));
    assert_string_equal(error->message,
                        "variable \"k\" of stage 1 becomes \"update/k\" of stage 2: "
                        "what a variable becomes is made in its stage");
}

TEST(what_another_stage_reads_is_transferred) {
    g_autoptr(MtfStageSplit) split = split_of(GRAPH("2"));
    assert_int_equal(split->graphs->len, 2);
    assert_int_equal(split->transfers->len, 2);
    assert_int_equal(tensor_of(split, 1, "s")->source, MTF_SOURCE_INPUT);
    assert_int_equal(tensor_of(split, 1, "s")->feed, MTF_FEED_TRANSFER);
    assert_true(tensor_of(split, 0, "s")->is_sent);
    assert_false(tensor_of(split, 0, "a")->is_sent);
    assert_null(tensor_of(split, 1, "x"));
    assert_null(tensor_of(split, 0, "b"));
}

/* The first stage that reads a variable has it; the other gets it once a step. */
TEST(a_variable_of_two_stages_stays_with_the_first) {
    g_autoptr(MtfStageSplit) split = split_of(GRAPH("2"));
    assert_int_equal(tensor_of(split, 0, "w")->source, MTF_SOURCE_VARIABLE);
    assert_int_equal(tensor_of(split, 1, "w")->feed, MTF_FEED_TRANSFER_ONCE);
    assert_int_equal(tensor_of(split, 1, "v")->source, MTF_SOURCE_VARIABLE);
}

/* Both stages multiply by w as bfloat16. */
#define CAST_GRAPH                                                                                 \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 4, 'd': 3}, 'inputs': [{'name': 'x', "   \
    "'dims': ['n', 'd'], 'dtype': 'bfloat16', 'feed': 'features'}], 'variables': [{'name': 'w', "  \
    "'dims': ['d'], 'init': 'ones'}], 'operations': [{'name': 'c', 'op': 'cast', 'inputs': "       \
    "['w'], 'dtype': 'bfloat16'}, {'name': 'a', 'op': 'multiply', 'inputs': ['x', 'c'], 'stage': " \
    "1}, {'name': 'b', 'op': 'multiply', 'inputs': ['a', 'c'], 'stage': 2}, {'name': 'l', 'op': "  \
    "'reduce_mean', 'inputs': ['b'], 'dims': []}], 'loss': 'l'}"

/* The variable goes once a step; its cast would go with each micro-batch. */
TEST(a_variables_cast_is_made_where_it_is_read) {
    g_autoptr(MtfStageSplit) split = split_of(CAST_GRAPH);
    assert_int_equal(tensor_of(split, 0, "c")->source, MTF_SOURCE_OPERATION);
    assert_int_equal(tensor_of(split, 1, "c")->source, MTF_SOURCE_OPERATION);
    assert_int_equal(tensor_of(split, 1, "w")->feed, MTF_FEED_TRANSFER_ONCE);
    assert_int_equal(tensor_of(split, 1, "a")->feed, MTF_FEED_TRANSFER);
    assert_int_equal(split->transfers->len, 2);
}

TEST(constants_are_repeated_where_they_are_read) {
    g_autoptr(MtfStageSplit) split = split_of(GRAPH("2"));
    assert_null(tensor_of(split, 0, "c"));
    assert_int_equal(tensor_of(split, 1, "c")->source, MTF_SOURCE_OPERATION);
}

TEST(the_loss_is_in_its_stage_alone) {
    g_autoptr(MtfStageSplit) split = split_of(GRAPH("2"));
    assert_int_equal(((MtfGraph *)split->graphs->pdata[0])->loss, -1);
    assert_true(((MtfGraph *)split->graphs->pdata[1])->loss >= 0);
}

static void assert_refused(const char *text, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    mtf_graph_complete_stages(graph);
    assert_null(mtf_stage_split(graph, &error));
    assert_non_null(strstr(error->message, why));
}

TEST(a_stage_that_reads_from_a_later_one_is_refused) {
    assert_refused(GRAPH("3"), "operation \"e\" of stage 2 reads \"b\" of stage 3");
}

TEST(a_stage_without_operations_is_refused) {
    g_autofree char *text = g_strdup(GRAPH("2"));
    for (char *at = text; (at = strstr(at, "'stage': 2")) != NULL; at++)
        at[9] = '3';
    assert_refused(text, "stage 2 of 3 has no operation");
}

/* r is read by stage 1 and, behind an operation of the loop, by the iterations of stage 2, which makes it anew. */
#define LOOP_GRAPH                                                                                \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 4, 'd': 3}, 'inputs': [{'name': 'x', "  \
    "'dims': ['n', 'd'], 'feed': 'features'}], 'variables': [{'name': 'w', 'dims': ['d'], "       \
    "'init': 'ones'}], 'operations': [{'name': 'r', 'op': 'range', 'inputs': [], 'dims': ['d'], " \
    "'dtype': 'float32'}, {'name': 'v', 'op': 'multiply', 'inputs': ['x', 'w']}, "                \
    "{'name': 'a', 'op': 'multiply', 'inputs': ['v', 'r']}, {'loop': {'name': 'q', "              \
    "'count': 3, 'carry': [{'name': 'h', 'init': 'a', 'next': 'm'}], 'operations': [{'name': "    \
    "'k', 'op': 'tanh', 'inputs': ['h']}, {'name': 'm', 'op': 'multiply', 'inputs': "             \
    "['k', 'r']}]}}, {'name': 'l', 'op': 'reduce_mean', 'inputs': ['q/h'], 'dims': "              \
    "[]}], 'loss': 'l'}"

TEST(what_is_repeated_for_a_loop_stands_before_it) {
    g_autoptr(MtfGraph) whole = mtf_test_graph(LOOP_GRAPH);
    int states = mtf_graph_find_operation(whole, "q/h/state");
    for (int i = 0; i < (int)whole->operations->len; i++)
        mtf_graph_operation(whole, i)->stage = i < states ? 1 : 2;
    g_autoptr(MtfStageSplit) split = mtf_stage_split(whole, NULL);
    assert_non_null(split);
    const MtfGraph *graph = split->graphs->pdata[1];
    int begun = 0, before = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        int loop = mtf_graph_operation(graph, i)->loop;
        begun += loop > 0 && before == 0;
        before = loop;
    }
    assert_int_equal(begun, 1);
    assert_int_equal(tensor_of(split, 1, "r")->source, MTF_SOURCE_OPERATION);
}

/* Its state begins in stage 1, what its iterations are about is stage 2's, and so is what reads it. */
TEST(a_loop_is_of_the_last_stage_that_it_reads) {
    static const char *const of_loop[] = { "q/h/state", "q/x", "q/k", "q/m", "q/h" };
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 4, 't': 3}, 'inputs': [{'name': 'x', "
        "'dims': ['n', 't'], 'feed': 'features'}], 'variables': [{'name': 'w', 'dims': ['t'], "
        "'init': 'ones'}], 'operations': [{'name': 'a', 'op': 'multiply', 'inputs': ['x', 'w'], "
        "'stage': 1}, {'name': 'i', 'op': 'reduce_mean', 'inputs': ['a'], 'dims': ['n'], 'stage': "
        "1}, {'name': 'b', 'op': 'tanh', 'inputs': ['a'], 'stage': 2}, {'loop': {'name': 'q', "
        "'dimension': 't', 'carry': [{'name': 'h', 'init': 'i', 'next': 'm'}], 'inputs': [{'name': "
        "'x', 'of': 'b'}], 'operations': [{'name': 'k', 'op': 'add', 'inputs': ['h', 'x']}, "
        "{'name': 'm', 'op': 'tanh', 'inputs': ['k']}]}}, {'name': 'l', 'op': 'reduce_mean', "
        "'inputs': ['q/h'], 'dims': [], 'stage': 2}], 'loss': 'l'}");
    mtf_graph_complete_stages(graph);
    for (gsize i = 0; i < G_N_ELEMENTS(of_loop); i++)
        assert_int_equal(stage_of(graph, of_loop[i]), 2);
    g_autoptr(MtfStageSplit) split = mtf_stage_split(graph, NULL);
    assert_non_null(split);
}
