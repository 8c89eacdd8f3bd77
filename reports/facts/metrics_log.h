// SPDX-License-Identifier: GPL-3.0-or-later
/* What a run measured: the JSON lines that `meshtf-run --metrics` writes, read back. */
#ifndef MTF_METRICS_LOG_H
#define MTF_METRICS_LOG_H

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t step;
    double loss; /* NaN where the line has null */
    double seconds, communication_seconds;
    int64_t arena_bytes; /* 0 = not said */
} MtfMetricsRecord;

/* The records (MtfMetricsRecord) of a file, in its order; free with g_array_unref. Fails, naming
 * the line, on one that is not an object with "step", "loss" and "seconds", on steps that do not
 * rise, and when there is no record. A last line without an end, which a killed run leaves, is left
 * out. */
GArray *mtf_metrics_log_load(const char *path, GError **error);

/* The median of the steps' seconds, the first step left out where there are others (it warms up).
 */
double mtf_metrics_median_seconds(const GArray *records);
double mtf_metrics_median_communication(const GArray *records);

#endif
