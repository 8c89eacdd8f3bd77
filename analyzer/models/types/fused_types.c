// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders with norms of means and variances that keep queries, keys and values in one matrix, head after
 * head or one behind the other: GPT-NeoX, Falcon, BLOOM, MPT, GPT-BigCode. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

#define NEOX_NAMES                                                                                 \
    .layer = "gpt_neox.layers.%d.", .qkv = "attention.query_key_value", .o = "attention.dense",    \
    .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h", .before_attention = "input_layernorm", \
    .before_ffn = "post_attention_layernorm", .final_norm = "gpt_neox.final_layer_norm"

/* Each head has a key and a value of its own, side by side in one matrix. */
static void own_all_heads(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    if (s->kv_heads != s->heads)
        mtf_config_leave_out(c, "num_key_value_heads", "every head of this type has its own");
    s->kv_heads = s->heads;
    s->qkv_by_head = true;
    if (n->d_model != s->heads * s->d_kv)
        mtf_config_fail(c, "num_attention_heads", "hidden_size must be a multiple of it");
}

/* GPT-NeoX and Pythia: both parts look at norms of their own of one input, unless a config says otherwise. */
static void read_gpt_neox(MtfConfig *c, MtfArchitecture *n) {
    MtfTypeSizes standard = { 50432, 6144, 24576, 44, 64, 0, 0, 2048, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = mtf_config_number(c, "rotary_pct", 0.25);
    standard.rotary_base = mtf_config_number(c, "rotary_emb_base", 1e4);
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    s->gated = false;
    s->parallel = mtf_config_flag(c, "use_parallel_residual", true);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", true);
    s->ffn_bias = true;
    s->names = (MtfStackNames){ NEOX_NAMES };
    n->embedding = "gpt_neox.embed_in";
    n->head = "embed_out";
    n->dropout.embeddings = n->dropout.branches;
    own_all_heads(c, n);
}

/* Persimmon: norms of queries and keys; positions turn half of each head's features. */
static void read_persimmon(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        262144, 4096, 16384, 36, 64, 0, 0, 16384, 0, 25e3, false
    };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    mtf_type_without_gate(c, s, "relu2");
    mtf_type_all_biases(s, true);
    mtf_type_head_layer_norms(c, s, true);
    own_all_heads(c, n);
    s->names.qkv = "self_attn.query_key_value";
    s->names.o = "self_attn.dense";
    s->names.up = "mlp.dense_h_to_4h";
    s->names.down = "mlp.dense_4h_to_h";
    s->names.final_norm = "model.final_layernorm";
}

/* ---- Falcon ---------------------------------------------------------------------------------- */

#define FALCON_NAMES                                                                     \
    .layer = "transformer.h.%d.", .qkv = "self_attention.query_key_value",               \
    .o = "self_attention.dense", .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h", \
    .final_norm = "transformer.ln_f"

/* Which norms there are: one for both parts side by side, one for each, or one before each in turn. */
static void read_falcon_norms(MtfConfig *c, MtfStack *s, bool new_architecture) {
    s->parallel = mtf_config_flag(c, "parallel_attn", true) || new_architecture;
    int64_t norms = mtf_config_integer(c, "num_ln_in_parallel_attn", 1, new_architecture ? 2 : 1);
    if (new_architecture && norms == 2) {
        s->names.before_attention = "ln_attn";
        s->names.before_ffn = "ln_mlp";
    } else if (s->parallel) {
        s->names.before_both = "input_layernorm";
    } else {
        s->names.before_attention = "input_layernorm";
        s->names.before_ffn = "post_attention_layernorm";
    }
}

static void read_falcon(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 65024);
    n->d_model = mtf_config_size(c, "hidden_size", 4544);
    n->context = mtf_config_size(c, "max_position_embeddings", 2048);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "num_hidden_layers", 32);
    s->heads = mtf_config_size(c, "num_attention_heads", 71);
    bool new_architecture = mtf_config_flag(c, "new_decoder_architecture", false);
    bool one = mtf_config_flag(c, "multi_query", true) && !new_architecture;
    int64_t kv_heads = mtf_config_size(c, "num_kv_heads", s->heads);
    s->kv_heads = one ? 1 : new_architecture ? kv_heads : s->heads;
    s->qkv_by_head = !one;
    s->d_ff = mtf_config_size(c, "ffn_hidden_size", 4 * n->d_model);
    s->activation = mtf_config_activation(c, "activation", "gelu");
    mtf_type_divide_heads(c, n, "num_attention_heads");
    mtf_type_all_biases(s, mtf_config_flag(c, "bias", false));
    mtf_config_rotary(c, n, 1e4);
    s->alibi = s->coarse_alibi = mtf_config_flag(c, "alibi", false);
    if (s->alibi)
        s->rotary_base = 0;
    s->names = (MtfStackNames){ FALCON_NAMES };
    read_falcon_norms(c, s, new_architecture);
    n->embedding = "transformer.word_embeddings";
    n->head = "lm_head";
}

/* ---- BLOOM and MPT, whose scores fall with the distance ---------------------------------------- */

#define BLOOM_NAMES                                                                                \
    .layer = "h.%d.", .qkv = "self_attention.query_key_value", .o = "self_attention.dense",        \
    .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h", .before_attention = "input_layernorm", \
    .before_ffn = "post_attention_layernorm", .final_norm = "ln_f"

static void read_bloom(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 250880);
    n->d_model = mtf_config_size(c, "hidden_size", mtf_config_size(c, "n_embed", 64));
    n->context = mtf_config_size(c, "seq_length", 2048);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "n_layer", mtf_config_count(c, "num_hidden_layers", 2));
    int64_t heads = mtf_config_size(c, "num_attention_heads", 8);
    s->heads = s->kv_heads = mtf_config_size(c, "n_head", heads);
    s->d_ff = 4 * n->d_model;
    s->activation = "gelu";
    mtf_type_divide_heads(c, n, "n_head");
    s->alibi = s->qkv_by_head = true;
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ BLOOM_NAMES };
    n->embedding = "word_embeddings";
    n->decoder.names.embedding_norm = "word_embeddings_layernorm";
    n->head = "lm_head";
    if (mtf_config_flag(c, "apply_residual_connection_post_layernorm", false))
        mtf_config_fail(c, "apply_residual_connection_post_layernorm", "only false is supported");
    mtf_type_ignore(c,
                    (const char *const[]){ "attention_softmax_in_fp32", "bias_dropout_fusion",
                                           "masked_softmax_fusion", "offset_alibi", "skip_bias_add",
                                           "skip_bias_add_qkv", "slow_but_exact", NULL });
}

#define MPT_NAMES                                                                \
    .layer = "transformer.blocks.%d.", .qkv = "attn.Wqkv", .o = "attn.out_proj", \
    .up = "ffn.up_proj", .down = "ffn.down_proj", .before_attention = "norm_1",  \
    .before_ffn = "norm_2", .final_norm = "transformer.norm_f"

/* The object at `key` as a config of its own, whose keys are known or off. false: it is not there, or failed. */
static bool read_part(MtfConfig *c, const char *key, const char *const *known, MtfJson *object,
                      MtfConfig *inner) {
    MtfJson value;
    bool there = mtf_config_find(c, key, object);
    c->failed = c->failed || (there && !mtf_json_object(object, c->error));
    *inner = (MtfConfig){ object, c->whole, c->used, c->left_out, c->failed, c->error };
    for (bool more = there && !c->failed && mtf_json_first(object, &value); more && !c->failed;
         more = mtf_json_next(&value)) {
        bool off = cJSON_IsNull(value.node) || cJSON_IsFalse(value.node);
        if (!off && !g_strv_contains(known, mtf_json_key(&value)))
            c->failed = !mtf_json_fail(&value, c->error, "not supported for model type %s",
                                       mtf_config_word(c, "model_type", ""));
    }
    return there && !c->failed;
}

/* The object "attn_config". */
static void read_mpt_attention(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    static const char *const known[] = { "alibi",      "alibi_bias_max", "attn_impl",
                                         "attn_pdrop", "attn_type",      "clip_qkv",
                                         "model_type", "softmax_scale",  NULL };
    MtfJson object;
    MtfConfig inner;
    if (!read_part(c, "attn_config", known, &object, &inner))
        return;
    n->dropout.shares = mtf_config_number(&inner, "attn_pdrop", 0);
    s->alibi = mtf_config_flag(&inner, "alibi", true);
    mtf_type_qkv_limit(&inner, s);
    s->scale = mtf_config_number(&inner, "softmax_scale", s->scale);
    if (strcmp(mtf_config_word(&inner, "attn_type", "multihead_attention"),
               "multihead_attention") != 0)
        mtf_config_fail(&inner, "attn_type", "only \"multihead_attention\" is supported");
    if (mtf_config_number(&inner, "alibi_bias_max", 8) != 8)
        mtf_config_fail(&inner, "alibi_bias_max", "only 8 is supported");
    if (!s->alibi)
        mtf_config_fail(&inner, "alibi", "only true is supported");
    c->failed = inner.failed;
}

static void read_mpt(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50368);
    n->d_model = mtf_config_size(c, "d_model", 2048);
    n->context = mtf_config_size(c, "max_seq_len", 2048);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    n->norm_unbiased = true;
    s->layers = mtf_config_count(c, "n_layers", 24);
    s->heads = s->kv_heads = mtf_config_size(c, "n_heads", 16);
    s->d_ff = 4 * n->d_model;
    if (mtf_config_integer(c, "expansion_ratio", 1, 4) != 4)
        mtf_config_leave_out(c, "expansion_ratio", "transformers' layers are four times as wide");
    s->activation = "gelu_exact";
    mtf_type_divide_heads(c, n, "n_heads");
    s->alibi = true;
    read_mpt_attention(c, n);
    s->names = (MtfStackNames){ MPT_NAMES };
    n->embedding = "transformer.wte";
    n->head = "lm_head";
    if (!mtf_config_flag(c, "no_bias", true))
        mtf_config_fail(c, "no_bias", "only true is supported");
    if (mtf_config_number(c, "embedding_fraction", 1) != 1)
        mtf_config_fail(c, "embedding_fraction", "only 1 is supported");
    mtf_type_ignore(c, (const char *const[]){ "emb_pdrop", "init_config", "init_device",
                                              "learned_pos_emb", "norm_type", "verbose", NULL });
}

/* ---- DBRX -------------------------------------------------------------------------------------- */

#define DBRX_NAMES                                                                    \
    .layer = "transformer.blocks.%d.", .qkv = "norm_attn_norm.attn.Wqkv",             \
    .o = "norm_attn_norm.attn.out_proj", .before_attention = "norm_attn_norm.norm_1", \
    .before_ffn = "norm_attn_norm.norm_2", .final_norm = "transformer.norm_f",        \
    .router = "ffn.router.layer", .expert_gate = "ffn.experts.mlp.w1",                \
    .expert_up = "ffn.experts.mlp.v1", .expert_down = "ffn.experts.mlp.w2"

/* The object "attn_config"; what it says of rotary positions is the standard of those that newer files say outside. */
static void read_dbrx_attention(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    static const char *const known[] = { "attn_pdrop", "clip_qkv",   "kv_n_heads",
                                         "model_type", "rope_theta", NULL };
    MtfJson object;
    MtfConfig inner;
    double base = 1e4;
    s->kv_heads = 1;
    if (read_part(c, "attn_config", known, &object, &inner)) {
        n->dropout.shares = mtf_config_number(&inner, "attn_pdrop", 0);
        mtf_type_qkv_limit(&inner, s);
        s->kv_heads = mtf_config_size(&inner, "kv_n_heads", 1);
        base = mtf_config_number(&inner, "rope_theta", base);
        c->failed = inner.failed;
    }
    mtf_type_derived(c, "num_key_value_heads", s->kv_heads);
    if (!c->failed && s->heads % s->kv_heads != 0)
        mtf_config_fail(c, "attn_config", "kv_n_heads is expected to divide the %d heads",
                        (int)s->heads);
    mtf_config_rotary(c, n, base);
}

/* The object "ffn_config": shares of the chosen experts are divided by their sum, or not at all. */
static void read_dbrx_experts(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    static const char *const known[] = { "ffn_act_fn",
                                         "ffn_hidden_size",
                                         "hidden_size",
                                         "model_type",
                                         "moe_jitter_eps",
                                         "moe_loss_weight",
                                         "moe_num_experts",
                                         "moe_top_k",
                                         "moe_normalize_expert_weights",
                                         NULL };
    MtfJson object, function;
    MtfConfig inner;
    s->d_expert = 3584;
    s->experts = 4;
    s->experts_per_token = 1;
    s->renormalise = true;
    if (read_part(c, "ffn_config", known, &object, &inner)) {
        s->d_expert = mtf_config_size(&inner, "ffn_hidden_size", s->d_expert);
        s->experts = mtf_config_size(&inner, "moe_num_experts", s->experts);
        s->experts_per_token = mtf_config_count(&inner, "moe_top_k", s->experts_per_token);
        mtf_type_derived(&inner, "hidden_size", n->d_model);
        s->renormalise = !mtf_type_is_null(&inner, "moe_normalize_expert_weights");
        if (s->renormalise && mtf_config_number(&inner, "moe_normalize_expert_weights", 1) != 1)
            mtf_config_fail(&inner, "moe_normalize_expert_weights", "1 or null is expected");
        mtf_type_jitter(&inner, s, "moe_jitter_eps", false);
        if (mtf_config_find(&inner, "ffn_act_fn", &function)) {
            MtfConfig named = { &function, c->whole, c->used, c->left_out, inner.failed, c->error };
            named.failed = named.failed || !mtf_json_object(&function, c->error);
            s->activation = mtf_config_activation(&named, "name", "silu");
            inner.failed = named.failed;
        }
        c->failed = inner.failed;
    }
    if (!c->failed && s->experts_per_token > s->experts)
        mtf_config_fail(c, "ffn_config", "moe_top_k is expected to be 1 to %d", (int)s->experts);
    s->d_ff = s->d_expert;
}

/* Norms of means without biases, one matrix of q, k and v that a limit holds, and experts all of which are one matrix. */
static void read_dbrx(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 32000);
    n->d_model = mtf_config_size(c, "d_model", 2048);
    n->context = mtf_config_size(c, "max_seq_len", 2048);
    n->epsilon = 1e-5;
    n->tied = mtf_config_flag(c, "tie_word_embeddings", false);
    n->norm_unbiased = true;
    s->layers = mtf_config_count(c, "n_layers", 24);
    s->heads = mtf_config_size(c, "n_heads", 16);
    s->gated = s->experts_joined = true;
    s->activation = "silu";
    mtf_type_divide_heads(c, n, "n_heads");
    s->names = (MtfStackNames){ DBRX_NAMES };
    n->embedding = "transformer.wte";
    n->head = "lm_head";
    read_dbrx_attention(c, n);
    read_dbrx_experts(c, n);
    mtf_type_ignore(c, (const char *const[]){ "emb_pdrop", NULL });
}

/* ---- GPT-BigCode ------------------------------------------------------------------------------- */

#define BIGCODE_NAMES                                                                         \
    .layer = "transformer.h.%d.", .qkv = "attn.c_attn", .o = "attn.c_proj", .up = "mlp.c_fc", \
    .down = "mlp.c_proj", .before_attention = "ln_1", .before_ffn = "ln_2",                   \
    .final_norm = "transformer.ln_f", .positions = "transformer.wpe"

/* GPT-2 whose heads share one key and value (StarCoder). */
static void read_gpt_bigcode(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50257);
    n->d_model = mtf_config_size(c, "n_embd", 768);
    n->max_positions = n->context = mtf_config_size(c, "n_positions", 1024);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    s->layers = mtf_config_count(c, "n_layer", 12);
    s->heads = mtf_config_size(c, "n_head", 12);
    s->qkv_by_head = !mtf_config_flag(c, "multi_query", true);
    s->kv_heads = s->qkv_by_head ? s->heads : 1;
    mtf_type_derived(c, "num_key_value_heads", s->kv_heads);
    s->d_ff = mtf_config_size(c, "n_inner", 4 * n->d_model);
    s->activation = mtf_config_activation(c, "activation_function", "gelu_pytorch_tanh");
    mtf_type_divide_heads(c, n, "n_head");
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ BIGCODE_NAMES };
    n->embedding = "transformer.wte";
    n->head = "lm_head";
    mtf_type_drop(n, 0.1);
    if (!mtf_config_flag(c, "scale_attn_weights", true))
        mtf_config_fail(c, "scale_attn_weights", "only true is supported");
    mtf_type_ignore(c, (const char *const[]){ "attention_softmax_in_fp32", "inference_runner",
                                              "pad_key_length", "scale_attention_softmax_in_fp32",
                                              "validate_runner_input", NULL });
}

const MtfArchitectureType mtf_fused_types[] = {
    { "gpt_neox", read_gpt_neox },
    { "persimmon", read_persimmon },
    { "falcon", read_falcon },
    { "bloom", read_bloom },
    { "mpt", read_mpt },
    { "dbrx", read_dbrx },
    { "gpt_bigcode", read_gpt_bigcode },
    { NULL, NULL },
};
