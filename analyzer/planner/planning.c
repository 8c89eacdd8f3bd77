// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/planning.h"

#include "analyzer/import/model_import.h"
#include "analyzer/rewriting/padding.h"
#include "analyzer/training/batch_dimension.h"
#include "analyzer/training/live_graph.h"
#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "cost/machine/mapping_json.h"
#include "cost/price/predict.h"
#include "cost/summary/step_summary.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/stage_split.h"
#include "layouts/kernel_work/fusable.h"
#include "layouts/program/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What users of V100 call their own. */
static bool is_float16(const char *precision) {
    static const char *const names[] = { "fp16", "f16", "float16", "half", NULL };
    return g_strv_contains(names, precision);
}

static bool set_precision(MtfGraph *graph, const char *precision, GError **error) {
    MtfDtype dtype;
    if (precision == NULL)
        return true;
    if (is_float16(precision))
        return mtf_input_error(error,
                               "--precision \"%s\": float16 is not executed here; bf16 takes the "
                               "same bytes, and machines without bf16 are priced at their rate of "
                               "fp16: --precision bf16",
                               precision);
    if (!mtf_dtype_from_name(precision, &dtype) || !mtf_dtype_is_float(dtype))
        return mtf_input_error(error, "--precision \"%s\" must be f32, f64 or bf16", precision);
    mtf_graph_set_precision(graph, mtf_dtype_wide(dtype));
    return true;
}

static bool wants_bfloat16(const char *precision) {
    MtfDtype dtype;
    return precision != NULL && mtf_dtype_from_name(precision, &dtype) && dtype == MTF_BF16;
}

static MtfGraph *load_or_import(const MtfPlanningGraph *request, const MtfSizeOverrides *sizes,
                                GError **error) {
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *path = mtf_import_find(request->path, error);
    if (path == NULL)
        return NULL;
    MtfImport import = { .path = path,
                         .batch = request->batch,
                         .length = request->length,
                         .sizes = sizes,
                         .sizes_of_models = request->sizes_of_models,
                         .loss = request->loss };
    MtfGraph *graph = mtf_import_load(&import, said, error);
    for (guint i = 0; graph != NULL && !request->quiet && i < said->len; i++)
        printf("model          %s\n", (const char *)said->pdata[i]);
    return graph;
}

static bool pad(const MtfPlanningGraph *request, MtfGraph *graph, GError **error) {
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    bool done = mtf_pad(graph, request->pads, said, error);
    for (guint i = 0; done && !request->quiet && i < said->len; i++)
        printf("padding        %s\n", (const char *)said->pdata[i]);
    return done;
}

MtfGraph *mtf_planning_graph_load(const MtfPlanningGraph *request, GError **error) {
    MtfSizeOverrides overrides = { 0 };
    g_autoptr(MtfGraph) graph = NULL;
    if (mtf_size_overrides_read(request->dims, &overrides, error))
        graph = load_or_import(request, &overrides, error);
    g_strfreev(overrides.names);
    g_free(overrides.sizes);
    if (graph == NULL || !set_precision(graph, request->precision, error))
        return NULL;
    mtf_graph_drop_dead(graph);
    if (request->pads != NULL && !pad(request, graph, error))
        return NULL;
    for (int d = 0; request->even && d < (int)graph->dimensions->len; d++)
        mtf_graph_dimension(graph, d)->even = true;
    return g_steal_pointer(&graph);
}

void mtf_planning_warn_untrained(const MtfGraph *graph) {
    if (graph->loss >= 0 && !mtf_graph_is_training(graph) && graph->optimizer.kind == NULL)
        fprintf(stderr,
                "meshtf-plan: warning: graph \"%s\" has no optimizer, so its step ends with "
                "the gradients: nothing is updated, and no gradient is exchanged for that\n",
                graph->name);
}

static MtfGraph *make_training_graph(const MtfGraph *graph, const MtfStepVariant *variant,
                                     GError **error) {
    bool whole = mtf_graph_is_training(graph);
    if (whole && !mtf_training_graph_check(graph, error))
        return NULL;
    g_autoptr(MtfGraph) training = whole ? mtf_graph_copy(graph) : mtf_training_graph(graph, error);
    if (training == NULL)
        return NULL;
    mtf_graph_canonicalize(training);
    if (wants_bfloat16(variant->precision)) {
        MtfGraph *mixed = mtf_mixed_precision(training, error);
        mtf_graph_free(training);
        training = mixed;
    }
    if (training == NULL)
        return NULL;
    if (mtf_graph_stages(training) > 0)
        mtf_graph_complete_stages(training);
    return g_steal_pointer(&training);
}

/* Dimensions keep their numbers when a graph is differentiated. */
bool mtf_planning_division(const MtfGraph *graph, const MtfStepVariant *variant,
                           MtfDivision *division, GError **error) {
    *division = (MtfDivision){ .microbatches = MAX(1, variant->microbatches),
                               .batch = -1,
                               .ring = variant->ring,
                               .key_parts = variant->key_parts };
    division->own_pass = variant->own_pass && division->microbatches == 1 && graph->loss >= 0;
    bool divided = division->microbatches > 1 || division->own_pass;
    if (!divided && variant->batch_dim == NULL)
        return true;
    int batch = mtf_batch_dimension(graph, variant->batch_dim, error);
    if (divided)
        division->batch = batch;
    return batch >= 0;
}

MtfGraph *mtf_planning_training_graph(const MtfGraph *graph, const MtfStepVariant *variant,
                                      MtfDivision *division, GError **error) {
    return mtf_planning_division(graph, variant, division, error)
               ? make_training_graph(graph, variant, error)
               : NULL;
}

/* What the variant keeps of the whole graph, or of each stage what it says. */
static bool execute(MtfGraph *training, const MtfDivision *division, const MtfStepVariant *variant,
                    GError **error) {
    int n = variant->recompute_of_stage != NULL ? mtf_graph_stages(training) : 1;
    g_autofree MtfKept *kept = g_new(MtfKept, n);
    for (int s = 0; s < n; s++)
        kept[s] = mtf_step_variant_kept(variant, s);
    return mtf_graph_execute(training, division, kept, n, error);
}

/* Takes the training graph over. */
static MtfGraph *executed(MtfGraph *training, const MtfDivision *division,
                          const MtfStepVariant *variant, GError **error) {
    g_autoptr(MtfGraph) graph = training;
    if (!execute(graph, division, variant, error))
        return NULL;
    if (variant->fuses)
        mtf_graph_mark_near(graph, variant->framework);
    return g_steal_pointer(&graph);
}

MtfGraph *mtf_planning_executed_graph(const MtfGraph *graph, const MtfStepVariant *variant,
                                      GError **error) {
    MtfDivision division;
    MtfGraph *training = mtf_planning_training_graph(graph, variant, &division, error);
    return training != NULL ? executed(training, &division, variant, error) : NULL;
}

MtfGraph *mtf_planning_execute(const MtfGraph *training, const MtfDivision *division,
                               const MtfStepVariant *variant, GError **error) {
    return executed(mtf_graph_copy(training), division, variant, error);
}

const char *mtf_planning_precision(const MtfGraph *graph) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfDtype dtype = mtf_graph_tensor(graph, t)->dtype;
        if (dtype == MTF_F64 || dtype == MTF_BF16)
            return mtf_dtype_short_name(dtype);
    }
    return "f32";
}

const char *mtf_planning_inference_precision(const MtfMachine *machine, const MtfGraph *graph,
                                             const char *asked) {
    if (asked != NULL || *machine->precision == '\0')
        return asked;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfDtype dtype = mtf_graph_tensor(graph, t)->dtype;
        if (mtf_dtype_is_float(dtype) && dtype != MTF_F32)
            return NULL;
    }
    return machine->precision;
}

const char *mtf_planning_precision_for(const MtfMachine *machine, const MtfGraph *graph,
                                       const char *asked) {
    bool as_written = mtf_graph_is_training(graph) || graph->loss < 0;
    return as_written ? asked : mtf_planning_inference_precision(machine, graph, asked);
}

void mtf_planning_print_machine(const char *precision, const MtfMachine *machine, bool named,
                                const char *asked) {
    bool natural = asked == NULL && strcmp(precision, machine->precision) == 0;
    const char *rate = mtf_machine_peaks(machine, precision).dtype;
    bool lent = strcmp(precision, "bf16") == 0 && strcmp(rate, precision) != 0;
    printf("machine        %s%s\nsoftware       %s\nprecision      %s%s%s (%s)\n", machine->name,
           named ? ""
                 : " (no --machine given); meshtf-plan machines lists those that plans can be for",
           mtf_machine_software_name(machine), precision, lent ? ", at the rate of " : "",
           lent ? rate : "",
           asked != NULL ? "as asked for"
           : natural     ? "the machine's own; --precision says otherwise"
                         : "the graph's own");
}

/* What layers of Transformers weigh memory by; networks with windows or loops have some of it, too. */
static const bool weighs_memory[MTF_OPERATIONS] = {
    [MTF_OP_ATTENTION] = true,
    [MTF_OP_ATTENTION_FURTHER] = true,
    [MTF_OP_CAUSAL_MASK] = true,
    [MTF_OP_SOFTMAX] = true,
};

static bool reads_text(const MtfGraph *graph) {
    bool found = false;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfFeed feed = mtf_graph_tensor(graph, t)->feed;
        found |=
            mtf_graph_tensor(graph, t)->source == MTF_SOURCE_INPUT &&
            (feed == MTF_FEED_TOKENS || feed == MTF_FEED_NEXT_TOKENS || feed == MTF_FEED_SOURCE);
    }
    return found;
}

/* Such as are trained for text: attention over pictures, points or sets is PyTorch's. */
static bool has_transformer_layers(const MtfGraph *graph) {
    bool found = false;
    if (!reads_text(graph))
        return false;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->loop != 0 || mtf_operation_row(op->kind)->windows != 0)
            return false;
        found |= weighs_memory[op->kind];
    }
    return found;
}

MtfMachine *mtf_planning_machine_for(const MtfGraph *graph, const char *name_or_path,
                                     const char *software, GError **error) {
    g_autoptr(MtfMachine) machine =
        mtf_machine_load(name_or_path != NULL ? name_or_path : MTF_STANDARD_MACHINE, error);
    if (machine == NULL)
        return NULL;
    bool usual = software == NULL && graph != NULL && machine->kernels.known;
    if (usual && machine->transport.nccl && !has_transformer_layers(graph))
        software = "pytorch";
    return mtf_machine_set_software(machine, software, error) ? g_steal_pointer(&machine) : NULL;
}

MtfMachine *mtf_planning_machine(const char *name_or_path, const char *software, GError **error) {
    return mtf_planning_machine_for(NULL, name_or_path, software, error);
}

void mtf_step_variant_say_parts(GString *text, const MtfStepVariant *variant) {
    if (variant->key_parts > 1)
        g_string_append_printf(text, ", %d key parts", variant->key_parts);
    if (variant->ring > 1)
        g_string_append_printf(text, ", rings of %d", variant->ring);
}

MtfKept mtf_step_variant_kept(const MtfStepVariant *variant, int stage) {
    const MtfRecompute *each = variant->recompute_of_stage;
    return (MtfKept){ .recompute = each != NULL ? each[stage] : variant->recompute,
                      .recomputed_layers = variant->recomputed_layers,
                      .offload = variant->offload,
                      .offloaded_layers = variant->offloaded_layers };
}

void mtf_step_variant_add_parts(cJSON *object, const MtfStepVariant *variant) {
    if (variant->key_parts > 1)
        mtf_json_add_integer(object, "key_parts", variant->key_parts);
    if (variant->ring > 1)
        mtf_json_add_integer(object, "ring", variant->ring);
}

void mtf_step_variant_add_kept(cJSON *object, const MtfStepVariant *variant) {
    g_autofree char *recompute =
        mtf_recompute_format(variant->recompute, variant->recomputed_layers);
    g_autofree char *offload = mtf_offload_format(variant->offload, variant->offloaded_layers);
    cJSON_AddStringToObject(object, "recompute", recompute);
    if (variant->offload != MTF_OFFLOAD_NONE)
        cJSON_AddStringToObject(object, "offload", offload);
    mtf_step_variant_add_parts(object, variant);
}

bool mtf_planning_check_offload(const MtfMachine *machine, MtfOffload offload, GError **error) {
    return offload == MTF_OFFLOAD_NONE || machine->host_bandwidth > 0 ||
           mtf_input_error(error,
                           "--offload: the machine \"%s\" does not say how fast a device reaches "
                           "its host's memory (\"host_bandwidth\" of its device)",
                           machine->name);
}

int64_t mtf_planning_room(const MtfMachine *machine) {
    const MtfSoftware *software = machine->software;
    if (software == NULL)
        return machine->memory_bytes;
    double left = (double)machine->memory_bytes - software->kept.context_bytes;
    return (int64_t)fmax(left / (1 + software->kept.slack), 0);
}

/* Reads one of the plan's trees with places that say where it is. */
static MtfJsonDocument *reread(const cJSON *tree, const char *path, const char *key,
                               GError **error) {
    g_autofree char *name = g_strdup_printf("%s: %s", path, key);
    g_autofree char *text = cJSON_PrintUnformatted(tree);
    return mtf_json_document_parse(name, text, strlen(text), error);
}

MtfMachine *mtf_planning_plan_machine(const MtfPlan *plan, const char *path, GError **error) {
    if (plan->machine == NULL)
        return mtf_planning_machine(NULL, NULL, error);
    g_autoptr(MtfJsonDocument) document = reread(plan->machine, path, "machine", error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_machine_from_json(&root, error);
}

bool mtf_planning_plan_pricer(const MtfPlan *plan, const char *path, const MtfMachine *machine,
                              MtfPricer *pricer, GError **error) {
    const MtfMesh *mesh = &plan->layout->mesh;
    if (!mtf_pricer_init(pricer, machine, mesh, error))
        return false;
    if (plan->mapping == NULL)
        return true;
    g_autoptr(MtfJsonDocument) document = reread(plan->mapping, path, "mapping", error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document);
    return mtf_mapping_from_json(&root, mesh, &pricer->map, error);
}

MtfPlan *mtf_planning_plan_begin(MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                                 cJSON *search) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->graph = graph;
    plan->layout = layout;
    plan->precision = g_strdup(mtf_planning_precision(graph));
    plan->machine = mtf_machine_to_json(pricer->machine);
    plan->mapping = mtf_mapping_to_json(&layout->mesh, &pricer->map.mapping);
    plan->search = search;
    return plan;
}

void mtf_planning_plan_predict(MtfPlan *plan, const MtfProgram *program, const MtfPricer *pricer) {
    plan->predicted = mtf_predict(pricer, program);
    mtf_summary_add(plan->predicted, pricer, program,
                    (int64_t)mtf_json_number_of(plan->search, "memory_limit",
                                                (double)mtf_planning_room(pricer->machine)));
}

MtfPlan *mtf_planning_plan_new(MtfGraph *graph, MtfLayout *layout, const MtfProgram *program,
                               const MtfPricer *pricer, cJSON *search) {
    MtfPlan *plan = mtf_planning_plan_begin(graph, layout, pricer, search);
    mtf_planning_plan_predict(plan, program, pricer);
    plan->program_sha256 = mtf_program_digest(program);
    return plan;
}

bool mtf_planning_dump(const MtfPlan *plan, const char *pass, bool json, GError **error) {
    if (pass == NULL)
        return true;
    g_autofree char *text = mtf_dump_after(plan->graph, plan->layout, pass, error);
    if (text == NULL)
        return false;
    fputs(text, json ? stderr : stdout);
    return true;
}
