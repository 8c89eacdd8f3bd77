// SPDX-License-Identifier: GPL-3.0-or-later
/* Families of models, made small and trained under drawn layouts: their losses are those of one
 * processor. Text is the project's licence, pairs are a few words, pictures and clicks are
 * generated. */
#ifndef MTF_TESTS_FAMILY_LOSSES_H
#define MTF_TESTS_FAMILY_LOSSES_H

#include "analyzer/models/model_family.h"
#include "tests/support/losses/layout_losses.h"

typedef struct {
    const MtfModelFamily *family;
    const char *const *changes; /* of its tiny preset: parameter, value, …, NULL; or NULL: none */
    MtfDtype dtype;
    int steps;
} MtfFamilyCase;

/* Trains the case on one processor. */
void mtf_family_model_init(MtfLossModel *model, const MtfFamilyCase *wanted);
#define mtf_family_model_clear mtf_loss_model_clear

/* Trains it under `draws` layouts of one to eight processors in turn, rule and free layouts in turn;
 * fails the running test where a loss is another. */
void mtf_check_family_layouts(const MtfFamilyCase *wanted, int draws);

#endif
