// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/shape.h"

int mtf_shape_find(const MtfShape *shape, int dim) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == dim)
            return i;
    return -1;
}

bool mtf_shape_append(MtfShape *shape, int dim) {
    if (shape->rank == MTF_MAX_RANK)
        return false;
    shape->dims[shape->rank++] = dim;
    return true;
}

void mtf_shape_remove(MtfShape *shape, int dim) {
    int at = mtf_shape_find(shape, dim);
    if (at < 0)
        return;
    shape->rank--;
    for (int i = at; i < shape->rank; i++)
        shape->dims[i] = shape->dims[i + 1];
    shape->dims[shape->rank] = 0;
}

bool mtf_shape_equal(const MtfShape *a, const MtfShape *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool mtf_shape_contains(const MtfShape *whole, const MtfShape *part) {
    for (int i = 0; i < part->rank; i++)
        if (mtf_shape_find(whole, part->dims[i]) < 0)
            return false;
    return true;
}
