// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_file.h"

#include "layouts/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK_BYTES 65536

struct MtfDataFile {
    char *path;
    int file;
    int64_t size;
};

/* Copies what gzip packed to `target`. */
static bool unpack(const char *path, int source, int target, GError **error) {
    char block[BLOCK_BYTES];
    gzFile packed = gzdopen(dup(source), "rb");
    int got = 0, problem = Z_OK;
    bool written = packed != NULL;
    while (written && (got = gzread(packed, block, sizeof block)) > 0)
        written = write(target, block, (gsize)got) == got;
    int cause = errno;
    if (packed != NULL) {
        gzerror(packed, &problem);
        if (gzclose_r(packed) != Z_OK || got < 0)
            problem = problem == Z_OK ? Z_DATA_ERROR : problem;
    }
    if (!written)
        return mtf_failure(error, "%s cannot be unpacked: %s", path, g_strerror(cause));
    return problem == Z_OK ||
           mtf_input_error(error, "%s cannot be unpacked: the gzip file is damaged or cut short",
                           path);
}

/* A file without a name, or -1. */
static int nameless_file(void) {
    g_autofree char *name = g_build_filename(g_get_tmp_dir(), "meshtf-data-XXXXXX", NULL);
    int file = mkstemp(name);
    if (file >= 0)
        unlink(name);
    return file;
}

static bool write_all(int file, const char *bytes, int64_t count) {
    for (int64_t done = 0; done < count;) {
        gssize put = write(file, bytes + done, (gsize)(count - done));
        if (put < 0)
            return false;
        done += put;
    }
    return true;
}

/* Replaces a packed file's descriptor by that of an unpacked copy. */
static bool unpack_if_packed(MtfDataFile *data, GError **error) {
    unsigned char magic[2] = { 0 };
    if (pread(data->file, magic, sizeof magic, 0) != sizeof magic || magic[0] != 0x1f ||
        magic[1] != 0x8b)
        return true;
    int copy = nameless_file();
    if (copy < 0)
        return mtf_failure(error, "%s cannot be unpacked: %s", data->path, g_strerror(errno));
    bool done = unpack(data->path, data->file, copy, error);
    close(data->file);
    data->file = copy;
    return done;
}

/* Files in forms that are not read, and what to do with them. */
static const struct {
    const char *ending, *magic, *advice;
} foreign[] = {
    { ".parquet", "PAR1",
      "a Parquet file; write its columns out as text, or as an array that numpy.save makes (.npy)" },
    { ".jsonl", NULL,
      "lines of JSON; write the texts alone into a file (jq -r .text FILE > texts.txt), or numbers as "
      "a table or an array that numpy.save makes (.npy)" },
    { ".zip", NULL, "a ZIP archive; unpack it (unzip FILE) and name what is in it" },
};

static bool check_form(const MtfDataFile *data, GError **error) {
    char magic[5] = { 0 };
    if (pread(data->file, magic, 4, 0) < 0)
        return true; /* reading it will say why */
    for (gsize i = 0; i < G_N_ELEMENTS(foreign); i++)
        if (g_str_has_suffix(data->path, foreign[i].ending) ||
            (foreign[i].magic != NULL && strcmp(magic, foreign[i].magic) == 0))
            return mtf_input_error(error, "the data %s is %s", data->path, foreign[i].advice);
    return true;
}

static bool open_path(MtfDataFile *data, GError **error) {
    struct stat status;
    data->file = open(data->path, O_RDONLY | O_CLOEXEC);
    if (data->file < 0 || fstat(data->file, &status) != 0)
        return mtf_input_error(error, "the data file %s cannot be read: %s", data->path,
                               g_strerror(errno));
    if (!S_ISREG(status.st_mode))
        return mtf_input_error(error, "the data %s is not a regular file", data->path);
    if (!check_form(data, error) || !unpack_if_packed(data, error))
        return false;
    if (fstat(data->file, &status) != 0)
        return mtf_failure(error, "%s: %s", data->path, g_strerror(errno));
    data->size = status.st_size;
    return true;
}

MtfDataFile *mtf_data_file_open(const char *path, GError **error) {
    g_autoptr(MtfDataFile) data = g_new0(MtfDataFile, 1);
    data->path = g_strdup(path);
    data->file = -1;
    return open_path(data, error) ? g_steal_pointer(&data) : NULL;
}

MtfDataFile *mtf_data_file_again(const MtfDataFile *file, GError **error) {
    int copy = dup(file->file);
    if (copy < 0) {
        mtf_failure(error, "%s cannot be read: %s", file->path, g_strerror(errno));
        return NULL;
    }
    MtfDataFile *again = g_new(MtfDataFile, 1);
    *again = (MtfDataFile){ g_strdup(file->path), copy, file->size };
    return again;
}

MtfDataFile *mtf_data_file_new(const char *path, GError **error) {
    int file = nameless_file();
    if (file < 0) {
        mtf_failure(error, "%s cannot be unpacked: %s", path, g_strerror(errno));
        return NULL;
    }
    MtfDataFile *data = g_new0(MtfDataFile, 1);
    data->path = g_strdup(path);
    data->file = file;
    return data;
}

bool mtf_data_file_append(MtfDataFile *file, const void *bytes, int64_t count, GError **error) {
    if (!write_all(file->file, bytes, count))
        return mtf_failure(error, "%s cannot be unpacked: %s", file->path, g_strerror(errno));
    file->size += count;
    return true;
}

void mtf_data_file_close(MtfDataFile *file) {
    if (file == NULL)
        return;
    if (file->file >= 0)
        close(file->file);
    g_free(file->path);
    g_free(file);
}

const char *mtf_data_file_path(const MtfDataFile *file) {
    return file->path;
}

int64_t mtf_data_file_size(const MtfDataFile *file) {
    return file->size;
}

bool mtf_data_file_read(const MtfDataFile *file, int64_t offset, void *bytes, int64_t count,
                        GError **error) {
    for (int64_t done = 0; done < count;) {
        gssize got = pread(file->file, (char *)bytes + done, (gsize)(count - done), offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return mtf_failure(error, "%s cannot be read: %s", file->path, g_strerror(errno));
        if (got == 0)
            return mtf_failure(error, "%s became shorter while it was read", file->path);
        done += got;
    }
    return true;
}

/* ---- Columns into rows --------------------------------------------------------------------- */

/* Rows that are turned at once: so that both sides are some MiB at most. */
#define TURNED_BYTES (INT64_C(8) << 20)

/* The column of the file that holds a place of the rows: rows count their last dimension fastest,
 * columns the first after the records. */
static int64_t column_of(const MtfDataColumns *columns, int64_t place) {
    int64_t column = 0;
    int64_t scale = 1, below = columns->places;
    for (int i = 1; i < columns->n; i++) {
        below /= columns->dims[i];
        column += place / below % columns->dims[i] * scale;
        scale *= columns->dims[i];
    }
    return column;
}

/* Rows [first, first + count) as they shall be written, `rows` having room for them and `part` for
 * one number of each. */
static bool turn_rows(const MtfDataFile *file, const MtfDataColumns *columns, int64_t first,
                      int64_t count, char *rows, char *part, GError **error) {
    int64_t size = columns->number_bytes;
    for (int64_t place = 0; place < columns->places; place++) {
        int64_t offset = (column_of(columns, place) * columns->dims[0] + first) * size;
        if (!mtf_data_file_read(file, columns->first + offset, part, count * size, error))
            return false;
        for (int64_t i = 0; i < count; i++)
            memcpy(rows + (i * columns->places + place) * size, part + i * size, (gsize)size);
    }
    return true;
}

static bool turn_all(const MtfDataFile *file, const MtfDataColumns *columns, int target,
                     GError **error) {
    int64_t row = columns->places * columns->number_bytes;
    int64_t most = MIN(columns->dims[0], MAX(1, TURNED_BYTES / row));
    g_autofree char *rows = g_malloc((gsize)(most * row));
    g_autofree char *part = g_malloc((gsize)(most * columns->number_bytes));
    for (int64_t first = 0; first < columns->dims[0]; first += most) {
        int64_t count = MIN(most, columns->dims[0] - first);
        if (!turn_rows(file, columns, first, count, rows, part, error))
            return false;
        if (!write_all(target, rows, count * row))
            return mtf_failure(error, "%s cannot be turned into rows: %s", file->path,
                               g_strerror(errno));
    }
    return true;
}

MtfDataFile *mtf_data_file_turn(const MtfDataFile *file, const MtfDataColumns *columns,
                                GError **error) {
    int target = nameless_file();
    if (target < 0) {
        mtf_failure(error, "%s cannot be turned into rows: %s", file->path, g_strerror(errno));
        return NULL;
    }
    MtfDataFile *turned = g_new0(MtfDataFile, 1);
    *turned = (MtfDataFile){ .path = g_strdup(file->path),
                             .file = target,
                             .size = file->size - columns->first };
    if (turn_all(file, columns, target, error))
        return turned;
    mtf_data_file_close(turned);
    return NULL;
}

char *mtf_data_file_text(const char *path, GError **error) {
    g_autoptr(MtfDataFile) file = mtf_data_file_open(path, error);
    if (file == NULL)
        return NULL;
    int64_t size = mtf_data_file_size(file);
    g_autofree char *text = g_malloc0((gsize)size + 1);
    if (!mtf_data_file_read(file, 0, text, size, error))
        return NULL;
    if (memchr(text, '\0', (gsize)size) != NULL) {
        mtf_input_error(error, "%s holds a byte of 0, which no table has", path);
        return NULL;
    }
    return g_steal_pointer(&text);
}

void mtf_data_put_word(void *place, guint32 word) {
    word = GUINT32_TO_LE(word);
    memcpy(place, &word, sizeof word);
}

void mtf_data_put_float(void *place, float number) {
    guint32 word;
    memcpy(&word, &number, sizeof word);
    mtf_data_put_word(place, word);
}
