// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <inttypes.h>

/* The dimensions of pictures as they lie in memory: a row of patches has patch_rows rows of pixels.
 *
 *     [batch, channels, rows, patch_rows, columns, patch_columns]                             */
typedef struct {
    int channels, rows, patch_rows, columns, patch_columns;
    int patches; /* rows x columns */
} Picture;

static Picture picture_dimensions(MtfAssembly *m) {
    int64_t patch = m->n->patch_size, side = m->n->image_size / patch;
    return (Picture){ .channels = mtf_parts_dimension(m->p, "channels", m->n->channels),
                      .rows = mtf_parts_dimension(m->p, "rows", side),
                      .patch_rows = mtf_parts_dimension(m->p, "patch_rows", patch),
                      .columns = mtf_parts_dimension(m->p, "columns", side),
                      .patch_columns = mtf_parts_dimension(m->p, "patch_columns", patch),
                      .patches = mtf_parts_dimension(m->p, "patches", side * side) };
}

/* A convolution whose stride is its size: a product of every patch with one matrix. */
static int embed_patches(MtfAssembly *m, const Picture *d, int image) {
    MtfLinear linear = { .name = "patch",
                         .file = "embeddings.patch_embeddings.projection",
                         .in = MTF_SHAPE(d->channels, d->patch_rows, d->patch_columns),
                         .out = MTF_SHAPE(m->d_model),
                         .bias = true,
                         .spread = m->n->spread };
    int64_t patch = m->n->patch_size;
    g_autofree char *place =
        g_strdup_printf("embeddings.patch_embeddings.projection.weight[%" PRId64 ",%" PRId64
                        ",%" PRId64 ",%" PRId64 "]",
                        m->n->d_model, m->n->channels, patch, patch);
    int grid = mtf_assembly_linear(m, &linear, image);
    mtf_assembly_place(m, "wpatch", place);
    MtfShape shape = MTF_SHAPE(m->batch, d->patches, m->d_model);
    return mtf_parts_apply(m->p, MTF_OP_RESHAPE, "patches", &shape, grid, -1);
}

/* A place of its own before the patches, from whose result the picture's class is read. */
static int add_class_place(MtfAssembly *m, int patches) {
    g_autofree char *place =
        g_strdup_printf("embeddings.cls_token[1,1,%" PRId64 "]", m->n->d_model);
    MtfShape alone = MTF_SHAPE(m->batch, m->d_model);
    MtfShape all = MTF_SHAPE(m->batch, m->length, m->d_model);
    int token = mtf_parts_variable(m->p, "class_token", &MTF_SHAPE(m->d_model), MTF_INIT_NORMAL,
                                   m->n->spread);
    mtf_assembly_place(m, "class_token", place);
    int tokens = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "class_tokens", &alone, token, -1);
    return mtf_parts_apply(m->p, MTF_OP_CONCAT, "places", &all, tokens, patches);
}

int mtf_assembly_image(MtfAssembly *m) {
    Picture d = picture_dimensions(m);
    MtfShape shape =
        MTF_SHAPE(m->batch, d.channels, d.rows, d.patch_rows, d.columns, d.patch_columns);
    int image = mtf_parts_input(m->p, "image", &shape, MTF_F32, MTF_FEED_FEATURES);
    int x = add_class_place(m, embed_patches(m, &d, image));
    g_autofree char *place = g_strdup_printf(
        "embeddings.position_embeddings[1,%" PRId64 ",%" PRId64 "]", m->positions, m->n->d_model);
    int table = mtf_parts_variable(m->p, "position_table", &MTF_SHAPE(m->length, m->d_model),
                                   MTF_INIT_NORMAL, m->n->spread);
    mtf_assembly_place(m, "position_table", place);
    return mtf_parts_add(m->p, "x_placed", x, table);
}
