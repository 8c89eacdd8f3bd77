// SPDX-License-Identifier: GPL-3.0-or-later
/* ONNX files of one batch, imported for another. */
#include "tests/support/cmocka.h"

#include "tests/support/cases/onnx_maker.h"

#include <string.h>

TEST(a_batch_that_the_file_fixes_can_be_another) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "1,3,4");
    mtf_make_tensor(g, "to", MTF_ONNX_INT64, "2", (double[]){ 1, 12 });
    mtf_make_weight(g, "w", 12, 5);
    mtf_make(g, "flat = Reshape(x,to); y = Gemm(flat,w); -> y: 1,5");
    const MtfOnnxImport request = { .batch = 6 };
    g_autoptr(MtfGraph) graph = mtf_make_import(g, &request, NULL);
    assert_string_equal(mtf_make_format(graph, "y"), "f32[batch:6, features_2:5]");
}

/* Examples counted with the heads behind them, or behind steps in time, copied by a 0, and with the file's batch beside
 * sizes that are open; a token and a constant that the file has for its own examples. */
TEST(another_batch_goes_where_the_examples_go) {
    static const struct {
        const char *after;
        int rank;
        double sizes[4];
    } shapes[] = {
        { "f32[part:12, part_2:3, part_3:2]", 3, { 2, 3, 2 } },
        { "f32[batch:6, part:4, part_2:3]", 3, { 0, 4, -1 } },
        { "f32[batch:6, part:2, part_2:6]", 3, { 1, -1, 6 } },
        { "f32[part:12, part_2:6]", 2, { 2, -1 } },
    };
    const MtfOnnxImport request = { .batch = 6 };
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++) {
        GByteArray *g = g_byte_array_new();
        g_autofree char *rank = g_strdup_printf("%d", shapes[i].rank);
        mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "1,3,4");
        mtf_make_tensor(g, "to", MTF_ONNX_INT64, rank, shapes[i].sizes);
        mtf_make(g, "r = Relu(x); y = Reshape(r,to); -> y: 1,12");
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfGraph) graph = mtf_make_import(g, &request, &error);
        assert_string_equal(graph != NULL ? mtf_make_format(graph, "y") : error->message,
                            shapes[i].after);
    }
}

TEST(what_the_file_has_for_its_examples_serves_others) {
    const MtfOnnxImport request = { .batch = 6 };
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "2,3,4");
    mtf_make_tensor(g, "ones", MTF_ONNX_FLOAT, "2,3,1", (double[]){ 1, 1, 1, 1, 1, 1 });
    mtf_make_tensor(g, "order", MTF_ONNX_INT64, "2,12",
                    (double[]){ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23 });
    mtf_make_tensor(g, "all", MTF_ONNX_INT64, "1", (double[]){ -1 });
    mtf_make(g, "a = Add(x,ones); flat = Reshape(a,all); y = Gather(flat,order); -> y: 2,12");
    g_autoptr(MtfGraph) graph = mtf_make_import(g, &request, NULL);
    assert_non_null(graph);
    assert_string_equal(mtf_make_format(graph, "y"), "f32[part_2:6, part_3:12]");
    /* A token for its one example, or repeated for each of its two. */
    for (int own = 1; own <= 2; own++) {
        g = g_byte_array_new();
        mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, own == 1 ? "1,3,4" : "2,3,4");
        mtf_make_tensor(g, "token", MTF_ONNX_FLOAT, "1,1,4", (double[]){ 1, 2, 3, 4 });
        mtf_make_tensor(g, "to", MTF_ONNX_INT64, "3", (double[]){ (double)own, 1, 4 });
        mtf_make(g, "tokens = Expand(token,to); y = Concat(tokens,x) axis=1; -> y: 1,4,4");
        g_autoptr(MtfGraph) joined = mtf_make_import(g, &request, NULL);
        assert_non_null(joined);
        assert_string_equal(mtf_make_format(joined, "y"), "f32[batch:6, joined:4, features:4]");
    }
}

/* The first row of all is the file's one example, whatever the batch. */
TEST(scores_of_the_files_own_example_are_refused) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "1,4");
    mtf_make_tensor(g, "first", MTF_ONNX_INT64, "1", (double[]){ 0 });
    mtf_make(g, "y = Gather(x,first) axis=0; -> y: 1,4");
    const MtfOnnxImport request = { .batch = 6, .loss = "cross-entropy:labels" };
    g_autoptr(GError) error = NULL;
    assert_null(mtf_make_import(g, &request, &error));
    assert_non_null(strstr(error->message, "with a batch of 6 in place of the file's 1"));
    assert_non_null(strstr(error->message, "has 1 rows, not one for each example"));
}

/* The shape of y where a file of 2 examples is asked for 5. */
static char *shape_for_five(GByteArray *graph) {
    const MtfOnnxImport request = { .batch = 5, .standard_batch = 2, .standard_length = 16 };
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) built = mtf_make_import(graph, &request, &error);
    if (built == NULL)
        fail_msg("%s", error->message);
    return mtf_graph_tensor_format(built, mtf_graph_find_tensor(built, "y"));
}

/* PyTorch 2's exporter writes what is repeated for each example as it comes out, here a token of a class. */
TEST(rows_that_are_alike_are_for_any_batch) {
    GByteArray *g = g_byte_array_new();
    mtf_make_tensor(g, "token", MTF_ONNX_FLOAT, "2,1,4", (double[]){ 1, 2, 3, 4, 1, 2, 3, 4 });
    mtf_make(g, "x: 2,3,4; all = Concat(token,x) axis=1; y = Relu(all); -> y: 2,4,4");
    g_autofree char *shape = shape_for_five(g);
    assert_string_equal(shape, "f32[batch:5, joined:4, features:4]");
}

/* Examples inside of an axis that begins with places: 3 times all of them. */
TEST(examples_behind_places_are_told_apart) {
    GByteArray *g = g_byte_array_new();
    mtf_make_tensor(g, "rows", MTF_ONNX_INT64, "2", (double[]){ 6, 8 });
    mtf_make_tensor(g, "back", MTF_ONNX_INT64, "3", (double[]){ 3, 2, 8 });
    mtf_make(g, "x: 2,3,8; t = Transpose(x) perm=1,0,2; r = Reshape(t,rows); a = Relu(r); "
                "b = Reshape(a,back); y = Add(b,t); -> y: 3,2,8");
    g_autofree char *shape = shape_for_five(g);
    assert_string_equal(shape, "f32[length:3, batch:5, features:8]");
}
