// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/next_best.h"

#include "cost/machine/doubt.h"
#include "cost/summary/framework_memory.h"
#include "cost/summary/parallelism.h"
#include "cost/summary/step_shares.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the software needs for the layout beyond the limit. */
static double lacking_bytes(const MtfPlanAnswer *answer, const MtfGraph *graph,
                            const MtfLayout *layout, int64_t memory_limit) {
    const MtfSoftware *software = answer->pricer.machine->software;
    if (software == NULL)
        return 0;
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    return fmax(mtf_framework_memory(program, software).given - (double)memory_limit, 0);
}

static double seconds_of(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return (double)schedule->nanoseconds / 1e9;
}

/* `runs`: only of those that the software has the memory for. */
static const MtfIncumbent *find_next(const MtfPlanAnswer *answer, const MtfGraph *graph,
                                     const MtfLayout *layout, int64_t memory_limit, bool runs) {
    if (answer->incumbents == NULL)
        return NULL;
    const MtfIncumbent *next = NULL;
    g_autofree char *words = mtf_parallelism_format(graph, layout);
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(answer->incumbents, memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(shown, i);
        if (one->arena_bytes > memory_limit ||
            (next != NULL && one->step_seconds >= next->step_seconds))
            continue;
        g_autofree char *its = mtf_parallelism_format(graph, one->layout);
        if (strcmp(its, words) != 0 &&
            (!runs || lacking_bytes(answer, graph, one->layout, memory_limit) <= 0))
            next = one;
    }
    return next;
}

const MtfIncumbent *mtf_next_best_of(const MtfPlanAnswer *answer, const MtfGraph *graph,
                                     const MtfLayout *layout, int64_t memory_limit) {
    return find_next(answer, graph, layout, memory_limit, false);
}

/* Seconds of a step by what they go to. */
static GHashTable *shares_of(const MtfPricer *pricer, const MtfProgram *program, double *step) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    g_autofree int64_t *wall = mtf_step_wall(schedule, program);
    g_autoptr(GPtrArray) shares = mtf_step_shares_of(pricer, program, schedule, wall);
    GHashTable *seconds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    *step = (double)schedule->nanoseconds / 1e9;
    for (guint i = 0; i < shares->len; i++) {
        const MtfStepShare *share = g_ptr_array_index(shares, i);
        double *value = g_new(double, 1);
        *value = (double)share->nanoseconds / 1e9;
        g_hash_table_insert(seconds, g_strdup(share->name), value);
    }
    return seconds;
}

static double seconds_in(GHashTable *seconds, const char *name) {
    const double *value = g_hash_table_lookup(seconds, name);
    return value != NULL ? *value : 0;
}

/* The name of the share that differs most, where that is by more than `*most`, which is raised to it; else
 * `known`. */
static const char *widest_share(GHashTable *one, GHashTable *other, const char *known,
                                double *most) {
    GList *names = g_list_sort(g_hash_table_get_keys(one), (GCompareFunc)strcmp);
    for (GList *i = names; i != NULL; i = i->next) {
        double apart = fabs(seconds_in(one, i->data) - seconds_in(other, i->data));
        if (apart > *most) {
            *most = apart;
            known = i->data;
        }
    }
    g_list_free(names);
    return known;
}

/* What to measure to know which of two plans that differ most in that share is faster. */
static char *decider(const char *share) {
    if (share == NULL)
        return g_strdup("a step of each");
    if (g_str_has_prefix(share, "network over "))
        return g_strdup_printf("collectives of the plan's sizes over %s",
                               share + strlen("network over "));
    return g_strdup(strcmp(share, "arithmetic") == 0       ? "products of the plan's local shapes"
                    : strcmp(share, "memory traffic") == 0 ? "passes over memory of the local sizes"
                                                           : "what launching a kernel takes");
}

static void add_doubt(cJSON *object, const MtfPricer *pricer, const MtfProgram *program,
                      const MtfIncumbent *next) {
    double step, other, most = 0;
    g_autoptr(MtfProgram) other_program = mtf_lower(program->graph, next->layout);
    g_autoptr(GHashTable) ours = shares_of(pricer, program, &step);
    g_autoptr(GHashTable) its = shares_of(pricer, other_program, &other);
    const char *widest = widest_share(its, ours, widest_share(ours, its, NULL, &most), &most);
    double longer = step > 0 ? other / step - 1 : 0;
    MtfDoubt doubt;
    bool near = mtf_doubt_nearest(pricer->machine, mtf_judged_kind(program->graph), &doubt) &&
                fabs(longer) < doubt.judged.error;
    g_autofree char *measurement = decider(widest);
    mtf_json_add_number(object, "step_seconds", other);
    mtf_json_add_number(object, "longer", longer);
    cJSON_AddBoolToObject(object, "within_doubt", near);
    if (near)
        cJSON_AddStringToObject(object, "decided_by", measurement);
}

cJSON *mtf_next_best(const MtfPlanAnswer *answer, const MtfProgram *program, int64_t memory_limit) {
    const MtfGraph *graph = program->graph;
    const MtfIncumbent *next = find_next(answer, graph, program->layout, memory_limit, true);
    if (next == NULL)
        return NULL;
    g_autofree char *its = mtf_parallelism_format(graph, next->layout);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", next->name);
    cJSON_AddStringToObject(object, "parallelism", its);
    mtf_json_add_integer(object, "memory_bytes", next->arena_bytes);
    add_doubt(object, &answer->pricer, program, next);
    return object;
}

cJSON *mtf_passed_over(const MtfPlanAnswer *answer, const MtfProgram *program,
                       int64_t memory_limit) {
    if (answer->incumbents == NULL || answer->pricer.machine->software == NULL)
        return NULL;
    cJSON *list = cJSON_CreateArray();
    double step = seconds_of(&answer->pricer, program);
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(answer->incumbents, memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(shown, i);
        if (one->arena_bytes > memory_limit || one->step_seconds >= step)
            continue;
        double lacks = lacking_bytes(answer, program->graph, one->layout, memory_limit);
        if (lacks <= 0)
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", one->name);
        mtf_json_add_number(object, "step_seconds", one->step_seconds);
        mtf_json_add_number(object, "lacks_bytes", lacks);
        cJSON_AddItemToArray(list, object);
    }
    if (list->child != NULL)
        return list;
    cJSON_Delete(list);
    return NULL;
}

/* The fastest of them, and how many more there are. */
static void print_passed_over(const cJSON *search) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(search, "passed_over");
    if (list == NULL || list->child == NULL)
        return;
    const cJSON *one, *fastest = list->child;
    int count = cJSON_GetArraySize(list);
    cJSON_ArrayForEach(one, list) {
        if (mtf_json_number_of(one, "step_seconds", 0) <
            mtf_json_number_of(fastest, "step_seconds", 0))
            fastest = one;
    }
    g_autofree char *step = mtf_seconds_format(mtf_json_number_of(fastest, "step_seconds", 0));
    g_autofree char *lacks = mtf_bytes_format(mtf_json_number_of(fastest, "lacks_bytes", 0));
    g_autofree char *more =
        count > 1 ? g_strdup_printf(" (and for %d more)", count - 1) : g_strdup("");
    printf("passed over    %s: %s, but the software lacks %s for it%s\n",
           mtf_json_text_of(fastest, "name"), step, lacks, more);
}

static void print_next(const cJSON *next) {
    double longer = mtf_json_number_of(next, "longer", 0);
    g_autofree char *step = mtf_seconds_format(mtf_json_number_of(next, "step_seconds", 0));
    g_autofree char *memory = mtf_bytes_format(mtf_json_number_of(next, "memory_bytes", 0));
    printf("next best      %s (%s): %s, %.3g %% %s, %s a device\n", mtf_json_text_of(next, "name"),
           mtf_json_text_of(next, "parallelism"), step, 100 * fabs(longer),
           longer < 0 ? "shorter" : "longer", memory);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(next, "within_doubt")))
        printf(
            "               nearer than predictions are to measured runs: measure %s to decide\n",
            mtf_json_text_of(next, "decided_by"));
}

void mtf_next_best_print(const cJSON *search) {
    const cJSON *next = cJSON_GetObjectItemCaseSensitive(search, "next_best");
    if (next != NULL)
        print_next(next);
    print_passed_over(search);
}

/* ---- The shortest step --------------------------------------------------------------------------- */

/* Makes a layout made by hand the plan of an answer. */
static void take_incumbent(MtfPlanAnswer *answer, const MtfIncumbent *one) {
    mtf_layout_free(answer->fastest);
    answer->fastest = mtf_layout_copy(one->layout);
    answer->fastest_cost = one->cost;
    answer->step_seconds = one->step_seconds;
    answer->runs = false; /* it is made by hand in the first place */
}

/* Of the cheapest layout, which is not the plan. */
static double cheapest_seconds(const MtfPlanAnswer *answer, const MtfGraph *graph,
                               const MtfSettling *how) {
    g_autoptr(MtfLayout) layout = mtf_layout_copy(answer->free.layout);
    g_autoptr(MtfProgram) program = mtf_layout_settle(graph, layout, &answer->pricer, how);
    return seconds_of(&answer->pricer, program);
}

void mtf_plan_answer_keep_shortest(MtfPlanAnswer *answer, const MtfGraph *graph,
                                   const MtfSettling *how, MtfLayout **layout,
                                   MtfProgram **program) {
    const MtfIncumbent *shortest = NULL;
    double least = seconds_of(&answer->pricer, *program);
    double lacks = lacking_bytes(answer, graph, *layout, how->memory_limit);
    mtf_incumbents_join(answer->incumbents, how->memory_limit, how->bucket_bytes);
    g_autoptr(GPtrArray) fitting = mtf_incumbents_fitting(answer->incumbents, how->memory_limit);
    for (guint i = 0; i < fitting->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(fitting, i);
        if (one->step_seconds < least &&
            lacking_bytes(answer, graph, one->layout, how->memory_limit) <= lacks) {
            shortest = one;
            least = one->step_seconds;
        }
    }
    if (shortest == NULL)
        return;
    if (answer->free.layout != NULL)
        answer->free.step_seconds = cheapest_seconds(answer, graph, how);
    take_incumbent(answer, shortest);
    g_clear_pointer(&answer->free.why, cJSON_Delete); /* of another layout */
    mtf_layout_free(*layout);
    mtf_program_free(*program);
    *layout = mtf_layout_copy(shortest->layout);
    *program = mtf_layout_settle(graph, *layout, &answer->pricer, how);
}

/* ---- What frameworks run ----------------------------------------------------------------------- */

static bool is_megatron(const MtfParallelism *parallelism, int microbatches) {
    (void)microbatches;
    return mtf_parallelism_is_megatron(parallelism);
}

typedef struct {
    const char *form, *name;
    bool (*runs)(const MtfParallelism *parallelism, int microbatches);
} Framework;

static const Framework frameworks[] = {
    { "megatron", "Megatron-LM", is_megatron },
    { "torchtitan", "torchtitan", mtf_parallelism_is_torchtitan },
};

static const Framework *find_framework(const char *form) {
    for (gsize i = 0; i < G_N_ELEMENTS(frameworks); i++)
        if (g_strcmp0(frameworks[i].form, form) == 0)
            return &frameworks[i];
    return NULL;
}

const char *mtf_framework_named(const char *form) {
    const Framework *framework = find_framework(form);
    return framework != NULL ? framework->name : NULL;
}

static bool runs(const Framework *framework, const MtfGraph *graph, const MtfLayout *layout) {
    MtfParallelism parallelism = mtf_parallelism(graph, layout);
    return framework->runs(&parallelism, layout->execution.division.microbatches);
}

/* Of those that the software has the memory for; where there are none, the one that lacks least, `*least`. */
static const MtfIncumbent *fastest_that_runs(const MtfPlanAnswer *answer, const MtfGraph *graph,
                                             const Framework *framework, int64_t memory_limit,
                                             double *least) {
    const MtfIncumbent *fastest = NULL;
    *least = INFINITY;
    if (answer->incumbents == NULL)
        return NULL;
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(answer->incumbents, memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(shown, i);
        if (one->arena_bytes > memory_limit || !runs(framework, graph, one->layout))
            continue;
        double lacks = lacking_bytes(answer, graph, one->layout, memory_limit);
        if (lacks < *least || (lacks == *least && one->step_seconds < fastest->step_seconds)) {
            fastest = one;
            *least = lacks;
        }
    }
    return fastest;
}

bool mtf_plan_answer_keep_exportable(MtfPlanAnswer *answer, const MtfGraph *graph, const char *form,
                                     int64_t memory_limit, MtfLayout **settled, GError **error) {
    const Framework *framework = find_framework(form);
    if (framework == NULL)
        return true;
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(answer, graph);
    double least;
    const MtfIncumbent *fastest = fastest_that_runs(answer, graph, framework, memory_limit, &least);
    if (runs(framework, graph, layout)) {
        double lacks = lacking_bytes(answer, graph, layout, memory_limit);
        if (fastest == NULL || lacks < least ||
            (lacks == least && answer->step_seconds <= fastest->step_seconds))
            return true;
    }
    if (fastest == NULL) {
        g_autofree char *words = mtf_parallelism_format(graph, layout);
        g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                    "no layout that %s can run was found to fit; the best of all is \"%s\"",
                    framework->name, words);
        return false;
    }
    g_clear_pointer(settled, mtf_layout_free);
    take_incumbent(answer, fastest);
    return true;
}
