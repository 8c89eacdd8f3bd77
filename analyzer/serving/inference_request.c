// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/inference_request.h"

#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/training/batch_dimension.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/option_bytes.h"

#include <string.h>

#define STANDARD_BATCH 1
#define STANDARD_CONTEXT 2048
#define STANDARD_GENERATE 128 /* of serving; a decode step alone generates nothing more */

static bool read_sizes(MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    if (o->batch < 0 || o->context < 0 || o->generate < 0)
        return mtf_input_error(error,
                               "--batch and --context must be at least 1, --generate at least 0");
    if (mtf_inference_run_is_forward(run)) {
        run->sizes.batch = o->batch; /* or as the graph has it */
        return true;
    }
    run->sizes.batch = o->batch > 0 ? o->batch : STANDARD_BATCH;
    run->sizes.context = o->context > 0 ? o->context : STANDARD_CONTEXT;
    run->sizes.generate = o->generate > 0                ? o->generate
                          : run->kind == MTF_INFER_SERVE ? STANDARD_GENERATE
                                                         : 0;
    return true;
}

/* "9GiB", or "30%" of the limit. */
static bool read_cache_memory(MtfInferenceRun *run, GError **error) {
    const char *text = run->options->cache_memory;
    char *end = NULL;
    if (text == NULL)
        return true;
    double share = g_ascii_strtod(text, &end);
    if (strcmp(end, "%") != 0)
        return mtf_option_bytes("--cache-memory", text, &run->cache_limit, error);
    if (!(share > 0 && share <= 100))
        return mtf_input_error(error, "--cache-memory \"%s\" must be above 0 %% and at most 100 %%",
                               text);
    run->cache_limit = (int64_t)(share / 100 * (double)run->memory_limit);
    return true;
}

bool mtf_inference_shape_meshes(MtfInferenceRun *run, MtfInferKind kind, int devices,
                                GError **error) {
    g_clear_pointer(&run->meshes[kind], g_array_unref);
    run->meshes[kind] = mtf_mesh_shapes_on(run->machine, devices, run->options->max_axes, error);
    return run->meshes[kind] != NULL;
}

bool mtf_inference_find_meshes(MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int devices = o->devices / run->stages;
    if (o->devices % run->stages != 0)
        return mtf_input_error(error,
                               "%d stages do not divide %d devices, and with --infer all are of "
                               "equal size: give --devices a multiple of --stages",
                               run->stages, o->devices);
    if (o->mesh == NULL && o->devices < 1)
        return mtf_input_error(error, "say how many processors there are: --devices N, or --mesh "
                                      "'rows:2;cols:2'");
    if (o->mesh == NULL)
        return mtf_inference_shape_meshes(run, MTF_INFER_PREFILL, devices, error) &&
               mtf_inference_shape_meshes(run, MTF_INFER_DECODE, devices, error);
    MtfMesh mesh;
    if (!mtf_mesh_parse(o->mesh, devices, &mesh, error))
        return false;
    if (devices > 0 && mtf_mesh_size(&mesh) != devices)
        return mtf_input_error(error, "mesh \"%s\" has %d processors, not the %d of --devices",
                               o->mesh, mtf_mesh_size(&mesh), devices);
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++) {
        run->meshes[kind] = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
        g_array_append_val(run->meshes[kind], mesh);
    }
    return true;
}

/* How many examples the inputs have, where all of them count some. */
static int64_t count_examples(const MtfGraph *graph) {
    int batch = mtf_batch_dimension(graph, NULL, NULL);
    return batch >= 0 ? mtf_graph_size(graph, batch) : 1;
}

/* The graph of a model that has learned fewer positions than the usual context: a context of all of them. */
static MtfGraph *load_at_its_own(MtfInferenceRun *run, const MtfPlanningGraph *request) {
    MtfPlanningGraph own = *request;
    own.length = 0;
    MtfGraph *graph = mtf_planning_graph_load(&own, NULL);
    int length = graph != NULL ? mtf_graph_find_dimension(graph, "length") : -1;
    int64_t context = length >= 0 ? mtf_graph_size(graph, length) - run->sizes.generate : 0;
    if (context >= 1 && context < run->sizes.context) {
        run->sizes.context = context;
        return graph;
    }
    mtf_graph_free(graph);
    return NULL;
}

static bool load(MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int64_t length =
        mtf_inference_run_is_forward(run) ? o->length : run->sizes.context + run->sizes.generate;
    MtfPlanningGraph request = { .path = o->graph,
                                 .dims = o->dims,
                                 .precision = o->precision,
                                 .batch = (int)run->sizes.batch,
                                 .length = (int)MIN(length, INT32_MAX),
                                 .quiet = true,
                                 .sizes_of_models = !mtf_inference_run_is_forward(run) };
    GError *cause = NULL;
    run->written = mtf_planning_graph_load(&request, &cause);
    if (run->written == NULL && o->context == 0 && !mtf_inference_run_is_forward(run))
        run->written = load_at_its_own(run, &request);
    if (run->written == NULL) {
        g_propagate_error(error, cause);
        return false;
    }
    g_clear_error(&cause);
    if (mtf_inference_run_is_forward(run))
        run->sizes.batch = count_examples(run->written);
    run->precision = mtf_planning_inference_precision(run->machine, run->written, o->precision);
    return true;
}

/* Where any number of stages will do, the search cuts the graph and shapes the meshes itself. */
static bool check_stages(const MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    bool given = o->mesh != NULL || o->devices < 1 || mtf_graph_stages(run->written) > 0;
    return o->stages > 0 || !given ||
           mtf_input_error(error, "--stages auto needs --devices, no --mesh and no stages in the "
                                  "graph");
}

/* "auto", or fewer than there are. */
static bool check_prefill_devices(const MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int count;
    if (o->prefill_devices == NULL)
        return true;
    if (o->stages != 1)
        return mtf_input_error(error, "--prefill-devices does not go with --stages");
    if (run->kind != MTF_INFER_SERVE || o->mesh != NULL || o->devices < 2)
        return mtf_input_error(error, "--prefill-devices divides the --devices N, two or more, of "
                                      "--infer serve; their meshes are searched");
    return mtf_option_auto_or_count("--prefill-devices", o->prefill_devices, o->devices - 1, &count,
                                    error);
}

/* What no text is read for has no context, and one layout for all. */
static bool check_forward(const MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    const char *other = o->context != 0              ? "--context"
                        : o->generate != 0           ? "--generate"
                        : o->cache_memory != NULL    ? "--cache-memory"
                        : o->prefill_devices != NULL ? "--prefill-devices"
                                                     : NULL;
    if (!mtf_inference_run_is_forward(run))
        return o->length == 0 ||
               mtf_input_error(error,
                               "--length does not go with --infer %s: --context says how "
                               "long texts are",
                               mtf_infer_kind_name(run->kind));
    return other == NULL || mtf_input_error(error, "%s does not go with --infer forward", other);
}

bool mtf_inference_request(MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    if (!mtf_infer_kind_parse(o->infer, &run->kind, error) || !check_forward(run, error) ||
        !read_sizes(run, error) || !check_prefill_devices(run, error))
        return false;
    if (o->weights != NULL && strcmp(o->weights, "int8") != 0)
        return mtf_input_error(error,
                               "--weights \"%s\" must be int8; without it weights are of the type "
                               "that --precision says",
                               o->weights);
    run->machine = mtf_planning_machine(
        o->machine, o->software != NULL ? o->software : MTF_OWN_SOFTWARE, error);
    if (run->machine == NULL)
        return false;
    run->memory_limit = mtf_planning_room(run->machine);
    return (o->memory == NULL ||
            mtf_option_bytes("--memory", o->memory, &run->memory_limit, error)) &&
           read_cache_memory(run, error) && load(run, error) && check_stages(run, error);
}
