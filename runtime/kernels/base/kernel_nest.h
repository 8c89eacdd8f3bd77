// SPDX-License-Identifier: GPL-3.0-or-later
/* Nested loops over the slices of one call. Every operand takes part with one stride a loop, 0 for
 * a dimension it lacks, so broadcasting and reducing are the same thing seen from two sides:
 *
 *     y[b, h, d] = x[b, h, d] * s[h]      loops   b   h   d
 *                                         y      hd   d   1
 *                                         x      hd   d   1
 *                                         s       0   1   0
 *
 * Loops that are adjacent in the memory of all operands are merged and loops of one turn are
 * dropped, so the innermost loop is as long as can be. Use:
 *
 *     mtf_nest_over(&nest, y, 3, (const MtfOperand *[]){ y, x, s });
 *     for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
 *         … nest.count turns of the innermost loop, operand k at element nest.offset[k] and then
 *           nest.step[k] further each turn …
 *
 * An operand need not be memory: a *position* counts where an element lies in the whole tensor. */
#ifndef MTF_KERNEL_NEST_H
#define MTF_KERNEL_NEST_H

#include "runtime/kernels/base/kernel.h"

#define MTF_NEST_OPERANDS 16

typedef struct {
    int n_loops, n_operands;
    int dim[MTF_MAX_INDEXES];
    int64_t size[MTF_MAX_INDEXES];
    int64_t stride[MTF_NEST_OPERANDS][MTF_MAX_INDEXES];
    int64_t index[MTF_MAX_INDEXES]; /* of the outer loops, while running */
    int64_t offset[MTF_NEST_OPERANDS];
    int64_t step[MTF_NEST_OPERANDS];
    int64_t count;
} MtfNest;

/* A nest that walks the dimensions of `walked`, outermost first; operands 0 … `n` - 1. */
void mtf_nest_over(MtfNest *nest, const MtfOperand *walked, int n, const MtfOperand *operands[]);

/* By hand: a nest without loops, then its loops, then its operands. */
void mtf_nest_init(MtfNest *nest);

/* Appends a loop for each dimension of `operand` that has none yet. */
void mtf_nest_add_loops(MtfNest *nest, const MtfOperand *operand);

/* The same for its dimensions that `lead` lacks. */
void mtf_nest_add_loops_lacking(MtfNest *nest, const MtfOperand *operand, const MtfOperand *lead);

/* Adds an operand, once all loops are there. Returns its number. It stays at the first index of a
 * dimension that has no loop. */
int mtf_nest_add(MtfNest *nest, const MtfOperand *operand);

/* Adds the position along `dim` of `operand` in the whole tensor; and the row-major number of the
 * element of `operand` in the whole tensor. */
int mtf_nest_add_position(MtfNest *nest, const MtfOperand *operand, int dim);
int mtf_nest_add_element_number(MtfNest *nest, const MtfOperand *operand);

/* Merges loops and stands at the first turn of the outer ones; false when there is nothing to do
 * because some dimension is empty. Then each further turn, until false. */
bool mtf_nest_first(MtfNest *nest);
bool mtf_nest_next(MtfNest *nest);

/* Where operand `k` stands at turn `i` of the innermost loop; and all operands. */
static inline int64_t mtf_nest_at(const MtfNest *nest, int k, int64_t i) {
    return nest->offset[k] + i * nest->step[k];
}
static inline void mtf_nest_all_at(const MtfNest *nest, int64_t i, int64_t at[MTF_NEST_OPERANDS]) {
    for (int k = 0; k < nest->n_operands; k++)
        at[k] = mtf_nest_at(nest, k, i);
}

/* Turns of the innermost loop for which operands `first` … `last` stay where they are: all, or
 * one. */
int64_t mtf_nest_still(const MtfNest *nest, int first, int last);

/* Elements of a slice; and zero for `n` of them from `first` on. */
int64_t mtf_operand_elements(const MtfOperand *operand);
void mtf_operand_clear(const MtfOperand *operand, int64_t first, int64_t n);

/* The position of `dim` among the operand's dimensions, or -1; its size, of one that is there; and the
 * distance in elements of two neighbours along the dimension at `position`. */
int mtf_operand_find(const MtfOperand *operand, int dim);
int64_t mtf_operand_size_along(const MtfOperand *operand, int dim);
int64_t mtf_operand_stride(const MtfOperand *operand, int position);

/* The position of the one dimension of `whole` that `part` lacks: a table's vocabulary, the logits'
 * classes. */
int mtf_operand_find_lacking(const MtfOperand *whole, const MtfOperand *part);

/* Gives `to` the dimension of `from` at `position` as its last. */
void mtf_operand_append(MtfOperand *to, const MtfOperand *from, int position);

/* `operand` at the first index along a dimension, which then makes no loop. */
MtfOperand mtf_operand_without(const MtfOperand *operand, int dim);

/* The memory of an element. */
void *mtf_operand_at(const MtfOperand *operand, int64_t offset);

/* Elements of the whole tensor along the dimensions of `whole` that `part` lacks: what a mean
 * divides by. */
double mtf_operand_mean_count(const MtfOperand *whole, const MtfOperand *part);

/* The same for a call: of one micro-batch where its operation says so. */
double mtf_kernel_mean_count(const MtfKernelCall *call, const MtfOperand *whole,
                             const MtfOperand *part);

#endif
