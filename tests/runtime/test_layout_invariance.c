// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Layouts do not affect results: training under any layout gives the losses of one processor. All
 * processors live in this process (tests/support/lockstep.h), with every buffer poisoned before it
 * is written. */
#include "tests/support/cmocka.h"

#include "layouts/rules.h"
#include "runtime/data.h"
#include "runtime/slice.h"
#include "tests/support/lockstep.h"
#include "tests/support/random_layout.h"
#include "tests/support/training_plan.h"

#include <math.h>

#define STEPS 50
#define SEED 11

typedef struct {
    MtfGraph *graph; /* a training graph */
    MtfData *data;
    double losses[STEPS]; /* on one processor */
} Model;

/* Makes the last processor's copy of the first variable wrong in one element. */
static void disturb(const MtfLockstep *lockstep, const MtfGraph *graph) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        if (mtf_graph_tensor(graph, t)->source != MTF_SOURCE_VARIABLE)
            continue;
        const MtfOperand *slice = mtf_worker_tensor(lockstep->workers[lockstep->n - 1], t);
        mtf_slice_set(slice, 0, mtf_slice_get(slice, 0) + 0.25);
        return;
    }
}

/* Trains under `layout`; fills `losses`. */
static void train(const Model *model, const MtfLayout *layout, int steps, bool disturbed,
                  double *losses) {
    g_autoptr(GError) error = NULL;
    assert_true(mtf_layout_check(model->graph, layout, NULL));
    g_autoptr(MtfProgram) program = mtf_lower(model->graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, SEED, &error);
    if (lockstep == NULL)
        fail_msg("%s", error->message);
    for (int r = 0; r < lockstep->n; r++)
        mtf_worker_initialise(lockstep->workers[r], SEED);
    if (disturbed)
        disturb(lockstep, model->graph);
    for (int s = 0; s < steps; s++) {
        for (int r = 0; r < lockstep->n; r++)
            assert_true(mtf_data_fill_inputs(model->data, lockstep->workers[r], s + 1, NULL));
        mtf_lockstep_step(lockstep, s + 1);
        losses[s] = mtf_lockstep_scalar(lockstep, model->graph->loss);
    }
}

static void model_init(Model *model, const char *graph, const char *sizes, MtfDtype dtype) {
    g_autoptr(GError) error = NULL;
    MtfTrainingPlan wanted = {
        .graph = graph, .sizes = sizes, .dtype = dtype, .mesh = "", .rules = ""
    };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    model->graph = g_steal_pointer(&plan->graph);
    const char *text = strcmp(graph, "mlp") == 0 ? NULL : "LICENSE";
    model->data = mtf_data_open(model->graph, text, SEED, &error);
    if (model->data == NULL)
        fail_msg("%s", error->message);
    train(model, plan->layout, STEPS, false, model->losses);
    assert_true(model->losses[STEPS - 1] < model->losses[0]);
}

static void model_clear(Model *model) {
    mtf_data_close(model->data);
    mtf_graph_free(model->graph);
}

static double tolerance(MtfDtype dtype) {
    return dtype == MTF_F64 ? 1e-10 : 1e-4;
}

/* The first step whose loss differs by more than the law allows, or -1. */
static int first_difference(const Model *model, const double *losses, int steps, MtfDtype dtype) {
    for (int s = 0; s < steps; s++)
        if (!(fabs(losses[s] - model->losses[s]) <= tolerance(dtype) * fabs(model->losses[s])))
            return s;
    return -1;
}

/* Fails, naming the layout, where a loss differs. */
static void compare(const Model *model, const MtfLayout *layout, int steps, MtfDtype dtype,
                    int draw) {
    double losses[STEPS];
    train(model, layout, steps, false, losses);
    int s = first_difference(model, losses, steps, dtype);
    if (s < 0)
        return;
    g_autofree char *mesh = mtf_mesh_format(&layout->mesh);
    fail_msg("draw %d, mesh %s, layout %s: loss %.17g of step %d is not %.17g", draw, mesh,
             layout->rules != NULL ? layout->rules : "free", losses[s], s + 1, model->losses[s]);
}

static const int devices[] = { 2, 3, 4, 6, 8 };

static void check_rule_layouts(const char *graph, const char *sizes, MtfDtype dtype, int draws) {
    Model model;
    model_init(&model, graph, sizes, dtype);
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = mtf_random_rule_layout(random, model.graph, &mesh);
        compare(&model, layout, STEPS, dtype, draw);
    }
    model_clear(&model);
}

static void check_free_layouts(const char *graph, const char *sizes, MtfDtype dtype, int draws) {
    Model model;
    model_init(&model, graph, sizes, dtype);
    g_autoptr(GRand) random = g_rand_new_with_seed(6);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, model.graph, &mesh);
        compare(&model, layout, 3, dtype, draw);
    }
    model_clear(&model);
}

static void twenty_rule_layouts_of_a_transformer_give_its_losses_in_float32(void **state) {
    (void)state;
    check_rule_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F32, 20);
}

static void twenty_rule_layouts_of_a_transformer_give_its_losses_in_float64(void **state) {
    (void)state;
    check_rule_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F64, 20);
}

static void rule_layouts_of_an_mlp_give_its_losses(void **state) {
    (void)state;
    check_rule_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F32, 40);
    check_rule_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F64, 40);
}

static void free_layouts_of_an_mlp_give_its_losses(void **state) {
    (void)state;
    check_free_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F64, 400);
}

static void free_layouts_of_a_transformer_give_its_losses(void **state) {
    (void)state;
    check_free_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F64, 20);
}

static void one_wrong_element_on_one_processor_is_noticed(void **state) {
    (void)state;
    Model model;
    model_init(&model, "mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F32);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(model.graph, &mesh, "batch:rows", NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model.graph, &mesh, rules);
    double losses[STEPS];
    train(&model, layout, STEPS, true, losses);
    assert_int_equal(first_difference(&model, losses, STEPS, MTF_F32), 0);
    model_clear(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wrong_element_on_one_processor_is_noticed),
        cmocka_unit_test(twenty_rule_layouts_of_a_transformer_give_its_losses_in_float32),
        cmocka_unit_test(twenty_rule_layouts_of_a_transformer_give_its_losses_in_float64),
        cmocka_unit_test(rule_layouts_of_an_mlp_give_its_losses),
        cmocka_unit_test(free_layouts_of_an_mlp_give_its_losses),
        cmocka_unit_test(free_layouts_of_a_transformer_give_its_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
