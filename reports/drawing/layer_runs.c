// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/layer_runs.h"

#include <stdlib.h>
#include <string.h>

struct MtfLayerFold {
    const MtfProgram *program;
    GArray *runs; /* MtfLayerRun */
};

/* Splits "layer/7/wq" for the repeat "layer", also behind "grad/", "adam/m/" and the like: where
 * the layer's number begins, and what follows it. */
static const char *after_layer(const char *name, const char *repeat, int *layer,
                               const char **digits) {
    gsize length = strlen(repeat);
    for (const char *at = name; at != NULL;
         at = strchr(at, '/') != NULL ? strchr(at, '/') + 1 : NULL) {
        if (strncmp(at, repeat, length) != 0 || at[length] != '/')
            continue;
        char *end;
        *digits = at + length + 1;
        long number = g_ascii_isdigit(**digits) ? strtol(*digits, &end, 10) : -1;
        if (number < 0 || number > G_MAXINT || *end != '/')
            continue;
        *layer = (int)number;
        return end + 1;
    }
    return NULL;
}

static const MtfRepeat *repeat_at(const MtfLayerFold *fold, int repeat) {
    return &g_array_index(fold->program->graph->repeats, MtfRepeat, repeat);
}

/* Adds one line on where a tensor is to its layer's description; `name` lacks the layer. */
static void describe_tensor(const MtfProgram *program, int tensor, const char *name,
                            GString *description) {
    const MtfLayout *layout = program->layout;
    g_autofree char *placement =
        mtf_placement_format(program->graph, &layout->mesh, &layout->tensors[tensor]);
    g_string_append_printf(description, "%s %s", name, placement);
    int producer = mtf_graph_tensor(program->graph, tensor)->producer;
    for (int a = 0; producer >= 0 && a < layout->mesh.n_axes; a++)
        g_string_append_printf(description, " %d", layout->operations[producer].axis[a]);
    g_string_append_c(description, '\n');
}

/* One text a layer: how all its tensors, their gradients and their optimizer's state are laid out.
 */
static GPtrArray *describe_layers(const MtfProgram *program, const MtfRepeat *repeat) {
    GPtrArray *layers = g_ptr_array_new();
    for (int i = 0; i < repeat->count; i++)
        g_ptr_array_add(layers, g_string_new(NULL));
    for (int t = 0; t < (int)program->graph->tensors->len; t++) {
        const char *name = mtf_graph_tensor(program->graph, t)->name, *digits;
        int layer;
        const char *rest = after_layer(name, repeat->name, &layer, &digits);
        if (rest == NULL || layer >= repeat->count)
            continue;
        g_autofree char *before = g_strndup(name, (gsize)(digits - name));
        g_autofree char *bare = g_strconcat(before, rest, NULL);
        describe_tensor(program, t, bare, g_ptr_array_index(layers, layer));
    }
    return layers;
}

static void find_runs(MtfLayerFold *fold, int repeat) {
    g_autoptr(GPtrArray) layers = describe_layers(fold->program, repeat_at(fold, repeat));
    g_autoptr(GHashTable) first = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = 0; i < (int)layers->len; i++) {
        GString *description = g_ptr_array_index(layers, i);
        if (i > 0 && g_string_equal(description, g_ptr_array_index(layers, i - 1))) {
            g_array_index(fold->runs, MtfLayerRun, fold->runs->len - 1).count++;
            continue;
        }
        int alike = GPOINTER_TO_INT(g_hash_table_lookup(first, description->str)) - 1;
        if (alike < 0) {
            alike = (int)fold->runs->len;
            g_hash_table_insert(first, description->str, GINT_TO_POINTER(alike + 1));
        }
        g_array_append_val(fold->runs, ((MtfLayerRun){ repeat, i, 1, alike }));
    }
    for (guint i = 0; i < layers->len; i++)
        g_string_free(g_ptr_array_index(layers, i), TRUE);
}

MtfLayerFold *mtf_layer_fold_new(const MtfProgram *program) {
    MtfLayerFold *fold = g_new0(MtfLayerFold, 1);
    fold->program = program;
    fold->runs = g_array_new(FALSE, FALSE, sizeof(MtfLayerRun));
    for (guint r = 0; r < program->graph->repeats->len; r++)
        find_runs(fold, (int)r);
    return fold;
}

void mtf_layer_fold_free(MtfLayerFold *fold) {
    if (fold == NULL)
        return;
    g_array_unref(fold->runs);
    g_free(fold);
}

int mtf_layer_fold_runs(const MtfLayerFold *fold) {
    return (int)fold->runs->len;
}

const MtfLayerRun *mtf_layer_fold_run(const MtfLayerFold *fold, int run) {
    return &g_array_index(fold->runs, MtfLayerRun, run);
}

static const char *find(const MtfLayerFold *fold, const char *name, int *run, int *layer,
                        const char **digits) {
    for (*run = 0; *run < (int)fold->runs->len; ++*run) {
        const MtfLayerRun *r = mtf_layer_fold_run(fold, *run);
        const char *rest = after_layer(name, repeat_at(fold, r->repeat)->name, layer, digits);
        if (rest != NULL && *layer >= r->first && *layer < r->first + r->count)
            return rest;
    }
    *run = -1;
    return NULL;
}

int mtf_layer_fold_find(const MtfLayerFold *fold, const char *name, int *layer) {
    int run;
    const char *digits;
    find(fold, name, &run, layer, &digits);
    return run;
}

const char *mtf_layer_fold_rest(const MtfLayerFold *fold, const char *name) {
    int run, layer;
    const char *digits;
    return find(fold, name, &run, &layer, &digits);
}

char *mtf_layer_fold_twin(const MtfLayerFold *fold, const char *name) {
    int run, layer;
    const char *digits;
    const char *rest = find(fold, name, &run, &layer, &digits);
    if (rest == NULL)
        return g_strdup(name);
    return g_strdup_printf("%.*s%d/%s", (int)(digits - name), name,
                           mtf_layer_fold_run(fold, run)->first, rest);
}
