// SPDX-License-Identifier: GPL-3.0-or-later
/* Every legal rule layout of a tiny Transformer, on every mesh of the list, gives the losses of one
 * processor over all steps. */
#include "tests/support/cmocka.h"

#include "layouts/placement/rules.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/layout_losses.h"

/* The dimensions' axes as the digits of `number`; false when some tensor has two on one axis. */
static bool read_rules(const MtfGraph *graph, const MtfMesh *mesh, int64_t number,
                       MtfRules *rules) {
    for (int d = 0; d < rules->n_dims; d++) {
        rules->axis[d] = (int)(number % (mesh->n_axes + 1)) - 1;
        number /= mesh->n_axes + 1;
    }
    return mtf_rules_check(graph, mesh, rules, NULL);
}

static int check_mesh(const MtfLossModel *model, const char *mesh_text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_new(model->graph);
    int64_t assignments = 1;
    int checked = 0;
    for (int d = 0; d < rules->n_dims; d++)
        assignments *= mesh.n_axes + 1;
    for (int64_t number = 0; number < assignments; number++) {
        if (!read_rules(model->graph, &mesh, number, rules))
            continue;
        g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model->graph, &mesh, rules);
        mtf_check_layout_losses(model, layout, LAYOUT_STEPS, MTF_F32);
        checked++;
    }
    return checked;
}

TEST(every_rule_layout_gives_the_losses_of_one_processor) {
    static const char *const meshes[] = { "all:2", "all:3", "all:4",
                                          "all:6", "all:8", "rows:2;cols:2" };
    MtfLossModel model;
    mtf_loss_model_init(&model, "transformer-small", MTF_TINY_TRANSFORMER, MTF_F32);
    for (gsize i = 0; i < G_N_ELEMENTS(meshes); i++) {
        int checked = check_mesh(&model, meshes[i]);
        assert_true(checked > 1);
        print_message("%s: %d layouts\n", meshes[i], checked);
    }
    mtf_loss_model_clear(&model);
}
