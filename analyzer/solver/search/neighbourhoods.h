// SPDX-License-Identifier: GPL-3.0-or-later
/* Large neighbourhoods: some dozens of nodes of a good choice are set free, all others stay, and
 * branch and bound looks for better values of these together.
 *
 *     . . o o . . . . . o .      o: free, around some nodes drawn at random, so that
 *     . o o o . . . . o o .         one place can give memory to another
 *
 * How many nodes are free follows from how many were solved to the end within the work. */
#ifndef MTF_NEIGHBOURHOODS_H
#define MTF_NEIGHBOURHOODS_H

#include "analyzer/solver/problem/search_control.h"
#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfNeighbourhoods MtfNeighbourhoods;

/* Of a core that must outlive it unchanged; several of one core may run in threads of their own. */
MtfNeighbourhoods *mtf_neighbourhoods_new(const MtfCore *core, guint64 seed);
void mtf_neighbourhoods_free(MtfNeighbourhoods *search);

/* Improves legal values (indexed as in the core) by about `work` matrix entries passed, at
 * the prices of the rows; the control (or NULL) is asked often. Returns whether they got cheaper. */
bool mtf_neighbourhoods_improve(MtfNeighbourhoods *search, const double *prices, int64_t work,
                                int *values, const MtfSearchControl *control);

#endif
