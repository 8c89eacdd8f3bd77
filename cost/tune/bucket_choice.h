// SPDX-License-Identifier: GPL-3.0-or-later
/* How large messages of joined exchanges (layouts/program/combine_collectives.h) should be on a machine. Large
 * ones save latencies, but leave late and are copied; what that is worth depends on latency,
 * bandwidth and what computes meanwhile, so the program is lowered and scheduled with each of
 *
 *     none joined,   16 KiB,   128 KiB,   1 MiB
 *
 * and the shortest schedule wins; of equal ones that of the smaller messages. Of a thousand layers that takes seconds,
 * and the best size is that of few of them. */
#ifndef MTF_BUCKET_CHOICE_H
#define MTF_BUCKET_CHOICE_H

#include "cost/price/price.h"

/* Sets the layout's bucket_bytes, which must be 0, where a schedule on the pricer's machine gets shorter and
 * the arena fits `limit` bytes or does not grow. Returns whether it did. `*program` is what the layout is
 * lowered to, before and after. Of the sizes only `only` is tried, 0: all are. */
bool mtf_layout_choose_bucket(const MtfGraph *graph, MtfLayout *layout, MtfProgram **program,
                              const MtfPricer *pricer, int64_t limit, int64_t only);

#endif
