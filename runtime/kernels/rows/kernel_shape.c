// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_shape.h"

#include "layouts/graph/random.h"
#include "layouts/graph/reshape.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>
#include <string.h>

/* A slice seen along one of its dimensions; without it, as one element along it. */
typedef struct {
    const MtfOperand *operand;
    int64_t outer, along, inner;
    int64_t begin, global; /* along the dimension: first index held, size of the whole */
    int64_t bytes;         /* of an element */
} Runs;

static Runs runs_at(const MtfOperand *operand, int position) {
    Runs runs = { operand, 1, 1, 1, 0, 1, mtf_dtype_bytes(operand->dtype) };
    for (int i = 0; i < operand->rank; i++)
        *(i < position    ? &runs.outer
          : i == position ? &runs.along
                          : &runs.inner) *= operand->size[i];
    if (position < operand->rank) {
        runs.begin = operand->begin[position];
        runs.global = operand->global[position];
    }
    return runs;
}

static Runs runs_of(const MtfOperand *operand, int dim) {
    return runs_at(operand, mtf_operand_find(operand, dim));
}

static char *run_at(const Runs *runs, int64_t outer, int64_t at) {
    return mtf_operand_at(runs->operand, (outer * runs->along + at) * runs->inner);
}

/* The element of the input that element `t` of the result is, or -1. */
static int64_t source_of(const MtfAttributes *a, int64_t t, int64_t size) {
    int64_t dilation = (int64_t)a->dilation, at = (int64_t)a->start + (int64_t)a->stride * t;
    if (a->wrap != 0)
        return (at % size + size) % size;
    if (at % dilation != 0)
        return -1;
    at /= dilation;
    return at < 0 || at >= size ? -1 : at;
}

/* Whether place t of the result is held; `at` is where. What is held of an input that turns may go on behind
 * its end. */
static bool is_held(const MtfAttributes *a, const Runs *in, const Runs *out, int64_t t,
                    int64_t *at) {
    *at = source_of(a, out->begin + t, in->global) - in->begin;
    if (a->wrap != 0 && *at < 0)
        *at += in->global;
    return *at >= 0 && *at < in->along;
}

/* Places from t on that lie side by side in the input as well, or that it has none of. */
static int64_t count_neighbours(const MtfAttributes *a, const Runs *in, const Runs *out,
                                int64_t t) {
    int64_t first, at, n = 1;
    bool held = is_held(a, in, out, t, &first);
    while (t + n < out->along && is_held(a, in, out, t + n, &at) == held &&
           (!held || at == first + n))
        n++;
    return n;
}

static void resample_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    Runs in = runs_of(&call->inputs[0], a->from), out = runs_of(&call->outputs[0], a->to);
    int64_t at, n;
    for (int64_t t = 0; t < out.along; t += n) {
        bool held = is_held(a, &in, &out, t, &at);
        n = count_neighbours(a, &in, &out, t);
        size_t bytes = (size_t)(n * out.inner * out.bytes);
        for (int64_t o = 0; o < out.outer && bytes > 0; o++)
            if (held)
                memcpy(run_at(&out, o, t), run_at(&in, o, at), bytes);
            else
                memset(run_at(&out, o, t), 0, bytes);
    }
}

/* The place along `out` of what the input has in its stead. */
static Runs joined_runs(const MtfOperand *in, const MtfOperand *out, int position) {
    if (in->rank == out->rank)
        return runs_at(in, position);
    Runs runs = runs_at(in, in->rank);
    runs.outer = runs.inner = 1;
    for (int i = 0; i < in->rank; i++)
        *(i < position ? &runs.outer : &runs.inner) *= in->size[i];
    return runs;
}

/* Copies what both hold, `offset` being where the input begins in the whole result. */
static void copy_common(const Runs *out, const Runs *in, int64_t offset) {
    int64_t first = MAX(out->begin, offset + in->begin);
    int64_t n = MIN(out->begin + out->along, offset + in->begin + in->along) - first;
    size_t bytes = (size_t)(MAX(n, 0) * out->inner * out->bytes);
    for (int64_t o = 0; o < out->outer && bytes > 0; o++)
        memcpy(run_at(out, o, first - out->begin), run_at(in, o, first - offset - in->begin),
               bytes);
}

static void concat_kernel(const MtfKernelCall *call) {
    const MtfOperand *operand = &call->outputs[0];
    int to = mtf_joined_input(call->graph, call->operation, 0).to;
    int position = mtf_operand_find(operand, to);
    Runs out = runs_at(operand, position);
    int64_t offset = 0;
    for (int k = 0; k < call->operation->n_inputs; k++) {
        Runs in = joined_runs(&call->inputs[k], operand, position);
        copy_common(&out, &in, offset);
        offset += in.global;
    }
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static void copy_all(const MtfOperand *to, const MtfOperand *from) {
    int64_t bytes = mtf_slice_elements(to) * mtf_dtype_bytes(to->dtype);
    if (bytes > 0 && to->data != from->data)
        memcpy(to->data, from->data, (size_t)bytes);
}

static void loop_begin_kernel(const MtfKernelCall *call) {
    copy_all(&call->outputs[0], &call->inputs[0]);
}

static void loop_next_kernel(const MtfKernelCall *call) {
    copy_all(&call->outputs[0], &call->inputs[1]);
}

/* Between the loop's element along `many`, which nobody splits, and `one`, which is that element. */
static void copy_element(const MtfKernelCall *call, const MtfOperand *many, const MtfOperand *one,
                         bool stacks) {
    Runs runs = runs_of(many, call->operation->attributes.dimension);
    size_t bytes = (size_t)(runs.inner * runs.bytes);
    for (int64_t o = 0; o < runs.outer && bytes > 0; o++) {
        char *there = run_at(&runs, o, call->element), *here = mtf_operand_at(one, o * runs.inner);
        memcpy(stacks ? there : here, stacks ? here : there, bytes);
    }
}

static void loop_slice_kernel(const MtfKernelCall *call) {
    copy_element(call, &call->inputs[0], &call->outputs[0], false);
}

static void loop_stack_kernel(const MtfKernelCall *call) {
    copy_element(call, &call->outputs[0], &call->inputs[0], true);
}

/* ---- Scans ----------------------------------------------------------------------------------- */

/* In double, which holds every int32 and sums float32 more exactly than it is stored. */
static void scan(const Runs *out, const Runs *in, int64_t first, const MtfAttributes *a,
                 double sum) {
    for (int64_t i = 0; i < out->along; i++) {
        int64_t at = first + (a->reverse != 0 ? out->along - 1 - i : i) * out->inner;
        double x = mtf_slice_get(in->operand, at);
        double next = sum + x;
        mtf_slice_set(out->operand, at, a->exclusive != 0 ? sum : next);
        sum = next;
    }
}

/* The same of int64, which double does not hold. */
static void scan_i64(const Runs *out, const Runs *in, int64_t first, const MtfAttributes *a,
                     uint64_t sum) {
    for (int64_t i = 0; i < out->along; i++) {
        int64_t at = first + (a->reverse != 0 ? out->along - 1 - i : i) * out->inner;
        uint64_t next = sum + ((const uint64_t *)in->operand->data)[at];
        ((uint64_t *)out->operand->data)[at] = a->exclusive != 0 ? sum : next;
        sum = next;
    }
}

/* Elements from `first` on, `step` apart, added up: as double, or of int64 as what wraps round. */
typedef struct {
    double sum;
    uint64_t whole;
} Total;

static Total total_of(const MtfOperand *operand, int64_t first, int64_t n, int64_t step) {
    Total total = { 0 };
    for (int64_t k = 0; k < n; k++)
        if (operand->dtype == MTF_I64)
            total.whole += ((const uint64_t *)operand->data)[first + k * step];
        else
            total.sum += mtf_slice_get(operand, first + k * step);
    return total;
}

/* How many elements a total takes. */
static int64_t places_of(const MtfKernelCall *call, const MtfOperand *told) {
    return runs_of(told, call->operation->attributes.dimension).along / call->columns;
}

/* Puts a total into n elements from `first` on: each is what those before it leave of it, rounded. */
static void put_total(const MtfOperand *out, int64_t first, int64_t n, Total total) {
    if (out->dtype == MTF_I64)
        ((uint64_t *)out->data)[first] = total.whole;
    for (int64_t k = 0; k < n && out->dtype != MTF_I64; k++) {
        mtf_slice_set(out, first + k, total.sum);
        double told = mtf_slice_get(out, first + k);
        total.sum = isfinite(told) ? total.sum - told : 0;
    }
}

/* Tells every part of the dimension the totals of this one: a block of `rows` to each. */
static void give_totals(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    Runs in = runs_of(&call->inputs[0], call->operation->attributes.dimension);
    int64_t rows = in.outer * in.inner, n = places_of(call, out);
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = row / in.inner * in.along * in.inner + row % in.inner;
        Total total = total_of(in.operand, first, in.along, in.inner);
        for (int64_t part = 0; part < call->columns; part++)
            put_total(out, (part * rows + row) * n, n, total);
    }
}

/* Of the parts before this one, or with `reverse` behind it, which told theirs. */
static Total total_before(const MtfKernelCall *call, int64_t rows, int64_t row) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperand *told = &call->inputs[1];
    Total all = { 0 };
    if (call->part == 0)
        return all;
    int64_t n = places_of(call, told);
    int64_t own = told->begin[mtf_operand_find(told, a->dimension)] / (n * call->columns);
    int64_t end = a->reverse != 0 ? call->columns : own;
    for (int64_t part = a->reverse != 0 ? own + 1 : 0; part < end; part++) {
        Total total = total_of(told, (part * rows + row) * n, n, 1);
        all.sum += total.sum;
        all.whole += total.whole;
    }
    return all;
}

static void cumulative_sum_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    if (call->part == 1) {
        give_totals(call);
        return;
    }
    Runs out = runs_of(&call->outputs[0], a->dimension),
         in = runs_of(&call->inputs[0], a->dimension);
    int64_t rows = out.outer * out.inner;
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = row / out.inner * out.along * out.inner + row % out.inner;
        Total before = total_before(call, rows, row);
        if (out.operand->dtype == MTF_I64)
            scan_i64(&out, &in, first, a, before.whole);
        else
            scan(&out, &in, first, a, before.sum);
    }
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static MtfRandom stream_of(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    const char *name = a->stream != NULL ? a->stream : call->operation->name;
    return mtf_random_stream(call->seed, name,
                             mtf_random_step((uint64_t)MAX(call->step, 1) - 1, call->element));
}

static void random_uniform_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperand *out = &call->outputs[0];
    MtfRandom random = stream_of(call);
    for (int64_t i = 0; i < mtf_slice_elements(out); i++)
        mtf_slice_set(out, i,
                      a->low + (a->high - a->low) *
                                   mtf_random_uniform(&random, mtf_slice_global_index(out, i)));
}

static void random_normal_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperand *out = &call->outputs[0];
    MtfRandom random = stream_of(call);
    for (int64_t i = 0; i < mtf_slice_elements(out); i++)
        mtf_slice_set(out, i,
                      a->mean + a->deviation *
                                    mtf_random_normal(&random, mtf_slice_global_index(out, i)));
}

const MtfKernelRow mtf_shape_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_RESAMPLE, resample_kernel, { "rc" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_CONCAT, concat_kernel, { "rc" }, "tc", MTF_FIRST_KEPT),
    { .kind = MTF_OP_LOOP_BEGIN, .kernel = loop_begin_kernel },
    { .kind = MTF_OP_LOOP_NEXT, .kernel = loop_next_kernel },
    { .kind = MTF_OP_LOOP_SLICE, .kernel = loop_slice_kernel },
    { .kind = MTF_OP_LOOP_STACK, .kernel = loop_stack_kernel },
    MTF_TIMED_KERNEL(MTF_OP_RANDOM_UNIFORM, random_uniform_kernel, { NULL }, "rc",
                     MTF_SLOW_FROM_NOTHING),
    MTF_TIMED_KERNEL(MTF_OP_RANDOM_NORMAL, random_normal_kernel, { NULL }, "rc",
                     MTF_SLOW_FROM_NOTHING),
    MTF_TIMED_KERNEL(MTF_OP_CUMULATIVE_SUM, cumulative_sum_kernel, { "rk" }, NULL, MTF_SLOW),
    { .kernel = NULL },
};
