// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/band_cuts.h"

#include "runtime/kernels/base/kernel_nest.h"

#include <string.h>

/* As many whole inner dimensions as fit a band, and of the next one equal parts that do. */
static void choose_counts(MtfBandCut *cut) {
    int64_t rows = cut->band->rows;
    for (int i = cut->band->n_dims - 1; i >= 0; i--) {
        int64_t parts = (cut->size[i] + rows - 1) / rows;
        cut->most[i] = (cut->size[i] + parts - 1) / parts;
        rows = parts > 1 ? 1 : MAX(1, rows / cut->size[i]);
    }
}

void mtf_band_first(MtfBandCut *cut, const MtfBand *band, const int64_t *size) {
    *cut = (MtfBandCut){ .band = band };
    memcpy(cut->size, size, sizeof *size * (size_t)band->n_dims);
    choose_counts(cut);
    memcpy(cut->count, cut->most, sizeof cut->count);
}

bool mtf_band_next(MtfBandCut *cut) {
    for (int i = cut->band->n_dims - 1; i >= 0; i--) {
        cut->first[i] += cut->count[i];
        bool more = cut->first[i] < cut->size[i];
        if (!more)
            cut->first[i] = 0;
        cut->count[i] = MIN(cut->most[i], cut->size[i] - cut->first[i]);
        if (more)
            return true;
    }
    return false;
}

void mtf_band_operand(const MtfBandCut *cut, const MtfOperand *whole, MtfOperand *part) {
    int64_t offset = 0;
    for (int i = 0; i < cut->band->n_dims; i++) {
        int place = mtf_operand_find(whole, cut->band->dims[i]);
        if (place < 0)
            continue;
        offset += cut->first[i] * mtf_operand_stride(whole, place);
        part->begin[place] = whole->begin[place] + cut->first[i];
        part->size[place] = cut->count[i];
    }
    part->data = mtf_operand_at(whole, offset);
}

bool mtf_band_continues(const MtfBandCut *cut, const MtfOperand *output) {
    bool first = true;
    for (int i = 0; i < cut->band->n_dims; i++)
        first = first && cut->first[i] == 0;
    return !first && mtf_operand_find(output, cut->band->dims[0]) < 0;
}
