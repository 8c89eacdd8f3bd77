// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders like Llama whose feed-forward layers are experts. */
#include "analyzer/models/types/type_parts.h"

static void check_experts(MtfConfig *c, const MtfStack *s) {
    if (s->experts > 0 && (s->experts_per_token < 1 || s->experts_per_token > s->experts))
        mtf_config_fail(c, "num_experts_per_tok", "a token must go to 1 to %d experts",
                        (int)s->experts);
}

static void read_mixtral(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 32000, 4096,   14336, 32,  32,   8,
                                           0,     131072, 1e-5,  1e6, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_window(c, s, 0);
    s->experts = mtf_config_size(c, "num_local_experts", 8);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 2);
    check_experts(c, s);
    s->d_expert = s->d_ff;
    s->renormalise = true;
    s->names.router = "block_sparse_moe.gate";
    s->names.expert_gate = "block_sparse_moe.experts.{}.w1";
    s->names.expert_down = "block_sparse_moe.experts.{}.w2";
    s->names.expert_up = "block_sparse_moe.experts.{}.w3";
    if (mtf_config_number(c, "router_jitter_noise", 0) != 0)
        mtf_config_leave_out(c, "router_jitter_noise", "noise of training alone");
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

/* Experts in Qwen's names. */
static void read_qwen_experts(MtfConfig *c, MtfStack *s, int64_t standard) {
    s->experts = mtf_config_integer(c, "num_experts", 0, standard);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 8);
    check_experts(c, s);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", false);
    s->names.router = "mlp.gate";
    s->names.expert_gate = "mlp.experts.{}.gate_proj";
    s->names.expert_up = "mlp.experts.{}.up_proj";
    s->names.expert_down = "mlp.experts.{}.down_proj";
}

static void read_qwen3_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        151936, 2048, 6144, 24, 32, 4, 0, 32768, 1e-6, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_qwen_window(c, s);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    read_qwen_experts(c, s, 128);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 768);
    s->sparse_step = mtf_config_size(c, "decoder_sparse_step", 1);
    read_dense_layers(c, s);
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
    s->qk_norm = false;
    s->wide_qk_norm = true;
    if (s->qkv_limit > 0)
        mtf_config_fail(c, "clip_qkv", "only null is supported");
    read_qwen_experts(c, s, 64);
    s->d_expert = s->d_ff;
}

const MtfArchitectureType mtf_expert_types[] = {
    { "mixtral", read_mixtral },
    { "qwen3_moe", read_qwen3_moe },
    { "olmoe", read_olmoe },
    { NULL, NULL },
};
