// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/differentiate.h"
#include "analyzer/training/optimizer_updates.h"
#include "layouts/graph/stage_split.h"

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

/* A group of terms; the key is its stage and the set's text. */
typedef struct {
    int stage;
    char *set;
    GArray *terms; /* int */
} Group;

static void clear_group(gpointer data) {
    Group *group = data;
    g_free(group->set);
    g_array_unref(group->terms);
}

static GArray *group_of(GArray *groups, int stage, char *set) {
    g_autofree char *own = set;
    for (guint i = 0; i < groups->len; i++) {
        const Group *group = &g_array_index(groups, Group, i);
        if (group->stage == stage && g_str_equal(group->set, set))
            return group->terms;
    }
    Group group = { stage, g_steal_pointer(&own), g_array_new(FALSE, FALSE, sizeof(int)) };
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
    int producer = mtf_graph_tensor(b->graph, pair->gradient)->producer;
    int stage = producer >= 0 ? mtf_graph_operation(b->graph, producer)->stage : 0;
    GArray *terms = group_of(groups, stage, set_of_dims(b->graph, &shape));
    g_array_append_val(terms, square);
}

/* "clip/sum/d_ff,d_model", behind the stage where there is one; free with g_free. */
static char *name_sum(int stage, const char *set) {
    g_autofree char *staged = stage > 0 ? g_strdup_printf("/stage/%d", stage) : g_strdup("");
    return g_strconcat("clip/sum", staged, set != NULL ? "/" : NULL, set, NULL);
}

/* The sum of a stage's terms, those of like dimensions first; -1: it has none. */
static int sum_stage(MtfBuilder *builder, const GArray *groups, int stage) {
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(int));
    for (guint i = 0; i < groups->len; i++) {
        const Group *group = &g_array_index(groups, Group, i);
        if (group->stage != stage)
            continue;
        g_autofree char *name = name_sum(stage, group->set);
        int partial = sum(builder, name, group->terms);
        g_array_append_val(sums, partial);
    }
    g_autofree char *name = name_sum(stage, NULL);
    return sums->len > 0 ? sum(builder, name, sums) : -1;
}

int mtf_clip_by_norm(MtfBuilder *builder, const GArray *gradients, double limit) {
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Group));
    g_autoptr(GArray) sums = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_set_clear_func(groups, clear_group);
    for (guint i = 0; i < gradients->len; i++)
        add_square(builder, groups, &g_array_index(gradients, MtfVariableGradient, i));
    for (int stage = 0; stage <= mtf_graph_stages(builder->graph); stage++) {
        int own = sum_stage(builder, groups, stage);
        if (own >= 0)
            g_array_append_val(sums, own);
    }
    int total = sum(builder, "clip/sum", sums);
    builder->attributes.limit = limit;
    return MTF_BUILD(builder, MTF_OP_CLIP_FACTOR, "clip", NULL, total);
}
