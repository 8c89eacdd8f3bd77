// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/search_inference.h"

#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/search_progress.h"
#include "analyzer/serving/cache_handover.h"
#include "analyzer/serving/forward_graph.h"
#include "analyzer/serving/inference_stages.h"
#include "analyzer/serving/prefill_devices.h"
#include "analyzer/training/batch_dimension.h"
#include "analyzer/training/stage_cut.h"
#include "cost/price/predict.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/inference/generation_graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where integer programs end by default; the last of it may take minutes. */
#define STANDARD_GAP 1e-4

#define STANDARD_BATCH 1
#define STANDARD_CONTEXT 2048
#define STANDARD_GENERATE 128 /* of serving; a decode step alone generates nothing more */

/* A number of stages, and what it gives; 0 tokens: nothing fits. */
typedef struct {
    int stages;
    double tokens; /* a second */
} Tried;

typedef struct {
    const MtfSearchInference *options;
    MtfInferKind kind;
    MtfInferenceSizes sizes;
    MtfMachine *machine;
    MtfGraph *written;
    MtfSearchProgress *progress;
    const char *precision; /* asked for, or the machine's own; NULL: as written */
    int stages;            /* of a pipeline; 1: none */
    MtfGraph *cut;         /* the written graph, whose operations have those stages */
    GArray *tried;         /* Tried, where any number of stages will do */
    GArray *meshes[2];     /* MtfMesh; by MtfInferKind, as phases */
    int64_t memory_limit, cache_limit;
    MtfInferencePhase phase[2];       /* by MtfInferKind: prefill and decode, as far as wanted */
    MtfInferencePipeline pipeline[2]; /* instead, with --stages */
    MtfInferKind leader;  /* of serving on the same devices: whose layout serves both phases, and */
    double alone_seconds; /* a step of the other one in the layout found for it alone */
    int prefill_devices;  /* the first so many read prompts only; 0: all do both */
    double handover_seconds, handover_bytes; /* of all caches to the devices that decode */
    double together_tokens; /* a second, of all devices doing both; 0: not known, or nothing fits */
    int searches;           /* that share the seconds */
} Run;

/* ---- What is asked --------------------------------------------------------------------------- */

/* Any graph, once for each batch, and no text token by token. */
static bool is_forward(const Run *run) {
    return run->kind == MTF_INFER_FORWARD;
}

static bool read_sizes(Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    if (o->batch < 0 || o->context < 0 || o->generate < 0)
        return mtf_input_error(error,
                               "--batch and --context must be at least 1, --generate at least 0");
    if (is_forward(run)) {
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
static bool read_cache_memory(Run *run, GError **error) {
    const char *text = run->options->cache_memory;
    char *end = NULL;
    if (text == NULL)
        return true;
    double share = g_ascii_strtod(text, &end);
    if (strcmp(end, "%") != 0)
        return mtf_bytes_parse(text, &run->cache_limit, error);
    if (!(share > 0 && share <= 100))
        return mtf_input_error(error, "--cache-memory \"%s\" must be above 0 %% and at most 100 %%",
                               text);
    run->cache_limit = (int64_t)(share / 100 * (double)run->memory_limit);
    return true;
}

/* The meshes that so many devices form, for a phase. */
static bool shape_meshes(Run *run, MtfInferKind kind, int devices, GError **error) {
    g_clear_pointer(&run->meshes[kind], g_array_unref);
    run->meshes[kind] = mtf_mesh_shapes_on(run->machine, devices, run->options->max_axes, error);
    return run->meshes[kind] != NULL;
}

/* The meshes of a stage: --mesh is that of one, --devices are those of all. */
static bool find_meshes(Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int devices = o->devices / run->stages;
    if (o->devices % run->stages != 0)
        return mtf_input_error(error, "%d stages of equal size do not divide %d devices",
                               run->stages, o->devices);
    if (o->mesh == NULL && o->devices < 1)
        return mtf_input_error(error, "say how many processors there are: --devices N, or --mesh "
                                      "'rows:2;cols:2'");
    if (o->mesh == NULL)
        return shape_meshes(run, MTF_INFER_PREFILL, devices, error) &&
               shape_meshes(run, MTF_INFER_DECODE, devices, error);
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

static bool load(Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int64_t length = is_forward(run) ? o->length : run->sizes.context + run->sizes.generate;
    MtfPlanningGraph request = { .path = o->graph,
                                 .dims = o->dims,
                                 .precision = o->precision,
                                 .batch = (int)run->sizes.batch,
                                 .length = (int)MIN(length, INT32_MAX),
                                 .quiet = true,
                                 .sizes_of_models = !is_forward(run) };
    run->written = mtf_planning_graph_load(&request, error);
    if (run->written == NULL)
        return false;
    if (is_forward(run))
        run->sizes.batch = count_examples(run->written);
    run->precision = mtf_planning_inference_precision(run->machine, run->written, o->precision);
    return true;
}

/* Where any number of stages will do, the search cuts the graph and shapes the meshes itself. */
static bool check_stages(const Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    bool given = o->mesh != NULL || o->devices < 1 || mtf_graph_stages(run->written) > 0;
    return o->stages > 0 || !given ||
           mtf_input_error(error, "--stages auto needs --devices, no --mesh and no stages in the "
                                  "graph");
}

/* "auto", or fewer than there are. */
static bool check_prefill_devices(const Run *run, GError **error) {
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
static bool check_forward(const Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    const char *other = o->context != 0              ? "--context"
                        : o->generate != 0           ? "--generate"
                        : o->cache_memory != NULL    ? "--cache-memory"
                        : o->prefill_devices != NULL ? "--prefill-devices"
                        : o->stages != 1             ? "--stages"
                                                     : NULL;
    if (!is_forward(run))
        return o->length == 0 ||
               mtf_input_error(error,
                               "--length does not go with --infer %s: --context says how "
                               "long texts are",
                               mtf_infer_kind_name(run->kind));
    return other == NULL || mtf_input_error(error, "%s does not go with --infer forward", other);
}

static bool prepare(Run *run, GError **error) {
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
    return (o->memory == NULL || mtf_bytes_parse(o->memory, &run->memory_limit, error)) &&
           read_cache_memory(run, error) && load(run, error) && check_stages(run, error);
}

/* ---- Search ---------------------------------------------------------------------------------- */

/* `phase` is the one, of a whole model or of stage `stage`, that fits no layout. */
static bool fail_unfit(const Run *run, MtfInferKind kind, const MtfInferencePhase *phase, int stage,
                       GError **error) {
    int64_t enough = phase->answer.free.limit_enough > 0 ? phase->answer.free.limit_enough
                                                         : phase->answer.rules.arena_bytes;
    g_autofree char *limit = mtf_bytes_format((double)run->memory_limit);
    g_autofree char *needed = mtf_bytes_format((double)enough);
    g_autofree char *which =
        run->stages > 1 ? g_strdup_printf(" in stage %d", stage) : g_strdup("");
    g_autofree char *context = is_forward(run)
                                   ? g_strdup("")
                                   : g_strdup_printf(" and a context of %" PRId64,
                                                     run->sizes.context + run->sizes.generate);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no layout of %s%s fits in %s a device with %" PRId64
                " examples%s: the smallest limit found that would do is %s (--memory %" PRId64
                "); fewer examples%s or more devices help, too",
                mtf_infer_kind_name(is_forward(run) ? run->kind : kind), which, limit,
                run->sizes.batch, context, needed, enough,
                is_forward(run) ? "" : ", a shorter context");
    return false;
}

static MtfInferKind other_phase(MtfInferKind kind) {
    return kind == MTF_INFER_PREFILL ? MTF_INFER_DECODE : MTF_INFER_PREFILL;
}

static bool search_graph(Run *run, MtfInferKind kind, bool follows, MtfGraph *graph,
                         const MtfPlanSearchOptions *options, GError **error) {
    MtfInferencePhase *phase = &run->phase[kind];
    bool done = true;
    if (follows)
        mtf_inference_follow(graph, &run->phase[other_phase(kind)], options, run->cache_limit,
                             phase);
    else
        done =
            mtf_inference_search(graph, run->meshes[kind], options, run->cache_limit, phase, error);
    return done && (phase->plan != NULL || fail_unfit(run, kind, phase, 0, error));
}

static bool search_stages(Run *run, MtfInferKind kind, bool follows, MtfGraph *graph,
                          const MtfPlanSearchOptions *options, GError **error) {
    MtfInferencePipeline *p = &run->pipeline[kind];
    const MtfInferencePipeline *leader = follows ? &run->pipeline[other_phase(kind)] : NULL;
    if (!mtf_inference_pipeline_search(graph, run->meshes[kind], leader, options, run->cache_limit,
                                       p, error))
        return false;
    return p->plan != NULL || fail_unfit(run, kind, &p->phases[p->unfit], p->unfit, error);
}

/* Searches a phase, or lays it out as the other one is. */
static bool search_phase(Run *run, MtfInferKind kind, bool follows, GError **error) {
    const MtfSearchInference *o = run->options;
    MtfSearchControl control;
    mtf_search_control_init(&control, o->seconds / MAX(1, run->searches));
    control.interrupted = o->interrupted;
    control.listener = mtf_search_progress_listener(run->progress);
    MtfPlanSearchOptions options = { .machine = run->machine,
                                     .memory_limit = run->memory_limit,
                                     .pins = o->pins,
                                     .forbids = o->forbids,
                                     .rules_only = g_strcmp0(o->layouts, "rule") == 0,
                                     .uniform = o->uniform,
                                     .has_gap = !isnan(o->gap),
                                     .gap = o->gap,
                                     .proof_gap = STANDARD_GAP,
                                     .seed = (guint64)o->seed,
                                     .control = &control };
    MtfInferenceSizes sizes = run->sizes;
    if (run->kind == MTF_INFER_PREFILL)
        sizes.generate = o->generate;
    MtfInferenceTypes types = { .precision = run->precision, .int8_weights = o->weights != NULL };
    MtfGraph *graph =
        mtf_inference_graph(run->cut, is_forward(run) ? run->kind : kind, &sizes, &types, error);
    if (graph == NULL)
        return false;
    return (run->stages > 1 ? search_stages : search_graph)(run, kind, follows, graph, &options,
                                                            error);
}

static bool wants(const Run *run, MtfInferKind phase) {
    return run->kind == phase || run->kind == MTF_INFER_SERVE ||
           (is_forward(run) && phase == MTF_INFER_PREFILL);
}

/* Of all prompts, or a token each; with stages when the last of them is done. */
static double step_seconds(const Run *run, MtfInferKind kind) {
    return run->stages > 1 ? run->pipeline[kind].step_seconds : run->phase[kind].step_seconds;
}

/* Seconds in which all examples get their tokens. Caches fill evenly, so that a token costs in the mean
 * what it does half way. */
static double decode_seconds(const Run *run) {
    const MtfInferenceSizes *s = &run->sizes;
    int64_t context = s->context + (s->generate + 1) / 2;
    double step = run->stages > 1
                      ? mtf_inference_pipeline_seconds_at(&run->pipeline[MTF_INFER_DECODE], context)
                      : mtf_inference_seconds_at(&run->phase[MTF_INFER_DECODE], context);
    return (double)s->generate * step;
}

/* Tokens that all examples together get a second: read, generated, or generated with the reading of
 * their prompts counted; where that goes on elsewhere, the next examples are read and handed over
 * meanwhile, and the slowest of the three decides. */
static double tokens_per_second(const Run *run) {
    const MtfInferenceSizes *s = &run->sizes;
    double prefill = step_seconds(run, MTF_INFER_PREFILL);
    if (is_forward(run)) /* examples, of which each is one */
        return (double)s->batch / prefill;
    if (run->kind == MTF_INFER_PREFILL)
        return (double)(s->batch * s->context) / prefill;
    if (run->kind == MTF_INFER_DECODE)
        return (double)s->batch / step_seconds(run, MTF_INFER_DECODE);
    double tokens = (double)(s->batch * s->generate);
    return run->prefill_devices == 0
               ? tokens / (prefill + decode_seconds(run))
               : tokens / fmax(prefill, fmax(run->handover_seconds, decode_seconds(run)));
}

/* Takes over why a search failed: into `unfit` where nothing fits, which it may replace, else as an error. */
static bool is_unfit(GError *why, GError **unfit, GError **error) {
    bool fits_nowhere = g_error_matches(why, MTF_ERROR, MTF_ERROR_FIT);
    if (fits_nowhere)
        g_clear_error(unfit);
    g_propagate_error(fits_nowhere ? unfit : error, why);
    return fits_nowhere;
}

static void clear_phase(Run *run, MtfInferKind kind) {
    mtf_inference_phase_clear(&run->phase[kind]);
    mtf_inference_pipeline_clear(&run->pipeline[kind]);
}

static void clear_phases(Run *run) {
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        clear_phase(run, (MtfInferKind)kind);
}

static void clear_run(Run *run) {
    clear_phases(run);
    g_clear_pointer(&run->cut, mtf_graph_free);
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        g_clear_pointer(&run->meshes[kind], g_array_unref);
}

/* Lays out a phase as the other one was found, and gives the tokens a second of both: 0 where that does not
 * fit, which `unfit` says then; NAN on an error. */
static double follow(Run *run, MtfInferKind kind, GError **unfit, GError **error) {
    GError *local = NULL;
    memset(&run->phase[kind], 0, sizeof run->phase[kind]);
    memset(&run->pipeline[kind], 0, sizeof run->pipeline[kind]);
    if (search_phase(run, kind, true, &local))
        return tokens_per_second(run);
    return is_unfit(local, unfit, error) ? 0 : NAN;
}

/* Devices that do both keep weights and caches once, so that one layout serves both phases: of those that
 * were found for each alone the one with more tokens a second. */
static bool share_layout(Run *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    double tokens[MTF_INFER_SERVE] = { 0 };
    Run trials[MTF_INFER_SERVE] = { *run, *run }; /* by the phase that follows */
    for (int kind = 0; kind < MTF_INFER_SERVE && !isnan(tokens[0]); kind++)
        tokens[kind] = follow(&trials[kind], (MtfInferKind)kind, &unfit, error);
    bool prefill_follows = tokens[MTF_INFER_PREFILL] >= tokens[MTF_INFER_DECODE];
    MtfInferKind follower = prefill_follows ? MTF_INFER_PREFILL : MTF_INFER_DECODE;
    run->leader = other_phase(follower);
    run->alone_seconds = step_seconds(run, follower);
    clear_phase(&trials[run->leader], run->leader);
    clear_phase(run, follower);
    run->phase[follower] = trials[follower].phase[follower];
    run->pipeline[follower] = trials[follower].pipeline[follower];
    if (tokens[0] == 0 && tokens[1] == 0)
        g_propagate_error(error, g_steal_pointer(&unfit));
    return tokens[0] + tokens[1] > 0;
}

static bool search_phases(Run *run, GError **error) {
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        if (wants(run, (MtfInferKind)kind) && !search_phase(run, (MtfInferKind)kind, false, error))
            return false;
    bool together = run->kind == MTF_INFER_SERVE && run->prefill_devices == 0;
    return !together || share_layout(run, error);
}

/* ---- Prompts on devices of their own ------------------------------------------------------------- */

/* Searches both phases with so many devices for prompts, the others for what follows. */
static bool search_apart(Run *trial, int prefill_devices, GError **error) {
    const MtfInferenceSizes *s = &trial->sizes;
    trial->prefill_devices = prefill_devices;
    if (!shape_meshes(trial, MTF_INFER_PREFILL, prefill_devices, error) ||
        !shape_meshes(trial, MTF_INFER_DECODE, trial->options->devices - prefill_devices, error) ||
        !search_phases(trial, error))
        return false;
    trial->handover_seconds = mtf_cache_handover_seconds(
        &trial->phase[MTF_INFER_PREFILL], &trial->phase[MTF_INFER_DECODE], trial->machine,
        (double)s->context / (double)(s->context + s->generate), &trial->handover_bytes, error);
    return !isnan(trial->handover_seconds);
}

/* Whether prompts want more devices: they do not fit, or what follows waits for them. */
static bool wants_more(const Run *trial) {
    return trial->phase[MTF_INFER_PREFILL].plan == NULL ||
           (trial->phase[MTF_INFER_DECODE].plan != NULL &&
            trial->phase[MTF_INFER_PREFILL].step_seconds > decode_seconds(trial));
}

/* Tries one number, and keeps it where more tokens come of it. That it does not fit is no error: `unfit`
 * says so in its place. */
static bool try_apart(Run *run, int prefill_devices, bool *more, GError **unfit, GError **error) {
    Run trial = *run;
    GError *local = NULL;
    memset(trial.meshes, 0, sizeof trial.meshes);
    memset(trial.phase, 0, sizeof trial.phase);
    trial.cut = mtf_graph_copy(run->cut);
    bool done = search_apart(&trial, prefill_devices, &local);
    *more = wants_more(&trial);
    if (done && (run->prefill_devices == 0 || tokens_per_second(&trial) > tokens_per_second(run))) {
        Run before = *run;
        *run = trial;
        trial = before;
    }
    clear_run(&trial);
    return done || is_unfit(local, unfit, error);
}

/* Both phases on all devices, to compare with: that need not fit. */
static bool search_together(Run *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    GError *local = NULL;
    bool done = search_phases(run, &local);
    if (done)
        run->together_tokens = tokens_per_second(run);
    clear_phases(run);
    return done || is_unfit(local, &unfit, error);
}

/* Numbers (int) of devices that may read prompts: the one that was asked for, or many. */
static GArray *list_counts(const Run *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int count = (int)g_ascii_strtoll(o->prefill_devices, NULL, 10);
    if (count == 0)
        return mtf_prefill_devices(run->machine, o->devices, o->max_axes, error);
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    return g_array_append_val(counts, count);
}

/* More devices read prompts faster and leave fewer to what follows: where the two balance is found by
 * halving. That both go steadily is assumed; what is found for a number is not. */
static bool search_divided(Run *run, GError **error) {
    g_autoptr(GArray) counts = list_counts(run, error);
    g_autoptr(GError) unfit = NULL;
    if (counts == NULL)
        return false;
    guint low = 0, high = counts->len;
    run->searches =
        2 + 2 * (int)g_bit_storage(counts->len); /* two phases, together and each trial */
    if (!search_together(run, error))
        return false;
    while (low < high) {
        guint middle = (low + high) / 2;
        bool more;
        if (!try_apart(run, g_array_index(counts, int, middle), &more, &unfit, error))
            return false;
        *(more ? &low : &high) = more ? middle + 1 : middle;
    }
    if (run->prefill_devices == 0)
        g_propagate_error(error, g_steal_pointer(&unfit));
    return run->prefill_devices > 0;
}

/* ---- Stages -------------------------------------------------------------------------------------- */

/* Searches in so many stages. */
static bool search_cut(Run *run, int stages, GError **error) {
    run->stages = stages;
    run->cut = mtf_graph_copy(run->written);
    if (stages > 1 && mtf_graph_stages(run->cut) == 0 && !mtf_cut_stages(run->cut, stages, error))
        return false;
    if (!find_meshes(run, error))
        return false;
    return run->options->prefill_devices != NULL ? search_divided(run, error)
                                                 : search_phases(run, error);
}

/* Tries one number of stages, and keeps it where more tokens come of it; `worse` where fewer do. That it does
 * not fit is no error: `unfit` says so in its place. */
static bool try_stages(Run *run, int stages, bool *worse, GError **unfit, GError **error) {
    Run trial = { .options = run->options,
                  .kind = run->kind,
                  .sizes = run->sizes,
                  .machine = run->machine,
                  .written = run->written,
                  .memory_limit = run->memory_limit,
                  .cache_limit = run->cache_limit,
                  .tried = run->tried,
                  .progress = run->progress,
                  .precision = run->precision,
                  .searches = run->searches };
    GError *local = NULL;
    bool done = search_cut(&trial, stages, &local);
    Tried tried = { stages, done ? tokens_per_second(&trial) : 0 };
    double best = run->stages > 0 ? tokens_per_second(run) : 0;
    g_array_append_val(run->tried, tried);
    *worse = done && tried.tokens <= best;
    if (done && !*worse) {
        Run before = *run;
        *run = trial;
        trial = before;
    }
    clear_run(&trial);
    return done || is_unfit(local, unfit, error);
}

/* Ever more stages until tokens become fewer: links between groups of devices carry less, and each stage
 * waits for the others. That this goes steadily is assumed; what is found for a number is not. */
static bool search_any_stages(Run *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    int devices = run->options->devices, operations = (int)run->written->operations->len;
    bool worse = false;
    run->tried = g_array_new(FALSE, FALSE, sizeof(Tried));
    run->searches = 2 * (int)g_bit_storage((gulong)devices);
    for (int stages = 1; !worse && stages <= MIN(devices, operations); stages++)
        if (devices % stages == 0 && !try_stages(run, stages, &worse, &unfit, error))
            return false;
    if (run->stages == 0)
        g_propagate_error(error, g_steal_pointer(&unfit));
    return run->stages > 0;
}

static bool search(Run *run, GError **error) {
    return run->options->stages == 0 ? search_any_stages(run, error)
                                     : search_cut(run, run->options->stages, error);
}

/* ---- What comes out -------------------------------------------------------------------------- */

/* The phase that is executed, token by token where there is one. */
static MtfInferKind main_kind(const Run *run) {
    return run->kind == MTF_INFER_PREFILL || is_forward(run) ? MTF_INFER_PREFILL : MTF_INFER_DECODE;
}

static int64_t max_context(const Run *run) {
    return run->stages > 1 ? run->pipeline[main_kind(run)].max_context
                           : run->phase[main_kind(run)].max_context;
}

/* Tokens a second with a batch in each stage: where a phase's steps follow one another, its slowest stage
 * decides. */
static double full_tokens_per_second(const Run *run) {
    const MtfInferenceSizes *s = &run->sizes;
    const MtfInferencePipeline *prefill = &run->pipeline[MTF_INFER_PREFILL];
    const MtfInferencePipeline *decode = &run->pipeline[MTF_INFER_DECODE];
    double batch = (double)s->batch;
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
    return object;
}

static cJSON *kind_to_json(const Run *run, MtfInferKind kind) {
    return run->stages > 1 ? pipeline_to_json(&run->pipeline[kind])
                           : phase_to_json(&run->phase[kind]);
}

static void add_tried(cJSON *object, const GArray *tried) {
    cJSON *list = cJSON_AddArrayToObject(object, "tried");
    for (guint i = 0; i < tried->len; i++) {
        const Tried *one = &g_array_index(tried, Tried, i);
        cJSON *item = cJSON_CreateObject();
        mtf_json_add_integer(item, "stages", one->stages);
        mtf_json_add_number(item, "tokens_per_second", one->tokens);
        cJSON_AddItemToArray(list, item);
    }
}

static const char *planned_precision(const Run *run) {
    return run->precision != NULL ? run->precision : mtf_planning_precision(run->written);
}

static void print_as_json(const Run *run) {
    cJSON *object = kind_to_json(run, main_kind(run));
    cJSON_AddStringToObject(object, "machine", run->machine->name);
    cJSON_AddStringToObject(object, "infer", mtf_infer_kind_name(run->kind));
    cJSON_AddStringToObject(object, "precision", planned_precision(run));
    if (run->options->weights != NULL)
        cJSON_AddStringToObject(object, "weights", run->options->weights);
    mtf_json_add_integer(object, "parameters", mtf_graph_parameters(run->written));
    mtf_json_add_integer(object, "batch", run->sizes.batch);
    if (!is_forward(run)) {
        mtf_json_add_integer(object, "context", run->sizes.context);
        mtf_json_add_integer(object, "generate", run->sizes.generate);
    }
    mtf_json_add_number(object, is_forward(run) ? "examples_per_second" : "tokens_per_second",
                        tokens_per_second(run));
    if (run->stages > 1)
        mtf_json_add_number(object, "full_tokens_per_second", full_tokens_per_second(run));
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

static void print_phase(const Run *run, MtfInferKind kind) {
    const MtfInferencePhase *phase = &run->phase[kind];
    g_autofree char *mesh = mtf_mesh_format(&phase->plan->layout->mesh);
    g_autofree char *step = mtf_seconds_format(phase->step_seconds);
    g_autofree char *weights = mtf_bytes_format((double)phase->weight_bytes);
    g_autofree char *bytes = mtf_bytes_format((double)phase->cache_bytes);
    g_autofree char *caches =
        is_forward(run) ? g_strdup("") : g_strdup_printf(", caches %s", bytes);
    g_autofree char *tables = mtf_predicted_format(phase->plan->predicted);
    printf("\n%-15smesh %s, layout %s\n", mtf_infer_kind_name(is_forward(run) ? run->kind : kind),
           mesh, mtf_layout_title(phase->plan->layout));
    printf("%-15s%s for a batch of %" PRId64 "; weights %s%s a device\n", "a step", step,
           run->sizes.batch, weights, caches);
    fputs(tables, stdout);
}

static void print_stages(const Run *run, MtfInferKind kind) {
    const MtfInferencePipeline *p = &run->pipeline[kind];
    g_autofree char *step = mtf_seconds_format(p->step_seconds);
    g_autofree char *slowest = mtf_seconds_format(p->slowest_seconds);
    printf("\n%-15s%d stages; a step %s for a batch of %" PRId64 ", the slowest stage %s\n",
           mtf_infer_kind_name(kind), p->stages, step, run->sizes.batch, slowest);
    for (int s = 0; s < p->stages; s++) {
        const MtfInferencePhase *phase = &p->phases[s];
        const MtfLayout *layout = phase->plan->layout;
        int size = mtf_mesh_size(&layout->mesh);
        g_autofree char *place =
            mtf_pipeline_place_format(s * size, (s + 1) * size - 1, &layout->mesh);
        g_autofree char *own = mtf_seconds_format(phase->step_seconds);
        g_autofree char *transfer = mtf_seconds_format(p->transfer_seconds[s]);
        g_autofree char *weights = mtf_bytes_format((double)phase->weight_bytes);
        g_autofree char *caches = mtf_bytes_format((double)phase->cache_bytes);
        printf("  stage %-6d %s, layout %s: %s, %s to the next; weights %s, caches %s a device\n",
               s, place, mtf_layout_title(layout), own, transfer, weights, caches);
    }
}

/* Who does what, what the caches' way takes, and what all devices doing both would do. */
static void print_divided(const Run *run) {
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
static void print_leader(const Run *run) {
    MtfInferKind follower = other_phase(run->leader);
    g_autofree char *alone = mtf_seconds_format(run->alone_seconds);
    g_autofree char *now = mtf_seconds_format(step_seconds(run, follower));
    printf(
        "one layout     of %s, for weights and caches that are kept once: %s takes %s, by itself %s\n",
        mtf_infer_kind_name(run->leader), mtf_infer_kind_name(follower), now, alone);
}

/* What other numbers of stages give. */
static void print_tried(const Run *run) {
    for (guint i = 0; run->tried != NULL && i < run->tried->len; i++) {
        const Tried *one = &g_array_index(run->tried, Tried, i);
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
static void print_results(const Run *run) {
    const MtfGraph *graph = run->phase[MTF_INFER_PREFILL].plan->graph;
    GString *names = g_string_new(NULL);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->memory == MTF_MEMORY_OUTPUT)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", tensor->name);
    }
    printf("results        %s\n", names->str);
    g_string_free(names, TRUE);
}

static void print_for_people(const Run *run) {
    const MtfSearchInference *o = run->options;
    mtf_planning_print_machine(planned_precision(run), run->machine, o->machine != NULL,
                               o->precision);
    if (is_forward(run))
        printf("examples       %.5g a second\n", tokens_per_second(run));
    else
        printf("examples       %" PRId64 ", a context of %" PRId64 ", %" PRId64
               " tokens more\ntokens         %.5g a second\n",
               run->sizes.batch, run->sizes.context, run->sizes.generate, tokens_per_second(run));
    print_tried(run);
    if (run->prefill_devices > 0)
        print_divided(run);
    else if (run->kind == MTF_INFER_SERVE)
        print_leader(run);
    if (run->stages > 1)
        printf("all stages     %.5g a second with %d such batches under way\n",
               full_tokens_per_second(run), run->stages);
    if (is_forward(run))
        print_results(run);
    else
        printf("context        at most %" PRId64 " tokens an example in this layout\n",
               max_context(run));
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        if (wants(run, (MtfInferKind)kind))
            (run->stages > 1 ? print_stages : print_phase)(run, (MtfInferKind)kind);
}

static bool finish(Run *run, GError **error) {
    const char *output = run->options->output;
    if (g_strcmp0(output, "-") != 0)
        (run->options->json ? print_as_json : print_for_people)(run);
    fflush(stdout);
    if (output == NULL)
        return true;
    return run->stages > 1
               ? mtf_pipeline_plan_save(run->pipeline[main_kind(run)].plan, output, error)
               : mtf_plan_save(run->phase[main_kind(run)].plan, output, error);
}

bool mtf_search_inference(const MtfSearchInference *options, GError **error) {
    Run run = { .options = options };
    run.progress = mtf_search_progress_begin();
    bool found = prepare(&run, error) && search(&run, error);
    mtf_search_progress_end(run.progress);
    bool done = found && finish(&run, error);
    clear_run(&run);
    if (run.tried != NULL)
        g_array_unref(run.tried);
    mtf_machine_free(run.machine);
    mtf_graph_free(run.written);
    return done;
}
