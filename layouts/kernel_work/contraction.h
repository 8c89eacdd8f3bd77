// SPDX-License-Identifier: GPL-3.0-or-later
/* How a sum of products over named dimensions becomes matrix products. Two terms are contracted at
 * a time; each dimension has one of four roles:
 *
 *     in left, right and result   batch     an outer loop
 *     in left and result          m         rows
 *     in right and result         n         columns
 *     in left and right           k         summed
 *
 *     q[b, l, h, d] k[b, t, h, d] -> s[b, h, l, t]         batch b, h    m l    n t    k d
 *
 * Dimensions of one role that are neighbours in memory in every term are one loop; the largest
 * loops of the roles m, n and k that a product routine's strides allow become the product, and all
 * others run outside it. Where that leaves products that are too small, terms are first copied
 * into scratch in an order that suits (and the result back from it): the plan is the cheapest by a
 * rough model of time, within the scratch there is. Without any scratch there always is a plan.
 *
 * Pure arithmetic on sizes; runtime/kernels/products/kernel_einsum.c carries it out. */
#ifndef MTF_CONTRACTION_H
#define MTF_CONTRACTION_H

#include "layouts/graph/operation_table.h"

/* Scratch is handed out in multiples of this many bytes. */
#define MTF_SCRATCH_ALIGNMENT 64

/* A slice of a tensor: its dimensions in storage order, row-major, and their local sizes. */
typedef struct {
    int rank;
    int dims[MTF_MAX_RANK];
    int64_t size[MTF_MAX_RANK];
} MtfTerm;

enum { MTF_LEFT, MTF_RIGHT, MTF_RESULT, MTF_TERMS };

typedef struct {
    int64_t size;
    int64_t stride[MTF_TERMS]; /* in elements; 0 where the term lacks the dimension */
    bool sums;                 /* role k */
} MtfContractionLoop;

typedef struct {
    bool packs[MTF_TERMS];      /* the term is copied to (the result: from) scratch */
    MtfTerm stored[MTF_TERMS];  /* each term as the products see it */
    MtfContractionLoop m, n, k; /* of size 1 where there is none */
    int n_outer;
    MtfContractionLoop outer[MTF_MAX_INDEXES];
    int64_t scratch_bytes;
    double seconds; /* rough */
} MtfContraction;

/* What a plan may use. Terms in bfloat16 want `whole_sums`: then no loop outside the products sums,
 * and there is a plan only with scratch for all three terms. */
typedef struct {
    int64_t element_bytes[MTF_TERMS];
    int64_t scratch_bytes; /* at most */
    bool whole_sums;
} MtfContractionMeans;

/* Plans result = sum of left right, where every dimension of a term is in one of the others. */
void mtf_contraction_plan(const MtfTerm terms[MTF_TERMS], const MtfContractionMeans *means,
                          MtfContraction *plan);

/* Elements of a slice, and its bytes rounded up to MTF_SCRATCH_ALIGNMENT. */
int64_t mtf_term_elements(const MtfTerm *term);
int64_t mtf_term_bytes(const MtfTerm *term, int64_t element_bytes);
bool mtf_term_has(const MtfTerm *term, int dim);

/* `term` without the dimensions that are in neither of the others: what is left once these have
 * been summed. Returns whether there were any. */
bool mtf_term_shared(const MtfTerm *term, const MtfTerm *other, const MtfTerm *result,
                     MtfTerm *shared);

/* The product of `left` and `right` when the terms of `rest` are still to come: their dimensions
 * that the result or a later term needs, the result's in its order, then the others. */
void mtf_term_product(const MtfTerm *left, const MtfTerm *right, const MtfTerm *rest, int n_rest,
                      const MtfTerm *result, MtfTerm *product);

/* Bytes of scratch for the whole einsum of `n` terms, two at a time from the left. */
int64_t mtf_einsum_scratch_bytes(const MtfTerm *terms, int n, const MtfTerm *result,
                                 int64_t element_bytes);

/* How an einsum of terms that are stored in bfloat16 runs, whose result is bfloat16 or float32.
 * Which it is depends on dimensions alone, not on sizes. */
typedef enum {
    MTF_NARROW_PASS,     /* one pass over memory: a copy, or elementwise products without a sum */
    MTF_NARROW_SUMS,     /* one pass that adds up, in float32: a narrow result in scratch */
    MTF_NARROW_PRODUCTS, /* two terms, products that read them as they are, into whole sums */
    MTF_NARROW_WIDENED, /* anything else: terms and result in float32 in scratch, as float32 runs */
} MtfNarrowEinsum;

/* How a product of bfloat16 inputs is computed without widening them, and the bytes of scratch
 * that takes. */
MtfNarrowEinsum mtf_narrow_einsum(const MtfTerm *terms, int n, const MtfTerm *result);
int64_t mtf_narrow_einsum_scratch_bytes(const MtfTerm *terms, int n, const MtfTerm *result,
                                        bool narrow_result);

#endif
