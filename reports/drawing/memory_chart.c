// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/memory_chart.h"

#include "layouts/base/command_line.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"

#include <math.h>

#define COLUMNS 240
#define LEFT 84.0
#define TOP 14.0
#define WIDTH 860.0
#define HEIGHT 240.0

/* The order in which kinds are stacked, what lives longest at the bottom, and their colours. */
static const struct {
    MtfMemoryKind kind;
    int area; /* of the palette */
} layers[] = {
    { MTF_MEMORY_VARIABLE, 0 },  { MTF_MEMORY_OPTIMIZER, 4 },  { MTF_MEMORY_INPUT, 3 },
    { MTF_MEMORY_GRADIENT, 2 },  { MTF_MEMORY_ACTIVATION, 1 }, { MTF_MEMORY_COMMUNICATION, 5 },
    { MTF_MEMORY_WORKSPACE, 7 }, { MTF_MEMORY_CACHE, 4 },      { MTF_MEMORY_OUTPUT, 3 },
};

int mtf_memory_area(MtfMemoryKind kind) {
    for (gsize l = 0; l < G_N_ELEMENTS(layers); l++)
        if (layers[l].kind == kind)
            return layers[l].area;
    return MTF_PALETTE_AREAS - 1;
}

typedef struct {
    const MtfStepFacts *facts;
    int fullest[COLUMNS]; /* an instruction a column */
    double top;           /* bytes at the upper edge */
    bool shows_limit;
} Chart;

/* ---- Columns ------------------------------------------------------------------------------- */

static int column_at(const MtfStepFacts *facts, int64_t nanoseconds) {
    double share = (double)nanoseconds / (double)MAX(facts->schedule->nanoseconds, 1);
    return CLAMP((int)(share * COLUMNS), 0, COLUMNS - 1);
}

static void fill_columns(Chart *chart) {
    const MtfStepFacts *facts = chart->facts;
    for (int c = 0; c < COLUMNS; c++)
        chart->fullest[c] = -1;
    for (int i = 0; i < facts->schedule->length; i++) {
        int last = column_at(facts, MAX(facts->schedule->ends[i] - 1, 0));
        for (int c = column_at(facts, facts->schedule->starts[i]); c <= last; c++)
            if (chart->fullest[c] < 0 ||
                mtf_step_facts_live(facts, i) > mtf_step_facts_live(facts, chart->fullest[c]))
                chart->fullest[c] = i;
    }
    for (int c = 0; c < COLUMNS; c++)
        if (chart->fullest[c] < 0)
            chart->fullest[c] = c > 0 ? chart->fullest[c - 1] : 0;
}

/* Bytes of the first `n` layers in a column. */
static double stacked(const Chart *chart, int column, gsize n) {
    const int64_t *live = chart->facts->live + chart->fullest[column] * MTF_MEMORY_KINDS;
    double sum = 0;
    for (gsize l = 0; l < n; l++)
        sum += (double)live[layers[l].kind];
    return sum;
}

/* ---- Drawing ------------------------------------------------------------------------------- */

static double x_of(int column) {
    return LEFT + WIDTH * column / COLUMNS;
}

static double y_of(const Chart *chart, double bytes) {
    return TOP + HEIGHT * (1 - bytes / chart->top);
}

static bool is_empty(const Chart *chart, gsize layer) {
    for (int c = 0; c < COLUMNS; c++)
        if (stacked(chart, c, layer + 1) > stacked(chart, c, layer))
            return false;
    return true;
}

static void draw_layer(GString *page, const Chart *chart, gsize layer) {
    if (is_empty(chart, layer))
        return;
    mtf_markup(page, "<path fill=\"%s\" d=\"M", mtf_palette_area(layers[layer].area));
    for (int c = 0; c < COLUMNS; c++) {
        double y = y_of(chart, stacked(chart, c, layer + 1));
        g_string_append_printf(page, "%.1f %.1fH%.1fL", x_of(c), y, x_of(c + 1));
    }
    for (int c = COLUMNS - 1; c >= 0; c--) {
        double y = y_of(chart, stacked(chart, c, layer));
        g_string_append_printf(page, "%.1f %.1fH%.1f%s", x_of(c + 1), y, x_of(c),
                               c > 0 ? "L" : "Z");
    }
    mtf_markup(page, "\"><title>%s</title></path>", mtf_memory_name(layers[layer].kind));
}

/* Lines at multiples of a power of two, three to six of them, with what they stand for. */
static void draw_scale(GString *page, const Chart *chart) {
    double distance = exp2(floor(log2(MAX(chart->top / 3, 1))));
    for (int i = 0; i * distance <= chart->top; i++) {
        double bytes = i * distance, y = y_of(chart, bytes);
        g_autofree char *text = mtf_bytes_format(bytes);
        mtf_markup(page,
                   "<path class=\"grid\" d=\"M%.0f %.1fH%.0f\"/><text class=\"soft\" x=\"%.0f\" "
                   "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                   LEFT, y, LEFT + WIDTH, LEFT - 6, y + 4, text);
    }
    g_autofree char *end = mtf_seconds_format((double)chart->facts->schedule->nanoseconds / 1e9);
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\">0</text><text class=\"soft\" "
               "x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text>",
               LEFT, TOP + HEIGHT + 34, LEFT + WIDTH, TOP + HEIGHT + 34, end);
}

static void draw_limit(GString *page, const Chart *chart) {
    if (!chart->shows_limit)
        return;
    double y = y_of(chart, (double)chart->facts->limit);
    g_autofree char *text = mtf_bytes_format((double)chart->facts->limit);
    mtf_markup(page,
               "<path class=\"limit\" d=\"M%.0f %.1fH%.0f\"/><text class=\"limit-text\" "
               "x=\"%.0f\" y=\"%.1f\">limit %s</text>",
               LEFT, y, LEFT + WIDTH, LEFT + 6, y - 5, text);
}

/* A mark above the peak; its tensors are listed below the chart. */
static void draw_peak(GString *page, const Chart *chart) {
    const MtfStepFacts *facts = chart->facts;
    int column = column_at(facts, facts->schedule->starts[facts->peak]);
    double x = (x_of(column) + x_of(column + 1)) / 2;
    double bytes = (double)mtf_step_facts_live(facts, facts->peak), y = y_of(chart, bytes);
    g_autofree char *text = mtf_bytes_format(bytes);
    bool right = x > LEFT + WIDTH / 2;
    mtf_markup(page,
               "<path class=\"mark\" d=\"M%.1f %.1fv%.1f\"/><circle class=\"dot\" cx=\"%.1f\" "
               "cy=\"%.1f\" r=\"4\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">peak "
               "%s</text>",
               x, y, TOP + HEIGHT - y, x, y, x + (right ? -8 : 8), y - 6, right ? "end" : "start",
               text);
}

static MtfPhase phase_of(const MtfStepFacts *facts, int i) {
    int operation = mtf_program_instruction(facts->program, i)->operation;
    return mtf_graph_operation(facts->plan->graph, operation)->phase;
}

/* The end of the run of instructions that begins with `i`: of one phase, updates in between counted
 * as part of the backward phase. */
static int end_of_phase(const MtfStepFacts *facts, int i) {
    MtfPhase phase = phase_of(facts, i);
    int end = i + 1;
    for (int next = end; next < facts->schedule->length; next++) {
        if (phase_of(facts, next) == phase)
            end = next + 1;
        else if (phase != MTF_PHASE_BACKWARD || phase_of(facts, next) != MTF_PHASE_UPDATE)
            break;
    }
    return end;
}

static void draw_phase(GString *page, const char *name, double x, double width) {
    mtf_markup(page,
               "<g><title>%s</title><rect class=\"band\" x=\"%.1f\" y=\"%.0f\" "
               "width=\"%.1f\" height=\"16\"/>",
               name, x, TOP + HEIGHT + 3, width);
    if (width > 62)
        mtf_markup(page, "<text class=\"small\" x=\"%.1f\" y=\"%.0f\">%s</text>", x + 5,
                   TOP + HEIGHT + 15, name);
    g_string_append(page, "</g>");
}

/* Phases as a band under the time axis; those too short for their name go without. */
static void draw_phases(GString *page, const Chart *chart) {
    const MtfSchedule *schedule = chart->facts->schedule;
    double scale = WIDTH / (double)MAX(schedule->nanoseconds, 1);
    for (int i = 0, end; i < schedule->length; i = end) {
        end = end_of_phase(chart->facts, i);
        double x = LEFT + (double)schedule->starts[i] * scale;
        double width = (double)MAX(schedule->ends[end - 1] - schedule->starts[i], 0) * scale;
        if (width >= 1)
            draw_phase(page, mtf_phase_name(phase_of(chart->facts, i)), x, width);
    }
}

static void draw_legend(GString *page, const Chart *chart) {
    const int64_t *live = chart->facts->live + chart->facts->peak * MTF_MEMORY_KINDS;
    g_string_append(page, "<ul class=\"legend\">");
    for (gsize l = 0; l < G_N_ELEMENTS(layers); l++) {
        if (is_empty(chart, l))
            continue;
        g_autofree char *bytes = mtf_bytes_format((double)live[layers[l].kind]);
        mtf_markup(page,
                   "<li><span class=\"swatch\" style=\"background:%s\"></span>%s "
                   "<b>%s</b></li>",
                   mtf_palette_area(layers[l].area), mtf_memory_name(layers[l].kind), bytes);
    }
    g_string_append(page, "<li class=\"soft\">bytes at the peak</li></ul>");
}

void mtf_memory_chart(GString *page, const MtfStepFacts *facts) {
    double peak = (double)mtf_step_facts_live(facts, facts->peak);
    Chart chart = { .facts = facts };
    chart.shows_limit = facts->limit > 0 && (double)facts->limit <= 3 * peak;
    chart.top = 1.12 * MAX(chart.shows_limit ? MAX((double)facts->limit, peak) : peak, 1);
    fill_columns(&chart);
    g_string_append_printf(page, "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 300\" "
                                 "role=\"img\" aria-label=\"memory over the step\">");
    draw_scale(page, &chart);
    for (gsize l = 0; l < G_N_ELEMENTS(layers); l++)
        draw_layer(page, &chart, l);
    draw_limit(page, &chart);
    draw_peak(page, &chart);
    draw_phases(page, &chart);
    g_string_append(page, "</svg></div>");
    draw_legend(page, &chart);
}
