// SPDX-License-Identifier: GPL-3.0-or-later
/* How much memory a kernel wants beside its operands. It stands here and not beside the kernels
 * because the arena is laid out, priced and checked against the limit long before any kernel runs.
 * Einsum wants some for operands whose storage order no product routine accepts, for indexes that
 * are summed in one operand alone, and for what lies between the products of three or more;
 * attention for the memory of one head and one block of scores; whatever adds up a bfloat16
 * result does so in float32; and few float32 sums of many rows (statistics of channels, gradients of
 * biases) are kept in float64 until their end. */
#ifndef MTF_KERNEL_SCRATCH_H
#define MTF_KERNEL_SCRATCH_H

#include "layouts/kernel_work/contraction.h"

/* The block of scores that attention works on: 64 queries against 512 positions of memory.
 * In float32 it takes 128 KiB, which stays in a second-level cache beside a head's memory. */
#define MTF_ATTENTION_QUERIES 64
#define MTF_ATTENTION_KEYS 512
#define MTF_ATTENTION_LANES 32 /* a row of the block is a multiple of this long */

/* Bytes of scratch the kernel of `operation` needs on a processor that holds sizes[i] points of
 * index i of its iteration space (mtf_operation_iteration). Given the largest sizes over all
 * processors, the result serves each of them. 0 for nearly all operations. */
int64_t mtf_operation_scratch_bytes(const MtfGraph *graph, int operation,
                                    const MtfIteration *iteration, const int64_t *sizes);

/* The slice of `tensor`, an operand of the operation, on such a processor. */
MtfTerm mtf_operation_local_term(const MtfGraph *graph, int tensor, const MtfIteration *iteration,
                                 const int64_t *sizes);

/* Rows of narrow operands that products of experts widen at a time. */
#define MTF_EXPERT_ROWS 64

/* Whether products of experts take the rows of several groups, `rows` in each, together, so that each
 * matrix is read once: where a group brings an expert fewer than MTF_JOINED_ROWS. */
#define MTF_JOINED_ROWS 16
bool mtf_experts_join_groups(int64_t groups, int64_t rows, int64_t experts);

/* The most float32 sums that are kept in float64: they stay in a near cache. */
#define MTF_WIDE_SUMS 8192

/* Columns of a table whose narrow gradient is added up at a time, in float32. */
#define MTF_GRADIENT_STRIP 64

/* Whether embedding_grad can go strip by strip, given the dimensions of ids, dy and the table:
 * those of the ids and then the columns, and rows and columns. */
bool mtf_table_has_strips(const MtfTerm *ids, const MtfTerm *dy, const MtfTerm *table);

/* Of sorting n elements with their places, 16 bytes each, from one list to another and back. */
int64_t mtf_sort_scratch_bytes(int64_t n);

#endif
