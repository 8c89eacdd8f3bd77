// SPDX-License-Identifier: GPL-3.0-or-later
/* What each model type's config.json means. Standard values are those of transformers'
 * configuration classes (src/transformers/models/TYPE/configuration_TYPE.py). */
#include "analyzer/models/architecture_config.h"

#include <math.h>
#include <string.h>

/* ---- Llama and those that changed a little of it --------------------------------------------- */

#define LLAMA_NAMES                                                                      \
    .layer = "model.layers.%d.", .q = "self_attn.q_proj", .k = "self_attn.k_proj",       \
    .v = "self_attn.v_proj", .o = "self_attn.o_proj", .gate = "mlp.gate_proj",           \
    .up = "mlp.up_proj", .down = "mlp.down_proj", .before_attention = "input_layernorm", \
    .before_ffn = "post_attention_layernorm", .final_norm = "model.norm"

/* Standard values of a type; 0: the same as heads of queries, respectively hidden_size / heads. */
typedef struct {
    int64_t vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, max_positions;
    double epsilon, rotary_base;
    bool tied;
} Standard;

/* A number of the object that describes rotary positions. */
static double rotary_number(MtfConfig *c, const MtfJson *object, const char *key, double standard) {
    MtfJson value;
    double number = standard;
    if (!c->failed && mtf_json_find(object, key, &value) &&
        !mtf_json_number(&value, &number, c->error))
        c->failed = true;
    return number;
}

/* Llama 3.1: long waves are stretched by `factor`, short ones are left, those between in part. */
static void read_llama3_rotary(MtfConfig *c, const MtfJson *object, MtfStack *s) {
    s->rotary_stretch = rotary_number(c, object, "factor", 8);
    s->rotary_low = rotary_number(c, object, "low_freq_factor", 1);
    s->rotary_high = rotary_number(c, object, "high_freq_factor", 4);
    s->rotary_context = rotary_number(c, object, "original_max_position_embeddings", 8192);
}

/* The pair whose waves turn so often in the old context: d ln(C / 2 pi turns) / 2 ln(base). */
static double yarn_pair(const MtfStack *s, double features, double turns) {
    return features * log(s->rotary_context / (2 * G_PI * turns)) / (2 * log(s->rotary_base));
}

/* What cosines and sines are multiplied by, where the file does not say it itself. */
static double yarn_gain(MtfConfig *c, const MtfJson *object, double stretch) {
    double all = rotary_number(c, object, "mscale_all_dim", 0);
    double one = rotary_number(c, object, "mscale", 0);
    double wave = stretch > 1 ? log(stretch) / 10 : 0;
    double gain = one != 0 && all != 0 ? (one * wave + 1) / (all * wave + 1) : wave + 1;
    return rotary_number(c, object, "attention_factor", gain);
}

/* YaRN (Peng et al. 2023): as Llama 3.1, but what is left falls with the number of the pair. */
static void read_yarn_rotary(MtfConfig *c, const MtfJson *object, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    double features = floor(s->rotary_share * (double)s->d_kv);
    MtfJson value;
    bool whole = true;
    if (!c->failed && mtf_json_find(object, "truncate", &value) &&
        !mtf_json_boolean(&value, &whole, c->error))
        c->failed = true;
    s->rotary_stretch = rotary_number(c, object, "factor", 1);
    s->rotary_context =
        rotary_number(c, object, "original_max_position_embeddings", (double)n->context);
    s->rotary_gain = yarn_gain(c, object, s->rotary_stretch);
    double low = yarn_pair(s, features, rotary_number(c, object, "beta_fast", 32));
    double high = yarn_pair(s, features, rotary_number(c, object, "beta_slow", 1));
    s->rotary_low = fmax(whole ? floor(low) : low, 0);
    s->rotary_high = fmin(whole ? ceil(high) : high, features - 1);
    if (s->rotary_high <= s->rotary_low)
        s->rotary_high = s->rotary_low + 0.001;
    s->rotary_ramp = 1;
}

/* A list of one number a pair. */
static void read_divisors(MtfConfig *c, const MtfJson *object, const char *key, int pairs,
                          double *numbers) {
    MtfJson list, item;
    int n = 0;
    if (c->failed)
        return;
    c->failed = !mtf_json_get(object, key, &list, c->error) || !mtf_json_array(&list, c->error);
    if (!c->failed && (mtf_json_length(&list) != pairs || pairs > MTF_MOST_PAIRS))
        c->failed =
            !mtf_json_fail(&list, c->error, "%d numbers are expected, one a pair, at most %d",
                           pairs, MTF_MOST_PAIRS);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), n++) {
        c->failed = !mtf_json_number(&item, &numbers[n], c->error);
        if (!c->failed && !(numbers[n] > 0))
            c->failed = !mtf_json_fail(&item, c->error, "a number above 0 is expected");
    }
}

/* LongRoPE (Ding et al. 2024): every pair is stretched by a number of its own, by another one in texts
 * longer than the model was first made for. */
static void read_longrope_rotary(MtfConfig *c, const MtfJson *object, MtfArchitecture *n) {
    static const char key[] = "original_max_position_embeddings";
    MtfStack *s = &n->decoder;
    double old = n->old_context > 0 ? (double)n->old_context : (double)n->context;
    old = mtf_config_number(c, key, rotary_number(c, object, key, old));
    bool known = n->old_context > 0 || mtf_json_find(c->root, key, &(MtfJson){ 0 }) ||
                 mtf_json_find(object, key, &(MtfJson){ 0 });
    double times = known ? (double)n->context / old : rotary_number(c, object, "factor", 1);
    double gain = times > 1 ? sqrt(1 + log(times) / log(old)) : 1;
    if (!(old > 1))
        mtf_config_fail(c, key, "a context above 1 is expected");
    s->rotary_context = old;
    s->rotary_gain = rotary_number(c, object, "attention_factor", gain);
    s->rotary_divided = (int)floor(s->rotary_share * (double)s->d_kv) / 2;
    read_divisors(c, object, "short_factor", s->rotary_divided, s->rotary_short);
    read_divisors(c, object, "long_factor", s->rotary_divided, s->rotary_long);
}

/* "rope_scaling" of old files, "rope_parameters" of new ones. */
static void read_rotary_object(MtfConfig *c, const char *key, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfJson object, value;
    const char *type = "default";
    if (!mtf_config_find(c, key, &object))
        return;
    if (!mtf_json_object(&object, c->error) ||
        ((mtf_json_find(&object, "rope_type", &value) || mtf_json_find(&object, "type", &value)) &&
         !mtf_json_string(&value, &type, c->error))) {
        c->failed = true;
        return;
    }
    s->rotary_base = rotary_number(c, &object, "rope_theta", s->rotary_base);
    s->rotary_share = rotary_number(c, &object, "partial_rotary_factor", s->rotary_share);
    if (strcmp(type, "llama3") == 0)
        read_llama3_rotary(c, &object, s);
    else if (strcmp(type, "linear") == 0)
        s->rotary_angle = 1 / rotary_number(c, &object, "factor", 1);
    else if (strcmp(type, "yarn") == 0)
        read_yarn_rotary(c, &object, n);
    else if (strcmp(type, "dynamic") == 0) {
        s->rotary_growth = rotary_number(c, &object, "factor", 1);
        s->rotary_context = (double)n->context;
    } else if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0)
        read_longrope_rotary(c, &object, n);
    else if (strcmp(type, "default") != 0)
        mtf_config_fail(c, key,
                        "rotary positions of type \"%s\" are not supported; there are "
                        "default, linear, dynamic, yarn, llama3 and longrope",
                        type);
}

static void read_rotary(MtfConfig *c, MtfArchitecture *n, double standard) {
    MtfStack *s = &n->decoder;
    s->rotary_base = mtf_config_number(c, "rope_theta", standard);
    s->rotary_share = mtf_config_number(c, "partial_rotary_factor", 1);
    s->rotary_angle = s->rotary_stretch = s->rotary_low = s->rotary_gain = 1;
    s->rotary_high = 4;
    read_rotary_object(c, "rope_scaling", n);
    read_rotary_object(c, "rope_parameters", n);
    if (!(s->rotary_base > 0 && s->rotary_share > 0 && s->rotary_share <= 1))
        mtf_config_fail(c, "rope_theta",
                        "rotary positions need a base above 0 and a share of "
                        "features above 0 and at most 1");
}

/* Where a key is there and null, which is not the same as left out. */
static bool is_null(const MtfConfig *c, const char *key) {
    MtfJson value;
    return mtf_json_find(c->root, key, &value) && cJSON_IsNull(value.node);
}

static void read_llama_sizes(MtfConfig *c, MtfArchitecture *n, const Standard *standard) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->rms = true;
    n->vocab = mtf_config_size(c, "vocab_size", standard->vocab);
    n->d_model = mtf_config_size(c, "hidden_size", standard->hidden);
    n->epsilon = mtf_config_number(c, "rms_norm_eps", standard->epsilon);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", standard->tied);
    n->context = mtf_config_size(c, "max_position_embeddings", standard->max_positions);
    s->d_ff = mtf_config_size(c, "intermediate_size", standard->intermediate);
    s->layers = mtf_config_count(c, "num_hidden_layers", standard->layers);
    s->heads = mtf_config_size(c, "num_attention_heads", standard->heads);
    bool alike = standard->kv_heads == 0 || is_null(c, "num_key_value_heads");
    s->kv_heads = mtf_config_size(c, "num_key_value_heads", alike ? s->heads : standard->kv_heads);
    bool divided = standard->head_dim == 0 || is_null(c, "head_dim");
    s->d_kv = mtf_config_size(c, "head_dim",
                              divided ? MAX(1, n->d_model / s->heads) : standard->head_dim);
    s->scale = 1 / sqrt((double)s->d_kv);
}

/* What all of them have; biases and names may be changed afterwards. */
static void read_llama_like(MtfConfig *c, MtfArchitecture *n, const Standard *standard) {
    MtfStack *s = &n->decoder;
    read_llama_sizes(c, n, standard);
    read_rotary(c, n, standard->rotary_base);
    s->causal = s->gated = true;
    s->names = (MtfStackNames){ LLAMA_NAMES };
    n->embedding = "model.embed_tokens";
    n->head = "lm_head";
}

static void read_attention_bias(MtfConfig *c, MtfStack *s) {
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", false);
}

static void read_llama(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 32000, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 1e4, false };
    read_llama_like(c, n, &standard);
    read_attention_bias(c, &n->decoder);
    n->decoder.ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    n->decoder.activation = mtf_config_activation(c, "hidden_act", "silu");
}

static void read_window(MtfConfig *c, MtfStack *s, int64_t standard) {
    int64_t absent = is_null(c, "sliding_window") ? 0 : standard;
    s->window = mtf_config_integer(c, "sliding_window", 1, absent);
    s->window_rule = s->window > 0 ? MTF_WINDOW_ALL : MTF_WINDOW_NONE;
}

static void read_mistral(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 32000, 4096, 14336, 32, 32, 8, 0, 131072, 1e-6, 1e4, false };
    read_llama_like(c, n, &standard);
    read_window(c, &n->decoder, 4096);
    n->decoder.activation = mtf_config_activation(c, "hidden_act", "silu");
}

/* Layers from max_window_layers on have the window, where it is switched on at all. */
static void read_qwen_window(MtfConfig *c, MtfStack *s) {
    bool on = mtf_config_flag(c, "use_sliding_window", false);
    read_window(c, s, 4096);
    s->window_from = mtf_config_integer(c, "max_window_layers", 0, 28);
    s->window_rule = on && s->window > 0 ? MTF_WINDOW_FROM : MTF_WINDOW_NONE;
}

static void read_qwen2(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = {
        151936, 4096, 22016, 32, 32, 32, 0, 32768, 1e-6, 1e4, false
    };
    read_llama_like(c, n, &standard);
    read_qwen_window(c, &n->decoder);
    n->decoder.q_bias = n->decoder.k_bias = n->decoder.v_bias = true;
    n->decoder.activation = mtf_config_activation(c, "hidden_act", "silu");
}

static void add_head_norms(MtfStack *s) {
    s->qk_norm = true;
    s->names.q_norm = "self_attn.q_norm";
    s->names.k_norm = "self_attn.k_norm";
}

static void read_qwen3(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = {
        151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e-6, 1e4, false
    };
    read_llama_like(c, n, &standard);
    read_qwen_window(c, &n->decoder);
    read_attention_bias(c, &n->decoder);
    add_head_norms(&n->decoder);
    n->decoder.activation = mtf_config_activation(c, "hidden_act", "silu");
}

/* Gemma: the norm's scale is 1 + w, embeddings are multiplied by the root of their width. */
static void make_gemma(MtfConfig *c, MtfArchitecture *n) {
    n->norm_plus_one = true;
    n->embedding_scale = sqrt((double)n->d_model);
    read_attention_bias(c, &n->decoder);
}

static void read_gemma(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = {
        256000, 3072, 24576, 28, 16, 16, 256, 8192, 1e-6, 1e4, true
    };
    MtfJson value;
    read_llama_like(c, n, &standard);
    make_gemma(c, n);
    n->decoder.activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    /* The first files say "gelu" and mean its tanh form, as the class has it since. */
    if (mtf_config_find(c, "hidden_act", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
}

/* 0, which is null in the file: no cap. */
static double read_cap(MtfConfig *c, const char *key, double standard) {
    return mtf_config_number(c, key, is_null(c, key) ? 0 : standard);
}

static void read_gemma2(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e-6, 1e4, true };
    MtfStack *s = &n->decoder;
    MtfJson value;
    read_llama_like(c, n, &standard);
    make_gemma(c, n);
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    if (mtf_config_find(c, "hidden_act", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
    s->scale = 1 / sqrt(mtf_config_number(c, "query_pre_attn_scalar", 256));
    s->softcap = read_cap(c, "attn_logit_softcapping", 50);
    n->logit_softcap = read_cap(c, "final_logit_softcapping", 30);
    read_window(c, s, 4096);
    s->window_rule = s->window > 0 ? MTF_WINDOW_EVEN : MTF_WINDOW_NONE;
    s->names.on_attention = "post_attention_layernorm";
    s->names.before_ffn = "pre_feedforward_layernorm";
    s->names.on_ffn = "post_feedforward_layernorm";
}

static void read_phi3(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 32064, 3072, 8192, 32, 32, 0, 0, 4096, 1e-5, 1e4, false };
    MtfStack *s = &n->decoder;
    n->old_context = mtf_config_size(c, "original_max_position_embeddings", 4096);
    read_llama_like(c, n, &standard);
    read_window(c, s, 0);
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
    s->names.q = s->names.k = s->names.v = s->names.gate = s->names.up = NULL;
    s->names.qkv = "self_attn.qkv_proj";
    s->names.gate_up = "mlp.gate_up_proj";
}

/* ---- GPT-2 ----------------------------------------------------------------------------------- */

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

/* ---- Experts --------------------------------------------------------------------------------- */

static void check_experts(MtfConfig *c, const MtfStack *s) {
    if (s->experts > 0 && (s->experts_per_token < 1 || s->experts_per_token > s->experts))
        mtf_config_fail(c, "num_experts_per_tok", "a token must go to 1 to %d experts",
                        (int)s->experts);
}

static void read_mixtral(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 32000, 4096, 14336, 32, 32, 8, 0, 131072, 1e-5, 1e6, false };
    MtfStack *s = &n->decoder;
    read_llama_like(c, n, &standard);
    read_window(c, s, 0);
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
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

/* The losses that balance experts are added while training where a config says so. */
static void read_router_losses(MtfConfig *c, MtfStack *s, double standard) {
    s->routing.auxiliary = mtf_config_number(c, "router_aux_loss_coef", standard);
    s->routing.z_loss = mtf_config_number(c, "router_z_loss_coef", standard);
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

static void read_qwen3_moe(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 151936, 2048, 6144, 24, 32, 4, 0, 32768, 1e-6, 1e4, false };
    MtfStack *s = &n->decoder;
    read_llama_like(c, n, &standard);
    read_qwen_window(c, s);
    read_attention_bias(c, s);
    add_head_norms(s);
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
    s->experts = mtf_config_integer(c, "num_experts", 0, 128);
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 8);
    check_experts(c, s);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 768);
    s->sparse_step = mtf_config_size(c, "decoder_sparse_step", 1);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", false);
    read_dense_layers(c, s);
    s->names.router = "mlp.gate";
    s->names.expert_gate = "mlp.experts.{}.gate_proj";
    s->names.expert_up = "mlp.experts.{}.up_proj";
    s->names.expert_down = "mlp.experts.{}.down_proj";
}

/* ---- BERT ------------------------------------------------------------------------------------ */

#define BERT_NAMES                                                                        \
    .layer = "encoder.layer.%d.", .q = "attention.self.query", .k = "attention.self.key", \
    .v = "attention.self.value", .o = "attention.output.dense",                           \
    .after_attention = "attention.output.LayerNorm", .up = "intermediate.dense",          \
    .down = "output.dense", .after_ffn = "output.LayerNorm",                              \
    .positions = "embeddings.position_embeddings"

static void refuse_other_positions(MtfConfig *c) {
    const char *type = mtf_config_word(c, "position_embedding_type", "absolute");
    if (strcmp(type, "absolute") != 0)
        mtf_config_fail(c, "position_embedding_type", "only \"absolute\" is supported");
    if (mtf_config_flag(c, "is_decoder", false))
        mtf_config_fail(c, "is_decoder", "only false is supported");
}

static void read_bert_sizes(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    MtfStack *s = &n->encoder;
    n->kind = MTF_ARCHITECTURE_ENCODER;
    n->vocab = mtf_config_size(c, "vocab_size", vocab);
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->max_positions = mtf_config_size(c, "max_position_embeddings", 512);
    n->token_types = mtf_config_size(c, "type_vocab_size", 2);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "intermediate_size", 3072);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, "num_attention_heads", "hidden_size must be a multiple of it");
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
}

/* The encoder with its pooler, and scores by the tied embedding to learn from. */
static void read_bert_like(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    MtfStack *s = &n->encoder;
    read_bert_sizes(c, n, vocab);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ BERT_NAMES };
    n->tied = n->pooler = true;
    n->embedding = "embeddings.word_embeddings";
    n->token_type_table = "embeddings.token_type_embeddings";
    n->embedding_norm = "embeddings.LayerNorm";
    n->pooler_name = "pooler.dense";
    refuse_other_positions(c);
    mtf_config_flag(c, "tie_word_embeddings", true);
    mtf_config_leave_out(c, "the head of architectures",
                         "the encoder and its pooler are read; it learns its own text through the "
                         "embedding, 15 % of it hidden");
}

static void read_bert(MtfConfig *c, MtfArchitecture *n) {
    read_bert_like(c, n, 30522);
    n->context = n->max_positions;
}

/* Positions are counted from behind the padding's. */
static void read_roberta(MtfConfig *c, MtfArchitecture *n) {
    read_bert_like(c, n, 50265);
    n->first_position = mtf_config_integer(c, "pad_token_id", 0, 1) + 1;
    n->context = MAX(1, n->max_positions - n->first_position);
}

/* ---- T5 -------------------------------------------------------------------------------------- */

#define T5_SELF                                                     \
    .q = "layer.0.SelfAttention.q", .k = "layer.0.SelfAttention.k", \
    .v = "layer.0.SelfAttention.v", .o = "layer.0.SelfAttention.o", \
    .before_attention = "layer.0.layer_norm"

static const MtfStackNames t5_encoder = {
    T5_SELF,
    .layer = "encoder.block.%d.",
    .gate = "layer.1.DenseReluDense.wi_0",
    .up = "layer.1.DenseReluDense.wi",
    .down = "layer.1.DenseReluDense.wo",
    .before_ffn = "layer.1.layer_norm",
    .final_norm = "encoder.final_layer_norm",
    .buckets = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
};

static const MtfStackNames t5_decoder = {
    T5_SELF,
    .layer = "decoder.block.%d.",
    .cross_q = "layer.1.EncDecAttention.q",
    .cross_k = "layer.1.EncDecAttention.k",
    .cross_v = "layer.1.EncDecAttention.v",
    .cross_o = "layer.1.EncDecAttention.o",
    .before_cross = "layer.1.layer_norm",
    .gate = "layer.2.DenseReluDense.wi_0",
    .up = "layer.2.DenseReluDense.wi",
    .down = "layer.2.DenseReluDense.wo",
    .before_ffn = "layer.2.layer_norm",
    .final_norm = "decoder.final_layer_norm",
    .buckets = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
};

/* "relu", "gated-gelu", "gated-silu": whether there is a gate, and its function. */
static void read_t5_projection(MtfConfig *c, MtfStack *s) {
    const char *word = mtf_config_word(c, "feed_forward_proj", "relu");
    s->gated = g_str_has_prefix(word, "gated-");
    const char *function = s->gated ? word + strlen("gated-") : word;
    s->activation = strcmp(word, "gated-gelu") == 0 ? "gelu"
                    : strcmp(function, "relu") == 0 ? "relu"
                    : strcmp(function, "silu") == 0 ? "silu"
                    : strcmp(function, "gelu") == 0 ? "gelu_exact"
                                                    : NULL;
    if (s->activation == NULL)
        mtf_config_fail(c, "feed_forward_proj",
                        "\"%s\" is not one of relu, gelu, silu, gated-relu, gated-gelu, gated-silu",
                        word);
}

static void read_t5_stack(MtfConfig *c, MtfStack *s) {
    s->heads = s->kv_heads = mtf_config_size(c, "num_heads", 8);
    s->d_kv = mtf_config_size(c, "d_kv", 64);
    s->d_ff = mtf_config_size(c, "d_ff", 2048);
    s->buckets = mtf_config_count(c, "relative_attention_num_buckets", 32);
    s->max_distance = mtf_config_integer(c, "relative_attention_max_distance", 1, 128);
    s->scale = 1; /* it is in the initial weights */
    if (s->buckets < 4 || s->buckets % 4 != 0 || s->max_distance <= s->buckets / 2 ||
        s->max_distance > 65536)
        mtf_config_fail(c, "relative_attention_num_buckets",
                        "a multiple of 4 below twice relative_attention_max_distance is supported");
    read_t5_projection(c, s);
}

static void read_t5(MtfConfig *c, MtfArchitecture *n) {
    n->kind = MTF_ARCHITECTURE_ENCODER_DECODER;
    n->rms = true;
    n->vocab = mtf_config_size(c, "vocab_size", 32128);
    n->d_model = mtf_config_size(c, "d_model", 512);
    n->context = mtf_config_size(c, "n_positions", 512);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-6);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    n->spread = 0;
    n->logit_scale = n->tied ? 1 / sqrt((double)n->d_model) : 1;
    read_t5_stack(c, &n->encoder);
    n->decoder = n->encoder;
    n->encoder.layers = mtf_config_count(c, "num_layers", 6);
    n->decoder.layers = mtf_config_count(c, "num_decoder_layers", n->encoder.layers);
    n->encoder.names = t5_encoder;
    n->decoder.names = t5_decoder;
    n->decoder.causal = n->decoder.cross = true;
    if (n->encoder.gated) {
        n->encoder.names.up = "layer.1.DenseReluDense.wi_1";
        n->decoder.names.up = "layer.2.DenseReluDense.wi_1";
    }
    n->embedding = "shared";
    n->head = "lm_head";
    if (!mtf_config_flag(c, "is_encoder_decoder", true))
        mtf_config_fail(c, "is_encoder_decoder", "only true is supported");
}

/* ---- Switch Transformers: T5 with experts ------------------------------------------------------ */

/* Experts stand in layers 1, 1 + step, …, of `sparse` layers in all. */
static void read_switch_stack(MtfConfig *c, MtfStack *s, const char *key) {
    int64_t sparse = mtf_config_integer(c, key, 0, 3);
    int64_t step = sparse > 0 ? MAX(1, s->layers / sparse) : s->layers;
    for (int64_t layer = 0; layer < 256; layer++)
        if (step > 1 && layer % step != 1)
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
    s->experts = mtf_config_size(c, "num_experts", 8);
    s->experts_per_token = 1;
    s->d_expert = s->d_ff;
    s->routing.convention = "switch";
    s->routing.capacity = mtf_config_size(c, "expert_capacity", 64);
    read_router_losses(c, s, 0.001);
}

static void read_switch(MtfConfig *c, MtfArchitecture *n) {
    read_t5(c, n);
    read_switch_stack(c, &n->encoder, "num_sparse_encoder_layers");
    read_switch_stack(c, &n->decoder, "num_sparse_decoder_layers");
    MtfStackNames *e = &n->encoder.names, *d = &n->decoder.names;
    e->up = "layer.1.mlp.wi";
    e->down = "layer.1.mlp.wo";
    e->router = "layer.1.mlp.router.classifier";
    e->expert_up = "layer.1.mlp.experts.expert_{}.wi";
    e->expert_down = "layer.1.mlp.experts.expert_{}.wo";
    d->up = "layer.2.mlp.wi";
    d->down = "layer.2.mlp.wo";
    d->router = "layer.2.mlp.router.classifier";
    d->expert_up = "layer.2.mlp.experts.expert_{}.wi";
    d->expert_down = "layer.2.mlp.experts.expert_{}.wo";
    if (n->encoder.gated) {
        e->gate = "layer.1.mlp.wi_0";
        e->up = "layer.1.mlp.wi_1";
        e->expert_gate = "layer.1.mlp.experts.expert_{}.wi_0";
        e->expert_up = "layer.1.mlp.experts.expert_{}.wi_1";
        d->gate = "layer.2.mlp.wi_0";
        d->up = "layer.2.mlp.wi_1";
        d->expert_gate = "layer.2.mlp.experts.expert_{}.wi_0";
        d->expert_up = "layer.2.mlp.experts.expert_{}.wi_1";
    }
    if (mtf_config_number(c, "router_jitter_noise", 0) != 0)
        mtf_config_leave_out(c, "router_jitter_noise", "noise of training alone");
}

/* ---- Vision Transformer ---------------------------------------------------------------------- */

#define VIT_NAMES                                                                        \
    .layer = "encoder.layer.%d.", .q = "attention.attention.query",                      \
    .k = "attention.attention.key", .v = "attention.attention.value",                    \
    .o = "attention.output.dense", .before_attention = "layernorm_before",               \
    .before_ffn = "layernorm_after", .up = "intermediate.dense", .down = "output.dense", \
    .final_norm = "layernorm"

#define VIT_CLASSES 1000 /* of ImageNet, where a config does not name its own */

/* As many as the config names. */
static int64_t read_classes(MtfConfig *c) {
    MtfJson labels;
    int64_t standard = VIT_CLASSES;
    if (mtf_config_find(c, "id2label", &labels)) {
        if (!mtf_json_object(&labels, c->error))
            c->failed = true;
        else
            standard = MAX(1, mtf_json_length(&labels));
    }
    return mtf_config_size(c, "num_labels", standard);
}

static void read_vit_picture(MtfConfig *c, MtfArchitecture *n) {
    n->image_size = mtf_config_size(c, "image_size", 224);
    n->patch_size = mtf_config_size(c, "patch_size", 16);
    n->channels = mtf_config_size(c, "num_channels", 3);
    n->classes = read_classes(c);
    if (n->image_size % n->patch_size != 0 || n->image_size / n->patch_size > 4096)
        mtf_config_fail(c, "patch_size", "image_size must be 1 to 4096 times patch_size");
    int64_t side = MAX(1, n->image_size / n->patch_size);
    n->context = side * side + 1;
    mtf_config_leave_out(c, "pooler", "a picture's class is told without it");
    mtf_config_word(c, "pooler_act", "tanh");
    mtf_config_integer(c, "pooler_output_size", 1, n->d_model);
}

static void read_vit(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->kind = MTF_ARCHITECTURE_IMAGE;
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "intermediate_size", 3072);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, "num_attention_heads", "hidden_size must be a multiple of it");
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", true);
    s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ VIT_NAMES };
    read_vit_picture(c, n);
}

/* ---- Whisper --------------------------------------------------------------------------------- */

#define WHISPER_SELF                                                                    \
    .q = "self_attn.q_proj", .k = "self_attn.k_proj", .v = "self_attn.v_proj",          \
    .o = "self_attn.out_proj", .before_attention = "self_attn_layer_norm", .up = "fc1", \
    .down = "fc2", .before_ffn = "final_layer_norm"

static const MtfStackNames whisper_encoder = {
    WHISPER_SELF,
    .layer = "model.encoder.layers.%d.",
    .final_norm = "model.encoder.layer_norm",
};

static const MtfStackNames whisper_decoder = {
    WHISPER_SELF,
    .layer = "model.decoder.layers.%d.",
    .cross_q = "encoder_attn.q_proj",
    .cross_k = "encoder_attn.k_proj",
    .cross_v = "encoder_attn.v_proj",
    .cross_o = "encoder_attn.out_proj",
    .before_cross = "encoder_attn_layer_norm",
    .final_norm = "model.decoder.layer_norm",
    .positions = "model.decoder.embed_positions",
};

/* Sizes of one side, "encoder" or "decoder". */
static void read_whisper_stack(MtfConfig *c, const MtfArchitecture *n, MtfStack *s, bool decodes) {
    const char *layers = decodes ? "decoder_layers" : "encoder_layers";
    const char *heads = decodes ? "decoder_attention_heads" : "encoder_attention_heads";
    s->layers = mtf_config_count(c, layers, 4);
    s->heads = s->kv_heads = mtf_config_size(c, heads, 6);
    s->d_ff = mtf_config_size(c, decodes ? "decoder_ffn_dim" : "encoder_ffn_dim", 1536);
    s->activation = mtf_config_activation(c, "activation_function", "gelu");
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, heads, "d_model must be a multiple of it");
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
    s->q_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->causal = s->cross = decodes;
    s->names = decodes ? whisper_decoder : whisper_encoder;
}

static void read_whisper(MtfConfig *c, MtfArchitecture *n) {
    n->kind = MTF_ARCHITECTURE_SPEECH;
    n->vocab = mtf_config_size(c, "vocab_size", 51865);
    n->d_model = mtf_config_size(c, "d_model", 384);
    n->epsilon = 1e-5;
    n->spread = mtf_config_number(c, "init_std", 0.02);
    n->channels = mtf_config_size(c, "num_mel_bins", 80);
    n->source_length = mtf_config_size(c, "max_source_positions", 1500);
    n->max_positions = n->context = mtf_config_size(c, "max_target_positions", 448);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    read_whisper_stack(c, n, &n->encoder, false);
    read_whisper_stack(c, n, &n->decoder, true);
    n->embedding = "model.decoder.embed_tokens";
    n->head = "proj_out";
    mtf_config_integer(c, "num_hidden_layers", 0, 0);
    if (mtf_config_flag(c, "scale_embedding", false))
        n->embedding_scale = sqrt((double)n->d_model);
}

const MtfArchitectureType mtf_architecture_types[] = {
    { "gpt2", read_gpt2 },
    { "llama", read_llama },
    { "mistral", read_mistral },
    { "mixtral", read_mixtral },
    { "qwen2", read_qwen2 },
    { "qwen3", read_qwen3 },
    { "qwen3_moe", read_qwen3_moe },
    { "gemma", read_gemma },
    { "gemma2", read_gemma2 },
    { "phi3", read_phi3 },
    { "bert", read_bert },
    { "roberta", read_roberta },
    { "t5", read_t5 },
    { "switch_transformers", read_switch },
    { "vit", read_vit },
    { "whisper", read_whisper },
    { NULL, NULL },
};
