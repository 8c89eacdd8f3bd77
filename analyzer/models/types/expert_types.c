// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders like Llama whose feed-forward layers are experts. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

static void check_experts(MtfConfig *c, const MtfStack *s) {
    if (s->experts > 0 && (s->experts_per_token < 1 || s->experts_per_token > s->experts))
        mtf_config_fail(c, "num_experts_per_tok", "a token must go to 1 to %d experts",
                        (int)s->experts);
}

void mtf_type_mixtral_experts(MtfConfig *c, MtfStack *s, int64_t experts) {
    s->experts = mtf_config_size(c, "num_local_experts", experts);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 2);
    check_experts(c, s);
    s->d_expert = s->d_ff;
    s->renormalise = true;
    s->names.router = "block_sparse_moe.gate";
    s->names.expert_gate = "block_sparse_moe.experts.{}.w1";
    s->names.expert_down = "block_sparse_moe.experts.{}.w2";
    s->names.expert_up = "block_sparse_moe.experts.{}.w3";
}

static void read_mixtral(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 32000, 4096,   14336, 32,  32,   8,
                                           0,     131072, 1e-5,  1e6, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_window(c, s, 0);
    mtf_type_mixtral_experts(c, s, 8);
    mtf_type_jitter(c, s, "router_jitter_noise", true);
}

/* gpt-oss: sinks beside attention, a window in every second layer, experts with biases and a limited gate. */
static void read_gpt_oss(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 201088, 2880,   2880, 36,    64,   8,
                                           64,     131072, 1e-5, 1.5e5, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", true);
    mtf_type_window(c, s, 128);
    mtf_type_window_pattern(c, s, 2);
    mtf_type_layer_types(c, s);
    mtf_type_ignore(c, (const char *const[]){ "initial_context_length", NULL });
    int64_t choices = mtf_config_count(c, "experts_per_token", 4);
    s->experts = mtf_config_size(c, "num_local_experts", 128);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", choices);
    check_experts(c, s);
    s->d_expert = s->d_ff;
    s->renormalise = s->expert_bias = s->experts_in_first = s->experts_alternate = true;
    s->gate_limit = mtf_config_number(c, "swiglu_limit", 7);
    if (!(s->gate_limit > 0))
        mtf_config_fail(c, "swiglu_limit", "a number above 0 is expected");
    s->names.sinks = "self_attn.sinks";
    s->names.router = "mlp.router";
    s->names.expert_gate_up = "mlp.experts.gate_up_proj";
    s->names.expert_down = "mlp.experts.down_proj";
}

/* Phi-3.5-MoE: norms of means, and shares by SparseMixer, whose noise in training is not drawn here. */
static void read_phimoe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        32064, 4096, 6400, 32, 32, 8, 0, 131072, 1e-5, 1e6, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "rms_norm_eps");
    mtf_type_attention_bias(c, s);
    mtf_type_window(c, s, 0);
    n->head_bias = mtf_config_flag(c, "lm_head_bias", false);
    mtf_type_mixtral_experts(c, s, 16);
    s->renormalise = false;
    s->routing.margin = 2 * mtf_config_number(c, "router_jitter_noise", 0.01);
    if (!(s->routing.margin > 0) || s->experts_per_token != 2)
        mtf_config_fail(c, "router_jitter_noise", "a number above 0, and two experts of a token");
    mtf_type_jitter(c, s, "input_jitter_noise", true);
}

/* Layers that are named have no experts. */
static void read_dense_layers(MtfConfig *c, MtfStack *s) {
    MtfJson list, item;
    if (!mtf_config_find(c, "mlp_only_layers", &list))
        return;
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item)) {
        int64_t layer = 0;
        if (mtf_json_integer(&item, 0, 255, &layer, c->error))
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
        else
            c->failed = true;
    }
}

static void name_experts(MtfStack *s) {
    mtf_stack_part_experts(s);
    s->names.router = "mlp.gate";
}

/* As files of DeepSeek call those of all tokens. */
static void name_shared_experts(MtfStack *s) {
    s->names.shared_gate = "mlp.shared_experts.gate_proj";
    s->names.shared_up = "mlp.shared_experts.up_proj";
    s->names.shared_down = "mlp.shared_experts.down_proj";
}

void mtf_type_qwen_experts(MtfConfig *c, MtfStack *s, int64_t experts, int64_t choices) {
    int64_t written = mtf_config_integer(c, "num_local_experts", 0, experts);
    s->experts = mtf_config_integer(c, "num_experts", 0, written);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", choices);
    check_experts(c, s);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", false);
    name_experts(s);
}

void mtf_type_qwen_layers(MtfConfig *c, MtfStack *s, int64_t width) {
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", width);
    s->sparse_step = mtf_config_size(c, "decoder_sparse_step", 1);
    read_dense_layers(c, s);
}

static void read_qwen3_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        151936, 2048, 6144, 24, 32, 4, 0, 32768, 1e-6, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    /* The class since transformers 5 knows no layers without the window. */
    mtf_type_qwen_window(c, s, 0);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    mtf_type_qwen_experts(c, s, 128, 8);
    mtf_type_qwen_layers(c, s, 768);
}

/* The text part of Qwen 3 VL with experts, which stand in one tensor of all. */
static void read_qwen3_vl_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 2048,   5632, 24,  16,   16,
                                           0,      128000, 1e-6, 5e6, false };
    MtfStack *s = &n->decoder;
    s->rotary_sections = true;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    mtf_type_qwen_experts(c, s, 60, 4);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", true);
    mtf_type_qwen_layers(c, s, 1408);
    s->experts_in_first = true;
    s->names.expert_gate_up = "mlp.experts.gate_up_proj";
    s->names.expert_down = "mlp.experts.down_proj";
}

/* OLMoE: norms of all heads' queries and keys together, and experts in every layer. */
static void read_olmoe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        50304, 2048, 2048, 16, 16, 0, 0, 4096, 1e-5, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_qkv_limit(c, s);
    mtf_type_head_norms(s);
    s->head_norm = MTF_HEAD_NORM_WIDE;
    if (s->qkv_limit > 0)
        mtf_config_fail(c, "clip_qkv", "only null is supported");
    mtf_type_qwen_experts(c, s, 64, 8);
    s->d_expert = s->d_ff;
}

/* FlexOlmo: OLMoE whose norms stand behind its parts. */
static void read_flex_olmo(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        100352, 4096, 11008, 32, 32, 0, 0, 4096, 1e-6, 5e5, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_norm_behind(s, MTF_HEAD_NORM_WIDE);
    mtf_type_qwen_experts(c, s, 7, 5);
    s->d_expert = s->d_ff;
}

void mtf_type_qwen_shared(MtfConfig *c, MtfStack *s, int64_t width) {
    s->d_shared = mtf_config_size(c, "shared_expert_intermediate_size", width);
    s->names.shared_gate = "mlp.shared_expert.gate_proj";
    s->names.shared_up = "mlp.shared_expert.up_proj";
    s->names.shared_down = "mlp.shared_expert.down_proj";
    s->names.shared_share = "mlp.shared_expert_gate";
}

static void read_qwen2_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 2048,  5632, 24,  16,   16,
                                           0,      32768, 1e-6, 1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_qwen_window(c, s, 28);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", true);
    mtf_type_qwen_experts(c, s, 60, 4);
    mtf_type_qwen_layers(c, s, 1408);
    mtf_type_qwen_shared(c, s, 5632);
}

void mtf_type_first_dense(MtfStack *s, int64_t layers) {
    for (int64_t layer = 0; layer < MIN(layers, 256); layer++)
        s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
}

void mtf_type_deepseek_experts(MtfConfig *c, MtfStack *s, const MtfExpertSizes *standard) {
    s->experts = mtf_config_integer(c, "n_routed_experts", 0, standard->experts);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", standard->choices);
    check_experts(c, s);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", standard->width);
    s->d_shared = s->d_expert * mtf_config_count(c, "n_shared_experts", standard->shared);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", standard->renormalise);
    int64_t dense = mtf_config_integer(c, "first_k_dense_replace", 0, standard->dense);
    mtf_type_first_dense(s, dense);
    if (mtf_config_size(c, "moe_layer_freq", 1) != 1 || dense > 256)
        mtf_config_fail(c, dense > 256 ? "first_k_dense_replace" : "moe_layer_freq",
                        "experts in all layers but the first, at most 256, are expected");
    name_experts(s);
    name_shared_experts(s);
}

void mtf_type_check_scoring(MtfConfig *c, const char *expected) {
    if (strcmp(mtf_config_word(c, "scoring_func", expected), expected) != 0)
        mtf_config_fail(c, "scoring_func", "only %s is supported", expected);
}

/* DeepSeekMoE (the first, without compressed keys). Sizes that are left out: the published model's. */
static void read_deepseek(MtfConfig *c, MtfArchitecture *n) {
    static const MtfExpertSizes experts = { 64, 6, 1408, 2, 1, false };
    static const MtfTypeSizes standard = { 102400, 2048, 10944, 28,  16,   16,
                                           0,      4096, 1e-6,  1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_check_scoring(c, "softmax");
}

void mtf_type_expert_groups(MtfConfig *c, MtfStack *s, int64_t groups, int64_t choices) {
    MtfRouting *r = &s->routing;
    r->groups = mtf_config_integer(c, "n_group", 1, groups);
    r->group_choices = mtf_config_integer(c, "topk_group", 1, choices);
    int64_t members = s->experts / r->groups;
    if (s->experts % r->groups != 0 || (r->pairs && members < 2))
        mtf_config_fail(c, "n_group", "%d experts should lie in equal groups%s", (int)s->experts,
                        r->pairs ? " of two or more" : "");
    else if (r->group_choices > r->groups || s->experts_per_token > r->group_choices * members)
        mtf_config_fail(c, "topk_group", "%d groups should have the experts that a token goes to",
                        (int)r->group_choices);
}

/* Sigmoids of scores, compared with a number of each expert added, and groups by their two best (DeepSeek-V3). */
void mtf_type_sigmoid_groups(MtfConfig *c, MtfStack *s, int64_t groups, int64_t choices) {
    s->routing.sigmoid = s->routing.biased = s->routing.pairs = true;
    s->names.choice_bias = "mlp.gate.e_score_correction_bias";
    if (s->experts > 0)
        mtf_type_expert_groups(c, s, groups, choices);
}

void mtf_type_jitter(MtfConfig *c, MtfStack *s, const char *key, bool of_experts) {
    double jitter = mtf_config_number(c, key, 0);
    if (!c->failed && !(jitter >= 0 && jitter < 1))
        mtf_config_fail(c, key, "at least 0 and less than 1 is expected");
    if (jitter > 0)
        s->routing.jitter = jitter;
    s->routing.experts_read_jittered |= jitter > 0 && of_experts;
}

void mtf_type_expert_scale(MtfConfig *c, MtfStack *s, const char *key, double standard) {
    s->expert_scale = mtf_config_number(c, key, standard);
    if (!(s->expert_scale > 0))
        mtf_config_fail(c, key, "a factor above 0 is expected");
}

/* Whether a layer has experts, by a word of newer files or a flag of older ones. */
static bool is_sparse(MtfConfig *c, const MtfJson *item) {
    const char *word = cJSON_GetStringValue(item->node);
    bool known =
        cJSON_IsBool(item->node) || g_strcmp0(word, "dense") == 0 || g_strcmp0(word, "sparse") == 0;
    c->failed =
        c->failed || (!known && !mtf_json_fail(item, c->error, "dense or sparse is expected"));
    return cJSON_IsTrue(item->node) || g_strcmp0(word, "sparse") == 0;
}

void mtf_type_sparse_layers(MtfConfig *c, MtfStack *s, const char *key) {
    MtfJson list, item;
    int64_t layer = 0;
    if (!mtf_config_find(c, key, &list))
        return;
    memset(s->dense_layers, 0, sizeof s->dense_layers);
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    if (!c->failed && (mtf_json_length(&list) != s->layers || s->layers > 256))
        mtf_config_fail(c, key, "a word for each of at most 256 layers is expected");
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), layer++)
        if (!is_sparse(c, &item))
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
}

/* ---- V3's experts behind attention as Llama has it ---------------------------------------------- */

/* GLM 4.5 and 4.6, without the layers that foretell further tokens. */
static void read_glm4_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151552, 4096,   10944, 46,  96,   8,
                                           0,      131072, 1e-5,  1e4, false };
    static const MtfExpertSizes experts = { 128, 8, 1408, 1, 1, true };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "attention_bias", false);
    if (mtf_config_flag(c, "use_qk_norm", false))
        mtf_type_head_norms(s);
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_sigmoid_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 1);
    mtf_type_ignore(c, (const char *const[]){ "num_nextn_predict_layers", NULL });
}

/* dots.llm1: norms of queries and keys; layers from "max_window_layers" on have a window. */
static void read_dots1(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 152064, 4608, 10944, 62,  32,   32,
                                           0,      2048, 1e-6,  1e4, false };
    static const MtfExpertSizes experts = { 0, 0, 1408, 0, 0, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    mtf_type_window(c, s, 4096);
    s->window_from = mtf_config_integer(c, "max_window_layers", 0, 62);
    s->window_rule = s->window > 0 ? MTF_WINDOW_FROM : MTF_WINDOW_NONE;
    mtf_type_layer_types(c, s);
    mtf_type_deepseek_experts(c, s, &experts);
    mtf_type_sigmoid_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 1);
    mtf_type_ignore(c, (const char *const[]){ "scoring_func", "topk_method", NULL });
}

/* Hunyuan with experts: norms of queries and keys that have turned, and one expert of all tokens. */
static void read_hunyuan_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        290943, 4096, 11008, 32, 32, 0, 0, 2048, 1e-5, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->head_norm = MTF_HEAD_NORM_EACH;
    s->head_norm_last = true;
    s->names.q_norm = "self_attn.query_layernorm";
    s->names.k_norm = "self_attn.key_layernorm";
    s->experts = mtf_config_size(c, "num_experts", 1);
    s->experts_per_token = mtf_config_count(c, "moe_topk", 1);
    if (s->experts_per_token < 1 || s->experts_per_token > s->experts)
        mtf_config_fail(c, "moe_topk", "a token must go to 1 to %d experts", (int)s->experts);
    s->d_expert = s->d_shared = s->d_ff;
    s->renormalise = true;
    name_experts(s);
    s->names.router = "mlp.gate.wg";
    s->names.shared_gate = "mlp.shared_mlp.gate_proj";
    s->names.shared_up = "mlp.shared_mlp.up_proj";
    s->names.shared_down = "mlp.shared_mlp.down_proj";
    mtf_type_ignore(c, (const char *const[]){ "eod_token_id", "sep_token_id", NULL });
}

/* MiniMax M2: norms of all heads together, and V3's experts without groups in Mixtral's names. */
static void read_minimax_m2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 200064, 3072,   1536, 62,  48,   8,
                                           128,    196608, 1e-6, 5e6, false };
    MtfStack *s = &n->decoder;
    int64_t turned = mtf_config_integer(c, "rotary_dim", 0, 0);
    int64_t width = mtf_config_size(c, "head_dim", standard.head_dim);
    s->rotary_share = turned > 0 ? (double)turned / (double)width : 0;
    mtf_type_llama(c, n, &standard);
    mtf_type_head_norms(s);
    s->head_norm = MTF_HEAD_NORM_WIDE;
    mtf_type_mixtral_experts(c, s, 256);
    s->routing.sigmoid = s->routing.biased = true;
    s->names.choice_bias = "block_sparse_moe.e_score_correction_bias";
    mtf_type_check_scoring(c, "sigmoid");
    if (!mtf_config_flag(c, "use_qk_norm", true) ||
        strcmp(mtf_config_word(c, "qk_norm_type", "per_layer"), "per_layer") != 0)
        mtf_config_fail(c, "qk_norm_type", "norms of all heads together (per_layer) are expected");
    if (!mtf_config_flag(c, "use_routing_bias", true))
        mtf_config_fail(c, "use_routing_bias", "only true is supported");
    mtf_type_ignore(c, (const char *const[]){ "attn_type_list", "mtp_transformer_layers",
                                              "num_mtp_modules", "use_mtp", NULL });
    mtf_type_jitter(c, s, "router_jitter_noise", true);
}

/* AFMoE (Arcee's Trinity): gated heads, norms on both sides of each part; layers that see all do not turn, the others
 * have a window. */
static void read_afmoe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 200192, 2048,  6144, 32,  16,   0,
                                           128,    16384, 1e-5, 1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_head_norms(s);
    s->head_gate = true;
    s->names.head_gate = "self_attn.gate_proj";
    mtf_type_window(c, s, 1024);
    s->window_rule = MTF_WINDOW_LISTED;
    int64_t every = mtf_config_size(c, "global_attn_every_n_layers", 4);
    bool listed = mtf_config_find(c, "layer_types", &(MtfJson){ 0 });
    mtf_type_layer_types(c, s);
    for (int64_t layer = 0; layer < s->layers && !listed; layer++)
        if ((layer + 1) % every != 0)
            mtf_layers_add(s->window_layers, layer);
    mtf_type_straighten_whole(s);
    s->names.on_attention = "post_attention_layernorm";
    s->names.before_ffn = "pre_mlp_layernorm";
    s->names.on_ffn = "post_mlp_layernorm";
    mtf_type_qwen_experts(c, s, 64, 6);
    mtf_type_first_dense(s, mtf_config_integer(c, "num_dense_layers", 0, 1));
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 1408);
    s->d_shared = s->d_expert * mtf_config_count(c, "num_shared_experts", 2);
    s->renormalise = s->routing.sigmoid = s->routing.biased = true;
    mtf_type_expert_scale(c, s, "route_scale", 1);
    name_shared_experts(s);
    s->names.router = "mlp.router.gate";
    s->names.choice_bias = "mlp.expert_bias";
    if (mtf_config_flag(c, "mup_enabled", false))
        n->embedding_scale = sqrt((double)n->d_model);
    if (strcmp(mtf_config_word(c, "score_func", "sigmoid"), "sigmoid") != 0)
        mtf_config_fail(c, "score_func", "only sigmoid is supported");
    if (!mtf_config_flag(c, "route_norm", true))
        mtf_config_fail(c, "route_norm", "only true is supported");
    if (mtf_config_integer(c, "n_group", 0, 1) > 1)
        mtf_config_fail(c, "n_group", "experts in one group are expected");
    mtf_type_ignore(c, (const char *const[]){ "load_balance_coeff", "num_expert_groups",
                                              "num_limited_groups", "topk_group", "use_grouped_mm",
                                              NULL });
}

/* K-EXAONE: EXAONE 4's windows and norms of heads, norms in front of its parts, and V3's experts in one group. */
static void read_exaone_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 102400, 4096, 16384, 32,  32,   32,
                                           0,      2048, 1e-5,  1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_head_norms(s);
    mtf_type_exaone_windows(c, s);
    mtf_type_qwen_experts(c, s, 64, 8);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 1024);
    s->d_shared = s->d_expert * mtf_config_count(c, "num_shared_experts", 1);
    mtf_type_first_dense(s, mtf_config_integer(c, "first_k_dense_replace", 0, 1));
    mtf_type_sparse_layers(c, s, "is_moe_layer");
    mtf_type_sparse_layers(c, s, "mlp_layer_types");
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", true);
    mtf_type_sigmoid_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 2.5);
    name_shared_experts(s);
    s->names.choice_bias = "mlp.e_score_correction_bias";
    mtf_type_ignore(c, (const char *const[]){ "num_nextn_predict_layers", "scoring_func",
                                              "topk_method", NULL });
}

/* ---- Llama 4 ------------------------------------------------------------------------------------ */

/* A list of whole numbers at a key; returns whether it is there, and in `set` the layers it names (names), or
 * those whose number is 0 (flags). */
static bool read_layer_list(MtfConfig *c, const MtfStack *s, const char *key, bool names,
                            MtfLayerSet set) {
    MtfJson list, item;
    int64_t i = 0, number = 0;
    if (!mtf_config_find(c, key, &list))
        return false;
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    if (!c->failed && !names && mtf_json_length(&list) == 0)
        return false;
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), i++) {
        c->failed = !mtf_json_integer(&item, 0, names ? s->layers - 1 : 1, &number, c->error);
        if (!c->failed && (names || number == 0) && i < MTF_MOST_LAYERS)
            mtf_layers_add(set, names ? number : i);
    }
    return true;
}

/* Every fourth layer does not turn, and looks at all that there is; its queries grow with the text. The
 * others look at their chunk, and norm heads that have turned. */
static void read_llama4_attention(MtfConfig *c, MtfStack *s) {
    int64_t interval = mtf_config_size(c, "no_rope_layer_interval", 4);
    if (!read_layer_list(c, s, "no_rope_layers", false, s->straight_layers))
        for (int64_t layer = interval - 1; layer < s->layers; layer += interval)
            mtf_layers_add(s->straight_layers, layer);
    s->chunk = mtf_config_size(c, "attention_chunk_size", 8192);
    if (mtf_type_is_null(c, "attention_chunk_size"))
        s->chunk = 0;
    if (mtf_config_flag(c, "use_qk_norm", true)) {
        s->head_norm = MTF_HEAD_NORM_BARE;
        s->head_norm_last = true;
    }
    double growth = mtf_config_number(c, "attn_scale", 0.1);
    int64_t places = mtf_config_size(c, "floor_scale", 8192);
    if (mtf_config_flag(c, "attn_temperature_tuning", true)) {
        s->temper = growth;
        s->temper_places = places;
    }
}

/* Layers with experts, which read the sigmoid's share of a token; beside them what all tokens go through. */
static void read_llama4_experts(MtfConfig *c, MtfStack *s) {
    MtfLayerSet sparse = { 0 };
    int64_t step = mtf_config_size(c, "interleave_moe_layer_step", 1);
    if (!read_layer_list(c, s, "moe_layers", true, sparse))
        for (int64_t layer = step - 1; layer < s->layers; layer += step)
            mtf_layers_add(sparse, layer);
    for (int64_t layer = 0; layer < MIN(s->layers, 256); layer++)
        if (!mtf_layers_have(sparse, layer))
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
    s->experts = mtf_config_size(c, "num_local_experts", 16);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 1);
    check_experts(c, s);
    s->routing.sigmoid = s->gate_on_input = s->experts_in_first = true;
    s->d_expert = s->d_shared = s->d_ff;
    s->d_ff = mtf_config_size(c, "intermediate_size_mlp", 16384);
    s->names.router = "feed_forward.router";
    s->names.expert_gate_up = "feed_forward.experts.gate_up_proj";
    s->names.expert_down = "feed_forward.experts.down_proj";
    s->names.shared_gate = "feed_forward.shared_expert.gate_proj";
    s->names.shared_up = "feed_forward.shared_expert.up_proj";
    s->names.shared_down = "feed_forward.shared_expert.down_proj";
}

static void check_llama4_layers(MtfConfig *c, const MtfStack *s) {
    MtfJson list, item;
    const char *word = "";
    int64_t layer = 0;
    if (!mtf_config_find(c, "layer_types", &list) || c->failed)
        return;
    c->failed = !mtf_json_array(&list, c->error);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), layer++) {
        const char *is =
            mtf_layers_have(s->straight_layers, layer) ? "full_attention" : "chunked_attention";
        c->failed = !mtf_json_string(&item, &word, c->error);
        if (!c->failed && strcmp(word, is) != 0)
            c->failed =
                !mtf_json_fail(&item, c->error, "%s is expected, as other keys have it", is);
    }
}

static void read_llama4(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 202048, 5120,   8192, 48,  40,   8,
                                           128,    131072, 1e-5, 5e5, false };
    MtfStack *s = &n->decoder;
    s->rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->names.gate = "feed_forward.gate_proj";
    s->names.up = "feed_forward.up_proj";
    s->names.down = "feed_forward.down_proj";
    read_llama4_attention(c, s);
    check_llama4_layers(c, s);
    read_llama4_experts(c, s);
    if (s->layers > 256)
        mtf_config_fail(c, "num_hidden_layers", "at most 256 are supported");
    mtf_type_ignore(c, (const char *const[]){ "router_jitter_noise", NULL });
    mtf_type_ignore(c, (const char *const[]){ "for_llm_compressor", NULL });
}

/* ---- Others ------------------------------------------------------------------------------------- */

/* Granite's factors, and the matrices of all experts in one tensor. */
static void read_granitemoe(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    mtf_type_granite(c, n);
    s->experts = mtf_config_size(c, "num_local_experts", 8);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 2);
    check_experts(c, s);
    s->d_expert = s->d_ff;
    s->renormalise = true;
    s->names.router = "block_sparse_moe.router.layer";
    s->names.expert_gate_up = "block_sparse_moe.input_linear";
    s->names.expert_down = "block_sparse_moe.output_linear";
}

/* The same beside one expert of all tokens, which is none where its width is 0. */
static void read_granitemoeshared(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    read_granitemoe(c, n);
    s->d_shared = mtf_config_integer(c, "shared_intermediate_size", 0, 1024);
    s->names.shared_gate_up = "shared_mlp.input_linear";
    s->names.shared_down = "shared_mlp.output_linear";
}

/* Which layers of ERNIE 4.5 have experts: every n-th from a first one to a last one. */
static void read_ernie_layers(MtfConfig *c, MtfStack *s) {
    int64_t first = mtf_config_integer(c, "moe_layer_start_index", 0, 1);
    int64_t last = mtf_config_integer(c, "moe_layer_end_index", -1, -1);
    s->sparse_step = mtf_config_size(c, "moe_layer_interval", 1);
    for (int64_t layer = 0; layer < MIN(s->layers, 256); layer++)
        if (layer < first || (last >= 0 && layer > last))
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
    if (s->layers > 256)
        mtf_config_fail(c, "num_hidden_layers", "at most 256 are supported");
}

/* ERNIE 4.5 with experts: shares are compared with a number of each expert added. */
static void read_ernie4_5_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 103424, 2560,   12288, 28,  20,  4,
                                           0,      131072, 1e-5,  5e5, true };
    MtfStack *s = &n->decoder;
    s->rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    mtf_type_all_biases(s, mtf_config_flag(c, "use_bias", false));
    s->experts = mtf_config_size(c, "moe_num_experts", 64);
    s->experts_per_token = mtf_config_count(c, "moe_k", 6);
    if (s->experts_per_token < 1 || s->experts_per_token > s->experts)
        mtf_config_fail(c, "moe_k", "a token must go to 1 to %d experts", (int)s->experts);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 1536);
    s->d_shared = s->d_expert * mtf_config_count(c, "moe_num_shared_experts", 2);
    s->renormalise = s->routing.biased = s->choice_bias_is_row = true;
    read_ernie_layers(c, s);
    name_experts(s);
    name_shared_experts(s);
    s->names.choice_bias = "mlp.moe_statics.e_score_correction_bias";
    if (mtf_config_number(c, "moe_norm_min", 1e-12) > 1e-6)
        mtf_config_fail(c, "moe_norm_min", "at most 1e-6 is supported");
    if (s->ffn_bias)
        mtf_config_fail(c, "use_bias", "only false is supported");
}

void mtf_type_granite_shared(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    if (mtf_config_integer(c, "num_local_experts", 0, 8) > 0) {
        read_granitemoeshared(c, n);
        return;
    }
    mtf_type_granite(c, n);
    s->d_ff = mtf_config_size(c, "shared_intermediate_size", 1024);
    s->names.gate = s->names.up = NULL;
    s->names.gate_up = "shared_mlp.input_linear";
    s->names.down = "shared_mlp.output_linear";
    mtf_config_integer(c, "num_experts_per_tok", 0, 0);
}

const MtfArchitectureType mtf_expert_types[] = {
    { "mixtral", read_mixtral },
    { "gpt_oss", read_gpt_oss },
    { "phimoe", read_phimoe },
    { "llama4_text", read_llama4 },
    { "qwen2_moe", read_qwen2_moe },
    { "qwen3_moe", read_qwen3_moe },
    { "qwen3_vl_moe_text", read_qwen3_vl_moe },
    { "olmoe", read_olmoe },
    { "flex_olmo", read_flex_olmo },
    { "deepseek", read_deepseek },
    { "glm4_moe", read_glm4_moe },
    { "dots1", read_dots1 },
    { "hunyuan_v1_moe", read_hunyuan_moe },
    { "minimax_m2", read_minimax_m2 },
    { "afmoe", read_afmoe },
    { "exaone_moe", read_exaone_moe },
    { "granitemoe", read_granitemoe },
    { "granitemoeshared", read_granitemoeshared },
    { "ernie4_5_moe", read_ernie4_5_moe },
    { NULL, NULL },
};
