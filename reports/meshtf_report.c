// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-report: reads a plan and writes what people look at into a folder. */
#include "layouts/command_line.h"
#include "layouts/error.h"
#include "layouts/json_writer.h"
#include "reports/dot_child.h"
#include "reports/dot_graph.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DOT_SECONDS 20

static bool make_folder(const char *folder, GError **error) {
    return g_mkdir_with_parents(folder, 0777) == 0 ||
           mtf_failure(error, "%s: cannot be made: %s", folder, g_strerror(errno));
}

static bool write_text(const char *folder, const char *name, const char *text, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return mtf_file_write(path, text, strlen(text), error);
}

/* graph.dot and graph.svg. A drawing that cannot be laid out is said so and is not fatal. */
static bool write_drawing(const char *folder, const MtfPlan *plan, const MtfProgram *program,
                          GError **error) {
    g_autoptr(MtfPartitionView) view = mtf_partition_view_new(plan, program);
    g_autofree char *dot = mtf_dot_graph(plan, view, error);
    if (dot == NULL || !write_text(folder, "graph.dot", dot, error))
        return false;
    g_autofree char *dot_path = g_build_filename(folder, "graph.dot", NULL);
    g_autofree char *svg_path = g_build_filename(folder, "graph.svg", NULL);
    g_autoptr(GError) cause = NULL;
    if (!mtf_dot_layout(dot_path, svg_path, DOT_SECONDS, &cause))
        fprintf(stderr, "meshtf-report: %s\n", cause->message);
    return true;
}

static bool write_report(const char *plan_path, const char *folder, GError **error) {
    g_autoptr(MtfPlan) plan = mtf_plan_load(plan_path, error);
    if (plan == NULL)
        return false;
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, error);
    if (program == NULL || !make_folder(folder, error))
        return false;
    g_autofree char *listing = mtf_program_format(program);
    g_autofree char *copy = g_build_filename(folder, "plan.json", NULL);
    return write_text(folder, "program.txt", listing, error) && mtf_plan_save(plan, copy, error) &&
           write_drawing(folder, plan, program, error);
}

int main(int argc, char **argv) {
    g_autofree char *folder = NULL;
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &folder, "Write into this folder", "DIR" },
        { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version", NULL },
        { 0 },
    };
    GError *error = NULL;
    g_set_prgname("meshtf-report");
    if (!mtf_command_line_parse(&argc, &argv, entries, "PLAN -o DIR",
                                "Draws the partition of a plan: graph.dot, graph.svg, program.txt.",
                                0, 1, &error))
        return mtf_command_line_fail("meshtf-report", error);
    if (version) {
        puts("meshtf-report " MTF_VERSION);
        return 0;
    }
    if (argc < 2 || folder == NULL)
        mtf_input_error(&error, "the usage is meshtf-report PLAN -o DIR");
    else
        write_report(argv[1], folder, &error);
    return error != NULL ? mtf_command_line_fail("meshtf-report", error) : 0;
}
