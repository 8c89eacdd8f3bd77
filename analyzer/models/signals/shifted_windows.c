// SPDX-License-Identifier: GPL-3.0-or-later
/* Pictures by stages of windows (Liu and others, Swin, 2021, and Swin V2, 2022): places of a window see one another, windows of
 * every second layer lie half a window further, and each stage but the first has half as many rows and columns, of twice the
 * features.
 *
 *     x [batch, rows, columns, width] ─► [batch, row windows, column windows, places, width] ─ attention ─► x … */
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>
#include <math.h>

#define NORM_EPSILON 1e-5 /* of embeddings and where patches are merged, whatever layers have */
#define HIDDEN (-100)     /* the score of a place that is no neighbour */

/* The stage that is built. Its sides are filled up to a multiple of the window. */
typedef struct {
    int number;
    int64_t side, window, windows, heads, head_width;
    bool filled;
    int rows, columns, width;
    int filled_rows, filled_columns;
    int down, across;  /* windows */
    int row, column;   /* of a window */
    int place, memory; /* both as one, as queries and as what they see */
    int near;          /* the row of the table of distances for each pair */
    int mask;          /* of windows that lie further; or -1 */
    int distances;     /* of Swin V2: what the table is made of */
} Stage;

static int dimension(MtfAssembly *m, const char *stem, int number, int64_t size) {
    g_autofree char *name = g_strdup_printf("%s_%d", stem, number);
    return mtf_assembly_dimension(m, name, size);
}

static Stage stage_of(MtfAssembly *m, int number) {
    const MtfWindows *w = &m->n->windows;
    int64_t side = m->n->image_size / m->n->patch_size;
    for (int i = 0; i < number; i++)
        side = (side + 1) / 2;
    int64_t window = MIN(w->window, side), windows = (side + window - 1) / window;
    int64_t width = m->n->d_model << number, filled = windows * window;
    Stage s = { .number = number,
                .side = side,
                .window = window,
                .windows = windows,
                .filled = filled != side,
                .heads = w->heads[number],
                .head_width = width / w->heads[number],
                .rows = dimension(m, "rows", number, side),
                .columns = dimension(m, "columns", number, side),
                .down = dimension(m, "row_windows", number, windows),
                .across = dimension(m, "column_windows", number, windows),
                .row = dimension(m, "window_row", number, window),
                .column = dimension(m, "window_column", number, window),
                .place = dimension(m, "place", number, window * window),
                .memory = dimension(m, "memory", number, window * window),
                .width = number == 0 ? m->d_model : dimension(m, "d_model", number, width),
                .near = -1,
                .mask = -1,
                .distances = -1 };
    s.filled_rows = s.filled ? dimension(m, "filled_rows", number, filled) : s.rows;
    s.filled_columns = s.filled ? dimension(m, "filled_columns", number, filled) : s.columns;
    return s;
}

static int reshape(MtfAssembly *m, const char *name, const MtfShape *shape, int x) {
    return mtf_parts_apply(m->p, MTF_OP_RESHAPE, name, shape, x, -1);
}

static int transpose(MtfAssembly *m, const char *name, const MtfShape *shape, int x) {
    return mtf_parts_apply(m->p, MTF_OP_TRANSPOSE, name, shape, x, -1);
}

static int change_length(MtfAssembly *m, int kind, const char *name, int from, int to, int x) {
    m->p->b.attributes.from = from;
    m->p->b.attributes.to = to;
    m->p->b.attributes.stride = 1;
    return mtf_mixer_map(m, kind, name, x, -1);
}

static int with(MtfAssembly *m, int kind, const char *name, int x, double number) {
    g_autofree char *constant = g_strdup_printf("%s_number", name);
    return mtf_mixer_map(m, kind, name, x, mtf_parts_constant(m->p, constant, number));
}

static int numbers(MtfAssembly *m, const char *name, int dim) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_parts_range(m->p, name, dim);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Both sides of x moved by so many places, round the end. */
static int roll(MtfAssembly *m, const Stage *s, const char *name, int64_t shift, int x) {
    g_autofree char *first = g_strdup_printf("%s_rows", name);
    m->p->b.attributes.dimension = s->filled_rows;
    m->p->b.attributes.shift = (double)shift;
    x = mtf_mixer_map(m, MTF_OP_ROLL, first, x, -1);
    m->p->b.attributes.dimension = s->filled_columns;
    m->p->b.attributes.shift = (double)shift;
    return mtf_mixer_map(m, MTF_OP_ROLL, name, x, -1);
}

/* x [batch, rows, columns, width] with the places of each window together. */
static int part(MtfAssembly *m, const Stage *s, int64_t shift, int x) {
    MtfShape apart = MTF_SHAPE(m->batch, s->down, s->row, s->across, s->column, s->width);
    MtfShape near = MTF_SHAPE(m->batch, s->down, s->across, s->row, s->column, s->width);
    MtfShape whole = MTF_SHAPE(m->batch, s->down, s->across, s->place, s->width);
    if (s->filled) {
        x = change_length(m, MTF_OP_PAD, "filled_down", s->rows, s->filled_rows, x);
        x = change_length(m, MTF_OP_PAD, "filled", s->columns, s->filled_columns, x);
    }
    x = shift > 0 ? roll(m, s, "further", -shift, x) : x;
    x = transpose(m, "in_windows", &near, reshape(m, "apart", &apart, x));
    return reshape(m, "windows", &whole, x);
}

/* Back again. */
static int join(MtfAssembly *m, const Stage *s, int64_t shift, int x) {
    MtfShape near = MTF_SHAPE(m->batch, s->down, s->across, s->row, s->column, s->width);
    MtfShape apart = MTF_SHAPE(m->batch, s->down, s->row, s->across, s->column, s->width);
    MtfShape whole = MTF_SHAPE(m->batch, s->filled_rows, s->filled_columns, s->width);
    x = transpose(m, "in_rows", &apart, reshape(m, "of_windows", &near, x));
    x = reshape(m, "joined", &whole, x);
    x = shift > 0 ? roll(m, s, "back", shift, x) : x;
    if (!s->filled)
        return x;
    x = change_length(m, MTF_OP_SLICE, "kept_down", s->filled_rows, s->rows, x);
    return change_length(m, MTF_OP_SLICE, "kept", s->filled_columns, s->columns, x);
}

/* Which part of a side a place is of, once it has been moved: 0 before the last window, then what stayed, then what came
 * round. */
static int region(MtfAssembly *m, const Stage *s, const char *prefix, int dim) {
    int64_t end = s->windows * s->window;
    mtf_parts_enter(m->p, prefix);
    int place = numbers(m, "number", dim);
    int late = with(m, MTF_OP_GREATER_EQUAL, "late", place, (double)(end - s->window));
    int last = with(m, MTF_OP_GREATER_EQUAL, "last", place, (double)(end - s->window / 2));
    int y = mtf_parts_add(m->p, "region", late, last);
    mtf_parts_leave(m->p);
    return y;
}

/* [row windows, column windows, place, memory]: places of other regions are hidden. */
static int shifted_mask(MtfAssembly *m, const Stage *s) {
    MtfShape grid = MTF_SHAPE(s->filled_rows, s->filled_columns);
    MtfShape apart = MTF_SHAPE(s->down, s->row, s->across, s->column);
    MtfShape near = MTF_SHAPE(s->down, s->across, s->row, s->column);
    MtfShape whole = MTF_SHAPE(s->down, s->across, s->place);
    MtfShape pairs = MTF_SHAPE(s->down, s->across, s->place, s->memory);
    int down = mtf_assembly_scale(m, "down", 3, region(m, s, "of_rows", s->filled_rows));
    int across = region(m, s, "of_columns", s->filled_columns);
    int both = mtf_parts_apply(m->p, MTF_OP_ADD, "region", &grid, down, across);
    both = transpose(m, "region_near", &near, reshape(m, "region_apart", &apart, both));
    both = reshape(m, "regions", &whole, both);
    int seen = change_length(m, MTF_OP_RENAME, "regions_seen", s->place, s->memory, both);
    int other = mtf_parts_apply(m->p, MTF_OP_NOT_EQUAL, "other", &pairs, both, seen);
    return mtf_assembly_scale(m, "mask", HIDDEN, other);
}

/* Row and column of each place of a window along `dim`. */
typedef struct {
    int row, column;
} Spot;

static Spot spots(MtfAssembly *m, const Stage *s, const char *prefix, int dim) {
    mtf_parts_enter(m->p, prefix);
    int number = numbers(m, "number", dim);
    int rows = with(m, MTF_OP_DIVIDE, "rows", number, (double)s->window);
    Spot spot = { .row = mtf_mixer_map(m, MTF_OP_FLOOR, "row", rows, -1) };
    int before = mtf_assembly_scale(m, "before", (double)s->window, spot.row);
    spot.column = mtf_mixer_map(m, MTF_OP_SUBTRACT, "column", number, before);
    mtf_parts_leave(m->p);
    return spot;
}

/* The row of a table of distances for each pair of places: (2 window - 1) distances down, as many across for each. */
static int near_rows(MtfAssembly *m, const Stage *s) {
    MtfShape pairs = MTF_SHAPE(s->place, s->memory);
    double reach = (double)s->window - 1, many = 2 * reach + 1;
    Spot query = spots(m, s, "query", s->place), memory = spots(m, s, "memory", s->memory);
    int down = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "down", &pairs, query.row, memory.row);
    int across =
        mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "across", &pairs, query.column, memory.column);
    int lines = mtf_assembly_scale(m, "lines", many, down);
    int row =
        with(m, MTF_OP_ADD, "row", mtf_parts_add(m->p, "far", lines, across), reach * many + reach);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    return mtf_mixer_map(m, MTF_OP_CAST, "rows", row, -1);
}

/* A distance as Swin V2 tells it: 8 times its share of the largest, sign log2(|x| + 1) / 3. */
static int told_distance(MtfAssembly *m, const Stage *s, const char *prefix, int dim) {
    int64_t known = m->n->windows.pretrained[s->number];
    double reach = (double)(known > 0 ? known : s->window) - 1;
    mtf_parts_enter(m->p, prefix);
    int number = numbers(m, "number", dim);
    int from_middle = with(m, MTF_OP_SUBTRACT, "from_middle", number, (double)s->window - 1);
    int x = mtf_assembly_scale(m, "share", 8 / fmax(reach, 1), from_middle);
    int size = with(m, MTF_OP_ADD, "size", mtf_mixer_map(m, MTF_OP_ABS, "length", x, -1), 1);
    int grown =
        mtf_assembly_scale(m, "log", 1 / log(8), mtf_mixer_map(m, MTF_OP_LOG, "natural", size, -1));
    int sign = mtf_mixer_map(m, MTF_OP_SIGN, "sign", x, -1);
    int y = mtf_mixer_map(m, MTF_OP_MULTIPLY, "distance", sign, grown);
    mtf_parts_leave(m->p);
    return y;
}

/* Those of all pairs, down and across [distances, 2]. */
static int told_distances(MtfAssembly *m, const Stage *s) {
    int64_t many = 2 * s->window - 1;
    int down = dimension(m, "distance_down", s->number, many);
    int across = dimension(m, "distance_across", s->number, many);
    int both = mtf_assembly_dimension(m, "down_and_across", 2);
    MtfShape grid = MTF_SHAPE(down, across), all = MTF_SHAPE(down, across, both);
    MtfShape rows = MTF_SHAPE(dimension(m, "distances", s->number, many * many), both);
    int parts[2];
    parts[0] = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "far_down", &grid,
                               told_distance(m, s, "down_told", down), -1);
    parts[1] = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "far_across", &grid,
                               told_distance(m, s, "across_told", across), -1);
    int stacked = mtf_parts_apply_shape_to(m->p, MTF_OP_STACK, "far_both", &all, 2, parts);
    return reshape(m, "distances", &rows, stacked);
}

static void begin_stage(MtfAssembly *m, Stage *s) {
    g_autofree char *prefix = g_strdup_printf("windows%d", s->number);
    mtf_parts_enter(m->p, prefix);
    s->near = near_rows(m, s);
    if (s->windows > 1)
        s->mask = shifted_mask(m, s);
    if (m->n->windows.second)
        s->distances = told_distances(m, s);
    mtf_parts_leave(m->p);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* The table of biases [distances, heads] that a hidden layer makes of what is told of distances, from 0 to 16. */
static int made_table(MtfAssembly *m, const Stage *s, const MtfShape *shape) {
    int both = mtf_assembly_dimension(m, "down_and_across", 2);
    int hidden = mtf_assembly_dimension(m, "distance_hidden", 512);
    MtfLinear up = { .name = "distance_up",
                     .file = "attention.self.continuous_position_bias_mlp.0",
                     .in = MTF_SHAPE(both),
                     .out = MTF_SHAPE(hidden),
                     .bias = true };
    MtfLinear down = { .name = "distance_down",
                       .file = "attention.self.continuous_position_bias_mlp.2",
                       .in = MTF_SHAPE(hidden),
                       .out = MTF_SHAPE(shape->dims[1]) };
    int open = mtf_mixer_map(m, MTF_OP_RELU, "distance_open",
                             mtf_assembly_linear(m, &up, s->distances), -1);
    int share =
        mtf_mixer_map(m, MTF_OP_SIGMOID, "distance_share", mtf_assembly_linear(m, &down, open), -1);
    return mtf_assembly_scale(m, "distance_table", 16, share);
}

/* Biases of scores [heads, place, memory]. */
static int distance_bias(MtfAssembly *m, const Stage *s) {
    int64_t many = 2 * s->window - 1;
    MtfShape table = MTF_SHAPE(dimension(m, "distances", s->number, many * many), m->heads);
    MtfShape shape = MTF_SHAPE(m->heads, s->place, s->memory);
    int rows = m->n->windows.second
                   ? made_table(m, s, &table)
                   : mtf_assembly_table(m, "distance_table",
                                        "attention.self.relative_position_bias_table", &table);
    return mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "distance_bias", &shape, rows, s->near);
}

static int project(MtfAssembly *m, const Stage *s, const char *name, const char *file, bool bias,
                   int x) {
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = name,
                                             .file = file,
                                             .in = MTF_SHAPE(s->width),
                                             .out = MTF_SHAPE(m->heads, m->d_kv),
                                             .bias = bias,
                                             .spread = m->n->spread },
                               x);
}

/* Queries or keys as long as 1. */
static int as_long_as_one(MtfAssembly *m, const char *name, int x) {
    mtf_parts_enter(m->p, name);
    if (m->p->b.error != NULL) {
        mtf_parts_leave(m->p);
        return x;
    }
    MtfShape each = mtf_graph_tensor(m->p->b.graph, x)->shape;
    mtf_shape_remove(&each, m->d_kv);
    int squares = mtf_mixer_map(m, MTF_OP_SQUARE, "squares", x, -1);
    int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "power", &each, squares, -1);
    int some = with(m, MTF_OP_MAXIMUM, "some", sum, 1e-24);
    int shorter = mtf_mixer_map(m, MTF_OP_RSQRT, "shorter", some, -1);
    int y = mtf_mixer_map(m, MTF_OP_MULTIPLY, "unit", x, shorter);
    mtf_parts_leave(m->p);
    return y;
}

/* Units times e^scale of each head, at most 100. */
static int scale_heads(MtfAssembly *m, int x) {
    g_autofree char *sizes = g_strdup_printf("%" PRId64 ",1,1", m->kv_heads);
    int learned = mtf_mixer_row(m, "scale", "attention.self.logit_scale", m->heads, sizes, log(10));
    int within = with(m, MTF_OP_MINIMUM, "scale_within", learned, log(100));
    int scale = mtf_mixer_map(m, MTF_OP_EXP, "scale_told", within, -1);
    return mtf_mixer_map(m, MTF_OP_MULTIPLY, "q_scaled", x, scale);
}

/* What places of each window make of one another. */
static int attend(MtfAssembly *m, const Stage *s, bool further, int x) {
    bool second = m->n->windows.second, biased = m->stack->q_bias;
    int q = project(m, s, "q", "attention.self.query", biased, x);
    int k = project(m, s, "k", "attention.self.key", biased && !second, x);
    int v = project(m, s, "v", "attention.self.value", biased, x);
    if (second) {
        q = scale_heads(m, as_long_as_one(m, "q_unit", q));
        k = as_long_as_one(m, "k_unit", k);
    }
    int inputs[5] = { q, change_length(m, MTF_OP_RENAME, "key", s->place, s->memory, k),
                      change_length(m, MTF_OP_RENAME, "value", s->place, s->memory, v),
                      distance_bias(m, s), s->mask };
    MtfAttributes *a = &m->p->b.attributes;
    a->query = s->place;
    a->memory = s->memory;
    a->dimension = m->d_kv;
    a->factor = second ? 1 : 1 / sqrt((double)s->head_width);
    a->rate = m->n->dropout.shares;
    int context = mtf_parts_apply_to(m->p, MTF_OP_ATTENTION, "context", further ? 5 : 4, inputs);
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = "attention.output.dense",
                                             .in = MTF_SHAPE(m->heads, m->d_kv),
                                             .out = MTF_SHAPE(s->width),
                                             .bias = true,
                                             .spread = m->residual_spread },
                               context);
}

static int ffn(MtfAssembly *m, const Stage *s, int x) {
    int64_t width = (int64_t)(m->n->windows.ratio * (double)(m->n->d_model << s->number));
    int hidden = dimension(m, "d_ff", s->number, MAX(1, width));
    MtfLinear up = { .name = "up",
                     .file = "intermediate.dense",
                     .in = MTF_SHAPE(s->width),
                     .out = MTF_SHAPE(hidden),
                     .bias = true,
                     .spread = m->n->spread };
    MtfLinear down = { .name = "down",
                       .file = "output.dense",
                       .in = MTF_SHAPE(hidden),
                       .out = MTF_SHAPE(s->width),
                       .bias = true,
                       .spread = m->residual_spread };
    int open = mtf_assembly_activation(m, m->stack->activation, mtf_assembly_linear(m, &up, x));
    return mtf_assembly_linear(m, &down, open);
}

/* The norm of what a part makes, which begins as nothing: layers then begin as x alone, as the authors' code has them. */
static int norm_behind(MtfAssembly *m, const Stage *s, const char *file, int x) {
    int y = mtf_assembly_norm(m, "on", file, s->width, x);
    int scale = mtf_parts_find(m->p, "on/norm_scale");
    if (m->p->b.error == NULL && scale >= 0)
        mtf_graph_tensor(m->p->b.graph, scale)->init.value = 0;
    return y;
}

/* x and what a part makes of it: of its norm, or whose norm is added (Swin V2). */
static int add_part(MtfAssembly *m, const Stage *s, int which, bool further, int x) {
    static const char *const names[] = { "attention", "ffn" };
    static const char *const norms[] = { "layernorm_before", "layernorm_after" };
    bool second = m->n->windows.second;
    int64_t shift = further ? s->window / 2 : 0;
    mtf_parts_enter(m->p, names[which]);
    int y = second ? x : mtf_assembly_norm(m, "before", norms[which], s->width, x);
    y = which == 1 ? ffn(m, s, y) : join(m, s, shift, attend(m, s, further, part(m, s, shift, y)));
    y = second ? norm_behind(m, s, norms[which], y) : y;
    y = mtf_parts_dropout(m->p, "dropped", m->n->dropout.branches, y);
    y = mtf_parts_add(m->p, "x", x, y);
    mtf_parts_leave(m->p);
    return y;
}

/* Four neighbours as one place, of twice the features; a side that is odd is filled up. */
static int merge(MtfAssembly *m, const Stage *s, const Stage *next, int x) {
    bool second = m->n->windows.second;
    int row = mtf_assembly_dimension(m, "merged_row", 2);
    int column = mtf_assembly_dimension(m, "merged_column", 2);
    int four = dimension(m, "merged", s->number, 4 * (m->n->d_model << s->number));
    MtfShape apart = MTF_SHAPE(m->batch, next->rows, row, next->columns, column, s->width);
    MtfShape near = MTF_SHAPE(m->batch, next->rows, next->columns, column, row, s->width);
    MtfShape whole = MTF_SHAPE(m->batch, next->rows, next->columns, four);
    g_autofree char *files = g_strdup_printf("encoder.layers.%d.downsample.", s->number);
    g_autofree char *prefix = g_strdup_printf("merge%d", next->number);
    MtfLinear linear = { .name = "narrowed",
                         .file = "reduction",
                         .in = MTF_SHAPE(four),
                         .out = MTF_SHAPE(next->width),
                         .spread = m->n->spread };
    mtf_parts_enter(m->p, prefix);
    m->files = files;
    if (s->side % 2 != 0) {
        int rows = dimension(m, "even_rows", s->number, s->side + 1);
        int columns = dimension(m, "even_columns", s->number, s->side + 1);
        x = change_length(m, MTF_OP_PAD, "even_down", s->rows, rows, x);
        x = change_length(m, MTF_OP_PAD, "even", s->columns, columns, x);
    }
    x = transpose(m, "near", &near, reshape(m, "apart", &apart, x));
    x = reshape(m, "four", &whole, x);
    x = second ? x : mtf_assembly_norm_by(m, "norm", "norm", four, NORM_EPSILON, x);
    x = mtf_assembly_linear(m, &linear, x);
    x = second ? mtf_assembly_norm_by(m, "norm", "norm", next->width, NORM_EPSILON, x) : x;
    m->files = (char *)"";
    mtf_parts_leave(m->p);
    return x;
}

static int build_stage(MtfAssembly *m, Stage *s, int x) {
    g_autofree char *block = g_strdup_printf("stage%d", s->number + 1);
    m->kv_heads = s->heads;
    m->heads = dimension(m, "heads", s->number, s->heads);
    m->d_kv = mtf_assembly_dimension(m, "d_kv", s->head_width);
    begin_stage(m, s);
    for (int i = 0; i < (int)m->n->windows.depths[s->number] && m->p->b.error == NULL; i++) {
        bool further = i % 2 == 1 && s->windows > 1;
        g_autofree char *files = g_strdup_printf("encoder.layers.%d.blocks.%d.", s->number, i);
        m->files = files;
        mtf_parts_enter_layer(m->p, block, i);
        x = add_part(m, s, 1, false, add_part(m, s, 0, further, x));
        mtf_parts_leave_layer(m->p);
        m->files = (char *)"";
    }
    return x;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Patches as places [batch, rows, columns, width], and their norm. */
static int embed(MtfAssembly *m, const Stage *s) {
    int64_t patch = m->n->patch_size;
    int channels = mtf_assembly_dimension(m, "channels", m->n->channels);
    int row = mtf_assembly_dimension(m, "patch_row", patch);
    int column = mtf_assembly_dimension(m, "patch_column", patch);
    MtfShape shape = MTF_SHAPE(m->batch, channels, s->rows, row, s->columns, column);
    MtfLinear linear = { .name = "patch",
                         .file = "embeddings.patch_embeddings.projection",
                         .in = MTF_SHAPE(channels, row, column),
                         .out = MTF_SHAPE(s->width),
                         .bias = true,
                         .spread = m->n->spread };
    g_autofree char *place =
        g_strdup_printf("embeddings.patch_embeddings.projection.weight[%" PRId64 ",%" PRId64
                        ",%" PRId64 ",%" PRId64 "]",
                        m->n->d_model, m->n->channels, patch, patch);
    int image = mtf_parts_input(m->p, "image", &shape, MTF_F32, MTF_FEED_FEATURES);
    int x = mtf_assembly_linear(m, &linear, image);
    mtf_assembly_place(m, "wpatch", place);
    x = mtf_assembly_norm_by(m, "embedding_norm", "embeddings.norm", s->width, NORM_EPSILON, x);
    return mtf_parts_dropout(m->p, "embed_dropped", m->n->dropout.embeddings, x);
}

int mtf_assembly_windows(MtfAssembly *m) {
    const MtfWindows *w = &m->n->windows;
    Stage s = stage_of(m, 0);
    m->residual_spread = m->n->spread;
    int x = build_stage(m, &s, embed(m, &s));
    for (int i = 1; i < w->stages && m->p->b.error == NULL; i++) {
        Stage next = stage_of(m, i);
        x = build_stage(m, &next, merge(m, &s, &next, x));
        s = next;
    }
    m->d_model = s.width;
    x = mtf_assembly_norm(m, "final_norm", m->stack->names.final_norm, s.width, x);
    return mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "mean", &MTF_SHAPE(m->batch, s.width), x, -1);
}
