// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Kernels that run together, tile by tile, come to the same bits as kernels that run one after the
 * other: every loss and every variable, under any layout and with tiles of any size. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/program/fused_groups.h"
#include "layouts/program/lifetimes.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/lockstep_training.h"

#define SEED 31
#define STEPS 3

static int count_rows(const MtfProgram *program, int *kernels) {
    int rows = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        rows += instruction->fused.kernels > 0;
        *kernels += instruction->fused.kernels;
    }
    return rows;
}

/* Trains with tiles of `cache` bytes and without any. Returns the kernels in fused groups. */
static int check_layout(const MtfGraph *graph, const MtfLayout *layout, int64_t cache,
                        const char *text) {
    int kernels = 0;
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfProgram) cut = mtf_lower(graph, layout);
    assert_int_equal(count_rows(program, &kernels), 0); /* too small for rows */
    mtf_program_fuse(cut, cache);
    count_rows(cut, &kernels);
    assert_int_equal(mtf_program_most_live(cut), mtf_program_most_live(program));
    assert_int_equal(mtf_train_both(program, cut, text, SEED, STEPS), MTF_SAME_ALL);
    return kernels;
}

static int check_graph(const MtfGraph *graph, const char *text, int draws) {
    static const int devices[] = { 1, 2, 3, 4, 6 };
    static const int64_t caches[] = { 200, 1000, 3000 };
    g_autoptr(GRand) random = g_rand_new_with_seed(37);
    int kernels = 0;
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = draw % 2 == 0 ? mtf_random_rule_layout(random, graph, &mesh)
                                                    : mtf_random_free_layout(random, graph, &mesh);
        kernels += check_layout(graph, layout, caches[draw % 3], text);
    }
    return kernels;
}

static int check_model(const char *graph, MtfDtype dtype, int microbatches, int draws) {
    MtfTrainingPlan wanted = { .graph = graph,
                               .sizes = MTF_TINY_TRANSFORMER,
                               .dtype = dtype,
                               .mesh = "",
                               .rules = "",
                               .microbatches = microbatches };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
    return check_graph(plan->graph, "LICENSE", draws);
}

TEST(transformers_train_to_the_same_bits) {
    assert_true(check_model("transformer-small", MTF_F32, 1, 10) > 100);
    assert_true(check_model("gpt-small", MTF_F32, 1, 10) > 100);
    assert_true(check_model("gpt-small", MTF_F64, 1, 5) > 50);
    assert_true(check_model("gpt-small", MTF_BF16, 1, 10) > 100);
    assert_true(check_model("gpt-small", MTF_F32, 2, 5) > 50);
}

/* A row whose first dimension is dropped out, sums of it that others read, and one that stands
 * across the others. */
static const char strange[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 10, 'c': 3, 'd': 16}, 'inputs': [{'name':"
    " 'x', 'dims': ['b', 'c', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': ['b', 'c', 'd'], "
    "'feed': 'targets'}], 'variables': [{'name': 'v', 'dims': ['d'], 'init': 'ones'}, {'name': 'p',"
    " 'dims': ['c', 'd'], 'init': {'normal': 1}}], 'operations': [{'name': 'm', 'op': 'multiply', "
    "'inputs': ['x', 'v']}, {'name': 'h', 'op': 'dropout', 'inputs': ['m'], 'rate': 0.3}, {'name': "
    "'k', 'op': 'add', 'inputs': ['h', 'p']}, {'name': 's', 'op': 'reduce_sum', 'inputs': ['k'], "
    "'dims': ['d']}, {'name': 't', 'op': 'add', 'inputs': ['k', 's']}, {'name': 'o', 'op': "
    "'reduce_sum', 'inputs': ['t'], 'dims': ['c', 'd']}, {'name': 'e', 'op': 'transpose', "
    "'inputs': ['t'], 'dims': ['c', 'b', 'd']}, {'name': 'z', 'op': 'subtract', 'inputs': ['e', "
    "'y']}, {'name': 'q', 'op': 'square', 'inputs': ['z']}, {'name': 'r', 'op': 'multiply', "
    "'inputs': ['q', 'o']}, {'name': 'l', 'op': 'reduce_mean', 'inputs': ['r'], 'dims': []}], "
    "'loss': 'l', 'optimizer': {'kind': 'adam', 'rate': 0.05}}";

TEST(sums_that_others_read_stay_whole) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(strange);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    assert_true(check_graph(graph, NULL, 30) > 100);
}

/* The check is one: a row that goes on to the reader of a sum sees only part of it. */
TEST(a_row_that_is_too_long_is_noticed) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(strange);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfProgram) cut = mtf_lower(graph, layout);
    mtf_program_fuse(cut, 600);
    int first = 0;
    while (mtf_program_instruction(cut, first)->fused.kernels == 0)
        first++;
    MtfFusedGroup *fused = &mtf_program_instruction(cut, first)->fused;
    assert_int_equal(fused->kernels, 4); /* up to the sum over b and c */
    fused->kernels++;
    assert_int_equal(mtf_train_both(program, cut, NULL, SEED, STEPS), 0);
}
