// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Memory in parts does not affect results: under any layout of the parts, ragged ones too, training gives
 * the losses of one processor whose memory is whole. */
#include "tests/support/cmocka.h"

#include "analyzer/rewriting/key_parts.h"
#include "layouts/placement/rules.h"
#include "tests/support/layout_losses.h"
#include "tests/support/random_layout.h"
#include "tests/support/training_plan.h"

static void split_model(MtfLossModel *model, MtfDtype dtype, int parts) {
    g_autoptr(GError) error = NULL;
    mtf_loss_model_init(model, "gpt-small", MTF_TINY_TRANSFORMER, dtype);
    if (!mtf_graph_split_keys(model->graph, parts, &error))
        fail_msg("%s", error->message);
}

static void check_rules(MtfDtype dtype, int parts, const char *mesh, const char *rules, int steps) {
    MtfLossModel model;
    MtfMesh axes;
    g_autoptr(GError) error = NULL;
    split_model(&model, dtype, parts);
    assert_true(mtf_mesh_parse(mesh, 0, &axes, NULL));
    g_autoptr(MtfRules) parsed = mtf_rules_parse(model.graph, &axes, rules, NULL, &error);
    if (parsed == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model.graph, &axes, parsed);
    mtf_check_layout_losses(&model, layout, steps, dtype);
    mtf_loss_model_clear(&model);
}

/* Three ranks have 1, 1 and 2 of four parts; memory whose positions three ranks split otherwise is
 * brought to its parts by an exchange. */
static void split_keys_give_the_losses_of_whole_ones(void **state) {
    (void)state;
    static const char split[] = "memory_length/parts:keys;memory_length:keys";
    check_rules(MTF_F64, 2, "keys:1", "", LAYOUT_STEPS);
    check_rules(MTF_F64, 2, "keys:2", split, LAYOUT_STEPS);
    check_rules(MTF_F64, 4, "keys:3", split, LAYOUT_STEPS);
    check_rules(MTF_F64, 4, "keys:4", split, LAYOUT_STEPS);
    check_rules(MTF_F64, 8, "keys:2;queries:2",
                "memory_length/parts:keys;memory_length:keys;length:queries", LAYOUT_STEPS);
    check_rules(MTF_F32, 4, "keys:2;all:2", "memory_length/parts:keys;memory_length:keys;heads:all",
                LAYOUT_STEPS);
    check_rules(MTF_BF16, 2, "keys:2", split, 3);
}

static void drawn_layouts_of_split_keys_give_the_losses_of_whole_ones(void **state) {
    (void)state;
    static const int devices[] = { 2, 3, 4, 6, 8 };
    MtfLossModel model;
    g_autoptr(GRand) random = g_rand_new_with_seed(12);
    split_model(&model, MTF_F64, 4);
    for (int draw = 0; draw < 30; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = draw % 2 == 0
                                          ? mtf_random_rule_layout(random, model.graph, &mesh)
                                          : mtf_random_free_layout(random, model.graph, &mesh);
        mtf_check_layout_losses(&model, layout, 3, MTF_F64);
    }
    mtf_loss_model_clear(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_keys_give_the_losses_of_whole_ones),
        cmocka_unit_test(drawn_layouts_of_split_keys_give_the_losses_of_whole_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
