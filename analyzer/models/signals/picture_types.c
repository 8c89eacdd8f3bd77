// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of pictures, by their patches, and CLIP's of texts beside them. */
#include "analyzer/models/types/encoder_parts.h"

#define PICTURE_CLASSES 1000 /* of ImageNet, where a config does not name its own */

/* Size, patches and classes of a picture; `before` places stand before its patches. */
static void read_picture(MtfConfig *c, MtfArchitecture *n, int64_t size, int64_t patch,
                         int64_t before) {
    n->kind = MTF_ARCHITECTURE_IMAGE;
    n->image_size = mtf_config_size(c, "image_size", size);
    n->patch_size = mtf_config_size(c, "patch_size", patch);
    n->channels = mtf_config_size(c, "num_channels", 3);
    n->head = "classifier";
    if (n->image_size % n->patch_size != 0 || n->image_size / n->patch_size > 4096)
        mtf_config_fail(c, "patch_size", "image_size must be 1 to 4096 times patch_size");
    int64_t side = MAX(1, n->image_size / n->patch_size);
    n->context = side * side + before;
}

/* ---- ViT ------------------------------------------------------------------------------------- */

#define VIT_NAMES                                                                        \
    .layer = "encoder.layer.%d.", .q = "attention.attention.query",                      \
    .k = "attention.attention.key", .v = "attention.attention.value",                    \
    .o = "attention.output.dense", .before_attention = "layernorm_before",               \
    .before_ffn = "layernorm_after", .up = "intermediate.dense", .down = "output.dense", \
    .final_norm = "layernorm"

#define VIT_PICTURE                                                                           \
    .patch = "embeddings.patch_embeddings.projection", .class_place = "embeddings.cls_token", \
    .table = "embeddings.position_embeddings"

static void read_vit(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    mtf_encoder_sizes(c, n);
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", true);
    s->o_bias = s->ffn_bias = true;
    s->names = (MtfStackNames){ VIT_NAMES };
    n->picture = (MtfPictureNames){ VIT_PICTURE };
    read_picture(c, n, 224, 16, 1);
    n->classes = mtf_encoder_classes(c, PICTURE_CLASSES);
    mtf_config_leave_out(c, "pooler", "a picture's class is told without it");
    mtf_config_word(c, "pooler_act", "tanh");
    mtf_config_integer(c, "pooler_output_size", 1, n->d_model);
}

/* DeiT, whose class is read without the teacher's place. */
static void read_deit(MtfConfig *c, MtfArchitecture *n) {
    read_vit(c, n);
    n->picture.teacher = "embeddings.distillation_token";
    n->context++;
}

/* ViT-22B as its paper has it (Dehghani and others, 2023), of which no weights are published: both parts of a layer read
 * the same norm, without means and biases, as queries and keys have one, and a learned query reads the class. */
static void read_vit_22b(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    read_vit(c, n);
    n->rms = true;
    s->parallel = true;
    s->q_bias = s->k_bias = s->v_bias = mtf_config_flag(c, "qkv_bias", false);
    s->head_norm = MTF_HEAD_NORM_EACH;
    s->names.q_norm = "attention.attention.query_norm";
    s->names.k_norm = "attention.attention.key_norm";
    s->names.before_both = "layernorm_before";
    s->names.final_norm = "vit.layernorm"; /* the query's is called so, too */
    s->names.before_attention = s->names.before_ffn = NULL;
    n->picture.class_place = NULL;
    n->picture.probe = "head.";
    n->class_place = MTF_READ_PROBE;
    n->context--;
}

/* BEiT: scores have a bias by how far patches are apart, branches a factor of each feature; the class is read from the
 * norm of the patches' mean, or from the first place behind the last norm. */
static void read_beit(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    read_vit(c, n);
    s->k_bias = false;
    if (mtf_config_number(c, "layer_scale_init_value", 0.1) > 0) {
        s->names.attention_factors = "lambda_1";
        s->names.ffn_factors = "lambda_2";
    }
    if (!mtf_config_flag(c, "use_absolute_position_embeddings", false))
        n->picture.table = NULL;
    if (mtf_config_flag(c, "use_relative_position_bias", false))
        s->names.grid_table =
            "attention.attention.relative_position_bias.relative_position_bias_table";
    if (mtf_config_flag(c, "use_shared_relative_position_bias", false))
        mtf_config_fail(c, "use_shared_relative_position_bias",
                        "only false is supported: each layer has a table of its own, as models "
                        "that tell classes have it");
    if (mtf_config_flag(c, "use_mean_pooling", true)) {
        n->class_place = MTF_READ_PATCHES;
        n->class_norm = "pooler.layernorm";
        s->names.final_norm = NULL;
    }
    mtf_type_ignore(c, (const char *const[]){
                           "add_fpn", "auxiliary_channels", "auxiliary_concat_input",
                           "auxiliary_loss_weight", "auxiliary_num_convs", "drop_path_rate",
                           "out_features", "out_indices", "pool_scales", "reshape_hidden_states",
                           "semantic_loss_ignore_index", "semantic_out_indices", "stage_names",
                           "use_auxiliary_head", "use_mask_token", "vocab_size", NULL });
}

/* ---- DINOv2 ---------------------------------------------------------------------------------- */

#define DINOV2_NAMES                                                                   \
    .layer = "encoder.layer.%d.", .q = "attention.attention.query",                    \
    .k = "attention.attention.key", .v = "attention.attention.value",                  \
    .o = "attention.output.dense", .before_attention = "norm1", .before_ffn = "norm2", \
    .final_norm = "layernorm", .attention_factors = "layer_scale1.lambda1",            \
    .ffn_factors = "layer_scale2.lambda1"

/* One hidden layer, or a gate on one of two thirds of its width, a multiple of 8. */
static void read_dinov2_ffn(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    int64_t wide = n->d_model * mtf_config_size(c, "mlp_ratio", 4);
    s->gated = mtf_config_flag(c, "use_swiglu_ffn", false);
    s->d_ff = s->gated ? (wide * 2 / 3 + 7) / 8 * 8 : wide;
    if (!s->gated) {
        s->names.up = "mlp.fc1";
        s->names.down = "mlp.fc2";
        return;
    }
    s->activation = "silu";
    s->names.gate_up = "mlp.weights_in";
    s->names.down = "mlp.weights_out";
}

/* Branches have a factor of each feature; classes are read from the first place and the patches' mean. */
static void read_dinov2(MtfConfig *c, MtfArchitecture *n) {
    read_vit(c, n);
    MtfStack *s = &n->encoder;
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-6);
    s->names = (MtfStackNames){ DINOV2_NAMES };
    read_dinov2_ffn(c, n);
    n->class_place = MTF_READ_BOTH;
    mtf_type_ignore(c, (const char *const[]){ "apply_layernorm", "layerscale_value",
                                              "reshape_hidden_states", "stage_names",
                                              "out_features", "out_indices", "use_mask_token",
                                              "drop_path_rate", NULL });
}

static void read_dinov2_with_registers(MtfConfig *c, MtfArchitecture *n) {
    read_dinov2(c, n);
    n->picture.n_registers = mtf_config_integer(c, "num_register_tokens", 0, 4);
    n->picture.registers = "embeddings.register_tokens";
    n->context += n->picture.n_registers;
}

/* ---- DINOv3 ---------------------------------------------------------------------------------- */

/* Patches turn by their rows and columns; the first place's features are scores of as many classes. */
static void read_dinov3(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead classes[] = {
        { "ForImageClassification", { 0 }, NULL, MTF_TELLS_CLASS }, { .ending = NULL }
    };
    MtfStack *s = &n->encoder;
    mtf_encoder_sizes(c, n);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    n->d_model = mtf_config_size(c, "hidden_size", 384);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 6);
    s->d_ff = mtf_config_size(c, "intermediate_size", 1536);
    mtf_encoder_divide_heads(c, n, "num_attention_heads", "hidden_size");
    s->q_bias = mtf_config_flag(c, "query_bias", true);
    s->k_bias = mtf_config_flag(c, "key_bias", false);
    s->v_bias = mtf_config_flag(c, "value_bias", true);
    s->o_bias = mtf_config_flag(c, "proj_bias", true);
    s->ffn_bias = mtf_config_flag(c, "mlp_bias", true);
    s->gated = mtf_config_flag(c, "use_gated_mlp", false);
    s->grid_base = mtf_config_number(c, "rope_theta", 100);
    if (!(s->grid_base > 0) || s->d_kv % 4 != 0)
        mtf_config_fail(c, s->d_kv % 4 != 0 ? "num_attention_heads" : "rope_theta",
                        "a base above 0 is expected, and heads of a multiple of 4 features");
    s->names = (MtfStackNames){ .layer = "layer.%d.",
                                .q = "attention.q_proj",
                                .k = "attention.k_proj",
                                .v = "attention.v_proj",
                                .o = "attention.o_proj",
                                .gate = s->gated ? "mlp.gate_proj" : NULL,
                                .up = "mlp.up_proj",
                                .down = "mlp.down_proj",
                                .before_attention = "norm1",
                                .before_ffn = "norm2",
                                .attention_factors = "layer_scale1.lambda1",
                                .ffn_factors = "layer_scale2.lambda1",
                                .final_norm = "norm" };
    n->picture = (MtfPictureNames){ .patch = "embeddings.patch_embeddings",
                                    .class_place = "embeddings.cls_token",
                                    .registers = "embeddings.register_tokens" };
    read_picture(c, n, 224, 16, 1);
    n->picture.n_registers = mtf_config_integer(c, "num_register_tokens", 0, 0);
    n->context += n->picture.n_registers;
    n->class_place = MTF_READ_FIRST;
    n->head = NULL;
    n->classes = n->d_model;
    if (mtf_encoder_find_head(c, classes) != NULL)
        mtf_config_fail(c, "architectures", "DINOv3 is read without a head of classes");
    mtf_config_leave_out(c, "hidden_size",
                         "the features that are read are scores of as many classes");
    mtf_type_ignore(c, (const char *const[]){ "apply_layernorm", "drop_path_rate",
                                              "layerscale_value", "out_features", "out_indices",
                                              "pos_embed_jitter", "pos_embed_rescale",
                                              "pos_embed_shift", "reshape_hidden_states",
                                              "return_class_token", "stage_names", NULL });
}

/* ---- CLIP and SigLIP ------------------------------------------------------------------------- */

#define CLIP_NAMES                                                                                \
    .layer = "vision_model.encoder.layers.%d.", .q = "self_attn.q_proj", .k = "self_attn.k_proj", \
    .v = "self_attn.v_proj", .o = "self_attn.out_proj", .before_attention = "layer_norm1",        \
    .before_ffn = "layer_norm2", .up = "mlp.fc1", .down = "mlp.fc2"

#define CLIP_PICTURE                                    \
    .patch = "vision_model.embeddings.patch_embedding", \
    .table = "vision_model.embeddings.position_embedding", .as_tables = true

static void read_tower(MtfConfig *c, MtfArchitecture *n, const char *activation) {
    MtfStack *s = &n->encoder;
    mtf_encoder_sizes(c, n);
    s->activation = mtf_config_activation(c, "hidden_act", activation);
    mtf_encoder_all_biases(s);
    s->names = (MtfStackNames){ CLIP_NAMES };
    n->picture = (MtfPictureNames){ CLIP_PICTURE };
    n->class_place = MTF_READ_PATCHES;
}

static const MtfEncoderHead image_heads[] = {
    { "ForImageClassification", { 0 }, "classifier", MTF_TELLS_CLASS }, { .ending = NULL }
};

/* CLIP's tower of pictures. Without a head of classes the features that texts are compared with are scores. */
static void read_clip_vision(MtfConfig *c, MtfArchitecture *n) {
    read_tower(c, n, "quick_gelu");
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    n->picture.class_place = "vision_model.embeddings.class_embedding";
    n->picture.patch_bare = true;
    n->encoder.names.embedding_norm = "vision_model.pre_layrnorm";
    read_picture(c, n, 224, 32, 1);
    int64_t features = mtf_config_size(c, "projection_dim", 512);
    n->classes = features;
    if (mtf_encoder_find_head(c, image_heads) != NULL) {
        n->classes = mtf_encoder_classes(c, 2);
        return;
    }
    n->class_place = MTF_READ_FIRST;
    n->encoder.names.final_norm = "vision_model.post_layernorm";
    n->head = "visual_projection";
    n->head_bare = true;
    mtf_config_leave_out(c, "projection_dim", "its features are scores of as many classes");
}

/* SigLIP's, without a place of its own for the class: a learned query reads features, whose scores they are;
 * or classes are read from the patches' mean. */
static void read_siglip_vision(MtfConfig *c, MtfArchitecture *n) {
    read_tower(c, n, "gelu_pytorch_tanh");
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-6);
    n->encoder.names.final_norm = "vision_model.post_layernorm";
    read_picture(c, n, 224, 16, 0);
    bool probe = mtf_config_flag(c, "vision_use_head", true);
    if (mtf_encoder_find_head(c, image_heads) != NULL) {
        n->classes = mtf_encoder_classes(c, 2);
        return;
    }
    if (!probe)
        mtf_config_fail(c, "vision_use_head", "only true, or a head of classes");
    n->class_place = MTF_READ_PROBE;
    n->picture.probe = "vision_model.head.";
    n->classes = n->d_model;
    n->head = NULL;
    mtf_config_leave_out(c, "hidden_size",
                         "the features that are read are scores of as many classes");
}

#define CLIP_TEXT_NAMES                                                                         \
    .layer = "text_model.encoder.layers.%d.", .q = "self_attn.q_proj", .k = "self_attn.k_proj", \
    .v = "self_attn.v_proj", .o = "self_attn.out_proj", .before_attention = "layer_norm1",      \
    .before_ffn = "layer_norm2", .up = "mlp.fc1", .down = "mlp.fc2",                            \
    .final_norm = "text_model.final_layer_norm",                                                \
    .positions = "text_model.embeddings.position_embedding"

/* CLIP's tower of texts, which looks back: features, read from a text's last place, through a matrix where there is one,
 * are scores of as many classes. */
static void read_clip_text(MtfConfig *c, MtfArchitecture *n) {
    static const MtfEncoderHead bare[] = { { "CLIPTextModel", { 0 }, NULL, MTF_TELLS_CLASS },
                                           { .ending = NULL } };
    MtfStack *s = &n->decoder;
    n->kind = MTF_ARCHITECTURE_DECODER;
    n->vocab = mtf_config_size(c, "vocab_size", 49408);
    n->d_model = mtf_config_size(c, "hidden_size", 512);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    n->max_positions = n->context = mtf_config_size(c, "max_position_embeddings", 77);
    n->embedding = "text_model.embeddings.token_embedding";
    s->layers = mtf_config_count(c, "num_hidden_layers", 12);
    s->heads = s->kv_heads = mtf_config_size(c, "num_attention_heads", 8);
    s->d_ff = mtf_config_size(c, "intermediate_size", 2048);
    s->activation = mtf_config_activation(c, "hidden_act", "quick_gelu");
    mtf_type_divide_heads(c, n, "num_attention_heads");
    mtf_type_all_biases(s, true);
    s->names = (MtfStackNames){ CLIP_TEXT_NAMES };
    n->class_place = MTF_READ_LAST;
    n->head_bare = true;
    n->classes = mtf_config_size(c, "projection_dim", 512);
    n->head = "text_projection";
    mtf_config_leave_out(c, "projection_dim", "its features are scores of as many classes");
    if (mtf_encoder_find_head(c, bare) != NULL) {
        n->classes = n->d_model;
        n->head = NULL;
    }
}

/* SigLIP's, which sees both sides and what fills a row up, and is read from the row's last place. */
static void read_siglip_text(MtfConfig *c, MtfArchitecture *n) {
    MtfStack *s = &n->encoder;
    n->kind = MTF_ARCHITECTURE_ENCODER;
    mtf_encoder_sizes(c, n);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-6);
    n->vocab = mtf_config_size(c, "vocab_size", 32000);
    n->max_positions = n->context = mtf_config_size(c, "max_position_embeddings", 64);
    n->embedding = "text_model.embeddings.token_embedding";
    s->activation = mtf_config_activation(c, "hidden_act", "gelu_pytorch_tanh");
    mtf_encoder_all_biases(s);
    s->names = (MtfStackNames){ CLIP_TEXT_NAMES };
    n->class_place = MTF_READ_ROW;
    n->filling = mtf_config_integer(c, "pad_token_id", 0, MIN(1, n->vocab - 1));
    if (n->filling >= n->vocab)
        mtf_config_fail(c, "pad_token_id", "a token of the vocabulary is expected");
    n->classes = mtf_config_size(c, "projection_size", n->d_model);
    n->head = "text_model.head";
    mtf_config_leave_out(c, "projection_size", "its features are scores of as many classes");
}

/* SigLIP 2's of pictures of any shape, here square, as many patches as its table has places. */
static void read_siglip2_vision(MtfConfig *c, MtfArchitecture *n) {
    int64_t patches = mtf_config_size(c, "num_patches", 256), side = 1;
    while (side * side < patches && side < 4096)
        side++;
    if (side * side != patches)
        mtf_config_fail(c, "num_patches", "a square of at most 4096 * 4096 is expected");
    read_siglip_vision(c, n);
    n->patch_size = mtf_config_size(c, "patch_size", 16);
    n->image_size = side * n->patch_size;
    n->context = patches;
    n->picture.patch_flat = true;
}

/* I-JEPA: no place of its own for the class, which is read from the patches' mean. */
static void read_ijepa(MtfConfig *c, MtfArchitecture *n) {
    read_vit(c, n);
    n->picture.class_place = NULL;
    n->class_place = MTF_READ_PATCHES;
    n->context--;
}

/* ---- Swin ------------------------------------------------------------------------------------ */

static void check_windows(MtfConfig *c, const MtfArchitecture *n) {
    const MtfWindows *w = &n->windows;
    for (int i = 0; i < w->stages; i++)
        if (w->depths[i] < 1 || w->depths[i] > MTF_MOST_LAYERS || w->heads[i] < 1 ||
            (n->d_model << i) % MAX(1, w->heads[i]) != 0)
            mtf_config_fail(c, "num_heads",
                            "a stage has 1 to 4096 layers, and embed_dim, doubled from stage to "
                            "stage, is a multiple of its heads");
    if (n->image_size % n->patch_size != 0 || n->image_size / n->patch_size > 4096)
        mtf_config_fail(c, "patch_size", "image_size must be 1 to 4096 times patch_size");
    if (mtf_config_flag(c, "use_absolute_embeddings", false))
        mtf_config_fail(c, "use_absolute_embeddings", "only false is supported");
}

static void read_stages(MtfConfig *c, MtfWindows *w) {
    static const int64_t depths[] = { 2, 2, 6, 2 }, heads[] = { 3, 6, 12, 24 };
    MtfJson list;
    w->stages = 4;
    for (int i = 0; i < 4; i++) {
        w->depths[i] = depths[i];
        w->heads[i] = heads[i];
    }
    if (mtf_config_find(c, "depths", &list) && cJSON_IsArray(list.node))
        w->stages = CLAMP((int)mtf_json_length(&list), 1, MTF_MOST_STAGES);
    mtf_encoder_list(c, "depths", w->stages, w->depths);
    mtf_encoder_list(c, "num_heads", w->stages, w->heads);
    mtf_type_derived(c, "num_layers", w->stages);
}

/* Without a head of classes the mean of the last stage's features are scores of as many classes. */
static void read_swin(MtfConfig *c, MtfArchitecture *n) {
    MtfWindows *w = &n->windows;
    n->kind = MTF_ARCHITECTURE_WINDOWS;
    n->context = 1;
    n->image_size = mtf_config_size(c, "image_size", 224);
    n->patch_size = mtf_config_size(c, "patch_size", 4);
    n->channels = mtf_config_size(c, "num_channels", 3);
    n->d_model = mtf_config_size(c, "embed_dim", 96);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-5);
    n->encoder.activation = mtf_config_activation(c, "hidden_act", "gelu");
    n->encoder.q_bias = mtf_config_flag(c, "qkv_bias", true);
    n->encoder.names.final_norm = "layernorm";
    read_stages(c, w);
    w->window = mtf_config_size(c, "window_size", 7);
    w->ratio = mtf_config_number(c, "mlp_ratio", 4);
    mtf_type_derived(c, "hidden_size", n->d_model << (w->stages - 1));
    if (!(w->ratio > 0 && w->ratio <= 64))
        mtf_config_fail(c, "mlp_ratio", "a number above 0 and up to 64 is expected");
    check_windows(c, n);
    if (mtf_encoder_find_head(c, image_heads) != NULL) {
        n->classes = mtf_encoder_classes(c, 2);
        n->head = "classifier";
    } else {
        n->classes = n->d_model << (w->stages - 1);
        mtf_config_leave_out(c, "hidden_size",
                             "the features that are read are scores of as many classes");
    }
    mtf_type_ignore(c, (const char *const[]){ "drop_path_rate", "encoder_stride", "out_features",
                                              "out_indices", "path_norm", "stage_names", NULL });
}

static void read_swinv2(MtfConfig *c, MtfArchitecture *n) {
    read_swin(c, n);
    n->windows.second = true;
    mtf_encoder_list(c, "pretrained_window_sizes", n->windows.stages, n->windows.pretrained);
}

const MtfArchitectureType mtf_picture_types[] = {
    { "vit", read_vit },
    { "vit_msn", read_vit },
    { "vit_22b", read_vit_22b },
    { "deit", read_deit },
    { "ijepa", read_ijepa },
    { "beit", read_beit },
    { "data2vec-vision", read_beit },
    { "dinov2", read_dinov2 },
    { "dinov3_vit", read_dinov3 },
    { "dinov2_with_registers", read_dinov2_with_registers },
    { "swin", read_swin },
    { "donut-swin", read_swin },
    { "swinv2", read_swinv2 },
    { "clip_vision_model", read_clip_vision },
    { "clip_text_model", read_clip_text },
    { "siglip_vision_model", read_siglip_vision },
    { "siglip_text_model", read_siglip_text },
    { "siglip2_vision_model", read_siglip2_vision },
    { "siglip2_text_model", read_siglip_text },
    { NULL, NULL },
};
