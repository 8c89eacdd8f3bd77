// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Rings do not affect results: under any layout of their parts, ragged ones too, training gives the losses of one
 * processor whose attention is whole. */
#include "tests/support/cmocka.h"

#include "layouts/execution/key_ring.h"
#include "layouts/graph/operation_table.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/layout_losses.h"

#define SPLIT "length:ring;memory_length:ring;length/parts:ring;length/turned:ring"

static void ring_model(MtfLossModel *model, MtfDtype dtype, int parts) {
    g_autoptr(GError) error = NULL;
    mtf_loss_model_init(model, "gpt-small", MTF_TINY_TRANSFORMER, dtype);
    if (!mtf_graph_ring_keys(model->graph, parts, &error))
        fail_msg("%s", error->message);
}

static void check_rules(MtfDtype dtype, int parts, const char *mesh, const char *rules) {
    MtfLossModel model;
    ring_model(&model, dtype, parts);
    mtf_check_rule_losses(&model, mesh, rules, dtype);
    mtf_loss_model_clear(&model);
}

/* Three ranks have 1, 1 and 2 of four parts, and 2, 3 and 3 of eight; six have 1 and 2. */
TEST(rings_give_the_losses_of_whole_attention) {
    check_rules(MTF_F64, 2, "ring:1", "");
    check_rules(MTF_F64, 2, "ring:2", SPLIT);
    check_rules(MTF_F64, 8, "ring:2", SPLIT);
    check_rules(MTF_F64, 4, "ring:3", SPLIT);
    check_rules(MTF_F64, 8, "ring:3", SPLIT);
    check_rules(MTF_F64, 4, "ring:4", SPLIT);
    check_rules(MTF_F64, 8, "ring:6", SPLIT);
    check_rules(MTF_F64, 4, "ring:2;heads:2", SPLIT ";heads:heads");
    check_rules(MTF_F32, 4, "ring:4", SPLIT);
    check_rules(MTF_BF16, 4, "ring:4", SPLIT);
}

/* Has attention of a training graph drop shares, and trains it on one processor again. */
static void drop_shares(MtfLossModel *model) {
    double first = model->losses[0];
    for (int i = 0; i < (int)model->graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(model->graph, i);
        MtfProductsKind products = mtf_operation_row(op->kind)->products;
        if (products != MTF_PRODUCTS_ATTENTION && products != MTF_PRODUCTS_ATTENTION_GRAD)
            continue;
        op->attributes.rate = 0.3;
        op->attributes.stream = g_strdup("dropped");
    }
    mtf_losses_alone(model, LAYOUT_STEPS);
    assert_true(model->losses[0] != first);
}

/* What is dropped has the same places whether memory is whole or goes round. */
TEST(rings_drop_the_shares_of_whole_attention) {
    MtfLossModel model;
    mtf_loss_model_init(&model, "gpt-small", MTF_TINY_TRANSFORMER, MTF_F64);
    drop_shares(&model);
    assert_true(mtf_graph_ring_keys(model.graph, 4, NULL));
    mtf_check_rule_losses(&model, "ring:1", "", MTF_F64);
    mtf_check_rule_losses(&model, "ring:4", SPLIT, MTF_F64);
    mtf_check_rule_losses(&model, "ring:3", SPLIT, MTF_F64);
    mtf_check_rule_losses(&model, "ring:2;heads:2", SPLIT ";heads:heads", MTF_F64);
    mtf_loss_model_clear(&model);
}

TEST(drawn_layouts_of_rings_give_the_losses_of_whole_attention) {
    MtfLossModel model;
    ring_model(&model, MTF_F64, 4);
    mtf_check_drawn_losses(&model, 30, 3, MTF_F64);
    mtf_loss_model_clear(&model);
}
