// SPDX-License-Identifier: GPL-3.0-or-later
/* What optimizers can be asked for: kinds, learning-rate schedules, and the numbers each kind has
 * with their standard values. One table, read by the JSON reader and writer, by the model families
 * and by whoever derives the update. */
#ifndef MTF_OPTIMIZER_H
#define MTF_OPTIMIZER_H

#include "layouts/graph/graph.h"

/* The kinds (optimizer_updates.h) and the learning-rate schedules (operation_table.h), for lists of words. */
#define MTF_OPTIMIZER_KINDS "sgd", "momentum", "adam", "adamw", "adafactor", "lion", "lamb", "muon"
#define MTF_SCHEDULES \
    "constant", "linear_warmup", "inverse_sqrt", "cosine", "linear", "polynomial", "wsd", "step"

/* The kinds; NULL-terminated. */
const char *const *mtf_optimizer_kinds(void);

/* The schedules; NULL-terminated. */
const char *const *mtf_schedules(void);

/* Whether zeros without a gradient stay zeros and change nothing for other elements: it updates every
 * element by itself, or by sums and products of matrices, to which zeros add nothing. NULL is no optimizer,
 * which does. */
bool mtf_optimizer_keeps_padding(const char *kind);

/* A number of an optimizer, valid in [low, high). */
typedef struct {
    const char *name; /* JSON key */
    size_t offset;    /* in MtfOptimizer */
    const char *kind; /* the only kind that has it; NULL = every kind */
    double standard;
    double low, high;
    bool optional; /* written only where it is not the standard */
} MtfOptimizerNumber;

/* The table; the last row has the name NULL. A name occurs once for each kind that has it. */
const MtfOptimizerNumber *mtf_optimizer_numbers(void);

/* Whether optimizers of `kind` have this number. */
bool mtf_optimizer_has(const char *kind, const MtfOptimizerNumber *number);

/* What its schedule cannot do without and lacks, as the end of a sentence, to be freed; NULL: nothing. */
char *mtf_optimizer_lacks(const MtfOptimizer *optimizer);

/* An optimizer of a known kind with schedule "constant", all numbers at their standard, and
 * learning rate `rate`. Its strings are the caller's (mtf_graph_free frees those of a graph). */
MtfOptimizer mtf_optimizer_standard(const char *kind, double rate);

#endif
