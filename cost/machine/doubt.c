// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/doubt.h"

#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* How sources of a figure that has none begin. */
#define ASSUMED "an assumption"

/* The mean over the software's runs on this machine, or on all. */
static bool software_runs(const MtfMachine *machine, bool here, bool experts, MtfDoubt *doubt) {
    const MtfSoftware *software = machine->software;
    double sum = 0;
    *doubt = (MtfDoubt){ .machine = here, .software = true, .experts = experts };
    for (guint i = 0; software != NULL && i < software->judged->len; i++) {
        const MtfJudgedRuns *judged = &g_array_index(software->judged, MtfJudgedRuns, i);
        if (judged->experts != experts || (here && strcmp(judged->machine, machine->name) != 0))
            continue;
        doubt->runs += judged->runs;
        sum += (double)judged->runs * judged->error;
    }
    doubt->error = sum / (double)MAX(doubt->runs, 1);
    return doubt->runs >= MTF_DOUBT_RUNS;
}

bool mtf_doubt_nearest(const MtfMachine *machine, bool experts, MtfDoubt *doubt) {
    if (machine->curves->len > 0 && machine->judged.runs == 0)
        return false;
    if ((experts && software_runs(machine, true, true, doubt)) ||
        software_runs(machine, true, false, doubt))
        return true;
    if (machine->judged.runs > 0) {
        *doubt = (MtfDoubt){ machine->judged.runs, machine->judged.error, true, false, false };
        return true;
    }
    return software_runs(machine, false, false, doubt);
}

char *mtf_doubt_format(const MtfMachine *machine, bool experts) {
    MtfDoubt doubt;
    if (!mtf_doubt_nearest(machine, experts, &doubt))
        return machine->curves->len > 0
                   ? NULL
                   : g_strdup(
                         "no measured run of this machine was judged: its figures are those of "
                         "data sheets and benchmarks");
    g_autofree char *of = doubt.experts ? g_strdup("of models with experts")
                          : doubt.machine
                              ? g_strdup("of this kind")
                              : g_strdup_printf("of %s on other machines", machine->software->name);
    return g_strdup_printf("runs %s were predicted within %.0f %% on %" PRId64 " published runs",
                           of, ceil(100 * doubt.error), doubt.runs);
}

static const char *what_was_judged(const MtfDoubt *doubt) {
    return doubt->machine && doubt->software ? "machine and software"
           : doubt->machine                  ? "machine"
                                             : "software";
}

cJSON *mtf_doubt_to_json(const MtfMachine *machine, bool experts) {
    MtfDoubt doubt;
    g_autofree char *text = mtf_doubt_format(machine, experts);
    bool judged = mtf_doubt_nearest(machine, experts, &doubt);
    if (text == NULL)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    if (judged) {
        mtf_json_add_number(object, "error", doubt.error);
        mtf_json_add_integer(object, "runs", doubt.runs);
    }
    cJSON_AddStringToObject(object, "of", judged ? what_was_judged(&doubt) : "none");
    cJSON_AddStringToObject(object, "text", text);
    return object;
}

static void add_assumed(GPtrArray *list, const char *whose, const cJSON *sources) {
    const cJSON *source;
    cJSON_ArrayForEach(source, sources) {
        if (!cJSON_IsString(source) || !g_str_has_prefix(source->valuestring, ASSUMED))
            continue;
        const char *text = source->valuestring + strlen(ASSUMED);
        while (*text == ':' || *text == ',' || *text == ' ')
            text++;
        g_ptr_array_add(list, g_strdup_printf("%s: %s: %s", whose, source->string, text));
    }
}

GPtrArray *mtf_doubt_assumptions(const MtfMachine *machine) {
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    add_assumed(list, machine->name, machine->sources);
    if (machine->software != NULL)
        add_assumed(list, machine->software->name,
                    cJSON_GetObjectItemCaseSensitive(machine->software->written, "sources"));
    return list;
}
