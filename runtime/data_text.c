// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data_text.h"

#include "layouts/error.h"
#include "layouts/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM "data/window"
#define IDENTITY_BLOCKS 64
#define IDENTITY_BLOCK 1024
#define ENTROPY_BYTES (INT64_C(64) << 20)

struct MtfText {
    char *path;
    int file;
    int64_t window;
    int64_t bytes_in_file, train_bytes;
    uint8_t *bytes; /* window + 1 */
};

/* Reads exactly `count` bytes at `offset`. */
static bool read_at(const MtfText *text, int64_t offset, uint8_t *bytes, int64_t count,
                    GError **error) {
    for (int64_t done = 0; done < count;) {
        gssize got = pread(text->file, bytes + done, (gsize)(count - done), offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return mtf_failure(error, "%s cannot be read: %s", text->path, g_strerror(errno));
        if (got == 0)
            return mtf_failure(error, "%s became shorter while it was read", text->path);
        done += got;
    }
    return true;
}

static bool check_bytes(MtfText *text, int64_t size, int64_t bound, GError **error) {
    uint8_t block[1 << 14];
    for (int64_t at = 0; at < size && bound < 256; at += (int64_t)sizeof block) {
        int64_t count = MIN(size - at, (int64_t)sizeof block);
        if (!read_at(text, at, block, count, error))
            return false;
        for (int64_t i = 0; i < count; i++)
            if (block[i] >= bound)
                return mtf_input_error(error,
                                       "%s holds byte %d at offset %" PRId64
                                       ", but the model's vocabulary has only %" PRId64
                                       " tokens: use a vocabulary of 256 or another text",
                                       text->path, block[i], at + i, bound);
    }
    return true;
}

static bool open_file(MtfText *text, int64_t *size, GError **error) {
    struct stat status;
    text->file = open(text->path, O_RDONLY | O_CLOEXEC);
    if (text->file < 0 || fstat(text->file, &status) != 0)
        return mtf_input_error(error, "the data file %s cannot be read: %s", text->path,
                               g_strerror(errno));
    if (!S_ISREG(status.st_mode))
        return mtf_input_error(error, "the data %s is not a regular file", text->path);
    *size = status.st_size;
    return true;
}

MtfText *mtf_text_open(const char *path, int64_t window, int64_t bound, GError **error) {
    MtfText *text = g_new0(MtfText, 1);
    int64_t size = 0;
    text->path = g_strdup(path);
    text->file = -1;
    text->window = window;
    if (!open_file(text, &size, error))
        goto failed;
    if (size < window + 1) {
        mtf_input_error(error,
                        "%s holds %" PRId64 " bytes, fewer than one window of %" PRId64
                        " tokens and the token after it",
                        path, size, window);
        goto failed;
    }
    text->bytes_in_file = size;
    text->train_bytes = size - size / 10 > window ? size - size / 10 : size;
    text->bytes = g_malloc0((gsize)window + 1);
    if (check_bytes(text, size, bound, error))
        return text;
failed:
    mtf_text_close(text);
    return NULL;
}

void mtf_text_close(MtfText *text) {
    if (text == NULL)
        return;
    if (text->file >= 0)
        close(text->file);
    g_free(text->bytes);
    g_free(text->path);
    g_free(text);
}

/* A window's offset: 53 random bits scaled to the places where a window can start. */
static int64_t draw_offset(const MtfText *text, uint64_t seed, int64_t step, int64_t example) {
    MtfRandom random = mtf_random_stream(seed, STREAM, (uint64_t)step);
    double high = (double)mtf_random_word(&random, 2 * example);
    double low = (double)(mtf_random_word(&random, 2 * example + 1) >> 11);
    int64_t places = text->train_bytes - text->window;
    int64_t offset = (int64_t)((high * 0x1p-32 + low * 0x1p-53) * (double)places);
    return MIN(offset, places - 1);
}

bool mtf_text_load(MtfText *text, uint64_t seed, int64_t step, int64_t example, GError **error) {
    int64_t offset = draw_offset(text, seed, step, example);
    return read_at(text, offset, text->bytes, text->window + 1, error);
}

double mtf_text_entropy(const MtfText *text) {
    uint8_t block[1 << 14];
    int64_t counts[256] = { 0 };
    int64_t total = MIN(text->train_bytes, ENTROPY_BYTES);
    for (int64_t at = 0; at < total; at += (int64_t)sizeof block) {
        int64_t count = MIN(total - at, (int64_t)sizeof block);
        if (!read_at(text, at, block, count, NULL))
            return NAN;
        for (int64_t i = 0; i < count; i++)
            counts[block[i]]++;
    }
    double entropy = 0;
    for (int b = 0; b < 256; b++)
        if (counts[b] > 0)
            entropy -= (double)counts[b] * log((double)counts[b] / (double)total);
    return entropy / (double)total;
}

char *mtf_text_identity(const MtfText *text, GError **error) {
    uint8_t block[IDENTITY_BLOCK];
    int64_t size = text->bytes_in_file;
    int64_t blocks = MIN((size + IDENTITY_BLOCK - 1) / IDENTITY_BLOCK, IDENTITY_BLOCKS);
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t at = i * (size / blocks);
        int64_t count = MIN(size - at, IDENTITY_BLOCK);
        if (!read_at(text, at, block, count, error))
            return NULL;
        g_checksum_update(digest, block, (gssize)count);
    }
    return g_strdup_printf("text of %" PRId64 " bytes, %.16s", size, g_checksum_get_string(digest));
}

int mtf_text_byte(const MtfText *text, int64_t place) {
    return text->bytes[place];
}
