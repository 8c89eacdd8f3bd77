// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/conv_roles.h"

#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/windows/window_nest.h"

#include <string.h>

enum { EXAMPLE, READ, WRITTEN, GROUP, ROLES };

typedef struct {
    int n;
    int dims[MTF_MAX_INDEXES];
} Dims;

/* By the sides that have it, a bit each. */
static const unsigned sides_of[ROLES] = {
    [EXAMPLE] = 1 << MTF_CONV_LARGE | 1 << MTF_CONV_SMALL,
    [READ] = 1 << MTF_CONV_LARGE | 1 << MTF_CONV_FILTER,
    [WRITTEN] = 1 << MTF_CONV_SMALL | 1 << MTF_CONV_FILTER,
    [GROUP] = 1 << MTF_CONV_LARGE | 1 << MTF_CONV_SMALL | 1 << MTF_CONV_FILTER,
};

MtfConvSide mtf_conv_sides(const MtfKernelCall *call, const MtfOperand *side[MTF_CONV_SIDES]) {
    static const int order[][MTF_CONV_SIDES] = {
        [MTF_WINDOWS_NONE] = { 0 },
        [MTF_WINDOWS_GATHER] = { MTF_CONV_LARGE, MTF_CONV_FILTER, MTF_CONV_SMALL },
        [MTF_WINDOWS_SPREAD] = { MTF_CONV_SMALL, MTF_CONV_FILTER, MTF_CONV_LARGE },
        [MTF_WINDOWS_BACK] = { 0 },
        [MTF_WINDOWS_FILTER] = { MTF_CONV_LARGE, MTF_CONV_SMALL, MTF_CONV_FILTER },
    };
    const int *at = order[mtf_operation_row(call->operation->kind)->windows];
    side[at[0]] = &call->inputs[0];
    side[at[1]] = &call->inputs[1];
    side[at[2]] = &call->outputs[0];
    return (MtfConvSide)at[2];
}

bool mtf_conv_is_windowed(const MtfAttributes *a, int dim) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == dim || a->windows[w].to == dim || a->windows[w].kernel == dim)
            return true;
    return false;
}

/* ---- Roles --------------------------------------------------------------------------------- */

static void find_roles(const MtfKernelCall *call, const MtfOperand *const side[MTF_CONV_SIDES],
                       Dims roles[ROLES]) {
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        for (int i = 0; i < side[s]->rank; i++) {
            int dim = side[s]->dims[i];
            unsigned sides = 0;
            bool known = false;
            for (int t = 0; t < MTF_CONV_SIDES; t++) {
                bool has = mtf_operand_find(side[t], dim) >= 0;
                sides |= (unsigned)has << t;
                known = known || (has && t < s);
            }
            for (int r = 0; r < ROLES && !known; r++)
                if (sides == sides_of[r] &&
                    !mtf_conv_is_windowed(&call->operation->attributes, dim))
                    roles[r].dims[roles[r].n++] = dim;
        }
}

static void append(Dims *list, const Dims *more) {
    for (int i = 0; i < more->n; i++)
        list->dims[list->n++] = more->dims[i];
}

static int64_t count_elements(const MtfOperand *operand, const Dims *list) {
    int64_t elements = 1;
    for (int i = 0; i < list->n; i++)
        elements *= mtf_side_of(operand, list->dims[i]).size;
    return elements;
}

/* The distance of neighbours along dimensions that count as one; -1 where they do not lie in a row. */
static int64_t stride_of(const MtfOperand *operand, const Dims *list) {
    int64_t innermost = 0, next = 0;
    for (int i = list->n - 1; i >= 0; i--) {
        MtfSide side = mtf_side_of(operand, list->dims[i]);
        if (side.size == 1)
            continue;
        if (next != 0 && side.stride != next)
            return -1;
        innermost = next == 0 ? side.stride : innermost;
        next = side.stride * side.size;
    }
    return innermost == 0 ? 1 : innermost;
}

/* ---- Sides --------------------------------------------------------------------------------- */

/* What oneDNN sees as the dimensions of a side, the windows' aside: what they are made of. */
static int lists_of(const Dims roles[ROLES], int side, Dims lists[3]) {
    memset(lists, 0, 3 * sizeof *lists);
    if (side == MTF_CONV_FILTER) {
        int n = 0;
        if (roles[GROUP].n > 0)
            append(&lists[n++], &roles[GROUP]);
        append(&lists[n++], &roles[WRITTEN]);
        append(&lists[n++], &roles[READ]);
        return n;
    }
    append(&lists[0], &roles[EXAMPLE]);
    append(&lists[1], &roles[GROUP]);
    append(&lists[1], &roles[side == MTF_CONV_LARGE ? READ : WRITTEN]);
    return 2;
}

/* The dimension of window w on a side. */
static int window_dim(const MtfKernelCall *call, int side, int w) {
    const MtfOperationRow *row = mtf_operation_row(call->operation->kind);
    const MtfWindow *window = &call->operation->attributes.windows[w];
    bool spreads = row->windows == MTF_WINDOWS_SPREAD;
    if (side == MTF_CONV_FILTER)
        return window->kernel;
    return (side == MTF_CONV_LARGE) != spreads ? window->from : window->to;
}

/* A side in another order: examples, windows, channels; the filter channels, windows. */
static MtfOperand in_order(const MtfKernelCall *call, const MtfOperand *operand, int side,
                           const Dims lists[3], int n) {
    Dims order = { 0 };
    MtfOperand other = *operand;
    append(&order, &lists[0]);
    for (int i = 1; i < n && side == MTF_CONV_FILTER; i++)
        append(&order, &lists[i]);
    for (int w = 0; w < call->operation->attributes.n_windows; w++)
        order.dims[order.n++] = window_dim(call, side, w);
    if (side != MTF_CONV_FILTER)
        append(&order, &lists[1]);
    other.rank = 0;
    for (int i = 0; i < order.n; i++)
        mtf_operand_append(&other, operand, mtf_operand_find(operand, order.dims[i]));
    return other;
}

static void set_side(MtfConvRoles *r, const MtfKernelCall *call, int side, const Dims roles[ROLES],
                     const MtfOperand *given) {
    Dims lists[3];
    MtfConvOperand *to = &r->convolution.side[side];
    MtfOperand *operand = &r->operand[side];
    int n = lists_of(roles, side, lists);
    *operand = *given;
    for (int i = 0; i < n; i++)
        r->copied[side] = r->copied[side] || stride_of(given, &lists[i]) < 0;
    if (r->copied[side])
        *operand = in_order(call, given, side, lists, n);
    operand->data = NULL;
    to->dtype = given->dtype;
    for (int i = 0; i < n; i++) {
        to->size[to->rank] = count_elements(operand, &lists[i]);
        to->stride[to->rank++] = stride_of(operand, &lists[i]);
    }
    for (int w = 0; w < call->operation->attributes.n_windows; w++) {
        MtfSide along = mtf_side_of(operand, window_dim(call, side, w));
        to->size[to->rank] = along.size;
        to->stride[to->rank++] = along.stride;
    }
}

/* ---- Windows ------------------------------------------------------------------------------- */

/* Of the large side what the windows meet, from `first` to before `end`, where they may begin before
 * its first element and end behind its last. What lies before the first is cut off, and so much
 * behind the end as would be another window. */
static void set_window(MtfConvRoles *r, const MtfKernelCall *call, int w) {
    MtfConvolution *c = &r->convolution;
    MtfConvOperand *large = &c->side[MTF_CONV_LARGE];
    const MtfWindow *window = &call->operation->attributes.windows[w];
    const MtfOperand *const *side =
        (const MtfOperand *const[]){ &r->operand[MTF_CONV_LARGE], &r->operand[MTF_CONV_SMALL],
                                     &r->operand[MTF_CONV_FILTER] };
    MtfWindowNest nest =
        mtf_window_nest(call, side[MTF_CONV_LARGE], side[MTF_CONV_SMALL], side[MTF_CONV_FILTER]);
    const MtfWindowLoop *loop = &nest.loop[w];
    int64_t first = loop->small.begin * loop->stride - loop->before +
                    loop->place_begin * loop->dilation - loop->large.begin;
    int64_t end =
        first + (loop->small.size - 1) * loop->stride + (loop->places - 1) * loop->dilation + 1;
    int64_t low = CLAMP(first, 0, loop->large.size);
    int64_t high = end <= loop->large.size - loop->stride ? end : loop->large.size;
    r->nothing = r->nothing || end <= 0 || low >= high;
    r->uncovered = r->uncovered || low > 0 || high < loop->large.size;
    r->begin[MTF_CONV_LARGE] += low * loop->large.stride;
    large->size[2 + w] = high - low;
    c->stride[w] = window->stride;
    c->dilation[w] = window->dilation;
    c->before[w] = low - first;
    c->after[w] = end - high;
}

void mtf_conv_roles(MtfConvRoles *r, const MtfKernelCall *call) {
    const MtfOperand *side[MTF_CONV_SIDES];
    Dims roles[ROLES] = { 0 };
    *r = (MtfConvRoles){ .nothing = false };
    r->convolution.made = mtf_conv_sides(call, side);
    r->convolution.windows = call->operation->attributes.n_windows;
    find_roles(call, side, roles);
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        set_side(r, call, s, roles, side[s]);
    for (int w = 0; w < r->convolution.windows; w++)
        set_window(r, call, w);
    r->uncovered = r->convolution.made == MTF_CONV_LARGE && r->uncovered;
}
