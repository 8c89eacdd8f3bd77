// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of texts whose positions turn. */
#include "analyzer/models/types/encoder_parts.h"

#include <string.h>

/* ---- ModernBERT -------------------------------------------------------------------------------- */

#define MODERNBERT_NAMES                                                    \
    .layer = "model.layers.%d.", .qkv = "attn.Wqkv", .o = "attn.Wo",        \
    .before_attention = "attn_norm", .gate_up = "mlp.Wi", .down = "mlp.Wo", \
    .before_ffn = "mlp_norm", .final_norm = "model.final_norm",             \
    .embedding_norm = "model.embeddings.norm"

/* Positions turn, in layers that look at all there is by another base than in those that look at what is
 * near, all but every third. */
static void read_modernbert_attention(MtfConfig *c, MtfArchitecture *n, int64_t own) {
    MtfStack *s = &n->decoder; /* which rotary positions are read for */
    double local = mtf_config_number(c, "local_rope_theta", 1e4);
    int64_t every = mtf_config_size(c, "global_attn_every_n_layers", 3);
    s->window = mtf_config_size(c, "local_attention", 128) / 2 + own;
    s->window_rule = MTF_WINDOW_LISTED;
    s->window_rotary_base = local;
    mtf_config_rotary(c, n, mtf_config_number(c, "global_rope_theta", 160000));
    if (!mtf_config_find(c, "layer_types", &(MtfJson){ 0 }))
        for (int64_t layer = 0; layer < s->layers; layer++)
            if (layer % every != 0)
                mtf_layers_add(s->window_layers, layer);
    mtf_type_layer_types(c, s);
}

static void expect_modernbert(MtfConfig *c) {
    if (mtf_config_flag(c, "norm_bias", false))
        mtf_config_fail(c, "norm_bias", "only false is supported");
    if (mtf_config_flag(c, "classifier_bias", false))
        mtf_config_fail(c, "classifier_bias", "only false is supported");
    if (!mtf_config_flag(c, "decoder_bias", true))
        mtf_config_fail(c, "decoder_bias", "only true is supported");
    mtf_type_ignore(c, (const char *const[]){
                           "cls_token_id", "mlp_dropout", "deterministic_flash_attn",
                           "initializer_cutoff_factor", "repad_logits_with_grad",
                           "reference_compile", "sparse_pred_ignore_index", "sparse_prediction",
                           "type_vocab_size", "position_embedding_type", NULL });
}

/* Its stack, still as a decoder, whose window has `own` places beside half of what is told. */
static void read_modernbert_stack(MtfConfig *c, MtfArchitecture *n, int64_t own) {
    MtfStack *s = &n->decoder;
    n->vocab = mtf_config_size(c, "vocab_size", 50368);
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->epsilon = mtf_config_number(c, "norm_eps", 1e-5);
    n->norm_unbiased = n->tied = true;
    n->context = mtf_config_size(c, "max_position_embeddings", 8192);
    s->layers = mtf_config_count(c, "num_hidden_layers", 22);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "intermediate_size", 1152);
    s->gated = s->first_unnormed = true;
    s->activation = mtf_config_activation(c, "hidden_activation", "gelu");
    mtf_type_divide_heads(c, n, "num_attention_heads");
    read_modernbert_attention(c, n, own);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", false);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    s->names = (MtfStackNames){ MODERNBERT_NAMES };
    n->embedding = "model.embeddings.tok_embeddings";
    n->head_layer_bare = true;
    expect_modernbert(c);
}

static void read_modernbert(MtfConfig *c, MtfArchitecture *n) {
    read_modernbert_stack(c, n, 1);
    mtf_encoder_from_decoder(n);
    const char *function = mtf_config_activation(c, "classifier_activation", "gelu");
    const MtfHeadLayer layer = { "head.dense", "head.norm", function };
    mtf_encoder_head(c, n,
                     (const MtfEncoderHead[]){
                         { "ForMaskedLM", layer, "decoder", MTF_TELLS_TOKENS },
                         { "ForSequenceClassification", layer, "classifier", MTF_TELLS_CLASS },
                         { "ForTokenClassification", layer, "classifier", MTF_TELLS_PLACES },
                         { "ForQuestionAnswering", layer, "classifier", MTF_TELLS_ANSWER },
                         { .ending = NULL } });
    const char *pooling = mtf_config_word(c, "classifier_pooling", "cls");
    if (strcmp(pooling, "mean") == 0 && n->class_place == MTF_READ_FIRST)
        n->class_place = MTF_READ_TEXT;
    if (strcmp(pooling, "mean") != 0 && strcmp(pooling, "cls") != 0)
        mtf_config_fail(c, "classifier_pooling", "cls or mean is expected");
}

/* The decoder that was made like it (Ettin): queries, keys and values apart; it tells the next token behind a layer. */
static void read_modernbert_decoder(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead classifiers[] = {
        { "ForSequenceClassification", { 0 }, "classifier", MTF_TELLS_CLASS }, { .ending = NULL }
    };
    MtfStackNames *names = &n->decoder.names;
    n->kind = MTF_ARCHITECTURE_DECODER;
    read_modernbert_stack(c, n, 0);
    names->qkv = NULL;
    names->q = "attn.q_proj";
    names->k = "attn.k_proj";
    names->v = "attn.v_proj";
    n->head = "decoder";
    n->head_bias = true;
    n->head_layer = (MtfHeadLayer){ "lm_head.dense", "lm_head.norm",
                                    mtf_config_activation(c, "classifier_activation", "gelu") };
    mtf_type_derived(c, "sliding_window", n->decoder.window);
    if (mtf_encoder_find_head(c, classifiers) != NULL)
        mtf_config_fail(c, "architectures", "only a decoder that tells tokens is supported");
    if (!mtf_config_flag(c, "tie_word_embeddings", true))
        mtf_config_fail(c, "tie_word_embeddings", "only true, a head tied to the embedding");
}

/* ---- Encoders that were decoders ------------------------------------------------------------- */

/* EuroBERT: Llama that sees both sides. */
static void read_eurobert(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = { 128256, 768,  3072, 12,     12,   0,
                                           0,      8192, 1e-5, 250000, false };
    static const MtfEncoderHead heads[] = { { "ForMaskedLM", { 0 }, "lm_head", MTF_TELLS_TOKENS },
                                            { .ending = NULL } };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    mtf_type_attention_bias(c, s);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    mtf_type_ignore(c, (const char *const[]){ "classifier_pooling", "clf_pooling", "mask_token",
                                              "mask_token_id", "pad_token", "bos_token",
                                              "eos_token", NULL });
    mtf_encoder_from_decoder(n);
    n->head = NULL;
    mtf_encoder_head(c, n, heads);
    n->tied = n->tied || n->head == NULL;
    n->head_bias = n->encoder.ffn_bias && n->head != NULL;
}

#define NOMIC_BERT_NAMES                                                                         \
    .layer = "encoder.layers.%d.", .qkv = "attn.Wqkv", .o = "attn.out_proj", .gate = "mlp.fc12", \
    .up = "mlp.fc11", .down = "mlp.fc2", .after_attention = "norm1", .after_ffn = "norm2",       \
    .embedding_norm = "emb_ln"

/* Nomic's BERT: positions turn, and the hidden layer has a gate; matrices have no biases. */
static void read_nomic_bert(MtfConfig *c, MtfArchitecture *n) {
    static const MtfTypeSizes standard = {
        30528, 768, 3072, 12, 12, 0, 0, 2048, 1e-12, 1000, true
    };
    MtfStack *s = &n->decoder;
    mtf_type_llama(c, n, &standard);
    n->rms = false;
    n->tied = true;
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    n->token_types = mtf_config_size(c, "type_vocab_size", 2);
    s->names = (MtfStackNames){ NOMIC_BERT_NAMES };
    mtf_encoder_from_decoder(n);
    n->embedding = "embeddings.word_embeddings";
    n->token_type_table = "embeddings.token_type_embeddings";
    const MtfHeadLayer tokens = { "cls.predictions.transform.dense",
                                  "cls.predictions.transform.layer_norm", n->encoder.activation };
    mtf_encoder_head(
        c, n,
        (const MtfEncoderHead[]){ { "ForMaskedLM", tokens, "cls.predictions", MTF_TELLS_TOKENS },
                                  { .ending = NULL } });
}

#define ESM_NAMES                                                                                  \
    .layer = "encoder.layer.%d.", .q = "attention.self.query", .k = "attention.self.key",          \
    .v = "attention.self.value", .o = "attention.output.dense",                                    \
    .before_attention = "attention.LayerNorm", .up = "intermediate.dense", .down = "output.dense", \
    .before_ffn = "LayerNorm", .final_norm = "encoder.emb_layer_norm_after"

/* Positions turn, or are learned and counted from behind the padding's. */
static void read_esm_positions(MtfConfig *c, MtfArchitecture *n) {
    int64_t most = mtf_config_size(c, "max_position_embeddings", 1026);
    int64_t first = mtf_config_integer(c, "pad_token_id", 0, 1) + 1;
    const char *type = mtf_config_word(c, "position_embedding_type", "absolute");
    n->context = MAX(1, most - first);
    if (strcmp(type, "rotary") == 0) {
        mtf_config_rotary(c, n, 1e4);
        return;
    }
    if (strcmp(type, "absolute") != 0)
        mtf_config_fail(c, "position_embedding_type", "only \"rotary\" and \"absolute\"");
    mtf_config_number(c, "rope_theta", 0);
    n->max_positions = most;
    n->first_position = first;
    n->decoder.names.positions = "embeddings.position_embeddings";
}

/* Models of proteins. With "token_dropout" embeddings are multiplied by the share of tokens that were shown
 * while they were trained, over the share that is shown: all of them. */
static void read_esm(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead heads[] = { { "ForMaskedLM",
                                              { "lm_head.dense", "lm_head.layer_norm",
                                                "gelu_exact" },
                                              "lm_head",
                                              MTF_TELLS_TOKENS },
                                            { .ending = NULL } };
    MtfStack *s = &n->decoder;
    mtf_type_drop(n, 0.1);
    n->vocab = mtf_config_size(c, "vocab_size", 33);
    mtf_encoder_sizes(c, n);
    *s = n->encoder;
    s->names = (MtfStackNames){ ESM_NAMES };
    mtf_encoder_all_biases(s);
    if (mtf_config_flag(c, "emb_layer_norm_before", false))
        s->names.embedding_norm = "embeddings.layer_norm";
    read_esm_positions(c, n);
    if (mtf_config_flag(c, "token_dropout", false)) {
        n->embedding_scale = 1 - 0.15 * 0.8;
        mtf_config_leave_out(c, "mask_token_id", "embeddings are scaled as of texts without it");
    }
    mtf_type_ignore(c, (const char *const[]){ "mask_token_id", "vocab_list", "type_vocab_size",
                                              "esmfold_config", NULL });
    if (mtf_config_flag(c, "is_folding_model", false) || mtf_config_flag(c, "is_decoder", false))
        mtf_config_fail(c, "is_folding_model",
                        "an encoder that neither folds nor decodes is expected");
    n->tied = true;
    n->embedding = "embeddings.word_embeddings";
    mtf_encoder_from_decoder(n);
    mtf_encoder_head(c, n, heads);
}

const MtfArchitectureType mtf_rotary_encoder_types[] = {
    { "modernbert", read_modernbert },
    { "modernbert-decoder", read_modernbert_decoder },
    { "eurobert", read_eurobert },
    { "nomic_bert", read_nomic_bert },
    { "esm", read_esm },
    { NULL, NULL },
};
