// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders with norms of means and variances, GPT-2 and those after it. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>

#define GPT2_NAMES                                                                                \
    .layer = "h.%d.", .qkv = "attn.c_attn", .o = "attn.c_proj", .up = "mlp.c_fc",                 \
    .down = "mlp.c_proj", .before_attention = "ln_1", .before_ffn = "ln_2", .final_norm = "ln_f", \
    .positions = "wpe"

static void refuse_gpt2_variants(MtfConfig *c) {
    if (!mtf_config_flag(c, "scale_attn_weights", true))
        mtf_config_fail(c, "scale_attn_weights",
                        "only scores divided by the root of a head's "
                        "width are supported (true)");
    if (mtf_config_flag(c, "scale_attn_by_inverse_layer_idx", false))
        mtf_config_fail(c, "scale_attn_by_inverse_layer_idx", "only false is supported");
    if (mtf_config_flag(c, "add_cross_attention", false))
        mtf_config_fail(c, "add_cross_attention", "only false is supported");
}

static void read_gpt2(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50257);
    n->d_model = mtf_config_size(c, "n_embd", 768);
    n->max_positions = n->context = mtf_config_size(c, "n_positions", 1024);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "n_layer", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "n_head", 12);
    s->d_ff = mtf_config_size(c, "n_inner", 4 * n->d_model);
    s->activation = mtf_config_activation(c, "activation_function", "gelu_new");
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, "n_head", "n_embd must be a multiple of n_head");
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
    s->causal = true;
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ GPT2_NAMES };
    n->in_first = true;
    n->embedding = "wte";
    n->head = "lm_head";
    refuse_gpt2_variants(c);
}

/* Norms of means and variances, with biases. */
static void layer_norms(MtfConfig *c, MtfArchitecture *n, const char *key) {
    n->rms = false;
    n->epsilon = mtf_config_number(c, key, 1e-5);
}

static void read_stablelm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 50304, 2560, 6912, 32, 32, 32, 0, 4096, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.25;
    mtf_type_llama(c, n, &standard);
    layer_norms(c, n, "layer_norm_eps");
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "use_qkv_bias", false);
    if (mtf_config_flag(c, "use_parallel_residual", false))
        mtf_config_fail(c, "use_parallel_residual", "only false is supported");
    if (mtf_config_flag(c, "qk_layernorm", false))
        mtf_config_fail(c, "qk_layernorm", "only false is supported");
}

static void read_starcoder2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 49152, 3072, 12288, 30, 24, 2, 0, 4096, 0, 1e4, true };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    layer_norms(c, n, "norm_epsilon");
    mtf_type_window(c, s, 0);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias =
        mtf_config_flag(c, "use_bias", true);
    s->gated = false;
    s->names.gate = NULL;
    s->names.up = "mlp.c_fc";
    s->names.down = "mlp.c_proj";
}

/* Phi 1, 1.5 and 2: both parts look at one norm of their input, everything has a bias. */
static void read_phi(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 51200, 2048, 8192, 24, 32, 0, 0, 2048, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    layer_norms(c, n, "layer_norm_eps");
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_new");
    s->gated = false;
    s->parallel = n->head_bias = true;
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->names.o = "self_attn.dense";
    s->names.gate = s->names.before_attention = s->names.before_ffn = NULL;
    s->names.up = "mlp.fc1";
    s->names.down = "mlp.fc2";
    s->names.before_both = "input_layernorm";
    s->names.final_norm = "model.final_layernorm";
    if (mtf_config_flag(c, "qk_layernorm", false))
        mtf_config_fail(c, "qk_layernorm", "only false is supported");
}

#define NEOX_NAMES                                                                                 \
    .layer = "gpt_neox.layers.%d.", .qkv = "attention.query_key_value", .o = "attention.dense",    \
    .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h", .before_attention = "input_layernorm", \
    .before_ffn = "post_attention_layernorm", .final_norm = "gpt_neox.final_layer_norm"

/* GPT-NeoX and Pythia: both parts look at norms of their own of one input, unless a config says otherwise. */
static void read_gpt_neox(MtfConfig *c, MtfArchitecture *n) {
    MtfTypeSizes standard = { 50432, 6144, 24576, 44, 64, 0, 0, 2048, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = mtf_config_number(c, "rotary_pct", 0.25);
    standard.rotary_base = mtf_config_number(c, "rotary_emb_base", 1e4);
    mtf_type_llama(c, n, &standard);
    layer_norms(c, n, "layer_norm_eps");
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    s->gated = false;
    s->parallel = mtf_config_flag(c, "use_parallel_residual", true);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", true);
    s->ffn_bias = s->qkv_by_head = true;
    s->names = (MtfStackNames){ NEOX_NAMES };
    n->embedding = "gpt_neox.embed_in";
    n->head = "embed_out";
    if (s->kv_heads != s->heads || n->d_model != s->heads * s->d_kv)
        mtf_config_fail(c, "num_attention_heads", "hidden_size must be a multiple of it");
}

const MtfArchitectureType mtf_plain_types[] = {
    { "gpt2", read_gpt2 }, { "stablelm", read_stablelm }, { "starcoder2", read_starcoder2 },
    { "phi", read_phi },   { "gpt_neox", read_gpt_neox }, { NULL, NULL },
};
