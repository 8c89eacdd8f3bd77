// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/dot_graph.h"

#include "layouts/command_line.h"
#include "layouts/error.h"
#include "reports/markup.h"
#include "reports/palette.h"

#include <cgraph.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* libcgraph takes strings as `char *` and does not change them. */
static void set(void *object, const char *key, const char *value) {
    agsafeset(object, (char *)key, (char *)value, "");
}

/* Sets a text that may hold anything: Graphviz would read "&lt;" as one character and "\\N" as the
 * node's name. */
static void set_text(void *object, const char *key, const char *text) {
    g_autoptr(GString) escaped = g_string_new(NULL);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '&')
            g_string_append(escaped, "&amp;");
        else if (*c == '\\')
            g_string_append(escaped, "\\\\");
        else
            g_string_append_c(escaped, *c);
    }
    set(object, key, escaped->str);
}

static void set_html(Agraph_t *graph, void *object, const char *key, const char *html) {
    char *text = agstrdup_html(graph, (char *)html);
    agsafeset(object, (char *)key, text, "");
    agstrfree(graph, text);
}

static void set_defaults(Agraph_t *graph) {
    static const struct {
        int kind;
        const char *key, *value;
    } defaults[] = {
        { AGRAPH, "rankdir", "TB" },
        { AGRAPH, "fontname", "Helvetica,Arial,sans-serif" },
        { AGRAPH, "fontsize", "14" },
        { AGRAPH, "nodesep", "0.25" },
        { AGRAPH, "ranksep", "0.35" },
        { AGRAPH, "labelloc", "t" },
        { AGRAPH, "bgcolor", "white" },
        { AGRAPH, "style", "" },
        { AGRAPH, "color", "#b8c0c8" },
        { AGRAPH, "label", "" },
        { AGRAPH, "tooltip", " " },
        { AGNODE, "shape", "plain" },
        { AGNODE, "fontname", "Helvetica,Arial,sans-serif" },
        { AGNODE, "fontsize", "11" },
        { AGNODE, "label", "" },
        { AGNODE, "tooltip", " " },
        { AGEDGE, "color", MTF_COLOR_LINE },
        { AGEDGE, "arrowsize", "0.6" },
        { AGEDGE, "fontsize", "10" },
        { AGEDGE, "fontname", "Helvetica,Arial,sans-serif" },
        { AGEDGE, "style", "" },
        { AGEDGE, "penwidth", "1" },
        { AGEDGE, "xlabel", "" },
        { AGEDGE, "fontcolor", MTF_COLOR_TRAFFIC },
        { AGEDGE, "edgetooltip", " " },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(defaults); i++)
        agattr(graph, defaults[i].kind, (char *)defaults[i].key, (char *)defaults[i].value);
}

/* ---- Labels -------------------------------------------------------------------------------- */

/* Graphviz reads "\\N" as the node's name in HTML-like labels, too. */
static void append_text(GString *html, const char *text) {
    g_auto(GStrv) parts = g_strsplit(text, "\\", -1);
    g_autofree char *doubled = g_strjoinv("\\\\", parts);
    mtf_markup_text(html, doubled);
}

/* The tint of a cell: that of its axis; of two axes, from the one's to the other's. */
static char *cell_color(const MtfViewCell *cell) {
    if (cell->axes == 0)
        return g_strdup(MTF_COLOR_PLAIN);
    int first = g_bit_nth_lsf(cell->axes, -1);
    int second = g_bit_nth_lsf(cell->axes, first);
    return second < 0 ? g_strdup(mtf_palette_axis(first))
                      : g_strconcat(mtf_palette_axis(first), ":", mtf_palette_axis(second), NULL);
}

static void append_cell(GString *html, const MtfViewCell *cell) {
    g_autofree char *color = cell_color(cell);
    g_string_append_printf(html, "<TD BGCOLOR=\"%s\"%s>", color,
                           cell->partial ? " STYLE=\"dashed\"" : "");
    append_text(html, cell->text);
    g_string_append(html, "</TD>");
}

static const char *box_color(MtfBoxKind kind) {
    switch (kind) {
    case MTF_BOX_OPERATION:
        return MTF_COLOR_OPERATION;
    case MTF_BOX_UPDATE:
        return MTF_COLOR_UPDATE;
    case MTF_BOX_VARIABLE:
    case MTF_BOX_INPUT:
        break;
    }
    return MTF_COLOR_VARIABLE;
}

static char *box_label(const MtfViewBox *box) {
    GString *html = g_string_new(NULL);
    guint columns = MAX(box->cells->len, 1);
    g_string_append_printf(
        html,
        "<TABLE BORDER=\"0\" CELLBORDER=\"1\" CELLSPACING=\"0\" CELLPADDING=\"4\" "
        "COLOR=\"%s\"><TR><TD COLSPAN=\"%u\" BGCOLOR=\"%s\"><B>",
        MTF_COLOR_LINE, columns, box_color(box->kind));
    append_text(html, box->title);
    g_string_append(html, "</B>  <FONT POINT-SIZE=\"10\">");
    append_text(html, box->detail);
    g_string_append(html, "</FONT></TD></TR>");
    if (box->cells->len > 0) {
        g_string_append(html, "<TR>");
        for (guint i = 0; i < box->cells->len; i++)
            append_cell(html, &g_array_index(box->cells, MtfViewCell, i));
        g_string_append(html, "</TR>");
    }
    for (guint i = 0; i < box->notes->len; i++) {
        g_string_append_printf(html, "<TR><TD COLSPAN=\"%u\"><FONT COLOR=\"%s\" POINT-SIZE=\"10\">",
                               columns, MTF_COLOR_TRAFFIC);
        append_text(html, g_ptr_array_index(box->notes, i));
        g_string_append(html, "</FONT></TD></TR>");
    }
    g_string_append(html, "</TABLE>");
    return g_string_free(html, FALSE);
}

static void append_legend_entry(GString *html, const char *color, const char *text) {
    g_string_append_printf(html, "<TD BGCOLOR=\"%s\">", color);
    append_text(html, text);
    g_string_append(html, "</TD>");
}

/* Title, mesh and legend stand above the drawing. */
static char *graph_label(const MtfPlan *plan) {
    const MtfMesh *mesh = &plan->layout->mesh;
    g_autofree char *mesh_text = mtf_mesh_format(mesh);
    g_autofree char *subtitle =
        g_strdup_printf("mesh %s, %d processors",
                        *mesh_text != '\0' ? mesh_text : "of one processor", mtf_mesh_size(mesh));
    GString *html = g_string_new("<TABLE BORDER=\"0\" CELLSPACING=\"4\"><TR><TD><B>");
    append_text(html, plan->graph->name);
    g_string_append(html, "</B></TD></TR><TR><TD>");
    append_text(html, subtitle);
    if (plan->layout->rules != NULL && *plan->layout->rules != '\0') {
        g_string_append(html, "</TD></TR><TR><TD>layout ");
        append_text(html, plan->layout->rules);
    }
    g_string_append(html, "</TD></TR><TR><TD><TABLE BORDER=\"0\" CELLBORDER=\"1\" "
                          "CELLSPACING=\"3\" CELLPADDING=\"4\"><TR>");
    for (int a = 0; a < mesh->n_axes; a++) {
        g_autofree char *text =
            g_strdup_printf("split over %s (%d)", mesh->axes[a].name, mesh->axes[a].size);
        append_legend_entry(html, mtf_palette_axis(a), text);
    }
    append_legend_entry(html, MTF_COLOR_PLAIN, "whole on every processor");
    append_legend_entry(html, MTF_COLOR_VARIABLE, "variable or input");
    g_string_append_printf(html,
                           "<TD><FONT COLOR=\"%s\">collective, bytes per processor; ∇ of the "
                           "gradient</FONT></TD>",
                           MTF_COLOR_TRAFFIC);
    g_string_append(html, "</TR></TABLE></TD></TR></TABLE>");
    return g_string_free(html, FALSE);
}

static char *box_tooltip(const MtfViewBox *box) {
    GString *text = g_string_new(box->name);
    g_string_append_printf(text, " (%s)", box->detail);
    for (guint i = 0; i < box->cells->len; i++)
        g_string_append_printf(text, "\n%s", g_array_index(box->cells, MtfViewCell, i).tooltip);
    for (guint i = 0; i < box->notes->len; i++)
        g_string_append_printf(text, "\n%s", (char *)g_ptr_array_index(box->notes, i));
    return g_string_free(text, FALSE);
}

/* ---- Graph --------------------------------------------------------------------------------- */

static Agraph_t *draw_group(Agraph_t *graph, int index, const MtfViewGroup *group) {
    g_autofree char *name = g_strdup_printf("cluster_%d", index);
    Agraph_t *cluster = agsubg(graph, name, 1);
    set_text(cluster, "label", group->title);
    set(cluster, "style", "rounded");
    return cluster;
}

static Agnode_t *draw_box(Agraph_t *graph, Agraph_t *cluster, int index, const MtfViewBox *box) {
    g_autofree char *name = g_strdup_printf("n%d", index);
    Agnode_t *node = agnode(graph, name, 1);
    g_autofree char *label = box_label(box);
    g_autofree char *tooltip = box_tooltip(box);
    set_html(graph, node, "label", label);
    set_text(node, "tooltip", tooltip);
    set(node, "id", name);
    if (cluster != NULL)
        agsubnode(cluster, node, 1);
    return node;
}

static void draw_arrow(Agraph_t *graph, Agnode_t **nodes, const MtfViewArrow *arrow) {
    Agedge_t *edge = agedge(graph, nodes[arrow->from], nodes[arrow->to], NULL, 1);
    if (arrow->next_layer) {
        set(edge, "style", "dashed");
        set(edge, "edgetooltip", "to the next layer");
    }
    if (arrow->reshard == NULL)
        return;
    char width[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(width, sizeof width, "%.2f", 1 + MIN(5, log10(1 + arrow->bytes) / 2));
    set(edge, "color", MTF_COLOR_TRAFFIC);
    set(edge, "penwidth", width);
    set_text(edge, "xlabel", arrow->reshard);
    set_text(edge, "edgetooltip", arrow->reshard);
}

static void draw(Agraph_t *graph, const MtfPlan *plan, const MtfPartitionView *view) {
    set_defaults(graph);
    g_autofree char *label = graph_label(plan);
    set_html(graph, graph, "label", label);
    g_autofree Agraph_t **clusters = g_new0(Agraph_t *, view->groups->len + 1);
    g_autofree Agnode_t **nodes = g_new0(Agnode_t *, view->boxes->len + 1);
    for (guint i = 0; i < view->groups->len; i++)
        clusters[i] = draw_group(graph, (int)i, &g_array_index(view->groups, MtfViewGroup, i));
    for (guint i = 0; i < view->boxes->len; i++) {
        const MtfViewBox *box = &g_array_index(view->boxes, MtfViewBox, i);
        nodes[i] = draw_box(graph, box->group >= 0 ? clusters[box->group] : NULL, (int)i, box);
    }
    for (guint i = 0; i < view->arrows->len; i++)
        draw_arrow(graph, nodes, &g_array_index(view->arrows, MtfViewArrow, i));
}

static char *write_graph(Agraph_t *graph) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL)
        return NULL;
    bool written = agwrite(graph, stream) == 0;
    bool closed = fclose(stream) == 0;
    char *copy = written && closed ? g_strndup(text, length) : NULL;
    free(text);
    return copy;
}

char *mtf_dot_graph(const MtfPlan *plan, const MtfPartitionView *view, GError **error) {
    Agraph_t *graph = agopen("partition", Agdirected, NULL);
    if (graph == NULL) {
        mtf_failure(error, "libcgraph cannot make a graph");
        return NULL;
    }
    draw(graph, plan, view);
    char *text = write_graph(graph);
    agclose(graph);
    if (text == NULL)
        mtf_failure(error, "libcgraph cannot write the graph");
    return text;
}
