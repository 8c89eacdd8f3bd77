// SPDX-License-Identifier: GPL-3.0-or-later
/* Which boxes of a view hang together by arrows, and which of these groups look alike: an update is
 * many small groups, one a variable, and most of them are laid out as others are.
 *
 *     ┌───────────┐      ┌───────────┐      ┌────┐
 *     │ mean_kept │      │ var_kept  │      │ w  │      three groups; the second looks like the
 *     └─────┬─────┘      └─────┬─────┘      └────┘      first, so that the first is drawn "× 2"
 *     ┌─────┴─────┐      ┌─────┴─────┐
 *     │ mean_next │      │ var_next  │
 *     └───────────┘      └───────────┘
 *
 * Alike are groups of one section with the same arrows, whose boxes are made by the same operations, of
 * tensors with as many dimensions that the same axes split, and send the same on the way; sizes and
 * names may differ. */
#ifndef MTF_VIEW_GROUPS_H
#define MTF_VIEW_GROUPS_H

#include "reports/drawing/partition_view.h"

typedef struct {
    GArray *boxes; /* int, in the view's order */
    int section;   /* that holds all of it; -1: it lies in several, or between stages */
    int alike;     /* the first group that looks like it; itself = it is drawn */
    int times;     /* of a drawn one: groups that look like it, with itself */
} MtfViewGroup;

typedef struct {
    GArray *groups; /* MtfViewGroup, in the order of their first boxes */
    int *of_box;    /* the group of each box */
} MtfViewGroups;

/* Of all boxes of a view; freed by mtf_view_groups_free. */
MtfViewGroups *mtf_view_groups_new(const MtfPartitionView *view);
void mtf_view_groups_free(MtfViewGroups *groups);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfViewGroups, mtf_view_groups_free)

#endif
