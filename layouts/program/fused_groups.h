// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that follow one another over the same rows of their tensors are fused and run tile by
 * tile: what one writes or reads of a tile lies in a near cache when the next one wants it.
 *
 *     one after the other                  together
 *     add        ###############           ##########..
 *     mean       ###############           ##########..     tiles of batch,length
 *     normalize  ###############           ##########..
 *
 * The dimensions that are cut lead the result of every kernel, so a tile is one piece of memory; an operand
 * may lack some of them (a bias), or all as the result of a sum, which grows from tile to tile. Products stay
 * whole. What a kernel computes of a tile is what it computes of any slice (runtime/kernels/base/kernel.h),
 * and sums are taken in the order of the rows, so the bits are those of kernels that run one after the other.
 *
 * All storages that a group's kernels touch live as long as the group does; a group ends where this
 * would raise the bytes that are live at the worst instruction. */
#ifndef MTF_FUSED_GROUPS_H
#define MTF_FUSED_GROUPS_H

#include "layouts/program/program.h"

/* What a tile's operands take together: less than a second-level cache. */
#define MTF_TILE_BYTES (INT64_C(256) << 10)

#define MTF_FUSED_KERNELS 32 /* the most in a group */

/* Finds the fused groups of a program whose lifetimes are known (lifetimes.h): fills in `fused` of
 * each group's first instruction and lets its storages live longer. A tile takes `cache` bytes. */
void mtf_program_fuse(MtfProgram *program, int64_t cache);

#endif
