// SPDX-License-Identifier: GPL-3.0-or-later
/* The order of a step's updates where its batch is in one piece: each variable is updated as soon as its
 * gradient is complete and nothing else reads it, so that gradients need not all be in memory at once.
 *
 *     before   … back/3  grad/w3  back/2  grad/w2  back/1  grad/w1   update/w3  update/w2 update/w1
 *     after    … back/3  grad/w3  update/w3  back/2  grad/w2  update/w2  back/1  grad/w1  update/w1
 *
 * Where clipping by global norm asks for all gradients, updates stay at the end. */
#ifndef MTF_EARLY_UPDATES_H
#define MTF_EARLY_UPDATES_H

#include "layouts/graph/graph.h"

/* Moves the operations of the update phase to the front as far as what they read and what reads the
 * variables they change allows. The graph is canonical afterwards. */
void mtf_update_early(MtfGraph *graph);

#endif
