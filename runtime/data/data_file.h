// SPDX-License-Identifier: GPL-3.0-or-later
/* A file of data, read at any place. One that gzip has packed is unpacked when it is opened, into a
 * nameless file beside other temporary ones, so that it can be read at any place too; so is an
 * array that is stored by columns. */
#ifndef MTF_DATA_FILE_H
#define MTF_DATA_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfDataFile MtfDataFile;

/* Fails (bad input) when it cannot be read, is no regular file, or is a gzip file cut short. */
MtfDataFile *mtf_data_file_open(const char *path, GError **error);
void mtf_data_file_close(MtfDataFile *file);

/* The same file once more, to be closed on its own. */
MtfDataFile *mtf_data_file_again(const MtfDataFile *file, GError **error);

/* An empty nameless file beside other temporary ones, for what `path` holds in another form, and
 * more bytes at its end. Fail (not bad input) when there is no room. */
MtfDataFile *mtf_data_file_new(const char *path, GError **error);
bool mtf_data_file_append(MtfDataFile *file, const void *bytes, int64_t count, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDataFile, mtf_data_file_close)

/* The path it was opened by. */
const char *mtf_data_file_path(const MtfDataFile *file);
int64_t mtf_data_file_size(const MtfDataFile *file); /* unpacked */

/* The whole text of a file, unpacked; free with g_free. A byte of 0 is bad input. */
char *mtf_data_file_text(const char *path, GError **error);

/* Reads exactly `count` bytes at `offset`. Fails (not bad input) when the file has become
 * unreadable or shorter. */
bool mtf_data_file_read(const MtfDataFile *file, int64_t offset, void *bytes, int64_t count,
                        GError **error);

/* Put a number of four bytes into a record, the lowest byte first. */
void mtf_data_put_word(void *place, guint32 word);
void mtf_data_put_float(void *place, float number);

#define MTF_DATA_DIMENSIONS 8

/* An array in Fortran's order, whose first dimension runs fastest: the numbers of one record lie a
 * column apart.
 *
 *     in the file   a0 b0 c0  a1 b1 c1       as rows   a0 a1  b0 b1  c0 c1 */
typedef struct {
    int64_t first; /* byte at which it begins; it ends with the file */
    int number_bytes, n;
    int64_t dims[MTF_DATA_DIMENSIONS]; /* the first counts records */
    int64_t places;                    /* numbers of a record: the product of the others */
} MtfDataColumns;

/* The array record by record, each in C's order, in a nameless file beside other temporary ones
 * that begins with it. NULL with an error when there is no room for that. */
MtfDataFile *mtf_data_file_turn(const MtfDataFile *file, const MtfDataColumns *columns,
                                GError **error);

#endif
