// SPDX-License-Identifier: GPL-3.0-or-later
/* Random legal layouts, so that every legal plan gets executed and not only the cheap ones. The
 * same seed gives the same layout. */
#ifndef MTF_TESTS_RANDOM_LAYOUT_H
#define MTF_TESTS_RANDOM_LAYOUT_H

#include "layouts/placement/layout.h"

/* A mesh of `devices` processors: one, two or three axes. */
MtfMesh mtf_random_mesh(GRand *random, int devices);

/* A rule layout: some dimensions on some axes, legally. */
MtfLayout *mtf_random_rule_layout(GRand *random, const MtfGraph *graph, const MtfMesh *mesh);

/* A free layout: any strategy for each operation, any placement for each tensor, partial ones for
 * results included, and gathered copies in every third phase. */
MtfLayout *mtf_random_free_layout(GRand *random, const MtfGraph *graph, const MtfMesh *mesh);

#endif
