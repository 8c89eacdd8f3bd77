// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-report: reads a plan and writes what people look at into a folder. */
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/output_guard.h"
#include "reports/drawing/cut_view.h"
#include "reports/drawing/drawings.h"
#include "reports/exports/export.h"
#include "reports/exports/onnx/export_onnx.h"
#include "reports/exports/pipelines/export_pipeline.h"
#include "reports/facts/metrics_log.h"
#include "reports/facts/timeline.h"
#include "reports/page/page.h"
#include "reports/page/page_compare.h"
#include "reports/page/page_compare_pipelines.h"
#include "reports/page/page_pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *output; /* a folder; of exports a file */
    char *metrics, *trace;
    char *form;    /* of an export, or NULL */
    char *hosts;   /* of a rankfile, or NULL */
    char *weights; /* of an ONNX file, or NULL */
    gboolean compare;
    gboolean json; /* figures on standard output */
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

static void add_measured(cJSON *root, const GArray *run) {
    cJSON *measured = cJSON_AddObjectToObject(root, "measured");
    const MtfMetricsRecord *last = &g_array_index(run, MtfMetricsRecord, run->len - 1);
    mtf_json_add_integer(measured, "steps", run->len);
    mtf_json_add_number(measured, "step_seconds", mtf_metrics_median_seconds(run));
    mtf_json_add_number(measured, "communication_seconds", mtf_metrics_median_communication(run));
    mtf_json_add_number(measured, "loss", last->loss);
}

/* The report's figures for machines: what the plan predicts, priced anew, and what was measured. */
static void print_json(const MtfStepFacts *facts, const GArray *run) {
    g_autofree char *mesh = mtf_mesh_format(&facts->plan->layout->mesh);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "graph", facts->plan->graph->name);
    cJSON_AddStringToObject(root, "machine", facts->machine->name);
    cJSON_AddStringToObject(root, "mesh", mesh);
    mtf_json_add_integer(root, "memory_limit", facts->limit);
    cJSON_AddItemToObject(root, "predicted", mtf_predict(&facts->pricer, facts->program));
    if (run != NULL)
        add_measured(root, run);
    mtf_json_say(root);
}

static void print_pipeline_json(const MtfPipelinePlan *pipeline, const GArray *run) {
    cJSON *root = cJSON_Duplicate(pipeline->predicted, true);
    if (run != NULL)
        add_measured(root, run);
    mtf_json_say(root);
}

/* What the options say was measured; NULL where they do not. */
static bool load_measured(const Options *options, GArray **run, MtfRunTrace **trace,
                          GError **error) {
    if (options->metrics != NULL && (*run = mtf_metrics_log_load(options->metrics, error)) == NULL)
        return false;
    return options->trace == NULL || (*trace = mtf_run_trace_load(options->trace, error)) != NULL;
}

/* Everything about one plan into a folder; `options` say what was measured. */
static bool write_plan_report(const MtfPlan *plan, const char *folder, const Options *options,
                              GError **error) {
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, error);
    g_autoptr(GArray) run = NULL;
    g_autoptr(MtfRunTrace) trace = NULL;
    if (facts == NULL || !load_measured(options, &run, &trace, error))
        return false;
    g_autoptr(MtfStepParts) parts = mtf_step_parts_new(facts);
    g_autoptr(MtfDrawings) drawings =
        make_folder(folder, error) ? mtf_drawings_write(folder, parts, error) : NULL;
    if (drawings == NULL ||
        !write_texts(folder, facts, &(MtfPageParts){ parts, drawings, run, trace }, error))
        return false;
    if (options->json)
        print_json(facts, run);
    return true;
}

/* ---- Pipelines ------------------------------------------------------------------------------ */

/* The first stage whose program is that of `stage`. */
static int first_alike(const MtfPipelinePlan *pipeline, int stage) {
    const char *digest = mtf_pipeline_stage(pipeline, stage)->program_sha256;
    int first = 0;
    while (g_strcmp0(mtf_pipeline_stage(pipeline, first)->program_sha256, digest) != 0)
        first++;
    return first;
}

/* A page for each stage, those of one program sharing theirs: folders[stage], under `folder`. */
static bool write_stages(const MtfPipelinePlan *pipeline, const char *folder, char **folders,
                         GError **error) {
    const Options nothing_measured = { 0 };
    for (int stage = 0; stage < (int)pipeline->stages->len; stage++) {
        int first = first_alike(pipeline, stage);
        folders[stage] = g_strdup_printf("stage-%d", first);
        g_autofree char *path = g_build_filename(folder, folders[stage], NULL);
        if (first == stage &&
            !write_plan_report(mtf_pipeline_stage(pipeline, stage), path, &nothing_measured, error))
            return false;
    }
    return true;
}

static bool write_pipeline(const char *path, const Options *options, GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = mtf_pipeline_plan_load(path, error);
    g_autoptr(MtfPipelineFacts) facts =
        pipeline != NULL ? mtf_pipeline_facts_new(pipeline, error) : NULL;
    if (facts == NULL)
        return false;
    g_autoptr(GArray) run = NULL;
    g_autoptr(MtfRunTrace) trace = NULL;
    if (!load_measured(options, &run, &trace, error))
        return false;
    g_auto(GStrv) folders = g_new0(char *, pipeline->stages->len + 1);
    g_autofree char *copy = g_build_filename(options->output, "plan.json", NULL);
    if (!make_folder(options->output, error) ||
        !write_stages(pipeline, options->output, folders, error) ||
        !mtf_pipeline_plan_save(pipeline, copy, error))
        return false;
    g_autoptr(MtfPartitionView) view = mtf_cut_view_new(facts, folders);
    g_autofree char *drawing = NULL;
    if (!mtf_drawings_write_cut(options->output, view, &drawing, error))
        return false;
    g_autofree char *page =
        mtf_page_pipeline(facts, &(MtfPipelinePageParts){ folders, drawing, run, trace });
    if (options->json)
        print_pipeline_json(pipeline, run);
    return write_text(options->output, "index.html", page, error);
}

static bool write_report(const char *path, const Options *options, GError **error) {
    if (mtf_pipeline_plan_is(path))
        return write_pipeline(path, options, error);
    g_autoptr(MtfPlan) plan = mtf_plan_load(path, error);
    return plan != NULL && write_plan_report(plan, options->output, options, error);
}

/* ---- Exports -------------------------------------------------------------------------------- */

static bool write_onnx(const char *plan_path, const Options *options, GError **error) {
    const char *path = options->output != NULL ? options->output : "-";
    bool staged = mtf_pipeline_plan_is(plan_path);
    if (options->json)
        return mtf_input_error(error, "--json: an ONNX file is no text");
    g_autoptr(MtfPipelinePlan) pipeline = staged ? mtf_pipeline_plan_load(plan_path, error) : NULL;
    g_autoptr(MtfPlan) plan = staged ? NULL : mtf_plan_load(plan_path, error);
    if (plan == NULL && pipeline == NULL)
        return false;
    g_autoptr(GByteArray) bytes = plan != NULL
                                      ? mtf_export_onnx(plan, options->weights, error)
                                      : mtf_export_onnx_pipeline(pipeline, options->weights, error);
    return bytes != NULL && mtf_file_write(path, (const char *)bytes->data, bytes->len, error);
}

static char *export_pipeline(const char *path, const Options *options, GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = mtf_pipeline_plan_load(path, error);
    MtfExportRequest request = { options->form, options->hosts };
    return pipeline != NULL ? mtf_export_pipeline(pipeline, &request, error) : NULL;
}

static char *export_plan(const MtfPlan *plan, const Options *options, GError **error) {
    g_autoptr(MtfStepFacts) facts = plan != NULL ? mtf_step_facts_new(plan, error) : NULL;
    MtfExportRequest request = { options->form, options->hosts };
    return facts != NULL ? mtf_export(facts, &request, error) : NULL;
}

static char *text_in_json(const char *form, const char *text) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "form", form);
    cJSON_AddStringToObject(object, "text", text);
    char *printed = mtf_json_print(object);
    cJSON_Delete(object);
    return printed;
}

static bool write_export(const char *plan_path, const Options *options, GError **error) {
    bool pipeline = mtf_pipeline_plan_is(plan_path);
    if (strcmp(options->form, "onnx") == 0)
        return write_onnx(plan_path, options, error);
    if (options->weights != NULL)
        return mtf_input_error(error, "--weights is for --to onnx");
    g_autoptr(MtfPlan) plan = pipeline ? NULL : mtf_plan_load(plan_path, error);
    g_autofree char *text =
        pipeline ? export_pipeline(plan_path, options, error) : export_plan(plan, options, error);
    const char *path = options->output != NULL ? options->output : "-";
    if (text != NULL && options->json) {
        char *plain = g_steal_pointer(&text);
        text = text_in_json(options->form, plain);
        g_free(plain);
    }
    return text != NULL && mtf_file_write(path, text, strlen(text), error);
}

/* ---- Plans side by side --------------------------------------------------------------------- */

static bool load_plans(char **paths, int n, GPtrArray *plans, GPtrArray *facts, GError **error) {
    for (int i = 0; i < n; i++) {
        MtfPlan *plan = mtf_plan_load(paths[i], error);
        if (plan == NULL)
            return false;
        g_ptr_array_add(plans, plan);
        MtfStepFacts *step = mtf_step_facts_new(plan, error);
        if (step == NULL)
            return false;
        g_ptr_array_add(facts, step);
    }
    return true;
}

static void free_plan(void *plan) {
    mtf_plan_free(plan);
}

static void free_facts(void *facts) {
    mtf_step_facts_free(facts);
}

static bool any_pipeline(char **paths, int n) {
    for (int i = 0; i < n; i++)
        if (mtf_pipeline_plan_is(paths[i]))
            return true;
    return false;
}

/* One of several plans, of a pipeline or of one mesh. */
typedef struct {
    MtfPipelinePlan *pipeline;
    MtfPipelineFacts *facts;
    MtfPlan *plan;
} EitherPlan;

static bool either_load(EitherPlan *either, const char *path, GError **error) {
    if (!mtf_pipeline_plan_is(path))
        return (either->plan = mtf_plan_load(path, error)) != NULL;
    either->pipeline = mtf_pipeline_plan_load(path, error);
    if (either->pipeline != NULL)
        either->facts = mtf_pipeline_facts_new(either->pipeline, error);
    return either->facts != NULL;
}

static void either_clear(EitherPlan *either) {
    mtf_pipeline_facts_free(either->facts);
    mtf_pipeline_plan_free(either->pipeline);
    mtf_plan_free(either->plan);
}

/* Where some of the plans have stages. */
static bool compare_pipelines(char **paths, int n, const Options *options, GError **error) {
    EitherPlan plans[MTF_COMPARED_MAX] = { 0 };
    MtfComparedPipeline compared[MTF_COMPARED_MAX];
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        good = either_load(&plans[i], paths[i], error);
        compared[i] = (MtfComparedPipeline){ paths[i], plans[i].facts, plans[i].plan };
    }
    g_autofree char *page = good ? mtf_page_compare_pipelines(compared, n) : NULL;
    good = good && make_folder(options->output, error) &&
           write_text(options->output, "index.html", page, error);
    for (int i = 0; i < n; i++)
        either_clear(&plans[i]);
    return good;
}

static bool write_comparison(char **paths, int n, const Options *options, GError **error) {
    if (n > MTF_COMPARED_MAX)
        return mtf_input_error(error, "%d plans are more than the %d that stand side by side", n,
                               MTF_COMPARED_MAX);
    if (any_pipeline(paths, n))
        return compare_pipelines(paths, n, options, error);
    g_autoptr(GPtrArray) plans = g_ptr_array_new_with_free_func(free_plan);
    g_autoptr(GPtrArray) facts = g_ptr_array_new_with_free_func(free_facts);
    if (!load_plans(paths, n, plans, facts, error) || !make_folder(options->output, error))
        return false;
    MtfComparedPlan compared[MTF_COMPARED_MAX];
    for (int i = 0; i < n; i++)
        compared[i] = (MtfComparedPlan){ paths[i], g_ptr_array_index(facts, i) };
    g_autofree char *page = mtf_page_compare(compared, n);
    return write_text(options->output, "index.html", page, error);
}

/* ---- Entry --------------------------------------------------------------------------------- */

static bool run(int argc, char **argv, const Options *options, GError **error) {
    if (argc >= 2 && options->compare && options->output != NULL)
        return write_comparison(argv + 1, argc - 1, options, error);
    if (argc == 2 && options->form != NULL)
        return write_export(argv[1], options, error);
    if (argc != 2 || options->output == NULL)
        return mtf_input_error(error, "the usage is meshtf-report PLAN -o DIR");
    return write_report(argv[1], options, error);
}

int main(int argc, char **argv) {
    Options options = { 0 };
    gboolean version = FALSE;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output, "Write into this folder",
          "DIR" },
        { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &options.metrics,
          "What meshtf-run --metrics wrote", "FILE" },
        { "trace", 0, 0, G_OPTION_ARG_FILENAME, &options.trace, "What meshtf-run --trace wrote",
          "FILE" },
        { "export", 0, 0, G_OPTION_ARG_STRING, &options.form,
          "Write the plan in the words of another tool instead (-o FILE, or standard output)",
          "mtf|jax|dtensor|megatron|deepspeed|maxtext|torchtitan|shardy|onnx|onnx-text|slurm|rankfile|torch-pipelining|alpa" },
        { "weights", 0, 0, G_OPTION_ARG_FILENAME, &options.weights,
          "A checkpoint beside the ONNX file that has its weights", "FILE" },
        { "compare", 0, 0, G_OPTION_ARG_NONE, &options.compare,
          "Set several plans side by side instead, as a page", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options.json,
          "Print the report's figures, or an export, as JSON", NULL },
        { "hosts", 0, 0, G_OPTION_ARG_STRING, &options.hosts, "Names of the nodes, for a rankfile",
          "A,B,C" },
        { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version", NULL },
        { 0 },
    };
    GError *error = NULL;
    /* A command of meshtf-plan that starts this program has its errors told in its own name. */
    g_set_prgname(g_str_has_prefix(argv[0], "meshtf-plan ") ? argv[0] : "meshtf-report");
    mtf_output_guard_begin();
    const MtfUsage usage = { "PLAN -o DIR",
                             "Writes what people look at: index.html, graph.dot, graph.svg, "
                             "timeline.json, summary.txt, plan.json, program.txt.\n\n"
                             "  meshtf-report plan.json --metrics metrics.jsonl -o report\n"
                             "  meshtf-report --compare one.json other.json -o report",
                             0, G_MAXINT, "draws a plan" };
    if (!mtf_command_line_read(&argc, &argv, entries, &usage, &error))
        return mtf_command_line_fail(g_get_prgname(), error);
    if (version) {
        puts("meshtf-report " MTF_VERSION);
        return 0;
    }
    run(argc, argv, &options, &error);
    mtf_command_line_clear(entries);
    return error != NULL ? mtf_command_line_fail(g_get_prgname(), error) : 0;
}
