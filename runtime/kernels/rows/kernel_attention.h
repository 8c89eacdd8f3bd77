// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention without the matrix of scores. For each example and head, queries are taken a block at a
 * time; a block's scores against a block of memory are one product into scratch, and what follows
 * from them happens while they are in the cache:
 *
 *              memory ──►                     forward                     backward
 *     queries  # # # . . . .    S = factor q k'              S = factor q k',  P = e^(S - lse)
 *        │     # # # # # # .    m, sum of each row           dS = factor P (do v' - do.o)
 *        ▼     # # # # # # #    o += e^(S - m) v             dq += dS k, dk += dS' q, dv += P' do
 *
 * Over several blocks of memory the forward pass keeps each row's largest score m so far, and
 * scales what it has added up when m grows; in the end lse = m + log(sum).
 *
 * The products are too small and too ragged for a library: a head's memory is copied to scratch
 * once, in the orders that the products want, and each product runs in tiles of eight rows by two
 * vectors that stay in registers. Tiles whose queries all come before their keys are left out, and
 * of the others only what some query looks at is summed, so that causal attention does little more
 * than half of the work. Order and blocks follow from the shapes alone, so equal inputs give equal
 * bits.
 *
 * Shares that are dropped are drawn again in the backward pass: with kept(i, j) = 0, or 1 / (1 - rate)
 * for share j of query i, o is the sum of kept P v, dS = factor P (kept do v' - do.o) and dv that of
 * kept P do; lse and do.o stay as they are. Shares are numbered as the elements of a tensor [examples
 * and heads in the order of q, queries, memory in order] of all processors, parts of memory one behind
 * the other.
 *
 * A bias b that is added to scores has the gradient dS / factor, summed over all that share it.
 *
 * All of that is computed in scratch, where rows of bfloat16 are float32.
 *
 * Dao and others, "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
 * 2022, algorithms 2 and 4. */
#ifndef MTF_KERNEL_ATTENTION_H
#define MTF_KERNEL_ATTENTION_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_attention_kernels[];

#endif
