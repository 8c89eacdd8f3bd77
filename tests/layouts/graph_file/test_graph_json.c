// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

static void assert_fails(const char *text, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_test_graph_parse(text, NULL, &error);
    assert_null(graph);
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
}

static char *print(const MtfGraph *graph) {
    cJSON *tree = mtf_graph_to_json(graph);
    char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return text;
}

static const MtfTensor *tensor(const MtfGraph *graph, const char *name) {
    int id = mtf_graph_find_tensor(graph, name);
    if (id < 0)
        fail_msg("no tensor %s", name);
    return mtf_graph_tensor(graph, id);
}

static void assert_shape(const MtfGraph *graph, const char *name, const char *expected) {
    g_autofree char *format = mtf_graph_tensor_format(graph, mtf_graph_find_tensor(graph, name));
    assert_string_equal(format, expected);
}

/* The names of the operations in order, "a b c". */
static char *order(const MtfGraph *graph) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < graph->operations->len; i++)
        g_ptr_array_add(names, mtf_graph_operation(graph, (int)i)->name);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

#define HEAD "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4, 'b': 6}, "
#define INPUT "'inputs': [{'name': 'x', 'dims': ['a', 'b'], 'feed': 'features'}], "
/* A graph with input x[a, b] and the given operations. */
#define WITH(operations) HEAD INPUT "'operations': [" operations "]}"

TEST(a_small_graph_is_read_whole) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        HEAD INPUT "'variables': [{'name': 'w', 'dims': ['b'], 'init': {'normal': 0.5}}, "
                   "{'name': 'u', 'dims': ['b'], 'dtype': 'float64', 'init': {'uniform': 2}},"
                   "{'name': 's', 'dims': [], 'init': {'constant': 3}, 'memory_kind': 'optimizer'},"
                   "{'name': 'o', 'dims': [], 'init': 'ones'}], "
                   "'operations': [{'name': 'y', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': "
                   "['a']}, {'name': 'l', 'op': 'reduce_sum', 'inputs': ['y'], 'dims': [], "
                   "'phase': 'backward', 'memory_kind': 'gradients'}], 'loss': 'l', 'optimizer': "
                   "{'kind': 'adam', 'rate': 0.25, 'beta2': 0.5}}");
    assert_string_equal(graph->name, "g");
    assert_int_equal(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "b")), 6);
    assert_shape(graph, "x", "f32[a:4, b:6]");
    assert_shape(graph, "u", "f64[b:6]");
    assert_shape(graph, "y", "f32[a:4]");
    assert_int_equal(tensor(graph, "x")->feed, MTF_FEED_FEATURES);
    assert_int_equal(tensor(graph, "w")->init.kind, MTF_INIT_NORMAL);
    assert_true(tensor(graph, "w")->init.value == 0.5);
    assert_int_equal(tensor(graph, "u")->init.kind, MTF_INIT_UNIFORM);
    assert_true(tensor(graph, "s")->init.value == 3);
    assert_int_equal(tensor(graph, "s")->memory, MTF_MEMORY_OPTIMIZER);
    assert_true(tensor(graph, "o")->init.value == 1);
    assert_int_equal(tensor(graph, "l")->memory, MTF_MEMORY_GRADIENT);
    assert_int_equal(mtf_graph_operation(graph, 1)->phase, MTF_PHASE_BACKWARD);
    assert_int_equal(graph->loss, mtf_graph_find_tensor(graph, "l"));
    assert_string_equal(graph->optimizer.kind, "adam");
    assert_string_equal(graph->optimizer.schedule, "constant");
    assert_true(graph->optimizer.rate == 0.25 && graph->optimizer.beta1 == 0.9 &&
                graph->optimizer.beta2 == 0.5 && graph->optimizer.epsilon == 1e-8);
}

TEST(operations_in_good_order_keep_it) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(WITH("{'name': 'q', 'op': 'relu', 'inputs': ['x']},"
                            "{'name': 'c', 'op': 'relu', 'inputs': ['x']},"
                            "{'name': 'a', 'op': 'add', 'inputs': ['q', 'c']}"));
    g_autofree char *names = order(graph);
    assert_string_equal(names, "q c a");
}

TEST(operations_in_any_order_are_sorted) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(WITH("{'name': 'a', 'op': 'add', 'inputs': ['q', 'c']},"
                            "{'name': 'c', 'op': 'relu', 'inputs': ['q']},"
                            "{'name': 'q', 'op': 'relu', 'inputs': ['x']}"));
    g_autofree char *names = order(graph);
    assert_string_equal(names, "q c a");
}

TEST(a_cycle_is_told_with_its_names) {
    assert_fails(WITH("{'name': 'p', 'op': 'relu', 'inputs': ['q']},"
                      "{'name': 'q', 'op': 'add', 'inputs': ['x', 'r']},"
                      "{'name': 'r', 'op': 'relu', 'inputs': ['q']}"),
                 "g.json: /operations/1: operations need each other in a circle: \"q\" needs "
                 "\"r\" needs \"q\"");
    assert_fails(WITH("{'name': 'p', 'op': 'relu', 'inputs': ['p']}"),
                 "g.json: /operations/0: operations need each other in a circle: \"p\" needs "
                 "\"p\"");
}

TEST(a_missing_input_is_told_with_the_nearest_name) {
    assert_fails(WITH("{'name': 'hidden', 'op': 'relu', 'inputs': ['x']},"
                      "{'name': 'y', 'op': 'relu', 'inputs': ['hiden']}"),
                 "g.json: /operations/1: operation \"y\": input \"hiden\" is not a tensor of this "
                 "graph (did you mean \"hidden\"?)");
}

TEST(an_unknown_operation_is_told_with_the_nearest_name) {
    assert_fails(WITH("{'name': 'y', 'op': 'reduce_men', 'inputs': ['x']}"),
                 "g.json: /operations/0/op: \"reduce_men\" is not an operation (did you mean "
                 "\"reduce_mean\"?)");
    assert_fails(WITH("{'name': 'y', 'op': 'convolution', 'inputs': ['x']}"),
                 "g.json: /operations/0/op: \"convolution\" is not an operation; use conv");
}

TEST(an_unknown_attribute_is_told_with_those_of_the_row) {
    assert_fails(
        WITH("{'name': 'y', 'op': 'scale', 'inputs': ['x'], 'faktor': 2}"),
        "g.json: /operations/0: scale has no attribute \"faktor\" (did you mean \"factor\"?); it has: factor");
    assert_fails(WITH("{'name': 'y', 'op': 'relu', 'inputs': ['x'], 'dtype': 'float64'}"),
                 "g.json: /operations/0: relu has no attribute \"dtype\"; it has none beside "
                 "inputs and dims");
    assert_fails(WITH("{'name': 'y', 'op': 'relu', 'inputs': ['x'], 'slope': 0.1}"),
                 "g.json: /operations/0: relu has no attribute \"slope\", which leaky_relu and elu "
                 "have; it has none beside inputs and dims");
    assert_fails(WITH("{'name': 'y', 'op': 'scale', 'inputs': ['x']}"),
                 "g.json: /operations/0: attribute \"factor\" is missing");
    assert_fails(WITH("{'name': 'y', 'op': 'softmax', 'inputs': ['x'], 'dimension': 'c'}"),
                 "g.json: /operations/0/dimension: \"c\" is not a dimension of this graph");
}

TEST(the_table_of_operations_speaks_with_the_place) {
    assert_fails(WITH("{'name': 'y', 'op': 'add', 'inputs': ['x']}"),
                 "g.json: /operations/0: operation \"y\" (add): it takes at least 2 inputs, not 1");
}

TEST(wrong_pieces_are_told_one_by_one) {
    assert_fails("{'meshtf_graph': 2}", "g.json: /meshtf_graph: version 2 is not 1, the one this "
                                        "program reads");
    assert_fails("{'meshtf_plan': 2}",
                 "g.json: /: key \"meshtf_graph\" is missing: this is not a meshtf_graph file");
    assert_fails("[]", "g.json: /: an object is expected here");
    assert_fails(
        HEAD "'operation': []}",
        "g.json: /: unknown key \"operation\" (did you mean \"operations\"? known here: meshtf_graph, name, "
        "dimensions, inputs, variables, operations, loss, outputs, optimizer, updates, repeats, loops, config)");
    assert_fails(HEAD "'name': 'h', 'operations': []}", "g.json: /: key \"name\" is given twice");
    assert_fails(
        HEAD INPUT "'x': 1, 'operations': []}",
        "g.json: /: unknown key \"x\" (known here: meshtf_graph, name, dimensions, "
        "inputs, variables, operations, loss, outputs, optimizer, updates, repeats, loops, config)");
    assert_fails(HEAD "'inputs': []}", "g.json: /: key \"operations\" is missing");
    assert_fails("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4, 'a': 5}, "
                 "'operations': []}",
                 "g.json: /dimensions: key \"a\" is given twice");
    assert_fails("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 0}, 'operations': []}",
                 "g.json: /dimensions/a: 0 is not between 1 and 9007199254740991");
    assert_fails("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 1.5}, 'operations': []}",
                 "g.json: /dimensions/a: 1.5 is not an integer below 2^53");
    assert_fails(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'replicated': 2}, 'operations': []}",
        "g.json: /dimensions: dimension \"replicated\": that is a word of layouts");
}

TEST(wrong_inputs_and_variables_are_told) {
    assert_fails(
        HEAD "'inputs': [{'name': 't', 'dims': ['a'], 'feed': 'tokens'}], "
             "'operations': []}",
        "g.json: /inputs/0: input \"t\": feed \"tokens\" gives int32 or int64, so its dtype cannot "
        "be float32");
    assert_fails(HEAD "'inputs': [{'name': 't', 'dims': ['a'], 'feed': 'bytes'}], "
                      "'operations': []}",
                 "g.json: /inputs/0/feed: \"bytes\" is not a feed (known: tokens, next_tokens, "
                 "mask, features, targets, labels, source, segments, places, "
                 "source_segments, source_places, categories, position, last)");
    assert_fails(HEAD "'inputs': [{'name': 't', 'dims': ['a', 'a'], 'feed': 'mask'}], "
                      "'operations': []}",
                 "g.json: /inputs/0/dims/1: dimension \"a\" is named twice");
    assert_fails(HEAD "'variables': [{'name': 'v', 'dims': ['a'], 'init': 'one'}], "
                      "'operations': []}",
                 "g.json: /variables/0/init: \"zeros\", \"ones\", or one of {\"constant\": value}, "
                 "{\"normal\": deviation}, {\"uniform\": limit} is expected here");
    assert_fails(HEAD "'variables': [{'name': 'v', 'dims': ['a'], 'init': {'normal': -1}}], "
                      "'operations': []}",
                 "g.json: /variables/0/init/normal: -1 is below 0, which no deviation is");
    assert_fails(HEAD "'variables': [{'name': 'v', 'dims': ['a'], 'init': {}}], "
                      "'operations': []}",
                 "g.json: /variables/0/init: \"zeros\", \"ones\", or one of {\"constant\": value}, "
                 "{\"normal\": deviation}, {\"uniform\": limit} is expected here");
    assert_fails(HEAD "'variables': [{'name': 'v', 'dims': ['a'], 'init': 'ones', 'dtype': "
                      "'float16'}], 'operations': []}",
                 "g.json: /variables/0/dtype: \"float16\" is not a type: bfloat16 does");
    assert_fails(HEAD
                 "'variables': [{'name': 'v', 'dims': ['a'], 'init': 'ones', 'dtype': 'uint8'}], "
                 "'operations': []}",
                 "g.json: /variables/0/dtype: \"uint8\" is not a type: int32 does");
    assert_fails(
        HEAD "'variables': [{'name': 'v', 'dims': ['a'], 'init': 'ones', 'dtype': 'long'}], "
             "'operations': []}",
        "g.json: /variables/0/dtype: \"long\" is not a type: float32, float64, bfloat16, int32, "
        "int64, bool and int8 are");
    assert_fails(
        HEAD INPUT "'operations': [{'while': {'name': 'w', 'operations': []}}]}",
        "g.json: /operations/0/while: a \"while\" block needs a \"max_count\": prices and memory "
        "count so many iterations");
    assert_fails(HEAD INPUT "'variables': [{'name': 'x', 'dims': ['a'], 'init': 'ones'}], "
                            "'operations': []}",
                 "g.json: /variables/0: the name \"x\" is given twice");
}

TEST(a_loss_is_one_number_and_a_result) {
    assert_fails(HEAD INPUT "'operations': [], 'loss': 'x'}",
                 "g.json: /loss: loss \"x\" is f32[a:4, b:6]; a loss is one number without "
                 "dimensions: reduce it first");
    assert_fails(HEAD "'variables': [{'name': 'v', 'dims': [], 'init': 'ones'}], 'operations': [],"
                      "'loss': 'v'}",
                 "g.json: /loss: loss \"v\" is not the result of an operation");
    assert_fails(HEAD "'operations': [], 'loss': 'l'}",
                 "g.json: /loss: loss \"l\" is not a tensor of this graph");
}

TEST(outputs_are_results_each_once) {
#define Y "'operations': [{'name': 'y', 'op': 'relu', 'inputs': ['x']}], "
    assert_fails(HEAD INPUT Y "'outputs': ['y', 'x']}",
                 "g.json: /outputs/1: output \"x\" is not the result of an operation");
    assert_fails(HEAD INPUT Y "'outputs': ['y', 'y']}",
                 "g.json: /outputs/1: output \"y\" is there twice");
    assert_fails(HEAD INPUT Y "'outputs': ['z']}",
                 "g.json: /outputs/0: output \"z\" is not a tensor of this graph");
#undef Y
}

TEST(an_optimizer_takes_only_its_own_numbers) {
    assert_fails(
        HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': 1, 'beta1': 0.5}}",
        "g.json: /optimizer: unknown key \"beta1\" (known here: kind, schedule, rate, "
        "weight_decay, warmup, total, final, clip_norm, power, cooldown, period, drop, ema)");
    assert_fails(HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': -1}}",
                 "g.json: /optimizer/rate: \"rate\" is -1, which is not at least 0");
    assert_fails(
        HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': 1, 'schedule': 'wsd', "
             "'total': 9}}",
        "g.json: /optimizer: schedule \"wsd\" needs \"cooldown\", the steps in which it ends");
    assert_fails(
        HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': 1, 'schedule': 'wsd', "
             "'warmup': 2, 'total': 9, 'cooldown': 8}}",
        "g.json: /optimizer: schedule \"wsd\" has 7 steps between \"warmup\" and \"total\", fewer "
        "than its \"cooldown\" of 8");
    assert_fails(
        HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': 1, 'schedule': 'step'}}",
        "g.json: /optimizer: schedule \"step\" needs \"period\", the steps from one drop to "
        "the next");
    assert_fails(HEAD "'operations': [], 'optimizer': {'kind': 'sgd'}}",
                 "g.json: /optimizer: key \"rate\" is missing");
    assert_fails(HEAD "'operations': [], 'optimizer': {'kind': 'tiger', 'rate': 1}}",
                 "g.json: /optimizer/kind: \"tiger\" is not an optimizer (known: sgd, momentum, "
                 "adam, adamw, adafactor, lion, lamb, muon)");
    assert_fails(HEAD "'operations': [], 'optimizer': {'kind': 'sgd', 'rate': 1, 'schedule': "
                      "'cosine'}}",
                 "g.json: /optimizer: schedule \"cosine\" needs \"total\", the step at which it "
                 "ends, above \"warmup\"");
}

#define BLOCK(count, operations)                                                                \
    WITH("{'repeat': {'name': 'layer', 'count': " count                                         \
         ", 'carry': [{'name': 'h', 'init': 'x', 'next': 'out'}], 'variables': [{'name': 'w', " \
         "'dims': ['b'], 'init': 'ones'}], 'operations': [" operations "]}}, "                  \
         "{'name': 'end', 'op': 'relu', 'inputs': ['layer/h']}")

TEST(a_repeated_block_is_unrolled) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(BLOCK("3", "{'name': 'out', 'op': 'add', 'inputs': ['m', 'x']},"
                                  "{'name': 'm', 'op': 'multiply', 'inputs': ['h', 'w']}"));
    g_autofree char *names = order(graph);
    assert_string_equal(names,
                        "layer/0/m layer/0/out layer/1/m layer/1/out layer/2/m layer/2/out end");
    const MtfOperation *first = mtf_graph_operation(graph, 0);
    const MtfOperation *second = mtf_graph_operation(graph, 2);
    const MtfOperation *out = mtf_graph_operation(graph, 3);
    const MtfOperation *end = mtf_graph_operation(graph, 6);
    assert_string_equal(mtf_graph_tensor(graph, first->inputs[0])->name, "x");
    assert_string_equal(mtf_graph_tensor(graph, first->inputs[1])->name, "layer/0/w");
    assert_string_equal(mtf_graph_tensor(graph, second->inputs[0])->name, "layer/0/out");
    assert_string_equal(mtf_graph_tensor(graph, second->inputs[1])->name, "layer/1/w");
    assert_string_equal(mtf_graph_tensor(graph, out->inputs[1])->name, "x");
    assert_string_equal(mtf_graph_tensor(graph, end->inputs[0])->name, "layer/2/out");
    assert_int_equal(graph->repeats->len, 1);
    assert_string_equal(g_array_index(graph->repeats, MtfRepeat, 0).name, "layer");
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, 0).count, 3);
}

/* Two values that change places each time: after three times they are exchanged. */
TEST(carried_values_may_change_places) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        WITH("{'name': 'y', 'op': 'relu', 'inputs': ['x']}, {'repeat': {'name': 'r', "
             "'count': 3, 'carry': [{'name': 'p', 'init': 'x', 'next': 'q'}, {'name': 'q', "
             "'init': 'y', 'next': 'p'}], 'operations': [{'name': 's', 'op': 'relu', "
             "'inputs': ['p']}]}}, {'name': 'e', 'op': 'subtract', 'inputs': ['r/p', "
             "'r/q']}"));
    const MtfOperation *end = mtf_graph_operation(graph, mtf_graph_find_operation(graph, "e"));
    assert_string_equal(mtf_graph_tensor(graph, end->inputs[0])->name, "y");
    assert_string_equal(mtf_graph_tensor(graph, end->inputs[1])->name, "x");
}

TEST(a_random_stream_belongs_to_its_iteration) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(BLOCK("2", "{'name': 'out', 'op': 'dropout', 'inputs': ['h'], 'rate': 0.5, "
                                  "'stream': 's'}"));
    assert_string_equal(mtf_graph_operation(graph, 0)->attributes.stream, "layer/0/s");
    assert_string_equal(mtf_graph_operation(graph, 1)->attributes.stream, "layer/1/s");
}

TEST(wrong_blocks_are_told) {
#define OUT "{'name': 'out', 'op': 'relu', 'inputs': ['h']}"
    assert_fails(BLOCK("1000000000", OUT), "g.json: /operations/0/repeat/count: 1000000000 is not "
                                           "between 1 and 2000000");
    assert_fails(BLOCK("1500000", OUT), "g.json: /operations/0/repeat: unrolled 1500000 times the "
                                        "block has more than 2000000 operations and variables");
    assert_fails(BLOCK("2", ""),
                 "g.json: /operations/0/repeat/operations: a repeated block has operations");
    assert_fails(BLOCK("2", OUT ", {'repeat': {}}"),
                 "g.json: /operations/0/repeat/operations/1: a repeated block holds loops, but no "
                 "other repeated block");
    assert_fails(BLOCK("2", OUT ", {'name': 'h', 'op': 'relu', 'inputs': ['x']}"),
                 "g.json: /operations/0/repeat/carry/0: the name \"h\" is given twice in this "
                 "block");
    assert_fails(BLOCK("2", "{'name': 'put', 'op': 'relu', 'inputs': ['h']}"),
                 "g.json: /operations/0/repeat/carry/0: next \"out\" is not a tensor of this "
                 "graph");
    assert_fails(BLOCK("2", "{'name': 'out', 'op': 'reduce_sum', 'inputs': ['h'], 'dims': ['b']}"),
                 "g.json: /operations/0/repeat/carry/0: carried value \"h\" begins as \"x\" "
                 "f32[a:4, b:6] but goes on as \"out\" f32[b:6]; both must be the same");
    assert_fails(BLOCK("2", "{'name': 'out', 'op': 'relu', 'inputs': ['layer/h']}"),
                 "g.json: /operations/0/repeat/operations/0: operations need each other in a "
                 "circle: \"layer/1/out\" needs \"layer/1/out\"");
    assert_fails(BLOCK("2", OUT ", " OUT), "g.json: /operations/0/repeat/operations/1: the name "
                                           "\"layer/0/out\" is given twice");
#undef OUT
}

TEST(a_value_that_carries_itself_is_told) {
    assert_fails(WITH("{'repeat': {'name': 'r', 'count': 2, 'carry': [{'name': 'p', 'init': 'r/p', "
                      "'next': 'p'}], 'operations': [{'name': 's', 'op': 'relu', 'inputs': "
                      "['p']}]}}"),
                 "g.json: /operations/0/repeat/carry/0: init \"r/p\" leads back to itself");
}

TEST(sizes_can_be_replaced) {
    g_autoptr(GError) error = NULL;
    char *names[] = { (char *)"b", NULL };
    int64_t sizes[] = { 512 };
    MtfSizeOverrides overrides = { names, sizes };
    g_autoptr(MtfGraph) graph = mtf_test_graph_parse(WITH(""), &overrides, &error);
    assert_non_null(graph);
    assert_shape(graph, "x", "f32[a:4, b:512]");
    names[0] = (char *)"bb";
    assert_null(mtf_test_graph_parse(WITH(""), &overrides, &error));
    assert_string_equal(error->message, "g.json: \"bb\", which is to get another size, is not a "
                                        "dimension of this graph");
}

TEST(sizes_that_overflow_are_told) {
#define BIG "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 9007199254740991, 'b': 2}, "
    assert_fails(BIG INPUT "'operations': []}",
                 "g.json: /inputs/0: tensor \"x\" has more than 2^53 elements");
    assert_fails(BIG "'variables': [{'name': 'v', 'dims': ['a'], 'init': 'ones'}, {'name': 'w', "
                     "'dims': ['b'], 'init': 'ones'}], 'operations': []}",
                 "g.json: /: the variables hold more than 2^53 elements together");
#undef BIG
}

TEST(a_training_graph_has_updates_and_repeats) {
#define V                                                                                 \
    "'variables': [{'name': 'v', 'dims': ['a', 'b'], 'init': 'ones'}], 'operations': ["   \
    "{'name': 'n', 'op': 'add', 'inputs': ['x', 'v'], 'phase': 'update', 'memory_kind': " \
    "'variables'}], "
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        HEAD INPUT
        "'variables': [{'name': 'v', 'dims': ['a', 'b'], 'init': 'ones', 'block': 'layer', "
        "'iteration': 23}], 'operations': [{'name': 'n', 'op': 'add', 'inputs': ['x', "
        "'v'], 'phase': 'update', 'memory_kind': 'variables'}], "
        "'updates': [{'variable': 'v', 'value': 'n'}], 'repeats': {'layer': 24}}");
    assert_int_equal(graph->updates->len, 1);
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, 0).count, 24);
    assert_fails(HEAD INPUT V "'updates': [{'variable': 'x', 'value': 'n'}]}",
                 "g.json: /updates/0: \"x\" is not a variable");
    assert_fails(HEAD INPUT V "'updates': [{'variable': 'v', 'value': 'n'}, {'variable': 'v', "
                              "'value': 'n'}]}",
                 "g.json: /updates/1: variable \"v\" is updated twice");
    assert_fails(HEAD INPUT V "'updates': [{'variable': 'v', 'value': 'm'}]}",
                 "g.json: /updates/0: value \"m\" is not a tensor of this graph");
#undef V
}

static void assert_round_trip(const MtfGraph *graph) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = print(graph);
    g_autoptr(MtfGraph) again = mtf_test_graph_parse(text, NULL, &error);
    if (again == NULL)
        fail_msg("%s", error->message);
    g_autofree char *second = print(again);
    assert_string_equal(text, second);
    assert_int_equal(again->tensors->len, graph->tensors->len);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *a = mtf_graph_tensor(graph, t), *b = mtf_graph_tensor(again, t);
        assert_string_equal(a->name, b->name);
        assert_true(mtf_shape_equal(&a->shape, &b->shape));
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->memory, b->memory);
        assert_int_equal(a->producer, b->producer);
        assert_int_equal(a->output, b->output);
    }
    assert_int_equal(again->loss, graph->loss);
}

TEST(graphs_of_the_library_load_and_travel_unchanged) {
    static const struct {
        const char *path;
        int64_t parameters;
        guint operations;
    } graphs[] = {
        /* 64 * 512 + 512 + 512 * 16 + 16 */
        { "layouts/library/graphs/mlp.json", 41488, 8 },
        /* 256*128 + 64*128 + 128 + 128*256 + 4 * (2 * 128 + 4 * 128*128 + 2 * 128*512) */
        { "layouts/library/graphs/transformer-small.json", 861312, 2 + 4 * 16 + 6 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(graphs); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfGraph) graph = mtf_graph_load(graphs[i].path, NULL, &error);
        if (graph == NULL)
            fail_msg("%s", error->message);
        assert_int_equal(mtf_graph_parameters(graph), graphs[i].parameters);
        assert_int_equal(graph->operations->len, graphs[i].operations);
        assert_round_trip(graph);
    }
}

TEST(everything_a_graph_can_hold_travels) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'gräph \\u0001', 'dimensions': {'a': 4, 'ä/ö': 6, 'c': 6}, "
        "'inputs': [{'name': 'x', 'dims': ['a', 'ä/ö'], 'dtype': 'float64', 'feed': 'features'}], "
        "'variables': [{'name': 'w', 'dims': ['a'], 'init': {'normal': 0.1}}, {'name': 'm', "
        "'dims': ['a'], 'init': 'zeros', 'memory_kind': 'optimizer'}, {'name': 'v', 'dims': "
        "['a'], 'init': 'zeros', 'memory_kind': 'optimizer', 'frozen': true, 'decay': false}], 'operations': ["
        "{'name': 'r', 'op': 'rename', 'inputs': ['x'], 'from': 'ä/ö', 'to': 'c'},"
        "{'name': 'f', 'op': 'cast', 'inputs': ['r'], 'dtype': 'float32'},"
        "{'name': 'd', 'op': 'dropout', 'inputs': ['f'], 'rate': 0.1},"
        "{'name': 't', 'op': 'transpose', 'inputs': ['d'], 'dims': ['c', 'a']},"
        "{'name': 'g', 'op': 'reduce_sum', 'inputs': ['t'], 'dims': ['a'], 'phase': 'backward', "
        "'memory_kind': 'gradients'},"
        "{'name': 'l', 'op': 'reduce_sum', 'inputs': ['g'], 'dims': []},"
        "{'name': 'rate', 'op': 'learning_rate', 'inputs': [], 'dims': [], 'rate': 0.01, "
        "'schedule': 'cosine', 'total': 1000, 'final': 0.3, 'phase': 'update'},"
        "{'name': 'k', 'op': 'constant', 'dims': ['a'], 'value': 1e-30, 'block': 'block', "
        "'iteration': 1},"
        "{'name': 'w2', 'op': 'adam', 'inputs': ['w', 'g', 'm', 'v', 'rate'], 'beta1': 0.8, "
        "'phase': 'update', 'memory_kind': ['variables', 'optimizer', 'optimizer']}], 'loss': 'l', 'outputs': ['t', 'r'], "
        "'updates': [{'variable': 'w', 'value': 'w2'}, {'variable': 'm', 'value': 'w2/m'}, "
        "{'variable': 'v', 'value': 'w2/v'}], 'repeats': {'block': 2}, 'optimizer': {'kind': "
        "'adafactor', 'rate': 0.1, 'schedule': 'inverse_sqrt', 'warmup': 10}}");
    assert_round_trip(graph);
}

/* Inside a block "h" and "w" are other tensors in each iteration; a formula means them by the names that
 * they have where it stands. */
TEST(an_expression_keeps_its_arguments_when_blocks_are_unrolled) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(BLOCK("2", "{'name': 'out', 'op': 'expression', 'inputs': ['h', 'w'], "
                                  "'expression': 'h * sigmoid(w)', 'dims': ['a', 'b']}"));
    const MtfOperation *second = mtf_graph_operation(graph, 1);
    assert_string_equal(mtf_graph_tensor(graph, second->inputs[0])->name, "layer/0/out");
    assert_string_equal(mtf_graph_tensor(graph, second->inputs[1])->name, "layer/1/w");
    assert_string_equal(second->attributes.expression, "h * sigmoid(w)");
    assert_string_equal(second->attributes.arguments, "h w");
    assert_round_trip(graph);
    assert_fails(
        WITH("{'name': 'layer/y', 'op': 'relu', 'inputs': ['x']},"
             "{'name': 'z', 'op': 'expression', 'inputs': ['layer/y'], 'expression': '1'}"),
        "g.json: /operations/1: operation \"z\" (expression): \"layer/y\" is no name for an "
        "expression (letters, digits and _); \"arguments\" may give the inputs others, "
        "between single spaces");
    assert_fails(
        WITH("{'name': 'z', 'op': 'expression', 'inputs': ['x'], 'expression': '2 * y'}"),
        "g.json: /operations/0: operation \"z\" (expression): column 5: \"y\" is none of the "
        "arguments, x");
    assert_fails(
        WITH("{'name': 'z', 'op': 'expression', 'inputs': [], 'expression': '2'}"),
        "g.json: /operations/0: operation \"z\" (expression): it takes at least 1 input, not "
        "0");
}

/* A chain of 300,000 operations, given last first, needs no deep recursion. */
TEST(a_long_chain_given_backwards_is_sorted) {
    g_autoptr(GString) text = g_string_new(HEAD INPUT "'operations': [");
    for (int i = 300000; i > 0; i--)
        g_string_append_printf(text, "{'name': '%d', 'op': 'relu', 'inputs': ['%d']},", i, i - 1);
    g_string_append(text, "{'name': '0', 'op': 'relu', 'inputs': ['x']}]}");
    g_autoptr(MtfGraph) graph = mtf_test_graph(text->str);
    assert_int_equal(graph->operations->len, 300001);
    assert_string_equal(mtf_graph_operation(graph, 7)->name, "7");
}

TEST(ten_thousand_levels_are_told) {
    g_autofree char *deep = g_strnfill(10000, '[');
    assert_fails(deep, "g.json:1:513: brackets nest deeper than 512 levels here");
}

/* Every beginning of a good file is bad input, told in one sentence. */
TEST(every_cut_off_file_is_told) {
    g_autofree char *text = NULL;
    gsize length;
    assert_true(g_file_get_contents("layouts/library/graphs/mlp.json", &text, &length, NULL));
    while (g_ascii_isspace(text[length - 1]))
        length--;
    for (gsize cut = 0; cut < length; cut++) {
        g_autoptr(GError) error = NULL;
        assert_null(mtf_json_document_parse("g.json", text, cut, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        assert_true(g_str_has_prefix(error->message, "g.json"));
        assert_null(strchr(error->message, '\n'));
    }
}

/* "m" is what "l" is renamed to, inside a block, too; "n" has l's size by chance. */
TEST(what_a_dimension_is_renamed_to_takes_its_size) {
    g_autoptr(GError) error = NULL;
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'l': 4, 'm': 4, 'n': 4}, 'inputs': "
        "[{'name': 'x', 'dims': ['l', 'n'], 'feed': 'features'}], 'operations': [{'repeat': "
        "{'name': 'layer', 'count': 2, 'carry': [{'name': 'h', 'init': 'x', 'next': 'b'}], "
        "'operations': [{'name': 'a', 'op': 'rename', 'inputs': ['h'], 'from': 'l', 'to': 'm'}, "
        "{'name': 'b', 'op': 'rename', 'inputs': ['a'], 'from': 'm', 'to': 'l'}]}}]}";
    static const char *const cases[][2] = { { "l", "8" }, { "m", "8" } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *names[] = { (char *)(gpointer)cases[i][0], NULL };
        int64_t sizes[] = { 8 };
        MtfSizeOverrides overrides = { names, sizes };
        g_autoptr(MtfGraph) graph = mtf_test_graph_parse(text, &overrides, &error);
        if (graph == NULL)
            fail_msg("%s", error->message);
        assert_int_equal(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "l")), 8);
        assert_int_equal(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "m")), 8);
        assert_int_equal(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "n")), 4);
    }
}
