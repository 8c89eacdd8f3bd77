// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <math.h>

/* ---- Pieces of rows -------------------------------------------------------------------------- */

static int as_float(MtfAssembly *m, const char *name, int x) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_parts_apply(m->p, MTF_OP_CAST, name, NULL, x, -1);
}

void mtf_assembly_read_segments(MtfAssembly *m, bool is_source) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    m->segments = m->places = m->mask = -1;
    if (!m->n->packed)
        return;
    m->segments = mtf_parts_input(m->p, is_source ? "source_segments" : "segments", &shape, MTF_I32,
                                  is_source ? MTF_FEED_SOURCE_SEGMENTS : MTF_FEED_SEGMENTS);
    m->places = mtf_parts_input(m->p, is_source ? "source_places" : "places", &shape, MTF_I32,
                                is_source ? MTF_FEED_SOURCE_PLACES : MTF_FEED_PLACES);
}

/* 0 where query and memory are of one piece, -1e30 elsewhere. */
int mtf_assembly_mask(MtfAssembly *m, const char *prefix, const MtfMemory *memory) {
    if (m->segments < 0)
        return -1;
    mtf_parts_enter(m->p, prefix);
    m->p->b.attributes.from = memory->length;
    m->p->b.attributes.to = memory->remembered;
    int known = mtf_parts_apply(m->p, MTF_OP_RENAME, "memory_segments", NULL, memory->segments, -1);
    int alike = mtf_parts_apply(m->p, MTF_OP_EQUAL, "alike", NULL, m->segments, known);
    int one = mtf_parts_constant(m->p, "one", 1);
    int less = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "alike_less_one", NULL,
                               as_float(m, "alike_float", alike), one);
    int mask = mtf_assembly_scale(m, "mask", 1e30, less);
    mtf_parts_leave(m->p);
    return mask;
}

/* 1 where a row's text is, 0 where it is filled up; an input once. */
static int filled_places(MtfAssembly *m, bool source) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    const char *name = source ? "source_segments" : "segments";
    int known = m->p->b.error == NULL ? mtf_graph_find_tensor(m->p->b.graph, name) : -1;
    return known >= 0 ? known
                      : mtf_parts_input(m->p, name, &shape, MTF_I32,
                                        source ? MTF_FEED_SOURCE_SEGMENTS : MTF_FEED_SEGMENTS);
}

int mtf_assembly_text_places(MtfAssembly *m) {
    return as_float(m, "is_text", filled_places(m, false));
}

int mtf_assembly_fill(MtfAssembly *m, int tokens) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    if (m->n->class_place != MTF_READ_ROW)
        return tokens;
    mtf_parts_enter(m->p, "fill");
    m->p->b.attributes.value = (double)m->n->filling;
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_I32;
    int filling = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "filling", &shape);
    int y = mtf_parts_apply_to(m->p, MTF_OP_WHERE, "tokens", 3,
                               (int[]){ filled_places(m, false), tokens, filling });
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_padding(MtfAssembly *m) {
    bool source = m->n->kind == MTF_ARCHITECTURE_ENCODER_DECODER;
    bool told = m->n->kind == MTF_ARCHITECTURE_ENCODER && m->n->classes > 0 &&
                m->n->class_place != MTF_READ_ROW;
    if (m->n->packed || (!source && !told))
        return -1;
    int read = filled_places(m, source);
    const char *name = source ? "source_mask" : "mask";
    mtf_parts_enter(m->p, name);
    m->p->b.attributes.from = m->length;
    m->p->b.attributes.to = m->memory_length;
    int known = mtf_parts_apply(m->p, MTF_OP_RENAME, "segments", NULL, read, -1);
    int number = as_float(m, "segments_float", known);
    int filled = mtf_parts_apply(m->p, MTF_OP_LOGICAL_NOT, "filled", NULL, number, -1);
    mtf_parts_leave(m->p);
    return mtf_assembly_scale(m, name, -1e30, filled);
}

int mtf_assembly_counted(MtfAssembly *m) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    if (m->n->kind != MTF_ARCHITECTURE_ENCODER_DECODER)
        return -1;
    if (!m->n->packed)
        return mtf_parts_input(m->p, "counted", &shape, MTF_F32, MTF_FEED_MASK);
    int segments = as_float(m, "segments_float", m->segments);
    return mtf_parts_apply(m->p, MTF_OP_SIGN, "counted", NULL, segments, -1);
}

/* ---- Positions as waves ---------------------------------------------------------------------- */

static int float_range(MtfAssembly *m, const char *name, int dim) {
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    return mtf_parts_range(m->p, name, dim);
}

/* Angle per position of feature f: 10000^(-i / h) with h = d/2 and i = f mod h; or with h - 1, so that the
 * last is 1/10000. */
static int wave_frequencies(MtfAssembly *m, int feature, int half) {
    int i = mtf_parts_apply(m->p, MTF_OP_MODULO, "pair", NULL, feature, half);
    double steps = (double)m->n->d_model / 2 - (m->n->waves_to_end ? 1 : 0);
    int exponent = mtf_assembly_scale(m, "exponent", -log(10000) / steps, i);
    return mtf_parts_apply(m->p, MTF_OP_EXP, "frequency", NULL, exponent, -1);
}

/* sin of the angle in the first half of the features, cos, which is sin(angle + pi/2), in the
 * second: Vaswani and others, "Attention is all you need", 2017, 3.5, with the features of a kind
 * side by side. */
int mtf_assembly_waves(MtfAssembly *m) {
    mtf_parts_enter(m->p, "waves");
    int feature = float_range(m, "feature", m->d_model);
    int half = mtf_parts_constant(m->p, "half", floor((double)m->n->d_model / 2));
    int place =
        m->places >= 0 ? as_float(m, "place", m->places) : float_range(m, "place", m->length);
    if (m->n->first_position > 0)
        place =
            mtf_parts_add(m->p, "place_moved", place,
                          mtf_parts_constant(m->p, "first_position", (double)m->n->first_position));
    int frequency = wave_frequencies(m, feature, half);
    int angle = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "angle", NULL, place, frequency);
    int later = mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "is_cosine", NULL, half, feature);
    int phase = mtf_assembly_scale(m, "phase", G_PI / 2, later);
    int turned = mtf_parts_add(m->p, "turned", angle, phase);
    int waves = mtf_parts_apply(m->p, MTF_OP_SIN, "wave", NULL, turned, -1);
    mtf_parts_leave(m->p);
    return waves;
}
