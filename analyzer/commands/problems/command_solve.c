// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan solve FILE: a layout problem in the IOPDDL JSON format. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/interrupt.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "analyzer/solver/search/layout_solve.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/output_guard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.2
#define MOST_THREADS 256

static const char summary[] =
    "Solves a layout problem (IOPDDL JSON, plain or gzip, - for standard input).\n"
    "The last line of output is the list of chosen strategies, one for each node:\n\n"
    "  meshtf-plan solve example.json\n"
    "  meshtf-plan solve problem.json.gz --seconds 60 --json\n"
    "  meshtf-plan solve problem.json --certificate proof.txt && meshtf-plan verify problem.json proof.txt\n\n"
    "Ctrl-C stops the search and prints the best choice so far.";

typedef struct Progress {
    gint64 shown; /* monotonic microseconds of the last line */
    bool drawn;
} Progress;

static void show_progress(double cost, double bound, void *user) {
    Progress *progress = user;
    gint64 now = g_get_monotonic_time();
    if ((double)(now - progress->shown) < REDRAW_SECONDS * 1e6)
        return;
    progress->shown = now;
    progress->drawn = true;
    if (isinf(cost))
        fprintf(stderr, "\rcost -  bound %.0f\033[K", bound);
    else
        fprintf(stderr, "\rcost %.0f  bound %.0f  gap %.3f %%\033[K", cost, bound,
                100 * (cost - bound) / fmax(1, fabs(cost)));
}

static char *list_of(const MtfLayoutProblem *problem, const int *choice) {
    GString *list = g_string_new("[");
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        g_string_append_printf(list, v > 0 ? ", %d" : "%d", choice[v]);
    g_string_append_c(list, ']');
    return g_string_free(list, FALSE);
}

static void print_json(const MtfLayoutProblem *problem, const MtfLayoutSolution *solution) {
    g_autofree char *cost = mtf_int128_format(solution->cost);
    g_autofree char *bound = mtf_int128_format(solution->bound);
    cJSON *object = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(object, "solution");
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        cJSON_AddItemToArray(list, mtf_json_new_integer(solution->choice[v]));
    cJSON_AddItemToObject(object, "cost", cJSON_CreateRaw(cost));
    cJSON_AddItemToObject(object, "lower_bound", cJSON_CreateRaw(bound));
    mtf_json_add_number(object, "gap", solution->gap);
    cJSON_AddStringToObject(object, "method", solution->method);
    mtf_json_add_number(object, "seconds", solution->seconds);
    mtf_json_add_number(object, "tolerance", solution->tolerance);
    char *text = cJSON_PrintUnformatted(object);
    puts(text);
    cJSON_free(text);
    cJSON_Delete(object);
}

static void print_text(const MtfLayoutProblem *problem, const MtfLayoutSolution *solution) {
    g_autofree char *cost = mtf_int128_format(solution->cost);
    g_autofree char *bound = mtf_int128_format(solution->bound);
    g_autofree char *list = list_of(problem, solution->choice);
    if (solution->cost == solution->bound)
        printf("cost %s, optimal (%s), %.2f s\n", cost, solution->method, solution->seconds);
    else if (solution->tolerance > 0)
        printf("cost %s, at least %s (%s, to its tolerance of %.0f), gap %.3g %%, %.2f s\n", cost,
               bound, solution->method, solution->tolerance, 100 * solution->gap,
               solution->seconds);
    else
        printf("cost %s, at least %s (%s), gap %.3g %%, %.2f s\n", cost, bound, solution->method,
               100 * solution->gap, solution->seconds);
    puts(list);
}

/* How the answer is printed. */
typedef struct Output {
    bool json;
    const char *certificate; /* a file, or NULL */
} Output;

static bool check_options(double seconds, double gap, int threads, GError **error) {
    if (!(seconds >= 0))
        return mtf_input_error(error, "--seconds %g is not a time of at least 0", seconds);
    if (!(gap >= 0))
        return mtf_input_error(error, "--gap %g is not a fraction of at least 0", gap);
    return mtf_option_between("--threads", threads, 1, MOST_THREADS, error);
}

/* The answer of a solver, or its error, with the certificate where one is wanted. */
static int tell(const MtfLayoutProblem *problem, const MtfLayoutSolution *solution,
                const MtfCertificate *certificate, const Output *output, GError *failure) {
    GError *error = NULL;
    if (certificate != NULL && !mtf_certificate_write(certificate, output->certificate, &error)) {
        g_clear_error(&failure);
        return mtf_command_line_fail(g_get_prgname(), error);
    }
    if (failure != NULL)
        return mtf_command_line_fail(g_get_prgname(), failure);
    (output->json ? print_json : print_text)(problem, solution);
    return 0;
}

/* Solves a problem's file within `seconds` seconds, reading included; 0: no limit. */
static int solve_file(const char *path, const MtfSolveOptions *wanted, double seconds,
                      const Output *output) {
    MtfSolveOptions options = *wanted;
    g_autoptr(MtfCertificate) certificate =
        output->certificate != NULL ? mtf_certificate_new() : NULL;
    options.certificate = certificate;
    GError *error = NULL;
    gint64 begin = g_get_monotonic_time();
    MtfSearchControl control;
    mtf_search_control_init(&control, seconds);
    g_autoptr(MtfLayoutProblem) problem = mtf_output_check_file(output->certificate, &error)
                                              ? mtf_layout_problem_load(path, &error)
                                              : NULL;
    if (problem == NULL)
        return mtf_command_line_fail(g_get_prgname(), error);
    double reading = (double)(g_get_monotonic_time() - begin) / 1e6;
    Progress progress = { 0 };
    const MtfSearchListener listener = { .bound = show_progress, .user = &progress };
    control.interrupted = mtf_interrupt_was_caught;
    control.listener = isatty(STDERR_FILENO) ? &listener : NULL;
    options.control = &control;
    mtf_interrupt_catch();
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, &error);
    if (progress.drawn)
        fputs("\r\033[K", stderr);
    if (solution != NULL)
        solution->seconds += reading;
    return tell(problem, solution, certificate, output, error);
}

int mtf_command_solve(int argc, char **argv) {
    double seconds = 0, gap = 0;
    int seed = 0, threads = CLAMP((int)g_get_num_processors(), 1, MOST_THREADS);
    g_autofree char *method = NULL, *certificate = NULL;
    g_autofree char *methods_known = mtf_solve_methods_format();
    g_autofree char *method_help = g_strdup_printf(
        "Methods to use beside message passing, in a list: %s (default: all)", methods_known);
    gboolean json = FALSE;
    gint64 work = 0;
    const GOptionEntry entries[] = {
        { "seconds", 's', 0, G_OPTION_ARG_DOUBLE, &seconds,
          "Stop after S seconds, reading included (default: when proven optimal)", "S" },
        { "work", 0, 0, G_OPTION_ARG_INT64, &work,
          "Stop after N rounds: the same answer on every machine", "N" },
        { "gap", 0, 0, G_OPTION_ARG_DOUBLE, &gap, "Stop within this fraction of the bound", "G" },
        { "seed", 0, 0, G_OPTION_ARG_INT, &seed, "Seed of the local search (default 0)", "N" },
        { "threads", 0, 0, G_OPTION_ARG_INT, &threads, "Threads (default: one for each processor)",
          "N" },
        { "method", 0, 0, G_OPTION_ARG_STRING, &method, method_help, "LIST" },
        { "certificate", 0, 0, G_OPTION_ARG_FILENAME, &certificate,
          "Write what proves the bound, for meshtf-plan verify", "FILE" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json,
          "Print {solution, cost, lower_bound, gap, method, seconds, tolerance}", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    MtfSolveMethods methods = MTF_METHODS_ALL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "FILE", summary, 1, 1, &error) ||
        !check_options(seconds, gap, threads, &error) ||
        !mtf_solve_methods_parse(method != NULL ? method : "all", &methods, &error))
        return mtf_command_line_fail(g_get_prgname(), error);
    MtfSolveOptions options = { .gap = gap,
                                .threads = threads,
                                .seed = (guint64)seed,
                                .work = work,
                                .without = (MtfSolveMethods)(MTF_METHODS_ALL & ~methods) };
    Output output = { json, certificate };
    return solve_file(argv[1], &options, seconds, &output);
}
