// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/operation_table.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define HEAD                                                                                  \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'length': 4, 'memory': 4, "  \
    "'model': 6, 'vocab': 16, 'one': 1, 'd1': 1, 'd2': 1, 'd3': 1, 'd4': 1, 'd5': 1, 'd6': "  \
    "1, 'd7': 1, 'd8': 1, 'd9': 1}, "                                                         \
    "'inputs': [{'name': 'x', 'dims': ['batch', 'length', 'model'], 'feed': 'features'}, "    \
    "{'name': 'ids', 'dims': ['batch', 'length'], 'dtype': 'int32', 'feed': 'tokens'}, "      \
    "{'name': 'mask', 'dims': ['batch', 'length'], 'feed': 'mask'}, "                         \
    "{'name': 'mask64', 'dims': ['batch', 'length'], 'dtype': 'float64', 'feed': 'mask'}, "   \
    "{'name': 'narrow', 'dims': ['batch', 'length', 'model'], 'dtype': 'bfloat16', 'feed': "  \
    "'features'}, {'name': 'max', 'dims': ['batch', 'length'], 'dtype': 'bfloat16', 'feed': " \
    "'mask'}], "                                                                              \
    "'variables': [{'name': 'w', 'dims': ['model', 'vocab'], 'init': 'ones'}, {'name': "      \
    "'logits', 'dims': ['batch', 'length', 'vocab'], 'init': 'ones'}, {'name': 'scores', "    \
    "'dims': ['length', 'memory'], 'init': 'ones'}, {'name': 'table', 'dims': ['vocab', "     \
    "'model'], 'init': 'ones'}, {'name': 's', 'dims': [], 'init': 'ones'}, {'name': 'v', "    \
    "'dims': ['model'], 'init': 'ones'}, {'name': 'vv', 'dims': ['vocab'], 'init': 'ones'}, " \
    "{'name': 'many', 'dims': ['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7', 'd8', 'd9'], "       \
    "'init': 'ones'}], 'operations': ["

static MtfGraph *parse(const char *operation, GError **error) {
    g_autofree char *text = g_strconcat(HEAD "{'name': 'y', ", operation, "}]}", NULL);
    return mtf_test_graph_parse(text, NULL, error);
}

/* Checks the type and dimensions that follow for the result "y". */
static void assert_gives(const char *operation, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = parse(operation, &error);
    if (graph == NULL)
        fail_msg("%s: %s", operation, error->message);
    g_autofree char *format = mtf_graph_tensor_format(graph, mtf_graph_find_tensor(graph, "y"));
    assert_string_equal(format, expected);
}

static void assert_refused(const char *operation, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = g_strconcat("g.json: /operations/0: operation \"y\" ", message, NULL);
    g_autoptr(MtfGraph) graph = parse(operation, &error);
    assert_null(graph);
    assert_string_equal(error->message, whole);
}

TEST(every_row_is_complete_and_found_by_its_name) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        const MtfOperationRow *row = mtf_operation_row(kind);
        assert_non_null(row->name);
        assert_int_equal(mtf_operation_kind(row->name), kind);
        assert_true(row->min_inputs <= row->max_inputs);
        assert_in_range(row->n_outputs, 1, MTF_MAX_OUTPUTS);
        assert_true(row->flops >= 0);
        for (int k = 1; k < row->n_outputs; k++) {
            assert_non_null(row->suffixes[k]);
            assert_true(row->outputs_like[k] < row->min_inputs);
        }
        if (row->linearity == MTF_LINEAR_ONE)
            assert_true(row->linear_input < row->min_inputs);
    }
    assert_int_equal(mtf_operation_kind("convolve"), -1);
}

TEST(every_attribute_is_named_and_within_the_limit) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        int n = 0;
        const MtfAttributeSpec *spec = mtf_operation_row(kind)->attributes;
        for (; spec->name != NULL; spec++)
            assert_true(++n < MTF_MAX_ATTRIBUTES);
    }
}

TEST(shapes_follow_from_inputs) {
    assert_gives("'op': 'relu', 'inputs': ['x']", "f32[batch:8, length:4, model:6]");
    assert_gives("'op': 'add', 'inputs': ['v', 'x']", "f32[model:6, batch:8, length:4]");
    assert_gives("'op': 'add', 'inputs': ['v', 'x'], 'dims': ['batch', 'length', 'model']",
                 "f32[batch:8, length:4, model:6]");
    assert_gives("'op': 'add', 'inputs': ['v', 'vv']", "f32[model:6, vocab:16]");
    assert_gives("'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['vocab', 'batch']",
                 "f32[vocab:16, batch:8]");
    assert_gives("'op': 'reduce_sum', 'inputs': ['x'], 'dims': []", "f32[]");
    assert_gives("'op': 'rename', 'inputs': ['x'], 'from': 'length', 'to': 'memory'",
                 "f32[batch:8, memory:4, model:6]");
    assert_gives("'op': 'transpose', 'inputs': ['w'], 'dims': ['vocab', 'model']",
                 "f32[vocab:16, model:6]");
    assert_gives("'op': 'broadcast', 'inputs': ['v'], 'dims': ['model', 'batch']",
                 "f32[model:6, batch:8]");
    assert_gives("'op': 'embedding', 'inputs': ['table', 'ids'], 'dims': ['batch', 'length', "
                 "'model']",
                 "f32[batch:8, length:4, model:6]");
    assert_gives("'op': 'embedding_grad', 'inputs': ['ids', 'x'], 'dims': ['vocab', 'model']",
                 "f32[vocab:16, model:6]");
    assert_gives("'op': 'softmax_cross_entropy', 'inputs': ['logits', 'ids', 'mask'], 'dims': "
                 "['length', 'batch']",
                 "f32[length:4, batch:8]");
    assert_gives("'op': 'layer_norm', 'inputs': ['x', 'v', 'v'], 'dimension': 'model'",
                 "f32[batch:8, length:4, model:6]");
    assert_gives("'op': 'causal_mask', 'inputs': ['scores'], 'query': 'length', 'memory': "
                 "'memory'",
                 "f32[length:4, memory:4]");
}

TEST(types_follow_from_inputs_or_are_given) {
    assert_gives("'op': 'relu', 'inputs': ['mask64']", "f64[batch:8, length:4]");
    assert_gives("'op': 'cast', 'inputs': ['ids'], 'dtype': 'float64'", "f64[batch:8, length:4]");
    assert_gives("'op': 'constant', 'dims': ['one'], 'value': 2", "f32[one:1]");
    assert_gives("'op': 'constant', 'dims': [], 'value': 2, 'dtype': 'int32'", "i32[]");
    assert_gives("'op': 'range', 'dims': ['length']", "i32[length:4]");
    assert_gives("'op': 'range', 'dims': ['length'], 'dtype': 'float32'", "f32[length:4]");
    assert_gives("'op': 'rename', 'inputs': ['ids'], 'from': 'length', 'to': 'memory'",
                 "i32[batch:8, memory:4]");
    assert_gives("'op': 'learning_rate', 'dims': [], 'rate': 1", "f32[]");
}

TEST(the_number_of_inputs_is_checked) {
    assert_refused("'op': 'relu', 'inputs': ['x', 'x']", "(relu): it takes 1 input, not 2");
    assert_refused("'op': 'add', 'inputs': ['x']", "(add): it takes at least 2 inputs, not 1");
    assert_refused("'op': 'layer_norm', 'inputs': ['x', 'v', 'v', 'v'], 'dimension': 'model'",
                   "(layer_norm): it takes at most 3 inputs, not 4");
    assert_refused("'op': 'adafactor_direction', 'inputs': ['v', 'v', 'v']",
                   "(adafactor_direction): it takes 2 or 4 inputs");
}

TEST(what_keeps_divisors_above_zero_is_not_negative) {
    assert_refused(
        "'op': 'layer_norm', 'inputs': ['x', 'v', 'v'], 'dimension': 'model', 'epsilon': -1e-5",
        "(layer_norm): \"epsilon\" is -1e-05 and must be at least 0: it keeps what is "
        "divided by above 0");
}

TEST(types_of_inputs_are_checked) {
    assert_refused("'op': 'relu', 'inputs': ['ids']",
                   "(relu): input \"ids\" is int32; cast it to a float type first");
    assert_refused("'op': 'add', 'inputs': ['mask', 'mask64']",
                   "(add): input \"mask64\" is float64 but \"mask\" is float32; cast one of them");
    assert_refused("'op': 'embedding', 'inputs': ['table', 'mask'], 'dims': ['batch', 'length', "
                   "'model']",
                   "(embedding): input \"mask\" is float32 and must be int32 or int64");
    assert_refused("'op': 'cast', 'inputs': ['x']", "(cast): attribute \"dtype\" is missing");
    assert_refused("'op': 'constant', 'dims': [], 'value': 0.5, 'dtype': 'int32'",
                   "(constant): 0.5 is not an int32");
    assert_refused("'op': 'learning_rate', 'dims': [], 'rate': 1, 'dtype': 'int32'",
                   "(learning_rate): a learning rate is of a float type");
    assert_refused("'op': 'constant', 'dims': [], 'value': 2, 'dtype': 'bool'",
                   "(constant): 2 is not 0 or 1, as a bool is");
    assert_refused("'op': 'range', 'dims': ['batch'], 'dtype': 'bool'",
                   "(range): a range counts, and a bool does not go beyond 1");
    assert_refused("'op': 'constant', 'dims': [], 'value': 1e16, 'dtype': 'int64'",
                   "(constant): 10000000000000000 is not an int64 within 2^53, as constants are");
    assert_refused(
        "'op': 'less', 'inputs': ['mask', 'mask'], 'dtype': 'int32'",
        "(less): its dtype is int32 but \"mask\" is float32; cast the input or the result");
}

TEST(dims_are_checked_against_the_inputs) {
    assert_refused("'op': 'einsum', 'inputs': ['x', 'w']", "(einsum): \"dims\" is missing");
    assert_refused("'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['memory']",
                   "(einsum): dimension \"memory\" is in its dims but in none of its inputs");
    assert_refused("'op': 'add', 'inputs': ['x', 'v'], 'dims': ['batch', 'model']",
                   "(add): dimension \"length\" is in its inputs but missing in its dims");
    assert_refused("'op': 'broadcast', 'inputs': ['x'], 'dims': ['batch', 'length']",
                   "(broadcast): dimension \"model\" is in its inputs but missing in its dims");
    assert_refused("'op': 'transpose', 'inputs': ['w'], 'dims': ['model']",
                   "(transpose): dimension \"vocab\" is in its inputs but missing in its dims");
    assert_refused("'op': 'relu', 'inputs': ['w'], 'dims': ['vocab', 'model']",
                   "(relu): its dims are not those that follow from its inputs");
    assert_refused("'op': 'range', 'dims': ['batch', 'length']",
                   "(range): a range has exactly one dimension");
    assert_refused("'op': 'add', 'inputs': ['many', 'x', 'vv']",
                   "(add): its inputs have more than 12 dimensions together");
    assert_refused("'op': 'concat', 'inputs': ['many', 'x', 'vv'], 'dims': ['model']",
                   "(concat): its inputs have more than 12 dimensions together: name those of one "
                   "size alike, or join some before others");
}

TEST(a_rename_needs_the_one_name_and_not_the_other) {
    assert_refused("'op': 'rename', 'inputs': ['w'], 'from': 'length', 'to': 'memory'",
                   "(rename): input \"w\" has no dimension \"length\"");
    assert_refused("'op': 'rename', 'inputs': ['scores'], 'from': 'length', 'to': 'memory'",
                   "(rename): input \"scores\" already has dimension \"memory\"");
    assert_refused("'op': 'rename', 'inputs': ['w'], 'from': 'vocab', 'to': 'length'",
                   "(rename): dimension \"vocab\" has size 16 but \"length\" has 4");
}

TEST(attributes_are_checked) {
    assert_refused("'op': 'dropout', 'inputs': ['x'], 'rate': 1",
                   "(dropout): the rate 1 is not at least 0 and below 1");
    assert_refused("'op': 'softmax', 'inputs': ['x'], 'dimension': 'vocab'",
                   "(softmax): input \"x\" has no dimension \"vocab\" (its \"dimension\")");
    assert_refused("'op': 'causal_mask', 'inputs': ['scores'], 'query': 'length', 'memory': "
                   "'length'",
                   "(causal_mask): \"query\" and \"memory\" are both \"length\"");
    assert_refused("'op': 'layer_norm', 'inputs': ['x', 'vv'], 'dimension': 'model'",
                   "(layer_norm): input \"vv\" has dimension \"vocab\", which \"x\" lacks");
}

/* Features come last in all three, and memory is another dimension than the queries'. */
TEST(attention_checks_its_dimensions) {
    assert_refused("'op': 'attention', 'inputs': ['x', 'w', 'w'], 'query': 'length', 'memory': "
                   "'vocab', 'dimension': 'model', 'factor': 1",
                   "(attention): the last dimension of input \"w\" must be \"model\"");
    assert_refused("'op': 'attention', 'inputs': ['x', 'v', 'v'], 'query': 'length', 'memory': "
                   "'memory', 'dimension': 'model', 'factor': 1",
                   "(attention): input \"v\" has no dimension \"memory\"");
    assert_refused("'op': 'attention', 'inputs': ['x', 'table', 'v'], 'query': 'length', "
                   "'memory': 'vocab', 'dimension': 'model', 'factor': 1",
                   "(attention): input \"v\" has other dimensions than it must have");
    assert_refused("'op': 'attention', 'inputs': ['x', 'x', 'x'], 'query': 'length', 'memory': "
                   "'batch', 'dimension': 'model', 'factor': 1",
                   "(attention): input \"x\" has dimension \"batch\", its \"memory\"");
    assert_refused("'op': 'attention', 'inputs': ['table', 'x', 'x'], 'query': 'vocab', "
                   "'memory': 'length', 'dimension': 'model', 'factor': 1",
                   "(attention): input \"x\" has dimension \"batch\", which \"table\" lacks");
    assert_refused("'op': 'attention', 'inputs': ['x', 'table', 'table'], 'query': 'length', "
                   "'memory': 'vocab', 'dimension': 'model', 'factor': 1, 'causal': 2",
                   "(attention): \"causal\" is 2 and must be 0 or 1");
    assert_refused("'op': 'attention', 'inputs': ['x', 'table', 'table'], 'query': 'length', "
                   "'memory': 'vocab', 'dimension': 'model', 'factor': 1, 'dropout': 1",
                   "(attention): \"dropout\" is 1 and must be at least 0 and below 1");
    assert_refused("'op': 'attention', 'inputs': ['x', 'table', 'table'], 'query': 'length', "
                   "'memory': 'vocab', 'dimension': 'model', 'factor': 1, 'striped': 1",
                   "(attention): \"striped\" is 0, or 1 in a \"turn\" without \"window\" and "
                   "\"dropout\"");
    assert_refused("'op': 'attention', 'inputs': ['x', 'table', 'table', 'x'], 'query': 'length', "
                   "'memory': 'vocab', 'dimension': 'model', 'factor': 1",
                   "(attention): the last dimension of \"x\", which is added to scores, must be "
                   "\"vocab\"");
}

/* Values and keys come last, and logarithms have what values have beside. */
TEST(linear_attention_checks_its_dimensions) {
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'x', 'x', 'mask'], 'dimension': "
                   "'length', 'keys': 'model'",
                   "(linear_attention): input \"x\" has dimension \"model\", its \"keys\"");
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'scores', 'scores', 'mask'], "
                   "'dimension': 'model', 'keys': 'memory'",
                   "(linear_attention): input \"x\" must have \"model\" among its dimensions, and "
                   "values as the last");
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'w', 'w', 'mask'], 'dimension': "
                   "'length', 'keys': 'memory'",
                   "(linear_attention): the last dimension of input \"w\" must be \"memory\"");
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'scores', 'w', 'mask'], "
                   "'dimension': 'length', 'keys': 'memory'",
                   "(linear_attention): input \"w\" has other dimensions than it must have");
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'scores', 'scores', 'x'], "
                   "'dimension': 'length', 'keys': 'memory'",
                   "(linear_attention): input \"x\" has other dimensions than it must have");
    assert_gives("'op': 'linear_attention', 'inputs': ['x', 'scores', 'scores', 'mask'], "
                 "'dimension': 'length', 'keys': 'memory'",
                 "f32[batch:8, length:4, model:6]");
    assert_refused("'op': 'linear_attention', 'inputs': ['x', 'scores', 'scores', 'mask', 'mask'], "
                   "'dimension': 'length', 'keys': 'memory', 'blocks': 2",
                   "(linear_attention): what beta corrects is in one of \"blocks\", not in 2");
}

TEST(attention_gives_its_statistic_too) {
    g_autoptr(MtfGraph) graph =
        parse("'op': 'attention', 'inputs': ['x', 'table', 'table'], 'query': 'length', "
              "'memory': 'vocab', 'dimension': 'model', 'factor': 1",
              NULL);
    assert_non_null(graph);
    g_autofree char *y = mtf_graph_tensor_format(graph, mtf_graph_find_tensor(graph, "y"));
    g_autofree char *lse = mtf_graph_tensor_format(graph, mtf_graph_find_tensor(graph, "y/lse"));
    assert_string_equal(y, "f32[batch:8, length:4, model:6]");
    assert_string_equal(lse, "f32[batch:8, length:4]");
}

TEST(an_embedding_has_one_vocabulary) {
    assert_refused("'op': 'embedding', 'inputs': ['table', 'ids'], 'dims': ['batch', 'length']",
                   "(embedding): its dims must hold all dimensions of table \"table\" but the "
                   "vocabulary");
    assert_refused("'op': 'embedding', 'inputs': ['table', 'ids'], 'dims': ['batch', 'model']",
                   "(embedding): its dims must be those of ids \"ids\" and of table \"table\"");
    assert_refused("'op': 'embedding_grad', 'inputs': ['ids', 'x'], 'dims': ['model']",
                   "(embedding_grad): its dims must be one vocabulary and the dimensions of \"x\" "
                   "that \"ids\" lacks");
    assert_refused("'op': 'embedding_grad', 'inputs': ['ids', 'x'], 'dims': ['vocab', 'length']",
                   "(embedding_grad): its dims must be one vocabulary and the dimensions of \"x\" "
                   "that \"ids\" lacks");
    assert_refused("'op': 'embedding_grad', 'inputs': ['ids', 'v'], 'dims': ['vocab', 'model']",
                   "(embedding_grad): dimension \"batch\" is in the ids but not in the gradient");
    assert_refused(
        "'op': 'embedding_grad', 'inputs': ['ids', 'x', 'v'], 'dims': ['vocab', 'model']",
        "(embedding_grad): \"v\", which is added, must have its dims in their order");
}

TEST(labels_lack_exactly_the_classes) {
#define LOSS "'op': 'softmax_cross_entropy', 'inputs': "
    assert_refused(LOSS "['w', 'ids'], 'dims': []",
                   "(softmax_cross_entropy): \"w\" must have exactly one dimension that labels "
                   "\"ids\" lack");
    assert_refused(LOSS "['logits', 'ids'], 'dims': ['batch']",
                   "(softmax_cross_entropy): dimension \"length\" is in the labels but missing in "
                   "the result");
    assert_refused(LOSS "['logits', 'ids'], 'dims': ['batch', 'length', 'vocab']",
                   "(softmax_cross_entropy): dimension \"vocab\" is in the result but not in the "
                   "labels");
    assert_refused(LOSS "['logits', 'ids', 'v'], 'dims': ['batch', 'length']",
                   "(softmax_cross_entropy): dimension \"model\" is in the mask but not in the "
                   "labels");
#undef LOSS
}

TEST(pools_meet_an_element_in_each_window) {
#define POOL(op, padding)                                                    \
    "'op': '" op "', 'inputs': ['x'], 'dims': ['batch', 'vocab', 'model'], " \
    "'windows': [{'from': 'length', 'to': 'vocab', 'size': 2, " padding "}]"
    assert_gives(POOL("average_pool", "'before': 6, 'after': 7") ", 'counted': 1",
                 "f32[batch:8, vocab:16, model:6]");
    assert_refused(POOL("average_pool", "'before': 2, 'after': 11"),
                   "(average_pool): window 0 over \"length\" (4 elements, 2 before and 11 "
                   "after, windows of 2 by a stride of 1) meets padding alone");
    assert_refused(POOL("max_pool", "'before': 1, 'after': 12"),
                   "(max_pool): window 5 over \"length\" (4 elements, 1 before and 12 "
                   "after, windows of 2 by a stride of 1) meets padding alone");
    assert_refused(
        "'op': 'max_pool', 'inputs': ['x'], 'dims': ['batch', 'one', 'model'], 'windows': "
        "[{'from': 'length', 'to': 'one', 'size': 2, 'dilation': 6, 'before': 1, 'after': 2}]",
        "(max_pool): window 0 over \"length\" (4 elements, 1 before and 2 after, windows of 7 by "
        "a stride of 1) meets padding alone");
#undef POOL
}

TEST(random_numbers_have_a_range_and_a_deviation) {
#define DRAWN(op, attributes) "'op': '" op "', 'inputs': [], 'dims': ['batch'], " attributes
    assert_gives(DRAWN("random_uniform", "'low': 2, 'high': 2"), "f32[batch:8]");
    assert_refused(DRAWN("random_uniform", "'low': 2"),
                   "(random_uniform): \"low\" is 2 and must not be above \"high\", 1");
    assert_refused(DRAWN("random_normal", "'deviation': -1"),
                   "(random_normal): \"deviation\" is -1 and must be at least 0");
#undef DRAWN
}

TEST(expressions_have_the_dimensions_of_all_their_inputs) {
#define EXPRESSION "'op': 'expression', 'inputs': "
    assert_gives(EXPRESSION "['x', 'w'], 'expression': 'x * tanh(w)'",
                 "f32[batch:8, length:4, model:6, vocab:16]");
    assert_gives(EXPRESSION
                 "['ids', 'ids'], 'arguments': 'a b', 'expression': 'mod(a, 3) == b - 1'",
                 "i32[batch:8, length:4]");
    assert_refused(EXPRESSION "['ids'], 'expression': 'sqrt(ids)'",
                   "(expression): sqrt is not for integers; cast its inputs to a float type");
    assert_refused(
        EXPRESSION "['ids'], 'expression': 'ids + 0.5'",
        "(expression): 0.5 is no integer, but its inputs are; cast them to a float type");
    assert_refused(EXPRESSION "['x', 'ids'], 'expression': 'x * ids'",
                   "(expression): input \"ids\" is int32 but \"x\" is float32; cast one of them");
    assert_refused(EXPRESSION "['x', 'v'], 'expression': '(x + v'",
                   "(expression): column 1: this parenthesis is not closed");
#undef EXPRESSION
}

TEST(what_only_plans_hold_is_checked_too) {
    assert_refused("'op': 'sgd', 'inputs': ['v', 'v', 'v']",
                   "(sgd): input \"v\" has dimensions and must be a single number");
    assert_refused("'op': 'adam', 'inputs': ['v', 'v', 's', 'v', 's']",
                   "(adam): input \"s\" must have the dimensions of \"v\"");
    assert_refused("'op': 'sum_exp', 'inputs': ['w', 'v'], 'dims': ['vocab']",
                   "(sum_exp): dimension \"model\" is in the statistic but missing in its dims");
    assert_refused("'op': 'normalize_dot', 'inputs': ['x', 'vv', 'v', 'v', 'v'], 'dims': "
                   "['batch']",
                   "(normalize_dot): input \"vv\" has dimension \"vocab\", which \"x\" lacks");
}

/* Reads the word in backquotes at `text`, or NULL. */
static char *quoted_word(const char *text) {
    const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;
    return end == NULL ? NULL : g_strndup(text + 1, (gsize)(end - text - 1));
}

/* "name (required), other" of a row. */
static char *attributes_of(const MtfOperationRow *row) {
    GString *text = g_string_new(NULL);
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++) {
        g_string_append_printf(text, "%s`%s`", text->len > 0 ? ", " : "", spec->name);
        if (!spec->required && spec->type == MTF_ATTRIBUTE_NUMBER)
            g_string_append_printf(text, " (%g)", spec->standard);
        else if (!spec->required)
            g_string_append(text, " (none)");
    }
    if (mtf_operation_row_chooses_dtype(row))
        g_string_append_printf(text, "%s`dtype`", text->len > 0 ? ", " : "");
    return g_string_free(text, FALSE);
}

static char *inputs_of(const MtfOperationRow *row) {
    if (row->min_inputs == row->max_inputs)
        return g_strdup_printf("%d", row->min_inputs);
    if (row->max_inputs > 100)
        return g_strdup_printf("%d…", row->min_inputs);
    return g_strdup_printf("%d–%d", row->min_inputs, row->max_inputs);
}

static const char *dims_of(const MtfOperationRow *row) {
    static const char *const words[] = {
        [MTF_DIMS_FIRST] = "first input's",
        [MTF_DIMS_UNION] = "all inputs'",
        [MTF_DIMS_SUBSET] = "given, some",
        [MTF_DIMS_SUPERSET] = "given, more",
        [MTF_DIMS_PERMUTED] = "given, all",
        [MTF_DIMS_RENAMED] = "renamed",
        [MTF_DIMS_REPLACED] = "replaced",
        [MTF_DIMS_RESHAPED] = "given, reshaped",
        [MTF_DIMS_NEW] = "given, any",
        [MTF_DIMS_WITHOUT] = "without `dimension`",
        [MTF_DIMS_WITH] = "`dimension`, first input's",
    };
    return words[row->dims];
}

static char *linearity_of(const MtfOperationRow *row) {
    switch (row->linearity) {
    case MTF_LINEAR_EACH:
        return g_strdup("each");
    case MTF_LINEAR_JOINT:
        return g_strdup("all together");
    case MTF_LINEAR_ONE:
        return g_strdup_printf("input %d", row->linear_input);
    case MTF_LINEAR_NONE:
        break;
    }
    return g_strdup("–");
}

/* How the line of FORMATS.md that describes a row begins; what it means follows. */
static char *table_line(const MtfOperationRow *row) {
    static const char *const reductions[] = { "–", "sum", "max" };
    g_autofree char *inputs = inputs_of(row);
    g_autofree char *linearity = linearity_of(row);
    g_autofree char *attributes = attributes_of(row);
    return g_strdup_printf("| `%s` | %s | %s | %s | %s | %s |", row->name, inputs, dims_of(row),
                           reductions[row->reduction], linearity, attributes);
}

/* Every row has its line, and no line speaks of a row that is gone. */
TEST(formats_md_has_the_table) {
    g_autofree char *formats = NULL;
    assert_true(g_file_get_contents("layouts/FORMATS.md", &formats, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(formats, "\n", -1);
    int missing = 0, found = 0;
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        g_autofree char *expected = table_line(mtf_operation_row(kind));
        bool there = false;
        for (char **line = lines; *line != NULL; line++)
            there = there || (g_str_has_prefix(*line, expected) && g_str_has_suffix(*line, " |"));
        if (there)
            continue;
        missing++;
        print_message("layouts/FORMATS.md lacks the line:\n%s\n", expected);
    }
    for (char **line = lines; *line != NULL; line++) {
        g_autofree char *word = g_str_has_prefix(*line, "| `") ? quoted_word(*line + 2) : NULL;
        found += word != NULL && mtf_operation_kind(word) >= 0;
    }
    assert_int_equal(missing, 0);
    assert_int_equal(found, MTF_OPERATIONS);
}

TEST(beside_bfloat16_sums_and_statistics_are_float32) {
    assert_gives("'op': 'relu', 'inputs': ['narrow']", "bf16[batch:8, length:4, model:6]");
    assert_gives("'op': 'einsum', 'inputs': ['narrow', 'max'], 'dims': ['model']", "bf16[model:6]");
    assert_gives("'op': 'einsum', 'inputs': ['narrow', 'max'], 'dims': ['model'], 'dtype': "
                 "'float32'",
                 "f32[model:6]");
    assert_gives("'op': 'sum_exp', 'inputs': ['narrow', 'max'], 'dims': ['batch', 'length']",
                 "f32[batch:8, length:4]");
    assert_gives("'op': 'softmax_apply', 'inputs': ['narrow', 'max', 'mask']",
                 "bf16[batch:8, length:4, model:6]");
    assert_gives("'op': 'sgd', 'inputs': ['x', 'narrow', 's']", "f32[batch:8, length:4, model:6]");
}

TEST(types_that_do_not_go_together_are_told) {
    assert_refused("'op': 'add', 'inputs': ['narrow', 'x']",
                   "(add): input \"x\" is float32 but \"narrow\" is bfloat16; cast one of them");
    assert_refused("'op': 'softmax_apply', 'inputs': ['narrow', 'max', 'max']",
                   "(softmax_apply): input \"max\" is bfloat16 and must be float32 beside "
                   "\"narrow\", which is bfloat16");
    assert_refused("'op': 'einsum', 'inputs': ['narrow', 'max'], 'dims': ['model'], 'dtype': "
                   "'float64'",
                   "(einsum): its dtype is float64 but \"narrow\" is bfloat16; cast the input or "
                   "the result");
    assert_refused(
        "'op': 'reduce_sum', 'inputs': ['x'], 'dims': [], 'dtype': 'bfloat16'",
        "(reduce_sum): its dtype is bfloat16 but \"x\" is float32; cast the input or the "
        "result");
}
