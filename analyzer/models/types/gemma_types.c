// SPDX-License-Identifier: GPL-3.0-or-later
/* Gemma: norms whose scales are 1 + w, embeddings times the root of their width; later caps, and norms around
 * both branches. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

/* Gemma: the norm's scale is 1 + w, embeddings are multiplied by the root of their width. */
static void make_gemma(MtfConfig *c, MtfArchitecture *n) {
    n->norm_plus_one = true;
    n->embedding_scale = sqrt((double)n->d_model);
    mtf_type_attention_bias(c, &n->decoder);
}

static void read_gemma(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 256000, 3072, 24576, 28,  16,  16,
                                           256,    8192, 1e-6,  1e4, true };
    MtfJson value;
    mtf_type_llama(c, n, &standard);
    make_gemma(c, n);
    n->decoder.activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    if (!mtf_config_find(c, "hidden_act", &value))
        return;
    /* The first files say "gelu" and mean its tanh form, as the class has it since. */
    bool first = strcmp(mtf_config_word(c, "hidden_act", ""), "gelu") == 0;
    if (first || mtf_config_find(c, "hidden_activation", &value))
        mtf_config_leave_out(c, "hidden_act", "this type's function is hidden_activation");
    else
        n->decoder.activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
}

/* 0, which is null in the file: no cap. */
static double read_cap(MtfConfig *c, const char *key, double standard) {
    return mtf_config_number(c, key, mtf_type_is_null(c, key) ? 0 : standard);
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
    static const MtfTypeSizes standard = {
        256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e-6, 1e4, true
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    make_gemma2(c, n, 50, 30);
    mtf_type_window(c, s, 4096);
    s->window_rule = s->window > 0 ? MTF_WINDOW_EVEN : MTF_WINDOW_NONE;
    mtf_type_layer_types(c, s);
}

/* VaultGemma: Gemma 2 without the norms behind its branches. */
static void read_vaultgemma(MtfConfig *c, MtfArchitecture *n) {
    read_gemma2(c, n);
    n->decoder.names.on_attention = n->decoder.names.on_ffn = NULL;
}

/* The text part of Gemma 3: norms of queries and keys for caps; every sixth layer sees all, and the others
 * turn by a base of their own. */
static void read_gemma3_text(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 262208, 2304,   9216, 26,  8,   4,
                                           256,    131072, 1e-6, 1e6, true };
    MtfStack *s = &n->decoder;
    s->window_rotary_base = mtf_config_number(c, "rope_local_base_freq", 1e4);
    mtf_type_llama(c, n, &standard);
    make_gemma2(c, n, 0, 0);
    mtf_type_head_norms(s);
    mtf_type_window(c, s, 4096);
    mtf_type_window_pattern(c, s, 6);
    mtf_type_layer_types(c, s);
    if (!(s->window_rotary_base > 0))
        mtf_config_fail(c, "rope_local_base_freq", "a base above 0 is expected");
}

/* ---- Gemma 3n -------------------------------------------------------------------------------- */

/* How many standard deviations above the mean a normal variable is in the share 1 - `share` of cases. */
static double deviations_above(double share) {
    double low = -40, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        bool below = 0.5 * erfc(-middle / sqrt(2)) < share;
        low = below ? middle : low;
        high = below ? high : middle;
    }
    return (low + high) / 2;
}

/* A layer whose gates stay shut in this share of cases, the same in all that have one; 0: none. */
static void add_share(MtfConfig *c, MtfStack *s, int64_t layer, double given, double *share) {
    if (given == 0)
        return;
    if (!(given > 0 && given < 1) || (*share > 0 && given != *share))
        mtf_config_fail(c, "activation_sparsity_pattern",
                        "0 and one share between 0 and 1 are expected");
    *share = given;
    mtf_layers_add(s->sparse_layers, layer);
}

/* "activation_sparsity_pattern": the share of each layer; without it .95 in the first ten of more than ten. */
static void read_sparsity(MtfConfig *c, MtfStack *s) {
    const char *key = "activation_sparsity_pattern";
    MtfJson list, item;
    int64_t layer = 0;
    double share = 0, given = 0;
    if (!mtf_config_find(c, key, &list)) {
        for (; layer < 10 && s->layers > 10; layer++)
            add_share(c, s, layer, 0.95, &share);
    } else if (!mtf_json_array(&list, c->error)) {
        c->failed = true;
    } else if (mtf_json_length(&list) != s->layers) {
        mtf_config_fail(c, key, "a share for each of %d layers is expected", (int)s->layers);
    } else {
        for (bool more = mtf_json_first(&list, &item); more && !c->failed;
             more = mtf_json_next(&item), layer++) {
            c->failed = !mtf_json_number(&item, &given, c->error);
            if (!c->failed)
                add_share(c, s, layer, given, &share);
        }
    }
    s->sparse_deviations = share > 0 && share < 1 ? deviations_above(share) : 0;
}

static void read_token_input(MtfConfig *c, MtfArchitecture *n);

/* What Gemma 3n and 4 have in common: keys, queries and values are normalised, so that scores need no scale, and layers
 * have norms before and behind both halves. */
static void read_unscaled(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard,
                          double logit_cap) {
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, standard);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    n->embedding_scale = sqrt((double)n->d_model);
    n->logit_softcap = read_cap(c, "final_logit_softcapping", logit_cap);
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    s->scale = 1;
    s->value_norm = true;
    s->names.on_attention = "post_attention_layernorm";
    s->names.before_ffn = "pre_feedforward_layernorm";
    s->names.on_ffn = "post_feedforward_layernorm";
}

/* The text part of Gemma 3n: four residual streams of which a layer computes one, a narrow part beside attention, what
 * layers read of the token, borrowed keys and values, sparse gates. */
static void read_gemma3n_text(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 262400, 2048,  16384, 35,  8,   2,
                                           256,    32768, 1e-6,  1e6, true };
    MtfStack *s = &n->decoder;
    s->window_rotary_base = mtf_config_number(c, "rope_local_base_freq", 1e4);
    read_unscaled(c, n, &standard, 30);
    mtf_type_window(c, s, 512);
    mtf_type_window_pattern(c, s, 5);
    mtf_type_layer_types(c, s);
    s->borrowing_layers = mtf_config_integer(c, "num_kv_shared_layers", 0, 15);
    if (s->borrowing_layers >= s->layers)
        mtf_config_fail(c, "num_kv_shared_layers", "fewer than all layers are expected");
    read_token_input(c, n);
    read_sparsity(c, s);
    s->streams = mtf_config_size(c, "altup_num_inputs", 4);
    s->d_narrow = mtf_config_size(c, "laurel_rank", 64);
    s->stream_factors = mtf_config_flag(c, "altup_correct_scale", true);
    if (s->streams < 2 || s->streams > MTF_MOST_STREAMS || s->d_token == 0)
        mtf_config_fail(c, s->d_token == 0 ? "hidden_size_per_layer_input" : "altup_num_inputs",
                        "2 to %d streams and what layers read of tokens are expected",
                        MTF_MOST_STREAMS);
    if (mtf_config_integer(c, "altup_active_idx", 0, 0) != 0)
        mtf_config_fail(c, "altup_active_idx", "only 0 is supported");
    /* Which hold weights back in training alone, or say what the type does anyway. */
    mtf_type_ignore(c, (const char *const[]){ "altup_coef_clip", "altup_lr_multiplier",
                                              "query_pre_attn_scalar", NULL });
}

/* ---- Gemma 4 --------------------------------------------------------------------------------- */

/* Sizes that layers without a window may have of their own: one of all layers, or an object of each layer that has
 * them, which must be alike. */
static void read_whole_sizes(MtfConfig *c, MtfStack *s, MtfLayerSet layers) {
    MtfJson object, entry, value;
    s->whole_d_kv = mtf_config_integer(c, "global_head_dim", 0, 512);
    s->whole_kv_heads = mtf_config_integer(c, "num_global_key_value_heads", 0, 0);
    if (!s->values_are_keys)
        s->whole_kv_heads = 0;
    if (!mtf_config_find(c, "per_layer_config", &object))
        return;
    s->whole_d_kv = s->whole_kv_heads = 0;
    c->failed = c->failed || !mtf_json_object(&object, c->error);
    for (bool more = !c->failed && mtf_json_first(&object, &entry); more && !c->failed;
         more = mtf_json_next(&entry)) {
        int64_t layer = g_ascii_strtoll(mtf_json_key(&entry), NULL, 10), width = 0, heads = 0;
        c->failed = !mtf_json_object(&entry, c->error);
        if (!c->failed && mtf_json_find(&entry, "head_dim", &value))
            c->failed = !mtf_json_integer(&value, 1, MTF_CONFIG_MOST, &width, c->error);
        if (!c->failed && mtf_json_find(&entry, "num_key_value_heads", &value))
            c->failed = !mtf_json_integer(&value, 1, MTF_CONFIG_MOST, &heads, c->error);
        bool other = mtf_json_key(&object) != NULL && s->whole_d_kv + s->whole_kv_heads > 0 &&
                     (s->whole_d_kv != width || s->whole_kv_heads != heads);
        if (other)
            mtf_config_fail(c, "per_layer_config",
                            "layers without a window are expected to be alike");
        s->whole_d_kv = width;
        s->whole_kv_heads = heads;
        if (layer >= 0 && layer < MTF_MOST_LAYERS)
            mtf_layers_add(layers, layer);
    }
}

/* Those layers are the ones without a window, if any are told. */
static void check_whole_layers(MtfConfig *c, const MtfStack *s, const MtfLayerSet layers) {
    bool told = false, alike = true;
    for (int64_t layer = 0; layer < s->layers; layer++)
        told = told || mtf_layers_have(layers, layer);
    for (int64_t layer = 0; layer < s->layers; layer++)
        alike = alike && mtf_layers_have(layers, layer) != mtf_layers_have(s->window_layers, layer);
    if (told && !alike)
        mtf_config_fail(c, "per_layer_config", "the layers without a window are expected");
}

/* Every sixth layer and the last see all, where no words tell them. */
static void read_gemma_windows(MtfConfig *c, MtfStack *s, int64_t standard) {
    mtf_type_window(c, s, standard);
    s->window_rule = MTF_WINDOW_LISTED;
    for (int64_t layer = 0; layer < s->layers; layer++)
        if ((layer + 1) % 6 != 0 && !mtf_config_find(c, "layer_types", &(MtfJson){ 0 }))
            mtf_layers_add(s->window_layers, layer);
    mtf_type_layer_types(c, s);
    int64_t last = s->layers - 1;
    s->window_layers[last / 64] &= ~(UINT64_C(1) << last % 64);
}

/* Experts beside a hidden layer of all tokens, each with norms of its own; the router reads the token without one. */
static void read_gemma4_experts(MtfConfig *c, MtfStack *s) {
    s->experts = mtf_config_integer(c, "num_experts", 0, 0);
    s->experts_per_token = mtf_config_count(c, "top_k_experts", 1);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 1);
    if (!mtf_config_flag(c, "enable_moe_block", false)) {
        s->experts = 0;
        return;
    }
    if (s->experts < s->experts_per_token)
        mtf_config_fail(c, "top_k_experts", "a token must go to 1 to %d experts", (int)s->experts);
    s->renormalise = s->experts_bare = true;
    s->d_shared = s->d_ff;
    s->names.shared_gate = s->names.gate;
    s->names.shared_up = s->names.up;
    s->names.shared_down = s->names.down;
    s->names.before_experts = "pre_feedforward_layernorm_2";
    s->names.on_experts = "post_feedforward_layernorm_2";
    s->names.on_shared = "post_feedforward_layernorm_1";
    s->names.router = "router.proj";
    s->names.router_scale = "router.scale";
    s->names.expert_scales = "router.per_expert_scale";
    s->names.expert_gate_up = "experts.gate_up_proj";
    s->names.expert_down = "experts.down_proj";
}

static void read_token_input(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    const char *key = "hidden_size_per_layer_input";
    s->d_token = mtf_config_integer(c, key, 0, mtf_type_is_null(c, key) ? 0 : 256);
    s->token_vocab = mtf_config_size(c, "vocab_size_per_layer_input", 262144);
    s->names.token_table = "model.embed_tokens_per_layer";
    s->names.token_read = "model.per_layer_model_projection";
    s->names.token_norm = "model.per_layer_projection_norm";
    s->names.token_gate = "per_layer_input_gate";
    s->names.token_out = "per_layer_projection";
    s->names.on_token = "post_per_layer_input_norm";
}

/* The text part of Gemma 4: norms without the 1, of values too; layers that see all have wider heads, whose keys may be
 * values as well; the last layers may borrow keys and values; each layer may read of the token itself. */
static void read_gemma4_text(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 262144, 2304,   9216, 30,  8,   4,
                                           256,    131072, 1e-6, 1e6, true };
    MtfStack *s = &n->decoder;
    MtfLayerSet whole = { 0 };
    s->values_are_keys = mtf_config_flag(c, "attention_k_eq_v", false);
    read_whole_sizes(c, s, whole);
    s->window_rotary_base = 1e4;
    read_unscaled(c, n, &standard, 0);
    s->names.layer_factor = "layer_scalar";
    read_gemma_windows(c, s, 512);
    check_whole_layers(c, s, whole);
    s->borrowing_layers = mtf_config_integer(c, "num_kv_shared_layers", 0, 0);
    s->borrowers_wide = mtf_config_flag(c, "use_double_wide_mlp", false);
    read_token_input(c, n);
    read_gemma4_experts(c, s);
    if (s->borrowing_layers >= s->layers)
        mtf_config_fail(c, "num_kv_shared_layers", "fewer than all layers are expected");
    if (strcmp(mtf_config_word(c, "use_bidirectional_attention", "vision"), "vision") != 0)
        mtf_config_fail(c, "use_bidirectional_attention", "only vision and null are supported");
    if (!mtf_config_find(c, "rope_parameters", &(MtfJson){ 0 }))
        mtf_config_fail(c, "rope_parameters", "an object for each kind of layer is expected");
}

const MtfArchitectureType mtf_gemma_types[] = {
    { "gemma", read_gemma },
    { "gemma2", read_gemma2 },
    { "vaultgemma", read_vaultgemma },
    { "gemma3_text", read_gemma3_text },
    { "gemma3n_text", read_gemma3n_text },
    { "gemma4_text", read_gemma4_text },
    { NULL, NULL },
};
