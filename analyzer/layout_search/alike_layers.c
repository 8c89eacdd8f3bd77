// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/alike_layers.h"

#include "cost/price/schedule.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <string.h>

static const char *const names[] = { "auto", "always", "never" };

bool mtf_uniform_parse(const char *text, MtfUniform *uniform, GError **error) {
    for (int i = 0; i < (int)G_N_ELEMENTS(names); i++) {
        *uniform = (MtfUniform)i;
        if (text == NULL || strcmp(text, names[i]) == 0)
            return true;
    }
    return mtf_input_error(error, "--uniform \"%s\" must be auto, always or never", text);
}

int mtf_alike_differences(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                          const MtfLayout *layout) {
    g_autofree int *choice = g_new(int, ties->nodes + 1);
    mtf_free_problem_choice(problem, layout, choice);
    return mtf_layer_ties_differences(ties, choice);
}

bool mtf_alike_find(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                    const MtfFreeSearchOptions *options, MtfFreeAnswer *alike, GError **error) {
    MtfFreeSearchOptions tied = *options;
    tied.leader = ties->leader;
    tied.no_infeasibility = true;
    return mtf_free_search(problem, &tied, alike, error);
}

static MtfAlikePrice price_of(const MtfFreeProblem *problem, const MtfLayout *layout) {
    const MtfPricer *pricer = mtf_free_problem_pricer(problem);
    g_autoptr(MtfProgram) program = mtf_lower(mtf_free_problem_graph(problem), layout);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return (MtfAlikePrice){ mtf_price_program(pricer, program),
                            (double)schedule->nanoseconds / 1e9 };
}

MtfLayout *mtf_alike_fastest(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                             MtfIncumbents *incumbents, const MtfLayout *alike,
                             int64_t memory_limit, MtfAlikePrice *price) {
    const MtfLayout *fastest = alike;
    *price = alike != NULL ? price_of(problem, alike) : (MtfAlikePrice){ 0 };
    g_autoptr(GPtrArray) fitting = mtf_incumbents_fitting(incumbents, memory_limit);
    for (guint i = 0; i < fitting->len; i++) {
        const MtfIncumbent *other = g_ptr_array_index(fitting, i);
        if ((fastest != NULL && other->step_seconds >= price->step_seconds) ||
            mtf_alike_differences(problem, ties, other->layout) > 0)
            continue;
        fastest = other->layout;
        *price = (MtfAlikePrice){ other->cost, other->step_seconds };
    }
    return fastest != NULL ? mtf_layout_copy(fastest) : NULL;
}

/* The share by which the step is longer when layers are alike. */
static double alike_price(const MtfAlikeLayers *layers) {
    return layers->alike.step_seconds / layers->best.step_seconds - 1;
}

bool mtf_alike_is_worth(const MtfAlikeLayers *layers) {
    return layers->alike.cost > 0 && alike_price(layers) <= MTF_ALIKE_PRICE;
}

static char *format_price(const MtfAlikeLayers *layers) {
    double price = 100 * alike_price(layers);
    if (layers->uniform == MTF_UNIFORM_ALWAYS)
        return g_strdup("as asked for");
    return price <= 0 ? g_strdup("at no price")
                      : g_strdup_printf("for a step %.2g %% longer than the fastest found", price);
}

char *mtf_alike_format(const MtfAlikeLayers *layers) {
    if (layers->layers == 0)
        return NULL;
    bool known = layers->alike.cost > 0;
    g_autofree char *price = known ? format_price(layers) : NULL;
    if (layers->differences == 0)
        return g_strdup_printf("all %d repeated layers, %s", layers->layers, price);
    if (!known)
        return g_strdup_printf("not all %d repeated layers: no such layout that fits was found",
                               layers->layers);
    return g_strdup_printf("not all %d repeated layers: that would be possible %s", layers->layers,
                           price);
}

cJSON *mtf_alike_to_json(const MtfAlikeLayers *layers) {
    if (layers->layers == 0)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "uniform", names[layers->uniform]);
    mtf_json_add_integer(object, "layers", layers->layers);
    mtf_json_add_integer(object, "differences", layers->differences);
    mtf_json_add_number(object, "step_seconds", layers->best.step_seconds);
    if (layers->alike.cost > 0) {
        mtf_json_add_number(object, "alike_step_seconds", layers->alike.step_seconds);
        mtf_json_add_number(object, "alike_price", alike_price(layers));
    }
    g_autofree char *text = mtf_alike_format(layers);
    cJSON_AddStringToObject(object, "text", text);
    return object;
}
