// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/answer.h"

#include "cost/price/predict.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"
#include "reports/facts/closest_rules.h"

#include <math.h>

static void free_line(void *data) {
    MtfAnswerLine *line = data;
    g_free(line->text);
    g_free(line);
}

/* Takes the text. */
static void add(GPtrArray *lines, const char *word, char *text) {
    MtfAnswerLine *line = g_new0(MtfAnswerLine, 1);
    line->word = word;
    line->text = text;
    g_ptr_array_add(lines, line);
}

static void add_mesh(GPtrArray *lines, const MtfStepFacts *facts) {
    const MtfMesh *mesh = &facts->plan->layout->mesh;
    g_autofree char *text = mtf_mesh_format(mesh);
    g_autofree char *slice = mtf_network_format(&facts->pricer.map.slice);
    int size = mtf_mesh_size(mesh);
    add(lines, "mesh",
        g_strdup_printf("%s (%d processor%s)", *text != '\0' ? text : "one processor", size,
                        size == 1 ? "" : "s"));
    add(lines, "machine", g_strdup_printf("%s, %s", facts->machine->name, slice));
}

static char *layout_text(const MtfStepFacts *facts) {
    const MtfPlan *plan = facts->plan;
    if (plan->layout->rules != NULL)
        return g_strdup(*plan->layout->rules != '\0' ? plan->layout->rules
                                                     : "no rule: everything whole");
    bool exact;
    g_autofree char *rules = mtf_closest_rules(plan->graph, plan->layout, &exact);
    if (exact)
        return g_steal_pointer(&rules);
    return g_strdup_printf("free, one choice a tensor; closest rules %s",
                           *rules != '\0' ? rules : "none");
}

static void add_time(GPtrArray *lines, const MtfStepFacts *facts) {
    double seconds = (double)facts->schedule->nanoseconds / 1e9;
    g_autofree char *text = mtf_seconds_format(seconds);
    double rate = seconds > 0 ? facts->flops / seconds : 0;
    const char *precision = facts->plan->precision;
    double peak = mtf_machine_peak_flops(facts->machine, precision);
    add(lines, "step time",
        g_strdup_printf("%s predicted; %.3g flop/s a device, %.1f %% of its %s peak", text, rate,
                        peak > 0 ? 100 * rate / peak : 0, precision));
}

static void add_memory(GPtrArray *lines, const MtfStepFacts *facts) {
    double bytes = (double)facts->arena->bytes, limit = (double)facts->limit;
    g_autofree char *text = mtf_bytes_format(bytes);
    g_autofree char *most = mtf_bytes_format(limit);
    add(lines, "peak memory",
        g_strdup_printf("%s a device, %.3g %% of the limit of %s", text,
                        limit > 0 ? 100 * bytes / limit : 0, most));
}

static void add_traffic(GPtrArray *lines, const MtfStepFacts *facts) {
    double payload = 0, links = 0;
    int64_t calls = 0;
    for (guint i = 0; i < facts->traffic->len; i++) {
        const MtfTrafficRow *row = &g_array_index(facts->traffic, MtfTrafficRow, i);
        payload += (double)row->bytes;
        links += row->link_bytes;
        calls += row->calls;
    }
    g_autofree char *payload_text = mtf_bytes_format(payload);
    g_autofree char *links_text = mtf_bytes_format(links);
    add(lines, "communication",
        calls == 0 ? g_strdup("none")
                   : g_strdup_printf("%s a device and step in %" G_GINT64_FORMAT
                                     " collectives, %s onto its links",
                                     payload_text, calls, links_text));
}

static char *proof_text(const cJSON *search) {
    double cost = mtf_json_number_of(search, "cost", NAN),
           bound = mtf_json_number_of(search, "bound", 0);
    if (isnan(cost))
        return g_strdup("the layout was given, not searched");
    if (!(bound > 0))
        return g_strdup_printf("none, not searched (%s)", mtf_tree_text(search, "method"));
    double gap = cost > 0 ? (cost - bound) / cost : 0;
    const char *kind = mtf_tree_text(search, "layouts");
    g_autofree char *cost_text = mtf_seconds_format(cost / 1e9);
    g_autofree char *bound_text = mtf_seconds_format(bound / 1e9);
    g_autofree char *verdict =
        gap <= 2e-6 ? g_strdup_printf("proven optimal among %s layouts", kind)
                    : g_strdup_printf("best found of %s layouts, gap %.3g %%", kind, 100 * gap);
    return g_strdup_printf("%s: cost %s, bound %s (%s)", verdict, cost_text, bound_text,
                           mtf_tree_text(search, "method"));
}

static char *limits_text(const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) shares = mtf_step_shares(facts);
    if (shares->len == 0)
        return g_strdup("nothing: the step is empty");
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(shares->len, 3); i++) {
        const MtfStepShare *share = g_ptr_array_index(shares, i);
        g_string_append_printf(text, "%s%s %.1f %%", i > 0 ? ", then " : "", share->name,
                               100 * (double)share->nanoseconds /
                                   (double)facts->schedule->nanoseconds);
    }
    return g_string_free(text, FALSE);
}

GPtrArray *mtf_answer_lines(const MtfStepFacts *facts) {
    GPtrArray *lines = g_ptr_array_new_with_free_func(free_line);
    add_mesh(lines, facts);
    add(lines, "layout", layout_text(facts));
    add(lines, "form", mtf_graph_step_format(facts->plan->graph));
    add_time(lines, facts);
    add(lines, "limited by", limits_text(facts));
    add_memory(lines, facts);
    add_traffic(lines, facts);
    add(lines, "proof", proof_text(facts->plan->search));
    return lines;
}
