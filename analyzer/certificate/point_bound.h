// SPDX-License-Identifier: GPL-3.0-or-later
/* What prices of memory and messages prove about a problem, in exact arithmetic. For any messages M and
 * any prices Y >= 0 every legal choice x costs at least
 *
 *     constant - sum_r Y_r capacity_r + sum_v theta_v[x_v] + sum_e held_e[x_a, x_b]
 *         theta_v[p]   = cost_v[p] + sum_r Y_r usage_vr[p] + sum_e M_ev[p]
 *         held_e[p, q] = cost_e[p, q] - M_ea[p] - M_eb[q]
 *
 * since what messages add to nodes they take from edges, and memory is paid for no more than there is.
 * With every term at its least that is a bound of all choices; with a value or an entry given, of those
 * that use it. Messages are multiples of 2^-shift, prices of 2^-price_shift; nothing is rounded. */
#ifndef MTF_POINT_BOUND_H
#define MTF_POINT_BOUND_H

#include "analyzer/certificate/certified_problem.h"

typedef struct MtfPoint {
    int shift, price_shift; /* 0 <= shift <= price_shift */
    int rows, edges;
    int64_t *price;    /* [rows] */
    int64_t **message; /* [2 edges] to the ends a and b of an edge; NULL: zeros */
} MtfPoint;

/* A point without prices and messages for a problem as it is; `keep`, `join`, `eliminate` end its use.
 * NULL where the shifts are out of range. */
MtfPoint *mtf_point_new(const MtfCertifiedProblem *problem, int64_t shift, int64_t price_shift);
void mtf_point_free(MtfPoint *point);

/* Sets the price of a time that counts; not below zero. */
bool mtf_point_set_price(MtfPoint *point, const MtfCertifiedProblem *problem, int64_t time,
                         int64_t price, GError **error);

/* Sets the message of the edge between two nodes to the first of them. */
bool mtf_point_set_message(MtfPoint *point, const MtfCertifiedProblem *problem, int64_t node,
                           int64_t other, const int64_t *message, int count, GError **error);

typedef struct MtfPointBound MtfPointBound;

/* The terms of a point; NULL with an error where a sum leaves 128 bits. The problem may lose values and
 * entries while the terms are in use, which are those of before. */
MtfPointBound *mtf_point_bound_new(const MtfPoint *point, const MtfCertifiedProblem *problem,
                                   GError **error);
void mtf_point_bound_free(MtfPointBound *bound);

/* Whether every choice costs more than `cost`: in all, with a value, with an entry of the edge (a, b).
 * True of an infinite bound. */
bool mtf_point_bound_exceeds(const MtfPointBound *bound, int64_t cost);
bool mtf_point_bound_excludes(const MtfPointBound *bound, int node, int value, int64_t cost);
bool mtf_point_bound_excludes_entry(const MtfPointBound *bound, int a, int b, int p, int q,
                                    int64_t cost);

/* What a value's theta, or the entry of edge e where `node` takes p and its other end q, holds more than the
 * least of its kind: in multiples of 2^-shift, rounded down; what is impossible holds MTF_POINT_NEVER. All
 * that a choice of at most `cost` holds adds up to no more than the slack. Of a finite bound. */
#define MTF_POINT_NEVER ((MtfInt128)1 << 100)
MtfInt128 mtf_point_bound_term(const MtfPointBound *bound, int node, int value);
MtfInt128 mtf_point_bound_entry_term(const MtfPointBound *bound, int e, int node, int p, int q);
MtfInt128 mtf_point_bound_slack(const MtfPointBound *bound, int64_t cost);

/* The price of a row, in multiples of 2^-price_shift. */
int64_t mtf_point_bound_price(const MtfPointBound *bound, int row);

/* Whether nothing is possible at all. */
bool mtf_point_bound_is_infinite(const MtfPointBound *bound);

#endif
