// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-report: reads a plan and writes what people look at into a folder. */
#include "layouts/command_line.h"
#include "layouts/error.h"
#include "layouts/json_writer.h"
#include "reports/dot_child.h"
#include "reports/dot_graph.h"
#include "reports/metrics_log.h"
#include "reports/page.h"
#include "reports/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DOT_SECONDS 20

typedef struct {
    char *folder;
    char *metrics;
} Options;

static bool make_folder(const char *folder, GError **error) {
    return g_mkdir_with_parents(folder, 0777) == 0 ||
           mtf_failure(error, "%s: cannot be made: %s", folder, g_strerror(errno));
}

static bool write_text(const char *folder, const char *name, const char *text, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return mtf_file_write(path, text, strlen(text), error);
}

/* graph.dot and graph.svg; `*drawing` is the latter's text. A drawing that cannot be laid out is
 * said so and is not fatal. */
static bool write_drawing(const char *folder, const MtfStepFacts *facts, char **drawing,
                          GError **error) {
    g_autoptr(MtfPartitionView) view = mtf_partition_view_new(facts->plan, facts->program);
    g_autofree char *dot = mtf_dot_graph(facts->plan, view, error);
    if (dot == NULL || !write_text(folder, "graph.dot", dot, error))
        return false;
    g_autofree char *dot_path = g_build_filename(folder, "graph.dot", NULL);
    g_autofree char *svg_path = g_build_filename(folder, "graph.svg", NULL);
    g_autoptr(GError) cause = NULL;
    if (mtf_dot_layout(dot_path, svg_path, DOT_SECONDS, &cause))
        return g_file_get_contents(svg_path, drawing, NULL, NULL) ||
               mtf_failure(error, "%s: cannot be read back", svg_path);
    fprintf(stderr, "meshtf-report: %s\n", cause->message);
    remove(svg_path);
    return true;
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
    g_autofree char *drawing = NULL;
    if (facts == NULL)
        return false;
    if (options->metrics != NULL && (run = mtf_metrics_log_load(options->metrics, error)) == NULL)
        return false;
    if (!make_folder(options->folder, error) ||
        !write_drawing(options->folder, facts, &drawing, error))
        return false;
    return write_texts(options->folder, facts, &(MtfPageParts){ drawing, run }, error);
}

int main(int argc, char **argv) {
    Options options = { 0 };
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.folder, "Write into this folder",
          "DIR" },
        { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &options.metrics,
          "What meshtf-run --metrics wrote", "FILE" },
        { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version", NULL },
        { 0 },
    };
    GError *error = NULL;
    g_set_prgname("meshtf-report");
    if (!mtf_command_line_parse(&argc, &argv, entries, "PLAN -o DIR",
                                "Writes what people look at: index.html, graph.dot, graph.svg, "
                                "timeline.json, summary.txt, plan.json, program.txt.",
                                0, 1, &error))
        return mtf_command_line_fail("meshtf-report", error);
    if (version) {
        puts("meshtf-report " MTF_VERSION);
        return 0;
    }
    if (argc < 2 || options.folder == NULL)
        mtf_input_error(&error, "the usage is meshtf-report PLAN -o DIR");
    else
        write_report(argv[1], &options, &error);
    g_free(options.folder);
    g_free(options.metrics);
    return error != NULL ? mtf_command_line_fail("meshtf-report", error) : 0;
}
