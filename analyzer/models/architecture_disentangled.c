// SPDX-License-Identifier: GPL-3.0-or-later
/* Disentangled attention (He and others, "DeBERTa", 2021, equation 4): what is added to the scores, of a query
 * and the distance, and of a key and the distance.
 *
 *     bias[q, k] = scale (Q[q] · KR[r(q - k)] + K[k] · QR[r(q - k)])
 *
 * KR and QR are made of the rows of one table, a row a distance r, in each layer by matrices of its own or by
 * those of its keys and queries. Equation 3 has the second term by r(k - q) of the other side: there a key's
 * distance is turned round, which is the same row. */
#include "analyzer/models/architecture_parts.h"

#include <math.h>

#define CEILING_LESS 1e-4 /* so that a whole number stays itself where its logarithms are rounded */

static int apply(MtfAssembly *m, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(m->p, kind, name, NULL, x, y);
}

/* x and a number, of which `kind` makes one. */
static int with(MtfAssembly *m, int kind, const char *name, int x, double number) {
    g_autofree char *constant = g_strdup_printf("%s_number", name);
    return apply(m, kind, name, x, mtf_parts_constant(m->p, constant, number));
}

static int positions_along(MtfAssembly *m, const char *name, int dim) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_parts_range(m->p, name, dim);
}

/* The bucket of each distance d. With the middle m, half of the rows of a side, and the furthest f, which has
 * the last row but one: d itself up to m, then m + ceil((m - 1) ln(d / m) / ln((f - 1) / m)); likewise below 0. */
static int bucket_of(MtfAssembly *m, int behind) {
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
    int told = s->furthest > 0 ? bucket_of(m, behind) : behind;
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
    int rows = mtf_assembly_dimension(m, "distances", 2 * m->stack->distance_rows);
    MtfLinear linear = { .name = name,
                         .weights = file == NULL ? weights : NULL,
                         .file = file,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(m->heads, m->d_kv),
                         .bias = true,
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
