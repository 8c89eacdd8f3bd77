// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/import/layer_names.h"

#include "layouts/graph/operation_table.h"

#include <string.h>

/* Names of what a block's layers have. */
typedef struct {
    const MtfFoundLayers *found;
    int *next[2]; /* by tensor of layer 0: its twins in layers 1 and 2, or itself */
    guint64 step; /* from the number of a layer in names to that of the next; 0: not known yet */
    char *base, *block; /* what is numbered, and that as a name of a block that nothing has */
    char **place;       /* by tensor of layer 0, or NULL; `used` owns them */
    GHashTable *used;
} Naming;

/* What two names have before and behind the number in which alone they differ, free with g_free, and by how much.
 * 0 where they differ otherwise. */
static guint64 split_names(const char *first, const char *second, char **before, char **behind) {
    gsize i = 0;
    char *a, *b;
    while (first[i] != '\0' && first[i] == second[i])
        i++;
    while (i > 0 && g_ascii_isdigit(first[i - 1]))
        i--;
    guint64 number = g_ascii_strtoull(first + i, &a, 10);
    guint64 next = g_ascii_strtoull(second + i, &b, 10);
    if (a == first + i || next <= number || strcmp(a, b) != 0)
        return 0;
    *before = g_strndup(first, i);
    *behind = g_strdup(a + strspn(a, "./_"));
    return next - number;
}

/* The same for a tensor of layer 0, by the names of the first two layers or of the next two; 0 where nothing is behind
 * the number, too, or the step is another. */
static guint64 split_name(const Naming *n, int tensor, char **before, char **behind) {
    const int layers[] = { tensor, n->next[0][tensor], n->next[1][tensor] };
    for (int i = 0; i < 2; i++) {
        guint64 step =
            split_names(mtf_graph_tensor(n->found->graph, layers[i])->name,
                        mtf_graph_tensor(n->found->graph, layers[i + 1])->name, before, behind);
        if (step > 0 && (*behind)[0] != '\0' && (n->step == 0 || n->step == step))
            return step;
        if (step > 0) {
            g_clear_pointer(before, g_free);
            g_clear_pointer(behind, g_free);
        }
    }
    return 0;
}

/* "h" of "/transformer/h." and "features.1" of "/features/features.1.", in place. */
static const char *last_part(char *before) {
    gsize n = strlen(before);
    while (n > 0 && strchr("./_", before[n - 1]) != NULL)
        before[--n] = '\0';
    bool named = false;
    while (n > 0 && !(named && strchr("./", before[n - 1]) != NULL))
        named |= g_ascii_isalpha(before[--n]) != 0;
    return before + n;
}

/* Finds what layers are numbered of, and the step: what their first numbered variable is numbered of, or else the
 * first result that counts by one; else "layer". */
static void find_base(Naming *n) {
    MtfGraph *graph = n->found->graph;
    for (int variables = 1; variables >= 0; variables--) {
        n->step = n->base == NULL && variables == 0 ? 1 : n->step;
        for (int t = 0; t < (int)graph->tensors->len && n->base == NULL; t++) {
            g_autofree char *before = NULL;
            g_autofree char *behind = NULL;
            if (n->found->layer[t] != 1 || (mtf_graph_tensor(graph, t)->producer < 0) != variables)
                continue;
            guint64 step = split_name(n, t, &before, &behind);
            if (step == 0 || last_part(before)[0] == '\0')
                continue;
            n->step = step;
            n->base = g_strdup(last_part(before));
        }
    }
    n->base = n->base != NULL ? n->base : g_strdup("layer");
}

/* Takes `wanted` over. */
static void give_place(Naming *n, int tensor, char *wanted) {
    char *name = g_strdup(wanted);
    for (int i = 2; g_hash_table_contains(n->used, name); i++) {
        g_free(name);
        name = g_strdup_printf("%s_%d", wanted, i);
    }
    g_hash_table_add(n->used, name);
    n->place[tensor] = name;
    g_free(wanted);
}

/* Names a tensor of layer 0 by what it is called beside the number, or else as said, which is taken over. */
static void place_tensor(Naming *n, int tensor, char *otherwise) {
    g_autofree char *before = NULL;
    g_autofree char *behind = NULL;
    if (split_name(n, tensor, &before, &behind) == 0) {
        give_place(n, tensor, otherwise);
        return;
    }
    g_free(otherwise);
    if (g_str_has_suffix(behind, "_output_0"))
        behind[strlen(behind) - strlen("_output_0")] = '\0';
    const char *of = last_part(before);
    bool other = of[0] != '\0' && strcmp(of, n->base) != 0;
    give_place(n, tensor, other ? g_strdup_printf("%s/%s", of, behind) : g_strdup(behind));
}

/* Results by their operations, then variables by who reads them. */
static void find_places(Naming *n) {
    MtfGraph *graph = n->found->graph;
    int operations = (int)graph->operations->len;
    for (int o = 0; o < operations; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        if (n->found->layer[op->outputs[0]] == 1)
            place_tensor(n, op->outputs[0], g_strdup(mtf_operation_row(op->kind)->name));
    }
    for (int o = 0; o < operations; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        for (int k = 0; n->found->layer[op->outputs[0]] == 1 && k < op->n_inputs; k++)
            if (n->found->layer[op->inputs[k]] == 1 && n->place[op->inputs[k]] == NULL)
                place_tensor(n, op->inputs[k],
                             g_strconcat(n->place[op->outputs[0]], "/weight", NULL));
    }
}

/* The name of a tensor of a layer; NULL where it keeps its own. Free with g_free. */
static char *name_in_layer(const Naming *n, int tensor) {
    int first = n->found->first[tensor];
    const char *place = n->found->layer[tensor] > 0 ? n->place[first < 0 ? tensor : first] : NULL;
    if (place == NULL)
        return NULL;
    return g_strdup_printf("%s/%d/%s", n->block, n->found->layer[tensor] - 1, place);
}

/* Whether something else in the graph has a name that one of the block's would get. */
static bool is_taken(const Naming *n) {
    bool taken = mtf_graph_find_repeat(n->found->graph, n->block) > 0;
    for (int t = 0; !taken && t < (int)n->found->graph->tensors->len; t++) {
        g_autofree char *name = name_in_layer(n, t);
        int other = name != NULL ? mtf_graph_find_tensor(n->found->graph, name) : -1;
        taken = other >= 0 && other != t;
    }
    return taken;
}

static Naming name_layers(const MtfFoundLayers *found) {
    int tensors = (int)found->graph->tensors->len;
    Naming n = { .found = found,
                 .place = g_new0(char *, tensors + 1),
                 .used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) };
    for (int i = 0; i < 2; i++) {
        n.next[i] = g_new(int, tensors + 1);
        for (int t = 0; t < tensors; t++)
            n.next[i][t] = t;
        for (int t = 0; t < tensors; t++)
            if (found->first[t] >= 0 && found->layer[t] == i + 2)
                n.next[i][found->first[t]] = t;
    }
    find_base(&n);
    find_places(&n);
    n.block = g_strdup(n.base);
    for (int i = 2; is_taken(&n); i++) {
        g_free(n.block);
        n.block = g_strdup_printf("%s_%d", n.base, i);
    }
    return n;
}

static void naming_clear(Naming *n) {
    g_free(n->next[0]);
    g_free(n->next[1]);
    g_free(n->base);
    g_free(n->block);
    g_free(n->place);
    g_hash_table_unref(n->used);
}

/* Whether the tensor, or another that its operation makes, is an output or the loss. */
static bool keeps_its_name(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    const MtfOperation *op = producer < 0 ? NULL : mtf_graph_operation(graph, producer);
    bool keeps = false;
    for (int k = 0; op != NULL && k < op->n_outputs; k++)
        keeps |=
            op->outputs[k] == graph->loss || mtf_graph_tensor(graph, op->outputs[k])->output > 0;
    return keeps;
}

void mtf_found_layers_mark(const MtfFoundLayers *found) {
    MtfGraph *graph = found->graph;
    Naming n = name_layers(found);
    mtf_graph_add_repeat(graph, n.block, found->count);
    int block = (int)graph->repeats->len;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        g_autofree char *name = name_in_layer(&n, t);
        if (name == NULL)
            continue;
        MtfTensor *tensor = mtf_graph_tensor(graph, t);
        tensor->layer = (MtfLayer){ block, found->layer[t] - 1 };
        if (tensor->producer >= 0)
            mtf_graph_set_layer(graph, t, tensor->layer);
        if (!keeps_its_name(graph, t))
            mtf_graph_rename(graph, t, name);
    }
    naming_clear(&n);
}
