// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/inference_plan.h"

#include "analyzer/composites/expand.h"
#include "analyzer/rewriting/latent_keys.h"
#include "analyzer/serving/forward_graph.h"
#include "analyzer/serving/quantize_weights.h"
#include "analyzer/training/mixed_precision.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/inference/generation_stages.h"

#include <string.h>

/* Contexts beyond this are not looked for. */
#define LONGEST_CONTEXT (INT64_C(1) << 40)

static const char *const kind_names[] = { "prefill", "decode", "serve", "forward", NULL };

const char *mtf_infer_kind_name(MtfInferKind kind) {
    return kind_names[kind];
}

bool mtf_infer_kind_parse(const char *text, MtfInferKind *kind, GError **error) {
    for (int i = 0; i < MTF_INFER_KINDS; i++)
        if (strcmp(text, kind_names[i]) == 0) {
            *kind = (MtfInferKind)i;
            return true;
        }
    return mtf_input_error(error, "--infer \"%s\" must be prefill, decode, serve or forward", text);
}

static bool is_narrow(const char *precision) {
    MtfDtype dtype;
    return precision != NULL && mtf_dtype_from_name(precision, &dtype) && dtype == MTF_BF16;
}

/* Weights by eight bits where they were asked for. */
static MtfGraph *quantized(const MtfGraph *graph, const MtfInferenceTypes *types, GError **error) {
    int weights = 0;
    if (!types->int8_weights)
        return mtf_graph_copy(graph);
    g_autoptr(MtfGraph) made = mtf_quantize_weights(graph, &weights, error);
    if (made != NULL && weights == 0) {
        mtf_input_error(error, "--weights int8: no weight of this model is read by products alone");
        return NULL;
    }
    return g_steal_pointer(&made);
}

/* What else may be done with a graph that generates nothing. */
static void offer_forward(GError **error) {
    if (error == NULL)
        return;
    g_autofree char *sentence = (*error)->message;
    (*error)->message = g_strconcat(sentence, "; --infer forward runs any graph", NULL);
}

/* As the operations of texts that go on. */
static MtfGraph *generating(const MtfGraph *written, MtfInferKind phase,
                            const MtfInferenceSizes *sizes, GError **error) {
    bool prefill = phase == MTF_INFER_PREFILL;
    MtfGenerationSizes made = { .batch = sizes->batch,
                                .length = prefill ? sizes->context : 1,
                                .context = sizes->context + sizes->generate };
    g_autoptr(MtfGraph) lean = mtf_graph_copy(written);
    if (!mtf_graph_remember_latents(lean, made.length, made.context, error))
        return NULL;
    g_autoptr(MtfGraph) graph = mtf_generation_graph(lean, &made, error);
    if (graph == NULL)
        offer_forward(error);
    else if (mtf_graph_stages(written) > 0)
        mtf_generation_give_stages(graph, written);
    return g_steal_pointer(&graph);
}

MtfGraph *mtf_inference_graph(const MtfGraph *written, MtfInferKind phase,
                              const MtfInferenceSizes *sizes, const MtfInferenceTypes *types,
                              GError **error) {
    g_autoptr(MtfGraph) graph = phase == MTF_INFER_FORWARD
                                    ? mtf_forward_graph(written, error)
                                    : generating(written, phase, sizes, error);
    g_autoptr(MtfGraph) expanded = graph != NULL ? mtf_expand(graph, error) : NULL;
    g_autoptr(MtfGraph) narrow = expanded != NULL && is_narrow(types->precision)
                                     ? mtf_narrow_precision(expanded, error)
                                     : g_steal_pointer(&expanded);
    if (narrow == NULL)
        return NULL;
    mtf_graph_canonicalize(narrow);
    return quantized(narrow, types, error);
}

/* ---- At another context ---------------------------------------------------------------------- */

static MtfGraph *graph_at(const MtfInferencePhase *phase, int64_t context) {
    MtfGraph *graph = mtf_graph_copy(phase->plan->graph);
    mtf_graph_dimension(graph, mtf_generation_context(graph))->size = context;
    return graph;
}

static double seconds_of(const MtfInferencePhase *phase, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&phase->answer.pricer, program);
    return (double)schedule->nanoseconds * 1e-9;
}

double mtf_inference_seconds_at(const MtfInferencePhase *phase, int64_t context) {
    if (mtf_generation_context(phase->plan->graph) < 0)
        return phase->step_seconds;
    g_autoptr(MtfGraph) graph = graph_at(phase, context);
    g_autoptr(MtfProgram) program = mtf_lower(graph, phase->plan->layout);
    return seconds_of(phase, program);
}

/* Bytes of a device that variables of a kind take. */
static int64_t bytes_of(const MtfProgram *program, MtfMemoryKind memory) {
    int64_t bytes = 0;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->persistent && buffer->memory == memory)
            bytes += mtf_buffer_aligned_bytes(buffer);
    }
    return bytes;
}

/* Whether elements of caches along the context stay countable. */
static bool is_countable(const MtfInferencePhase *phase, int64_t context) {
    const MtfGraph *graph = phase->plan->graph;
    int dim = mtf_generation_context(graph);
    int64_t now = mtf_graph_size(graph, dim), most = 1;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (mtf_shape_find(&tensor->shape, dim) >= 0)
            most = MAX(most, mtf_graph_elements(graph, &tensor->shape) / now);
    }
    return context <= (INT64_C(1) << 52) / most;
}

static bool fits_at(const MtfInferencePhase *phase, int64_t context, int64_t memory_limit,
                    int64_t cache_limit) {
    if (!is_countable(phase, context))
        return false;
    g_autoptr(MtfGraph) graph = graph_at(phase, context);
    g_autoptr(MtfProgram) program = mtf_lower(graph, phase->plan->layout);
    return (cache_limit == 0 || bytes_of(program, MTF_MEMORY_CACHE) <= cache_limit) &&
           mtf_arena_fits(program, memory_limit);
}

/* Memory grows steadily with the context: first by doubling, then by halving. */
static int64_t longest_context(const MtfInferencePhase *phase, int64_t memory_limit,
                               int64_t cache_limit) {
    int dim = mtf_generation_context(phase->plan->graph);
    int64_t low = 0, high = 1;
    if (dim < 0)
        return 0;
    while (high < LONGEST_CONTEXT && fits_at(phase, high, memory_limit, cache_limit)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (fits_at(phase, middle, memory_limit, cache_limit))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- Search ---------------------------------------------------------------------------------- */

/* Tunes and prices `layout`; takes graph, layout and `search` over. False where it does not fit. */
static bool make_plan(MtfGraph *graph, MtfLayout *layout, const MtfPlanSearchOptions *options,
                      int64_t cache_limit, cJSON *search, MtfInferencePhase *phase) {
    const MtfPricer *pricer = &phase->answer.pricer;
    MtfSettling how = { .memory_limit = options->memory_limit };
    g_autoptr(MtfProgram) program = mtf_layout_settle(graph, layout, pricer, &how);
    phase->plan = mtf_planning_plan_new(graph, layout, program, pricer, search);
    phase->step_seconds = seconds_of(phase, program);
    phase->weight_bytes = bytes_of(program, MTF_MEMORY_VARIABLE);
    phase->cache_bytes = bytes_of(program, MTF_MEMORY_CACHE);
    phase->max_context = longest_context(phase, options->memory_limit, cache_limit);
    return mtf_arena_fits(program, options->memory_limit);
}

bool mtf_inference_search(MtfGraph *graph, const GArray *meshes,
                          const MtfPlanSearchOptions *options, int64_t cache_limit,
                          MtfInferencePhase *phase, GError **error) {
    *phase = (MtfInferencePhase){ 0 };
    bool done = mtf_plan_search(graph, meshes, options, &phase->answer, error);
    if (!done || !phase->answer.found) {
        mtf_graph_free(graph);
        return done;
    }
    make_plan(graph, mtf_plan_answer_layout(&phase->answer, graph), options, cache_limit,
              mtf_plan_answer_to_json(&phase->answer, options->memory_limit), phase);
    return true;
}

void mtf_inference_follow(MtfGraph *graph, const MtfInferencePhase *leader,
                          const MtfPlanSearchOptions *options, int64_t cache_limit,
                          MtfInferencePhase *phase) {
    *phase = (MtfInferencePhase){ .answer = { .pricer = leader->answer.pricer } };
    MtfLayout *layout = mtf_layout_copy(leader->plan->layout);
    mtf_layout_set_order(layout, NULL, 0);
    layout->execution.bucket_bytes = 0;
    cJSON *search = cJSON_CreateObject();
    mtf_json_add_integer(search, "memory_limit", options->memory_limit);
    if (!make_plan(graph, layout, options, cache_limit, search, phase))
        g_clear_pointer(&phase->plan, mtf_plan_free);
}

void mtf_inference_phase_clear(MtfInferencePhase *phase) {
    mtf_plan_answer_clear(&phase->answer);
    mtf_plan_free(phase->plan);
    *phase = (MtfInferencePhase){ 0 };
}
