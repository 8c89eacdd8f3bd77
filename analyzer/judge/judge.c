// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/judge.h"

#include "analyzer/judge/run_plan.h"
#include "analyzer/solver/problem/in_parallel.h"

#include <math.h>
#include <string.h>

/* ---- Predicting one row ------------------------------------------------------------------------ */

/* Machines and profiles that rows named, loaded once. */
typedef struct {
    const MtfJudgeOptions *options;
    GHashTable *machines, *software; /* by name; by words */
    GArray *planned;                 /* Planned */
} Bench;

static void machine_free(void *machine) {
    mtf_machine_free((MtfMachine *)machine);
}

static void software_free(void *software) {
    mtf_software_free((MtfSoftware *)software);
}

static const MtfMachine *find_machine(Bench *bench, const char *name, GError **error) {
    MtfMachine *machine = (MtfMachine *)g_hash_table_lookup(bench->machines, name);
    if (machine == NULL) {
        machine = mtf_machine_load(name, error);
        if (machine != NULL)
            g_hash_table_insert(bench->machines, g_strdup(name), machine);
    }
    return machine;
}

/* What runs on a machine today, where the row's words name nothing that is known. */
static const char *usual_software(MtfRunRow *row) {
    const char *name = g_str_has_prefix(row->machine, "tpu-") ? "maxtext" : "megatron-core";
    g_string_append_printf(row->assumed, "%ssoftware %s", row->assumed->len > 0 ? ", " : "", name);
    return name;
}

/* A profile by name, or the one that knows the words of the row. */
static const MtfSoftware *find_software(Bench *bench, const char *name, const char *words,
                                        GError **error) {
    const char *key = name != NULL ? name : words;
    MtfSoftware *software = (MtfSoftware *)g_hash_table_lookup(bench->software, key);
    if (software == NULL) {
        software = name != NULL ? mtf_software_load(name, error) : mtf_software_match(words, error);
        if (software != NULL)
            g_hash_table_insert(bench->software, g_strdup(key), software);
    }
    return software;
}

/* The network that the row says, in place of the machine's: what a node sends, and what larger
 * groups of nodes do in proportion. */
static void set_node_bandwidth(const MtfRunRow *row, MtfMachine *machine) {
    MtfNetwork *network = &machine->network;
    if (!network->switched || network->axes < 2 || row->node_bandwidth <= 0)
        return;
    double scale = row->node_bandwidth / network->axis[network->axes - 2].bandwidth;
    for (int d = 0; d < network->axes - 1; d++)
        network->axis[d].bandwidth *= scale;
}

static void take_reason(MtfVerdict *verdict, GError *error) {
    verdict->row->reason = g_strdup(error->message);
    g_error_free(error);
}

double mtf_predict_row(const MtfRunRow *row, const MtfMachine *machine, const MtfSoftware *software,
                       MtfRunSeconds *seconds, GError **error) {
    MtfMachine placed = *machine;
    MtfSoftware own = mtf_run_software(&row->run, software);
    MtfRunDevice device;
    set_node_bandwidth(row, &placed);
    if (!mtf_run_device_init(&device, &row->run, &placed, &own, error))
        return NAN;
    *seconds = mtf_run_seconds(&device);
    return seconds->step;
}

static double memory_of(const MtfRunRow *row, const MtfSoftware *software) {
    MtfSoftware own = mtf_run_software(&row->run, software);
    return mtf_run_memory(&row->run, &own).total;
}

/* What tables say: the device's, or what the allocator reserved. */
static double reported_memory(const MtfRunRow *row, const MtfSoftware *software) {
    MtfSoftware own = mtf_run_software(&row->run, software);
    MtfRunMemory memory = mtf_run_memory(&row->run, &own);
    return own.kept.reserved ? memory.reserved : memory.total;
}

/* The worst error of predicted memory (tests/bench/judge.txt, 14 %): a run that was done is not called
 * impossible for less. */
#define MEMORY_DOUBT 1.15

/* A run whose table does not say what it recomputes did as much of that as it takes to fit. */
static void settle_recomputation(MtfRunRow *row, const MtfMachine *machine,
                                 const MtfSoftware *software) {
    static const char *const names[] = { "none", "selective", "full" };
    double most = MEMORY_DOUBT * (double)machine->memory_bytes;
    if (!row->redo_unsaid)
        return;
    row->run.redo = MTF_REDO_NONE;
    while (row->run.redo < MTF_REDO_FULL && memory_of(row, software) > most)
        row->run.redo++;
    g_string_append_printf(row->assumed, "%srecompute %s", row->assumed->len > 0 ? ", " : "",
                           names[row->run.redo]);
}

/* A run whose table does not say how its devices are joined has as many whole slices as hold them. */
static void settle_slices(MtfRunRow *row, const MtfMachine *machine) {
    int64_t slices = mtf_machine_slice_count(machine, row->run.devices);
    if (row->run.slices > 1 || slices < 2)
        return;
    row->run.slices = slices;
    g_string_append_printf(row->assumed, "%s%" G_GINT64_FORMAT " slices",
                           row->assumed->len > 0 ? ", " : "", slices);
}

/* A run is priced by its plan, where there is one. */
typedef struct {
    MtfVerdict *verdict;
    const MtfMachine *machine;
    const MtfSoftware *software;
} Planned;

static void predict(const Bench *bench, MtfVerdict *verdict, const MtfMachine *machine,
                    const MtfSoftware *software) {
    const MtfJudgeOptions *options = bench->options;
    const MtfMachine *other = NULL;
    GError *error = NULL;
    if (options->machine_for != NULL)
        other = options->machine_for(options->machine_for_data, verdict->row, machine);
    Planned planned = { verdict, other != NULL ? other : machine, software };
    verdict->software = g_strdup(software->name);
    settle_slices(verdict->row, machine);
    settle_recomputation(verdict->row, machine, software);
    verdict->step =
        mtf_predict_row(verdict->row, planned.machine, software, &verdict->seconds, &error);
    if (isnan(verdict->step)) {
        take_reason(verdict, error);
        return;
    }
    verdict->memory = reported_memory(verdict->row, software) / 0x1p30;
    g_array_append_val(bench->planned, planned);
}

static void predict_plan(int i, void *data) {
    const Planned *planned = &g_array_index((GArray *)data, Planned, i);
    const MtfRunRow *row = planned->verdict->row;
    MtfMachine placed = *planned->machine;
    MtfSoftware own = mtf_run_software(&row->run, planned->software);
    GError *error = NULL;
    set_node_bandwidth(row, &placed);
    placed.software = &own;
    MtfRunPlan plan;
    if (!mtf_run_plan(&row->run, &placed, &plan, &error)) {
        planned->verdict->no_plan = g_strdup(error->message);
        g_clear_error(&error);
        return;
    }
    double bytes = own.kept.reserved ? plan.memory.reserved : plan.memory.device;
    planned->verdict->step = plan.seconds;
    if (!isnan(bytes))
        planned->verdict->memory = bytes / 0x1p30;
}

/* A library without the machine is a reason, not a failure. */
static bool judge_row(Bench *bench, const char *words, MtfVerdict *verdict, GError **error) {
    MtfRunRow *row = verdict->row;
    const char *name = bench->options->machine != NULL ? bench->options->machine : row->machine;
    if (row->reason != NULL)
        return true;
    GError *missing = NULL;
    const MtfMachine *machine = find_machine(bench, name, &missing);
    if (machine == NULL && bench->options->machine != NULL) {
        g_propagate_error(error, missing);
        return false;
    }
    if (machine == NULL) {
        take_reason(verdict, missing);
        return true;
    }
    if (bench->options->machine != NULL) {
        g_free(row->machine);
        row->machine = g_strdup(machine->name);
    }
    const MtfSoftware *software = find_software(bench, bench->options->software, words, &missing);
    if (software == NULL && missing == NULL)
        software = find_software(bench, usual_software(row), words, &missing);
    if (software == NULL) {
        g_propagate_error(error, missing);
        return false;
    }
    predict(bench, verdict, machine, software);
    return true;
}

static void verdict_free(void *data) {
    MtfVerdict *verdict = (MtfVerdict *)data;
    mtf_run_row_free(verdict->row);
    g_free(verdict->software);
    g_free(verdict->no_plan);
    g_free(verdict);
}

static bool is_asked_for(const MtfJudgeOptions *options, const MtfRunRow *row) {
    bool routed = row->run.model.experts > 0 || row->run.ep > 1;
    if (options->grades != NULL && strchr(options->grades, row->grade) == NULL)
        return false;
    return options->models == NULL || routed == (strcmp(options->models, "moe") == 0);
}

GPtrArray *mtf_judge(const MtfRunTable *table, const MtfJudgeOptions *options, GError **error) {
    g_autoptr(GPtrArray) verdicts = g_ptr_array_new_with_free_func(verdict_free);
    g_autoptr(GHashTable) machines =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, machine_free);
    g_autoptr(GHashTable) software =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, software_free);
    g_autoptr(GArray) planned = g_array_new(FALSE, FALSE, sizeof(Planned));
    Bench bench = { options, machines, software, planned };
    for (guint i = 0; i < table->rows->len; i++) {
        MtfRunRow *row = mtf_run_row_read(table, i, error);
        if (row == NULL)
            return NULL;
        if (!is_asked_for(options, row)) {
            mtf_run_row_free(row);
            continue;
        }
        MtfVerdict *verdict = g_new0(MtfVerdict, 1);
        verdict->row = row;
        g_ptr_array_add(verdicts, verdict);
        if (!judge_row(&bench, mtf_run_table_cell(table, i, "software"), verdict, error))
            return NULL;
    }
    mtf_in_parallel((int)planned->len, predict_plan, planned);
    return g_steal_pointer(&verdicts);
}

/* ---- Figures over rows ------------------------------------------------------------------------- */

const char *mtf_verdict_source(const MtfVerdict *verdict) {
    return verdict->row->source;
}

const char *mtf_verdict_machine(const MtfVerdict *verdict) {
    return verdict->row->machine != NULL ? verdict->row->machine : verdict->row->hardware;
}

const char *mtf_verdict_software(const MtfVerdict *verdict) {
    return verdict->software != NULL ? verdict->software : "none";
}

double mtf_verdict_error(const MtfVerdict *verdict) {
    return verdict->row->reason != NULL ? NAN : verdict->step / verdict->row->measured - 1;
}

static double tokens_of(const MtfVerdict *verdict) {
    return verdict->row->run.batch * (double)verdict->row->run.model.length;
}

static char *group_key(const MtfVerdict *verdict) {
    const MtfModelSizes *model = &verdict->row->run.model;
    return g_strdup_printf("%s|%s|%s|%" G_GINT64_FORMAT "|%" G_GINT64_FORMAT "x%" G_GINT64_FORMAT
                           "x%" G_GINT64_FORMAT,
                           verdict->row->source, verdict->row->hardware, verdict->row->model,
                           verdict->row->run.devices, model->layers, model->width, model->length);
}

static gboolean has_key(const void *group, const void *key) {
    return strcmp(((const MtfLayoutGroup *)group)->key, (const char *)key) == 0;
}

static MtfLayoutGroup *group_of(GPtrArray *groups, const MtfVerdict *verdict) {
    g_autofree char *key = group_key(verdict);
    guint found;
    if (g_ptr_array_find_with_equal_func(groups, key, has_key, &found))
        return (MtfLayoutGroup *)groups->pdata[found];
    MtfLayoutGroup *group = mtf_layout_group_new(key);
    group->source = verdict->row->source;
    group->model = verdict->row->model;
    group->devices = verdict->row->run.devices;
    g_ptr_array_add(groups, group);
    return group;
}

/* Whether the row is one that was expressed and has the label; NULL for any. */
static bool is_counted(const MtfVerdict *verdict, MtfRowLabel of, const char *label) {
    return verdict->row->reason == NULL && (label == NULL || strcmp(of(verdict), label) == 0);
}

GPtrArray *mtf_verdict_groups(const GPtrArray *verdicts, MtfRowLabel of, const char *label) {
    GPtrArray *groups = g_ptr_array_new_with_free_func(mtf_layout_group_free);
    for (guint i = 0; i < verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)verdicts->pdata[i];
        if (!is_counted(verdict, of, label))
            continue;
        double tokens = tokens_of(verdict);
        MtfTimedLayout layout = { verdict->step / tokens, verdict->row->measured / tokens };
        g_array_append_val(group_of(groups, verdict)->layouts, layout);
    }
    return groups;
}

static void add_error(const MtfVerdict *verdict, MtfJudgement *judgement) {
    double error = mtf_verdict_error(verdict);
    judgement->expressed++;
    judgement->mean_error += fabs(error);
    judgement->bias += error;
    judgement->worst_error = fmax(judgement->worst_error, fabs(error));
    if (verdict->row->measured_memory > 0) {
        judgement->memory_rows++;
        judgement->memory_error += fabs(verdict->memory / verdict->row->measured_memory - 1);
    }
}

MtfJudgement mtf_judgement(const GPtrArray *verdicts, MtfRowLabel of, const char *label) {
    MtfJudgement judgement = { 0 };
    for (guint i = 0; i < verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)verdicts->pdata[i];
        if (label != NULL && strcmp(of(verdict), label) != 0)
            continue;
        judgement.rows++;
        if (verdict->row->reason == NULL)
            add_error(verdict, &judgement);
    }
    if (judgement.expressed == 0)
        judgement.mean_error = judgement.worst_error = judgement.bias = NAN;
    judgement.mean_error /= MAX(judgement.expressed, 1);
    judgement.bias /= MAX(judgement.expressed, 1);
    judgement.memory_error /= MAX(judgement.memory_rows, 1);
    g_autoptr(GPtrArray) groups = mtf_verdict_groups(verdicts, of, label);
    judgement.order = mtf_layout_groups_mean(groups, &judgement.groups);
    return judgement;
}
