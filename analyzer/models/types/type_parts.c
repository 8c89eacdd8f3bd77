// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/types/type_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LLAMA_NAMES                                                                      \
    .layer = "model.layers.%d.", .q = "self_attn.q_proj", .k = "self_attn.k_proj",       \
    .v = "self_attn.v_proj", .o = "self_attn.o_proj", .gate = "mlp.gate_proj",           \
    .up = "mlp.up_proj", .down = "mlp.down_proj", .before_attention = "input_layernorm", \
    .before_ffn = "post_attention_layernorm", .final_norm = "model.norm"

bool mtf_type_is_null(const MtfConfig *c, const char *key) {
    MtfJson value;
    return mtf_json_find(c->root, key, &value) && cJSON_IsNull(value.node);
}

/* "intermediate_size", which some files say of each layer, all alike. */
static int64_t read_ffn_width(MtfConfig *c, int64_t standard) {
    const char *key = "intermediate_size";
    MtfJson list, item;
    int64_t width = 0, one = 0;
    if (!mtf_config_find(c, key, &list) || !cJSON_IsArray(list.node))
        return mtf_config_size(c, key, standard);
    for (bool more = mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item)) {
        c->failed = !mtf_json_integer(&item, 1, MTF_CONFIG_MOST, &one, c->error);
        if (!c->failed && width > 0 && one != width)
            mtf_config_fail(c, key, "one width is expected in all layers");
        width = one;
    }
    return MAX(1, width);
}

static void read_llama_sizes(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->rms = true;
    n->vocab = mtf_config_size(c, "vocab_size", standard->vocab);
    n->d_model = mtf_config_size(c, "hidden_size", standard->hidden);
    n->epsilon = mtf_config_number(c, "rms_norm_eps", standard->epsilon);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", standard->tied);
    n->context = mtf_config_size(c, "max_position_embeddings", standard->max_positions);
    s->d_ff = read_ffn_width(c, standard->intermediate);
    s->layers = mtf_config_count(c, "num_hidden_layers", standard->layers);
    s->heads = mtf_config_size(c, "num_attention_heads", standard->heads);
    bool alike = standard->kv_heads == 0 || mtf_type_is_null(c, "num_key_value_heads");
    s->kv_heads = mtf_config_size(c, "num_key_value_heads", alike ? s->heads : standard->kv_heads);
    bool divided = standard->head_dim == 0 || mtf_type_is_null(c, "head_dim");
    s->d_kv = mtf_config_size(c, "head_dim",
                              divided ? MAX(1, n->d_model / s->heads) : standard->head_dim);
    s->scale = 1 / sqrt((double)s->d_kv);
}

void mtf_type_llama(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard) {
    MtfStack *s = &n->decoder;
    read_llama_sizes(c, n, standard);
    mtf_config_rotary(c, n, standard->rotary_base);
    s->causal = s->gated = true;
    s->names = (MtfStackNames){ LLAMA_NAMES };
    n->embedding = "model.embed_tokens";
    n->head = "lm_head";
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
}

void mtf_type_ignore(MtfConfig *c, const char *const *keys) {
    MtfJson value;
    for (; *keys != NULL; keys++)
        if (mtf_config_find(c, *keys, &value))
            g_ptr_array_add(c->left_out, g_strdup(*keys));
}

void mtf_type_derived(MtfConfig *c, const char *key, int64_t size) {
    if (mtf_config_integer(c, key, 1, size) != size)
        mtf_config_fail(c, key, "%" PRId64 " is expected, as other keys have it", size);
}

void mtf_type_divide_heads(MtfConfig *c, MtfArchitecture *n, const char *key) {
    MtfStack *s = &n->decoder;
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, key, "the model's width, %d, must be a multiple of %s", (int)n->d_model,
                        key);
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
    s->causal = true;
}

void mtf_type_layer_norms(MtfConfig *c, MtfArchitecture *n, const char *key) {
    n->rms = false;
    n->epsilon = mtf_config_number(c, key, 1e-5);
}

void mtf_type_attention_bias(MtfConfig *c, MtfStack *s) {
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", false);
}

void mtf_type_all_biases(MtfStack *s, bool are_there) {
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = are_there;
}

void mtf_type_without_gate(MtfConfig *c, MtfStack *s, const char *standard) {
    s->gated = false;
    s->names.gate = NULL;
    s->activation = mtf_config_activation(c, "hidden_act", standard);
}

void mtf_type_head_norms(MtfStack *s) {
    s->head_norm = MTF_HEAD_NORM_EACH;
    s->names.q_norm = "self_attn.q_norm";
    s->names.k_norm = "self_attn.k_norm";
}

void mtf_type_norm_behind(MtfStack *s, MtfHeadNorm heads) {
    mtf_type_head_norms(s);
    s->head_norm = heads;
    s->names.before_attention = s->names.before_ffn = NULL;
    s->names.on_attention = "post_attention_layernorm";
    s->names.on_ffn = "post_feedforward_layernorm";
}

void mtf_type_head_layer_norms(MtfConfig *c, MtfStack *s, bool standard) {
    if (!mtf_config_flag(c, "qk_layernorm", standard))
        return;
    s->head_norm = MTF_HEAD_NORM_EACH;
    s->names.q_norm = "self_attn.q_layernorm";
    s->names.k_norm = "self_attn.k_layernorm";
}

void mtf_type_window(MtfConfig *c, MtfStack *s, int64_t standard) {
    int64_t absent = mtf_type_is_null(c, "sliding_window") ? 0 : standard;
    s->window = mtf_config_integer(c, "sliding_window", 0, absent);
    s->window_rule = s->window > 0 ? MTF_WINDOW_ALL : MTF_WINDOW_NONE;
}

void mtf_type_window_pattern(MtfConfig *c, MtfStack *s, int64_t standard) {
    int64_t written = mtf_config_size(c, "_sliding_window_pattern", standard);
    int64_t pattern = mtf_config_size(c, "sliding_window_pattern", written);
    bool listed = mtf_config_find(c, "layer_types", &(MtfJson){ 0 });
    s->window_rule = s->window > 0 ? MTF_WINDOW_LISTED : MTF_WINDOW_NONE;
    for (int64_t layer = 0; layer < s->layers && !listed; layer++)
        if ((layer + 1) % pattern != 0)
            mtf_layers_add(s->window_layers, layer);
}

void mtf_type_qkv_limit(MtfConfig *c, MtfStack *s) {
    s->qkv_limit = mtf_config_number(c, "clip_qkv", 0);
    if (s->qkv_limit < 0)
        mtf_config_fail(c, "clip_qkv", "a number above 0 is expected");
}

void mtf_type_drop(MtfArchitecture *n, double rate) {
    MtfDropoutRates *rates = &n->dropout;
    rates->shares = rates->shares < 0 ? rate : rates->shares;
    rates->branches = rates->branches < 0 ? rate : rates->branches;
    rates->embeddings = rates->embeddings < 0 ? rate : rates->embeddings;
}

void mtf_type_layer_types(MtfConfig *c, MtfStack *s) {
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

void mtf_type_straighten_whole(MtfStack *s) {
    for (int64_t layer = 0; layer < s->layers; layer++)
        if (!mtf_layers_have(s->window_layers, layer))
            mtf_layers_add(s->straight_layers, layer);
}

void mtf_type_qwen_window(MtfConfig *c, MtfStack *s, int64_t from) {
    bool on = mtf_config_flag(c, "use_sliding_window", false);
    mtf_type_window(c, s, 4096);
    s->window_from = mtf_config_integer(c, "max_window_layers", 0, from);
    s->window_rule = on && s->window > 0 ? MTF_WINDOW_FROM : MTF_WINDOW_NONE;
    mtf_type_layer_types(c, s);
}
