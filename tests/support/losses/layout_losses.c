// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/layout_losses.h"

#include "layouts/placement/rules.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/cmocka.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>

#define SEED 11
#define BUCKET_BYTES 100000

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

void mtf_layout_losses(const MtfLossModel *model, const MtfLayout *layout, int steps,
                       bool disturbed, double *losses) {
    g_autoptr(GError) error = NULL;
    assert_true(mtf_layout_check(model->graph, layout, NULL));
    g_autoptr(MtfProgram) program = mtf_lower(model->graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, SEED, &error);
    if (lockstep == NULL)
        fail_msg("%s", error->message);
    lockstep->data = model->data;
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

void mtf_losses_alone(MtfLossModel *model, int steps) {
    const MtfMesh alone = { 0 };
    g_autoptr(MtfLayout) whole = mtf_layout_new(model->graph, &alone);
    mtf_layout_losses(model, whole, steps, false, model->losses);
}

static bool reads_text(const MtfGraph *graph) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_INPUT &&
            mtf_graph_tensor(graph, t)->feed == MTF_FEED_TOKENS)
            return true;
    return false;
}

void mtf_loss_model_init(MtfLossModel *model, const char *graph, const char *sizes,
                         MtfDtype dtype) {
    g_autoptr(GError) error = NULL;
    MtfTrainingPlan wanted = {
        .graph = graph, .sizes = sizes, .dtype = dtype, .mesh = "", .rules = ""
    };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    model->graph = g_steal_pointer(&plan->graph);
    model->data =
        mtf_data_open(model->graph, reads_text(model->graph) ? "LICENSE" : NULL, SEED, &error);
    if (model->data == NULL)
        fail_msg("%s", error->message);
    mtf_losses_alone(model, LAYOUT_STEPS);
    assert_true(model->losses[LAYOUT_STEPS - 1] < model->losses[0]);
}

void mtf_loss_model_clear(MtfLossModel *model) {
    mtf_data_close(model->data);
    mtf_graph_free(model->graph);
}

static double tolerance(MtfDtype dtype) {
    return dtype == MTF_F64 ? 1e-10 : dtype == MTF_BF16 ? ldexp(1, -6) : 1e-4;
}

int mtf_losses_differ(const MtfLossModel *model, const double *losses, int steps, MtfDtype dtype) {
    for (int s = 0; s < steps; s++)
        if (!(fabs(losses[s] - model->losses[s]) <= tolerance(dtype) * fabs(model->losses[s])))
            return s;
    return -1;
}

static double largest_difference(const MtfLossModel *model, const double *losses, int steps) {
    double largest = 0;
    for (int s = 0; s < steps; s++)
        largest = fmax(largest, fabs(losses[s] - model->losses[s]) / fabs(model->losses[s]));
    return largest;
}

double mtf_check_layout_losses(const MtfLossModel *model, const MtfLayout *layout, int steps,
                               MtfDtype dtype) {
    double losses[LAYOUT_STEPS];
    mtf_layout_losses(model, layout, steps, false, losses);
    int s = mtf_losses_differ(model, losses, steps, dtype);
    if (s < 0)
        return largest_difference(model, losses, steps);
    g_autofree char *mesh = mtf_mesh_format(&layout->mesh);
    fail_msg(
        "mesh %s, layout %s: loss %.17g of step %d is not %.17g, and by step %d they are %.1e apart",
        mesh, layout->rules != NULL ? layout->rules : "free", losses[s], s + 1, model->losses[s],
        steps, largest_difference(model, losses, steps));
    return INFINITY;
}

double mtf_check_layout_draws(const MtfLossModel *model, GRand *random, int draws, int steps,
                              MtfDtype dtype) {
    double largest = 0;
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, 1 + draw / 2 % 8);
        g_autoptr(MtfLayout) layout = draw % 2 == 0
                                          ? mtf_random_rule_layout(random, model->graph, &mesh)
                                          : mtf_random_free_layout(random, model->graph, &mesh);
        layout->execution.bucket_bytes = 2 * draw < draws ? 0 : BUCKET_BYTES;
        largest = fmax(largest, mtf_check_layout_losses(model, layout, steps, dtype));
    }
    return largest;
}

void mtf_check_rule_losses(const MtfLossModel *model, const char *mesh, const char *rules,
                           MtfDtype dtype) {
    MtfMesh axes;
    g_autoptr(GError) error = NULL;
    assert_true(mtf_mesh_parse(mesh, 0, &axes, NULL));
    g_autoptr(MtfRules) parsed = mtf_rules_parse(model->graph, &axes, rules, NULL, &error);
    if (parsed == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model->graph, &axes, parsed);
    mtf_check_layout_losses(model, layout, dtype == MTF_BF16 ? 3 : LAYOUT_STEPS, dtype);
}

void mtf_check_drawn_losses(const MtfLossModel *model, int draws, int steps, MtfDtype dtype) {
    static const int devices[] = { 2, 3, 4, 6, 8 };
    g_autoptr(GRand) random = g_rand_new_with_seed(12);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = draw % 2 == 0
                                          ? mtf_random_rule_layout(random, model->graph, &mesh)
                                          : mtf_random_free_layout(random, model->graph, &mesh);
        mtf_check_layout_losses(model, layout, steps, dtype);
    }
}
