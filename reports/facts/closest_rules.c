// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/closest_rules.h"

#include "layouts/placement/rules.h"

#include <string.h>

typedef struct {
    int dim, axis;
    double bytes; /* of tensors that are split so */
} Candidate;

static int compare_candidates(const void *left, const void *right) {
    const Candidate *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->dim != b->dim ? a->dim - b->dim : a->axis - b->axis;
}

/* Bytes of all tensors that have `dim`; with `axis` >= 0 of those alone that split it there. */
static double bytes_with(const MtfGraph *graph, const MtfLayout *layout, int dim, int axis) {
    double bytes = 0;
    for (int t = 0; t < layout->n_tensors; t++)
        if (mtf_shape_find(&mtf_graph_tensor(graph, t)->shape, dim) >= 0 &&
            (axis < 0 || layout->tensors[t].axis[axis] == dim))
            bytes += (double)mtf_graph_tensor_bytes(graph, t);
    return bytes;
}

static GArray *candidates_of(const MtfGraph *graph, const MtfLayout *layout) {
    GArray *candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    for (int dim = 0; dim < (int)graph->dimensions->len; dim++) {
        double all = bytes_with(graph, layout, dim, -1);
        for (int axis = 0; axis < layout->mesh.n_axes; axis++) {
            Candidate candidate = { dim, axis, bytes_with(graph, layout, dim, axis) };
            if (2 * candidate.bytes > all)
                g_array_append_val(candidates, candidate);
        }
    }
    g_array_sort(candidates, compare_candidates);
    return candidates;
}

static bool layouts_equal(const MtfLayout *a, const MtfLayout *b) {
    for (int t = 0; t < a->n_tensors; t++)
        if (!mtf_placement_equal(&a->tensors[t], &b->tensors[t]))
            return false;
    for (int i = 0; i < a->n_operations; i++)
        if (!mtf_strategy_equal(&a->operations[i], &b->operations[i]))
            return false;
    return true;
}

char *mtf_closest_rules(const MtfGraph *graph, const MtfLayout *layout, bool *exact) {
    g_autoptr(GArray) candidates = candidates_of(graph, layout);
    g_autoptr(MtfRules) rules = mtf_rules_new(graph);
    for (guint i = 0; i < candidates->len; i++) {
        const Candidate *candidate = &g_array_index(candidates, Candidate, i);
        if (rules->axis[candidate->dim] >= 0)
            continue;
        rules->axis[candidate->dim] = candidate->axis;
        if (!mtf_rules_check(graph, &layout->mesh, rules, NULL))
            rules->axis[candidate->dim] = -1;
    }
    MtfLayout *given = mtf_layout_from_rules(graph, &layout->mesh, rules);
    *exact = layouts_equal(given, layout);
    mtf_layout_free(given);
    return mtf_rules_format(graph, &layout->mesh, rules);
}
