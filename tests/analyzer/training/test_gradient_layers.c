// SPDX-License-Identifier: GPL-3.0-or-later
/* Gradients of what layers are made of, against central differences of the reference interpreter. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "tests/support/cases/gradient_case.h"
#include "tests/support/cases/gradient_check.h"

/* Tokens b of groups a, two choices e of three experts d, two places f of each; groups, experts and
 * places in that order, or experts first. */
TEST(tokens_that_are_routed) {
    for (int i = 0; i < 4; i++) {
        MtfBuilder b = start();
        mtf_graph_add_dimension(b.graph, "e", 2, NULL);
        mtf_graph_add_dimension(b.graph, "f", 2, NULL);
        int x = variable(&b, "x", "abc"), share = variable(&b, "share", "abd");
        b.attributes.from = 3, b.attributes.to = 4;
        int gate = op(&b, MTF_OP_TOP_K, "gate", NULL, share, -1), choice = gate + 1;
        b.attributes.dimension = 1, b.attributes.choices = 4;
        b.attributes.experts = 3, b.attributes.capacity = 5;
        b.attributes.priority = i / 2;
        int slot = op(&b, MTF_OP_SLOTS, "slot", NULL, choice, gate);
        MtfShape places = shape_of(i & 1 ? "dafc" : "adfc"), tokens = shape_of("abc");
        int sent = MTF_BUILD(&b, MTF_OP_DISPATCH, "sent", &places, x, slot, gate);
        int bent = op(&b, MTF_OP_TANH, "bent", NULL, sent, -1);
        int back = MTF_BUILD(&b, MTF_OP_COMBINE, "back", &tokens, bent, slot, gate);
        int plain = op(&b, MTF_OP_DISPATCH, "plain", i & 1 ? "dafc" : "adfc", back, slot);
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_COMBINE, "y", "abc", plain, slot));
        mtf_test_check_gradients(graph);
    }
}

/* The same without places of their own: four choices f of a group, sorted by expert. */
TEST(products_of_experts) {
    for (int i = 0; i < 2; i++) {
        MtfBuilder b = start();
        mtf_graph_add_dimension(b.graph, "e", 2, NULL);
        mtf_graph_add_dimension(b.graph, "f", 6, NULL);
        mtf_graph_add_dimension(b.graph, "g", 5, NULL);
        int x = variable(&b, "x", "abc"), share = variable(&b, "share", "abd");
        int w = variable(&b, "w", i & 1 ? "dgc" : "dcg"), v = variable(&b, "v", "dgc");
        b.attributes.from = 3, b.attributes.to = 4;
        int gate = op(&b, MTF_OP_TOP_K, "gate", NULL, share, -1), choice = gate + 1;
        b.attributes.dimension = 1, b.attributes.choices = 4, b.attributes.experts = 3;
        int slot = op(&b, MTF_OP_SLOTS, "slot", NULL, choice, -1);
        int expert = op(&b, MTF_OP_SLOT_IDS, "expert", "af", choice, slot);
        int sent = op(&b, MTF_OP_DISPATCH, "sent", "afc", x, slot);
        MtfShape hidden = shape_of("afg"), rows = shape_of("afc"), tokens = shape_of("abc");
        b.attributes.experts = 3;
        int up = MTF_BUILD(&b, MTF_OP_EXPERT_EINSUM, "up", &hidden, sent, w, expert);
        int bent = op(&b, MTF_OP_TANH, "bent", NULL, up, -1);
        b.attributes.experts = 3;
        int down = MTF_BUILD(&b, MTF_OP_EXPERT_EINSUM, "down", &rows, bent, v, expert);
        g_autoptr(MtfGraph) graph =
            finish(&b, MTF_BUILD(&b, MTF_OP_COMBINE, "y", &tokens, down, slot, gate));
        mtf_test_check_gradients(graph);
    }
}

/* Batch normalisation: statistics over all that the gain lacks. */
TEST(statistics_over_several_dimensions) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "abc"), gain = variable(&b, "gain", "c");
    int bias = variable(&b, "bias", "c");
    int mean = op(&b, MTF_OP_REDUCE_MEAN, "mean", "c", x, -1);
    int variance = op(&b, MTF_OP_VARIANCE, "variance", "c", x, mean);
    b.attributes.epsilon = 1e-3;
    int y =
        mtf_build(&b, MTF_OP_NORMALIZE, "norm", NULL, 5, (int[]){ x, mean, variance, gain, bias });
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_TANH, "bent", NULL, y, -1));
    mtf_test_check_gradients(graph);
}

TEST(softmax_and_layer_norm) {
    for (int dim = A; dim <= C; dim++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "abc");
        const char *const letters[] = { "a", "b", "c" };
        int gain = variable(&b, "gain", letters[dim]), bias = variable(&b, "bias", letters[dim]);
        b.attributes.dimension = dim, b.attributes.epsilon = 1e-3;
        int y = MTF_BUILD(&b, MTF_OP_LAYER_NORM, "norm", NULL, x, gain, bias);
        b.attributes.dimension = dim;
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_SOFTMAX, "softmax", NULL, y, -1));
        mtf_test_check_gradients(graph);
    }
}

TEST(rms_norm_and_rotary_positions) {
    for (int adjacent = 0; adjacent < 2; adjacent++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "abc"), gain = variable(&b, "gain", "c");
        b.attributes.dimension = C, b.attributes.epsilon = 1e-3;
        int y = op(&b, MTF_OP_RMS_NORM, "norm", NULL, x, gain);
        b.attributes.dimension = C, b.attributes.position = B;
        b.attributes.base = 7, b.attributes.angle = 1, b.attributes.stretch = 1;
        b.attributes.gain = 1.25;
        b.attributes.adjacent = adjacent;
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_ROTARY, "turned", NULL, y, -1));
        mtf_test_check_gradients(graph);
    }
}

/* Each example begins elsewhere: the gradient turns back from the same places. */
TEST(rotary_positions_that_begin_elsewhere) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "abc"), begin = input(&b, "begin", "a", MTF_I32, MTF_FEED_LABELS);
    b.attributes.dimension = C, b.attributes.position = B;
    b.attributes.base = 7, b.attributes.angle = 1, b.attributes.stretch = 1;
    b.attributes.gain = 1;
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_ROTARY, "turned", NULL, x, begin));
    mtf_test_check_gradients(graph);
}

TEST(layer_norm_without_bias) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "abc"), gain = variable(&b, "gain", "c");
    b.attributes.dimension = C, b.attributes.epsilon = 1e-3;
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_LAYER_NORM, "norm", NULL, x, gain));
    mtf_test_check_gradients(graph);
}

TEST(cross_entropy_with_and_without_mask) {
    for (int masked = 0; masked < 3; masked++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "acb");
        int labels = input(&b, "labels", "ab", MTF_I32, MTF_FEED_LABELS);
        int mask = masked == 2 ? variable(&b, "mask", "b")
                               : input(&b, "mask", "ab", MTF_F64, MTF_FEED_MASK);
        MtfShape shape = shape_of("ba");
        g_autoptr(MtfGraph) graph =
            finish(&b, mtf_build(&b, MTF_OP_SOFTMAX_CROSS_ENTROPY, "loss/each", &shape,
                                 masked > 0 ? 3 : 2, (int[]){ x, labels, mask }));
        mtf_test_check_gradients(graph);
    }
}

/* Labels are 0, 1 or 2 and, with a shift, -1: those count nothing where they are ignored. */
TEST(cross_entropy_with_smoothing_and_z_loss) {
    for (int i = 0; i < 12; i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "acb");
        int labels = input(&b, "labels", "ab", MTF_I32, MTF_FEED_LABELS);
        b.attributes.value = 1;
        b.has_dtype = true, b.dtype = MTF_I32;
        int one = mtf_build(&b, MTF_OP_CONSTANT, "one", &(MtfShape){ 0 }, 0, NULL);
        int shifted = op(&b, MTF_OP_SUBTRACT, "shifted", NULL, labels, one);
        int mask = input(&b, "mask", "ab", MTF_F64, MTF_FEED_MASK);
        MtfShape shape = shape_of("ba");
        b.attributes.smoothing = i % 3 == 0 ? 0 : 0.1;
        b.attributes.z_loss = i % 3 == 1 ? 0 : 1e-2;
        b.attributes.ignore = i / 3 % 2;
        g_autoptr(MtfGraph) graph =
            finish(&b, mtf_build(&b, MTF_OP_SOFTMAX_CROSS_ENTROPY, "loss/each", &shape,
                                 i < 6 ? 2 : 3, (int[]){ x, i / 3 % 2 ? shifted : labels, mask }));
        mtf_test_check_gradients(graph);
    }
}

/* log(sum) + max, beside the cross entropy: its statistics are used elsewhere too. */
TEST(statistics_used_on_their_own) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "ab");
    int max = op(&b, MTF_OP_REDUCE_MAX, "max", "a", x, -1);
    int sum = op(&b, MTF_OP_SUM_EXP, "sum", "a", x, max);
    int shares = MTF_BUILD(&b, MTF_OP_SOFTMAX_APPLY, "shares", NULL, x, max, sum);
    int total = op(&b, MTF_OP_ADD, "total", NULL, op(&b, MTF_OP_LOG, "log", NULL, sum, -1), max);
    int mean = op(&b, MTF_OP_REDUCE_MEAN, "mean", "a", shares, -1);
    int spread = op(&b, MTF_OP_VARIANCE, "spread", "a", shares, mean);
    int odd = op(&b, MTF_OP_VARIANCE, "odd", "a", shares, total);
    g_autoptr(MtfGraph) graph =
        finish(&b, MTF_BUILD(&b, MTF_OP_ADD, "all", NULL, total, spread, odd));
    mtf_test_check_gradients(graph);
}

/* table[c, b] is looked up and multiplied by: the rows' gradients are added to the dense one. */
TEST(a_table_that_is_multiplied_by_too_has_one_dense_gradient) {
    MtfBuilder b = start();
    int table = variable(&b, "table", "cb"), ids = input(&b, "ids", "a", MTF_I32, MTF_FEED_TOKENS);
    int rows = op(&b, MTF_OP_EMBEDDING, "rows", "ab", table, ids);
    int bent = op(&b, MTF_OP_TANH, "bent", NULL, rows, -1);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_EINSUM, "logits", "ac", bent, table));
    mtf_test_check_gradients(graph);
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    const MtfTensor *gradient =
        mtf_graph_tensor(training, mtf_graph_find_tensor(training, "grad/table"));
    const MtfOperation *last = mtf_graph_operation(training, gradient->producer);
    assert_int_equal(last->kind, MTF_OP_EMBEDDING_GRAD);
    assert_int_equal(last->n_inputs, 3);
    int dense = mtf_graph_tensor(training, last->inputs[2])->producer;
    assert_int_equal(mtf_graph_operation(training, dense)->kind, MTF_OP_EINSUM);
}

/* Queries b against memory d, with features c last; a is an example. Also a memory that all
 * examples share, and what is its own memory, so that shares of it meet. */
TEST(attention) {
    for (int i = 0; i < 32; i++) {
        MtfBuilder b = start();
        int q = variable(&b, "q", "abc"), v = variable(&b, "v", i & 1 ? "dc" : "dac");
        int k = i & 1 ? variable(&b, "k", "dc") : op(&b, MTF_OP_TANH, "k", NULL, v, -1);
        b.attributes.query = B;
        b.attributes.memory = D;
        b.attributes.dimension = C;
        b.attributes.factor = 0.7;
        b.attributes.causal = i >> 1 & 1;
        b.attributes.softcap = i >> 2 & 1 ? 0.8 : 0;
        b.attributes.window = (i >> 3 & 1) == 1 && b.attributes.causal == 1 ? 2 : 0;
        b.attributes.rate = i >> 4 & 1 ? 0.3 : 0;
        int y = mtf_build(&b, MTF_OP_ATTENTION, "y", NULL, 3, (int[]){ q, k, v });
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

/* Heads a of values c at places b; queries and keys d are of a head or of all. */
TEST(linear_attention) {
    for (int i = 0; i < 6; i++) {
        MtfBuilder b = start();
        const char *queries = i & 1 ? "abd" : "bd";
        bool scans = i >= 4, corrects = (i & 2) != 0;
        int v = variable(&b, "v", "abc"), q = variable(&b, "q", queries);
        int k = op(&b, MTF_OP_TANH, "k", NULL, variable(&b, "keys", queries), -1);
        int kept = op(&b, MTF_OP_SIGMOID, "kept", NULL,
                      variable(&b, "forgotten", scans ? "dc" : "ab"), -1);
        int log = op(&b, MTF_OP_LOG, "log", NULL, kept, -1);
        int step = scans ? op(&b, MTF_OP_SIGMOID, "step", NULL, v, -1) : log;
        int beta = scans ? log : corrects ? variable(&b, "beta", "ab") : -1;
        b.attributes.dimension = B;
        b.attributes.keys = D;
        int y = mtf_build(&b, scans ? MTF_OP_SELECTIVE_SCAN : MTF_OP_LINEAR_ATTENTION, "y", NULL,
                          beta >= 0 ? 5 : 4, (int[]){ v, q, k, step, beta });
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

/* What is added to scores learns as well, whichever of their dimensions it has. */
TEST(attention_with_a_bias) {
    static const char *const biases[] = { "d", "bd", "abd" };
    for (int i = 0; i < 24; i++) {
        MtfBuilder b = start();
        int q = variable(&b, "q", "abc"), k = variable(&b, "k", "dac");
        int v = op(&b, MTF_OP_TANH, "v", NULL, k, -1), bias = variable(&b, "bias", biases[i % 3]);
        b.attributes.query = B;
        b.attributes.memory = D;
        b.attributes.dimension = C;
        b.attributes.factor = 0.7;
        b.attributes.causal = i / 3 % 2;
        b.attributes.rate = i / 6 % 2 * 0.3;
        b.attributes.softcap = i / 12 * 0.8;
        int y = mtf_build(&b, MTF_OP_ATTENTION, "y", NULL, 4, (int[]){ q, k, v, bias });
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

/* Two things that are added learn, if one has the other's dimensions. */
TEST(attention_with_two_biases) {
    static const char *const biases[][2] = { { "bd", "abd" }, { "abd", "d" }, { "ad", "ad" } };
    for (gsize i = 0; i < G_N_ELEMENTS(biases); i++) {
        MtfBuilder b = start();
        int q = variable(&b, "q", "abc"), k = variable(&b, "k", "dac");
        int v = op(&b, MTF_OP_TANH, "v", NULL, k, -1);
        int one = variable(&b, "one", biases[i][0]), other = variable(&b, "other", biases[i][1]);
        b.attributes.query = B;
        b.attributes.memory = D;
        b.attributes.dimension = C;
        b.attributes.factor = 0.7;
        int y = mtf_build(&b, MTF_OP_ATTENTION, "y", NULL, 5, (int[]){ q, k, v, one, other });
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

TEST(biases_that_learn_and_do_not_fit_are_added_before) {
    MtfBuilder b = start();
    int q = variable(&b, "q", "abc"), k = variable(&b, "k", "dac");
    int one = variable(&b, "one", "bd"), other = variable(&b, "other", "ad");
    b.attributes.query = B;
    b.attributes.memory = D;
    b.attributes.dimension = C;
    b.attributes.factor = 0.7;
    int y = mtf_build(&b, MTF_OP_ATTENTION, "y", NULL, 5, (int[]){ q, k, k, one, other });
    g_autoptr(MtfGraph) graph = finish(&b, y);
    g_autoptr(GError) error = NULL;
    assert_null(mtf_training_graph(graph, &error));
    assert_non_null(strstr(error->message, "add them before"));
}

static int nothing_like(MtfBuilder *b, const char *dims) {
    MtfShape shape = shape_of(dims);
    b->has_dtype = true;
    b->dtype = MTF_F64;
    return mtf_build(b, MTF_OP_CONSTANT, "nothing", &shape, 0, NULL);
}

/* Attention that goes on from what was made of other memory, or from nothing that takes a share all the same. */
TEST(attention_that_goes_on) {
    for (int i = 0; i < 20; i++) {
        MtfBuilder b = start();
        int q = variable(&b, "q", "abc"), k = variable(&b, "k", "dac");
        int v = op(&b, MTF_OP_TANH, "v", NULL, k, -1), learns = i >> 4;
        int before = i & 1 ? variable(&b, "before", "abc") : nothing_like(&b, "abc");
        int share = i >> 3 & 1
                        ? op(&b, MTF_OP_BROADCAST, "sinks", "ab", variable(&b, "sink", "a"), -1)
                        : variable(&b, "sinks", "ab");
        b.attributes.query = B;
        b.attributes.memory = D;
        b.attributes.dimension = C;
        b.attributes.factor = 0.7;
        b.attributes.causal = i >> 1 & 1;
        b.attributes.softcap = i >> 2 & 1 ? 0.8 : 0;
        int y =
            mtf_build(&b, MTF_OP_ATTENTION_FURTHER, "y", NULL, 5 + learns,
                      (int[]){ q, k, v, before, share, learns ? variable(&b, "bias", "bd") : -1 });
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

/* The logarithms of attention's sums, alone, beside its results, and where attention goes on from both. */
TEST(logarithms_of_attention) {
    for (int i = 0; i < 24; i++) {
        MtfBuilder b = start();
        int q = variable(&b, "q", "abc"), k = variable(&b, "k", "dac"),
            v = i < 8 ? k : variable(&b, "v", "dac"), biased = i >> 2 & 1;
        b.attributes.query = B;
        b.attributes.memory = D;
        b.attributes.dimension = C;
        b.attributes.factor = 0.7;
        b.attributes.causal = i & 1;
        b.attributes.softcap = i >> 1 & 1 ? 0.8 : 0;
        b.attributes.rate = i >> 1 & 1 ? 0.3 : 0;
        MtfAttributes attributes = b.attributes;
        int y = mtf_build(&b, MTF_OP_ATTENTION, "y", NULL, 3 + biased,
                          (int[]){ q, k, v, biased ? variable(&b, "bias", "bd") : -1 });
        int log = y + 1;
        if (i >= 16) {
            b.attributes = attributes;
            y = mtf_build(
                &b, MTF_OP_ATTENTION_FURTHER, "on", NULL, 5,
                (int[]){ q, variable(&b, "k2", "dac"), variable(&b, "v2", "dac"), y, log });
            log = y + 1;
        }
        g_autoptr(MtfGraph) graph =
            finish(&b, i >= 8 ? op(&b, MTF_OP_MULTIPLY, "both", NULL, y, log) : log);
        mtf_test_check_gradients(graph);
    }
}

/* Runs last: what the tests above have differentiated. */
TEST(every_rule_of_layers_has_been_checked) {
    int rules = 0;
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        rules += mtf_test_gradient_is_of_layers(kind);
        if (mtf_test_gradient_is_of_layers(kind) && !mtf_test_gradient_is_checked(kind))
            fail_msg("no test differentiates %s", mtf_operation_row(kind)->name);
    }
    assert_int_equal(rules, 14);
}
