// SPDX-License-Identifier: GPL-3.0-or-later
/* Linear attention in blocks of places, each from a state of 0, and what the state before it adds: blocks may
 * be split, for nothing but their states travels.
 *
 *     block 0 ─ S0 ─┐     block 1 ─ S1 ─┐      …     places of all blocks at once
 *                   └ e^.. S0 ───────── + ──►  P2    the states before each, from those of all
 *     o = own,  own + q P1,  own + q P2,  …          */
#ifndef MTF_COMPOSITE_STATES_H
#define MTF_COMPOSITE_STATES_H

#include "analyzer/composites/composite.h"

/* The result of the operation of that name; -1 where the builder has failed. */
int mtf_expand_linear_attention(MtfComposite *c);

#endif
