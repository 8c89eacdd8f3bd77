// SPDX-License-Identifier: GPL-3.0-or-later
/* The tiles in which the kernels of a fused group run (layouts/program/fused_groups.h) on one rank: some rows
 * of the leading dimensions at a time.
 *
 *     batch 0   length 0 … 31 | 32 … 63 | …        batch 1   length 0 … 31 | …
 *
 *     mtf_tile_first(&cut, …);
 *     do
 *         … mtf_tile_operand(&cut, &whole, &part) …
 *     while (mtf_tile_next(&cut)); */
#ifndef MTF_FUSED_TILES_H
#define MTF_FUSED_TILES_H

#include "layouts/program/program.h"
#include "runtime/kernels/base/kernel.h"

/* One tile of a slice: indexes first … first + count of each dimension that is cut. */
typedef struct {
    const MtfFusedGroup *fused; /* borrowed */
    int64_t size[MTF_MAX_RANK], first[MTF_MAX_RANK], count[MTF_MAX_RANK];
    int64_t most[MTF_MAX_RANK]; /* of count */
} MtfFusedTile;

/* Stands at the first tile, `size` being the local sizes of the dimensions that are cut, none of
 * them 0. Then at each further one, until false. */
void mtf_tile_first(MtfFusedTile *tile, const MtfFusedGroup *fused, const int64_t *size);
bool mtf_tile_next(MtfFusedTile *tile);

/* Makes `part`, a copy of `whole`, the tile's piece of it. */
void mtf_tile_operand(const MtfFusedTile *tile, const MtfOperand *whole, MtfOperand *part);

/* Whether the tensor of an operand lacks all that is cut, and this is not the first tile: what the
 * tiles before have folded into it is in it. */
bool mtf_tile_continues(const MtfFusedTile *tile, const MtfOperand *output);

#endif
