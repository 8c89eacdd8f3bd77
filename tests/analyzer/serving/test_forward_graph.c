// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/serving/forward_graph.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define HEAD                                                                                    \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 4, 'features': 3, 'classes': 5}," \
    " 'inputs': [{'name': 'x', 'dims': ['batch', 'features'], 'feed': 'features'},"             \
    "            {'name': 'labels', 'dims': ['batch'], 'dtype': 'int32', 'feed': 'labels'}],"   \
    " 'variables': [{'name': 'w', 'dims': ['features', 'classes'], 'init': {'normal': 1}},"     \
    "               {'name': 'seen', 'dims': ['features'], 'init': 'zeros', 'frozen': true}],"

/* The names of what variables keep, and of all operations and inputs; between spaces. */
static char *told(const MtfGraph *graph) {
    GString *text = g_string_new(NULL);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        g_string_append_printf(text, "%s%s ", tensor->memory == MTF_MEMORY_OUTPUT ? "=" : "",
                               tensor->name);
    }
    return g_string_free(text, FALSE);
}

static void check(const char *text, const char *wanted) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) written = mtf_test_graph(text);
    g_autoptr(MtfGraph) forward = mtf_forward_graph(written, &error);
    if (forward == NULL)
        fail_msg("%s", error->message);
    g_autofree char *names = told(forward);
    assert_string_equal(names, wanted);
    assert_int_equal(forward->loss, -1);
    assert_null(forward->optimizer.kind);
}

/* Labels, what is learned of a batch, what is dropped and the loss are gone. */
TEST(a_classifier_gives_its_scores) {
    check(
        HEAD
        " 'operations': [{'op': 'reduce_mean', 'name': 'mean', 'inputs': ['x'], 'dims': ['features']},"
        "  {'op': 'in_train_phase', 'name': 'middle', 'inputs': ['mean', 'seen']},"
        "  {'op': 'subtract', 'name': 'apart', 'inputs': ['x', 'middle']},"
        "  {'op': 'dropout', 'name': 'some', 'inputs': ['apart'], 'rate': 0.5},"
        "  {'op': 'einsum', 'name': 'scores', 'inputs': ['some', 'w'], 'dims': ['batch', 'classes']},"
        "  {'op': 'softmax_cross_entropy', 'name': 'losses', 'inputs': ['scores', 'labels'], 'dims': ['batch']},"
        "  {'op': 'reduce_mean', 'name': 'loss', 'inputs': ['losses'], 'dims': []}],"
        " 'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1},"
        " 'updates': [{'variable': 'seen', 'value': 'mean'}]}",
        "x w seen =scores/result apart scores ");
}

/* One hot labels are answers as labels are; the scores that they meet are told, not their logarithm's sum. */
TEST(what_is_compared_with_what_follows_from_labels_is_a_result) {
    check(
        HEAD
        " 'operations': [{'op': 'einsum', 'name': 'scores', 'inputs': ['x', 'w'], 'dims': ['batch', 'classes']},"
        "  {'op': 'one_hot', 'name': 'right', 'inputs': ['labels'], 'dims': ['batch', 'classes']},"
        "  {'op': 'subtract', 'name': 'apart', 'inputs': ['right', 'scores']},"
        "  {'op': 'square', 'name': 'squares', 'inputs': ['apart']},"
        "  {'op': 'reduce_mean', 'name': 'loss', 'inputs': ['squares'], 'dims': []}], 'loss': 'loss'}",
        "x w =scores/result scores ");
}

TEST(a_loss_of_nothing_else_is_the_result) {
    check(
        HEAD
        " 'operations': [{'op': 'square', 'name': 'squares', 'inputs': ['x']},"
        "  {'op': 'reduce_mean', 'name': 'loss', 'inputs': ['squares'], 'dims': []}], 'loss': 'loss'}",
        "x =loss/result squares loss ");
}

/* As of words that were hidden: the ids that are right are read, too. */
TEST(scores_of_what_is_read_are_the_result) {
    check(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 4, 'words': 6, 'other': 6},"
        " 'inputs': [{'name': 'ids', 'dims': ['batch'], 'dtype': 'int32', 'feed': 'tokens'}],"
        " 'variables': [{'name': 'table', 'dims': ['words', 'other'], 'init': 'ones'}],"
        " 'operations': [{'op': 'embedding', 'name': 'scores', 'inputs': ['table', 'ids'], 'dims': ['batch', 'other']},"
        "  {'op': 'softmax_cross_entropy', 'name': 'losses', 'inputs': ['scores', 'ids'], 'dims': ['batch']},"
        "  {'op': 'reduce_mean', 'name': 'loss', 'inputs': ['losses'], 'dims': []}], 'loss': 'loss'}",
        "ids table =scores/result scores ");
}

/* Of an operation with several results none may be read; what single iterations make is none. */
TEST(without_a_loss_what_nobody_reads_is_a_result) {
    check(
        HEAD
        " 'operations': [{'op': 'einsum', 'name': 'scores', 'inputs': ['x', 'w'], 'dims': ['batch', 'classes']},"
        "  {'loop': {'name': 'steps', 'count': 2, 'carry': [{'name': 'y', 'init': 'scores', 'next': 'more'}],"
        "   'operations': [{'op': 'tanh', 'name': 'more', 'inputs': ['y']}, {'op': 'exp', 'name': 'aside', 'inputs': ['y']}]}}]}",
        "x w =steps/y/result scores steps/y/state steps/more steps/y ");
}

TEST(what_stands_in_must_have_its_shape) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) written = mtf_test_graph(
        HEAD " 'operations': [{'op': 'in_train_phase', 'name': 'y', 'inputs': ['x', 'seen']},"
             "  {'op': 'square', 'name': 'z', 'inputs': ['y']}]}");
    assert_null(mtf_forward_graph(written, &error));
    assert_non_null(strstr(error->message, "\"seen\" must have its dimensions in their order"));
}

/* What stands for nothing but an input is made all the same. */
TEST(an_input_that_is_dropped_is_a_result) {
    check(HEAD " 'operations': [{'op': 'dropout', 'name': 'some', 'inputs': ['x'], 'rate': 0.5},"
               "  {'op': 'in_train_phase', 'name': 'middle', 'inputs': ['w', 'w']}]}",
          "x w =some/result =middle/result some middle ");
}

/* A variable that takes a value takes it alone. */
TEST(two_results_of_one_value_are_two) {
    g_autoptr(MtfGraph) written =
        mtf_test_graph(HEAD " 'operations': [{'op': 'square', 'name': 'y', 'inputs': ['x']},"
                            "  {'op': 'dropout', 'name': 'one', 'inputs': ['y'], 'rate': 0.5},"
                            "  {'op': 'stop_gradient', 'name': 'two', 'inputs': ['y']}]}");
    g_autoptr(MtfGraph) forward = mtf_forward_graph(written, NULL);
    assert_int_equal(forward->updates->len, 2);
    assert_int_not_equal(g_array_index(forward->updates, MtfUpdate, 0).value,
                         g_array_index(forward->updates, MtfUpdate, 1).value);
}

TEST(where_answers_alone_are_used_nothing_is_run) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) written = mtf_test_graph(
        HEAD
        " 'operations': [{'op': 'one_hot', 'name': 'right', 'inputs': ['labels'], 'dims': ['batch', 'classes']},"
        "  {'op': 'reduce_mean', 'name': 'loss', 'inputs': ['right'], 'dims': []}], 'loss': 'loss'}");
    assert_null(mtf_forward_graph(written, &error));
    assert_non_null(strstr(error->message, "so there is nothing to run forward"));
}

TEST(a_training_graph_is_none) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) written = mtf_test_graph(
        HEAD " 'operations': [{'op': 'scale', 'name': 'less', 'inputs': ['w'], 'factor': 0.5}],"
             " 'updates': [{'variable': 'w', 'value': 'less'}]}");
    assert_null(mtf_forward_graph(written, &error));
    assert_non_null(strstr(error->message, "is a graph of training already"));
}
