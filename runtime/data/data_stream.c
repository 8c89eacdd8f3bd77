// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_stream.h"

#define DIGEST_PLACES 64

struct MtfDataStream {
    GPtrArray *arrays;
    int64_t records;
};

static void free_array(gpointer array) {
    mtf_data_array_free(array);
}

MtfDataStream *mtf_data_stream_new(void) {
    MtfDataStream *stream = g_new0(MtfDataStream, 1);
    stream->arrays = g_ptr_array_new_with_free_func(free_array);
    return stream;
}

void mtf_data_stream_free(MtfDataStream *stream) {
    if (stream == NULL)
        return;
    g_ptr_array_unref(stream->arrays);
    g_free(stream);
}

void mtf_data_stream_add(MtfDataStream *stream, MtfDataArray *array) {
    g_ptr_array_add(stream->arrays, array);
    stream->records += mtf_data_array_records(array);
}

int64_t mtf_data_stream_records(const MtfDataStream *stream) {
    return stream->records;
}

int mtf_data_stream_arrays(const MtfDataStream *stream) {
    return (int)stream->arrays->len;
}

/* The array that holds record `*record`, which becomes its number there. */
static const MtfDataArray *find(const MtfDataStream *stream, int64_t *record) {
    guint i = 0;
    while (i + 1 < stream->arrays->len &&
           *record >= mtf_data_array_records(stream->arrays->pdata[i]))
        *record -= mtf_data_array_records(stream->arrays->pdata[i++]);
    return stream->arrays->pdata[i];
}

bool mtf_data_stream_read(const MtfDataStream *stream, int64_t first, int64_t count, double *values,
                          GError **error) {
    while (count > 0) {
        int64_t record = first;
        const MtfDataArray *array = find(stream, &record);
        int64_t some = MIN(count, mtf_data_array_records(array) - record);
        if (!mtf_data_array_read(array, record, some, values, error))
            return false;
        values += some * mtf_data_array_places(array);
        first += some;
        count -= some;
    }
    return true;
}

const char *mtf_data_stream_path(const MtfDataStream *stream, int64_t record) {
    return mtf_data_array_path(find(stream, &record));
}

bool mtf_data_stream_digest(const MtfDataStream *stream, GChecksum *digest, GError **error) {
    int64_t places = stream->arrays->len == 0 ? 0 : mtf_data_array_places(stream->arrays->pdata[0]);
    int64_t some = MIN(stream->records, MAX(1, 1024 / MAX(1, places)));
    g_autofree double *values = g_new(double, some *places + 1);
    for (int64_t i = 0; i < DIGEST_PLACES && some > 0; i++) {
        int64_t first = (stream->records - some) / DIGEST_PLACES * i;
        if (!mtf_data_stream_read(stream, first, some, values, error))
            return false;
        g_checksum_update(digest, (const guchar *)values,
                          (gssize)((gsize)(some * places) * sizeof *values));
    }
    return true;
}
