// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/page/page_sections.h"

#include "layouts/base/command_line.h"
#include "reports/markup/markup.h"
#include "reports/markup/palette.h"
#include "reports/markup/svg_inline.h"

#include <inttypes.h>

#define BAR 130.0 /* pixels of the longest */

/* ---- Legend -------------------------------------------------------------------------------- */

static void add_legend(GString *page, const MtfMesh *mesh) {
    g_string_append(page, "<ul class=\"legend\">");
    for (int a = 0; a < mesh->n_axes; a++)
        mtf_markup(page,
                   "<li><span class=\"swatch\" style=\"background:%s\"></span>split over %s "
                   "(%d)</li>",
                   mtf_palette_axis(a), mesh->axes[a].name, mesh->axes[a].size);
    g_string_append(page,
                    "<li><b>Σ axis</b> terms of a sum along it</li><li><b>≡ axis</b> the same on "
                    "all along it</li><li class=\"traffic\">collective axes · bytes a "
                    "processor</li></ul>");
}

/* ---- The parts and their phases ------------------------------------------------------------ */

static int64_t costliest_section(const MtfStepParts *parts) {
    int64_t costliest = 1;
    for (int p = 0; p < (int)parts->parts->len; p++)
        for (int f = 0; f < MTF_PART_PHASES; f++)
            costliest = MAX(costliest, mtf_step_part(parts, p)->figures[f].nanoseconds);
    return costliest;
}

/* As long as the part's time is a share of the costliest's; the network's share stands last. */
static void draw_time(GString *page, const MtfPartFigures *figures, int64_t costliest) {
    g_autofree char *time = mtf_seconds_format((double)figures->nanoseconds / 1e9);
    double local = BAR * (double)(figures->nanoseconds - figures->network) / (double)costliest;
    double network = BAR * (double)figures->network / (double)costliest;
    mtf_markup(page,
               "<td><b>%s</b><svg class=\"bar2\" width=\"%.0f\" height=\"8\" role=\"img\" "
               "aria-label=\"%.0f %% network\"><rect class=\"compute\" width=\"%.1f\" "
               "height=\"8\"/><rect class=\"network\" x=\"%.1f\" width=\"%.1f\" "
               "height=\"8\"/></svg>",
               time, BAR, 100 * (double)figures->network / (double)MAX(figures->nanoseconds, 1),
               local, local, network);
}

/* Time as a bar, what the network takes of it apart; the words say the same. */
static void add_figures(GString *page, const MtfPartFigures *figures, int64_t costliest) {
    g_autofree char *payload = mtf_bytes_format((double)figures->payload);
    if (figures->operations == 0) {
        g_string_append(page, "<td class=\"soft\">–</td>");
        return;
    }
    draw_time(page, figures, costliest);
    if (figures->collectives > 0)
        mtf_markup(page, "<span class=\"soft\">%" PRId64 " collective%s · %s</span>",
                   figures->collectives, figures->collectives == 1 ? "" : "s", payload);
    g_string_append(page, "</td>");
}

/* How many phases a step has: a graph that only runs has the first. */
static int phases_of(const MtfStepParts *parts) {
    int phases = 1;
    for (int p = 0; p < (int)parts->parts->len; p++)
        for (int f = 0; f < MTF_PART_PHASES; f++)
            if (mtf_step_part(parts, p)->figures[f].operations > 0)
                phases = MAX(phases, f + 1);
    return phases;
}

static void add_overview(GString *page, const MtfStepParts *parts) {
    static const char *const names[MTF_PART_PHASES] = { "forward ↓", "backward ↑", "update" };
    int64_t costliest = costliest_section(parts);
    int phases = phases_of(parts);
    g_string_append(page, "<div class=\"wide\"><table class=\"step\"><thead><tr><th>part of the "
                          "step</th>");
    for (int f = 0; f < phases; f++)
        mtf_markup(page, "<th>%s</th>", names[f]);
    g_string_append(page, "</tr></thead><tbody>\n");
    for (int p = 0; p < (int)parts->parts->len; p++) {
        const MtfStepPart *part = mtf_step_part(parts, p);
        mtf_markup(page, "<tr><td><a href=\"#part-%d\">%s</a>", part->alike, part->title);
        if (part->layers > 1)
            mtf_markup(page, " <span class=\"times\">× %d</span>", part->layers);
        if (part->alike != p)
            mtf_markup(page, "<br/><span class=\"soft\">like %s</span>",
                       mtf_step_part(parts, part->alike)->title);
        g_string_append(page, "</td>");
        for (int f = 0; f < phases; f++)
            add_figures(page, &part->figures[f], costliest);
        g_string_append(page, "</tr>\n");
    }
    g_string_append(page, "</tbody></table></div><ul class=\"legend\"><li><span class=\"swatch "
                          "compute\"></span>computing</li><li><span class=\"swatch network\">"
                          "</span>network, while nothing computes</li></ul>");
}

/* ---- Pictures ------------------------------------------------------------------------------ */

static void add_picture(GString *page, const MtfStepParts *parts, int part, int phase,
                        const char *svg) {
    g_autofree char *prefix = g_strdup_printf("p%d%c", part, "fbu"[phase]);
    g_autofree char *label =
        g_strconcat(mtf_step_part(parts, part)->title, ", ", mtf_part_phase_name(phase), NULL);
    g_string_append(page, "<div class=\"drawing\">");
    if (!mtf_svg_inline(page, svg, prefix, label))
        g_string_append(page, "<p>There is no drawing: it is not well formed.</p>");
    g_string_append(page, "</div>");
}

/* The forward pass is shown at once; its gradients and the update open under it. */
static void add_phases(GString *page, const MtfStepParts *parts, const MtfDrawings *drawings,
                       int part) {
    for (int f = 0; f < MTF_PART_PHASES; f++) {
        const char *svg = mtf_drawings_find(drawings, part, f);
        if (svg == NULL)
            continue;
        if (f > 0)
            mtf_markup(page, "<details class=\"phase\"><summary>%s, %s</summary>",
                       mtf_step_part(parts, part)->title, mtf_part_phase_name(f));
        add_picture(page, parts, part, f, svg);
        if (f > 0)
            g_string_append(page, "</details>");
    }
}

static int64_t time_of_kind(const MtfStepParts *parts, int kind, int *layers) {
    int64_t nanoseconds = 0;
    *layers = 0;
    for (int p = 0; p < (int)parts->parts->len; p++) {
        const MtfStepPart *part = mtf_step_part(parts, p);
        if (part->alike != kind)
            continue;
        *layers += part->layers;
        for (int f = 0; f < MTF_PART_PHASES; f++)
            nanoseconds += part->figures[f].nanoseconds;
    }
    return nanoseconds;
}

static int costliest_kind(const MtfStepParts *parts) {
    int best = 0, layers;
    for (int p = 1; p < (int)parts->parts->len; p++)
        if (time_of_kind(parts, p, &layers) > time_of_kind(parts, best, &layers))
            best = p;
    return best;
}

static void add_summary(GString *page, const MtfStepParts *parts, int kind) {
    int layers;
    int64_t nanoseconds = time_of_kind(parts, kind, &layers);
    g_autofree char *time = mtf_seconds_format((double)nanoseconds / 1e9);
    mtf_markup(page, "<summary><b>%s</b>", mtf_step_part(parts, kind)->title);
    if (layers > 1)
        mtf_markup(page, " <span class=\"times\">× %d</span>", layers);
    mtf_markup(page, " <span class=\"soft\">%s, %.1f %% of the step</span></summary>", time,
               100 * (double)nanoseconds / (double)MAX(parts->facts->schedule->nanoseconds, 1));
}

static void add_kind(GString *page, const MtfStepParts *parts, const MtfDrawings *drawings,
                     int kind) {
    mtf_markup(page, "<details class=\"part\" id=\"part-%d\"", kind);
    g_string_append(page, kind == costliest_kind(parts) ? " open=\"\">" : ">");
    add_summary(page, parts, kind);
    if (mtf_drawings_find(drawings, kind, 0) == NULL)
        g_string_append(page, "<p>There is no drawing: Graphviz' dot did not make one, or too "
                              "many layers differ.</p>");
    add_phases(page, parts, drawings, kind);
    g_string_append(page, "</details>\n");
}

static const char *level_words(const MtfDrawings *drawings) {
    static const char *const words[] = { "the whole step", "the forward pass of the whole step",
                                         "the parts of the step" };
    return words[MIN((int)drawings->level, (int)G_N_ELEMENTS(words) - 1)];
}

static void add_links(GString *page, const MtfDrawings *drawings) {
    if (drawings == NULL || drawings->level == MTF_VIEW_LEVELS)
        g_string_append(page, "<p class=\"soft\">As a graph: <a href=\"graph.dot\">graph.dot</a>."
                              "</p>");
    else
        mtf_markup(page,
                   "<p class=\"soft\">In one drawing, %s: <a href=\"graph.svg\">graph.svg</a>, "
                   "<a href=\"graph.dot\">graph.dot</a>.</p>",
                   level_words(drawings));
}

void mtf_page_partition(GString *page, const MtfStepParts *parts, const MtfDrawings *drawings) {
    g_string_append(page, "<p>Layers that are laid out alike are one part and are drawn once. In "
                          "the pictures a box is an operation with the tensor it makes; below that "
                          "are the variables it takes. A frame on an arrow is a tensor that is "
                          "laid out otherwise on its way; × 3 behind a name are three boxes that "
                          "are laid out alike, of which the first is drawn.</p>");
    add_overview(page, parts);
    add_legend(page, &parts->facts->plan->layout->mesh);
    for (int p = 0; p < (int)parts->parts->len; p++)
        if (mtf_step_part(parts, p)->alike == p)
            add_kind(page, parts, drawings, p);
    add_links(page, drawings);
}
