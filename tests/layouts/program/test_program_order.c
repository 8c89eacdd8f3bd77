// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/stage_split.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program_order.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"

#include <string.h>

/* Numbers 0 to n - 1, of which a few or all change places. */
static int *random_order(GRand *random, int n) {
    int *order = g_new(int, n);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int swaps = g_rand_int_range(random, 0, 2 * n); swaps > 0; swaps--) {
        int a = g_rand_int_range(random, 0, n), b = g_rand_int_range(random, 0, n), was = order[a];
        order[a] = order[b];
        order[b] = was;
    }
    return order;
}

/* Instruction i is the one that the order names i-th; no other list is looked at. */
TEST(every_instruction_stands_where_the_order_puts_it) {
    g_autoptr(MtfGraph) forward = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int trial = 0; trial < 200; trial++) {
        MtfMesh mesh = mtf_random_mesh(random, 8);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, graph, &mesh);
        g_autoptr(MtfProgram) program = mtf_program_emit(graph, layout);
        int n = mtf_program_length(program);
        g_autofree int *order = random_order(random, n);
        g_autofree MtfInstruction *written =
            g_memdup2(program->instructions->data, (gsize)n * sizeof(MtfInstruction));
        mtf_program_reorder(program, order);
        for (int i = 0; i < n; i++)
            assert_memory_equal(mtf_program_instruction(program, i), &written[order[i]],
                                sizeof(MtfInstruction));
    }
}

/* A mean is kept beside two gradients that are clipped, in two micro-batches. */
static MtfGraph *clipped_graph(void) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'kept', 'dimensions': {'batch': 4, 'd': 2},"
        " 'inputs': [{'name': 'x', 'dims': ['batch', 'd'], 'feed': 'features'}],"
        " 'variables': [{'name': 'v', 'dims': ['d'], 'init': 'ones'}, {'name': 'w', 'dims': ['d'], 'init': 'ones'},"
        "               {'name': 'kept', 'dims': ['d'], 'init': 'zeros', 'frozen': true}],"
        " 'operations': [{'name': 'mean', 'op': 'reduce_mean', 'inputs': ['x'], 'dims': ['d']},"
        "                {'name': 'y', 'op': 'add', 'inputs': ['x', 'v', 'kept']},"
        "                {'name': 'z', 'op': 'multiply', 'inputs': ['y', 'w']},"
        "                {'name': 'zz', 'op': 'square', 'inputs': ['z']},"
        "                {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['zz'], 'dims': []}],"
        " 'updates': [{'variable': 'kept', 'value': 'mean'}], 'loss': 'loss',"
        " 'optimizer': {'kind': 'sgd', 'rate': 0.1, 'clip_norm': 1}}";
    MtfGraph *forward = mtf_test_graph(text);
    MtfGraph *graph = mtf_training_graph(forward, NULL);
    MtfDivision halves = { .microbatches = 2, .batch = mtf_graph_find_dimension(graph, "batch") };
    assert_true(mtf_graph_execute(graph, &halves, &(MtfKept){ 0 }, 1, NULL));
    mtf_graph_free(forward);
    return graph;
}

/* The first instruction that works out the tensor of that name. */
static int making(const MtfProgram *program, const char *tensor) {
    int operation =
        mtf_graph_tensor(program->graph, mtf_graph_find_tensor(program->graph, tensor))->producer;
    int i = 0;
    while (mtf_program_instruction(program, i)->operation != operation)
        i++;
    return i;
}

/* What clipping asks of all gradients stages tell each other before any updates a variable: if one of them waited with
 * its sum until it had kept its mean, all would wait for each other. */
TEST(no_variable_is_written_ahead_of_what_clipping_asks_for) {
    g_autoptr(MtfGraph) graph = clipped_graph();
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &(MtfMesh){ 0 });
    g_autoptr(MtfProgram) program = mtf_program_emit(graph, layout);
    int n = mtf_program_length(program), sum = making(program, "clip/square/v");
    int kept = making(program, "next/kept");
    assert_true(program->n_repeated <= sum && sum < kept);
    g_autofree int *order = g_new(int, n);
    for (int i = 0; i < n; i++)
        order[i] = i <= sum || i > kept ? i : i == sum + 1 ? kept : i - 1;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_order_check(program, order, &error));
    assert_non_null(strstr(error->message, "out of its part of the step"));
    for (int i = 0; i < n; i++)
        order[i] = i;
    assert_true(mtf_order_check(program, order, NULL));
}

/* Of the last stage of a graph whose batch is in two micro-batches, on two processors. */
static MtfProgram *program_of_stage(const MtfGraph *graph, MtfLayout **layout) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "batch:a", NULL, NULL);
    *layout = mtf_layout_from_rules(graph, &mesh, rules);
    return mtf_program_emit(graph, *layout);
}

/* The last instruction that writes a buffer of the tensor. */
static int last_writer(const MtfProgram *program, int tensor) {
    int last = -1;
    for (int i = 0; i < mtf_program_length(program); i++)
        for (int k = 0; k < mtf_program_instruction(program, i)->n_outputs; k++)
            if (mtf_program_buffer(program, mtf_program_instruction(program, i)->outputs[k])
                    ->tensor == tensor)
                last = i;
    return last;
}

/* Both stages read e, and the second sends its sum of e's gradient to the first, which waits for it before it agrees on
 * the step: ranks of the second would wait for ever if an order let them update w, which they agree on first. */
TEST(no_variable_is_written_ahead_of_a_sum_that_another_stage_waits_for) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'tied', 'dimensions': {'batch': 8, 'd': 2},"
        " 'inputs': [{'name': 'x', 'dims': ['batch', 'd'], 'feed': 'features'}],"
        " 'variables': [{'name': 'e', 'dims': ['d'], 'init': 'ones'}, {'name': 'w', 'dims': ['d'], 'init': 'ones'}],"
        " 'operations': [{'name': 'y', 'op': 'multiply', 'inputs': ['x', 'e'], 'stage': 1},"
        "                {'name': 'z', 'op': 'multiply', 'inputs': ['y', 'w'], 'stage': 2},"
        "                {'name': 't', 'op': 'multiply', 'inputs': ['z', 'e'], 'stage': 2},"
        "                {'name': 'tt', 'op': 'square', 'inputs': ['t'], 'stage': 2},"
        "                {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['tt'], 'dims': [], 'stage': 2}],"
        " 'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    g_autoptr(MtfGraph) whole = mtf_training_graph(forward, NULL);
    mtf_graph_complete_stages(whole);
    MtfDivision halves = { .microbatches = 2, .batch = mtf_graph_find_dimension(whole, "batch") };
    assert_true(mtf_graph_execute(whole, &halves, (MtfKept[2]){ { 0 } }, 2, NULL));
    g_autoptr(MtfStageSplit) split = mtf_stage_split(whole, NULL);
    g_autoptr(MtfLayout) layout = NULL;
    g_autoptr(MtfProgram) program = program_of_stage(split->graphs->pdata[1], &layout);
    int sent = 0, n = mtf_program_length(program);
    while (!mtf_graph_tensor(program->graph, sent)->is_sent ||
           last_writer(program, sent) < program->n_repeated)
        sent++;
    int sum = last_writer(program, sent),
        update = last_writer(program, mtf_graph_find_tensor(program->graph, "update/w"));
    assert_true(sum < update);
    g_autofree int *order = g_new(int, n);
    for (int i = 0; i < n; i++)
        order[i] = i < sum ? i : i + 1;
    order[n - 1] = sum;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_order_check(program, order, &error));
    assert_non_null(strstr(error->message, "out of its part of the step"));
}
