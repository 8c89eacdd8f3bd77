// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/answer.h"

#include "cost/machine/doubt.h"
#include "cost/price/predict.h"
#include "cost/summary/parallelism.h"
#include "cost/summary/unaligned_products.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/inference/generation_graph.h"
#include "reports/facts/closest_rules.h"

#include <inttypes.h>
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

char *mtf_answer_mesh(const MtfMesh *mesh) {
    g_autofree char *text = mtf_mesh_title(mesh);
    int size = mtf_mesh_size(mesh);
    return mesh->n_axes == 0
               ? g_steal_pointer(&text)
               : g_strdup_printf("%s (%d processor%s)", text, size, size == 1 ? "" : "s");
}

/* What a graph that is not trained is run for. */
static void add_inference(GPtrArray *lines, const MtfGraph *graph) {
    if (!mtf_graph_has_results(graph))
        return;
    if (!mtf_graph_generates(graph)) {
        add(lines, "inference", g_strdup("what the network makes of a batch, no training"));
        return;
    }
    int tokens = mtf_generation_input(graph, MTF_FEED_TOKENS);
    int length = mtf_generation_length(graph), context = mtf_generation_context(graph);
    int64_t each = length >= 0 ? mtf_graph_dimension(graph, length)->size : 1;
    int64_t elements =
        tokens >= 0 ? mtf_graph_elements(graph, &mtf_graph_tensor(graph, tokens)->shape) : each;
    g_autofree char *room = context >= 0
                                ? g_strdup_printf(", caches have room for %" PRId64 " of each",
                                                  mtf_graph_dimension(graph, context)->size)
                                : g_strdup("");
    add(lines, "inference",
        g_strdup_printf("%s: %" PRId64 " token%s of each of %" PRId64 " example%s%s",
                        each == 1 ? "decode" : "prefill", each, each == 1 ? "" : "s",
                        elements / MAX(each, 1), elements == each ? "" : "s", room));
}

static void add_mesh(GPtrArray *lines, const MtfStepFacts *facts) {
    g_autofree char *slice = mtf_network_format(&facts->pricer.map.slice);
    add(lines, "mesh", mtf_answer_mesh(&facts->plan->layout->mesh));
    add(lines, "machine", g_strdup_printf("%s, %s", facts->machine->name, slice));
    add(lines, "software",
        facts->machine->software == NULL
            ? g_strdup(MTF_OWN_SOFTWARE)
            : g_strdup_printf("%s (%s)", facts->machine->software->name,
                              facts->machine->software->summary));
}

static char *layout_text(const MtfStepFacts *facts) {
    const MtfPlan *plan = facts->plan;
    if (plan->layout->rules != NULL)
        return g_strdup(*plan->layout->rules != '\0' ? plan->layout->rules
                                                     : "no rule: everything replicated");
    bool exact;
    g_autofree char *rules = mtf_closest_rules(plan->graph, plan->layout, &exact);
    if (exact)
        return g_steal_pointer(&rules);
    return g_strdup_printf("free, one choice a tensor; closest rules %s",
                           *rules != '\0' ? rules : "none");
}

/* Tokens or examples a second and how well the devices are used, as the plan predicts them; "" for a
 * plan that does not say. */
static char *speed_text(const cJSON *predicted) {
    double items = mtf_json_number_of(predicted, "items_per_second", 0);
    double mfu = mtf_json_number_of(predicted, "mfu", 0);
    g_autofree char *rate = mtf_count_format(items);
    return items > 0 ? g_strdup_printf("; %s %s/s, MFU %.3g %%", g_strchomp(rate),
                                       mtf_json_text_of(predicted, "items"), 100 * mfu)
                     : g_strdup("");
}

static void add_time(GPtrArray *lines, const MtfStepFacts *facts) {
    double seconds = (double)facts->schedule->nanoseconds / 1e9;
    g_autofree char *text = mtf_seconds_format(seconds);
    g_autofree char *speed = speed_text(facts->plan->predicted);
    double rate = seconds > 0 ? facts->flops / seconds : 0;
    const char *precision = facts->plan->precision;
    double peak = mtf_machine_peak_flops(facts->machine, precision);
    g_autofree char *flops = mtf_count_format(rate);
    add(lines, "step time",
        g_strdup_printf("%s predicted%s; %sflop/s a device, %.1f %% of its %s peak", text, speed,
                        flops, peak > 0 ? 100 * rate / peak : 0,
                        mtf_machine_multiplied_type(facts->machine, precision)));
}

static char *decision_text(const cJSON *next) {
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(next, "within_doubt")))
        return g_strdup("");
    return g_strdup_printf("; nearer than predictions are to measured runs: measure %s to decide",
                           mtf_json_text_of(next, "decided_by"));
}

/* What else could be done, and at what price. */
static void add_next_best(GPtrArray *lines, const cJSON *search) {
    const cJSON *next = cJSON_GetObjectItemCaseSensitive(search, "next_best");
    if (next == NULL) {
        add(lines, "next best", g_strdup("no other kind of plan was looked at"));
        return;
    }
    double longer = mtf_json_number_of(next, "longer", 0);
    g_autofree char *step = mtf_seconds_format(mtf_json_number_of(next, "step_seconds", 0));
    g_autofree char *decision = decision_text(next);
    add(lines, "next best",
        g_strdup_printf("%s (%s): %s, %.3g %% %s%s", mtf_json_text_of(next, "name"),
                        mtf_json_text_of(next, "parallelism"), step, 100 * fabs(longer),
                        longer < 0 ? "shorter" : "longer", decision));
}

/* Whether repeated layers are laid out alike, and what that costs. */
static void add_alike(GPtrArray *lines, const cJSON *search) {
    const cJSON *alike = cJSON_GetObjectItemCaseSensitive(search, "alike_layers");
    const char *text = mtf_json_text_of(alike, "text");
    if (*text != '\0')
        add(lines, "alike", g_strdup(text));
}

/* What stages would do, where they were searched, too. */
static void add_stages(GPtrArray *lines, const MtfStepFacts *facts) {
    const cJSON *pipeline = cJSON_GetObjectItemCaseSensitive(facts->plan->search, "pipeline");
    double seconds = mtf_json_number_of(pipeline, "step_seconds", 0);
    g_autofree char *step = mtf_seconds_format(seconds);
    if (pipeline == NULL)
        return;
    add(lines, "stages",
        seconds > 0 ? g_strdup_printf("none: in %d (%s, %d micro-batches) a step takes %s",
                                      (int)mtf_json_number_of(pipeline, "stages", 0),
                                      mtf_json_text_of(pipeline, "schedule"),
                                      (int)mtf_json_number_of(pipeline, "microbatches", 0), step)
                    : g_strdup("none: no cut into stages promises a shorter step"));
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
    g_autofree char *kind =
        g_strdup_printf(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(search, "batch_first"))
                            ? "%s layouts that split the batch on the mesh's first axis"
                            : "%s layouts",
                        mtf_tree_text(search, "layouts"));
    g_autofree char *cost_text = mtf_seconds_format(cost / 1e9);
    g_autofree char *bound_text = mtf_seconds_format(bound / 1e9);
    g_autofree char *verdict =
        gap <= 2e-6 ? g_strdup_printf("proven optimal among %s", kind)
                    : g_strdup_printf("best found of %s, gap %.3g %%", kind, 100 * gap);
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

static void add_unaligned(GPtrArray *lines, const MtfStepFacts *facts) {
    cJSON *unaligned = mtf_unaligned_products(&facts->pricer, facts->program);
    if (unaligned != NULL)
        add(lines, "unaligned", mtf_unaligned_products_format(unaligned));
    cJSON_Delete(unaligned);
}

static char *doubt_text(const MtfStepFacts *facts) {
    char *doubt = mtf_doubt_format(facts->machine, mtf_judged_kind(facts->plan->graph));
    return doubt != NULL ? doubt : g_strdup("the machine's kernels and collectives were measured");
}

GPtrArray *mtf_answer_lines(const MtfStepFacts *facts) {
    GPtrArray *lines = g_ptr_array_new_with_free_func(free_line);
    add_inference(lines, facts->plan->graph);
    add(lines, "parallelism", mtf_parallelism_format(facts->plan->graph, facts->plan->layout));
    add_mesh(lines, facts);
    add(lines, "layout", layout_text(facts));
    add_alike(lines, facts->plan->search);
    add(lines, "variant", mtf_plan_step_format(facts->plan));
    add_time(lines, facts);
    add(lines, "limited by", limits_text(facts));
    add_unaligned(lines, facts);
    add_memory(lines, facts);
    add_traffic(lines, facts);
    add(lines, "proof", proof_text(facts->plan->search));
    add_next_best(lines, facts->plan->search);
    add_stages(lines, facts);
    add(lines, "doubt", doubt_text(facts));
    return lines;
}

GPtrArray *mtf_answer_assumptions(const MtfStepFacts *facts) {
    return mtf_doubt_assumptions(facts->machine);
}
