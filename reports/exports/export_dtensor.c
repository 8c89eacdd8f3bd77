// SPDX-License-Identifier: GPL-3.0-or-later
/* A Python module for PyTorch: the device mesh and a tuple of placements for every input, variable
 * and forward result. Placements stand in the order of the mesh axes, which is JAX's the other way
 * round; two axes on one dimension are major to minor from left to right. */
#include "reports/exports/export_forms.h"

static char *placement_text(const MtfShape *shape, int value) {
    if (value == MTF_REPLICATED)
        return g_strdup("Replicate()");
    if (value == MTF_PARTIAL_SUM)
        return g_strdup("Partial()");
    if (value == MTF_PARTIAL_MAX)
        return g_strdup("Partial(\"max\")");
    return g_strdup_printf("Shard(%d)", mtf_shape_find(shape, value));
}

static void append_placements(GString *text, const MtfStepFacts *facts, int tensor) {
    const MtfLayout *layout = facts->plan->layout;
    const MtfTensor *t = mtf_graph_tensor(facts->plan->graph, tensor);
    g_autofree char *name = mtf_export_quote(t->name);
    int n = MAX(layout->mesh.n_axes, 1);
    g_string_append_printf(text, "    %s: (", name);
    for (int a = 0; a < n; a++) {
        g_autofree char *one = placement_text(&t->shape, layout->tensors[tensor].axis[a]);
        g_string_append_printf(text, "%s%s", a > 0 ? ", " : "", one);
    }
    g_string_append(text, n == 1 ? ",),\n" : "),\n");
}

static void append_mesh(GString *text, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *sizes = mtf_export_mesh_sizes(mesh);
    g_autofree char *names = mtf_export_mesh_names(mesh);
    g_autofree char *devices = mtf_export_devices(facts);
    if (devices != NULL)
        g_string_append(text, "import torch\n");
    g_string_append_printf(text,
                           "from torch.distributed.device_mesh import %s\n"
                           "from torch.distributed.tensor import Partial, Replicate, Shard, "
                           "distribute_tensor\n\n",
                           devices == NULL ? "init_device_mesh" : "DeviceMesh");
    if (devices == NULL)
        g_string_append_printf(text, "mesh = init_device_mesh(\"cuda\", %s, mesh_dim_names=%s)\n\n",
                               sizes, names);
    else
        g_string_append_printf(text,
                               "mesh = DeviceMesh(\"cuda\", torch.tensor([%s]).reshape(%s), "
                               "mesh_dim_names=%s)\n\n",
                               devices, sizes, names);
}

/* How the placements are used. */
static const char *const functions =
    "\n\ndef place(name, tensor):\n"
    "    \"\"\"An input or parameter, distributed as the plan has it.\"\"\"\n"
    "    return distribute_tensor(tensor, mesh, PLACEMENTS[name])\n"
    "\n\ndef constrain(name, tensor):\n"
    "    \"\"\"A result, brought to where the plan keeps it; partial sums stay as they are.\"\"\"\n"
    "    placements = PLACEMENTS[name]\n"
    "    if any(p.is_partial() for p in placements):\n"
    "        return tensor\n"
    "    return tensor.redistribute(mesh, placements)\n";

char *mtf_export_dtensor(const MtfStepFacts *facts, GError **error) {
    (void)error;
    GString *text = g_string_new(NULL);
    append_mesh(text, facts);
    g_string_append(text, "PLACEMENTS = {\n");
    for (int t = 0; t < facts->plan->layout->n_tensors; t++)
        if (mtf_export_lists(facts, t, true))
            append_placements(text, facts, t);
    g_string_append(text, "}\n");
    g_string_append(text, functions);
    return g_string_free(text, FALSE);
}
