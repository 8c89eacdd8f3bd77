// SPDX-License-Identifier: GPL-3.0-or-later
/* What is added to the scores of attention by where queries and memory stand: T5's buckets of distances, ALiBi,
 * and the two terms of disentangled attention. */
#include "analyzer/models/architecture_parts.h"

#include <math.h>

static int positions_along(MtfAssembly *m, const char *name, int dim) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_parts_range(m->p, name, dim);
}

/* a x + b */
static int line(MtfAssembly *m, const char *name, double a, double b, int x) {
    g_autofree char *steep = g_strdup_printf("%s_steep", name);
    g_autofree char *begin = g_strdup_printf("%s_begin", name);
    int scaled = mtf_assembly_scale(m, steep, a, x);
    return mtf_parts_add(m->p, name, scaled, mtf_parts_constant(m->p, begin, b));
}

/* ---- Slopes ---------------------------------------------------------------------------------- */

/* x, at least 0, in the eight significant bits of bfloat16, halves to even: u round(x / u) with the unit
 * u = 2^(floor(log2 x) - 7). */
static int round_coarsely(MtfAssembly *m, const char *name, int x) {
    MtfParts *p = m->p;
    mtf_parts_enter(p, name);
    int least = mtf_parts_constant(p, "least", ldexp(1, -126)),
        two = mtf_parts_constant(p, "two", 2);
    int some = mtf_parts_apply(p, MTF_OP_MAXIMUM, "some", NULL, x, least);
    int log = mtf_parts_apply(p, MTF_OP_LOG, "log", NULL, some, -1);
    int binary = mtf_assembly_scale(m, "log2", 1 / G_LN2, log);
    int exponent = mtf_parts_apply(p, MTF_OP_FLOOR, "exponent", NULL, binary, -1);
    int places = line(m, "places", 1, -7, exponent);
    int unit = mtf_parts_apply(p, MTF_OP_POWER, "unit", NULL, two, places);
    int units = mtf_parts_apply(p, MTF_OP_DIVIDE, "units", NULL, x, unit);
    int up = mtf_parts_apply(p, MTF_OP_FLOOR, "up", NULL, line(m, "half_more", 1, 0.5, units), -1);
    int odd = mtf_parts_apply(p, MTF_OP_MODULO, "odd", NULL, up, two);
    int halves =
        mtf_parts_apply(p, MTF_OP_EQUAL, "halves", NULL, up, line(m, "half", 1, 0.5, units));
    int too_much = mtf_parts_apply(p, MTF_OP_MULTIPLY, "too_much", NULL, halves, odd);
    int whole = mtf_parts_apply(p, MTF_OP_SUBTRACT, "whole", NULL, up, too_much);
    int y = mtf_parts_apply(p, MTF_OP_MULTIPLY, "rounded", NULL, whole, unit);
    mtf_parts_leave(p);
    return y;
}

/* As it is, or as bfloat16 has it where the model computes so (transformers' Falcon; its eager attention then
 * adds all twice, which neither its standard one nor the model as it was trained does). */
static int coarse(MtfAssembly *m, const char *name, int x) {
    return m->stack->coarse_alibi ? round_coarsely(m, name, x) : x;
}

int mtf_assembly_alibi(MtfAssembly *m) {
    int64_t heads = m->stack->heads, p = 1;
    while (2 * p <= heads)
        p *= 2;
    mtf_parts_enter(m->p, "alibi");
    int head = positions_along(m, "head", m->heads);
    double unit = -8 * G_LN2 / (double)p;
    int exponent = line(m, "exponent", unit, unit, head);
    if (p < heads) {
        int power = mtf_parts_constant(m->p, "power", (double)p);
        int early = mtf_parts_apply(m->p, MTF_OP_LESS, "early", NULL, head, power);
        int late = line(m, "late_exponent", unit, unit * (0.5 - (double)p), head);
        exponent =
            mtf_parts_apply_to(m->p, MTF_OP_WHERE, "chosen", 3, (int[]){ early, exponent, late });
    }
    int slope = mtf_parts_apply(m->p, MTF_OP_EXP, "slope", NULL, exponent, -1);
    int place = positions_along(m, "place", m->memory_length);
    MtfShape shape = MTF_SHAPE(m->heads, m->memory_length);
    int bias = mtf_parts_einsum(m->p, "bias", &shape, coarse(m, "coarse_slope", slope),
                                coarse(m, "coarse_place", place));
    if (m->stack->coarse_alibi)
        bias =
            mtf_assembly_scale(m, "bias_scaled", m->stack->scale, coarse(m, "coarse_bias", bias));
    mtf_parts_leave(m->p);
    return bias;
}

/* ---- What is near ------------------------------------------------------------------------------ */

/* The number of the chunk that positions along a dimension are in. */
static int chunk_of(MtfAssembly *m, const char *name, int dim) {
    mtf_parts_enter(m->p, name);
    int place = positions_along(m, "place", dim);
    int size = mtf_parts_constant(m->p, "size", (double)m->stack->chunk);
    int chunks = mtf_parts_apply(m->p, MTF_OP_DIVIDE, "chunks", NULL, place, size);
    int whole = mtf_parts_apply(m->p, MTF_OP_FLOOR, "chunk", NULL, chunks, -1);
    mtf_parts_leave(m->p);
    return whole;
}

/* 1 where memory is in an earlier chunk, or is the window or more away; else 0. */
static int is_far(MtfAssembly *m) {
    MtfShape all = MTF_SHAPE(m->length, m->memory_length);
    if (m->stack->chunk > 0)
        return mtf_parts_apply(m->p, MTF_OP_LESS, "far", &all,
                               chunk_of(m, "memory", m->memory_length),
                               chunk_of(m, "query", m->length));
    int query = positions_along(m, "query", m->length);
    int memory = positions_along(m, "memory", m->memory_length);
    int behind = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "behind", NULL, query, memory);
    int distance = mtf_parts_apply(m->p, MTF_OP_ABS, "distance", NULL, behind, -1);
    int window = mtf_parts_constant(m->p, "window", (double)m->stack->window);
    return mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "far", NULL, window, distance);
}

int mtf_assembly_near(MtfAssembly *m) {
    mtf_parts_enter(m->p, "near");
    int near = mtf_assembly_scale(m, "hidden", MTF_MASKED_SCORE, is_far(m));
    mtf_parts_leave(m->p);
    return near;
}

/* ---- Buckets of distances -------------------------------------------------------------------- */

/* T5's bucket of a distance in one direction, as its authors compute it, in float32: half of the
 * buckets hold one distance each, the others ranges that grow by a constant factor up to
 * max_distance (Raffel and others, "Exploring the limits of transfer learning", 2020, 2.1). */
static int64_t bucket_of(int64_t distance, int64_t buckets, int64_t max_distance) {
    int64_t exact = buckets / 2;
    if (distance < exact)
        return distance;
    float whole = (float)log((double)max_distance / (double)exact);
    float share = logf((float)distance / (float)exact) / whole;
    int64_t more = (int64_t)(share * (float)(buckets - exact));
    return MIN(exact + more, buckets - 1);
}

/* How many buckets begin at or before each distance: a sum of comparisons, one a bucket. */
static int count_buckets(MtfAssembly *m, int distance, int64_t buckets) {
    int64_t most = m->stack->max_distance, sum = -1;
    for (int64_t d = 1; d <= most; d++) {
        int64_t steps = bucket_of(d, buckets, most) - bucket_of(d - 1, buckets, most);
        if (steps == 0)
            continue;
        g_autofree char *prefix = g_strdup_printf("bucket/%d", (int)d);
        mtf_parts_enter(m->p, prefix);
        int from = mtf_parts_constant(m->p, "from", (double)d);
        int reached = mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "reached", NULL, from, distance);
        int more = mtf_assembly_scale(m, "steps", (double)steps, reached);
        sum = sum < 0 ? more : mtf_parts_add(m->p, "sum", (int)sum, more);
        mtf_parts_leave(m->p);
    }
    return (int)sum;
}

/* How far a distance is told: the last bucket has all that is further. A stack that looks both ways tells as
 * many for what comes later. */
static int64_t told_ahead(const MtfStack *s) {
    return s->causal ? 0 : s->max_distance;
}

/* The bucket of each distance that is told, from what comes latest on. A stack that looks both ways has half of
 * the buckets for what comes later. */
static int buckets_of(MtfAssembly *m, int distances) {
    const MtfStack *s = m->stack;
    int place = positions_along(m, "place", distances);
    if (s->causal)
        return count_buckets(m, place, s->buckets);
    int behind = line(m, "behind", 1, -(double)told_ahead(s), place);
    int distance = mtf_parts_apply(m->p, MTF_OP_ABS, "distance", NULL, behind, -1);
    int near = count_buckets(m, distance, s->buckets / 2);
    int later = mtf_parts_apply(m->p, MTF_OP_LESS, "later", NULL, behind,
                                mtf_parts_constant(m->p, "none", 0));
    int half = mtf_assembly_scale(m, "half", (double)(s->buckets / 2), later);
    return mtf_parts_add(m->p, "bucket", near, half);
}

static int whole_number(MtfAssembly *m, const char *name, int64_t value) {
    MtfShape scalar = { 0 };
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    m->p->b.attributes.value = (double)value;
    return mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, name, &scalar);
}

/* Which of the distances that are told lies between each query and position of memory. */
static int told_distances(MtfAssembly *m) {
    const MtfStack *s = m->stack;
    MtfShape all = MTF_SHAPE(m->length, m->memory_length);
    int query = mtf_parts_range(m->p, "query", m->length);
    int memory = mtf_parts_range(m->p, "memory", m->memory_length);
    int none = whole_number(m, "nearest", 0),
        most = whole_number(m, "furthest", told_ahead(s) + s->max_distance);
    if (told_ahead(s) > 0)
        query = mtf_parts_add(m->p, "query_ahead", query, whole_number(m, "ahead", told_ahead(s)));
    int between = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "between", &all, query, memory);
    int near = mtf_parts_apply(m->p, MTF_OP_MAXIMUM, "near", NULL, between, none);
    return mtf_parts_apply(m->p, MTF_OP_MINIMUM, "ids", NULL, near, most);
}

static int told_dimension(MtfAssembly *m) {
    const MtfStack *s = m->stack;
    return mtf_assembly_dimension(m, s->causal ? "distances" : "distances_both_ways",
                                  told_ahead(s) + s->max_distance + 1);
}

static void enter_positions(MtfAssembly *m) {
    mtf_parts_enter(m->p, m->stack->causal ? "decoder_positions" : "positions");
}

void mtf_assembly_tell_distances(MtfAssembly *m) {
    enter_positions(m);
    int bucket = buckets_of(m, told_dimension(m));
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    m->bucket_ids = mtf_parts_apply(m->p, MTF_OP_CAST, "bucket_ids", NULL, bucket, -1);
    m->distances = told_distances(m);
    mtf_parts_leave(m->p);
}

/* The table's rows are looked up for each distance, and these for each pair of positions, so that what is as
 * large as scores is looked up once, and its gradient added up by distances first. */
int mtf_assembly_buckets(MtfAssembly *m) {
    const MtfStack *s = m->stack;
    int rows = mtf_assembly_dimension(m, "buckets", s->buckets);
    enter_positions(m);
    MtfShape table_shape = MTF_SHAPE(rows, m->heads), told = MTF_SHAPE(m->heads, told_dimension(m));
    int table =
        mtf_assembly_variable(m, "table", s->names.buckets, &table_shape, MTF_INIT_NORMAL,
                              m->n->spread > 0 ? m->n->spread : 1 / sqrt((double)m->n->d_model));
    int by_distance =
        mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "by_distance", &told, table, m->bucket_ids);
    MtfShape shape = MTF_SHAPE(m->heads, m->length, m->memory_length);
    int bias = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "bias", &shape, by_distance, m->distances);
    mtf_parts_leave(m->p);
    return bias;
}

/* ---- Disentangled attention -------------------------------------------------------------------- */

/* What is added to the scores, of a query and the distance, and of a key and the distance (He and others,
 * "DeBERTa", 2021, equation 4).
 *
 *     bias[q, k] = scale (Q[q] · KR[r(q - k)] + K[k] · QR[r(q - k)])
 *
 * KR and QR are made of the rows of one table, a row a distance r, in each layer by matrices of its own or by
 * those of its keys and queries. The equation has r(k - q) in the second term; transformers, with which the
 * published weights are used, reads the row of q - k there, too. */

#define CEILING_LESS 1e-4 /* so that a whole number stays itself where its logarithms are rounded */

static int apply(MtfAssembly *m, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(m->p, kind, name, NULL, x, y);
}

/* x and a number, of which `kind` makes one. */
static int with(MtfAssembly *m, int kind, const char *name, int x, double number) {
    g_autofree char *constant = g_strdup_printf("%s_number", name);
    return apply(m, kind, name, x, mtf_parts_constant(m->p, constant, number));
}

/* The bucket of each distance d. With the middle m, half of the rows of a side, and the furthest f, which has
 * the last row but one: d itself up to m, then m + ceil((m - 1) ln(d / m) / ln((f - 1) / m)); likewise below 0. */
static int grown_bucket(MtfAssembly *m, int behind) {
    const MtfStack *s = m->stack;
    double middle = (double)(s->distance_rows / 2);
    double growth = (middle - 1) / log((double)(s->furthest - 1) / middle);
    int size = apply(m, MTF_OP_ABS, "size", behind, -1);
    int near = with(m, MTF_OP_MINIMUM, "near", size, middle);
    int far = with(m, MTF_OP_MAXIMUM, "far", size, middle);
    int share = mtf_assembly_scale(m, "share", 1 / middle, far);
    int more = mtf_assembly_scale(m, "more", -growth, apply(m, MTF_OP_LOG, "log", share, -1));
    int whole =
        apply(m, MTF_OP_FLOOR, "whole", with(m, MTF_OP_ADD, "less", more, CEILING_LESS), -1);
    int bucket = apply(m, MTF_OP_SUBTRACT, "bucket", near, whole);
    int side = apply(m, MTF_OP_SIGN, "side", behind, -1);
    return apply(m, MTF_OP_MULTIPLY, "told", bucket, side);
}

void mtf_assembly_begin_disentangled(MtfAssembly *m) {
    const MtfStack *s = m->stack;
    double side = (double)s->distance_rows;
    int rows = mtf_assembly_dimension(m, "distances", 2 * s->distance_rows);
    mtf_parts_enter(m->p, "distances");
    int table = mtf_assembly_variable(m, "table", s->names.distances, &MTF_SHAPE(rows, m->d_model),
                                      MTF_INIT_NORMAL, m->n->spread);
    m->distance_table = mtf_assembly_norm(m, "norm", s->names.distance_norm, m->d_model, table);
    int query = positions_along(m, "query", m->length);
    int memory = positions_along(m, "memory", m->memory_length);
    int behind = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "behind",
                                 &MTF_SHAPE(m->length, m->memory_length), query, memory);
    int told = s->furthest > 0 ? grown_bucket(m, behind) : behind;
    int row = with(m, MTF_OP_ADD, "row", told, side);
    m->p->b.attributes.low = 0;
    m->p->b.attributes.high = 2 * side - 1;
    int within = apply(m, MTF_OP_CLIP, "within", row, -1);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    m->distances = apply(m, MTF_OP_CAST, "ids", within, -1);
    mtf_parts_leave(m->p);
}

/* One of the two terms: of `heads` along `place`, by what the matrix of `weights` makes of distances, or one of its
 * own where `file` says so. */
static int term(MtfAssembly *m, const char *name, const char *weights, const char *file, int place,
                int heads) {
    bool of_query = place == m->length;
    int rows = mtf_assembly_dimension(m, "distances", 2 * m->stack->distance_rows);
    MtfLinear linear = { .name = name,
                         .weights = file == NULL ? weights : NULL,
                         .file = file,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(m->heads, m->d_kv),
                         .bias = !of_query || !m->stack->distance_k_bare,
                         .spread = m->n->spread };
    g_autofree char *dropped = g_strdup_printf("%s_rows", name);
    g_autofree char *scores = g_strdup_printf("%s_scores", name);
    g_autofree char *found = g_strdup_printf("%s_found", name);
    int table = mtf_parts_dropout(m->p, dropped, m->n->dropout.branches, m->distance_table);
    int of_rows = mtf_assembly_linear(m, &linear, table);
    MtfShape all = MTF_SHAPE(m->batch, m->heads, place, rows);
    int by_row = mtf_parts_einsum(m->p, scores, &all, heads, of_rows);
    MtfShape shape = MTF_SHAPE(m->batch, m->heads, m->length, m->memory_length);
    return mtf_parts_apply(m->p, MTF_OP_EMBEDDING, found, &shape, by_row, m->distances);
}

int mtf_assembly_disentangled(MtfAssembly *m, int q, int k) {
    const MtfStack *s = m->stack;
    int of_query = -1, of_key = -1;
    if (s->query_to_distance)
        of_query = term(m, "distance_k", "k", s->names.distance_k, m->length, q);
    if (s->key_to_distance)
        of_key = term(m, "distance_q", "q", s->names.distance_q, m->memory_length, k);
    int sum = of_query < 0 ? of_key : of_query;
    if (of_query >= 0 && of_key >= 0)
        sum = mtf_parts_add(m->p, "by_distance", of_query, of_key);
    return sum < 0 ? sum : mtf_assembly_scale(m, "by_distance_scaled", s->scale, sum);
}
