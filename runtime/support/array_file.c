// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/array_file.h"

#include <glib.h>
#include <inttypes.h>

bool mtf_array_file_begin(FILE *file, int rank, const int64_t *shape) {
    g_autoptr(GString) text = g_string_new("{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++)
        g_string_append_printf(text, i == 0 ? "%" PRId64 "," : " %" PRId64 ",", shape[i]);
    g_string_append(text, "), }");
    int length = ((int)text->len + 11 + 63) / 64 * 64 - 10;
    return fprintf(file, "\x93NUMPY%c%c%c%c%-*s\n", 1, 0, length & 255, length >> 8, length - 1,
                   text->str) == length + 10;
}

bool mtf_array_file_append(FILE *file, const double *values, int64_t n) {
    bool good = true;
    for (int64_t i = 0; i < n && good; i++) {
        float value = (float)values[i];
        good = fwrite(&value, sizeof value, 1, file) == 1;
    }
    return good;
}
