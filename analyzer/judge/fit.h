// SPDX-License-Identifier: GPL-3.0-or-later
/* Fits a few figures of a machine to measured runs. A parameter is a factor on figures of the machine's
 * file, log-normal around 1: how much it may change before the runs must speak loudly.
 *
 *     minimise   sum of rows   huber(ln(predicted / measured) / 0.06)
 *              + sum of parameters   (ln factor / deviation)^2        |ln factor| <= 3 deviations
 *
 * by Gauss-Newton steps. Rows of one source share a weight: a hundred rows of one cluster say no more
 * than sqrt(100) rows. What the runs do not determine stays where it was and is said. */
#ifndef MTF_FIT_H
#define MTF_FIT_H

#include "analyzer/judge/judge.h"

typedef enum {
    MTF_FIT_PRODUCTS,  /* shares of the peak that products reach */
    MTF_FIT_ATTENTION, /* likewise fused attention */
    MTF_FIT_SWEEPS,    /* shares of the memory's bandwidth */
    MTF_FIT_LINKS,     /* inside the innermost level, or a torus */
    MTF_FIT_NETWORK,   /* of the levels outside it, or between slices */
    MTF_FIT_LAUNCH,    /* seconds */
    MTF_FITS
} MtfFitParameter;

typedef struct {
    double factor[MTF_FITS];
    double doubt[MTF_FITS];    /* deviation of ln factor that is left */
    bool determined[MTF_FITS]; /* less than 0.8 of what it was before */
    int rows;
    double before, after; /* mean absolute error of these rows */
    double crossed;       /* mtf_fit_cross; NAN until then */
} MtfFit;

/* "products", … */
const char *mtf_fit_name(MtfFitParameter parameter);

/* Rows and profiles to fit on: those verdicts of a judged table that were expressed on the machine. */
typedef struct {
    const MtfMachine *machine;
    const GPtrArray *verdicts; /* of MtfVerdict */
    MtfRowLabel left_out;      /* rows whose label is `label` are left out; NULL: none */
    const char *label;
} MtfFitRows;

/* Fits; without rows all factors stay 1. The cross-validated error is left to mtf_fit_cross. */
MtfFit mtf_fit(const MtfFitRows *rows);

/* Each source predicted by a fit to the others, or each row where all are of one source: the mean
 * absolute error; NAN with fewer than two. */
double mtf_fit_cross(const MtfFitRows *rows);

/* A run that is unlike the others: measured seconds over those that the fit to all says. */
typedef struct {
    char *id;
    double share;
} MtfFitStray;

/* Runs which the fit is off by a fourth at least, and five times as far as it is of half of all; of fewer than four
 * none. MtfFitStray, in the order of the rows; free with g_array_unref. */
GArray *mtf_fit_strays(const MtfFitRows *rows, const MtfFit *fit);

/* Scales the figures of `machine` in place. Shares stay at most 1. */
void mtf_fit_apply(const MtfFit *fit, MtfMachine *machine);

#endif
