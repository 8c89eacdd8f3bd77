// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/search_pipeline.h"

#include "analyzer/commands/report_child.h"
#include "analyzer/cuts/cut_search.h"
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

/* Where the user sets no gap, the search of a stage ends within this share of its optimum. */
#define STAGE_GAP 0.005

typedef struct {
    const MtfSearchPipeline *options;
    MtfMachine *machine;
    MtfGraph *written;
    GArray *meshes;
    GPtrArray *stage_meshes; /* GArray of MtfMesh, after a search for cuts */
    MtfCutPlan *cut;         /* NULL: stages are of equal devices and balanced work */
    MtfPipelineRequest request;
} Search;

static void search_clear(Search *search) {
    mtf_machine_free(search->machine);
    mtf_graph_free(search->written);
    if (search->meshes != NULL)
        g_array_unref(search->meshes);
    if (search->stage_meshes != NULL)
        g_ptr_array_unref(search->stage_meshes);
    mtf_cut_plan_free(search->cut);
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
    if (o->stages == 0)
        return mtf_input_error(error, "--stages auto needs --devices and no --mesh");
    if (o->devices < 1 || o->devices % o->stages != 0)
        return mtf_input_error(error,
                               "%d devices are not %d stages of equal size: give --devices a "
                               "multiple of --stages, or --mesh, the mesh of one stage",
                               o->devices, o->stages);
    search->meshes =
        mtf_mesh_shapes_on(search->machine, o->devices / o->stages, o->max_axes, error);
    return search->meshes != NULL;
}

/* 0 where any number will do. */
static bool read_microbatches(Search *search, GError **error) {
    const char *text = search->options->microbatches;
    gint64 value = 0;
    if (text != NULL && strcmp(text, "auto") != 0 &&
        !g_ascii_string_to_signed(text, 10, 2, MTF_MAX_MICROBATCHES, &value, NULL))
        return mtf_input_error(error,
                               "--microbatches \"%s\" must be auto or 2 to %d for a pipeline", text,
                               MTF_MAX_MICROBATCHES);
    search->request.form.microbatches = (int)value;
    return true;
}

/* As many micro-batches as are asked for; or, so that bubbles are short and examples whole, the
 * largest divisor of the batch up to four times the stages. */
static bool choose_microbatches(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    MtfStepVariant *form = &search->request.form;
    if (form->microbatches > 0)
        return true;
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

/* The parts of the graph that the schedule puts on each stage's devices. */
static bool choose_chunks(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    if (o->chunks < 0 || o->chunks > MTF_MAX_CHUNKS)
        return mtf_input_error(error, "--chunks %d must be 1 to %d", o->chunks, MTF_MAX_CHUNKS);
    search->request.chunks = MAX(1, o->chunks);
    if (strcmp(o->schedule, MTF_ANY_SCHEDULE) == 0)
        return o->chunks == 0 ||
               mtf_input_error(error, "--schedule auto chooses the number of chunks itself");
    int chunks = mtf_pipeline_chunks(o->schedule, error);
    if (o->chunks == 0)
        search->request.chunks = chunks;
    return chunks > 0;
}

static bool is_auto(const char *text) {
    return text == NULL || strcmp(text, "auto") == 0;
}

/* Stages of equal devices. */
static bool divide_evenly(Search *search, GError **error) {
    MtfPipelineRequest *request = &search->request;
    int parts = mtf_graph_stages(search->written);
    if (parts % request->chunks != 0)
        return mtf_input_error(error,
                               "the graph names %d stages, which are not %d on the devices of each",
                               parts, request->chunks);
    if (request->stages == 0)
        request->stages = parts / request->chunks;
    if (!find_meshes(search, error) || !choose_microbatches(search, error))
        return false;
    request->meshes = search->meshes;
    return true;
}

/* Takes over what the search for cuts found; each stage is searched on the mesh it was priced on. */
static void take_cut(Search *search) {
    const MtfCutPlan *cut = search->cut;
    search->request.stages = (int)cut->stages->len;
    search->request.form = cut->variant;
    mtf_cut_plan_apply(cut, search->written);
    search->stage_meshes = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (guint s = 0; s < cut->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(cut->stages, MtfCutStage, s);
        GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
        g_array_append_val(meshes, stage->mesh);
        g_ptr_array_add(search->stage_meshes, meshes);
    }
    search->request.stage_meshes = search->stage_meshes;
}

/* Where no layout made by hand fits, the search over free layouts may still find one for a number of
 * stages that was asked for. */
static bool search_cut(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    const MtfPipelineRequest *request = &search->request;
    MtfCutRequest wanted = { .forward = search->written,
                             .machine = search->machine,
                             .devices = o->devices,
                             .memory = request->search.memory_limit,
                             .stages = o->stages,
                             .microbatches = request->form.microbatches,
                             .recompute = is_auto(o->recompute) ? MTF_RECOMPUTES
                                                                : (int)request->form.recompute,
                             .max_axes = o->max_axes,
                             .batch_dim = o->batch_dim,
                             .precision = request->form.precision };
    if (o->devices < 1)
        return mtf_input_error(error, "say how many processors there are for all stages: "
                                      "--devices N");
    GError *cause = NULL;
    search->cut = mtf_cut_search(&wanted, &cause);
    if (search->cut != NULL) {
        take_cut(search);
        return true;
    }
    bool hopeless = o->stages == 0 || !g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT);
    if (hopeless)
        g_propagate_error(error, cause);
    else
        g_error_free(cause);
    return !hopeless && divide_evenly(search, error);
}

static bool prepare(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    MtfPlanningGraph graph = { o->graph, o->dims, o->precision, o->batch, o->length,
                               o->json,  false,   o->loss,      false };
    MtfPipelineRequest *request = &search->request;
    search->machine = mtf_planning_machine(o->machine, o->software, error);
    if (search->machine == NULL)
        return false;
    int64_t limit = mtf_planning_room(search->machine);
    if (o->memory != NULL && !mtf_bytes_parse(o->memory, &limit, error))
        return false;
    search->written = mtf_planning_graph_load(&graph, error);
    *request = (MtfPipelineRequest){ .written = search->written,
                                     .stages = o->stages,
                                     .schedule = o->schedule,
                                     .form = { .batch_dim = o->batch_dim,
                                               .precision = o->precision,
                                               .fuses = search->machine->software != NULL } };
    request->search = (MtfPlanSearchOptions){ .machine = search->machine,
                                              .memory_limit = limit,
                                              .has_gap = true,
                                              .gap = isnan(o->gap) ? STAGE_GAP : o->gap,
                                              .seconds = o->seconds / MAX(1, o->stages) };
    if (search->written != NULL)
        request->form.precision =
            mtf_planning_precision_for(search->machine, search->written, o->precision);
    if (search->written == NULL || !read_microbatches(search, error) ||
        !choose_chunks(search, error) ||
        (!is_auto(o->recompute) &&
         !mtf_recompute_parse(o->recompute, &request->form.recompute, error)))
        return false;
    bool given = o->mesh != NULL || mtf_graph_stages(search->written) > 0;
    if (request->chunks > 1 && o->stages == 0 && !given)
        return mtf_input_error(error,
                               "schedule %s has %d chunks a stage, which are cut evenly: say how "
                               "many stages, --stages S",
                               o->schedule, request->chunks);
    given |= request->chunks > 1;
    return given ? divide_evenly(search, error) : search_cut(search, error);
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

static void print_proof(const MtfCutPlan *cut) {
    if (cut == NULL) {
        puts(
            "proof          each stage's layout is searched with a bound; the cut balances work and "
            "is not proven");
        return;
    }
    g_autofree char *seconds = mtf_seconds_format(cut->seconds);
    g_autofree char *bound = mtf_seconds_format(cut->bound);
    printf("cut            best of %d numbers of micro-batches and recomputations by dynamic "
           "programming over stages laid out by hand:\n"
           "               %s, of which %s is the work spread evenly (a gap of %.3g %%)\n",
           cut->tried, seconds, bound, 100 * (1 - cut->bound / cut->seconds));
    puts("proof          each stage's layout is searched with a bound; the cut is the best under "
         "layouts made by hand");
}

static void print_for_people(const Search *search, const MtfPipelinePlan *pipeline) {
    const MtfSearchPipeline *o = search->options;
    const cJSON *stages = cJSON_GetObjectItem(pipeline->predicted, "stages");
    const cJSON *tried = cJSON_GetObjectItem(pipeline->predicted, "schedules");
    double step = mtf_json_number_of(pipeline->predicted, "step_seconds", 0);
    double bubble = mtf_json_number_of(pipeline->predicted, "bubble", 0);
    g_autofree char *seconds = mtf_seconds_format(step);
    mtf_planning_print_machine(mtf_pipeline_stage(pipeline, 0), search->machine, o->machine != NULL,
                               o->precision);
    printf("pipeline       %d stages on %d devices, schedule %s, %d micro-batches, recomputation "
           "%s\n",
           (int)pipeline->stages->len, mtf_pipeline_devices(pipeline), pipeline->schedule,
           pipeline->graph->microbatches, mtf_recompute_name(search->request.form.recompute));
    for (guint s = 0; s < pipeline->stages->len; s++)
        print_stage(pipeline, (int)s, cJSON_GetArrayItem(stages, (int)s));
    printf("step           %s, of which %.1f %% is the bubble\n", seconds, 100 * bubble);
    for (const cJSON *one = tried != NULL ? tried->child : NULL; one != NULL; one = one->next) {
        g_autofree char *other = mtf_seconds_format(mtf_json_number_of(tried, one->string, 0));
        printf("               with %s it takes %s\n", one->string, other);
    }
    print_proof(search->cut);
}

/* What the cut was chosen by: seconds of the model, and what its gap is a gap to. */
static void add_cut(cJSON *object, const MtfCutPlan *cut) {
    cJSON *item = cJSON_AddObjectToObject(object, "cut");
    mtf_json_add_number(item, "seconds", cut->seconds);
    mtf_json_add_number(item, "bound", cut->bound);
    mtf_json_add_number(item, "gap", 1 - cut->bound / cut->seconds);
    cJSON_AddStringToObject(item, "gap_to",
                            "the work of all units under layouts made by hand, each where it costs "
                            "least, spread evenly over the devices without a bubble");
    mtf_json_add_integer(item, "tried", cut->tried);
    cJSON *list = cJSON_AddArrayToObject(item, "stages");
    for (guint s = 0; s < cut->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(cut->stages, MtfCutStage, s);
        cJSON *of = cJSON_CreateObject();
        g_autofree char *mesh = mtf_mesh_format(&stage->mesh);
        mtf_json_add_integer(of, "operations", stage->end - stage->first);
        mtf_json_add_integer(of, "devices", stage->devices);
        cJSON_AddStringToObject(of, "mesh", mesh);
        cJSON_AddStringToObject(of, "layout", stage->layout);
        mtf_json_add_number(of, "seconds", stage->seconds);
        mtf_json_add_number(of, "memory", stage->bytes);
        cJSON_AddItemToArray(list, of);
    }
}

static void print_as_json(const Search *search, const MtfPipelinePlan *pipeline) {
    cJSON *object = cJSON_Duplicate(pipeline->predicted, true);
    cJSON_AddStringToObject(object, "schedule", pipeline->schedule);
    mtf_json_add_integer(object, "microbatches", pipeline->graph->microbatches);
    cJSON_AddStringToObject(object, "recompute",
                            mtf_recompute_name(search->request.form.recompute));
    if (search->cut != NULL)
        add_cut(object, search->cut);
    g_autofree char *text = mtf_json_print(object);
    fputs(text, stdout);
    cJSON_Delete(object);
}

/* Writes the plan, and the page, which reads it from a file: the user's, or one of its own. */
static bool write_pipeline(const MtfPipelinePlan *pipeline, const MtfSearchPipeline *o,
                           GError **error) {
    bool own = o->output == NULL || strcmp(o->output, "-") == 0;
    if (o->output != NULL && !mtf_pipeline_plan_save(pipeline, o->output, error))
        return false;
    if (o->report == NULL)
        return true;
    if (!own)
        return mtf_report_child(o->output, o->report, error);
    g_autofree char *copy = g_build_filename(o->report, "plan.json", NULL);
    if (g_mkdir_with_parents(o->report, 0777) != 0)
        return mtf_failure(error, "%s: cannot be made", o->report);
    return mtf_pipeline_plan_save(pipeline, copy, error) &&
           mtf_report_child(copy, o->report, error);
}

bool mtf_search_pipeline(const MtfSearchPipeline *options, bool *one, GError **error) {
    Search search = { .options = options };
    g_autoptr(MtfPipelinePlan) pipeline = NULL;
    bool done = prepare(&search, error);
    *one = done && search.request.stages == 1;
    if (done && !*one) {
        pipeline = mtf_pipeline_search(&search.request, error);
        done = pipeline != NULL;
    }
    if (pipeline != NULL && options->json)
        print_as_json(&search, pipeline);
    else if (pipeline != NULL && g_strcmp0(options->output, "-") != 0)
        print_for_people(&search, pipeline);
    fflush(stdout);
    if (pipeline != NULL)
        done = write_pipeline(pipeline, options, error);
    search_clear(&search);
    return done;
}
