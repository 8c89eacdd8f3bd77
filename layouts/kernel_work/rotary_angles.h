// SPDX-License-Identifier: GPL-3.0-or-later
/* How far rotary positions turn their pairs. */
#ifndef MTF_ROTARY_ANGLES_H
#define MTF_ROTARY_ANGLES_H

#include "layouts/graph/graph.h"

/* Radians a position of pair `i` of `rotated` / 2: base^(-2 i / rotated) (Su et al., "RoFormer", 2021),
 * divided by `stretch` as Llama 3.1's configuration files do with long waves, or YaRN with later pairs
 * (Peng et al., 2023), where the attributes say so. With `growth` f the base of a text of `length`
 * L above `context` C is base (f L / C - f + 1)^(n / (n - 2)), n = `rotated`, as transformers' "dynamic" has
 * it; nothing else reads `length`. */
double mtf_rotary_frequency(const MtfAttributes *attributes, int64_t i, int64_t rotated,
                            int64_t length);

#endif
