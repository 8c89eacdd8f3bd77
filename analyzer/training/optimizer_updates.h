// SPDX-License-Identifier: GPL-3.0-or-later
/* Appends the optimizer that a graph asks for to its forward and backward pass: state variables,
 * clipping by global norm, the learning rate and one update a variable.
 *
 *     grad/w ──► clip/square/w ─┐
 *     grad/v ──► clip/square/v ─┴► clip/sum ──► clip ─┐        phase clip
 *     w, grad/w, adam/m/w, adam/v/w, learning_rate, clip ──► update/w, update/w/m, update/w/v
 *
 * State is called adam/m/NAME and adam/v/NAME (adamw too), momentum/v/NAME, adafactor/rows/NAME and
 * adafactor/columns/NAME of tensors with two and more dimensions, adafactor/v/NAME of others,
 * lion/m/NAME, lamb/m/NAME and lamb/v/NAME, muon/m/NAME; with `ema` also ema/NAME, a running mean of
 * the weights, whose first value is the weights behind the first step.
 *
 * Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
 * 2018, algorithms 4 and 5, without relative step sizes): the second moment over the last two
 * dimensions is the product of its row and column means divided by the mean of all; the update is
 * scaled down where its root mean square is above 1.
 *
 * LAMB (You and others, "Large batch optimization for deep learning", 2020): Adam's direction with
 * weight decay, as long as the variable is.
 *
 * Muon (Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024; its
 * scale and decay as in Liu and others, "Muon is scalable for LLM training", 2025, so that one rate
 * serves its matrices and AdamW's rest):
 *
 *     m' = momentum m + g,  n = g + momentum m',  X = n / |n|
 *     five times X = a X + b A X + c A A X,  A = X X^T,  a, b, c = 3.4445, -4.7750, 2.0315
 *     w' = w - rate (0.2 sqrt(max(rows, columns)) X + weight_decay w)
 *
 * A variable is a matrix by the product that reads it: its rows are the dimensions that are summed
 * over (a filter's with its windows), its columns those that are made, and what both sides have
 * numbers matrices of their own (experts). What is looked up, what makes the classes of a loss, and
 * what is no matrix is AdamW's. */
#ifndef MTF_OPTIMIZER_UPDATES_H
#define MTF_OPTIMIZER_UPDATES_H

#include "layouts/building/builder.h"

/* Appends clipping and updates for `gradients` (MtfVariableGradient) as graph->optimizer says, and
 * clears graph->optimizer; nothing without a kind. Fails with a bad-input error on an unknown kind
 * or schedule, variables of different float types, or a name that is taken. */
bool mtf_add_updates(MtfGraph *graph, const GArray *gradients, GError **error);

/* What the rules of single optimizers see. */
typedef struct {
    MtfBuilder *b;
    const MtfOptimizer *settings;
    int rate; /* the learning rate's tensor */
    int clip; /* the clipping factor's tensor, or -1 */
} MtfUpdater;

/* One optimizer's update of one variable; it calls mtf_updater_state and mtf_updater_update. */
typedef void (*MtfUpdateRule)(MtfUpdater *updater, int variable, int gradient);

/* Adam's; AdamW's with weight decay. */
void mtf_update_adam(MtfUpdater *updater, int variable, int gradient);

/* Theirs; the formulas stand in their files. */
void mtf_update_muon(MtfUpdater *updater, int variable, int gradient);
void mtf_update_adafactor(MtfUpdater *updater, int variable, int gradient);

/* A state variable "WHAT/NAME" of the variable's dtype, zero at first. */
int mtf_updater_state(MtfUpdater *updater, const char *what, int variable, const MtfShape *shape);

/* Says that `variable` becomes `value`, which is counted as the same kind of memory. */
void mtf_updater_update(MtfUpdater *updater, int variable, int value);

/* Appends the factor min(1, limit / norm) of all gradients together and returns it. Sums of squares
 * are added in groups of gradients with the same set of dimensions, then over groups: whatever
 * splits a group's dimensions leaves all its terms partial alike, so each group needs one
 * reduction.
 */
int mtf_clip_by_norm(MtfBuilder *builder, const GArray *gradients, double limit);

#endif
