// SPDX-License-Identifier: GPL-3.0-or-later
/* Measured tables of collectives that go directly, asked for groups of any size. A calibration of N ranks
 * measures groups of N and its divisors; for groups of n ranks that were not measured, on one switch, the
 * formula keeps its shape and takes over how far the measured sizes a <= n <= b are from it:
 *
 *     seconds(n) = formula(n) r(n),    r(a) = measured(a) / formula(a) at the same payload,
 *
 * where between two measured sizes ln r goes straight over ln n, and beyond the last it stays. */
#ifndef MTF_MEASURED_COLLECTIVE_H
#define MTF_MEASURED_COLLECTIVE_H

#include "cost/collectives/collective.h"
#include "layouts/exchange/exchange_algorithm.h"

/* The seconds of a collective of a group, which must not be of one rank; false where the machine
 * has no table of that kind, or none of that size while the group is not on one switch. */
bool mtf_measured_collective(const MtfMachine *machine, const MtfNetwork *group,
                             MtfCollectiveKind kind, double bytes, double *seconds);

/* Whether the machine has tables of that kind at all. */
bool mtf_measures_collective(const MtfMachine *machine, MtfCollectiveKind kind);

/* The seconds of a collective of `ranks` ranks by an algorithm, from the table of exactly these; false
 * where the machine has none. */
bool mtf_measured_algorithm(const MtfMachine *machine, MtfCollectiveKind kind, int64_t ranks,
                            MtfExchangeAlgorithm algorithm, double bytes, double *seconds);

/* For a group whose size was not measured, while others were: "allreduce over 8 ranks, as those
 * over 4 are to their formula". NULL for all others. Free with g_free. */
char *mtf_unmeasured_collective(const MtfMachine *machine, const MtfNetwork *group,
                                MtfCollectiveKind kind);

#endif
