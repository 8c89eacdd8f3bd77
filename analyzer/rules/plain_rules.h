// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules without a search, for when there is no time for one: axis by axis, the dimensions that take
 * the most from what all tensors hold on a device, as long as one takes more than a share of it.
 *
 *     x [batch d_model]   w [d_model d_ff]   h [batch d_ff]      rows:4;cols:2
 *
 *     rows  batch first, then nothing: each other dimension meets it in a tensor
 *     cols  d_ff  first, then nothing */
#ifndef MTF_PLAIN_RULES_H
#define MTF_PLAIN_RULES_H

#include "layouts/placement/rules.h"

/* Legal rules, which the caller frees. Bit a + 1 of allowed[d]: dimension d may lie on axis a, bit 0: on
 * none; what may lie on one axis alone does, which must be legal. */
MtfRules *mtf_plain_rules(const MtfGraph *graph, const MtfMesh *mesh, const unsigned *allowed,
                          double share);

#endif
