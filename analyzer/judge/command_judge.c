// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan judge RUNS.tsv: predicted beside measured for a table of training runs. */
#include "analyzer/judge/fitted_machines.h"
#include "analyzer/judge/judge_commands.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *machine, *software, *grades, *fit_on, *leave_out, *models;
    gboolean json;
} Options;

/* ---- JSON -------------------------------------------------------------------------------------- */

static void add_text_or_null(cJSON *object, const char *key, const char *text) {
    if (text != NULL)
        cJSON_AddStringToObject(object, key, text);
    else
        cJSON_AddNullToObject(object, key);
}

static cJSON *seconds_to_json(const MtfRunSeconds *seconds) {
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, "compute", seconds->compute);
    mtf_json_add_number(object, "tensor", seconds->tensor);
    mtf_json_add_number(object, "context", seconds->context);
    mtf_json_add_number(object, "expert", seconds->expert);
    mtf_json_add_number(object, "pipeline", seconds->pipeline);
    mtf_json_add_number(object, "data", seconds->data);
    mtf_json_add_number(object, "optimizer", seconds->optimizer);
    mtf_json_add_number(object, "host", seconds->host);
    return object;
}

static void add_memory(cJSON *object, const MtfVerdict *verdict) {
    double measured = verdict->row->measured_memory;
    if (verdict->row->reason != NULL)
        return;
    mtf_json_add_number(object, "predicted_GiB", verdict->memory);
    if (measured <= 0)
        return;
    mtf_json_add_number(object, "measured_GiB", measured);
    mtf_json_add_number(object, "memory_error", verdict->memory / measured - 1);
}

static cJSON *verdict_to_json(const MtfVerdict *verdict) {
    const MtfRunRow *row = verdict->row;
    bool expressed = row->reason == NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "id", row->id);
    mtf_json_add_number(object, "predicted", expressed ? verdict->step : NAN);
    mtf_json_add_number(object, "measured", row->measured > 0 ? row->measured : NAN);
    mtf_json_add_number(object, "error", mtf_verdict_error(verdict));
    add_text_or_null(object, "reason", row->reason);
    add_text_or_null(object, "machine", row->machine);
    add_text_or_null(object, "software", verdict->software);
    cJSON_AddStringToObject(object, "assumed", row->assumed->str);
    if (expressed) {
        mtf_json_add_number(object, "closed_form", verdict->seconds.step);
        add_text_or_null(object, "no_plan", verdict->no_plan);
        cJSON_AddItemToObject(object, "seconds", seconds_to_json(&verdict->seconds));
    }
    add_memory(object, verdict);
    return object;
}

static void add_order(cJSON *object, const MtfLayoutOrder *order) {
    mtf_json_add_number(object, "rank_correlation", order->rank);
    mtf_json_add_number(object, "rank_remeasured", order->remeasured);
    mtf_json_add_number(object, "regret", order->regret);
}

static cJSON *judgement_to_json(const MtfJudgement *judgement) {
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_integer(object, "rows", judgement->rows);
    mtf_json_add_integer(object, "expressed", judgement->expressed);
    mtf_json_add_number(object, "mean_error", judgement->mean_error);
    mtf_json_add_number(object, "worst_error", judgement->worst_error);
    mtf_json_add_number(object, "bias", judgement->bias);
    add_order(object, &judgement->order);
    mtf_json_add_integer(object, "groups", judgement->groups);
    mtf_json_add_integer(object, "memory_rows", judgement->memory_rows);
    mtf_json_add_number(object, "memory_mean_error",
                        judgement->memory_rows > 0 ? judgement->memory_error : NAN);
    return object;
}

/* ---- By source, machine and software ------------------------------------------------------------ */

static const struct {
    const char *key;
    MtfRowLabel of;
} breakdowns[] = { { "by_source", mtf_verdict_source },
                   { "by_machine", mtf_verdict_machine },
                   { "by_software", mtf_verdict_software } };

/* The labels that verdicts have, in the order in which they first come. */
static GPtrArray *labels_of(const GPtrArray *verdicts, MtfRowLabel of) {
    GPtrArray *labels = g_ptr_array_new();
    for (guint i = 0; i < verdicts->len; i++) {
        const char *label = of((const MtfVerdict *)verdicts->pdata[i]);
        if (!g_ptr_array_find_with_equal_func(labels, label, g_str_equal, NULL))
            g_ptr_array_add(labels, (void *)label);
    }
    return labels;
}

static void add_breakdown(cJSON *summary, const GPtrArray *verdicts, gsize which) {
    g_autoptr(GPtrArray) labels = labels_of(verdicts, breakdowns[which].of);
    cJSON *object = cJSON_AddObjectToObject(summary, breakdowns[which].key);
    for (guint i = 0; i < labels->len; i++) {
        const char *label = (const char *)labels->pdata[i];
        MtfJudgement judgement = mtf_judgement(verdicts, breakdowns[which].of, label);
        cJSON_AddItemToObject(object, label, judgement_to_json(&judgement));
    }
}

/* The groups of layouts of one model. */
static void add_layouts(cJSON *summary, const GPtrArray *verdicts) {
    g_autoptr(GPtrArray) groups = mtf_verdict_groups(verdicts, NULL, NULL);
    cJSON *list = cJSON_AddArrayToObject(summary, "layouts");
    for (guint i = 0; i < groups->len; i++) {
        const MtfLayoutGroup *group = (const MtfLayoutGroup *)groups->pdata[i];
        if (!mtf_layout_group_counts(group))
            continue;
        MtfLayoutOrder order = mtf_layout_group_order(group);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "source", group->source);
        cJSON_AddStringToObject(object, "model", group->model);
        mtf_json_add_integer(object, "devices", group->devices);
        mtf_json_add_integer(object, "rows", group->layouts->len);
        add_order(object, &order);
        cJSON_AddItemToArray(list, object);
    }
}

static void print_json(const GPtrArray *verdicts) {
    cJSON *root = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (guint i = 0; i < verdicts->len; i++)
        cJSON_AddItemToArray(rows, verdict_to_json((const MtfVerdict *)verdicts->pdata[i]));
    MtfJudgement all = mtf_judgement(verdicts, NULL, NULL);
    cJSON *summary = judgement_to_json(&all);
    for (gsize i = 0; i < G_N_ELEMENTS(breakdowns); i++)
        add_breakdown(summary, verdicts, i);
    add_layouts(summary, verdicts);
    cJSON_AddItemToObject(root, "summary", summary);
    mtf_json_say(root);
}

/* ---- Lines ------------------------------------------------------------------------------------- */

static void print_verdict(const MtfVerdict *verdict) {
    const MtfRunRow *row = verdict->row;
    if (row->reason != NULL) {
        g_autofree char *measured =
            row->measured > 0 ? g_strdup_printf("%.4g", row->measured) : g_strdup("-");
        printf("%-44s %10s %10s  %s\n", row->id, "-", measured, row->reason);
        return;
    }
    printf("%-44s %10.4g %10.4g %+7.1f %%", row->id, verdict->step, row->measured,
           100 * mtf_verdict_error(verdict));
    if (row->measured_memory > 0)
        printf("  %6.1f GiB %6.1f %+7.1f %%", verdict->memory, row->measured_memory,
               100 * (verdict->memory / row->measured_memory - 1));
    if (verdict->no_plan != NULL)
        printf("  in closed form: %s", verdict->no_plan);
    putchar('\n');
}

static void print_share(const char *name, double share) {
    if (isnan(share))
        printf(", %s -", name);
    else
        printf(", %s %.1f %%", name, 100 * share);
}

static void print_order(const MtfLayoutOrder *order) {
    if (isnan(order->rank))
        fputs(", rank correlation -", stdout);
    else
        printf(", rank correlation %.3f", order->rank);
    print_share("regret", order->regret);
}

static void print_judgement(const MtfJudgement *judgement) {
    printf("rows %d, expressed %d", judgement->rows, judgement->expressed);
    print_share("mean error", judgement->mean_error);
    print_share("worst error", judgement->worst_error);
    print_order(&judgement->order);
    if (judgement->memory_rows > 0)
        print_share("memory error", judgement->memory_error);
    if (judgement->groups > 0)
        printf(", rank correlation of a second measurement %.2f", judgement->order.remeasured);
    putchar('\n');
}

static void print_layouts(const GPtrArray *verdicts) {
    g_autoptr(GPtrArray) groups = mtf_verdict_groups(verdicts, NULL, NULL);
    for (guint i = 0; i < groups->len; i++) {
        const MtfLayoutGroup *group = (const MtfLayoutGroup *)groups->pdata[i];
        if (!mtf_layout_group_counts(group))
            continue;
        MtfLayoutOrder order = mtf_layout_group_order(group);
        printf("layouts of %s on %" PRId64 ", %.40s: rows %u", group->model, group->devices,
               group->source, group->layouts->len);
        print_order(&order);
        printf(", rank correlation of a second measurement %.2f\n", order.remeasured);
    }
}

/* "kv_heads" of "kv_heads 16", "slices" of "2 slices"; to be freed. */
static char *assumed_name(const char *assumption) {
    g_auto(GStrv) words = g_strsplit(assumption, " ", -1);
    bool counts = g_ascii_isdigit(words[0][0]) && words[1] != NULL;
    return g_strdup(words[counts ? 1 : 0]);
}

static void count_assumed(const MtfRunRow *row, GPtrArray *names, GArray *rows) {
    g_auto(GStrv) list = g_strsplit(row->assumed->str, ", ", -1);
    for (char **assumption = list; *assumption != NULL; assumption++) {
        char *name = assumed_name(*assumption);
        guint i;
        if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, &i)) {
            g_array_index(rows, int, i)++;
            g_free(name);
            continue;
        }
        int first = 1;
        g_ptr_array_add(names, name);
        g_array_append_val(rows, first);
    }
}

/* What was taken as is usual, and in how many of the rows that were priced. */
static void print_assumed(const GPtrArray *verdicts) {
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(int));
    for (guint i = 0; i < verdicts->len; i++) {
        const MtfRunRow *row = ((const MtfVerdict *)verdicts->pdata[i])->row;
        if (row->reason == NULL && row->assumed->len > 0)
            count_assumed(row, names, rows);
    }
    for (guint i = 0; i < names->len; i++)
        printf("%s%s in %d", i == 0 ? "not said, and taken as is usual (--json tells how): " : ", ",
               (const char *)names->pdata[i], g_array_index(rows, int, i));
    if (names->len > 0)
        putchar('\n');
}

static void print_lines(const GPtrArray *verdicts) {
    printf("%-44s %10s %10s %9s\n", "id", "predicted", "measured", "error");
    for (guint i = 0; i < verdicts->len; i++)
        print_verdict((const MtfVerdict *)verdicts->pdata[i]);
    for (gsize which = 0; which < G_N_ELEMENTS(breakdowns); which++) {
        g_autoptr(GPtrArray) labels = labels_of(verdicts, breakdowns[which].of);
        for (guint i = 0; i < labels->len && labels->len > 1; i++) {
            const char *label = (const char *)labels->pdata[i];
            MtfJudgement judgement = mtf_judgement(verdicts, breakdowns[which].of, label);
            printf("%.60s: ", label);
            print_judgement(&judgement);
        }
    }
    print_layouts(verdicts);
    print_assumed(verdicts);
    MtfJudgement all = mtf_judgement(verdicts, NULL, NULL);
    print_judgement(&all);
}

static bool read_leave_out(const char *text, MtfLeaveOut *leave, GError **error) {
    static const char *const names[] = { "nothing", "source", "model" };
    *leave = MTF_LEAVE_NOTHING;
    for (int i = 0; i < (int)G_N_ELEMENTS(names); i++)
        if (text == NULL || strcmp(text, names[i]) == 0) {
            *leave = text == NULL ? MTF_LEAVE_NOTHING : (MtfLeaveOut)i;
            return true;
        }
    return mtf_input_error(error, "--leave-out \"%s\" is none of nothing, source and model", text);
}

/* Judges with machines fitted to another table, or the same: to runs of all models. */
static GPtrArray *judge_fitted(const Options *options, const MtfRunTable *table,
                               MtfJudgeOptions judge, GError **error) {
    MtfLeaveOut leave;
    if (!read_leave_out(options->leave_out, &leave, error))
        return NULL;
    MtfJudgeOptions all = judge;
    all.models = NULL;
    g_autoptr(MtfRunTable) runs = mtf_run_table_load(options->fit_on, mtf_run_columns, error);
    g_autoptr(GPtrArray) verdicts = runs != NULL ? mtf_judge(runs, &all, error) : NULL;
    if (verdicts == NULL)
        return NULL;
    g_autoptr(MtfFittedMachines) fitted = mtf_fitted_machines_new(verdicts, leave);
    judge.machine_for = mtf_fitted_machine;
    judge.machine_for_data = fitted;
    return mtf_judge(table, &judge, error);
}

static bool run(const Options *options, const char *path, GError **error) {
    g_autoptr(MtfRunTable) table = mtf_run_table_load(path, mtf_run_columns, error);
    if (table == NULL)
        return false;
    MtfJudgeOptions judge = { .machine = options->machine,
                              .software = options->software,
                              .grades = options->grades,
                              .models = options->models };
    if (options->models != NULL && strcmp(options->models, "dense") != 0 &&
        strcmp(options->models, "moe") != 0)
        return mtf_input_error(error, "--models \"%s\" is neither dense nor moe", options->models);
    if (options->fit_on == NULL && options->leave_out != NULL)
        return mtf_input_error(error, "--leave-out needs --fit-on");
    g_autoptr(GPtrArray) verdicts = options->fit_on != NULL
                                        ? judge_fitted(options, table, judge, error)
                                        : mtf_judge(table, &judge, error);
    if (verdicts == NULL)
        return false;
    if (table->rows->len == 0)
        return mtf_input_error(error, "%s: the table has columns and no rows", path);
    if (verdicts->len == 0)
        return mtf_input_error(error, "%s: no row is left to judge (--grades and --models choose)",
                               path);
    (options->json ? print_json : print_lines)(verdicts);
    return true;
}

int mtf_command_judge(int argc, char **argv) {
    Options o = { .machine = NULL };
    const GOptionEntry entries[] = {
        { "machine", 0, 0, G_OPTION_ARG_STRING, &o.machine,
          "Predict all rows for this machine, whatever they name", "NAME|FILE" },
        { "software", 0, 0, G_OPTION_ARG_STRING, &o.software,
          "Price all rows for this profile, whatever they name", "NAME|FILE" },
        { "grades", 0, 0, G_OPTION_ARG_STRING, &o.grades,
          "Only rows whose notes begin with \"trust\" and one of these letters", "AB" },
        { "models", 0, 0, G_OPTION_ARG_STRING, &o.models,
          "Only dense models, or only those with experts", "dense|moe" },
        { "fit-on", 0, 0, G_OPTION_ARG_FILENAME, &o.fit_on,
          "Fit the machines to the runs of this table first", "TABLE" },
        { "leave-out", 0, 0, G_OPTION_ARG_STRING, &o.leave_out,
          "Predict each row by a fit without the rows of its source (or model)", "source|model" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(
                    &argc, &argv, entries, "RUNS.tsv",
                    "Prints predicted beside measured seconds of a step for every training run of "
                    "a table, and how far they are from each other.",
                    1, 1, &error) &&
                run(&o, argv[1], &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan judge", error);
}
