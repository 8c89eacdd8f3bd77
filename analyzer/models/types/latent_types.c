// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders with experts whose attention has keys and values from a few features (architecture_latent.c): DeepSeek V2 and V3, and
 * those after them. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

/* Scores are multiplied by the square of 1 + w ln(stretch) / 10 where positions are stretched (YaRN). */
static double stretched_scale(MtfConfig *c, const MtfStack *s) {
    MtfJson object, value;
    double weight = 0;
    bool there = mtf_json_find(c->root, "rope_parameters", &object) ||
                 mtf_json_find(c->root, "rope_scaling", &object);
    if (there && cJSON_IsObject(object.node) && mtf_json_find(&object, "mscale_all_dim", &value) &&
        cJSON_IsNumber(value.node))
        weight = value.node->valuedouble;
    double gain = s->rotary_stretch > 1 ? 1 + weight * log(s->rotary_stretch) / 10 : 1;
    return gain * gain;
}

/* Widths of attention whose keys and values come from a few features, where they are left out. */
typedef struct {
    int64_t turned, keys, queries, still, value;
} LatentSizes;

/* Keys and values from a few features of their own (architecture_latent.c). */
static void read_latent(MtfConfig *c, MtfArchitecture *n, const LatentSizes *standard) {
    MtfStack *s = &n->decoder;
    int64_t turned = standard->turned;
    int64_t still = mtf_config_size(c, "qk_nope_head_dim", standard->still);
    if (mtf_config_flag(c, "attention_bias", false))
        mtf_config_fail(c, "attention_bias", "only false is supported");
    if (s->d_kv != turned)
        mtf_config_fail(c, "head_dim", "qk_rope_head_dim, %d, is expected", (int)turned);
    s->d_latent = mtf_config_size(c, "kv_lora_rank", standard->keys);
    s->d_query_latent = mtf_type_is_null(c, "q_lora_rank")
                            ? 0
                            : mtf_config_integer(c, "q_lora_rank", 1, standard->queries);
    s->d_turned = turned;
    s->d_value = mtf_config_size(c, "v_head_dim", standard->value);
    s->d_kv = still + turned;
    mtf_type_derived(c, "qk_head_dim", s->d_kv);
    s->kv_heads = s->heads;
    s->rotary_adjacent = true;
    s->scale = stretched_scale(c, s) / sqrt((double)s->d_kv);
    s->names.k = s->names.v = NULL;
    s->names.kv_down = "self_attn.kv_a_proj_with_mqa";
    s->names.k_norm = "self_attn.kv_a_layernorm";
    s->names.kv_up = "self_attn.kv_b_proj";
    if (s->d_query_latent == 0)
        return;
    s->names.q = "self_attn.q_b_proj";
    s->names.q_down = "self_attn.q_a_proj";
    s->names.q_norm = "self_attn.q_a_layernorm";
}

/* DeepSeek-V2; sizes that are left out: those of V2-Lite, whose experts are chosen from all. */
static void read_deepseek_v2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfExpertSizes experts = { 64, 6, 1408, 2, 1, false };
    MtfStack *s = &n->decoder;
    int64_t turned = mtf_config_size(c, "qk_rope_head_dim", 64);
    const MtfTypeSizes standard = { 102400, 2048,   10944, 27,  16,   16,
                                    turned, 163840, 1e-6,  1e4, false };
    mtf_type_llama(c, n, &standard);
    read_latent(c, n, &(LatentSizes){ turned, 512, 0, 128, 128 });
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_check_scoring(c, "softmax");
    mtf_type_ignore(c, (const char *const[]){ "ep_size", NULL });
    const char *method = mtf_config_word(c, "topk_method", "greedy");
    if (strcmp(method, "group_limited_greedy") == 0)
        mtf_type_expert_groups(c, s, 8, 3);
    else if (strcmp(method, "greedy") == 0)
        mtf_type_ignore(c, (const char *const[]){ "n_group", "topk_group", NULL });
    else
        mtf_config_fail(c, "topk_method", "only greedy and group_limited_greedy are supported");
    s->expert_scale = mtf_config_number(c, "routed_scaling_factor", 1);
    if (!(s->expert_scale > 0) || (s->renormalise && s->expert_scale != 1))
        mtf_config_fail(c, "routed_scaling_factor",
                        "a factor above 0 is expected, and 1 with norm_topk_prob");
}

/* DeepSeek-V3 and R1 without the layers that foretell further tokens, which nothing else reads. */
static void read_deepseek_v3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfExpertSizes experts = { 256, 8, 2048, 1, 3, true };
    MtfStack *s = &n->decoder;
    int64_t turned = mtf_config_size(c, "qk_rope_head_dim", 64);
    const MtfTypeSizes standard = { 129280, 7168, 18432, 61,  128,  128,
                                    turned, 4096, 1e-6,  1e4, false };
    mtf_type_llama(c, n, &standard);
    read_latent(c, n, &(LatentSizes){ turned, 512, 1536, 128, 128 });
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_check_scoring(c, "sigmoid");
    if (strcmp(mtf_config_word(c, "topk_method", "noaux_tc"), "noaux_tc") != 0)
        mtf_config_fail(c, "topk_method", "only noaux_tc is supported");
    mtf_type_sigmoid_groups(c, s, 8, 4);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 2.5);
    mtf_type_ignore(c, (const char *const[]){ "ep_size", "num_nextn_predict_layers", NULL });
    if (!mtf_config_flag(c, "rope_interleave", true))
        mtf_config_fail(c, "rope_interleave", "only true is supported");
}

/* GLM 4.7 Flash: V3's attention and experts, in one group. */
static void read_glm4_moe_lite(MtfConfig *c, MtfArchitecture *n) {
    static const MtfExpertSizes experts = { 64, 4, 1536, 1, 1, true };
    MtfStack *s = &n->decoder;
    int64_t turned = mtf_config_size(c, "qk_rope_head_dim", 64);
    const MtfTypeSizes standard = { 154880, 2048,   10240, 47,  20,   20,
                                    turned, 202752, 1e-5,  1e4, false };
    mtf_type_llama(c, n, &standard);
    read_latent(c, n, &(LatentSizes){ turned, 512, 768, 192, 256 });
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_sparse_layers(c, s, "mlp_layer_types");
    mtf_type_sigmoid_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 1.8);
    if (!mtf_config_flag(c, "rope_interleave", true))
        mtf_config_fail(c, "rope_interleave", "only true is supported");
    mtf_type_ignore(c, (const char *const[]){ "ep_size", "num_nextn_predict_layers", "scoring_func",
                                              "topk_method", NULL });
}

/* Mistral Small 4: V3's attention, whose queries grow with the text, and experts by their softmax. */
static void read_mistral4(MtfConfig *c, MtfArchitecture *n) {
    static const MtfExpertSizes experts = { 128, 4, 2048, 1, 0, true };
    MtfStack *s = &n->decoder;
    int64_t turned = mtf_config_size(c, "qk_rope_head_dim", 64);
    int64_t still = mtf_config_size(c, "qk_nope_head_dim", 64);
    const MtfTypeSizes standard = { 131072,         4096,    12288, 36,  32,   32,
                                    still + turned, 1048576, 1e-6,  1e4, false };
    s->temper_all = true;
    s->rotary_share = (double)turned / (double)(still + turned);
    mtf_type_llama(c, n, &standard);
    mtf_type_derived(c, "head_dim", still + turned);
    if (floor(s->rotary_share * (double)s->d_kv) != (double)turned)
        mtf_config_fail(c, "rope_parameters", "qk_rope_head_dim, %d features of each head, turn",
                        (int)turned);
    s->d_kv = turned;
    s->rotary_share = 1;
    read_latent(c, n, &(LatentSizes){ turned, 256, 1024, still, 128 });
    mtf_type_deepseek_experts(c, s, &experts);
    s->routing.pairs = true;
    mtf_type_expert_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 1);
    s->experts_bare = true;
    s->names.expert_gate_up = "mlp.experts.gate_up_proj";
    s->names.expert_down = "mlp.experts.down_proj";
    if (!mtf_config_flag(c, "rope_interleave", true))
        mtf_config_fail(c, "rope_interleave", "only true is supported");
    if (s->temper_places == 0)
        mtf_config_fail(c, "rope_parameters", "original_max_position_embeddings is expected");
}

const MtfArchitectureType mtf_latent_types[] = {
    { "deepseek_v2", read_deepseek_v2 }, { "deepseek_v3", read_deepseek_v3 },
    { "kimi_k2", read_deepseek_v3 },     { "glm4_moe_lite", read_glm4_moe_lite },
    { "mistral4", read_mistral4 },       { NULL, NULL },
};
