// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "reports/drawing/machine_picture.h"
#include "reports/drawing/slice_picture.h"
#include "reports/facts/tensor_rows.h"
#include "reports/markup/markup.h"

#define SHOWN_AT_ONCE 30

/* A pattern, with the largest tensor that has it. */
typedef struct {
    MtfSlicePattern pattern;
    const MtfTensorRow *example;
    int tensors;
} Pattern;

static MtfSlicePattern pattern_of(const MtfStepFacts *facts, const MtfTensorRow *row) {
    const MtfLayout *layout = facts->plan->layout;
    return mtf_slice_pattern(&layout->mesh, &layout->tensors[row->tensor]);
}

/* In the order in which they turn up among the rows, the largest tensors first. */
static GArray *find_patterns(const MtfStepFacts *facts, const GPtrArray *rows) {
    GArray *patterns = g_array_new(FALSE, TRUE, sizeof(Pattern));
    for (guint i = 0; i < rows->len; i++) {
        const MtfTensorRow *row = g_ptr_array_index(rows, i);
        MtfSlicePattern wanted = pattern_of(facts, row);
        guint p = 0;
        for (; p < patterns->len; p++) {
            const Pattern *known = &g_array_index(patterns, Pattern, p);
            if (known->pattern.split == wanted.split && known->pattern.partial == wanted.partial)
                break;
        }
        if (p == patterns->len)
            g_array_append_val(patterns, ((Pattern){ wanted, row, 0 }));
        g_array_index(patterns, Pattern, p).tensors += row->count;
    }
    return patterns;
}

/* Begins what holds all tables: each way of lying on the mesh is one image, which rows name. */
static void open_tables(GString *page, const MtfStepFacts *facts, const GArray *patterns) {
    g_string_append(page, "<div style=\"");
    for (guint i = 0; i < patterns->len; i++) {
        const MtfSlicePattern *pattern = &g_array_index(patterns, Pattern, i).pattern;
        g_autofree char *image = mtf_slice_thumbnail(&facts->plan->layout->mesh, pattern);
        g_string_append_printf(page, "--slices-%u-%u:%s;", pattern->split, pattern->partial, image);
    }
    g_string_append(page, "\">");
}

static void add_row(GString *page, const MtfStepFacts *facts, const MtfTensorRow *row) {
    MtfSlicePattern pattern = pattern_of(facts, row);
    g_autofree char *bytes = mtf_bytes_format((double)row->bytes);
    g_autofree char *count = row->count > 1 ? g_strdup_printf(" × %d", row->count) : g_strdup("");
    g_autofree char *words = mtf_slice_pattern_format(&facts->plan->layout->mesh, &pattern);
    mtf_markup(page,
               "<tr id=\"t%d\"><td class=\"mono\">%s%s</td><td class=\"mono\">%s</td>"
               "<td class=\"mono\">%s</td><td class=\"n\">%s</td><td>%s</td>"
               "<td><a class=\"thumb\" href=\"#where-%u-%u\" aria-label=\"%s\" title=\"%s\" "
               "style=\"background-image:var(--slices-%u-%u)\"></a></td></tr>\n",
               row->tensor, row->name, count, row->notation, row->local, bytes,
               mtf_memory_name(mtf_graph_tensor(facts->plan->graph, row->tensor)->memory),
               pattern.split, pattern.partial, words, words, pattern.split, pattern.partial);
}

static void add_table(GString *page, const MtfStepFacts *facts, const GPtrArray *rows, guint first,
                      guint end) {
    g_string_append(page, "<div class=\"wide\"><table><thead><tr><th>tensor</th><th>kept as</th>"
                          "<th>slice</th><th class=\"n\">bytes a device</th><th>kind</th>"
                          "<th>where</th></tr></thead><tbody>\n");
    for (guint i = first; i < end; i++)
        add_row(page, facts, g_ptr_array_index(rows, i));
    g_string_append(page, "</tbody></table></div>");
}

static void add_pictures(GString *page, const MtfStepFacts *facts, const GArray *patterns) {
    const MtfLayout *layout = facts->plan->layout;
    g_string_append(page,
                    "<h3>Which slice sits on which processor</h3><p>One picture for each way "
                    "in which tensors lie on the mesh; equal tints are equal slices (of partial "
                    "sums, terms of equal slices). p3 is processor 3; on more than 16 "
                    "processors the number in a cell is its slice. Processors "
                    "are counted to the right, as the last mesh axis runs, then down.</p>");
    for (guint i = 0; i < patterns->len; i++) {
        const Pattern *p = &g_array_index(patterns, Pattern, i);
        g_autofree char *words = mtf_slice_pattern_format(&layout->mesh, &p->pattern);
        mtf_markup(page,
                   "<div id=\"where-%u-%u\"><p><b>%s</b>: %d tensor%s, the largest <code>%s</code> "
                   "<code>%s</code></p>",
                   p->pattern.split, p->pattern.partial, words, p->tensors,
                   p->tensors == 1 ? "" : "s", p->example->name, p->example->notation);
        mtf_slice_picture(page, facts->plan->graph, layout, p->example->tensor);
        g_string_append(page, "<p class=\"soft\">on the machine</p>");
        mtf_machine_slices(page, facts, &p->pattern);
        g_string_append(page, "</div>");
    }
}

void mtf_page_tensors(GString *page, const MtfStepFacts *facts) {
    g_autoptr(GPtrArray) rows = mtf_tensor_rows_new(facts->plan->graph, facts->plan->layout);
    g_autoptr(GArray) patterns = find_patterns(facts, rows);
    guint shown = MIN(rows->len, SHOWN_AT_ONCE);
    g_string_append(page, "<p>The tensors that take most come first; a * stands for the number of "
                          "a layer.</p><p><input type=\"search\" data-table=\"tensors\" "
                          "placeholder=\"filter: a name, an axis, a kind\" aria-label=\"filter "
                          "tensors\" hidden=\"hidden\"/></p>");
    open_tables(page, facts, patterns);
    g_string_append(page, "<div class=\"tensors\">");
    add_table(page, facts, rows, 0, shown);
    g_string_append(page, "</div>");
    if (shown < rows->len) {
        mtf_markup(page, "<details class=\"tensors\"><summary>the other %u</summary>",
                   rows->len - shown);
        add_table(page, facts, rows, shown, rows->len);
        g_string_append(page, "</details>");
    }
    g_string_append(page, "</div>");
    add_pictures(page, facts, patterns);
}
