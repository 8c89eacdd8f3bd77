// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/program/kernel_measures.h"
#include "tests/support/cases/training_case.h"
#include "tests/support/cases/training_plan.h"

static void assert_measures_equal(const MtfKernelMeasure *a, const MtfKernelMeasure *b) {
    assert_true(mtf_strategy_equal(&a->strategy, &b->strategy));
    assert_memory_equal(&a->flops, &b->flops, sizeof a->flops);
    assert_memory_equal(&a->multiply_adds, &b->multiply_adds, sizeof a->multiply_adds);
    assert_memory_equal(&a->products.calls, &b->products.calls, sizeof a->products.calls);
    assert_memory_equal(&a->products.m, &b->products.m, 3 * sizeof a->products.m);
    assert_int_equal(a->products.form, b->products.form);
    assert_memory_equal(&a->products.spared_bytes, &b->products.spared_bytes, 2 * sizeof(double));
    assert_memory_equal(&a->block_side, &b->block_side, sizeof a->block_side);
    assert_memory_equal(&a->row_length, &b->row_length, sizeof a->row_length);
    assert_int_equal(a->scratch_bytes, b->scratch_bytes);
}

/* Each operation beside itself worked out alone. Returns how many were taken from one like it. */
static int compare_with_alone(const MtfGraph *graph, const MtfLayout *layout) {
    int taken = 0;
    MtfKernelMeasures kept, alone;
    mtf_kernel_measures_init(&kept, graph, &layout->mesh, true);
    mtf_kernel_measures_init(&alone, graph, &layout->mesh, false);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfStrategy *strategy = &layout->operations[i];
        MtfAlikeOperations *a = mtf_kernel_measures_of(&kept, i);
        MtfAlikeOperations *b = mtf_kernel_measures_of(&alone, i);
        taken += a->operation != mtf_graph_operation(graph, i);
        assert_int_equal(a->iteration.n, b->iteration.n);
        for (int j = 0; j < a->iteration.n; j++) {
            assert_int_equal(a->iteration.index[j].dim, b->iteration.index[j].dim);
            assert_int_equal(a->iteration.index[j].size, b->iteration.index[j].size);
            assert_int_equal(a->iteration.index[j].reduced, b->iteration.index[j].reduced);
        }
        MtfKernelMeasure one = mtf_kernel_measures_find(&kept, a, i, strategy);
        MtfKernelMeasure other = mtf_kernel_measures_find(&alone, b, i, strategy);
        assert_measures_equal(&one, &other);
    }
    mtf_kernel_measures_clear(&kept);
    mtf_kernel_measures_clear(&alone);
    return taken;
}

TEST(kept_measures_are_those_of_each_alone) {
    static const char *const meshes[] = { "", "a:2", "a:2;b:3" };
    int taken = 0;
    for (guint32 seed = 0; seed < 200; seed++) {
        MtfTrainingCase c;
        if (!mtf_training_case_draw(&c, seed, meshes[seed % 3]))
            continue;
        taken += compare_with_alone(c.graph, c.layout);
        mtf_training_case_clear(&c);
    }
    assert_true(taken > 100);
}

static MtfPlan *gpt_plan(void) {
    MtfTrainingPlan wanted = { .graph = "gpt-small",
                               .sizes = "batch:8;length:16;memory_length:16;d_model:32;d_ff:64",
                               .dtype = MTF_BF16,
                               .mesh = "rows:2;cols:2",
                               .rules = "free" };
    g_autoptr(GError) error = NULL;
    MtfPlan *plan = mtf_training_plan(&wanted, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    return plan;
}

/* gpt-small has four layers: of those that repeat three quarters are like one before. */
TEST(repeated_layers_are_worked_out_once) {
    g_autoptr(MtfPlan) plan = gpt_plan();
    int taken = compare_with_alone(plan->graph, plan->layout);
    assert_true(taken > (int)plan->graph->operations->len / 2);
}

/* Whether two operations of the graph stand for each other. */
static bool are_alike(const MtfGraph *graph, const MtfMesh *mesh, int a, int b) {
    MtfKernelMeasures kept;
    mtf_kernel_measures_init(&kept, graph, mesh, true);
    bool alike = mtf_kernel_measures_of(&kept, a) == mtf_kernel_measures_of(&kept, b);
    mtf_kernel_measures_clear(&kept);
    return alike;
}

TEST(what_changes_the_work_makes_operations_differ) {
    g_autoptr(MtfPlan) plan = gpt_plan();
    const MtfMesh *mesh = &plan->layout->mesh;
    int a = mtf_graph_find_operation(plan->graph, "layer/0/x_mid");
    int b = mtf_graph_find_operation(plan->graph, "layer/1/x_mid");
    assert_true(a >= 0 && b >= 0 && are_alike(plan->graph, mesh, a, b));
    MtfOperation *other = mtf_graph_operation(plan->graph, b);
    other->attributes.factor += 1;
    assert_false(are_alike(plan->graph, mesh, a, b));
    other->attributes.factor -= 1;
    int second = other->inputs[1];
    other->inputs[1] = other->inputs[0];
    assert_false(are_alike(plan->graph, mesh, a, b));
    other->inputs[1] = second;
    mtf_graph_tensor(plan->graph, second)->dtype = MTF_F64;
    assert_false(are_alike(plan->graph, mesh, a, b));
}
