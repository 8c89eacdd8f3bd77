// SPDX-License-Identifier: GPL-3.0-or-later
/* The inner loops of attention: products of tiles, and what is done to rows of scores and features, for
 * float32 and float64. Rows in scratch are filled up to a multiple of MTF_ATTENTION_LANES. */
#ifndef MTF_ATTENTION_LOOPS_H
#define MTF_ATTENTION_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#define MTF_ATTENTION_TILE_ROWS 8

/* c = sum over steps of a b, or c += that, for MTF_ATTENTION_TILE_ROWS rows (`tile`) or one (`tile_row`) by two
 * vectors. Strides in elements: a's from row to row of c and from step to step, so that it may be a matrix or
 * its transpose. */
typedef struct {
    const void *a, *b;
    void *c;
    int64_t a_row, a_step, b_step, c_row, steps;
    bool adds;
} MtfAttentionTile;

/* Rows in memory. */
typedef struct {
    const void *data;
    int64_t rows, columns, stride;
} MtfAttentionRows;

/* Where rows are copied to; they are padded to `columns` columns. */
typedef struct {
    void *data;
    int64_t columns, stride;
} MtfAttentionTarget;

/* What the gradient of one query's scores depends on. */
typedef struct {
    double lse, dot, factor, softcap;
} MtfSoftmaxGradient;

/* The inner loops of an element type. */
typedef struct {
    void (*tile)(const MtfAttentionTile *tile);
    void (*tile_row)(const MtfAttentionTile *tile);
    int64_t (*tile_columns)(void);
    double (*dot)(const void *left, const void *right, int64_t n);
    void (*dot_rows)(void *out, const void *left, const MtfAttentionRows *rows);
    void (*weigh_rows)(void *out, const void *weights, const MtfAttentionRows *rows);
    double (*largest)(const void *row, int64_t n);
    double (*exp_row)(void *row, double largest, int64_t n);
    void (*add)(void *row, const void *more, double by, int64_t n);
    void (*drop)(void *row, const uint8_t *keep, double scale, int64_t n);
    void (*cap)(void *row, double softcap, int64_t n);
    void (*fill)(void *row, double value, int64_t from, int64_t to);
    void (*scale)(void *out, const void *in, double factor, int64_t n);
    void (*softmax_gradient)(void *scores, void *gradients, const MtfSoftmaxGradient *gradient,
                             int64_t n);
    void (*capped_softmax_gradient)(void *scores, void *gradients, void *added,
                                    const MtfSoftmaxGradient *gradient, int64_t n);
    void (*copy)(const MtfAttentionTarget *out, const MtfAttentionRows *in, double factor);
    void (*transpose)(const MtfAttentionTarget *out, const MtfAttentionRows *in);
    double (*load)(const void *data, int64_t i);
    void (*store)(void *data, int64_t i, double value);
} MtfAttentionLoops;

extern const MtfAttentionLoops mtf_attention_loops_f32, mtf_attention_loops_f64;

#endif
