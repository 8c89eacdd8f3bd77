// SPDX-License-Identifier: GPL-3.0-or-later
/* Any text as rules for one graph on one mesh, "batch:rows;hidden:cols": refused in one sentence,
 * or rules that print to a text which parses to the same print; legal rules give a layout that
 * lowers. */
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/rules", NULL };

/* h[batch, hidden] = x[batch, io] w[io, hidden]. */
static MtfGraph *new_graph(void) {
    MtfGraph *graph = mtf_graph_new("g");
    mtf_graph_add_dimension(graph, "batch", 4, NULL);
    mtf_graph_add_dimension(graph, "io", 5, NULL);
    mtf_graph_add_dimension(graph, "hidden", 6, NULL);
    const MtfShape x = { 2, { 0, 1 } }, w = { 2, { 1, 2 } }, h = { 2, { 0, 2 } };
    const int inputs[] = {
        mtf_graph_add_input(graph, "x", &x, MTF_F32, MTF_FEED_FEATURES, NULL),
        mtf_graph_add_input(graph, "w", &w, MTF_F32, MTF_FEED_FEATURES, NULL),
    };
    const MtfNewOperation product = { .name = "h",
                                      .kind = MTF_OP_EINSUM,
                                      .n_inputs = 2,
                                      .inputs = inputs,
                                      .shape = &h,
                                      .attributes = MTF_NO_ATTRIBUTES };
    mtf_graph_add_operation(graph, &product, NULL);
    return graph;
}

static char *reprint(const MtfGraph *graph, const MtfMesh *mesh, const char *text, bool inert) {
    g_autoptr(GPtrArray) ignored = inert ? g_ptr_array_new_with_free_func(g_free) : NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, mesh, text, ignored, &error);
    mtf_fuzz_judge(rules != NULL, error);
    if (rules == NULL)
        return NULL;
    bool legal = mtf_rules_check(graph, mesh, rules, &error);
    mtf_fuzz_judge(legal, error);
    if (legal) {
        g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, mesh, rules);
        g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
        g_assert(program != NULL);
    }
    return mtf_rules_format(graph, mesh, rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh;
    g_assert(mtf_mesh_parse("rows:2;cols:3", 6, &mesh, NULL));
    g_autofree char *strict = reprint(graph, &mesh, text, false);
    g_autofree char *lax = reprint(graph, &mesh, text, true);
    g_assert(strict == NULL || g_str_equal(strict, lax));
    if (lax == NULL)
        return -1;
    g_autofree char *again = reprint(graph, &mesh, lax, false);
    g_assert_cmpstr(again, ==, lax);
    return 0;
}
