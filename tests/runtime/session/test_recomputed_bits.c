// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: products done twice
// seconds: 300
/* Computing activations again changes no bit: under the same layout, clones run as their originals
 * do, every loss and every variable is the same. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/execution/recompute.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/lockstep_training.h"

#include <string.h>

#define SEED 23
#define STEPS 4

static const char *original_of(const char *name) {
    return g_str_has_prefix(name, "recompute/") ? name + strlen("recompute/") : name;
}

/* The layout of `from`, each clone laid out as its original. */
static MtfLayout *same_layout(const MtfGraph *from, const MtfLayout *layout, const MtfGraph *to) {
    MtfLayout *same = mtf_layout_new(to, &layout->mesh);
    for (int t = 0; t < same->n_tensors; t++) {
        const char *name = original_of(mtf_graph_tensor(to, t)->name);
        same->tensors[t] = layout->tensors[mtf_graph_find_tensor(from, name)];
    }
    for (int i = 0; i < same->n_operations; i++) {
        const char *name = original_of(mtf_graph_operation(to, i)->name);
        same->operations[i] = layout->operations[mtf_graph_find_operation(from, name)];
    }
    return same;
}

static void check_layout(const MtfGraph *graph, const MtfGraph *again, const MtfLayout *layout,
                         const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfLayout) same = same_layout(graph, layout, again);
    if (!mtf_layout_check(again, same, &error))
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfProgram) program_again = mtf_lower(again, same);
    assert_int_equal(mtf_train_both(program, program_again, text, SEED, STEPS), MTF_SAME_ALL);
}

/* One rank, then random free layouts without gathered copies, which belong to a phase. */
static void check_layers(const MtfGraph *graph, MtfRecompute recompute, int layers,
                         const char *text) {
    static const int devices[] = { 1, 2, 3, 4, 6 };
    g_autoptr(GRand) random = g_rand_new_with_seed(29);
    g_autoptr(MtfGraph) again = mtf_graph_copy(graph);
    assert_true(mtf_graph_recompute(again, &(MtfKept){ recompute, layers, 0, 0 }, 1, NULL));
    assert_true(again->operations->len > graph->operations->len);
    for (gsize i = 0; i < G_N_ELEMENTS(devices); i++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[i]);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, graph, &mesh);
        g_clear_pointer(&layout->gathered_copies, g_free);
        check_layout(graph, again, layout, text);
    }
}

static void check_graph(const MtfGraph *graph, MtfRecompute recompute, const char *text) {
    check_layers(graph, recompute, 0, text);
}

static void check_transformer(MtfDtype dtype, int microbatches) {
    MtfTrainingPlan wanted = { .graph = "transformer-small",
                               .sizes = MTF_TINY_TRANSFORMER,
                               .dtype = dtype,
                               .mesh = "",
                               .rules = "",
                               .microbatches = microbatches };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
    check_graph(plan->graph, MTF_RECOMPUTE_CHEAP, "LICENSE");
    check_graph(plan->graph, MTF_RECOMPUTE_LAYERS, "LICENSE");
    check_layers(plan->graph, MTF_RECOMPUTE_LAYERS, 1, "LICENSE");
}

TEST(a_transformer_trains_to_the_same_bits) {
    check_transformer(MTF_F32, 1);
    check_transformer(MTF_F64, 1);
    check_transformer(MTF_F32, 3);
}

static const char dropping[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 6, 'c': 6, 'd': 8, 'e': 8}, 'inputs': "
    "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': ['b', 'd'], 'feed': "
    "'targets'}], 'operations': [{'repeat': {'name': 'layer', 'count': 3, 'carry': [{'name': 'h', "
    "'init': 'x', 'next': 'n'}], 'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': "
    "{'normal': 0.4}}, {'name': 'v', 'dims': ['e', 'd'], 'init': {'normal': 0.4}}], 'operations': "
    "[{'name': 'p', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['b', 'e']}, {'name': 'a', 'op': "
    "'gelu', 'inputs': ['p']}, {'name': 's', 'op': 'dropout', 'inputs': ['a'], 'rate': 0.4}, "
    "{'name': 'q', 'op': 'einsum', 'inputs': ['s', 'v'], 'dims': ['b', 'd']}, {'name': 'k', 'op': "
    "'rename', 'inputs': ['h'], 'from': 'b', 'to': 'c'}, {'name': 'o', 'op': 'attention', 'inputs': "
    "['h', 'k', 'k'], 'query': 'b', 'memory': 'c', 'dimension': 'd', 'factor': 0.4, 'dropout': 0.3}, "
    "{'name': 'n', 'op': 'add', 'inputs': ['h', 'q', 'o']}]}}, {'name': 'z', 'op': 'subtract', "
    "'inputs': ['layer/h', 'y']}, {'name': 'sq', 'op': 'square', 'inputs': ['z']}, {'name': 'l', 'op': 'reduce_mean', 'inputs': "
    "['sq'], 'dims': []}], 'loss': 'l', 'optimizer': {'kind': 'adam', 'rate': 0.05}}";

TEST(dropout_drops_the_same_again) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(dropping);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    check_graph(graph, MTF_RECOMPUTE_CHEAP, NULL);
    check_graph(graph, MTF_RECOMPUTE_LAYERS, NULL);
}

/* The check is one: a clone of another stream drops other elements. */
TEST(a_clone_with_random_numbers_of_its_own_is_noticed) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(dropping);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    g_autoptr(MtfGraph) again = mtf_graph_copy(graph);
    assert_true(
        mtf_graph_recompute(again, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, NULL));
    int clone = mtf_graph_find_operation(again, "recompute/layer/1/s");
    assert_true(clone >= 0);
    g_clear_pointer(&mtf_graph_operation(again, clone)->attributes.stream, g_free);
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfLayout) same = mtf_layout_new(again, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfProgram) other = mtf_lower(again, same);
    assert_int_equal(mtf_train_both(program, other, NULL, SEED, STEPS), 0);
}
