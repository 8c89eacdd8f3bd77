// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/plan_answer.h"

#include "analyzer/free/operation_profile.h"
#include "layouts/base/json_writer.h"

void mtf_plan_answer_clear(MtfPlanAnswer *answer) {
    mtf_rule_answer_clear(&answer->rules);
    mtf_free_answer_clear(&answer->free);
    mtf_settled_layout_clear(&answer->settled);
    g_clear_pointer(&answer->fastest, mtf_layout_free);
    g_clear_pointer(&answer->frontier, g_array_unref);
    g_clear_pointer(&answer->incumbents, mtf_incumbents_free);
    g_clear_pointer(&answer->problem, mtf_layout_problem_free);
    g_clear_pointer(&answer->choice, g_free);
}

bool mtf_plan_answer_is_free(const MtfPlanAnswer *answer) {
    const MtfLayout *cheapest = answer->free.layout, *fastest = answer->fastest;
    return cheapest != NULL &&
           (cheapest->rules == NULL || (fastest != NULL && fastest->rules == NULL));
}

MtfLayout *mtf_plan_answer_layout(const MtfPlanAnswer *answer, const MtfGraph *graph) {
    if (answer->fastest != NULL)
        return mtf_layout_copy(answer->fastest);
    if (answer->free.layout != NULL)
        return mtf_layout_copy(answer->free.layout);
    MtfLayout *layout = mtf_layout_from_rules(graph, &answer->rules.mesh, answer->rules.rules);
    layout->execution.stage = answer->stage;
    return layout;
}

void mtf_plan_answer_bound_by_work(MtfPlanAnswer *answer, const MtfGraph *graph) {
    MtfFreeAnswer *found = &answer->free;
    if (found->layout == NULL || found->bound > 0)
        return;
    found->bound =
        MIN(found->cost, mtf_operations_least(graph, &found->layout->mesh, &answer->pricer));
    g_free(found->method);
    found->method = g_strdup("the work alone is the bound");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static double relative_gap(int64_t cost, int64_t bound) {
    return cost > 0 ? (double)(cost - bound) / (double)cost : 0;
}

static void add_rule_answer(cJSON *object, const MtfRuleAnswer *rules) {
    mtf_json_add_integer(object, "cost", rules->cost);
    mtf_json_add_integer(object, "bound", rules->bound);
    mtf_json_add_number(object, "gap", relative_gap(rules->cost, rules->bound));
    cJSON_AddStringToObject(object, "method",
                            rules->tightened
                                ? "integer program over rule layouts, memory limit tightened"
                                : "integer program over rule layouts");
    cJSON_AddStringToObject(object, "layouts", "rule");
    mtf_json_add_integer(object, "excluded", rules->excluded);
    cJSON_AddBoolToObject(object, "stopped", rules->stopped);
}

static void add_free_answer(cJSON *object, const MtfPlanAnswer *answer) {
    const MtfFreeAnswer *free = &answer->free;
    mtf_json_add_integer(object, "cost", free->cost);
    mtf_json_add_integer(object, "bound", free->bound);
    mtf_json_add_number(object, "gap", relative_gap(free->cost, free->bound));
    cJSON_AddStringToObject(object, "method", free->method);
    cJSON_AddStringToObject(object, "layouts", "free");
    if (answer->batch_first)
        cJSON_AddTrueToObject(object, "batch_first");
    if (answer->rules.found)
        mtf_json_add_integer(object, "rule_cost", answer->rules.cost);
    mtf_json_add_integer(object, "free_meshes", answer->free_meshes);
    mtf_json_add_integer(object, "tightenings", free->tightenings);
    if (free->why != NULL)
        cJSON_AddItemToObject(object, "why", cJSON_Duplicate(free->why, true));
}

static cJSON *merged_to_json(const MtfMergedProof *merged) {
    cJSON *object = cJSON_CreateObject();
    g_autofree char *mesh = mtf_mesh_format(&merged->mesh);
    cJSON_AddStringToObject(object, "mesh", mesh);
    mtf_json_add_integer(object, "cost", merged->cost);
    mtf_json_add_integer(object, "bound", merged->bound);
    mtf_json_add_number(object, "gap", relative_gap(merged->cost, merged->bound));
    return object;
}

cJSON *mtf_plan_answer_to_json(const MtfPlanAnswer *answer, int64_t memory_limit) {
    cJSON *object = cJSON_CreateObject();
    if (mtf_plan_answer_is_free(answer))
        add_free_answer(object, answer);
    else
        add_rule_answer(object, &answer->rules);
    if (answer->merged.mesh.n_axes > 0)
        cJSON_AddItemToObject(object, "merged", merged_to_json(&answer->merged));
    if (!mtf_plan_answer_is_free(answer) && answer->free.bound > 0)
        mtf_json_add_integer(object, "free_bound", answer->free.bound);
    if (answer->fastest != NULL)
        mtf_json_add_integer(object, "plan_cost", answer->fastest_cost);
    mtf_json_add_integer(object, "meshes", answer->meshes);
    mtf_json_add_integer(object, "memory_limit", memory_limit);
    mtf_json_add_integer(object, "in_order_cost", answer->in_order_cost);
    if (answer->incumbents != NULL)
        cJSON_AddItemToObject(object, "incumbents",
                              mtf_incumbents_to_json(answer->incumbents, memory_limit));
    cJSON *alike = mtf_alike_to_json(&answer->alike);
    if (alike != NULL)
        cJSON_AddItemToObject(object, "alike_layers", alike);
    if (answer->frontier != NULL)
        cJSON_AddItemToObject(object, "frontier", mtf_frontier_to_json(answer->frontier));
    return object;
}
