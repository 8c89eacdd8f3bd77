// SPDX-License-Identifier: GPL-3.0-or-later
/* A sound's samples as places of a stack (Baevski and others, wav2vec 2.0, 2020): convolutions over time that leave fewer and
 * fewer of them, and one, or several, over a place's surroundings, by whose features it knows where it is.
 *
 *     samples ─conv─ norm ─ gelu─► … ─norm─ matrix─► x ─┬─────────────────────────────► +
 *                                                       └─ conv of each group ─ gelu ──┘       */
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>
#include <math.h>

#define NORM_EPSILON 1e-5 /* of convolutions, whatever the layers have */

/* One window over time: from `from` to `to`, by filters that are `taps` long. */
typedef struct {
    int from, to, taps;
    int64_t stride, before, after;
} Window;

static int convolve(MtfAssembly *m, const char *name, const Window *w, const MtfShape *shape,
                    const int inputs[2]) {
    MtfAttributes *a = &m->p->b.attributes;
    a->n_windows = 1;
    a->windows[0] = (MtfWindow){ .from = w->from,
                                 .to = w->to,
                                 .kernel = w->taps,
                                 .size = 1,
                                 .stride = (int)w->stride,
                                 .dilation = 1,
                                 .before = (int)w->before,
                                 .after = (int)w->after };
    return mtf_parts_apply_shape_to(m->p, MTF_OP_CONV, name, shape, 2, inputs);
}

static int dimension_of(MtfAssembly *m, const char *stem, int number, int64_t size) {
    g_autofree char *name = g_strdup_printf("%s_%d", stem, number);
    return mtf_assembly_dimension(m, name, size);
}

/* Says that files keep the part's variable as a filter of these sizes. */
static void place_filter(MtfAssembly *m, const char *variable, const char *file, int64_t out,
                         int64_t in, int64_t taps) {
    g_autofree char *place =
        g_strdup_printf("%s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", file, out, in, taps);
    mtf_assembly_place(m, variable, place);
}

static int add_bias(MtfAssembly *m, const char *file, int dim, int x) {
    g_autofree char *whole = g_strdup_printf("%s.bias", file);
    int bias = mtf_mixer_vector(m, "bias", whole, &MTF_SHAPE(dim), 0);
    return mtf_parts_add(m->p, "biased", x, bias);
}

/* ---- What is heard --------------------------------------------------------------------------- */

/* Each channel less its mean over time, divided by its deviation. */
static int norm_channels(MtfAssembly *m, const char *file, int channels, int x) {
    MtfShape each = MTF_SHAPE(m->batch, channels);
    g_autofree char *of_scale = g_strdup_printf("%s.weight", file);
    g_autofree char *of_bias = g_strdup_printf("%s.bias", file);
    mtf_parts_enter(m->p, "norm");
    int scale = mtf_mixer_vector(m, "scale", of_scale, &MTF_SHAPE(channels), 1);
    int bias = mtf_mixer_vector(m, "bias", of_bias, &MTF_SHAPE(channels), 0);
    int mean = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "mean", &each, x, -1);
    int variance = mtf_parts_apply(m->p, MTF_OP_VARIANCE, "variance", &each, x, mean);
    m->p->b.attributes.epsilon = NORM_EPSILON;
    int y = mtf_parts_apply_to(m->p, MTF_OP_NORMALIZE, "y", 5,
                               (int[]){ x, mean, variance, scale, bias });
    mtf_parts_leave(m->p);
    return y;
}

/* The filter of convolution number i, which reads `in` (-1: the samples themselves). */
static int filter(MtfAssembly *m, int i, int out, int in, int taps) {
    const MtfSound *s = &m->n->sound;
    int64_t inputs = i == 0 ? 1 : s->channels[i - 1];
    MtfShape shape = in < 0 ? MTF_SHAPE(out, taps) : MTF_SHAPE(out, in, taps);
    g_autofree char *name = g_strdup_printf("hear_%d/w", i);
    g_autofree char *file = g_strdup_printf("feature_extractor.conv_layers.%d.conv.weight", i);
    int w = mtf_parts_variable(m->p, "w", &shape, MTF_INIT_NORMAL,
                               sqrt(2 / (double)(inputs * s->taps[i])));
    place_filter(m, name, file, s->channels[i], inputs, s->taps[i]);
    return w;
}

/* Times and channels of a sound at some point. */
typedef struct {
    int x, times, channels; /* channels -1: samples */
} Sound;

/* Convolution number i. */
static Sound hear(MtfAssembly *m, int i, const Sound *before) {
    const MtfSound *s = &m->n->sound;
    g_autofree char *part = g_strdup_printf("hear_%d", i);
    g_autofree char *file = g_strdup_printf("feature_extractor.conv_layers.%d.conv", i);
    g_autofree char *norm = g_strdup_printf("feature_extractor.conv_layers.%d.layer_norm", i);
    int64_t left = mtf_sound_times(s, i + 1, m->positions);
    int to = i + 1 == s->layers ? m->length : dimension_of(m, "times", i + 1, left);
    int out = dimension_of(m, "channels", i, s->channels[i]);
    mtf_parts_enter(m->p, part);
    Window window = { .from = before->times,
                      .to = to,
                      .taps = dimension_of(m, "taps", i, s->taps[i]),
                      .stride = s->strides[i] };
    int w = filter(m, i, out, before->channels, window.taps);
    int y = convolve(m, "y", &window, &MTF_SHAPE(m->batch, to, out), (int[]){ before->x, w });
    y = s->bias ? add_bias(m, file, out, y) : y;
    if (s->norm_each)
        y = mtf_assembly_norm_by(m, "norm", norm, out, NORM_EPSILON, y);
    else if (i == 0)
        y = norm_channels(m, norm, out, y);
    y = mtf_assembly_activation(m, s->activation, y);
    mtf_parts_leave(m->p);
    return (Sound){ y, to, out };
}

int64_t mtf_sound_times(const MtfSound *s, int layer, int64_t length) {
    for (int i = s->layers - 1; i >= layer; i--)
        length = (length - 1) * s->strides[i] + s->taps[i];
    return length;
}

/* The last convolution's channels in the model's width. */
static int widen(MtfAssembly *m, int channels, int x) {
    MtfLinear linear = { .name = "heard",
                         .file = "feature_projection.projection",
                         .in = MTF_SHAPE(channels),
                         .out = MTF_SHAPE(m->d_model),
                         .bias = true,
                         .spread = m->n->spread };
    const char *norm = m->n->sound.bare_projection ? NULL : "feature_projection.layer_norm";
    x = mtf_assembly_norm(m, "heard_norm", norm, channels, x);
    return mtf_assembly_linear(m, &linear, x);
}

/* ---- Where places are ------------------------------------------------------------------------ */

/* The dimensions of a convolution of each group of the model's features. */
typedef struct {
    int group, in, out, taps, to;
    int64_t width; /* features of a group */
} Groups;

static Groups groups_of(MtfAssembly *m) {
    const MtfSound *s = &m->n->sound;
    int64_t width = m->n->d_model / s->place_groups;
    return (Groups){ mtf_assembly_dimension(m, "place_group", s->place_groups),
                     mtf_assembly_dimension(m, "place_in", width),
                     mtf_assembly_dimension(m, "place_out", width),
                     mtf_assembly_dimension(m, "place_taps", s->place_taps),
                     mtf_assembly_dimension(m, "places_told", m->positions),
                     width };
}

/* The filters v [group, out, in, taps], as they are or, where there is one convolution, each tap g v / |v| with a number g
 * of its own. */
static int place_filters(MtfAssembly *m, const Groups *d, const char *part, const char *file) {
    const MtfSound *s = &m->n->sound;
    bool bare = s->place_layers > 1;
    double spread = 2 / sqrt((double)(s->place_taps * m->n->d_model));
    MtfShape shape = MTF_SHAPE(d->group, d->out, d->in, d->taps), each = MTF_SHAPE(d->taps);
    g_autofree char *name = g_strdup_printf("%s/v", part);
    g_autofree char *of = g_strdup_printf("%s.weight%s", file, bare ? "" : "_v");
    g_autofree char *of_gain = g_strdup_printf("%s.weight_g", file);
    g_autofree char *sizes = g_strdup_printf("1,1,%" PRId64, s->place_taps);
    int v = mtf_parts_variable(m->p, "v", &shape, MTF_INIT_NORMAL, spread);
    place_filter(m, name, of, m->n->d_model, d->width, s->place_taps);
    if (bare)
        return v;
    double length = spread * sqrt((double)(m->n->d_model * d->width));
    int gain = mtf_mixer_row(m, "gain", of_gain, d->taps, sizes, length);
    int squares = mtf_mixer_map(m, MTF_OP_SQUARE, "squares", v, -1);
    int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "power", &each, squares, -1);
    int shorter = mtf_mixer_map(m, MTF_OP_RSQRT, "shorter", sum, -1);
    int factor = mtf_mixer_map(m, MTF_OP_MULTIPLY, "factor", gain, shorter);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "filters", &shape, v, factor);
}

/* What convolution `number` over the places of x tells. */
static int tell_places(MtfAssembly *m, int number, int x) {
    const MtfSound *s = &m->n->sound;
    Groups d = groups_of(m);
    bool several = s->place_layers > 1;
    g_autofree char *part = g_strdup_printf("placed_%d", number);
    g_autofree char *file = several
                                ? g_strdup_printf("encoder.pos_conv_embed.layers.%d.conv", number)
                                : g_strdup("encoder.pos_conv_embed.conv");
    Window window = { m->length, d.to, d.taps, 1, s->place_taps / 2, (s->place_taps - 1) / 2 };
    MtfShape apart = MTF_SHAPE(m->batch, m->length, d.group, d.in);
    MtfShape made = MTF_SHAPE(m->batch, d.to, d.group, d.out);
    MtfShape whole = MTF_SHAPE(m->batch, d.to, m->d_model);
    mtf_parts_enter(m->p, part);
    int w = place_filters(m, &d, part, file);
    int grouped = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "grouped", &apart, x, -1);
    int y = convolve(m, "y", &window, &made, (int[]){ grouped, w });
    y = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "joined", &whole, y, -1);
    y = add_bias(m, file, m->d_model, y);
    if (several) {
        m->p->b.attributes.value = 1;
        int ones = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "ones", &MTF_SHAPE(m->d_model));
        m->p->b.attributes.dimension = m->d_model;
        m->p->b.attributes.epsilon = NORM_EPSILON;
        y = mtf_parts_apply(m->p, MTF_OP_LAYER_NORM, "norm", NULL, y, ones);
    }
    y = mtf_assembly_activation(m, s->activation, y);
    m->p->b.attributes.from = d.to;
    m->p->b.attributes.to = m->length;
    y = mtf_parts_apply(m->p, MTF_OP_RENAME, "told", NULL, y, -1);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_sound(MtfAssembly *m) {
    const MtfSound *s = &m->n->sound;
    int samples = mtf_assembly_dimension(m, "samples", mtf_sound_times(s, 0, m->positions));
    MtfShape shape = MTF_SHAPE(m->batch, samples);
    Sound heard = { mtf_parts_input(m->p, "sound", &shape, MTF_F32, MTF_FEED_FEATURES), samples,
                    -1 };
    for (int i = 0; i < s->layers && m->p->b.error == NULL; i++)
        heard = hear(m, i, &heard);
    int x = widen(m, heard.channels, heard.x);
    int told = x;
    for (int i = 0; i < s->place_layers && m->p->b.error == NULL; i++)
        told = tell_places(m, i, told);
    x = mtf_parts_add(m->p, "x_placed", x, told);
    x = mtf_assembly_norm(m, "embedding_norm", m->stack->names.embedding_norm, m->d_model, x);
    return mtf_parts_dropout(m->p, "embed_dropped", m->n->dropout.embeddings, x);
}
