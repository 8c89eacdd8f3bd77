// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutional networks for pictures: ResNet and ConvNeXt. */
#include "analyzer/models/types/encoder_parts.h"

#include <string.h>

#define PICTURE_CLASSES 1000 /* of ImageNet, where a config does not name its own */

/* Sizes at a key, one a stage, which are the standard ones where it is left out. */
static void read_stages(MtfConfig *c, const char *key, MtfConvolutions *stages, int64_t *sizes) {
    MtfJson list, item;
    int n = 0;
    if (!mtf_config_find(c, key, &list))
        return;
    c->failed = c->failed || !mtf_json_array(&list, c->error);
    if (!c->failed && (mtf_json_length(&list) < 1 || mtf_json_length(&list) > MTF_MOST_STAGES))
        mtf_config_fail(c, key, "1 to %d stages are expected", MTF_MOST_STAGES);
    for (bool more = !c->failed && mtf_json_first(&list, &item); more && !c->failed;
         more = mtf_json_next(&item), n++)
        c->failed = !mtf_json_integer(&item, 1, MTF_CONFIG_MOST_PARTS * 16, &sizes[n], c->error);
    if (!c->failed && stages->stages != n)
        mtf_config_fail(c, key, "a size for each of %d stages is expected", stages->stages);
}

static void read_picture(MtfConfig *c, MtfArchitecture *n) {
    n->kind = MTF_ARCHITECTURE_CONVOLUTIONS;
    n->image_size = mtf_config_size(c, "image_size", 224);
    n->channels = mtf_config_size(c, "num_channels", 3);
    n->classes = mtf_encoder_classes(c, PICTURE_CLASSES);
    n->context = 1;
    if (n->image_size > 1 << 16)
        mtf_config_fail(c, "image_size", "pictures of at most 65536 pixels a side are expected");
    mtf_type_ignore(c, (const char *const[]){ "drop_path_rate", "out_features", "out_indices",
                                              "stage_names", NULL });
}

/* As many stages as the list of depths has; their standard sizes. */
static void read_sizes(MtfConfig *c, MtfArchitecture *n, const int64_t depths[4],
                       const int64_t widths[4]) {
    MtfConvolutions *of = &n->convolutions;
    MtfJson list;
    memcpy(of->depths, depths, 4 * sizeof *depths);
    memcpy(of->widths, widths, 4 * sizeof *widths);
    of->stages = 4;
    if (mtf_config_find(c, "depths", &list) && cJSON_IsArray(list.node))
        of->stages = (int)MIN(mtf_json_length(&list), MTF_MOST_STAGES + 1);
    read_stages(c, "depths", of, of->depths);
    read_stages(c, "hidden_sizes", of, of->widths);
}

static void read_resnet(MtfConfig *c, MtfArchitecture *n) {
    static const int64_t depths[] = { 3, 4, 6, 3 }, widths[] = { 256, 512, 1024, 2048 };
    MtfConvolutions *of = &n->convolutions;
    const char *block = mtf_config_word(c, "layer_type", "bottleneck");
    read_picture(c, n);
    read_sizes(c, n, depths, widths);
    of->block = strcmp(block, "basic") == 0 ? MTF_BLOCK_BASIC : MTF_BLOCK_BOTTLENECK;
    if (of->block == MTF_BLOCK_BOTTLENECK && strcmp(block, "bottleneck") != 0)
        mtf_config_fail(c, "layer_type", "basic or bottleneck is expected");
    for (int i = 0; i < of->stages && of->block == MTF_BLOCK_BOTTLENECK; i++)
        if (of->widths[i] % 4 != 0)
            mtf_config_fail(c, "hidden_sizes", "multiples of 4 are expected");
    of->embedding = mtf_config_size(c, "embedding_size", 64);
    of->shrinks_first = mtf_config_flag(c, "downsample_in_first_stage", false);
    of->shrinks_early = mtf_config_flag(c, "downsample_in_bottleneck", false);
    if (strcmp(mtf_config_word(c, "hidden_act", "relu"), "relu") != 0)
        mtf_config_fail(c, "hidden_act", "only relu is supported");
}

static void read_next(MtfConfig *c, MtfArchitecture *n, MtfConvolutionBlock block) {
    static const int64_t depths[] = { 3, 3, 9, 3 }, widths[] = { 96, 192, 384, 768 };
    MtfConvolutions *of = &n->convolutions;
    read_picture(c, n);
    read_sizes(c, n, depths, widths);
    of->block = block;
    n->patch_size = mtf_config_size(c, "patch_size", 4);
    n->epsilon = mtf_config_number(c, "layer_norm_eps", 1e-12);
    n->encoder.activation = mtf_config_activation(c, "hidden_act", "gelu");
    mtf_type_derived(c, "num_stages", of->stages);
}

static void read_convnext(MtfConfig *c, MtfArchitecture *n) {
    read_next(c, n, MTF_BLOCK_CONVNEXT);
    n->convolutions.factors = mtf_config_number(c, "layer_scale_init_value", 1e-6) > 0;
}

/* With a response norm in the place of factors. */
static void read_convnextv2(MtfConfig *c, MtfArchitecture *n) {
    read_next(c, n, MTF_BLOCK_CONVNEXT_V2);
}

const MtfArchitectureType mtf_convolution_types[] = {
    { "resnet", read_resnet },
    { "convnext", read_convnext },
    { "convnextv2", read_convnextv2 },
    { NULL, NULL },
};
