// SPDX-License-Identifier: GPL-3.0-or-later
/* The records of several arrays, one array after another, as if they were one. */
#ifndef MTF_DATA_STREAM_H
#define MTF_DATA_STREAM_H

#include "runtime/data/data_array.h"

typedef struct MtfDataStream MtfDataStream;

/* A stream without files; the caller frees it. */
MtfDataStream *mtf_data_stream_new(void);
void mtf_data_stream_free(MtfDataStream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDataStream, mtf_data_stream_free)

/* Appends an array, which it takes. All must have the same numbers a record. */
void mtf_data_stream_add(MtfDataStream *stream, MtfDataArray *array);

/* Records of all files together. */
int64_t mtf_data_stream_records(const MtfDataStream *stream);
int mtf_data_stream_arrays(const MtfDataStream *stream);

/* Reads `count` records from `first` on. */
bool mtf_data_stream_read(const MtfDataStream *stream, int64_t first, int64_t count, double *values,
                          GError **error);

/* The file that holds a record. */
const char *mtf_data_stream_path(const MtfDataStream *stream, int64_t record);

/* Adds numbers from all over the stream to a digest. */
bool mtf_data_stream_digest(const MtfDataStream *stream, GChecksum *digest, GError **error);

#endif
