// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of sounds: by their samples, wav2vec 2.0 and its kin, and by their spectrum. */
#include "analyzer/models/types/encoder_parts.h"

#include <string.h>

#define TEN_SECONDS 499 /* places, of 16,000 samples a second */

#define SOUND_NAMES                                                                              \
    .layer = "encoder.layers.%d.", .q = "attention.q_proj", .k = "attention.k_proj",             \
    .v = "attention.v_proj", .o = "attention.out_proj", .up = "feed_forward.intermediate_dense", \
    .down = "feed_forward.output_dense"

#define SPECTRUM_NAMES                                                                   \
    .layer = "encoder.layer.%d.", .q = "attention.attention.query",                      \
    .k = "attention.attention.key", .v = "attention.attention.value",                    \
    .o = "attention.output.dense", .before_attention = "layernorm_before",               \
    .before_ffn = "layernorm_after", .up = "intermediate.dense", .down = "output.dense", \
    .final_norm = "audio_spectrogram_transformer.layernorm" /* the head's is called so, too */

/* A place is of at most a million samples. */
static void check_convolutions(MtfConfig *c, const MtfSound *s) {
    int64_t samples = 1;
    for (int i = 0; i < s->layers; i++) {
        if (s->channels[i] < 1 || s->taps[i] < 1 || s->strides[i] < 1)
            mtf_config_fail(c, "conv_dim", "sizes of at least 1 are expected");
        if (samples <= 1 << 20)
            samples *= s->strides[i];
    }
    if (samples > 1 << 20)
        mtf_config_fail(c, "conv_stride", "places of at most 1048576 samples are expected");
}

static void read_convolutions(MtfConfig *c, MtfSound *s) {
    static const int64_t taps[] = { 10, 3, 3, 3, 3, 2, 2 };
    MtfJson list;
    s->layers = (int)G_N_ELEMENTS(taps);
    if (mtf_config_find(c, "conv_dim", &list) && cJSON_IsArray(list.node))
        s->layers = CLAMP((int)mtf_json_length(&list), 1, MTF_MOST_STAGES);
    for (int i = 0; i < MTF_MOST_STAGES; i++) {
        s->channels[i] = 512;
        s->strides[i] = i == 0 ? 5 : 2;
        s->taps[i] = i < (int)G_N_ELEMENTS(taps) ? taps[i] : 2;
    }
    mtf_encoder_list(c, "conv_dim", s->layers, s->channels);
    mtf_encoder_list(c, "conv_kernel", s->layers, s->taps);
    mtf_encoder_list(c, "conv_stride", s->layers, s->strides);
    check_convolutions(c, s);
    mtf_type_derived(c, "num_feat_extract_layers", s->layers);
    s->bias = mtf_config_flag(c, "conv_bias", false);
    s->activation = mtf_config_activation(c, "feat_extract_activation", "gelu");
}

/* Norms behind the convolutions, and where layers have theirs. */
static void read_norms(MtfConfig *c, MtfArchitecture *n) {
    MtfStackNames *names = &n->encoder.names;
    const char *norm = mtf_config_word(c, "feat_extract_norm", "group");
    n->sound.norm_each = strcmp(norm, "layer") == 0;
    if (!n->sound.norm_each && strcmp(norm, "group") != 0)
        mtf_config_fail(c, "feat_extract_norm", "group or layer is expected");
    if (mtf_config_flag(c, "do_stable_layer_norm", false)) {
        names->before_attention = "layer_norm";
        names->before_ffn = "final_layer_norm";
        names->final_norm = "encoder.layer_norm";
    } else {
        names->after_attention = "layer_norm";
        names->after_ffn = "final_layer_norm";
        names->embedding_norm = "encoder.layer_norm";
    }
}

static void read_places(MtfConfig *c, MtfArchitecture *n) {
    MtfSound *s = &n->sound;
    s->place_layers = 1;
    s->place_taps = mtf_config_size(c, "num_conv_pos_embeddings", 128);
    s->place_groups = mtf_config_size(c, "num_conv_pos_embedding_groups", 16);
    if (n->d_model % s->place_groups != 0)
        mtf_config_fail(c, "num_conv_pos_embedding_groups", "hidden_size must be a multiple of it");
    if (mtf_config_flag(c, "conv_pos_batch_norm", false))
        mtf_config_fail(c, "conv_pos_batch_norm", "only false is supported");
}

/* Texts whose tokens nobody says the places of. */
static void read_alignment(MtfConfig *c, MtfArchitecture *n) {
    const char *reduction = mtf_config_word(c, "ctc_loss_reduction", "sum");
    n->class_place = MTF_READ_ALIGNED;
    n->blank = mtf_config_integer(c, "pad_token_id", 0, 0);
    n->aligned_mean = strcmp(reduction, "mean") == 0;
    n->aligned_or_nothing = mtf_config_flag(c, "ctc_zero_infinity", false);
    if (!n->aligned_mean && strcmp(reduction, "sum") != 0)
        mtf_config_fail(c, "ctc_loss_reduction", "sum or mean is expected");
    if (n->blank >= n->classes)
        mtf_config_fail(c, "pad_token_id", "a token of the vocabulary is expected");
}

/* What is told of the sound, or of each of its places. */
static void read_head(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead heads[] = {
        { "ForSequenceClassification", { "projector", NULL, NULL }, "classifier", MTF_TELLS_CLASS },
        { "ForAudioFrameClassification", { 0 }, "classifier", MTF_TELLS_PLACES },
        { "ForCTC", { 0 }, "lm_head", MTF_TELLS_TOKENS },
        { .ending = NULL }
    };
    const MtfEncoderHead *head = mtf_encoder_find_head(c, heads);
    int64_t vocab = mtf_config_size(c, "vocab_size", 32);
    int64_t width = mtf_config_size(c, "classifier_proj_size", 256);
    n->class_place = MTF_READ_EACH;
    n->classes = head != NULL && head->tells == MTF_TELLS_TOKENS ? vocab : n->d_model;
    if (head == NULL) {
        mtf_config_leave_out(
            c, "the head of architectures",
            "the encoder is read; features of a place are scores of as many classes");
        return;
    }
    n->head = head->scores;
    n->head_layer = head->layer;
    if (head->tells != MTF_TELLS_TOKENS)
        n->classes = mtf_encoder_classes(c, 2);
    else
        read_alignment(c, n);
    if (head->tells == MTF_TELLS_CLASS) {
        n->class_place = MTF_READ_PATCHES;
        n->d_head = width;
    }
    if (mtf_config_flag(c, "use_weighted_layer_sum", false))
        mtf_config_fail(c, "use_weighted_layer_sum", "only false is supported");
}

/* Keys of what is learned before, of noise, and of heads that are not read. */
static void ignore_others(MtfConfig *c) {
    mtf_type_ignore(c, (const char *const[]){ "activation_dropout",
                                              "adapter_act",
                                              "adapter_kernel_size",
                                              "adapter_stride",
                                              "apply_spec_augment",
                                              "codevector_dim",
                                              "contrastive_logits_temperature",
                                              "ctc_loss_reduction",
                                              "ctc_zero_infinity",
                                              "diversity_loss_weight",
                                              "feat_extract_dropout",
                                              "feat_proj_dropout",
                                              "feat_quantizer_dropout",
                                              "final_dropout",
                                              "gradient_checkpointing",
                                              "layerdrop",
                                              "mask_channel_length",
                                              "mask_channel_min_space",
                                              "mask_channel_other",
                                              "mask_channel_prob",
                                              "mask_channel_selection",
                                              "mask_feature_length",
                                              "mask_feature_min_masks",
                                              "mask_feature_prob",
                                              "mask_time_length",
                                              "mask_time_min_masks",
                                              "mask_time_min_space",
                                              "mask_time_other",
                                              "mask_time_prob",
                                              "mask_time_selection",
                                              "num_adapter_layers",
                                              "num_codevector_groups",
                                              "num_codevectors_per_group",
                                              "num_ctc_classes",
                                              "num_negatives",
                                              "output_hidden_size",
                                              "proj_codevector_dim",
                                              "replace_prob",
                                              "tdnn_dilation",
                                              "tdnn_dim",
                                              "tdnn_kernel",
                                              "tokenizer_class",
                                              "xvector_output_dim",
                                              NULL });
}

static void read_wav2vec2(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->kind = MTF_ARCHITECTURE_SOUND;
    n->context = TEN_SECONDS;
    mtf_encoder_sizes(c, n);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    mtf_encoder_all_biases(s);
    s->names = (MtfStackNames){ SOUND_NAMES };
    read_convolutions(c, &n->sound);
    read_norms(c, n);
    read_places(c, n);
    read_head(c, n);
    if (mtf_config_flag(c, "add_adapter", false))
        mtf_config_fail(c, "add_adapter", "only false is supported");
    ignore_others(c);
}

/* HuBERT, whose projection may have no norm. */
static void read_hubert(MtfConfig *c, MtfArchitecture *n) {
    read_wav2vec2(c, n);
    n->sound.bare_projection = !mtf_config_flag(c, "feat_proj_layer_norm", true);
}

/* data2vec: norms behind all convolutions, and several that tell where places are. */
static void read_data2vec(MtfConfig *c, MtfArchitecture *n) {
    read_wav2vec2(c, n);
    n->sound.norm_each = true;
    int64_t places = mtf_config_integer(c, "num_conv_pos_embeddings", 1, 5);
    n->sound.place_layers = (int)MIN(places, MTF_MOST_STAGES);
    if (places > MTF_MOST_STAGES)
        mtf_config_fail(c, "num_conv_pos_embeddings", "at most %d convolutions are expected",
                        MTF_MOST_STAGES);
    n->sound.place_taps = mtf_config_size(c, "conv_pos_kernel_size", 19);
}

/* WavLM: scores have a bias by distances, of which each place lets through as much as its features say. */
static void read_wavlm(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    read_wav2vec2(c, n);
    s->buckets = mtf_config_size(c, "num_buckets", 320);
    s->max_distance = mtf_config_size(c, "max_bucket_distance", 800);
    s->names.buckets = "encoder.layers.0.attention.rel_attn_embed";
    s->names.position_gate = "attention.gru_rel_pos_linear";
    s->names.position_factor = "attention.gru_rel_pos_const";
    if (s->buckets % 4 != 0 || s->max_distance <= s->buckets / 4 || s->max_distance > 1 << 16)
        mtf_config_fail(c, "num_buckets",
                        "a multiple of 4 is expected, less than four times max_bucket_distance, "
                        "which is at most 65536");
}

/* The Audio Spectrogram Transformer (Gong and others, 2021): DeiT on patches of a spectrum that overlap, whose class is read from
 * the mean of its first two places. */
static void read_spectrum(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    MtfPictureNames *p = &n->picture;
    n->kind = MTF_ARCHITECTURE_IMAGE;
    mtf_encoder_sizes(c, n);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", true);
    s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ SPECTRUM_NAMES };
    n->patch_size = mtf_config_size(c, "patch_size", 16);
    *p = (MtfPictureNames){ .patch = "embeddings.patch_embeddings.projection",
                            .class_place = "embeddings.cls_token",
                            .teacher = "embeddings.distillation_token",
                            .table = "embeddings.position_embeddings",
                            .bands = mtf_config_size(c, "num_mel_bins", 128),
                            .times = mtf_config_size(c, "max_length", 1024),
                            .band_stride = mtf_config_size(c, "frequency_stride", 10),
                            .time_stride = mtf_config_size(c, "time_stride", 10) };
    int64_t most = MAX(p->bands, p->times), least = MIN(p->bands, p->times);
    if (n->patch_size > least || most > 1 << 16)
        mtf_config_fail(c, "patch_size",
                        "at most num_mel_bins and max_length are expected, and "
                        "these at most 65536");
    int64_t rows = (p->bands - n->patch_size) / p->band_stride + 1;
    n->context = MAX(1, rows * ((p->times - n->patch_size) / p->time_stride + 1)) + 2;
    n->class_place = MTF_READ_TWO;
    n->class_norm = "classifier.layernorm";
    n->head = "classifier.dense";
    n->classes = mtf_encoder_classes(c, 527);
}

const MtfArchitectureType mtf_sound_types[] = {
    { "wav2vec2", read_wav2vec2 },
    { "hubert", read_hubert },
    { "wavlm", read_wavlm },
    { "audio-spectrogram-transformer", read_spectrum },
    { "data2vec-audio", read_data2vec },
    { "unispeech", read_wav2vec2 },
    { "unispeech-sat", read_wav2vec2 },
    { NULL, NULL },
};
