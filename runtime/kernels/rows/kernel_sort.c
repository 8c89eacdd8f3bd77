// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_sort.h"

#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>
#include <string.h>

/* What is sorted: an element and where it stood; below 0 where there is none, which comes last. */
typedef struct {
    double value;
    int64_t place;
} Element;

typedef struct {
    bool by_place, reverse;
} Order;

/* ---- Merging ------------------------------------------------------------------------------- */

/* Below, at or above 0 as x comes before y, with it or behind it: what is no number is the largest. */
static int compare_values(double x, double y) {
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

static bool comes_before(const Order *order, const Element *a, const Element *b) {
    if (a->place < 0 || b->place < 0)
        return b->place < 0 && a->place >= 0;
    int by_value = order->by_place ? 0 : compare_values(a->value, b->value);
    if (by_value != 0)
        return order->reverse ? by_value > 0 : by_value < 0;
    return a->place < b->place;
}

/* Where the run that begins at `begin` ends. */
static int64_t end_of_run(const Order *order, const Element *elements, int64_t begin, int64_t n) {
    int64_t end = MIN(begin + 1, n);
    while (end < n && !comes_before(order, &elements[end], &elements[end - 1]))
        end++;
    return end;
}

static void merge(const Order *order, const Element *from, int64_t middle, int64_t end,
                  Element *to) {
    int64_t a = 0, b = middle;
    for (int64_t i = 0; i < end; i++)
        to[i] = b == end || (a < middle && !comes_before(order, &from[b], &from[a])) ? from[a++]
                                                                                     : from[b++];
}

/* The n elements in order: where they were, or in `spare`. */
static Element *sorted(const Order *order, Element *elements, Element *spare, int64_t n) {
    while (end_of_run(order, elements, 0, n) < n) {
        for (int64_t begin = 0, end; begin < n; begin = end) {
            int64_t middle = end_of_run(order, elements, begin, n);
            end = middle < n ? end_of_run(order, elements, middle, n) : n;
            merge(order, elements + begin, middle - begin, end - begin, spare + begin);
        }
        Element *merged = spare;
        spare = elements;
        elements = merged;
    }
    return elements;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* A slice seen along the dimension: element t of row r stands `inner` apart. */
typedef struct {
    const MtfOperand *operand;
    int64_t rows, along, inner, begin;
} Lines;

static Lines lines_of(const MtfOperand *operand, int dim) {
    Lines lines = { operand, 1, 1, 1, 0 };
    int position = mtf_operand_find(operand, dim);
    for (int i = 0; i < operand->rank; i++) {
        lines.rows *= i == position ? 1 : operand->size[i];
        lines.inner *= i > position ? operand->size[i] : 1;
    }
    lines.along = operand->size[position];
    lines.begin = operand->begin[position];
    return lines;
}

static int64_t line_at(const Lines *lines, int64_t row, int64_t t) {
    return (row / lines->inner * lines->along + t) * lines->inner + row % lines->inner;
}

/* Place `slot` of a row of a column, in blocks of `block`. */
static int64_t slot_at(int64_t rows, int64_t row, int64_t block, int64_t slot) {
    return (slot / block * rows + row) * block + slot % block;
}

/* What a call works with: two lists in its scratch, and the order of its operation. */
typedef struct {
    const MtfKernelCall *call;
    Order order;
    int64_t rows, column, blocks; /* blocks: of the columns that are read */
    int64_t index;                /* of the own column */
    Element *elements, *spare;
} Work;

/* Elements [begin, end) of a row of a column. */
static int64_t read_slots(const Work *w, const MtfOperand *columns, int64_t row, int64_t begin,
                          int64_t end, int64_t n) {
    for (int64_t slot = begin; slot < end; slot++) {
        int64_t at = slot_at(w->rows, row, w->column / w->blocks, slot);
        w->elements[n++] =
            (Element){ mtf_slice_get(&columns[0], at), (int64_t)mtf_slice_get(&columns[1], at) };
    }
    return n;
}

/* A row of the columns that are made, in as many blocks; dealt out, each block gets every blocks-th. */
static void write_slots(const Work *w, const Element *elements, int64_t row, int64_t blocks,
                        bool dealt) {
    int64_t block = w->column / blocks;
    for (int64_t i = 0; i < w->column; i++) {
        int64_t slot = dealt ? i % blocks * block + i / blocks : i;
        int64_t at = slot_at(w->rows, row, block, slot);
        mtf_slice_set(&w->call->outputs[0], at, elements[i].value);
        mtf_slice_set(&w->call->outputs[1], at, (double)elements[i].place);
    }
}

/* ---- Kernels ------------------------------------------------------------------------------- */

/* Elements and their places as they are given: of a gradient both, else these are where they stand. */
static int64_t read_line(const Work *w, int64_t row) {
    const MtfKernelCall *call = w->call;
    bool back = w->order.by_place;
    Lines lines = lines_of(&call->inputs[back], call->operation->attributes.dimension);
    for (int64_t t = 0; t < lines.along; t++) {
        int64_t at = line_at(&lines, row, t);
        w->elements[t] =
            (Element){ mtf_slice_get(lines.operand, at),
                       back ? (int64_t)mtf_slice_get(&call->inputs[0], at) : lines.begin + t };
    }
    return lines.along;
}

/* The part of the result, in a list whose first element has place `begin` of all. */
static void write_line(const Work *w, const Element *elements, int64_t row, int64_t begin) {
    const MtfKernelCall *call = w->call;
    Lines lines = lines_of(&call->outputs[0], call->operation->attributes.dimension);
    for (int64_t t = 0; t < lines.along; t++) {
        const Element *element = &elements[lines.begin + t - begin];
        mtf_slice_set(lines.operand, line_at(&lines, row, t), element->value);
        if (!w->order.by_place)
            mtf_slice_set(&call->outputs[1], line_at(&lines, row, t), (double)element->place);
    }
}

static void sort_given(const Work *w, int64_t row) {
    int64_t n = read_line(w, row);
    for (; n < w->column; n++)
        w->elements[n] = (Element){ 0, -1 };
    write_slots(w, sorted(&w->order, w->elements, w->spare, n), row, w->call->columns, true);
}

static void sort_received(const Work *w, int64_t row) {
    int64_t n = read_slots(w, w->call->inputs, row, 0, w->column, 0);
    write_slots(w, sorted(&w->order, w->elements, w->spare, n), row,
                w->call->part == 2 ? w->call->columns : 2, false);
}

/* Of the neighbours the half that is next to the own column. */
static void sort_with_neighbours(const Work *w, int64_t row) {
    const MtfOperand *own = w->call->inputs, *others = own + 2;
    int64_t half = w->column / 2, before = w->index > 0 ? half : 0, n = 0;
    n = read_slots(w, others, row, 0, before, n);
    n = read_slots(w, own, row, 0, w->column, n);
    if (w->index + 1 < w->call->columns)
        n = read_slots(w, others, row, half, w->column, n);
    write_line(w, sorted(&w->order, w->elements, w->spare, n), row, w->index * w->column - before);
}

static void sort_all(const Work *w, int64_t row) {
    int64_t n = read_line(w, row);
    write_line(w, sorted(&w->order, w->elements, w->spare, n), row, 0);
}

static void sort_rows(const MtfKernelCall *call, bool back) {
    int dim = call->operation->attributes.dimension;
    const MtfOperand *column = call->part == 4 ? &call->inputs[0] : &call->outputs[0];
    Lines lines = lines_of(column, dim);
    Work w = { .call = call,
               .order = { back, call->operation->attributes.reverse != 0 && !back },
               .rows = lines.rows,
               .column = call->part > 0 ? lines.along : 0,
               .blocks = call->part == 4 ? 2 : MAX(call->columns, 1),
               .index = call->part > 0 ? lines.begin / MAX(lines.along, 1) : 0,
               .elements = call->scratch,
               .spare =
                   (Element *)call->scratch + call->scratch_bytes / 2 / (int64_t)sizeof(Element) };
    static void (*const parts[])(const Work *, int64_t) = { sort_all, sort_given, sort_received,
                                                            sort_received, sort_with_neighbours };
    for (int64_t row = 0; row < lines.rows; row++)
        parts[call->part](&w, row);
}

static void sort_kernel(const MtfKernelCall *call) {
    sort_rows(call, false);
}

/* What others hold of the gradient counts as 0 here. */
static void sort_grad_kernel(const MtfKernelCall *call) {
    if (call->part > 0) {
        sort_rows(call, true);
        return;
    }
    int dim = call->operation->attributes.dimension;
    Lines in = lines_of(&call->inputs[0], dim), out = lines_of(&call->outputs[0], dim);
    int64_t bytes = mtf_slice_elements(out.operand) * mtf_dtype_bytes(out.operand->dtype);
    if (bytes > 0)
        memset(out.operand->data, 0, (size_t)bytes);
    for (int64_t row = 0; row < in.rows; row++)
        for (int64_t t = 0; t < in.along; t++) {
            int64_t at = line_at(&in, row, t);
            int64_t place = (int64_t)mtf_slice_get(in.operand, at) - out.begin;
            if (place >= 0 && place < out.along)
                mtf_slice_set(out.operand, line_at(&out, row, place),
                              mtf_slice_get(&call->inputs[1], at));
        }
}

const MtfKernelRow mtf_sort_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_SORT, sort_kernel, { "rk" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_SORT_GRAD, sort_grad_kernel, { "#rk", "rk" }, NULL, MTF_SLOW),
    { .kernel = NULL },
};
