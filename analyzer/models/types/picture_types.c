// SPDX-License-Identifier: GPL-3.0-or-later
/* Encoders of pictures, by their patches. */
#include "analyzer/models/types/encoder_parts.h"

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
    n->classes = mtf_encoder_classes(c, VIT_CLASSES);
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
    mtf_encoder_sizes(c, n);
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

const MtfArchitectureType mtf_picture_types[] = {
    { "vit", read_vit },
    { "deit", read_deit },
    { NULL, NULL },
};
