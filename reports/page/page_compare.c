// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_compare.h"

#include "layouts/base/command_line.h"
#include "reports/drawing/memory_chart.h"
#include "reports/facts/answer.h"
#include "reports/facts/tensor_rows.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"
#include "reports/page/page_sections.h"

#include <string.h>

#define BAR_LEFT 34.0
#define BAR_WIDTH 820.0
#define BAR_HEIGHT 26.0
#define BAR_PITCH 38.0
#define SHOWN_AT_ONCE 40
#define MAX_PARTS 32 /* of a bar */

typedef struct {
    GString *page;
    const MtfComparedPlan *plans;
    int n;
} Comparison;

static char letter(int plan) {
    return (char)('A' + plan);
}

/* ---- Bars ---------------------------------------------------------------------------------- */

/* The parts of one plan's bar: values by place in `names`, which all plans share. */
typedef struct {
    GPtrArray *names;               /* char * */
    double *values;                 /* plan-major: [plan][name] */
    int areas[MAX_PARTS];           /* of the palette, by place */
    double longest;                 /* of all bars and marks */
    double marks[MTF_COMPARED_MAX]; /* a limit each; 0 = none */
} Bars;

static int name_place(Bars *bars, const char *name) {
    for (guint i = 0; i < bars->names->len; i++)
        if (strcmp(g_ptr_array_index(bars->names, i), name) == 0)
            return (int)i;
    g_ptr_array_add(bars->names, g_strdup(name));
    return (int)bars->names->len - 1;
}

/* What does not find a place among the first is added to the last. */
static int add_value(Bars *bars, int plan, const char *name, double value) {
    int place = MIN(name_place(bars, name), MAX_PARTS - 1);
    bars->values[plan * MAX_PARTS + place] += value;
    return place;
}

static double length_of(const Bars *bars, int plan) {
    double sum = 0;
    for (int i = 0; i < MAX_PARTS; i++)
        sum += bars->values[plan * MAX_PARTS + i];
    return sum;
}

typedef char *(*Format)(double value);

static void draw_bar(const Comparison *c, const Bars *bars, int plan, Format format) {
    double y = plan * BAR_PITCH, x = BAR_LEFT, scale = BAR_WIDTH / MAX(bars->longest, 1e-30);
    mtf_markup(c->page, "<text class=\"strong\" x=\"4\" y=\"%.0f\">%c</text>", y + 18,
               letter(plan));
    for (guint i = 0; i < MIN(bars->names->len, MAX_PARTS); i++) {
        double value = bars->values[plan * MAX_PARTS + (int)i];
        g_autofree char *text = format(value);
        if (value <= 0)
            continue;
        mtf_markup(c->page,
                   "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" "
                   "fill=\"%s\"><title>%s, %s</title></rect>",
                   x, y, value * scale, BAR_HEIGHT, mtf_palette_area(bars->areas[i]),
                   (char *)g_ptr_array_index(bars->names, i), text);
        x += value * scale;
    }
    if (bars->marks[plan] > 0)
        mtf_markup(c->page, "<path class=\"limit\" d=\"M%.2f %.0fv%.0f\"/>",
                   BAR_LEFT + bars->marks[plan] * scale, y - 3, BAR_HEIGHT + 6);
    g_autofree char *total = format(length_of(bars, plan));
    mtf_markup(c->page, "<text x=\"%.1f\" y=\"%.0f\">%s</text>", x + 8, y + 18, total);
}

static void draw_bars(const Comparison *c, Bars *bars, const char *label, Format format) {
    for (int p = 0; p < c->n; p++)
        bars->longest = MAX(bars->longest, MAX(length_of(bars, p), bars->marks[p]));
    mtf_markup(c->page,
               "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 -4 960 %.0f\" role=\"img\" "
               "aria-label=\"%s\">",
               c->n * BAR_PITCH, label);
    for (int p = 0; p < c->n; p++)
        draw_bar(c, bars, p, format);
    g_string_append(c->page, "</svg></div><ul class=\"legend\">");
    for (guint i = 0; i < MIN(bars->names->len, MAX_PARTS); i++)
        mtf_markup(c->page, "<li><span class=\"swatch\" style=\"background:%s\"></span>%s</li>",
                   mtf_palette_area(bars->areas[i]), (char *)g_ptr_array_index(bars->names, i));
    g_string_append(c->page, "</ul>");
}

static Bars new_bars(int n) {
    return (Bars){ .names = g_ptr_array_new_with_free_func(g_free),
                   .values = g_new0(double, (gsize)n *MAX_PARTS) };
}

static void clear_bars(Bars *bars) {
    g_ptr_array_unref(bars->names);
    g_free(bars->values);
}

static void add_times(const Comparison *c) {
    Bars bars = new_bars(c->n);
    for (int p = 0; p < c->n; p++) {
        g_autoptr(GPtrArray) shares = mtf_step_shares(c->plans[p].facts);
        for (guint i = 0; i < shares->len; i++) {
            const MtfStepShare *share = g_ptr_array_index(shares, i);
            int place = add_value(&bars, p, share->name, (double)share->nanoseconds / 1e9);
            bars.areas[place] = place;
        }
    }
    g_string_append(c->page, "</section>\n<section id=\"time\"><h2>Where the time of a step goes"
                             "</h2>\n");
    draw_bars(c, &bars, "time of a step", mtf_seconds_format);
    clear_bars(&bars);
}

static void add_peak(Bars *bars, int plan, const MtfStepFacts *facts) {
    const int64_t *live = facts->live + facts->peak * MTF_MEMORY_KINDS;
    double peak = (double)mtf_step_facts_live(facts, facts->peak);
    for (int k = 0; k < MTF_MEMORY_KINDS; k++) {
        MtfMemoryKind kind = (MtfMemoryKind)k;
        if (live[k] > 0)
            bars->areas[add_value(bars, plan, mtf_memory_name(kind), (double)live[k])] =
                mtf_memory_area(kind);
    }
    if ((double)facts->limit < 4 * peak)
        bars->marks[plan] = (double)facts->limit;
}

static void add_memory(const Comparison *c) {
    Bars bars = new_bars(c->n);
    for (int p = 0; p < c->n; p++)
        add_peak(&bars, p, c->plans[p].facts);
    g_string_append(c->page, "</section>\n<section id=\"memory\"><h2>What the memory holds at the "
                             "peak</h2>\n");
    draw_bars(c, &bars, "memory at the peak", mtf_bytes_format);
    g_string_append(c->page, "<p class=\"soft\">A dashed line is the limit, where it is near.</p>");
    clear_bars(&bars);
}

/* ---- Figures ------------------------------------------------------------------------------- */

static gboolean has_word(const void *line, const void *word) {
    return g_str_equal(((const MtfAnswerLine *)line)->word, word);
}

/* Adds to `rows` the lines that only this plan has, each behind the one that it follows here. */
static void merge_rows(GPtrArray *rows, const GPtrArray *lines) {
    guint at = 0;
    for (guint i = 0; i < lines->len; i++) {
        MtfAnswerLine *line = g_ptr_array_index(lines, i);
        if (!g_ptr_array_find_with_equal_func(rows, line->word, has_word, &at))
            g_ptr_array_insert(rows, (int)at, line);
        at++;
    }
}

static void add_answer(const Comparison *c, GPtrArray *lines, const char *word) {
    guint at;
    bool there = g_ptr_array_find_with_equal_func(lines, word, has_word, &at);
    mtf_markup(c->page, "<td>%s</td>",
               there ? ((MtfAnswerLine *)g_ptr_array_index(lines, at))->text : "–");
}

static void add_answers(const Comparison *c) {
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    GPtrArray *lines[MTF_COMPARED_MAX];
    for (int p = 0; p < c->n; p++)
        merge_rows(rows, lines[p] = mtf_answer_lines(c->plans[p].facts));
    g_string_append(c->page, "<div class=\"wide\"><table class=\"answers\"><thead><tr><th></th>");
    for (int p = 0; p < c->n; p++)
        mtf_markup(c->page, "<th>%c <span class=\"mono\">%s</span></th>", letter(p),
                   c->plans[p].path);
    g_string_append(c->page, "</tr></thead><tbody><tr><td>graph</td>");
    for (int p = 0; p < c->n; p++)
        mtf_markup(c->page, "<td>%s</td>", c->plans[p].facts->plan->graph->name);
    g_string_append(c->page, "</tr>\n<tr><td>against A</td>");
    double first = (double)c->plans[0].facts->schedule->nanoseconds;
    for (int p = 0; p < c->n; p++)
        mtf_markup(c->page, "<td><b>%.3g ×</b> the time of a step</td>",
                   (double)c->plans[p].facts->schedule->nanoseconds / MAX(first, 1));
    g_string_append(c->page, "</tr>\n");
    for (guint i = 0; i < rows->len; i++) {
        const char *word = ((MtfAnswerLine *)g_ptr_array_index(rows, i))->word;
        mtf_markup(c->page, "<tr><td>%s</td>", word);
        for (int p = 0; p < c->n; p++)
            add_answer(c, lines[p], word);
        g_string_append(c->page, "</tr>\n");
    }
    g_string_append(c->page, "</tbody></table></div>");
    for (int p = 0; p < c->n; p++)
        g_ptr_array_unref(lines[p]);
}

/* ---- Tensors ------------------------------------------------------------------------------- */

/* A name, and what it is kept as in each plan; several notations where its layers differ. */
typedef struct {
    char *name;
    GString *kept[MTF_COMPARED_MAX];
    double bytes; /* in the plan where it takes most */
} Kept;

static void free_kept(void *data) {
    Kept *kept = data;
    for (int p = 0; p < MTF_COMPARED_MAX; p++)
        if (kept->kept[p] != NULL)
            g_string_free(kept->kept[p], TRUE);
    g_free(kept->name);
    g_free(kept);
}

static Kept *kept_as(GHashTable *by_name, GPtrArray *list, const char *name) {
    Kept *known = g_hash_table_lookup(by_name, name);
    if (known == NULL) {
        known = g_new0(Kept, 1);
        known->name = g_strdup(name);
        g_ptr_array_add(list, known);
        g_hash_table_insert(by_name, known->name, known);
    }
    return known;
}

static GPtrArray *all_kept(const Comparison *c) {
    GPtrArray *list = g_ptr_array_new_with_free_func(free_kept);
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (int p = 0; p < c->n; p++) {
        const MtfPlan *plan = c->plans[p].facts->plan;
        g_autoptr(GPtrArray) rows = mtf_tensor_rows_new(plan->graph, plan->layout);
        for (guint i = 0; i < rows->len; i++) {
            const MtfTensorRow *row = g_ptr_array_index(rows, i);
            Kept *kept = kept_as(by_name, list, row->name);
            if (kept->kept[p] == NULL)
                kept->kept[p] = g_string_new(NULL);
            g_string_append_printf(kept->kept[p], "%s%s", kept->kept[p]->len > 0 ? "; " : "",
                                   row->notation);
            kept->bytes = MAX(kept->bytes, (double)row->bytes * row->count);
        }
    }
    return list;
}

static bool differs(const Comparison *c, const Kept *kept) {
    for (int p = 1; p < c->n; p++)
        if (kept->kept[0] == NULL || kept->kept[p] == NULL ||
            !g_string_equal(kept->kept[0], kept->kept[p]))
            return true;
    return false;
}

static int compare_kept(const void *left, const void *right) {
    const Kept *a = *(Kept *const *)left, *b = *(Kept *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

static void add_tensor_table(const Comparison *c, const GPtrArray *list, guint first, guint end) {
    g_string_append(c->page, "<div class=\"wide\"><table><thead><tr><th>tensor</th>");
    for (int p = 0; p < c->n; p++)
        mtf_markup(c->page, "<th>kept in %c as</th>", letter(p));
    g_string_append(c->page, "</tr></thead><tbody>\n");
    for (guint i = first; i < end; i++) {
        const Kept *kept = g_ptr_array_index(list, i);
        mtf_markup(c->page, "<tr><td class=\"mono\">%s</td>", kept->name);
        for (int p = 0; p < c->n; p++)
            mtf_markup(c->page, "<td class=\"mono\">%s</td>",
                       kept->kept[p] != NULL ? kept->kept[p]->str : "–");
        g_string_append(c->page, "</tr>\n");
    }
    g_string_append(c->page, "</tbody></table></div>");
}

static void add_tensors(const Comparison *c) {
    g_autoptr(GPtrArray) list = all_kept(c);
    guint all = list->len;
    for (guint i = list->len; i-- > 0;)
        if (!differs(c, g_ptr_array_index(list, i)))
            g_ptr_array_remove_index(list, i);
    g_ptr_array_sort(list, compare_kept);
    mtf_markup(
        c->page,
        "</section>\n<section id=\"tensors\"><h2>What is laid out differently</h2>\n<p>%u of "
        "%u tensors, layers taken together, those that take most first.</p>",
        list->len, all);
    if (list->len == 0)
        return;
    guint shown = MIN(list->len, SHOWN_AT_ONCE);
    g_string_append(c->page,
                    "<p><input type=\"search\" data-table=\"tensors\" placeholder=\"filter: "
                    "a name, an axis\" aria-label=\"filter tensors\" hidden=\"hidden\"/>"
                    "</p><div class=\"tensors\">");
    add_tensor_table(c, list, 0, shown);
    g_string_append(c->page, "</div>");
    if (shown < list->len) {
        mtf_markup(c->page, "<details class=\"tensors\"><summary>the other %u</summary>",
                   list->len - shown);
        add_tensor_table(c, list, shown, list->len);
        g_string_append(c->page, "</details>");
    }
}

char *mtf_page_compare(const MtfComparedPlan *plans, int n) {
    g_autofree char *title = g_strdup_printf("%s: %d plans", plans[0].facts->plan->graph->name, n);
    GString *page = mtf_page_begin(title);
    const Comparison comparison = { page, plans, n };
    mtf_markup(
        page,
        "<section id=\"answer\"><h1>%d plan%s side by side</h1>\n<nav aria-label=\"sections\">"
        "<a href=\"#time\">time</a><a href=\"#memory\">memory</a><a href=\"#tensors\">tensors"
        "</a></nav>\n",
        n, n == 1 ? "" : "s");
    add_answers(&comparison);
    add_times(&comparison);
    add_memory(&comparison);
    add_tensors(&comparison);
    g_string_append(page,
                    "</section>\n<p class=\"soft\">Made by meshtf-report " MTF_VERSION ".</p>\n");
    return mtf_page_end(page);
}
