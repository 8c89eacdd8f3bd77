// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/program/program_order.h"
#include "tests/support/cases/random_layout.h"

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
