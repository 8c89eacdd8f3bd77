// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan check: says what a file is, that it is sound, and what it holds. A forward graph is
 * differentiated too, since that is the first thing every other command does with it. */
#include "analyzer/commands/commands.h"
#include "analyzer/import/model_import.h"
#include "analyzer/import/preset_import.h"
#include "analyzer/planner/planning.h"
#include "analyzer/training/live_graph.h"
#include "analyzer/training/training_graph.h"
#include "cost/machine/machine.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/onnx/onnx_model.h"
#include "layouts/plan_file/pipeline_plan.h"
#include "layouts/plan_file/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The file under examination. */
typedef struct {
    const char *name;
    const char *dump_after;  /* a pass, or NULL */
    bool json;               /* the report is printed as JSON */
    const MtfImport *import; /* path and sizes of a published model */
    char *text;
    gsize length;
    MtfJson root;
} File;

/* A dimension's size by name. */
static cJSON *dimensions_to_json(const MtfGraph *graph) {
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < (int)graph->dimensions->len; i++) {
        const MtfDimension *dimension = mtf_graph_dimension(graph, i);
        mtf_json_add_integer(object, dimension->name, dimension->size);
    }
    return object;
}

static void add_tensors(cJSON *report, const char *key, const MtfGraph *graph, MtfSource source) {
    int64_t count = 0, bytes = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        if (mtf_graph_tensor(graph, t)->source != source)
            continue;
        count++;
        bytes += mtf_graph_tensor_bytes(graph, t);
    }
    g_autofree char *bytes_key = g_strdup_printf("%s_bytes", key);
    mtf_json_add_integer(report, key, count);
    mtf_json_add_integer(report, bytes_key, bytes);
}

static void add_graph(cJSON *report, const MtfGraph *graph) {
    cJSON_AddStringToObject(report, "name", graph->name);
    mtf_json_add_integer(report, "parameters", mtf_graph_parameters(graph));
    mtf_json_add_integer(report, "operations", graph->operations->len);
    add_tensors(report, "inputs", graph, MTF_SOURCE_INPUT);
    add_tensors(report, "variables", graph, MTF_SOURCE_VARIABLE);
    if (graph->loss >= 0)
        cJSON_AddStringToObject(report, "loss", mtf_graph_tensor(graph, graph->loss)->name);
    if (graph->optimizer.kind != NULL)
        cJSON_AddStringToObject(report, "optimizer", graph->optimizer.kind);
    if (mtf_graph_has_batch_statistics(graph))
        cJSON_AddStringToObject(report, "batch_statistics", "of each micro-batch");
    cJSON_AddItemToObject(report, "dimensions", dimensions_to_json(graph));
}

static bool is_training_graph(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->phase != MTF_PHASE_FORWARD)
            return true;
    return mtf_graph_is_training(graph);
}

/* A graph without a loss is sound, but not for training. */
static bool check_training(cJSON *report, const MtfGraph *graph, GError **error) {
    if (is_training_graph(graph) || graph->loss < 0)
        return mtf_training_graph_check(graph, error);
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, error);
    if (training == NULL)
        return false;
    mtf_json_add_integer(report, "training_operations", training->operations->len);
    return true;
}

static void add_names(cJSON *report, const char *key, const GPtrArray *names) {
    if (names->len == 0)
        return;
    cJSON *list = cJSON_AddArrayToObject(report, key);
    for (guint i = 0; i < names->len; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(names->pdata[i]));
}

/* What stands in the graph and no step needs. */
static void add_dead_parts(cJSON *report, const MtfGraph *graph) {
    MtfDeadParts dead = mtf_dead_parts(graph);
    add_names(report, "dead_operations", dead.operations);
    add_names(report, "unused_variables", dead.variables);
    mtf_dead_parts_clear(&dead);
}

static bool check_graph(const File *file, cJSON *report, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_graph_from_json(&file->root, NULL, error);
    if (graph == NULL)
        return false;
    cJSON_AddStringToObject(report, "kind", is_training_graph(graph) ? "training graph" : "graph");
    add_graph(report, graph);
    add_dead_parts(report, graph);
    return check_training(report, graph, error);
}

/* `said` is what importing assumed. */
static bool tell_import(cJSON *report, const char *kind, const MtfGraph *graph, GPtrArray *said,
                        GError **error) {
    cJSON_AddStringToObject(report, "kind", kind);
    add_graph(report, graph);
    g_ptr_array_add(said, NULL);
    g_autofree char *text = g_strjoinv("; ", (char **)said->pdata);
    cJSON_AddStringToObject(report, "assumed", text);
    return check_training(report, graph, error);
}

static bool check_model(const File *file, cJSON *report, GError **error) {
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(MtfGraph) graph = mtf_import_model(file->import, &file->root, said, error);
    if (graph == NULL)
        return false;
    return tell_import(report, "published model", graph, said, error);
}

/* The graph of an ONNX file, sound where all of it can be translated, or of a known model. */
static bool check_imported(const MtfImport *import, const char *kind, cJSON *report,
                           GError **error) {
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(MtfGraph) graph = mtf_import_load(import, said, error);
    if (graph == NULL)
        return false;
    return tell_import(report, kind, graph, said, error);
}

/* What a device needs and has; that it has too little is said on standard error, too. */
static void add_memory(cJSON *report, const cJSON *predicted) {
    const cJSON *fits = cJSON_GetObjectItemCaseSensitive(predicted, "fits");
    double limit = mtf_json_number_of(predicted, "memory_limit", 0);
    double needed = fmax(mtf_json_number_of(predicted, "peak_memory_bytes", 0),
                         mtf_json_number_of(predicted, "given_bytes", 0));
    if (!cJSON_IsBool(fits) || limit <= 0)
        return;
    g_autofree char *needs = mtf_bytes_format(needed), *has = mtf_bytes_format(limit);
    g_autofree char *text =
        g_strdup_printf("%s: %s of %s a device", cJSON_IsTrue(fits) ? "yes" : "NO", needs, has);
    cJSON_AddStringToObject(report, "fits", text);
    if (!cJSON_IsTrue(fits))
        fprintf(stderr,
                "meshtf-plan check: this plan does not fit: it needs %s a device, and one has %s\n",
                needs, has);
}

static bool check_plan(const File *file, cJSON *report, GError **error) {
    g_autoptr(MtfPlan) plan = mtf_plan_parse(file->name, file->text, file->length, error);
    if (plan == NULL)
        return false;
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, error);
    if (program == NULL || !mtf_planning_dump(plan, file->dump_after, file->json, error))
        return false;
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    cJSON_AddStringToObject(report, "kind", "plan");
    add_graph(report, plan->graph);
    cJSON_AddStringToObject(report, "mesh", mesh);
    cJSON_AddStringToObject(report, "rules",
                            plan->layout->rules != NULL ? plan->layout->rules : "(free layout)");
    cJSON_AddStringToObject(report, "precision", plan->precision);
    g_autofree char *step = mtf_plan_step_format(plan);
    cJSON_AddStringToObject(report, "variant", step);
    mtf_json_add_integer(report, "instructions", mtf_program_length(program));
    add_memory(report, plan->predicted);
    return true;
}

/* "layers", or "layers,none" where stages differ; free with g_free. */
static char *recomputation_of(const MtfPipelinePlan *pipeline) {
    bool alike = true;
    g_autofree char *first = mtf_plan_recomputation(mtf_pipeline_stage(pipeline, 0));
    GString *text = g_string_new(first);
    for (int s = 1; s < (int)pipeline->stages->len; s++) {
        g_autofree char *own = mtf_plan_recomputation(mtf_pipeline_stage(pipeline, s));
        g_string_append_printf(text, ",%s", own);
        alike &= strcmp(own, first) == 0;
    }
    if (alike)
        g_string_assign(text, first);
    return g_string_free(text, FALSE);
}

/* The whole graph, and each stage's program. */
static bool check_pipeline(const File *file, cJSON *report, GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = mtf_pipeline_plan_from_json(&file->root, error);
    if (pipeline == NULL)
        return false;
    cJSON_AddStringToObject(report, "kind", "plan of a pipeline");
    add_graph(report, pipeline->graph);
    mtf_json_add_integer(report, "stages", pipeline->stages->len);
    mtf_json_add_integer(report, "devices", mtf_pipeline_devices(pipeline));
    cJSON_AddStringToObject(report, "schedule", pipeline->schedule);
    mtf_json_add_integer(report, "microbatches", pipeline->order->microbatches);
    cJSON_AddStringToObject(report, "precision", mtf_pipeline_stage(pipeline, 0)->precision);
    g_autofree char *again = recomputation_of(pipeline);
    cJSON_AddStringToObject(report, "recompute", again);
    int64_t instructions = 0;
    for (int s = 0; s < (int)pipeline->stages->len; s++) {
        g_autoptr(MtfProgram) program = mtf_plan_lower(mtf_pipeline_stage(pipeline, s), error);
        if (program == NULL)
            return false;
        instructions += mtf_program_length(program);
    }
    mtf_json_add_integer(report, "instructions", instructions);
    add_memory(report, pipeline->predicted);
    return true;
}

static bool check_machine(const File *file, cJSON *report, GError **error) {
    g_autoptr(MtfMachine) machine = mtf_machine_from_json(&file->root, error);
    if (machine == NULL)
        return false;
    int64_t devices = mtf_machine_devices(machine);
    cJSON_AddStringToObject(report, "kind", "machine");
    cJSON_AddStringToObject(report, "name", machine->name);
    if (devices < INT64_MAX)
        mtf_json_add_integer(report, "devices", devices);
    else
        cJSON_AddStringToObject(report, "devices", "any number");
    mtf_json_add_integer(report, "device_memory_bytes", machine->memory_bytes);
    mtf_json_add_number(report, "device_memory_bytes_per_second", machine->memory_bandwidth);
    mtf_json_add_number(report, "device_flops_per_second", machine->rate[0].value);
    return true;
}

static bool fail_dump(GError **error) {
    return mtf_input_error(error, "--dump-after goes with a plan on one mesh, whose program passes "
                                  "make (of a graph under a layout: meshtf-plan estimate)");
}

static bool check_file(const File *file, cJSON *report, GError **error) {
    static const struct {
        const char *key;
        bool (*check)(const File *file, cJSON *report, GError **error);
    } kinds[] = { { "model_type", check_model },
                  { "meshtf_graph", check_graph },
                  { "meshtf_plan", check_plan },
                  { "meshtf_pipeline_plan", check_pipeline },
                  { "meshtf_machine", check_machine } };
    MtfJson version;
    if (!mtf_json_object(&file->root, error))
        return false;
    if (file->dump_after != NULL && !mtf_json_find(&file->root, "meshtf_plan", &version))
        return fail_dump(error);
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (mtf_json_find(&file->root, kinds[i].key, &version))
            return kinds[i].check(file, report, error);
    return mtf_json_fail(
        &file->root, error,
        "neither a graph, a plan, a machine nor a published model: one of the keys "
        "\"meshtf_graph\", \"meshtf_plan\", \"meshtf_pipeline_plan\", \"meshtf_machine\", "
        "\"model_type\" must be there");
}

/* A file, or else the name of a machine or graph in the library or of a known model; free with g_free. */
static char *find_file(const char *name, GError **error) {
    if (strcmp(name, "-") == 0 || g_file_test(name, G_FILE_TEST_EXISTS))
        return mtf_import_file(name);
    char *path = mtf_library_find("machines", name, NULL);
    return path != NULL ? path : mtf_import_find(name, error);
}

static bool read_and_check(File *file, cJSON *report, GError **error) {
    const char *name = file->import->path;
    g_autofree char *path = find_file(name, error);
    gsize length;
    if (path == NULL)
        return false;
    if (file->dump_after != NULL && (mtf_onnx_is_path(path) || mtf_is_preset(path)))
        return fail_dump(error);
    if (mtf_onnx_is_path(path))
        return check_imported(file->import, "ONNX model", report, error);
    if (mtf_is_preset(path))
        return check_imported(file->import, "known model", report, error);
    g_autofree char *text = mtf_file_read(path, &length, error);
    if (text == NULL)
        return false;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, length, error);
    if (document == NULL)
        return false;
    file->name = name;
    file->text = text;
    file->length = length;
    file->root = mtf_json_root(document);
    return check_file(file, report, error);
}

static void print_value(const cJSON *value) {
    g_autofree char *text = mtf_json_print_levels(value, 0);
    fputs(cJSON_IsString(value) ? value->valuestring : g_strchomp(text), stdout);
}

static void print_names(const cJSON *list) {
    const cJSON *name;
    cJSON_ArrayForEach(name, list) {
        printf("%s%s", name->valuestring, name->next != NULL ? ", " : " (not executed)");
    }
}

/* One line a key; the members of an object on one line. */
static void print_for_people(const char *name, const cJSON *report) {
    const cJSON *item, *member;
    printf("%s is sound\n", name);
    cJSON_ArrayForEach(item, report) {
        printf("  %-30s ", item->string);
        if (cJSON_IsArray(item))
            print_names(item);
        else if (!cJSON_IsObject(item))
            print_value(item);
        else
            cJSON_ArrayForEach(member, item) {
                printf("%s=", member->string);
                print_value(member);
                putchar(member->next != NULL ? ' ' : '\n');
            }
        if (!cJSON_IsObject(item) || item->child == NULL)
            putchar('\n');
    }
}

int mtf_command_check(int argc, char **argv) {
    gboolean json = FALSE;
    g_autofree char *dump_after = NULL;
    int batch = MTF_NO_COUNT, length = MTF_NO_COUNT;
    const GOptionEntry entries[] = {
        { "batch", 0, 0, G_OPTION_ARG_INT, &batch, "Examples in a batch of a published model (32)",
          "N" },
        { "length", 0, 0, G_OPTION_ARG_INT, &length, "Positions in an example of one", "N" },
        { "dump-after", 0, 0, G_OPTION_ARG_STRING, &dump_after,
          "Print a plan's program as it is after a pass, or its graph after execute", "PASS" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, "Print the summary as JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    if (!mtf_command_line_parse(&argc, &argv, entries, "GRAPH|PLAN|MACHINE|MODEL",
                                "Says what a file is, whether it is sound, and what it holds. A "
                                "forward graph is differentiated, a plan lowered to its program.",
                                1, 1, &error) ||
        !mtf_option_count("--batch", &batch, &error) ||
        !mtf_option_count("--length", &length, &error))
        return mtf_command_line_fail("meshtf-plan check", error);
    cJSON *report = cJSON_CreateObject();
    MtfImport import = { .path = argv[1], .batch = batch, .length = length };
    File file = { .import = &import, .dump_after = dump_after, .json = json };
    bool sound = read_and_check(&file, report, &error);
    if (sound && json) {
        g_autofree char *text = mtf_json_print(report);
        fputs(text, stdout);
    } else if (sound) {
        print_for_people(argv[1], report);
    }
    cJSON_Delete(report);
    return sound ? 0 : mtf_command_line_fail("meshtf-plan check", error);
}
