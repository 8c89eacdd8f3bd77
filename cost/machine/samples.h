// SPDX-License-Identifier: GPL-3.0-or-later
/* Measured samples on their way to a machine's tables: any number of (table, x, seconds), in any
 * order. Measurements scatter, and a table that falls somewhere would price more work cheaper than
 * less; so each table gets the rising seconds that are nearest to its samples in least squares
 * (isotonic regression by pooling adjacent violators: Ayer et al., 1955):
 *
 *     samples   1  3  2  2  6        table   1  7/3  7/3  7/3  6
 */
#ifndef MTF_SAMPLES_H
#define MTF_SAMPLES_H

#include "cost/machine/machine.h"

typedef struct {
    char *name; /* of the table, curve_name.h */
    double x, seconds;
} MtfSample;

typedef struct {
    GArray *list; /* MtfSample */
} MtfSamples;

/* No samples yet; the caller frees it. */
MtfSamples *mtf_samples_new(void);
void mtf_samples_free(MtfSamples *samples);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfSamples, mtf_samples_free)

/* Adds a sample; `name` is copied. Of several samples of one table with the same x the first
 * quarter counts (the second of four): what disturbs a measurement makes it slower, but the least
 * is what only a lucky step comes to. */
void mtf_samples_add(MtfSamples *samples, const char *name, double x, double seconds);

/* Replaces the machine's tables of the samples' names by what the samples say. */
void mtf_samples_fit(const MtfSamples *samples, MtfMachine *machine);

/* Makes y[0] <= y[1] <= … the nearest rising values to what they were. */
void mtf_samples_make_rising(double *y, int count);

#endif
