// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/drawings.h"

#include "layouts/base/json_writer.h"
#include "reports/drawing/dot_child.h"
#include "reports/drawing/dot_graph.h"
#include "reports/facts/tensor_rows.h"

#include <stdio.h>
#include <string.h>

#define DOT_SECONDS 4
#define ALONE_SECONDS 2 /* of one section of many */
#define WIDEST 20000    /* points of a drawing that is still looked at; PDF ends at 14400 */
#define PARTS_DRAWN 16  /* that are laid out differently */

static void free_picture(gpointer data) {
    MtfSectionPicture *picture = data;
    g_free(picture->svg);
    g_free(picture);
}

static bool write_text(const char *path, const char *text, GError **error) {
    return mtf_file_write(path, text, strlen(text), error);
}

/* ---- The whole step ------------------------------------------------------------------------ */

typedef struct {
    const MtfStepParts *parts;
    const int *anchors;
    char *dot_path, *svg_path;
} Whole;

/* Nobody finds a box in a drawing of thirty metres. */
static bool is_too_wide(const char *svg) {
    const char *width = strstr(svg, "<svg width=\"");
    return width != NULL && g_ascii_strtod(width + strlen("<svg width=\""), NULL) > WIDEST;
}

/* Writes graph.dot at a level; `*svg` is its drawing, NULL where dot fails or it is too wide, which `cause` says. */
static bool draw_level(const Whole *whole, MtfViewLevel level, char **svg, GError **cause,
                       GError **error) {
    g_autoptr(MtfPartitionView) view = mtf_partition_view_new(whole->parts, level);
    const MtfDotStyle style = { "partition", whole->anchors, "index.html", true };
    g_autofree char *dot = mtf_dot_graph(view, &style, error);
    if (dot == NULL || !write_text(whole->dot_path, dot, error))
        return false;
    *svg = mtf_dot_layout(whole->dot_path, whole->svg_path, DOT_SECONDS, cause);
    if (*svg != NULL && level + 1 < MTF_VIEW_LEVELS && is_too_wide(*svg))
        g_clear_pointer(svg, g_free);
    return true;
}

static bool draw_whole(const Whole *whole, MtfViewLevel *level, GError **error) {
    g_autofree char *svg = NULL;
    g_autoptr(GError) cause = NULL;
    for (*level = MTF_VIEW_STEP; svg == NULL && *level < MTF_VIEW_LEVELS; ++*level) {
        g_clear_error(&cause);
        if (!draw_level(whole, *level, &svg, &cause, error))
            return false;
    }
    if (svg != NULL) {
        --*level;
        return write_text(whole->svg_path, svg, error);
    }
    fprintf(stderr, "%s: %s\n", g_get_prgname(), cause->message);
    remove(whole->svg_path);
    return true;
}

/* ---- The sections -------------------------------------------------------------------------- */

/* Adds a picture for each section that is to be drawn, without its SVG yet. */
static void choose_sections(const MtfStepParts *parts, GPtrArray *pictures) {
    int drawn = 0;
    for (int p = 0; p < (int)parts->parts->len && drawn < PARTS_DRAWN; p++) {
        if (mtf_step_part(parts, p)->alike != p)
            continue;
        drawn++;
        for (int f = 0; f < MTF_PART_PHASES; f++) {
            if (mtf_step_part(parts, p)->figures[f].operations == 0)
                continue;
            MtfSectionPicture *picture = g_new0(MtfSectionPicture, 1);
            picture->part = p;
            picture->phase = f;
            g_ptr_array_add(pictures, picture);
        }
    }
}

static char *write_section(const MtfStepParts *parts, const int *anchors,
                           const MtfSectionPicture *picture, GError **error) {
    g_autoptr(MtfPartitionView) view =
        mtf_partition_view_section(parts, picture->part, picture->phase);
    g_autofree char *name =
        g_strdup_printf("part_%d_%s", picture->part, mtf_part_phase_name(picture->phase));
    const MtfDotStyle style = { name, anchors, "", false };
    return mtf_dot_graph(view, &style, error);
}

static char *write_sections(const MtfStepParts *parts, const int *anchors,
                            const GPtrArray *pictures, GError **error) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < pictures->len; i++) {
        g_autofree char *dot = write_section(parts, anchors, g_ptr_array_index(pictures, i), error);
        if (dot == NULL) {
            g_string_free(text, TRUE);
            return NULL;
        }
        g_string_append(text, dot);
    }
    return g_string_free(text, FALSE);
}

/* The documents stand one after another, in the order of the graphs. */
static void take_documents(GPtrArray *pictures, const char *documents) {
    static const char end_tag[] = "</svg>";
    for (guint i = 0; i < pictures->len; i++) {
        const char *end = strstr(documents, end_tag);
        if (end == NULL)
            return;
        end += strlen(end_tag);
        ((MtfSectionPicture *)g_ptr_array_index(pictures, i))->svg =
            g_strndup(documents, (gsize)(end - documents));
        documents = end;
    }
}

/* Draws each section by itself, where one of them takes too long for all. */
static bool draw_apart(const MtfStepParts *parts, const int *anchors, const char *folder,
                       const GPtrArray *pictures, GError **error) {
    g_autofree char *path = g_build_filename(folder, "section.dot", NULL);
    for (guint i = 0; i < pictures->len; i++) {
        MtfSectionPicture *picture = g_ptr_array_index(pictures, i);
        g_autofree char *dot = write_section(parts, anchors, picture, error);
        if (dot == NULL || !write_text(path, dot, error))
            return false;
        picture->svg = mtf_dot_layout(path, "index.html", ALONE_SECONDS, NULL);
    }
    remove(path);
    return true;
}

static bool draw_sections(const MtfStepParts *parts, const int *anchors, const char *folder,
                          GPtrArray *pictures, GError **error) {
    g_autofree char *path = g_build_filename(folder, "parts.dot", NULL);
    choose_sections(parts, pictures);
    g_autofree char *text = write_sections(parts, anchors, pictures, error);
    if (text == NULL || !write_text(path, text, error))
        return false;
    g_autofree char *documents = mtf_dot_layout(path, "index.html", DOT_SECONDS, NULL);
    if (documents == NULL && pictures->len > 1)
        return draw_apart(parts, anchors, folder, pictures, error);
    if (documents != NULL)
        take_documents(pictures, documents);
    return true;
}

/* ---- Entry --------------------------------------------------------------------------------- */

MtfDrawings *mtf_drawings_write(const char *folder, const MtfStepParts *parts, GError **error) {
    const MtfPlan *plan = parts->facts->plan;
    g_autoptr(MtfDrawings) drawings = g_new0(MtfDrawings, 1);
    g_autofree int *anchors = mtf_tensor_anchors(plan->graph, plan->layout);
    g_autofree char *dot_path = g_build_filename(folder, "graph.dot", NULL);
    g_autofree char *svg_path = g_build_filename(folder, "graph.svg", NULL);
    drawings->pictures = g_ptr_array_new_with_free_func(free_picture);
    const Whole whole = { parts, anchors, dot_path, svg_path };
    if (!draw_whole(&whole, &drawings->level, error) ||
        !draw_sections(parts, anchors, folder, drawings->pictures, error))
        return NULL;
    return g_steal_pointer(&drawings);
}

bool mtf_drawings_write_cut(const char *folder, const MtfPartitionView *view, char **svg,
                            GError **error) {
    const MtfDotStyle style = { "cut", NULL, "", true };
    g_autofree char *dot_path = g_build_filename(folder, "graph.dot", NULL);
    g_autofree char *svg_path = g_build_filename(folder, "graph.svg", NULL);
    g_autofree char *dot = mtf_dot_graph(view, &style, error);
    g_autoptr(GError) cause = NULL;
    if (dot == NULL || !write_text(dot_path, dot, error))
        return false;
    *svg = mtf_dot_layout(dot_path, svg_path, DOT_SECONDS, &cause);
    if (*svg != NULL)
        return write_text(svg_path, *svg, error);
    fprintf(stderr, "%s: %s\n", g_get_prgname(), cause->message);
    remove(svg_path);
    return true;
}

void mtf_drawings_free(MtfDrawings *drawings) {
    if (drawings == NULL)
        return;
    g_ptr_array_unref(drawings->pictures);
    g_free(drawings);
}

const char *mtf_drawings_find(const MtfDrawings *drawings, int part, int phase) {
    for (guint i = 0; drawings != NULL && i < drawings->pictures->len; i++) {
        const MtfSectionPicture *picture = g_ptr_array_index(drawings->pictures, i);
        if (picture->part == part && picture->phase == phase)
            return picture->svg;
    }
    return NULL;
}
