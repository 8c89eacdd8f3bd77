// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/free_setup.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* A product, a relu, a product, squared error, Adam: weights of 40 x 80 and 80 x 40. */
static const char *const perceptron =
    "{'meshtf_graph': 1, 'name': 'p', 'dimensions': {'batch': 64, 'in': 40, 'd_ff': 80, 'out': 40},"
    " 'inputs': [{'name': 'x', 'dims': ['batch', 'in'], 'feed': 'features'},"
    "  {'name': 'target', 'dims': ['batch', 'out'], 'feed': 'targets'}],"
    " 'variables': [{'name': 'w', 'dims': ['in', 'd_ff'], 'init': {'normal': 0.1}},"
    "  {'name': 'v', 'dims': ['d_ff', 'out'], 'init': {'normal': 0.1}}],"
    " 'operations': [{'name': 'h', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'd_ff']},"
    "  {'name': 'a', 'op': 'relu', 'inputs': ['h']},"
    "  {'name': 'y', 'op': 'einsum', 'inputs': ['a', 'v'], 'dims': ['batch', 'out']},"
    "  {'name': 'e', 'op': 'subtract', 'inputs': ['y', 'target']},"
    "  {'name': 's', 'op': 'square', 'inputs': ['e']},"
    "  {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['s'], 'dims': []}],"
    " 'loss': 'loss', 'optimizer': {'kind': 'adam', 'rate': 0.001}}";
#define WEIGHTS (2 * 40 * 80)

static void setup_init(MtfFreeSetup *setup, MtfGraph *forward, const char *mesh) {
    mtf_free_setup_init(setup, mtf_training_graph(forward, NULL), mesh);
    mtf_graph_free(forward);
}

static MtfLayout *layout_called(const MtfFreeSetup *setup, const char *name) {
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(setup->problem);
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        if (strcmp(standard->name, name) == 0)
            return mtf_free_problem_layout(setup->problem, standard->choice);
    }
    return NULL;
}

/* Elements in collectives of a kind, without scalars. */
static int64_t elements_in(const MtfProgram *program, MtfReshardKind kind) {
    int64_t elements = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_RESHARD && instruction->reshard.kind == kind &&
            instruction->payload_bytes > 4)
            elements += instruction->payload_bytes / 4;
    }
    return elements;
}

static int64_t bytes_of(const MtfProgram *program, MtfMemoryKind kind) {
    int64_t bytes = 0;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        bytes += buffer->persistent && buffer->storage == b && buffer->memory == kind
                     ? buffer->bytes
                     : 0;
    }
    return bytes;
}

TEST(data_parallelism_reduces_every_gradient_once) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "r:2;c:2");
    g_autoptr(MtfLayout) layout = layout_called(&setup, "data parallelism");
    assert_non_null(layout);
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLREDUCE), WEIGHTS);
    assert_int_equal(elements_in(program, MTF_RESHARD_REDUCE_SCATTER), 0);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLGATHER), 0);
    assert_int_equal(bytes_of(program, MTF_MEMORY_VARIABLE), 4 * WEIGHTS);
    assert_int_equal(bytes_of(program, MTF_MEMORY_OPTIMIZER), 2 * 4 * WEIGHTS);
    mtf_free_setup_clear(&setup);
}

/* Gradients are scattered, new weights gathered; m and v are in four pieces. */
TEST(zero_1_keeps_optimizer_state_in_pieces) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "r:4");
    g_autoptr(MtfLayout) layout = layout_called(&setup, "data parallelism, ZeRO-1");
    assert_non_null(layout);
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLREDUCE), 0);
    assert_int_equal(elements_in(program, MTF_RESHARD_REDUCE_SCATTER), WEIGHTS);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLGATHER), WEIGHTS);
    assert_int_equal(bytes_of(program, MTF_MEMORY_OPTIMIZER), 2 * 4 * WEIGHTS / 4);
    mtf_free_setup_clear(&setup);
}

/* Weights are in four pieces too: w is gathered forward, v forward and backward (the gradient of x
 * is not wanted, so w is not). */
TEST(zero_3_gathers_variables_where_they_are_used) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "r:4");
    g_autoptr(MtfLayout) layout = layout_called(&setup, "data parallelism, ZeRO-3");
    assert_non_null(layout);
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(elements_in(program, MTF_RESHARD_REDUCE_SCATTER), WEIGHTS);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLGATHER), WEIGHTS + WEIGHTS / 2);
    assert_int_equal(bytes_of(program, MTF_MEMORY_VARIABLE), WEIGHTS);
    mtf_free_setup_clear(&setup);
}

/* All four processors split d_ff: one reduction of y, 64 x 40, and none of gradients. */
TEST(megatron_splits_weights_and_reduces_activations) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "r:4");
    g_autoptr(MtfLayout) layout = layout_called(&setup, "Megatron");
    assert_non_null(layout);
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLREDUCE), 64 * 40);
    assert_int_equal(bytes_of(program, MTF_MEMORY_VARIABLE), WEIGHTS);
    assert_int_equal(bytes_of(program, MTF_MEMORY_OPTIMIZER), 2 * WEIGHTS);
    assert_null(layout_called(&setup, "Megatron, sequence parallel")); /* no positions */
    mtf_free_setup_clear(&setup);
}

static void check_prices(MtfGraph *forward, const char *mesh) {
    MtfFreeSetup setup;
    setup_init(&setup, forward, mesh);
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(setup.problem);
    assert_true(standards->len > 2);
    MtfInt128 last = 0;
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup.problem, standard->choice);
        assert_true(mtf_layout_check(setup.graph, layout, NULL));
        g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
        assert_true(standard->value.cost == mtf_price_program(&setup.pricer, program));
        assert_true(standard->value.cost >= last);
        last = standard->value.cost;
    }
    mtf_free_setup_clear(&setup);
}

TEST(values_are_prices_of_programs_and_ascend) {
    check_prices(mtf_test_graph(perceptron), "r:2;c:3");
    g_auto(GStrv) parts = g_strsplit(perceptron, "'variables': [", 2);
    g_autofree char *unread = /* nobody asks for u anywhere */
        g_strconcat(parts[0],
                    "'variables': [{'name': 'u', 'dims': ['in', 'd_ff'], 'init': 'ones'}, ",
                    parts[1], NULL);
    check_prices(mtf_test_graph(unread), "r:2;c:3");
    check_prices(mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, NULL),
                 "r:2;c:2");
    check_prices(mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, NULL),
                 "r:2;c:2;p:2");
}

/* Cubes of 8 on two levels, a batch of 2. */
TEST(networks_over_space_split_it_by_hand) {
    MtfFreeSetup setup;
    MtfModelSettings settings = mtf_model_settings(&mtf_model_unet.presets[0]);
    setup_init(&setup, mtf_model_unet.build(&settings, NULL), "r:2;c:2");
    static const struct {
        const char *name;
        int batch, space;                       /* axes that split the first convolution's */
    } cases[] = { { "data parallelism", 1, 0 }, /* a batch of 2 has room for one axis */
                  { "spatial parallelism", 0, 2 },
                  { "hybrid parallelism", 1, 1 } };
    int conv = 0, batch = mtf_graph_find_dimension(setup.graph, "batch");
    while (mtf_graph_operation(setup.graph, conv)->attributes.n_windows == 0)
        conv++;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfLayout) layout = layout_called(&setup, cases[i].name);
        if (layout == NULL)
            fail_msg("no %s", cases[i].name);
        assert_true(mtf_layout_check(setup.graph, layout, NULL));
        int of_batch = 0, of_space = 0;
        MtfIteration iteration;
        mtf_operation_iteration(setup.graph, conv, &iteration);
        for (int a = 0; a < 2; a++) {
            int index = layout->operations[conv].axis[a];
            int dim = index < 0 ? -1 : iteration.index[index].dim;
            of_batch += dim == batch;
            of_space += dim >= 0 && iteration.index[index].window != NULL;
        }
        assert_int_equal(of_batch, cases[i].batch);
        assert_int_equal(of_space, cases[i].space);
    }
    mtf_free_setup_clear(&setup);
}

/* Both weights are split along d_ff, one has it first. Pieces of pieces of d_ff would lie elsewhere than what
 * a reduce-scatter leaves: each would be exchanged before the update and after. */
TEST(pieces_of_split_weights_are_not_dealt_anew) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "data:2;model:2");
    int style = mtf_standard_style(MTF_STANDARD_TENSOR, MTF_STANDARD_ZERO_1, 2);
    g_autoptr(MtfStandardLayout) standard = mtf_standard_layout(setup.problem, style);
    assert_non_null(standard);
    g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup.problem, standard->choice);
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(elements_in(program, MTF_RESHARD_REDUCE_SCATTER), WEIGHTS / 2);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLGATHER), WEIGHTS / 2);
    assert_int_equal(elements_in(program, MTF_RESHARD_ALLTOALL), 0);
    assert_int_equal(elements_in(program, MTF_RESHARD_PERMUTE), 0);
    mtf_free_setup_clear(&setup);
}

/* The pieces over two axes are cut from one dimension: as on one axis of as many processors, each gradient is
 * scattered and each weight gathered once. */
TEST(pieces_over_several_axes_travel_at_once) {
    static const char *const meshes[] = { "r:4", "r:2;c:2" };
    for (gsize m = 0; m < G_N_ELEMENTS(meshes); m++) {
        MtfFreeSetup setup;
        setup_init(&setup, mtf_test_graph(perceptron), meshes[m]);
        g_autoptr(MtfLayout) layout = layout_called(&setup, "data parallelism, ZeRO-1");
        g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
        assert_int_equal(elements_in(program, MTF_RESHARD_REDUCE_SCATTER), WEIGHTS);
        assert_int_equal(elements_in(program, MTF_RESHARD_ALLGATHER), WEIGHTS);
        mtf_free_setup_clear(&setup);
    }
}

TEST(one_is_that_of_all_of_its_style) {
    MtfFreeSetup setup;
    setup_init(&setup, mtf_test_graph(perceptron), "data:2;model:2");
    int nodes = mtf_layout_problem_node_count(mtf_free_problem_get(setup.problem));
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(setup.problem);
    assert_true(standards->len > 5);
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *all = g_ptr_array_index(standards, i);
        g_autoptr(MtfStandardLayout) one = mtf_standard_layout(setup.problem, all->style);
        assert_non_null(one);
        assert_string_equal(one->name, all->name);
        assert_memory_equal(one->choice, all->choice, sizeof(int) * (size_t)nodes);
    }
    int spatial = mtf_standard_style(MTF_STANDARD_SPATIAL, MTF_STANDARD_REPLICATED, 2);
    assert_null(mtf_standard_layout(setup.problem, spatial));
    mtf_free_setup_clear(&setup);
}
