// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions in float32 whose rows have one or two positions, as the last layers of networks on small
 * pictures do: oneDNN's code multiplies a row at a time, so that each element of the filter, of which such
 * layers have the most, is fetched for one or two positions. As one product it is fetched for all of them,
 * and read as it lies. What the windows of some positions meet is laid out first, a position a row:
 *
 *     columns [positions, read x places]      a filter's elements in the order in which it lies
 *
 *     made = small    small   = columns filter          filter [read x places, written], or turned
 *     made = filter   filter  = columns' small          over all tiles of positions
 *     made = large    columns = small filter', each added to the element that it was laid out from
 *
 * Windows of one element that lie side by side need no columns: the large side is read, or made, as it is. */
#ifndef MTF_UNROLLED_CONV_H
#define MTF_UNROLLED_CONV_H

#include "runtime/kernels/base/kernel.h"
#include "runtime/kernels/onednn/onednn_conv.h"

/* Returns what running needs, to be freed with g_free, and its bytes of workspace; NULL where it does not
 * apply: other types, groups, longer rows, sides whose channels do not lie last, filters that are no matrix. */
void *mtf_unrolled_conv_prepare(const MtfConvolution *convolution, int64_t *workspace_bytes);

/* `data` are the sides; `workspace` is aligned to 64 bytes. Writes the whole made side. */
void mtf_unrolled_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace,
                           const MtfProgressHook *progress);

#endif
