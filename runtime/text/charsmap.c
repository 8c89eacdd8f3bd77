// SPDX-License-Identifier: GPL-3.0-or-later
/* What SentencePiece makes of characters, as it stores it ("Precompiled"): a trie in a double array (Yata's
 * darts-clone), whose leaves are places in a block of strings:
 *
 *     bytes of the trie (4) │ units (4 each) │ string NUL string NUL …
 *
 * A unit has a label, an offset to its children, and whether its first child is a leaf. From a unit's place,
 * xor offset, xor the next byte is its child for that byte, if that child has it as its label. */
#include "runtime/text/text_steps.h"

#include <string.h>

#define LEAF (1u << 31)

typedef struct {
    const guint8 *units;
    gsize n_units;
    const char *strings;
    gsize n_strings;
} Charsmap;

static guint32 number_at(const guint8 *bytes) {
    return (guint32)bytes[0] | (guint32)bytes[1] << 8 | (guint32)bytes[2] << 16 |
           (guint32)bytes[3] << 24;
}

/* False where the map is cut off, or its last string is. */
static bool charsmap_open(Charsmap *map, GBytes *bytes) {
    gsize size;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    gsize trie = size < 4 ? 0 : number_at(data);
    if (trie == 0 || trie % 4 != 0 || trie > size - 4)
        return false;
    *map = (Charsmap){ data + 4, trie / 4, (const char *)data + 4 + trie, size - 4 - trie };
    return map->n_strings > 0 && map->strings[map->n_strings - 1] == '\0';
}

/* A unit beyond the end has no label, no children and no leaf. */
static guint32 unit_at(const Charsmap *map, guint32 at) {
    return at < map->n_units ? number_at(map->units + 4 * (gsize)at) : LEAF;
}

static guint32 children_of(guint32 unit) {
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* What the shortest entry that begins `text` becomes; NULL where none does. */
static const char *look_up(const Charsmap *map, const char *text, gsize length) {
    guint32 at = children_of(unit_at(map, 0));
    for (gsize i = 0; i < length; i++) {
        guint32 byte = (guint8)text[i];
        at ^= byte;
        guint32 unit = unit_at(map, at);
        if ((unit & (LEAF | 0xff)) != byte)
            return NULL;
        at ^= children_of(unit);
        if ((unit & (1u << 8)) == 0)
            continue;
        guint32 place = unit_at(map, at) & ~LEAF;
        return place < map->n_strings ? map->strings + place : NULL;
    }
    return NULL;
}

/* A cluster of up to five bytes is looked up as a whole, others character by character: so do the libraries
 * that the published models were made with. */
static void append_cluster(const Charsmap *map, const char *from, const char *to, GString *out) {
    const char *whole = to - from < 6 ? look_up(map, from, (gsize)(to - from)) : NULL;
    if (whole != NULL) {
        g_string_append(out, whole);
        return;
    }
    for (const char *next; from < to; from = next) {
        next = g_utf8_next_char(from);
        const char *becomes = look_up(map, from, (gsize)(next - from));
        if (becomes != NULL)
            g_string_append(out, becomes);
        else
            g_string_append_len(out, from, next - from);
    }
}

static char *normalize(const MtfTextStep *step, const char *text) {
    Charsmap map;
    GMatchInfo *match;
    int from, to;
    GString *out = g_string_sized_new(strlen(text));
    bool open = charsmap_open(&map, step->bytes);
    g_assert(open);
    g_regex_match(step->regex, text, 0, &match);
    for (; g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_match_info_fetch_pos(match, 0, &from, &to);
        append_cluster(&map, text + from, text + to, out);
    }
    g_match_info_unref(match);
    /* a damaged map may have places within a character */
    char *valid = mtf_text_valid(out->str, out->len);
    g_string_free(out, TRUE);
    return valid;
}

/* {"precompiled_charsmap": base64}; \X is a cluster of characters. */
bool mtf_text_charsmap(const MtfJson *object, MtfTextStep *step, GError **error) {
    MtfJson member;
    const char *text;
    gsize length;
    Charsmap map;
    if (!mtf_json_get(object, "precompiled_charsmap", &member, error) ||
        !mtf_json_string(&member, &text, error))
        return false;
    guchar *bytes = g_base64_decode(text, &length);
    step->bytes = g_bytes_new_take(bytes, length);
    step->normalize = normalize;
    step->regex = g_regex_new("\\X", G_REGEX_OPTIMIZE, 0, NULL);
    return charsmap_open(&map, step->bytes) ||
           mtf_json_fail(&member, error,
                         "a map of characters is expected here, the size of a trie, a trie and "
                         "strings, in base64");
}
