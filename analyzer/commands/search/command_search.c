// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan search: finds the best layout, proves how good it is, writes the plan. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/interrupt.h"
#include "analyzer/commands/report_child.h"
#include "analyzer/commands/search/search_options.h"
#include "analyzer/commands/search/search_pipeline.h"
#include "analyzer/commands/search/search_report.h"
#include "analyzer/layout_search/answer_proof.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/next_best.h"
#include "analyzer/planner/plan_ending.h"
#include "analyzer/planner/search_progress.h"
#include "analyzer/planner/software_search.h"
#include "analyzer/serving/search_inference.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/option_bytes.h"
#include "layouts/graph/microbatches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const MtfSearchOptions *options;
    MtfMachine *machine;
    MtfGraph *written; /* by the user */
    GArray *meshes;    /* MtfMesh */
    MtfVariantSearchOptions search;
    MtfSearchControl control; /* of it, begun when the command was */
    MtfSearchProgress *progress;
    MtfOperationPrices *operations; /* what they cost on its machine */
    MtfVariantAnswer found;
    int64_t programs_limit;  /* under which that was found, bytes of a device */
    char *notes;             /* on its plan, for people */
    cJSON *pipeline;         /* what was found in stages, where they were searched, too */
    double pipeline_seconds; /* of a step of that; 0: none was found */
    MtfSearchTimes times;
} Run;

/* ---- What is searched ------------------------------------------------------------------------ */

static bool read_mesh(Run *run, GError **error) {
    const MtfSearchOptions *options = run->options;
    MtfMesh mesh;
    if (!mtf_mesh_parse(options->mesh, options->devices, &mesh, error))
        return false;
    if (options->devices > 0 && mtf_mesh_size(&mesh) != options->devices)
        return mtf_input_error(error, "mesh \"%s\" has %d processors, not the %d of --devices",
                               options->mesh, mtf_mesh_size(&mesh), options->devices);
    run->meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(run->meshes, mesh);
    return true;
}

static bool find_meshes(Run *run, GError **error) {
    const MtfSearchOptions *options = run->options;
    if (options->mesh != NULL)
        return read_mesh(run, error);
    if (options->devices < 1)
        return mtf_input_error(error, "say how many processors there are: --devices N, or --mesh "
                                      "'rows:2;cols:2'");
    run->meshes = mtf_mesh_shapes_on(run->machine, options->devices,
                                     MIN(options->max_axes, MTF_MESH_SHAPES_MAX_AXES), error);
    return run->meshes != NULL;
}

static bool read_variant(const MtfSearchOptions *options, MtfVariantSearchOptions *search,
                         GError **error) {
    MtfRecompute recompute = MTF_RECOMPUTES;
    MtfOffload offload = options->exportable != NULL ? MTF_OFFLOAD_NONE : MTF_OFFLOADS;
    if (!mtf_option_auto_or_count("--microbatches", options->microbatches, MTF_MAX_MICROBATCHES,
                                  &search->microbatches, error) ||
        !mtf_search_options_key_parts(options, &search->key_parts, &search->ring, error) ||
        (!mtf_search_option_is_auto(options->recompute) &&
         !mtf_recompute_parse(options->recompute, &recompute, &search->recomputed_layers, error)) ||
        (!mtf_search_option_is_auto(options->offload) &&
         (!mtf_offload_parse(options->offload, &offload, &search->offloaded_layers, error) ||
          !mtf_planning_check_offload(search->machine, offload, error))))
        return false;
    if (options->exportable != NULL && mtf_search_option_is_auto(options->key_parts))
        search->key_parts = 1;
    if (options->exportable != NULL && mtf_search_option_is_auto(options->ring))
        search->ring = 1;
    search->recompute = (int)recompute;
    search->offload = (int)offload;
    return true;
}

static MtfVariantSearchOptions options_of(const MtfSearchOptions *options) {
    return (MtfVariantSearchOptions){ .batch_dim = options->batch_dim,
                                      .pins = (const char *const *)options->pins,
                                      .forbids = (const char *const *)options->forbids,
                                      .rules_only = g_strcmp0(options->layouts, "rule") == 0,
                                      .uniform = options->alike,
                                      .more_axes = options->more_axes,
                                      .frontier = options->frontier,
                                      .gap = options->gap,
                                      .seed = (guint64)options->seed,
                                      .keep_problem = options->dump != NULL,
                                      .framework = mtf_framework_named(options->exportable) != NULL
                                                       ? options->exportable
                                                       : NULL,
                                      .collectives = options->collectives };
}

static bool prepare(Run *run, const char *path, GError **error) {
    const MtfSearchOptions *options = run->options;
    MtfVariantSearchOptions *search = &run->search;
    MtfPlanningGraph request = { .path = path,
                                 .dims = (const char *const *)options->dims,
                                 .precision = options->precision,
                                 .batch = options->batch,
                                 .length = options->length,
                                 .quiet = options->json || run->pipeline != NULL,
                                 .loss = options->loss,
                                 .pads = (const char *const *)options->pads,
                                 .even = options->even };
    mtf_interrupt_catch();
    *search = options_of(options);
    search->rival_seconds = run->pipeline_seconds;
    search->control = &run->control;
    search->operations = run->operations = mtf_operation_prices_new();
    search->prints = options->output != NULL || options->report != NULL;
    run->progress = mtf_search_progress_begin();
    run->control.interrupted = mtf_interrupt_was_caught;
    run->control.listener = mtf_search_progress_listener(run->progress);
    run->written = mtf_planning_graph_load(&request, error);
    if (run->written == NULL)
        return false;
    run->times.read = g_get_monotonic_time();
    run->machine =
        mtf_planning_machine_for(run->written, options->machine, options->software, error);
    if (run->machine == NULL)
        return false;
    search->machine = run->machine;
    search->memory_limit = mtf_planning_room(run->machine);
    if (options->memory != NULL &&
        !mtf_option_bytes("--memory", options->memory, &search->memory_limit, error))
        return false;
    mtf_planning_warn_untrained(run->written);
    search->written = run->written;
    search->precision = mtf_planning_precision_for(run->machine, run->written, options->precision);
    if (!find_meshes(run, error) || !read_variant(options, search, error))
        return false;
    search->meshes = run->meshes;
    return true;
}

/* ---- What is written ------------------------------------------------------------------------- */

static void settle_or_bound(int i, void *data) {
    Run *run = data;
    if (i == 0)
        mtf_variant_answer_tune(&run->search, &run->found);
    else
        mtf_plan_answer_bound_by_work(&run->found.answer, run->found.graph);
}

/* The plan is no slower than layouts made by hand, whose small exchanges are joined as its own. Of large graphs, in which
 * little is won by that, and of layouts that a framework or the user confines, the search's stays. */
static void keep_shortest(Run *run) {
    MtfVariantAnswer *found = &run->found;
    const MtfVariantSearchOptions *search = &run->search;
    if (found->answer.incumbents == NULL || mtf_search_is_over(&run->control) ||
        found->graph->operations->len > MTF_LARGE_OPERATIONS || search->framework != NULL ||
        search->rules_only)
        return;
    MtfSettling how = { .memory_limit = run->programs_limit,
                        .collectives = search->collectives,
                        .bucket_bytes = found->layout->execution.bucket_bytes,
                        .control = &run->control };
    mtf_plan_answer_keep_shortest(&found->answer, found->graph, &how, &found->layout,
                                  &found->program);
}

/* What a device may hold, and where the software needs more than programs of our own, what these were to take. */
static void add_limits(cJSON *search, const Run *run) {
    int64_t limit = run->search.memory_limit;
    cJSON_ReplaceItemInObject(search, "memory_limit", cJSON_CreateNumber((double)limit));
    if (run->programs_limit < limit)
        mtf_json_add_integer(search, "programs_limit", run->programs_limit);
}

static MtfPlan *plan_of(Run *run, GError **error) {
    MtfVariantAnswer *found = &run->found;
    int64_t limit = run->programs_limit;
    mtf_in_parallel(2, settle_or_bound, run);
    if (found->answer.incumbents != NULL && mtf_search_is_over(&run->control))
        mtf_incumbents_drop_unmeasured(found->answer.incumbents);
    keep_shortest(run);
    cJSON *search_json = mtf_plan_answer_to_json(&found->answer, limit);
    add_limits(search_json, run);
    mtf_search_add_variants(search_json, found);
    cJSON_DeleteItemFromObjectCaseSensitive(search_json, "frontier"); /* of one variant */
    if (found->frontier != NULL)
        cJSON_AddItemToObject(search_json, "frontier",
                              mtf_variant_frontier_to_json(found->frontier, found->variants));
    if (run->pipeline != NULL)
        cJSON_AddItemToObject(search_json, "pipeline", g_steal_pointer(&run->pipeline));
    MtfPlanEnding ending = {
        .written = run->written,
        .variant = &g_array_index(found->variants, MtfStepCandidate, found->variant).variant,
        .program = found->program,
        .pricer = &found->answer.pricer,
        .answer = &found->answer,
        .training = g_steal_pointer(&found->training),
        .training_text = g_steal_pointer(&found->training_text),
        .division = found->division,
        .memory_limit = run->search.memory_limit,
        .notes = !run->options->json && g_strcmp0(run->options->output, "-") != 0,
        .file = run->options->output != NULL || run->options->report != NULL,
    };
    return mtf_plan_end(&ending, g_steal_pointer(&found->graph), g_steal_pointer(&found->layout),
                        search_json, &run->notes, error);
}

/* The report reads the plan from a file: the user's, or one of its own in the report's folder, which is made here.
 * NULL: the user's, or no report is wanted. */
static bool report_copy(const MtfSearchOptions *options, char **copy, GError **error) {
    bool in_file = options->output != NULL && strcmp(options->output, "-") != 0;
    *copy = NULL;
    if (options->report == NULL || in_file)
        return true;
    if (g_mkdir_with_parents(options->report, 0777) != 0)
        return mtf_failure(error, "%s: cannot be made: %s", options->report, g_strerror(errno));
    *copy = g_build_filename(options->report, "plan.json", NULL);
    return true;
}

static bool draw(const MtfSearchOptions *options, const char *copy, GError **error) {
    return options->report == NULL ||
           mtf_report_child(copy != NULL ? copy : options->output, options->report, error);
}

static bool write_all(const MtfSearchOptions *options, const MtfPlan *plan, GError **error) {
    if (options->output != NULL && !mtf_plan_save(plan, options->output, error))
        return false;
    g_autofree char *copy = NULL;
    return report_copy(options, &copy, error) &&
           (copy == NULL || mtf_plan_save(plan, copy, error)) && draw(options, copy, error);
}

static MtfSearchReport report_of(const Run *run) {
    return (MtfSearchReport){ .machine = run->machine,
                              .machine_named = run->options->machine != NULL,
                              .precision = run->options->precision,
                              .exportable = run->options->exportable,
                              .memory_limit = run->search.memory_limit,
                              .programs_limit = run->programs_limit,
                              .may_cut = run->options->stages == NULL &&
                                         run->options->devices > 1 && run->options->mesh == NULL &&
                                         mtf_search_options_suit_stages(run->options, NULL),
                              .found = &run->found,
                              .notes = run->notes };
}

/* The layout problem and the certificate, where they are wanted. */
static bool write_proof(Run *run, GError **error) {
    MtfAnswerProof proof = { .problem = run->options->dump,
                             .certificate = run->options->certificate,
                             .seed = run->search.seed,
                             .control = &run->control };
    return mtf_answer_prove(&run->found.answer, &proof, error);
}

/* The plan without stages; NULL and an error where none fits. */
static MtfPlan *make_plan(Run *run, GError **error) {
    MtfSearchReport report = report_of(run);
    run->times.searched = g_get_monotonic_time();
    bool proven = write_proof(run, error);
    g_clear_pointer(&run->progress, mtf_search_progress_end);
    if (!proven)
        return NULL;
    if (!run->found.answer.found)
        mtf_search_fail_unfit(&report, error);
    return run->found.answer.found ? plan_of(run, error) : NULL;
}

/* Prints and writes it. */
static bool finish(const Run *run, const MtfPlan *plan, GError **error) {
    const MtfSearchOptions *options = run->options;
    MtfSearchReport report = report_of(run);
    bool quiet = g_strcmp0(options->output, "-") == 0;
    if (!mtf_planning_dump(plan, options->dump_after, quiet || options->json, error))
        return false;
    if (!quiet)
        (options->json ? mtf_search_print_json : mtf_search_print)(&report, plan);
    fflush(stdout);
    return write_all(options, plan, error);
}

static void clear_run(Run *run) {
    mtf_search_progress_end(run->progress);
    mtf_variant_answer_clear(&run->found);
    mtf_operation_prices_free(run->operations);
    mtf_machine_free(run->machine);
    mtf_graph_free(run->written);
    cJSON_Delete(run->pipeline);
    g_free(run->notes);
    if (run->meshes != NULL)
        g_array_unref(run->meshes);
}

/* What the search for stages is asked for. */
static bool pipeline_options(const MtfSearchOptions *options, const char *path,
                             MtfSearchPipeline *pipeline, GError **error) {
    *pipeline = (MtfSearchPipeline){
        .graph = path,
        .dims = (const char *const *)options->dims,
        .pads = (const char *const *)options->pads,
        .mesh = options->mesh,
        .machine = options->machine,
        .software = options->software,
        .memory = options->memory,
        .precision = options->precision,
        .microbatches = options->microbatches,
        .batch_dim = options->batch_dim,
        .recompute = options->recompute,
        .schedule = options->schedule != NULL ? options->schedule : "1f1b",
        .chunks = options->chunks,
        .cut = options->cut,
        .output = options->output,
        .report = options->report,
        .batch = options->batch,
        .length = options->length,
        .devices = options->devices,
        .max_axes = options->max_axes,
        .seconds = options->seconds,
        .gap = options->gap,
        .json = options->json,
        .uniform = options->alike,
        .loss = options->loss,
        .megatron = g_strcmp0(options->exportable, "megatron") == 0,
        .any_key_parts =
            options->key_parts != NULL && mtf_search_option_is_auto(options->key_parts),
        .any_ring = options->ring != NULL && mtf_search_option_is_auto(options->ring),
    };
    return mtf_search_options_stages(options, &pipeline->stages, error) &&
           mtf_search_options_key_parts(options, &pipeline->key_parts, &pipeline->ring, error) &&
           (pipeline->stages == 1 ? mtf_search_options_suit_one_mesh(options, error)
                                  : mtf_search_options_suit_stages(options, error));
}

static bool search_inference(const MtfSearchOptions *o, const char *path, GError **error) {
    int stages;
    g_autofree char *copy = NULL;
    if (!mtf_search_options_stages(o, &stages, error) || !report_copy(o, &copy, error))
        return false;
    MtfSearchInference inference = { .graph = path,
                                     .stages = stages,
                                     .infer = o->infer,
                                     .dims = (const char *const *)o->dims,
                                     .pins = (const char *const *)o->pins,
                                     .forbids = (const char *const *)o->forbids,
                                     .mesh = o->mesh,
                                     .machine = o->machine,
                                     .software = o->software,
                                     .memory = o->memory,
                                     .precision = o->precision,
                                     .layouts = o->layouts,
                                     .cache_memory = o->cache_memory,
                                     .weights = o->weights,
                                     .prefill_devices = o->prefill_devices,
                                     .output = o->output,
                                     .copy = copy,
                                     .batch = o->batch,
                                     .length = o->length,
                                     .context = o->context,
                                     .generate = o->generate,
                                     .devices = o->devices,
                                     .max_axes = o->max_axes,
                                     .seconds = o->seconds,
                                     .gap = o->gap,
                                     .seed = o->seed,
                                     .json = o->json,
                                     .uniform = o->alike,
                                     .interrupted = mtf_interrupt_was_caught };
    mtf_interrupt_catch();
    return mtf_search_inference(&inference, error) && draw(o, copy, error);
}

static MtfPlan *search_one_mesh(Run *run, const char *path, GError **error) {
    return prepare(run, path, error) &&
                   mtf_software_search(&run->search, MTF_VERY_LARGE_OPERATIONS, &run->found,
                                       &run->programs_limit, error)
               ? make_plan(run, error)
               : NULL;
}

/* Whether no mesh of all devices lies on the machine, whose slices of other sizes stages may have. */
static bool has_no_slice(const Run *run) {
    MtfNetwork slice;
    return run->machine != NULL &&
           !mtf_machine_slice(run->machine, run->options->devices, &slice, NULL);
}

/* Beside the best stages the plan without any; the one with the shorter step is kept. Stages come first:
 * what they take soon shows that one mesh of all devices is hopeless, where it is. */
static bool search_both(Run *run, MtfPipelineFind *find, const char *path, GError **error) {
    GError *cause = NULL;
    run->pipeline = mtf_pipeline_find_to_json(find);
    run->pipeline_seconds = mtf_pipeline_find_seconds(find);
    g_autoptr(MtfPlan) plan = search_one_mesh(run, path, &cause);
    double seconds = plan != NULL ? mtf_json_number_of(plan->predicted, "step_seconds", 0) : 0;
    if (plan != NULL && (run->pipeline_seconds <= 0 || seconds <= run->pipeline_seconds))
        return finish(run, plan, error);
    bool excused = g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT) ||
                   g_error_matches(cause, MTF_ERROR, MTF_ERROR_FAILED); /* or stopped */
    bool unlaid = plan == NULL && has_no_slice(run);
    if (plan == NULL && (run->pipeline_seconds <= 0 || !(excused || unlaid))) {
        g_propagate_error(error, cause);
        return false;
    }
    g_clear_error(&cause);
    if (!unlaid)
        mtf_pipeline_find_beside(find, seconds, run->found.given_up);
    return mtf_pipeline_find_finish(find, error);
}

/* A plan of training, cut into stages or not. */
static bool search_training(Run *run, const char *path, GError **error) {
    MtfSearchPipeline pipeline;
    mtf_search_control_init(&run->control, run->options->seconds);
    if (!pipeline_options(run->options, path, &pipeline, error))
        return false;
    if (pipeline.stages == 1) {
        g_autoptr(MtfPlan) plan = search_one_mesh(run, path, error);
        return plan != NULL && finish(run, plan, error);
    }
    g_autoptr(MtfPipelineFind) find = mtf_pipeline_find(&pipeline, error);
    if (find == NULL)
        return false;
    return pipeline.stages == 0 || mtf_pipeline_find_seconds(find) <= 0
               ? search_both(run, find, path, error)
               : mtf_pipeline_find_finish(find, error);
}

static bool search(Run *run, const char *path, GError **error) {
    bool done = run->options->infer != NULL ? search_inference(run->options, path, error)
                                            : search_training(run, path, error);
    if (done)
        mtf_search_warn_late(run->options->seconds, &run->times, run->written);
    return done;
}

int mtf_command_search(int argc, char **argv) {
    MtfSearchOptions options;
    GError *error = NULL;
    Run run = { .options = &options, .times.begun = g_get_monotonic_time() };
    bool done = mtf_search_options_read(&argc, &argv, &options, &error);
    mtf_in_parallel_set_threads(options.threads);
    done = done && search(&run, argv[1], &error);
    clear_run(&run);
    mtf_search_options_clear(&options);
    return done ? 0 : mtf_command_line_fail("meshtf-plan search", error);
}
