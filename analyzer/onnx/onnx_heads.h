// SPDX-License-Identifier: GPL-3.0-or-later
/* What operators of attention have in common. Inside all have the axes [batch, heads, places, features]. */
#ifndef MTF_ONNX_HEADS_H
#define MTF_ONNX_HEADS_H

#include "analyzer/onnx/onnx_operators.h"

/* [batch, places, heads features] to [batch, heads, places, features], where what has heads already stays; and back
 * to three axes. */
MtfOnnxValue *mtf_onnx_part_heads(MtfOnnxCall *call, MtfOnnxValue *x, int64_t heads);
MtfOnnxValue *mtf_onnx_join_heads(MtfOnnxCall *call, MtfOnnxValue *x);

/* Rotary positions. Tables of cosines and sines are [positions, pairs] with `ids` [batch, places], or [batch,
 * places, pairs] with NULL. */
typedef struct {
    MtfOnnxValue *cosines, *sines, *ids;
    int64_t turns;   /* features that turn, the first; 0: all */
    bool neighbours; /* are pairs, not features half of them apart */
} MtfOnnxRotary;
MtfOnnxValue *mtf_onnx_rotate(MtfOnnxCall *call, const MtfOnnxRotary *rotary, MtfOnnxValue *x);

/* Positions [1, places] that are counted from the first, a number. */
MtfOnnxValue *mtf_onnx_places_from(MtfOnnxTranslation *t, MtfOnnxValue *first, int64_t places);

/* Keys or values behind those of the past, which may be NULL or without elements. */
MtfOnnxValue *mtf_onnx_with_past(MtfOnnxTranslation *t, MtfOnnxValue *past, MtfOnnxValue *now);

/* softmax(cap tanh(scale q k / cap) + masks) v, where several heads of queries may share one of keys. */
typedef struct {
    MtfOnnxValue *q, *k, *v;
    MtfOnnxValue *masks[3]; /* truths of what is seen, or numbers that are added; or NULL */
    bool causal;            /* the last query sees all */
    int64_t window;         /* places that a query sees, its own included; 0: all */
    double scale, softcap;  /* softcap 0: none */
    MtfOnnxValue *sinks;    /* [heads]: scores of nothing, which take a share; or NULL */
} MtfOnnxAttention;
MtfOnnxValue *mtf_onnx_attend(MtfOnnxCall *call, const MtfOnnxAttention *attention);

/* 1 where a row of ones and zeros is one, else 0, as numbers that are added: 0, and `lowest`. */
MtfOnnxValue *mtf_onnx_mask_numbers(MtfOnnxTranslation *t, MtfOnnxValue *ones, int type,
                                    double lowest);

#endif
