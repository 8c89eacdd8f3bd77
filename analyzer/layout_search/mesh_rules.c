// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/mesh_rules.h"

#include "analyzer/layout_search/mesh_choice.h"
#include "cost/memory/arena.h"
#include "cost/tune/order_search.h"

/* Bytes of a large graph's arena, times the limit, for which other orders are tried. */
#define MOST_REORDERED 1.25

/* ---- Rules ----------------------------------------------------------------------------------- */

/* No rules fit in the order of the operations: those that need least may fit in another. */
static void try_other_order(const MtfPlanSearch *search, const GArray *meshes,
                            const MtfMapping *mapping, MtfRuleAnswer *answer) {
    MtfPricer pricer;
    if (!mtf_pricer_init(&pricer, search->options->machine, &answer->mesh, NULL))
        return;
    if (mapping != NULL)
        pricer.map.mapping = *mapping;
    g_autoptr(MtfLayout) layout = mtf_plan_search_rules(search, &answer->mesh, answer->rules);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    if (!mtf_layout_improve_order(search->graph, layout, &program, &pricer,
                                  search->options->memory_limit))
        return;
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    answer->arena_bytes = arena->bytes;
    if (arena->bytes > search->options->memory_limit)
        return;
    answer->found = answer->other_order = true;
    answer->cost = mtf_price_program(&pricer, program);
    answer->bound = MIN(answer->bound, answer->cost);
    for (guint i = 0; i < meshes->len; i++)
        if (mtf_mesh_equal(&g_array_index(meshes, MtfMesh, i), &answer->mesh))
            g_array_index(answer->by_mesh, MtfRuleMesh, i) = (MtfRuleMesh){ true, answer->cost };
}

/* Whether another order may save what rules lack: of a large graph it takes long to find, and has not
 * been seen to save a fifth. */
static bool may_reorder(const MtfPlanSearch *search, const MtfRuleAnswer *answer) {
    return !mtf_plan_search_is_large(search) ||
           (double)answer->arena_bytes <= MOST_REORDERED * (double)search->options->memory_limit;
}

bool mtf_mesh_rules(const MtfPlanSearch *search, const GArray *meshes, const MtfMapping *mapping,
                    MtfRuleAnswer *answer, GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    MtfSearchControl part; /* the bound of one mesh is no news */
    mtf_search_control_init_part(&part, search->control, 0);
    mtf_search_tell_phase(search->control, "rule layouts");
    MtfRuleSearchOptions rule_options = {
        .machine = options->machine,
        .mapping = mapping,
        .stage = options->stage,
        .memory_limit = options->memory_limit,
        .draft = !options->rules_only,
        .pins = options->pins,
        .forbids = options->forbids,
        .gap = options->has_gap ? options->gap : 0,
        .wanted = options->rules_only ? 1 : MTF_PROMISING,
        .prices = options->prices,
        .control = &part,
    };
    if (!mtf_rule_search(search->graph, meshes, &rule_options, answer, error))
        return false;
    if (!answer->found && answer->rules != NULL && may_reorder(search, answer))
        try_other_order(search, meshes, mapping, answer);
    return true;
}

/* ---- Rules of some meshes ------------------------------------------------------------------------ */

/* Notes what rules were found on some meshes. */
static void note_rules(const MtfPlanSearch *search, const GArray *meshes, const GArray *by_mesh,
                       GArray *all) {
    for (guint i = 0; i < meshes->len; i++)
        for (guint k = 0; k < search->meshes->len; k++)
            if (mtf_mesh_equal(&g_array_index(meshes, MtfMesh, i),
                               &g_array_index(search->meshes, MtfMesh, k)))
                g_array_index(all, MtfRuleMesh, k) = g_array_index(by_mesh, MtfRuleMesh, i);
}

/* Searches rules on further meshes, if there are any. */
static bool search_more_rules(const MtfPlanSearch *search, const GArray *meshes, GArray *all,
                              MtfRuleAnswer *answer, GError **error) {
    MtfRuleAnswer more = { 0 };
    if (meshes->len == 0)
        return true;
    if (!mtf_mesh_rules(search, meshes, NULL, &more, error))
        return false;
    note_rules(search, meshes, more.by_mesh, all);
    if (answer->by_mesh == NULL)
        *answer = more;
    else
        mtf_rule_answer_take(answer, &more);
    if (answer->by_mesh != more.by_mesh)
        mtf_rule_answer_clear(&more);
    return true;
}

static GArray *unknown_rules(const MtfPlanSearch *search) {
    GArray *all = g_array_new(FALSE, TRUE, sizeof(MtfRuleMesh));
    MtfRuleMesh none = { false, INT64_MAX };
    for (guint i = 0; i < search->meshes->len; i++)
        g_array_append_val(all, none);
    return all;
}

/* Where no rules fit, free layouts may: notes what rules cost if memory were no matter. `*best` is the mesh of
 * the cheapest then. */
static bool note_unlimited_rules(const MtfPlanSearch *search, const GArray *meshes, GArray *all,
                                 MtfMesh *best, GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    MtfSearchControl part;
    mtf_search_control_init_part(&part, search->control, 0);
    MtfRuleSearchOptions rule_options = { .machine = options->machine,
                                          .memory_limit = INT64_MAX,
                                          .modelled = true,
                                          .draft = true,
                                          .pins = options->pins,
                                          .forbids = options->forbids,
                                          .wanted = MTF_PROMISING,
                                          .prices = options->prices,
                                          .control = &part };
    MtfRuleAnswer answer = { 0 };
    if (meshes->len == 0 || mtf_plan_search_is_late(search))
        return true;
    if (!mtf_rule_search(search->graph, meshes, &rule_options, &answer, error))
        return false;
    note_rules(search, meshes, answer.by_mesh, all);
    *best = answer.found ? answer.mesh : *best;
    mtf_rule_answer_clear(&answer);
    return true;
}

/* Searches the rules of some of the meshes, and says which is the most promising. */
static bool search_rules_of(const MtfPlanSearch *search, const GArray *meshes, GArray *all,
                            MtfRuleAnswer *answer, MtfMesh *best, GError **error) {
    if (!search_more_rules(search, meshes, all, answer, error))
        return false;
    if (answer->found || search->options->rules_only) {
        *best = answer->mesh;
        return true;
    }
    return meshes->len < 2 || note_unlimited_rules(search, meshes, all, best, error);
}

bool mtf_first_rules(const MtfPlanSearch *search, MtfRuleAnswer *answer, GError **error) {
    g_autoptr(GArray) meshes = g_array_copy((GArray *)(gpointer)search->meshes);
    g_autoptr(GArray) first =
        search->options->rules_only ? g_array_ref(meshes) : mtf_meshes_at_first(meshes);
    GArray *all = unknown_rules(search);
    MtfMesh best = { 0 };
    bool done =
        search->options->no_rules || search_rules_of(search, first, all, answer, &best, error);
    if (done && first->len < meshes->len) {
        g_autoptr(GArray) finer = mtf_meshes_refining(meshes, &best);
        done = search_rules_of(search, finer, all, answer, &best, error);
        answer->bound = 0;
    }
    g_clear_pointer(&answer->by_mesh, g_array_unref);
    answer->by_mesh = all;
    return done;
}
