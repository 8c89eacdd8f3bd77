// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan compare: plans side by side, by what they say of themselves. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/report_child.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/plan_file/pipeline_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LETTERS 26
/* Those of `rows` that plans of one mesh have. */
#define ROWS_OF_MESHES 11

typedef enum { UNIT_SECONDS, UNIT_BYTES, UNIT_NANOSECONDS, UNIT_PERCENT, UNIT_TIMES } Unit;

/* One plan, NaN where it does not say. */
typedef struct {
    const char *path;
    MtfPipelinePlan *pipeline; /* NULL: of one mesh */
    MtfPlan *plan;             /* of a pipeline its first stage's, borrowed */
    double values[16];         /* as `rows` has them */
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
    /* Of pipelines alone: */
    { "bubble", "bubble", UNIT_PERCENT },
    { "between stages", "sent_bytes", UNIT_BYTES },
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

static double value_of_pipeline(const MtfPipelinePlan *pipeline, const char *key) {
    if (strcmp(key, "peak_memory_bytes") == 0)
        return mtf_pipeline_peak_bytes(pipeline);
    if (strcmp(key, "sent_bytes") == 0)
        return mtf_pipeline_sent_bytes(pipeline);
    if (strcmp(key, "memory_limit") == 0)
        return value_of(mtf_pipeline_stage(pipeline, 0), key);
    return number_of(pipeline->predicted, key);
}

static bool load_column(Column *column, GError **error) {
    if (!mtf_pipeline_plan_is(column->path)) {
        column->plan = mtf_plan_load(column->path, error);
        return column->plan != NULL;
    }
    column->pipeline = mtf_pipeline_plan_load(column->path, error);
    if (column->pipeline != NULL)
        column->plan = mtf_pipeline_stage(column->pipeline, 0);
    return column->pipeline != NULL;
}

static bool read_column(Column *column, const char *path, const Column *first, GError **error) {
    column->path = path;
    if (!load_column(column, error))
        return false;
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++)
        column->values[r] = rows[r].unit == UNIT_TIMES ? column->values[0] / first->values[0]
                            : column->pipeline != NULL
                                ? value_of_pipeline(column->pipeline, rows[r].key)
                                : value_of(column->plan, rows[r].key);
    return true;
}

static void column_clear(Column *column) {
    if (column->pipeline == NULL)
        mtf_plan_free(column->plan);
    mtf_pipeline_plan_free(column->pipeline);
}

static const MtfGraph *graph_of(const Column *column) {
    return column->pipeline != NULL ? column->pipeline->graph : column->plan->graph;
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

/* How a plan runs its model: "mesh rows:2, 4 micro-batches …, layout free". Free with g_free. */
static char *format_way(const Column *column) {
    const MtfPipelinePlan *pipeline = column->pipeline;
    const MtfPlan *plan = column->plan;
    if (pipeline != NULL)
        return g_strdup_printf("%d stages on %d devices, schedule %s, %d micro-batch%s",
                               (int)pipeline->stages->len, mtf_pipeline_devices(pipeline),
                               pipeline->schedule, pipeline->order->microbatches,
                               pipeline->order->microbatches == 1 ? "" : "es");
    g_autofree char *mesh = mtf_mesh_title(&plan->layout->mesh);
    g_autofree char *step = mtf_plan_step_format(plan);
    const char *rules = plan->layout->rules;
    return g_strdup_printf("mesh %s, %s, layout %s", mesh, step,
                           rules == NULL    ? "free"
                           : *rules == '\0' ? "replicated"
                                            : rules);
}

static void print_legend(const Column *columns, int n) {
    for (int c = 0; c < n; c++) {
        g_autofree char *name = column_name(c);
        g_autofree char *way = format_way(&columns[c]);
        printf("%-3s %s\n    %s on %s, %s\n", name, columns[c].path, graph_of(&columns[c])->name,
               machine_name(columns[c].plan), way);
    }
}

/* Whether a plan says something of the row; rows of meshes are shown beside any. */
static bool is_shown(const Column *columns, int n, gsize row) {
    bool shown = false;
    for (int c = 0; c < n; c++)
        shown |= isfinite(columns[c].values[row]) ||
                 (columns[c].pipeline == NULL && row < ROWS_OF_MESHES);
    return shown;
}

static void print_table(const Column *columns, int n) {
    print_legend(columns, n);
    printf("\n%-14s", "");
    for (int c = 0; c < n; c++) {
        g_autofree char *name = column_name(c);
        printf(" %12s", name);
    }
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        if (!is_shown(columns, n, r))
            continue;
        printf("\n%-14s", rows[r].name);
        for (int c = 0; c < n; c++) {
            g_autofree char *text = format_value(columns[c].values[r], rows[r].unit);
            printf(" %12s", text);
        }
    }
    putchar('\n');
}

/* ---- For machines -------------------------------------------------------------------------- */

static void add_way(cJSON *object, const Column *column) {
    const MtfPipelinePlan *pipeline = column->pipeline;
    const MtfLayout *layout = column->plan->layout;
    if (pipeline != NULL) {
        mtf_json_add_integer(object, "stages", (int)pipeline->stages->len);
        mtf_json_add_integer(object, "devices", mtf_pipeline_devices(pipeline));
        cJSON_AddStringToObject(object, "schedule", pipeline->schedule);
        mtf_json_add_integer(object, "microbatches", pipeline->order->microbatches);
        return;
    }
    g_autofree char *mesh = mtf_mesh_format(&layout->mesh);
    cJSON_AddStringToObject(object, "mesh", mesh);
    if (layout->rules != NULL)
        cJSON_AddStringToObject(object, "layout", layout->rules);
    else
        cJSON_AddNullToObject(object, "layout");
}

static void print_json(const Column *columns, int n) {
    cJSON *list = cJSON_CreateArray();
    for (int c = 0; c < n; c++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "plan", columns[c].path);
        cJSON_AddStringToObject(object, "graph", graph_of(&columns[c])->name);
        cJSON_AddStringToObject(object, "machine", machine_name(columns[c].plan));
        add_way(object, &columns[c]);
        for (gsize r = 0; r < G_N_ELEMENTS(rows); r++)
            if (r < ROWS_OF_MESHES || columns[c].pipeline != NULL)
                mtf_json_add_number(object, rows[r].key, columns[c].values[r]);
        cJSON_AddItemToArray(list, object);
    }
    mtf_json_say(list);
}

/* Plans of different models or batches are no alternatives to one another: warns on standard error. */
static void warn_of_other_models(const Column *columns, int n) {
    for (int c = 1; c < n; c++) {
        const MtfGraph *first = graph_of(&columns[0]), *other = graph_of(&columns[c]);
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
        column_clear(&columns[c]);
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
    if (!mtf_command_line_parse(
            &argc, &argv, entries, "PLAN PLAN…",
            "Sets plans side by side, of one mesh or of stages; ratios are to the first.\n\n"
            "  meshtf-plan compare free.json rules.json -o out",
            1, G_MAXINT, &error))
        return mtf_command_line_fail("meshtf-plan compare", error);
    if (print_plans(argv + 1, argc - 1, json, &error) && folder != NULL)
        status = write_page(argv + 1, argc - 1, folder, &error);
    return error != NULL ? mtf_command_line_fail("meshtf-plan compare", error) : status;
}
