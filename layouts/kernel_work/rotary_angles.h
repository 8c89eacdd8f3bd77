// SPDX-License-Identifier: GPL-3.0-or-later
/* How far rotary positions turn their pairs. */
#ifndef MTF_ROTARY_ANGLES_H
#define MTF_ROTARY_ANGLES_H

#include "layouts/graph/graph.h"

/* Radians a position of `n` of the `rotated` / 2 pairs, number i from `first` on:
 * base^(-2 i / rotated) (Su et al., "RoFormer", 2021), divided by `stretch` as Llama 3.1's
 * configuration files do with long waves, or YaRN with later pairs (Peng et al., 2023), where the
 * attributes say so. With `growth` f the base of a text of `length` L above `context` C is
 * base (f L / C - f + 1)^(r / (r - 2)), r = `rotated`, as transformers' "dynamic" has it; with
 * `divisors` they are divided by those, or by `long_divisors` where a text is longer than `context`
 * (LongRoPE, Ding et al., 2024). */
void mtf_rotary_frequencies(const MtfAttributes *attributes, int64_t rotated, int64_t length,
                            int64_t first, int64_t n, double *frequencies);

/* Whether that reads `length`. */
bool mtf_rotary_follows_length(const MtfAttributes *attributes);

#endif
