// SPDX-License-Identifier: GPL-3.0-or-later
/* How often the label has the highest score: of classes, or of the next token. The program computes what
 * that takes on its way to the loss, so it is looked at just before the cross entropy reads it:
 *
 *     scores ──reduce_max──► highest ─┬─► cross_entropy ──► losses
 *     scores ──label_logit─► label's ─┘   right where both are equal
 *
 * Ranks that hold the same examples all count them, which leaves the share as it is. */
#ifndef MTF_ACCURACY_H
#define MTF_ACCURACY_H

#include "runtime/worker/worker.h"

typedef struct {
    double right, all; /* of this rank; 0 where it computes no loss by labels */
} MtfAccuracy;

/* Before instruction `index` runs: counts, if that is the graph's first cross entropy. What a mask
 * leaves out does not count. */
void mtf_accuracy_look(MtfAccuracy *accuracy, const MtfWorker *worker, int index);

#endif
