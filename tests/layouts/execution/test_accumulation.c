// SPDX-License-Identifier: GPL-3.0-or-later
/* Which steps can be worked through in parts, and what is made of them. That they give the same
 * losses is shown in tests/layouts/graph/test_microbatches.c. */
#include "tests/support/cmocka.h"

#include "analyzer/training/batch_dimension.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/microbatches.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* x[b, d], y[b], w[d], s[b], and the operations given; the loss is "l". */
static MtfGraph *forward(const char *operations) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 'd': 5, 'c': 12}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': ['b'], "
        "'feed': 'mask'}], 'variables': [{'name': 'w', 'dims': ['d'], 'init': 'ones'}], "
        "'operations': [%s], 'loss': 'l', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}",
        operations);
    return mtf_test_graph(text);
}

static MtfGraph *training(const char *operations, int microbatches, GError **error) {
    g_autoptr(MtfGraph) graph = forward(operations);
    return mtf_test_microbatches(graph, microbatches, error);
}

static void assert_refused(const char *operations, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) whole = training(operations, 1, &error);
    if (whole == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfGraph) parts = training(operations, 3, &error);
    assert_null(parts);
    if (strstr(error->message, why) == NULL)
        fail_msg("%s", error->message);
}

#define PRODUCT "{'name': 'p', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['b']}"
#define MEAN(of) "{'name': 'l', 'op': 'reduce_mean', 'inputs': ['" of "'], 'dims': []}"

TEST(what_mixes_examples_is_refused_by_name) {
    assert_refused(PRODUCT ", {'name': 'm', 'op': 'reduce_mean', 'inputs': ['p'], 'dims': []}, "
                           "{'name': 'n', 'op': 'subtract', 'inputs': ['p', 'm']}, " MEAN("n"),
                   "operation \"n\" (subtract) reads \"m\", which sums over the batch, example by "
                   "example, so a step cannot be worked through in micro-batches");
    assert_refused(PRODUCT ", {'name': 'm', 'op': 'reduce_max', 'inputs': ['p'], 'dims': []}, "
                           "{'name': 'l', 'op': 'scale', 'inputs': ['m'], 'factor': 2}",
                   "operation \"m\" (reduce_max) takes a maximum over the batch");
    assert_refused(PRODUCT ", {'name': 's', 'op': 'softmax', 'inputs': ['p'], 'dimension': 'b'}, "
                           "{'name': 'q', 'op': 'square', 'inputs': ['s']}, " MEAN("q"),
                   "operation \"s/max\" (reduce_max) takes a maximum over the batch");
    assert_refused(PRODUCT ", {'name': 'm', 'op': 'reduce_mean', 'inputs': ['p'], 'dims': []}, "
                           "{'name': 'l', 'op': 'square', 'inputs': ['m']}",
                   "operation \"l\" (square) reads \"m\", which sums over the batch, and is not "
                   "linear in it");
    assert_refused(PRODUCT ", {'name': 'm', 'op': 'reduce_mean', 'inputs': ['p'], 'dims': []}, "
                           "{'name': 'n', 'op': 'reduce_sum', 'inputs': ['w'], 'dims': []}, "
                           "{'name': 'l', 'op': 'add', 'inputs': ['m', 'n']}",
                   "operation \"l\" (add) reads \"m\", which sums over the batch, beside what does "
                   "not");
    assert_refused("{'name': 'l', 'op': 'reduce_sum', 'inputs': ['w'], 'dims': []}",
                   "the loss \"l\" does not depend on the batch \"b\"");
}

/* Divided by a sum that the model decides, the loss is no weighted mean. */
TEST(weights_are_not_the_models) {
    assert_refused(PRODUCT ", {'name': 't', 'op': 'einsum', 'inputs': ['p', 'y'], 'dims': []}, "
                           "{'name': 'u', 'op': 'reduce_sum', 'inputs': ['p'], 'dims': []}, "
                           "{'name': 'l', 'op': 'divide', 'inputs': ['t', 'u']}",
                   "operation \"l\" (divide) reads \"t\"");
}

TEST(the_batch_is_the_inputs_first_dimension) {
    g_autoptr(GError) error = NULL, unknown = NULL, uneven = NULL, other_name = NULL;
    g_autoptr(MtfGraph) graph = forward(PRODUCT ", " MEAN("p"));
    int batch = mtf_batch_dimension(graph, NULL, NULL);
    assert_int_equal(batch, mtf_graph_find_dimension(graph, "b"));
    assert_int_equal(mtf_batch_dimension(graph, "d", NULL), mtf_graph_find_dimension(graph, "d"));
    assert_int_equal(mtf_batch_dimension(graph, "e", &unknown), -1);
    assert_string_equal(unknown->message, "--batch-dim: the graph has no dimension \"e\"");
    mtf_graph_add_input(graph, "z", &(MtfShape){ .rank = 1, .dims = { 1 } }, MTF_F32, MTF_FEED_MASK,
                        NULL);
    assert_int_equal(mtf_batch_dimension(graph, NULL, &error), -1);
    assert_string_equal(error->message,
                        "inputs \"x\" and \"z\" begin with different dimensions, \"b\" and \"d\": "
                        "say with --batch-dim which one is the batch");
    g_autoptr(MtfGraph) renamed =
        forward(PRODUCT ", {'name': 'r', 'op': 'rename', 'inputs': ['p'], "
                        "'from': 'b', 'to': 'c'}, " MEAN("r"));
    assert_null(mtf_test_microbatches(renamed, 3, &other_name));
    assert_string_equal(
        other_name->message,
        "operation \"r\" (rename) gives the batch dimension another name, so a step "
        "cannot be worked through in micro-batches");
    assert_false(mtf_graph_divide_batch(graph, batch, 5, &uneven));
    assert_string_equal(uneven->message, "5 micro-batches do not divide the batch: \"b\" is 12");
}

/* A mean over 12 examples: each of 3 micro-batches gives 4 of its terms. Its gradient is 1/12. */
TEST(a_micro_batch_gives_its_terms_of_the_whole_mean) {
    g_autoptr(MtfGraph) graph = training(PRODUCT ", " MEAN("p"), 3, NULL);
    assert_int_equal(mtf_graph_microbatches(graph), 3);
    assert_int_equal(mtf_graph_size(graph, mtf_graph_batch(graph)), 4);
    assert_int_equal(mtf_graph_step_size(graph, mtf_graph_batch(graph)), 12);
    assert_string_equal(mtf_graph_tensor(graph, graph->loss)->name, "step/l");
    int back = mtf_graph_find_operation(graph, "back/l/share");
    assert_true(back >= 0);
    assert_true(mtf_graph_operation(graph, back)->attributes.factor == 1.0 / 12);
    int sum = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "grad/w"))->producer;
    assert_int_equal(mtf_graph_operation(graph, sum)->kind, MTF_OP_ACCUMULATE);
    assert_true(mtf_operation_accumulates(graph, sum));
    assert_int_equal(mtf_operation_times(graph, sum), 3);
    assert_true(sum < mtf_graph_repeated(graph));
}

/* A gradient whose parts are partial over the ranks is reduced once, after the last micro-batch. */
TEST(gradients_are_reduced_once_a_step) {
    g_autoptr(MtfGraph) graph = training(PRODUCT ", " MEAN("p"), 3, NULL);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("r:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "b:r", NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int once = 0, repeated = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        bool reduces = instruction->kind == MTF_INSTRUCTION_RESHARD &&
                       instruction->reshard.kind == MTF_RESHARD_ALLREDUCE;
        once += reduces && mtf_program_times(program, i) == 1;
        repeated += reduces && mtf_program_times(program, i) > 1;
    }
    assert_int_equal(once, 2); /* the loss and grad/w */
    assert_int_equal(repeated, 0);
}

/* The accumulated gradient's storage lives from the first instruction of a micro-batch on: what an
 * early instruction writes must not lie there. */
TEST(a_sum_outlives_every_micro_batch) {
    g_autoptr(MtfGraph) graph = training(PRODUCT ", " MEAN("p"), 3, NULL);
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int sums = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (!mtf_operation_accumulates(graph, instruction->operation))
            continue;
        const MtfBuffer *sum = mtf_program_buffer(program, instruction->outputs[0]);
        assert_int_equal(sum->storage, instruction->outputs[0]);
        assert_int_equal(sum->first, 0);
        assert_true(sum->last >= program->n_repeated - 1);
        sums++;
    }
    assert_int_equal(sums, 2);
}

TEST(a_sum_is_not_read_before_it_is_complete) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = training(PRODUCT ", " MEAN("p"), 3, NULL);
    int update = mtf_graph_find_operation(graph, "update/w");
    mtf_graph_operation(graph, update)->phase = MTF_PHASE_BACKWARD;
    assert_false(mtf_graph_check_microbatches(graph, &error));
    assert_string_equal(error->message,
                        "operation \"update/w\" (backward) runs once a micro-batch but reads "
                        "\"grad/w\", a sum over all of them");
}

/* Of a term that several variables take, and of a loss that one takes, there is one sum. */
TEST(what_several_variables_take_is_accumulated_once) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 'd': 5}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'variables': ["
        "{'name': 'w', 'dims': ['d'], 'init': 'ones'}, "
        "{'name': 'u', 'dims': ['d'], 'init': 'zeros', 'frozen': true}, "
        "{'name': 'v', 'dims': ['d'], 'init': 'zeros', 'frozen': true}, "
        "{'name': 'k', 'dims': [], 'init': 'zeros', 'frozen': true}], 'operations': [" PRODUCT
        ", {'name': 'm', 'op': 'reduce_mean', 'inputs': ['x'], 'dims': ['d']}, " MEAN(
            "p") "], "
                 "'loss': 'l', 'optimizer': {'kind': 'sgd', 'rate': 0.1}, 'updates': ["
                 "{'variable': 'u', 'value': 'm'}, {'variable': 'v', 'value': 'm'}, "
                 "{'variable': 'k', 'value': 'l'}]}");
    g_autoptr(MtfGraph) step = mtf_test_microbatches(graph, 3, &error);
    if (step == NULL)
        fail_msg("%s", error->message);
    int takes = 0;
    for (guint i = 0; i < step->updates->len; i++) {
        int value = g_array_index(step->updates, MtfUpdate, i).value;
        const MtfOperation *taken =
            mtf_graph_operation(step, mtf_graph_tensor(step, value)->producer);
        takes += taken->inputs[0] == mtf_graph_find_tensor(step, "step/m") ||
                 taken->inputs[0] == step->loss;
    }
    assert_int_equal(takes, 3);
    assert_string_equal(mtf_graph_tensor(step, step->loss)->name, "step/l");
}

/* A row of one's own that adds up would add up sums. */
TEST(graphs_that_add_up_by_themselves_are_refused) {
    g_autoptr(GError) error = NULL;
    const char *sums = PRODUCT ", {'name': 's', 'op': 'accumulate', 'inputs': ['p']}, " MEAN("p");
    g_autoptr(MtfGraph) whole = training(sums, 1, NULL);
    assert_non_null(whole);
    assert_null(training(sums, 3, &error));
    assert_string_equal(error->message,
                        "operation \"s\" adds up over micro-batches, which the graph of a whole "
                        "step does not do by itself");
}

TEST(what_the_backward_pass_leaves_are_gradients) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) written = forward(PRODUCT ", " MEAN("p"));
    g_autoptr(MtfGraph) whole = mtf_training_graph(written, NULL);
    mtf_graph_tensor(whole, mtf_graph_find_tensor(whole, "grad/w"))->memory = MTF_MEMORY_ACTIVATION;
    assert_false(mtf_test_divide(whole, 3, &error));
    assert_string_equal(error->message,
                        "operation \"update/w\" runs once a step and reads \"grad/w\" of the "
                        "backward pass, whose \"memory_kind\" does not say \"gradients\": what "
                        "micro-batches give of it is not summed");
}

static void assert_not_divided(MtfGraph *training, const char *why) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_test_divide(training, 3, &error));
    assert_string_equal(error->message, why);
}

/* A training graph that updates by itself says when: else each micro-batch would. */
TEST(what_variables_become_is_made_once_a_step) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 'd': 5}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'variables': [{'name': 'w', "
        "'dims': ['d'], 'init': 'ones'}], 'operations': [" PRODUCT
        ", " MEAN("p") ", "
                       "{'name': 'n', 'op': 'scale', 'inputs': ['w'], 'factor': 0.5}], "
                       "'loss': 'l', 'updates': [{'variable': 'w', 'value': "
                       "'n'}]}");
    assert_not_divided(graph, "variable \"w\" becomes \"n\", which every micro-batch has anew, and "
                              "not what an operation of phase \"update\" makes");
}

/* A loss that is a mean by weights, and k, which takes `value`. */
static MtfGraph *weighted(const char *further, const char *value) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 'd': 5}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': ['b'], "
        "'feed': 'mask'}], 'variables': [{'name': 'w', 'dims': ['d'], 'init': 'ones'}, {'name': "
        "'k', 'dims': [], 'init': 'zeros', 'frozen': true}], 'operations': [" PRODUCT ", "
        "{'name': 't', 'op': 'einsum', 'inputs': ['p', 'y'], 'dims': []}, {'name': 'u', 'op': "
        "'reduce_sum', 'inputs': ['y'], 'dims': []}, {'name': 'l', 'op': 'divide', 'inputs': "
        "['t', 'u']}%s], 'loss': 'l', "
        "'optimizer': {'kind': 'sgd', 'rate': 0.1}, 'updates': [{'variable': 'k', 'value': '%s'}]}",
        further, value);
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    return mtf_training_graph(graph, NULL);
}

/* A variable may take it, and nothing of a micro-batch half of it. */
TEST(a_mean_by_weights_is_read_once_a_step) {
    g_autoptr(MtfGraph) half =
        weighted(", {'name': 'h', 'op': 'scale', 'inputs': ['l'], 'factor': 0.5}", "h");
    assert_not_divided(half, "operation \"h\" reads the loss \"l\", a mean by weights, which is "
                             "divided once a step: one micro-batch has none");
    g_autoptr(MtfGraph) all = weighted("", "l");
    assert_true(mtf_test_divide(all, 3, NULL));
    const MtfOperation *next = mtf_graph_operation(all, mtf_graph_find_operation(all, "next/k"));
    assert_int_equal(next->inputs[0], all->loss);
    assert_int_equal(mtf_operation_times(all, mtf_graph_find_operation(all, "l")), 1);
}

TEST(the_form_of_a_step_is_told) {
    g_autoptr(MtfGraph) whole = training(PRODUCT ", " MEAN("p"), 1, NULL);
    g_autoptr(MtfGraph) parts = training(PRODUCT ", " MEAN("p"), 3, NULL);
    g_autofree char *piece = mtf_graph_step_format(whole);
    g_autofree char *three = mtf_graph_step_format(parts);
    assert_string_equal(piece, "in one piece");
    assert_string_equal(three, "in 3 micro-batches of 4");
}

/* The gradient of w is stacked in the loop that goes back, which hands its state on behind that: in between, the sum would
 * part the loop, and no state be handed on. */
TEST(sums_stand_behind_the_loop_of_what_they_are_of) {
    g_autoptr(MtfGraph) forward_graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 't': 4, 'd': 3}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'variables': [{'name': 'w', "
        "'dims': ['t'], 'init': 'ones'}], 'operations': [{'loop': {'name': 'q', 'dimension': 't', "
        "'carry': [{'name': 'h', 'init': 'x', 'next': 'm'}], 'inputs': [{'name': 'e', 'of': 'w'}], "
        "'operations': [{'name': 's', 'op': 'reduce_mean', 'inputs': ['e'], 'dims': []}, {'name': "
        "'k', 'op': 'add', 'inputs': ['h', 's']}, {'name': 'm', 'op': 'tanh', 'inputs': ['k']}]}}, "
        "{'name': 'l', 'op': 'reduce_mean', 'inputs': ['q/h'], 'dims': []}], 'loss': 'l', "
        "'optimizer': {'kind': 'sgd', 'rate': 0.1}}");
    g_autoptr(MtfGraph) graph = mtf_test_microbatches(forward_graph, 3, NULL);
    assert_non_null(graph);
    int begun = 0, sums = 0;
    for (int i = 0, before = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        begun += op->loop > 0 && op->loop != before;
        before = op->loop;
        sums += op->kind == MTF_OP_ACCUMULATE;
    }
    assert_int_equal(begun, 2); /* forward and back */
    assert_int_equal(sums, 2);  /* the loss and w */
}
