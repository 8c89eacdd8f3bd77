// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/run_table.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"

#include <math.h>
#include <string.h>

static void row_free(void *row) {
    g_strfreev((char **)row);
}

void mtf_run_table_free(MtfRunTable *table) {
    if (table == NULL)
        return;
    g_free(table->file);
    g_strfreev(table->columns);
    g_ptr_array_unref(table->rows);
    g_array_unref(table->lines);
    g_free(table);
}

static int find_column(const MtfRunTable *table, const char *column) {
    for (int i = 0; table->columns[i] != NULL; i++)
        if (g_ascii_strcasecmp(table->columns[i], column) == 0)
            return i;
    return -1;
}

/* What stands between tabs, without the blanks around it. */
static char **split_cells(const char *line) {
    char **cells = g_strsplit(line, "\t", -1);
    for (int i = 0; cells[i] != NULL; i++)
        g_strstrip(cells[i]);
    return cells;
}

static bool read_header(MtfRunTable *table, const char *line, guint number,
                        const char *const *needed, GError **error) {
    table->columns = split_cells(line);
    if (table->columns[1] == NULL && strpbrk(line, ",;") != NULL)
        return mtf_input_error(error,
                               "%s: line %u: the names of columns are separated by commas or "
                               "semicolons, where tabs are expected",
                               table->file, number);
    for (int i = 0; needed[i] != NULL; i++)
        if (find_column(table, needed[i]) < 0)
            return mtf_input_error(error, "%s: line %u: column \"%s\" is missing", table->file,
                                   number, needed[i]);
    for (int i = 0; table->columns[i] != NULL; i++)
        if (find_column(table, table->columns[i]) != i)
            return mtf_input_error(error, "%s: line %u, column %d: \"%s\" is there twice",
                                   table->file, number, i + 1, table->columns[i]);
    return true;
}

static bool read_row(MtfRunTable *table, const char *line, guint number, GError **error) {
    g_auto(GStrv) cells = split_cells(line);
    guint count = g_strv_length(cells), columns = g_strv_length(table->columns);
    if (count != columns)
        return mtf_input_error(error, "%s: line %u, column %u: %u cells stand under %u columns",
                               table->file, number, MIN(count, columns) + 1, count, columns);
    g_ptr_array_add(table->rows, g_steal_pointer(&cells));
    g_array_append_val(table->lines, number);
    return true;
}

static bool read_lines(MtfRunTable *table, char **lines, const char *const *needed,
                       GError **error) {
    for (guint i = 0; lines[i] != NULL; i++) {
        g_strchomp(lines[i] + strcspn(lines[i], "\r"));
        lines[i][strcspn(lines[i], "\r")] = '\0';
        if (lines[i][strspn(lines[i], " \t")] == '\0' || lines[i][0] == '#')
            continue;
        bool read = table->columns == NULL ? read_header(table, lines[i], i + 1, needed, error)
                                           : read_row(table, lines[i], i + 1, error);
        if (!read)
            return false;
    }
    return table->columns != NULL ||
           mtf_input_error(error, "%s: line 1: a line with the names of the columns is missing",
                           table->file);
}

const char *mtf_text_begin(const char *text) {
    return g_str_has_prefix(text, "\xef\xbb\xbf") ? text + 3 : text;
}

MtfRunTable *mtf_run_table_load(const char *path, const char *const *needed, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(path, &length, error);
    if (text == NULL)
        return NULL;
    if (!g_utf8_validate(text, (gssize)length, NULL)) {
        mtf_input_error(error, "%s: this is no text in UTF-8", path);
        return NULL;
    }
    g_auto(GStrv) lines = g_strsplit(mtf_text_begin(text), "\n", -1);
    g_autoptr(MtfRunTable) table = g_new0(MtfRunTable, 1);
    table->file = g_strdup(path);
    table->rows = g_ptr_array_new_with_free_func(row_free);
    table->lines = g_array_new(FALSE, FALSE, sizeof(guint));
    return read_lines(table, lines, needed, error) ? g_steal_pointer(&table) : NULL;
}

const char *mtf_run_table_cell(const MtfRunTable *table, guint row, const char *column) {
    int i = find_column(table, column);
    return i < 0 ? "" : ((char **)table->rows->pdata[row])[i];
}

bool mtf_run_table_fail(const MtfRunTable *table, guint row, const char *column, GError **error,
                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return mtf_input_error(error, "%s: line %u, column %s: %s", table->file,
                           g_array_index(table->lines, guint, row), column, sentence);
}

bool mtf_run_table_number(const MtfRunTable *table, guint row, const char *column, double otherwise,
                          double *value, GError **error) {
    const char *cell = mtf_run_table_cell(table, row, column);
    char *end;
    if (*cell == '\0') {
        *value = otherwise;
        return true;
    }
    double number = g_ascii_strtod(cell, &end);
    if (*end != '\0' || !isfinite(number) || number < 0)
        return mtf_run_table_fail(table, row, column, error, "\"%s\" is not a number of at least 0",
                                  cell);
    *value = number;
    return true;
}
