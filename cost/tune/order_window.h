// SPDX-License-Identifier: GPL-3.0-or-later
/* The best order of a few instructions that follow each other, by dynamic programming over the sets
 * that may be done first. The live bytes after a set do not depend on how it was run, so for each
 * set the least peak on any way to it is enough:
 *
 *     {} ──► {a} ──► {a,b} ──► {a,b,c}
 *       └──► {b} ──┘      └──► …            of two ways to a set, the one with the lower peak
 *
 * Sets that no way reaches below the present peak are left out, which is most of them. Exact unless
 * one size of set has more than MTF_WINDOW_STATES members; then the lowest are followed. */
#ifndef MTF_ORDER_WINDOW_H
#define MTF_ORDER_WINDOW_H

#include "cost/tune/order_model.h"

#define MTF_WINDOW_MOST 64
#define MTF_WINDOW_STATES 2048

/* Looks for an order of places [from, from + count) of `order`, at most MTF_WINDOW_MOST, all of one
 * segment, in which fewer bytes are live at most than at the worst place of `replay`, the replay of
 * `order`. Returns whether there is one, and puts it in place. Adds what was tried to `*work`. */
bool mtf_order_window(const MtfOrderModel *model, const MtfOrderReplay *replay, int *order,
                      int from, int count, int64_t *work);

#endif
