// SPDX-License-Identifier: GPL-3.0-or-later
/* Random graphs written as ONNX, read again by our importer, run, and compared with what the witness
 * computes of the graph that was written. */
#include "tests/support/cmocka.h"

#include "analyzer/composites/expand.h"
#include "layouts/graph/random.h"
#include "layouts/onnx/onnx_model.h"
#include "reports/exports/onnx/export_onnx.h"
#include "reports/exports/onnx/onnx_nodes.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/drawn/random_graph.h"
#include "tests/support/losses/onnx_case.h"
#include "tests/support/reference/reference.h"

#include <glib/gstdio.h>

static const MtfOnnxWriter *const tables[] = { mtf_onnx_elementwise, mtf_onnx_sums,
                                               mtf_onnx_places,      mtf_onnx_attention,
                                               mtf_onnx_windows,     mtf_onnx_routing,
                                               mtf_onnx_loops };

static bool is_written(int kind) {
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        for (const MtfOnnxWriter *row = tables[i]; row->write != NULL; row++)
            if (row->kind == kind)
                return true;
    return false;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void save(const char *folder, const char *file, GByteArray *bytes) {
    g_autofree char *path = g_build_filename(folder, file, NULL);
    assert_true(g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL));
    g_byte_array_unref(bytes);
}

/* The witness's values of the tensor of that name, as TensorProto. */
static void save_tensor(const MtfReference *reference, const char *folder, const char *kind,
                        guint i, const char *name) {
    const MtfGraph *graph = reference->graph;
    int t = mtf_graph_find_tensor(graph, name);
    assert_true(t >= 0);
    const MtfTensor *tensor = mtf_graph_tensor(graph, t);
    int64_t sizes[MTF_MAX_RANK];
    for (int d = 0; d < tensor->shape.rank; d++)
        sizes[d] = mtf_graph_size(graph, tensor->shape.dims[d]);
    g_autofree char *file = g_strdup_printf("test_data_set_0/%s_%u.pb", kind, i);
    save(folder, file,
         mtf_node_numbers(mtf_node_type_of(tensor->dtype), reference->values[t], tensor->shape.rank,
                          sizes));
}

/* Writes the graph, its inputs and what the witness makes of them; runs what is read. */
static void check_graph(const MtfGraph *graph, const char *what, guint32 seed) {
    g_autoptr(GError) error = NULL;
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("one:1", 0, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    MtfPlan plan = { .graph = (MtfGraph *)graph, .layout = layout };
    GByteArray *bytes = mtf_export_onnx(&plan, NULL, &error);
    if (bytes == NULL)
        fail_msg("%s: %s", what, error->message);
    g_autofree char *folder = g_dir_make_tmp("onnx-XXXXXX", NULL);
    g_autofree char *data = g_build_filename(folder, "test_data_set_0", NULL);
    assert_int_equal(g_mkdir(data, 0700), 0);
    save(folder, "model.onnx", bytes);
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_load(path, &error);
    assert_non_null(model);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, seed);
    mtf_reference_fill_inputs(reference, seed);
    mtf_reference_run(reference, 0);
    for (guint i = 0; i < model->inputs->len; i++)
        save_tensor(reference, folder, "input", i, ((MtfOnnxInput *)model->inputs->pdata[i])->name);
    for (guint i = 0; i < model->outputs->len; i++)
        save_tensor(reference, folder, "output", i,
                    ((MtfOnnxInput *)model->outputs->pdata[i])->name);
    g_autofree char *sentence = NULL;
    MtfOnnxCaseResult result = mtf_onnx_case_run(folder, &sentence);
    if (result != MTF_ONNX_CASE_EQUAL && result != MTF_ONNX_CASE_BOUND)
        fail_msg("%s in %s: %s", what, folder, sentence != NULL ? sentence : "unreadable");
    g_autofree char *clear = g_strdup_printf("rm -r '%s'", folder);
    assert_int_equal(system(clear), 0);
}

/* ---- Random graphs ---------------------------------------------------------------------------- */

/* Variables as inputs, so that their values are any; without the loss, so that every result counts. */
static MtfGraph *for_export(MtfGraph *graph) {
    const MtfOperation *loss =
        mtf_graph_operation(graph, mtf_graph_tensor(graph, graph->loss)->producer);
    int n = (int)graph->operations->len - 1;
    n -= loss->n_inputs > 1 ? loss->n_inputs : 0;
    g_autofree int *order = g_new(int, n + 1);
    for (int o = 0; o < n; o++)
        order[o] = o;
    graph->loss = -1;
    mtf_graph_arrange(graph, order, n);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_VARIABLE)
            continue;
        tensor->source = MTF_SOURCE_INPUT;
        tensor->feed = MTF_FEED_FEATURES;
        tensor->memory = MTF_MEMORY_INPUT;
    }
    mtf_graph_canonicalize(graph);
    return mtf_expand(graph, NULL);
}

static bool can_be_written(const MtfGraph *graph) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        if (!is_written(op->kind) || mtf_operation_is_random(op))
            return false;
    }
    return true;
}

/* Kinds that some graph had. */
static bool seen[MTF_OPERATIONS];

static void check_and_note(const MtfGraph *graph, const char *what, guint32 seed) {
    check_graph(graph, what, seed);
    for (int o = 0; o < (int)graph->operations->len; o++)
        seen[mtf_graph_operation(graph, o)->kind] = true;
}

TEST(what_is_written_computes_the_same) {
    int written = 0;
    for (guint32 seed = 0; seed < 800; seed++) {
        MtfRandomGraph options = { .seed = seed,
                                   .dimensions = 4,
                                   .operations = 5,
                                   .largest_size = 4,
                                   .dtype = MTF_F64,
                                   .composites = seed % 2 == 0,
                                   .more = true };
        g_autoptr(MtfGraph) drawn = mtf_random_graph(&options);
        g_autoptr(MtfGraph) graph = for_export(drawn);
        if (graph == NULL || graph->operations->len == 0 || !can_be_written(graph))
            continue;
        g_autofree char *what = g_strdup_printf("seed %u", seed);
        check_and_note(graph, what, seed);
        written++;
    }
    assert_true(written > 300);
}

/* ---- What is not drawn ------------------------------------------------------------------------ */

static void check_text(const char *dimensions, const char *inputs, const char *operations) {
    g_autofree char *text =
        g_strdup_printf("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {%s}, 'inputs': [%s], "
                        "'variables': [], 'operations': [%s]}",
                        dimensions, inputs, operations);
    g_autoptr(MtfGraph) read = mtf_test_graph(text);
    g_autoptr(MtfGraph) graph = mtf_expand(read, NULL);
    check_and_note(graph, operations, 7);
}

#define X(DIMS) "{'name': 'x', 'dims': [" DIMS "], 'dtype': 'f64', 'feed': 'features'}"
#define W(DIMS) ", {'name': 'w', 'dims': [" DIMS "], 'dtype': 'f64', 'feed': 'features'}"
#define OP(KIND, INPUTS, MORE) "{'name': 'y', 'op': '" KIND "', 'inputs': [" INPUTS "]" MORE "}"
#define POSITIVE "{'name': 'p', 'op': 'exp', 'inputs': ['x']}, "

TEST(functions_that_are_not_drawn) {
    const char *ab = "'a': 3, 'b': 4", *x = X("'a', 'b'") W("'b'");
    check_text(ab, x, POSITIVE OP("mod", "'x', 'p'", ""));
    check_text(ab, x, POSITIVE OP("pow", "'p', 'w'", ""));
    check_text(ab, x, POSITIVE OP("rsqrt", "'p'", ""));
    check_text(ab, x, OP("sign", "'x'", ""));
    check_text(ab, x, POSITIVE OP("power", "'p'", ", 'exponent': 1.7"));
    check_text(ab, x, OP("floor", "'x'", ""));
    check_text(ab, x,
               "{'name': 'p', 'op': 'to_host', 'inputs': ['x']}, " OP("from_host", "'p'", ""));
    check_text(ab, x, OP("causal_mask", "'x'", ", 'query': 'a', 'memory': 'b'"));
    check_text(ab, x, OP("causal_mask", "'x'", ", 'query': 'b', 'memory': 'a'"));
    /* of a model that is not trained: the second, and what came in */
    seen[MTF_OP_IN_TRAIN_PHASE] = seen[MTF_OP_DROPOUT] = true;
}

/* Forwards and backwards, with a state that nobody reads behind the loop, and elements in the middle. */
TEST(loops_are_scans) {
    for (int reverse = 0; reverse < 2; reverse++) {
        g_autofree char *loop = g_strdup_printf(
            "{'loop': {'name': 'l', 'dimension': 't', %s'carry': [{'name': 's', 'init': 'w', "
            "'next': 'new'}, {'name': 'c', 'init': 'w', 'next': 'further'}], 'inputs': [{'name': "
            "'xt', 'of': 'x'}], 'outputs': [{'name': 'all', 'of': 'new'}, {'name': 'far', 'of': "
            "'further'}], 'operations': [{'name': 'sum', 'op': 'add', 'inputs': ['s', 'xt']}, "
            "{'name': 'further', 'op': 'multiply', 'inputs': ['c', 'sum']}, {'name': 'more', 'op': "
            "'tanh', 'inputs': ['further']}, {'name': 'new', 'op': 'add', 'inputs': ['more', "
            "'w']}]}}",
            reverse ? "'reverse': true, " : "");
        check_text("'a': 3, 't': 5, 'h': 2", X("'a', 't', 'h'") W("'a', 'h'"), loop);
    }
}

/* With beta and without; all heads have the same queries and keys. */
TEST(linear_attention_is_a_scan) {
    static const char *const betas[] = { "", ", 'beta'" };
    for (gsize i = 0; i < G_N_ELEMENTS(betas); i++) {
        g_autofree char *operations = g_strdup_printf(
            "{'name': 'share', 'op': 'softplus', 'inputs': ['x']}, {'name': 'log', 'op': 'negate', "
            "'inputs': ['share']}, {'name': 'beta', 'op': 'sigmoid', 'inputs': ['x']}, "
            "{'name': 'y', 'op': 'linear_attention', 'inputs': ['v', 'q', 'w', 'log'%s], "
            "'dimension': 't', 'keys': 'k'}",
            betas[i]);
        check_text(
            "'b': 2, 't': 5, 'h': 3, 'k': 4, 'e': 2",
            X("'b', 'h', 't'") ", {'name': 'v', 'dims': ['b', 'h', 't', 'e'], 'dtype': 'f64', "
                               "'feed': 'features'}, {'name': 'q', 'dims': ['t', 'b', 'k'], 'dtype': 'f64', "
                               "'feed': 'features'}" W("'t', 'b', 'k'"),
            operations);
    }
    check_text(
        "'b': 2, 't': 5, 'k': 4, 'e': 2",
        X("'b', 't', 'e'") ", {'name': 'v', 'dims': ['b', 't', 'e'], 'dtype': 'f64', 'feed': "
                           "'features'}, {'name': 'q', 'dims': ['b', 't', 'k'], 'dtype': 'f64', 'feed': "
                           "'features'}, {'name': 'r', 'dims': ['k', 'e'], 'dtype': 'f64', 'feed': 'features'}" W(
                               "'b', 't', 'k'"),
        "{'name': 'step', 'op': 'softplus', 'inputs': ['x']}, {'name': 'speed', 'op': 'exp', "
        "'inputs': ['r']}, {'name': 'rate', 'op': 'negate', 'inputs': ['speed']}, {'name': 'y', "
        "'op': 'selective_scan', 'inputs': ['v', 'q', 'w', 'step', 'rate'], 'dimension': 't', "
        "'keys': 'k'}");
}

#define CONV_DIMS \
    "'n': 2, 'm': 2, 'h': 7, 'w': 5, 'hh': 4, 'ww': 5, 'kh': 3, 'kw': 2, 'c': 3, 'd': 2, 'g': 2"
#define ROWS(FROM, TO) \
    "{'from': '" FROM "', 'to': '" TO "', 'kernel': 'kh', 'stride': 2, 'before': 1}"
#define COLUMNS(FROM, TO) \
    "{'from': '" FROM "', 'to': '" TO "', 'kernel': 'kw', 'dilation': 2, 'before': 1}"

TEST(windows_of_every_kind) {
    const char *dims = CONV_DIMS;
    /* channels first and last, groups, several dimensions of examples */
    check_text(dims, X("'n', 'c', 'h', 'w'") W("'d', 'c', 'kh', 'kw'"),
               OP("conv", "'x', 'w'",
                  ", 'dims': ['n', 'd', 'hh', 'ww'], 'windows': [" ROWS("h", "hh") ", " COLUMNS(
                      "w", "ww") "]"));
    check_text(dims, X("'h', 'n', 'g', 'c', 'm'") W("'kh', 'c', 'g', 'd'"),
               OP("conv", "'x', 'w'",
                  ", 'dims': ['m', 'hh', 'd', 'g', 'n'], 'windows': [" ROWS("h", "hh") "]"));
    check_text(dims, X("'n', 'hh', 'c', 'g'") W("'kh', 'd', 'g', 'c'"),
               OP("conv_transpose", "'x', 'w'",
                  ", 'dims': ['d', 'n', 'h', 'g'], 'windows': [" ROWS("hh", "h") "]"));
    check_text(
        dims, X("'n', 'h', 'c', 'w'"),
        OP("max_pool", "'x'",
           ", 'dims': ['c', 'hh', 'n', 'ww'], 'windows': [{'from': 'h', 'to': 'hh', 'size': "
           "3, 'stride': 2, 'before': 1}, {'from': 'w', 'to': 'ww', 'size': 3, 'before': 1}]"));
    for (int counted = 0; counted < 2; counted++) {
        g_autofree char *pool = g_strdup_printf(
            OP("average_pool", "'x'",
               ", 'dims': ['n', 'hh', 'c'], 'counted': %d, 'windows': [{'from': 'h', 'to': 'hh', "
               "'size': 3, 'stride': 2, 'before': 1}]"),
            counted);
        check_text(dims, X("'n', 'h', 'c'"), pool);
    }
}

/* Every queue, with a capacity and without: there, who is there, products of experts, and back. Of four that
 * are chosen from three are experts, so that some choices have no place. */
TEST(experts_by_every_queue) {
    static const char *const places[] = { "'m', 'c'", "'r'" };
    for (int c = 0; c < 2 * 2 * 3; c++) {
        int dropless = c % 2, queue = c / 2 % 2, priority = c / 4;
        g_autofree char *slots = g_strdup_printf(
            "{'name': 'gate', 'op': 'top_k', 'inputs': ['x'], 'from': 'e', 'to': 'k'}, "
            "{'name': 'slot', 'op': 'slots', 'inputs': ['gate/index', 'gate'], 'dimension': 't', "
            "'choices': 'k', 'experts': 'm', 'queue': %d, 'priority': %d%s}, ",
            queue, priority, dropless ? "" : ", 'capacity': 'c'");
        g_autofree char *there = g_strdup_printf(
            "{'name': 'there', 'op': 'dispatch', 'inputs': ['v', 'slot'%s], 'dims': ['g', %s, 'f']}, "
            "{'name': 'who', 'op': 'slot_ids', 'inputs': ['gate/index', 'slot'], 'dims': ['g', %s]}, "
            "{'name': 'y', 'op': 'expert_einsum', 'inputs': ['there', 'w', 'who'], 'dims': ['g', %s, "
            "'h'], 'experts': 'n'}, {'name': 'back', 'op': 'combine', 'inputs': ['y', 'slot'%s], "
            "'dims': ['t', 'h', 'g']}, {'name': 'place', 'op': 'cast', 'inputs': ['slot'], 'dtype': "
            "'f64'}",
            queue ? ", 'gate'" : "", places[dropless], places[dropless], places[dropless],
            queue ? "" : ", 'gate'");
        g_autofree char *operations = g_strconcat(slots, there, NULL);
        check_text(
            "'g': 2, 't': 5, 'e': 4, 'k': 2, 'm': 3, 'n': 4, 'c': 2, 'r': 10, 'f': 3, 'h': 2",
            X("'t', 'g', 'e'") ", {'name': 'v', 'dims': ['g', 'f', 't'], 'dtype': 'f64', 'feed': "
                               "'features'}" W("'n', 'f', 'h'"),
            operations);
    }
}

/* Runs last. */
TEST(every_writer_was_tried) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (is_written(kind) && !seen[kind])
            fail_msg("no graph had a %s", mtf_operation_row(kind)->name);
}

TEST(what_has_no_form_is_refused_by_name) {
    g_autoptr(GError) error = NULL;
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("one:1", 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 3}, 'inputs': [], 'variables': [], "
        "'operations': [{'name': 'noise', 'op': 'random_uniform', 'inputs': [], 'dims': ['a'], "
        "'dtype': 'f32'}]}");
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    MtfPlan plan = { .graph = graph, .layout = layout };
    assert_null(mtf_export_onnx(&plan, NULL, &error));
    assert_string_equal(error->message,
                        "operation \"noise\" (random_uniform) has no form in ONNX here");
}
