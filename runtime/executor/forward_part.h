// SPDX-License-Identifier: GPL-3.0-or-later
/* The part of a program that leads from its inputs to the loss, or in a stage without one to what it sends
 * forward: what evaluation and scores run, with the same instructions, collectives and memory as training.
 *
 *     instruction   0 … repeated-1   …   n_repeated … once-1   …      without micro-batches
 *                   forward          |   the loss              |      repeated = 0
 *                   per micro-batch  |   of the whole step     |  */
#ifndef MTF_FORWARD_PART_H
#define MTF_FORWARD_PART_H

#include "layouts/program/program.h"

typedef struct {
    int repeated; /* instructions [0, repeated) run once a micro-batch */
    int once;     /* and [n_repeated, once) after them */
} MtfForwardPart;

/* The shortest part that ends with the loss where the program keeps it. */
MtfForwardPart mtf_forward_part(const MtfProgram *program);

#endif
