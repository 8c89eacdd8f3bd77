// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/search/search_pipeline.h"

#include "analyzer/commands/report_child.h"
#include "analyzer/cuts/cut_planning.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/training/batch_dimension.h"
#include "cost/summary/step_summary.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/option_bytes.h"
#include "layouts/graph/microbatches.h"
#include "layouts/pipeline/pipeline_delay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where the user sets no gap, the search of a stage ends within this share of its optimum. */
#define STAGE_GAP 0.005

typedef struct MtfPipelineFind {
    const MtfSearchPipeline *options; /* `own`, */
    MtfSearchPipeline own;            /* the user's with the parts of attention that are tried */
    MtfMachine *machine;
    MtfGraph *written;
    GArray *meshes;
    bool given; /* the graph says what the stages are */
    MtfPipelineRequest request;
    MtfRecompute *listed; /* what the user says of each stage; or NULL */
    MtfCutAnswer answer;  /* its plan NULL: no stages */
} Search;

static void search_clear(Search *search) {
    mtf_machine_free(search->machine);
    mtf_graph_free(search->written);
    if (search->meshes != NULL)
        g_array_unref(search->meshes);
    mtf_cut_answer_clear(&search->answer);
    g_free(search->listed);
}

/* The mesh of one stage, which says how many devices there are. */
static bool read_mesh(Search *search, GError **error) {
    MtfSearchPipeline *o = &search->own;
    MtfMesh mesh;
    if (!mtf_mesh_parse(o->mesh, 0, &mesh, error))
        return false;
    if (!search->given && o->stages == 0)
        return mtf_input_error(error, "--stages auto needs --devices and no --mesh");
    int devices = mtf_mesh_size(&mesh) * o->stages;
    if (o->devices > 0 && devices != o->devices)
        return mtf_input_error(error,
                               "%d stages, each on mesh \"%s\", take %d devices together, not "
                               "the %d of --devices",
                               o->stages, o->mesh, devices, o->devices);
    o->devices = devices;
    search->meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(search->meshes, mesh);
    return true;
}

static bool find_meshes(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    if (search->meshes != NULL)
        return true;
    if (o->stages == 0)
        return mtf_input_error(error, "--stages auto needs --devices and no --mesh");
    if (o->devices > 0 && o->devices < o->stages)
        return mtf_input_error(error, "%d stages need %d devices or more, not %d", o->stages,
                               o->stages, o->devices);
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
        !g_ascii_string_to_signed(text, 10, 1, MTF_MAX_MICROBATCHES, &value, NULL))
        return mtf_input_error(error, "--microbatches \"%s\" must be auto or 1 to %d", text,
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
    if (g_str_has_suffix(o->schedule, ".csv"))
        return mtf_input_error(error,
                               "--schedule \"%s\" must be a schedule's name: orders in files are "
                               "simulated by \"meshtf-plan schedule %s\", no plan has them",
                               o->schedule, o->schedule);
    if (o->chunks != 0 && !mtf_option_between("--chunks", o->chunks, 1, MTF_MAX_CHUNKS, error))
        return false;
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

/* One word for all stages, or a list. Where any schedule will do the length of the list says how many
 * parts of the graph each domain has. */
static bool read_recomputation(Search *search, GError **error) {
    const char *text = search->options->recompute;
    MtfPipelineRequest *request = &search->request;
    if (is_auto(text))
        return true;
    if (strchr(text, ',') == NULL)
        return mtf_recompute_parse(text, &request->form.recompute, &request->form.recomputed_layers,
                                   error);
    if (search->options->stages == 0)
        return mtf_input_error(error,
                               "--recompute \"%s\": a list is for as many stages as "
                               "--stages N says",
                               text);
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    int stages = request->stages, parts = (int)g_strv_length(words) / stages;
    if (strcmp(search->options->schedule, MTF_ANY_SCHEDULE) == 0)
        request->chunks = CLAMP(parts, 1, MTF_MAX_CHUNKS);
    search->listed = mtf_recompute_parse_stages(text, stages * request->chunks, error);
    request->form.recompute_of_stage = search->listed;
    return search->listed != NULL;
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

/* Chunks a domain that are tried when the schedule may be any. */
static const int any_chunks[] = { 1, 2, 4, 0 };

static bool is_between_layers(const MtfSearchPipeline *options) {
    return g_strcmp0(options->cut, "layers") == 0;
}

/* Stages as the graph gives them, or of equal devices and work. */
static bool plan_as_given(Search *search, GError **error) {
    search->answer.variant = search->request.form;
    if (search->request.stages > 1)
        search->answer.plan = mtf_pipeline_search(&search->request, error);
    return search->request.stages <= 1 || search->answer.plan != NULL;
}

/* Whether stages of equal devices and work may be what is asked for. */
static bool may_be_equal(const Search *search) {
    const MtfSearchPipeline *o = search->options;
    return !o->megatron && !is_between_layers(o) && (o->stages == 0 || o->devices % o->stages == 0);
}

/* Where no cut by the model has stages that fit: these, where their number is given; else one mesh for all may
 * still do. */
static bool plan_equal(Search *search, GError **error) {
    g_clear_error(error);
    return search->options->stages == 0 ||
           (divide_evenly(search, error) && plan_as_given(search, error));
}

/* Cuts the graph into stages and plans them. */
static bool search_cut(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    const MtfPipelineRequest *request = &search->request;
    int own_chunks[] = { request->chunks, 0 };
    bool any = strcmp(o->schedule, MTF_ANY_SCHEDULE) == 0 && search->listed == NULL;
    MtfCutPlanning planning = {
        .cut = { .forward = search->written,
                 .machine = search->machine,
                 .devices = o->devices,
                 .memory = request->search.memory_limit,
                 .stages = o->stages,
                 .mesh = search->meshes != NULL ? &g_array_index(search->meshes, MtfMesh, 0) : NULL,
                 .microbatches = request->form.microbatches,
                 .recompute = is_auto(o->recompute) ? MTF_RECOMPUTES : (int)request->form.recompute,
                 .recompute_of_stage = search->listed,
                 .chunks = any ? any_chunks : own_chunks,
                 .between_layers = is_between_layers(o),
                 .megatron = o->megatron,
                 .overlaps = mtf_pipeline_is_asynchronous(o->schedule),
                 .max_axes = o->max_axes,
                 .batch_dim = o->batch_dim,
                 .key_parts = o->key_parts,
                 .ring = o->ring,
                 .precision = request->form.precision },
        .pipeline = *request,
    };
    GError *cause = NULL;
    bool done = mtf_cut_planning_search(&planning, &search->answer, &cause);
    if (g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT) && may_be_equal(search))
        done = plan_equal(search, &cause);
    bool asks = error != NULL && !search->answer.modelled;
    if (asks && g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT))
        mtf_cut_planning_say_enough(&planning, &cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return done;
}

/* What Megatron-LM runs is found by a cut of the graph, between layers of one kind. */
static bool check_megatron(const Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    static const char *const schedules[] = { "1f1b", "interleaved", MTF_ANY_SCHEDULE, NULL };
    if (!o->megatron)
        return true;
    if (search->given || o->mesh != NULL)
        return mtf_input_error(error,
                               "--exportable megatron cuts the graph itself: give --devices, "
                               "no --mesh and no stages in the graph");
    if (!g_strv_contains(schedules, o->schedule))
        return mtf_input_error(error,
                               "Megatron-LM runs 1f1b or interleaved, not %s: --schedule "
                               "1f1b|interleaved|auto",
                               o->schedule);
    if (o->stages > 0 && o->devices % o->stages != 0)
        return mtf_input_error(error,
                               "Megatron-LM's stages have equal devices, and %d devices are not %d "
                               "stages of equal size",
                               o->devices, o->stages);
    if (search->listed != NULL)
        return mtf_input_error(error, "Megatron-LM computes the same again in all stages: "
                                      "--recompute with one word");
    return search->written->repeats->len == 1 ||
           mtf_input_error(error,
                           "Megatron-LM cuts one chain of layers, and the graph has %d kinds of "
                           "layers",
                           (int)search->written->repeats->len);
}

/* Stages that begin with layers are found by a cut of a graph that has some. */
static bool check_cut(const Search *search, GError **error) {
    const char *cut = search->options->cut;
    if (cut == NULL || strcmp(cut, "any") == 0)
        return true;
    if (strcmp(cut, "layers") != 0)
        return mtf_input_error(error, "--cut \"%s\" must be any or layers", cut);
    if (search->given)
        return mtf_input_error(error, "--cut layers cuts the graph itself, which has stages of its "
                                      "own");
    return search->written->repeats->len > 0 ||
           mtf_input_error(error, "--cut layers cuts between repeated layers, and the graph has "
                                  "none");
}

/* Stages with several parts of the graph have equal devices. */
static bool check_sizes(const Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    int chunks = search->request.chunks;
    return search->given || chunks == 1 || o->stages == 0 || o->devices % o->stages == 0 ||
           mtf_input_error(error,
                           "with %d parts of the graph each, %d stages have equal devices, and %d "
                           "do not divide so: --devices a multiple of %d, or a schedule with one "
                           "part a stage",
                           chunks, o->stages, o->devices, o->stages);
}

static bool prepare(Search *search, GError **error) {
    const MtfSearchPipeline *o = search->options;
    MtfPlanningGraph graph = { .path = o->graph,
                               .dims = o->dims,
                               .precision = o->precision,
                               .batch = o->batch,
                               .length = o->length,
                               .quiet = o->json,
                               .loss = o->loss,
                               .pads = o->pads,
                               .even = o->megatron };
    MtfPipelineRequest *request = &search->request;
    search->written = mtf_planning_graph_load(&graph, error);
    if (search->written == NULL)
        return false;
    search->machine = mtf_planning_machine_for(search->written, o->machine, o->software, error);
    if (search->machine == NULL)
        return false;
    int64_t limit = mtf_planning_room(search->machine);
    if (o->memory != NULL && !mtf_option_bytes("--memory", o->memory, &limit, error))
        return false;
    *request = (MtfPipelineRequest){ .written = search->written,
                                     .stages = o->stages,
                                     .schedule = o->schedule,
                                     .form = { .batch_dim = o->batch_dim,
                                               .precision = o->precision,
                                               .key_parts = o->key_parts,
                                               .ring = o->ring,
                                               .fuses = search->machine->software != NULL,
                                               .framework = mtf_software_framework(
                                                   search->machine->software) } };
    request->search = (MtfPlanSearchOptions){ .machine = search->machine,
                                              .memory_limit = limit,
                                              .uniform = o->uniform,
                                              .has_gap = true,
                                              .gap = isnan(o->gap) ? STAGE_GAP : o->gap };
    request->stage_seconds = o->seconds / MAX(1, o->stages);
    request->form.precision =
        mtf_planning_precision_for(search->machine, search->written, o->precision);
    if (!read_microbatches(search, error) || !choose_chunks(search, error) ||
        !read_recomputation(search, error))
        return false;
    search->given = mtf_graph_stages(search->written) > 0;
    if ((o->mesh != NULL && !read_mesh(search, error)) || !check_megatron(search, error) ||
        !check_cut(search, error) || !check_sizes(search, error))
        return false;
    if (search->given)
        return divide_evenly(search, error);
    return o->devices > 0 || mtf_input_error(error, "say how many processors there are for all "
                                                    "stages: --devices N");
}

/* Of all stages: "layers", or "layers,none" where they differ. Free with g_free. */
static char *recomputation_text(const Search *search) {
    const MtfStepVariant *form = &search->answer.variant;
    return form->recompute_of_stage != NULL
               ? mtf_recompute_format_stages(form->recompute_of_stage,
                                             (int)search->answer.plan->stages->len)
               : mtf_recompute_format(form->recompute, form->recomputed_layers);
}

/* Whether a stage takes as long as the one before it, with as many devices, the next ones. */
static bool continues_row(const MtfPipelinePlan *pipeline, const cJSON *stages, int stage) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    const MtfPlan *before = mtf_pipeline_stage(pipeline, stage - 1);
    const int *rank = pipeline->order->rank_of_stage;
    const cJSON *a = cJSON_GetArrayItem(stages, stage - 1), *b = cJSON_GetArrayItem(stages, stage);
    static const char *const keys[] = { "forward_seconds", "backward_seconds" };
    bool equal = rank[stage] == rank[stage - 1] + 1 &&
                 mtf_mesh_equal(&plan->layout->mesh, &before->layout->mesh) &&
                 plan->graph->operations->len == before->graph->operations->len &&
                 plan->layout->execution.kept.recompute == before->layout->execution.kept.recompute;
    for (gsize k = 0; equal && k < G_N_ELEMENTS(keys); k++)
        equal = mtf_json_number_of(a, keys[k], 0) == mtf_json_number_of(b, keys[k], 0);
    return equal;
}

/* "60 GiB", or "60 GiB to 70 GiB" where a row of equal stages differs. */
static char *range_text(double first, double last) {
    g_autofree char *a = mtf_bytes_format(first), *b = mtf_bytes_format(last);
    return strcmp(a, b) == 0 ? g_strdup(a) : g_strdup_printf("%s to %s", a, b);
}

/* One line for stages from … to, which take equally long; with what they recompute where stages differ. */
static void print_stages(const MtfPipelinePlan *pipeline, const cJSON *stages, int from, int to,
                         bool differ) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, from);
    const MtfPlan *end = mtf_pipeline_stage(pipeline, to);
    const cJSON *predicted = cJSON_GetArrayItem(stages, from);
    const int *rank = pipeline->order->rank_of_stage;
    int first = mtf_pipeline_first_device(pipeline, rank[from]);
    int next = mtf_pipeline_first_device(pipeline, rank[to] + 1);
    g_autofree char *place = mtf_pipeline_place_format(first, next - 1, &plan->layout->mesh);
    g_autofree char *f = mtf_seconds_format(mtf_json_number_of(predicted, "forward_seconds", 0));
    g_autofree char *b = mtf_seconds_format(mtf_json_number_of(predicted, "backward_seconds", 0));
    g_autofree char *memory =
        range_text(mtf_json_number_of(predicted, "peak_memory_bytes", 0),
                   mtf_json_number_of(cJSON_GetArrayItem(stages, to), "peak_memory_bytes", 0));
    g_autofree char *name =
        from == to ? g_strdup_printf("stage %d", from) : g_strdup_printf("stages %d-%d", from, to);
    g_autofree char *flight =
        plan->layout->execution.stage.in_flight == end->layout->execution.stage.in_flight
            ? g_strdup_printf("%d", plan->layout->execution.stage.in_flight)
            : g_strdup_printf("%d to %d", plan->layout->execution.stage.in_flight,
                              end->layout->execution.stage.in_flight);
    g_autofree char *recompute = mtf_plan_recomputation(plan);
    printf(
        "%-14s %s: %d operations, %s forward and %s backward a micro-batch, %s in flight, %s%s%s\n",
        name, place, (int)plan->graph->operations->len, f, b, flight, memory,
        differ ? ", recomputation " : "", differ ? recompute : "");
}

static void print_all_stages(const MtfPipelinePlan *pipeline, bool differ) {
    const cJSON *stages = cJSON_GetObjectItem(pipeline->predicted, "stages");
    int n = (int)pipeline->stages->len;
    for (int from = 0, to = 0; from < n; from = ++to) {
        while (to + 1 < n && continues_row(pipeline, stages, to + 1))
            to++;
        print_stages(pipeline, stages, from, to, differ);
    }
}

/* How far the weights of an asynchronous pipeline lag behind. */
static void print_delays(const MtfPipelinePlan *pipeline) {
    if (!mtf_pipeline_is_asynchronous(pipeline->schedule))
        return;
    printf("weights        asynchronous: stages compute with those of");
    for (int s = 0; s < pipeline->order->stages; s++)
        printf("%s%d", s > 0 ? ", " : " ",
               mtf_pipeline_delay(pipeline->schedule, pipeline->order, s));
    puts(" steps ago (0: the newest)");
}

/* Where no cut was searched for. */
static void print_given_cut(const Search *search) {
    bool own = mtf_graph_stages(search->written) > 0;
    printf("proof          each stage's layout is searched with a bound; the cut %s\n",
           own ? "is the graph's own" : "balances work and is not proven");
}

static void print_proof(const Search *search) {
    const MtfCutPlan *cut = search->answer.cut;
    if (cut == NULL) {
        print_given_cut(search);
        return;
    }
    g_autofree char *seconds = mtf_seconds_format(cut->seconds);
    g_autofree char *bound = mtf_seconds_format(cut->bound);
    printf("cut            best of %d choice%s of micro-batches and recomputation by dynamic "
           "programming over stages laid out by hand:\n"
           "               %s, of which %s is the work spread evenly (a gap of %.3g %%)\n",
           cut->tried, cut->tried == 1 ? "" : "s", seconds, bound,
           100 * (1 - cut->bound / cut->seconds));
    if (search->options->megatron)
        printf("proof          the best cut for Megatron-LM under layouts made by hand; all stages "
               "have the layout \"%s\"\n",
               g_array_index(cut->stages, MtfCutStage, 0).layout);
    else
        puts("proof          each stage's layout is searched with a bound; the cut is the best "
             "under layouts made by hand");
}

/* What the step takes without stages, where that was searched. */
static void print_one_mesh(const cJSON *one, double step) {
    double other = mtf_json_number_of(one, "step_seconds", 0);
    bool given_up = cJSON_IsTrue(cJSON_GetObjectItem(one, "given_up"));
    g_autofree char *seconds = mtf_seconds_format(other);
    if (other > 0)
        printf("without stages %s a step, %.3g %% longer%s\n", seconds, 100 * (other / step - 1),
               given_up ? ", when it was given up" : "");
    else if (one != NULL)
        printf(
            "without stages %s\n",
            given_up
                ? "given up: its step is longer by its bound, if no more of it is hidden than of "
                  "known layouts; or by what its search began with, layers alike (2 %) or a draft "
                  "(twice as long)"
                : "no layout fits");
}

static void print_for_people(const Search *search, const MtfPipelinePlan *pipeline) {
    const MtfSearchPipeline *o = search->options;
    const cJSON *tried = cJSON_GetObjectItem(pipeline->predicted, "schedules");
    double step = mtf_json_number_of(pipeline->predicted, "step_seconds", 0);
    double bubble = mtf_json_number_of(pipeline->predicted, "bubble", 0);
    const MtfStepVariant *form = &search->answer.variant;
    bool differ = form->recompute_of_stage != NULL;
    g_autofree char *seconds = mtf_seconds_format(step);
    g_autofree char *recompute = recomputation_text(search);
    g_autofree char *summary = mtf_summary_format(pipeline->predicted);
    g_autoptr(GString) parts = g_string_new(NULL);
    mtf_step_variant_say_parts(parts, form);
    mtf_planning_print_machine(mtf_pipeline_stage(pipeline, 0)->precision, search->machine,
                               o->machine != NULL, o->precision);
    printf("pipeline       %d stages on %d devices, schedule %s, %d micro-batch%s, recomputation "
           "%s%s%s\n",
           (int)pipeline->stages->len, mtf_pipeline_devices(pipeline), pipeline->schedule,
           pipeline->order->microbatches, pipeline->order->microbatches == 1 ? "" : "es",
           differ ? "of each stage its own" : recompute, parts->str,
           mtf_graph_has_batch_statistics(pipeline->graph)
               ? ", batch statistics of each micro-batch"
               : "");
    fputs(summary, stdout);
    print_all_stages(pipeline, differ);
    print_delays(pipeline);
    printf("step           %s, of which %.1f %% is the bubble\n", seconds, 100 * bubble);
    for (const cJSON *one = tried != NULL ? tried->child : NULL; one != NULL; one = one->next) {
        g_autofree char *other = mtf_seconds_format(mtf_json_number_of(tried, one->string, 0));
        printf("               with %s it takes %s\n", one->string, other);
    }
    print_one_mesh(cJSON_GetObjectItem(pipeline->predicted, "one_mesh"), step);
    const char *doubt = mtf_json_text_of(cJSON_GetObjectItem(pipeline->predicted, "doubt"), "text");
    if (*doubt != '\0')
        printf("doubt          %s\n", doubt);
    print_proof(search);
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
        cJSON_AddStringToObject(of, "recompute", mtf_recompute_name(stage->recompute));
        mtf_json_add_number(of, "seconds", stage->seconds);
        mtf_json_add_number(of, "memory", stage->bytes);
        cJSON_AddItemToArray(list, of);
    }
}

/* The members of a plan without stages, "machine", "search" and "predicted", and beside them again those of
 * "predicted". */
static void print_as_json(const Search *search, const MtfPipelinePlan *pipeline) {
    cJSON *object = cJSON_Duplicate(pipeline->predicted, true);
    const MtfCutPlan *cut = search->answer.cut;
    cJSON_AddStringToObject(object, "machine", search->machine->name);
    cJSON_AddStringToObject(object, "schedule", pipeline->schedule);
    mtf_json_add_integer(object, "microbatches", pipeline->order->microbatches);
    if (mtf_graph_has_batch_statistics(pipeline->graph))
        cJSON_AddStringToObject(object, "batch_statistics", "of each micro-batch");
    g_autofree char *recompute = recomputation_text(search);
    cJSON_AddStringToObject(object, "recompute", recompute);
    mtf_step_variant_add_parts(object, &search->answer.variant);
    cJSON *of = mtf_pipeline_find_to_json(search);
    mtf_json_add_integer(of, "memory_limit", search->request.search.memory_limit);
    if (cut != NULL)
        mtf_json_add_number(of, "gap", 1 - cut->bound / cut->seconds);
    cJSON_AddItemToObject(object, "search", of);
    cJSON_AddItemReferenceToObject(object, "predicted", pipeline->predicted);
    mtf_json_say(object);
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
        return mtf_failure(error, "%s: cannot be made: %s", o->report, g_strerror(errno));
    return mtf_pipeline_plan_save(pipeline, copy, error) &&
           mtf_report_child(copy, o->report, error);
}

static double step_of(const MtfPipelinePlan *pipeline) {
    return mtf_json_number_of(pipeline->predicted, "step_seconds", INFINITY);
}

/* Searches with attention in as many parts as the options say. */
static MtfPipelineFind *find_in_parts(const MtfSearchPipeline *options, int key_parts, int ring,
                                      GError **error) {
    g_autoptr(MtfPipelineFind) find = g_new0(MtfPipelineFind, 1);
    find->own = *options;
    find->own.key_parts = key_parts;
    find->own.ring = ring;
    find->options = &find->own;
    if (!prepare(find, error))
        return NULL;
    bool done = find->given ? plan_as_given(find, error) : search_cut(find, error);
    return done ? g_steal_pointer(&find) : NULL;
}

/* ---- Attention in any parts ---------------------------------------------------------------------- */

/* Notes how many processors each axis has that splits the queries (or any, of `memory`) of a stage's attention. */
static void note_axes(const MtfPlan *plan, bool memory, bool *counts) {
    const MtfMesh *mesh = &plan->layout->mesh;
    for (int i = 0; i < (int)plan->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(plan->graph, i);
        if (!mtf_operation_row(op->kind)->in_parts)
            continue;
        unsigned axes =
            mtf_placement_split_axes(&plan->layout->tensors[op->outputs[0]], op->attributes.query);
        for (int a = 0; a < mesh->n_axes; a++)
            if ((memory || (axes >> a & 1) != 0) && mesh->axes[a].size <= MTF_MAX_RING)
                counts[mesh->axes[a].size] = true;
    }
}

/* The numbers of parts that are worth trying; where nothing fits whole, as many as a stage has devices. */
static void list_counts(const MtfSearchPipeline *o, const MtfPipelineFind *whole, bool memory,
                        bool *counts) {
    const MtfPipelinePlan *plan = whole != NULL ? whole->answer.plan : NULL;
    int devices = o->stages > 0 ? o->devices / o->stages : 0;
    if (whole == NULL && devices <= MTF_MAX_RING)
        counts[devices] = true;
    for (int s = 0; plan != NULL && s < (int)plan->stages->len; s++)
        note_axes(mtf_pipeline_stage(plan, s), memory, counts);
}

/* Searches with these numbers of parts, and keeps what was found where its steps are shorter. Numbers that divide no
 * attention, or fit nowhere, are passed over. */
static void try_parts(const MtfSearchPipeline *o, int key_parts, int ring, MtfPipelineFind **best) {
    MtfPipelineFind *other = find_in_parts(o, key_parts, ring, NULL);
    double seconds = other != NULL ? mtf_pipeline_find_seconds(other) : 0;
    if (seconds > 0 && (*best == NULL || seconds < mtf_pipeline_find_seconds(*best))) {
        MtfPipelineFind *slower = *best;
        *best = other;
        other = slower;
    }
    mtf_pipeline_find_free(other);
}

MtfPipelineFind *mtf_pipeline_find(const MtfSearchPipeline *options, GError **error) {
    bool of_keys[MTF_MAX_RING + 1] = { false }, of_rings[MTF_MAX_RING + 1] = { false };
    GError *cause = NULL;
    MtfPipelineFind *best = find_in_parts(options, options->key_parts, options->ring, &cause);
    if (best != NULL || g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT)) {
        if (options->any_key_parts)
            list_counts(options, best, true, of_keys);
        if (options->any_ring)
            list_counts(options, best, false, of_rings);
    }
    for (int n = 2; n <= MTF_MAX_RING; n++) {
        if (of_keys[n])
            try_parts(options, n, options->ring, &best);
        if (of_rings[n])
            try_parts(options, options->key_parts, n, &best);
    }
    if (best == NULL)
        g_propagate_error(error, g_steal_pointer(&cause));
    g_clear_error(&cause);
    return best;
}

double mtf_pipeline_find_seconds(const MtfPipelineFind *find) {
    return find->answer.plan != NULL ? step_of(find->answer.plan) : 0;
}

void mtf_pipeline_find_beside(MtfPipelineFind *find, double seconds, bool given_up) {
    cJSON *one = cJSON_AddObjectToObject(find->answer.plan->predicted, "one_mesh");
    if (seconds > 0)
        mtf_json_add_number(one, "step_seconds", seconds);
    cJSON_AddBoolToObject(one, "given_up", given_up);
}

cJSON *mtf_pipeline_find_to_json(const MtfPipelineFind *find) {
    const MtfPipelinePlan *plan = find->answer.plan;
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_integer(object, "stages", plan != NULL ? (int)plan->stages->len : 1);
    if (plan == NULL) {
        mtf_json_add_integer(object, "tried", find->answer.tried);
        return object;
    }
    cJSON_AddStringToObject(object, "schedule", plan->schedule);
    mtf_json_add_integer(object, "microbatches", plan->order->microbatches);
    mtf_json_add_number(object, "step_seconds", step_of(plan));
    return object;
}

bool mtf_pipeline_find_finish(const MtfPipelineFind *find, GError **error) {
    const MtfSearchPipeline *options = find->options;
    if (find->answer.cut != NULL)
        add_cut(find->answer.plan->predicted, find->answer.cut);
    if (options->json)
        print_as_json(find, find->answer.plan);
    else if (g_strcmp0(options->output, "-") != 0)
        print_for_people(find, find->answer.plan);
    fflush(stdout);
    return write_pipeline(find->answer.plan, options, error);
}

void mtf_pipeline_find_free(MtfPipelineFind *find) {
    if (find == NULL)
        return;
    search_clear(find);
    g_free(find);
}
