// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page_sections.h"

#include "layouts/command_line.h"
#include "reports/markup.h"
#include "reports/metrics_log.h"

#include <inttypes.h>
#include <math.h>

#define LEFT 70.0
#define TOP 12.0
#define WIDTH 870.0
#define HEIGHT 200.0
#define POINTS 600 /* drawn, at most */

typedef struct {
    double low, high; /* losses */
    int64_t first, last;
} Frame;

static const MtfMetricsRecord *record_at(const GArray *run, guint i) {
    return &g_array_index(run, MtfMetricsRecord, i);
}

static Frame frame_of(const GArray *run) {
    Frame frame = { INFINITY, -INFINITY, record_at(run, 0)->step,
                    record_at(run, run->len - 1)->step };
    for (guint i = 0; i < run->len; i++) {
        double loss = record_at(run, i)->loss;
        if (!isfinite(loss))
            continue;
        frame.low = MIN(frame.low, loss);
        frame.high = MAX(frame.high, loss);
    }
    if (!(frame.high > frame.low)) {
        frame.low = isfinite(frame.low) ? frame.low - 0.5 : 0;
        frame.high = frame.low + 1;
    }
    return frame;
}

static double x_of(const Frame *frame, int64_t step) {
    return LEFT +
           WIDTH * (double)(step - frame->first) / (double)MAX(frame->last - frame->first, 1);
}

static double y_of(const Frame *frame, double loss) {
    return TOP + HEIGHT * (frame->high - loss) / (frame->high - frame->low);
}

/* A line through the losses, broken where one is not a number. */
static void draw_losses(GString *page, const Frame *frame, const GArray *run) {
    guint stride = (run->len + POINTS - 1) / POINTS;
    bool pen_down = false;
    g_string_append(page, "<path class=\"measured\" d=\"");
    for (guint i = 0; i < run->len; i += stride) {
        const MtfMetricsRecord *record = record_at(run, i);
        if (isfinite(record->loss))
            g_string_append_printf(page, "%s%.1f %.1f", pen_down ? "L" : "M",
                                   x_of(frame, record->step), y_of(frame, record->loss));
        pen_down = isfinite(record->loss);
    }
    g_string_append(page, "\"/>");
}

static void draw_scale(GString *page, const Frame *frame) {
    for (int i = 0; i <= 4; i++) {
        double loss = frame->low + (frame->high - frame->low) * i / 4, y = y_of(frame, loss);
        mtf_markup(page,
                   "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/><text class=\"soft\" x=\"%.0f\" "
                   "y=\"%.1f\" text-anchor=\"end\">%.4g</text>",
                   LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4, loss);
    }
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\">step %" PRId64
               "</text><text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">step %" PRId64
               "</text>",
               LEFT, TOP + HEIGHT + 20, frame->first, LEFT + WIDTH, TOP + HEIGHT + 20, frame->last);
}

static void add_curve(GString *page, const GArray *run) {
    Frame frame = frame_of(run);
    mtf_markup(page, "<h3>Loss</h3><div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 "
                     "240\" role=\"img\" aria-label=\"loss over steps\">");
    draw_scale(page, &frame);
    draw_losses(page, &frame, run);
    const MtfMetricsRecord *last = record_at(run, run->len - 1);
    mtf_markup(page,
               "</svg></div><p>From %.5g at step %" PRId64 " to %.5g at step %" PRId64 ".</p>",
               record_at(run, 0)->loss, frame.first, last->loss, frame.last);
}

static void add_comparison(GString *page, const char *what, double predicted, double measured) {
    g_autofree char *left = mtf_seconds_format(predicted);
    g_autofree char *right = mtf_seconds_format(measured);
    mtf_markup(page, "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>", what, left,
               right);
    if (predicted > 0)
        mtf_markup(page, "<td class=\"n\">%.3g ×</td></tr>", measured / predicted);
    else
        mtf_markup(page, "<td class=\"n\">–</td></tr>");
}

void mtf_page_run(GString *page, const MtfStepFacts *facts, const GArray *run) {
    double network = 0, step = (double)facts->schedule->nanoseconds / 1e9;
    for (guint i = 0; i < facts->traffic->len; i++)
        network += (double)g_array_index(facts->traffic, MtfTrafficRow, i).nanoseconds / 1e9;
    double measured = mtf_metrics_median_seconds(run);
    double measured_network = mtf_metrics_median_communication(run);
    mtf_markup(page,
               "<p>%u steps; medians, the first step left out. Communication is measured inside "
               "MPI calls on rank 0, waiting included.</p><div class=\"wide\"><table><thead><tr>"
               "<th></th><th class=\"n\">predicted</th><th class=\"n\">measured</th>"
               "<th class=\"n\">measured / predicted</th></tr></thead><tbody>",
               run->len);
    add_comparison(page, "step", step, measured);
    add_comparison(page, "communication", network, measured_network);
    add_comparison(page, "computation", step - network, measured - measured_network);
    g_string_append(page, "</tbody></table></div>");
    add_curve(page, run);
}
