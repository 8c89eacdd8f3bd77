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
    mtf_config_rotary(c, n, standard->rotary_base);
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

/* "layer_types" of newer files, a word a layer, which go before the type's own rule. */
static void read_layer_types(MtfConfig *c, MtfStack *s) {
    MtfJson list, item;
    int64_t layer = 0;
    if (!mtf_config_find(c, "layer_types", &list))
        return;
    c->failed = !mtf_json_array(&list, c->error);
    if (!c->failed && mtf_json_length(&list) != s->layers)
        mtf_config_fail(c, "layer_types", "a word for each of %d layers is expected",
                        (int)s->layers);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), layer++) {
        const char *word = "";
        if (!mtf_json_string(&item, &word, c->error))
            c->failed = true;
        else if (strcmp(word, "sliding_attention") == 0)
            mtf_layers_add(s->window_layers, layer);
        else if (strcmp(word, "full_attention") != 0)
            c->failed = !mtf_json_fail(&item, c->error,
                                       "layers of type \"%s\" are not supported; there are "
                                       "full_attention and sliding_attention",
                                       word);
    }
    if (s->window_rule != MTF_WINDOW_NONE)
        s->window_rule = MTF_WINDOW_LISTED;
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
    read_layer_types(c, s);
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

/* Norms around both branches, and caps: what Gemma 2 added. */
static void make_gemma2(MtfConfig *c, MtfArchitecture *n, double cap, double logit_cap) {
    MtfStack *s = &n->decoder;
    MtfJson value;
    make_gemma(c, n);
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    if (mtf_config_find(c, "hidden_act", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
    s->scale = 1 / sqrt(mtf_config_number(c, "query_pre_attn_scalar", 256));
    s->softcap = read_cap(c, "attn_logit_softcapping", cap);
    n->logit_softcap = read_cap(c, "final_logit_softcapping", logit_cap);
    s->names.on_attention = "post_attention_layernorm";
    s->names.before_ffn = "pre_feedforward_layernorm";
    s->names.on_ffn = "post_feedforward_layernorm";
}

static void read_gemma2(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e-6, 1e4, true };
    MtfStack *s = &n->decoder;
    read_llama_like(c, n, &standard);
    make_gemma2(c, n, 50, 30);
    read_window(c, s, 4096);
    s->window_rule = s->window > 0 ? MTF_WINDOW_EVEN : MTF_WINDOW_NONE;
    read_layer_types(c, s);
}

/* The text part of Gemma 3: norms of queries and keys for caps; every sixth layer sees all, and the others
 * turn by a base of their own. */
static void read_gemma3_text(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 262208, 2304, 9216, 26, 8, 4, 256, 131072, 1e-6, 1e6, true };
    MtfStack *s = &n->decoder;
    s->window_rotary_base = mtf_config_number(c, "rope_local_base_freq", 1e4);
    read_llama_like(c, n, &standard);
    make_gemma2(c, n, 0, 0);
    add_head_norms(s);
    read_window(c, s, 4096);
    int64_t pattern = mtf_config_size(c, "sliding_window_pattern", 6);
    s->window_rule = s->window > 0 ? MTF_WINDOW_LISTED : MTF_WINDOW_NONE;
    bool listed = mtf_config_find(c, "layer_types", &(MtfJson){ 0 });
    for (int64_t layer = 0; layer < s->layers && !listed; layer++)
        if ((layer + 1) % pattern != 0)
            mtf_layers_add(s->window_layers, layer);
    read_layer_types(c, s);
    if (!(s->window_rotary_base > 0))
        mtf_config_fail(c, "rope_local_base_freq", "a base above 0 is expected");
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

/* ---- Others like Llama ----------------------------------------------------------------------- */

/* Granite: every branch, the scores and the logits have a factor of their own. */
static void read_granite(MtfConfig *c, MtfArchitecture *n) {
    double divisor = mtf_config_number(c, "logits_scaling", 1);
    read_llama(c, n);
    n->embedding_scale = mtf_config_number(c, "embedding_multiplier", 1);
    n->branch_scale = mtf_config_number(c, "residual_multiplier", 1);
    n->decoder.scale = mtf_config_number(c, "attention_multiplier", 1);
    if (!(divisor > 0) || n->branch_scale == 0)
        mtf_config_fail(c, divisor > 0 ? "residual_multiplier" : "logits_scaling",
                        "a factor above 0 is expected");
    n->logit_scale = 1 / divisor;
}

/* Layers whose place is 0 in a list, or every fourth, do not turn by position. */
static void read_straight_layers(MtfConfig *c, MtfStack *s) {
    MtfJson list, item;
    int64_t layer = 0, turns = 0, every = mtf_config_size(c, "no_rope_layer_interval", 4);
    bool listed = mtf_config_find(c, "no_rope_layers", &list);
    for (int64_t i = every - 1; i < s->layers && !listed; i += every)
        mtf_layers_add(s->straight_layers, i);
    if (!listed || c->failed)
        return;
    c->failed = !mtf_json_array(&list, c->error);
    if (!c->failed && mtf_json_length(&list) != s->layers)
        mtf_config_fail(c, "no_rope_layers", "a number for each of %d layers is expected",
                        (int)s->layers);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), layer++) {
        c->failed = !mtf_json_integer(&item, 0, 1, &turns, c->error);
        if (turns == 0)
            mtf_layers_add(s->straight_layers, layer);
    }
}

static void read_smollm3(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 128256, 2048, 11008, 36, 16, 4, 0, 32768, 1e-6, 2e6, true };
    MtfStack *s = &n->decoder;
    bool on = mtf_config_flag(c, "use_sliding_window", false);
    read_llama_like(c, n, &standard);
    read_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
    read_window(c, s, 0);
    s->window_rule = on && s->window > 0 ? MTF_WINDOW_LISTED : MTF_WINDOW_NONE;
    mtf_config_integer(c, "max_window_layers", 0, 0);
    read_straight_layers(c, s);
    read_layer_types(c, s);
}

/* Norms of means and variances, with biases. */
static void make_layer_norms(MtfConfig *c, MtfArchitecture *n, const char *key) {
    n->rms = false;
    n->epsilon = mtf_config_number(c, key, 1e-5);
}

static void read_stablelm(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 50304, 2560, 6912, 32, 32, 32, 0, 4096, 0, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.25;
    read_llama_like(c, n, &standard);
    make_layer_norms(c, n, "layer_norm_eps");
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "use_qkv_bias", false);
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
    if (mtf_config_flag(c, "use_parallel_residual", false))
        mtf_config_fail(c, "use_parallel_residual", "only false is supported");
    if (mtf_config_flag(c, "qk_layernorm", false))
        mtf_config_fail(c, "qk_layernorm", "only false is supported");
}

static void read_starcoder2(MtfConfig *c, MtfArchitecture *n) {
    static const Standard standard = { 49152, 3072, 12288, 30, 24, 2, 0, 4096, 0, 1e4, true };
    MtfStack *s = &n->decoder;
    read_llama_like(c, n, &standard);
    make_layer_norms(c, n, "norm_epsilon");
    read_window(c, s, 0);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias =
        mtf_config_flag(c, "use_bias", true);
    s->gated = false;
    s->names.gate = NULL;
    s->names.up = "mlp.c_fc";
    s->names.down = "mlp.c_proj";
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

/* Transformers 5 calls every head tied, and says of those that were that their input is scaled; where it is
 * not, files hold a head of its own. */
static void read_t5_head(MtfConfig *c, MtfArchitecture *n) {
    bool tied = mtf_config_flag(c, "tie_word_embeddings", true);
    bool scaled = mtf_config_flag(c, "scale_decoder_outputs", tied);
    n->tied = tied && scaled;
    n->logit_scale = scaled ? 1 / sqrt((double)n->d_model) : 1;
}

static void read_t5(MtfConfig *c, MtfArchitecture *n) {
    n->kind = MTF_ARCHITECTURE_ENCODER_DECODER;
    n->rms = true;
    n->vocab = mtf_config_size(c, "vocab_size", 32128);
    n->d_model = mtf_config_size(c, "d_model", 512);
    n->context = mtf_config_size(c, "n_positions", 512);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-6);
    n->spread = 0;
    read_t5_head(c, n);
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
    { "gemma3_text", read_gemma3_text },
    { "phi3", read_phi3 },
    { "granite", read_granite },
    { "smollm3", read_smollm3 },
    { "stablelm", read_stablelm },
    { "starcoder2", read_starcoder2 },
    { "bert", read_bert },
    { "roberta", read_roberta },
    { "t5", read_t5 },
    { "switch_transformers", read_switch },
    { "vit", read_vit },
    { "whisper", read_whisper },
    { NULL, NULL },
};
