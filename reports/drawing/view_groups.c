// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/view_groups.h"

#include <string.h>

static const MtfViewBox *box_at(const MtfPartitionView *view, int box) {
    return &g_array_index(view->boxes, MtfViewBox, box);
}

/* ---- What hangs together ------------------------------------------------------------------- */

/* The first box of the tree that a box is in; trees become flat as they are asked. */
static int root_of(int *parents, int box) {
    while (parents[box] != box) {
        parents[box] = parents[parents[box]];
        box = parents[box];
    }
    return box;
}

/* The smaller number stays the root, so that groups come in the order of their first boxes. */
static void join_boxes(const MtfPartitionView *view, int *parents) {
    for (int b = 0; b < (int)view->boxes->len; b++)
        parents[b] = b;
    for (guint i = 0; i < view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(view->arrows, MtfViewArrow, i);
        int from = root_of(parents, arrow->from), to = root_of(parents, arrow->to);
        parents[MAX(from, to)] = MIN(from, to);
    }
}

static void find_groups(MtfViewGroups *groups, const MtfPartitionView *view) {
    g_autofree int *parents = g_new(int, view->boxes->len + 1);
    join_boxes(view, parents);
    for (int b = 0; b < (int)view->boxes->len; b++) {
        int root = root_of(parents, b), number = (int)groups->groups->len;
        if (root == b) {
            MtfViewGroup group = { g_array_new(FALSE, FALSE, sizeof(int)), box_at(view, b)->section,
                                   number, 1 };
            g_array_append_val(groups->groups, group);
        }
        groups->of_box[b] = root == b ? number : groups->of_box[root];
        MtfViewGroup *group = &g_array_index(groups->groups, MtfViewGroup, groups->of_box[b]);
        g_array_append_val(group->boxes, b);
        if (group->section != box_at(view, b)->section)
            group->section = -1;
    }
}

/* ---- What looks alike ---------------------------------------------------------------------- */

static void describe_cells(GString *text, const GArray *cells) {
    for (guint i = 0; i < cells->len; i++) {
        const MtfViewCell *cell = &g_array_index(cells, MtfViewCell, i);
        g_string_append_printf(text, " %d@%u", (int)cell->kind, cell->axes);
    }
}

/* Notes without their bytes: what stands before the first "·". */
static void describe_notes(GString *text, const GPtrArray *notes) {
    for (guint i = 0; i < notes->len; i++) {
        const char *note = g_ptr_array_index(notes, i);
        const char *end = strstr(note, " ·");
        g_string_append_printf(text, " (%.*s)", end != NULL ? (int)(end - note) : -1, note);
    }
}

static void describe_box(GString *text, const MtfViewBox *box) {
    g_string_append_printf(text, "%d %s", (int)box->kind, box->detail);
    describe_cells(text, box->cells);
    describe_notes(text, box->notes);
    for (guint i = 0; i < box->rows->len; i++) {
        const MtfViewRow *row = &g_array_index(box->rows, MtfViewRow, i);
        g_string_append(text, " row");
        describe_cells(text, row->cells);
        describe_notes(text, row->notes);
    }
    g_string_append_c(text, '\n');
}

/* A text for each group that equal looks share. */
static GPtrArray *describe_groups(const MtfViewGroups *groups, const MtfPartitionView *view) {
    GPtrArray *texts = g_ptr_array_new();
    g_autofree int *place = g_new(int, view->boxes->len + 1);
    for (guint g = 0; g < groups->groups->len; g++) {
        const MtfViewGroup *group = &g_array_index(groups->groups, MtfViewGroup, g);
        GString *text = g_string_new(NULL);
        g_string_append_printf(text, "section %d\n", group->section);
        for (guint i = 0; i < group->boxes->len; i++) {
            int box = g_array_index(group->boxes, int, i);
            place[box] = (int)i;
            describe_box(text, box_at(view, box));
        }
        g_ptr_array_add(texts, text);
    }
    for (guint i = 0; i < view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(view->arrows, MtfViewArrow, i);
        g_string_append_printf(g_ptr_array_index(texts, groups->of_box[arrow->from]), "%d>%d\n",
                               place[arrow->from], place[arrow->to]);
    }
    return texts;
}

static void find_alike(MtfViewGroups *groups, const MtfPartitionView *view) {
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) texts = describe_groups(groups, view);
    for (int g = 0; g < (int)groups->groups->len; g++) {
        char *text = g_string_free(g_ptr_array_index(texts, g), FALSE);
        int first = GPOINTER_TO_INT(g_hash_table_lookup(seen, text)) - 1;
        if (first < 0 || g_array_index(groups->groups, MtfViewGroup, g).section < 0) {
            g_hash_table_insert(seen, text, GINT_TO_POINTER(g + 1));
            continue;
        }
        g_free(text);
        g_array_index(groups->groups, MtfViewGroup, g).alike = first;
        g_array_index(groups->groups, MtfViewGroup, first).times++;
    }
}

/* ---- Entry --------------------------------------------------------------------------------- */

static void clear_group(gpointer data) {
    g_array_unref(((MtfViewGroup *)data)->boxes);
}

MtfViewGroups *mtf_view_groups_new(const MtfPartitionView *view) {
    MtfViewGroups *groups = g_new0(MtfViewGroups, 1);
    groups->groups = g_array_new(FALSE, FALSE, sizeof(MtfViewGroup));
    g_array_set_clear_func(groups->groups, clear_group);
    groups->of_box = g_new0(int, view->boxes->len + 1);
    find_groups(groups, view);
    find_alike(groups, view);
    return groups;
}

void mtf_view_groups_free(MtfViewGroups *groups) {
    if (groups == NULL)
        return;
    g_array_unref(groups->groups);
    g_free(groups->of_box);
    g_free(groups);
}
