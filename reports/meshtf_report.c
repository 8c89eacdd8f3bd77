// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-report: reads a plan and writes what people look at into a folder. */
#include "layouts/command_line.h"
#include "layouts/error.h"
#include "layouts/json_writer.h"
#include "reports/drawings.h"
#include "reports/export.h"
#include "reports/metrics_log.h"
#include "reports/page.h"
#include "reports/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *output; /* a folder; of exports a file */
    char *metrics;
    char *form;  /* of an export, or NULL */
    char *hosts; /* of a rankfile, or NULL */
} Options;

static bool make_folder(const char *folder, GError **error) {
    return g_mkdir_with_parents(folder, 0777) == 0 ||
           mtf_failure(error, "%s: cannot be made: %s", folder, g_strerror(errno));
}

static bool write_text(const char *folder, const char *name, const char *text, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return mtf_file_write(path, text, strlen(text), error);
}

static bool write_texts(const char *folder, const MtfStepFacts *facts, const MtfPageParts *parts,
                        GError **error) {
    g_autofree char *listing = mtf_program_format(facts->program);
    g_autofree char *timeline = mtf_timeline_print(facts);
    g_autofree char *summary = mtf_summary_print(facts, parts->run);
    g_autofree char *page = mtf_page_print(facts, parts);
    g_autofree char *copy = g_build_filename(folder, "plan.json", NULL);
    return mtf_plan_save(facts->plan, copy, error) &&
           write_text(folder, "program.txt", listing, error) &&
           write_text(folder, "timeline.json", timeline, error) &&
           write_text(folder, "summary.txt", summary, error) &&
           write_text(folder, "index.html", page, error);
}

static bool write_report(const char *plan_path, const Options *options, GError **error) {
    g_autoptr(MtfPlan) plan = mtf_plan_load(plan_path, error);
    g_autoptr(MtfStepFacts) facts = plan != NULL ? mtf_step_facts_new(plan, error) : NULL;
    g_autoptr(GArray) run = NULL;
    if (facts == NULL)
        return false;
    if (options->metrics != NULL && (run = mtf_metrics_log_load(options->metrics, error)) == NULL)
        return false;
    g_autoptr(MtfStepParts) parts = mtf_step_parts_new(facts);
    g_autoptr(MtfDrawings) drawings = make_folder(options->output, error)
                                          ? mtf_drawings_write(options->output, parts, error)
                                          : NULL;
    return drawings != NULL &&
           write_texts(options->output, facts, &(MtfPageParts){ parts, drawings, run }, error);
}

static bool write_export(const char *plan_path, const Options *options, GError **error) {
    g_autoptr(MtfPlan) plan = mtf_plan_load(plan_path, error);
    g_autoptr(MtfStepFacts) facts = plan != NULL ? mtf_step_facts_new(plan, error) : NULL;
    g_autofree char *text =
        facts != NULL
            ? mtf_export(facts, &(MtfExportRequest){ options->form, options->hosts }, error)
            : NULL;
    const char *path = options->output != NULL ? options->output : "-";
    return text != NULL && mtf_file_write(path, text, strlen(text), error);
}

int main(int argc, char **argv) {
    Options options = { 0 };
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Write into this folder",
          "DIR" },
        { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &options.metrics,
          "What meshtf-run --metrics wrote", "FILE" },
        { "export", 0, 0, G_OPTION_ARG_STRING, &options.form,
          "Write the plan in the words of another tool instead (-o FILE, or standard output)",
          "mtf|jax|dtensor|megatron|shardy|rankfile" },
        { "hosts", 0, 0, G_OPTION_ARG_STRING, &options.hosts, "Names of the nodes, for a rankfile",
          "A,B,C" },
        { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version", NULL },
        { 0 },
    };
    GError *error = NULL;
    g_set_prgname("meshtf-report");
    const MtfUsage usage = { "PLAN -o DIR",
                             "Writes what people look at: index.html, graph.dot, graph.svg, "
                             "timeline.json, summary.txt, plan.json, program.txt.\n\n"
                             "  meshtf-report plan.json --metrics metrics.jsonl -o report",
                             0, 1, "draws a plan" };
    if (!mtf_command_line_read(&argc, &argv, entries, &usage, &error))
        return mtf_command_line_fail("meshtf-report", error);
    if (version) {
        puts("meshtf-report " MTF_VERSION);
        return 0;
    }
    if (argc == 2 && options.form != NULL)
        write_export(argv[1], &options, &error);
    else if (argc < 2 || options.output == NULL)
        mtf_input_error(&error, "the usage is meshtf-report PLAN -o DIR");
    else
        write_report(argv[1], &options, &error);
    g_free(options.output);
    g_free(options.metrics);
    g_free(options.form);
    g_free(options.hosts);
    return error != NULL ? mtf_command_line_fail("meshtf-report", error) : 0;
}
