// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/pipeline_picture.h"

#include "layouts/base/command_line.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"

#define LEFT 84.0
#define WIDTH 860.0
#define TOP 6.0
#define ROW 46.0 /* of passes and of memory: */
#define BOX 24.0
#define BAND 14.0
#define MOST_BOXES 4000
#define DIGIT 7.0  /* wide, at most */
#define MARGIN 3.0 /* around a number */

typedef struct {
    GString *page;
    const MtfPipelineFacts *facts;
    const MtfPipelineRun *run;
    double until; /* seconds that are shown */
    double most;  /* bytes that some domain needs: the full height of a band */
} Picture;

static double x_of(const Picture *p, double seconds) {
    return LEFT + WIDTH * MIN(seconds, p->until) / p->until;
}

/* The end of the step, or of the scale if that is later; or where MOST_BOXES passes have begun. */
static double shown_until(const MtfPipelineOrder *order, const MtfPipelineRun *run,
                          double seconds) {
    int all = 0;
    for (int r = 0; r < order->ranks; r++)
        all += mtf_pipeline_length(order, r);
    double end = run->makespan;
    return all <= MOST_BOXES ? MAX(end, seconds) : end * MOST_BOXES / all;
}

/* ---- Passes -------------------------------------------------------------------------------- */

static const struct {
    MtfPipelineWork work;
    int area; /* of the palette */
    const char *name;
} works[] = {
    { MTF_WORK_FORWARD, 0, "forward" },
    { MTF_WORK_BACKWARD, 1, "backward" },
    { MTF_WORK_INPUT_GRADIENT, 2, "input gradient" },
    { MTF_WORK_WEIGHT_GRADIENT, 4, "weight gradient" },
};

static int row_of_work(MtfPipelineWork work) {
    int row = 0;
    while (works[row].work != work)
        row++;
    return row;
}

static void draw_pass(const Picture *p, const MtfPipelineAction *action, const MtfActionTime *time,
                      double y) {
    double x = x_of(p, time->begin), width = x_of(p, time->end) - x;
    int work = row_of_work(action->work);
    g_autofree char *seconds = mtf_seconds_format(time->end - time->begin);
    mtf_markup(p->page,
               "<g><title>stage %d, micro-batch %d: %s, %s</title><rect x=\"%.2f\" y=\"%.1f\" "
               "width=\"%.2f\" height=\"%.0f\" fill=\"%s\" stroke=\"%s\" stroke-width=\"0.6\"/>",
               action->stage, action->microbatch, works[work].name, seconds, x, y, width, BOX,
               mtf_palette_area(works[work].area), MTF_COLOR_PLAIN);
    int digits = action->microbatch < 10 ? 1 : action->microbatch < 100 ? 2 : 4;
    if (width > digits * DIGIT + MARGIN)
        mtf_markup(p->page,
                   "<text class=\"small\" style=\"fill:%s\" x=\"%.2f\" y=\"%.1f\" "
                   "text-anchor=\"middle\">%d</text>",
                   mtf_palette_ink(works[work].area), x + width / 2, y + BOX / 2 + 4,
                   action->microbatch);
    g_string_append(p->page, "</g>");
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* What the domain holds, as a line of steps filled down to the band's foot. */
static void draw_memory(const Picture *p, int domain, double foot) {
    const MtfPipelineOrder *order = p->facts->order;
    double held = mtf_pipeline_domain_begins_with(p->facts, domain), most = 0;
    GString *path = g_string_new(NULL);
    g_string_append_printf(path, "M%.1f %.1fV%.2f", LEFT, foot, foot - BAND * held / p->most);
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, domain, i);
        const MtfActionTime *time = &p->run->time[domain][i];
        if (!mtf_work_computes(action->work) || time->begin > p->until)
            continue;
        held += mtf_pipeline_action_adds(p->facts, action);
        most = MAX(most, held);
        g_string_append_printf(path, "H%.2fV%.2f", x_of(p, time->begin),
                               foot - BAND * held / p->most);
        held -= mtf_pipeline_action_frees(p->facts, action);
        g_string_append_printf(path, "H%.2fV%.2f", x_of(p, time->end),
                               foot - BAND * held / p->most);
    }
    g_autofree char *bytes = mtf_bytes_format(most);
    mtf_markup(p->page,
               "<path fill=\"%s\" d=\"%sH%.1fV%.1fZ\"><title>domain %d holds %s at most</title>"
               "</path>",
               mtf_palette_area(7), path->str, LEFT + WIDTH, foot, domain, bytes);
    g_string_free(path, TRUE);
}

/* ---- The picture --------------------------------------------------------------------------- */

static void draw_domain(const Picture *p, int domain) {
    const MtfPipelineOrder *order = p->facts->order;
    double y = TOP + ROW * domain;
    mtf_markup(p->page,
               "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">domain %d</text>"
               "<path class=\"grid\" d=\"M%.0f %.1fh%.0f\"/>",
               LEFT - 8, y + BOX / 2 + 4, domain, LEFT, y + BOX + BAND, WIDTH);
    draw_memory(p, domain, y + BOX + BAND);
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, domain, i);
        const MtfActionTime *time = &p->run->time[domain][i];
        if (mtf_work_computes(action->work) && time->begin < p->until)
            draw_pass(p, action, time, y);
    }
}

static bool occurs(const MtfPipelineOrder *order, MtfPipelineWork work) {
    for (int r = 0; r < order->ranks; r++)
        for (int i = 0; i < mtf_pipeline_length(order, r); i++)
            if (mtf_pipeline_action(order, r, i)->work == work)
                return true;
    return false;
}

static void add_legend(const Picture *p) {
    g_string_append(p->page, "<ul class=\"legend\">");
    for (gsize w = 0; w < G_N_ELEMENTS(works); w++)
        if (occurs(p->facts->order, works[w].work))
            mtf_markup(p->page, "<li><span class=\"swatch\" style=\"background:%s\"></span>%s</li>",
                       mtf_palette_area(works[w].area), works[w].name);
    mtf_markup(p->page,
               "<li><span class=\"swatch\" style=\"background:%s\"></span>memory a device</li>",
               mtf_palette_area(7));
    g_string_append(p->page, "</ul>");
}

void mtf_pipeline_picture(GString *page, const MtfPipelineFacts *facts, const MtfPipelineRun *run,
                          double seconds) {
    const MtfPipelineOrder *order = facts->order;
    Picture p = { page, facts, run, shown_until(order, run, seconds), 0 };
    for (int domain = 0; domain < order->ranks; domain++)
        p.most = MAX(p.most, mtf_pipeline_domain_bytes(facts, domain));
    double height = TOP + ROW * order->ranks;
    g_autofree char *end = mtf_seconds_format(p.until);
    mtf_markup(page,
               "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 %.0f\" role=\"img\" "
               "aria-label=\"the schedule: a row a domain\">",
               height + 20);
    for (int domain = 0; domain < order->ranks; domain++)
        draw_domain(&p, domain);
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\">0</text><text class=\"soft\" x=\"%.0f\" "
               "y=\"%.0f\" text-anchor=\"end\">%s</text></svg></div>",
               LEFT, height + 14, LEFT + WIDTH, height + 14, end);
    add_legend(&p);
    if (p.until < run->makespan)
        mtf_markup(page, "<p>The beginning of the step: the first %s.</p>", end);
}
