// SPDX-License-Identifier: GPL-3.0-or-later
/* What is no text as places of a stack: pictures by their patches, sound by convolutions over time. */
#include "analyzer/models/architecture_parts.h"

#include <inttypes.h>

/* ---- Pictures -------------------------------------------------------------------------------- */

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
                      .patches = m->n->picture.class_place == NULL
                                     ? m->length
                                     : mtf_parts_dimension(m->p, "patches", side * side) };
}

/* A convolution whose stride is its size: a product of every patch with one matrix. */
static int embed_patches(MtfAssembly *m, const Picture *d, int image) {
    const MtfPictureNames *names = &m->n->picture;
    MtfShape in = names->patch_flat ? MTF_SHAPE(d->patch_rows, d->patch_columns, d->channels)
                                    : MTF_SHAPE(d->channels, d->patch_rows, d->patch_columns);
    MtfLinear linear = { .name = "patch",
                         .file = names->patch,
                         .in = in,
                         .out = MTF_SHAPE(m->d_model),
                         .bias = !names->patch_bare,
                         .spread = m->n->spread };
    int64_t patch = m->n->patch_size;
    g_autofree char *place =
        g_strdup_printf("%s.weight[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", names->patch,
                        m->n->d_model, m->n->channels, patch, patch);
    int grid = mtf_assembly_linear(m, &linear, image);
    if (!names->patch_flat)
        mtf_assembly_place(m, "wpatch", place);
    MtfShape shape = MTF_SHAPE(m->batch, d->patches, m->d_model);
    return mtf_parts_apply(m->p, MTF_OP_RESHAPE, "patches", &shape, grid, -1);
}

/* A place of its own of every picture. */
static int own_place(MtfAssembly *m, const char *name, const char *file) {
    g_autofree char *place = g_strdup_printf("%s[%s%" PRId64 "]", file,
                                             m->n->picture.as_tables ? "" : "1,1,", m->n->d_model);
    g_autofree char *all = g_strdup_printf("%ss", name);
    MtfShape alone = MTF_SHAPE(m->batch, m->d_model);
    int token =
        mtf_parts_variable(m->p, name, &MTF_SHAPE(m->d_model), MTF_INIT_NORMAL, m->n->spread);
    mtf_assembly_place(m, name, place);
    return mtf_parts_apply(m->p, MTF_OP_BROADCAST, all, &alone, token, -1);
}

/* Places before the patches, from the first of whose results the picture's class may be read; `placed` are
 * those that have a position. */
static int add_class_place(MtfAssembly *m, int placed, int patches) {
    const MtfPictureNames *names = &m->n->picture;
    MtfShape all = MTF_SHAPE(m->batch, placed, m->d_model);
    int places[3] = { -1, -1, -1 }, n = 0;
    if (names->class_place == NULL)
        return patches;
    places[n++] = own_place(m, "class_token", names->class_place);
    if (names->teacher != NULL)
        places[n++] = own_place(m, "teacher_token", names->teacher);
    places[n++] = patches;
    return mtf_parts_apply_shape_to(m->p, MTF_OP_CONCAT, "places", &all, n, places);
}

static int add_table(MtfAssembly *m, int placed, int x) {
    bool plain = m->n->picture.as_tables;
    if (m->n->picture.table == NULL)
        return x;
    g_autofree char *place = g_strdup_printf(
        "%s%s%" PRId64 ",%" PRId64 "]", m->n->picture.table, plain ? ".weight[" : "[1,",
        m->positions - m->n->picture.n_registers, m->n->d_model);
    int table = mtf_parts_variable(m->p, "position_table", &MTF_SHAPE(placed, m->d_model),
                                   MTF_INIT_NORMAL, m->n->spread);
    mtf_assembly_place(m, "position_table", place);
    return mtf_parts_add(m->p, "x_placed", x, table);
}

/* Places whose results are not read (Darcet and others, 2023). They have no position, so that they may come
 * last. */
static int add_registers(MtfAssembly *m, int x) {
    const MtfPictureNames *names = &m->n->picture;
    MtfShape all = MTF_SHAPE(m->batch, m->length, m->d_model);
    int count = mtf_parts_dimension(m->p, "registers", names->n_registers);
    MtfShape each = MTF_SHAPE(m->batch, count, m->d_model);
    g_autofree char *place = g_strdup_printf("%s[1,%" PRId64 ",%" PRId64 "]", names->registers,
                                             names->n_registers, m->n->d_model);
    int table = mtf_parts_variable(m->p, "register_tokens", &MTF_SHAPE(count, m->d_model),
                                   MTF_INIT_NORMAL, m->n->spread);
    mtf_assembly_place(m, "register_tokens", place);
    int copies = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "registers_of_all", &each, table, -1);
    return mtf_parts_apply(m->p, MTF_OP_CONCAT, "x_registered", &all, x, copies);
}

/* Patches of a spectrum, which overlap: a convolution over bands and times. */
static int embed_spectrum(MtfAssembly *m) {
    const MtfPictureNames *s = &m->n->picture;
    int64_t patch = m->n->patch_size;
    int bands = mtf_parts_dimension(m->p, "bands", s->bands);
    int times = mtf_parts_dimension(m->p, "times", s->times);
    int down = mtf_parts_dimension(m->p, "rows", (s->bands - patch) / s->band_stride + 1);
    int across = mtf_parts_dimension(m->p, "columns", (s->times - patch) / s->time_stride + 1);
    int row = mtf_parts_dimension(m->p, "patch_rows", patch);
    int column = mtf_parts_dimension(m->p, "patch_columns", patch);
    int patches = mtf_parts_dimension(m->p, "patches", m->positions - 2);
    g_autofree char *place = g_strdup_printf("%s.weight[%" PRId64 ",1,%" PRId64 ",%" PRId64 "]",
                                             s->patch, m->n->d_model, patch, patch);
    g_autofree char *of_bias = g_strdup_printf("%s.bias[%" PRId64 "]", s->patch, m->n->d_model);
    int sound = mtf_parts_input(m->p, "sound", &MTF_SHAPE(m->batch, times, bands), MTF_F32,
                                MTF_FEED_FEATURES);
    int w = mtf_parts_variable(m->p, "wpatch", &MTF_SHAPE(m->d_model, row, column), MTF_INIT_NORMAL,
                               m->n->spread);
    int bias = mtf_parts_variable(m->p, "patch_bias", &MTF_SHAPE(m->d_model), MTF_INIT_CONSTANT, 0);
    mtf_assembly_place(m, "wpatch", place);
    mtf_assembly_place(m, "patch_bias", of_bias);
    MtfAttributes *a = &m->p->b.attributes;
    a->n_windows = 2;
    a->windows[0] = (MtfWindow){ bands, down, row, 1, (int)s->band_stride, 1, 0, 0, false };
    a->windows[1] = (MtfWindow){ times, across, column, 1, (int)s->time_stride, 1, 0, 0, false };
    MtfShape grid = MTF_SHAPE(m->batch, down, across, m->d_model);
    int y = mtf_parts_apply(m->p, MTF_OP_CONV, "patch", &grid, sound, w);
    y = mtf_parts_add(m->p, "patch_biased", y, bias);
    MtfShape shape = MTF_SHAPE(m->batch, patches, m->d_model);
    return mtf_parts_apply(m->p, MTF_OP_RESHAPE, "patches", &shape, y, -1);
}

int mtf_assembly_image(MtfAssembly *m) {
    if (m->n->picture.bands > 0)
        return add_table(m, m->length, add_class_place(m, m->length, embed_spectrum(m)));
    Picture d = picture_dimensions(m);
    int64_t registers = m->n->picture.n_registers;
    int placed =
        registers > 0 ? mtf_parts_dimension(m->p, "placed", m->positions - registers) : m->length;
    MtfShape shape =
        MTF_SHAPE(m->batch, d.channels, d.rows, d.patch_rows, d.columns, d.patch_columns);
    int image = mtf_parts_input(m->p, "image", &shape, MTF_F32, MTF_FEED_FEATURES);
    int x = add_class_place(m, placed, embed_patches(m, &d, image));
    x = add_table(m, placed, x);
    x = mtf_assembly_norm(m, "embedding_norm", m->stack->names.embedding_norm, m->d_model, x);
    return registers > 0 ? add_registers(m, x) : x;
}

/* ---- Sound ----------------------------------------------------------------------------------- */

#define TAPS 3 /* places of a convolution's window */

/* A convolution along time as a product: the input as each tap of the window sees it, stacked, times
 * one matrix.
 *
 *     y[t] = sum over j of W[j] x[stride t + j - 1], 0 where that is outside                     */
typedef struct {
    const char *name;
    int in, out;  /* features */
    int from, to; /* times */
    int64_t stride;
    int taps;
} Convolution;

/* What tap `j` sees at each time. */
static int see(MtfAssembly *m, const Convolution *c, int j, int x) {
    g_autofree char *name = g_strdup_printf("tap_%d", j);
    MtfAttributes *a = &m->p->b.attributes;
    a->from = c->from;
    a->to = c->to;
    a->start = j - 1;
    a->stride = (double)c->stride;
    a->dilation = 1;
    return mtf_parts_apply(m->p, MTF_OP_RESAMPLE, name, NULL, x, -1);
}

static int convolve(MtfAssembly *m, const Convolution *c, int x) {
    mtf_parts_enter(m->p, c->name);
    int seen[TAPS];
    for (int j = 0; j < TAPS; j++)
        seen[j] = see(m, c, j, x);
    MtfShape shape = { 0 };
    if (m->p->b.error == NULL)
        shape = mtf_graph_tensor(m->p->b.graph, seen[0])->shape;
    mtf_shape_append(&shape, c->taps);
    int stacked = mtf_parts_apply_shape_to(m->p, MTF_OP_STACK, "taps", &shape, TAPS, seen);
    g_autofree char *file = g_strdup_printf("model.encoder.%s", c->name);
    MtfLinear linear = { .name = "y",
                         .file = file,
                         .in = MTF_SHAPE(c->in, c->taps),
                         .out = MTF_SHAPE(c->out),
                         .bias = true,
                         .spread = m->n->spread };
    int y = mtf_assembly_linear(m, &linear, stacked);
    mtf_parts_leave(m->p);
    int64_t in = m->p->b.error == NULL ? mtf_graph_size(m->p->b.graph, c->in) : 0;
    g_autofree char *weight = g_strdup_printf("%s/wy", c->name);
    g_autofree char *place = g_strdup_printf("model.encoder.%s.weight[%" PRId64 ",%" PRId64 ",%d]",
                                             c->name, m->n->d_model, in, TAPS);
    mtf_assembly_place(m, weight, place);
    return y;
}

/* The places of the encoder's positions are fixed: they are in the files, and are not trained. */
static int add_fixed_positions(MtfAssembly *m, int x) {
    MtfShape shape = MTF_SHAPE(m->length, m->d_model);
    int table = mtf_assembly_variable(m, "source_positions", "model.encoder.embed_positions",
                                      &shape, MTF_INIT_NORMAL, m->n->spread);
    int fixed =
        mtf_parts_apply(m->p, MTF_OP_STOP_GRADIENT, "source_positions_fixed", NULL, table, -1);
    return mtf_parts_add(m->p, "source_placed", x, fixed);
}

int mtf_assembly_speech(MtfAssembly *m) {
    int mels = mtf_parts_dimension(m->p, "mels", m->n->channels);
    int frames = mtf_parts_dimension(m->p, "frames", 2 * m->n->source_length);
    int frames_seen = mtf_parts_dimension(m->p, "frames_seen", 2 * m->n->source_length);
    int stem = mtf_parts_dimension(m->p, "d_stem", m->n->d_model);
    int taps = mtf_parts_dimension(m->p, "taps", TAPS);
    MtfShape shape = MTF_SHAPE(m->batch, mels, frames);
    int x = mtf_parts_input(m->p, "sound", &shape, MTF_F32, MTF_FEED_FEATURES);
    Convolution first = { "conv1", mels, stem, frames, frames_seen, 1, taps };
    Convolution second = { "conv2", stem, m->d_model, frames_seen, m->length, 2, taps };
    x = mtf_parts_apply(m->p, MTF_OP_GELU_EXACT, "conv1_active", NULL, convolve(m, &first, x), -1);
    x = mtf_parts_apply(m->p, MTF_OP_GELU_EXACT, "conv2_active", NULL, convolve(m, &second, x), -1);
    return add_fixed_positions(m, x);
}
