// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan search: finds the best layout, proves how good it is, writes the plan. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/interrupt.h"
#include "analyzer/commands/report_child.h"
#include "analyzer/commands/search_pipeline.h"
#include "analyzer/commands/search_report.h"
#include "analyzer/layout_search/answer_proof.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/next_best.h"
#include "analyzer/planner/plan_ending.h"
#include "analyzer/planner/search_progress.h"
#include "analyzer/planner/software_search.h"
#include "analyzer/serving/search_inference.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/tune/algorithm_choice.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/option_bytes.h"
#include "layouts/base/output_guard.h"
#include "layouts/graph/microbatches.h"
#include "layouts/program/passes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_THREADS 256

typedef struct {
    char *mesh, *machine, *software, *memory, *layouts, *precision, *output, *report, *dump,
        *certificate, *dump_after;
    char **dims, **pads, **pins, **forbids;
    char *batch_dim, *recompute, *offload, *key_parts, *ring, *microbatches, *collectives;
    char *schedule, *cut, *loss, *exportable, *uniform;
    MtfUniform alike; /* `uniform`, read */
    int devices, max_axes, seed, threads, frontier, batch, length;
    char *stages;
    char *infer, *cache_memory, *weights, *prefill_devices;
    int context, generate, chunks;
    double seconds, gap;
    gboolean even, json;
} Options;

typedef struct {
    const Options *options;
    MtfMachine *machine;
    MtfGraph *written; /* by the user */
    GArray *meshes;    /* MtfMesh */
    MtfVariantSearchOptions search;
    MtfSearchControl control; /* of it, begun when the command was */
    MtfSearchProgress *progress;
    MtfVariantAnswer found;
    int64_t programs_limit;  /* under which that was found, bytes of a device */
    char *notes;             /* on its plan, for people */
    cJSON *pipeline;         /* what was found in stages, where they were searched, too */
    double pipeline_seconds; /* of a step of that; 0: none was found */
    MtfSearchTimes times;
} Run;

/* ---- What is searched ------------------------------------------------------------------------ */

static bool read_mesh(Run *run, GError **error) {
    const Options *options = run->options;
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
    const Options *options = run->options;
    if (options->mesh != NULL)
        return read_mesh(run, error);
    if (options->devices < 1)
        return mtf_input_error(error, "say how many processors there are: --devices N, or --mesh "
                                      "'rows:2;cols:2'");
    run->meshes = mtf_mesh_shapes_on(run->machine, options->devices,
                                     MIN(options->max_axes, MTF_MESH_SHAPES_MAX_AXES), error);
    return run->meshes != NULL;
}

/* "auto" is 0. */
static bool read_stages(const Options *options, int *stages, GError **error) {
    return mtf_option_auto_or_count("--stages", options->stages != NULL ? options->stages : "1",
                                    MTF_MAX_STAGES, stages, error);
}

/* Systems that take equal shards of any layout, and those that take some kinds of layouts alone. */
static bool check_exportable(Options *options, GError **error) {
    static const char *const even[] = { "jax",      "dtensor",    "onnx", "mtf",
                                        "megatron", "torchtitan", NULL };
    if (options->exportable == NULL)
        return true;
    if (!g_strv_contains(even, options->exportable))
        return mtf_input_error(
            error, "--exportable \"%s\" must be jax, dtensor, onnx, mtf, megatron or torchtitan",
            options->exportable);
    options->even = TRUE;
    if (strcmp(options->exportable, "mtf") != 0)
        return true;
    if (g_strcmp0(options->layouts, "free") == 0)
        return mtf_input_error(error, "--exportable mtf is for rule layouts, not --layouts free");
    g_free(options->layouts);
    options->layouts = g_strdup("rule");
    return true;
}

/* What proves a bound is about free layouts, all of them, and takes its time. */
static bool check_proof(const Options *o, GError **error) {
    const char *wanted = o->certificate != NULL ? "--certificate" : "--dump-problem";
    if ((o->certificate != NULL || o->dump != NULL) && g_strcmp0(o->layouts, "rule") == 0)
        return mtf_input_error(error, "%s is of free layouts, not of --layouts rule", wanted);
    if (o->certificate == NULL)
        return true;
    if (o->dump == NULL)
        return mtf_input_error(
            error, "--certificate needs --dump-problem FILE, the problem that it is about");
    if (o->alike == MTF_UNIFORM_ALWAYS)
        return mtf_input_error(error, "--certificate is of all layouts of a mesh, not of those of "
                                      "--uniform always");
    return o->seconds <= 0 ||
           mtf_input_error(error, "--certificate does not go with --seconds: what proves a bound "
                                  "takes its time");
}

static bool check_counts(Options *o, GError **error) {
    return mtf_option_count("--devices", &o->devices, error) &&
           (o->devices <= MTF_MAX_MESH_SIZE ||
            mtf_option_between("--devices", o->devices, 1, MTF_MAX_MESH_SIZE, error)) &&
           mtf_option_count("--batch", &o->batch, error) &&
           mtf_option_count("--length", &o->length, error) &&
           mtf_option_count("--context", &o->context, error) &&
           mtf_option_count("--chunks", &o->chunks, error) &&
           mtf_option_count("--frontier", &o->frontier, error);
}

static bool check_options(Options *options, GError **error) {
    if (!check_counts(options, error))
        return false;
    if (!check_exportable(options, error))
        return false;
    if (!mtf_algorithm_choice_check(options->collectives, error) ||
        !mtf_uniform_parse(options->uniform, &options->alike, error))
        return false;
    if (options->dump_after != NULL && mtf_pass_find(options->dump_after, error) < 0)
        return false;
    if (options->layouts != NULL && strcmp(options->layouts, "rule") != 0 &&
        strcmp(options->layouts, "free") != 0)
        return mtf_input_error(error, "--layouts \"%s\" must be rule or free", options->layouts);
    if (!mtf_option_between("--max-mesh-dims", options->max_axes, 1, MTF_MAX_MESH_AXES, error))
        return false;
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return mtf_input_error(error, "--threads %d must be 1 to %d, or 0: one for each processor",
                               options->threads, MOST_THREADS);
    int stages;
    if (!read_stages(options, &stages, error))
        return false;
    if (!(options->seconds >= 0 && options->seconds < 1e9))
        return mtf_input_error(error, "--seconds %g is not a number of at least 0",
                               options->seconds);
    if (options->frontier != 0 &&
        (options->frontier < 2 || options->frontier > MTF_FRONTIER_MAX_POINTS))
        return mtf_input_error(error, "--frontier %d must be 2 to %d points", options->frontier,
                               MTF_FRONTIER_MAX_POINTS);
    if (!isnan(options->gap) && !(options->gap >= 0 && options->gap < 1))
        return mtf_input_error(error, "--gap %g must be at least 0 and below 1", options->gap);
    return check_proof(options, error);
}

static bool is_auto(const char *text) {
    return text == NULL || strcmp(text, "auto") == 0;
}

/* Parts of attention's keys, 0: any. */
static bool read_key_parts(const Options *options, int *key_parts, int *ring, GError **error) {
    return mtf_option_auto_or_count("--key-parts", options->key_parts, MTF_MAX_KEY_PARTS, key_parts,
                                    error) &&
           mtf_option_auto_or_count("--ring", options->ring, MTF_MAX_RING, ring, error);
}

static bool read_variant(const Options *options, MtfVariantSearchOptions *search, GError **error) {
    MtfRecompute recompute = MTF_RECOMPUTES;
    MtfOffload offload = options->exportable != NULL ? MTF_OFFLOAD_NONE : MTF_OFFLOADS;
    if (!mtf_option_auto_or_count("--microbatches", options->microbatches, MTF_MAX_MICROBATCHES,
                                  &search->microbatches, error) ||
        !read_key_parts(options, &search->key_parts, &search->ring, error) ||
        (!is_auto(options->recompute) &&
         !mtf_recompute_parse(options->recompute, &recompute, &search->recomputed_layers, error)) ||
        (!is_auto(options->offload) &&
         (!mtf_offload_parse(options->offload, &offload, &search->offloaded_layers, error) ||
          !mtf_planning_check_offload(search->machine, offload, error))))
        return false;
    if (options->exportable != NULL && is_auto(options->key_parts))
        search->key_parts = 1;
    if (options->exportable != NULL && is_auto(options->ring))
        search->ring = 1;
    search->recompute = (int)recompute;
    search->offload = (int)offload;
    return true;
}

static MtfVariantSearchOptions options_of(const Options *options) {
    return (MtfVariantSearchOptions){ .batch_dim = options->batch_dim,
                                      .pins = (const char *const *)options->pins,
                                      .forbids = (const char *const *)options->forbids,
                                      .rules_only = g_strcmp0(options->layouts, "rule") == 0,
                                      .uniform = options->alike,
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
    const Options *options = run->options;
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

/* The report reads the plan from a file: the user's, or one of its own. */
static bool write_all(const Options *options, const MtfPlan *plan, GError **error) {
    if (options->output != NULL && !mtf_plan_save(plan, options->output, error))
        return false;
    if (options->report == NULL)
        return true;
    if (options->output != NULL && strcmp(options->output, "-") != 0)
        return mtf_report_child(options->output, options->report, error);
    g_autofree char *copy = g_build_filename(options->report, "plan.json", NULL);
    if (g_mkdir_with_parents(options->report, 0777) != 0)
        return mtf_failure(error, "%s: cannot be made: %s", options->report, g_strerror(errno));
    return mtf_plan_save(plan, copy, error) && mtf_report_child(copy, options->report, error);
}

/* What the search for pipelines does not do yet. */
static bool check_pipeline_options(const Options *o, GError **error) {
    bool megatron = g_strcmp0(o->exportable, "megatron") == 0;
    const struct {
        bool given;
        const char *name;
    } options[] = {
        { o->dump != NULL, "--dump-problem" },
        { o->certificate != NULL, "--certificate" },
        { o->layouts != NULL, "--layouts" },
        { o->pins != NULL, "--pin" },
        { o->forbids != NULL, "--forbid" },
        { o->frontier > 0, "--frontier" },
        { o->offload != NULL, "--offload" },
        { o->key_parts != NULL && megatron, "--key-parts, with --exportable megatron," },
        { o->ring != NULL && megatron, "--ring, with --exportable megatron," },
        { o->exportable != NULL && !megatron, "--exportable (but megatron)" },
        { o->even && !megatron, "--even" },
        { o->collectives != NULL, "--collectives" },
        { o->dump_after != NULL, "--dump-after" },
        { o->seed != 0, "--seed" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
        if (options[i].given)
            return mtf_input_error(error, "%s does not go with --stages yet", options[i].name);
    return true;
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
                                         check_pipeline_options(run->options, NULL),
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
    const Options *options = run->options;
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
    mtf_machine_free(run->machine);
    mtf_graph_free(run->written);
    cJSON_Delete(run->pipeline);
    g_free(run->notes);
    if (run->meshes != NULL)
        g_array_unref(run->meshes);
}

static void clear_options(Options *options) {
    char *owned[] = { options->mesh,         options->machine,    options->memory,
                      options->software,     options->layouts,    options->precision,
                      options->output,       options->report,     options->dump,
                      options->batch_dim,    options->dump_after, options->recompute,
                      options->microbatches, options->schedule,   options->collectives,
                      options->stages,       options->infer,      options->cache_memory,
                      options->loss,         options->exportable, options->uniform,
                      options->weights,      options->offload,    options->prefill_devices,
                      options->key_parts,    options->ring,       options->cut,
                      options->certificate };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    g_strfreev(options->dims);
    g_strfreev(options->pads);
    g_strfreev(options->pins);
    g_strfreev(options->forbids);
}

/* What only pipelines have. */
static bool check_single_mesh(const Options *o, GError **error) {
    const char *only = o->schedule != NULL ? "--schedule"
                       : o->chunks != 0    ? "--chunks"
                       : o->cut != NULL    ? "--cut"
                                           : NULL;
    return only == NULL ||
           mtf_input_error(error, "%s is for pipelines: with --stages S, of 2 or more, or auto",
                           only);
}

/* What the search for stages is asked for. */
static bool pipeline_options(const Options *options, const char *path, MtfSearchPipeline *pipeline,
                             GError **error) {
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
        .any_key_parts = options->key_parts != NULL && is_auto(options->key_parts),
        .any_ring = options->ring != NULL && is_auto(options->ring),
    };
    return read_stages(options, &pipeline->stages, error) &&
           read_key_parts(options, &pipeline->key_parts, &pipeline->ring, error) &&
           (pipeline->stages == 1 ? check_single_mesh(options, error)
                                  : check_pipeline_options(options, error));
}

/* What goes with --infer only, and what does not go with it. */
static bool check_inference_options(const Options *o, GError **error) {
    const char *only = o->context != 0              ? "--context"
                       : o->generate != 0           ? "--generate"
                       : o->cache_memory != NULL    ? "--cache-memory"
                       : o->weights != NULL         ? "--weights"
                       : o->prefill_devices != NULL ? "--prefill-devices"
                                                    : NULL;
    if (o->infer == NULL)
        return only == NULL || mtf_input_error(error, "%s goes with --infer only", only);
    const char *other = o->schedule != NULL       ? "--schedule"
                        : o->chunks != 0          ? "--chunks"
                        : o->cut != NULL          ? "--cut"
                        : o->microbatches != NULL ? "--microbatches"
                        : o->recompute != NULL    ? "--recompute"
                        : o->offload != NULL      ? "--offload"
                        : o->key_parts != NULL    ? "--key-parts"
                        : o->ring != NULL         ? "--ring"
                        : o->frontier > 0         ? "--frontier"
                        : o->dump != NULL         ? "--dump-problem"
                        : o->certificate != NULL  ? "--certificate"
                        : o->dump_after != NULL   ? "--dump-after"
                        : o->report != NULL       ? "--report"
                        : o->batch_dim != NULL    ? "--batch-dim"
                        : o->collectives != NULL  ? "--collectives"
                        : o->exportable != NULL   ? "--exportable"
                        : o->pads != NULL         ? "--pad"
                        : o->even                 ? "--even"
                        : o->loss != NULL         ? "--loss"
                                                  : NULL;
    return other == NULL || mtf_input_error(error, "%s does not go with --infer", other);
}

static bool search_inference(const Options *o, const char *path, GError **error) {
    int stages;
    if (!read_stages(o, &stages, error))
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
    return mtf_search_inference(&inference, error);
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

/* Nobody is to hear after hours that there is no such folder. */
static bool check_outputs(const Options *o, GError **error) {
    return mtf_output_check_file(o->output, error) && mtf_output_check_file(o->dump, error) &&
           mtf_output_check_file(o->certificate, error) &&
           mtf_output_check_folder(o->report, error);
}

#define TEXT(name, letter, field, help, what) \
    { name, letter, 0, G_OPTION_ARG_STRING, &o.field, help, what }
#define LIST(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.field, help, what }
#define OTHER(name, type, field, help, what) \
    { name, 0, 0, type, &o.field, help, what }

/* An ONNX file becomes a graph to train by a loss, any model one to run without. */
#define LOSS_AND_INFERENCE_OPTIONS                                          \
    TEXT("loss", 0, loss, "Train an ONNX file by this loss, or by its own", \
         "cross-entropy:LABELS|output:NAME"),                               \
        INFERENCE_OPTIONS

#define INFERENCE_OPTIONS                                                                          \
    TEXT("infer", 0, infer, "Run the model instead of training it",                                \
         "prefill|decode|serve|forward"),                                                          \
        OTHER("context", G_OPTION_ARG_INT, context,                                                \
              "With --infer: tokens of a prompt, or that stand before a decoded one (2048)", "N"), \
        OTHER("generate", G_OPTION_ARG_INT, generate,                                              \
              "With --infer: tokens that follow, for which caches have room (serve: 128)", "N"),   \
        TEXT("cache-memory", 0, cache_memory,                                                      \
             "With --infer: what caches may take of a device in max_context (what is left)",       \
             "BYTES|30%"),                                                                         \
        TEXT("weights", 0, weights,                                                                \
             "With --infer: weights of products in eight bits, scaled by output channel", "int8"), \
        TEXT("prefill-devices", 0, prefill_devices,                                                \
             "With --infer serve: so many of --devices read prompts only and hand caches to the "  \
             "others, which generate",                                                             \
             "N|auto")

/* Which layouts are looked at. */
#define LAYOUT_OPTIONS                                                                       \
    TEXT("layouts", 0, layouts, "Kind of layouts (the better)", "rule|free"),                \
        TEXT("uniform", 0, uniform,                                                          \
             "Whether repeated layers are laid out alike (auto: unless differing wins 1 %)", \
             "always|never|auto"),                                                           \
        LIST("pin", pins, "This dimension lies on that axis", "d_ff:cols"),                  \
        LIST("forbid", forbids, "This dimension does not lie on that axis", "vocab:rows")

/* Positions of attention split over axes. */
#define CONTEXT_OPTIONS                                                                           \
    TEXT("key-parts", 0, key_parts,                                                               \
         "Parts of attention's keys and values, which axes may split (auto)", "P|auto"),          \
        TEXT("ring", 0, ring,                                                                     \
             "Parts of attention that hand keys and values on round a ring of processors (auto)", \
             "P|auto")

/* A pipeline's stages and their order. */
#define PIPELINE_OPTIONS                                                                       \
    TEXT("stages", 0, stages,                                                                  \
         "Cut into a pipeline of S stages, or as many as are best; --mesh is that of one (1)", \
         "S|auto"),                                                                            \
        TEXT("schedule", 0, schedule, "Order of a pipeline's passes (1f1b)", "NAME|auto"),     \
        OTHER("chunks", G_OPTION_ARG_INT, chunks, "Parts of the graph a stage has", "V"),      \
        TEXT("cut", 0, cut,                                                                    \
             "Where stages may begin: with layers alone, as other systems cut (any)",          \
             "any|layers")

/* What others check a plan's bound with. */
#define PROOF_OPTIONS                                                                           \
    TEXT("dump-problem", 0, dump, "Write the layout problem of free layouts (IOPDDL)", "FILE"), \
        TEXT("certificate", 0, certificate,                                                     \
             "Write what proves the bound of that problem, for meshtf-plan verify", "FILE")

/* When the search ends. */
#define LIMIT_OPTIONS                                                                                 \
    OTHER("seconds", G_OPTION_ARG_DOUBLE, seconds, "Stop after S seconds (no limit)", "S"),           \
        OTHER(                                                                                        \
            "gap", G_OPTION_ARG_DOUBLE, gap,                                                          \
            "Stop within this share of the optimum (0; of inference 0.0001, for large graphs 0.005)", \
            "G")

/* What a plan must be to run elsewhere, and its drawings. */
#define EXPORT_OPTIONS                                                                   \
    TEXT("exportable", 0, exportable, "Only plans that this system can run",             \
         "jax|dtensor|onnx|mtf|megatron|torchtitan"),                                    \
        LIST("pad", pads, "Pad a dimension to a multiple", "vocab:128"),                 \
        OTHER("even", G_OPTION_ARG_NONE, even,                                           \
              "Only shards of equal size, as exports to other systems need them", NULL), \
        TEXT("report", 0, report, "Draw the plan into a folder", "DIR")

static const char summary[] = "Finds the layout with the shortest predicted training step "
                              "that fits, over all meshes of N processors, and proves it. Their "
                              "axes are called all; rows and cols; or planes, rows and cols.\n"
                              "GRAPH is a graph's file, a folder with a model's config.json, an "
                              "ONNX file, or the name of a known model or graph (meshtf-plan model "
                              "--help and meshtf-plan graphs list them).\n\n"
                              "  meshtf-plan search g.json --devices 512 --machine tpu-v2 -o "
                              "p.json --report out\n"
                              "  meshtf-plan search llama2-7b --devices 16 --machine h100";

static const Options standard = { .devices = MTF_NO_COUNT,
                                  .batch = MTF_NO_COUNT,
                                  .length = MTF_NO_COUNT,
                                  .context = MTF_NO_COUNT,
                                  .chunks = MTF_NO_COUNT,
                                  .frontier = MTF_NO_COUNT,
                                  .max_axes = 2,
                                  .gap = NAN };

int mtf_command_search(int argc, char **argv) {
    Options o = standard;
    const GOptionEntry entries[] = {
        OTHER("devices", G_OPTION_ARG_INT, devices, "Search all meshes of N processors", "N"),
        TEXT("mesh", 0, mesh, "Search this mesh alone", "'rows:2;cols:2'"),
        OTHER("max-mesh-dims", G_OPTION_ARG_INT, max_axes, "Axes of a mesh, at most (2)", "N"),
        TEXT("machine", 0, machine, "A machine of the library, or a file", "NAME|FILE"),
        MTF_SOFTWARE_OPTION(o.software),
        TEXT("memory", 0, memory, "Memory of a device (the machine's)", "16GiB"),
        LAYOUT_OPTIONS,
        LIST("dim", dims, "Set a dimension's size", "batch=512"),
        OTHER("batch", G_OPTION_ARG_INT, batch, "Examples in a batch of a published model (32)",
              "N"),
        OTHER("length", G_OPTION_ARG_INT, length,
              "Positions in an example of a published model (what it was made for, at most 2048)",
              "N"),
        LOSS_AND_INFERENCE_OPTIONS,
        TEXT("microbatches", 0, microbatches, "Run the batch in M micro-batches (auto)", "M|auto"),
        TEXT("batch-dim", 0, batch_dim, "What counts examples (inputs' first dimension)", "NAME"),
        TEXT("recompute", 0, recompute, "What the backward pass recomputes (auto)",
             "none|cheap|layers|layers:K|auto|LIST"),
        TEXT("offload", 0, offload, "What waits in the host's memory for the backward pass (auto)",
             "none|layers|activations|layers:K|activations:K|auto"),
        CONTEXT_OPTIONS,
        MTF_COLLECTIVES_OPTION(o.collectives),
        PIPELINE_OPTIONS,
        TEXT("precision", 0, precision, "f32, f64 or bf16 (the machine's own for graphs in f32)",
             "P"),
        LIMIT_OPTIONS,
        OTHER("seed", G_OPTION_ARG_INT, seed, "Of the random choices among free layouts", "N"),
        OTHER("threads", G_OPTION_ARG_INT, threads,
              "Threads, at most (one for each processor); without --seconds the plan is the same",
              "N"),
        TEXT("output", 'o', output, "Write the plan", "PLAN"),
        OTHER("frontier", G_OPTION_ARG_INT, frontier,
              "Also search under N memory limits, and show time against memory", "N"),
        PROOF_OPTIONS,
        TEXT("dump-after", 0, dump_after,
             "Print the program as it is after a pass, or the graph after execute", "PASS"),
        EXPORT_OPTIONS,
        OTHER("json", G_OPTION_ARG_NONE, json, "Print JSON", NULL),
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    Run run = { .options = &o, .times.begun = g_get_monotonic_time() };
    bool done =
        mtf_command_line_parse(&argc, &argv, entries, "GRAPH --devices N", summary, 1, 1, &error) &&
        check_options(&o, &error) && check_inference_options(&o, &error) &&
        check_outputs(&o, &error);
    mtf_in_parallel_set_threads(o.threads);
    done = done && search(&run, argv[1], &error);
    clear_run(&run);
    clear_options(&o);
    return done ? 0 : mtf_command_line_fail("meshtf-plan search", error);
}
