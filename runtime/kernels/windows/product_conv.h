// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions in float64, which oneDNN has nothing for, as matrix products. What the windows of a
 * tile of positions meet is laid out as columns, a few hundred positions at a time:
 *
 *                     tile                                tile
 *     small [written] # # #   =   filter [written] # # #  # # #  columns [read x places]
 *
 *     made = small    small   = filter columns
 *     made = filter   filter += small columns'         over all tiles and examples
 *     made = large    columns = filter' small, each added to the element that it was laid out from */
#ifndef MTF_PRODUCT_CONV_H
#define MTF_PRODUCT_CONV_H

#include "runtime/kernels/base/kernel.h"
#include "runtime/kernels/onednn/onednn_conv.h"

/* Returns what running needs, to be freed with g_free, and its bytes of workspace; NULL for other
 * types than float64. */
void *mtf_product_conv_prepare(const MtfConvolution *convolution, int64_t *workspace_bytes);

/* `data` are the sides; `workspace` is aligned to 64 bytes. Writes the whole made side. */
void mtf_product_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace,
                          const MtfProgressHook *progress);

#endif
