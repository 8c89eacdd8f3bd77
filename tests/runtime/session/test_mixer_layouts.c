// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Published models that have something else in the place of attention give the losses of one processor under
 * any layout. */
#include "tests/support/cmocka.h"

#include "analyzer/import/model_import.h"
#include "analyzer/training/training_graph.h"
#include "tests/support/losses/layout_losses.h"

#include <string.h>

#define STEPS 3
#define DRAWS 15
#define SIZES                                                                                  \
    "'vocab_size': 256, 'hidden_size': 8, 'intermediate_size': 12, 'num_attention_heads': 4, " \
    "'num_key_value_heads': 2, "

static MtfGraph *training_graph(const char *config) {
    g_autoptr(GError) error = NULL;
    g_autofree char *json = g_strdelimit(g_strdup(config), "'", '"');
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("config.json", json, strlen(json), &error);
    MtfImport request = { .path = "config.json", .batch = 4, .length = 7, .optimizer = "adamw" };
    g_autoptr(MtfGraph) forward = NULL;
    if (document != NULL) {
        MtfJson root = mtf_json_root(document);
        forward = mtf_import_model(&request, &root, NULL, &error);
    }
    if (forward == NULL)
        fail_msg("%s", error->message);
    mtf_graph_set_precision(forward, MTF_F64);
    return mtf_training_graph(forward, NULL);
}

/* Under drawn layouts of two to eight processors, rule and free layouts in turn. */
static void losses_are_those_of_one_processor(const char *config) {
    g_autoptr(GError) error = NULL;
    MtfLossModel model = { .graph = training_graph(config) };
    model.data = mtf_data_open(model.graph, "LICENSE", 11, &error);
    if (model.data == NULL)
        fail_msg("%s", error->message);
    mtf_losses_alone(&model, STEPS);
    mtf_check_drawn_losses(&model, DRAWS, STEPS, MTF_F64);
    mtf_loss_model_clear(&model);
}

TEST(short_convolutions_are_split_like_anything) {
    losses_are_those_of_one_processor(
        "{'model_type': 'lfm2', " SIZES
        "'num_hidden_layers': 2, 'block_multiple_of': 4, 'conv_bias': true, "
        "'layer_types': ['conv', 'full_attention']}");
}

/* Ragged heads of values, two of which share one of keys; the loop's state is a matrix of each. */
TEST(states_of_the_delta_rule_are_split_like_anything) {
    losses_are_those_of_one_processor(
        "{'model_type': 'qwen3_next', " SIZES
        "'num_hidden_layers': 2, 'head_dim': 8, 'full_attention_interval': 2, "
        "'linear_num_key_heads': 3, 'linear_num_value_heads': 6, 'linear_key_head_dim': 4, 'linear_value_head_dim': 5, "
        "'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 6, 'shared_expert_intermediate_size': 5}");
}

TEST(states_of_selective_scans_are_split_like_anything) {
    losses_are_those_of_one_processor(
        "{'model_type': 'falcon_mamba', 'vocab_size': 256, 'hidden_size': 8, 'num_hidden_layers': 2, 'state_size': 5, "
        "'time_step_rank': 3, 'intermediate_size': 14}");
}

/* Two groups of three heads. */
TEST(states_of_heads_are_split_like_anything) {
    losses_are_those_of_one_processor(
        "{'model_type': 'granitemoehybrid', " SIZES
        "'num_hidden_layers': 2, 'layer_types': ['mamba', 'attention'], "
        "'mamba_n_heads': 6, 'mamba_d_head': 4, 'mamba_n_groups': 2, 'mamba_d_state': 5, 'mamba_expand': 3, "
        "'num_local_experts': 0, 'shared_intermediate_size': 10}");
}

/* Layers of one part each: two groups of heads with norms of their own, experts without gates, attention. */
TEST(layers_of_one_part_are_split_like_anything) {
    losses_are_those_of_one_processor(
        "{'model_type': 'nemotron_h', " SIZES
        "'hybrid_override_pattern': 'ME*', 'head_dim': 4, 'mamba_num_heads': 6, 'mamba_head_dim': 4, 'n_groups': 2, "
        "'ssm_state_size': 5, 'n_routed_experts': 4, 'moe_intermediate_size': 6, 'moe_shared_expert_intermediate_size': 5}");
}
