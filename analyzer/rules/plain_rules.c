// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/plain_rules.h"

#include <math.h>

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    MtfRules *rules;
    double *bytes; /* of each tensor on a device */
    double *saved; /* of them by each dimension on the axis at hand; -INFINITY: not legal there */
    double share;  /* what saves less of them all is left alone */
} Plain;

static bool splits(const Plain *plain, const MtfShape *shape, int axis) {
    for (int i = 0; i < shape->rank; i++)
        if (plain->rules->axis[shape->dims[i]] == axis)
            return true;
    return false;
}

/* What is left of a dimension's size on a device of the axis. */
static double part_left(const Plain *plain, int dim, int axis) {
    int64_t size = mtf_graph_size(plain->graph, dim);
    return (double)mtf_largest_part(size, plain->mesh->axes[axis].size) / (double)MAX(1, size);
}

static void weigh_tensor(Plain *plain, int t, int axis) {
    const MtfShape *shape = &mtf_graph_tensor(plain->graph, t)->shape;
    bool taken = splits(plain, shape, axis);
    for (int i = 0; i < shape->rank; i++) {
        int dim = shape->dims[i];
        plain->saved[dim] +=
            taken ? -INFINITY : plain->bytes[t] * (1 - part_left(plain, dim, axis));
    }
}

static double weigh_all(Plain *plain, int axis) {
    double all = 0;
    for (int d = 0; d < plain->rules->n_dims; d++)
        plain->saved[d] = 0;
    for (int t = 0; t < (int)plain->graph->tensors->len; t++) {
        weigh_tensor(plain, t, axis);
        all += plain->bytes[t];
    }
    return all;
}

/* The dimension that saves most on the axis, of equals the first; -1: none saves enough. */
static int best_dimension(Plain *plain, int axis, const unsigned *allowed) {
    double most = plain->share * weigh_all(plain, axis);
    int best = -1;
    for (int d = 0; d < plain->rules->n_dims; d++)
        if (plain->rules->axis[d] < 0 && (allowed[d] >> (axis + 1) & 1) != 0 &&
            plain->saved[d] > most) {
            best = d;
            most = plain->saved[d];
        }
    return best;
}

static void lay(Plain *plain, int dim, int axis) {
    plain->rules->axis[dim] = axis;
    for (int t = 0; t < (int)plain->graph->tensors->len; t++)
        if (mtf_shape_find(&mtf_graph_tensor(plain->graph, t)->shape, dim) >= 0)
            plain->bytes[t] *= part_left(plain, dim, axis);
}

static void lay_pinned(Plain *plain, const unsigned *allowed) {
    for (int d = 0; d < plain->rules->n_dims; d++)
        for (int a = 0; a < plain->mesh->n_axes; a++)
            if (allowed[d] == 2U << a)
                lay(plain, d, a);
}

MtfRules *mtf_plain_rules(const MtfGraph *graph, const MtfMesh *mesh, const unsigned *allowed,
                          double share) {
    g_autofree double *bytes = g_new(double, graph->tensors->len + 1);
    g_autofree double *saved = g_new(double, graph->dimensions->len + 1);
    Plain plain = { graph, mesh, mtf_rules_new(graph), bytes, saved, share };
    for (int t = 0; t < (int)graph->tensors->len; t++)
        bytes[t] = (double)mtf_graph_tensor_bytes(graph, t);
    lay_pinned(&plain, allowed);
    for (int a = 0; a < mesh->n_axes; a++)
        for (int dim = 0; (dim = best_dimension(&plain, a, allowed)) >= 0;)
            lay(&plain, dim, a);
    return plain.rules;
}
