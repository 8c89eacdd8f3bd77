// SPDX-License-Identifier: GPL-3.0-or-later
/* A table of measured runs: lines of cells between tabs, the first line names the columns, one run a
 * line after it. Cells are text; an empty one says nothing. Errors name line and column:
 *
 *     runs.tsv: line 7, column tp: "x8" is not a number */
#ifndef MTF_RUN_TABLE_H
#define MTF_RUN_TABLE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *file;
    char **columns;  /* names, NULL-terminated */
    GPtrArray *rows; /* of char **, as many cells as there are columns */
    GArray *lines;   /* guint: where each row stands in the file */
} MtfRunTable;

/* Where a text begins: behind the mark of its encoding that spreadsheets put before it. */
const char *mtf_text_begin(const char *text);

/* Reads a table that has at least the columns of `needed` (NULL-terminated). Lines without text and
 * lines that begin with # are passed over. Free with mtf_run_table_free. */
MtfRunTable *mtf_run_table_load(const char *path, const char *const *needed, GError **error);

void mtf_run_table_free(MtfRunTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRunTable, mtf_run_table_free)

/* The cell of a row; "" when it is empty or the table has no such column. */
const char *mtf_run_table_cell(const MtfRunTable *table, guint row, const char *column);

/* The number in a cell, at least 0; `otherwise` when it is empty. */
bool mtf_run_table_number(const MtfRunTable *table, guint row, const char *column, double otherwise,
                          double *value, GError **error);

/* Fails with "FILE: line L, column C: sentence". Always returns false. */
bool mtf_run_table_fail(const MtfRunTable *table, guint row, const char *column, GError **error,
                        const char *format, ...) G_GNUC_PRINTF(5, 6);

#endif
