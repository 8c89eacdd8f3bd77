// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "cost/summary/parallelism.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/free_setup.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* Tokens are looked up, go through a product that widens and one that narrows, and are compared with
 * the next tokens. */
static const char *const language =
    "{'meshtf_graph': 1, 'name': 'p', 'dimensions': {'batch': 64, 'length': 32, 'd_model': 64,"
    "  'd_ff': 256, 'vocab': 512},"
    " 'inputs': [{'name': 'tokens', 'dims': ['batch', 'length'], 'feed': 'tokens', 'dtype': 'int32'},"
    "  {'name': 'next', 'dims': ['batch', 'length'], 'feed': 'next_tokens', 'dtype': 'int32'}],"
    " 'variables': [{'name': 'embedding', 'dims': ['vocab', 'd_model'], 'init': {'normal': 0.1}},"
    "  {'name': 'w', 'dims': ['d_model', 'd_ff'], 'init': {'normal': 0.1}},"
    "  {'name': 'v', 'dims': ['d_ff', 'd_model'], 'init': {'normal': 0.1}}],"
    " 'operations': [{'name': 'x', 'op': 'embedding', 'inputs': ['embedding', 'tokens'],"
    "   'dims': ['batch', 'length', 'd_model']},"
    "  {'name': 'h', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'length', 'd_ff']},"
    "  {'name': 'a', 'op': 'gelu', 'inputs': ['h']},"
    "  {'name': 'y', 'op': 'einsum', 'inputs': ['a', 'v'], 'dims': ['batch', 'length', 'd_model']},"
    "  {'name': 'z', 'op': 'add', 'inputs': ['x', 'y']},"
    "  {'name': 'logits', 'op': 'einsum', 'inputs': ['z', 'embedding'],"
    "   'dims': ['batch', 'length', 'vocab']},"
    "  {'name': 'losses', 'op': 'softmax_cross_entropy', 'inputs': ['logits', 'next'],"
    "   'dims': ['batch', 'length']},"
    "  {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['losses'], 'dims': []}],"
    " 'loss': 'loss', 'optimizer': {'kind': 'adam', 'rate': 0.001}}";

static MtfGraph *training_graph(bool mixed) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(language);
    g_autoptr(MtfGraph) training = mtf_training_graph(forward, NULL);
    assert_non_null(training);
    return mixed ? mtf_mixed_precision(training, NULL) : g_steal_pointer(&training);
}

static void assert_words(const char *mesh_text, const char *rules_text, const char *expected) {
    MtfMesh mesh;
    g_autoptr(MtfGraph) graph = training_graph(false);
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, rules_text, NULL, NULL);
    assert_non_null(rules);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autofree char *words = mtf_parallelism_format(graph, layout);
    assert_string_equal(words, expected);
}

TEST(rules_are_told_in_the_fields_words) {
    assert_words("all:1", "", "one device");
    assert_words("a:8", "batch:a", "data parallel 8");
    assert_words("a:8;b:4", "batch:a;d_ff:b;vocab:b", "data parallel 8 x tensor parallel 4");
    assert_words("a:8;b:4", "length:a;d_ff:b;vocab:b", "context parallel 8 x tensor parallel 4");
    assert_words("a:2;b:4", "batch:a", "data parallel 2 x replicated 4");
}

/* The vocabulary's product is 512 of 512 + 256 + 256 points a token: half of the work. */
TEST(an_axis_with_two_uses_tells_both) {
    assert_words("a:8;b:4", "batch:a;vocab:b",
                 "data parallel 8 x tensor parallel 4, replicated over b in 50 % of the work");
}

static const MtfStandardLayout *standard_called(const GPtrArray *standards, const char *name) {
    for (guint i = 0; i < standards->len; i++)
        if (strcmp(((MtfStandardLayout *)standards->pdata[i])->name, name) == 0)
            return standards->pdata[i];
    return NULL;
}

/* What a recipe makes is called what the recipe is called. */
static void assert_standard(const MtfFreeSetup *setup, const char *name, int zero, bool sequence) {
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(setup->problem);
    const MtfStandardLayout *standard = standard_called(standards, name);
    assert_non_null(standard);
    g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup->problem, standard->choice);
    MtfParallelism p = mtf_parallelism(setup->graph, layout);
    bool megatron = g_str_has_prefix(name, "Megatron");
    assert_int_equal(p.degree[MTF_PARALLEL_DATA] * p.degree[MTF_PARALLEL_TENSOR], 8);
    assert_true((p.degree[MTF_PARALLEL_TENSOR] > 1) == megatron);
    assert_true(p.sequence_parallel == sequence);
    if (p.degree[MTF_PARALLEL_DATA] > 1)
        assert_int_equal(p.zero, zero);
}

TEST(standard_layouts_are_called_what_they_are) {
    for (int mixed = 0; mixed < 2; mixed++) {
        MtfFreeSetup setup;
        mtf_free_setup_init(&setup, training_graph(mixed != 0), "a:2;b:4");
        assert_standard(&setup, "data parallelism", 0, false);
        assert_standard(&setup, "data parallelism, ZeRO-1", 1, false);
        assert_standard(&setup, "data parallelism, ZeRO-3", 3, false);
        assert_standard(&setup, "Megatron", 0, false);
        assert_standard(&setup, "Megatron, sequence parallel", 0, true);
        mtf_free_setup_clear(&setup);
    }
}

TEST(the_words_stand_in_json) {
    MtfParallelism p = { .degree = { 8, 4, 1, 1, 1 }, .sequence_parallel = true, .zero = 1 };
    cJSON *object = mtf_parallelism_to_json(&p);
    g_autofree char *text = cJSON_PrintUnformatted(object);
    assert_string_equal(text, "{\"data_parallel\":8,\"tensor_parallel\":4,\"context_parallel\":1,"
                              "\"expert_parallel\":1,\"replicated\":1,\"sequence_parallel\":true,"
                              "\"zero\":1}");
    cJSON_Delete(object);
}
