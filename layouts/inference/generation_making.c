// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/inference/generation_making.h"

#include "layouts/base/error.h"

int mtf_making_emit(MtfMaking *m, const MtfEmission *e, int n, const int *inputs) {
    for (int k = 0; k < n; k++)
        if (inputs[k] < 0)
            return -1;
    if (m->error != NULL)
        return -1;
    g_autofree char *name = g_strconcat(e->name, e->suffix, NULL);
    MtfNewOperation operation = { .name = name,
                                  .kind = e->kind,
                                  .phase = MTF_PHASE_FORWARD,
                                  .layer = m->layer,
                                  .loop = m->loop,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = e->shape,
                                  .has_dtype = e->has_dtype,
                                  .dtype = e->dtype,
                                  .attributes = e->attributes };
    return mtf_graph_add_operation(m->graph, &operation, &m->error);
}

void mtf_making_fail(MtfMaking *m, const MtfOperation *op, const char *what) {
    if (m->error == NULL)
        mtf_input_error(&m->error, "%s: operation \"%s\" %s, so it cannot generate from a cache",
                        m->from->name, op->name, what);
}

const MtfShape *mtf_making_shape(const MtfMaking *m, int tensor) {
    return &mtf_graph_tensor(m->graph, tensor)->shape;
}

char *mtf_making_free_name(const MtfMaking *m, const char *name) {
    char *free = g_strdup(name);
    while (mtf_graph_find_tensor(m->graph, free) >= 0 ||
           mtf_graph_find_tensor(m->from, free) >= 0) {
        char *longer = g_strconcat(free, "_", NULL);
        g_free(free);
        free = longer;
    }
    return free;
}
