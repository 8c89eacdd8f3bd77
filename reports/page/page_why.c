// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/layers/layers.h"
#include "reports/markup/markup.h"

/* The operation's name with a star for its layer's number. */
static char *starred(const MtfGraph *graph, const char *name) {
    int operation = mtf_graph_find_operation(graph, name);
    return operation < 0
               ? g_strdup(name)
               : mtf_layer_star(graph, name, mtf_graph_operation(graph, operation)->layer);
}

/* One row for an operation that several layers have, as long as they would choose alike. */
static void add_row(GString *page, const MtfStepFacts *facts, const cJSON *decision,
                    GHashTable *shown) {
    double seconds = mtf_json_number_of(decision, "nanoseconds", 0) / 1e9;
    g_autofree char *time = mtf_seconds_format(seconds);
    g_autofree char *name = starred(facts->plan->graph, mtf_tree_text(decision, "operation"));
    if (!g_hash_table_add(shown, g_strjoin("\n", name, mtf_tree_text(decision, "strategy"),
                                           mtf_tree_text(decision, "next_best"), NULL)))
        return;
    mtf_markup(page,
               "<tr><td class=\"mono\">%s</td><td class=\"mono\">%s</td><td class=\"mono\">%s</td>"
               "<td class=\"n\">%s</td><td class=\"n\">%.1f %%</td></tr>\n",
               name, mtf_tree_text(decision, "strategy"), mtf_tree_text(decision, "next_best"),
               time, 100e9 * seconds / (double)MAX(facts->schedule->nanoseconds, 1));
}

/* What the best layout of fewer freedoms would cost, where the search says so. */
static void add_rule_cost(GString *page, const MtfStepFacts *facts) {
    double cost = mtf_json_number_of(facts->plan->search, "cost", 0);
    double rules = mtf_json_number_of(facts->plan->search, "rule_cost", 0);
    if (!(cost > 0) || !(rules > 0))
        return;
    g_autofree char *text = mtf_seconds_format(rules / 1e9);
    g_autofree char *more = rules < 1.1 * cost
                                ? g_strdup_printf("%.2g %% more", 100 * (rules / cost - 1))
                                : g_strdup_printf("%.3g times as much", rules / cost);
    mtf_markup(page, "<p>The best rule layout, Mesh-TensorFlow's kind, costs %s: %s.</p>", text,
               rules > cost ? more : "as much");
}

void mtf_page_why(GString *page, const MtfStepFacts *facts, const cJSON *why) {
    const cJSON *decision;
    g_autoptr(GHashTable) shown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    add_rule_cost(page, facts);
    g_string_append(page, "<p>The decisions that matter most: what the next best way to run one "
                          "operation would add, all else as it is. <code>meshtf-plan explain"
                          "</code> says it of any operation.</p><div class=\"wide\"><table><thead>"
                          "<tr><th>operation</th><th>runs as</th><th>next best</th>"
                          "<th class=\"n\">would add</th><th class=\"n\">of the step</th></tr>"
                          "</thead><tbody>\n");
    cJSON_ArrayForEach(decision, why) {
        add_row(page, facts, decision, shown);
    }
    g_string_append(page, "</tbody></table></div>");
}
