// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_cache.h"

#include "runtime/kernels/base/kernel_nest.h"

#include <string.h>

/* One example's head: where its rows lie, in elements. */
typedef struct {
    int64_t from, to, position;
} Place;

/* How rows follow one another: `run` elements of each lie together in both. */
typedef struct {
    const MtfOperand *x, *cache;
    int64_t tokens, from_stride;
    int64_t rows, first_row, to_stride;
    int64_t run;
} Rows;

static void copy_rows(const Rows *r, const Place *place) {
    size_t bytes = (size_t)(r->run * mtf_dtype_bytes(r->x->dtype));
    for (int64_t t = 0; t < r->tokens; t++) {
        int64_t row = place->position + t - r->first_row;
        if (row >= 0 && row < r->rows)
            memcpy(mtf_operand_at(r->cache, place->to + row * r->to_stride),
                   mtf_operand_at(r->x, place->from + t * r->from_stride), bytes);
    }
}

static void cache_update_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperand *x = &call->inputs[0], *old = &call->inputs[1], *position = &call->inputs[2];
    const MtfOperand *out = &call->outputs[0];
    int from = mtf_operand_find(x, a->from), to = mtf_operand_find(out, a->to);
    int last = x->rank - 1;
    bool runs = last != from && x->dims[last] == out->dims[out->rank - 1];
    Rows rows = { x,
                  out,
                  x->size[from],
                  mtf_operand_stride(x, from),
                  out->size[to],
                  out->begin[to],
                  mtf_operand_stride(out, to),
                  runs ? x->size[last] : 1 };
    if (out->data != old->data)
        memcpy(out->data, old->data,
               (size_t)(mtf_operand_elements(out) * mtf_dtype_bytes(out->dtype)));
    MtfOperand others = mtf_operand_without(x, a->from);
    others.rank -= runs;
    MtfNest nest;
    mtf_nest_over(&nest, &others, 3, (const MtfOperand *[]){ x, out, position });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++) {
            Place place = { mtf_nest_at(&nest, 0, i), mtf_nest_at(&nest, 1, i),
                            ((const int32_t *)position->data)[mtf_nest_at(&nest, 2, i)] };
            copy_rows(&rows, &place);
        }
}

const MtfKernelRow mtf_cache_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_CACHE_UPDATE, cache_update_kernel, { "rc", "tc", "#" }, "tc",
                     MTF_SECOND_KEPT),
    { .kernel = NULL },
};
