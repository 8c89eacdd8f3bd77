// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "reports/facts/metrics_log.h"
#include "reports/markup/axis_ticks.h"
#include "reports/markup/markup.h"

#include <inttypes.h>
#include <math.h>

#define LEFT 70.0
#define TOP 12.0
#define WIDTH 870.0
#define HEIGHT 200.0
#define POINTS 600 /* drawn, at most */

/* A quantity of each step, drawn over the steps. */
typedef struct {
    const char *label; /* "loss over steps" */
    double (*value)(const MtfMetricsRecord *record);
    char *(*format)(double value);
    double predicted; /* a line across; NAN = none */
} Series;

typedef struct {
    const Series *series;
    double low, high; /* values, multiples of the next */
    double distance;  /* of the scale's lines */
    int64_t first, last;
} Frame;

static double loss_of(const MtfMetricsRecord *record) {
    return record->loss;
}

static double seconds_of(const MtfMetricsRecord *record) {
    return record->seconds;
}

static char *format_loss(double loss) {
    return g_strdup_printf("%.4g", loss);
}

static const MtfMetricsRecord *record_at(const GArray *run, guint i) {
    return &g_array_index(run, MtfMetricsRecord, i);
}

static Frame frame_of(const Series *series, const GArray *run) {
    Frame frame = {
        series, INFINITY, -INFINITY, 1, record_at(run, 0)->step, record_at(run, run->len - 1)->step
    };
    if (isfinite(series->predicted))
        frame.low = frame.high = series->predicted;
    for (guint i = 0; i < run->len; i++) {
        double value = series->value(record_at(run, i));
        if (!isfinite(value))
            continue;
        frame.low = MIN(frame.low, value);
        frame.high = MAX(frame.high, value);
    }
    if (!(frame.high > frame.low)) {
        frame.low = isfinite(frame.low) ? frame.low - 0.5 : 0;
        frame.high = frame.low + 1;
    }
    double finest = mtf_tick_finest(fmax(fabs(frame.low), fabs(frame.high)));
    frame.distance = mtf_tick_distance(frame.low, frame.high, 1, finest, 2);
    frame.low = frame.distance * floor(frame.low / frame.distance);
    frame.high = frame.distance * ceil(frame.high / frame.distance);
    return frame;
}

static double x_of(const Frame *frame, int64_t step) {
    return LEFT +
           WIDTH * (double)(step - frame->first) / (double)MAX(frame->last - frame->first, 1);
}

static double y_of(const Frame *frame, double value) {
    return TOP + HEIGHT * (frame->high - value) / (frame->high - frame->low);
}

/* A line through the values, broken where one is not a number. */
static void draw_values(GString *page, const Frame *frame, const GArray *run) {
    guint stride = (run->len + POINTS - 1) / POINTS;
    bool pen_down = false;
    g_string_append(page, "<path class=\"measured\" d=\"");
    for (guint i = 0; i < run->len; i += stride) {
        double value = frame->series->value(record_at(run, i));
        if (isfinite(value))
            g_string_append_printf(page, "%s%.1f %.1f", pen_down ? "L" : "M",
                                   x_of(frame, record_at(run, i)->step), y_of(frame, value));
        pen_down = isfinite(value);
    }
    g_string_append(page, "\"/>");
}

static void draw_predicted(GString *page, const Frame *frame) {
    if (!isfinite(frame->series->predicted))
        return;
    double y = y_of(frame, frame->series->predicted);
    g_autofree char *text = frame->series->format(frame->series->predicted);
    mtf_markup(page,
               "<path class=\"limit\" d=\"M%.0f %.1fh%.0f\"/><text class=\"limit-text\" x=\"%.0f\" "
               "y=\"%.1f\" text-anchor=\"end\">predicted %s</text>",
               LEFT, y, WIDTH, LEFT + WIDTH, y - 5, text);
}

static void draw_scale(GString *page, const Frame *frame) {
    double first = round(frame->low / frame->distance);
    double last = round(frame->high / frame->distance);
    for (double i = first; i <= last; i++) {
        double value = i * frame->distance, y = y_of(frame, value);
        g_autofree char *text = frame->series->format(value);
        mtf_markup(page,
                   "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/><text class=\"soft\" x=\"%.0f\" "
                   "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                   LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4, text);
    }
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\">step %" PRId64
               "</text><text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">step %" PRId64
               "</text>",
               LEFT, TOP + HEIGHT + 20, frame->first, LEFT + WIDTH, TOP + HEIGHT + 20, frame->last);
}

static void add_curve(GString *page, const Series *series, const GArray *run) {
    Frame frame = frame_of(series, run);
    mtf_markup(page,
               "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 240\" role=\"img\" "
               "aria-label=\"%s\">",
               series->label);
    draw_scale(page, &frame);
    draw_predicted(page, &frame);
    draw_values(page, &frame, run);
    g_string_append(page, "</svg></div>");
}

static void add_curves(GString *page, double predicted, const GArray *run) {
    const Series losses = { "loss over steps", loss_of, format_loss, NAN };
    const Series times = { "seconds over steps", seconds_of, mtf_seconds_format, predicted };
    const MtfMetricsRecord *first = record_at(run, 0), *last = record_at(run, run->len - 1);
    g_string_append(page, "<h3>Loss</h3>");
    add_curve(page, &losses, run);
    mtf_markup(page, "<p>From %.5g at step %" PRId64 " to %.5g at step %" PRId64 ".</p>",
               first->loss, first->step, last->loss, last->step);
    g_string_append(page, "<h3>Time of each step</h3>");
    add_curve(page, &times, run);
}

static void add_comparison(GString *page, const char *what, double predicted, double measured) {
    if (isnan(predicted))
        return;
    g_autofree char *left = mtf_seconds_format(predicted);
    g_autofree char *right = mtf_seconds_format(measured);
    g_autofree char *ratio = mtf_ratio_format(measured, predicted);
    mtf_markup(page,
               "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s"
               "</td></tr>",
               what, left, right, ratio);
}

/* The arena is mapped at exactly the size that was planned. */
static void add_memory(GString *page, const MtfRunPredicted *predicted, const GArray *run) {
    double measured = (double)record_at(run, run->len - 1)->arena_bytes;
    g_autofree char *left = mtf_bytes_format(predicted->bytes);
    g_autofree char *right = mtf_bytes_format(measured);
    if (measured == 0)
        return;
    mtf_markup(page,
               "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td "
               "class=\"n\">%s</td></tr>",
               predicted->memory, left, right,
               measured == predicted->bytes ? "equal to the byte" : "not equal");
}

void mtf_page_run(GString *page, const MtfRunPredicted *predicted, const GArray *run) {
    double measured = mtf_metrics_median_seconds(run);
    double measured_network = mtf_metrics_median_communication(run);
    mtf_markup(page,
               "<p>%u steps; medians, the first step left out.%s</p><div class=\"wide\"><table>"
               "<thead><tr><th></th><th class=\"n\">predicted</th><th class=\"n\">measured</th>"
               "<th class=\"n\">measured / predicted</th></tr></thead><tbody>",
               run->len,
               isnan(predicted->communication) ? ""
                                               : " Communication is measured inside MPI calls on "
                                                 "rank 0, waiting included.");
    add_comparison(page, "step", predicted->step, measured);
    add_comparison(page, "communication", predicted->communication, measured_network);
    add_comparison(page, "computation", predicted->computation, measured - measured_network);
    add_memory(page, predicted, run);
    g_string_append(page, "</tbody></table></div>");
    add_curves(page, predicted->step, run);
}
