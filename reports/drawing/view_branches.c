// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/view_branches.h"

#define NONE (-1)
#define UNKNOWN (-2)

typedef struct {
    const MtfPartitionView *view;
    int columns;
    int *in, *out; /* how many arrows a box has */
    int *begun;    /* branches that begin at it */
    int *depth;    /* arrows of the longest way to it */
    int *branch;   /* the box that its branch begins with */
    int *deepest;  /* of a branch, by that box */
} Branches;

static const MtfViewArrow *arrow_at(const Branches *b, guint i) {
    return &g_array_index(b->view->arrows, MtfViewArrow, i);
}

/* What ends at once is no branch. */
static bool begins(const Branches *b, const MtfViewArrow *arrow) {
    return b->in[arrow->to] == 1 && b->out[arrow->to] > 0;
}

static void count(Branches *b) {
    for (guint i = 0; i < b->view->arrows->len; i++) {
        b->out[arrow_at(b, i)->from]++;
        b->in[arrow_at(b, i)->to]++;
    }
    for (guint i = 0; i < b->view->arrows->len; i++)
        b->begun[arrow_at(b, i)->from] += begins(b, arrow_at(b, i));
}

/* What two branches lead to is of neither. */
static void follow(Branches *b, const MtfViewArrow *arrow) {
    bool first = b->begun[arrow->from] > b->columns && begins(b, arrow);
    int branch = first ? arrow->to : b->branch[arrow->from];
    int *known = &b->branch[arrow->to];
    *known = *known == UNKNOWN || *known == branch ? branch : NONE;
    b->depth[arrow->to] = MAX(b->depth[arrow->to], b->depth[arrow->from] + 1);
}

/* A box is left once all that leads to it was; arrows by where they begin, so that each is followed once. */
static void follow_all(Branches *b) {
    int boxes = (int)b->view->boxes->len;
    g_autoptr(GArray) ready = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree int *awaited = g_memdup2(b->in, (gsize)boxes * sizeof(int));
    g_autofree GSList **leaving = g_new0(GSList *, boxes + 1);
    for (guint i = b->view->arrows->len; i-- > 0;) {
        GSList **list = &leaving[arrow_at(b, i)->from];
        *list = g_slist_prepend(*list, (gpointer)arrow_at(b, i));
    }
    for (int box = 0; box < boxes; box++)
        if (b->in[box] == 0) {
            b->branch[box] = NONE;
            g_array_append_val(ready, box);
        }
    for (guint next = 0; next < ready->len; next++) {
        int box = g_array_index(ready, int, next), branch = b->branch[box];
        if (branch >= 0 && b->depth[box] > b->depth[b->deepest[branch]])
            b->deepest[branch] = box;
        for (GSList *item = leaving[box]; item != NULL; item = item->next) {
            const MtfViewArrow *arrow = item->data;
            follow(b, arrow);
            if (--awaited[arrow->to] == 0)
                g_array_append_val(ready, arrow->to);
        }
        g_slist_free(leaving[box]);
    }
}

static void set_in_columns(const Branches *b, int fork, GArray *places) {
    g_autofree int *last = g_new(int, b->columns), *heights = g_new0(int, b->columns);
    for (int c = 0; c < b->columns; c++)
        last[c] = NONE;
    for (guint i = 0; i < b->view->arrows->len; i++) {
        const MtfViewArrow *arrow = arrow_at(b, i);
        if (arrow->from != fork || !begins(b, arrow))
            continue;
        int column = 0;
        for (int c = 1; c < b->columns; c++)
            column = heights[c] < heights[column] ? c : column;
        if (last[column] != NONE)
            g_array_append_val(places, ((MtfViewPlace){ last[column], arrow->to }));
        last[column] = b->deepest[arrow->to];
        heights[column] += b->depth[last[column]] - b->depth[arrow->to] + 1;
    }
}

GArray *mtf_view_branches(const MtfPartitionView *view, int columns) {
    int boxes = (int)view->boxes->len;
    g_autofree int *counts = g_new0(int, 4 * boxes + 1), *marks = g_new(int, 2 * boxes + 1);
    Branches b = {
        view,  columns,      counts, counts + boxes, counts + 2 * boxes, counts + 3 * boxes,
        marks, marks + boxes
    };
    for (int box = 0; box < boxes; box++) {
        b.branch[box] = UNKNOWN;
        b.deepest[box] = box;
    }
    count(&b);
    follow_all(&b);
    GArray *places = g_array_new(FALSE, FALSE, sizeof(MtfViewPlace));
    for (int box = 0; box < boxes; box++)
        if (b.begun[box] > columns)
            set_in_columns(&b, box, places);
    return places;
}
