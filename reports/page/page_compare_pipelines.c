// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_compare_pipelines.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "reports/drawing/pipeline_picture.h"
#include "reports/markup/markup.h"
#include "reports/page/page_sections.h"

#include <math.h>

static double step_of(const MtfComparedPipeline *plan) {
    return plan->facts != NULL ? plan->facts->step_seconds
                               : mtf_json_number_of(plan->plan->predicted, "step_seconds", NAN);
}

static double peak_of(const MtfComparedPipeline *plan) {
    return plan->facts != NULL
               ? mtf_pipeline_peak_bytes(plan->facts->pipeline)
               : mtf_json_number_of(plan->plan->predicted, "peak_memory_bytes", NAN);
}

/* How a plan runs its model; free with g_free. */
static char *format_way(const MtfComparedPipeline *plan) {
    if (plan->facts != NULL) {
        const MtfPipelinePlan *pipeline = plan->facts->pipeline;
        return g_strdup_printf("%d stages on %d devices, %s, %d micro-batch%s",
                               pipeline->order->stages, mtf_pipeline_devices(pipeline),
                               pipeline->schedule, pipeline->order->microbatches,
                               pipeline->order->microbatches == 1 ? "" : "es");
    }
    g_autofree char *mesh = mtf_mesh_title(&plan->plan->layout->mesh);
    g_autofree char *step = mtf_plan_step_format(plan->plan);
    return g_strdup_printf("no stages, mesh %s, %s", mesh, step);
}

/* What pipelines alone have: the bubble, and the bytes between stages. */
static void add_own_cells(GString *page, const MtfPipelineFacts *facts) {
    if (facts == NULL) {
        g_string_append(page, "<td class=\"n\">–</td><td class=\"n\">–</td></tr>\n");
        return;
    }
    g_autofree char *sent = mtf_bytes_format(mtf_pipeline_sent_bytes(facts->pipeline));
    mtf_markup(page, "<td class=\"n\">%.1f %%</td><td class=\"n\">%s</td></tr>\n",
               100 * facts->run->bubble, sent);
}

static void add_row(GString *page, const MtfComparedPipeline *plans, int i) {
    g_autofree char *way = format_way(&plans[i]);
    g_autofree char *step = mtf_seconds_format(step_of(&plans[i]));
    g_autofree char *peak = mtf_bytes_format(peak_of(&plans[i]));
    mtf_markup(page,
               "<tr><td class=\"strong\">%c</td><td>%s</td><td>%s</td><td class=\"n\">%s</td>"
               "<td class=\"n\">%.3f</td><td class=\"n\">%s</td>",
               'A' + i, plans[i].path, way, step, step_of(&plans[i]) / step_of(&plans[0]), peak);
    add_own_cells(page, plans[i].facts);
}

static void add_figures(GString *page, const MtfComparedPipeline *plans, int n) {
    g_string_append(page, "<div class=\"wide\"><table><thead><tr><th></th><th>plan</th><th>runs "
                          "as</th><th class=\"n\">step</th><th class=\"n\">against A</th>"
                          "<th class=\"n\">fullest device</th><th class=\"n\">bubble</th>"
                          "<th class=\"n\">between stages</th></tr></thead><tbody>\n");
    for (int i = 0; i < n; i++)
        add_row(page, plans, i);
    g_string_append(page, "</tbody></table></div>");
}

static void add_schedules(GString *page, const MtfComparedPipeline *plans, int n) {
    double longest = 0;
    for (int i = 0; i < n; i++)
        if (plans[i].facts != NULL)
            longest = fmax(longest, plans[i].facts->run->makespan);
    mtf_page_section(page, "schedules", "Their schedules, on one scale");
    for (int i = 0; i < n; i++) {
        if (plans[i].facts == NULL)
            continue;
        mtf_markup(page, "<h3>%c: %s</h3>", 'A' + i, plans[i].facts->pipeline->schedule);
        mtf_pipeline_picture(page, plans[i].facts, plans[i].facts->run, longest);
    }
}

char *mtf_page_compare_pipelines(const MtfComparedPipeline *plans, int n) {
    const MtfGraph *graph =
        plans[0].facts != NULL ? plans[0].facts->pipeline->graph : plans[0].plan->graph;
    g_autofree char *title = g_strdup_printf("%s: %d plans", graph->name, n);
    GString *page = mtf_page_begin(title);
    mtf_markup(
        page,
        "<section id=\"answer\"><h1>%d plan%s side by side</h1>\n<nav aria-label=\"sections\"><a "
        "href=\"#schedules\">schedules</a></nav>\n",
        n, n == 1 ? "" : "s");
    add_figures(page, plans, n);
    add_schedules(page, plans, n);
    g_string_append(page,
                    "</section>\n<p class=\"soft\">Made by meshtf-report " MTF_VERSION ".</p>\n");
    return mtf_page_end(page);
}
