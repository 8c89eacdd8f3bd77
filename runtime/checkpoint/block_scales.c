// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/block_scales.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <stdio.h>

/* Blocks of some size, the last of a side cut off, that as many scales are for as there are. */
static bool try_blocks(MtfBlockScales *scales, int64_t rows, int64_t block_rows,
                       int64_t block_columns) {
    if (block_rows < 1 || block_columns < 1)
        return false;
    scales->block_rows = block_rows;
    scales->block_columns = block_columns;
    return (rows - 1) / block_rows + 1 == scales->rows &&
           (scales->width - 1) / block_columns + 1 == scales->columns;
}

bool mtf_block_scales_set(const MtfStoredTensor *matrix, const MtfStoredTensor *scale,
                          const int64_t block[2], MtfBlockScales *scales) {
    if (matrix->rank != 2 || scale->rank > 2 || matrix->dims[0] < 1 || matrix->dims[1] < 1 ||
        !mtf_stored_type_is_readable(scale->type))
        return false;
    int64_t rows = matrix->dims[0];
    scales->type = scale->type;
    scales->width = matrix->dims[1];
    scales->rows = scale->rank > 0 ? scale->dims[0] : 1;
    scales->columns = scale->rank > 1 ? scale->dims[1] : 1;
    if (scales->columns < 1 || scales->rows > G_MAXINT / scales->columns)
        return false;
    return try_blocks(scales, rows, block[0], block[1]) ||
           try_blocks(scales, rows, 1, scales->width) ||
           try_blocks(scales, rows, rows, scales->width);
}

float *mtf_block_scales_read(const MtfBlockScales *scales, GError **error) {
    gsize n = (gsize)(scales->rows * scales->columns);
    gsize bytes = (gsize)mtf_stored_type_bytes(scales->type);
    g_autofree char *stored = g_malloc_n(n, bytes);
    FILE *file = fopen(scales->path, "rb");
    bool read = file != NULL && fseeko(file, (off_t)scales->place, SEEK_SET) == 0 &&
                fread(stored, bytes, n, file) == n;
    if (file != NULL)
        fclose(file);
    if (!read) {
        mtf_input_error(error, "%s: %zu scales cannot be read at byte %" PRId64, scales->path, n,
                        scales->place);
        return NULL;
    }
    float *values = g_new(float, n);
    for (gsize i = 0; i < n; i++)
        values[i] = (float)mtf_stored_value(scales->type, stored, (int64_t)i);
    return values;
}
