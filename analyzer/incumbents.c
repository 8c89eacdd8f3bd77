// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/incumbents.h"

#include "analyzer/standard_layouts.h"
#include "cost/arena.h"
#include "cost/schedule.h"
#include "layouts/json_writer.h"

#include <string.h>

static void incumbent_free(gpointer data) {
    MtfIncumbent *incumbent = data;
    mtf_layout_free(incumbent->layout);
    g_free(incumbent->name);
    g_free(incumbent);
}

GPtrArray *mtf_incumbents_new(void) {
    return g_ptr_array_new_with_free_func(incumbent_free);
}

const MtfIncumbent *mtf_incumbents_add(GPtrArray *incumbents, const MtfGraph *graph,
                                       const MtfPricer *pricer, const char *name,
                                       const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    MtfIncumbent *incumbent = g_new(MtfIncumbent, 1);
    *incumbent = (MtfIncumbent){ .name = g_strdup(name),
                                 .layout = mtf_layout_copy(layout),
                                 .cost = mtf_price_program(pricer, program),
                                 .arena_bytes = arena->bytes,
                                 .step_seconds = (double)schedule->nanoseconds / 1e9 };
    g_ptr_array_add(incumbents, incumbent);
    return incumbent;
}

typedef struct {
    bool any, fits; /* one of that name is known; one that fits */
} Known;

static Known known_of(const GPtrArray *incumbents, const char *name, int64_t memory_limit) {
    Known known = { false, false };
    for (guint i = 0; i < incumbents->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(incumbents, i);
        if (strcmp(incumbent->name, name) != 0)
            continue;
        known.any = true;
        known.fits |= incumbent->arena_bytes <= memory_limit;
    }
    return known;
}

void mtf_incumbents_add_standards(GPtrArray *incumbents, MtfFreeProblem *problem,
                                  int64_t memory_limit) {
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(problem);
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        Known known = known_of(incumbents, standard->name, memory_limit);
        bool may_fit = standard->value.peak <= memory_limit;
        if (known.any && (known.fits || !may_fit))
            continue;
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(problem, standard->choice);
        mtf_incumbents_add(incumbents, mtf_free_problem_graph(problem),
                           mtf_free_problem_pricer(problem), standard->name, layout);
    }
}

const MtfIncumbent *mtf_incumbents_best(const GPtrArray *incumbents, int64_t memory_limit) {
    const MtfIncumbent *best = NULL;
    for (guint i = 0; i < incumbents->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(incumbents, i);
        if (incumbent->arena_bytes <= memory_limit &&
            (best == NULL || incumbent->cost < best->cost))
            best = incumbent;
    }
    return best;
}

static bool is_preferred(const MtfIncumbent *a, const MtfIncumbent *b, int64_t memory_limit) {
    bool a_fits = a->arena_bytes <= memory_limit, b_fits = b->arena_bytes <= memory_limit;
    return a_fits != b_fits ? a_fits : a->cost < b->cost;
}

bool mtf_incumbent_stands_for_its_name(const GPtrArray *incumbents, guint i, int64_t memory_limit) {
    const MtfIncumbent *incumbent = g_ptr_array_index(incumbents, i);
    if (strcmp(incumbent->name, MTF_FREE_LAYOUT) == 0)
        return false;
    for (guint j = 0; j < incumbents->len; j++) {
        const MtfIncumbent *other = g_ptr_array_index(incumbents, j);
        if (j != i && strcmp(other->name, incumbent->name) == 0 &&
            (is_preferred(other, incumbent, memory_limit) ||
             (j < i && !is_preferred(incumbent, other, memory_limit))))
            return false;
    }
    return true;
}

cJSON *mtf_incumbents_to_json(const GPtrArray *incumbents, int64_t memory_limit) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < incumbents->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(incumbents, i);
        if (!mtf_incumbent_stands_for_its_name(incumbents, i, memory_limit))
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", incumbent->name);
        mtf_json_add_integer(object, "cost", incumbent->cost);
        mtf_json_add_integer(object, "memory_bytes", incumbent->arena_bytes);
        mtf_json_add_number(object, "step_seconds", incumbent->step_seconds);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
