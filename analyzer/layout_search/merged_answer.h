// SPDX-License-Identifier: GPL-3.0-or-later
/* A mesh of many axes is searched by its merges (merged_axes.h), as if the user had named those:
 *
 *     a:2;b:2;c:2;d:2;e:2;f:2 ──► ab:4;cd:4;ef:4   abc:8;d:2;ef:4   … ──► the plan search
 *                 ▲                                                            │
 *                 └───────── expanded: layout, mapping, prices ◄───────────────┘
 *
 * What moves over a merged axis may have to go axis by axis on the mesh itself (a reduce-scatter over three
 * axes is three), which takes more messages: layouts are priced again there, and what was found, the best
 * rules and the layouts made by hand compete by those prices. What is proven of merged meshes is no bound of
 * the mesh itself, where the axes of a merge may go different ways: the answer carries both. Among several
 * meshes those of many axes are left out, since their merges are among the others. */
#ifndef MTF_MERGED_ANSWER_H
#define MTF_MERGED_ANSWER_H

#include "analyzer/layout_search/merged_axes.h"
#include "analyzer/layout_search/plan_search.h"

typedef struct {
    MtfMesh mesh;     /* that is merged; no axes: none is, meshes were left out */
    GArray *merges;   /* MtfAxisMerge that the machine has room for */
    GArray *searched; /* MtfMesh: what is searched instead */
} MtfMergedMeshes;

/* What to search instead of some meshes; NULL where they may be searched as they are. */
MtfMergedMeshes *mtf_merged_meshes_new(const MtfGraph *graph, const GArray *meshes,
                                       const MtfMachine *machine);
void mtf_merged_meshes_free(MtfMergedMeshes *merged);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfMergedMeshes, mtf_merged_meshes_free)

/* The mapping of the mesh itself that lays each processor where one of the merged mesh lies; false where
 * pieces of the merged axes cannot be divided as the axes are (a snake, a piece of 3 under axes of 2). */
bool mtf_merged_mapping_expand(const MtfMesh *mesh, const MtfAxisMerge *merge,
                               const MtfMapping *merged, MtfMapping *mapping);

/* Turns what was found on a merged mesh into the answer for the mesh itself, priced there. What does not
 * fit there, in any order of instructions that is tried, is no longer found. */
void mtf_merged_answer_expand(const MtfMergedMeshes *merged, const MtfGraph *graph,
                              const MtfPlanSearchOptions *options, MtfPlanAnswer *answer);

#endif
