// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/layer_fold.h"

#include <stdlib.h>
#include <string.h>

struct MtfLayerFold {
    const MtfProgram *program;
    GArray *runs; /* MtfLayerRun */
};

/* Splits "layer/7/wq" for the repeat "layer": the layer's number, and what follows it. */
static const char *after_layer(const char *name, const char *repeat, int *layer) {
    gsize length = strlen(repeat);
    if (strncmp(name, repeat, length) != 0 || name[length] != '/')
        return NULL;
    char *end;
    long number = strtol(name + length + 1, &end, 10);
    if (end == name + length + 1 || *end != '/' || number < 0 || number > G_MAXINT)
        return NULL;
    *layer = (int)number;
    return end + 1;
}

static const MtfRepeat *repeat_at(const MtfLayerFold *fold, int repeat) {
    return &g_array_index(fold->program->graph->repeats, MtfRepeat, repeat);
}

/* Adds one line on where a tensor is to its layer's description. */
static void describe_tensor(const MtfProgram *program, int tensor, const char *rest,
                            GString *description) {
    const MtfLayout *layout = program->layout;
    g_autofree char *placement =
        mtf_placement_format(program->graph, &layout->mesh, &layout->tensors[tensor]);
    g_string_append_printf(description, "%s %s", rest, placement);
    int producer = mtf_graph_tensor(program->graph, tensor)->producer;
    for (int a = 0; producer >= 0 && a < layout->mesh.n_axes; a++)
        g_string_append_printf(description, " %d", layout->operations[producer].axis[a]);
    g_string_append_c(description, '\n');
}

/* One text a layer: how all its tensors, and their gradients, are laid out. */
static GPtrArray *describe_layers(const MtfProgram *program, const MtfRepeat *repeat) {
    GPtrArray *layers = g_ptr_array_new();
    for (int i = 0; i < repeat->count; i++)
        g_ptr_array_add(layers, g_string_new(NULL));
    for (int t = 0; t < (int)program->graph->tensors->len; t++) {
        const char *name = mtf_graph_tensor(program->graph, t)->name;
        const char *plain = g_str_has_prefix(name, "grad/") ? name + strlen("grad/") : name;
        int layer;
        const char *rest = after_layer(plain, repeat->name, &layer);
        if (rest != NULL && layer < repeat->count)
            describe_tensor(program, t, plain == name ? rest : name + strlen(name) - strlen(rest),
                            g_ptr_array_index(layers, layer));
    }
    return layers;
}

static void find_runs(MtfLayerFold *fold, int repeat) {
    g_autoptr(GPtrArray) layers = describe_layers(fold->program, repeat_at(fold, repeat));
    for (int i = 0; i < (int)layers->len; i++) {
        GString *description = g_ptr_array_index(layers, i);
        if (i > 0 && g_string_equal(description, g_ptr_array_index(layers, i - 1)))
            g_array_index(fold->runs, MtfLayerRun, fold->runs->len - 1).count++;
        else
            g_array_append_val(fold->runs, ((MtfLayerRun){ repeat, i, 1 }));
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

int mtf_layer_fold_find(const MtfLayerFold *fold, const char *name, int *layer) {
    for (int r = 0; r < (int)fold->runs->len; r++) {
        const MtfLayerRun *run = mtf_layer_fold_run(fold, r);
        if (after_layer(name, repeat_at(fold, run->repeat)->name, layer) != NULL &&
            *layer >= run->first && *layer < run->first + run->count)
            return r;
    }
    return -1;
}

char *mtf_layer_fold_twin(const MtfLayerFold *fold, const char *name) {
    int layer;
    int r = mtf_layer_fold_find(fold, name, &layer);
    if (r < 0)
        return g_strdup(name);
    const MtfLayerRun *run = mtf_layer_fold_run(fold, r);
    const char *repeat = repeat_at(fold, run->repeat)->name;
    const char *rest = after_layer(name, repeat, &layer);
    return g_strdup_printf("%s/%d/%s", repeat, run->first, rest);
}
