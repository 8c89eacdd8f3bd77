// SPDX-License-Identifier: GPL-3.0-or-later
/* Rewritings of composites that put elements of a dimension in relation to those before them: scans in
 * log2(size) levels or block by block, and ranks. */
#ifndef MTF_COMPOSITE_SCANS_H
#define MTF_COMPOSITE_SCANS_H

#include "analyzer/composites/composite.h"

/* Each the result of the operation of that name; -1 where the builder has failed. */
int mtf_expand_cumulative_max(MtfComposite *c);
int mtf_expand_cumulative_min(MtfComposite *c);
int mtf_expand_cumulative_log_sum_exp(MtfComposite *c);
int mtf_expand_cumulative_sum(MtfComposite *c);
int mtf_expand_top_k(MtfComposite *c);

#endif
