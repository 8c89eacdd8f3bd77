// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/kernel_pool.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/windows/window_nest.h"

#include <math.h>
#include <string.h>

/* Elements of a row of the result that are worked out at a time, every place of their windows. */
#define CHUNK 512

/* Rows of the result along its last dimension, and where the other side lies. */
typedef struct {
    const MtfOperand *made, *read; /* result and the last input */
    MtfWindowNest nest;
    bool back; /* the result is the large side */
    int inner; /* the window over the result's last dimension, or -1 */
    int64_t places;
    int64_t step[MTF_MAX_RANK]; /* strides of `read` along the result's dimensions beside windows */
    int window[MTF_MAX_RANK];   /* over each of the result's dimensions, or -1 */
    int64_t index[MTF_MAX_RANK]; /* of the row */
    int64_t at[MTF_MAX_WINDOWS]; /* of the row along each window but the inner one */
    int64_t offset;              /* of the other side, windows aside */
    int64_t begin, n;            /* the chunk within the row */
} Pool;

/* What of a chunk one place of the windows joins with the other side. */
typedef struct {
    int64_t first, step, n; /* elements of the chunk */
    int64_t other, other_step;
    int64_t window; /* the first over the last dimension, counted in the slice */
    int64_t place;
} Stretch;

static int window_over(const MtfAttributes *a, int dim) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == dim || a->windows[w].to == dim)
            return w;
    return -1;
}

static Pool pool_of(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    Pool p = { .made = &call->outputs[0],
               .read = &call->inputs[call->operation->n_inputs - 1],
               .back = mtf_operation_row(call->operation->kind)->windows == MTF_WINDOWS_BACK,
               .places = 1 };
    p.nest = mtf_window_nest(call, p.back ? p.made : p.read, p.back ? p.read : p.made, NULL);
    for (int w = 0; w < p.nest.n; w++)
        p.places *= p.nest.loop[w].places;
    for (int i = 0; i < p.made->rank; i++) {
        p.window[i] = window_over(a, p.made->dims[i]);
        p.step[i] = p.window[i] < 0 ? mtf_side_of(p.read, p.made->dims[i]).stride : 0;
    }
    p.inner = p.window[p.made->rank - 1];
    return p;
}

/* Where the row that `index` names stands. */
static void stand_at_row(Pool *p) {
    p->offset = 0;
    for (int i = 0; i < p->made->rank - 1; i++) {
        p->offset += p->index[i] * p->step[i];
        if (p->window[i] >= 0)
            p->at[p->window[i]] = p->index[i];
    }
}

/* The next chunk, of this row or the next one; false behind the last. The first, if there is any, is
 * asked for with n = 0. */
static bool next_chunk(Pool *p) {
    int last = p->made->rank - 1;
    if (mtf_operand_elements(p->made) == 0)
        return false;
    p->begin += p->n;
    if (p->n > 0 && p->begin == p->made->size[last]) {
        int i = last - 1;
        for (; i >= 0 && ++p->index[i] == p->made->size[i]; i--)
            p->index[i] = 0;
        if (i < 0)
            return false;
        p->begin = 0;
    }
    p->n = MIN(CHUNK, p->made->size[last] - p->begin);
    stand_at_row(p);
    return true;
}

static int64_t divide_up(int64_t a, int64_t b) {
    return a <= 0 ? 0 : (a + b - 1) / b;
}

/* Adds what the inner window's `here` joins: the windows from low to before high of the last dimension,
 * which are in the chunk, or meet it. */
static void find_inner_windows(const Pool *p, int64_t here, Stretch *s) {
    const MtfWindowLoop *loop = &p->nest.loop[p->inner];
    int64_t shift = loop->before + loop->large.begin - (loop->place_begin + here) * loop->dilation -
                    loop->small.begin * loop->stride;
    /* large = small stride - shift, all counted in slices */
    int64_t low = divide_up(shift, loop->stride), end = loop->large.size + shift;
    int64_t high = end <= 0 ? 0 : MIN(loop->small.size, divide_up(end, loop->stride));
    if (p->back) {
        low = MAX(low, divide_up(p->begin + shift, loop->stride));
        high = MIN(high, divide_up(MAX(p->begin + p->n + shift, 0), loop->stride));
    } else {
        low = MAX(low, p->begin);
        high = MIN(high, p->begin + p->n);
    }
    int64_t large = low * loop->stride - shift;
    s->n = high - low;
    s->window = low;
    s->first = (p->back ? large : low) - p->begin;
    s->step = p->back ? loop->stride : 1;
    s->other += p->back ? low * loop->small.stride : large * loop->large.stride;
    s->other_step = p->back ? loop->small.stride : loop->stride * loop->large.stride;
}

/* False where this place of the windows lies outside. */
static bool find_stretch(const Pool *p, int64_t place, Stretch *s) {
    int last = p->made->rank - 1;
    *s = (Stretch){ .step = 1, .n = p->n, .other = p->offset, .place = place };
    for (int w = p->nest.n - 1; w >= 0; w--) {
        const MtfWindowLoop *loop = &p->nest.loop[w];
        int64_t here = place % loop->places;
        place /= loop->places;
        if (w == p->inner) {
            find_inner_windows(p, here, s);
            continue;
        }
        int64_t other = p->back ? mtf_window_small(loop, p->at[w], here)
                                : mtf_window_large(loop, p->at[w], here);
        if (other < 0)
            return false;
        s->other += other * (p->back ? loop->small.stride : loop->large.stride);
    }
    if (p->inner < 0) {
        s->other += p->begin * p->step[last];
        s->other_step = p->step[last];
    }
    return s->n > 0;
}

/* The number of the chunk's first element in the result. */
static int64_t chunk_number(const Pool *p) {
    int64_t number = 0;
    for (int i = 0; i < p->made->rank - 1; i++)
        number = (number + p->index[i]) * p->made->size[i + 1];
    return number + p->begin;
}

/* ---- Counts -------------------------------------------------------------------------------- */

/* Elements that window `small`, counted in the whole tensor, has along one window: those in the
 * tensor, or with padding those up to its end. */
static int64_t elements_of(const MtfWindowLoop *loop, int64_t small, bool counted) {
    int64_t first = small * loop->stride - loop->before;
    int64_t low = counted ? -loop->before : 0;
    int64_t high = loop->large.global + (counted ? loop->after : 0);
    int64_t from = divide_up(low - first, loop->dilation);
    int64_t end = MIN(loop->places, divide_up(high - first, loop->dilation));
    return MAX(end - from, 0);
}

/* What the elements of this place's windows are multiplied with, the inner window aside. */
static double share_of(const Pool *p, int64_t place, bool counted) {
    int64_t n = 1;
    for (int w = p->nest.n - 1; w >= 0; w--) {
        const MtfWindowLoop *loop = &p->nest.loop[w];
        int64_t small = w == p->inner ? 0
                        : p->back     ? mtf_window_small(loop, p->at[w], place % loop->places)
                                      : p->at[w];
        place /= loop->places;
        n *= w == p->inner ? 1 : elements_of(loop, loop->small.begin + small, counted);
    }
    return n > 0 ? 1 / (double)n : 0;
}

/* The shares of windows over the last dimension from `first` on, in `shares`; NULL where no window
 * goes over it. */
static double *inner_shares(const Pool *p, int64_t first, int64_t n, bool counted, double *shares) {
    if (p->inner < 0)
        return NULL;
    const MtfWindowLoop *loop = &p->nest.loop[p->inner];
    for (int64_t i = 0; i < n; i++) {
        int64_t elements = elements_of(loop, loop->small.begin + first + i, counted);
        shares[i] = elements > 0 ? 1 / (double)elements : 0;
    }
    return shares;
}

/* ---- Loops for each type ------------------------------------------------------------------- */

/* What a type's loops do with the stretches of a chunk. Sums and the largest are of `wide`. */
typedef struct {
    void (*take_larger)(void *largest, int32_t *index, const void *x, const Stretch *s);
    void (*add_chosen)(void *sums, const void *dy, const int32_t *index, const Stretch *s);
    void (*add)(void *sums, const void *x, const double *shares, double share, const Stretch *s);
    void (*store)(void *out, const void *sums, const double *shares, double share, int64_t n);
    void (*clear)(void *sums, double value, int64_t n);
} Loops;

#define AS_IT_IS(x) (x)

/* `body` for each element i of a stretch, written once for neighbours, which a compiler makes vectors
 * of, and once for others. */
#define EACH_OF(s, body)                                                           \
    if ((s)->other_step == 1 && (s)->step == 1)                                    \
        MTF_INDEPENDENT                                                            \
    for (int64_t i = 0; i < (s)->n; i++) {                                         \
        const int64_t to = (s)->first + i, from = i;                               \
        body;                                                                      \
    }                                                                              \
    else for (int64_t i = 0; i < (s)->n; i++) {                                    \
        const int64_t to = (s)->first + i * (s)->step, from = i * (s)->other_step; \
        body;                                                                      \
    }

/* A NaN is the largest, the first of them. */
#define POOL_LOOPS(name, wide, type, read, round)                                                  \
    MTF_EACH_VECTOR_UNIT static void take_larger_##name(void *largest, int32_t *index,             \
                                                        const void *other, const Stretch *s) {     \
        wide *best = largest;                                                                      \
        const type *x = other;                                                                     \
        int32_t place = (int32_t)s->place;                                                         \
        EACH_OF(s, wide value = read(x[from]); wide old = best[to];                                \
                bool better = (value > old) | ((value != value) & (old == old));                   \
                best[to] = better ? value : old; index[to] = better ? place : index[to])           \
    }                                                                                              \
    MTF_EACH_VECTOR_UNIT static void add_chosen_##name(void *sums, const void *other,              \
                                                       const int32_t *index, const Stretch *s) {   \
        wide *sum = sums;                                                                          \
        const type *dy = other;                                                                    \
        int32_t place = (int32_t)s->place;                                                         \
        EACH_OF(s, sum[to] += index[from] == place ? read(dy[from]) : 0)                           \
    }                                                                                              \
    MTF_EACH_VECTOR_UNIT static void add_##name(                                                   \
        void *sums, const void *other, const double *shares, double share, const Stretch *s) {     \
        wide *sum = sums, all = (wide)share;                                                       \
        const type *x = other;                                                                     \
        if (shares == NULL) {                                                                      \
            EACH_OF(s, sum[to] += read(x[from]) * all)                                             \
        } else {                                                                                   \
            EACH_OF(s, sum[to] += read(x[from]) * (all * (wide)shares[i]))                         \
        }                                                                                          \
    }                                                                                              \
    MTF_EACH_VECTOR_UNIT static void store_##name(void *out, const void *sums,                     \
                                                  const double *shares, double share, int64_t n) { \
        const wide *sum = sums;                                                                    \
        wide all = (wide)share;                                                                    \
        type *to = out;                                                                            \
        for (int64_t i = 0; i < n && shares == NULL; i++)                                          \
            to[i] = round(sum[i] * all);                                                           \
        for (int64_t i = 0; i < n && shares != NULL; i++)                                          \
            to[i] = round(sum[i] * (all * (wide)shares[i]));                                       \
    }                                                                                              \
    static void clear_##name(void *sums, double value, int64_t n) {                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((wide *)sums)[i] = (wide)value;                                                       \
    }                                                                                              \
    static const Loops loops_##name = { take_larger_##name, add_chosen_##name, add_##name,         \
                                        store_##name, clear_##name };

POOL_LOOPS(f32, float, float, AS_IT_IS, AS_IT_IS)
POOL_LOOPS(f64, double, double, AS_IT_IS, AS_IT_IS)
POOL_LOOPS(bf16, float, uint16_t, mtf_bf16_wide, mtf_bf16_rounded)

static const Loops *loops_of(const MtfOperand *operand) {
    return operand->dtype == MTF_F64    ? &loops_f64
           : operand->dtype == MTF_BF16 ? &loops_bf16
                                        : &loops_f32;
}

/* ---- Kernels ------------------------------------------------------------------------------- */

static void max_pool_kernel(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    const Loops *loops = loops_of(p.made);
    double largest[CHUNK];
    while (next_chunk(&p)) {
        int64_t number = chunk_number(&p);
        int32_t *index = mtf_operand_at(&call->outputs[1], number);
        Stretch s;
        loops->clear(largest, -INFINITY, p.n);
        memset(index, 0, (size_t)p.n * sizeof *index);
        for (int64_t place = 0; place < p.places; place++)
            if (find_stretch(&p, place, &s))
                loops->take_larger(largest, index, mtf_operand_at(p.read, s.other), &s);
        loops->store(mtf_operand_at(p.made, number), largest, NULL, 1, p.n);
    }
}

static void max_pool_grad_kernel(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    const Loops *loops = loops_of(p.made);
    double sums[CHUNK];
    while (next_chunk(&p)) {
        Stretch s;
        loops->clear(sums, 0, p.n);
        for (int64_t place = 0; place < p.places; place++)
            if (find_stretch(&p, place, &s))
                loops->add_chosen(sums, mtf_operand_at(p.read, s.other),
                                  mtf_operand_at(&call->inputs[0], s.other), &s);
        loops->store(mtf_operand_at(p.made, chunk_number(&p)), sums, NULL, 1, p.n);
    }
}

static void average_pool_kernel(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    const Loops *loops = loops_of(p.made);
    bool counted = call->operation->attributes.counted != 0;
    double sums[CHUNK], shares[CHUNK];
    while (next_chunk(&p)) {
        Stretch s;
        loops->clear(sums, 0, p.n);
        for (int64_t place = 0; place < p.places; place++)
            if (find_stretch(&p, place, &s))
                loops->add(sums, mtf_operand_at(p.read, s.other), NULL, 1, &s);
        loops->store(mtf_operand_at(p.made, chunk_number(&p)), sums,
                     inner_shares(&p, p.begin, p.n, counted, shares), share_of(&p, 0, counted),
                     p.n);
    }
}

static void average_pool_grad_kernel(const MtfKernelCall *call) {
    Pool p = pool_of(call);
    const Loops *loops = loops_of(p.made);
    bool counted = call->operation->attributes.counted != 0;
    double sums[CHUNK], shares[CHUNK];
    while (next_chunk(&p)) {
        Stretch s;
        loops->clear(sums, 0, p.n);
        for (int64_t place = 0; place < p.places; place++)
            if (find_stretch(&p, place, &s))
                loops->add(sums, mtf_operand_at(p.read, s.other),
                           inner_shares(&p, s.window, s.n, counted, shares),
                           share_of(&p, place, counted), &s);
        loops->store(mtf_operand_at(p.made, chunk_number(&p)), sums, NULL, 1, p.n);
    }
}

const MtfKernelRow mtf_pool_kernels[] = {
    { .kind = MTF_OP_MAX_POOL, .kernel = max_pool_kernel },
    { .kind = MTF_OP_AVERAGE_POOL, .kernel = average_pool_kernel },
    { .kind = MTF_OP_MAX_POOL_GRAD, .kernel = max_pool_grad_kernel },
    { .kind = MTF_OP_AVERAGE_POOL_GRAD, .kernel = average_pool_grad_kernel },
    { .kernel = NULL },
};
