// SPDX-License-Identifier: GPL-3.0-or-later
/* How well predictions order the layouts of one model: in every group of at least three rows of one
 * source, model and number of devices,
 *
 *     rank        Spearman's correlation of predicted and measured seconds a token
 *     remeasured  what a second measurement of the same runs is expected to have: the mean over 200
 *                 draws of measured times, each multiplied by 1 + 3 % of a normal number of its own
 *     regret      of the row that the prediction would have chosen: its measured time over the best - 1
 *
 * Rows that lie within the noise of measurement can be ordered by nobody: `remeasured` is low there. */
#ifndef MTF_LAYOUT_GROUPS_H
#define MTF_LAYOUT_GROUPS_H

#include <glib.h>
#include <stdbool.h>

/* Honest measurements of one run differ by 2 to 6 %. */
#define MTF_MEASURED_SPREAD 0.03

/* Seconds a token, so that runs of different batches compare. */
typedef struct {
    double predicted, measured;
} MtfTimedLayout;

typedef struct {
    char *key;
    const char *source, *model; /* of its first row */
    int64_t devices;
    GArray *layouts; /* MtfTimedLayout, in the order of the rows */
} MtfLayoutGroup;

typedef struct {
    double rank, remeasured, regret;
} MtfLayoutOrder;

/* An empty group; its key seeds the draws. Free with mtf_layout_group_free. */
MtfLayoutGroup *mtf_layout_group_new(const char *key);
void mtf_layout_group_free(void *group);

/* The figures of a group of at least two layouts. */
MtfLayoutOrder mtf_layout_group_order(const MtfLayoutGroup *group);

/* The means over those of an array of MtfLayoutGroup that have three rows, weighted by rows, and how many
 * groups these are; NAN where there is none. */
MtfLayoutOrder mtf_layout_groups_mean(const GPtrArray *groups, int *counted);

/* Whether the group is large enough to be ordered. */
bool mtf_layout_group_counts(const MtfLayoutGroup *group);

#endif
