// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/random.h"
#include "runtime/data/data.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 6, LENGTH = 5, FEATURES = 4, OUTPUTS = 3 };

/* A language model's inputs over a vocabulary: tokens, next tokens, a mask. */
static MtfGraph *text_graph(int64_t vocabulary) {
    MtfGraph *graph = mtf_graph_new("text");
    int batch = mtf_graph_add_dimension(graph, "batch", BATCH, NULL);
    int length = mtf_graph_add_dimension(graph, "length", LENGTH, NULL);
    int vocab = mtf_graph_add_dimension(graph, "vocab", vocabulary, NULL);
    int model = mtf_graph_add_dimension(graph, "model", 2, NULL);
    MtfShape ids = { 2, { batch, length } }, table = { 2, { vocab, model } };
    MtfShape rows = { 3, { batch, length, model } };
    mtf_graph_add_input(graph, "tokens", &ids, MTF_I32, MTF_FEED_TOKENS, NULL);
    mtf_graph_add_input(graph, "next", &ids, MTF_I32, MTF_FEED_NEXT_TOKENS, NULL);
    mtf_graph_add_input(graph, "mask", &ids, MTF_F32, MTF_FEED_MASK, NULL);
    int w = mtf_graph_add_variable(graph, "w", &table, MTF_F32, (MtfInit){ 0 }, MTF_MEMORY_VARIABLE,
                                   NULL);
    MtfNewOperation lookup = { .name = "x",
                               .kind = MTF_OP_EMBEDDING,
                               .n_inputs = 2,
                               .inputs = (int[]){ w, 0 },
                               .shape = &rows,
                               .attributes = MTF_NO_ATTRIBUTES };
    assert_true(mtf_graph_add_operation(graph, &lookup, NULL) >= 0);
    return graph;
}

/* An MLP's inputs: features, targets, labels of three classes. */
static MtfGraph *mlp_graph(void) {
    MtfGraph *graph = mtf_graph_new("mlp");
    int batch = mtf_graph_add_dimension(graph, "batch", BATCH, NULL);
    int in = mtf_graph_add_dimension(graph, "in", FEATURES, NULL);
    int out = mtf_graph_add_dimension(graph, "out", OUTPUTS, NULL);
    MtfShape x = { 2, { batch, in } }, y = { 2, { batch, out } }, label = { 1, { batch } };
    mtf_graph_add_input(graph, "x", &x, MTF_F64, MTF_FEED_FEATURES, NULL);
    mtf_graph_add_input(graph, "y", &y, MTF_F64, MTF_FEED_TARGETS, NULL);
    mtf_graph_add_input(graph, "label", &label, MTF_I32, MTF_FEED_LABELS, NULL);
    MtfNewOperation logit = { .name = "logit",
                              .kind = MTF_OP_LABEL_LOGIT,
                              .n_inputs = 2,
                              .inputs = (int[]){ 1, 2 },
                              .shape = &label,
                              .attributes = MTF_NO_ATTRIBUTES };
    assert_true(mtf_graph_add_operation(graph, &logit, NULL) >= 0);
    return graph;
}

/* A slice of a two-dimensional input. */
static MtfOperand slice_of(void *values, MtfDtype dtype, MtfRange rows, MtfRange columns,
                           const int64_t *global) {
    return (MtfOperand){ .data = values,
                         .dtype = dtype,
                         .rank = 2,
                         .size = { rows.end - rows.begin, columns.end - columns.begin },
                         .begin = { rows.begin, columns.begin },
                         .global = { global[0], global[1] } };
}

static char *write_text(const char *bytes, gssize length) {
    g_autoptr(GError) error = NULL;
    char *path = NULL;
    int file = g_file_open_tmp("meshtf-XXXXXX", &path, &error);
    assert_true(file >= 0);
    close(file);
    assert_true(g_file_set_contents(path, bytes, length, NULL));
    return path;
}

/* A hundred bytes, each its own place. */
static char *write_count(void) {
    char bytes[100];
    for (int i = 0; i < 100; i++)
        bytes[i] = (char)i;
    return write_text(bytes, sizeof bytes);
}

static void remove_text(char *path) {
    unlink(path);
    g_free(path);
}

static void fill_tokens(MtfData *data, int tensor, int64_t step, int32_t *ids) {
    const int64_t global[2] = { BATCH, LENGTH };
    MtfOperand slice =
        slice_of(ids, MTF_I32, (MtfRange){ 0, BATCH }, (MtfRange){ 0, LENGTH }, global);
    assert_true(mtf_data_fill(data, tensor, step, &slice, NULL));
}

TEST(windows_are_runs_of_the_training_part_and_next_tokens_one_byte_on) {
    char *path = write_count();
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 3, NULL);
    assert_non_null(data);
    for (int64_t step = 1; step <= 50; step++) {
        int32_t tokens[BATCH][LENGTH], next[BATCH][LENGTH];
        fill_tokens(data, 0, step, &tokens[0][0]);
        fill_tokens(data, 1, step, &next[0][0]);
        for (int b = 0; b < BATCH; b++)
            for (int l = 0; l < LENGTH; l++) {
                assert_int_equal(tokens[b][l], tokens[b][0] + l);
                assert_int_equal(next[b][l], tokens[b][l] + 1);
                assert_in_range(next[b][l], 1, 89); /* the first 90 of 100 bytes train */
            }
    }
    remove_text(path);
}

TEST(examples_differ_by_place_step_and_seed) {
    char *path = write_count();
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 3, NULL);
    g_autoptr(MtfData) other = mtf_data_open(graph, path, 4, NULL);
    int32_t first[BATCH * LENGTH], second[BATCH * LENGTH], seeded[BATCH * LENGTH];
    fill_tokens(data, 0, 1, first);
    fill_tokens(data, 0, 2, second);
    fill_tokens(other, 0, 1, seeded);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_not_equal(first, seeded, sizeof first);
    fill_tokens(data, 0, 1, second);
    assert_memory_equal(first, second, sizeof first);
    remove_text(path);
}

TEST(a_slice_holds_what_the_whole_holds_there) {
    char *path = write_count();
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 3, NULL);
    const int64_t global[2] = { BATCH, LENGTH };
    int32_t whole[BATCH][LENGTH], part[2][3];
    fill_tokens(data, 1, 7, &whole[0][0]);
    MtfOperand slice = slice_of(part, MTF_I32, (MtfRange){ 3, 5 }, (MtfRange){ 2, 5 }, global);
    assert_true(mtf_data_fill(data, 1, 7, &slice, NULL));
    for (int b = 0; b < 2; b++)
        for (int l = 0; l < 3; l++)
            assert_int_equal(part[b][l], whole[3 + b][2 + l]);
    remove_text(path);
}

TEST(the_mask_is_all_ones) {
    char *path = write_count();
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 3, NULL);
    const int64_t global[2] = { BATCH, LENGTH };
    float mask[BATCH * LENGTH];
    MtfOperand slice =
        slice_of(mask, MTF_F32, (MtfRange){ 0, BATCH }, (MtfRange){ 0, LENGTH }, global);
    assert_true(mtf_data_fill(data, 2, 1, &slice, NULL));
    for (int i = 0; i < BATCH * LENGTH; i++)
        assert_true(mask[i] == 1);
    assert_int_equal(mtf_data_items(data), BATCH * LENGTH);
    assert_string_equal(mtf_data_item_name(data), "tokens");
    remove_text(path);
}

static void refused(const MtfGraph *graph, const char *path, const char *why) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_data_open(graph, path, 1, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(a_text_model_without_a_readable_text_is_bad_input) {
    g_autoptr(MtfGraph) graph = text_graph(256);
    refused(graph, NULL, "give --data FILE");
    refused(graph, "/nowhere/text", "cannot be read");
    refused(graph, "/tmp", "not a regular file");
    char *path = write_text("abcde", 5);
    refused(graph, path, "fewer than one window of 5");
    remove_text(path);
}

TEST(a_byte_beyond_the_vocabulary_is_bad_input) {
    char *path = write_count();
    g_autoptr(MtfGraph) small = text_graph(99), enough = text_graph(100);
    refused(small, path, "holds 99 at offset 99");
    g_autoptr(MtfData) data = mtf_data_open(enough, path, 1, NULL);
    assert_non_null(data);
    remove_text(path);
}

TEST(a_text_for_a_model_of_examples_is_bad_input) {
    g_autoptr(MtfGraph) graph = mlp_graph();
    refused(graph, "LICENSE", "LICENSE is neither an IDX nor an .npy file");
}

TEST(generated_features_have_mean_0_and_variance_1) {
    g_autoptr(MtfGraph) graph = mlp_graph();
    g_autoptr(MtfData) data = mtf_data_open(graph, NULL, 5, NULL);
    const int64_t global[2] = { BATCH, FEATURES };
    double x[BATCH * FEATURES], sum = 0, squares = 0;
    MtfOperand slice =
        slice_of(x, MTF_F64, (MtfRange){ 0, BATCH }, (MtfRange){ 0, FEATURES }, global);
    int n = 0;
    for (int64_t step = 1; step <= 2000; step++)
        for (int i = mtf_data_fill(data, 0, step, &slice, NULL) ? 0 : 99; i < BATCH * FEATURES;
             i++, n++) {
            sum += x[i];
            squares += x[i] * x[i];
        }
    assert_int_equal(n, 2000 * BATCH * FEATURES);
    assert_true(fabs(sum / n) < 0.02);
    assert_true(fabs(squares / n - 1) < 0.02);
}

/* As where a network reads observations and, beside them, a number for each. */
/* The teacher as its header writes it: weight i, j of a matrix of n columns is normal number i n + j of its
 * stream over the root of n. */
static double plain_target(const double *x, int output) {
    MtfRandom in = mtf_random_stream(0x7ea0c4e5, "teacher/in", 0);
    MtfRandom out = mtf_random_stream(0x7ea0c4e5, "teacher/out", 0);
    double y = 0;
    for (int h = 0; h < 8; h++) {
        double sum = 0;
        for (int f = 0; f < FEATURES; f++)
            sum += mtf_random_normal(&in, h * FEATURES + f) / sqrt(FEATURES) * x[f];
        y += mtf_random_normal(&out, output * 8 + h) / sqrt(8) * tanh(sum);
    }
    return y;
}

static void plain_features(uint64_t seed, int64_t step, int example, double *x) {
    MtfRandom random = mtf_random_stream(seed, "data/features", (uint64_t)step);
    for (int f = 0; f < FEATURES; f++)
        x[f] = (2 * mtf_random_uniform(&random, example * FEATURES + f) - 1) * sqrt(3);
}

/* Rows and columns of an input of the network against the plain ones. */
static void check_slice(MtfData *data, int tensor, int64_t step, MtfRange rows, MtfRange columns) {
    const int64_t global[2] = { BATCH, tensor == 0 ? FEATURES : OUTPUTS };
    double values[BATCH * FEATURES], x[FEATURES];
    MtfOperand slice = slice_of(values, MTF_F64, rows, columns, global);
    assert_true(mtf_data_fill(data, tensor, step, &slice, NULL));
    const double *value = values;
    for (int b = (int)rows.begin; b < rows.end; b++) {
        plain_features(5, step, b, x);
        for (int i = (int)columns.begin; i < columns.end; i++, value++) {
            double expected = tensor == 0 ? x[i] : plain_target(x, i);
            assert_true(fabs(*value - expected) <= 1e-14 * fabs(expected));
        }
    }
}

/* Examples are drawn some at a time: whatever was asked before, a slice is the same. */
TEST(generated_slices_are_the_plain_teachers_in_any_order) {
    g_autoptr(MtfGraph) graph = mlp_graph();
    g_autoptr(MtfData) data = mtf_data_open(graph, NULL, 5, NULL);
    uint32_t draw = 1;
    for (int trial = 0; trial < 300; trial++) {
        draw = draw * 1664525u + 1013904223u;
        int tensor = (int)(draw >> 31), first = draw >> 28 & 3, begin = draw >> 26 & 1;
        int more = draw >> 22 & 3, wider = draw >> 20 & 1;
        MtfRange rows = { first, MIN(first + 1 + more, BATCH) };
        MtfRange columns = { begin, begin + 1 + wider };
        check_slice(data, tensor, 1 + (draw >> 18 & 1), rows, columns);
        check_slice(data, tensor, 1 + (draw >> 18 & 1), (MtfRange){ 0, BATCH },
                    (MtfRange){ 0, tensor == 0 ? FEATURES : OUTPUTS });
    }
}

TEST(inputs_of_fewer_features_have_the_first_of_them) {
    g_autoptr(MtfGraph) graph = mlp_graph();
    int batch = mtf_graph_find_dimension(graph, "batch");
    int more = mtf_graph_add_dimension(graph, "more", FEATURES + 2, NULL);
    mtf_graph_add_input(graph, "long", &(MtfShape){ 2, { batch, more } }, MTF_F64,
                        MTF_FEED_FEATURES, NULL);
    g_autoptr(MtfData) data = mtf_data_open(graph, NULL, 5, NULL);
    const MtfRange rows = { 0, BATCH };
    const int64_t few[2] = { BATCH, FEATURES }, many[2] = { BATCH, FEATURES + 2 };
    double x[BATCH][FEATURES], z[BATCH][FEATURES + 2];
    MtfOperand of_x = slice_of(x, MTF_F64, rows, (MtfRange){ 0, FEATURES }, few);
    MtfOperand of_z = slice_of(z, MTF_F64, rows, (MtfRange){ 0, FEATURES + 2 }, many);
    assert_true(mtf_data_fill(data, mtf_graph_find_tensor(graph, "x"), 3, &of_x, NULL));
    assert_true(mtf_data_fill(data, mtf_graph_find_tensor(graph, "long"), 3, &of_z, NULL));
    for (int b = 0; b < BATCH; b++)
        assert_memory_equal(x[b], z[b], sizeof x[b]);
    assert_true(z[0][FEATURES] < 0 || z[0][FEATURES] > 0);
    refused(graph, "tests/golden/none.npy", "none.npy");
}

TEST(labels_name_the_largest_target_and_every_class_occurs) {
    g_autoptr(MtfGraph) graph = mlp_graph();
    g_autoptr(MtfData) data = mtf_data_open(graph, NULL, 5, NULL);
    const int64_t global[2] = { BATCH, OUTPUTS };
    int seen[OUTPUTS] = { 0 };
    for (int64_t step = 1; step <= 50; step++) {
        double y[BATCH][OUTPUTS];
        int32_t label[BATCH];
        MtfOperand targets =
            slice_of(y, MTF_F64, (MtfRange){ 0, BATCH }, (MtfRange){ 0, OUTPUTS }, global);
        MtfOperand labels = {
            .data = label, .dtype = MTF_I32, .rank = 1, .size = { BATCH }, .global = { BATCH }
        };
        assert_true(mtf_data_fill(data, 1, step, &targets, NULL));
        assert_true(mtf_data_fill(data, 2, step, &labels, NULL));
        for (int b = 0; b < BATCH; b++) {
            assert_in_range(label[b], 0, OUTPUTS - 1);
            seen[label[b]]++;
            for (int k = 0; k < OUTPUTS; k++)
                assert_true(y[b][label[b]] >= y[b][k]);
        }
    }
    for (int k = 0; k < OUTPUTS; k++)
        assert_true(seen[k] > 0);
}

/* What tells classes apart by comparing labels or categories with 0, 1, …, as one_hot becomes, wherever they are
 * moved; a comparison with anything else says nothing. */
TEST(labels_compared_with_a_range_have_its_classes) {
    const char *text =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 4, 'c': 7, 'd': 4}, 'inputs': ["
        "{'name': 'labels', 'dims': ['b'], 'dtype': 'int32', 'feed': 'labels'}, "
        "{'name': 'moved', 'dims': ['b'], 'dtype': 'int32', 'feed': 'labels'}, "
        "{'name': 'others', 'dims': ['b'], 'dtype': 'int32', 'feed': 'labels'}, "
        "{'name': 'kinds', 'dims': ['b'], 'dtype': 'int32', 'feed': 'categories'}], 'operations': ["
        "{'name': 'kind', 'op': 'equal', 'inputs': ['kinds', 'count'], 'dims': ['b', 'c']}, "
        "{'name': 'there', 'op': 'rename', 'inputs': ['moved'], 'from': 'b', 'to': 'd'}, "
        "{'name': 'seen', 'op': 'equal', 'inputs': ['there', 'count'], 'dims': ['d', 'c']}, "
        "{'name': 'count', 'op': 'range', 'inputs': [], 'dims': ['c'], 'dtype': 'int32'}, "
        "{'name': 'right', 'op': 'equal', 'inputs': ['labels', 'count'], 'dims': ['b', 'c']}, "
        "{'name': 'same', 'op': 'equal', 'inputs': ['labels', 'others'], 'dims': ['b']}]}";
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    assert_int_equal(mtf_data_id_bound(graph, mtf_graph_find_tensor(graph, "labels")), 7);
    assert_int_equal(mtf_data_id_bound(graph, mtf_graph_find_tensor(graph, "moved")), 7);
    assert_int_equal(mtf_data_id_bound(graph, mtf_graph_find_tensor(graph, "kinds")), 7);
    assert_true(mtf_data_id_bound(graph, mtf_graph_find_tensor(graph, "others")) == INT64_MAX);
}

/* Also of an input whose second dimension is the batch: 12 examples of which the teacher says 5 times something are in
 * 6 parts what they are in one. */
TEST(micro_batches_hold_what_the_whole_batch_holds) {
    const char *text =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12, 'd': 5, 'c': 3}, 'inputs': ["
        "{'name': 'x', 'dims': ['b', 'd'], 'dtype': 'float64', 'feed': 'features'}, {'name': 'ids', "
        "'dims': ['d', 'b'], 'dtype': 'int32', 'feed': 'labels'}], 'operations': [{'name': 'hot', "
        "'op': 'one_hot', 'inputs': ['ids'], 'dims': ['d', 'b', 'c']}]}";
    g_autoptr(MtfGraph) graph = mtf_test_graph(text), divided = mtf_graph_copy(graph);
    assert_true(mtf_graph_divide_batch(divided, 0, 6, NULL));
    g_autoptr(MtfData) data = mtf_data_open(graph, NULL, 3, NULL);
    g_autoptr(MtfData) in_parts = mtf_data_open(divided, NULL, 3, NULL);
    const int64_t global[2] = { 5, 12 };
    int ids = mtf_graph_find_tensor(graph, "ids"), differ = 0;
    int32_t whole[5][12], part[5][2];
    MtfOperand all = slice_of(whole, MTF_I32, (MtfRange){ 0, 5 }, (MtfRange){ 0, 12 }, global);
    assert_true(mtf_data_fill(data, ids, 7, &all, NULL));
    for (int m = 0; m < 6; m++) {
        MtfOperand slice =
            slice_of(part, MTF_I32, (MtfRange){ 0, 5 }, (MtfRange){ 2 * m, 2 * m + 2 }, global);
        assert_true(mtf_data_fill(in_parts, ids, 7, &slice, NULL));
        for (int d = 0; d < 5; d++)
            for (int b = 0; b < 2; b++) {
                assert_int_equal(part[d][b], whole[d][2 * m + b]);
                differ += whole[d][2 * m + b] != whole[0][0];
            }
    }
    assert_true(differ > 0);
}

TEST(a_text_that_shrinks_while_it_is_read_is_a_failure) {
    char *path = write_count();
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 3, NULL);
    assert_int_equal(truncate(path, 0), 0);
    const int64_t global[2] = { BATCH, LENGTH };
    int32_t ids[BATCH * LENGTH];
    MtfOperand slice =
        slice_of(ids, MTF_I32, (MtfRange){ 0, BATCH }, (MtfRange){ 0, LENGTH }, global);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_data_fill(data, 0, 1, &slice, &error));
    assert_int_equal(mtf_error_exit_status(error), 1);
    remove_text(path);
}

/* The training part is the first 90 of 100 bytes: 30 of each of three values, ln 3 nats a byte. */
TEST(the_entropy_of_a_text_is_that_of_its_training_part) {
    char bytes[100];
    for (int i = 0; i < 100; i++)
        bytes[i] = (char)(i < 90 ? i % 3 : 7);
    char *path = write_text(bytes, sizeof bytes);
    g_autoptr(MtfGraph) graph = text_graph(256);
    g_autoptr(MtfData) data = mtf_data_open(graph, path, 1, NULL);
    assert_non_null(data);
    assert_true(fabs(mtf_data_entropy(data) - log(3)) < 1e-12);
    remove_text(path);
}

/* Two examples of two features, the first without a label, as PyTorch's -100. What ignores such labels has become
 * a comparison with 0; one with 1 says nothing of them. */
TEST(labels_below_0_are_none_where_a_loss_ignores_them) {
    static const char features[] = "\0\0\x08\x02\0\0\0\2\0\0\0\2\1\2\3\4";
    static const char labels[] = "\0\0\x0c\x01\0\0\0\2\xff\xff\xff\x9c\0\0\0\2";
    g_autofree char *x = write_text(features, sizeof features - 1);
    g_autofree char *y = write_text(labels, sizeof labels - 1);
    char *files[] = { x, y, NULL };
    for (int ignores = 0; ignores < 2; ignores++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'f': 2, 'c': 3}, 'inputs': ["
            "{'name': 'x', 'dims': ['b', 'f'], 'feed': 'features'}, "
            "{'name': 'y', 'dims': ['b'], 'dtype': 'int32', 'feed': 'labels'}], 'variables': ["
            "{'name': 'w', 'dims': ['f', 'c'], 'init': 'ones'}], 'operations': ["
            "{'name': 'scores', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['b', 'c']}, "
            "{'name': 'chosen', 'op': 'label_logit', 'inputs': ['scores', 'y'], 'dims': ['b']}, "
            "{'name': 'least', 'op': 'constant', 'dims': [], 'dtype': 'int32', 'value': %d}, "
            "{'name': 'counts', 'op': 'less_equal', 'inputs': ['least', 'y'], 'dims': ['b']}]}",
            ignores ? 0 : 1);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        MtfDataSettings settings = { .seed = 1, .files = files };
        g_autoptr(MtfData) data = mtf_data_open_files(graph, &settings, &error);
        if ((data != NULL) != (ignores == 1))
            fail_msg("%s", error == NULL ? "taken" : error->message);
        if (ignores == 0)
            assert_non_null(strstr(error->message, "the label of example 0 is -100"));
    }
    unlink(x);
    unlink(y);
}
