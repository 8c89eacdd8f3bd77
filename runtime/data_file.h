// SPDX-License-Identifier: GPL-3.0-or-later
/* A file of data, read at any place. One that gzip has packed is unpacked when it is opened, into a
 * nameless file beside other temporary ones, so that it can be read at any place too. */
#ifndef MTF_DATA_FILE_H
#define MTF_DATA_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfDataFile MtfDataFile;

/* Fails (bad input) when it cannot be read, is no regular file, or is a gzip file cut short. */
MtfDataFile *mtf_data_file_open(const char *path, GError **error);
void mtf_data_file_close(MtfDataFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDataFile, mtf_data_file_close)

const char *mtf_data_file_path(const MtfDataFile *file);
int64_t mtf_data_file_size(const MtfDataFile *file); /* unpacked */

/* Reads exactly `count` bytes at `offset`. Fails (not bad input) when the file has become
 * unreadable or shorter. */
bool mtf_data_file_read(const MtfDataFile *file, int64_t offset, void *bytes, int64_t count,
                        GError **error);

#endif
