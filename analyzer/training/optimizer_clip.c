// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/differentiate.h"
#include "analyzer/training/optimizer_updates.h"

static int compare_ints(gconstpointer a, gconstpointer b) {
    return *(const int *)a - *(const int *)b;
}

/* The names of a shape's dimensions, sorted by id: the same for the same set. Free with g_free. */
static char *set_of_dims(const MtfGraph *graph, const MtfShape *shape) {
    GArray *dims = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_vals(dims, shape->dims, (guint)shape->rank);
    g_array_sort(dims, compare_ints);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < dims->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "",
                               mtf_graph_dimension(graph, g_array_index(dims, int, i))->name);
    g_array_unref(dims);
    return g_string_free(text, FALSE);
}

/* A group of terms; the key is the set's text. */
typedef struct {
    char *set;
    GArray *terms; /* int */
} Group;

static void clear_group(gpointer data) {
    Group *group = data;
    g_free(group->set);
    g_array_unref(group->terms);
}

static GArray *group_of(GArray *groups, const MtfGraph *graph, const MtfShape *shape) {
    g_autofree char *set = set_of_dims(graph, shape);
    for (guint i = 0; i < groups->len; i++)
        if (g_str_equal(g_array_index(groups, Group, i).set, set))
            return g_array_index(groups, Group, i).terms;
    Group group = { g_steal_pointer(&set), g_array_new(FALSE, FALSE, sizeof(int)) };
    g_array_append_val(groups, group);
    return group.terms;
}

static int sum(MtfBuilder *builder, const char *name, const GArray *terms) {
    if (terms->len == 1)
        return g_array_index(terms, int, 0);
    return mtf_build(builder, MTF_OP_ADD, name, NULL, (int)terms->len, (int *)terms->data);
}

static void add_square(MtfBuilder *b, GArray *groups, const MtfVariableGradient *pair) {
    g_autofree char *name =
        g_strdup_printf("clip/square/%s", mtf_graph_tensor(b->graph, pair->variable)->name);
    MtfShape shape = mtf_graph_tensor(b->graph, pair->gradient)->shape;
    b->layer = mtf_graph_tensor(b->graph, pair->variable)->layer;
    int square =
        MTF_BUILD(b, MTF_OP_EINSUM, name, &(MtfShape){ 0 }, pair->gradient, pair->gradient);
    b->layer = (MtfLayer){ 0 };
    GArray *terms = group_of(groups, b->graph, &shape);
    g_array_append_val(terms, square);
}

int mtf_clip_by_norm(MtfBuilder *builder, const GArray *gradients, double limit) {
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Group));
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_set_clear_func(groups, clear_group);
    for (guint i = 0; i < gradients->len; i++)
        add_square(builder, groups, &g_array_index(gradients, MtfVariableGradient, i));
    for (guint i = 0; i < groups->len; i++) {
        const Group *group = &g_array_index(groups, Group, i);
        g_autofree char *name = g_strdup_printf("clip/sum/%s", group->set);
        int partial = sum(builder, name, group->terms);
        g_array_append_val(sums, partial);
    }
    int total = sum(builder, "clip/sum", sums);
    builder->attributes.limit = limit;
    return MTF_BUILD(builder, MTF_OP_CLIP_FACTOR, "clip", NULL, total);
}
