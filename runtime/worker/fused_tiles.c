// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/fused_tiles.h"

#include "runtime/kernels/base/kernel_nest.h"

#include <string.h>

/* As many whole inner dimensions as fit a tile, and of the next one equal parts that do. */
static void choose_counts(MtfFusedTile *tile) {
    int64_t rows = tile->fused->tile_rows;
    for (int i = tile->fused->n_dims - 1; i >= 0; i--) {
        int64_t parts = (tile->size[i] + rows - 1) / rows;
        tile->most[i] = (tile->size[i] + parts - 1) / parts;
        rows = parts > 1 ? 1 : MAX(1, rows / tile->size[i]);
    }
}

void mtf_tile_first(MtfFusedTile *tile, const MtfFusedGroup *fused, const int64_t *size) {
    *tile = (MtfFusedTile){ .fused = fused };
    memcpy(tile->size, size, sizeof *size * (size_t)fused->n_dims);
    choose_counts(tile);
    memcpy(tile->count, tile->most, sizeof tile->count);
}

bool mtf_tile_next(MtfFusedTile *tile) {
    for (int i = tile->fused->n_dims - 1; i >= 0; i--) {
        tile->first[i] += tile->count[i];
        bool more = tile->first[i] < tile->size[i];
        if (!more)
            tile->first[i] = 0;
        tile->count[i] = MIN(tile->most[i], tile->size[i] - tile->first[i]);
        if (more)
            return true;
    }
    return false;
}

void mtf_tile_operand(const MtfFusedTile *tile, const MtfOperand *whole, MtfOperand *part) {
    int64_t offset = 0;
    for (int i = 0; i < tile->fused->n_dims; i++) {
        int place = mtf_operand_find(whole, tile->fused->dims[i]);
        if (place < 0)
            continue;
        offset += tile->first[i] * mtf_operand_stride(whole, place);
        part->begin[place] = whole->begin[place] + tile->first[i];
        part->size[place] = tile->count[i];
    }
    part->data = mtf_operand_at(whole, offset);
}

bool mtf_tile_continues(const MtfFusedTile *tile, const MtfOperand *output) {
    bool first = true;
    for (int i = 0; i < tile->fused->n_dims; i++)
        first = first && tile->first[i] == 0;
    return !first && mtf_operand_find(output, tile->fused->dims[0]) < 0;
}
