// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of texts, and of pictures. */
#include "analyzer/models/types/type_parts.h"

#include <math.h>
#include <string.h>

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

static void divide_heads(MtfConfig *c, MtfArchitecture *n, const char *key, const char *width) {
    MtfStack *s = &n->encoder;
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, key, "%s must be a multiple of it", width);
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

/* What a class of transformers puts on an encoder: a layer, then scores of tokens by the tied table, or of classes. */
typedef struct {
    const char *ending; /* of the class's name; NULL ends a list */
    MtfHeadLayer layer;
    const char *scores; /* in files */
    bool classes;
} Head;

/* As many as the config names. */
static int64_t read_classes(MtfConfig *c, int64_t standard) {
    MtfJson labels;
    if (mtf_config_find(c, "id2label", &labels)) {
        if (!mtf_json_object(&labels, c->error))
            c->failed = true;
        else
            standard = MAX(1, mtf_json_length(&labels));
    }
    return mtf_config_size(c, "num_labels", standard);
}

/* The head that "architectures" names, or NULL. */
static const Head *find_head(MtfConfig *c, const Head *heads) {
    MtfJson list, first;
    const char *name = "";
    if (!mtf_config_find(c, "architectures", &list))
        return NULL;
    if (!mtf_json_array(&list, c->error) ||
        (mtf_json_first(&list, &first) && !mtf_json_string(&first, &name, c->error)))
        c->failed = true;
    for (; !c->failed && heads->ending != NULL; heads++)
        if (g_str_has_suffix(name, heads->ending))
            return heads;
    return NULL;
}

/* A text is of one class; numbers and several classes at once are other losses. */
static void read_text_classes(MtfConfig *c, MtfArchitecture *n) {
    const char *single = "single_label_classification";
    n->classes = read_classes(c, 2);
    const char *problem =
        mtf_config_word(c, "problem_type", n->classes > 1 ? single : "regression");
    if (strcmp(problem, single) != 0)
        mtf_config_fail(c, "problem_type",
                        "a text's class is told, one of two or more (\"%s\"), not \"%s\"", single,
                        problem);
}

/* Without a head that is known the text itself is learned, through the embedding. */
static void read_head(MtfConfig *c, MtfArchitecture *n, const Head *heads) {
    const Head *head = find_head(c, heads);
    bool tied = mtf_config_flag(c, "tie_word_embeddings", true);
    if (head == NULL) {
        const char *read =
            n->pooler ? "the encoder and its pooler are read" : "the encoder is read";
        g_autofree char *reason = g_strdup_printf(
            "%s; it learns its own text through the embedding, 15 %% of it hidden", read);
        mtf_config_leave_out(c, "the head of architectures", reason);
        return;
    }
    n->pooler = false;
    n->head = head->scores;
    n->head_layer = head->layer;
    n->head_bias = !head->classes;
    if (head->classes)
        read_text_classes(c, n);
    else if (!tied)
        mtf_config_fail(c, "tie_word_embeddings", "only true, a head tied to the embedding");
}

/* Sizes of an encoder, in the names that BERT and ViT share. */
static void read_encoder(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "intermediate_size", 3072);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    divide_heads(c, n, "num_attention_heads", "hidden_size");
}

static void read_bert_sizes(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    n->kind = MTF_ARCHITECTURE_ENCODER;
    n->vocab = mtf_config_size(c, "vocab_size", vocab);
    read_encoder(c, n);
    n->max_positions = mtf_config_size(c, "max_position_embeddings", 512);
    n->token_types = mtf_config_size(c, "type_vocab_size", 2);
}

/* The encoder, its pooler where files have one, and a head. */
static void read_bert_like(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    mtf_type_drop(n, 0.1);
    MtfStack *s = &n->encoder;
    read_bert_sizes(c, n, vocab);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ BERT_NAMES };
    n->tied = true;
    n->embedding = "embeddings.word_embeddings";
    n->token_type_table = "embeddings.token_type_embeddings";
    n->encoder.names.embedding_norm = "embeddings.LayerNorm";
    n->pooler_name = "pooler.dense";
    refuse_other_positions(c);
}

static void read_bert(MtfConfig *c, MtfArchitecture *n) {
    read_bert_like(c, n, 30522);
    n->context = n->max_positions;
    n->pooler = true;
    const MtfHeadLayer tokens = { "cls.predictions.transform.dense",
                                  "cls.predictions.transform.LayerNorm", n->encoder.activation };
    read_head(
        c, n,
        (const Head[]){
            { "ForMaskedLM", tokens, "cls.predictions", false },
            { "ForSequenceClassification", { "pooler.dense", NULL, "tanh" }, "classifier", true },
            { NULL } });
}

/* Positions are counted from behind the padding's. */
static void read_roberta(MtfConfig *c, MtfArchitecture *n) {
    static const Head heads[] = {
        { "ForMaskedLM",
          { "lm_head.dense", "lm_head.layer_norm", "gelu_exact" },
          "lm_head",
          false },
        { "ForSequenceClassification",
          { "classifier.dense", NULL, "tanh" },
          "classifier.out_proj",
          true },
        { NULL },
    };
    read_bert_like(c, n, 50265);
    n->first_position = mtf_config_integer(c, "pad_token_id", 0, 1) + 1;
    n->context = MAX(1, n->max_positions - n->first_position);
    n->pooler = true;
    read_head(c, n, heads);
}

/* ELECTRA, which has no pooler and may have narrower embeddings. */
static void read_electra(MtfConfig *c, MtfArchitecture *n) {
    static const Head heads[] = {
        { "ForMaskedLM",
          { "generator_predictions.dense", "generator_predictions.LayerNorm", "gelu_exact" },
          "generator_lm_head",
          false },
        { "ForSequenceClassification",
          { "classifier.dense", NULL, "gelu_exact" },
          "classifier.out_proj",
          true },
        { NULL },
    };
    int64_t width = mtf_config_size(c, "embedding_size", 128);
    read_bert_like(c, n, 30522);
    n->context = n->max_positions;
    n->d_embed = width != n->d_model ? width : 0;
    n->widening = "embeddings_project";
    mtf_config_number(c, "summary_last_dropout", 0);
    read_head(c, n, heads);
}

#define DISTILBERT_NAMES                                                                  \
    .layer = "transformer.layer.%d.", .q = "attention.q_lin", .k = "attention.k_lin",     \
    .v = "attention.v_lin", .o = "attention.out_lin", .after_attention = "sa_layer_norm", \
    .up = "ffn.lin1", .down = "ffn.lin2", .after_ffn = "output_layer_norm",               \
    .positions = "embeddings.position_embeddings"

/* BERT without segments and pooler, of half its layers. */
static void read_distilbert(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->kind = MTF_ARCHITECTURE_ENCODER;
    n->vocab = mtf_config_size(c, "vocab_size", 30522);
    n->d_model = mtf_config_size(c, "dim", 768);
    n->epsilon = 1e-12;
    n->max_positions = n->context = mtf_config_size(c, "max_position_embeddings", 512);
    s->layers = mtf_config_count(c, "n_layers", 6);
    s->heads = s->kv_heads = mtf_config_size(c, "n_heads", 12);
    s->d_ff = mtf_config_size(c, "hidden_dim", 3072);
    s->activation = mtf_config_activation(c, "activation", "gelu");
    divide_heads(c, n, "n_heads", "dim");
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ DISTILBERT_NAMES };
    n->tied = true;
    n->embedding = "embeddings.word_embeddings";
    n->encoder.names.embedding_norm = "embeddings.LayerNorm";
    mtf_type_drop(n, 0.1);
    if (mtf_config_flag(c, "sinusoidal_pos_embds", false))
        mtf_config_leave_out(c, "sinusoidal_pos_embds",
                             "files keep the table that they begin with");
    mtf_type_ignore(
        c, (const char *const[]){ "qa_dropout", "seq_classif_dropout", "tie_weights_", NULL });
    const MtfHeadLayer tokens = { "vocab_transform", "vocab_layer_norm", s->activation };
    read_head(
        c, n,
        (const Head[]){
            { "ForMaskedLM", tokens, "vocab_projector", false },
            { "ForSequenceClassification", { "pre_classifier", NULL, "relu" }, "classifier", true },
            { NULL } });
}

/* ---- ModernBERT -------------------------------------------------------------------------------- */

#define MODERNBERT_NAMES                                                    \
    .layer = "model.layers.%d.", .qkv = "attn.Wqkv", .o = "attn.Wo",        \
    .before_attention = "attn_norm", .gate_up = "mlp.Wi", .down = "mlp.Wo", \
    .before_ffn = "mlp_norm", .final_norm = "model.final_norm",             \
    .embedding_norm = "model.embeddings.norm"

/* Positions turn, in layers that look at all there is by another base than in those that look at what is near, all but
 * every third. */
static void read_modernbert_attention(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder; /* which rotary positions are read for */
    double local = mtf_config_number(c, "local_rope_theta", 1e4);
    int64_t every = mtf_config_size(c, "global_attn_every_n_layers", 3);
    s->window = mtf_config_size(c, "local_attention", 128) / 2 + 1;
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
    mtf_type_ignore(c,
                    (const char *const[]){ "cls_token_id", "classifier_pooling", "mlp_dropout",
                                           "deterministic_flash_attn", "initializer_cutoff_factor",
                                           "repad_logits_with_grad", "reference_compile",
                                           "sparse_pred_ignore_index", "sparse_prediction",
                                           "type_vocab_size", "position_embedding_type", NULL });
}

static void read_modernbert(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_ENCODER;
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
    s->causal = false;
    read_modernbert_attention(c, n);
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = mtf_config_flag(c, "attention_bias", false);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", false);
    s->names = (MtfStackNames){ MODERNBERT_NAMES };
    n->encoder = *s;
    *s = (MtfStack){ 0 };
    n->embedding = "model.embeddings.tok_embeddings";
    const char *function = mtf_config_activation(c, "classifier_activation", "gelu");
    const MtfHeadLayer layer = { "head.dense", "head.norm", function };
    n->head_layer_bare = true;
    read_head(c, n, (const Head[]){ { "ForMaskedLM", layer, "decoder", false }, { NULL } });
    expect_modernbert(c);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

#define VIT_NAMES                                                                        \
    .layer = "encoder.layer.%d.", .q = "attention.attention.query",                      \
    .k = "attention.attention.key", .v = "attention.attention.value",                    \
    .o = "attention.output.dense", .before_attention = "layernorm_before",               \
    .before_ffn = "layernorm_after", .up = "intermediate.dense", .down = "output.dense", \
    .final_norm = "layernorm"

#define VIT_CLASSES 1000 /* of ImageNet, where a config does not name its own */

static void read_vit_picture(MtfConfig *c, MtfArchitecture *n) {
    n->image_size = mtf_config_size(c, "image_size", 224);
    n->patch_size = mtf_config_size(c, "patch_size", 16);
    n->channels = mtf_config_size(c, "num_channels", 3);
    n->classes = read_classes(c, VIT_CLASSES);
    n->head = "classifier";
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
    read_encoder(c, n);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", true);
    s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ VIT_NAMES };
    read_vit_picture(c, n);
}

/* DeiT, whose class is read without the teacher's place. */
static void read_deit(MtfConfig *c, MtfArchitecture *n) {
    read_vit(c, n);
    n->teacher_place = true;
    n->context++;
}

const MtfArchitectureType mtf_encoder_types[] = {
    { "bert", read_bert },
    { "roberta", read_roberta },
    { "xlm-roberta", read_roberta },
    { "camembert", read_roberta },
    { "electra", read_electra },
    { "distilbert", read_distilbert },
    { "modernbert", read_modernbert },
    { "vit", read_vit },
    { "deit", read_deit },
    { NULL, NULL },
};
