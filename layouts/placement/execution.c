// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/execution.h"

#include "layouts/base/error.h"

#include <string.h>

const char *mtf_recompute_name(MtfRecompute recompute) {
    static const char *const names[MTF_RECOMPUTES] = { "none", "cheap", "layers" };
    return names[recompute];
}

static const char *offload_name(MtfOffload offload) {
    static const char *const names[MTF_OFFLOADS] = { "none", "layers", "activations" };
    return names[offload];
}

static char *format(const char *name, int layers) {
    return layers > 0 ? g_strdup_printf("%s:%d", name, layers) : g_strdup(name);
}

char *mtf_recompute_format(MtfRecompute recompute, int layers) {
    return format(mtf_recompute_name(recompute), layers);
}

char *mtf_offload_format(MtfOffload offload, int layers) {
    return format(offload_name(offload), layers);
}

/* Whether the text is the name; or where layers may be counted, the name and a number of them. */
static bool is_choice(const char *text, const char *name, bool counts, int *layers) {
    gsize length = strlen(name);
    guint64 count = 0;
    bool counted = counts && g_str_has_prefix(text, name) && text[length] == ':' &&
                   g_ascii_string_to_unsigned(text + length + 1, 10, 1, INT16_MAX, &count, NULL);
    *layers = (int)count;
    return counted || strcmp(text, name) == 0;
}

bool mtf_recompute_parse(const char *text, MtfRecompute *recompute, int *layers, GError **error) {
    /* as other systems call them */
    static const char *const others[MTF_RECOMPUTES] = { "none", "selective", "full" };
    *layers = 0;
    for (int i = 0; i < MTF_RECOMPUTES; i++) {
        *recompute = (MtfRecompute)i;
        if (text == NULL || is_choice(text, others[i], false, layers) ||
            is_choice(text, mtf_recompute_name(*recompute), i == MTF_RECOMPUTE_LAYERS, layers))
            return true;
    }
    return mtf_input_error(error,
                           "--recompute \"%s\" must be none, cheap (selective), layers (full), "
                           "layers:K for the first K or, of a search, auto",
                           text);
}

char *mtf_recompute_format_stages(const MtfRecompute *each, int stages) {
    GString *text = g_string_new(NULL);
    for (int s = 0; s < stages; s++)
        g_string_append_printf(text, "%s%s", s > 0 ? "," : "", mtf_recompute_name(each[s]));
    return g_string_free(text, FALSE);
}

MtfRecompute *mtf_recompute_parse_stages(const char *text, int stages, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    int count = (int)g_strv_length(words);
    if (count != stages) {
        mtf_input_error(error,
                        "--recompute \"%s\" says of %d what is recomputed, and there are %d stages",
                        text, count, stages);
        return NULL;
    }
    g_autofree MtfRecompute *each = g_new(MtfRecompute, stages);
    for (int s = 0; s < stages; s++) {
        int layers;
        if (!mtf_recompute_parse(words[s], &each[s], &layers, error))
            return NULL;
        if (layers == 0)
            continue;
        mtf_input_error(error,
                        "--recompute \"%s\": a list has none, cheap or layers for each stage, "
                        "not numbers of layers",
                        text);
        return NULL;
    }
    return g_steal_pointer(&each);
}

bool mtf_offload_parse(const char *text, MtfOffload *offload, int *layers, GError **error) {
    *layers = 0;
    for (int i = 0; i < MTF_OFFLOADS; i++) {
        *offload = (MtfOffload)i;
        if (text == NULL || is_choice(text, offload_name(*offload), i != MTF_OFFLOAD_NONE, layers))
            return true;
    }
    return mtf_input_error(error,
                           "--offload \"%s\" must be none, layers, activations, layers:K or "
                           "activations:K for the first K layers or, of a search, auto",
                           text);
}
