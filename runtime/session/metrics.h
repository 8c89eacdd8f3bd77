// SPDX-License-Identifier: GPL-3.0-or-later
/* What a run says of its steps, on rank 0. To a file, one JSON object a line, flushed as it is
 * written:
 *
 *     {"step": 1, "loss": 5.5452, "gradient_norm": 2.31, "learning_rate": 2.5e-05,
 *      "seconds": 0.0123, "processor_seconds": 0.0122, "communication_seconds": 0.0011,
 *      "tokens_per_second": 166504, "gemm_fraction": 0.71, "arena_bytes": 45912064,
 *      "resident_bytes": 91824128}
 *
 * ("held_out_loss" and "held_out_accuracy" where it was evaluated, "dropped_share" of routers with a
 * capacity; what is not known is left out),
 *
 * and to people: on a terminal one line of standard error that is redrawn, cut to its width;
 * otherwise some twenty plain lines on standard output. */
#ifndef MTF_METRICS_H
#define MTF_METRICS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t step; /* the first is 1 */
    double loss;
    bool has_no_loss; /* the graph has none */
    bool evaluated;
    double held_out_loss;     /* after the step, when it was evaluated */
    double held_out_accuracy; /* likewise: the share of labels that were right; NAN: no labels */
    bool drops;               /* routers have a capacity, and the next is known: */
    double dropped_share;     /* of the experts that tokens chose, those that had no place left */
    double gradient_norm;     /* 0 = not known, like the rest of such numbers here */
    double learning_rate;
    double gemm_fraction;         /* of the rate of a large product alone, in the whole step */
    int64_t arena_bytes;          /* of the plan */
    int64_t resident_bytes;       /* of the rank with most: resident_memory.h */
    double seconds;               /* of the whole step, the next batch included */
    double processor_seconds;     /* of this rank's own thread */
    double communication_seconds; /* inside MPI calls for data, waiting included */
} MtfStepRecord;

typedef struct MtfMetrics MtfMetrics;

/* What the lines of a run have in common. */
typedef struct {
    int64_t done, steps;   /* those before this run, and all */
    int64_t items;         /* consumed by a step */
    const char *item_name; /* "tokens" */
} MtfMetricsRun;

/* `path` may be NULL. A run that goes on from step `done` keeps the lines of its file up to that
 * step, as they were written; what came after is lost with the steps themselves. Fails (bad input)
 * when the file cannot be written. */
MtfMetrics *mtf_metrics_open(const char *path, const MtfMetricsRun *run, GError **error);

/* Whether the line of any step may be written or shown: to a file, on a terminal. Some of what it
 * says is only worth its cost then. */
bool mtf_metrics_shows_all(const MtfMetrics *metrics);

/* Whether a step is among the twenty or so that are printed where there is no terminal. */
bool mtf_metrics_prints(int64_t done, int64_t steps, int64_t step);

/* Says something to people, a whole line or more. */
void mtf_metrics_say(MtfMetrics *metrics, const char *text);

/* Fails when the file cannot take the line. */
bool mtf_metrics_add(MtfMetrics *metrics, const MtfStepRecord *record, GError **error);

/* Ends the progress line and frees; NULL is allowed. */
void mtf_metrics_close(MtfMetrics *metrics);

/* The line of a file, without its end; free with g_free. A loss that is not finite is null. */
char *mtf_metrics_line(const MtfStepRecord *record, int64_t items, const char *item_name);

#endif
