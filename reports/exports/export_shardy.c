// SPDX-License-Identifier: GPL-3.0-or-later
/* StableHLO text with Shardy's attributes: the mesh, and a function whose arguments are the step's
 * inputs and variables, each with a closed sharding (nothing is left to propagation):
 *
 *     sdy.mesh @mesh = <["rows"=4, "cols"=2]>
 *     func.func @main(%x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>},
 *                     %w1: tensor<512x2048xf32> {sdy.sharding = …}) {
 *       return
 *     }
 *
 * MLIR's names are letters, digits and _ $ . -; others become _ and a comment gives the tensor's.
 */
#include "reports/exports/export_forms.h"

#include <inttypes.h>
#include <string.h>

static void append_mesh(GString *text, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *devices = mtf_export_devices(facts);
    g_string_append(text, "sdy.mesh @mesh = <[");
    for (int a = 0; a < mesh->n_axes; a++) {
        g_autofree char *name = mtf_export_quote(mesh->axes[a].name);
        g_string_append_printf(text, "%s%s=%d", a > 0 ? ", " : "", name, mesh->axes[a].size);
    }
    g_string_append_c(text, ']');
    if (devices != NULL)
        g_string_append_printf(text, ", device_ids=[%s]", devices);
    g_string_append(text, ">\n");
}

/* The tensor's name as MLIR takes it, different from all in `taken`. */
static char *value_name(GHashTable *taken, const char *name) {
    char *plain = g_strdup(name);
    for (char *c = plain; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c) && strchr("_$.-", *c) == NULL)
            *c = '_';
    if (g_ascii_isdigit(*plain) || *plain == '-') {
        char *prefixed = g_strconcat("_", plain, NULL);
        g_free(plain);
        plain = prefixed;
    }
    for (int i = 2; g_hash_table_contains(taken, plain); i++) {
        g_free(plain);
        plain = g_strdup_printf("_%d_%d", (int)g_hash_table_size(taken), i);
    }
    g_hash_table_add(taken, g_strdup(plain));
    return plain;
}

static void append_type(GString *text, const MtfStepFacts *facts, const MtfTensor *tensor) {
    g_string_append(text, "tensor<");
    for (int i = 0; i < tensor->shape.rank; i++)
        g_string_append_printf(text, "%" PRId64 "x",
                               mtf_graph_size(facts->plan->graph, tensor->shape.dims[i]));
    g_string_append_printf(text, "%s>",
                           tensor->dtype == MTF_BOOL ? "i1" : mtf_dtype_short_name(tensor->dtype));
}

static void append_dim(GString *text, const MtfMesh *mesh, unsigned axes) {
    const char *comma = "";
    g_string_append_c(text, '{');
    for (int a = 0; a < mesh->n_axes; a++) {
        if ((axes >> a & 1) == 0)
            continue;
        g_autofree char *name = mtf_export_quote(mesh->axes[a].name);
        g_string_append_printf(text, "%s%s", comma, name);
        comma = ", ";
    }
    g_string_append_c(text, '}');
}

static void append_argument(GString *text, const MtfStepFacts *facts, int tensor,
                            const char *name) {
    const MtfLayout *layout = facts->plan->layout;
    const MtfTensor *t = mtf_graph_tensor(facts->plan->graph, tensor);
    g_string_append_printf(text, "%%%s: ", name);
    append_type(text, facts, t);
    g_string_append(text, " {sdy.sharding = #sdy.sharding<@mesh, [");
    for (int i = 0; i < t->shape.rank; i++) {
        g_string_append(text, i > 0 ? ", " : "");
        append_dim(text, &layout->mesh,
                   mtf_placement_split_axes(&layout->tensors[tensor], t->shape.dims[i]));
    }
    g_string_append(text, "]>}");
}

char *mtf_export_shardy(const MtfStepFacts *facts, GError **error) {
    (void)error;
    g_autoptr(GHashTable) taken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GString) arguments = g_string_new(NULL);
    GString *text = g_string_new(NULL);
    append_mesh(text, facts);
    for (int t = 0; t < facts->plan->layout->n_tensors; t++) {
        if (!mtf_export_lists(facts, t, false))
            continue;
        const char *full = mtf_graph_tensor(facts->plan->graph, t)->name;
        g_autofree char *name = value_name(taken, full);
        if (strcmp(name, full) != 0)
            g_string_append_printf(text, "// %%%s is %s\n", name, full);
        g_string_append(arguments, arguments->len > 0 ? ",\n                " : "");
        append_argument(arguments, facts, t, name);
    }
    g_string_append_printf(text, "func.func @main(%s) {\n  return\n}\n", arguments->str);
    return g_string_free(text, FALSE);
}
