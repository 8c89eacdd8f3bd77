// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan fit [RUNS.tsv] --machine M -o MINE.json: a machine file from a user's own measurements. */
#include "analyzer/judge/fit.h"
#include "analyzer/judge/judge_commands.h"
#include "analyzer/judge/sweep_file.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/output_guard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *machine, *output, *software, *name;
    char **collectives;
    char **sweeps[MTF_SWEEP_KINDS];
    gboolean json;
} Options;

/* What came of the sweeps and of the runs. */
typedef struct {
    int collective_rows;
    MtfSweepFit sweeps[MTF_SWEEP_KINDS];
    MtfFit fit;
    int strangers;  /* runs whose hardware is another machine of the library */
    GArray *strays; /* MtfFitStray, or NULL */
} Outcome;

static bool fit_sweeps(const Options *options, MtfMachine *machine, Outcome *outcome,
                       GError **error) {
    for (char **sweep = options->collectives; sweep != NULL && *sweep != NULL; sweep++)
        if (!mtf_sweep_add_collective(*sweep, machine, &outcome->collective_rows, error))
            return false;
    for (int kind = 0; kind < MTF_SWEEP_KINDS; kind++)
        for (char **sweep = options->sweeps[kind]; sweep != NULL && *sweep != NULL; sweep++)
            if (!mtf_sweep_fit((MtfSweepKind)kind, *sweep, machine, &outcome->sweeps[kind], error))
                return false;
    return true;
}

static const MtfMachine *this_machine(void *data, const MtfRunRow *row, const MtfMachine *library) {
    (void)row;
    (void)library;
    return (const MtfMachine *)data;
}

/* Runs that name another machine of the library, where the one that is fitted could be named. */
static int count_strangers(const GPtrArray *verdicts, const char *machine) {
    int others = 0;
    for (guint i = 0; i < verdicts->len && mtf_runs_name_machine(machine); i++) {
        const MtfRunRow *row = ((const MtfVerdict *)verdicts->pdata[i])->row;
        others += row->reason == NULL && row->named != NULL && strcmp(row->named, machine) != 0;
    }
    return others;
}

/* All runs count as runs of this machine, whatever hardware they name. */
static bool fit_runs(const Options *options, const char *path, MtfMachine *machine,
                     Outcome *outcome, GError **error) {
    g_autoptr(MtfRunTable) table = mtf_run_table_load(path, mtf_run_columns, error);
    if (table == NULL)
        return false;
    MtfJudgeOptions judge = { .machine = options->machine,
                              .software = options->software,
                              .machine_for = this_machine,
                              .machine_for_data = machine };
    g_autoptr(GPtrArray) verdicts = mtf_judge(table, &judge, error);
    if (verdicts == NULL)
        return false;
    MtfFitRows rows = { .machine = machine, .verdicts = verdicts };
    outcome->fit = mtf_fit(&rows);
    if (outcome->fit.rows == 0)
        return mtf_input_error(error, "%s: none of its %u runs can be expressed on machine %s",
                               path, verdicts->len, machine->name);
    outcome->strangers = count_strangers(verdicts, options->machine);
    outcome->fit.crossed = mtf_fit_cross(&rows);
    outcome->strays = mtf_fit_strays(&rows, &outcome->fit);
    mtf_fit_apply(&outcome->fit, machine);
    return true;
}

static const char *const sweep_words[MTF_SWEEP_KINDS] = { "products", "attention",
                                                          "passes over memory" };

static double mean_error(const MtfSweepFit *fit) {
    return fit->rows > 0 ? fit->error / fit->rows : NAN;
}

static char *sentence_of(const Options *options, const Outcome *outcome) {
    const MtfFit *fit = &outcome->fit;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "fitted from %s", options->machine);
    if (fit->rows > 0)
        g_string_append_printf(text, " to %d run%s, mean error %.1f %% (before %.1f %%)", fit->rows,
                               fit->rows == 1 ? "" : "s", 100 * fit->after, 100 * fit->before);
    if (fit->rows > 0 && !isnan(fit->crossed))
        g_string_append_printf(text, ", of runs left out %.1f %%", 100 * fit->crossed);
    for (int kind = 0; kind < MTF_SWEEP_KINDS; kind++)
        if (outcome->sweeps[kind].rows > 0)
            g_string_append_printf(text, "; %s to %d measurement%s within %.1f %%",
                                   sweep_words[kind], outcome->sweeps[kind].rows,
                                   outcome->sweeps[kind].rows == 1 ? "" : "s",
                                   100 * mean_error(&outcome->sweeps[kind]));
    if (outcome->collective_rows > 0)
        g_string_append_printf(text, "; collectives as in %d measurement%s",
                               outcome->collective_rows, outcome->collective_rows == 1 ? "" : "s");
    return g_string_free(text, FALSE);
}

/* As --name says, else as the file is called, which standard output is not; free with g_free. */
static char *name_of(const Options *options, const MtfMachine *from) {
    if (options->name != NULL)
        return g_strdup(options->name);
    if (strcmp(options->output, "-") == 0)
        return g_strconcat(from->name, "-fitted", NULL);
    g_autofree char *base = g_path_get_basename(options->output);
    return g_strndup(base, strcspn(base, "."));
}

static bool write_machine(const Options *options, const Outcome *outcome, MtfMachine *machine,
                          GError **error) {
    g_autofree char *sentence = sentence_of(options, outcome);
    if (machine->sources == NULL)
        machine->sources = cJSON_CreateObject();
    cJSON_DeleteItemFromObject(machine->sources, "fit");
    cJSON_AddStringToObject(machine->sources, "fit", sentence);
    char *name = name_of(options, machine);
    g_free(machine->name);
    machine->name = name;
    if (!isnan(outcome->fit.crossed)) {
        machine->judged.runs = outcome->fit.rows;
        machine->judged.error = outcome->fit.crossed;
    }
    return mtf_json_save(mtf_machine_to_json(machine), options->output, error);
}

static void print_json(const Outcome *outcome) {
    const MtfFit *fit = &outcome->fit;
    cJSON *root = cJSON_CreateObject();
    cJSON *parameters = cJSON_AddObjectToObject(root, "parameters");
    for (int i = 0; i < MTF_FITS && fit->rows > 0; i++) {
        cJSON *parameter = cJSON_AddObjectToObject(parameters, mtf_fit_name((MtfFitParameter)i));
        mtf_json_add_number(parameter, "factor", fit->factor[i]);
        mtf_json_add_number(parameter, "doubt", fit->doubt[i]);
        cJSON_AddBoolToObject(parameter, "determined", fit->determined[i]);
    }
    mtf_json_add_integer(root, "rows", fit->rows);
    mtf_json_add_number(root, "mean_error_before", fit->rows > 0 ? fit->before : NAN);
    mtf_json_add_number(root, "mean_error", fit->rows > 0 ? fit->after : NAN);
    mtf_json_add_number(root, "cross_validated_error", fit->rows > 0 ? fit->crossed : NAN);
    cJSON *strays = cJSON_AddArrayToObject(root, "strays");
    for (guint i = 0; outcome->strays != NULL && i < outcome->strays->len; i++) {
        const MtfFitStray *stray = &g_array_index(outcome->strays, MtfFitStray, i);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "id", stray->id);
        mtf_json_add_number(object, "measured_over_predicted", stray->share);
        cJSON_AddItemToArray(strays, object);
    }
    mtf_json_add_integer(root, "collective_rows", outcome->collective_rows);
    static const char *const keys[MTF_SWEEP_KINDS][2] = { { "product_rows", "product_error" },
                                                          { "attention_rows", "attention_error" },
                                                          { "pass_rows", "pass_error" } };
    for (int kind = 0; kind < MTF_SWEEP_KINDS; kind++) {
        mtf_json_add_integer(root, keys[kind][0], outcome->sweeps[kind].rows);
        mtf_json_add_number(root, keys[kind][1], mean_error(&outcome->sweeps[kind]));
    }
    mtf_json_say(root);
}

static void print_lines(const Options *options, const Outcome *outcome) {
    const MtfFit *fit = &outcome->fit;
    g_autofree char *sentence = sentence_of(options, outcome);
    for (int i = 0; i < MTF_FITS && fit->rows > 0; i++)
        printf("%-10s x %.3f  give or take %.1f %%\n", mtf_fit_name((MtfFitParameter)i),
               fit->factor[i], 100 * fit->doubt[i]);
    printf("%s: %s\n", options->output, sentence);
}

/* What the runs leave open, on standard error. */
static void warn(const Options *options, const Outcome *outcome) {
    const MtfFit *fit = &outcome->fit;
    for (int i = 0; i < MTF_FITS && fit->rows > 0; i++)
        if (!fit->determined[i])
            fprintf(
                stderr,
                "meshtf-plan fit: warning: these runs do not determine \"%s\", which stays near "
                "the library's (give or take %.0f %%)\n",
                mtf_fit_name((MtfFitParameter)i), 100 * fit->doubt[i]);
    for (guint i = 0; outcome->strays != NULL && i < outcome->strays->len; i++) {
        const MtfFitStray *stray = &g_array_index(outcome->strays, MtfFitStray, i);
        fprintf(stderr,
                "meshtf-plan fit: warning: run \"%s\" took %.2f times what the fit to all says, "
                "unlike the others: was it disturbed, or is its row wrong?\n",
                stray->id, stray->share);
    }
    if (outcome->strangers > 0)
        fprintf(stderr,
                "meshtf-plan fit: warning: %d of these runs name other hardware and count as runs "
                "of %s\n",
                outcome->strangers, options->machine);
    if (fit->rows > 0 && isnan(fit->crossed))
        fputs("meshtf-plan fit: warning: one run alone says nothing of how well another would be "
              "predicted\n",
              stderr);
}

static bool run(const Options *options, const char *runs, GError **error) {
    bool sweeps = options->collectives != NULL;
    for (int kind = 0; kind < MTF_SWEEP_KINDS; kind++)
        sweeps = sweeps || options->sweeps[kind] != NULL;
    if (options->machine == NULL || options->output == NULL)
        return mtf_input_error(error, "--machine and --output are needed: which machine of the "
                                      "library (or file) is fitted, and where the new one goes");
    if (runs == NULL && !sweeps)
        return mtf_input_error(error, "neither a table of runs nor a sweep (--collective, "
                                      "--products, --attention, --passes) is given");
    if (!mtf_output_check_file(options->output, error))
        return false;
    g_autoptr(MtfMachine) machine = mtf_machine_load(options->machine, error);
    if (machine == NULL)
        return false;
    if (!machine->kernels.known)
        return mtf_input_error(error,
                               "machine %s does not say what its kernels reach (\"kernels\"), so "
                               "there is nothing to fit",
                               machine->name);
    Outcome outcome = { .fit.crossed = NAN };
    bool done = fit_sweeps(options, machine, &outcome, error) &&
                (runs == NULL || fit_runs(options, runs, machine, &outcome, error)) &&
                write_machine(options, &outcome, machine, error);
    bool alone = strcmp(options->output, "-") == 0; /* the machine on standard output */
    if (done && !alone)
        options->json ? print_json(&outcome) : print_lines(options, &outcome);
    if (done)
        warn(options, &outcome);
    g_clear_pointer(&outcome.strays, g_array_unref);
    return done;
}

int mtf_command_fit(int argc, char **argv) {
    Options o = { .machine = NULL };
    const GOptionEntry entries[] = {
        { "machine", 0, 0, G_OPTION_ARG_STRING, &o.machine, "The machine to begin with",
          "NAME|FILE" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "Where the fitted machine goes",
          "MINE.json" },
        { "name", 0, 0, G_OPTION_ARG_STRING, &o.name,
          "Its name (that of the file, or MACHINE-fitted behind -o -)", "NAME" },
        { "software", 0, 0, G_OPTION_ARG_STRING, &o.software,
          "Price all runs for this profile, whatever they name", "NAME|FILE" },
        { "collective", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.collectives,
          "A sweep of a collective: lines of bytes and seconds", "allreduce/8=FILE" },
        { "products", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.sweeps[MTF_SWEEP_PRODUCTS],
          "A sweep of products: lines of m, n, k and seconds", "bf16=FILE" },
        { "attention", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.sweeps[MTF_SWEEP_ATTENTION],
          "A sweep of fused attention: lines of features, queries, keys seen by one, heads, seconds "
          "forward and of the gradient",
          "bf16=FILE" },
        { "passes", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.sweeps[MTF_SWEEP_PASSES],
          "A sweep over memory (elementwise, rows, update, gather): lines of bytes and seconds",
          "update=FILE" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(
                    &argc, &argv, entries, "[RUNS.tsv] --machine M -o MINE.json",
                    "Fits a machine of the library to measured training runs (a table as judge "
                    "reads) and to sweeps of kernels and collectives: few figures, bounded, with "
                    "the error of sources that were left out.",
                    0, 1, &error) &&
                run(&o, argc > 1 ? argv[1] : NULL, &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan fit", error);
}
