// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/inference_answer.h"

#include "cost/machine/doubt.h"
#include "cost/price/predict.h"
#include "cost/summary/step_summary.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <stdio.h>

/* The phase that is executed, token by token where there is one. */
static MtfInferKind main_kind(const MtfInferenceRun *run) {
    return run->kind == MTF_INFER_PREFILL || mtf_inference_run_is_forward(run) ? MTF_INFER_PREFILL
                                                                               : MTF_INFER_DECODE;
}

static int64_t max_context(const MtfInferenceRun *run) {
    return run->stages > 1 ? run->pipeline[main_kind(run)].max_context
                           : run->phase[main_kind(run)].max_context;
}

/* Tokens a second with a batch in each stage: where a phase's steps follow one another, its slowest stage
 * decides. */
static double full_tokens_per_second(const MtfInferenceRun *run) {
    const MtfInferenceSizes *s = &run->sizes;
    const MtfInferencePipeline *prefill = &run->pipeline[MTF_INFER_PREFILL];
    const MtfInferencePipeline *decode = &run->pipeline[MTF_INFER_DECODE];
    double batch = (double)s->batch;
    if (mtf_inference_run_is_forward(run)) /* examples */
        return batch / prefill->slowest_seconds;
    if (run->kind == MTF_INFER_PREFILL)
        return batch * (double)s->context / prefill->slowest_seconds;
    if (run->kind == MTF_INFER_DECODE)
        return batch / decode->slowest_seconds;
    double tokens = (double)s->generate;
    return batch * tokens / (prefill->slowest_seconds + tokens * decode->slowest_seconds);
}

static cJSON *phase_to_json(const MtfInferencePhase *phase) {
    cJSON *object = cJSON_CreateObject();
    g_autofree char *mesh = mtf_mesh_format(&phase->plan->layout->mesh);
    cJSON_AddStringToObject(object, "mesh", mesh);
    if (phase->plan->layout->rules != NULL)
        cJSON_AddStringToObject(object, "layout", phase->plan->layout->rules);
    else
        cJSON_AddNullToObject(object, "layout");
    mtf_json_add_number(object, "step_seconds", phase->step_seconds);
    mtf_json_add_integer(object, "max_context", phase->max_context);
    mtf_json_add_integer(object, "weight_bytes", phase->weight_bytes);
    mtf_json_add_integer(object, "cache_bytes", phase->cache_bytes);
    cJSON_AddItemReferenceToObject(object, "search", phase->plan->search);
    cJSON_AddItemReferenceToObject(object, "predicted", phase->plan->predicted);
    return object;
}

/* A list of stages, each as a phase of a whole model. */
static cJSON *pipeline_to_json(const MtfInferencePipeline *pipeline) {
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, "step_seconds", pipeline->step_seconds);
    mtf_json_add_number(object, "slowest_seconds", pipeline->slowest_seconds);
    mtf_json_add_integer(object, "max_context", pipeline->max_context);
    mtf_json_add_integer(object, "weight_bytes", pipeline->weight_bytes);
    mtf_json_add_integer(object, "cache_bytes", pipeline->cache_bytes);
    cJSON *stages = cJSON_AddArrayToObject(object, "stages");
    for (int s = 0; s < pipeline->stages; s++) {
        cJSON *stage = phase_to_json(&pipeline->phases[s]);
        mtf_json_add_number(stage, "transfer_seconds", pipeline->transfer_seconds[s]);
        cJSON_AddItemToArray(stages, stage);
    }
    cJSON_AddItemReferenceToObject(object, "predicted", pipeline->plan->predicted);
    return object;
}

static cJSON *kind_to_json(const MtfInferenceRun *run, MtfInferKind kind) {
    return run->stages > 1 ? pipeline_to_json(&run->pipeline[kind])
                           : phase_to_json(&run->phase[kind]);
}

static void add_tried(cJSON *object, const GArray *tried) {
    cJSON *list = cJSON_AddArrayToObject(object, "tried");
    for (guint i = 0; i < tried->len; i++) {
        const MtfTriedStages *one = &g_array_index(tried, MtfTriedStages, i);
        cJSON *item = cJSON_CreateObject();
        mtf_json_add_integer(item, "stages", one->stages);
        mtf_json_add_number(item, "tokens_per_second", one->tokens);
        cJSON_AddItemToArray(list, item);
    }
}

static const char *planned_precision(const MtfInferenceRun *run) {
    return run->precision != NULL ? run->precision : mtf_planning_precision(run->written);
}

static void print_as_json(const MtfInferenceRun *run) {
    cJSON *object = kind_to_json(run, main_kind(run));
    cJSON_AddStringToObject(object, "machine", run->machine->name);
    cJSON_AddStringToObject(object, "infer", mtf_infer_kind_name(run->kind));
    cJSON_AddStringToObject(object, "precision", planned_precision(run));
    if (run->options->weights != NULL)
        cJSON_AddStringToObject(object, "weights", run->options->weights);
    mtf_json_add_integer(object, "parameters", mtf_graph_parameters(run->written));
    mtf_json_add_integer(object, "batch", run->sizes.batch);
    if (!mtf_inference_run_is_forward(run)) {
        mtf_json_add_integer(object, "context", run->sizes.context);
        mtf_json_add_integer(object, "generate", run->sizes.generate);
    }
    mtf_json_add_number(
        object, mtf_inference_run_is_forward(run) ? "examples_per_second" : "tokens_per_second",
        mtf_inference_run_tokens_per_second(run));
    if (run->stages > 1)
        mtf_json_add_number(object,
                            mtf_inference_run_is_forward(run) ? "full_examples_per_second"
                                                              : "full_tokens_per_second",
                            full_tokens_per_second(run));
    if (run->kind == MTF_INFER_SERVE && run->prefill_devices == 0)
        cJSON_AddStringToObject(object, "layout_of", mtf_infer_kind_name(run->leader));
    if (run->prefill_devices > 0) {
        mtf_json_add_integer(object, "prefill_devices", run->prefill_devices);
        mtf_json_add_number(object, "handover_seconds", run->handover_seconds);
        mtf_json_add_number(object, "handover_bytes", run->handover_bytes);
        mtf_json_add_number(object, "together_tokens_per_second", run->together_tokens);
    }
    if (run->tried != NULL)
        add_tried(object, run->tried);
    for (int kind = 0; kind < MTF_INFER_SERVE && run->kind == MTF_INFER_SERVE; kind++)
        cJSON_AddItemToObject(object, mtf_infer_kind_name((MtfInferKind)kind),
                              kind_to_json(run, (MtfInferKind)kind));
    mtf_json_say(object);
}

static void print_phase(const MtfInferenceRun *run, MtfInferKind kind) {
    const MtfInferencePhase *phase = &run->phase[kind];
    g_autofree char *mesh = mtf_mesh_title(&phase->plan->layout->mesh);
    g_autofree char *weights = mtf_bytes_format((double)phase->weight_bytes);
    g_autofree char *bytes = mtf_bytes_format((double)phase->cache_bytes);
    g_autofree char *caches =
        mtf_inference_run_is_forward(run) ? g_strdup("") : g_strdup_printf(", caches %s", bytes);
    g_autofree char *summary = mtf_summary_format(phase->plan->predicted);
    g_autofree char *tables = mtf_predicted_format(phase->plan->predicted);
    printf("\n%-15smesh %s, layout %s\n",
           mtf_infer_kind_name(mtf_inference_run_is_forward(run) ? run->kind : kind), mesh,
           mtf_layout_title(phase->plan->layout));
    fputs(summary, stdout);
    printf("%-15sweights %s%s a device, for a batch of %" PRId64 "\n", "keeps", weights, caches,
           run->sizes.batch);
    fputs(tables, stdout);
}

static void print_stages(const MtfInferenceRun *run, MtfInferKind kind) {
    const MtfInferencePipeline *p = &run->pipeline[kind];
    g_autofree char *step = mtf_seconds_format(p->step_seconds);
    g_autofree char *slowest = mtf_seconds_format(p->slowest_seconds);
    g_autofree char *summary = mtf_summary_format(p->plan->predicted);
    printf("\n%-15s%d stages; a step %s for a batch of %" PRId64 ", the slowest stage %s\n",
           mtf_infer_kind_name(mtf_inference_run_is_forward(run) ? run->kind : kind), p->stages,
           step, run->sizes.batch, slowest);
    fputs(summary, stdout);
    for (int s = 0; s < p->stages; s++) {
        const MtfInferencePhase *phase = &p->phases[s];
        const MtfLayout *layout = phase->plan->layout;
        int size = mtf_mesh_size(&layout->mesh);
        g_autofree char *place =
            mtf_pipeline_place_format(s * size, (s + 1) * size - 1, &layout->mesh);
        g_autofree char *own = mtf_seconds_format(phase->step_seconds);
        g_autofree char *transfer = mtf_seconds_format(p->transfer_seconds[s]);
        g_autofree char *weights = mtf_bytes_format((double)phase->weight_bytes);
        g_autofree char *bytes = mtf_bytes_format((double)phase->cache_bytes);
        g_autofree char *caches = mtf_inference_run_is_forward(run)
                                      ? g_strdup("")
                                      : g_strdup_printf(", caches %s", bytes);
        printf("  stage %-6d %s, layout %s: %s, %s to the next; weights %s%s a device\n", s, place,
               mtf_layout_title(layout), own, transfer, weights, caches);
    }
}

/* Who does what, what the caches' way takes, and what all devices doing both would do. */
static void print_divided(const MtfInferenceRun *run) {
    g_autofree char *handover = mtf_seconds_format(run->handover_seconds);
    g_autofree char *bytes = mtf_bytes_format(run->handover_bytes);
    printf("devices        %d read prompts, %d generate; caches go over in %s (%s)\n",
           run->prefill_devices, run->options->devices - run->prefill_devices, handover, bytes);
    if (run->together_tokens > 0)
        printf("together       %.5g tokens a second were all %d devices doing both, in turn\n",
               run->together_tokens, run->options->devices);
    else
        printf("together       nothing fits where all %d devices do both\n", run->options->devices);
}

/* Whose layout serves both phases. */
static void print_leader(const MtfInferenceRun *run) {
    MtfInferKind follower = mtf_inference_other_phase(run->leader);
    g_autofree char *alone = mtf_seconds_format(run->alone_seconds);
    g_autofree char *now = mtf_seconds_format(mtf_inference_run_step_seconds(run, follower));
    printf(
        "one layout     of %s, for weights and caches that are kept once: %s takes %s, by itself %s\n",
        mtf_infer_kind_name(run->leader), mtf_infer_kind_name(follower), now, alone);
}

/* What other numbers of stages give. */
static void print_tried(const MtfInferenceRun *run) {
    for (guint i = 0; run->tried != NULL && i < run->tried->len; i++) {
        const MtfTriedStages *one = &g_array_index(run->tried, MtfTriedStages, i);
        if (one->stages == run->stages)
            continue;
        printf("%-15sin %d stage%s ", "", one->stages, one->stages > 1 ? "s" : "");
        if (one->tokens > 0)
            printf("%.5g\n", one->tokens);
        else
            puts("nothing fits");
    }
}

/* What a graph is run for. */
static void print_results(const MtfInferenceRun *run) {
    const MtfGraph *graph = run->stages > 1 ? run->pipeline[MTF_INFER_PREFILL].plan->graph
                                            : run->phase[MTF_INFER_PREFILL].plan->graph;
    GString *names = g_string_new(NULL);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->memory == MTF_MEMORY_OUTPUT)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", tensor->name);
    }
    printf("results        %s\n", names->str);
    g_string_free(names, TRUE);
}

static void print_for_people(const MtfInferenceRun *run) {
    const MtfSearchInference *o = run->options;
    mtf_planning_print_machine(planned_precision(run), run->machine, o->machine != NULL,
                               o->precision);
    if (mtf_inference_run_is_forward(run))
        printf("examples       %.5g a second\n", mtf_inference_run_tokens_per_second(run));
    else
        printf("examples       %" PRId64 ", a context of %" PRId64 ", %" PRId64
               " tokens more\ntokens         %.5g a second\n",
               run->sizes.batch, run->sizes.context, run->sizes.generate,
               mtf_inference_run_tokens_per_second(run));
    print_tried(run);
    if (run->prefill_devices > 0)
        print_divided(run);
    else if (run->kind == MTF_INFER_SERVE)
        print_leader(run);
    if (run->stages > 1)
        printf("all stages     %.5g a second with %d such batches under way\n",
               full_tokens_per_second(run), run->stages);
    if (mtf_inference_run_is_forward(run))
        print_results(run);
    else if (max_context(run) == 0)
        printf("context        any: what this model keeps does not grow with the text\n");
    else
        printf("context        memory has room for %" PRId64 " tokens an example in this layout\n",
               max_context(run));
    g_autofree char *doubt = mtf_doubt_format(run->machine, MTF_JUDGED_INFERENCE);
    if (doubt != NULL)
        printf("doubt          %s\n", doubt);
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        if (mtf_inference_run_wants(run, (MtfInferKind)kind))
            (run->stages > 1 ? print_stages : print_phase)(run, (MtfInferKind)kind);
}

static bool save(const MtfInferenceRun *run, const char *file, GError **error) {
    if (file == NULL)
        return true;
    return run->stages > 1 ? mtf_pipeline_plan_save(run->pipeline[main_kind(run)].plan, file, error)
                           : mtf_plan_save(run->phase[main_kind(run)].plan, file, error);
}

bool mtf_inference_answer(const MtfInferenceRun *run, GError **error) {
    const char *output = run->options->output;
    if (g_strcmp0(output, "-") != 0)
        (run->options->json ? print_as_json : print_for_people)(run);
    fflush(stdout);
    return save(run, output, error) && save(run, run->options->copy, error);
}
