// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan compare: plans side by side, by what they say of themselves. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/report_child.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/program/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LETTERS 26

typedef enum { UNIT_SECONDS, UNIT_BYTES, UNIT_NANOSECONDS, UNIT_PERCENT, UNIT_TIMES } Unit;

/* One plan, NaN where it does not say. */
typedef struct {
    const char *path;
    MtfPlan *plan;
    double values[16]; /* as `rows` has them */
} Column;

static const struct {
    const char *name; /* for people */
    const char *key;  /* in JSON; of nanoseconds without the unit */
    Unit unit;
} rows[] = {
    { "step", "step_seconds", UNIT_SECONDS },
    { "against A", "step_ratio", UNIT_TIMES },
    { "compute", "compute_seconds", UNIT_SECONDS },
    { "communication", "communication_seconds", UNIT_SECONDS },
    { "payload", "payload_bytes", UNIT_BYTES },
    { "on links", "link_bytes", UNIT_BYTES },
    { "peak memory", "peak_memory_bytes", UNIT_BYTES },
    { "memory limit", "memory_limit", UNIT_BYTES },
    { "cost", "cost", UNIT_NANOSECONDS },
    { "bound", "bound", UNIT_NANOSECONDS },
    { "gap", "gap", UNIT_PERCENT },
};

/* ---- Reading ------------------------------------------------------------------------------- */

static double number_of(const cJSON *tree, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static double sum_over_collectives(const cJSON *predicted, const char *key) {
    const cJSON *row, *list = cJSON_GetObjectItemCaseSensitive(predicted, "collectives");
    double sum = cJSON_IsArray(list) ? 0 : NAN;
    cJSON_ArrayForEach(row, list) {
        sum += number_of(row, key);
    }
    return sum;
}

/* A plan that was not searched has no bound, and so no gap. */
static bool has_proof(const MtfPlan *plan) {
    return number_of(plan->search, "bound") > 0;
}

static double value_of(const MtfPlan *plan, const char *key) {
    if ((strcmp(key, "bound") == 0 || strcmp(key, "gap") == 0) && !has_proof(plan))
        return NAN;
    if (strcmp(key, "payload_bytes") == 0)
        return sum_over_collectives(plan->predicted, "bytes");
    if (strcmp(key, "link_bytes") == 0)
        return sum_over_collectives(plan->predicted, "link_bytes");
    double predicted = number_of(plan->predicted, key);
    return isnan(predicted) ? number_of(plan->search, key) : predicted;
}

static bool read_column(Column *column, const char *path, const Column *first, GError **error) {
    column->path = path;
    column->plan = mtf_plan_load(path, error);
    if (column->plan == NULL)
        return false;
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++)
        column->values[r] = rows[r].unit == UNIT_TIMES ? column->values[0] / first->values[0]
                                                       : value_of(column->plan, rows[r].key);
    return true;
}

static const char *machine_name(const MtfPlan *plan) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(plan->machine, "name");
    return cJSON_IsString(name) ? name->valuestring : "no machine";
}

/* ---- For people ---------------------------------------------------------------------------- */

static char *format_value(double value, Unit unit) {
    if (!isfinite(value))
        return g_strdup("-");
    switch (unit) {
    case UNIT_SECONDS:
        return mtf_seconds_format(value);
    case UNIT_NANOSECONDS:
        return mtf_seconds_format(value / 1e9);
    case UNIT_BYTES:
        return mtf_bytes_format(value);
    case UNIT_PERCENT:
        return g_strdup_printf("%.3g %%", 100 * value);
    case UNIT_TIMES:
        break;
    }
    return g_strdup_printf("%.3f", value);
}

static char *column_name(int column) {
    return column < LETTERS ? g_strdup_printf("%c", 'A' + column)
                            : g_strdup_printf("%c%d", 'A' + column % LETTERS, column / LETTERS);
}

static void print_legend(const Column *columns, int n) {
    for (int c = 0; c < n; c++) {
        const MtfPlan *plan = columns[c].plan;
        g_autofree char *name = column_name(c);
        g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
        g_autofree char *step = mtf_plan_step_format(plan);
        printf("%-3s %s\n    %s on %s, mesh %s, %s, layout %s\n", name, columns[c].path,
               plan->graph->name, machine_name(plan), *mesh != '\0' ? mesh : "of one processor",
               step,
               plan->layout->rules == NULL    ? "free"
               : *plan->layout->rules == '\0' ? "replicated"
                                              : plan->layout->rules);
    }
}

static void print_table(const Column *columns, int n) {
    print_legend(columns, n);
    printf("\n%-14s", "");
    for (int c = 0; c < n; c++) {
        g_autofree char *name = column_name(c);
        printf(" %12s", name);
    }
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        printf("\n%-14s", rows[r].name);
        for (int c = 0; c < n; c++) {
            g_autofree char *text = format_value(columns[c].values[r], rows[r].unit);
            printf(" %12s", text);
        }
    }
    putchar('\n');
}

/* ---- For machines -------------------------------------------------------------------------- */

static void print_json(const Column *columns, int n) {
    cJSON *list = cJSON_CreateArray();
    for (int c = 0; c < n; c++) {
        const MtfPlan *plan = columns[c].plan;
        g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "plan", columns[c].path);
        cJSON_AddStringToObject(object, "graph", plan->graph->name);
        cJSON_AddStringToObject(object, "machine", machine_name(plan));
        cJSON_AddStringToObject(object, "mesh", mesh);
        if (plan->layout->rules != NULL)
            cJSON_AddStringToObject(object, "layout", plan->layout->rules);
        else
            cJSON_AddNullToObject(object, "layout");
        for (gsize r = 0; r < G_N_ELEMENTS(rows); r++)
            mtf_json_add_number(object, rows[r].key, columns[c].values[r]);
        cJSON_AddItemToArray(list, object);
    }
    mtf_json_say(list);
}

/* Plans of different models or batches are no alternatives to one another: warns on standard error. */
static void warn_of_other_models(const Column *columns, int n) {
    for (int c = 1; c < n; c++) {
        const MtfGraph *first = columns[0].plan->graph, *other = columns[c].plan->graph;
        int64_t ours = mtf_graph_parameters(first), its = mtf_graph_parameters(other);
        double items = number_of(columns[0].plan->predicted, "items_per_step");
        double its_items = number_of(columns[c].plan->predicted, "items_per_step");
        const char *what = ours != its || strcmp(first->name, other->name) != 0       ? "models"
                           : items != its_items && !isnan(items) && !isnan(its_items) ? "batches"
                                                                                      : NULL;
        if (what != NULL)
            fprintf(stderr,
                    "meshtf-plan compare: warning: %s and %s are plans of different %s (%s of "
                    "%" PRId64 " parameters, %s of %" PRId64 "): their steps do different work\n",
                    columns[0].path, columns[c].path, what, first->name, ours, other->name, its);
    }
}

/* Prints the plans; the figures stand in the plans themselves. */
static bool print_plans(char **paths, int n, bool json, GError **error) {
    g_autofree Column *columns = g_new0(Column, n);
    bool good = true;
    for (int c = 0; c < n && good; c++)
        good = read_column(&columns[c], paths[c], &columns[0], error);
    if (good) {
        warn_of_other_models(columns, n);
        (json ? print_json : print_table)(columns, n);
    }
    for (int c = 0; c < n; c++)
        mtf_plan_free(columns[c].plan);
    return good;
}

/* The page is meshtf-report's work; its words and its exit status are passed on. */
static int write_page(char **paths, int n, const char *folder, GError **error) {
    g_autofree const char **arguments = g_new0(const char *, n + 5);
    const char *const options[] = { "--compare", "-o", folder, "--" };
    memcpy(arguments, options, sizeof options);
    for (int i = 0; i < n; i++)
        arguments[G_N_ELEMENTS(options) + (gsize)i] = paths[i];
    return mtf_report_run(arguments, error);
}

int mtf_command_compare(int argc, char **argv) {
    gboolean json = FALSE;
    g_autofree char *folder = NULL;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON", NULL },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &folder, "Write a page into this folder, too",
          "DIR" },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    int status = 0;
    if (!mtf_command_line_parse(&argc, &argv, entries, "PLAN PLAN…",
                                "Sets plans side by side; ratios are to the first.\n\n"
                                "  meshtf-plan compare free.json rules.json -o out",
                                1, G_MAXINT, &error))
        return mtf_command_line_fail("meshtf-plan compare", error);
    if (print_plans(argv + 1, argc - 1, json, &error) && folder != NULL)
        status = write_page(argv + 1, argc - 1, folder, &error);
    return error != NULL ? mtf_command_line_fail("meshtf-plan compare", error) : status;
}
