// SPDX-License-Identifier: GPL-3.0-or-later
/* A decoder beside an encoder: T5, the same with experts (Switch Transformers), and Whisper. */
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
 * not, files may hold a head of its own. */
static void read_t5_head(MtfConfig *c, MtfArchitecture *n) {
    bool tied = mtf_config_flag(c, "tie_word_embeddings", true);
    bool scaled = mtf_config_flag(c, "scale_decoder_outputs", tied);
    n->tied = tied && scaled;
    n->tied_by_files = tied && !scaled;
    n->logit_scale = scaled ? 1 / sqrt((double)n->d_model) : 1;
}

static void read_t5(MtfConfig *c, MtfArchitecture *n) {
    mtf_type_drop(n, 0.1);
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
    if (mtf_config_number(c, "router_jitter_noise", 0) != 0)
        mtf_config_leave_out(c, "router_jitter_noise", "noise of training alone");
}

/* ---- Sound ----------------------------------------------------------------------------------- */

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

const MtfArchitectureType mtf_pair_types[] = {
    { "t5", read_t5 },
    { "switch_transformers", read_switch },
    { "whisper", read_whisper },
    { NULL, NULL },
};
