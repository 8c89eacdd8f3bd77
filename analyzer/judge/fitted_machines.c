// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/fitted_machines.h"

#include <string.h>

struct MtfFittedMachines {
    const GPtrArray *verdicts;
    MtfLeaveOut leave;
    GHashTable *machines; /* of MtfMachine, copies that own nothing, by name and what is left out */
};

MtfFittedMachines *mtf_fitted_machines_new(const GPtrArray *verdicts, MtfLeaveOut leave) {
    MtfFittedMachines *fitted = g_new0(MtfFittedMachines, 1);
    fitted->verdicts = verdicts;
    fitted->leave = leave;
    fitted->machines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return fitted;
}

void mtf_fitted_machines_free(MtfFittedMachines *fitted) {
    if (fitted == NULL)
        return;
    g_hash_table_unref(fitted->machines);
    g_free(fitted);
}

static const char *model_of(const MtfVerdict *verdict) {
    return verdict->row->model;
}

/* Whether the table has runs of the machine from more than one source. */
static bool has_sources(const MtfFittedMachines *fitted, const char *machine) {
    const char *first = NULL;
    for (guint i = 0; i < fitted->verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)fitted->verdicts->pdata[i];
        if (verdict->row->reason != NULL || g_strcmp0(verdict->row->machine, machine) != 0)
            continue;
        if (first != NULL && strcmp(first, verdict->row->source) != 0)
            return true;
        first = verdict->row->source;
    }
    return false;
}

const MtfMachine *mtf_fitted_machine(void *data, const MtfRunRow *row, const MtfMachine *library) {
    MtfFittedMachines *fitted = (MtfFittedMachines *)data;
    MtfFitRows rows = { .machine = library, .verdicts = fitted->verdicts };
    if (fitted->leave != MTF_LEAVE_NOTHING) {
        bool source = fitted->leave == MTF_LEAVE_SOURCE && has_sources(fitted, library->name);
        rows.left_out = source ? mtf_verdict_source : model_of;
        rows.label = source ? row->source : row->model;
    }
    g_autofree char *key =
        g_strdup_printf("%s|%s", library->name, rows.label != NULL ? rows.label : "");
    MtfMachine *machine = (MtfMachine *)g_hash_table_lookup(fitted->machines, key);
    if (machine == NULL) {
        MtfFit fit = mtf_fit(&rows);
        machine = g_memdup2(library, sizeof *library);
        mtf_fit_apply(&fit, machine);
        g_hash_table_insert(fitted->machines, g_steal_pointer(&key), machine);
    }
    return machine;
}
