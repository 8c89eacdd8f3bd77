// SPDX-License-Identifier: GPL-3.0-or-later
/* Llama, and those that changed a little of it. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>

static void read_llama(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        32000, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 1e4, false
    };
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, &n->decoder);
    n->decoder.ffn_bias = mtf_config_flag(c, "mlp_bias", false);
}

static void read_mistral(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 32000, 4096,   14336, 32,  32,   8,
                                           0,     131072, 1e-6,  1e4, false };
    mtf_type_llama(c, n, &standard);
    mtf_type_window(c, &n->decoder, 4096);
}

/* Ministral: windows in the layers that say so, or in all. */
static void read_ministral(MtfConfig *c, MtfArchitecture *n) {
    read_mistral(c, n);
    mtf_type_layer_types(c, &n->decoder);
}

/* Ministral 3: queries of places beyond those that the model was first made for grow with the text. */
static void read_ministral3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 131072, 4096,   14336, 34,  32,   8,
                                           128,    262144, 1e-5,  1e6, false };
    n->decoder.temper_all = true;
    mtf_type_llama(c, n, &standard);
    mtf_type_window(c, &n->decoder, 0);
    if (n->decoder.temper_places < 0)
        mtf_config_fail(c, "rope_parameters", "original_max_position_embeddings is below 0");
}

static void read_qwen2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 4096,  22016, 32,  32,   32,
                                           0,      32768, 1e-6,  1e4, false };
    mtf_type_llama(c, n, &standard);
    mtf_type_qwen_window(c, &n->decoder, 28);
    n->decoder.q_bias = n->decoder.k_bias = n->decoder.v_bias = true;
}

/* The text part of Qwen 2 and 2.5 VL, whose pictures are not read: of a text all sections of its rotary
 * positions count alike, so that it is Qwen 2. */
static void read_qwen2_vl(MtfConfig *c, MtfArchitecture *n) {
    static const char *const keys[] = { "image_token_id",        "video_token_id",
                                        "vision_start_token_id", "vision_end_token_id",
                                        "vision_token_id",       NULL };
    MtfJson value;
    n->decoder.rotary_sections = true;
    read_qwen2(c, n);
    mtf_type_ignore(c, keys);
    if (mtf_config_find(c, "vision_config", &value))
        mtf_config_leave_out(c, "vision_config", "pictures are not read");
}

static void read_qwen3_sizes(MtfConfig *c, MtfArchitecture *n, const MtfTypeSizes *standard) {
    mtf_type_llama(c, n, standard);
    mtf_type_qwen_window(c, &n->decoder, 28);
    mtf_type_attention_bias(c, &n->decoder);
    mtf_type_head_norms(&n->decoder);
}

static void read_qwen3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 4096,  22016, 32,  32,   32,
                                           128,    32768, 1e-6,  1e4, false };
    read_qwen3_sizes(c, n, &standard);
}

/* The text part of Qwen 3 VL, as that of Qwen 2 VL. */
static void read_qwen3_vl(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151936, 4096,   22016, 32,  32,   32,
                                           128,    128000, 1e-6,  5e6, false };
    n->decoder.rotary_sections = true;
    read_qwen3_sizes(c, n, &standard);
}

/* Seed-OSS: the matrix behind attention has a bias of its own or none. */
static void read_seed_oss(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 155136, 4096,   27648, 64,  80,   8,
                                           128,    524288, 1e-6,  1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "attention_bias", true);
    s->o_bias = mtf_config_flag(c, "attention_out_bias", false);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    n->dropout.shares = n->dropout.shares < 0 ? 0.1 : n->dropout.shares;
    n->dropout.branches = n->dropout.branches < 0 ? 0.1 : n->dropout.branches;
}

/* ERNIE 4.5: pairs of features that turn lie side by side. */
static void read_ernie4_5(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 103424, 1024,   3072, 18,  16,  2,
                                           128,    131072, 1e-5, 5e5, true };
    n->decoder.rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    mtf_type_all_biases(&n->decoder, mtf_config_flag(c, "use_bias", false));
}

/* Helium: likewise. */
static void read_helium(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 48000, 2560, 7040, 24,  20,   20,
                                           128,   4096, 1e-8, 1e5, false };
    MtfStack *s = &n->decoder;
    s->rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "attention_bias", false);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
}

/* CWM: Llama with a window in the layers that say so. */
static void read_cwm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 128256, 6144,   21504, 64,  48,   8,
                                           128,    131072, 1e-5,  1e6, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    mtf_type_window(c, s, 8192);
    mtf_type_window_pattern(c, s, 4);
    mtf_type_layer_types(c, s);
}

/* Hunyuan: norms of queries and keys that have turned. */
static void read_hunyuan(MtfConfig *c, MtfArchitecture *n) {
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
    mtf_type_ignore(c, (const char *const[]){ "eod_token_id", "sep_token_id", NULL });
}

/* Jais 2: norms of means and no gate. */
static void read_jais2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 150272, 3328, 26624, 32,  26,   26,
                                           128,    8192, 1e-5,  5e5, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", true);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", true);
    mtf_type_without_gate(c, s, "relu2");
}

/* Apertus: no gate, but a function of two learned numbers; norms of queries and keys. */
static void read_apertus(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 131072, 4096,  14336, 32,   32,   0,
                                           0,      65536, 1e-5,  12e6, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_head_norms(s);
    mtf_type_without_gate(c, s, "xielu");
    s->names.before_attention = "attention_layernorm";
    s->names.before_ffn = "feedforward_layernorm";
    s->names.activation = "mlp.act_fn.";
}

/* BitNet: norms of what the last matrix of each part reads. Its weights are those that training kept; what rounds them to
 * -1, 0 and 1 is a quantization_config. */
static void read_bitnet(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        128256, 2560, 6912, 30, 20, 5, 0, 2048, 1e-5, 5e5, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->activation = mtf_config_activation(c, "hidden_act", "relu2");
    s->names.on_heads = "self_attn.attn_sub_norm";
    s->names.on_hidden = "mlp.ffn_sub_norm";
}

/* Arcee: Llama without a gate. */
static void read_arcee(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        32000, 2560, 18432, 32, 32, 0, 0, 4096, 1e-5, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    mtf_type_without_gate(c, s, "relu2");
}

static void read_phi3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        32064, 3072, 8192, 32, 32, 0, 0, 4096, 1e-5, 1e4, false
    };
    MtfStack *s = &n->decoder;
    n->old_context = mtf_config_size(c, "original_max_position_embeddings", 4096);
    mtf_type_llama(c, n, &standard);
    mtf_type_window(c, s, 0);
    s->names.q = s->names.k = s->names.v = s->names.gate = s->names.up = NULL;
    s->names.qkv = "self_attn.qkv_proj";
    s->names.gate_up = "mlp.gate_up_proj";
}

/* Granite: every branch, the scores and the logits have a factor of their own. */
void mtf_type_granite(MtfConfig *c, MtfArchitecture *n) {
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

/* EXAONE 3 and 3.5: Llama in GPT-2's names. */
static void read_exaone(MtfConfig *c, MtfArchitecture *n) {
    MtfTypeSizes standard = { 102400, 2048, 8192, 32, 32, 0, 0, 2048, 1e-5, 1e4, false };
    MtfStack *s = &n->decoder;
    standard.layers = mtf_config_count(c, "num_layers", standard.layers);
    standard.epsilon = mtf_config_number(c, "layer_norm_epsilon", standard.epsilon);
    mtf_type_llama(c, n, &standard);
    s->activation = mtf_config_activation(c, "activation_function", "silu");
    s->names = (MtfStackNames){ .layer = "transformer.h.%d.",
                                .q = "attn.attention.q_proj",
                                .k = "attn.attention.k_proj",
                                .v = "attn.attention.v_proj",
                                .o = "attn.attention.out_proj",
                                .gate = "mlp.c_fc_0",
                                .up = "mlp.c_fc_1",
                                .down = "mlp.c_proj",
                                .before_attention = "ln_1",
                                .before_ffn = "ln_2",
                                .final_norm = "transformer.ln_f" };
    n->embedding = "transformer.wte";
}

/* MiniCPM: factors of embeddings, of branches by the number of layers, and of logits by the width of a small model. */
static void read_minicpm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        32000, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 1e4, true
    };
    int64_t narrow;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, &n->decoder);
    narrow = mtf_config_size(c, "dim_model_base", 1);
    n->embedding_scale = mtf_config_number(c, "scale_emb", 1);
    n->branch_scale = mtf_config_number(c, "scale_depth", 1) / sqrt((double)n->decoder.layers);
    n->logit_scale = (double)narrow / (double)n->d_model;
    if (!(n->branch_scale > 0) || !(n->embedding_scale > 0))
        mtf_config_fail(c, n->branch_scale > 0 ? "scale_emb" : "scale_depth",
                        "a factor above 0 is expected");
    mtf_type_ignore(c, (const char *const[]){ "rope_type", NULL });
}

/* InternLM 2 and 2.5: queries, keys and values of each head of keys stand together in one matrix. */
static void read_internlm2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        103168, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 1e4, false
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_all_biases(s, mtf_config_flag(c, "bias", true));
    s->ffn_bias = false;
    s->qkv_by_head = true;
    s->names = (MtfStackNames){ .layer = "model.layers.%d.",
                                .qkv = "attention.wqkv",
                                .o = "attention.wo",
                                .gate = "feed_forward.w1",
                                .up = "feed_forward.w3",
                                .down = "feed_forward.w2",
                                .before_attention = "attention_norm",
                                .before_ffn = "ffn_norm",
                                .final_norm = "model.norm" };
    n->embedding = "model.tok_embeddings";
    n->head = "output";
}

static void read_smollm3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        128256, 2048, 11008, 36, 16, 4, 0, 32768, 1e-6, 2e6, true
    };
    MtfStack *s = &n->decoder;
    bool on = mtf_config_flag(c, "use_sliding_window", false);
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    mtf_type_window(c, s, 0);
    s->window_rule = on && s->window > 0 ? MTF_WINDOW_LISTED : MTF_WINDOW_NONE;
    mtf_config_integer(c, "max_window_layers", 0, 0);
    read_straight_layers(c, s);
    mtf_type_layer_types(c, s);
}

static const MtfTypeSizes olmo_sizes = { 50304, 4096, 11008, 32, 32, 0, 0, 2048, 1e-5, 1e4, false };

/* OLMo 2: norms of all heads' queries and keys together. */
static void read_olmo2(MtfConfig *c, MtfArchitecture *n) {
    mtf_type_llama(c, n, &olmo_sizes);
    mtf_type_attention_bias(c, &n->decoder);
    mtf_type_norm_behind(&n->decoder, MTF_HEAD_NORM_WIDE);
}

/* OLMo 3: three of four layers have a window, and turn by angles that nothing stretches. */
static void read_olmo3(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    MtfTypeSizes standard = olmo_sizes;
    standard.rotary_base = 5e5;
    s->window_rotary_base = mtf_config_number(c, "rope_theta", standard.rotary_base);
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_norm_behind(s, MTF_HEAD_NORM_WIDE);
    mtf_type_window(c, s, 4096);
    mtf_type_window_pattern(c, s, 4);
    mtf_type_layer_types(c, s);
}

void mtf_type_exaone_windows(MtfConfig *c, MtfStack *s) {
    MtfJson pattern;
    mtf_type_window(c, s, 4096);
    if (!mtf_config_find(c, "sliding_window_pattern", &pattern) || !cJSON_IsString(pattern.node))
        mtf_type_window_pattern(c, s, 4);
    else if (!mtf_config_find(c, "layer_types", &pattern))
        mtf_config_fail(c, "sliding_window_pattern",
                        "letters are read where layer_types says the same");
    mtf_type_layer_types(c, s);
    if (s->window > 0)
        mtf_type_straighten_whole(s);
}

/* EXAONE 4: as OLMo 2, but for norms of each head. */
static void read_exaone4(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 102400, 4096, 16384, 32,  32,   32,
                                           0,      2048, 1e-5,  1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_norm_behind(s, MTF_HEAD_NORM_EACH);
    mtf_type_exaone_windows(c, s);
}

/* OLMo: norms without scale and bias; queries, keys and values may be kept within a limit. */
static void read_olmo(MtfConfig *c, MtfArchitecture *n) {
    mtf_type_llama(c, n, &olmo_sizes);
    mtf_type_attention_bias(c, &n->decoder);
    mtf_type_qkv_limit(c, &n->decoder);
    n->rms = false;
    n->norm_bare = true;
    n->epsilon = 1e-5;
}

/* nanochat: norms without scales, of embeddings and of heads that have turned, too; they turn the other way. */
static void read_nanochat(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 50304, 768, 8192, 12, 6, 6, 0, 2048, 1e-6, 1e4, false };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    mtf_type_without_gate(c, s, "relu2");
    n->logit_softcap = mtf_config_number(c, "final_logit_softcapping", 15);
    n->norm_bare = true;
    s->rotary_angle = -s->rotary_angle;
    s->head_norm = MTF_HEAD_NORM_BARE;
    s->head_norm_last = true;
    s->names.embedding_norm = "norm";
    s->names.up = "mlp.fc1";
    s->names.down = "mlp.fc2";
}

/* GLM: half of a head's features turn, pairs side by side; the gate and what it opens are one matrix. */
static void read_glm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 151552, 4096,   13696,     40,  32,   2,
                                           128,    131072, 1.5625e-7, 1e4, false };
    MtfStack *s = &n->decoder;
    s->rotary_share = 0.5;
    s->rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "attention_bias", true);
    s->names.gate = s->names.up = NULL;
    s->names.gate_up = "mlp.gate_up_proj";
}

/* GLM-4 of 2025: norms behind both branches, too. */
static void read_glm4(MtfConfig *c, MtfArchitecture *n) {
    read_glm(c, n);
    n->decoder.names.on_attention = "post_self_attn_layernorm";
    n->decoder.names.on_ffn = "post_mlp_layernorm";
}

/* Command R: both parts look at one norm, which has no bias; pairs of features that turn lie side by side. */
static void make_cohere(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    mtf_type_layer_norms(c, n, "layer_norm_eps");
    mtf_type_attention_bias(c, s);
    n->norm_unbiased = true;
    n->logit_scale = mtf_config_number(c, "logit_scale", 0.0625);
    s->parallel = true;
    s->names.before_attention = s->names.before_ffn = NULL;
    s->names.before_both = "input_layernorm";
    if (n->logit_scale == 0)
        mtf_config_fail(c, "logit_scale", "a factor other than 0 is expected");
}

static void read_cohere(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        256000, 8192, 22528, 40, 64, 0, 0, 8192, 1e-5, 1e4, true
    };
    n->decoder.rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    make_cohere(c, n);
    if (mtf_config_flag(c, "use_qk_norm", false)) {
        mtf_type_head_norms(&n->decoder);
        n->decoder.head_norm = MTF_HEAD_NORM_OWN;
    }
}

/* Command R7B: every fourth layer sees all and does not turn, the others have a window. */
static void read_cohere2(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        256000, 8192, 22528, 40, 64, 0, 0, 8192, 1e-5, 1e4, true
    };
    MtfStack *s = &n->decoder;
    s->rotary_adjacent = true;
    mtf_type_llama(c, n, &standard);
    make_cohere(c, n);
    mtf_type_window(c, s, 4096);
    mtf_type_window_pattern(c, s, 4);
    mtf_type_layer_types(c, s);
    mtf_type_straighten_whole(s);
    if (s->window == 0)
        mtf_config_fail(c, "sliding_window", "a window is expected");
    mtf_type_ignore(c, (const char *const[]){
                           "layer_switch", "order_of_interleaved_layers", "position_embedding_type",
                           "rotary_pct", "use_embedding_sharing", "use_gated_activation",
                           "use_parallel_block", "use_parallel_embedding", NULL });
}

const MtfArchitectureType mtf_llama_types[] = {
    { "llama", read_llama },
    { "mistral", read_mistral },
    { "qwen2", read_qwen2 },
    { "qwen3", read_qwen3 },
    { "qwen3_vl_text", read_qwen3_vl },
    { "qwen2_vl", read_qwen2_vl },
    { "qwen2_vl_text", read_qwen2_vl },
    { "qwen2_5_vl", read_qwen2_vl },
    { "qwen2_5_vl_text", read_qwen2_vl },
    { "phi3", read_phi3 },
    { "granite", mtf_type_granite },
    { "smollm3", read_smollm3 },
    { "nanochat", read_nanochat },
    { "olmo", read_olmo },
    { "olmo2", read_olmo2 },
    { "olmo3", read_olmo3 },
    { "glm", read_glm },
    { "glm4", read_glm4 },
    { "cohere", read_cohere },
    { "cohere2", read_cohere2 },
    { "exaone", read_exaone },
    { "exaone4", read_exaone4 },
    { "minicpm", read_minicpm },
    { "internlm2", read_internlm2 },
    { "seed_oss", read_seed_oss },
    { "ernie4_5", read_ernie4_5 },
    { "helium", read_helium },
    { "hunyuan_v1_dense", read_hunyuan },
    { "cwm", read_cwm },
    { "apertus", read_apertus },
    { "arcee", read_arcee },
    { "bitnet", read_bitnet },
    { "ministral", read_ministral },
    { "ministral3", read_ministral3 },
    { "jais2", read_jais2 },
    { NULL, NULL },
};
