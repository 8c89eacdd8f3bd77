// SPDX-License-Identifier: GPL-3.0-or-later
/* The rule layouts of a plan's search: of all its meshes at first, which says what meshes promise, and of one. */
#ifndef MTF_MESH_RULES_H
#define MTF_MESH_RULES_H

#include "analyzer/layout_search/mesh_attempt.h"

/* Searches the rules of some meshes, laid as `mapping` says or in order for NULL. True with or without
 * rules that fit, in whatever order of instructions; false on an error. */
bool mtf_mesh_rules(const MtfPlanSearch *search, const GArray *meshes, const MtfMapping *mapping,
                    MtfRuleAnswer *answer, GError **error);

/* Searches the rules of all meshes; where there are many and free layouts follow, of those that
 * mesh_choice.h names: their bound is not that of all then. */
bool mtf_first_rules(const MtfPlanSearch *search, MtfRuleAnswer *answer, GError **error);

#endif
