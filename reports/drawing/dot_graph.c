// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/dot_graph.h"

#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "reports/drawing/view_branches.h"
#include "reports/drawing/view_groups.h"
#include "reports/facts/answer.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"

#include <cgraph.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 2     /* of what no arrow joins */
#define BRANCHES 2    /* that go on, beside each other */
#define STRAIGHT "8"  /* how much straighter arrows are to what goes on than to what ends */
#define ROWS_SHOWN 8  /* of a box: the norm of all gradients takes a hundred */
#define NAMES_TOLD 12 /* of boxes that are alike, in a tooltip */

/* ---- Identities ----------------------------------------------------------------------------
 *
 * libcgraph's own identities are addresses of interned names, and it writes subgraphs in their
 * order, so the same graph would not give the same bytes. These count: names are even, in order of
 * their first use, nameless edges odd. */

typedef struct {
    GHashTable *ids;  /* name -> place + 1 */
    GPtrArray *names; /* in order of their places; the graph's, interned, as it expects */
    Agraph_t *graph;
    IDTYPE nameless;
} Identities;

static void *open_identities(Agraph_t *graph, Agdisc_t *discipline) {
    (void)discipline;
    Identities *identities = g_new0(Identities, 1);
    identities->ids = g_hash_table_new(g_str_hash, g_str_equal);
    identities->names = g_ptr_array_new();
    identities->graph = graph;
    identities->nameless = 1;
    return identities;
}

static int add_name(Identities *identities, char *name) {
    int place = (int)identities->names->len;
    char *copy = agstrdup(identities->graph, name);
    g_ptr_array_add(identities->names, copy);
    g_hash_table_insert(identities->ids, copy, GINT_TO_POINTER(place + 1));
    return place;
}

static long map_identity(void *state, int kind, char *name, IDTYPE *id, int create) {
    (void)kind;
    Identities *identities = state;
    if (name == NULL) {
        *id = identities->nameless;
        identities->nameless += 2;
        return TRUE;
    }
    int place = GPOINTER_TO_INT(g_hash_table_lookup(identities->ids, name)) - 1;
    if (place < 0 && !create)
        return FALSE;
    if (place < 0)
        place = add_name(identities, name);
    *id = (IDTYPE)place * 2;
    return TRUE;
}

static long take_identity(void *state, int kind, IDTYPE id) {
    (void)state;
    (void)kind;
    (void)id;
    return FALSE;
}

static void drop_identity(void *state, int kind, IDTYPE id) {
    (void)state;
    (void)kind;
    (void)id;
}

static char *print_identity(void *state, int kind, IDTYPE id) {
    (void)kind;
    const Identities *identities = state;
    return id % 2 == 0 ? g_ptr_array_index(identities->names, id / 2) : NULL;
}

static void close_identities(void *state) {
    Identities *identities = state;
    g_hash_table_unref(identities->ids);
    g_ptr_array_unref(identities->names);
    g_free(identities);
}

static void note_object(void *state, int kind, void *object) {
    (void)state;
    (void)kind;
    (void)object;
}

static Agiddisc_t counted_identities = { open_identities, map_identity,   take_identity,
                                         drop_identity,   print_identity, close_identities,
                                         note_object };

/* ---- Attributes ---------------------------------------------------------------------------- */

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
        { AGRAPH, "rankdir", "TB" },    { AGRAPH, "fontname", MTF_DRAWING_FONT },
        { AGRAPH, "fontsize", "12" },   { AGRAPH, "nodesep", "0.2" },
        { AGRAPH, "ranksep", "0.28" },  { AGRAPH, "nslimit", "2" },
        { AGRAPH, "mclimit", "0.5" },   { AGRAPH, "labelloc", "t" },
        { AGRAPH, "labeljust", "l" },   { AGRAPH, "bgcolor", "white" },
        { AGRAPH, "style", "" },        { AGRAPH, "color", MTF_COLOR_CLUSTER },
        { AGRAPH, "label", "" },        { AGRAPH, "tooltip", " " },
        { AGNODE, "shape", "plain" },   { AGNODE, "fontname", MTF_DRAWING_FONT },
        { AGNODE, "fontsize", "11" },   { AGNODE, "label", "" },
        { AGNODE, "tooltip", " " },     { AGNODE, "URL", "" },
        { AGNODE, "class", "" },        { AGEDGE, "color", MTF_COLOR_LINE },
        { AGEDGE, "arrowsize", "0.6" }, { AGEDGE, "style", "" },
        { AGEDGE, "penwidth", "1" },    { AGEDGE, "edgetooltip", " " },
        { AGEDGE, "class", "" },        { AGEDGE, "weight", "1" },
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

static void append_font(GString *html, const char *color, const char *text) {
    g_string_append_printf(html, "<FONT COLOR=\"%s\" POINT-SIZE=\"9.5\">", color);
    append_text(html, text);
    g_string_append(html, "</FONT>");
}

/* The tint of a cell: that of its axis; of two axes, from the one's to the other's. */
static char *cell_color(unsigned axes) {
    if (axes == 0)
        return g_strdup(MTF_COLOR_PLAIN);
    int first = g_bit_nth_lsf(axes, -1);
    int second = g_bit_nth_lsf(axes, first);
    return second < 0 ? g_strdup(mtf_palette_axis(first))
                      : g_strconcat(mtf_palette_axis(first), ":", mtf_palette_axis(second), NULL);
}

static void append_cell(GString *html, const MtfViewCell *cell) {
    bool copies = cell->kind == MTF_CELL_REPLICATED;
    g_autofree char *color = cell_color(copies ? 0 : cell->axes);
    g_string_append_printf(html, "<TD BORDER=\"%d\" COLOR=\"%s\" BGCOLOR=\"%s\"%s>", copies ? 0 : 1,
                           cell->axes == 0 ? MTF_COLOR_CLUSTER : MTF_COLOR_LINE, color,
                           cell->kind == MTF_CELL_PARTIAL ? " STYLE=\"dashed\"" : "");
    if (copies)
        append_font(html, MTF_COLOR_SOFT, cell->text);
    else
        append_text(html, cell->text);
    g_string_append(html, "</TD>");
}

/* A line of cells, after a name where there is one. */
static void append_cells(GString *html, const char *name, const GArray *cells) {
    g_string_append(html, "<TR><TD ALIGN=\"LEFT\" CELLPADDING=\"1\"><TABLE BORDER=\"0\" "
                          "CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"2\"><TR>");
    if (name != NULL) {
        g_string_append(html, "<TD BGCOLOR=\"" MTF_COLOR_VARIABLE "\">");
        append_text(html, name);
        g_string_append(html, "</TD>");
    }
    for (guint i = 0; i < cells->len; i++)
        append_cell(html, &g_array_index(cells, MtfViewCell, i));
    if (name == NULL && cells->len == 0)
        g_string_append(html, "<TD>a number</TD>");
    g_string_append(html, "</TR></TABLE></TD></TR>");
}

static void append_notes(GString *html, const GPtrArray *notes, const char *prefix) {
    for (guint i = 0; i < notes->len; i++) {
        g_autofree char *text = g_strconcat(prefix, g_ptr_array_index(notes, i), NULL);
        g_string_append(html, "<TR><TD ALIGN=\"LEFT\" CELLPADDING=\"2\">");
        append_font(html, MTF_COLOR_TRAFFIC, text);
        g_string_append(html, "</TD></TR>");
    }
}

/* Kinds of operations and times of kernels stand behind the name. */
static void append_title(GString *html, const MtfViewBox *box, int times) {
    g_autofree char *time = mtf_seconds_format((double)box->nanoseconds / 1e9);
    g_autofree char *detail =
        box->nanoseconds > 0 ? g_strconcat(box->detail, " · ", time, NULL) : g_strdup(box->detail);
    g_string_append_printf(html, "<TR><TD ALIGN=\"LEFT\" BGCOLOR=\"%s\"><B>",
                           box->kind == MTF_BOX_TENSOR ? MTF_COLOR_VARIABLE : MTF_COLOR_OPERATION);
    append_text(html, box->title);
    if (times > 1)
        g_string_append_printf(html, " × %d", times);
    g_string_append(html, "</B>  ");
    append_font(html, MTF_COLOR_SOFT, detail);
    g_string_append(html, "</TD></TR>");
}

static void append_rows(GString *html, const GArray *rows) {
    guint shown = rows->len > ROWS_SHOWN + 1 ? ROWS_SHOWN : rows->len;
    for (guint i = 0; i < shown; i++) {
        const MtfViewRow *row = &g_array_index(rows, MtfViewRow, i);
        append_cells(html, row->name, row->cells);
        append_notes(html, row->notes, "");
    }
    if (shown < rows->len)
        g_string_append_printf(html, "<TR><TD ALIGN=\"LEFT\">and %u more</TD></TR>",
                               rows->len - shown);
}

static char *box_label(const MtfViewBox *box, int times) {
    GString *html = g_string_new("<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"0\" "
                                 "CELLPADDING=\"3\" BGCOLOR=\"white\" COLOR=\"");
    g_string_append_printf(html, "%s\">",
                           box->kind == MTF_BOX_TRANSFER ? MTF_COLOR_TRAFFIC : MTF_COLOR_LINE);
    if (box->kind != MTF_BOX_TRANSFER) {
        append_title(html, box, times);
        if (box->tensor >= 0)
            append_cells(html, NULL, box->cells);
    }
    append_rows(html, box->rows);
    append_notes(html, box->notes,
                 box->kind == MTF_BOX_OPERATION && box->tensor >= 0 ? "then " : "");
    g_string_append(html, "</TABLE>");
    return g_string_free(html, FALSE);
}

/* Title, mesh and legend, a line each, so that the widest name decides the width. */
static char *graph_label(const MtfPlan *plan) {
    const MtfMesh *mesh = &plan->layout->mesh;
    g_autofree char *mesh_text = mtf_answer_mesh(mesh);
    g_autofree char *subtitle = g_strconcat(mesh->n_axes == 0 ? "" : "mesh ", mesh_text, NULL);
    GString *html = g_string_new("<TABLE BORDER=\"0\" CELLSPACING=\"3\" CELLPADDING=\"3\">"
                                 "<TR><TD ALIGN=\"LEFT\"><B>");
    append_text(html, plan->graph->name);
    g_string_append(html, "</B></TD></TR><TR><TD ALIGN=\"LEFT\">");
    append_text(html, subtitle);
    if (plan->layout->rules != NULL && *plan->layout->rules != '\0') {
        g_string_append(html, "</TD></TR><TR><TD ALIGN=\"LEFT\">layout ");
        append_text(html, plan->layout->rules);
    }
    g_string_append(html, "</TD></TR>");
    for (int a = 0; a < mesh->n_axes; a++) {
        g_autofree char *text =
            g_strdup_printf("split over %s (%d)", mesh->axes[a].name, mesh->axes[a].size);
        g_string_append_printf(html, "<TR><TD ALIGN=\"LEFT\" BGCOLOR=\"%s\">", mtf_palette_axis(a));
        append_text(html, text);
        g_string_append(html, "</TD></TR>");
    }
    g_string_append(html, "<TR><TD ALIGN=\"LEFT\" BORDER=\"1\" STYLE=\"dashed\" "
                          "COLOR=\"" MTF_COLOR_LINE "\">Σ axis: terms of a sum along it</TD></TR>"
                          "<TR><TD ALIGN=\"LEFT\">≡ axis: the same along it</TD></TR>"
                          "<TR><TD ALIGN=\"LEFT\">× 3: three that are laid out alike</TD></TR>"
                          "<TR><TD ALIGN=\"LEFT\"><FONT COLOR=\"" MTF_COLOR_TRAFFIC
                          "\">collective axes · bytes a processor</FONT></TD></TR></TABLE>");
    return g_string_free(html, FALSE);
}

/* ---- Graph --------------------------------------------------------------------------------- */

typedef struct {
    Agraph_t *graph;
    const MtfPartitionView *view;
    const MtfDotStyle *style;
    Agraph_t *phases[MTF_PART_PHASES];
    Agraph_t **sections;
    Agnode_t **nodes;
    const MtfViewGroups *groups;
    int *in, *out; /* how many arrows a box has */
    int64_t costliest;
} Drawing;

static const MtfViewGroup *group_at(const Drawing *drawing, int group) {
    return &g_array_index(drawing->groups->groups, MtfViewGroup, group);
}

/* Of what looks alike the first is drawn. */
static bool is_drawn(const Drawing *drawing, int box) {
    int group = drawing->groups->of_box[box];
    return group_at(drawing, group)->alike == group;
}

static Agraph_t *add_cluster(Agraph_t *parent, const char *name, const char *title) {
    Agraph_t *cluster = agsubg(parent, (char *)name, 1);
    set_text(cluster, "label", title);
    set(cluster, "style", "rounded");
    return cluster;
}

/* The cluster of a phase, the graph itself for what has none. */
static Agraph_t *phase_cluster(Drawing *drawing, int phase) {
    if (phase < 0)
        return drawing->graph;
    g_autofree char *name = g_strdup_printf("cluster_phase_%d", phase);
    if (drawing->phases[phase] == NULL)
        drawing->phases[phase] = add_cluster(drawing->graph, name, mtf_part_phase_name(phase));
    return drawing->phases[phase];
}

/* A cluster for each phase, in it one for each part; or for each stage. */
static void draw_sections(Drawing *drawing) {
    for (guint i = 0; drawing->style->titled && i < drawing->view->sections->len; i++) {
        const MtfViewSection *section = &g_array_index(drawing->view->sections, MtfViewSection, i);
        g_autofree char *name = g_strdup_printf("cluster_%u", i);
        Agraph_t *cluster =
            add_cluster(phase_cluster(drawing, section->phase), name, section->title);
        drawing->sections[i] = cluster;
        if (section->fill != NULL) {
            set(cluster, "style", "rounded,filled");
            set(cluster, "fillcolor", section->fill);
        }
        if (section->url != NULL)
            set(cluster, "URL", section->url);
    }
}

/* Boxes that a loop makes stand in a cluster with its name and how often it runs; NULL: no loop. */
static Agraph_t *find_loop_cluster(const Drawing *drawing, const MtfViewBox *box) {
    if (box->kind != MTF_BOX_OPERATION || box->tensor < 0)
        return NULL;
    const MtfGraph *graph = drawing->view->parts->facts->plan->graph;
    int producer = mtf_graph_tensor(graph, box->tensor)->producer;
    int number = producer >= 0 ? mtf_graph_operation(graph, producer)->loop : 0;
    if (number == 0)
        return NULL;
    const MtfLoop *loop = mtf_graph_loop(graph, number);
    g_autofree char *name = g_strdup_printf("cluster_%d_loop_%d", box->section, number);
    g_autofree char *title = g_strdup_printf(
        "%s, %s%" PRId64 " times", loop->name,
        mtf_loop_condition(graph, number) >= 0 ? "at most " : "", mtf_loop_count(graph, number));
    Agraph_t *section = drawing->sections[box->section];
    return add_cluster(section != NULL ? section : drawing->graph, name, title);
}

/* The names of the boxes that one stands for, at the place it has in its group. */
static void append_alike(GString *tooltip, const Drawing *drawing, int index) {
    int group = drawing->groups->of_box[index], told = 0;
    guint place = 0;
    while (g_array_index(group_at(drawing, group)->boxes, int, place) != index)
        place++;
    for (guint g = (guint)group + 1; g < drawing->groups->groups->len; g++) {
        const MtfViewGroup *other = group_at(drawing, (int)g);
        if (other->alike != group || told++ >= NAMES_TOLD)
            continue;
        int box = g_array_index(other->boxes, int, place);
        g_string_append_printf(tooltip, "\nand %s",
                               g_array_index(drawing->view->boxes, MtfViewBox, box).title);
    }
    if (told > NAMES_TOLD)
        g_string_append_printf(tooltip, "\nand %d more", told - NAMES_TOLD);
}

static void name_box(const Drawing *drawing, int index, Agnode_t *node) {
    const MtfViewBox *box = &g_array_index(drawing->view->boxes, MtfViewBox, index);
    g_autofree char *tooltip = mtf_view_box_tooltip(drawing->view, box);
    g_autoptr(GString) text = g_string_new(tooltip);
    append_alike(text, drawing, index);
    set_text(node, "tooltip", text->str);
    if (drawing->style->anchors != NULL && box->tensor >= 0) {
        g_autofree char *url =
            g_strdup_printf("%s#t%d", drawing->style->page, drawing->style->anchors[box->tensor]);
        set(node, "URL", url);
    }
}

static void draw_box(Drawing *drawing, int index) {
    const MtfViewBox *box = &g_array_index(drawing->view->boxes, MtfViewBox, index);
    g_autofree char *name = g_strdup_printf("n%d", index);
    g_autofree char *label =
        box_label(box, group_at(drawing, drawing->groups->of_box[index])->times);
    Agnode_t *node = agnode(drawing->graph, name, 1);
    drawing->nodes[index] = node;
    set_html(drawing->graph, node, "label", label);
    name_box(drawing, index, node);
    set(node, "id", name);
    if (box->kind == MTF_BOX_TRANSFER)
        set(node, "class", "transfer");
    if (box->section >= 0 && drawing->sections[box->section] != NULL)
        agsubnode(drawing->sections[box->section], node, 1);
    Agraph_t *loop = find_loop_cluster(drawing, box);
    if (loop != NULL)
        agsubnode(loop, node, 1);
}

/* A transfer's arrow is as wide as its time is a share of the costliest's. */
static void weigh_arrow(const Drawing *drawing, const MtfViewArrow *arrow, Agedge_t *edge) {
    const MtfViewBox *from = &g_array_index(drawing->view->boxes, MtfViewBox, arrow->from);
    const MtfViewBox *to = &g_array_index(drawing->view->boxes, MtfViewBox, arrow->to);
    char width[G_ASCII_DTOSTR_BUF_SIZE];
    double share = (double)arrow->nanoseconds / (double)MAX(drawing->costliest, 1);
    g_ascii_formatd(width, sizeof width, "%.2f", 1 + 4 * sqrt(MIN(share, 1)));
    set(edge, "color", MTF_COLOR_TRAFFIC);
    set(edge, "penwidth", width);
    const MtfViewBox *pill = from->kind == MTF_BOX_TRANSFER ? from : to;
    if (pill->notes->len > 0)
        set_text(edge, "edgetooltip", g_ptr_array_index(pill->notes, 0));
}

static bool is_of_backward(const Drawing *drawing, int box) {
    int section = g_array_index(drawing->view->boxes, MtfViewBox, box).section;
    return section >= 0 &&
           g_array_index(drawing->view->sections, MtfViewSection, section).phase == 1;
}

/* The classes of an arrow name the boxes at its ends, for highlighting. Of the
 * backward pass those that lead on are straight, and what ends (the gradient of a weight) stands beside, so that a
 * long chain runs down, not across. */
static void draw_arrow(Drawing *drawing, const MtfViewArrow *arrow) {
    Agedge_t *edge =
        agedge(drawing->graph, drawing->nodes[arrow->from], drawing->nodes[arrow->to], NULL, 1);
    g_autofree char *ends = g_strdup_printf("at-n%d at-n%d", arrow->from, arrow->to);
    set(edge, "class", ends);
    if (drawing->out[arrow->to] > 0 && is_of_backward(drawing, arrow->to))
        set(edge, "weight", STRAIGHT);
    if (arrow->nanoseconds > 0)
        weigh_arrow(drawing, arrow, edge);
}

static void count_arrows(Drawing *drawing) {
    for (guint i = 0; i < drawing->view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(drawing->view->arrows, MtfViewArrow, i);
        drawing->out[arrow->from]++;
        drawing->in[arrow->to]++;
    }
}

/* ---- Places -------------------------------------------------------------------------------- */

static void set_below(const Drawing *drawing, int upper, int lower) {
    Agedge_t *edge = agedge(drawing->graph, drawing->nodes[upper], drawing->nodes[lower], NULL, 1);
    set(edge, "style", "invis");
}

/* Boxes where a chain ends that begin at the same box stand below each other. */
static void stack_ends(const Drawing *drawing) {
    g_autofree int *last = g_new(int, drawing->view->boxes->len + 1);
    for (guint b = 0; b < drawing->view->boxes->len; b++)
        last[b] = -1;
    for (guint i = 0; i < drawing->view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(drawing->view->arrows, MtfViewArrow, i);
        if (!is_drawn(drawing, arrow->to) || drawing->in[arrow->to] > 1 ||
            drawing->out[arrow->to] > 0)
            continue;
        if (last[arrow->from] >= 0)
            set_below(drawing, last[arrow->from], arrow->to);
        last[arrow->from] = arrow->to;
    }
}

static void stack_branches(const Drawing *drawing) {
    g_autoptr(GArray) places = mtf_view_branches(drawing->view, BRANCHES);
    for (guint i = 0; i < places->len; i++) {
        const MtfViewPlace *place = &g_array_index(places, MtfViewPlace, i);
        if (is_drawn(drawing, place->upper) && is_drawn(drawing, place->lower))
            set_below(drawing, place->upper, place->lower);
    }
}

/* Lines of text, of boxes below each other. */
static int height_of(const Drawing *drawing, const MtfViewGroup *group) {
    int lines = 0;
    for (guint i = 0; i < group->boxes->len; i++) {
        const MtfViewBox *box =
            &g_array_index(drawing->view->boxes, MtfViewBox, g_array_index(group->boxes, int, i));
        lines += 3 + (int)MIN(box->rows->len, ROWS_SHOWN) + (int)box->notes->len;
    }
    return lines;
}

static void set_group_below(const Drawing *drawing, const MtfViewGroup *upper,
                            const MtfViewGroup *lower) {
    int end = g_array_index(upper->boxes, int, upper->boxes->len - 1);
    for (guint i = 0; i < lower->boxes->len; i++) {
        int box = g_array_index(lower->boxes, int, i);
        if (drawing->in[box] == 0)
            set_below(drawing, end, box);
    }
}

/* What no arrow joins would make one endless line: it is set in columns of each section, each group in the
 * column that is the shortest so far. */
static void set_in_columns(const Drawing *drawing, int section) {
    const MtfViewGroup *last[COLUMNS] = { NULL };
    int heights[COLUMNS] = { 0 };
    for (int g = 0; g < (int)drawing->groups->groups->len; g++) {
        const MtfViewGroup *group = group_at(drawing, g);
        if (group->section != section || group->alike != g)
            continue;
        int column = 0;
        for (int c = 1; c < COLUMNS; c++)
            column = heights[c] < heights[column] ? c : column;
        if (last[column] != NULL)
            set_group_below(drawing, last[column], group);
        last[column] = group;
        heights[column] += height_of(drawing, group);
    }
}

static int64_t costliest_arrow(const MtfPartitionView *view) {
    int64_t costliest = 0;
    for (guint i = 0; i < view->arrows->len; i++)
        costliest = MAX(costliest, g_array_index(view->arrows, MtfViewArrow, i).nanoseconds);
    return costliest;
}

/* Of a step's transfers, so that pictures of its parts compare; else of those that are drawn. */
static int64_t costliest_of(const MtfPartitionView *view) {
    if (view->parts == NULL)
        return costliest_arrow(view);
    const MtfStepFacts *facts = view->parts->facts;
    int64_t costliest = 0;
    for (int i = 0; i < facts->schedule->length; i++)
        if (mtf_step_facts_is_collective(facts, i))
            costliest = MAX(costliest, facts->schedule->ends[i] - facts->schedule->starts[i]);
    return costliest;
}

static void draw(Drawing *drawing) {
    const MtfPartitionView *view = drawing->view;
    set_defaults(drawing->graph);
    if (drawing->style->titled && view->parts != NULL) {
        g_autofree char *label = graph_label(view->parts->facts->plan);
        set_html(drawing->graph, drawing->graph, "label", label);
    }
    draw_sections(drawing);
    count_arrows(drawing);
    for (int i = 0; i < (int)view->boxes->len; i++)
        if (is_drawn(drawing, i))
            draw_box(drawing, i);
    for (guint i = 0; i < view->arrows->len; i++)
        if (is_drawn(drawing, g_array_index(view->arrows, MtfViewArrow, i).from))
            draw_arrow(drawing, &g_array_index(view->arrows, MtfViewArrow, i));
    if (!drawing->style->titled) { /* among clusters it would cost dot seconds */
        stack_ends(drawing);
        stack_branches(drawing);
    }
    for (int i = 0; i < (int)view->sections->len; i++)
        set_in_columns(drawing, i);
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

char *mtf_dot_graph(const MtfPartitionView *view, const MtfDotStyle *style, GError **error) {
    Agdisc_t disciplines = { NULL, &counted_identities, NULL };
    Agraph_t *graph = agopen((char *)style->name, Agdirected, &disciplines);
    if (graph == NULL) {
        mtf_failure(error, "libcgraph cannot make a graph");
        return NULL;
    }
    g_autofree Agraph_t **sections = g_new0(Agraph_t *, view->sections->len + 1);
    g_autofree Agnode_t **nodes = g_new0(Agnode_t *, view->boxes->len + 1);
    g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
    g_autofree int *in = g_new0(int, view->boxes->len + 1);
    g_autofree int *out = g_new0(int, view->boxes->len + 1);
    Drawing drawing = { .graph = graph,
                        .view = view,
                        .style = style,
                        .sections = sections,
                        .nodes = nodes,
                        .groups = groups,
                        .in = in,
                        .out = out,
                        .costliest = costliest_of(view) };
    draw(&drawing);
    char *text = write_graph(graph);
    agclose(graph);
    if (text == NULL)
        mtf_failure(error, "libcgraph cannot write the graph");
    return text;
}
