// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of texts. */
#include "analyzer/models/types/encoder_parts.h"

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

static void read_bert_sizes(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    n->kind = MTF_ARCHITECTURE_ENCODER;
    n->vocab = mtf_config_size(c, "vocab_size", vocab);
    mtf_encoder_sizes(c, n);
    n->max_positions = mtf_config_size(c, "max_position_embeddings", 512);
    n->token_types = mtf_config_integer(c, "type_vocab_size", 0, 2);
}

/* The encoder, its pooler where files have one, and a head. */
static void read_bert_like(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    mtf_type_drop(n, 0.1);
    MtfStack *s = &n->encoder;
    read_bert_sizes(c, n, vocab);
    mtf_encoder_all_biases(s);
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
    mtf_encoder_head(
        c, n,
        (const MtfEncoderHead[]){ { "ForMaskedLM", tokens, "cls.predictions", MTF_TELLS_TOKENS },
                                  { "ForSequenceClassification",
                                    { "pooler.dense", NULL, "tanh" },
                                    "classifier",
                                    MTF_TELLS_CLASS },
                                  { .ending = NULL } });
}

/* Positions are counted from behind the padding's. */
static void read_roberta(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead heads[] = {
        { "ForMaskedLM",
          { "lm_head.dense", "lm_head.layer_norm", "gelu_exact" },
          "lm_head",
          MTF_TELLS_TOKENS },
        { "ForSequenceClassification",
          { "classifier.dense", NULL, "tanh" },
          "classifier.out_proj",
          MTF_TELLS_CLASS },
        { .ending = NULL },
    };
    read_bert_like(c, n, 50265);
    n->first_position = mtf_config_integer(c, "pad_token_id", 0, 1) + 1;
    n->context = MAX(1, n->max_positions - n->first_position);
    n->pooler = true;
    mtf_encoder_head(c, n, heads);
}

/* ELECTRA, which has no pooler and may have narrower embeddings. */
static void read_electra(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead heads[] = {
        { "ForMaskedLM",
          { "generator_predictions.dense", "generator_predictions.LayerNorm", "gelu_exact" },
          "generator_lm_head",
          MTF_TELLS_TOKENS },
        { "ForSequenceClassification",
          { "classifier.dense", NULL, "gelu_exact" },
          "classifier.out_proj",
          MTF_TELLS_CLASS },
        { .ending = NULL },
    };
    int64_t width = mtf_config_size(c, "embedding_size", 128);
    read_bert_like(c, n, 30522);
    n->context = n->max_positions;
    n->d_embed = width != n->d_model ? width : 0;
    n->widening = "embeddings_project";
    mtf_config_number(c, "summary_last_dropout", 0);
    mtf_encoder_head(c, n, heads);
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
    mtf_encoder_divide_heads(c, n, "n_heads", "dim");
    mtf_encoder_all_biases(s);
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
    mtf_encoder_head(
        c, n,
        (const MtfEncoderHead[]){ { "ForMaskedLM", tokens, "vocab_projector", MTF_TELLS_TOKENS },
                                  { "ForSequenceClassification",
                                    { "pre_classifier", NULL, "relu" },
                                    "classifier",
                                    MTF_TELLS_CLASS },
                                  { .ending = NULL } });
}

/* ---- BERT's kin ------------------------------------------------------------------------------ */

/* ERNIE without the table of tasks that some of its files have. */
static void read_ernie(MtfConfig *c, MtfArchitecture *n) {
    read_bert(c, n);
    if (mtf_config_flag(c, "use_task_id", false))
        mtf_config_fail(c, "use_task_id", "only false is supported");
    mtf_type_ignore(c, (const char *const[]){ "task_type_vocab_size", NULL });
}

/* Norms of what a layer reads, not of what it makes; `final` is behind the last one. */
static void normalise_before(MtfStackNames *names, const char *attention, const char *ffn,
                             const char *final) {
    names->after_attention = names->after_ffn = NULL;
    names->before_attention = attention;
    names->before_ffn = ffn;
    names->final_norm = final;
}

static void read_megatron_bert(MtfConfig *c, MtfArchitecture *n) {
    read_bert(c, n);
    normalise_before(&n->encoder.names, "attention.ln", "ln", "encoder.ln");
    n->encoder.names.embedding_norm = NULL;
}

/* The last norm's name is the end of others', so that it is written out. */
static void read_roberta_prelayernorm(MtfConfig *c, MtfArchitecture *n) {
    read_roberta(c, n);
    normalise_before(&n->encoder.names, "attention.LayerNorm", "intermediate.LayerNorm",
                     "roberta_prelayernorm.LayerNorm");
}

static void read_xlm_roberta_xl(MtfConfig *c, MtfArchitecture *n) {
    read_roberta(c, n);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    normalise_before(&n->encoder.names, "attention.self_attn_layer_norm", "LayerNorm",
                     "encoder.LayerNorm");
    n->encoder.names.embedding_norm = NULL;
}

/* MPNet: RoBERTa without segments, whose padding's position is 1 whatever its token, and T5's buckets of
 * distances. */
static void read_mpnet(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    read_roberta(c, n);
    n->token_types = 0;
    n->first_position = 2;
    n->context = MAX(1, n->max_positions - n->first_position);
    s->buckets = mtf_config_size(c, "relative_attention_num_buckets", 32);
    s->max_distance = 128;
    if (s->buckets < 4 || s->buckets % 2 != 0 || s->buckets >= s->max_distance)
        mtf_config_fail(c, "relative_attention_num_buckets", "an even number from 4 to 126");
    s->names.buckets = "encoder.relative_attention_bias";
    s->names.q = "attention.attn.q";
    s->names.k = "attention.attn.k";
    s->names.v = "attention.attn.v";
    s->names.o = "attention.attn.o";
    s->names.after_attention = "attention.LayerNorm";
}

#define ALBERT_NAMES                                                                     \
    .layer = "encoder.albert_layer_groups.0.albert_layers.0.", .q = "attention.query",   \
    .k = "attention.key", .v = "attention.value", .o = "attention.dense",                \
    .after_attention = "attention.LayerNorm", .up = "ffn", .down = "ffn_output",         \
    .after_ffn = "full_layer_layer_norm", .positions = "embeddings.position_embeddings", \
    .embedding_norm = "embeddings.LayerNorm"

/* ALBERT: one layer's weights serve all layers. */
static void read_albert(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    read_bert_like(c, n, 30000);
    n->context = n->max_positions;
    n->d_embed = mtf_config_size(c, "embedding_size", 128);
    s->names = (MtfStackNames){ ALBERT_NAMES };
    s->one_for_all = true;
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_new");
    n->widening = "encoder.embedding_hidden_mapping_in";
    n->pooler = true;
    n->pooler_name = "pooler";
    mtf_type_ignore(c, (const char *const[]){ "classifier_dropout_prob", "down_scale_factor",
                                              "gap_size", "net_structure_type", "num_memory_blocks",
                                              NULL });
    if (mtf_config_integer(c, "num_hidden_groups", 1, 1) != 1)
        mtf_config_fail(c, "num_hidden_groups",
                        "only 1 is supported, weights that all layers share");
    if (mtf_config_integer(c, "inner_group_num", 1, 1) != 1)
        mtf_config_fail(c, "inner_group_num", "only 1 is supported");
    const MtfHeadLayer tokens = { "predictions.dense", "predictions.LayerNorm", s->activation };
    mtf_encoder_head(
        c, n,
        (const MtfEncoderHead[]){ { "ForMaskedLM", tokens, "predictions", MTF_TELLS_TOKENS },
                                  { "ForSequenceClassification",
                                    { "pooler", NULL, "tanh" },
                                    "classifier",
                                    MTF_TELLS_CLASS },
                                  { .ending = NULL } });
}

/* "pos_att_type", "c2p|p2c" or a list of them. */
static bool has_position_term(MtfConfig *c, const char *word) {
    MtfJson list, child;
    const char *name = "";
    if (!mtf_config_find(c, "pos_att_type", &list))
        return false;
    if (cJSON_IsString(list.node))
        return strstr(mtf_config_word(c, "pos_att_type", ""), word) != NULL;
    for (bool more = mtf_json_array(&list, c->error) && mtf_json_first(&list, &child); more;
         more = mtf_json_next(&child)) {
        if (!mtf_json_string(&child, &name, c->error))
            c->failed = true;
        if (!c->failed && strcmp(name, word) == 0)
            return true;
    }
    return false;
}

static void read_disentangled(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    int64_t furthest = mtf_config_integer(c, "max_relative_positions", -1, -1);
    int64_t buckets = mtf_config_integer(c, "position_buckets", -1, -1);
    furthest = furthest > 0 ? furthest : n->context;
    s->distance_rows = buckets > 0 ? buckets : furthest;
    s->furthest = buckets > 0 ? furthest : 0;
    s->query_to_distance = has_position_term(c, "c2p");
    s->key_to_distance = has_position_term(c, "p2c");
    s->scale /= sqrt(1 + (double)s->query_to_distance + (double)s->key_to_distance);
    s->names.distances = "encoder.rel_embeddings";
    if (!mtf_config_flag(c, "share_att_key", false)) {
        s->names.distance_q = "attention.self.pos_query_proj";
        s->names.distance_k = "attention.self.pos_key_proj";
    }
    if (!mtf_config_flag(c, "relative_attention", false))
        mtf_config_fail(c, "relative_attention", "only true is supported");
    const char *norm = mtf_config_word(c, "norm_rel_ebd", "none");
    s->names.distance_norm = strcmp(norm, "layer_norm") == 0 ? "encoder.LayerNorm" : NULL;
    if (strcmp(norm, "layer_norm") != 0 && strcmp(norm, "none") != 0)
        mtf_config_fail(c, "norm_rel_ebd", "only \"layer_norm\" and \"none\" are supported");
    if (buckets > 0 && (buckets < 4 || furthest <= buckets / 2 + 1))
        mtf_config_fail(c, "position_buckets",
                        "4 or more are expected, half of them below max_relative_positions");
}

/* What all versions of DeBERTa have: positions in the embedding only where the file says so, and their heads. */
static void make_deberta(MtfConfig *c, MtfArchitecture *n, int64_t vocab) {
    read_bert_like(c, n, vocab);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-7);
    n->context = n->max_positions;
    n->token_types = mtf_config_integer(c, "type_vocab_size", 0, 0);
    if (!mtf_config_flag(c, "position_biased_input", true))
        n->max_positions = 0;
    mtf_type_derived(c, "pooler_hidden_size", n->d_model);
    mtf_type_ignore(c, (const char *const[]){ "pooler_dropout", "z_steps", NULL });
    if (!mtf_config_flag(c, "legacy", true))
        mtf_config_fail(c, "legacy", "only true is supported");
    const char *pooled = mtf_config_activation(c, "pooler_hidden_act", "gelu");
    const MtfHeadLayer tokens = { "cls.predictions.transform.dense",
                                  "cls.predictions.transform.LayerNorm", n->encoder.activation };
    mtf_encoder_head(
        c, n,
        (const MtfEncoderHead[]){ { "ForMaskedLM", tokens, "cls.predictions", MTF_TELLS_TOKENS },
                                  { "ForSequenceClassification",
                                    { "pooler.dense", NULL, pooled },
                                    "classifier",
                                    MTF_TELLS_CLASS },
                                  { .ending = NULL } });
}

/* The first version: queries, keys and values of each head in one tensor, keys without biases; a row each distance. */
static void read_deberta(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    make_deberta(c, n, 50265);
    s->qkv_by_head = s->distance_k_bare = true;
    s->k_bias = false;
    s->names.q = s->names.k = s->names.v = NULL;
    s->names.qkv = "attention.self.in_proj";
    s->names.q_bias = "attention.self.q_bias";
    s->names.v_bias = "attention.self.v_bias";
    if (mtf_config_flag(c, "talking_head", false))
        mtf_config_fail(c, "talking_head", "only false is supported");
    if (!mtf_config_flag(c, "relative_attention", false)) {
        mtf_type_ignore(c, (const char *const[]){ "max_relative_positions", "pos_att_type", NULL });
        return;
    }
    read_disentangled(c, n);
    s->names.distance_q = "attention.self.pos_q_proj";
    s->names.distance_k = "attention.self.pos_proj";
}

/* DeBERTa's second and third version, whose attention sees distances beside what tokens say. */
static void read_deberta_v2(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    make_deberta(c, n, 128100);
    s->names.q = "attention.self.query_proj";
    s->names.k = "attention.self.key_proj";
    s->names.v = "attention.self.value_proj";
    read_disentangled(c, n);
    mtf_type_derived(c, "embedding_size", n->d_model);
    mtf_type_derived(c, "attention_head_size", s->d_kv);
    if (mtf_config_integer(c, "conv_kernel_size", 0, 0) != 0)
        mtf_config_fail(c, "conv_kernel_size", "only 0 is supported, layers without a convolution");
}

const MtfArchitectureType mtf_encoder_types[] = {
    { "bert", read_bert },
    { "roberta", read_roberta },
    { "xlm-roberta", read_roberta },
    { "camembert", read_roberta },
    { "electra", read_electra },
    { "distilbert", read_distilbert },
    { "ernie", read_ernie },
    { "megatron-bert", read_megatron_bert },
    { "roberta-prelayernorm", read_roberta_prelayernorm },
    { "data2vec-text", read_roberta },
    { "xlm-roberta-xl", read_xlm_roberta_xl },
    { "mpnet", read_mpnet },
    { "albert", read_albert },
    { "deberta", read_deberta },
    { "deberta-v2", read_deberta_v2 },
    { NULL, NULL },
};
