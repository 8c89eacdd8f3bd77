// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/stored_place.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

#define MOST (INT64_C(1) << 53)

/* One entry between the brackets: "192", or "64:128/192". */
typedef struct {
    int64_t begin, end, size;
} Entry;

static bool read_number(const char **text, int64_t *number) {
    char *end;
    if (!g_ascii_isdigit(**text))
        return false;
    *number = g_ascii_strtoll(*text, &end, 10);
    *text = end;
    return *number <= MOST;
}

static bool read_entry(const char **text, Entry *entry) {
    entry->begin = 0;
    if (!read_number(text, &entry->size))
        return false;
    entry->end = entry->size;
    if (**text != ':')
        return entry->size > 0;
    entry->begin = entry->size;
    ++*text;
    if (!read_number(text, &entry->end) || **text != '/')
        return false;
    ++*text;
    return read_number(text, &entry->size) && entry->begin < entry->end &&
           entry->end <= entry->size;
}

/* Lays one more dimension inside the blocks so far; `joined`: the file counts it and the last as one. */
static bool add_entry(MtfStoredPlace *place, const Entry *entry, bool joined) {
    bool part = entry->end - entry->begin < entry->size;
    bool parted = place->block < place->stride;
    if ((place->rank == MTF_STORED_MAX_RANK && !joined) || (part && parted))
        return false;
    if (place->stride > MOST / entry->size || place->elements > MOST / entry->size)
        return false;
    if (joined)
        place->dims[place->rank - 1] *= entry->size;
    else
        place->dims[place->rank++] = entry->size;
    place->elements *= entry->end - entry->begin;
    /* Before the dimension that is taken in part blocks are whole: only it and those inside make
     * one. */
    place->first = part ? entry->begin : place->first * entry->size;
    place->block = part ? entry->end - entry->begin : place->block * entry->size;
    place->stride = part ? entry->size : place->stride * entry->size;
    return true;
}

bool mtf_stored_place_parse(const char *text, MtfStoredPlace *place, GError **error) {
    const char *open = strrchr(text, '['), *rest = open != NULL ? open + 1 : NULL;
    Entry entry;
    *place = (MtfStoredPlace){ .block = 1, .stride = 1, .elements = 1 };
    bool good = open != NULL && open > text, joined = false;
    while (good && *rest != ']') {
        good = read_entry(&rest, &entry) && add_entry(place, &entry, joined) &&
               (*rest == ']' || ((*rest == ',' || *rest == '*') && rest[1] != ']'));
        joined = good && *rest == '*';
        rest += good && *rest != ']' ? 1 : 0;
    }
    if (!good || rest[1] != '\0')
        return mtf_input_error(error,
                               "\"%s\" does not say where a variable is stored, as "
                               "\"h.0.attn.c_attn.weight[768,768:1536/2304]\" does",
                               text);
    place->name = g_strndup(text, (gsize)(open - text));
    place->stacked = strstr(place->name, "{}") != NULL;
    return true;
}

void mtf_stored_place_clear(MtfStoredPlace *place) {
    g_clear_pointer(&place->name, g_free);
}

char *mtf_stored_place_name(const MtfStoredPlace *place, int64_t i) {
    g_autoptr(GString) name = g_string_new(place->name);
    g_autofree char *number = g_strdup_printf("%" PRId64, i);
    g_string_replace(name, "{}", number, 1);
    return g_string_free(g_steal_pointer(&name), FALSE);
}
