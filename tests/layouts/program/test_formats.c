// SPDX-License-Identifier: GPL-3.0-or-later
/* The examples of layouts/FORMATS.md are read by the code they describe, so that they stay true. */
#include "tests/support/cmocka.h"

#include "layouts/graph_file/graph_json.h"
#include "layouts/plan_file/plan.h"

#include <string.h>

#define FENCE "```json\n"

/* The fenced JSON text of FORMATS.md that begins with `key`. */
static char *example(const char *key) {
    g_autofree char *formats = NULL;
    assert_true(g_file_get_contents("layouts/FORMATS.md", &formats, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(formats, FENCE, -1);
    for (char **part = parts + 1; *part != NULL; part++) {
        g_autofree char *text = g_strndup(*part, (gsize)(strstr(*part, "```") - *part));
        if (g_str_has_prefix(text, key))
            return g_steal_pointer(&text);
    }
    fail_msg("no example begins with %s", key);
    return NULL;
}

TEST(the_example_of_a_graph_is_one) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = example("{\n  \"meshtf_graph\"");
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("FORMATS", text, strlen(text), &error);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document);
    g_autoptr(MtfGraph) graph = mtf_graph_from_json(&root, NULL, &error);
    if (graph == NULL)
        fail_msg("%s", error->message);
    assert_int_equal(graph->operations->len, 1 + 3 * 3 + 3);
    assert_true(mtf_graph_find_tensor(graph, "layer/2/scale") >= 0);
}

/* The digest is left open there: it would change with every change of the program's form. */
TEST(the_example_of_a_plan_is_one) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = example("{\n  \"meshtf_plan\"");
    g_autofree char *zeros = g_strnfill(64, '0');
    g_auto(GStrv) parts = g_strsplit(text, "DIGEST", 2);
    g_autofree char *whole = g_strjoinv(zeros, parts);
    g_autoptr(MtfPlan) plan = mtf_plan_parse("FORMATS", whole, strlen(whole), &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    assert_true(mtf_program_length(program) >= 2);
}
