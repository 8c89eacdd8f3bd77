// SPDX-License-Identifier: GPL-3.0-or-later
/* What files of machines and of software have in common: figures that are bounded, lists of them, a figure
 * for each dtype, and where figures come from. All return false with the place in the file. */
#ifndef MTF_MACHINE_FIELDS_H
#define MTF_MACHINE_FIELDS_H

#include "layouts/base/json_reader.h"

/* {"bf16": 312e12}: one of several dtypes, which may be some that no tensor has. */
typedef struct {
    char dtype[8]; /* "f64", "f32", "bf16", "fp16", "fp8", "int8" or "fp4" */
    double value;
} MtfDtypeFigure;

/* The number at `object[key]`, which must be there. */
bool mtf_figure_above_zero(const MtfJson *object, const char *key, double *value, GError **error);
bool mtf_figure_not_negative(const MtfJson *object, const char *key, double *value, GError **error);

/* The number at `object[key]`, from `low` to `high`; where there is none the value stays. */
bool mtf_figure_between(const MtfJson *object, const char *key, double low, double high,
                        double *value, GError **error);

/* Reads a list of `count` numbers; another length fails with the sentence `expected`. */
bool mtf_figure_list(const MtfJson *list, int count, const char *expected, double *numbers,
                     GError **error);

/* The members of `object[key]`, one to `most`, each above 0. Returns how many there are; 0 on failure. */
int mtf_figures_of_dtypes(const MtfJson *object, const char *key, MtfDtypeFigure *figures, int most,
                          GError **error);

/* Where figures come from, in words: `root["sources"]`, which may be missing. */
bool mtf_figure_sources(const MtfJson *root, GError **error);

#endif
