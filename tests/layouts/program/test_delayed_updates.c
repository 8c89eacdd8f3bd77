// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/program/delayed_updates.h"
#include "layouts/program/lifetimes.h"
#include "layouts/program/passes.h"
#include "layouts/program/program_order.h"
#include "tests/support/cases/random_layout.h"

/* ---- The naive twin: looks through all that wait, at every instruction ------------------------- */

typedef struct {
    const MtfProgram *program;
    int64_t *live, most;
    GArray *order, *waiting, *since, *exchanges; /* int: instructions, and counts of collectives */
} Naive;

static const MtfInstruction *at(const Naive *naive, int index) {
    return mtf_program_instruction(naive->program, index);
}

static void place(Naive *naive, int index) {
    g_array_append_val(naive->order, index);
    if (mtf_instruction_is_collective(at(naive, index)))
        g_array_append_val(naive->exchanges, index);
}

static void place_first(Naive *naive) {
    place(naive, g_array_index(naive->waiting, int, 0));
    g_array_remove_index(naive->waiting, 0);
    g_array_remove_index(naive->since, 0);
}

static int needed_by(const Naive *naive, int index) {
    for (int w = (int)naive->waiting->len; w > 0; w--)
        if (mtf_instruction_depends(naive->program,
                                    at(naive, g_array_index(naive->waiting, int, w - 1)),
                                    at(naive, index)))
            return w;
    return 0;
}

static bool is_fresh(const Naive *naive, int index) {
    for (guint k = 0; k < MIN(naive->exchanges->len, MTF_UPDATES_BEHIND); k++) {
        int early = g_array_index(naive->exchanges, int, naive->exchanges->len - 1 - k);
        if (mtf_instruction_depends(naive->program, at(naive, early), at(naive, index)))
            return true;
    }
    return false;
}

static int64_t held_at(const Naive *naive, int index) {
    int64_t bytes = 0;
    for (guint w = 0; w < naive->waiting->len; w++) {
        const MtfInstruction *waiting = at(naive, g_array_index(naive->waiting, int, w));
        for (int k = 0; k < waiting->n_inputs; k++) {
            int storage = mtf_program_buffer(naive->program, waiting->inputs[k])->storage;
            const MtfBuffer *owner = mtf_program_buffer(naive->program, storage);
            bytes += owner->last < index ? mtf_buffer_aligned_bytes(owner) : 0;
        }
    }
    return bytes;
}

static void order_one(Naive *naive, int index) {
    int needed = needed_by(naive, index);
    const MtfGraph *graph = naive->program->graph;
    bool updates =
        mtf_graph_operation(graph, at(naive, index)->operation)->phase == MTF_PHASE_UPDATE;
    if (updates && (needed > 0 || is_fresh(naive, index))) {
        g_array_append_val(naive->waiting, index);
        g_array_append_val(naive->since, naive->exchanges->len);
        return;
    }
    for (; needed > 0; needed--)
        place_first(naive);
    while (
        naive->waiting->len > 0 &&
        ((int)naive->exchanges->len - g_array_index(naive->since, int, 0) >= MTF_UPDATES_BEHIND ||
         naive->live[index] + held_at(naive, index) > naive->most))
        place_first(naive);
    place(naive, index);
}

/* Orders a program whose buffers are aliased, as mtf_program_delay_updates says it does. */
static void delay_naively(MtfProgram *program) {
    int64_t most = mtf_program_most_live(program);
    Naive naive = { .program = program, .live = mtf_program_live(program), .most = most };
    naive.order = g_array_new(FALSE, FALSE, sizeof(int));
    naive.waiting = g_array_new(FALSE, FALSE, sizeof(int));
    naive.since = g_array_new(FALSE, FALSE, sizeof(int));
    naive.exchanges = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < mtf_program_length(program); i++)
        order_one(&naive, i);
    while (naive.waiting->len > 0)
        place_first(&naive);
    g_autofree MtfInstruction *written = g_memdup2(
        program->instructions->data, (gsize)mtf_program_length(program) * sizeof(MtfInstruction));
    mtf_program_reorder(program, (const int *)(const void *)naive.order->data);
    mtf_program_alias_buffers(program);
    for (int i = 0; mtf_program_most_live(program) > most && i < mtf_program_length(program); i++)
        g_array_index(program->instructions, MtfInstruction, i) = written[i];
    mtf_program_alias_buffers(program);
    g_array_unref(naive.order);
    g_array_unref(naive.waiting);
    g_array_unref(naive.since);
    g_array_unref(naive.exchanges);
    g_free(naive.live);
}

/* ---- Claims ------------------------------------------------------------------------------------- */

static void expect_twin(const MtfGraph *graph, const MtfLayout *layout, int *moved) {
    int alias = mtf_pass_find("alias-buffers", NULL);
    g_autoptr(MtfProgram) before = mtf_lower_until(graph, layout, alias);
    g_autoptr(MtfProgram) fast = mtf_lower_until(graph, layout, alias);
    g_autoptr(MtfProgram) slow = mtf_lower_until(graph, layout, alias);
    mtf_program_delay_updates(fast);
    delay_naively(slow);
    bool differs = false;
    for (int i = 0; i < mtf_program_length(fast); i++) {
        const MtfInstruction *a = mtf_program_instruction(fast, i),
                             *b = mtf_program_instruction(slow, i),
                             *c = mtf_program_instruction(before, i);
        assert_true(a->operation == b->operation && a->kind == b->kind &&
                    a->outputs[0] == b->outputs[0]);
        differs |= a->outputs[0] != c->outputs[0];
    }
    *moved += differs;
}

TEST(updates_wait_as_long_as_the_naive_twin_lets_them) {
    static const char *const paths[] = { "layouts/library/graphs/mlp.json",
                                         "layouts/library/graphs/transformer-small.json" };
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    int moved = 0;
    for (int i = 0; i < 60; i++) {
        g_autoptr(MtfGraph) forward = mtf_graph_load(paths[i % 4 == 0], NULL, NULL);
        g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
        MtfMesh mesh = mtf_random_mesh(random, 8);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, graph, &mesh);
        expect_twin(graph, layout, &moved);
    }
    assert_true(moved >= 20);
}
