// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/dimension_hint.h"

#include "layouts/base/nearest_name.h"

char *mtf_graph_dimension_hint(const MtfGraph *graph, const char *name) {
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    for (guint i = 0; i < graph->dimensions->len; i++)
        g_ptr_array_add(known, mtf_graph_dimension(graph, (int)i)->name);
    g_ptr_array_add(known, NULL);
    return mtf_did_you_mean(name, (const char *const *)known->pdata);
}
