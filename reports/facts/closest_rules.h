// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules that a layout comes closest to: what to call a free layout in one line. */
#ifndef MTF_CLOSEST_RULES_H
#define MTF_CLOSEST_RULES_H

#include "layouts/placement/layout.h"

/* A legal rule text, "batch:rows;d_ff:cols", that parses again: a dimension is given an axis where
 * most bytes of the tensors with that dimension are split so, in order of those bytes. `*exact`
 * says whether the rules give this very layout. Free with g_free. */
char *mtf_closest_rules(const MtfGraph *graph, const MtfLayout *layout, bool *exact);

#endif
