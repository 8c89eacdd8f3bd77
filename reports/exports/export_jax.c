// SPDX-License-Identifier: GPL-3.0-or-later
/* A Python module with the mesh and a PartitionSpec for every input, variable and forward result. A
 * spec has one entry a dimension: an axis, a tuple of axes from major to minor, or None. Results
 * that are kept as partial sums have no spec; they are named in a comment. */
#include "layouts/base/error.h"
#include "reports/exports/export_forms.h"

#include <inttypes.h>

static char *entry_of(const MtfMesh *mesh, unsigned axes) {
    if (axes == 0)
        return g_strdup("None");
    GString *text = g_string_new(NULL);
    bool several = (axes & (axes - 1)) != 0;
    for (int a = 0; a < mesh->n_axes; a++) {
        if ((axes >> a & 1) == 0)
            continue;
        g_autofree char *name = mtf_export_quote(mesh->axes[a].name);
        g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : several ? "(" : "", name);
    }
    if (several)
        g_string_append_c(text, ')');
    return g_string_free(text, FALSE);
}

static void append_spec(GString *text, const MtfStepFacts *facts, int tensor) {
    const MtfLayout *layout = facts->plan->layout;
    const MtfTensor *t = mtf_graph_tensor(facts->plan->graph, tensor);
    const MtfPlacement *placement = &layout->tensors[tensor];
    g_autofree char *name = mtf_export_quote(t->name);
    unsigned partial = mtf_placement_partial_axes(placement);
    if (partial != 0) {
        g_autofree char *axes = mtf_mesh_mask_format(&layout->mesh, partial);
        g_string_append_printf(text, "    # %s is kept as partial sums over %s\n", name, axes);
        return;
    }
    g_string_append_printf(text, "    %s: P(", name);
    for (int i = 0; i < t->shape.rank; i++) {
        unsigned axes = mtf_placement_split_axes(placement, t->shape.dims[i]);
        g_autofree char *entry = entry_of(&layout->mesh, axes);
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", entry);
    }
    g_string_append(text, "),\n");
}

/* A NamedSharding of an argument must divide its dimensions. */
static bool check_sizes(const MtfStepFacts *facts, int tensor, GError **error) {
    const MtfLayout *layout = facts->plan->layout;
    const MtfTensor *t = mtf_graph_tensor(facts->plan->graph, tensor);
    for (int i = 0; i < t->shape.rank; i++) {
        unsigned axes = mtf_placement_split_axes(&layout->tensors[tensor], t->shape.dims[i]);
        int64_t size = mtf_graph_size(facts->plan->graph, t->shape.dims[i]);
        int parts = mtf_mesh_group_size(&layout->mesh, axes);
        if (size % parts != 0)
            return mtf_input_error(error,
                                   "JAX splits arguments evenly alone, and dimension \"%s\" of "
                                   "%" PRId64 " in \"%s\" does not divide by %d",
                                   mtf_graph_dimension(facts->plan->graph, t->shape.dims[i])->name,
                                   size, t->name, parts);
    }
    return true;
}

static void append_mesh(GString *text, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *sizes = mtf_export_mesh_sizes(mesh);
    g_autofree char *names = mtf_export_mesh_names(mesh);
    g_autofree char *devices = mtf_export_devices(facts);
    g_string_append(text, "import jax\n");
    if (devices != NULL)
        g_string_append(text, "import numpy as np\n");
    g_string_append(text, "from jax.sharding import NamedSharding, PartitionSpec as P\n\n");
    if (devices == NULL)
        g_string_append_printf(text, "mesh = jax.make_mesh(%s, %s)\n\n", sizes, names);
    else
        g_string_append_printf(
            text,
            "DEVICES = [%s]\n"
            "mesh = jax.sharding.Mesh(np.array(jax.devices())[DEVICES].reshape(%s), %s)\n\n",
            devices, sizes, names);
}

char *mtf_export_jax(const MtfStepFacts *facts, GError **error) {
    g_autoptr(GString) text = g_string_new(NULL);
    append_mesh(text, facts);
    g_string_append(text, "SPECS = {\n");
    for (int t = 0; t < facts->plan->layout->n_tensors; t++) {
        if (!mtf_export_lists(facts, t, true))
            continue;
        if (mtf_export_lists(facts, t, false) && !check_sizes(facts, t, error))
            return NULL;
        append_spec(text, facts, t);
    }
    g_string_append(text, "}\nSHARDINGS = {k: NamedSharding(mesh, s) for k, s in SPECS.items()}\n");
    return g_string_free(g_steal_pointer(&text), FALSE);
}
