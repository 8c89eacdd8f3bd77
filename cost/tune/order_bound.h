// SPDX-License-Identifier: GPL-3.0-or-later
/* What is live while one instruction runs, whatever the order: what was made before its segment of
 * the program or by what it depends on, and is wanted after its segment or by what depends on it.
 * Where the worst instruction needs its peak in any order, no order is better. */
#ifndef MTF_ORDER_BOUND_H
#define MTF_ORDER_BOUND_H

#include "cost/tune/order_model.h"

/* No legal order has fewer bytes live while instruction `index` runs. */
int64_t mtf_order_least(const MtfOrderModel *model, int index);

#endif
