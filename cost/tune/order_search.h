// SPDX-License-Identifier: GPL-3.0-or-later
/* A better order of a program's instructions than the written one, where that lowers the peak of
 * its memory. The place where most is live is looked at in ever larger windows, each put in its
 * best order (order_window.h), until no window around the worst place lowers it:
 *
 *     live bytes      __/\__            the window's best order
 *                  __/      \__   ──►   __/‾‾‾‾‾‾\__
 *                    [ window ]
 *
 * A greedy order (order_greedy.h) is improved likewise, and the lower of the two is taken. Nothing
 * is searched where no order can be better (order_bound.h). Exact where all windows hold whole
 * segments: for programs with at most MTF_WINDOW_MOST instructions a segment, and not too many
 * orders. */
#ifndef MTF_ORDER_SEARCH_H
#define MTF_ORDER_SEARCH_H

#include "cost/price/price.h"

/* An order in which fewer bytes are live at the worst instruction than in the order of the operations, which
 * the program must be in (mtf_lower_as_written); NULL where none was found. The same program gives the same
 * order. Programs with loops, whose instructions stand together, stay as they are. `*peak`, if not NULL, is
 * the most live bytes of the order found. Free with g_free. */
int *mtf_order_search(const MtfProgram *program, int64_t *peak);

/* Gives a layout a better order than lowering gives it by itself: one whose arena is smaller, and
 * whose schedule on the pricer's machine takes no longer, unless the written order does not fit
 * `limit` bytes. Returns whether it did; the layout must have no order yet. `*program` is what the layout is
 * lowered to, before and after. */
bool mtf_layout_improve_order(const MtfGraph *graph, MtfLayout *layout, MtfProgram **program,
                              const MtfPricer *pricer, int64_t limit);

/* The bytes of the arena of a layout's program, as the layout was lowered: where they exceed
 * `limit` and its worst instruction might fit in another order, the layout is given a better one if
 * there is, and the bytes are those in it. */
int64_t mtf_layout_arena_bytes(const MtfGraph *graph, MtfLayout *layout, const MtfProgram *program,
                               const MtfPricer *pricer, int64_t limit);

#endif
