// SPDX-License-Identifier: GPL-3.0-or-later
/* Losses of a model under a layout, against those of one processor. All processors live in this
 * process (lockstep.h), with every buffer poisoned before it is written. */
#ifndef MTF_TESTS_LAYOUT_LOSSES_H
#define MTF_TESTS_LAYOUT_LOSSES_H

#include "layouts/placement/layout.h"
#include "runtime/data/data.h"

#define LAYOUT_STEPS 50

typedef struct {
    MtfGraph *graph; /* a training graph */
    MtfData *data;
    double losses[LAYOUT_STEPS]; /* on one processor */
} MtfLossModel;

/* Trains a model's graph on its data on one processor, for `steps`, at most 50, that others are compared with. */
void mtf_losses_alone(MtfLossModel *model, int steps);

/* Trains a library graph of the given sizes ("batch:10;hidden:12") on one processor. */
void mtf_loss_model_init(MtfLossModel *model, const char *graph, const char *sizes, MtfDtype dtype);
void mtf_loss_model_clear(MtfLossModel *model);

/* Trains under `layout`; `disturbed` makes one element wrong on the last processor. */
void mtf_layout_losses(const MtfLossModel *model, const MtfLayout *layout, int steps,
                       bool disturbed, double *losses);

/* The first step whose loss differs by more than the law allows (1e-10 in float64, 1e-4 in float32,
 * relative), or -1. In bfloat16 each sum that a layout splits is rounded a few times more, by 2^-8
 * at most, and 50 steps add that up: 2^-6 is allowed, and drawn layouts come to a hundredth where
 * the loss has become small. */
int mtf_losses_differ(const MtfLossModel *model, const double *losses, int steps, MtfDtype dtype);

/* Fails the running test, naming the layout, where a loss differs. Returns the largest difference of a
 * step's losses, relative to the model's. */
double mtf_check_layout_losses(const MtfLossModel *model, const MtfLayout *layout, int steps,
                               MtfDtype dtype);

/* The same of `draws` layouts, of rules and free in turn, on meshes of one to eight ranks, of which the second
 * half exchanges gradients in buckets. */
double mtf_check_layout_draws(const MtfLossModel *model, GRand *random, int draws, int steps,
                              MtfDtype dtype);

/* The same of the layout that those rules make on a mesh ("rows:2;cols:2"), of 50 steps (3 in bfloat16),
 * and of `draws` drawn ones, rules and free by turns, on 2 to 8 devices. */
void mtf_check_rule_losses(const MtfLossModel *model, const char *mesh, const char *rules,
                           MtfDtype dtype);
void mtf_check_drawn_losses(const MtfLossModel *model, int draws, int steps, MtfDtype dtype);

#endif
