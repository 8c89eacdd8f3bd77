// SPDX-License-Identifier: GPL-3.0-or-later
/* Lays a program's mesh on the machine the way that suits what the program sends. */
#ifndef MTF_PROGRAM_MAPPING_H
#define MTF_PROGRAM_MAPPING_H

#include "cost/price/price.h"
#include "cost/tune/mapping_search.h"

/* The collectives of a step, equal ones (kind, mesh axes, payload) counted in `calls`, as an array
 * of MtfCollectiveTraffic to be freed by g_array_unref. */
GArray *mtf_program_traffic(const MtfProgram *program);

/* Replaces the pricer's mapping by the cheapest for the program's traffic (mtf_mapping_search),
 * never by a slower one. Prices taken before no longer hold. */
MtfMappingSearch mtf_program_map(MtfPricer *pricer, const MtfProgram *program, int64_t limit);

#endif
