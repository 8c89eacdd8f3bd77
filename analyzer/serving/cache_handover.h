// SPDX-License-Identifier: GPL-3.0-or-later
/* What devices that read prompts hand to those that generate: the caches, from the prefill plan's
 * placement on its devices to the decode plan's on the devices behind them.
 *
 *     devices   0 … P-1                    P … N-1
 *               prefill: caches ─────────► decode: caches          transfer_plan.h, cache by cache
 */
#ifndef MTF_CACHE_HANDOVER_H
#define MTF_CACHE_HANDOVER_H

#include "analyzer/serving/inference_plan.h"

/* Seconds that the caches of all examples take over the machine's links: each its transfer's fastest
 * way, one after the other, of `filled` (0 … 1) of the places they have, as if those lay evenly; and
 * the bytes that cross links between hosts (between devices on one host, and where there are no hosts).
 * NAN on an error of the machine or of GLPK. */
double mtf_cache_handover_seconds(const MtfInferencePhase *prefill, const MtfInferencePhase *decode,
                                  const MtfMachine *machine, double filled, double *bytes,
                                  GError **error);

#endif
