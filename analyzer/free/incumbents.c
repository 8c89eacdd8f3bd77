// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/incumbents.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/bucket_choice.h"
#include "layouts/base/json_writer.h"

#include <string.h>

struct MtfIncumbents {
    const MtfGraph *graph;
    MtfPricer pricer;
    GPtrArray *list; /* MtfIncumbent * */
};

static void incumbent_free(gpointer data) {
    MtfIncumbent *incumbent = data;
    mtf_layout_free(incumbent->layout);
    g_free(incumbent->name);
    g_free(incumbent);
}

MtfIncumbents *mtf_incumbents_new(const MtfGraph *graph, const MtfPricer *pricer) {
    MtfIncumbents *incumbents = g_new(MtfIncumbents, 1);
    *incumbents = (MtfIncumbents){ graph, *pricer, g_ptr_array_new_with_free_func(incumbent_free) };
    return incumbents;
}

void mtf_incumbents_free(MtfIncumbents *incumbents) {
    if (incumbents == NULL)
        return;
    g_ptr_array_unref(incumbents->list);
    g_free(incumbents);
}

/* Takes over the layout. */
static void add(MtfIncumbents *incumbents, const char *name, MtfLayout *layout, int64_t cost,
                int64_t least_bytes) {
    MtfIncumbent *incumbent = g_new(MtfIncumbent, 1);
    *incumbent = (MtfIncumbent){
        .name = g_strdup(name), .layout = layout, .cost = cost, .least_bytes = least_bytes
    };
    g_ptr_array_add(incumbents->list, incumbent);
}

MtfLayoutMeasures mtf_layout_measure(const MtfGraph *graph, const MtfPricer *pricer,
                                     const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return (MtfLayoutMeasures){ .cost = mtf_price_program(pricer, program),
                                .arena_bytes = arena->bytes,
                                .step_seconds = (double)schedule->nanoseconds / 1e9 };
}

void mtf_incumbents_add(MtfIncumbents *incumbents, const char *name, const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(incumbents->graph, layout);
    add(incumbents, name, mtf_layout_copy(layout), mtf_price_program(&incumbents->pricer, program),
        mtf_arena_lower_bound(program));
}

void mtf_incumbents_add_measured(MtfIncumbents *incumbents, const char *name,
                                 const MtfLayout *layout, const MtfLayoutMeasures *value) {
    add(incumbents, name, mtf_layout_copy(layout), value->cost, value->arena_bytes);
    MtfIncumbent *incumbent = g_ptr_array_index(incumbents->list, incumbents->list->len - 1);
    incumbent->arena_bytes = value->arena_bytes;
    incumbent->step_seconds = value->step_seconds;
    incumbent->measured = true;
}

void mtf_incumbents_add_standards(MtfIncumbents *incumbents, MtfFreeProblem *problem) {
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(problem);
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        add(incumbents, standard->name, mtf_free_problem_layout(problem, standard->choice),
            (int64_t)standard->value.cost, (int64_t)standard->value.peak);
    }
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* `program` is what its layout is lowered to. */
static void note_measures(const MtfIncumbents *incumbents, MtfIncumbent *incumbent,
                          const MtfProgram *program) {
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&incumbents->pricer, program);
    incumbent->arena_bytes = arena->bytes;
    incumbent->step_seconds = (double)schedule->nanoseconds / 1e9;
    incumbent->measured = true;
}

static void measure(const MtfIncumbents *incumbents, MtfIncumbent *incumbent) {
    if (incumbent->measured)
        return;
    g_autoptr(MtfProgram) program = mtf_lower(incumbents->graph, incumbent->layout);
    note_measures(incumbents, incumbent, program);
}

static MtfIncumbent *incumbent_at(const MtfIncumbents *incumbents, guint i) {
    return g_ptr_array_index(incumbents->list, i);
}

void mtf_incumbents_drop_unmeasured(MtfIncumbents *incumbents) {
    for (guint i = incumbents->list->len; i-- > 0;)
        if (!incumbent_at(incumbents, i)->measured)
            g_ptr_array_remove_index(incumbents->list, i);
}

/* The cheapest of the name (any for NULL) that may fit, as far as is known; NULL: none may. */
static MtfIncumbent *cheapest(const MtfIncumbents *incumbents, const char *name,
                              int64_t memory_limit) {
    MtfIncumbent *best = NULL;
    for (guint i = 0; i < incumbents->list->len; i++) {
        MtfIncumbent *incumbent = incumbent_at(incumbents, i);
        if (name != NULL && strcmp(incumbent->name, name) != 0)
            continue;
        int64_t bytes = incumbent->measured ? incumbent->arena_bytes : incumbent->least_bytes;
        if (bytes <= memory_limit && (best == NULL || incumbent->cost < best->cost))
            best = incumbent;
    }
    return best;
}

/* The cheapest of the name that fits, measured; NULL: none does. When time is up it may fit and be
 * unmeasured. */
static MtfIncumbent *cheapest_that_fits(const MtfIncumbents *incumbents, const char *name,
                                        int64_t memory_limit, const MtfSearchControl *control) {
    MtfIncumbent *best = cheapest(incumbents, name, memory_limit);
    while (best != NULL && !best->measured && !mtf_search_is_over(control)) {
        measure(incumbents, best);
        best = cheapest(incumbents, name, memory_limit);
    }
    return best;
}

const MtfIncumbent *mtf_incumbents_best(MtfIncumbents *incumbents, int64_t memory_limit) {
    return cheapest_that_fits(incumbents, NULL, memory_limit, NULL);
}

static bool is_faster(const MtfIncumbent *a, const MtfIncumbent *b) {
    if (a->step_seconds < b->step_seconds || a->step_seconds > b->step_seconds)
        return a->step_seconds < b->step_seconds;
    return a->cost < b->cost;
}

const MtfIncumbent *mtf_incumbents_fastest(MtfIncumbents *incumbents, int64_t memory_limit) {
    const MtfIncumbent *fastest = NULL;
    if (!incumbents->pricer.machine->overlap)
        return mtf_incumbents_best(incumbents, memory_limit);
    for (guint i = 0; i < incumbents->list->len; i++) {
        MtfIncumbent *incumbent = incumbent_at(incumbents, i);
        if (incumbent->least_bytes > memory_limit)
            continue;
        measure(incumbents, incumbent);
        if (incumbent->arena_bytes <= memory_limit &&
            (fastest == NULL || is_faster(incumbent, fastest)))
            fastest = incumbent;
    }
    return fastest;
}

static gint compare_steps(gconstpointer a, gconstpointer b) {
    const MtfIncumbent *one = *(MtfIncumbent *const *)a, *other = *(MtfIncumbent *const *)b;
    return is_faster(other, one) - is_faster(one, other);
}

GPtrArray *mtf_incumbents_near(const MtfIncumbents *incumbents, int64_t memory_limit,
                               double seconds) {
    GPtrArray *near = g_ptr_array_new();
    for (guint i = 0; i < incumbents->list->len; i++) {
        MtfIncumbent *incumbent = incumbent_at(incumbents, i);
        if (incumbent->measured && incumbent->arena_bytes <= memory_limit &&
            incumbent->step_seconds <= seconds)
            g_ptr_array_add(near, incumbent);
    }
    g_ptr_array_sort(near, compare_steps);
    return near;
}

const MtfIncumbent *mtf_incumbents_smallest(MtfIncumbents *incumbents) {
    const MtfIncumbent *smallest = NULL;
    for (guint i = 0; i < incumbents->list->len; i++) {
        MtfIncumbent *incumbent = incumbent_at(incumbents, i);
        if (smallest != NULL && incumbent->least_bytes >= smallest->arena_bytes)
            continue;
        measure(incumbents, incumbent);
        if (smallest == NULL || incumbent->arena_bytes < smallest->arena_bytes)
            smallest = incumbent;
    }
    return smallest;
}

/* ---- Showing --------------------------------------------------------------------------------- */

/* What is to be shown of one name each. */
typedef struct {
    const MtfIncumbents *incumbents;
    int64_t memory_limit;
    bool fitting;                    /* names without a layout that fits are left out */
    const MtfSearchControl *control; /* nothing more is measured when its time is up; or NULL */
    GPtrArray *names;                /* const char *, owned by incumbents */
    MtfIncumbent **shown;            /* one a name, or NULL */
} Show;

static void choose_shown(int i, void *data) {
    const Show *show = data;
    const char *name = g_ptr_array_index(show->names, (guint)i);
    MtfIncumbent *best =
        cheapest_that_fits(show->incumbents, name, show->memory_limit, show->control);
    if (best == NULL && !show->fitting && !mtf_search_is_over(show->control)) {
        best = cheapest(show->incumbents, name, INT64_MAX);
        measure(show->incumbents, best);
    }
    show->shown[i] = best;
}

static void list_names(Show *show) {
    for (guint i = 0; i < show->incumbents->list->len; i++) {
        const char *name = incumbent_at(show->incumbents, i)->name;
        if (strcmp(name, MTF_FREE_LAYOUT) != 0 &&
            !g_ptr_array_find_with_equal_func(show->names, name, g_str_equal, NULL))
            g_ptr_array_add(show->names, (gpointer)name);
    }
}

static GPtrArray *one_of_each_name(const MtfIncumbents *incumbents, int64_t memory_limit,
                                   bool fitting, const MtfSearchControl *control) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    Show show = { incumbents, memory_limit, fitting, control, names, NULL };
    list_names(&show);
    g_autofree MtfIncumbent **chosen = show.shown = g_new0(MtfIncumbent *, names->len + 1);
    mtf_in_parallel((int)names->len, choose_shown, &show);
    GPtrArray *shown = g_ptr_array_new();
    for (guint i = 0; i < incumbents->list->len; i++)
        for (guint k = 0; k < names->len; k++)
            if (incumbent_at(incumbents, i) == chosen[k])
                g_ptr_array_add(shown, chosen[k]);
    return shown;
}

GPtrArray *mtf_incumbents_shown(MtfIncumbents *incumbents, int64_t memory_limit) {
    return one_of_each_name(incumbents, memory_limit, false, NULL);
}

GPtrArray *mtf_incumbents_fitting(MtfIncumbents *incumbents, int64_t memory_limit) {
    return one_of_each_name(incumbents, memory_limit, true, NULL);
}

void mtf_incumbents_measure(MtfIncumbents *incumbents, int64_t memory_limit,
                            const MtfSearchControl *control) {
    g_ptr_array_unref(one_of_each_name(incumbents, memory_limit, false, control));
}

/* Exchanges of those that fit, joined. */
typedef struct {
    const MtfIncumbents *incumbents;
    int64_t memory_limit, only;
    GPtrArray *fitting; /* MtfIncumbent * */
} Joining;

static void join_one(int i, void *data) {
    const Joining *joining = data;
    const MtfIncumbents *incumbents = joining->incumbents;
    MtfIncumbent *one = g_ptr_array_index(joining->fitting, (guint)i);
    if (one->layout->execution.bucket_bytes > 0)
        return;
    g_autoptr(MtfProgram) program = mtf_lower(incumbents->graph, one->layout);
    if (mtf_layout_choose_bucket(incumbents->graph, one->layout, &program, &incumbents->pricer,
                                 joining->memory_limit, joining->only))
        note_measures(incumbents, one, program);
}

void mtf_incumbents_join(MtfIncumbents *incumbents, int64_t memory_limit, int64_t only) {
    g_autoptr(GPtrArray) fitting = mtf_incumbents_fitting(incumbents, memory_limit);
    Joining joining = { incumbents, memory_limit, only, fitting };
    mtf_in_parallel((int)fitting->len, join_one, &joining);
}

cJSON *mtf_incumbents_to_json(MtfIncumbents *incumbents, int64_t memory_limit) {
    cJSON *list = cJSON_CreateArray();
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(shown, i);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", incumbent->name);
        mtf_json_add_integer(object, "cost", incumbent->cost);
        mtf_json_add_integer(object, "memory_bytes", incumbent->arena_bytes);
        mtf_json_add_number(object, "step_seconds", incumbent->step_seconds);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
