// SPDX-License-Identifier: GPL-3.0-or-later
/* Running means of weights (`ema` of an optimizer) in the weights' place, so that whatever uses weights
 * uses the means. Frozen variables and running statistics have none and stay.
 *
 *     optimizer state   ema/w  ──elements travel, the two may be placed differently──►  w   variables
 *                                                                    w ──► aside, and back after an evaluation */
#ifndef MTF_AVERAGED_WEIGHTS_H
#define MTF_AVERAGED_WEIGHTS_H

#include "runtime/checkpoint/checkpoint.h"

/* Fails (bad input) where the graph has no running means of weights. */
bool mtf_averaged_weights_check(const MtfGraph *graph, GError **error);

/* Collective over the control communicator: every weight that has a running mean becomes it. Unless
 * `aside` is NULL this rank's slices of the weights are added to it (GBytes) before. */
bool mtf_averaged_weights_take(const MtfCheckpointed *what, GPtrArray *aside, GError **error);

/* Puts back what was set aside. */
void mtf_averaged_weights_put_back(const MtfCheckpointed *what, const GPtrArray *aside);

#endif
