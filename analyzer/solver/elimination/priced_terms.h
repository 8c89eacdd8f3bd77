// SPDX-License-Identifier: GPL-3.0-or-later
/* The costs of a core and the price of its memory as one sum of terms of at least zero, in whole
 * multiples of 2^-shift of a core cost:
 *
 *     node_v[p]   = floor( cost_v[p] + sum_r Y_r usage_vr[p] )   less the least of its values
 *     edge_e[p,q] = cost_e[p,q]                                  less the least of its entries
 *     slack       = cutoff - constant + sum_r Y_r capacity_r     less all that was taken off
 *
 * Y_r >= 0 are prices rounded down, which are prices like any others. A choice that fits and costs no
 * more than the cutoff has terms that add up to no more than the slack, and so has each part of it,
 * as the terms are not negative. */
#ifndef MTF_PRICED_TERMS_H
#define MTF_PRICED_TERMS_H

#include "analyzer/solver/reduce/layout_core.h"

/* A term above every slack; some hundreds of them can be added up. */
#define MTF_TERM_NEVER (INT64_C(1) << 54)

typedef struct MtfPricedTerms {
    const MtfCore *core;
    int shift;
    int64_t slack;  /* negative: no choice is within the cutoff */
    int64_t **node; /* [nodes][values]; NULL where not alive */
    int64_t **edge; /* [edges][values of a][values of b]; NULL where gone */
    int price_shift;
    int64_t *price; /* [rows] Y in multiples of 2^-price_shift, which is at least the shift */
} MtfPricedTerms;

/* The terms at these prices, one for each row, in core costs per unit of memory. NULL where costs are
 * too large for 64 bits. The core must outlive them unchanged. */
MtfPricedTerms *mtf_priced_terms_new(const MtfCore *core, const double *prices, int64_t cutoff);
void mtf_priced_terms_free(MtfPricedTerms *terms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPricedTerms, mtf_priced_terms_free)

#endif
