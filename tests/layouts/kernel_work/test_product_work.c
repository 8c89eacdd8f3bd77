// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/kernel_work/product_work.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>
#include <string.h>

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

static MtfShape shape_of(const MtfGraph *graph, const char *letters) {
    MtfShape shape = { 0 };
    for (; *letters != 0; letters++)
        mtf_shape_append(&shape, mtf_graph_find_dimension(graph, (char[]){ *letters, 0 }));
    return shape;
}

/* A GPT's sizes: batch 4, length 256 twice (l, t), d_model 768 (m), 12 heads of 64, d_ff 3072. */
static MtfProductWork work_of(const char *const *terms, int n, const char *result) {
    static const struct {
        char letter;
        int64_t size;
    } dimensions[] = { { 'b', 4 },  { 'l', 256 }, { 't', 256 }, { 'm', 768 },
                       { 'h', 12 }, { 'd', 64 },  { 'f', 3072 } };
    g_autoptr(MtfGraph) graph = mtf_graph_new("g");
    for (size_t i = 0; i < G_N_ELEMENTS(dimensions); i++)
        mtf_graph_add_dimension(graph, (char[]){ dimensions[i].letter, 0 }, dimensions[i].size,
                                NULL);
    int inputs[3];
    for (int k = 0; k < n; k++) {
        MtfShape shape = shape_of(graph, terms[k]);
        char name[] = { 'i', (char)('0' + k), 0 };
        inputs[k] = mtf_graph_add_input(graph, name, &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    }
    MtfShape output = shape_of(graph, result);
    MtfNewOperation operation = { .name = "z",
                                  .kind = MTF_OP_EINSUM,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = &output,
                                  .attributes = MTF_NO_ATTRIBUTES };
    assert_true(mtf_graph_add_operation(graph, &operation, NULL) >= 0);
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    return mtf_operation_product_work(graph, 0, &iteration, sizes);
}

static MtfProductWork pair(const char *left, const char *right, const char *result) {
    return work_of((const char *const[]){ left, right }, 2, result);
}

TEST(a_projection_is_one_product_and_nothing_else) {
    MtfProductWork work = pair("blm", "mf", "blf");
    assert_close(work.calls, 1);
    assert_close(work.m, 1024);
    assert_close(work.n, 3072);
    assert_close(work.k, 768);
    assert_close(work.swept_bytes, 0);
}

/* x w, then the gradient of x, which reads w column by column, and that of w, which reads x so. A
 * result that lies column by column, f l of x[l, m] w[m, f], is (w' x')': both turned. */
TEST(the_form_says_how_operands_lie) {
    assert_int_equal(pair("blm", "mf", "blf").form, MTF_PRODUCT_NN);
    assert_int_equal(pair("blf", "mf", "blm").form, MTF_PRODUCT_NT);
    assert_int_equal(pair("blm", "blf", "mf").form, MTF_PRODUCT_TN);
    MtfProductWork turned = pair("lm", "mf", "fl");
    assert_int_equal(turned.form, MTF_PRODUCT_TN);
    assert_close(turned.m, 3072);
    assert_close(turned.n, 256);
}

TEST(attention_is_a_product_a_head) {
    MtfProductWork work = pair("blhd", "bthd", "bhlt");
    assert_close(work.calls, 48);
    assert_close(work.m * work.n * work.k, 256 * 256 * 64);
    assert_close(work.swept_bytes, 0);
}

/* Two terms of 4 * 256 * 768 floats and a result of 4 * 256. */
TEST(what_reuses_nothing_is_one_pass) {
    MtfProductWork work = pair("blm", "blm", "bl");
    assert_close(work.calls, 0);
    assert_close(work.swept_bytes, 4.0 * (2 * 4 * 256 * 768 + 4 * 256));
}

/* t is in the left term alone: it is summed first, from 4 * 12 * 256 * 256 to 4 * 12 * 256 floats;
 * the rest multiplies and sums nothing. */
TEST(what_one_term_has_alone_is_summed_first) {
    MtfProductWork work = pair("bhlt", "bhl", "bhl");
    double summed = 4.0 * (4 * 12 * 256 * 256 + 4 * 12 * 256), multiplied = 4.0 * 3 * 4 * 12 * 256;
    assert_close(work.calls, 0);
    assert_close(work.swept_bytes, summed + multiplied);
}

/* x w of 1024 x 768 by 768 x 3072, then its square norm by f: 1024 x 3072 products in one pass. */
TEST(several_terms_add_up) {
    MtfProductWork work = work_of((const char *const[]){ "blm", "mf", "blf" }, 3, "bl");
    assert_close(work.calls, 1);
    assert_close(work.n, 3072);
    assert_close(work.swept_bytes, 4.0 * (2 * 1024 * 3072 + 1024));
}

/* One copy of 768 * 768 weights, read and written. */
TEST(copies_in_another_order_count) {
    MtfProductWork work = pair("blm", "mdh", "blhd");
    assert_close(work.calls, 1);
    assert_close(work.swept_bytes, 2.0 * 4 * 768 * 768);
}

/* 1000 queries and keys of 64 features, in blocks of 64 by 512: 3 / (1/64 + 1/512 + 1/64) = 90.4; a
 * quarter of the keys, 250: 3 / (1/64 + 1/250 + 1/64) = 85.1. A product has no blocks. */
TEST(blocks_of_attention_have_sides_of_their_own) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'l': 1000, 't': 1000, 'd': 64}, "
        "'inputs': [{'name': 'q', 'dims': ['b', 'l', 'd'], 'feed': 'features'}, {'name': 'k', 'dims': "
        "['b', 't', 'd'], 'feed': 'features'}], 'variables': [], 'operations': [{'name': 'y', 'op': "
        "'attention', 'inputs': ['q', 'k', 'k'], 'query': 'l', 'memory': 't', 'dimension': 'd', "
        "'factor': 0.125}, {'name': 's', 'op': 'einsum', 'inputs': ['q', 'k'], 'dims': ['b', 'l', "
        "'t']}]}");
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    assert_true(fabs(mtf_operation_block_side(graph, 0, &iteration, sizes) - 90.35) < 0.01);
    for (int i = 0; i < iteration.n; i++)
        if (iteration.index[i].dim == mtf_graph_find_dimension(graph, "t"))
            sizes[i] = 250;
    assert_true(fabs(mtf_operation_block_side(graph, 0, &iteration, sizes) - 85.11) < 0.01);
    mtf_operation_iteration(graph, 1, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    assert_true(mtf_operation_block_side(graph, 1, &iteration, sizes) == 0);
}

/* 2 examples of 3 heads; 48 queries look at 48 / 2 keys each and half a block of 32 more; the last
 * 16 of them at 32 + 16 / 2 and the rest of the block, which ends with the keys. */
TEST(causal_attention_is_a_head_that_sees_half) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'h': 3, 'l': 48, 't': 48, 'd': 16}, "
        "'inputs': [{'name': 'q', 'dims': ['b', 'l', 'h', 'd'], 'feed': 'features'}, {'name': 'k', "
        "'dims': ['b', 't', 'h', 'd'], 'feed': 'features'}], 'operations': [{'name': 'y', 'op': "
        "'attention', 'inputs': ['q', 'k', 'k'], 'query': 'l', 'memory': 't', 'dimension': 'd', "
        "'factor': 1, 'causal': 1}]}");
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    MtfProductWork work = mtf_operation_product_work(graph, 0, &iteration, sizes);
    assert_int_equal(work.form, MTF_PRODUCT_ATTENTION);
    assert_close(work.calls, 6);
    assert_close(work.m, 48);
    assert_close(work.n, 24 + 16);
    assert_close(work.k, 16);
    for (int i = 0; i < iteration.n; i++)
        if (iteration.index[i].dim == mtf_graph_find_dimension(graph, "l"))
            sizes[i] = 16;
    assert_close(mtf_operation_product_work(graph, 0, &iteration, sizes).n, 48);
}

static MtfProductWork whole_work(const MtfGraph *graph, int operation) {
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, operation, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    return mtf_operation_product_work(graph, operation, &iteration, sizes);
}

static void assert_product(MtfProductWork work, double m, double n, double k) {
    assert_close(work.calls, 1);
    assert_close(work.m, m);
    assert_close(work.n, n);
    assert_close(work.k, k);
}

/* 2 rows of 16, windows of 5 every 4 elements: 4 a row; 3 channels in, 8 out. A gradient of x takes every
 * place of x, each of which a quarter of the windows' places meets; one of the filter sums over windows,
 * and what the filter goes over belongs to x's channels. */
TEST(convolutions_are_products_of_places) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'x': 16, 'y': 4, 'k': 5, 'c': 3, 'o': "
        "8}, 'inputs': [{'name': 'in', 'dims': ['b', 'x', 'c'], 'feed': 'features'}, {'name': 'f', "
        "'dims': ['k', 'c', 'o'], 'feed': 'features'}, {'name': 'dy', 'dims': ['b', 'y', 'o'], 'feed': "
        "'features'}], 'operations': [{'name': 'y', 'op': 'conv', 'inputs': ['in', 'f'], 'dims': ['b', "
        "'y', 'o'], %s}, {'name': 'dx', 'op': 'conv_transpose', 'inputs': ['dy', 'f'], 'dims': ['b', "
        "'x', 'c'], %s}, {'name': 'df', 'op': 'conv_filter_grad', 'inputs': ['in', 'dy'], 'dims': "
        "['k', 'c', 'o'], %s}]}";
    static const char windows[] =
        "'windows': [{'from': 'x', 'to': 'y', 'kernel': 'k', 'stride': 4, 'padding': 'same'}]";
    static const char back[] =
        "'windows': [{'from': 'y', 'to': 'x', 'kernel': 'k', 'stride': 4, 'padding': 'same'}]";
    g_autofree char *whole = g_strdup_printf(text, windows, back, windows);
    g_autoptr(MtfGraph) graph = mtf_test_graph(whole);
    MtfProductWork work = whole_work(graph, 0);
    assert_product(work, 2 * 4, 8, 5 * 3);
    assert_close(work.channels[0], 3);
    assert_close(work.channels[1], 8);
    work = whole_work(graph, 1);
    assert_close(work.m * work.k, 2 * 16 * 5 * 8 / 4.0);
    assert_close(work.n, 3);
    assert_product(whole_work(graph, 2), 5 * 3, 8, 2 * 4);
}
