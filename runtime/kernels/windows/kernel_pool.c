// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/kernel_pool.h"

#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/kernels/windows/window_nest.h"

#include <math.h>

/* One element of the result, and what of the other side its windows meet. */
typedef struct {
    const MtfKernelCall *call;
    const MtfOperand *made, *read; /* result and the last input */
    MtfWindowNest nest;
    bool back; /* the result is the large side */
    int n;
    int plain[MTF_MAX_RANK];     /* positions in `made` of dimensions beside the windows */
    int64_t step[MTF_MAX_RANK];  /* strides of `read` along them */
    int64_t at[MTF_MAX_WINDOWS]; /* of the result along each window */
} Pool;

static bool is_windowed(const MtfAttributes *a, int dim) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == dim || a->windows[w].to == dim)
            return true;
    return false;
}

static Pool pool_of(const MtfKernelCall *call) {
    Pool p = { .call = call,
               .made = &call->outputs[0],
               .read = &call->inputs[call->operation->n_inputs - 1],
               .back = mtf_operation_row(call->operation->kind)->windows == MTF_WINDOWS_BACK };
    p.nest = mtf_window_nest(call, p.back ? p.made : p.read, p.back ? p.read : p.made, NULL);
    for (int i = 0; i < p.made->rank; i++)
        if (!is_windowed(&call->operation->attributes, p.made->dims[i])) {
            p.plain[p.n] = i;
            p.step[p.n++] = mtf_side_of(p.read, p.made->dims[i]).stride;
        }
    return p;
}

/* Goes to element `number` of the result; returns where the other side's first one beside it is. */
static int64_t go_to(Pool *p, int64_t number) {
    int64_t coordinate[MTF_MAX_RANK] = { 0 }, offset = 0;
    for (int i = p->made->rank - 1; i >= 0; i--) {
        coordinate[i] = number % p->made->size[i];
        number /= p->made->size[i];
    }
    for (int i = 0; i < p->n; i++)
        offset += coordinate[p->plain[i]] * p->step[i];
    const MtfAttributes *a = &p->call->operation->attributes;
    for (int w = 0; w < p->nest.n; w++)
        for (int i = 0; i < p->made->rank; i++)
            if (p->made->dims[i] == a->windows[w].from || p->made->dims[i] == a->windows[w].to)
                p->at[w] = coordinate[i];
    return offset;
}

/* The other side's element that place number `place` of the windows joins with this one, or -1. */
static int64_t meet(const Pool *p, int64_t offset, int64_t place) {
    for (int w = p->nest.n - 1; w >= 0; w--) {
        const MtfWindowLoop *loop = &p->nest.loop[w];
        int64_t here = place % loop->places;
        int64_t other = p->back ? mtf_window_small(loop, p->at[w], here)
                                : mtf_window_large(loop, p->at[w], here);
        place /= loop->places;
        if (other < 0)
            return -1;
        offset += other * (p->back ? loop->small.stride : loop->large.stride);
    }
    return offset;
}

static int64_t places_of(const Pool *p) {
    int64_t places = 1;
    for (int w = 0; w < p->nest.n; w++)
        places *= p->nest.loop[w].places;
    return places;
}

/* The first of the largest. */
void mtf_kernel_max_pool(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    int64_t elements = mtf_operand_elements(p.made), places = places_of(&p);
    for (int64_t i = 0; i < elements; i++) {
        int64_t offset = go_to(&p, i), best = 0;
        double largest = -INFINITY;
        for (int64_t place = 0; place < places; place++) {
            int64_t at = meet(&p, offset, place);
            double x = at < 0 ? -INFINITY : mtf_slice_get(p.read, at);
            if (x > largest || isnan(x)) {
                largest = x;
                best = place;
            }
            if (isnan(x))
                break;
        }
        mtf_slice_set(p.made, i, largest);
        mtf_slice_set(&call->outputs[1], i, (double)best);
    }
}

void mtf_kernel_max_pool_grad(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    int64_t elements = mtf_operand_elements(p.made), places = places_of(&p);
    for (int64_t i = 0; i < elements; i++) {
        int64_t offset = go_to(&p, i);
        double sum = 0;
        for (int64_t place = 0; place < places; place++) {
            int64_t at = meet(&p, offset, place);
            if (at >= 0 && (int64_t)mtf_slice_get(&call->inputs[0], at) == place)
                sum += mtf_slice_get(p.read, at);
        }
        mtf_slice_set(p.made, i, sum);
    }
}

/* Elements that window `small`, counted in the whole tensor, has along one window: those in the
 * tensor, or with padding those up to its end. */
static int64_t elements_of(const MtfWindowLoop *loop, int64_t small, bool counted) {
    int64_t first = small * loop->stride - loop->before, n = 0;
    int64_t low = counted ? -loop->before : 0;
    int64_t high = loop->large.global + (counted ? loop->after : 0);
    for (int64_t place = 0; place < loop->places; place++) {
        int64_t at = first + place * loop->dilation;
        n += at >= low && at < high;
    }
    return n;
}

void mtf_kernel_average_pool(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    int64_t elements = mtf_operand_elements(p.made), places = places_of(&p);
    bool counted = call->operation->attributes.counted != 0;
    for (int64_t i = 0; i < elements; i++) {
        int64_t offset = go_to(&p, i), n = 1;
        double sum = 0;
        for (int64_t place = 0; place < places; place++) {
            int64_t at = meet(&p, offset, place);
            sum += at < 0 ? 0 : mtf_slice_get(p.read, at);
        }
        for (int w = 0; w < p.nest.n; w++)
            n *= elements_of(&p.nest.loop[w], p.nest.loop[w].small.begin + p.at[w], counted);
        mtf_slice_set(p.made, i, n > 0 ? sum / (double)n : 0);
    }
}

/* How many elements the window has that joins with this one at `place`. */
static int64_t elements_at(const Pool *p, int64_t place, bool counted) {
    int64_t n = 1;
    for (int w = p->nest.n - 1; w >= 0; w--) {
        const MtfWindowLoop *loop = &p->nest.loop[w];
        int64_t small = mtf_window_small(loop, p->at[w], place % loop->places);
        n *= elements_of(loop, loop->small.begin + small, counted);
        place /= loop->places;
    }
    return n;
}

void mtf_kernel_average_pool_grad(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    int64_t elements = mtf_operand_elements(p.made), places = places_of(&p);
    bool counted = call->operation->attributes.counted != 0;
    for (int64_t i = 0; i < elements; i++) {
        int64_t offset = go_to(&p, i);
        double sum = 0;
        for (int64_t place = 0; place < places; place++) {
            int64_t at = meet(&p, offset, place);
            if (at >= 0)
                sum += mtf_slice_get(p.read, at) / (double)elements_at(&p, place, counted);
        }
        mtf_slice_set(p.made, i, sum);
    }
}
