// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/doubt.h"

#include "layouts/base/json_writer.h"
#include "layouts/graph/operation_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* How sources of a figure that has none begin. */
#define ASSUMED "an assumption"

MtfJudgedKind mtf_judged_kind(const MtfGraph *graph) {
    if (graph->loss < 0 && !mtf_graph_is_training(graph))
        return MTF_JUDGED_INFERENCE;
    return mtf_graph_has_experts(graph) ? MTF_JUDGED_EXPERTS : MTF_JUDGED_DENSE;
}

/* The mean over the software's runs on this machine, or on all. */
static bool software_runs(const MtfMachine *machine, bool here, MtfJudgedKind kind,
                          MtfDoubt *doubt) {
    const MtfSoftware *software = machine->software;
    double sum = 0;
    *doubt = (MtfDoubt){ .machine = here, .software = true, .kind = kind };
    for (guint i = 0; software != NULL && i < software->judged->len; i++) {
        const MtfJudgedRuns *judged = &g_array_index(software->judged, MtfJudgedRuns, i);
        if (judged->experts != (kind == MTF_JUDGED_EXPERTS) ||
            (here && strcmp(judged->machine, machine->name) != 0))
            continue;
        doubt->judged.runs += judged->runs;
        sum += (double)judged->runs * judged->error;
    }
    doubt->judged.error = sum / (double)MAX(doubt->judged.runs, 1);
    return doubt->judged.runs >= MTF_DOUBT_RUNS;
}

static bool machine_runs(const MtfJudged *judged, MtfJudgedKind kind, MtfDoubt *doubt) {
    *doubt = (MtfDoubt){ .judged = *judged, .machine = true, .kind = kind };
    return judged->runs > 0;
}

bool mtf_doubt_nearest(const MtfMachine *machine, MtfJudgedKind kind, MtfDoubt *doubt) {
    if (machine->curves->len > 0 && machine->judged.runs == 0)
        return false;
    if (kind == MTF_JUDGED_INFERENCE)
        return machine_runs(&machine->judged_inference, kind, doubt);
    if (kind == MTF_JUDGED_EXPERTS &&
        (software_runs(machine, true, kind, doubt) || software_runs(machine, false, kind, doubt)))
        return true;
    return software_runs(machine, true, MTF_JUDGED_DENSE, doubt) ||
           machine_runs(&machine->judged, MTF_JUDGED_DENSE, doubt) ||
           software_runs(machine, false, MTF_JUDGED_DENSE, doubt);
}

/* Which runs they are: "of this kind", "of models with experts on other machines"; for a model with experts where none
 * was judged, "of dense models". */
static char *runs_text(const MtfMachine *machine, MtfJudgedKind asked, const MtfDoubt *doubt) {
    const char *kind = doubt->kind == MTF_JUDGED_INFERENCE ? "inference"
                       : doubt->kind == MTF_JUDGED_EXPERTS ? "models with experts"
                       : doubt->kind != asked              ? "dense models"
                       : doubt->machine                    ? "this kind"
                                                           : machine->software->name;
    return g_strdup_printf("of %s%s", kind, doubt->machine ? "" : " on other machines");
}

char *mtf_doubt_format(const MtfMachine *machine, MtfJudgedKind kind) {
    MtfDoubt doubt;
    if (!mtf_doubt_nearest(machine, kind, &doubt))
        return machine->curves->len > 0
                   ? NULL
                   : g_strdup_printf("no measured run %sof this machine was judged: its figures "
                                     "are those of data sheets and benchmarks",
                                     kind == MTF_JUDGED_INFERENCE ? "of inference " : "");
    g_autofree char *of = runs_text(machine, kind, &doubt);
    return g_strdup_printf("runs %s were predicted within %.0f %% on %" PRId64 " %s runs", of,
                           ceil(100 * doubt.judged.error), doubt.judged.runs,
                           kind == MTF_JUDGED_INFERENCE ? "measured" : "published");
}

static const char *what_was_judged(const MtfDoubt *doubt) {
    return doubt->machine && doubt->software ? "machine and software"
           : doubt->machine                  ? "machine"
                                             : "software";
}

cJSON *mtf_doubt_to_json(const MtfMachine *machine, MtfJudgedKind kind) {
    MtfDoubt doubt;
    g_autofree char *text = mtf_doubt_format(machine, kind);
    bool judged = mtf_doubt_nearest(machine, kind, &doubt);
    if (text == NULL)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    if (judged) {
        mtf_json_add_number(object, "error", doubt.judged.error);
        mtf_json_add_integer(object, "runs", doubt.judged.runs);
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
