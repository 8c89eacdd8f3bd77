// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_array.h"

#include "layouts/base/error.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_pictures.h"

#include <inttypes.h>
#include <string.h>

#define BLOCK_BYTES 16384

typedef enum {
    NUMBER_U8,
    NUMBER_I8,
    NUMBER_U16,
    NUMBER_I16,
    NUMBER_U32,
    NUMBER_I32,
    NUMBER_I64,
    NUMBER_F32,
    NUMBER_F64,
} Number;

static const int number_bytes[] = { 1, 1, 2, 2, 4, 4, 8, 4, 8 };

struct MtfDataArray {
    MtfDataFile *file;
    Number number;
    bool big_endian;
    int64_t first, stride; /* bytes: where record 0 begins, and from one to the next */
    int64_t records, places;
    bool whole; /* bytes are what they are */
};

void mtf_data_array_free(MtfDataArray *array) {
    if (array == NULL)
        return;
    mtf_data_file_close(array->file);
    g_free(array);
}

const char *mtf_data_array_path(const MtfDataArray *array) {
    return mtf_data_file_path(array->file);
}

int64_t mtf_data_array_records(const MtfDataArray *array) {
    return array->records;
}

int64_t mtf_data_array_places(const MtfDataArray *array) {
    return array->places;
}

bool mtf_data_array_is_integer(const MtfDataArray *array) {
    return array->number < NUMBER_F32;
}

bool mtf_data_array_is_text(const MtfDataArray *array) {
    return array->number == NUMBER_U8 && array->first == 0 && array->stride == 1 &&
           array->places == 1;
}

bool mtf_data_array_join(MtfDataArray *array) {
    int bytes = number_bytes[array->number];
    if (array->places > 1 && array->stride != array->places * bytes)
        return false;
    array->records *= array->places;
    array->stride = array->places > 1 ? bytes : array->stride;
    array->places = 1;
    return true;
}

MtfDataArray *mtf_data_array_inside(MtfDataFile *file, const MtfInnerArray *inner) {
    MtfDataArray *array = g_new(MtfDataArray, 1);
    *array = (MtfDataArray){ .file = file,
                             .number = inner->floats ? NUMBER_F32 : NUMBER_U32,
                             .first = inner->first,
                             .stride = inner->stride,
                             .records = inner->records,
                             .places = inner->places };
    return array;
}

void mtf_data_array_keep_whole(MtfDataArray *array) {
    array->whole = true;
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* One number from its bytes, little-endian. */
static double decode(Number number, const unsigned char *bytes) {
    guint64 word = 0;
    float single;
    double wide;
    for (int i = number_bytes[number] - 1; i >= 0; i--)
        word = word << 8 | bytes[i];
    guint32 half = (guint32)word;
    switch (number) {
    case NUMBER_I8:
        return (gint8)word;
    case NUMBER_I16:
        return (gint16)word;
    case NUMBER_I32:
        return (gint32)word;
    case NUMBER_I64:
        return (double)(gint64)word;
    case NUMBER_F32:
        memcpy(&single, &half, sizeof single);
        return (double)single;
    case NUMBER_F64:
        memcpy(&wide, &word, sizeof wide);
        return wide;
    default:
        return (double)word;
    }
}

static double value_of(const MtfDataArray *array, const unsigned char *bytes) {
    unsigned char turned[8];
    int n = number_bytes[array->number];
    for (int i = 0; i < n; i++)
        turned[i] = bytes[array->big_endian ? n - 1 - i : i];
    double value = decode(array->number, turned);
    return array->number == NUMBER_U8 && array->places > 1 && !array->whole ? value / 255 : value;
}

/* Numbers that lie one after another. */
static bool read_run(const MtfDataArray *array, int64_t offset, int64_t count, double *values,
                     GError **error) {
    unsigned char block[BLOCK_BYTES];
    int n = number_bytes[array->number];
    for (int64_t done = 0; done < count;) {
        int64_t some = MIN(count - done, BLOCK_BYTES / n);
        if (!mtf_data_file_read(array->file, offset + done * n, block, some * n, error))
            return false;
        for (int64_t i = 0; i < some; i++)
            values[done + i] = value_of(array, block + i * n);
        done += some;
    }
    return true;
}

bool mtf_data_array_read(const MtfDataArray *array, int64_t first, int64_t count, double *values,
                         GError **error) {
    int64_t offset = array->first + first * array->stride;
    if (array->stride == array->places * number_bytes[array->number])
        return read_run(array, offset, count * array->places, values, error);
    for (int64_t i = 0; i < count; i++)
        if (!read_run(array, offset + i * array->stride, array->places, values + i * array->places,
                      error))
            return false;
    return true;
}

/* ---- Kinds --------------------------------------------------------------------------------- */

/* What the header of a file says of its one array. */
typedef struct {
    Number number;
    bool big_endian, by_columns;
    int64_t first, records, places;
    int n; /* of an .npy file */
    int64_t dims[MTF_DATA_DIMENSIONS];
} Header;

/* The file of `path`, in rows. */
static MtfDataFile *open_in_rows(const char *path, Header *header, GError **error) {
    MtfDataFile *file = mtf_data_file_open(path, error);
    if (file == NULL || !header->by_columns || header->n == 1)
        return file;
    MtfDataColumns columns = { .first = header->first,
                               .number_bytes = number_bytes[header->number],
                               .n = header->n,
                               .places = header->places };
    memcpy(columns.dims, header->dims, sizeof columns.dims);
    MtfDataFile *turned = mtf_data_file_turn(file, &columns, error);
    header->first = 0;
    mtf_data_file_close(file);
    return turned;
}

/* Appends an array that lies in `file`, which it takes. */
static void take(MtfDataFile *file, const Header *header, int64_t stride, GPtrArray *arrays) {
    MtfDataArray *array = g_new(MtfDataArray, 1);
    *array = (MtfDataArray){ .file = file,
                             .number = header->number,
                             .big_endian = header->big_endian,
                             .first = header->first,
                             .stride = stride,
                             .records = header->records,
                             .places = header->places };
    g_ptr_array_add(arrays, array);
}

/* Appends an array of its own to the file of `path`. */
static bool append(const char *path, Header *header, int64_t stride, GPtrArray *arrays,
                   GError **error) {
    MtfDataFile *file = open_in_rows(path, header, error);
    if (file != NULL)
        take(file, header, stride, arrays);
    return file != NULL;
}

/* Appends the array after comparing the file's length with what the header says. */
static bool append_checked(const char *path, const char *kind, Header *header, int64_t file_bytes,
                           GPtrArray *arrays, GError **error) {
    int64_t stride = header->places * number_bytes[header->number];
    int64_t wanted;
    if (header->records == 0)
        return mtf_input_error(error, "%s: %s of no examples", path, kind);
    if (__builtin_mul_overflow(header->records, stride, &wanted) ||
        __builtin_add_overflow(wanted, header->first, &wanted))
        return mtf_input_error(error, "%s: %s whose sizes are too large", path, kind);
    if (wanted != file_bytes)
        return mtf_input_error(error,
                               "%s: %s of %" PRId64 " records of %" PRId64 " numbers should have "
                               "%" PRId64 " bytes, but it has %" PRId64 "%s",
                               path, kind, header->records, header->places, wanted, file_bytes,
                               file_bytes < wanted ? ": it is cut short" : "");
    return append(path, header, stride, arrays, error);
}

/* The numbers of all dimensions but the first. */
static bool count_places(const int64_t *dims, int n, int64_t *places) {
    *places = 1;
    for (int i = 1; i < n; i++)
        if (dims[i] < 1 || __builtin_mul_overflow(*places, dims[i], places) ||
            *places > G_MAXINT64 / 8)
            return false;
    return true;
}

/* NumPy's letters: "<f4", "|u1", ">i8". */
static bool parse_descr(const char *text, Header *header) {
    static const struct {
        const char *name;
        Number number;
    } names[] = {
        { "u1", NUMBER_U8 },  { "i1", NUMBER_I8 },  { "u2", NUMBER_U16 },
        { "i2", NUMBER_I16 }, { "u4", NUMBER_U32 }, { "i4", NUMBER_I32 },
        { "i8", NUMBER_I64 }, { "f4", NUMBER_F32 }, { "f8", NUMBER_F64 },
    };
    header->big_endian = text[0] == '>';
    for (gsize i = 0; text[0] != '\0' && i < G_N_ELEMENTS(names); i++)
        if (strcmp(text + 1, names[i].name) == 0) {
            header->number = names[i].number;
            return true;
        }
    return false;
}

/* "60000, 28, 28" or "5," */
static bool parse_shape(const char *text, Header *header) {
    int64_t *dims = header->dims;
    int n = 0;
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    for (int i = 0; parts[i] != NULL; i++) {
        const char *part = g_strstrip(parts[i]);
        if (part[0] == '\0' && n > 0)
            continue;
        if (n == MTF_DATA_DIMENSIONS ||
            !g_ascii_string_to_signed(part, 10, 0, G_MAXINT64, &dims[n], NULL))
            return false;
        n++;
    }
    header->records = dims[0];
    header->n = n;
    return n > 0 && count_places(dims, n, &header->places);
}

/* The dictionary of an .npy file, whose keys may come in any order. */
static bool parse_dictionary(const char *path, const char *text, Header *header, GError **error) {
    g_autoptr(GRegex) pattern = g_regex_new(
        "^\\s*\\{(?=.*'descr'\\s*:\\s*'([<>|=][a-z][0-9]+)')(?=.*'fortran_order'\\s*:\\s*(True|False))"
        "(?=.*'shape'\\s*:\\s*\\(([^)]*)\\))",
        G_REGEX_RAW, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(pattern, text, 0, &match))
        return mtf_input_error(error, "%s: the header of this .npy file cannot be understood",
                               path);
    g_autofree char *descr = g_match_info_fetch(match, 1);
    g_autofree char *fortran = g_match_info_fetch(match, 2);
    g_autofree char *shape = g_match_info_fetch(match, 3);
    header->by_columns = strcmp(fortran, "True") == 0;
    if (!parse_descr(descr, header))
        return mtf_input_error(error,
                               "%s: numbers of type %s are not read (integers of up to 64 bits and "
                               "floats of 32 and 64 are)",
                               path, descr);
    return parse_shape(shape, header) ||
           mtf_input_error(error, "%s: the shape (%s) has no first dimension, or is too large",
                           path, shape);
}

static guint32 little32(const unsigned char *bytes) {
    return (guint32)bytes[0] | (guint32)bytes[1] << 8 | (guint32)bytes[2] << 16 |
           (guint32)bytes[3] << 24;
}

static guint32 big32(const unsigned char *bytes) {
    return (guint32)bytes[3] | (guint32)bytes[2] << 8 | (guint32)bytes[1] << 16 |
           (guint32)bytes[0] << 24;
}

static bool open_npy(const MtfDataFile *file, const unsigned char *start, GPtrArray *arrays,
                     GError **error) {
    const char *path = mtf_data_file_path(file);
    int64_t size = mtf_data_file_size(file);
    bool wide = start[6] >= 2;
    int64_t length = wide ? (int64_t)little32(start + 8) : start[8] | start[9] << 8;
    Header header = { .first = (wide ? 12 : 10) + length };
    if (start[6] < 1 || start[6] > 3 || length > 65536 || header.first > size)
        return mtf_input_error(error,
                               "%s: the header of this .npy file is cut short or of an "
                               "unknown version",
                               path);
    g_autofree char *text = g_malloc0((gsize)length + 1);
    return mtf_data_file_read(file, header.first - length, text, length, error) &&
           parse_dictionary(path, text, &header, error) &&
           append_checked(path, "an array", &header, size, arrays, error);
}

#define LLM_HEADER_BYTES 1024
#define LLM_MAGIC_16 20240520
#define LLM_MAGIC_32 20240801

static bool open_llm(const MtfDataFile *file, const unsigned char *start, GPtrArray *arrays,
                     GError **error) {
    bool wide = little32(start) == LLM_MAGIC_32;
    guint32 version = little32(start + 4);
    Header header = { .number = wide ? NUMBER_U32 : NUMBER_U16,
                      .first = LLM_HEADER_BYTES,
                      .records = little32(start + 8),
                      .places = 1 };
    if (version != (wide ? 7 : 1))
        return mtf_input_error(error, "%s: llm.c tokens of version %u are not read",
                               mtf_data_file_path(file), version);
    return append_checked(mtf_data_file_path(file), "a file of llm.c tokens", &header,
                          mtf_data_file_size(file), arrays, error);
}

/* The third byte of an IDX file says what its numbers are. */
static bool idx_number(int code, Number *number) {
    switch (code) {
    case 0x08:
        *number = NUMBER_U8;
        return true;
    case 0x09:
        *number = NUMBER_I8;
        return true;
    case 0x0B:
        *number = NUMBER_I16;
        return true;
    case 0x0C:
        *number = NUMBER_I32;
        return true;
    case 0x0D:
        *number = NUMBER_F32;
        return true;
    case 0x0E:
        *number = NUMBER_F64;
        return true;
    default:
        return false;
    }
}

#define IDX_DIMENSIONS 5 /* of volumes with channels */

static bool is_idx(const unsigned char *start) {
    Number number;
    return start[0] == 0 && start[1] == 0 && idx_number(start[2], &number) && start[3] >= 1 &&
           start[3] <= IDX_DIMENSIONS;
}

static bool open_idx(const MtfDataFile *file, const unsigned char *start, GPtrArray *arrays,
                     GError **error) {
    int64_t dims[IDX_DIMENSIONS] = { 0 };
    int n = start[3];
    Header header = { .big_endian = true, .first = 4 + 4 * n };
    const char *path = mtf_data_file_path(file);
    idx_number(start[2], &header.number);
    if (mtf_data_file_size(file) < header.first)
        return mtf_input_error(error, "%s: the header of this IDX file is cut short", path);
    for (int i = 0; i < n; i++)
        dims[i] = big32(start + 4 + 4 * i);
    header.records = dims[0];
    if (!count_places(dims, n, &header.places))
        return mtf_input_error(
            error, "%s: a dimension of this IDX file is 0, or they are too large", path);
    return append_checked(path, "an IDX file", &header, mtf_data_file_size(file), arrays, error);
}

/* Labels in front of a CIFAR record: CIFAR-10's class; CIFAR-100's coarse class, then the fine one,
 * which is the one that counts. */
#define CIFAR_PIXELS 3072
#define MOST_LABELS 2

/* How many labels each CIFAR record of a file of `bytes` bytes has, or 0. */
static int cifar_labels(int64_t bytes) {
    for (int labels = 1; bytes > 0 && labels <= MOST_LABELS; labels++)
        if (bytes % (CIFAR_PIXELS + labels) == 0)
            return labels;
    return 0;
}

static bool open_cifar(const MtfDataFile *file, int labels, GPtrArray *arrays, GError **error) {
    const char *path = mtf_data_file_path(file);
    int64_t stride = CIFAR_PIXELS + labels, records = mtf_data_file_size(file) / stride;
    Header label = { .number = NUMBER_U8, .first = labels - 1, .records = records, .places = 1 };
    Header pixels = {
        .number = NUMBER_U8, .first = labels, .records = records, .places = CIFAR_PIXELS
    };
    return append(path, &label, stride, arrays, error) &&
           append(path, &pixels, stride, arrays, error);
}

/* A text, or tokens without a header. */
static bool open_bare_tokens(const MtfDataFile *file, GPtrArray *arrays, GError **error) {
    const char *path = mtf_data_file_path(file);
    int64_t size = mtf_data_file_size(file);
    bool wide = g_str_has_suffix(path, ".bin");
    Header header = { .number = wide ? NUMBER_U16 : NUMBER_U8,
                      .records = wide ? size / 2 : size,
                      .places = 1 };
    if (wide && size % 2 != 0)
        return mtf_input_error(error,
                               "%s: a .bin file holds tokens of two bytes, but this one has an odd "
                               "number of bytes, %" PRId64,
                               path, size);
    return append(path, &header, wide ? 2 : 1, arrays, error);
}

static bool open_bare_examples(const MtfDataFile *file, GPtrArray *arrays, GError **error) {
    int labels = cifar_labels(mtf_data_file_size(file));
    if (labels > 0)
        return open_cifar(file, labels, arrays, error);
    return mtf_input_error(error,
                           "%s is neither an IDX nor an .npy file, nor does it have CIFAR-10's "
                           "records of 3073 bytes, or CIFAR-100's of 3074",
                           mtf_data_file_path(file));
}

static bool open_pictures(const char *path, GPtrArray *arrays, GError **error) {
    MtfPictures p;
    g_autoptr(MtfDataFile) file = mtf_pictures_open(path, &p, error);
    MtfDataFile *again = file != NULL ? mtf_data_file_again(file, error) : NULL;
    if (again == NULL)
        return false;
    int64_t pixels = p.channels * p.rows * p.columns, stride = MTF_PICTURE_LABEL_BYTES + pixels;
    Header of_labels = { .number = NUMBER_U32, .records = p.pictures, .places = 1 };
    Header of_pixels = { .number = NUMBER_U8,
                         .first = MTF_PICTURE_LABEL_BYTES,
                         .records = p.pictures,
                         .places = pixels };
    take(again, &of_pixels, stride, arrays);
    if (p.classes > 0)
        take(g_steal_pointer(&file), &of_labels, stride, arrays);
    return true;
}

bool mtf_data_arrays_open(const char *path, bool wants_tokens, GPtrArray *arrays, GError **error) {
    unsigned char start[4 + 4 * IDX_DIMENSIONS] = { 0 };
    if (!wants_tokens && g_file_test(path, G_FILE_TEST_IS_DIR))
        return open_pictures(path, arrays, error);
    g_autoptr(MtfDataFile) file = mtf_data_file_open(path, error);
    if (file == NULL ||
        !mtf_data_file_read(file, 0, start, MIN(mtf_data_file_size(file), (int64_t)sizeof start),
                            error))
        return false;
    if (memcmp(start, "\x93NUMPY", 6) == 0)
        return open_npy(file, start, arrays, error);
    if (wants_tokens && (little32(start) == LLM_MAGIC_16 || little32(start) == LLM_MAGIC_32))
        return open_llm(file, start, arrays, error);
    if (wants_tokens)
        return open_bare_tokens(file, arrays, error);
    return is_idx(start) ? open_idx(file, start, arrays, error)
                         : open_bare_examples(file, arrays, error);
}
