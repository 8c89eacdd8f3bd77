// SPDX-License-Identifier: GPL-3.0-or-later
/* Two gin lines, as Mesh-TensorFlow's configurations have them:
 *
 *     utils.run.mesh_shape = "rows:4,cols:2"
 *     utils.run.layout_rules = "batch:rows,d_ff:cols"                                            */
#include "layouts/base/error.h"
#include "reports/exports/export_forms.h"

#include <inttypes.h>

/* Mesh-TensorFlow splits evenly or not at all. */
static bool check_sizes(const MtfStepFacts *facts, const MtfRules *rules, GError **error) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    for (int dim = 0; dim < rules->n_dims; dim++) {
        int axis = rules->axis[dim];
        const MtfDimension *dimension = mtf_graph_dimension(facts->plan->graph, dim);
        if (axis >= 0 && dimension->size % mesh->axes[axis].size != 0)
            return mtf_input_error(error,
                                   "Mesh-TensorFlow splits evenly alone, and dimension \"%s\" of "
                                   "%" PRId64 " does not divide over %s of %d",
                                   dimension->name, dimension->size, mesh->axes[axis].name,
                                   mesh->axes[axis].size);
    }
    return true;
}

/* "utils.run.NAME = "…"", the pairs set apart by commas. */
static void append_line(GString *text, const char *name, char *pairs) {
    g_strdelimit(pairs, ";", ',');
    g_autofree char *quoted = mtf_export_quote(pairs);
    g_string_append_printf(text, "utils.run.%s = %s\n", name, quoted);
}

char *mtf_export_mtf(const MtfStepFacts *facts, GError **error) {
    const MtfPlan *plan = facts->plan;
    g_autoptr(MtfRules) rules = mtf_export_rules(facts, error);
    if (rules == NULL || !check_sizes(facts, rules, error))
        return NULL;
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    g_autofree char *pairs = mtf_rules_format(plan->graph, &plan->layout->mesh, rules);
    GString *text = g_string_new(NULL);
    append_line(text, "mesh_shape", mesh);
    append_line(text, "layout_rules", pairs);
    return g_string_free(text, FALSE);
}
