// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/types/encoder_parts.h"

#include <math.h>
#include <string.h>

void mtf_encoder_divide_heads(MtfConfig *c, MtfArchitecture *n, const char *key,
                              const char *width) {
    MtfStack *s = &n->encoder;
    if (n->d_model % s->heads != 0)
        mtf_config_fail(c, key, "%s must be a multiple of it", width);
    s->d_kv = MAX(1, n->d_model / s->heads);
    s->scale = 1 / sqrt((double)s->d_kv);
}

void mtf_encoder_sizes(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->d_model = mtf_config_size(c, "hidden_size", 768);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 12);
    s->d_ff = mtf_config_size(c, "intermediate_size", 3072);
    s->activation = mtf_config_activation(c, "hidden_act", "gelu");
    mtf_encoder_divide_heads(c, n, "num_attention_heads", "hidden_size");
}

void mtf_encoder_all_biases(MtfStack *s) {
    s->q_bias = s->k_bias = s->v_bias = s->o_bias = s->ffn_bias = true;
}

void mtf_encoder_from_decoder(MtfArchitecture *n) {
    n->kind = MTF_ARCHITECTURE_ENCODER;
    n->encoder = n->decoder;
    n->encoder.causal = false;
    n->decoder = (MtfStack){ 0 };
}

void mtf_encoder_list(MtfConfig *c, const char *key, int n, int64_t *sizes) {
    MtfJson list, item;
    bool more = mtf_config_list(c, key, n, "sizes", &list) && mtf_json_first(&list, &item);
    for (int i = 0; more && !c->failed; more = mtf_json_next(&item), i++)
        c->failed = !mtf_json_integer(&item, 0, 1 << 20, &sizes[i], c->error);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

/* A key that a model's head has, where the config is a part of the model's. */
static bool find_of_head(MtfConfig *c, const char *key, MtfJson *value) {
    return mtf_config_find(c, key, value) ||
           (c->root != c->whole && mtf_json_find(c->whole, key, value) &&
            !cJSON_IsNull(value->node));
}

int64_t mtf_encoder_classes(MtfConfig *c, int64_t standard) {
    MtfJson labels;
    if (find_of_head(c, "id2label", &labels)) {
        if (!mtf_json_object(&labels, c->error))
            c->failed = true;
        else
            standard = MAX(1, mtf_json_length(&labels));
    }
    return mtf_config_size(c, "num_labels", standard);
}

const MtfEncoderHead *mtf_encoder_find_head(MtfConfig *c, const MtfEncoderHead *heads) {
    MtfJson list, first;
    const char *name = "";
    if (!find_of_head(c, "architectures", &list))
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
    n->classes = mtf_encoder_classes(c, 2);
    const char *problem =
        mtf_config_word(c, "problem_type", n->classes > 1 ? single : "regression");
    if (strcmp(problem, single) != 0)
        mtf_config_fail(c, "problem_type",
                        "a text's class is told, one of two or more (\"%s\"), not \"%s\"", single,
                        problem);
}

/* Scores of classes: of a text, of its places, or of where an answer begins and ends. */
static void put_classes(MtfConfig *c, MtfArchitecture *n, const MtfEncoderHead *head,
                        MtfClassPlace of_text) {
    n->head = head->scores;
    n->head_bias = false;
    if (head->tells == MTF_TELLS_CLASS) {
        n->class_place = of_text;
        read_text_classes(c, n);
        return;
    }
    n->classes = mtf_encoder_classes(c, 2);
    n->class_place = head->tells == MTF_TELLS_PLACES ? MTF_READ_EACH : MTF_READ_ENDS;
    if (head->tells == MTF_TELLS_ANSWER && n->classes != 2)
        mtf_config_fail(c, "num_labels", "an answer has two ends");
    if (head->tells == MTF_TELLS_ANSWER && n->token_types > 1)
        mtf_config_leave_out(c, "token_type_ids", "all of a text is of the first segment");
}

static void learn_itself(MtfConfig *c, const MtfArchitecture *n) {
    const char *read = n->pooler ? "the encoder and its pooler are read" : "the encoder is read";
    g_autofree char *reason = g_strdup_printf(
        "%s; it learns its own text through the embedding, 15 %% of it hidden", read);
    mtf_config_leave_out(c, "the head of architectures", reason);
}

void mtf_encoder_head(MtfConfig *c, MtfArchitecture *n, const MtfEncoderHead *heads) {
    static const MtfEncoderHead common[] = {
        { "ForTokenClassification", { 0 }, "classifier", MTF_TELLS_PLACES },
        { "ForQuestionAnswering", { 0 }, "qa_outputs", MTF_TELLS_ANSWER },
        { .ending = NULL },
    };
    const MtfEncoderHead *head = mtf_encoder_find_head(c, heads);
    bool tied = mtf_config_flag(c, "tie_word_embeddings", n->tied);
    head = head != NULL ? head : mtf_encoder_find_head(c, common);
    if (head == NULL) {
        learn_itself(c, n);
        return;
    }
    n->pooler = false;
    n->head_layer = head->layer;
    if (head->tells != MTF_TELLS_TOKENS) {
        put_classes(c, n, head, MTF_READ_FIRST);
        return;
    }
    n->head = head->scores;
    n->head_bias = true;
    if (!tied && n->tied)
        mtf_config_fail(c, "tie_word_embeddings", "only true, a head tied to the embedding");
}

void mtf_decoder_head(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead heads[] = {
        { "ForSequenceClassification", { 0 }, "score", MTF_TELLS_CLASS },
        { "ForTokenClassification", { 0 }, "score", MTF_TELLS_PLACES },
        { "ForQuestionAnswering", { 0 }, "qa_outputs", MTF_TELLS_ANSWER },
        { .ending = NULL },
    };
    const MtfEncoderHead *head =
        n->kind == MTF_ARCHITECTURE_DECODER ? mtf_encoder_find_head(c, heads) : NULL;
    if (head == NULL)
        return;
    put_classes(c, n, head, MTF_READ_LAST);
    n->head_bare = head->tells == MTF_TELLS_CLASS;
}
