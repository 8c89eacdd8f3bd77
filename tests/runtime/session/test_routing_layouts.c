// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Ways of routing put together by chance: a published type with its shares, groups and shared experts, a
 * convention, a capacity, noise, losses, odd numbers. Under any layout the losses are those of one processor,
 * and what is drawn the same. `MTF_SEED=3 make test-long ONLY=routing_layouts` tries others. */
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "tests/support/draws.h"
#include "tests/support/losses/layout_losses.h"

#include <string.h>

#define STEPS 4
#define LAYOUTS 4
#define MODELS 64
#define SIZES                                                                       \
    "'vocab_size':256,'hidden_size':8,'intermediate_size':6,'num_hidden_layers':2," \
    "'num_attention_heads':2,'num_key_value_heads':2,'max_position_embeddings':"    \
    "32,"
#define WIDTH "'moe_intermediate_size':5,"
#define GROUPS                                                                                 \
    "'q_lora_rank':6,'kv_lora_rank':4,'qk_nope_head_dim':4,'qk_rope_head_dim':2,'v_head_dim':" \
    "4,'n_shared_experts':1,'first_k_dense_replace':0,'n_routed_experts':6,'n_group':3,"       \
    "'topk_group':2,"

/* With %d experts a token; those without a number of experts have six. */
static const char *const types[] = {
    "'mixtral'," SIZES "'num_local_experts':5",
    "'mixtral'," SIZES "'num_local_experts':6,'router_jitter_noise':0.1",
    "'qwen2_moe'," SIZES WIDTH "'num_experts':7,'shared_expert_intermediate_size':6",
    "'qwen3_moe'," SIZES WIDTH "'num_experts':6,'norm_topk_prob':true",
    "'deepseek'," SIZES WIDTH "'n_routed_experts':5,'n_shared_experts':2,'first_k_dense_replace':1",
    "'deepseek_v2'," SIZES WIDTH GROUPS "'topk_method':'group_limited_greedy'",
    "'deepseek_v3'," SIZES WIDTH GROUPS "'norm_topk_prob':true",
    "'granitemoe'," SIZES "'num_local_experts':6",
    "'gpt_oss'," SIZES "'num_local_experts':6,'layer_types':['full_attention','full_attention']",
    "'phimoe'," SIZES "'num_local_experts':5,'input_jitter_noise':0.1",
};

static const char *const conventions[] = { NULL, MTF_ROUTING_CONVENTIONS };

static double one_of(GRand *random, const double *values, int n) {
    return values[g_rand_int_range(random, 0, n)];
}

static MtfModelSettings draw_settings(GRand *random) {
    static const double factors[] = { 0, 0.4, 1, 1.7 }, losses[] = { 0, 0.02 };
    MtfModelSettings s = { .batch = g_rand_int_range(random, 1, 6),
                           .length = g_rand_int_range(random, 3, 10),
                           .choices = g_rand_int_range(random, 1, 5),
                           .optimizer = "adamw",
                           .schedule = "constant",
                           .rate = 0.01 };
    s.routing.convention = conventions[g_rand_int_range(random, 0, G_N_ELEMENTS(conventions))];
    s.routing.capacity_factor = one_of(random, factors, G_N_ELEMENTS(factors));
    s.routing.auxiliary = one_of(random, losses, G_N_ELEMENTS(losses));
    s.routing.z_loss = one_of(random, losses, G_N_ELEMENTS(losses));
    s.routing.jitter = 4 * one_of(random, losses, G_N_ELEMENTS(losses));
    return s;
}

static void check_model(GRand *random, int number) {
    g_autoptr(GError) error = NULL;
    MtfModelSettings s = draw_settings(random);
    const char *type = types[g_rand_int_range(random, 0, G_N_ELEMENTS(types))];
    if (strstr(type, "phimoe") != NULL)
        s.choices = 2;
    g_autofree char *config = g_strdup_printf("{'model_type':%s,'num_experts_per_tok':2}", type);
    MtfModelPreset preset = { .name = "routed",
                              .options = "",
                              .config = g_strdelimit(config, "'", '"') };
    const MtfModelFamily *family = mtf_model_family_find("mixtral", NULL);
    print_message("# %d: %s, %s, %d choices, factor %g, auxiliary %g, z %g, jitter %g\n", number,
                  config, s.routing.convention, (int)s.choices, s.routing.capacity_factor,
                  s.routing.auxiliary, s.routing.z_loss, s.routing.jitter);
    g_autoptr(MtfGraph) forward = mtf_model_build(family, &preset, &s, &error);
    if (forward == NULL)
        fail_msg("%s", error->message);
    mtf_graph_set_precision(forward, MTF_F64);
    MtfLossModel model = { .graph = mtf_training_graph(forward, NULL) };
    model.data = mtf_data_open(model.graph, "LICENSE", 11, &error);
    if (model.data == NULL)
        fail_msg("%s", error->message);
    mtf_losses_alone(&model, STEPS);
    mtf_check_layout_draws(&model, random, LAYOUTS, STEPS, MTF_F64);
    mtf_loss_model_clear(&model);
}

TEST(ways_of_routing_put_together_are_split_like_anything) {
    int models = mtf_tries_all() ? MODELS : 6;
    for (int i = 0; i < models; i++) {
        GRand *random = g_rand_new_with_seed(mtf_first_seed() + (guint32)i);
        check_model(random, i);
        g_rand_free(random);
    }
}
