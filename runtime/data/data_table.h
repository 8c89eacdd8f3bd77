// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of numbers with commas between them, an example a line, as scikit-learn and most of the world
 * write them:
 *
 *     features, labels or targets                       0,0,5,13,9,1,0, … ,0
 *
 * How many of each a line has is what the model wants. A first line that holds anything else than
 * numbers is taken for the names of the columns. */
#ifndef MTF_DATA_TABLE_H
#define MTF_DATA_TABLE_H

#include "runtime/data/data_file.h"

/* The records of a table: its columns in their order, features and targets as float32, labels as
 * int32. */
#define MTF_TABLE_NUMBER_BYTES 4

typedef struct {
    int64_t features, labels, targets; /* of a line */
} MtfTableColumns;

/* Whether the file is such a table: its name ends in .csv, packed by gzip or not. */
bool mtf_table_is(const char *path);

/* Reads a whole file into a nameless file of records. Fails (bad input) on a line that has not so
 * many columns, or where one is no number or a label is not 0, 1, …, with its line. */
MtfDataFile *mtf_table_open(const char *path, const MtfTableColumns *columns, GError **error);

/* Appends the records of lines in memory to `target`. */
bool mtf_table_parse(const char *name, char *text, const MtfTableColumns *columns,
                     MtfDataFile *target, GError **error);

#endif
