// SPDX-License-Identifier: GPL-3.0-or-later
/* A decoder beside an encoder: T5, the same with experts (Switch Transformers), BART and its kin, and Whisper. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

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
static void read_t5_projection(MtfConfig *c, MtfStack *s, const char *standard) {
    const char *word = mtf_config_word(c, "feed_forward_proj", standard);
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

/* What is left out: of the smallest published model. */
typedef struct {
    int64_t vocab, layers, heads, d_ff;
    const char *projection;
    bool tied;
} T5Sizes;

static void read_t5_stack(MtfConfig *c, MtfStack *s, const T5Sizes *standard) {
    s->heads = s->kv_heads = mtf_config_size(c, "num_heads", standard->heads);
    s->d_kv = mtf_config_size(c, "d_kv", 64);
    s->d_ff = mtf_config_size(c, "d_ff", standard->d_ff);
    s->buckets = mtf_config_count(c, "relative_attention_num_buckets", 32);
    s->max_distance = mtf_config_integer(c, "relative_attention_max_distance", 1, 128);
    s->scale = 1; /* it is in the initial weights */
    if (s->buckets < 4 || s->buckets % 4 != 0 || s->max_distance <= s->buckets / 2 ||
        s->max_distance > 65536)
        mtf_config_fail(c, "relative_attention_num_buckets",
                        "a multiple of 4 below twice relative_attention_max_distance is supported");
    read_t5_projection(c, s, standard->projection);
}

/* Where heads are not tied by themselves (mT5) their input is not scaled. Transformers 5 calls every head
 * tied, and says of those that were that their input is scaled; where it is not, files may hold a head of its
 * own. */
static void read_t5_head(MtfConfig *c, MtfArchitecture *n, bool standard) {
    bool tied = mtf_config_flag(c, "tie_word_embeddings", standard);
    bool scaled = mtf_config_flag(c, "scale_decoder_outputs", tied && standard);
    n->tied = tied && scaled;
    n->tied_by_files = tied && !scaled;
    n->logit_scale = scaled ? 1 / sqrt((double)n->d_model) : 1;
}

static void read_t5_sizes(MtfConfig *c, MtfArchitecture *n, const T5Sizes *standard) {
    mtf_type_drop(n, 0.1);
    n->kind = MTF_ARCHITECTURE_ENCODER_DECODER;
    n->rms = true;
    n->vocab = mtf_config_size(c, "vocab_size", standard->vocab);
    n->d_model = mtf_config_size(c, "d_model", 512);
    n->context = mtf_config_size(c, "n_positions", 512);
    n->epsilon = mtf_config_number(c, "layer_norm_epsilon", 1e-6);
    n->spread = 0;
    read_t5_head(c, n, standard->tied);
    read_t5_stack(c, &n->encoder, standard);
    n->decoder = n->encoder;
    n->encoder.layers = mtf_config_count(c, "num_layers", standard->layers);
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

static void read_t5(MtfConfig *c, MtfArchitecture *n) {
    read_t5_sizes(c, n, &(T5Sizes){ 32128, 6, 8, 2048, "relu", true });
}

/* T5 1.1 in a hundred languages. */
static void read_mt5(MtfConfig *c, MtfArchitecture *n) {
    read_t5_sizes(c, n, &(T5Sizes){ 250112, 8, 6, 1024, "gated-gelu", false });
}

/* UMT5: mT5 whose layers each have a table of positions. */
static void read_umt5(MtfConfig *c, MtfArchitecture *n) {
    read_t5_sizes(c, n, &(T5Sizes){ 250112, 8, 6, 1024, "gated-gelu", true });
    n->encoder.buckets_by_layer = n->decoder.buckets_by_layer = true;
    n->encoder.names.buckets = n->decoder.names.buckets =
        "layer.0.SelfAttention.relative_attention_bias";
    mtf_type_ignore(c, (const char *const[]){ "scalable_attention", NULL });
}

/* ---- Experts --------------------------------------------------------------------------------- */

/* The losses that balance experts are added while training where a config says so. */
static void read_router_losses(MtfConfig *c, MtfStack *s, double standard) {
    s->routing.auxiliary = mtf_config_number(c, "router_aux_loss_coef", standard);
    s->routing.z_loss = mtf_config_number(c, "router_z_loss_coef", standard);
}

/* Experts stand in layers 1, 1 + step, …, of `sparse` layers in all. */
static void read_switch_stack(MtfConfig *c, MtfStack *s, const char *key, const char *step_key) {
    int64_t sparse = mtf_config_integer(c, key, 0, 3);
    int64_t step = sparse > 0 ? MAX(1, s->layers / sparse) : s->layers;
    if (mtf_config_integer(c, step_key, 0, step) != step)
        mtf_config_fail(c, step_key, "layers over %s are expected, %d", key, (int)step);
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
    read_switch_stack(c, &n->encoder, "num_sparse_encoder_layers", "encoder_sparse_step");
    read_switch_stack(c, &n->decoder, "num_sparse_decoder_layers", "decoder_sparse_step");
    mtf_config_word(c, "router_dtype", "float32");
    mtf_config_word(c, "router_type", "tokens_masked");
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
    mtf_type_jitter(c, &n->encoder, "router_jitter_noise", false);
    mtf_type_jitter(c, &n->decoder, "router_jitter_noise", false);
}

/* ---- BART's names, which Whisper has, too ------------------------------------------------------ */

#define BART_SELF                                                                       \
    .q = "self_attn.q_proj", .k = "self_attn.k_proj", .v = "self_attn.v_proj",          \
    .o = "self_attn.out_proj", .before_attention = "self_attn_layer_norm", .up = "fc1", \
    .down = "fc2", .before_ffn = "final_layer_norm"

static const MtfStackNames bart_encoder = {
    BART_SELF,
    .layer = "model.encoder.layers.%d.",
    .final_norm = "model.encoder.layer_norm",
    .positions = "model.encoder.embed_positions",
};

static const MtfStackNames bart_decoder = {
    BART_SELF,
    .layer = "model.decoder.layers.%d.",
    .cross_q = "encoder_attn.q_proj",
    .cross_k = "encoder_attn.k_proj",
    .cross_v = "encoder_attn.v_proj",
    .cross_o = "encoder_attn.out_proj",
    .before_cross = "encoder_attn_layer_norm",
    .final_norm = "model.decoder.layer_norm",
    .positions = "model.decoder.embed_positions",
};

/* Sizes that are left out: of the smallest published model. */
typedef struct {
    int64_t layers, heads, d_ff;
} SideSizes;

/* Sizes of one side, "encoder" or "decoder", all of whose matrices have biases. */
static void read_bart_stack(MtfConfig *c, const MtfArchitecture *n, MtfStack *s, bool decodes,
                            const SideSizes *standard) {
    const char *layers = decodes ? "decoder_layers" : "encoder_layers";
    const char *heads = decodes ? "decoder_attention_heads" : "encoder_attention_heads";
    s->layers = mtf_config_count(c, layers, standard->layers);
    s->heads = s->kv_heads = mtf_config_size(c, heads, standard->heads);
    s->d_ff = mtf_config_size(c, decodes ? "decoder_ffn_dim" : "encoder_ffn_dim", standard->d_ff);
    s->activation = mtf_config_activation(c, "activation_function", "gelu");
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, heads, "d_model must be a multiple of it");
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
    mtf_type_all_biases(s, true);
    s->causal = s->cross = decodes;
    s->names = decodes ? bart_decoder : bart_encoder;
}

/* Keys of one meaning for both sides. */
static void read_bart_whole(MtfConfig *c, MtfArchitecture *n, bool scaled) {
    n->epsilon = 1e-5;
    n->spread = mtf_config_number(c, "init_std", 0.02);
    n->tied = mtf_config_flag(c, "tie_word_embeddings", true);
    mtf_config_integer(c, "num_hidden_layers", 0, 0);
    if (mtf_config_flag(c, "scale_embedding", scaled))
        n->embedding_scale = sqrt((double)n->d_model);
}

/* ---- BART and its kin -------------------------------------------------------------------------- */

/* What one of them is beside the others. */
typedef struct {
    int64_t vocab, width, positions;
    SideSizes side;
    bool norm_first;     /* norms before branches, and one behind each side; else behind sums */
    bool norm_embedding; /* with their positions */
    bool waves;          /* for learned positions */
    bool scaled;         /* embeddings, where it is left out */
} Kin;

/* A norm behind each sum is where others have one before each branch. */
static void norm_behind_sums(MtfStackNames *names) {
    names->after_attention = names->before_attention;
    names->after_cross = names->before_cross;
    names->after_ffn = names->before_ffn;
    names->before_attention = names->before_cross = names->before_ffn = names->final_norm = NULL;
}

/* A key of older files that says what the type is. */
static void expect_flag(MtfConfig *c, const char *key, bool is) {
    if (mtf_config_flag(c, key, is) != is)
        mtf_config_fail(c, key, "only %s is supported", is ? "true" : "false");
}

static void expect_kin(MtfConfig *c, const Kin *kin) {
    expect_flag(c, "normalize_before", kin->norm_first);
    expect_flag(c, "add_final_layer_norm", kin->norm_first);
    expect_flag(c, "normalize_embedding", kin->norm_embedding);
    expect_flag(c, "static_position_embeddings", kin->waves);
    expect_flag(c, "is_encoder_decoder", true);
    mtf_type_ignore(c, (const char *const[]){ "add_bias_logits", "classif_dropout",
                                              "extra_pos_embeddings",
                                              "force_bos_token_to_be_generated", NULL });
}

static void read_kin(MtfConfig *c, MtfArchitecture *n, const Kin *kin) {
    n->kind = MTF_ARCHITECTURE_ENCODER_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", kin->vocab);
    n->d_model = mtf_config_size(c, "d_model", kin->width);
    n->context = mtf_config_size(c, "max_position_embeddings", kin->positions);
    n->max_positions = kin->waves ? 0 : n->context + n->first_position;
    n->waves = kin->waves;
    read_bart_stack(c, n, &n->encoder, false, &kin->side);
    read_bart_stack(c, n, &n->decoder, true, &kin->side);
    read_bart_whole(c, n, kin->scaled);
    if (kin->waves && (n->d_model % 2 != 0 || n->d_model < 4))
        mtf_config_fail(c, "d_model", "an even number from 4 on is expected");
    MtfStack *const sides[] = { &n->encoder, &n->decoder };
    for (int i = 0; i < 2 && !kin->norm_first; i++)
        norm_behind_sums(&sides[i]->names);
    if (kin->norm_embedding) {
        n->encoder.names.embedding_norm = "model.encoder.layernorm_embedding";
        n->decoder.names.embedding_norm = "model.decoder.layernorm_embedding";
    }
    n->dropout.branches = n->dropout.branches < 0 ? 0.1 : n->dropout.branches;
    n->dropout.embeddings = n->dropout.embeddings < 0 ? 0.1 : n->dropout.embeddings;
    n->embedding = "model.shared";
    n->head = "lm_head";
    n->head_bias = true;
    n->head_bias_row = "final_logits_bias";
    expect_kin(c, kin);
}

/* Rows of positions are counted from 2. */
static void read_bart(MtfConfig *c, MtfArchitecture *n) {
    n->first_position = 2;
    read_kin(c, n, &(Kin){ 50265, 1024, 1024, { 12, 16, 4096 }, false, true, false, false });
}

/* PLBART: BART for programs. */
static void read_plbart(MtfConfig *c, MtfArchitecture *n) {
    n->first_position = 2;
    read_kin(c, n, &(Kin){ 50005, 768, 1024, { 6, 12, 3072 }, false, true, false, true });
}

static void read_mbart(MtfConfig *c, MtfArchitecture *n) {
    n->first_position = 2;
    read_kin(c, n, &(Kin){ 50265, 1024, 1024, { 12, 16, 4096 }, true, true, false, false });
}

static void read_blenderbot(MtfConfig *c, MtfArchitecture *n) {
    read_kin(c, n, &(Kin){ 8008, 2560, 128, { 24, 32, 10240 }, true, false, false, false });
}

/* BART whose decoder norms tokens before it adds their positions. */
static void read_blenderbot_small(MtfConfig *c, MtfArchitecture *n) {
    read_kin(c, n, &(Kin){ 50265, 512, 512, { 8, 16, 2048 }, false, true, false, false });
    n->decoder.norm_tokens = true;
    mtf_type_ignore(c, (const char *const[]){ "do_blenderbot_90_layernorm", "extra_layer_norm",
                                              "layernorm_variant", NULL });
}

static void read_pegasus(MtfConfig *c, MtfArchitecture *n) {
    read_kin(c, n, &(Kin){ 50265, 1024, 1024, { 12, 16, 4096 }, true, false, true, false });
}

/* Marian, the translators of OPUS, whose two languages share their table. */
static void read_marian(MtfConfig *c, MtfArchitecture *n) {
    read_kin(c, n, &(Kin){ 58101, 1024, 1024, { 12, 16, 4096 }, false, false, true, false });
    expect_flag(c, "share_encoder_decoder_embeddings", true);
    mtf_type_derived(c, "decoder_vocab_size", n->vocab);
}

/* M2M100 and NLLB: waves from 2 on; the longest is a step shorter. */
static void read_m2m_100(MtfConfig *c, MtfArchitecture *n) {
    n->first_position = 2;
    n->waves_to_end = true;
    read_kin(c, n, &(Kin){ 128112, 1024, 1024, { 12, 16, 4096 }, true, false, true, true });
    n->head_bias = false;
    n->head_bias_row = NULL;
}

/* ---- Sound ----------------------------------------------------------------------------------- */

static void read_whisper(MtfConfig *c, MtfArchitecture *n) {
    static const SideSizes standard = { 4, 6, 1536 };
    n->kind = MTF_ARCHITECTURE_SPEECH;
    n->vocab = mtf_config_size(c, "vocab_size", 51865);
    n->d_model = mtf_config_size(c, "d_model", 384);
    n->channels = mtf_config_size(c, "num_mel_bins", 80);
    n->source_length = mtf_config_size(c, "max_source_positions", 1500);
    n->max_positions = n->context = mtf_config_size(c, "max_target_positions", 448);
    read_bart_stack(c, n, &n->encoder, false, &standard);
    read_bart_stack(c, n, &n->decoder, true, &standard);
    read_bart_whole(c, n, false);
    n->encoder.k_bias = n->decoder.k_bias = false;
    n->embedding = "model.decoder.embed_tokens";
    n->head = "proj_out";
}

const MtfArchitectureType mtf_pair_types[] = {
    { "t5", read_t5 },
    { "mt5", read_mt5 },
    { "umt5", read_umt5 },
    { "switch_transformers", read_switch },
    { "bart", read_bart },
    { "plbart", read_plbart },
    { "mbart", read_mbart },
    { "blenderbot", read_blenderbot },
    { "blenderbot-small", read_blenderbot_small },
    { "pegasus", read_pegasus },
    { "marian", read_marian },
    { "m2m_100", read_m2m_100 },
    { "whisper", read_whisper },
    { NULL, NULL },
};
