// SPDX-License-Identifier: GPL-3.0-or-later
/* An order made by always running what leaves the fewest bytes live, of what is ready: so a branch
 * that has been begun is finished before the next one is, and what is fetched is fetched when
 * nothing else can be done.
 *
 *     written   a1 a2 a3  b1 b2 b3  c1 c2 c3        three branches, level by level: all are live
 *     greedy    a1 b1 c1  a2 b2 c2  a3 b3 c3        branch by branch
 *
 * Good where the written order is broad, poor where a large step must be taken to free more later.
 */
#ifndef MTF_ORDER_GREEDY_H
#define MTF_ORDER_GREEDY_H

#include "cost/tune/order_model.h"

/* A legal order; ties go to what is written first. NULL when more than `most_work` choices would
 * have to be weighed. Free with g_free. */
int *mtf_order_greedy(const MtfOrderModel *model, int64_t most_work);

#endif
