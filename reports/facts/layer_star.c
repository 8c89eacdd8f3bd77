// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/layer_star.h"

#include <string.h>

/* Whether `text` begins with "REPEAT/NUMBER" and a part ends there; sets `*digits` to the number's
 * length. */
static bool is_layer(const char *text, const char *repeat, gsize *digits) {
    gsize length = strlen(repeat);
    if (strncmp(text, repeat, length) != 0 || text[length] != '/')
        return false;
    *digits = strspn(text + length + 1, "0123456789");
    char end = text[length + 1 + *digits];
    return *digits > 0 && (end == '/' || end == '\0');
}

static void star_repeat(GString *name, const char *repeat) {
    for (gsize i = 0; i < name->len; i++) {
        gsize digits;
        if ((i > 0 && name->str[i - 1] != '/') || !is_layer(name->str + i, repeat, &digits))
            continue;
        gssize number = (gssize)(i + strlen(repeat) + 1);
        g_string_erase(name, number, (gssize)digits);
        g_string_insert_c(name, number, '*');
    }
}

char *mtf_layer_star(const MtfGraph *graph, const char *name) {
    GString *starred = g_string_new(name);
    for (guint r = 0; r < graph->repeats->len; r++)
        star_repeat(starred, g_array_index(graph->repeats, MtfRepeat, r).name);
    return g_string_free(starred, FALSE);
}
