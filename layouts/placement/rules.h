// SPDX-License-Identifier: GPL-3.0-or-later
/* Rule layouts, Mesh-TensorFlow's: one global map from dimensions to mesh axes,
 * `batch:rows;d_ff:cols`. A tensor is split by the rules of its dimensions; everything else follows
 * from the graph:
 *
 *   - an operation splits its iteration space by the same rules; where two of its indexes have
 *     rules for one axis (and no single tensor has both), the first keeps the axis and the other is
 *     gathered for this operation;
 *   - a partial sum is reduced right after the operation that makes it, unless its only consumer
 *     *absorbs* it: a linear operation that leaves the axis free, whose output is no larger, and
 *     (for sums of several tensors) that merges at least two partial inputs. So gradients that meet
 *     in a sum are reduced once. */
#ifndef MTF_RULES_H
#define MTF_RULES_H

#include "layouts/placement/layout.h"

typedef struct {
    int n_dims;
    int *axis; /* for each dimension of the graph: a mesh axis or -1 */
} MtfRules;

/* No dimension lies on an axis yet, or the same ones do; the caller frees it. `graph` must outlive it. */
MtfRules *mtf_rules_new(const MtfGraph *graph);
MtfRules *mtf_rules_copy(const MtfRules *rules);
void mtf_rules_free(MtfRules *rules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRules, mtf_rules_free)

/* Reads "batch:rows;d_ff:cols" (Mesh-TensorFlow's grammar). Fails on a dimension given two axes, on
 * two dimensions of one tensor on one axis (naming tensor and both dimensions), and on a name
 * absent from graph or mesh. A dimension without a rule that elements of another go by until they are
 * called by its name again (`reverse`, `roll`, scans) gets that one's. With `inert` non-NULL such rules are collected there instead
 * ("name:name"). */
MtfRules *mtf_rules_parse(const MtfGraph *graph, const MtfMesh *mesh, const char *text,
                          GPtrArray *inert, GError **error);

/* "batch:rows;d_ff:cols" in order of axes, then dimensions; parses again. Free with g_free. */
char *mtf_rules_format(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules);

/* Fails, naming the tensor, when two dimensions of one tensor are on one axis. */
bool mtf_rules_check(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules,
                     GError **error);

/* The layout that legal rules give. */
MtfLayout *mtf_layout_from_rules(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules);

/* What one operation's part of the layout depends on, for searches that enumerate locally. */
typedef struct MtfRuleScopes MtfRuleScopes;

/* Precomputes the absorption structure of a graph (independent of any rules). */
MtfRuleScopes *mtf_rule_scopes_new(const MtfGraph *graph);
void mtf_rule_scopes_free(MtfRuleScopes *scopes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRuleScopes, mtf_rule_scopes_free)

/* Appends to `dims` (int) the dimensions whose rules decide how `operation` runs, how its inputs
 * arrive and how its outputs are kept; each once, ascending. And to `operations` (int) the
 * operations, ascending, that mtf_rules_derive must visit to find that out. */
void mtf_rule_scopes_get(const MtfRuleScopes *scopes, int operation, GArray *dims,
                         GArray *operations);

/* Fills `layout` (of this graph and mesh) for the given operations, ascending, and for the inputs
 * and variables they read. All operations: n_operations < 0. */
void mtf_rules_derive(const MtfRuleScopes *scopes, const MtfRules *rules, const int *operations,
                      int n_operations, MtfLayout *layout);

#endif
