// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/window_nest.h"

#include "layouts/graph/window.h"

MtfSide mtf_side_of(const MtfOperand *operand, int dim) {
    MtfSide side = { 1, 0, 1, 0 };
    int64_t stride = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        if (operand->dims[i] == dim)
            side = (MtfSide){ operand->size[i], operand->begin[i], operand->global[i], stride };
        stride *= operand->size[i];
    }
    return side;
}

MtfWindowNest mtf_window_nest(const MtfKernelCall *call, const MtfOperand *large,
                              const MtfOperand *small, const MtfOperand *filter) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperationRow *row = mtf_operation_row(call->operation->kind);
    MtfWindowNest nest = { .n = a->n_windows };
    for (int w = 0; w < a->n_windows; w++) {
        const MtfWindow *window = &a->windows[w];
        MtfSide place = { window->size, 0, window->size, 0 };
        if (filter != NULL)
            place = mtf_side_of(filter, window->kernel);
        nest.loop[w] =
            (MtfWindowLoop){ .large = mtf_side_of(large, mtf_window_larger(row, window)),
                             .small = mtf_side_of(small, mtf_window_smaller(row, window)),
                             .places = place.size,
                             .place_begin = place.begin,
                             .place_stride = place.stride,
                             .stride = window->stride,
                             .dilation = window->dilation,
                             .before = window->before,
                             .after = window->after };
    }
    return nest;
}

int64_t mtf_window_large(const MtfWindowLoop *loop, int64_t small, int64_t place) {
    int64_t at = (loop->small.begin + small) * loop->stride - loop->before +
                 (loop->place_begin + place) * loop->dilation - loop->large.begin;
    return at >= 0 && at < loop->large.size ? at : -1;
}

int64_t mtf_window_small(const MtfWindowLoop *loop, int64_t large, int64_t place) {
    int64_t at =
        loop->large.begin + large + loop->before - (loop->place_begin + place) * loop->dilation;
    if (at < 0 || at % loop->stride != 0)
        return -1;
    at = at / loop->stride - loop->small.begin;
    return at >= 0 && at < loop->small.size ? at : -1;
}
