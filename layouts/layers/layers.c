// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/layers/layers.h"

#include <string.h>

/* The block's name; "" outside of layers. */
static const char *block_name(const MtfGraph *graph, MtfLayer layer) {
    return layer.block == 0 ? "" : g_array_index(graph->repeats, MtfRepeat, layer.block - 1).name;
}

/* Where the layer's number begins in the name, as "7" of "grad/layer/7/wq", with its length; NULL when
 * the name does not hold the layer between slashes, or before the "@" of a copy. */
static const char *find_number(const MtfGraph *graph, const char *name, MtfLayer layer,
                               gsize *digits) {
    g_autofree char *number = g_strdup_printf("%d", layer.iteration);
    g_autofree char *text = g_strdup_printf("%s/%s", block_name(graph, layer), number);
    gsize length = strlen(text);
    *digits = strlen(number);
    if (layer.block == 0)
        return NULL;
    for (const char *at = strstr(name, text); at != NULL; at = strstr(at + 1, text))
        if ((at == name || at[-1] == '/') && strchr("/@", at[length]) != NULL)
            return at + length - *digits;
    return NULL;
}

static char *with_number(const MtfGraph *graph, const char *name, MtfLayer layer,
                         const char *number) {
    gsize digits;
    const char *at = find_number(graph, name, layer, &digits);
    if (at == NULL)
        return g_strdup(name);
    return g_strdup_printf("%.*s%s%s", (int)(at - name), name, number, at + digits);
}

char *mtf_layer_star(const MtfGraph *graph, const char *name, MtfLayer layer) {
    return with_number(graph, name, layer, "*");
}

char *mtf_layer_twin(const MtfGraph *graph, const char *name, MtfLayer layer, int iteration) {
    g_autofree char *number = g_strdup_printf("%d", iteration);
    return with_number(graph, name, layer, number);
}

const char *mtf_layer_place(const MtfGraph *graph, const char *name, MtfLayer layer,
                            gsize *before) {
    gsize digits;
    const char *at = find_number(graph, name, layer, &digits);
    *before = 0;
    if (at == NULL || at[digits] == '\0')
        return name;
    *before = (gsize)(at - name) - strlen(block_name(graph, layer)) - 1;
    return at + digits + 1;
}

const char *mtf_name_from(const char *name, const char *of) {
    const char *at = of != NULL ? strstr(name, of) : NULL;
    return at != NULL ? at : name;
}
