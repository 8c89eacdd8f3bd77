// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Layouts do not affect results: training under any layout gives the losses of one processor. */
#include "tests/support/cmocka.h"

#include "layouts/execution/key_parts.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/random_order.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/draws.h"
#include "tests/support/losses/layout_losses.h"

#include <math.h>
#include <string.h>

static const int devices[] = { 2, 3, 4, 6, 8 };

static void check_rule_layouts(const char *graph, const char *sizes, MtfDtype dtype, int draws) {
    MtfLossModel model;
    mtf_loss_model_init(&model, graph, sizes, dtype);
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = mtf_random_rule_layout(random, model.graph, &mesh);
        layout->execution.bucket_bytes = draw % 2 * 100000;
        mtf_check_layout_losses(&model, layout, LAYOUT_STEPS, dtype);
    }
    mtf_loss_model_clear(&model);
}

static void check_free_layouts(const char *graph, const char *sizes, MtfDtype dtype, int draws) {
    MtfLossModel model;
    mtf_loss_model_init(&model, graph, sizes, dtype);
    g_autoptr(GRand) random = g_rand_new_with_seed(6);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, model.graph, &mesh);
        layout->execution.bucket_bytes = draw % 2 * 100000;
        mtf_check_layout_losses(&model, layout, 3, dtype);
    }
    mtf_loss_model_clear(&model);
}

TEST(twenty_rule_layouts_of_a_transformer_give_its_losses_in_float32) {
    check_rule_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F32, 20);
}

TEST(twenty_rule_layouts_of_a_transformer_give_its_losses_in_float64) {
    check_rule_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F64, 20);
}

TEST(layouts_of_blockwise_attention_give_its_losses) {
    check_rule_layouts("gpt-small", MTF_TINY_TRANSFORMER, MTF_F32, mtf_draws(10));
    check_rule_layouts("gpt-small", MTF_TINY_TRANSFORMER, MTF_F64, mtf_draws(20));
    check_free_layouts("gpt-small", MTF_TINY_TRANSFORMER, MTF_F64, mtf_draws(20));
}

/* Attention that drops a quarter of its shares, forward and backward, in the place of attention. */
static void drop_shares(MtfLossModel *model) {
    double plain = model->losses[0];
    for (int i = 0; i < (int)model->graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(model->graph, i);
        if (!mtf_operation_row(op->kind)->random)
            continue;
        op->attributes.rate = 0.25;
        op->attributes.stream = g_strdup("dropped");
    }
    mtf_losses_alone(model, LAYOUT_STEPS);
    assert_true(model->losses[0] != plain);
}

/* Which shares are dropped depends on nothing that a layout says; also of memory in parts. */
TEST(layouts_of_attention_that_drops_shares_give_its_losses) {
    MtfLossModel model;
    mtf_loss_model_init(&model, "gpt-small", MTF_TINY_TRANSFORMER, MTF_F64);
    drop_shares(&model);
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    int draws = mtf_draws(30);
    for (int draw = 0; draw < draws; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 5]);
        if (draw == draws / 3 * 2)
            assert_true(mtf_graph_split_keys(model.graph, 4, NULL));
        g_autoptr(MtfLayout) layout = draw % 2 == 0
                                          ? mtf_random_rule_layout(random, model.graph, &mesh)
                                          : mtf_random_free_layout(random, model.graph, &mesh);
        mtf_check_layout_losses(&model, layout, 3, MTF_F64);
    }
    mtf_loss_model_clear(&model);
}

TEST(rule_layouts_of_an_mlp_give_its_losses) {
    check_rule_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F32, mtf_draws(40));
    check_rule_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F64, mtf_draws(40));
}

TEST(free_layouts_of_an_mlp_give_its_losses) {
    check_free_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F64, mtf_draws(400));
}

TEST(layouts_of_a_recurrent_network_give_its_losses) {
    static const char sizes[] = "batch:6;length:5;d_model:7;hidden:6;hidden_before:6;vocab:128";
    check_rule_layouts("lstm-small", sizes, MTF_F32, mtf_draws(10));
    check_rule_layouts("lstm-small", sizes, MTF_F64, mtf_draws(20));
    check_free_layouts("lstm-small", sizes, MTF_F64, mtf_draws(40));
    check_rule_layouts("lstm-small", sizes, MTF_BF16, mtf_draws(10));
    check_free_layouts("lstm-small", sizes, MTF_BF16, mtf_draws(20));
}

/* A vector that is multiplied until it moves no more, as often on all processors. */
TEST(layouts_of_a_while_loop_give_its_losses) {
    static const char graph[] = "tests/golden/while.json", sizes[] = "batch:6;d:6;e:6";
    check_rule_layouts(graph, sizes, MTF_F64, mtf_draws(10));
    check_free_layouts(graph, sizes, MTF_F64, mtf_draws(40));
}

TEST(free_layouts_of_a_transformer_give_its_losses) {
    check_free_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_F64, mtf_draws(20));
}

/* In float64, where rounding changes no choice; tokens are dropped. */
TEST(layouts_of_routed_tokens_give_their_losses) {
    check_rule_layouts("switch-small", MTF_TINY_SWITCH, MTF_F64, mtf_draws(20));
    check_free_layouts("switch-small", MTF_TINY_SWITCH, MTF_F64, mtf_draws(60));
}

/* Every order does the same additions, so losses agree to the last bit. */
TEST(other_orders_of_instructions_give_the_same_bits) {
    MtfLossModel model;
    double losses[2][LAYOUT_STEPS];
    mtf_loss_model_init(&model, "transformer-small", MTF_TINY_TRANSFORMER, MTF_F32);
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (int draw = 0; draw < 6; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 3]);
        g_autoptr(MtfLayout) layout = mtf_random_rule_layout(random, model.graph, &mesh);
        g_autoptr(MtfProgram) program = mtf_lower_as_written(model.graph, layout);
        mtf_layout_losses(&model, layout, 5, false, losses[0]);
        mtf_layout_set_order(layout, mtf_random_order(random, program),
                             mtf_program_length(program));
        mtf_layout_losses(&model, layout, 5, false, losses[1]);
        assert_memory_equal(losses[0], losses[1], 5 * sizeof(double));
    }
    mtf_loss_model_clear(&model);
}

/* What travels together is added up element by element as it is alone. */
TEST(joined_exchanges_give_the_same_bits) {
    static const char *const graphs[] = { "transformer-small", "gpt-small" };
    double losses[2][LAYOUT_STEPS];
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    int joined = 0;
    for (int draw = 0; draw < 12; draw++) {
        MtfLossModel model;
        mtf_loss_model_init(&model, graphs[draw % 2], MTF_TINY_TRANSFORMER, MTF_F32);
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 3]);
        g_autoptr(MtfLayout) layout = draw % 4 < 2
                                          ? mtf_random_rule_layout(random, model.graph, &mesh)
                                          : mtf_random_free_layout(random, model.graph, &mesh);
        g_autoptr(MtfProgram) alone = mtf_lower(model.graph, layout);
        mtf_layout_losses(&model, layout, 5, false, losses[0]);
        layout->execution.bucket_bytes = 1000 << draw;
        g_autoptr(MtfProgram) together = mtf_lower(model.graph, layout);
        mtf_layout_losses(&model, layout, 5, false, losses[1]);
        assert_memory_equal(losses[0], losses[1], 5 * sizeof(double));
        joined += mtf_program_length(alone) - mtf_program_length(together);
        mtf_loss_model_clear(&model);
    }
    assert_true(joined > 12);
}

TEST(one_wrong_element_on_one_processor_is_noticed) {
    MtfLossModel model;
    mtf_loss_model_init(&model, "mlp", "batch:10;features:7;hidden:12;targets:5", MTF_F32);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2", 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(model.graph, &mesh, "batch:rows", NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model.graph, &mesh, rules);
    double losses[LAYOUT_STEPS];
    mtf_layout_losses(&model, layout, LAYOUT_STEPS, true, losses);
    assert_int_equal(mtf_losses_differ(&model, losses, LAYOUT_STEPS, MTF_F32), 0);
    mtf_loss_model_clear(&model);
}

TEST(layouts_of_bfloat16_give_its_losses) {
    check_rule_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_BF16, mtf_draws(5));
    check_rule_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_BF16, mtf_draws(20));
    check_free_layouts("mlp", "batch:10;features:7;hidden:12;targets:5", MTF_BF16, mtf_draws(40));
    check_free_layouts("transformer-small", MTF_TINY_TRANSFORMER, MTF_BF16, mtf_draws(5));
}

/* Both fall alike; they end within the noise of their roundings. */
TEST(bfloat16_trains_as_float32_does) {
    MtfLossModel wide, narrow;
    mtf_loss_model_init(&wide, "transformer-small", MTF_TINY_TRANSFORMER, MTF_F32);
    mtf_loss_model_init(&narrow, "transformer-small", MTF_TINY_TRANSFORMER, MTF_BF16);
    assert_true(wide.losses[LAYOUT_STEPS - 1] < wide.losses[0] - 0.05);
    assert_true(memcmp(wide.losses, narrow.losses, sizeof wide.losses) != 0);
    for (int s = 0; s < LAYOUT_STEPS; s++)
        assert_true(fabs(narrow.losses[s] - wide.losses[s]) <= 0.01 * wide.losses[s]);
    mtf_loss_model_clear(&wide);
    mtf_loss_model_clear(&narrow);
}
