// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: products done twice
// seconds: 300
/* Waiting with the host changes no bit: under the same rules every loss and every variable is the same as
 * without. And any legal layout of what lies there runs. */
#include "tests/support/cmocka.h"

#include "layouts/execution/offload.h"
#include "layouts/execution/recompute.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/lockstep_training.h"

#define SEED 23
#define STEPS 3

static MtfLayout *layout_of(const MtfGraph *graph, const MtfMesh *mesh, const char *rules) {
    g_autoptr(MtfRules) parsed = mtf_rules_parse(graph, mesh, rules, NULL, NULL);
    return mtf_layout_from_rules(graph, mesh, parsed);
}

static MtfGraph *offloaded(const MtfGraph *graph, MtfRecompute recompute, MtfOffload offload) {
    MtfGraph *there = mtf_graph_copy(graph);
    assert_true(mtf_graph_recompute(there, &(MtfKept){ .recompute = recompute }, 1, NULL));
    assert_true(
        mtf_graph_offload(there, &(MtfKept){ .offload = offload, .offloaded_layers = 0 }, NULL));
    return there;
}

static void check_rules(const MtfPlan *plan, const MtfGraph *there, const char *rules) {
    const MtfMesh *mesh = &plan->layout->mesh;
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfLayout) same = layout_of(there, mesh, rules);
    if (!mtf_layout_check(there, same, &error))
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    g_autoptr(MtfProgram) program_there = mtf_lower(there, same);
    assert_int_equal(mtf_train_both(program, program_there, "LICENSE", SEED, STEPS), MTF_SAME_ALL);
}

static void check_transformer(MtfDtype dtype, int microbatches, const char *mesh,
                              const char *rules) {
    MtfTrainingPlan wanted = { .graph = "transformer-small",
                               .sizes = MTF_TINY_TRANSFORMER,
                               .dtype = dtype,
                               .mesh = mesh,
                               .rules = rules,
                               .microbatches = microbatches };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
    for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++)
        for (int offload = MTF_OFFLOAD_LAYERS; offload < MTF_OFFLOADS; offload++) {
            g_autoptr(MtfGraph) there =
                offloaded(plan->graph, (MtfRecompute)recompute, (MtfOffload)offload);
            check_rules(plan, there, rules);
        }
}

TEST(a_transformer_trains_to_the_same_bits) {
    check_transformer(MTF_F32, 1, "", "");
    check_transformer(MTF_F32, 3, "rows:2", "batch:rows");
    check_transformer(MTF_F32, 1, "rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols");
    check_transformer(MTF_BF16, 1, "rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols");
    check_transformer(MTF_F64, 2, "rows:3", "batch:rows");
}

/* Free layouts shard what lies with the host unevenly, too; the same layout twice gives the same bits, and
 * nothing is read that was not written (debug builds poison it). */
TEST(any_layout_of_what_lies_with_the_host_runs) {
    static const int devices[] = { 2, 3, 4, 6 };
    MtfTrainingPlan wanted = {
        .graph = "transformer-small", .sizes = MTF_TINY_TRANSFORMER, .mesh = "", .rules = ""
    };
    g_autoptr(GRand) random = g_rand_new_with_seed(31);
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
    g_autoptr(MtfGraph) there = offloaded(plan->graph, MTF_RECOMPUTE_NONE, MTF_OFFLOAD_ACTIVATIONS);
    for (gsize i = 0; i < G_N_ELEMENTS(devices); i++) {
        g_autoptr(GError) error = NULL;
        MtfMesh mesh = mtf_random_mesh(random, devices[i]);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, there, &mesh);
        if (!mtf_layout_check(there, layout, &error))
            fail_msg("%s", error->message);
        g_autoptr(MtfProgram) program = mtf_lower(there, layout);
        g_autoptr(MtfProgram) again = mtf_lower(there, layout);
        assert_int_equal(mtf_train_both(program, again, "LICENSE", SEED, 1), MTF_SAME_ALL);
    }
}
