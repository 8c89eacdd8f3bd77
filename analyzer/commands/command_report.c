// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan report and export: both are meshtf-report's work, which is started as a child; its
 * words and its exit status are passed on. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/report_child.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

/* Runs the child and returns its exit status, or says why it cannot run. */
static int run(const char *name, const char *const *arguments) {
    GError *error = NULL;
    int status = mtf_report_run(arguments, &error);
    return error != NULL ? mtf_command_line_fail(name, error) : status;
}

int mtf_command_report(int argc, char **argv) {
    g_autofree char *folder = NULL;
    g_autofree char *metrics = NULL;
    g_autofree char *trace = NULL;
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &folder, "Write into this folder", "DIR" },
        { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &metrics, "What meshtf-run --metrics wrote",
          "FILE" },
        { "trace", 0, 0, G_OPTION_ARG_FILENAME, &trace, "What meshtf-run --trace wrote", "FILE" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print the report's figures as JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "PLAN -o DIR",
                                "Writes what people look at: a page (index.html), the partition "
                                "drawn, a timeline, a summary.\n\n"
                                "  meshtf-plan report p.json --metrics m.jsonl -o out",
                                1, 1, &error))
        return mtf_command_line_fail("meshtf-plan report", error);
    if (folder == NULL) {
        mtf_input_error(&error, "-o DIR is missing: the folder to write into");
        return mtf_command_line_fail("meshtf-plan report", error);
    }
    const char *arguments[10] = { "-o", folder };
    int n = 2;
    if (metrics != NULL) {
        arguments[n++] = "--metrics";
        arguments[n++] = metrics;
    }
    if (trace != NULL) {
        arguments[n++] = "--trace";
        arguments[n++] = trace;
    }
    if (json)
        arguments[n++] = "--json";
    arguments[n++] = "--";
    arguments[n] = argv[1];
    return run("meshtf-plan report", arguments);
}

int mtf_command_export(int argc, char **argv) {
    g_autofree char *to = NULL;
    g_autofree char *output = NULL;
    g_autofree char *hosts = NULL;
    g_autofree char *weights = NULL;
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "to", 0, 0, G_OPTION_ARG_STRING, &to, "The form to write",
          "mtf|jax|dtensor|megatron|deepspeed|maxtext|torchtitan|shardy|onnx|onnx-text|slurm|rankfile|torch-pipelining|alpa" },
        { "weights", 0, 0, G_OPTION_ARG_FILENAME, &weights,
          "A checkpoint beside the ONNX file that has its weights", "FILE" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Write to a file (standard output)",
          "FILE" },
        { "hosts", 0, 0, G_OPTION_ARG_STRING, &hosts, "Names of the nodes, for a rankfile",
          "A,B,C" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Write it as the text of a JSON object", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "PLAN --to FORM",
                                "Writes a plan in the words of another tool.\n\n"
                                "  meshtf-plan export p.json --to jax > specs.py",
                                1, 1, &error))
        return mtf_command_line_fail("meshtf-plan export", error);
    if (to == NULL) {
        mtf_input_error(
            &error,
            "--to FORM is missing: mtf, jax, dtensor, megatron, deepspeed, maxtext, torchtitan, shardy, onnx, onnx-text, slurm, "
            "rankfile, torch-pipelining or alpa");
        return mtf_command_line_fail("meshtf-plan export", error);
    }
    const char *file = output != NULL ? output : "-";
    const char *arguments[12] = { "--export", to, "-o", file };
    int n = 4;
    if (hosts != NULL) {
        arguments[n++] = "--hosts";
        arguments[n++] = hosts;
    }
    if (weights != NULL) {
        arguments[n++] = "--weights";
        arguments[n++] = weights;
    }
    if (json)
        arguments[n++] = "--json";
    arguments[n++] = "--";
    arguments[n] = argv[1];
    return run("meshtf-plan export", arguments);
}
