// SPDX-License-Identifier: GPL-3.0-or-later
/* Cuts a forward graph into pipeline stages of about equal work:
 *
 *     operations   o o o o o | o o o o o o | o o o o o        in their order
 *     stage        1           2             3
 *
 * Each cut is looked for near the place that balances the work, where the fewest bytes cross it. */
#ifndef MTF_STAGE_CUT_H
#define MTF_STAGE_CUT_H

#include "layouts/graph/graph.h"

/* Gives every operation of the graph a stage from 1 to `stages`. Fails (bad input) when there are
 * fewer operations than stages. */
bool mtf_cut_stages(MtfGraph *forward, int stages, GError **error);

#endif
