// SPDX-License-Identifier: GPL-3.0-or-later
/* What a run ends with: the plan's predictions beside what was measured and counted.
 *
 *     prediction and measurement   predicted   measured
 *     step                          12.3 ms     15.1 ms   median of 49 steps, the first left out
 *     …
 *     collective   axes   calls a step   payload a step   seconds a step
 */
#ifndef MTF_RUN_SUMMARY_H
#define MTF_RUN_SUMMARY_H

#include "runtime/session/session.h"

/* Collective over session->control: the table, on every rank, of a pipeline as of a plan without stages; free
 * with g_free. Traffic is that of the rank with most; the last line says whether every rank's counts equal
 * the program's. */
char *mtf_run_summary(const MtfSession *session);

/* The median of the steps' seconds, the first step left out where there are others. */
double mtf_median_seconds(const MtfStepRecord *records, int64_t n);

#endif
