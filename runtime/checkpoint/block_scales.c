// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/block_scales.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
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

/* Bytes of a file; false with a bad-input error. */
static bool read_bytes(const char *path, int64_t place, void *bytes, gsize n, GError **error) {
    FILE *file = fopen(path, "rb");
    bool read =
        file != NULL && fseeko(file, (off_t)place, SEEK_SET) == 0 && fread(bytes, 1, n, file) == n;
    if (file != NULL)
        fclose(file);
    return read || mtf_input_error(error, "%s: %zu bytes of scales cannot be read at byte %" PRId64,
                                   path, n, place);
}

/* n numbers of a readable type; false likewise. */
static bool read_numbers(const MtfStoredData *from, gsize n, float *numbers, GError **error) {
    gsize bytes = (gsize)mtf_stored_type_bytes(from->type);
    g_autofree char *stored = g_malloc_n(n, bytes);
    if (!read_bytes(from->path, from->place, stored, n * bytes, error))
        return false;
    for (gsize i = 0; i < n; i++)
        numbers[i] = (float)mtf_stored_value(from->type, stored, (int64_t)i);
    return true;
}

float *mtf_block_scales_read(const MtfBlockScales *scales, GError **error) {
    gsize n = (gsize)(scales->rows * scales->columns);
    const MtfStoredData from = { scales->path, scales->place, scales->type };
    g_autofree float *values = g_new(float, n);
    return read_numbers(&from, n, values, error) ? g_steal_pointer(&values) : NULL;
}

/* ---- Four bits ----------------------------------------------------------------------------- */

MtfPackedUnits mtf_packed_units_new(const MtfPackedMatrix *matrix) {
    gsize n = (gsize)(matrix->groups * matrix->out);
    return (MtfPackedUnits){ g_new0(float, n), g_new0(float, n), g_new0(int, matrix->in) };
}

void mtf_packed_units_clear(MtfPackedUnits *units) {
    g_clear_pointer(&units->scale, g_free);
    g_clear_pointer(&units->zero, g_free);
    g_clear_pointer(&units->group, g_free);
}

/* As many zeros a word as numbers. */
static bool read_zeros(const MtfPackedMatrix *m, float *zero, GError **error) {
    int n = mtf_packed_numbers(m);
    unsigned most = (1U << m->bits) - 1;
    gsize words = (gsize)(m->groups * m->out / n);
    g_autofree guint32 *packed = g_new(guint32, words);
    if (!read_bytes(m->zeros.path, m->zeros.place, packed, words * sizeof *packed, error))
        return false;
    for (gsize w = 0; w < words; w++)
        for (int k = 0; k < n; k++) {
            unsigned number = GUINT32_FROM_LE(packed[w]) >> m->bits * k & most;
            zero[(gsize)n * w + (gsize)mtf_packed_output(m->packing, k)] =
                (float)((number + (m->packing == MTF_PACKED_GPTQ)) & most);
        }
    return true;
}

static bool read_groups(const MtfPackedMatrix *m, int *group, GError **error) {
    for (int64_t i = 0; i < m->in; i++)
        group[i] = (int)(i / m->group_size);
    if (m->order.path == NULL)
        return true;
    if (!read_bytes(m->order.path, m->order.place, group, (gsize)m->in * sizeof *group, error))
        return false;
    for (int64_t i = 0; i < m->in; i++) {
        group[i] = GINT32_FROM_LE(group[i]);
        if (group[i] < 0 || group[i] >= m->groups)
            return mtf_input_error(error,
                                   "%s: input %" PRId64 " is of group %d, but there are %" PRId64,
                                   m->order.path, i, group[i], m->groups);
    }
    return true;
}

bool mtf_expert_scales_read(const MtfPackedMatrix *m, int64_t expert, guint8 *scales,
                            GError **error) {
    int64_t bytes = m->out * m->groups;
    return read_bytes(m->scales.path, m->scales.place + expert * bytes, scales, (gsize)bytes,
                      error);
}

float mtf_expert_value(const MtfPackedMatrix *m, const guint8 *blocks, const guint8 *scales,
                       int64_t input, int64_t output) {
    static const float sizes[8] = { 0, 0.5F, 1, 1.5F, 2, 3, 4, 6 };
    guint8 byte = blocks[(output * m->in + input) / 2];
    unsigned number = input % 2 == 0 ? byte & 15 : byte >> 4;
    float size =
        ldexpf(sizes[number & 7], scales[output * m->groups + input / MTF_MXFP4_INPUTS] - 127);
    return number >= 8 ? -size : size;
}

bool mtf_packed_units_read(const MtfPackedMatrix *m, MtfPackedUnits *units, GError **error) {
    return read_numbers(&m->scales, (gsize)(m->groups * m->out), units->scale, error) &&
           read_zeros(m, units->zero, error) && read_groups(m, units->group, error);
}
