// SPDX-License-Identifier: GPL-3.0-or-later
/* What is bfloat16 in a step and what is not, and what that is worth, on a network whose types and
 * bytes can be told by hand. */
#include "tests/support/cmocka.h"

#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/loops.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"

#define NETWORK(tail)                                                                             \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'io': 4, 'hidden': 6, "          \
    "'classes': 10}, 'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}, "     \
    "{'name': 'labels', 'dims': ['batch'], 'dtype': 'int32', 'feed': 'labels'}, {'name': "        \
    "'mask', 'dims': ['batch'], 'feed': 'mask'}], 'variables': [{'name': 'w', 'dims': ['io', "    \
    "'hidden'], 'init': 'ones'}, {'name': 'scale', 'dims': ['hidden'], 'init': 'ones'}, "         \
    "{'name': 'v', 'dims': ['hidden', 'classes'], 'init': 'ones'}], 'operations': [{'name': "     \
    "'h', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']}, {'name': 'n', "     \
    "'op': 'layer_norm', 'inputs': ['h', 'scale'], 'dimension': 'hidden'}, {'name': 'logits', "   \
    "'op': 'einsum', 'inputs': ['n', 'v'], 'dims': ['batch', 'classes']}, {'name': 'losses', "    \
    "'op': 'softmax_cross_entropy', 'inputs': ['logits', 'labels', 'mask'], 'dims': ['batch']}, " \
    "{'name': 'loss', 'op': 'reduce_mean', 'inputs': ['losses'], 'dims': []}], 'loss': 'loss', "  \
    "'optimizer': {" tail "}}"

static MtfGraph *training_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph_parse(text, NULL, &error);
    MtfGraph *training = forward != NULL ? mtf_training_graph(forward, &error) : NULL;
    if (training == NULL)
        fail_msg("%s", error->message);
    return training;
}

static MtfGraph *mixed_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = training_of(text);
    MtfGraph *mixed = mtf_mixed_precision(training, &error);
    if (mixed == NULL)
        fail_msg("%s", error->message);
    return mixed;
}

static void expect_types(const MtfGraph *graph, MtfDtype dtype, const char *const *names) {
    for (; *names != NULL; names++) {
        int t = mtf_graph_find_tensor(graph, *names);
        if (t < 0)
            fail_msg("there is no %s", *names);
        if (mtf_graph_tensor(graph, t)->dtype != dtype)
            fail_msg("%s is %s", *names, mtf_dtype_name(mtf_graph_tensor(graph, t)->dtype));
    }
}

TEST(what_the_model_computes_is_narrow) {
    g_autoptr(MtfGraph) graph = mixed_of(NETWORK("'kind': 'adam', 'rate': 0.1"));
    static const char *const names[] = {
        "x/bf16",     "w/bf16",     "scale/bf16",   "v/bf16",      "h",      "n",
        "logits",     "losses/max", "losses/logit", "grad/logits", "grad/v", "grad/n",
        "grad/scale", "grad/h",     "grad/w",       NULL
    };
    expect_types(graph, MTF_BF16, names);
}

TEST(variables_statistics_losses_and_updates_are_wide) {
    g_autoptr(MtfGraph) graph = mixed_of(NETWORK("'kind': 'adam', 'rate': 0.1, 'clip_norm': 1"));
    static const char *const names[] = { "w",          "scale",       "v",
                                         "n/mean",     "n/variance",  "losses/sum",
                                         "losses",     "loss",        "back/n/sum",
                                         "back/n/dot", "grad/losses", "clip/square/w",
                                         "clip/sum",   "clip",        "learning_rate",
                                         "adam/m/w",   "adam/v/w",    "update/w",
                                         "update/w/m", "update/w/v",  NULL };
    expect_types(graph, MTF_F32, names);
}

/* Neither the update nor the sum of squares needs a wide copy of a gradient. */
TEST(gradients_are_read_as_they_are) {
    static const char *const optimizers[] = {
        NETWORK("'kind': 'adam', 'rate': 0.1, 'clip_norm': 1"),
        NETWORK("'kind': 'sgd', 'rate': 0.1, 'clip_norm': 1"),
        NETWORK("'kind': 'momentum', 'rate': 0.1"),
    };
    for (size_t i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        g_autoptr(MtfGraph) graph = mixed_of(optimizers[i]);
        assert_int_equal(mtf_graph_find_tensor(graph, "grad/w/f32"), -1);
    }
}

TEST(adafactor_squares_in_float32) {
    g_autoptr(MtfGraph) graph = mixed_of(NETWORK("'kind': 'adafactor', 'rate': 0.1"));
    static const char *const names[] = { "grad/w/f32",       "adafactor/square/w",
                                         "adafactor/rows/w", "adafactor/direction/w",
                                         "update/w",         NULL };
    expect_types(graph, MTF_F32, names);
}

TEST(each_variable_is_cast_once) {
    g_autoptr(MtfGraph) graph = mixed_of(NETWORK("'kind': 'sgd', 'rate': 0.1"));
    int casts = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        casts += mtf_graph_operation(graph, i)->kind == MTF_OP_CAST;
    assert_int_equal(casts, 4); /* x, w, scale, v; v is read forward and backward */
    int w = mtf_graph_find_tensor(graph, "w/bf16"), x = mtf_graph_find_tensor(graph, "x/bf16");
    assert_int_equal(mtf_graph_tensor(graph, w)->memory, MTF_MEMORY_VARIABLE);
    assert_int_equal(mtf_graph_tensor(graph, x)->memory, MTF_MEMORY_ACTIVATION);
    assert_int_equal(mtf_graph_parameters(graph), 4 * 6 + 6 + 6 * 10);
}

/* A squared error: the loss comes from a sum over bfloat16 that is told to stay wide. */
TEST(a_loss_is_wide_whatever_it_sums) {
    g_autoptr(MtfGraph) graph = mixed_of(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'io': 4}, 'inputs': [{'name': "
        "'x', 'dims': ['batch', 'io'], 'feed': 'features'}, {'name': 'weight', 'dims': ['batch'], "
        "'feed': 'mask'}], 'variables': [{'name': 'w', 'dims': ['io'], 'init': 'ones'}], "
        "'operations': [{'name': 'y', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch']}, "
        "{'name': 'square', 'op': 'square', 'inputs': ['y']}, {'name': 'mean', 'op': "
        "'reduce_mean', 'inputs': ['square'], 'dims': []}, {'name': 'count', 'op': 'reduce_sum', "
        "'inputs': ['weight'], 'dims': []}, {'name': 'loss', 'op': 'divide', 'inputs': ['mean', "
        "'count']}], 'loss': 'loss'}");
    expect_types(graph, MTF_F32, (const char *const[]){ "mean", "count", "loss", NULL });
    expect_types(graph, MTF_BF16, (const char *const[]){ "y", "square", "grad/y", "grad/w", NULL });
}

static MtfProgram *lower(const MtfGraph *graph, MtfLayout **layout) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "batch:a", NULL, NULL);
    *layout = mtf_layout_from_rules(graph, &mesh, rules);
    return mtf_lower(graph, *layout);
}

/* Bytes that collectives carry. */
static int64_t payload(const MtfProgram *program) {
    int64_t bytes = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        bytes += mtf_program_instruction(program, i)->payload_bytes;
    return bytes;
}

static int64_t bytes_of(const MtfProgram *program, const char *name) {
    int t = mtf_graph_find_tensor(program->graph, name);
    return mtf_program_buffer(program, program->tensor_buffers[t])->bytes;
}

/* Data parallel on two processors. What travels: the gradients, 24 + 6 + 60 elements, each of 4 or
 * of 2 bytes, and the loss. A processor has 4 of the 8 examples: h is 4 x 6, the logits 4 x 10; the
 * losses and the state of the optimizer keep their size. */
/* h = tanh(x w + h), a sum over time beside it, whose last value is the loss: a state has the type of
 * what is computed with it all along, whatever constant it begins with. */
TEST(the_state_of_a_loop_keeps_its_type) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mixed_of(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'length': 3, 'io': 4, 'hidden': 6}, "
        "'inputs': [{'name': 'xs', 'dims': ['length', 'io'], 'feed': 'features'}], 'variables': "
        "[{'name': 'w', 'dims': ['io', 'hidden'], 'init': 'ones'}], 'loops': [{'name': 'time', "
        "'dimension': 'length'}], 'operations': [{'name': 'zero', 'op': 'constant', 'inputs': [], "
        "'dims': ['hidden'], 'dtype': 'float32', 'value': 0}, {'name': 'h', 'op': 'loop_begin', "
        "'inputs': ['zero']}, {'name': 'nothing', 'op': 'constant', 'inputs': [], 'dims': [], "
        "'dtype': 'float32', 'value': 0}, {'name': 'sum', 'op': 'loop_begin', 'inputs': "
        "['nothing']}, {'name': 'x', 'op': 'loop_slice', 'inputs': ['xs'], 'dimension': 'length', "
        "'loop': 'time'}, {'name': 'xw', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['hidden'], "
        "'loop': 'time'}, {'name': 'pre', 'op': 'add', 'inputs': ['xw', 'h'], 'loop': 'time'}, "
        "{'name': 'after', 'op': 'tanh', 'inputs': ['pre'], 'loop': 'time'}, {'name': 'share', "
        "'op': 'reduce_sum', 'inputs': ['after'], 'dims': [], 'loop': 'time'}, {'name': 'so_far', "
        "'op': 'add', 'inputs': ['sum', 'share'], 'loop': 'time'}, {'name': 'h_last', 'op': "
        "'loop_next', 'inputs': ['h', 'after'], 'loop': 'time'}, {'name': 'loss', 'op': "
        "'loop_next', 'inputs': ['sum', 'so_far'], 'loop': 'time'}], 'loss': 'loss', 'optimizer': "
        "{'kind': 'sgd', 'rate': 0.1}}");
    static const char *const narrow[] = { "h", "xw", "pre", "after", "h_last", NULL };
    static const char *const wide[] = { "sum", "share", "so_far", "loss", NULL };
    expect_types(graph, MTF_BF16, narrow);
    expect_types(graph, MTF_F32, wide);
    if (!mtf_graph_check_loops(graph, &error))
        fail_msg("%s", error->message);
}

TEST(activations_and_communication_are_halved) {
    g_autoptr(MtfGraph) wide = training_of(NETWORK("'kind': 'adam', 'rate': 0.1"));
    g_autoptr(MtfGraph) narrow = mtf_mixed_precision(wide, NULL);
    MtfLayout *layouts[2];
    g_autoptr(MtfProgram) full = lower(wide, &layouts[0]);
    g_autoptr(MtfProgram) half = lower(narrow, &layouts[1]);
    assert_int_equal(payload(full), 90 * 4 + 4);
    assert_int_equal(payload(half), 90 * 2 + 4);
    assert_int_equal(bytes_of(full, "h"), 4 * 6 * 4);
    assert_int_equal(bytes_of(half, "h"), 4 * 6 * 2);
    assert_int_equal(bytes_of(half, "logits"), 4 * 10 * 2);
    assert_int_equal(bytes_of(half, "grad/v"), 60 * 2);
    assert_int_equal(bytes_of(half, "losses"), 4 * 4);
    assert_int_equal(bytes_of(half, "adam/m/v"), 60 * 4);
    mtf_layout_free(layouts[0]);
    mtf_layout_free(layouts[1]);
}

/* Their sums over two parts of the batch are wide while they grow and narrow when they travel. */
TEST(gradients_of_micro_batches_add_up_wide_and_travel_narrow) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward =
        mtf_test_graph_parse(NETWORK("'kind': 'adam', 'rate': 0.1, 'clip_norm': 1"), NULL, &error);
    g_autoptr(MtfGraph) training = mtf_training_graph(forward, &error);
    g_autoptr(MtfGraph) narrow = mtf_mixed_precision(training, &error);
    assert_true(narrow != NULL && mtf_test_divide(narrow, 2, &error));
    expect_types(narrow, MTF_F32, (const char *const[]){ "grad/w", "grad/scale", "grad/v", NULL });
    expect_types(narrow, MTF_BF16,
                 (const char *const[]){ "part/w", "grad/w/bf16", "grad/v/bf16", NULL });
    MtfLayout *layout;
    g_autoptr(MtfProgram) program = lower(narrow, &layout);
    int64_t gradients = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->payload_bytes > 4) /* neither the loss nor the sum of squares */
            gradients += instruction->payload_bytes;
    }
    assert_int_equal(gradients, 90 * 2);
    mtf_layout_free(layout);
}

TEST(a_forward_graph_in_bfloat16_is_refused) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph_parse(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'io': 4}, 'inputs': [], 'variables': "
        "[{'name': 'w', 'dims': ['io'], 'dtype': 'bfloat16', 'init': 'ones'}], 'operations': "
        "[{'name': 'loss', 'op': 'reduce_sum', 'inputs': ['w'], 'dims': []}], 'loss': 'loss'}",
        NULL, &error);
    assert_non_null(forward);
    assert_null(mtf_training_graph(forward, &error));
    assert_string_equal(error->message, "tensor \"w\" is bfloat16; write the graph in float32 and "
                                        "plan it with --precision bf16");
}
