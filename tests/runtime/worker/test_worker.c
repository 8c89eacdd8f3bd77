// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/slice.h"
#include "runtime/worker/worker.h"
#include "tests/support/cases/reshard_program.h"
#include "tests/support/cases/training_plan.h"

#include <math.h>

TEST(arenas_end_where_the_packing_ends) {
    MtfTrainingPlan wanted = {
        .graph = "mlp", .sizes = "", .mesh = "rows:2", .rules = "batch:rows"
    };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, NULL);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfWorker) worker = mtf_worker_new(program, arena, 1, 0, NULL);
    assert_non_null(worker);
    assert_int_equal(worker->memory.bytes, arena->bytes);
    int64_t end = 0;
    for (int b = 0; b < (int)program->buffers->len; b++)
        end = MAX(end, arena->offsets[b] + mtf_program_buffer(program, b)->bytes);
    assert_in_range(end, arena->bytes - MTF_ARENA_ALIGNMENT + 1, arena->bytes);
}

/* Other ranks map the arenas of ranks that they exchange with. */
TEST(only_arenas_of_ranks_that_exchange_are_files) {
    for (int ranks = 1; ranks <= 2; ranks++) {
        g_autofree char *mesh = g_strdup_printf("rows:%d", ranks);
        MtfTrainingPlan wanted = {
            .graph = "mlp", .sizes = "", .mesh = mesh, .rules = "batch:rows"
        };
        g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
        g_autoptr(MtfProgram) program = mtf_plan_lower(plan, NULL);
        g_autoptr(MtfArena) arena = mtf_arena_pack(program);
        g_autoptr(MtfWorker) worker = mtf_worker_new(program, arena, 0, 0, NULL);
        assert_int_equal(worker->memory.file >= 0, ranks > 1);
    }
}

/* In parts of several columns and of a single one. */
TEST(initial_values_do_not_depend_on_the_layout) {
    enum { PLANS = 3 };
    const MtfTrainingPlan wanted[PLANS] = {
        { .graph = "mlp", .sizes = "hidden:13", .mesh = "", .rules = "" },
        { .graph = "mlp", .sizes = "hidden:13", .mesh = "rows:3", .rules = "hidden:rows" },
        { .graph = "mlp", .sizes = "hidden:13", .mesh = "rows:13", .rules = "hidden:rows" },
    };
    MtfPlan *plans[PLANS];
    MtfProgram *programs[PLANS];
    MtfArena *arenas[PLANS];
    MtfWorker *workers[PLANS];
    for (int i = 0; i < PLANS; i++) {
        plans[i] = mtf_training_plan(&wanted[i], NULL);
        programs[i] = mtf_plan_lower(plans[i], NULL);
        arenas[i] = mtf_arena_pack(programs[i]);
        workers[i] = mtf_worker_new(programs[i], arenas[i], i, 0, NULL);
        mtf_worker_initialise(workers[i], 42);
    }
    int w1 = mtf_graph_find_tensor(plans[0]->graph, "w1");
    const MtfOperand *whole = mtf_worker_tensor(workers[0], w1);
    for (int k = 1; k < PLANS; k++) {
        const MtfOperand *part = mtf_worker_tensor(workers[k], w1);
        assert_in_range(mtf_slice_elements(part), 1, mtf_slice_elements(whole) - 1);
        for (int64_t i = 0; i < mtf_slice_elements(part); i++)
            assert_true(mtf_slice_get(part, i) ==
                        mtf_slice_get(whole, mtf_slice_global_index(part, i)));
    }
    for (int i = 0; i < PLANS; i++) {
        mtf_worker_free(workers[i]);
        mtf_arena_free(arenas[i]);
        mtf_program_free(programs[i]);
        mtf_plan_free(plans[i]);
    }
}

/* The value that is in the target before the move runs, after its poisoning. */
TEST(poison_is_not_a_number_and_covers_the_output) {
    MtfMesh mesh;
    int target;
    assert_true(mtf_mesh_parse("r:2", 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(1, (int64_t[]){ 5 }, MTF_F32);
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    MtfPlacement from = mtf_placement_replicated(), to = from;
    from.axis[0] = 0;
    g_autoptr(MtfProgram) program = mtf_reshard_program(graph, layout, &from, &to, &target);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfWorker) worker = mtf_worker_new(program, arena, 0, 0, NULL);
    worker->poison = true;
    mtf_worker_begin_move(worker, 0); /* an allgather: nothing is in place before the exchange */
    const MtfOperand *output = &worker->operands[target];
    for (int64_t i = 0; i < mtf_slice_elements(output); i++)
        assert_true(isnan(mtf_slice_get(output, i)));
    assert_true(mtf_slice_get(&worker->operands[0], 0) == 0);
}
