// SPDX-License-Identifier: GPL-3.0-or-later
/* Variants that may save more of the best one's step: less recomputation, what waits with the host
 * instead, and attention's keys and values in parts or in rings. */
#ifndef MTF_FURTHER_VARIANTS_H
#define MTF_FURTHER_VARIANTS_H

#include "analyzer/planner/variant_search.h"

/* Searches them, and keeps the best plan; nothing where that of `best` is hopeless or time is up. */
bool mtf_variants_search_further(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                                 GError **error);

#endif
