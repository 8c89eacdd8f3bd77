// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of clicks, an example a line as in Criteo's logs:
 *
 *     label <tab> 13 counts <tab> 26 categories          1	4	0	…	68fd1e64	80e26c9b	…
 *
 * How many counts and categories a line has is what the model wants. A label is 0, 1, … ; a count n
 * becomes the feature log(1 + n), 0 where n is negative or missing; a category is a number of 32
 * bits in hexadecimal, 0 where it is missing, and means row (category mod rows) of its table. */
#ifndef MTF_DATA_CLICKS_H
#define MTF_DATA_CLICKS_H

#include "runtime/data/data_file.h"

/* The records of a table: a label (int32), the features (float32), the categories (uint32). */
#define MTF_CLICK_LABEL_BYTES 4
#define MTF_CLICK_NUMBER_BYTES 4

typedef struct {
    int64_t features, categories; /* of a line */
} MtfClickColumns;

/* Whether the file is such a table: its name ends in .tsv, packed by gzip or not. */
bool mtf_clicks_are(const char *path);

/* Reads a whole file into a nameless file of records. Fails (bad input) on a line that has not so
 * many columns, or where one is no number, with its line. */
MtfDataFile *mtf_clicks_open(const char *path, const MtfClickColumns *columns, GError **error);

/* Appends the records of lines in memory to `target`. */
bool mtf_clicks_parse(const char *name, char *text, const MtfClickColumns *columns,
                      MtfDataFile *target, GError **error);

#endif
