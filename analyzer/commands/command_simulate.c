// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan simulate PLAN: simulates a plan's collectives link by link beside their formulas.
 * meshtf-plan simulate --random N: simulates N random collectives and tables how far the formulas are
 * from the simulations, algorithm by algorithm. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/plan_simulation.h"
#include "analyzer/planner/planning.h"
#include "cost/simulate/collective_trial.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/quantile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Trials of one collective and algorithm. */
typedef struct {
    MtfCollectiveKind kind;
    const char *algorithm; /* static */
    bool switched;         /* on levels, not on a torus */
    MtfSimulationClaim claim;
    GArray *ratios; /* of double: simulated / formula */
    double worst;   /* the ratio farthest from 1 */
    char *worst_text;
} Row;

static void row_free(void *data) {
    Row *row = data;
    g_array_unref(row->ratios);
    g_free(row->worst_text);
    g_free(row);
}

static int compare_rows(const void *a, const void *b) {
    const Row *x = *(Row *const *)a, *y = *(Row *const *)b;
    if (x->switched != y->switched)
        return x->switched ? 1 : -1;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    int order = strcmp(x->algorithm, y->algorithm);
    return order != 0 ? order : (int)x->claim - (int)y->claim;
}

static Row *row_of(GPtrArray *rows, const MtfCollectiveTrial *trial) {
    for (guint i = 0; i < rows->len; i++) {
        Row *row = rows->pdata[i];
        if (row->kind == trial->collective.kind && row->algorithm == trial->algorithm &&
            row->switched == trial->network.switched && row->claim == trial->claim)
            return row;
    }
    Row *row = g_new0(Row, 1);
    row->kind = trial->collective.kind;
    row->algorithm = trial->algorithm;
    row->switched = trial->network.switched;
    row->claim = trial->claim;
    row->ratios = g_array_new(FALSE, FALSE, sizeof(double));
    row->worst = 1;
    g_ptr_array_add(rows, row);
    return row;
}

static void add_trial(GPtrArray *rows, const MtfCollectiveTrial *trial) {
    Row *row = row_of(rows, trial);
    double ratio = trial->simulated / trial->formula;
    g_array_append_val(row->ratios, ratio);
    if (row->worst_text != NULL && fabs(log(ratio)) <= fabs(log(row->worst)))
        return;
    g_free(row->worst_text);
    row->worst = ratio;
    row->worst_text = mtf_collective_trial_text(trial);
}

static double median_of(GArray *ratios) {
    return mtf_median((double *)(void *)ratios->data, ratios->len);
}

static GPtrArray *run_trials(int64_t count, int64_t seed) {
    GPtrArray *rows = g_ptr_array_new_with_free_func(row_free);
    for (int64_t i = 0; i < count; i++) {
        MtfCollectiveTrial trial = mtf_collective_trial((uint64_t)seed, (uint64_t)i);
        add_trial(rows, &trial);
    }
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

/* All trials of one claim as one row. */
static void print_total(const GPtrArray *rows, MtfSimulationClaim claim, const char *name) {
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    double worst = 1;
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = rows->pdata[i];
        if (row->claim != claim)
            continue;
        g_array_append_vals(ratios, row->ratios->data, row->ratios->len);
        if (fabs(log(row->worst)) > fabs(log(worst)))
            worst = row->worst;
    }
    if (ratios->len > 0)
        printf("%-40s %-8s %6u %9.6f %9.6f\n", name, "", ratios->len, median_of(ratios), worst);
}

static void print_table(const GPtrArray *rows) {
    printf("%-40s %-8s %6s %9s %9s  %s\n", "collective and algorithm", "formula", "trials",
           "median", "worst",
           "worst case (simulated / formula; a minus marks a line, 4/2 every 2nd place of 8)");
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = rows->pdata[i];
        g_autofree char *name =
            g_strdup_printf("%s %s", mtf_collective_kind_name(row->kind), row->algorithm);
        printf("%-40s %-8s %6u %9.6f %9.6f  %s\n", name,
               row->claim == MTF_SIMULATION_EXACT ? "exact" : "estimate", row->ratios->len,
               median_of(row->ratios), row->worst,
               strstr(row->worst_text, row->switched ? "levels" : "torus"));
    }
    print_total(rows, MTF_SIMULATION_EXACT, "all that claim to be exact");
    print_total(rows, MTF_SIMULATION_ESTIMATE, "all estimates");
}

static void print_json(const GPtrArray *rows) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = rows->pdata[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "collective", mtf_collective_kind_name(row->kind));
        cJSON_AddStringToObject(item, "algorithm", row->algorithm);
        cJSON_AddStringToObject(item, "network", row->switched ? "levels" : "torus");
        cJSON_AddBoolToObject(item, "exact", row->claim == MTF_SIMULATION_EXACT);
        mtf_json_add_integer(item, "trials", row->ratios->len);
        mtf_json_add_number(item, "median", median_of(row->ratios));
        mtf_json_add_number(item, "worst", row->worst);
        cJSON_AddStringToObject(item, "worst_case", row->worst_text);
        cJSON_AddItemToArray(list, item);
    }
    mtf_json_say(list);
}

/* ---- A plan ---------------------------------------------------------------------------------- */

/* Sums over a plan's rows, in seconds of a step. */
typedef struct {
    double priced, formula, simulated; /* all rows; those that were simulated */
    int unsimulated;
} PlanTotal;

static void print_plan_row(const MtfPlan *plan, const MtfPlanSimulationRow *row, PlanTotal *total) {
    g_autofree char *axes = mtf_mesh_mask_format(&plan->layout->mesh, row->axes);
    g_autofree char *bytes = mtf_bytes_format(row->bytes);
    g_autofree char *formula = mtf_seconds_format(row->formula);
    g_autofree char *simulated = mtf_seconds_format(row->simulated);
    g_autofree char *priced = mtf_seconds_format(row->seconds);
    total->priced += row->calls * row->seconds;
    printf("%-15s %-12s %6.0f %12s %10s  %-26s", mtf_collective_kind_name(row->kind), axes,
           row->calls, bytes, priced, row->chosen);
    if (row->simulated_algorithm[0] == 0) {
        printf(" %10s %10s %9s  no simulation\n", "", "", "");
        total->unsimulated++;
        return;
    }
    total->formula += row->calls * row->formula;
    total->simulated += row->calls * row->simulated;
    printf(" %10s %10s %9.6f", formula, simulated, row->simulated / row->formula);
    printf("%s%s\n", strcmp(row->simulated_algorithm, row->chosen) != 0 ? "  of " : "",
           strcmp(row->simulated_algorithm, row->chosen) != 0 ? row->simulated_algorithm : "");
}

static void print_plan(const MtfPlan *plan, const GArray *rows) {
    PlanTotal total = { 0 };
    printf("%-15s %-12s %6s %12s %10s  %-26s %10s %10s %9s\n", "collective", "axes", "calls",
           "payload", "priced", "algorithm", "formula", "simulated", "ratio");
    for (guint i = 0; i < rows->len; i++)
        print_plan_row(plan, &g_array_index(rows, MtfPlanSimulationRow, i), &total);
    g_autofree char *priced = mtf_seconds_format(total.priced);
    g_autofree char *formula = mtf_seconds_format(total.formula);
    g_autofree char *simulated = mtf_seconds_format(total.simulated);
    printf("a step: %s priced", priced);
    if (total.formula > 0)
        printf("; on the wires: %s by formula, %s simulated, ratio %.6f", formula, simulated,
               total.simulated / total.formula);
    if (total.unsimulated > 0)
        printf(
            "; %d row%s of more than 1024 places of a torus or 64 ranks on switches, without a simulation",
            total.unsimulated, total.unsimulated == 1 ? "" : "s");
    putchar('\n');
}

static void add_plan_row(cJSON *list, const MtfMesh *mesh, const MtfPlanSimulationRow *row) {
    cJSON *item = cJSON_CreateObject();
    g_autofree char *axes = mtf_mesh_mask_format(mesh, row->axes);
    cJSON_AddStringToObject(item, "collective", mtf_collective_kind_name(row->kind));
    cJSON_AddStringToObject(item, "axes", axes);
    mtf_json_add_number(item, "calls", row->calls);
    mtf_json_add_number(item, "bytes", row->bytes);
    mtf_json_add_number(item, "seconds", row->seconds);
    cJSON_AddStringToObject(item, "algorithm", row->chosen);
    cJSON_AddStringToObject(item, "simulated_algorithm", row->simulated_algorithm);
    mtf_json_add_number(item, "formula", row->formula);
    mtf_json_add_number(item, "simulated", row->simulated);
    cJSON_AddItemToArray(list, item);
}

static void print_plan_json(const MtfPlan *plan, const GArray *rows) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < rows->len; i++)
        add_plan_row(list, &plan->layout->mesh, &g_array_index(rows, MtfPlanSimulationRow, i));
    mtf_json_say(list);
}

static bool simulate_plan(const char *path, bool json, GError **error) {
    g_autoptr(MtfPlan) plan = mtf_plan_load(path, error);
    if (plan == NULL)
        return false;
    g_autoptr(MtfMachine) machine = mtf_planning_plan_machine(plan, path, error);
    MtfPricer pricer;
    if (machine == NULL || !mtf_planning_plan_pricer(plan, path, machine, &pricer, error))
        return false;
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, error);
    if (program == NULL)
        return false;
    g_autoptr(GArray) rows = mtf_plan_simulate(&pricer, program);
    (json ? print_plan_json : print_plan)(plan, rows);
    return true;
}

int mtf_command_simulate(int argc, char **argv) {
    gint64 count = 0, seed = 1;
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "random", 0, 0, G_OPTION_ARG_INT64, &count, "Collectives to draw and simulate", "N" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &seed, "Of the draw (1)", "N" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool good = mtf_command_line_parse(
        &argc, &argv, entries, "PLAN | --random N",
        "Simulates the collectives of a plan's step, or random ones on random tori, link by link (flows "
        "that contend for links, latency per hop), and tables the ratio of the simulated seconds to "
        "the formula's.",
        0, 1, &error);
    if (good && (argc > 1) == (count != 0))
        good = mtf_input_error(&error, "a plan or --random N is wanted, one of the two");
    if (good && argc == 1)
        good = mtf_option_between("--random", count, 1, 1000000, &error);
    if (good && argc > 1)
        good = simulate_plan(argv[1], json, &error);
    if (!good)
        return mtf_command_line_fail("meshtf-plan simulate", error);
    if (argc > 1)
        return 0;
    g_autoptr(GPtrArray) rows = run_trials(count, seed);
    (json ? print_json : print_table)(rows);
    return 0;
}
