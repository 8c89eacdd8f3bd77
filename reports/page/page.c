// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "reports/drawing/machine_picture.h"
#include "reports/drawing/memory_chart.h"
#include "reports/facts/answer.h"
#include "reports/facts/metrics_log.h"
#include "reports/markup/markup.h"
#include "reports/page/page_sections.h"

#include <math.h>
#include <string.h>

#define PEAK_ROWS 12
#define SUMMARY_PEAK_ROWS 5

/* ---- Memory -------------------------------------------------------------------------------- */

static void add_peak_row(GString *page, const MtfStepFacts *facts, const MtfPeakRow *row) {
    g_autofree char *bytes = mtf_bytes_format((double)row->bytes);
    mtf_markup(page,
               "<tr><td class=\"mono\">%s</td><td class=\"n\">%d</td><td>%s</td><td "
               "class=\"n\">%s</td><td class=\"n\">%.1f %%</td></tr>\n",
               row->name, row->count, mtf_memory_name(row->memory), bytes,
               100 * (double)row->bytes / MAX(1, (double)mtf_step_facts_live(facts, facts->peak)));
}

static void add_peak(GString *page, const MtfStepFacts *facts) {
    if (facts->schedule->length == 0)
        return;
    const MtfInstruction *at = mtf_program_instruction(facts->program, facts->peak);
    g_autoptr(GPtrArray) rows = mtf_peak_rows(facts);
    mtf_markup(page,
               "<h3>The peak</h3><p>Most is live during <code>%s</code> (instruction %d of %d).</p>"
               "<div class=\"wide\"><table><thead><tr><th>tensor</th><th class=\"n\">buffers</th>"
               "<th>kind</th><th class=\"n\">bytes</th><th class=\"n\">of the peak</th></tr>"
               "</thead><tbody>\n",
               mtf_graph_operation(facts->plan->graph, at->operation)->name, facts->peak,
               facts->schedule->length);
    for (guint i = 0; i < MIN(rows->len, PEAK_ROWS); i++)
        add_peak_row(page, facts, g_ptr_array_index(rows, i));
    g_string_append(page, "</tbody></table></div>");
}

static void add_memory(GString *page, const MtfStepFacts *facts) {
    double live = (double)mtf_step_facts_live(facts, facts->peak);
    g_autofree char *arena = mtf_bytes_format((double)facts->arena->bytes);
    g_autofree char *gaps = mtf_bytes_format((double)facts->arena->bytes - live);
    mtf_memory_chart(page, facts);
    mtf_markup(page, "<p>Packed into one block of %s; rounding and gaps take %s of it.", arena,
               gaps);
    if ((double)facts->limit > 3 * live) {
        g_autofree char *limit = mtf_bytes_format((double)facts->limit);
        mtf_markup(page, " The limit, %s, is far above the picture: %.3g times the peak.", limit,
                   (double)facts->limit / MAX(1, live));
    }
    g_string_append(page, "</p>");
    add_peak(page, facts);
}

/* ---- Assumptions --------------------------------------------------------------------------- */

/* Whether what is priced now is what the plan says. */
static void add_agreement(GString *page, const MtfStepFacts *facts) {
    const cJSON *predicted = facts->plan->predicted;
    double now = (double)facts->schedule->nanoseconds / 1e9;
    double then = mtf_json_number_of(predicted, "step_seconds", NAN);
    if (isnan(then))
        g_string_append(page, "<li>The plan holds no prediction; this report priced it.</li>");
    else if (fabs(now - then) > 1e-6 * then + 1e-9)
        mtf_markup(
            page,
            "<li><b>The plan says %.6g s for a step, this report prices it at %.6g s</b>: it "
            "was written by another version or edited.</li>",
            then, now);
    if (facts->plan->machine == NULL)
        g_string_append(page, "<li>The plan names no machine; cpu-cluster was assumed.</li>");
}

/* Figures without a source, one a line, and how well such predictions were judged. */
static void add_unsourced(GString *page, const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) assumed = mtf_answer_assumptions(facts);
    if (assumed->len == 0)
        return;
    mtf_markup(page, "<details><summary>%d figures that no source gives: assumptions</summary><ul>",
               (int)assumed->len);
    for (guint i = 0; i < assumed->len; i++)
        mtf_markup(page, "<li>%s</li>", (const char *)assumed->pdata[i]);
    g_string_append(page, "</ul></details>");
}

/* How often "while" blocks run is not known before. */
static void add_bounds(GString *page, const MtfGraph *graph) {
    for (int l = 1; l <= (int)graph->loops->len; l++)
        if (mtf_loop_condition(graph, l) >= 0)
            mtf_markup(
                page,
                "<li>The <code>while</code> block %s is counted %d times, as often as it may "
                "run; it ends before where its condition becomes false.</li>",
                mtf_graph_loop(graph, l)->name, (int)mtf_loop_count(graph, l));
}

/* How a kernel's seconds follow from its work. */
static void add_kernel_rule(GString *page, const MtfMachine *machine) {
    const MtfKernelRates *rates = &machine->kernels;
    g_autofree char *launch =
        mtf_seconds_format(rates->known ? rates->launch_seconds : MTF_KERNEL_SECONDS);
    if (rates->known)
        mtf_markup(
            page,
            "<li>Products take the waves of their best tile over %.0f units of a device, fused "
            "attention a share of the peak that follows from its heads and grows with its "
            "length, passes over memory a share of its bandwidth that grows with their bytes, "
            "each with %s to launch it, unless the machine has a measured table.</li>",
            rates->units, launch);
    else
        mtf_markup(
            page,
            "<li>A kernel takes max(flops / rate, bytes / memory bandwidth) + %s; products "
            "reach rate = peak h / (h + %.0f), h the harmonic mean of their local sides, unless "
            "the machine has a measured table.</li>",
            launch, MTF_HALF_RATE_SIDE);
}

static void add_assumptions(GString *page, const MtfStepFacts *facts) {
    const MtfMachine *machine = facts->machine;
    const char *precision = facts->plan->precision;
    int tables = machine->curves != NULL ? (int)machine->curves->len : 0;
    g_autofree char *flops = mtf_count_format(mtf_machine_peak_flops(machine, precision));
    g_autofree char *bandwidth = mtf_count_format(machine->memory_bandwidth);
    g_string_append(page, "<ul>");
    add_agreement(page, facts);
    add_kernel_rule(page, machine);
    mtf_markup(page,
               "<li>%s: %sflop/s in %s at most (%.0f %% reached), memory %sB/s (%.0f "
               "%%), links at %.0f %% of their bandwidth, %d measured table%s.</li>",
               machine->name, flops, precision, 100 * machine->derate.flops, bandwidth,
               100 * machine->derate.memory, 100 * machine->derate.links, tables,
               tables == 1 ? "" : "s");
    add_bounds(page, facts->plan->graph);
    mtf_markup(
        page,
        "<li>A collective is priced by the best schedule known for its group's part of the "
        "network (<code>meshtf-plan collective</code> lists them); all groups of an axis "
        "work at once.</li><li>%s Ranks are alike; the largest slice counts.</li><li>Memory is the "
        "arena alone: MPI's and BLAS' own buffers are outside.</li><li>Precision %s; program "
        "%s.</li></ul>",
        machine->overlap ? "Collectives go on beside kernels, in the order of the program, until "
                           "one needs what they bring."
                         : "Instructions follow one another: on this machine no communication "
                           "goes on beside computing.",
        precision, facts->plan->program_sha256);
}

/* ---- The page ------------------------------------------------------------------------------ */

static GString *begin(const MtfStepFacts *facts, const MtfPageParts *parts) {
    const char *name = facts->plan->graph->name;
    g_autofree char *title = g_strdup_printf("%s: layout", name);
    GString *page = mtf_page_begin(title);
    mtf_markup(page,
               "<section id=\"answer\"><h1>%s</h1>\n<nav aria-label=\"sections\"><a "
               "href=\"#partition\">partition</a><a href=\"#frontier\">frontier</a><a "
               "href=\"#memory\">memory</a><a "
               "href=\"#communication\">communication</a><a href=\"#tensors\">tensors</a><a "
               "href=\"#machine\">machine</a>",
               name);
    if (parts->run != NULL || parts->trace != NULL)
        g_string_append(page, "<a href=\"#run\">run</a>");
    g_string_append(page, "<a href=\"#assumptions\">assumptions</a></nav>\n");
    return page;
}

static void add_run(GString *page, const MtfStepFacts *facts, const GArray *run) {
    const MtfSchedule *schedule = facts->schedule;
    MtfRunPredicted predicted = { .step = (double)schedule->nanoseconds / 1e9,
                                  .communication = (double)schedule->exposed / 1e9,
                                  .computation = (double)schedule->compute / 1e9,
                                  .bytes = (double)facts->arena->bytes,
                                  .memory = "memory a rank" };
    mtf_page_run(page, &predicted, run);
}

char *mtf_page_print(const MtfStepFacts *facts, const MtfPageParts *parts) {
    GString *page = begin(facts, parts);
    mtf_page_answer(page, facts, parts->run);
    mtf_page_section(page, "partition", "The partition");
    mtf_page_partition(page, parts->parts, parts->drawings);
    const cJSON *why = cJSON_GetObjectItemCaseSensitive(facts->plan->search, "why");
    if (cJSON_GetArraySize(why) > 0) {
        mtf_page_section(page, "why", "Why this layout");
        mtf_page_why(page, facts, why);
    }
    mtf_page_section(page, "frontier", "Time against memory");
    mtf_page_frontier(page, facts);
    mtf_page_section(page, "memory", "Memory over the step");
    add_memory(page, facts);
    mtf_page_section(page, "communication", "Communication");
    mtf_page_traffic(page, facts);
    mtf_page_section(page, "tensors", "Tensors");
    mtf_page_tensors(page, facts);
    mtf_page_section(page, "machine", "The mesh on the machine");
    mtf_machine_picture(page, facts);
    if (parts->run != NULL || parts->trace != NULL)
        mtf_page_section(page, "run", "After the run");
    if (parts->run != NULL)
        add_run(page, facts, parts->run);
    if (parts->trace != NULL)
        mtf_page_ranks(page, facts, parts->trace);
    mtf_page_section(page, "assumptions", "What the predictions assume");
    add_assumptions(page, facts);
    add_unsourced(page, facts);
    g_string_append(page, "</section>\n<p class=\"soft\">Made by meshtf-report " MTF_VERSION
                          ". The plan is <a href=\"plan.json\">plan.json</a>, the priced step <a "
                          "href=\"timeline.json\">timeline.json</a> (opens in Perfetto), the "
                          "answer as text <a href=\"summary.txt\">summary.txt</a>.</p>\n");
    return mtf_page_end(page);
}

/* ---- The summary --------------------------------------------------------------------------- */

static void summarize_run(GString *text, const MtfStepFacts *facts, const GArray *run) {
    double measured = mtf_metrics_median_seconds(run);
    double predicted = (double)facts->schedule->nanoseconds / 1e9;
    const MtfMetricsRecord *last = &g_array_index(run, MtfMetricsRecord, run->len - 1);
    g_autofree char *time = mtf_seconds_format(measured);
    g_string_append_printf(text,
                           "%-14s %s a step (median of %u), %.3g times the prediction; loss "
                           "%.5g at step %" G_GINT64_FORMAT "\n",
                           "measured", time, run->len, measured / predicted, last->loss,
                           last->step);
}

static void summarize_peak(GString *text, const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) peak = mtf_peak_rows(facts);
    for (guint i = 0; i < MIN(peak->len, SUMMARY_PEAK_ROWS); i++) {
        const MtfPeakRow *row = g_ptr_array_index(peak, i);
        g_autofree char *bytes = mtf_bytes_format((double)row->bytes);
        g_string_append_printf(text, "%-14s %12s  %s (%s)\n", i == 0 ? "at the peak" : "", bytes,
                               row->name, mtf_memory_name(row->memory));
    }
}

char *mtf_summary_print(const MtfStepFacts *facts, const GArray *run) {
    g_autoptr(GPtrArray) lines = mtf_answer_lines(facts);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%-14s %s\n", "graph", facts->plan->graph->name);
    for (guint i = 0; i < lines->len; i++) {
        const MtfAnswerLine *line = g_ptr_array_index(lines, i);
        g_string_append_printf(text, "%-14s %s\n", line->word, line->text);
    }
    summarize_peak(text, facts);
    if (run != NULL)
        summarize_run(text, facts, run);
    return g_string_free(text, FALSE);
}
