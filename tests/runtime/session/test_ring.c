// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Rings do not affect results: under any layout of their parts, ragged ones too, training gives the losses of one
 * processor whose attention is whole. */
#include "tests/support/cmocka.h"

#include "analyzer/rewriting/key_ring.h"
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
static void rings_give_the_losses_of_whole_attention(void **state) {
    (void)state;
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

static void drawn_layouts_of_rings_give_the_losses_of_whole_attention(void **state) {
    (void)state;
    MtfLossModel model;
    ring_model(&model, MTF_F64, 4);
    mtf_check_drawn_losses(&model, MTF_F64);
    mtf_loss_model_clear(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_give_the_losses_of_whole_attention),
        cmocka_unit_test(drawn_layouts_of_rings_give_the_losses_of_whole_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
