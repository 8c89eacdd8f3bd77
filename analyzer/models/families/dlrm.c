// SPDX-License-Identifier: GPL-3.0-or-later
/* Recommendation from clicks (Naumov and others, "Deep learning recommendation model for
 * personalization and recommendation systems", 2019): tables of categories, a perceptron below for
 * what is measured, an interaction, a perceptron above, and whether there was a click.
 *
 *     x [batch, features] ─bottom─► v_0 [batch, width] ─┐
 *     category k ─table k──────────► v_k [batch, width] ─┴─ interaction ─top─► click or not
 *
 * The interaction is all vectors side by side ("cat"), or v_0 beside the products of all pairs
 * ("dot"). A top of one output is the logarithm of a click's odds; of two, one each for no click and
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

/* v_k of every example: its row of table k. */
static int look_up(Model *m, int k) {
    g_autofree char *rows_name = g_strdup_printf("rows%d", k);
    g_autofree char *column = g_strdup_printf("category%d", k);
    g_autofree char *prefix = g_strdup_printf("table/%d", k);
    int rows = mtf_parts_dimension(m->p, rows_name, m->tables.sizes[k]);
    int ids = mtf_parts_input(m->p, column, SHAPE(m->batch), MTF_I32, MTF_FEED_CATEGORIES);
    mtf_parts_enter(m->p, prefix);
    int table = mtf_parts_variable(m->p, "rows", SHAPE(rows, m->width), MTF_INIT_UNIFORM,
                                   1 / sqrt((double)m->tables.sizes[k]));
    int vector =
        mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "vector", SHAPE(m->batch, m->width), table, ids);
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
