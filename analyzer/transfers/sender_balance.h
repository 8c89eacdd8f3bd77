// SPDX-License-Identifier: GPL-3.0-or-later
/* Which host sends each piece of a transfer, so that no host is busier than need be. The integer program
 * over pieces i, the hosts h that hold piece i, and the time T:
 *
 *     minimise   T
 *     subject to sum_h x_ih = 1                        for every piece i
 *                sum_i seconds_i x_ih <= T             for every host h
 *                T >= the seconds in which some host must receive
 *                x_ih in {0, 1}                        piece i is sent by host h
 *
 * (arXiv 2211.05322, section 3.2). Pieces with one holder are constants of the second row. It is asked
 * only where sending by the least busy host does not reach the bound of its relaxation, rounded up to
 * a whole number of pieces where all are multiples of the smallest. */
#ifndef MTF_SENDER_BALANCE_H
#define MTF_SENDER_BALANCE_H

#include "cost/transfer/transfer_order.h"

/* Fills sender[count] and `*bound`, which no choice of senders and no order can go below. Fails only when
 * GLPK fails. */
bool mtf_sender_balance(const MtfTransferProblem *problem, int *sender, double *bound,
                        GError **error);

#endif
