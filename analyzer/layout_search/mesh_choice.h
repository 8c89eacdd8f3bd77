// SPDX-License-Identifier: GPL-3.0-or-later
/* Which meshes are looked at where there are very many. Those of one and two axes come first, and of the
 * others those that refine the best of these:
 *
 *     2^14 devices       16384     2x8192 … 128x128 … 8192x2          92 meshes
 *     the best of few                  128x128                        of 14
 *     refined           2x64x128 … 64x2x128   128x2x64 … 128x64x2     12 more
 *
 * which is a heuristic; what is found for a mesh is not. */
#ifndef MTF_MESH_CHOICE_H
#define MTF_MESH_CHOICE_H

#include "analyzer/rules/rule_search.h"

/* Free layouts are searched on meshes whose best rules cost at most this many times the best. */
#define MTF_PROMISING 1.5

/* So many meshes are all looked at. */
#define MTF_MANY_MESHES 40

/* Those of at most two axes where there are many, else all (MtfMesh, copied). */
GArray *mtf_meshes_at_first(const GArray *meshes);

/* Those of more axes that become `coarse` when neighbours are merged (MtfMesh, copied). */
GArray *mtf_meshes_refining(const GArray *meshes, const MtfMesh *coarse);

/* At most `most` of the meshes that rules were searched on, as indexes, the cheapest first; none whose best
 * rules cost more than `enough`. */
GArray *mtf_meshes_ranked(const GArray *by_mesh, int most, double enough);

/* Takes over what is better of an answer for other meshes; both say what they know of all of them. */
void mtf_rule_answer_take(MtfRuleAnswer *answer, MtfRuleAnswer *other);

#endif
