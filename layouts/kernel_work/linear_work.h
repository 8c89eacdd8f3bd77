// SPDX-License-Identifier: GPL-3.0-or-later
/* How kernels of linear attention (operation_table.h) go over a text: head by head, and in each chunk by chunk of
 * C places. With g_i the sum of the logarithms of places up to i of the chunk and S the state before it,
 *
 *     u_i = v_i                                                      without beta, else
 *     u_i = beta_i (v_i - e^g_i k_i S - sum over j < i of e^(g_i - g_j) (k_i k_j) u_j)
 *     o_i = e^g_i q_i S + sum over j <= i of e^(g_i - g_j) (q_i k_j) u_j
 *     S'  = e^g_C S + sum over j of e^(g_C - g_j) k_j u_j
 *
 * which is products of C x keys by keys x C, C x C by C x values, C x keys by keys x values and keys x C by C x
 * values, and with beta a triangular system (Mamba 2: Dao and Gu, 2024, section 6; the delta rule: Yang, Wang, Zhang,
 * Shen and Kim, 2024, and with decays Yang, Kautz and Hatamizadeh, 2024). No power of e is above 1. Going backward
 * the state before each chunk is computed first and kept until the head is done.
 *
 * Where each element of the state has a logarithm of its own (selective scans) there are no such products: S is passed over place by
 * place, a row of values at a time, and going backward the states of a chunk's places are recomputed. */
#ifndef MTF_LINEAR_WORK_H
#define MTF_LINEAR_WORK_H

#include "layouts/kernel_work/product_work.h"

/* Places of a chunk; the last one of a text may have fewer. */
#define MTF_LINEAR_CHUNK 64

/* A head on one processor. */
typedef struct {
    int64_t places, keys, values;
    int64_t chunk, chunks; /* places of a whole chunk */
    bool corrects, back;   /* it has beta; it is the gradient */
    bool by_element;       /* each element of the state forgets at a speed of its own: a scan */
    double heads;
} MtfLinearHead;

/* Of so many places, keys and values, and what an operation has of them. */
MtfLinearHead mtf_linear_head_of(int64_t places, int64_t keys, int64_t values);
MtfLinearHead mtf_linear_head(const MtfGraph *graph, const MtfOperation *op,
                              const MtfIteration *iteration, const int64_t *sizes);

/* What a kernel keeps in scratch of the head at hand, in elements of the type of sums. */
typedef enum {
    MTF_LINEAR_STATE,
    MTF_LINEAR_Q, /* a chunk's rows; those of v become u */
    MTF_LINEAR_K,
    MTF_LINEAR_V,
    MTF_LINEAR_O,
    MTF_LINEAR_FADED,  /* rows of queries or keys times powers of e */
    MTF_LINEAR_DECAY,  /* e^(g_i - g_j) */
    MTF_LINEAR_SCORES, /* of queries with keys, times those */
    MTF_LINEAR_LIKE,   /* of keys with keys, likewise */
    MTF_LINEAR_RATE, /* by element, of a place: what each forgets a step, the share that it keeps … */
    MTF_LINEAR_KEPT,
    MTF_LINEAR_LEFT,   /* … and what that is */
    MTF_LINEAR_STEP,   /* rows, of a chunk */
    MTF_LINEAR_STATES, /* before all chunks; from here on of gradients alone */
    MTF_LINEAR_PLACES, /* by element: behind each place of a chunk */
    MTF_LINEAR_DSTEP,
    MTF_LINEAR_DRATE, /* of all heads */
    MTF_LINEAR_DSTATE,
    MTF_LINEAR_DO,
    MTF_LINEAR_DU,
    MTF_LINEAR_ERROR, /* what u is beta times */
    MTF_LINEAR_PAIRS, /* gradients of scores */
    MTF_LINEAR_ROWS,  /* a product's rows, of keys' width */
    MTF_LINEAR_DQ,    /* of all places, added up over the heads that share them */
    MTF_LINEAR_DK,
    MTF_LINEAR_PIECES
} MtfLinearPiece;

/* Where each piece begins; returns the elements of all. */
int64_t mtf_linear_pieces(const MtfLinearHead *head, int64_t begins[MTF_LINEAR_PIECES]);

/* Its products as so many of a chunk by a state, and the states that a processor which works on all chunks at once
 * writes and reads. */
MtfProductWork mtf_linear_product_work(const MtfLinearHead *head, int64_t element_bytes);

#endif
