// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a graph can be cut. A downset holds with each node all nodes before it, so what lies before
 * a cut is a downset, and a stage is the difference of two of them, one inside the other:
 *
 *     { } ⊂ {a} ⊂ {a,b} ⊂ {a,b,c,d}        stages {a}, {b}, {c,d}
 *           {a} ⊂ {a,c} ⊂ {a,b,c,d}        or     {a}, {c}, {b,d}
 *
 * A chain of n nodes has n + 1 of them, a graph of many branches exponentially many. A family holds
 * all, or those along several orders of the nodes when they are too many. */
#ifndef MTF_DOWNSETS_H
#define MTF_DOWNSETS_H

#include "analyzer/stages/stage_graph.h"

typedef struct {
    int nodes, words, count;
    guint64 *bits; /* count × words, ascending in size: the first is empty, the last has all
                      nodes */
    bool complete; /* every downset of the graph is in the family */
} MtfDownsets;

/* Up to `most` (at least nodes + 1) downsets of a graph without circles. */
MtfDownsets *mtf_downsets_new(const MtfStageGraph *graph, int most);
void mtf_downsets_free(MtfDownsets *downsets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDownsets, mtf_downsets_free)

/* Whether downset a lies inside downset b; whether downset d holds a node. */
bool mtf_downsets_nested(const MtfDownsets *downsets, int a, int b);
bool mtf_downsets_has(const MtfDownsets *downsets, int d, int node);

#endif
