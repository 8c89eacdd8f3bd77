// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/pipeline/search_pipeline.h"

#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/training/microbatch_graph.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const MtfSearchPipeline *options;
    MtfMachine *machine;
    MtfGraph *written;
    GArray *meshes;
    MtfPipelineRequest request;
} Search;

static void search_clear(Search *search) {
    mtf_machine_free(search->machine);
    mtf_graph_free(search->written);
    if (search->meshes != NULL)
        g_array_unref(search->meshes);
}

static bool find_meshes(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    if (o->mesh != NULL) {
        MtfMesh mesh;
        if (!mtf_mesh_parse(o->mesh, 0, &mesh, error))
            return false;
        if (o->devices > 0 && mtf_mesh_size(&mesh) * o->stages != o->devices)
            return mtf_input_error(error,
                                   "%d stages on mesh \"%s\" each take %d devices, not the %d of "
                                   "--devices",
                                   o->stages, o->mesh, mtf_mesh_size(&mesh) * o->stages,
                                   o->devices);
        search->meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
        g_array_append_val(search->meshes, mesh);
        return true;
    }
    if (o->devices < 1 || o->devices % o->stages != 0)
        return mtf_input_error(error,
                               "%d devices are not %d stages of equal size: give --devices a "
                               "multiple of --stages, or --mesh, the mesh of one stage",
                               o->devices, o->stages);
    search->meshes =
        mtf_mesh_shapes_on(search->machine, o->devices / o->stages, o->max_axes, error);
    return search->meshes != NULL;
}

/* As many micro-batches as are asked for; or, so that bubbles are short and examples whole, the
 * largest divisor of the batch up to four times the stages. */
static bool choose_microbatches(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    MtfStepVariant *form = &search->request.form;
    gint64 value = 0;
    if (o->microbatches != NULL && strcmp(o->microbatches, "auto") != 0) {
        if (!g_ascii_string_to_signed(o->microbatches, 10, 2, MTF_MAX_MICROBATCHES, &value, NULL))
            return mtf_input_error(error,
                                   "--microbatches \"%s\" must be auto or 2 to %d for a pipeline",
                                   o->microbatches, MTF_MAX_MICROBATCHES);
        form->microbatches = (int)value;
        return true;
    }
    int batch = mtf_batch_dimension(search->written, o->batch_dim, error);
    if (batch < 0)
        return false;
    int64_t size = mtf_graph_size(search->written, batch);
    for (int m = 4 * o->stages; m >= 2 && form->microbatches == 0; m--)
        if (size % m == 0)
            form->microbatches = m;
    return form->microbatches > 0 ||
           mtf_input_error(error,
                           "a batch of %" PRId64 " cannot be divided into micro-batches for %d "
                           "stages",
                           size, o->stages);
}

static bool prepare(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    MtfPlanningGraph graph = { o->graph, o->dims, o->precision, o->batch, o->length,
                               o->json };
    MtfPipelineRequest *request = &search->request;
    search->machine = mtf_planning_machine(o->machine, error);
    if (search->machine == NULL)
        return false;
    int64_t limit = search->machine->memory_bytes;
    if (o->memory != NULL && !mtf_bytes_parse(o->memory, &limit, error))
        return false;
    search->written = mtf_planning_graph_load(&graph, error);
    *request =
        (MtfPipelineRequest){ .written = search->written,
                              .stages = o->stages,
                              .schedule = o->schedule,
                              .form = { .batch_dim = o->batch_dim, .precision = o->precision } };
    request->search = (MtfPlanSearchOptions){ .machine = search->machine,
                                              .memory_limit = limit,
                                              .has_gap = !isnan(o->gap),
                                              .gap = o->gap,
                                              .seconds = o->seconds / o->stages };
    if (search->written == NULL || !find_meshes(search, error) ||
        !choose_microbatches(search, error))
        return false;
    request->meshes = search->meshes;
    return o->recompute == NULL || strcmp(o->recompute, "auto") == 0 ||
           mtf_recompute_parse(o->recompute, &request->form.recompute, error);
}

static void print_stage(const MtfPipelinePlan *pipeline, int stage, const cJSON *predicted) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    int first = mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    g_autofree char *f = mtf_seconds_format(mtf_json_number_of(predicted, "forward_seconds", 0));
    g_autofree char *b = mtf_seconds_format(mtf_json_number_of(predicted, "backward_seconds", 0));
    g_autofree char *memory =
        mtf_bytes_format(mtf_json_number_of(predicted, "peak_memory_bytes", 0));
    printf("stage %-3d      devices %d to %d, mesh %s: %d operations, %s forward and %s backward a "
           "micro-batch, %d in flight, %s\n",
           stage, first, first + mtf_mesh_size(&plan->layout->mesh) - 1, mesh,
           (int)plan->graph->operations->len, f, b, plan->graph->in_flight, memory);
}

static void print_for_people(const MtfPipelinePlan *pipeline, const MtfSearchPipeline *o) {
    const cJSON *stages = cJSON_GetObjectItem(pipeline->predicted, "stages");
    double step = mtf_json_number_of(pipeline->predicted, "step_seconds", 0);
    double bubble = mtf_json_number_of(pipeline->predicted, "bubble", 0);
    g_autofree char *seconds = mtf_seconds_format(step);
    printf("machine        %s%s\n", o->machine != NULL ? o->machine : MTF_STANDARD_MACHINE,
           o->machine == NULL ? " (no --machine given)" : "");
    printf("pipeline       %d stages of %d devices, schedule %s, %d micro-batches\n",
           (int)pipeline->stages->len, mtf_pipeline_devices(pipeline) / (int)pipeline->stages->len,
           pipeline->schedule, pipeline->graph->microbatches);
    for (guint s = 0; s < pipeline->stages->len; s++)
        print_stage(pipeline, (int)s, cJSON_GetArrayItem(stages, (int)s));
    printf("step           %s, of which %.1f %% is the bubble\n", seconds, 100 * bubble);
    puts(
        "proof          each stage's layout is searched with a bound; the cut balances work and is "
        "not proven");
}

static void print_as_json(const MtfPipelinePlan *pipeline) {
    cJSON *object = cJSON_Duplicate(pipeline->predicted, true);
    cJSON_AddStringToObject(object, "schedule", pipeline->schedule);
    mtf_json_add_integer(object, "microbatches", pipeline->graph->microbatches);
    g_autofree char *text = mtf_json_print(object);
    fputs(text, stdout);
    cJSON_Delete(object);
}

bool mtf_search_pipeline(const MtfSearchPipeline *options, GError **error) {
    Search search = { .options = options };
    g_autoptr(MtfPipelinePlan) pipeline = NULL;
    if (prepare(&search, error))
        pipeline = mtf_pipeline_search(&search.request, error);
    bool done = pipeline != NULL;
    if (done && options->json)
        print_as_json(pipeline);
    else if (done && g_strcmp0(options->output, "-") != 0)
        print_for_people(pipeline, options);
    fflush(stdout);
    if (done && options->output != NULL)
        done = mtf_pipeline_plan_save(pipeline, options->output, error);
    search_clear(&search);
    return done;
}
