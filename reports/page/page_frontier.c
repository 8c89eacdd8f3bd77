// SPDX-License-Identifier: GPL-3.0-or-later
/* Step time against memory: what the search found under a row of memory limits, the layouts that
 * the field makes by hand, and the chosen one. Marks carry numbers, which a table below explains,
 * so that no two labels can run into one another. */
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "reports/markup/axis_ticks.h"
#include "reports/markup/markup.h"

#include <math.h>

#define LEFT 90.0
#define TOP 16.0
#define WIDTH 840.0
#define HEIGHT 300.0
#define FAR_SECONDS 1.5 /* times what this plan takes, and what it needs: */
#define FAR_BYTES 4

typedef enum { POINT_FRONTIER, POINT_KNOWN, POINT_CHOSEN } PointKind;

typedef struct {
    PointKind kind;
    const char *name;
    double bytes, seconds;
    int number; /* of its place in the chart, which others may share */
    bool drawn; /* not far beyond all that is of interest */
} Point;

typedef struct {
    double low, high;
} Range;

static double share_of(const Range *range, double value) {
    return (value - range->low) / (range->high - range->low);
}

static double x_of(const Range *bytes, double value) {
    return LEFT + WIDTH * share_of(bytes, value);
}

static double y_of(const Range *seconds, double value) {
    return TOP + HEIGHT * (1 - share_of(seconds, value));
}

/* ---- Points -------------------------------------------------------------------------------- */

static void add_points(GArray *points, const cJSON *list, PointKind kind) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        Point point = { .kind = kind,
                        .name = mtf_tree_text(item, "name"),
                        .bytes = mtf_json_number_of(item, "memory_bytes", NAN),
                        .seconds = mtf_json_number_of(item, "step_seconds", NAN) };
        if (point.bytes > 0 && point.seconds > 0)
            g_array_append_val(points, point);
    }
}

static int compare_points(const void *left, const void *right) {
    const Point *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return (int)b->kind - (int)a->kind;
}

static bool at_one_place(const Point *a, const Point *b) {
    return fabs(a->bytes - b->bytes) <= 1e-3 * b->bytes &&
           fabs(a->seconds - b->seconds) <= 1e-3 * b->seconds;
}

/* Two limits may have the same best layout: it is one point. Layouts of the same figures are one
 * mark. */
static void number_points(GArray *points, const Point *chosen) {
    int number = 0;
    for (guint i = 0; i < points->len; i++) {
        Point *point = &g_array_index(points, Point, i);
        const Point *before = i > 0 ? point - 1 : NULL;
        bool twin = before != NULL && at_one_place(before, point);
        if (twin && point->kind == POINT_FRONTIER && before->kind != POINT_KNOWN) {
            g_array_remove_index(points, i--);
            continue;
        }
        number += !twin;
        point->number = number;
        point->drawn = point->seconds <= FAR_SECONDS * chosen->seconds &&
                       point->bytes <= FAR_BYTES * chosen->bytes;
    }
}

static GArray *points_of(const MtfStepFacts *facts) {
    GArray *points = g_array_new(FALSE, FALSE, sizeof(Point));
    const cJSON *search = facts->plan->search;
    add_points(points, cJSON_GetObjectItemCaseSensitive(search, "frontier"), POINT_FRONTIER);
    add_points(points, cJSON_GetObjectItemCaseSensitive(search, "incumbents"), POINT_KNOWN);
    Point chosen = { .kind = POINT_CHOSEN,
                     .name = "this plan",
                     .bytes = (double)facts->arena->bytes,
                     .seconds = (double)facts->schedule->nanoseconds / 1e9 };
    if (chosen.bytes > 0 && chosen.seconds > 0)
        g_array_append_val(points, chosen);
    g_array_sort(points, compare_points);
    number_points(points, &chosen);
    return points;
}

/* ---- The chart ----------------------------------------------------------------------------- */

static void widen(Range *range, double value) {
    range->low = MIN(range->low, value);
    range->high = MAX(range->high, value);
}

static Range with_margin(const Range *range) {
    double margin = MAX(0.08 * (range->high - range->low), 0.01 * range->high);
    return (Range){ range->low - margin, range->high + margin };
}

/* The unit that bytes up to a range's end are told in. */
static double unit_of(const Range *bytes) {
    return pow(1024, floor(log2(bytes->high) / 10));
}

static void draw_scales(GString *page, const Range *bytes, const Range *seconds) {
    /* Seconds are told in three digits. */
    double distance =
        mtf_tick_distance(seconds->low, seconds->high, 1, mtf_tick_finest(seconds->high), 5);
    for (double i = ceil(seconds->low / distance); i * distance <= seconds->high; i++) {
        g_autofree char *text = mtf_seconds_format(i * distance);
        double y = y_of(seconds, i * distance);
        mtf_markup(page,
                   "<path class=\"grid\" d=\"M%.0f %.1fh%.0f\"/><text class=\"soft\" x=\"%.0f\" "
                   "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                   LEFT, y, WIDTH, LEFT - 8, y + 4, text);
    }
    /* Bytes are told to a hundredth; their labels are wide and stand side by side. */
    double unit = unit_of(bytes);
    distance = mtf_tick_distance(bytes->low, bytes->high, unit, unit / 100, 2);
    for (double i = ceil(bytes->low / distance); i * distance <= bytes->high; i++) {
        g_autofree char *text = mtf_bytes_format(i * distance);
        double x = x_of(bytes, i * distance);
        mtf_markup(page,
                   "<path class=\"grid\" d=\"M%.1f %.0fv%.0f\"/><text class=\"soft\" x=\"%.1f\" "
                   "y=\"%.0f\" text-anchor=\"middle\">%s</text>",
                   x, TOP, HEIGHT, x, TOP + HEIGHT + 20, text);
    }
    mtf_markup(page,
               "<text class=\"soft\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">memory a device"
               "</text>",
               LEFT + WIDTH, TOP + HEIGHT + 40);
}

/* Below the line no layout was found: with more memory never slower. This plan is on it, as the
 * best under its own limit. */
static void draw_line(GString *page, const GArray *points, const Range *bytes,
                      const Range *seconds) {
    double last = NAN, best = INFINITY;
    GString *path = g_string_new(NULL);
    for (guint i = 0; i < points->len; i++) {
        const Point *point = &g_array_index(points, Point, i);
        bool begun = !isnan(last) && point->kind == POINT_CHOSEN;
        if ((point->kind != POINT_FRONTIER && !begun) || point->seconds >= best)
            continue;
        double x = x_of(bytes, point->bytes), y = y_of(seconds, point->seconds);
        g_string_append_printf(path, isnan(last) ? "M%.1f %.1f" : "H%.1fV%.1f", x, y);
        last = x;
        best = point->seconds;
    }
    if (!isnan(last))
        mtf_markup(page, "<path class=\"frontier\" d=\"%sH%.1f\"/>", path->str, LEFT + WIDTH);
    g_string_free(path, TRUE);
}

/* A square for what is known beside the search, else a circle. */
static void draw_mark(GString *page, PointKind kind, double x, double y) {
    if (kind == POINT_KNOWN)
        mtf_markup(page, "<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"16\" rx=\"2\"/>", x - 8,
                   y - 8);
    else
        mtf_markup(page, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", x, y,
                   kind == POINT_CHOSEN ? 11 : 8);
}

static void draw_point(GString *page, const Point *point, const Range *bytes,
                       const Range *seconds) {
    static const char *const classes[] = { "of-frontier", "of-known", "of-chosen" };
    double x = x_of(bytes, point->bytes), y = y_of(seconds, point->seconds);
    g_autofree char *memory = mtf_bytes_format(point->bytes);
    g_autofree char *time = mtf_seconds_format(point->seconds);
    mtf_markup(page, "<g class=\"%s\"><title>%s: %s, %s</title>", classes[point->kind], point->name,
               memory, time);
    draw_mark(page, point->kind, x, y);
    mtf_markup(page,
               "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>"
               "</g>\n",
               x, y + 4, point->number);
}

static void draw_limit(GString *page, const MtfStepFacts *facts, const Range *bytes) {
    double limit = (double)facts->limit;
    if (!(limit > bytes->low) || !(limit < bytes->high))
        return;
    double x = x_of(bytes, limit);
    bool right = x > LEFT + WIDTH - 120;
    g_autofree char *text = mtf_bytes_format(limit);
    mtf_markup(page,
               "<path class=\"limit\" d=\"M%.1f %.0fv%.0f\"/><text class=\"limit-text\" x=\"%.1f\" "
               "y=\"%.0f\" text-anchor=\"%s\">limit %s</text>",
               x, TOP, HEIGHT, x + (right ? -6 : 6), TOP + 12, right ? "end" : "start", text);
}

static void draw(GString *page, const MtfStepFacts *facts, const GArray *points) {
    Range bytes = { INFINITY, 0 }, seconds = { INFINITY, 0 };
    for (guint i = 0; i < points->len; i++) {
        const Point *point = &g_array_index(points, Point, i);
        if (!point->drawn)
            continue;
        widen(&bytes, point->bytes);
        widen(&seconds, point->seconds);
    }
    if ((double)facts->limit < 1.3 * bytes.high && facts->limit > 0)
        widen(&bytes, (double)facts->limit);
    bytes = with_margin(&bytes);
    seconds = with_margin(&seconds);
    g_string_append(page, "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 960 370\" "
                          "role=\"img\" aria-label=\"step time against memory\">");
    draw_scales(page, &bytes, &seconds);
    draw_line(page, points, &bytes, &seconds);
    draw_limit(page, facts, &bytes);
    for (int kind = POINT_FRONTIER; kind <= POINT_CHOSEN; kind++)
        for (guint i = 0; i < points->len; i++) {
            const Point *point = &g_array_index(points, Point, i);
            if ((int)point->kind == kind && point->drawn)
                draw_point(page, point, &bytes, &seconds);
        }
    g_string_append(page, "</svg></div>");
}

/* ---- Words --------------------------------------------------------------------------------- */

static void add_row(GString *page, const MtfStepFacts *facts, const Point *point) {
    static const char *const kinds[] = { "found", "by hand or rule", "chosen" };
    double chosen = (double)facts->schedule->nanoseconds / 1e9;
    g_autofree char *memory = mtf_bytes_format(point->bytes);
    g_autofree char *time = mtf_seconds_format(point->seconds);
    bool fits = facts->limit <= 0 || point->bytes <= (double)facts->limit;
    g_string_append(page, point->kind == POINT_CHOSEN ? "<tr class=\"chosen\">" : "<tr>");
    mtf_markup(page,
               "<td class=\"n\">%d</td><td>%s</td><td>%s</td><td class=\"n\">%s</td><td "
               "class=\"n\">%s</td><td class=\"n\">%.3f ×</td><td>%s%s</td></tr>\n",

               point->number, point->name, kinds[point->kind], memory, time,
               chosen > 0 ? point->seconds / chosen : 0, fits ? "" : "does not fit",
               point->drawn ? ""
               : fits       ? "not drawn"
                            : ", not drawn");
}

static void add_table(GString *page, const MtfStepFacts *facts, const GArray *points) {
    g_string_append(page, "<div class=\"wide\"><table class=\"points\"><thead><tr><th class=\"n\">"
                          "</th><th>layout</th><th>how</th><th class=\"n\">memory</th>"
                          "<th class=\"n\">step</th><th class=\"n\">against this plan</th><th></th>"
                          "</tr></thead><tbody>\n");
    for (guint i = 0; i < points->len; i++)
        add_row(page, facts, &g_array_index(points, Point, i));
    g_string_append(page, "</tbody></table></div>");
}

void mtf_page_frontier(GString *page, const MtfStepFacts *facts) {
    g_autoptr(GArray) points = points_of(facts);
    bool frontier =
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(facts->plan->search, "frontier")) > 0;
    if (points->len > 1) {
        mtf_markup(
            page,
            "<p>Circles%s squares layouts that rules or hands make: data parallelism, "
            "Mesh-TensorFlow's, Megatron's, ZeRO's, where they apply. Not drawn is what takes "
            "over %g times this plan's step or %d times its memory.</p>",
            frontier ? " are the best found under a row of memory limits (no slower to the "
                       "right of the line),"
                     : " are this plan,",
            FAR_SECONDS, FAR_BYTES);
        draw(page, facts, points);
        add_table(page, facts, points);
    }
    if (!frontier)
        g_string_append(page, "<p class=\"soft\">What more or less memory would be worth is not in "
                              "this plan: <code>meshtf-plan search --frontier 8</code> searches "
                              "under a row of limits and adds it.</p>");
}
