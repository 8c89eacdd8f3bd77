// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "reports/facts/answer.h"
#include "reports/facts/metrics_log.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"

#include <math.h>

static void add_measured(GString *page, const MtfStepFacts *facts, const GArray *run) {
    double predicted = (double)facts->schedule->nanoseconds / 1e9;
    double measured = mtf_metrics_median_seconds(run);
    g_autofree char *text = mtf_seconds_format(measured);
    g_autofree char *what = predicted > 0
                                ? g_strdup_printf("measured, %.3g × that", measured / predicted)
                                : g_strdup("measured");
    mtf_page_number(page, text, what);
}

static void add_numbers(GString *page, const MtfStepFacts *facts, const GArray *run) {
    const cJSON *search = facts->plan->search;
    double links = 0;
    for (guint i = 0; i < facts->traffic->len; i++)
        links += g_array_index(facts->traffic, MtfTrafficRow, i).link_bytes;
    g_autofree char *step = mtf_seconds_format((double)facts->schedule->nanoseconds / 1e9);
    g_autofree char *memory = mtf_bytes_format((double)facts->arena->bytes);
    g_autofree char *limit = mtf_bytes_format((double)facts->limit);
    g_autofree char *of_limit = g_strdup_printf("peak memory, of %s", limit);
    g_autofree char *traffic = mtf_bytes_format(links);
    g_string_append(page, "<div class=\"numbers\">");
    mtf_page_number(page, step, "step time, predicted");
    if (run != NULL)
        add_measured(page, facts, run);
    mtf_page_number(page, memory, of_limit);
    mtf_page_number(page, traffic, "onto a device's links a step");
    double cost = mtf_json_number_of(search, "cost", NAN),
           bound = mtf_json_number_of(search, "bound", 0);
    if (!isnan(cost) && bound > 0) {
        double gap = cost > 0 ? 100 * (cost - bound) / cost : 0;
        g_autofree char *text = g_strdup_printf("%.3g %%", gap);
        mtf_page_number(page, gap <= 2e-4 ? "optimal" : text,
                        gap <= 2e-4 ? "proven among the layouts searched"
                                    : "gap to the proven bound");
    }
    g_string_append(page, "</div>");
}

/* One bar, its parts as long as their shares; the words stand below, so colour carries nothing
 * alone. */
static void add_shares(GString *page, const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) shares = mtf_step_shares(facts);
    double x = 0, scale = 960 / (double)MAX(facts->schedule->nanoseconds, 1);
    g_string_append(page,
                    "<h2 class=\"first\">What the step's time goes to</h2><svg class=\"shares\" "
                    "width=\"100%\" height=\"26\" viewBox=\"0 0 960 26\" "
                    "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"shares\">");
    for (guint i = 0; i < shares->len; i++) {
        const MtfStepShare *share = g_ptr_array_index(shares, i);
        double width = (double)share->nanoseconds * scale;
        mtf_markup(page,
                   "<rect x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"26\" fill=\"%s\">"
                   "<title>%s</title></rect>",
                   x, width, mtf_palette_area((int)i), share->name);
        x += width;
    }
    g_string_append(page, "</svg><ul class=\"legend\">");
    for (guint i = 0; i < shares->len; i++) {
        const MtfStepShare *share = g_ptr_array_index(shares, i);
        g_autofree char *time = mtf_seconds_format((double)share->nanoseconds / 1e9);
        mtf_markup(page,
                   "<li><span class=\"swatch\" style=\"background:%s\"></span>%s <b>%.1f "
                   "%%</b> %s</li>",
                   mtf_palette_area((int)i), share->name,
                   100 * (double)share->nanoseconds / (double)facts->schedule->nanoseconds, time);
    }
    g_string_append(page, "</ul>");
    int64_t hidden = facts->schedule->transfers - facts->schedule->exposed;
    g_autofree char *behind = mtf_seconds_format((double)hidden / 1e9);
    if (hidden > 0)
        mtf_markup(page,
                   "<p class=\"soft\">Another %s of communication go on behind computing.</p>",
                   behind);
}

void mtf_page_answer(GString *page, const MtfStepFacts *facts, const GArray *run) {
    g_autoptr(GPtrArray) lines = mtf_answer_lines(facts);
    add_numbers(page, facts, run);
    g_string_append(page, "<dl class=\"card\">");
    for (guint i = 0; i < lines->len; i++) {
        const MtfAnswerLine *line = g_ptr_array_index(lines, i);
        mtf_markup(page, "<dt>%s</dt><dd>%s</dd>", line->word, line->text);
    }
    g_string_append(page, "</dl>");
    add_shares(page, facts);
}
