// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_top_k.h"

#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>

/* What a row is chosen of: n elements, in blocks of so many that lie `apart`, from element `first` on. */
typedef struct {
    const MtfOperand *values;
    const int32_t *places; /* of candidates, -1 where there is none; NULL: they are all elements */
    int64_t first, n, block, apart, step;
} Elements;

static int64_t at(const Elements *e, int64_t i) {
    return e->first + i / e->block * e->apart + i % e->block * e->step;
}

static bool is_missing(const Elements *e, int64_t i) {
    return e->places != NULL && e->places[at(e, i)] < 0;
}

/* Whether element `i` comes before element `j`: it is larger, or as large and earlier; NaN is larger than all. */
static bool comes_before(const Elements *e, int64_t i, int64_t j) {
    if (is_missing(e, i) || is_missing(e, j))
        return is_missing(e, i) == is_missing(e, j) ? i < j : is_missing(e, j);
    double x = mtf_slice_get(e->values, at(e, i)), y = mtf_slice_get(e->values, at(e, j));
    bool alike = x == y || (isnan(x) && isnan(y));
    return alike ? i < j : x > y || isnan(x);
}

/* The element that comes next after element `last`; the first of all after -1. */
static int64_t next_largest(const Elements *e, int64_t last) {
    int64_t best = -1;
    for (int64_t i = 0; i < e->n; i++)
        if ((last < 0 || comes_before(e, last, i)) && (best < 0 || comes_before(e, i, best)))
            best = i;
    return MAX(best, 0);
}

/* The elements that are kept, in the row of the result: a heap under the one that comes last. */
typedef struct {
    const Elements *of;
    int32_t *kept;   /* of the row, in the result */
    int64_t n, step; /* of those */
} Heap;

static int32_t *kept_at(const Heap *heap, int64_t i) {
    return &heap->kept[i * heap->step];
}

/* Lets element `place` sink from the heap's top, or what lies below it, to where it belongs. */
static void sink(const Heap *heap, int64_t from, int64_t place) {
    for (int64_t below = 2 * from + 1; below < heap->n; below = 2 * from + 1) {
        if (below + 1 < heap->n &&
            comes_before(heap->of, *kept_at(heap, below), *kept_at(heap, below + 1)))
            below++;
        if (!comes_before(heap->of, place, *kept_at(heap, below)))
            break;
        *kept_at(heap, from) = *kept_at(heap, below);
        from = below;
    }
    *kept_at(heap, from) = (int32_t)place;
}

/* Fills the heap with what comes first of all elements behind `bar` (-1: of all). */
static void keep_first(Heap *heap, int64_t most, int64_t bar) {
    heap->n = 0;
    for (int64_t i = 0; i < heap->of->n; i++) {
        if (bar >= 0 && !comes_before(heap->of, bar, i))
            continue;
        if (heap->n < most) {
            *kept_at(heap, heap->n++) = (int32_t)i;
            for (int64_t k = heap->n / 2 - 1; heap->n == most && k >= 0; k--)
                sink(heap, k, *kept_at(heap, k));
        } else if (comes_before(heap->of, i, *kept_at(heap, 0))) {
            sink(heap, 0, i);
        }
    }
}

/* Takes the heap down from its end: what came last at each time comes to lie there. */
static void order(Heap *heap) {
    while (heap->n > 1) {
        int32_t last = *kept_at(heap, 0), place = *kept_at(heap, heap->n - 1);
        heap->n--;
        sink(heap, 0, place);
        *kept_at(heap, heap->n) = last;
    }
}

/* A row of a result: so many elements from `first` on, the `skipped` largest being others'. */
typedef struct {
    const MtfOperand *values;
    int32_t *places;
    int64_t first, n, step, skipped;
} Chosen;

/* The largest of all elements in their order, as numbers among these; of fewer elements than are wanted the heap's
 * order is made once it is known that there are no more. Returns how many there are. */
static int64_t choose(const Elements *e, const Chosen *chosen) {
    Heap heap = { .of = e, .kept = chosen->places + chosen->first, .step = chosen->step };
    int64_t n = MIN(chosen->n, e->n - chosen->skipped), bar = -1;
    for (int64_t k = 0; k < chosen->skipped; k++)
        bar = next_largest(e, bar);
    keep_first(&heap, n, bar);
    order(&heap);
    return n;
}

/* Puts values beside the numbers, and the places of `begin` and more in these's stead; what is lacking behind them has
 * none. */
static void write_chosen(const Elements *e, const Chosen *chosen, int64_t n, int64_t begin) {
    for (int64_t k = 0; k < chosen->n; k++) {
        int64_t there = chosen->first + k * chosen->step;
        int64_t i = k < n ? at(e, chosen->places[there]) : 0;
        mtf_slice_set(chosen->values, there, k < n ? mtf_slice_get(e->values, i) : 0);
        chosen->places[there] = k >= n              ? -1
                                : e->places != NULL ? e->places[i]
                                                    : (int32_t)(begin + chosen->places[there]);
    }
}

/* A slice seen along a dimension. */
typedef struct {
    int64_t outer, along, inner, begin;
} Lines;

static Lines lines_of(const MtfOperand *operand, int dim) {
    Lines lines = { 1, 1, 1, 0 };
    int position = mtf_operand_find(operand, dim);
    for (int i = 0; i < operand->rank; i++)
        *(i < position    ? &lines.outer
          : i == position ? &lines.along
                          : &lines.inner) *= operand->size[i];
    lines.begin = operand->begin[position];
    return lines;
}

/* Row (o, i) of what is given: of the input, or of all parts' candidates, [parts, rows, candidates]. */
static Elements elements_of(const MtfKernelCall *call, const Lines *in, int64_t o, int64_t i) {
    const MtfOperand *values = &call->inputs[0];
    if (call->part < 2)
        return (Elements){ .values = values,
                           .first = o * in->along * in->inner + i,
                           .n = in->along,
                           .block = MAX(in->along, 1),
                           .step = in->inner };
    int64_t block = in->along / call->columns;
    return (Elements){ .values = values,
                       .places = (const int32_t *)call->inputs[1].data,
                       .first = (o * in->inner + i) * block,
                       .n = in->along,
                       .block = block,
                       .apart = in->outer * in->inner * block,
                       .step = 1 };
}

/* Row (o, i) of the result, or of the own candidates, [rows, candidates]. */
static Chosen chosen_of(const MtfKernelCall *call, const Lines *out, int64_t o, int64_t i) {
    bool own = call->part == 1;
    return (Chosen){ .values = &call->outputs[0],
                     .places = (int32_t *)call->outputs[1].data,
                     .first =
                         own ? (o * out->inner + i) * out->along : o * out->along * out->inner + i,
                     .n = out->along,
                     .step = own ? 1 : out->inner,
                     .skipped = own ? 0 : out->begin };
}

static void top_k_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    Lines in = lines_of(&call->inputs[0], call->part == 2 ? a->to : a->from);
    Lines out = lines_of(&call->outputs[0], a->to);
    for (int64_t o = 0; o < out.outer && out.along > 0; o++)
        for (int64_t i = 0; i < out.inner; i++) {
            Elements elements = elements_of(call, &in, o, i);
            Chosen chosen = chosen_of(call, &out, o, i);
            write_chosen(&elements, &chosen, choose(&elements, &chosen), in.begin);
        }
}

const MtfKernelRow mtf_top_k_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_TOP_K, top_k_kernel, { "rc" }, NULL, MTF_SLOW),
    { .kernel = NULL },
};
