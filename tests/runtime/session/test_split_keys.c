// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Memory in parts does not affect results: under any layout of the parts, ragged ones too, training gives
 * the losses of one processor whose memory is whole. */
#include "tests/support/cmocka.h"

#include "layouts/execution/key_parts.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/losses/layout_losses.h"

static void split_model(MtfLossModel *model, MtfDtype dtype, int parts) {
    g_autoptr(GError) error = NULL;
    mtf_loss_model_init(model, "gpt-small", MTF_TINY_TRANSFORMER, dtype);
    if (!mtf_graph_split_keys(model->graph, parts, &error))
        fail_msg("%s", error->message);
}

static void check_rules(MtfDtype dtype, int parts, const char *mesh, const char *rules) {
    MtfLossModel model;
    split_model(&model, dtype, parts);
    mtf_check_rule_losses(&model, mesh, rules, dtype);
    mtf_loss_model_clear(&model);
}

/* Three ranks have 1, 1 and 2 of four parts; memory whose positions three ranks split otherwise is
 * brought to its parts by an exchange. */
TEST(split_keys_give_the_losses_of_whole_ones) {
    static const char split[] = "memory_length/parts:keys;memory_length:keys";
    check_rules(MTF_F64, 2, "keys:1", "");
    check_rules(MTF_F64, 2, "keys:2", split);
    check_rules(MTF_F64, 4, "keys:3", split);
    check_rules(MTF_F64, 4, "keys:4", split);
    check_rules(MTF_F64, 8, "keys:2;queries:2",
                "memory_length/parts:keys;memory_length:keys;length:queries");
    check_rules(MTF_F32, 4, "keys:2;all:2",
                "memory_length/parts:keys;memory_length:keys;heads:all");
    check_rules(MTF_BF16, 2, "keys:2", split);
}

TEST(drawn_layouts_of_split_keys_give_the_losses_of_whole_ones) {
    MtfLossModel model;
    split_model(&model, MTF_F64, 4);
    mtf_check_drawn_losses(&model, 30, 3, MTF_F64);
    mtf_loss_model_clear(&model);
}
