// SPDX-License-Identifier: GPL-3.0-or-later
/* Recommendation from clicks (Naumov and others, "Deep learning recommendation model for
 * personalization and recommendation systems", 2019): tables of categories, a perceptron below for
 * what is measured, an interaction, a perceptron above, and whether there was a click.
 *
 *     x [batch, features] ─bottom─► v_0 [batch, width] ─┐
 *     category k ─table k──────────► v_k [batch, width] ─┴─ interaction ─top─► click or not
 *
 * The interaction is all vectors side by side ("cat"), or v_0 beside the products of all pairs
 * ("dot"), or what three layers of crosses of rank 512 make of all side by side (Wang and others, "DCN V2", 2021, as MLPerf
 * has it: "cross"). Of a table an example may have several rows, whose sum is its vector. A top of one output is the logarithm of a click's odds; of two, one each for no click and
 * for a click. */
#include "analyzer/models/families/layer_sizes.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SHAPE(...) (&(MtfShape){ (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), { __VA_ARGS__ } })

typedef struct {
    MtfParts *p;
    const MtfModelSettings *s;
    MtfLayerSizes bottom, tables, top;
    int batch, width;
    int vectors; /* v_0 and those of the tables */
} Model;

/* ---- Vectors --------------------------------------------------------------------------------- */

/* The dimension of several rows, one for all tables that have as many. */
static int bag_dimension(Model *m, int64_t rows) {
    g_autofree char *name = g_strdup_printf("bag_%" PRId64, rows);
    int known = m->p->b.error == NULL ? mtf_graph_find_dimension(m->p->b.graph, name) : -1;
    return known >= 0 ? known : mtf_parts_dimension(m->p, name, rows);
}

/* v_k of every example: its row of table k, or the sum of several. */
static int look_up(Model *m, int k) {
    g_autofree char *rows_name = g_strdup_printf("rows%d", k);
    g_autofree char *column = g_strdup_printf("category%d", k);
    g_autofree char *prefix = g_strdup_printf("table/%d", k);
    int rows = mtf_parts_dimension(m->p, rows_name, m->tables.sizes[k]);
    bool several = m->tables.times[k] > 1;
    MtfShape one = { 1, { m->batch } }, each = one;
    if (several)
        mtf_shape_append(&each, bag_dimension(m, m->tables.times[k]));
    int ids = mtf_parts_input(m->p, column, &each, MTF_I32, MTF_FEED_CATEGORIES);
    mtf_parts_enter(m->p, prefix);
    int table = mtf_parts_variable(m->p, "rows", SHAPE(rows, m->width), MTF_INIT_UNIFORM,
                                   1 / sqrt((double)m->tables.sizes[k]));
    mtf_shape_append(&each, m->width);
    int vector =
        mtf_parts_apply(m->p, MTF_OP_EMBEDDING, several ? "vectors" : "vector", &each, table, ids);
    if (several)
        vector = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "vector", SHAPE(m->batch, m->width),
                                 vector, -1);
    mtf_parts_leave(m->p);
    return vector;
}

/* v_0, v_1, … of every example [batch, vectors, width]; `*first` receives v_0. */
static int all_vectors(Model *m, int *first) {
    int features = mtf_parts_dimension(m->p, "features", m->s->features);
    int x = mtf_parts_input(m->p, "x", SHAPE(m->batch, features), MTF_F32, MTF_FEED_FEATURES);
    int list[MTF_MOST_LAYER_SIZES + 1];
    list[0] = mtf_parts_perceptron(m->p, "bottom", x, &m->bottom, "relu", true);
    g_autofree char *last = g_strdup_printf("bottom%d", m->bottom.n - 1);
    m->width = mtf_graph_find_dimension(m->p->b.graph, last);
    for (int k = 0; k < m->tables.n; k++)
        list[k + 1] = look_up(m, k);
    *first = list[0];
    return mtf_parts_apply_shape_to(m->p, MTF_OP_CONCAT, "vectors",
                                    SHAPE(m->batch, m->vectors, m->width), m->tables.n + 1, list);
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static int scaled(Model *m, const char *name, double factor, int x) {
    m->p->b.attributes.factor = factor;
    return mtf_parts_apply(m->p, MTF_OP_SCALE, name, NULL, x, -1);
}

static int plus(Model *m, const char *name, double more, int x) {
    g_autofree char *number = g_strdup_printf("%s_more", name);
    return mtf_parts_add(m->p, name, x, mtf_parts_constant(m->p, number, more));
}

/* Places i n + j of the pairs i > j in the matrix of all products, where pair number p is
 *
 *     i = floor((1 + sqrt(1 + 8 p)) / 2),  j = p - i (i - 1) / 2
 *
 * A half added to 8 p keeps the root of squares from falling below them. */
static int pair_places(Model *m, int pairs) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int p = mtf_parts_range(m->p, "number", pairs);
    int eight = plus(m, "inside", 1.5, scaled(m, "eight", 8, p));
    int root = mtf_parts_apply(m->p, MTF_OP_SQRT, "root", NULL, eight, -1);
    int half = scaled(m, "half", 0.5, plus(m, "root_more", 1, root));
    int i = mtf_parts_apply(m->p, MTF_OP_FLOOR, "i", NULL, half, -1);
    int square = mtf_parts_apply(m->p, MTF_OP_SQUARE, "square", NULL, i, -1);
    int before =
        scaled(m, "before", 0.5, mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "twice", NULL, square, i));
    int j = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "j", NULL, p, before);
    int place = mtf_parts_add(m->p, "place", scaled(m, "row", m->tables.n + 1, i), j);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    return mtf_parts_apply(m->p, MTF_OP_CAST, "places", NULL, place, -1);
}

/* v_0 and the products v_i v_j, i > j, one behind the other. */
static int interact(Model *m, int vectors, int first) {
    int64_t n = m->tables.n + 1, width = m->bottom.sizes[m->bottom.n - 1];
    int others = mtf_parts_dimension(m->p, "other_vectors", n);
    int all = mtf_parts_dimension(m->p, "products", n * n);
    int pairs = mtf_parts_dimension(m->p, "pairs", n * (n - 1) / 2);
    int joined = mtf_parts_dimension(m->p, "interactions", width + n * (n - 1) / 2);
    mtf_parts_enter(m->p, "interaction");
    m->p->b.attributes.from = m->vectors;
    m->p->b.attributes.to = others;
    int again = mtf_parts_apply(m->p, MTF_OP_RENAME, "others", NULL, vectors, -1);
    int products =
        mtf_parts_einsum(m->p, "products", SHAPE(m->batch, m->vectors, others), vectors, again);
    int flat = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "flat", SHAPE(m->batch, all), products, -1);
    int chosen = mtf_parts_apply(m->p, MTF_OP_GATHER, "pairs", SHAPE(m->batch, pairs), flat,
                                 pair_places(m, pairs));
    int y = mtf_parts_apply_shape_to(m->p, MTF_OP_CONCAT, "joined", SHAPE(m->batch, joined), 2,
                                     (int[]){ first, chosen });
    mtf_parts_leave(m->p);
    return y;
}

/* ---- Crosses --------------------------------------------------------------------------------- */

#define CROSS_LAYERS 3
#define CROSS_RANK 512

/* x times a matrix of its own. */
static int times_matrix(Model *m, const char *name, int from, int to, int x) {
    int64_t inputs = m->p->b.error == NULL ? mtf_graph_size(m->p->b.graph, from) : 1;
    g_autofree char *weight = g_strdup_printf("w_%s", name);
    int w = mtf_parts_variable(m->p, weight, SHAPE(from, to), MTF_INIT_NORMAL,
                               1 / sqrt((double)inputs));
    return mtf_parts_einsum(m->p, name, SHAPE(m->batch, to), x, w);
}

/* All side by side as x[0]; x[l + 1] = x[0] (W (V x[l]) + b) + x[l], where V makes few features of all. */
static int cross(Model *m, int vectors) {
    int64_t width = m->bottom.sizes[m->bottom.n - 1] * (m->tables.n + 1);
    int all = mtf_parts_dimension(m->p, "joined", width);
    int made = mtf_parts_dimension(m->p, "crossed", width);
    int few = mtf_parts_dimension(m->p, "cross_rank", MIN(CROSS_RANK, width));
    int first = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "cross/x", SHAPE(m->batch, all), vectors, -1);
    int x = first;
    for (int l = 0; l < CROSS_LAYERS; l++) {
        g_autofree char *part = g_strdup_printf("cross/%d", l);
        mtf_parts_enter(m->p, part);
        int y = times_matrix(m, "wide", few, made, times_matrix(m, "narrow", all, few, x));
        m->p->b.attributes.from = made;
        m->p->b.attributes.to = all;
        y = mtf_parts_apply(m->p, MTF_OP_RENAME, "again", NULL, y, -1);
        int bias = mtf_parts_variable(m->p, "bias", SHAPE(all), MTF_INIT_CONSTANT, 0);
        y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "crossed", NULL, first,
                            mtf_parts_add(m->p, "biased", y, bias));
        x = mtf_parts_add(m->p, "x", y, x);
        mtf_parts_leave(m->p);
    }
    return x;
}

/* ---- Clicks ---------------------------------------------------------------------------------- */

/* The scores 0 of no click and y of a click, whose cross entropy is that of the odds e^y. */
static int both_scores(Model *m, int y, int outputs) {
    int classes = mtf_parts_dimension(m->p, "classes", 2);
    m->p->b.attributes.from = outputs;
    m->p->b.attributes.to = classes;
    m->p->b.attributes.before = 1;
    return mtf_parts_apply(m->p, MTF_OP_PAD, "scores", NULL, y, -1);
}

static int click_losses(Model *m, int y) {
    int clicks = mtf_parts_input(m->p, "clicks", SHAPE(m->batch), MTF_I32, MTF_FEED_LABELS);
    return mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", SHAPE(m->batch), y,
                           clicks);
}

static bool read_settings(Model *m, GError **error) {
    const MtfModelSettings *s = m->s;
    if (!mtf_layer_sizes_read("bottom", s->bottom, &m->bottom, error) ||
        !mtf_layer_sizes_read("tables", s->tables, &m->tables, error) ||
        !mtf_layer_sizes_read("top", s->top, &m->top, error))
        return false;
    int64_t outputs = m->top.sizes[m->top.n - 1];
    return outputs <= 2 ||
           mtf_input_error(error, "--top: a click has 1 or 2 outputs, not %" PRId64 ": end with -1",
                           outputs);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    Model m = { .s = s };
    int first;
    if (!read_settings(&m, error))
        return NULL;
    m.p = mtf_parts_new();
    m.batch = mtf_parts_dimension(m.p, "batch", s->batch);
    m.vectors = mtf_parts_dimension(m.p, "vectors", m.tables.n + 1);
    int x = all_vectors(&m, &first);
    if (strcmp(s->interaction, "dot") == 0)
        x = interact(&m, x, first);
    if (strcmp(s->interaction, "cross") == 0)
        x = cross(&m, x);
    int y = mtf_parts_perceptron(m.p, "top", x, &m.top, "relu", false);
    g_autofree char *last = g_strdup_printf("top%d", m.top.n - 1);
    int outputs = mtf_graph_find_dimension(m.p->b.graph, last);
    int losses = click_losses(&m, m.top.sizes[m.top.n - 1] == 1 ? both_scores(&m, y, outputs) : y);
    m.p->b.graph->loss =
        mtf_parts_apply(m.p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
    return mtf_parts_end(m.p, error);
}

/* Categories of the 26 columns of Criteo's Kaggle data. */
#define KAGGLE                                                                                  \
    "1460,583,10131227,2202608,305,24,12517,633,3,93145,5683,8351593,3194,27,14992,5461306,10," \
    "5652,2173,4,7046547,18,15,286181,105,142572"
/* Of Criteo's Terabyte data with at most 40 million a column, as MLPerf takes it. */
#define TERABYTE                                                                                \
    "39884406,39043,17289,7420,20263,3,7120,1543,63,38532951,2953546,403346,10,2208,11938,155," \
    "4,976,14,39979771,25641295,39664984,585935,12972,108,36"
/* The same columns as MLPerf's DCN V2 takes them, with as many rows an example as its data were made to have. */
#define SEVERAL                                                                               \
    "40000000x3,39060x2,17295x1,7424x2,20265x6,3x1,7122x1,1543x1,63x1,40000000x7,3067956x3,"  \
    "405282x8,10x1,2209x6,11938x9,155x5,4x1,976x1,14x1,40000000x12,40000000x100,40000000x27," \
    "590152x10,12973x3,108x1,36x1"
#define EIGHT_MILLIONS "1000000,1000000,1000000,1000000,1000000,1000000,1000000,1000000"
#define CLICKS " optimizer=sgd schedule=constant rate=0.1 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "three tables, trains in seconds",
               "batch=32 features=4 interaction=dot" CLICKS "bottom=16-8 tables=50,20,10 top=16-1"),
    MTF_PRESET("criteo-kaggle", "540,677,217 parameters",
               "batch=2048 features=13 interaction=dot" CLICKS "bottom=512-256-64-16 tables=" KAGGLE
               " top=512-256-1"),
    MTF_PRESET("criteo-terabyte", "MLPerf's, 24 billion",
               "batch=65536 features=13 interaction=dot" CLICKS
               "bottom=512-256-128 tables=" TERABYTE " top=1024-1024-512-256-1"),
    MTF_PRESET("dcn-v2", "MLPerf's of 2023, 26 billion",
               "batch=65536 features=13 interaction=cross" CLICKS
               "bottom=512-256-128 tables=" SEVERAL " top=1024-1024-512-256-1"),
    MTF_PRESET("dcn-tiny", "crosses and several rows an example, trains in seconds",
               "batch=32 features=4 interaction=cross" CLICKS
               "bottom=16-8 tables=50x3,20x2,10 top=16-1"),
    MTF_PRESET("flexflow", "FlexFlow's, four tables of a million",
               "batch=64 features=4 interaction=cat" CLICKS
               "bottom=64-64 tables=1000000,1000000,1000000,1000000 top=64-2"),
    MTF_PRESET("flexflow-large", "eight tables of a million",
               "batch=128 features=64 interaction=cat" CLICKS
               "bottom=512-512-64 tables=" EIGHT_MILLIONS " top=1024-1024-1024-1"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_dlrm = {
    .name = "dlrm",
    .summary = "clicks from tables of categories",
    .parameters = "batch features bottom tables interaction top",
    .presets = presets,
    .build = build,
};
