// SPDX-License-Identifier: GPL-3.0-or-later
/* Decoders some of whose layers, or all, have something else in the place of attention. */
#include "analyzer/models/types/type_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Whether a type's word is said, which may be transformers' newer one. */
static bool is_word(const char *said, const char *word) {
    const char *newer = strcmp(word, "mamba") == 0       ? "linear_attention"
                        : strcmp(word, "attention") == 0 ? "full_attention"
                                                         : word;
    return strcmp(said, word) == 0 || strcmp(said, newer) == 0;
}

/* A word a layer at a key, `word` those that have the mixer, `attention` the others. Whether the list is there. */
static bool read_mixed_layers(MtfConfig *c, MtfStack *s, const char *key, const char *word,
                              const char *attention) {
    MtfJson list, item;
    int64_t layer = 0;
    if (!mtf_config_find(c, key, &list))
        return false;
    c->failed = !mtf_json_array(&list, c->error);
    if (!c->failed && mtf_json_length(&list) != s->layers)
        mtf_config_fail(c, key, "a word for each of %d layers is expected", (int)s->layers);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), layer++) {
        const char *said = "";
        if (!mtf_json_string(&item, &said, c->error))
            c->failed = true;
        else if (is_word(said, word))
            mtf_layers_add(s->mixer.layers, layer);
        else if (!is_word(said, attention))
            c->failed = !mtf_json_fail(&item, c->error,
                                       "layers of type \"%s\" are not supported; there are "
                                       "%s and %s",
                                       said, attention, word);
    }
    return true;
}

/* Layers that a list does not name as those of attention have the mixer. */
static void read_attention_layers(MtfConfig *c, MtfStack *s, const char *key) {
    MtfJson list, item;
    int64_t layer = 0;
    if (!mtf_config_find(c, key, &list))
        return;
    memset(s->mixer.layers, 0xff, sizeof s->mixer.layers);
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item)) {
        c->failed = !mtf_json_integer(&item, 0, s->layers - 1, &layer, c->error);
        s->mixer.layers[layer / 64] &= ~(UINT64_C(1) << layer % 64);
    }
}

/* ---- LFM2 ------------------------------------------------------------------------------------ */

/* Short convolutions in most layers, norms of each head's queries and keys in the others. */
static void make_lfm2(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->epsilon = mtf_config_number(c, "norm_eps", 1e-5);
    n->tied = mtf_config_flag(c, "tie_embedding", n->tied);
    s->head_norm = MTF_HEAD_NORM_EACH;
    s->mixer.kind = MTF_MIXER_CONVOLUTION;
    s->mixer.taps = mtf_config_size(c, "conv_L_cache", 3);
    s->mixer.bias = s->mixer.convolution_bias = mtf_config_flag(c, "conv_bias", false);
    if (!read_mixed_layers(c, s, "layer_types", "conv", "full_attention"))
        read_attention_layers(c, s, "full_attn_idxs");
    else
        mtf_type_ignore(c, (const char *const[]){ "full_attn_idxs", NULL });
    s->mixer.in = "conv.in_proj";
    s->mixer.convolution = "conv.conv";
    s->mixer.out = "conv.out_proj";
    s->names.o = "self_attn.out_proj";
    s->names.q_norm = "self_attn.q_layernorm";
    s->names.k_norm = "self_attn.k_layernorm";
    s->names.gate = "feed_forward.w1";
    s->names.up = "feed_forward.w3";
    s->names.down = "feed_forward.w2";
    s->names.before_attention = "operator_norm";
    s->names.before_ffn = "ffn_norm";
    s->names.final_norm = "model.embedding_norm";
    mtf_type_ignore(c, (const char *const[]){ "block_dim", "block_mlp_init_scale", "block_norm_eps",
                                              "block_out_init_scale", "block_use_swiglu",
                                              "block_use_xavier_init", "conv_dim", "conv_dim_out",
                                              "conv_use_xavier_init", "num_heads", "use_pos_enc",
                                              NULL });
}

/* Two thirds of what the file says, times a factor, rounded up to a multiple, unless it is taken as it is. */
static void adjust_ffn(MtfConfig *c, MtfStack *s) {
    int64_t said = mtf_config_size(c, "block_ff_dim", s->d_ff);
    int64_t multiple = mtf_config_size(c, "block_multiple_of", 256);
    double factor = mtf_config_number(c, "block_ffn_dim_multiplier", 1);
    s->d_ff = said;
    if (!mtf_config_flag(c, "block_auto_adjust_ff_dim", true))
        return;
    if (!(factor > 0 && factor < 1e3))
        mtf_config_fail(c, "block_ffn_dim_multiplier", "a factor above 0 is expected");
    else
        s->d_ff = ((int64_t)(factor * (double)(2 * said / 3)) + multiple - 1) / multiple * multiple;
}

static void read_lfm2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        65536, 2560, 12288, 32, 32, 8, 0, 128000, 1e-5, 1e6, true
    };
    mtf_type_llama(c, n, &standard);
    make_lfm2(c, n);
    adjust_ffn(c, &n->decoder);
}

/* With experts, whose shares are sigmoids that a bias is added to where they are compared. */
static void read_lfm2_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        65536, 2048, 7168, 32, 32, 8, 0, 128000, 1e-5, 1e6, true
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    make_lfm2(c, n);
    mtf_type_qwen_experts(c, s, 32, 4);
    mtf_type_first_dense(s, mtf_config_integer(c, "num_dense_layers", 0, 2));
    s->d_expert = mtf_config_size(c, "moe_intermediate_size", 1792);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", true);
    s->expert_scale = mtf_config_number(c, "routed_scaling_factor", 1);
    s->routing.sigmoid = true;
    s->routing.biased = mtf_config_flag(c, "use_expert_bias", true);
    s->names.router = "feed_forward.gate";
    s->names.expert_gate = "feed_forward.experts.{}.w1";
    s->names.expert_up = "feed_forward.experts.{}.w3";
    s->names.expert_down = "feed_forward.experts.{}.w2";
    s->names.choice_bias = s->routing.biased ? "feed_forward.expert_bias" : NULL;
}

/* ---- The gated delta rule ---------------------------------------------------------------------- */

static void check_delta_heads(MtfConfig *c, const MtfMixer *mixer) {
    if (mixer->value_heads % mixer->key_heads != 0)
        mtf_config_fail(c, "linear_num_value_heads",
                        "a multiple of linear_num_key_heads is expected");
}

/* Whether rotary positions have a base, which a file that says null has not. */
static bool says_base(const MtfConfig *c) {
    MtfJson object, base;
    if (mtf_type_is_null(c, "rope_theta") || mtf_type_is_null(c, "rope_parameters"))
        return false;
    return !mtf_json_find(c->root, "rope_parameters", &object) ||
           !mtf_json_find(&object, "rope_theta", &base) || !cJSON_IsNull(base.node);
}

/* ---- Qwen 3 Next and 3.5 --------------------------------------------------------------------- */

/* Three of four layers, or those that are listed, have the gated delta rule, the others attention whose heads are
 * gated and a quarter of whose features turn. */
static void make_qwen_next(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard) {
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    s->rotary_share = 0.25;
    mtf_type_llama(c, n, standard);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    n->norm_plus_one = true;
    s->head_gate = true;
    mixer->kind = MTF_MIXER_DELTA;
    mixer->taps = mtf_config_size(c, "linear_conv_kernel_dim", 4);
    mixer->key_heads = mtf_config_size(c, "linear_num_key_heads", 16);
    mixer->value_heads = mtf_config_size(c, "linear_num_value_heads", 32);
    mixer->d_key = mtf_config_size(c, "linear_key_head_dim", 128);
    mixer->d_value = mtf_config_size(c, "linear_value_head_dim", 128);
    check_delta_heads(c, mixer);
    int64_t every = mtf_config_size(c, "full_attention_interval", 4);
    if (!read_mixed_layers(c, s, "layer_types", "linear_attention", "full_attention"))
        for (int64_t layer = 0; layer < s->layers; layer++)
            if ((layer + 1) % every != 0)
                mtf_layers_add(mixer->layers, layer);
    mixer->convolution = "linear_attn.conv1d";
    mixer->norm = "linear_attn.norm";
    mixer->out = "linear_attn.out_proj";
    mixer->forget_rate = "linear_attn.A_log";
    mixer->forget_bias = "linear_attn.dt_bias";
}

static void read_qwen3_next(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 2048,  5632, 48,  16,   2,
                                           256,    32768, 1e-6, 1e4, false };
    MtfStack *s = &n->decoder;
    make_qwen_next(c, n, &standard);
    s->mixer.in = "linear_attn.in_proj_qkvz";
    s->mixer.correct = "linear_attn.in_proj_ba";
    mtf_type_qwen_experts(c, s, 512, 10);
    s->renormalise = mtf_config_flag(c, "norm_topk_prob", true);
    mtf_type_qwen_layers(c, s, 512);
    mtf_type_qwen_shared(c, s, 512);
}

/* The text part of Qwen 3.5, whose matrices stand apart. */
static void make_qwen3_5(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard) {
    MtfMixer *mixer = &n->decoder.mixer;
    n->decoder.rotary_sections = true;
    make_qwen_next(c, n, standard);
    mixer->in = "linear_attn.in_proj_qkv";
    mixer->gate = "linear_attn.in_proj_z";
    mixer->correct = "linear_attn.in_proj_b";
    mixer->forget = "linear_attn.in_proj_a";
    if (!mtf_config_flag(c, "attn_output_gate", true))
        mtf_config_fail(c, "attn_output_gate", "only true is supported");
    mtf_type_ignore(c, (const char *const[]){ "mamba_ssm_dtype", "mtp_num_hidden_layers",
                                              "mtp_use_dedicated_embeddings", NULL });
}

static void read_qwen3_5(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 248320, 4096,  12288, 32,  16,   4,
                                           256,    32768, 1e-6,  1e4, false };
    MtfJson list;
    make_qwen3_5(c, n, &standard);
    if (mtf_config_find(c, "mlp_only_layers", &list))
        mtf_config_leave_out(c, "mlp_only_layers", "there are no experts");
}

static void read_qwen3_5_moe(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 248320, 2048,  512,  40,  16,   2,
                                           256,    32768, 1e-6, 1e4, false };
    MtfStack *s = &n->decoder;
    make_qwen3_5(c, n, &standard);
    mtf_type_qwen_experts(c, s, 256, 8);
    s->renormalise = true;
    mtf_type_qwen_layers(c, s, 512);
    mtf_type_qwen_shared(c, s, 512);
    s->experts_bare = true;
    s->names.expert_gate_up = "mlp.experts.gate_up_proj";
    s->names.expert_down = "mlp.experts.down_proj";
}

/* OLMo Hybrid: the gated delta rule with matrices and convolutions that stand apart, whose layers have norms before
 * their parts; every fourth has attention as OLMo 3, with norms behind them, and turns where the file says a base. */
static void read_olmo_hybrid(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 100352, 3840,  11008, 32,  30,   0,
                                           0,      65536, 1e-6,  5e5, false };
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    bool turns = says_base(c);
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_norm_behind(s, MTF_HEAD_NORM_WIDE);
    s->rotary_base = turns ? s->rotary_base : 0;
    s->mixers_lead = true;
    s->names.before_attention = "input_layernorm";
    s->names.before_ffn = "post_attention_layernorm";
    mixer->kind = MTF_MIXER_DELTA;
    mixer->taps = mtf_config_size(c, "linear_conv_kernel_dim", 4);
    mixer->key_heads = mtf_config_size(c, "linear_num_key_heads", s->heads);
    mixer->value_heads = mtf_config_size(c, "linear_num_value_heads", s->heads);
    mixer->d_key =
        mtf_config_size(c, "linear_key_head_dim", MAX(1, 3 * n->d_model / 4 / mixer->key_heads));
    mixer->d_value = mtf_config_size(c, "linear_value_head_dim", 2 * mixer->d_key);
    mixer->correct_scale = mtf_config_flag(c, "linear_allow_neg_eigval", true) ? 2 : 1;
    mixer->norm_epsilon = 1e-5;
    check_delta_heads(c, mixer);
    if (!read_mixed_layers(c, s, "layer_types", "linear_attention", "full_attention"))
        for (int64_t layer = 0; layer < s->layers; layer++)
            if (layer % 4 != 3 && (layer < s->layers - 1 || s->layers > 3))
                mtf_layers_add(mixer->layers, layer);
    for (int i = 0; i < 3; i++) {
        mixer->ins[i] = (const char *const[]){ "linear_attn.q_proj", "linear_attn.k_proj",
                                               "linear_attn.v_proj" }[i];
        mixer->convolutions[i] =
            (const char *const[]){ "linear_attn.q_conv1d", "linear_attn.k_conv1d",
                                   "linear_attn.v_conv1d" }[i];
    }
    mixer->gate = "linear_attn.g_proj";
    mixer->correct = "linear_attn.b_proj";
    mixer->forget = "linear_attn.a_proj";
    mixer->norm = "linear_attn.o_norm";
    mixer->out = "linear_attn.o_proj";
    mixer->forget_rate = "linear_attn.A_log";
    mixer->forget_bias = "linear_attn.dt_bias";
    mtf_type_ignore(c,
                    (const char *const[]){ "linear_a_log_min", "linear_a_log_max", "linear_dt_min",
                                           "linear_dt_max", "linear_dt_init_floor", NULL });
}

/* ---- RWKV ------------------------------------------------------------------------------------- */

static void read_rwkv(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 50277);
    n->d_model = mtf_config_size(c, "hidden_size", 4096);
    n->context = mtf_config_size(c, "context_length", 1024);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", false);
    n->embedding = "embeddings";
    n->head = "head";
    s->layers = mtf_config_count(c, "num_hidden_layers", 32);
    s->d_ff = mtf_config_size(c, "intermediate_size", MIN(4 * n->d_model, MTF_CONFIG_MOST));
    s->channel_mix = true;
    s->names = (MtfStackNames){ .layer = "blocks.%d.",
                                .before_attention = "ln1",
                                .before_ffn = "ln2",
                                .embedding_norm = "blocks.0.pre_ln",
                                .final_norm = "ln_out" };
    memset(mixer->layers, 0xff, sizeof mixer->layers);
    mixer->kind = MTF_MIXER_WKV;
    mixer->d_inner = mtf_config_size(c, "attention_hidden_size", n->d_model);
    mixer->forget_rate = "attention.time_decay";
    mixer->skip = "attention.time_first";
    mixer->out = "attention.output";
    if (n->epsilon != 1e-5)
        mtf_config_fail(c, "layer_norm_epsilon", "only 1e-5 is supported, which the last norm has");
    if (mtf_config_find(c, "rescale_every", &(MtfJson){ 0 }))
        mtf_config_leave_out(c, "rescale_every",
                             "numbers of 16 bits are kept small by it, which the last norm undoes");
}

/* ---- Mamba ----------------------------------------------------------------------------------- */

void mtf_type_ignore_scan(MtfConfig *c) {
    mtf_type_ignore(c, (const char *const[]){ "chunk_size",
                                              "d_inner",
                                              "d_model",
                                              "fused_add_norm",
                                              "mamba_chunk_size",
                                              "n_layer",
                                              "pad_vocab_size_multiple",
                                              "rescale_prenorm_residual",
                                              "residual_in_fp32",
                                              "rms_norm",
                                              "ssm_cfg",
                                              "time_step_floor",
                                              "time_step_init_scheme",
                                              "time_step_max",
                                              "time_step_min",
                                              "time_step_scale",
                                              "use_mambapy",
                                              "use_associative_scan",
                                              "use_mamba_kernels",
                                              NULL });
}

/* Every layer is a norm and a scan, in Mamba's names. */
static void make_mamba(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->rms = true;
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-5);
    n->context = 2048;
    n->embedding = "backbone.embeddings";
    n->head = "lm_head";
    s->one_part = true;
    s->activation = mtf_config_activation(c, "hidden_act", "silu");
    s->names = (MtfStackNames){ .layer = "backbone.layers.%d.",
                                .before_attention = "norm",
                                .final_norm = "backbone.norm_f" };
    memset(mixer->layers, 0xff, sizeof mixer->layers);
    mixer->taps = mtf_config_size(c, "conv_kernel", 4);
    mixer->bias = mtf_config_flag(c, "use_bias", false);
    mixer->convolution_bias = mtf_config_flag(c, "use_conv_bias", true);
    mixer->d_state = mtf_config_size(c, "state_size", 16);
    mixer->in = "mixer.in_proj";
    mixer->convolution = "mixer.conv1d";
    mixer->forget_rate = "mixer.A_log";
    mixer->skip = "mixer.D";
    mixer->out = "mixer.out_proj";
    mtf_type_ignore_scan(c);
}

/* What steps come from is a sixteenth of the width where the file does not say it. */
static void make_mamba1(MtfConfig *c, MtfArchitecture *n) {
    MtfMixer *mixer = &n->decoder.mixer;
    MtfJson rank;
    n->vocab = mtf_config_size(c, "vocab_size", 50280);
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->decoder.layers = mtf_config_count(c, "num_hidden_layers", 32);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    make_mamba(c, n);
    int64_t expand = MIN(mtf_config_size(c, "expand", 2), 1 << 20),
            sixteenth = (n->d_model + 15) / 16;
    bool said = mtf_config_find(c, "time_step_rank", &rank) && !cJSON_IsString(rank.node);
    mixer->kind = MTF_MIXER_SCAN;
    mixer->d_inner = mtf_config_size(c, "intermediate_size", expand * n->d_model);
    mixer->d_rank = said ? mtf_config_size(c, "time_step_rank", sixteenth) : sixteenth;
    mixer->read = "mixer.x_proj";
    mixer->step = "mixer.dt_proj";
}

static void read_mamba(MtfConfig *c, MtfArchitecture *n) {
    make_mamba1(c, n);
}

/* Falcon Mamba: norms without scales of what is read. */
static void read_falcon_mamba(MtfConfig *c, MtfArchitecture *n) {
    make_mamba1(c, n);
    n->decoder.mixer.bare_epsilon = mtf_config_number(c, "mixer_rms_eps", 1e-6);
    if (!(n->decoder.mixer.bare_epsilon > 0))
        mtf_config_fail(c, "mixer_rms_eps", "a number above 0 is expected");
    mtf_type_ignore(c, (const char *const[]){ "use_falcon_mambapy", NULL });
}

void mtf_type_step_limit(MtfConfig *c, MtfMixer *mixer) {
    MtfJson list, item;
    double ends[2] = { 0, 0 };
    int n = 0;
    if (!mtf_config_find(c, "time_step_limit", &list))
        return;
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed && n < 2;
         more = mtf_json_next(&item), n++)
        ends[n] = cJSON_IsNumber(item.node) ? item.node->valuedouble : HUGE_VAL;
    if (n == 2 && (ends[0] > 0 || ends[1] < HUGE_VAL)) {
        mixer->step_low = ends[0];
        mixer->step_high = MIN(ends[1], 1e30);
    }
}

/* ---- Mamba 2, alone and beside attention ------------------------------------------------------ */

/* The model's width times a factor at a key. */
static int64_t expanded(MtfConfig *c, const MtfArchitecture *n, const char *key) {
    return MIN(mtf_config_size(c, key, 2), 1 << 20) * n->d_model;
}

/* Heads, which must have `width` features together. */
static void check_scan_heads(MtfConfig *c, const MtfMixer *mixer, const char *key, int64_t width) {
    if (mixer->value_heads % mixer->key_heads != 0)
        mtf_config_fail(c, key, "%d heads cannot be in %d equal groups", (int)mixer->value_heads,
                        (int)mixer->key_heads);
    if (mixer->value_heads * mixer->d_value != width)
        mtf_config_fail(c, key, "heads must have %" PRId64 " features together", width);
}

static void read_mamba2(MtfConfig *c, MtfArchitecture *n) {
    MtfMixer *mixer = &n->decoder.mixer;
    n->vocab = mtf_config_size(c, "vocab_size", 32768);
    n->d_model = mtf_config_size(c, "hidden_size", 4096);
    n->decoder.layers = mtf_config_count(c, "num_hidden_layers", 64);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", false);
    make_mamba(c, n);
    mixer->kind = MTF_MIXER_HEAD_SCAN;
    mixer->d_state = mtf_config_size(c, "state_size", 128);
    mixer->key_heads = mtf_config_size(c, "n_groups", 8);
    mixer->value_heads = mtf_config_size(c, "num_heads", 128);
    mixer->d_value = mtf_config_size(c, "head_dim", 64);
    mixer->forget_bias = "mixer.dt_bias";
    mixer->norm = "mixer.norm";
    check_scan_heads(c, mixer, "num_heads", expanded(c, n, "expand"));
    mtf_type_step_limit(c, mixer);
    mtf_type_ignore(c, (const char *const[]){ "norm_before_gate", "time_step_rank", NULL });
}

/* Scans of Mamba 2 in some layers, in Bamba's names; all their heads have `width` features. */
static void make_bamba(MtfConfig *c, MtfArchitecture *n, int64_t width) {
    MtfMixer *mixer = &n->decoder.mixer;
    MtfJson head;
    mixer->kind = MTF_MIXER_HEAD_SCAN;
    mixer->taps = mtf_config_size(c, "mamba_d_conv", 4);
    mixer->bias = mtf_config_flag(c, "mamba_proj_bias", false);
    mixer->convolution_bias = mtf_config_flag(c, "mamba_conv_bias", true);
    mixer->d_state = mtf_config_size(c, "mamba_d_state", 256);
    mixer->key_heads = mtf_config_size(c, "mamba_n_groups", 1);
    mixer->value_heads = mtf_config_size(c, "mamba_n_heads", 128);
    int64_t share = MAX(1, width / mixer->value_heads);
    bool said = mtf_config_find(c, "mamba_d_head", &head) && !cJSON_IsString(head.node);
    mixer->d_value = said ? mtf_config_size(c, "mamba_d_head", share) : share;
    mixer->in = "mamba.in_proj";
    mixer->convolution = "mamba.conv1d";
    mixer->forget_bias = "mamba.dt_bias";
    mixer->forget_rate = "mamba.A_log";
    mixer->skip = "mamba.D";
    mixer->norm = "mamba.norm";
    mixer->out = "mamba.out_proj";
    check_scan_heads(c, mixer, "mamba_n_heads", width);
    mtf_type_step_limit(c, mixer);
    mtf_type_ignore_scan(c);
}

/* Bamba: half of the features of attention's heads turn. */
static void read_bamba(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 128000, 4096,   14336, 32,  32,   8,
                                           0,      262144, 1e-5,  1e4, false };
    MtfStack *s = &n->decoder;
    MtfJson list;
    s->rotary_share = 0.5;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    make_bamba(c, n, expanded(c, n, "mamba_expand"));
    memset(s->mixer.layers, 0xff, sizeof s->mixer.layers);
    if (mtf_config_find(c, "attn_layer_indices", &list))
        read_attention_layers(c, s, "attn_layer_indices");
    s->names.before_ffn = "pre_ff_layernorm";
    s->names.gate = "feed_forward.gate_proj";
    s->names.up = "feed_forward.up_proj";
    s->names.down = "feed_forward.down_proj";
    s->names.final_norm = "model.final_layernorm";
    mtf_type_ignore(c, (const char *const[]){ "attn_rotary_emb", "num_logits_to_keep",
                                              "z_loss_coefficient", NULL });
}

/* The numbers of a list at a key, which has that many where it is there. */
static void read_scales(MtfConfig *c, const char *key, int n, double *scales) {
    MtfJson list, item;
    bool more = mtf_config_list(c, key, n, "numbers", &list) && mtf_json_first(&list, &item);
    for (int i = 0; more && !c->failed; more = mtf_json_next(&item), i++)
        c->failed = !mtf_json_number(&item, &scales[i], c->error);
}

/* Factors that stand for what training found (muP): those of inputs are joined with those of what is made of them. */
static void read_falcon_scales(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    double ffn[2] = { 1, 1 }, parts[5] = { 1, 1, 1, 1, 1 };
    double scan_in = mtf_config_number(c, "ssm_in_multiplier", 1);
    double attention_in = mtf_config_number(c, "attention_in_multiplier", 1);
    read_scales(c, "mlp_multipliers", 2, ffn);
    read_scales(c, "ssm_multipliers", 5, parts);
    s->gate_scale = ffn[0];
    s->ffn_scale = ffn[1];
    for (int i = 0; i < 5; i++)
        mixer->part_scales[i] = parts[i] * scan_in;
    mixer->scale = mtf_config_number(c, "ssm_out_multiplier", 1);
    s->scale *= attention_in * attention_in * mtf_config_number(c, "key_multiplier", 1);
    s->attention_scale = attention_in * mtf_config_number(c, "attention_out_multiplier", 1);
    n->embedding_scale = mtf_config_number(c, "embedding_multiplier", 1);
    n->logit_scale = mtf_config_number(c, "lm_head_multiplier", 1);
    if (attention_in != 1 && s->q_bias)
        mtf_config_fail(c, "attention_in_multiplier", "only 1 is supported beside attention_bias");
    if (scan_in != 1 && mixer->bias)
        mtf_config_fail(c, "ssm_in_multiplier", "only 1 is supported beside mamba_proj_bias");
}

/* Falcon H1: attention and a scan of Mamba 2 side by side in every layer. */
static void read_falcon_h1(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        128000, 4096, 14336, 32, 32, 8, 0, 8192, 1e-5, 1e4, false
    };
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    int64_t whole = expanded(c, n, "mamba_expand");
    int64_t width =
        mtf_config_size(c, "mamba_d_ssm", mtf_type_is_null(c, "mamba_d_ssm") ? whole : 1024);
    make_bamba(c, n, width);
    memset(mixer->layers, 0xff, sizeof mixer->layers);
    mixer->beside = mixer->norm_by_group = true;
    mixer->norm_before_gate = mtf_config_flag(c, "mamba_norm_before_gate", true);
    if (!mtf_config_flag(c, "mamba_rms_norm", false))
        mixer->norm = NULL;
    if (mtf_config_flag(c, "projectors_bias", false) != mixer->bias)
        mtf_config_fail(c, "projectors_bias", "%s is expected, as mamba_proj_bias has it",
                        mixer->bias ? "true" : "false");
    read_falcon_scales(c, n);
    s->names.before_ffn = "pre_ff_layernorm";
    s->names.gate = "feed_forward.gate_proj";
    s->names.up = "feed_forward.up_proj";
    s->names.down = "feed_forward.down_proj";
    s->names.final_norm = "model.final_layernorm";
    mtf_type_ignore(c, (const char *const[]){ "mamba_use_mlp", "num_logits_to_keep", NULL });
}

/* Granite 4: Granite's factors, experts beside a hidden layer of all tokens or that alone, and no positions unless
 * they are asked for. */
static void read_granitemoehybrid(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    mtf_type_granite_shared(c, n);
    make_bamba(c, n, expanded(c, n, "mamba_expand"));
    if (!read_mixed_layers(c, s, "layer_types", "mamba", "attention") &&
        !read_mixed_layers(c, s, "layers_block_type", "mamba", "attention"))
        mtf_config_fail(c, "layer_types", "a word for each of %d layers is expected",
                        (int)s->layers);
    const char *places = mtf_config_word(c, "position_embedding_type", "nope");
    if (strcmp(places, "nope") != 0 && strcmp(places, "rope") != 0)
        mtf_config_fail(c, "position_embedding_type", "rope or nope is expected");
    if (strcmp(places, "rope") != 0)
        s->rotary_base = 0;
    if (strcmp(mtf_config_word(c, "normalization_function", "rmsnorm"), "rmsnorm") != 0)
        mtf_config_fail(c, "normalization_function", "only rmsnorm is supported");
    mtf_type_ignore(c, (const char *const[]){ "init_method", "mamba_d_head", NULL });
}

/* MiniMax Text 01: lightning attention in the layers that say so, Mixtral's experts; parts are added to what they read. */
static void read_minimax(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 32000, 4096,   14336, 32,  32,   8,
                                           0,     131072, 1e-5,  1e6, false };
    MtfStack *s = &n->decoder;
    MtfMixer *mixer = &s->mixer;
    mtf_type_llama(c, n, &standard);
    mtf_type_mixtral_experts(c, s, 8);
    mixer->kind = MTF_MIXER_LIGHTNING;
    mixer->value_heads = s->heads;
    mixer->d_key = mixer->d_value = s->d_kv;
    mixer->in = "self_attn.qkv_proj";
    mixer->gate = "self_attn.output_gate";
    mixer->norm = "self_attn.norm";
    mixer->out = "self_attn.out_proj";
    mixer->scale = mtf_config_number(c, "linear_attn_beta_factor", 1);
    s->attention_scale = mtf_config_number(c, "full_attn_beta_factor", 1);
    s->ffn_scale = mtf_config_number(c, "mlp_beta_factor", 1);
    s->add_to_normed = true;
    s->kept_scales[0] = mtf_config_number(c, "linear_attn_alpha_factor", 1);
    s->kept_scales[1] = mtf_config_number(c, "full_attn_alpha_factor", 1);
    s->kept_scales[2] = mtf_config_number(c, "mlp_alpha_factor", 1);
    if (!read_mixed_layers(c, s, "layer_types", "linear_attention", "full_attention"))
        mtf_config_fail(c, "layer_types", "a word for each of %d layers is expected",
                        (int)s->layers);
    mtf_type_jitter(c, s, "router_jitter_noise", true);
    if (mtf_config_find(c, "sliding_window", &(MtfJson){ 0 }))
        mtf_config_fail(c, "sliding_window", "only null is supported");
    mtf_type_ignore(c, (const char *const[]){ "block_size", NULL });
}

const MtfArchitectureType mtf_mixer_types[] = {
    { "rwkv", read_rwkv },
    { "mamba", read_mamba },
    { "falcon_mamba", read_falcon_mamba },
    { "mamba2", read_mamba2 },
    { "granitemoehybrid", read_granitemoehybrid },
    { "bamba", read_bamba },
    { "falcon_h1", read_falcon_h1 },
    { "minimax", read_minimax },
    { "qwen3_next", read_qwen3_next },
    { "olmo_hybrid", read_olmo_hybrid },
    { "qwen3_5_text", read_qwen3_5 },
    { "qwen3_5_moe_text", read_qwen3_5_moe },
    { "lfm2", read_lfm2 },
    { "lfm2_moe", read_lfm2_moe },
    { NULL, NULL },
};
