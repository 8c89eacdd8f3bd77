// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders whose layers are of several kinds: scans, attention, and feed-forward layers of several sorts. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

/* ---- Jamba ----------------------------------------------------------------------------------- */

/* Layer `offset` of every `period`. */
static bool is_every(MtfConfig *c, const char *const keys[2], const int64_t standard[2],
                     int64_t layer) {
    int64_t period = mtf_config_size(c, keys[0], standard[0]);
    return layer % period == mtf_config_integer(c, keys[1], 0, standard[1]);
}

/* Scans of Mamba whose inputs have norms, and in one layer of eight attention without positions; experts in every second
 * layer. */
static void read_jamba(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 65536, 4096,   14336, 32,  32,   8,
                                           0,     262144, 1e-6,  1e4, false };
    static const char *const attends[] = { "attn_layer_period", "attn_layer_offset" };
    static const char *const sparse[] = { "expert_layer_period", "expert_layer_offset" };
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    MtfJson rank;
    mtf_type_llama(c, n, &standard);
    s->rotary_base = 0;
    mixer->kind = MTF_MIXER_SCAN;
    mixer->taps = mtf_config_size(c, "mamba_d_conv", 4);
    mixer->bias = mtf_config_flag(c, "mamba_proj_bias", false);
    mixer->convolution_bias = mtf_config_flag(c, "mamba_conv_bias", true);
    mixer->d_state = mtf_config_size(c, "mamba_d_state", 16);
    mixer->d_inner = MIN(mtf_config_size(c, "mamba_expand", 2), 1 << 20) * n->d_model;
    bool said = mtf_config_find(c, "mamba_dt_rank", &rank) && !cJSON_IsString(rank.node);
    int64_t sixteenth = (n->d_model + 15) / 16;
    mixer->d_rank = said ? mtf_config_size(c, "mamba_dt_rank", sixteenth) : sixteenth;
    mixer->in = "mamba.in_proj";
    mixer->convolution = "mamba.conv1d";
    mixer->read = "mamba.x_proj";
    mixer->step = "mamba.dt_proj";
    mixer->forget_rate = "mamba.A_log";
    mixer->skip = "mamba.D";
    mixer->out = "mamba.out_proj";
    mixer->read_norms[0] = "mamba.dt_layernorm";
    mixer->read_norms[1] = "mamba.b_layernorm";
    mixer->read_norms[2] = "mamba.c_layernorm";
    s->experts = mtf_config_size(c, "num_experts", 16);
    s->experts = s->experts > 1 ? s->experts : 0;
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 2);
    if (s->experts > 0 && (s->experts_per_token > s->experts || s->layers > 256))
        mtf_config_fail(c, "num_experts_per_tok",
                        "at most %d experts, and at most 256 layers, are expected",
                        (int)s->experts);
    for (int64_t layer = 0; layer < s->layers; layer++) {
        if (!is_every(c, attends, (const int64_t[]){ 8, 4 }, layer))
            mtf_layers_add(mixer->layers, layer);
        if (!is_every(c, sparse, (const int64_t[]){ 2, 1 }, layer) && layer < 256)
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
    }
    s->d_expert = s->d_ff;
    s->names.before_ffn = "pre_ff_layernorm";
    s->names.gate = "feed_forward.gate_proj";
    s->names.up = "feed_forward.up_proj";
    s->names.down = "feed_forward.down_proj";
    s->names.router = "feed_forward.router";
    s->names.expert_gate = "feed_forward.experts.{}.gate_proj";
    s->names.expert_up = "feed_forward.experts.{}.up_proj";
    s->names.expert_down = "feed_forward.experts.{}.down_proj";
    s->names.final_norm = "model.final_layernorm";
    if (mtf_config_find(c, "sliding_window", &rank))
        mtf_config_fail(c, "sliding_window", "only null is supported");
    mtf_type_ignore(c, (const char *const[]){ "num_logits_to_keep", "use_associative_scan",
                                              "use_mamba_kernels", "use_mambapy", NULL });
}

/* ---- Nemotron H ------------------------------------------------------------------------------ */

/* Each layer is one of four: by a letter (M, *, - and E), or a word. */
static void add_layer(MtfConfig *c, MtfStack *s, const char *key, int64_t layer, const char *word) {
    static const char *const words[][4] = { { "M", "mamba", "linear_attention", NULL },
                                            { "*", "attention", "full_attention", NULL },
                                            { "-", "mlp", NULL },
                                            { "E", "moe", NULL } };
    for (int kind = 0; kind < 4; kind++) {
        if (!g_strv_contains(words[kind], word))
            continue;
        if (kind == 0)
            mtf_layers_add(s->mixer.layers, layer);
        if (kind >= 2)
            mtf_layers_add(s->ffn_layers, layer);
        if (kind == 2 && layer < 256)
            s->dense_layers[layer / 64] |= UINT64_C(1) << layer % 64;
        if (kind == 3)
            s->experts = MAX(1, s->experts);
        return;
    }
    mtf_config_fail(c, key,
                    "\"%s\" is no layer that is known; there are mamba (M), attention (*), "
                    "mlp (-) and moe (E)",
                    word);
}

static void read_letters(MtfConfig *c, MtfStack *s, const char *key) {
    const char *letters = mtf_config_word(c, key, "");
    for (int64_t layer = 0; layer < MTF_MOST_LAYERS && letters[layer] != '\0' && !c->failed;
         layer++) {
        const char word[] = { letters[layer], '\0' };
        add_layer(c, s, key, layer, word);
        s->layers = layer + 1;
    }
}

static void read_words(MtfConfig *c, MtfStack *s, const char *key, MtfJson *list) {
    MtfJson item;
    int64_t layer = 0;
    const char *word = "";
    c->failed = c->failed || !mtf_json_array(list, c->error);
    for (bool more = !c->failed && mtf_json_first(list, &item);
         more && !c->failed && layer < MTF_MOST_LAYERS; more = mtf_json_next(&item), layer++) {
        c->failed = !mtf_json_string(&item, &word, c->error);
        if (!c->failed)
            add_layer(c, s, key, layer, word);
    }
    s->layers = layer;
}

static void read_kinds(MtfConfig *c, MtfStack *s) {
    static const char *const keys[] = { "layers_block_type", "layer_types" };
    MtfJson list;
    bool said = false;
    for (int i = 0; i < 2 && !said; i++)
        if ((said = mtf_config_find(c, keys[i], &list)))
            read_words(c, s, keys[i], &list);
    if (!said)
        read_letters(c, s, "hybrid_override_pattern");
    else
        mtf_config_word(c, "hybrid_override_pattern", "");
    if (s->layers < 1 || (s->experts > 0 && s->layers > 256))
        mtf_config_fail(c, said ? "layers_block_type" : "hybrid_override_pattern",
                        "a letter or a word for each layer, at most 256 with experts, is expected");
    mtf_type_derived(c, "num_hidden_layers", s->layers);
}

/* Experts without gates, chosen as DeepSeek V3 does, beside one of all tokens. */
static void read_nemotron_experts(MtfConfig *c, MtfStack *s) {
    int64_t experts = mtf_config_size(c, "n_routed_experts", 8);
    s->experts = s->experts > 0 ? experts : 0;
    s->experts_per_token = mtf_config_count(c, "num_experts_per_tok", 2);
    if (s->experts > 0 && s->experts_per_token > s->experts)
        mtf_config_fail(c, "num_experts_per_tok", "a token must go to 1 to %d experts",
                        (int)s->experts);
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 7688);
    s->d_shared = mtf_config_size(c, "moe_shared_expert_intermediate_size", 7688);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", true);
    mtf_type_sigmoid_groups(c, s, 1, 1);
    mtf_type_expert_scale(c, s, "routed_scaling_factor", 1);
    s->names.router = "mixer.gate";
    s->names.choice_bias = "mixer.gate.e_score_correction_bias";
    s->names.expert_up = "mixer.experts.{}.up_proj";
    s->names.expert_down = "mixer.experts.{}.down_proj";
    s->names.shared_up = "mixer.shared_experts.up_proj";
    s->names.shared_down = "mixer.shared_experts.down_proj";
    s->d_expert_model = mtf_config_integer(c, "moe_latent_size", 0, 0);
    s->names.expert_narrow = "mixer.fc1_latent_proj";
    s->names.expert_widen = "mixer.fc2_latent_proj";
    mtf_type_ignore(c, (const char *const[]){ "moe_shared_expert_overlap", "mtp_layers_block_type",
                                              "mtp_hybrid_override_pattern", "n_group", "expand",
                                              "mamba_ssm_cache_dtype", "hidden_dropout",
                                              "n_shared_experts", "num_nextn_predict_layers",
                                              "topk_group", NULL });
}

static void read_nemotron_scan(MtfConfig *c, MtfMixer *mixer) {
    mixer->kind = MTF_MIXER_HEAD_SCAN;
    mixer->taps = mtf_config_size(c, "conv_kernel", mtf_config_size(c, "mamba_d_conv", 4));
    mixer->bias = mtf_config_flag(c, "use_bias", false);
    mixer->convolution_bias = mtf_config_flag(c, "use_conv_bias", true);
    mixer->d_state = mtf_config_size(c, "ssm_state_size", 128);
    mixer->key_heads = mtf_config_size(c, "n_groups", 8);
    mixer->value_heads = mtf_config_size(c, "mamba_num_heads", 128);
    mixer->d_value = mtf_config_size(c, "mamba_head_dim", 64);
    mixer->norm_by_group = true;
    mixer->in = "mixer.in_proj";
    mixer->convolution = "mixer.conv1d";
    mixer->forget_bias = "mixer.dt_bias";
    mixer->forget_rate = "mixer.A_log";
    mixer->skip = "mixer.D";
    mixer->norm = "mixer.norm";
    mixer->out = "mixer.out_proj";
    if (mixer->value_heads % mixer->key_heads != 0)
        mtf_config_fail(c, "n_groups", "a divisor of mamba_num_heads is expected");
    if (strcmp(mtf_config_word(c, "mamba_hidden_act", "silu"), "silu") != 0)
        mtf_config_fail(c, "mamba_hidden_act", "only silu is supported");
    mtf_type_step_limit(c, mixer);
}

/* A norm and one part a layer: a scan of Mamba 2, attention without positions, a hidden layer or experts, without gates. */
static void read_nemotron_h(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 131072, 4096, 21504, 1,   32,   8,
                                           128,    4096, 1e-5,  1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    s->rotary_base = 0;
    s->one_part = true;
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->embedding = "backbone.embeddings";
    read_kinds(c, s);
    read_nemotron_scan(c, &s->mixer);
    read_nemotron_experts(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    if (mtf_config_flag(c, "attention_bias", false))
        mtf_config_fail(c, "attention_bias", "only false is supported, as transformers has it");
    s->gated = false;
    s->activation = mtf_config_activation(c, "mlp_hidden_act", "relu2");
    s->names.layer = "backbone.layers.%d.";
    s->names.before_attention = "norm";
    s->names.final_norm = "backbone.norm_f";
    s->names.q = "mixer.q_proj";
    s->names.k = "mixer.k_proj";
    s->names.v = "mixer.v_proj";
    s->names.o = "mixer.o_proj";
    s->names.up = "mixer.up_proj";
    s->names.down = "mixer.down_proj";
    if (mtf_config_find(c, "sliding_window", &(MtfJson){ 0 }))
        mtf_config_fail(c, "sliding_window", "only null is supported");
    mtf_type_ignore(c, (const char *const[]){ "num_logits_to_keep", NULL });
    mtf_type_ignore_scan(c);
}

/* ---- RecurrentGemma -------------------------------------------------------------------------- */

/* "block_types", words that repeat; the layers that are recurrent have the mixer. */
static void read_block_types(MtfConfig *c, MtfStack *s) {
    MtfJson list, item;
    bool recurrent[MTF_MOST_LAYERS] = { true, true, false };
    int64_t n = 3;
    const char *word = "";
    if (mtf_config_find(c, "block_types", &list)) {
        n = 0;
        c->failed = c->failed || !mtf_json_array(&list, c->error);
        for (bool more = !c->failed && mtf_json_first(&list, &item);
             more && !c->failed && n < MTF_MOST_LAYERS; more = mtf_json_next(&item), n++) {
            c->failed = !mtf_json_string(&item, &word, c->error);
            recurrent[n] = !c->failed && strcmp(word, "recurrent") == 0;
            if (!c->failed && !recurrent[n] && strcmp(word, "attention") != 0)
                mtf_config_fail(c, "block_types", "\"%s\" is none of recurrent and attention",
                                word);
        }
    }
    if (n == 0)
        mtf_config_fail(c, "block_types", "recurrent and attention are expected");
    for (int64_t layer = 0; layer < s->layers && n > 0; layer++)
        if (recurrent[layer % n])
            mtf_layers_add(s->mixer.layers, layer);
    mtf_type_ignore(c, (const char *const[]){ "_block_types", NULL });
}

/* Two gated recurrences, then attention to what is near, of whose heads half turns; Gemma's norms and embeddings. */
static void read_recurrent_gemma(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        256000, 2560, 7680, 26, 10, 0, 0, 8192, 1e-6, 1e4, true
    };
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->o_bias = s->ffn_bias = true;
    s->d_ff /= 2;
    n->norm_plus_one = true;
    n->embedding_scale = sqrt((double)n->d_model);
    n->logit_softcap = mtf_config_number(c, "logits_soft_cap", 30);
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu_pytorch_tanh");
    s->window = mtf_config_size(c, "attention_window_size", 2048);
    s->window_rule = MTF_WINDOW_ALL;
    mixer->kind = MTF_MIXER_GATED;
    mixer->d_inner = mtf_config_size(c, "lru_width", n->d_model);
    mixer->value_heads = s->heads;
    mixer->taps = mtf_config_size(c, "conv1d_width", 4);
    mixer->bias = mixer->convolution_bias = true;
    mixer->in = "temporal_block.linear_x";
    mixer->gate = "temporal_block.linear_y";
    mixer->convolution = "temporal_block.conv_1d";
    mixer->step = "temporal_block.rg_lru.recurrent_gate";
    mixer->read = "temporal_block.rg_lru.input_gate";
    mixer->forget_rate = "temporal_block.rg_lru.recurrent_param";
    mixer->out = "temporal_block.linear_out";
    if (mixer->d_inner % s->heads != 0 || s->d_ff < 1)
        mtf_config_fail(c, "lru_width", "a multiple of num_attention_heads is expected");
    read_block_types(c, s);
    s->names.q = "temporal_block.q_proj";
    s->names.k = "temporal_block.k_proj";
    s->names.v = "temporal_block.v_proj";
    s->names.o = "temporal_block.o_proj";
    s->names.gate = "mlp_block.gate_proj";
    s->names.up = "mlp_block.up_proj";
    s->names.down = "mlp_block.down_proj";
    s->names.before_attention = "temporal_pre_norm";
    s->names.before_ffn = "channel_pre_norm";
    s->names.final_norm = "model.final_norm";
    mtf_type_ignore(c,
                    (const char *const[]){ "w_init_variance_scale", "final_w_init_variance_scale",
                                           "embeddings_scale_by_sqrt_dim", NULL });
}

const MtfArchitectureType mtf_hybrid_types[] = {
    { "jamba", read_jamba },
    { "nemotron_h", read_nemotron_h },
    { "recurrent_gemma", read_recurrent_gemma },
    { NULL, NULL },
};
