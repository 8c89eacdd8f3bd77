// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions by oneDNN. Whatever is made, three operands take part:
 *
 *     large  [examples, channels read, places...]          x of conv, dx of its gradient
 *     small  [examples, channels written, windows...]      y
 *     filter [groups,] [channels written, read, places of a window...], both of one group
 *
 *     made = small   forward     made = large   backward by data     made = filter   by weights
 *
 * with large = small stride - before + place dilation. Operands lie anyhow: those that the fastest
 * code cannot read as they lie are rewritten before it or after it, in the workspace. */
#ifndef MTF_ONEDNN_CONV_H
#define MTF_ONEDNN_CONV_H

#include "layouts/graph/operation_table.h"

#define MTF_CONV_DIMS (3 + MTF_MAX_WINDOWS)

typedef enum { MTF_CONV_LARGE, MTF_CONV_SMALL, MTF_CONV_FILTER, MTF_CONV_SIDES } MtfConvSide;

typedef struct {
    MtfDtype dtype;
    int rank;
    int64_t size[MTF_CONV_DIMS], stride[MTF_CONV_DIMS]; /* in elements; nothing is empty */
} MtfConvOperand;

typedef struct {
    MtfConvSide made;
    int windows;
    int64_t stride[MTF_MAX_WINDOWS], dilation[MTF_MAX_WINDOWS];
    int64_t before[MTF_MAX_WINDOWS], after[MTF_MAX_WINDOWS]; /* after may be below 0 */
    MtfConvOperand side[MTF_CONV_SIDES];
} MtfConvolution;

/* Makes code for the shapes. Returns what running needs and its bytes of workspace; NULL where
 * oneDNN has nothing fast: float64, and shapes that it takes by plain loops. */
void *mtf_onednn_conv_prepare(const MtfConvolution *convolution, int64_t *workspace_bytes);
void mtf_onednn_conv_release(void *prepared);

/* `data` are the sides; `workspace` is aligned to 64 bytes. Writes the whole made side. */
void mtf_onednn_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace);

#endif
