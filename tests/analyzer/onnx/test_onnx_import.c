// SPDX-License-Identifier: GPL-3.0-or-later
/* What ONNX graphs become: which dimensions share a name, what is worked out, what is refused. */
#include "tests/support/cmocka.h"

#include "analyzer/onnx/onnx_import.h"
#include "analyzer/serving/forward_graph.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"
#include "tests/support/cases/onnx_maker.h"

#include <string.h>

static MtfGraph *import(GByteArray *graph, GError **error) {
    const MtfOnnxImport request = { .standard_batch = 2, .standard_length = 16 };
    return mtf_make_import(graph, &request, error);
}

static int count_kind(const MtfGraph *graph, int kind) {
    int n = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        n += mtf_graph_operation(graph, i)->kind == kind;
    return n;
}

static void fails_with(GByteArray *graph, const char *sentence) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) built = import(graph, &error);
    assert_null(built);
    assert_string_equal(error->message, sentence);
}

/* x + relu(x w1) w2: what the residual adds up shares a name, the hidden features have another. */
TEST(dimensions_that_operations_tie_share_a_name) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "rows,8");
    mtf_make_weight(g, "w1", 8, 32);
    mtf_make_weight(g, "w2", 32, 8);
    mtf_make(g, "h = MatMul(x,w1); a = Relu(h); o = MatMul(a,w2); y = Add(x,o); -> y: rows,8");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_string_equal(mtf_make_format(graph, "y"), "f32[rows:2, features:8]");
    assert_string_equal(mtf_make_format(graph, "w2"), "f32[features_2:32, features:8]");
    assert_string_equal(mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "w1"))->stored,
                        "w1[8,32]");
    assert_int_equal(graph->operations->len, 4);
    assert_int_equal(mtf_graph_parameters(graph), 512);
}

/* scores = x xT: the second of the two positions has a name of its own, by one rename. */
TEST(two_axes_of_one_tensor_keep_different_names) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 3,4,5; t = Transpose(x) perm=0,2,1; scores = MatMul(x,t); "
                "shares = Softmax(scores) axis=-1; y = MatMul(shares,x); -> y: 3,4,5");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_string_equal(mtf_make_format(graph, "scores"), "f32[batch:3, length:4, memory:4]");
    assert_string_equal(mtf_make_format(graph, "y"), "f32[batch:3, length:4, features:5]");
    assert_int_equal(count_kind(graph, MTF_OP_RENAME), 2);
    assert_int_equal(count_kind(graph, MTF_OP_TRANSPOSE), 0);
}

/* x + 2^40, of which 32 bits know nothing; places of the largest are int64 as well. */
TEST(integers_keep_their_bits) {
    static const struct {
        int type;
        const char *x;
    } types[] = { { MTF_ONNX_INT64, "i64[batch:2, length:5]" },
                  { MTF_ONNX_UINT32, "i64[batch:2, length:5]" },
                  { MTF_ONNX_INT32, "i32[batch:2, length:5]" },
                  { MTF_ONNX_UINT8, "i32[batch:2, length:5]" } };
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        GByteArray *g = g_byte_array_new();
        mtf_make_input(g, 11, "x", types[i].type, "batch,5");
        mtf_make_tensor(g, "large", types[i].type, "", (double[]){ 0x1p40 });
        mtf_make(g, "y = Add(x,large); places = ArgMax(y) axis=1");
        mtf_make_input(g, 12, "y", types[i].type, "batch,5");
        mtf_make_input(g, 12, "places", MTF_ONNX_INT64, "batch,1");
        g_autoptr(MtfGraph) graph = import(g, NULL);
        assert_string_equal(mtf_make_format(graph, "y"), types[i].x);
        assert_string_equal(mtf_make_format(graph, "places"), "i64[batch:2]");
        for (int k = 0; types[i].type == MTF_ONNX_INT64 && k < (int)graph->operations->len; k++)
            if (mtf_graph_operation(graph, k)->kind == MTF_OP_CONSTANT)
                assert_true(mtf_graph_operation(graph, k)->attributes.value == 0x1p40);
    }
}

/* x > 0 and not x > 1, chosen by: one byte each from the comparison on. */
TEST(truths_are_bools) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: batch,5; padding_mask: bool batch,5; flags: bool batch,5");
    mtf_make_tensor(g, "zero", MTF_ONNX_FLOAT, "", (double[]){ 0 });
    mtf_make_tensor(g, "one", MTF_ONNX_FLOAT, "", (double[]){ 1 });
    mtf_make(g, "above = Greater(x,zero); far = Greater(x,one); near = Not(far); "
                "both = And(above,near); other = Xor(both,padding_mask); any = Or(other,flags); "
                "y = Where(any,x,zero); -> y: batch,5");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    static const char *const bools[] = { "above", "near",         "both", "flags",
                                         "other", "padding_mask", "any" };
    for (gsize i = 0; i < G_N_ELEMENTS(bools); i++)
        assert_string_equal(mtf_make_format(graph, bools[i]), "bool[batch:2, features:5]");
    assert_string_equal(mtf_make_format(graph, "y"), "f32[batch:2, features:5]");
}

/* A known list of 0 and 1, and a known triangle: neither a range nor a choice of bools is one of numbers. */
TEST(known_truths_are_bools) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "batch,3,2");
    mtf_make_tensor(g, "pair", MTF_ONNX_BOOL, "2", (double[]){ 0, 1 });
    mtf_make_tensor(g, "triangle", MTF_ONNX_BOOL, "3,2", (double[]){ 1, 0, 1, 1, 1, 1 });
    mtf_make_tensor(g, "zero", MTF_ONNX_FLOAT, "", (double[]){ 0 });
    mtf_make(g, "a = Where(pair,x,zero); y = Where(triangle,a,zero); -> y: batch,3,2");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_string_equal(mtf_make_format(graph, "y"), "f32[batch:2, length:3, features:2]");
}

/* Reshape to [shape(x)[0], shape(x)[1], 2, 3] as exporters write it. */
TEST(shape_arithmetic_is_worked_out) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "batch,7,6");
    mtf_make_tensor(g, "zero", MTF_ONNX_INT64, "1", (double[]){ 0 });
    mtf_make_tensor(g, "one", MTF_ONNX_INT64, "1", (double[]){ 1 });
    mtf_make_tensor(g, "rest", MTF_ONNX_INT64, "2", (double[]){ 2, -1 });
    mtf_make(g, "s = Shape(x); n = Gather(s,zero) axis=0; l = Gather(s,one) axis=0; "
                "to = Concat(n,l,rest) axis=0; y = Reshape(x,to); -> y: batch,7,2,3");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_string_equal(mtf_make_format(graph, "y"), "f32[batch:2, length:7, part:2, part_2:3]");
    assert_int_equal(graph->operations->len, 1);
}

TEST(a_triangle_of_constants_becomes_a_comparison) {
    GByteArray *g = g_byte_array_new();
    double mask[16];
    for (int i = 0; i < 16; i++)
        mask[i] = i % 4 <= i / 4;
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "2,4,4");
    mtf_make_tensor(g, "mask", MTF_ONNX_BOOL, "1,4,4", mask);
    mtf_make_tensor(g, "low", MTF_ONNX_FLOAT, "1", (double[]){ -10000 });
    mtf_make(g, "y = Where(mask,x,low); -> y: 2,4,4");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_int_equal(mtf_graph_parameters(graph), 0);
    assert_int_equal(count_kind(graph, MTF_OP_RANGE), 2);
    assert_int_equal(count_kind(graph, MTF_OP_LESS_EQUAL), 1);
}

TEST(a_loss_makes_an_inference_graph_one_to_train) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "batch,8");
    mtf_make_weight(g, "w", 8, 4);
    mtf_make(g, "scores = MatMul(x,w); p = Softmax(scores) axis=1; -> p: batch,4");
    const MtfOnnxImport request = { .standard_batch = 2, .loss = "cross-entropy:answers" };
    g_autoptr(MtfGraph) graph = mtf_make_import(g, &request, NULL);
    assert_non_null(graph);
    assert_int_equal(graph->loss, mtf_graph_find_tensor(graph, "loss"));
    assert_string_equal(mtf_make_format(graph, "answers"), "i32[batch:2]");
    assert_int_equal(mtf_graph_find_tensor(graph, "p"), -1); /* the loss takes the scores */
}

/* The loss of scores x w for classes c, beside the scores, a number and a count. */
static GByteArray *with_loss(void) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 16,8; c: int64 16");
    mtf_make_weight(g, "w", 8, 4);
    mtf_make(g, "scores = MatMul(x,w); mean = SoftmaxCrossEntropyLoss(scores,c); "
                "sum = SoftmaxCrossEntropyLoss(scores,c) reduction=sum; -> scores: 16,4; "
                "-> mean: ; -> sum: ");
    return g;
}

TEST(a_loss_that_the_file_has_is_trained_by) {
    static const char *const texts[] = { "output", "output:mean", "output:sum" };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        const MtfOnnxImport request = { .batch = 4, .loss = texts[i] };
        g_autoptr(MtfGraph) graph = mtf_make_import(with_loss(), &request, NULL);
        assert_non_null(graph);
        assert_string_equal(mtf_graph_tensor(graph, graph->loss)->name, i < 2 ? "mean" : "sum");
        assert_string_equal(mtf_make_format(graph, "c"), "i64[batch:4]");
        assert_string_equal(mtf_make_format(graph, "x"), "f32[batch:4, features:8]");
        assert_int_equal(mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "c"))->feed,
                         MTF_FEED_LABELS);
    }
}

TEST(what_is_no_loss_is_refused) {
    static const struct {
        const char *loss, *sentence;
    } cases[] = {
        { "output:scores", "m.onnx: no output scores is one float, as a loss is" },
        { "output:other", "m.onnx: no output other is one float, as a loss is" },
        { "squares",
          "m.onnx: --loss \"squares\" should be cross-entropy:LABELS, where LABELS is the name of "
          "the new input, or output:NAME, where the file has a loss" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const MtfOnnxImport request = { .standard_batch = 2, .loss = cases[i].loss };
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfGraph) graph = mtf_make_import(with_loss(), &request, &error);
        assert_null(graph);
        assert_string_equal(error->message, cases[i].sentence);
    }
}

TEST(what_is_not_supported_is_refused_by_name_and_place) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 2,3; a = Relu(x); y = Unique(a); -> y: 2,3");
    fails_with(g, "m.onnx: node 1 (Unique): operator Unique is not supported");
    g = g_byte_array_new();
    mtf_make(g, "x: 2,3,width,4; y = Relu(x); -> y: 2,3,width,4");
    fails_with(g, "m.onnx: input \"x\" has no size for axis 2: give one by --dim 'width=N'");
    g = g_byte_array_new();
    mtf_make(g, "x: 2,3; y = Frobnicate(x); -> y: 2,3");
    fails_with(g, "m.onnx: node 0 (Frobnicate): operator Frobnicate is not supported");
}

static void reshape_fails_with(double rows, double columns, const char *sentence) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "4,3");
    mtf_make_tensor(g, "to", MTF_ONNX_INT64, "2", (double[]){ rows, columns });
    mtf_make(g, "y = Reshape(x,to); -> y: ");
    fails_with(g, sentence);
}

TEST(shapes_beyond_all_numbers_are_refused) {
    reshape_fails_with(
        2, -0x1p63,
        "m.onnx: node 0 (Reshape): it cannot have a size of -9223372036854775808 along axis 1");
    reshape_fails_with(
        0x1p40, 0x1p40,
        "m.onnx: node 0 (Reshape): it cannot have a size of 1099511627776 along axis 1");
    reshape_fails_with(-2, 6, "m.onnx: node 0 (Reshape): it cannot have a size of -2 along axis 0");
}

/* Whose square is 2^64, which was divided by. */
TEST(blocks_beyond_all_numbers_are_refused) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 1,4,2,2; y = DepthToSpace(x) blocksize=4294967296; -> y: ");
    fails_with(
        g,
        "m.onnx: node 0 (DepthToSpace): it takes an input of four axes and a blocksize up to 1073741824");
}

/* One node of scores [4, 3, 5] and classes. */
static void loss_fails_with(const char *op, const char *classes, const char *attributes,
                            const char *sentence) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "4,3,5");
    mtf_make_input(g, 11, "c", MTF_ONNX_INT64, classes);
    mtf_make_node(g, op, "x,c", "y", attributes);
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "");
    fails_with(g, sentence);
}

TEST(losses_want_a_class_for_each_place) {
    loss_fails_with("SoftmaxCrossEntropyLoss", "4,3", "",
                    "m.onnx: node 0 (SoftmaxCrossEntropyLoss): it wants scores [N, C, …] and "
                    "classes [N, …]");
    loss_fails_with("NegativeLogLikelihoodLoss", "4,5", "reduction=most",
                    "m.onnx: node 0 (NegativeLogLikelihoodLoss): reduction \"most\" is none of "
                    "none, sum and mean");
}

static void resize_fails_with(const char *attributes, const char *sentence) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "1,2,6,6");
    mtf_make_tensor(g, "s", MTF_ONNX_FLOAT, "4", (double[]){ 1, 1, 1.5, 2 });
    mtf_make_node(g, "Resize", "x,,s", "y", attributes);
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "1,2,9,12");
    fails_with(g, sentence);
}

TEST(ways_to_resize_that_are_none_are_refused) {
    resize_fails_with("mode=lanczos",
                      "m.onnx: node 0 (Resize): mode \"lanczos\" is none of nearest, "
                      "linear and cubic");
    resize_fails_with("nearest_mode=up", "m.onnx: node 0 (Resize): nearest_mode \"up\" is not "
                                         "supported");
    resize_fails_with("coordinate_transformation_mode=corners",
                      "m.onnx: node 0 (Resize): coordinate_transformation_mode \"corners\" is not "
                      "supported");
    resize_fails_with("mode=linear antialias=1",
                      "m.onnx: node 0 (Resize): antialias is not supported");
}

/* Four elements have three beside the first. */
TEST(borders_longer_than_the_axis_are_refused) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "3,4");
    mtf_make_tensor(g, "pads", MTF_ONNX_INT64, "4", (double[]){ 0, 4, 0, 0 });
    mtf_make(g, "y = Pad(x,pads) mode=reflect; -> y: 3,8");
    fails_with(g, "m.onnx: node 0 (Pad): 4 elements beside 4 are too many");
}

TEST(quantising_to_wide_types_is_refused) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "3,4");
    mtf_make_tensor(g, "scale", MTF_ONNX_FLOAT, "", (double[]){ 0.5 });
    mtf_make_tensor(g, "zero", MTF_ONNX_INT64, "", (double[]){ 0 });
    mtf_make(g, "y = QuantizeLinear(x,scale,zero); -> y: int64 3,4");
    fails_with(g, "m.onnx: node 0 (QuantizeLinear): quantising to int64 is not supported");
}

/* Scattered ones make a mask of 6 x 8 with a block of 2 x 3: worked out, and made of its borders. */
TEST(a_constant_of_few_blocks_becomes_comparisons) {
    const double places[] = { 1, 2, 1, 3, 1, 4, -4, 2, -4, 3, -4, 4 },
                 ones[] = { 1, 1, 1, 1, 1, 1 };
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "4,6,8");
    mtf_make_tensor(g, "places", MTF_ONNX_INT64, "6,2", places);
    mtf_make_tensor(g, "whole_ones", MTF_ONNX_INT64, "6", ones);
    mtf_make(g, "ones = Cast(whole_ones) to=1; whole = Shape(x); sides = Gather(whole,last_two)");
    mtf_make_tensor(g, "last_two", MTF_ONNX_INT64, "2", (const double[]){ 1, 2 });
    mtf_make(g, "zeros = ConstantOfShape(sides); mask = ScatterND(zeros,places,ones); "
                "y = Mul(x,mask); -> y: 4,6,8");
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = import(g, &error);
    assert_non_null(graph);
    /* Two borders along the rows, and two along the columns of the rows between. */
    assert_int_equal(count_kind(graph, MTF_OP_LESS_EQUAL), 4);
    assert_int_equal(count_kind(graph, MTF_OP_WHERE), 4);
}

static GByteArray *dropping(double ratio, const char *outputs) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "4,6");
    mtf_make_tensor(g, "ratio", MTF_ONNX_FLOAT, "", &ratio);
    mtf_make_tensor(g, "training", MTF_ONNX_BOOL, "", (const double[]){ 1 });
    mtf_make_node(g, "Dropout", "x,ratio,training", outputs, "");
    mtf_make(g, "y = Relu(dropped); -> y: 4,6");
    return g;
}

TEST(dropout_in_training_drops_unless_its_ratio_is_0) {
    g_autoptr(MtfGraph) none = import(dropping(0, "dropped"), NULL);
    assert_int_equal(count_kind(none, MTF_OP_DROPOUT), 0);
    g_autoptr(MtfGraph) some = import(dropping(0.25, "dropped"), NULL);
    int dropped = mtf_graph_find_tensor(some, "dropped");
    assert_true(
        mtf_graph_operation(some, mtf_graph_tensor(some, dropped)->producer)->attributes.rate ==
        0.25);
    fails_with(dropping(0.25, "dropped,mask"),
               "m.onnx: node 0 (Dropout): the mask of dropout in training is not supported");
}

/* x + noise, where a coin says so. */
TEST(noise_is_drawn) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: batch,6; noise = RandomNormalLike(x) mean=0.5 scale=0.25; "
                "chances = RandomUniform() shape=1,6 low=0.5; "
                "coins = Bernoulli(chances) dtype=9; noised = Add(x,noise); "
                "y = Where(coins,noised,x); -> y: batch,6");
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = import(g, &error);
    assert_string_equal(graph != NULL ? mtf_make_format(graph, "noise") : error->message,
                        "f32[batch:2, features:6]");
    assert_string_equal(mtf_make_format(graph, "coins"), "bool[features:6]");
    int noise = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "noise"))->producer;
    assert_int_equal(mtf_graph_operation(graph, noise)->kind, MTF_OP_RANDOM_NORMAL);
    assert_true(mtf_graph_operation(graph, noise)->attributes.mean == 0.5 &&
                mtf_graph_operation(graph, noise)->attributes.deviation == 0.25);
    int chances = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "chances"))->producer;
    assert_int_equal(mtf_graph_operation(graph, chances)->kind, MTF_OP_RANDOM_UNIFORM);
    assert_true(mtf_graph_operation(graph, chances)->attributes.low == 0.5);
}

/* The file's outputs and no others, in their order: also what the graph goes on with. */
TEST(outputs_are_those_of_the_file) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 4,6; h = Relu(x); y = Exp(h); -> y: 4,6; -> h: 4,6");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    g_autoptr(MtfGraph) forward = mtf_forward_graph(graph, NULL);
    assert_int_equal(forward->updates->len, 2);
    const char *const names[] = { "y/result", "h/result" };
    for (guint i = 0; i < 2; i++)
        assert_string_equal(
            mtf_graph_tensor(forward, g_array_index(forward->updates, MtfUpdate, i).variable)->name,
            names[i]);
}

/* 600 steps of two texts: a loop, whose body is a product, two sums and the new state, beside what joins it to the
 * rest, W x and views. The last state is not asked for. */
TEST(recurrences_are_loops) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 600,2,3; w: 1,4,3; r: 1,4,4; y = RNN(x,w,r); -> y: 600,1,2,4");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_non_null(graph);
    assert_int_equal(graph->loops->len, 1);
    assert_int_equal(mtf_loop_count(graph, 1), 600);
    assert_true(mtf_graph_check_loops(graph, NULL));
    assert_true(graph->operations->len < 16);
}

/* x [2, 3] and its rows as a sequence s. */
static void sequence_fails_with(const char *op, const char *inputs, const char *sentence) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "2,3");
    mtf_make_tensor(g, "third", MTF_ONNX_INT64, "1", (double[]){ 2 });
    mtf_make_node(g, "SplitToSequence", "x", "s", "");
    mtf_make_node(g, op, inputs, "y", "");
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "");
    fails_with(g, sentence);
}

TEST(sequences_go_where_they_are_taken) {
    sequence_fails_with("Add", "x,s",
                        "m.onnx: node 1 (Add): input 1 is a sequence, which it does not take");
    sequence_fails_with("SequenceAt", "x,third",
                        "m.onnx: node 1 (SequenceAt): its first input should be a sequence");
    sequence_fails_with("SequenceAt", "s,third",
                        "m.onnx: node 1 (SequenceAt): place 2 is not one of 2 members");
    sequence_fails_with("SequenceErase", "s",
                        "m.onnx: output \"y\" is a sequence, of which a graph makes none");
    sequence_fails_with("SplitToSequence", "x,third",
                        "m.onnx: output \"y\" is a sequence, of which a graph makes none");
}

static void places_fail_with(const char *op, const char *inputs, const char *sentence) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 2,3; u: 2,2");
    mtf_make_tensor(g, "ids", MTF_ONNX_INT64, "2,3", (double[]){ 0, 1, 0, 1, 1, 0 });
    mtf_make_node(g, op, inputs, "y", "");
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "");
    fails_with(g, sentence);
}

TEST(places_that_do_not_go_together_are_refused) {
    places_fail_with("GatherND", "x,ids",
                     "m.onnx: node 0 (GatherND): the last axis of its indices should say places in "
                     "axes of its input");
    places_fail_with("ScatterND", "x,ids,u",
                     "m.onnx: node 0 (ScatterND): the last axis of its indices should say places "
                     "in axes of its input");
    places_fail_with("ScatterElements", "x,ids,u",
                     "m.onnx: node 0 (ScatterElements): its indices and updates should have its "
                     "input's sizes along all axes but axis 0");
    places_fail_with("Compress", "x,u",
                     "m.onnx: node 0 (Compress): its condition depends on data, and so does how "
                     "much is left");
}

TEST(heads_that_do_not_go_together_are_refused) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "q: 2,3,4,8; k: 2,2,6,8; y = Attention(q,k,k); -> y: 2,3,4,8");
    fails_with(g, "m.onnx: node 0 (Attention): 3 heads cannot share 2 of keys");
    g = g_byte_array_new();
    mtf_make(g, "x: 2,3,4,8; c: 2,4,3; y = RotaryEmbedding(x,c,c); -> y: 2,3,4,8");
    fails_with(g, "m.onnx: node 0 (RotaryEmbedding): 8 features of 8 cannot turn by 3 angles");
}

/* What Transpose makes is a view inside of the graph, but the output's dimensions are in the file's order. */
TEST(outputs_have_the_order_of_the_file) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 2,3,4; h = Relu(x); y = Transpose(h) perm=1,0,2; -> y: 3,2,4");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    g_autofree char *made = NULL;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->output == 1)
            made = mtf_graph_tensor_format(graph, t);
    assert_string_equal(made, "f32[length:3, batch:2, features:4]");
}

/* Keys behind a past of `length` places, or of no length that is given (0). */
static MtfGraph *behind_past(int64_t length) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "k: batch,2,length,8; past.0.key: batch,2,past_length,8; "
                "all = Concat(past.0.key,k) axis=2; y = Relu(all); -> y: batch,2,all,8");
    char *names[] = { "length", length > 0 ? "past_length" : NULL, NULL };
    int64_t sizes[] = { 3, length };
    const MtfSizeOverrides given = { names, sizes };
    const MtfOnnxImport request = { .standard_batch = 2, .sizes = &given };
    return mtf_make_import(g, &request, NULL);
}

TEST(a_past_without_a_length_is_none) {
    g_autoptr(MtfGraph) alone = behind_past(0), behind = behind_past(5);
    assert_string_equal(mtf_make_format(alone, "y"), "f32[batch:2, channels:2, length:3, width:8]");
    assert_int_equal(count_kind(alone, MTF_OP_CONCAT), 0);
    assert_string_equal(mtf_make_format(behind, "y"),
                        "f32[batch:2, channels:2, joined:8, width:8]");
    assert_int_equal(mtf_graph_tensor(behind, mtf_graph_find_tensor(behind, "past.0.key"))->feed,
                     MTF_FEED_FEATURES);
}

/* ConstantOfShape of 2^60 elements, and a tensor that claims them. */
TEST(claims_of_size_allocate_nothing) {
    GByteArray *g = g_byte_array_new();
    mtf_make_tensor(g, "s", MTF_ONNX_INT64, "1", (double[]){ 0x1p60 });
    mtf_make(g, "y = ConstantOfShape(s); -> y: n");
    fails_with(g, "m.onnx: node 0 (ConstantOfShape): a tensor would have more than 2^53 elements");
    g = g_byte_array_new();
    GByteArray *tensor = g_byte_array_new();
    mtf_wire_put_varint(tensor, 1, UINT64_C(1) << 50);
    mtf_wire_put_varint(tensor, 2, MTF_ONNX_FLOAT);
    mtf_wire_put_string(tensor, 8, "w");
    mtf_wire_put_message(g, 5, tensor);
    g_byte_array_unref(tensor);
    fails_with(g, "m.onnx: tensor \"w\" should have 1125899906842624 elements and holds 0");
}

/* Nothing that gradients could pass through. */
TEST(softmax_along_an_axis_of_one_element_is_one) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: 2,3,1; s = Softmax(x) axis=-1; y = Add(x,s); -> y: 2,3,1");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_int_equal(count_kind(graph, MTF_OP_SOFTMAX_APPLY), 0);
}

/* ---- Networks -------------------------------------------------------------------------------- */

/* Points of the iteration spaces of all products. */
static int64_t multiply_adds(const MtfGraph *graph) {
    int64_t sum = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        int kind = mtf_graph_operation(graph, i)->kind;
        if (kind != MTF_OP_EINSUM && kind != MTF_OP_CONV)
            continue;
        MtfIteration iteration;
        int64_t points = 1;
        mtf_operation_iteration(graph, i, &iteration);
        for (int k = 0; k < iteration.n; k++)
            points *= iteration.index[k].size;
        sum += points;
    }
    return sum;
}

/* Counted by an independent reader of the same files (../shared/anchors.md, F.4). */
TEST(light_networks_have_their_multiply_adds_and_parameters) {
    static const struct {
        const char *name;
        int64_t multiply_adds, parameters;
    } networks[] = { { "resnet50", 4089184256, 25610152 },
                     { "bvlc_alexnet", 654560384, 60965224 },
                     { "densenet121", 2834161664, 8146152 },
                     { "squeezenet", 349151936, 1235496 } };
    const char *folder = "../shared/data/onnx_light";
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
        skip();
    for (guint i = 0; i < G_N_ELEMENTS(networks); i++) {
        g_autofree char *path = g_strdup_printf("%s/light_%s.onnx", folder, networks[i].name);
        g_autoptr(MtfOnnxModel) model = mtf_onnx_model_load(path, NULL);
        const MtfOnnxImport request = { .standard_batch = 1 };
        g_autoptr(MtfGraph) graph = mtf_onnx_import(model, &request, NULL, NULL);
        assert_non_null(graph);
        assert_int_equal(mtf_graph_parameters(graph), networks[i].parameters);
        assert_int_equal(multiply_adds(graph), networks[i].multiply_adds);
    }
}
