// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan stages FILE: divides a profiled network into pipeline stages. The file is PipeDream's
 * graph.txt, Piper's JSON or a plain table of layers; the kind is seen from its text. */
#include "analyzer/commands/commands.h"
#include "analyzer/stages/hierarchy_search.h"
#include "analyzer/stages/layer_table.h"
#include "analyzer/stages/pipedream_profile.h"
#include "analyzer/stages/piper_profile.h"
#include "analyzer/stages/throughput_search.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/option_bytes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How many downsets a search may look at: pairs of them fill the time of a flat search, triples that
 * of two levels, and knapsacks that of nodes with several ways. */
#define CUTS_FLAT 1200
#define CUTS_OF_WAYS 700
#define CUTS_OF_LEVELS 900
#define PIPEDREAM_BANDWIDTH 1e9 /* what its planner assumes */

static const char summary[] =
    "Divides a profiled network into the stages of a pipeline: PipeDream's graph.txt, Piper's JSON, "
    "or a table of layers (columns name, seconds, output, parameters, stash, fixed). The seconds of "
    "the first two are those of a minibatch in steady state, of the slowest stage; of a table those "
    "of a synchronous batch.";

typedef struct {
    char *devices, *memory, *bandwidth, *overhead;
    gint64 batch;
    gboolean transfers, json;
} Options;

typedef struct {
    MtfStageGraph *graph;
    MtfDownsets *cuts; /* NULL for a table */
    MtfStageMachine machine;
    MtfStageLevels levels;
    bool nested; /* machines of several devices */
    double overhead;
} Task;

static MtfStageGraph *read_profile(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(path, &length, error);
    if (text == NULL)
        return NULL;
    if (!g_utf8_validate(text, (gssize)length, NULL)) {
        mtf_input_error(error, "%s: this is not a text in UTF-8", path);
        return NULL;
    }
    const char *begin = text + strspn(text, " \t\r\n");
    if (*begin != '{' && *begin != '[')
        return (strstr(text, " -- ") != NULL ? mtf_pipedream_profile_parse
                                             : mtf_layer_table_parse)(path, text, error);
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(path, text, length, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_piper_profile_read(&root, error);
}

static bool read_count(const char *text, int64_t *count) {
    guint64 value;
    if (!g_ascii_string_to_unsigned(text, 10, 1, MTF_STAGE_DEVICES_MAX, &value, NULL))
        return false;
    *count = (int64_t)value;
    return true;
}

/* "64", or "4x16": devices of a machine, and machines. */
static bool read_devices(const char *text, Task *task, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, "x", -1);
    guint count = g_strv_length(words);
    bool good = count == 1 || count == 2;
    task->levels.devices[1] = 1;
    for (guint i = 0; good && i < count; i++)
        good = read_count(words[i], &task->levels.devices[i]);
    task->machine.devices = good ? task->levels.devices[0] * task->levels.devices[1] : 0;
    task->nested = count == 2;
    return (good && task->machine.devices <= MTF_STAGE_DEVICES_MAX) ||
           mtf_input_error(error,
                           "--devices \"%s\" is neither a number of devices up to %d (64) nor "
                           "devices of a machine by machines (4x16)",
                           text, MTF_STAGE_DEVICES_MAX);
}

static bool read_speed(const char *text, double *bandwidth, GError **error) {
    g_autofree char *bytes = g_strdup(text);
    int64_t value = 0;
    if (g_str_has_suffix(bytes, "/s"))
        bytes[strlen(bytes) - 2] = '\0';
    if (!mtf_bytes_parse(bytes, &value, NULL) || value <= 0)
        return mtf_input_error(error,
                               "--bandwidth \"%s\" is not a number of bytes a second above 0, like "
                               "25e9 or 25GB/s",
                               text);
    *bandwidth = (double)value;
    return true;
}

/* One bandwidth, or that inside a machine and that between machines. */
static bool read_bandwidths(const char *text, Task *task, GError **error) {
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    guint count = g_strv_length(words);
    if (count < 1 || count > (task->nested ? 2u : 1u))
        return mtf_input_error(error, "--bandwidth \"%s\" has %u numbers where --devices has %d",
                               text, count, task->nested ? 2 : 1);
    for (guint i = 0; i < 2; i++)
        if (!read_speed(words[MIN(i, count - 1)], &task->levels.bandwidth[i], error))
            return false;
    task->machine.bandwidth = task->levels.bandwidth[0];
    return true;
}

static void assume_bandwidth(Task *task) {
    double bandwidth = task->graph->bandwidth;
    if (bandwidth <= 0)
        bandwidth = task->graph->kind == MTF_STAGE_TABLE ? INFINITY : PIPEDREAM_BANDWIDTH;
    task->levels.bandwidth[0] = task->levels.bandwidth[1] = bandwidth;
    task->machine.bandwidth = bandwidth;
}

static bool read_memory(const char *text, double *memory, GError **error) {
    int64_t bytes = 0;
    if (!mtf_option_bytes("--memory", text, &bytes, error))
        return false;
    *memory = (double)bytes;
    return true;
}

static bool read_overhead(const Options *options, Task *task, GError **error) {
    char *end;
    if (options->overhead == NULL)
        return true;
    if (task->graph->kind != MTF_STAGE_TABLE)
        return mtf_input_error(error, "--overhead is for tables of layers");
    task->overhead = g_ascii_strtod(options->overhead, &end);
    return (end != options->overhead && *end == '\0' && task->overhead >= 0 &&
            isfinite(task->overhead)) ||
           mtf_input_error(error, "--overhead \"%s\" is not a number of seconds of at least 0",
                           options->overhead);
}

static bool check_options(const Options *options, const Task *task, GError **error) {
    if (options->transfers && (task->graph->kind != MTF_STAGE_PIPEDREAM || task->nested))
        return mtf_input_error(error, "--transfers is for PipeDream's profiles on one level of "
                                      "devices");
    if (task->nested && task->graph->kind != MTF_STAGE_PIPEDREAM)
        return mtf_input_error(error, "--devices by machines is for PipeDream's profiles");
    return true;
}

static bool read_machine(const Options *options, Task *task, GError **error) {
    const MtfStageGraph *graph = task->graph;
    MtfStageMachine *machine = &task->machine;
    if (options->devices == NULL && graph->devices <= 0)
        return mtf_input_error(error, "--devices is missing (64, or 4x16 for machines of four)");
    g_autofree char *devices = options->devices != NULL
                                   ? g_strdup(options->devices)
                                   : g_strdup_printf("%" PRId64, graph->devices);
    machine->memory = graph->memory > 0 ? graph->memory : INFINITY;
    machine->batch = options->batch != MTF_NOT_GIVEN ? options->batch : graph->batch;
    machine->transfers = options->transfers;
    if (graph->kind == MTF_STAGE_TABLE && machine->batch == 0)
        machine->batch = 1;
    if (options->batch != MTF_NOT_GIVEN &&
        !mtf_option_between("--batch", options->batch, 1, INT64_MAX, error))
        return false;
    assume_bandwidth(task);
    return read_devices(devices, task, error) &&
           (options->bandwidth == NULL || read_bandwidths(options->bandwidth, task, error)) &&
           (options->memory == NULL || read_memory(options->memory, &machine->memory, error)) &&
           read_overhead(options, task, error) && check_options(options, task, error);
}

static MtfStagePlan *search_table(Task *task, GError **error) {
    MtfChain chain;
    mtf_layer_chain_init(&chain, task->graph, &task->machine, task->overhead);
    MtfStagePlan *plan = mtf_latency_search(&chain, error);
    mtf_layer_chain_clear(&chain);
    return plan;
}

static MtfStagePlan *search_stages(Task *task, GError **error) {
    if (task->graph->kind == MTF_STAGE_TABLE)
        return search_table(task, error);
    int most = task->nested                           ? CUTS_OF_LEVELS
               : task->graph->kind == MTF_STAGE_PIPER ? CUTS_OF_WAYS
                                                      : CUTS_FLAT;
    if (task->cuts == NULL)
        task->cuts = mtf_downsets_new(task->graph, most);
    return task->nested
               ? mtf_hierarchy_search(task->graph, task->cuts, &task->levels, &task->machine, error)
               : mtf_throughput_search(task->graph, task->cuts, &task->machine, error);
}

/* ---- Nothing fits ---------------------------------------------------------------------------- */

/* Limits are found to this factor. */
#define ENOUGH 1.01

static double most_bytes(const MtfStagePlan *plan) {
    double most = 0;
    for (guint i = 0; i < plan->stages->len; i++)
        most = MAX(most, g_array_index(plan->stages, MtfStage, i).bytes);
    return most;
}

/* The most bytes of a device that a plan takes under a limit; 0: there is none. */
static double bytes_within(Task *task, double limit) {
    task->machine.memory = limit;
    g_autoptr(MtfStagePlan) plan = search_stages(task, NULL);
    return plan != NULL ? most_bytes(plan) : 0;
}

/* Says the smallest limit found that would do, by halving between the one that does not and what a plan without
 * a limit takes. */
static void fail_unfit(Task *task, GError **error) {
    double low = task->machine.memory, high = bytes_within(task, INFINITY);
    g_autofree char *limit = mtf_bytes_format(low);
    while (high > ENOUGH * low) {
        double middle = sqrt(low * high), bytes = bytes_within(task, middle);
        low = bytes > 0 ? low : middle;
        high = bytes > 0 ? bytes : high;
    }
    g_autofree char *enough = mtf_bytes_format(high);
    g_set_error(
        error, MTF_ERROR, MTF_ERROR_FIT,
        "no division into stages fits in %s a device: the smallest limit found that would do "
        "is %s (--memory %.0f)",
        limit, enough, ceil(high));
}

static bool is_in_stage(const Task *task, const MtfStage *stage, int node) {
    if (task->cuts == NULL)
        return node >= stage->from && node < stage->to;
    return mtf_downsets_has(task->cuts, stage->to, node) &&
           !mtf_downsets_has(task->cuts, stage->from, node);
}

static const char *objective_of(const Task *task) {
    return task->graph->kind == MTF_STAGE_TABLE       ? "seconds of a synchronous batch"
           : task->graph->kind == MTF_STAGE_PIPEDREAM ? "seconds a minibatch in steady state"
                                                      : "seconds a sample in steady state";
}

/* What the bound is a bound of. */
static const char *gap_of(const Task *task) {
    if (task->cuts == NULL)
        return "every plan of consecutive layers on submeshes of 1, 2, 4 … devices";
    return task->cuts->complete ? "every plan of stages along the edges"
                                : "the work spread evenly over all devices";
}

static cJSON *json_of_nodes(const Task *task, const MtfStage *stage) {
    cJSON *list = cJSON_CreateArray();
    for (int v = 0; v < mtf_stage_graph_size(task->graph); v++) {
        const MtfStageNode *node = mtf_stage_graph_node(task->graph, v);
        if (is_in_stage(task, stage, v))
            cJSON_AddItemToArray(list, node->is_number ? cJSON_CreateRaw(node->name)
                                                       : cJSON_CreateString(node->name));
    }
    return list;
}

/* The ways of the nodes of a stage by name, where there are several. */
static void add_ways(cJSON *object, const Task *task, const MtfStage *stage) {
    if (task->graph->kind != MTF_STAGE_PIPER)
        return;
    MtfStagePricer *pricer = mtf_stage_pricer_new(task->graph, task->cuts, &task->machine);
    MtfStageSpan span = { stage->from, stage->to, stage->degree, stage->replicas, stage->flight };
    g_autofree int *ways = g_new(int, mtf_stage_graph_size(task->graph));
    mtf_stage_bytes(pricer, &span, ways);
    cJSON *list = cJSON_AddObjectToObject(object, "ways");
    for (int v = 0; v < mtf_stage_graph_size(task->graph); v++) {
        const MtfStageNode *node = mtf_stage_graph_node(task->graph, v);
        if (ways[v] >= 0)
            cJSON_AddStringToObject(list, node->name,
                                    g_array_index(node->ways, MtfStageWay, ways[v]).name);
    }
    mtf_stage_pricer_free(pricer);
}

static cJSON *json_of_stage(const Task *task, const MtfStage *stage) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToObject(object, "nodes", json_of_nodes(task, stage));
    mtf_json_add_integer(object, "devices", mtf_stage_devices(stage));
    mtf_json_add_integer(object, "replicas", stage->replicas);
    mtf_json_add_integer(object, "degree", stage->degree);
    mtf_json_add_number(object, "seconds", stage->seconds);
    mtf_json_add_number(object, "memory", stage->bytes);
    mtf_json_add_integer(object, "in_flight", stage->flight);
    add_ways(object, task, stage);
    return object;
}

static void print_json(const Task *task, const MtfStagePlan *plan) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_number(root, "seconds", plan->seconds);
    cJSON_AddStringToObject(root, "objective", objective_of(task));
    mtf_json_add_number(root, "bound", plan->bound);
    mtf_json_add_number(root, "gap", mtf_stage_plan_gap(plan));
    cJSON_AddStringToObject(root, "gap_to", gap_of(task));
    mtf_json_add_integer(root, "devices", task->machine.devices);
    mtf_json_add_integer(root, "devices_used", mtf_stage_plan_devices(plan));
    mtf_json_add_number(root, "bandwidth", task->machine.bandwidth);
    cJSON *list = cJSON_AddArrayToObject(root, "stages");
    for (guint i = 0; i < plan->stages->len; i++)
        cJSON_AddItemToArray(list, json_of_stage(task, &g_array_index(plan->stages, MtfStage, i)));
    g_autofree char *text = mtf_json_print_levels(root, 2);
    fputs(text, stdout);
    cJSON_Delete(root);
}

static void print_stage(const Task *task, const MtfStage *stage, guint number) {
    int first = -1, last = -1, count = 0;
    for (int v = 0; v < mtf_stage_graph_size(task->graph); v++) {
        if (!is_in_stage(task, stage, v))
            continue;
        first = first < 0 ? v : first;
        last = v;
        count++;
    }
    g_autofree char *time = mtf_seconds_format(stage->seconds);
    g_autofree char *bytes = mtf_bytes_format(stage->bytes);
    printf("%5u  %5" PRId64 "  %8" PRId64 "  %6d  %9s  %11s  %9" PRId64 "  %s … %s (%d)\n", number,
           mtf_stage_devices(stage), stage->replicas, stage->degree, time, bytes, stage->flight,
           mtf_stage_graph_node(task->graph, first)->name,
           mtf_stage_graph_node(task->graph, last)->name, count);
}

static void print_table(const Task *task, const MtfStagePlan *plan) {
    printf("%s: %.6g, at least %.6g (gap %.3g %% to %s)\n", objective_of(task), plan->seconds,
           plan->bound, 100 * mtf_stage_plan_gap(plan), gap_of(task));
    printf("%" PRId64 " of %" PRId64 " devices, %.3g bytes a second\n",
           mtf_stage_plan_devices(plan), task->machine.devices, task->machine.bandwidth);
    puts("stage devices  replicas  degree    seconds       memory  in flight  nodes");
    for (guint i = 0; i < plan->stages->len; i++)
        print_stage(task, &g_array_index(plan->stages, MtfStage, i), i);
}

static bool run(const Options *options, const char *path, GError **error) {
    Task task = { .graph = read_profile(path, error) };
    bool done = task.graph != NULL && read_machine(options, &task, error);
    GError *cause = NULL;
    MtfStagePlan *plan = done ? search_stages(&task, &cause) : NULL;
    if (g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT) && isfinite(task.machine.memory)) {
        g_clear_error(&cause);
        fail_unfit(&task, &cause);
    }
    if (cause != NULL)
        g_propagate_error(error, cause);
    if (plan != NULL)
        (options->json ? print_json : print_table)(&task, plan);
    mtf_stage_plan_free(plan);
    mtf_downsets_free(task.cuts);
    mtf_stage_graph_free(task.graph);
    return plan != NULL;
}

#define TEXT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING, &o.field, help, what }

int mtf_command_stages(int argc, char **argv) {
    Options o = { .batch = MTF_NOT_GIVEN };
    const GOptionEntry entries[] = {
        TEXT("devices", devices, "Devices, or devices of a machine by machines", "N|NxM"),
        TEXT("memory", memory, "Of a device (Piper: the file's; otherwise no limit)", "BYTES"),
        { "batch", 0, 0, G_OPTION_ARG_INT64, &o.batch,
          "Micro-batches of a batch (Piper: the file's; table: 1; PipeDream: a stream)", "M" },
        TEXT("bandwidth", bandwidth,
             "Bytes a second of a device, or inside and between machines (Piper: the file's; "
             "PipeDream: 1e9; table: no transfers)",
             "B|B,B"),
        TEXT("overhead", overhead, "Table: seconds for each doubling of a stage's devices", "S"),
        { "transfers", 0, 0, G_OPTION_ARG_NONE, &o.transfers,
          "PipeDream: activations must be carried in a stage's time, too", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done =
        mtf_command_line_parse(&argc, &argv, entries, "FILE --devices N", summary, 1, 1, &error) &&
        run(&o, argv[1], &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan stages", error);
}
