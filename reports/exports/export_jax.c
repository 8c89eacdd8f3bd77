// SPDX-License-Identifier: GPL-3.0-or-later
/* A Python module with the mesh and a PartitionSpec for every input, variable and forward result. A
 * spec has one entry a dimension: an axis, a tuple of axes from major to minor, or None. Results
 * that are kept as partial sums have no spec; they are named in a comment. The mesh's axes are Auto:
 * JAX 0.9's own default, Explicit, knows no with_sharding_constraint. */
#include "reports/exports/export_forms.h"

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

static void append_entries(GString *text, const MtfMesh *mesh, const MtfShape *shape,
                           const MtfPlacement *placement) {
    for (int i = 0; i < shape->rank; i++) {
        unsigned axes = mtf_placement_split_axes(placement, shape->dims[i]);
        g_autofree char *entry = entry_of(mesh, axes);
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", entry);
    }
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
    append_entries(text, &layout->mesh, &t->shape, placement);
    g_string_append(text, "),\n");
}

static void append_mesh(GString *text, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *sizes = mtf_export_mesh_sizes(mesh);
    g_autofree char *names = mtf_export_mesh_names(mesh);
    g_autofree char *devices = mtf_export_devices(facts);
    g_string_append(text, "import jax\n");
    if (devices != NULL)
        g_string_append(text, "import numpy as np\n");
    g_string_append_printf(
        text,
        "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P\n\n"
        "AUTO = (AxisType.Auto,) * %d\n",
        mesh->n_axes);
    if (devices == NULL)
        g_string_append_printf(text, "mesh = jax.make_mesh(%s, %s, axis_types=AUTO)\n\n", sizes,
                               names);
    else
        g_string_append_printf(
            text,
            "DEVICES = [%s]\n"
            "mesh = jax.sharding.Mesh(np.array(jax.devices())[DEVICES].reshape(%s), %s, "
            "axis_types=AUTO)\n\n",
            devices, sizes, names);
}

/* How the specs are used. */
static const char *const functions =
    "\n\ndef place(name, x):\n"
    "    \"\"\"An input or variable, brought to where the plan keeps it.\"\"\"\n"
    "    return jax.device_put(x, SHARDINGS[name])\n"
    "\n\ndef constrain(name, x):\n"
    "    \"\"\"A result inside a jitted step, kept where the plan keeps it; partial sums are left to XLA.\"\"\"\n"
    "    if name not in SHARDINGS:\n"
    "        return x\n"
    "    return jax.lax.with_sharding_constraint(x, SHARDINGS[name])\n";

char *mtf_export_jax(const MtfStepFacts *facts, GError **error) {
    g_autoptr(GString) text = g_string_new(NULL);
    if (!mtf_export_check_even(facts, "JAX", error))
        return NULL;
    append_mesh(text, facts);
    g_string_append(text, "SPECS = {\n");
    for (int t = 0; t < facts->plan->layout->n_tensors; t++) {
        if (mtf_export_lists(facts, t, true))
            append_spec(text, facts, t);
    }
    g_string_append(text, "}\nSHARDINGS = {k: NamedSharding(mesh, s) for k, s in SPECS.items()}\n");
    g_string_append(text, functions);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
