// SPDX-License-Identifier: GPL-3.0-or-later
/* Files that are there whole or not at all: room is taken on the disk first, the data is written
 * under another name, and the name is given when everything has reached the disk. What one rank
 * does; mpi is the caller's. */
#ifndef MTF_WHOLE_FILE_H
#define MTF_WHOLE_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_PARTIAL_SUFFIX ".partial"

/* Makes the file and takes its room on the disk, so that a full one shows before anything is
 * written. */
bool mtf_whole_file_reserve(const char *path, int64_t bytes, GError **error);

/* Writes the first bytes of a file, and brings them to disk. */
bool mtf_whole_file_write_header(const char *path, const char *header, gsize length,
                                 GError **error);

/* Gives the whole file its name, and brings the name to disk. */
bool mtf_whole_file_settle(const char *partial, const char *path, GError **error);

#endif
