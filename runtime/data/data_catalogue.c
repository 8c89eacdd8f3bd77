// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_catalogue.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

#define HEADER_BYTES 28
#define CONTEXT_END '\4'
#define LAST_RESERVED 3

static void clear_pair(gpointer data) {
    MtfTextPair *pair = data;
    g_clear_pointer(&pair->source, g_bytes_unref);
    g_clear_pointer(&pair->target, g_bytes_unref);
}

GArray *mtf_text_pairs_new(void) {
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(MtfTextPair));
    g_array_set_clear_func(pairs, clear_pair);
    return pairs;
}

/* A part of a file. */
typedef struct {
    const char *bytes;
    gsize n;
} Text;

static bool has_reserved_bytes(Text text) {
    for (gsize i = 0; i < text.n; i++)
        if ((unsigned char)text.bytes[i] <= LAST_RESERVED)
            return true;
    return false;
}

static void append_pair(GArray *pairs, Text source, Text target) {
    if (source.n == 0 || target.n == 0 || has_reserved_bytes(source) || has_reserved_bytes(target))
        return;
    MtfTextPair pair = { g_bytes_new(source.bytes, source.n), g_bytes_new(target.bytes, target.n) };
    g_array_append_val(pairs, pair);
}

/* ---- Message catalogues ---------------------------------------------------------------------- */

/*     0 magic   4 revision   8 messages   12 table of messages   16 table of translations
 *     each table: length, offset of text 0; of text 1; …         all of 32 bits             */
typedef struct {
    const char *name;
    const unsigned char *bytes;
    gsize n;
    bool big_endian;
} Catalogue;

static guint32 word_at(const Catalogue *catalogue, gsize offset) {
    guint32 word;
    memcpy(&word, catalogue->bytes + offset, sizeof word);
    return catalogue->big_endian ? GUINT32_FROM_BE(word) : GUINT32_FROM_LE(word);
}

bool mtf_catalogue_begins(const unsigned char *bytes, gsize n) {
    return n >= 4 &&
           (memcmp(bytes, "\xde\x12\x04\x95", 4) == 0 || memcmp(bytes, "\x95\x04\x12\xde", 4) == 0);
}

/* Text `i` of the table at `table`, which lies inside. */
static bool text_at(const Catalogue *catalogue, guint32 table, guint32 i, Text *text,
                    GError **error) {
    gsize entry = (gsize)table + 8 * (gsize)i;
    gsize length = word_at(catalogue, entry), offset = word_at(catalogue, entry + 4);
    if (offset + length >= catalogue->n)
        return mtf_input_error(
            error,
            "%s: text %u of this message catalogue, %" G_GSIZE_FORMAT " bytes at %" G_GSIZE_FORMAT
            ", does not lie inside its %" G_GSIZE_FORMAT " bytes: it is damaged or cut short",
            catalogue->name, i, length, offset, catalogue->n);
    *text = (Text){ (const char *)catalogue->bytes + offset, length };
    return true;
}

/* The first plural form. */
static Text first_form(Text text) {
    const char *end = memchr(text.bytes, '\0', text.n);
    return end != NULL ? (Text){ text.bytes, (gsize)(end - text.bytes) } : text;
}

static Text without_context(Text text) {
    const char *end = memchr(text.bytes, CONTEXT_END, text.n);
    if (end == NULL)
        return text;
    return (Text){ end + 1, text.n - (gsize)(end + 1 - text.bytes) };
}

static bool check_header(const Catalogue *catalogue, GError **error) {
    if (catalogue->n < HEADER_BYTES)
        return mtf_input_error(error, "%s: this message catalogue is cut short", catalogue->name);
    if (word_at(catalogue, 4) >> 16 > 1)
        return mtf_input_error(error, "%s: message catalogues of revision %u are not read",
                               catalogue->name, word_at(catalogue, 4) >> 16);
    gsize texts = word_at(catalogue, 8);
    gsize tables = MAX(word_at(catalogue, 12), word_at(catalogue, 16));
    return tables + 8 * texts <= catalogue->n ||
           mtf_input_error(error,
                           "%s: the tables of this message catalogue's %" G_GSIZE_FORMAT
                           " messages do not lie inside its %" G_GSIZE_FORMAT
                           " bytes: it is damaged or cut short",
                           catalogue->name, texts, catalogue->n);
}

bool mtf_catalogue_parse(const char *name, const unsigned char *bytes, gsize n, GArray *pairs,
                         GError **error) {
    Catalogue catalogue = { name, bytes, n, n > 0 && bytes[0] == 0x95 };
    if (!mtf_catalogue_begins(bytes, n))
        return mtf_input_error(error, "%s is no message catalogue", name);
    if (!check_header(&catalogue, error))
        return false;
    guint32 texts = word_at(&catalogue, 8);
    for (guint32 i = 0; i < texts; i++) {
        Text source, target;
        if (!text_at(&catalogue, word_at(&catalogue, 12), i, &source, error) ||
            !text_at(&catalogue, word_at(&catalogue, 16), i, &target, error))
            return false;
        append_pair(pairs, without_context(first_form(source)), first_form(target));
    }
    return true;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

bool mtf_pair_table_parse(const char *name, const unsigned char *bytes, gsize n, GArray *pairs,
                          GError **error) {
    const char *at = (const char *)bytes, *end = at + n;
    for (int64_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (gsize)(end - at));
        stop = stop != NULL ? stop : end;
        gsize length = (gsize)(stop - at);
        length -= length > 0 && at[length - 1] == '\r';
        const char *tab = memchr(at, '\t', length);
        if (length > 0 &&
            (tab == NULL || memchr(tab + 1, '\t', length - (gsize)(tab + 1 - at)) != NULL))
            return mtf_input_error(error,
                                   "%s, line %" PRId64 ": a pair of texts has one tab between them",
                                   name, line);
        if (length > 0)
            append_pair(pairs, (Text){ at, (gsize)(tab - at) },
                        (Text){ tab + 1, length - (gsize)(tab + 1 - at) });
        at = stop + 1;
    }
    return true;
}
