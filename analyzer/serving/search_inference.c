// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/search_inference.h"

#include "analyzer/serving/cache_handover.h"
#include "analyzer/serving/inference_answer.h"
#include "analyzer/serving/inference_request.h"
#include "analyzer/serving/prefill_devices.h"
#include "analyzer/training/stage_cut.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Where integer programs end by default; the last of it may take minutes. */
#define STANDARD_GAP 1e-4

/* `phase` is the one, of a whole model or of stage `stage`, that fits no layout. */
static bool fail_unfit(const MtfInferenceRun *run, MtfInferKind kind,
                       const MtfInferencePhase *phase, int stage, GError **error) {
    int64_t enough = phase->answer.free.limit_enough > 0 ? phase->answer.free.limit_enough
                                                         : phase->answer.rules.arena_bytes;
    g_autofree char *limit = mtf_bytes_format((double)run->memory_limit);
    g_autofree char *needed = mtf_bytes_format((double)enough);
    g_autofree char *which =
        run->stages > 1 ? g_strdup_printf(" in stage %d", stage) : g_strdup("");
    g_autofree char *context = mtf_inference_run_is_forward(run)
                                   ? g_strdup("")
                                   : g_strdup_printf(" and a context of %" PRId64,
                                                     run->sizes.context + run->sizes.generate);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no layout of %s%s fits in %s a device with %" PRId64
                " examples%s: the smallest limit found that would do is %s (--memory %" PRId64
                "); fewer examples%s or more devices help, too",
                mtf_infer_kind_name(mtf_inference_run_is_forward(run) ? run->kind : kind), which,
                limit, run->sizes.batch, context, needed, enough,
                mtf_inference_run_is_forward(run) ? "" : ", a shorter context");
    return false;
}

static bool search_graph(MtfInferenceRun *run, MtfInferKind kind, bool follows, MtfGraph *graph,
                         const MtfPlanSearchOptions *options, GError **error) {
    MtfInferencePhase *phase = &run->phase[kind];
    bool done = true;
    if (follows)
        mtf_inference_follow(graph, &run->phase[mtf_inference_other_phase(kind)], options,
                             run->cache_limit, phase);
    else
        done =
            mtf_inference_search(graph, run->meshes[kind], options, run->cache_limit, phase, error);
    return done && (phase->plan != NULL || fail_unfit(run, kind, phase, 0, error));
}

static bool search_stages(MtfInferenceRun *run, MtfInferKind kind, bool follows, MtfGraph *graph,
                          const MtfPlanSearchOptions *options, GError **error) {
    MtfInferencePipeline *p = &run->pipeline[kind];
    const MtfInferencePipeline *leader =
        follows ? &run->pipeline[mtf_inference_other_phase(kind)] : NULL;
    if (!mtf_inference_pipeline_search(graph, run->meshes[kind], leader, options, run->cache_limit,
                                       p, error))
        return false;
    return p->plan != NULL || fail_unfit(run, kind, &p->phases[p->unfit], p->unfit, error);
}

/* Searches a phase, or lays it out as the other one is. */
static bool search_phase(MtfInferenceRun *run, MtfInferKind kind, bool follows, GError **error) {
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
    MtfGraph *graph = mtf_inference_graph(
        run->cut, mtf_inference_run_is_forward(run) ? run->kind : kind, &sizes, &types, error);
    if (graph == NULL)
        return false;
    return (run->stages > 1 ? search_stages : search_graph)(run, kind, follows, graph, &options,
                                                            error);
}

/* Takes over why a search failed: into `unfit` where nothing fits, which it may replace, else as an error. */
static bool is_unfit(GError *why, GError **unfit, GError **error) {
    bool fits_nowhere = g_error_matches(why, MTF_ERROR, MTF_ERROR_FIT);
    if (fits_nowhere)
        g_clear_error(unfit);
    g_propagate_error(fits_nowhere ? unfit : error, why);
    return fits_nowhere;
}

static void clear_phase(MtfInferenceRun *run, MtfInferKind kind) {
    mtf_inference_phase_clear(&run->phase[kind]);
    mtf_inference_pipeline_clear(&run->pipeline[kind]);
}

static void clear_phases(MtfInferenceRun *run) {
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        clear_phase(run, (MtfInferKind)kind);
}

static void clear_run(MtfInferenceRun *run) {
    clear_phases(run);
    g_clear_pointer(&run->cut, mtf_graph_free);
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        g_clear_pointer(&run->meshes[kind], g_array_unref);
}

/* Lays out a phase as the other one was found, and gives the tokens a second of both: 0 where that does not
 * fit, which `unfit` says then; NAN on an error. */
static double follow(MtfInferenceRun *run, MtfInferKind kind, GError **unfit, GError **error) {
    GError *local = NULL;
    memset(&run->phase[kind], 0, sizeof run->phase[kind]);
    memset(&run->pipeline[kind], 0, sizeof run->pipeline[kind]);
    if (search_phase(run, kind, true, &local))
        return mtf_inference_run_tokens_per_second(run);
    return is_unfit(local, unfit, error) ? 0 : NAN;
}

/* Devices that do both keep weights and caches once, so that one layout serves both phases: of those that
 * were found for each alone the one with more tokens a second. */
static bool share_layout(MtfInferenceRun *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    double tokens[MTF_INFER_SERVE] = { 0 };
    MtfInferenceRun trials[MTF_INFER_SERVE] = { *run, *run }; /* by the phase that follows */
    for (int kind = 0; kind < MTF_INFER_SERVE && !isnan(tokens[0]); kind++)
        tokens[kind] = follow(&trials[kind], (MtfInferKind)kind, &unfit, error);
    bool prefill_follows = tokens[MTF_INFER_PREFILL] >= tokens[MTF_INFER_DECODE];
    MtfInferKind follower = prefill_follows ? MTF_INFER_PREFILL : MTF_INFER_DECODE;
    run->leader = mtf_inference_other_phase(follower);
    run->alone_seconds = mtf_inference_run_step_seconds(run, follower);
    clear_phase(&trials[run->leader], run->leader);
    clear_phase(run, follower);
    run->phase[follower] = trials[follower].phase[follower];
    run->pipeline[follower] = trials[follower].pipeline[follower];
    if (tokens[0] == 0 && tokens[1] == 0)
        g_propagate_error(error, g_steal_pointer(&unfit));
    return tokens[0] + tokens[1] > 0;
}

static bool search_phases(MtfInferenceRun *run, GError **error) {
    for (int kind = 0; kind < MTF_INFER_SERVE; kind++)
        if (mtf_inference_run_wants(run, (MtfInferKind)kind) &&
            !search_phase(run, (MtfInferKind)kind, false, error))
            return false;
    bool together = run->kind == MTF_INFER_SERVE && run->prefill_devices == 0;
    return !together || share_layout(run, error);
}

/* ---- Prompts on devices of their own ------------------------------------------------------------- */

/* Searches both phases with `prefill_devices` devices for prompts and the others for decoding. */
static bool search_apart(MtfInferenceRun *trial, int prefill_devices, GError **error) {
    const MtfInferenceSizes *s = &trial->sizes;
    trial->prefill_devices = prefill_devices;
    if (!mtf_inference_shape_meshes(trial, MTF_INFER_PREFILL, prefill_devices, error) ||
        !mtf_inference_shape_meshes(trial, MTF_INFER_DECODE,
                                    trial->options->devices - prefill_devices, error) ||
        !search_phases(trial, error))
        return false;
    trial->handover_seconds = mtf_cache_handover_seconds(
        &trial->phase[MTF_INFER_PREFILL], &trial->phase[MTF_INFER_DECODE], trial->machine,
        (double)s->context / (double)(s->context + s->generate), &trial->handover_bytes, error);
    return !isnan(trial->handover_seconds);
}

/* Whether prompts want more devices: they do not fit, or what follows waits for them. */
static bool wants_more(const MtfInferenceRun *trial) {
    return trial->phase[MTF_INFER_PREFILL].plan == NULL ||
           (trial->phase[MTF_INFER_DECODE].plan != NULL &&
            trial->phase[MTF_INFER_PREFILL].step_seconds > mtf_inference_run_decode_seconds(trial));
}

/* Tries one number, and keeps it where more tokens come of it. That it does not fit is no error: `unfit`
 * says so in its place. */
static bool try_apart(MtfInferenceRun *run, int prefill_devices, bool *more, GError **unfit,
                      GError **error) {
    MtfInferenceRun trial = *run;
    GError *local = NULL;
    memset(trial.meshes, 0, sizeof trial.meshes);
    memset(trial.phase, 0, sizeof trial.phase);
    trial.cut = mtf_graph_copy(run->cut);
    bool done = search_apart(&trial, prefill_devices, &local);
    *more = wants_more(&trial);
    if (done && (run->prefill_devices == 0 || mtf_inference_run_tokens_per_second(&trial) >
                                                  mtf_inference_run_tokens_per_second(run))) {
        MtfInferenceRun before = *run;
        *run = trial;
        trial = before;
    }
    clear_run(&trial);
    return done || is_unfit(local, unfit, error);
}

/* Both phases on all devices, to compare with: that need not fit. */
static bool search_together(MtfInferenceRun *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    GError *local = NULL;
    bool done = search_phases(run, &local);
    if (done)
        run->together_tokens = mtf_inference_run_tokens_per_second(run);
    clear_phases(run);
    return done || is_unfit(local, &unfit, error);
}

/* Numbers (int) of devices that may read prompts: the one that was asked for, or many. */
static GArray *list_counts(const MtfInferenceRun *run, GError **error) {
    const MtfSearchInference *o = run->options;
    int count = (int)g_ascii_strtoll(o->prefill_devices, NULL, 10);
    if (count == 0)
        return mtf_prefill_devices(run->machine, o->devices, o->max_axes, error);
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    return g_array_append_val(counts, count);
}

/* More devices read prompts faster and leave fewer to what follows: where the two balance is found by
 * halving. That both go steadily is assumed; what is found for a number is not. */
static bool search_divided(MtfInferenceRun *run, GError **error) {
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

/* Searches with the model cut into `stages` stages. */
static bool search_cut(MtfInferenceRun *run, int stages, GError **error) {
    run->stages = stages;
    run->cut = mtf_graph_copy(run->written);
    if (stages > 1 && mtf_graph_stages(run->cut) == 0 && !mtf_cut_stages(run->cut, stages, error))
        return false;
    if (!mtf_inference_find_meshes(run, error))
        return false;
    return run->options->prefill_devices != NULL ? search_divided(run, error)
                                                 : search_phases(run, error);
}

/* Tries one number of stages, and keeps it where more tokens come of it; `worse` where fewer do. That it does
 * not fit is no error: `unfit` says so in its place. */
static bool try_stages(MtfInferenceRun *run, int stages, bool *worse, GError **unfit,
                       GError **error) {
    MtfInferenceRun trial = { .options = run->options,
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
    MtfTriedStages tried = { stages, done ? mtf_inference_run_tokens_per_second(&trial) : 0 };
    double best = run->stages > 0 ? mtf_inference_run_tokens_per_second(run) : 0;
    g_array_append_val(run->tried, tried);
    *worse = done && tried.tokens <= best;
    if (done && !*worse) {
        MtfInferenceRun before = *run;
        *run = trial;
        trial = before;
    }
    clear_run(&trial);
    return done || is_unfit(local, unfit, error);
}

/* Ever more stages until tokens become fewer: links between groups of devices carry less, and each stage
 * waits for the others. That this goes steadily is assumed; what is found for a number is not. */
static bool search_any_stages(MtfInferenceRun *run, GError **error) {
    g_autoptr(GError) unfit = NULL;
    int devices = run->options->devices, operations = (int)run->written->operations->len;
    bool worse = false;
    run->tried = g_array_new(FALSE, FALSE, sizeof(MtfTriedStages));
    run->searches = 2 * (int)g_bit_storage((gulong)devices);
    for (int stages = 1; !worse && stages <= MIN(devices, operations); stages++)
        if (devices % stages == 0 && !try_stages(run, stages, &worse, &unfit, error))
            return false;
    if (run->stages == 0)
        g_propagate_error(error, g_steal_pointer(&unfit));
    return run->stages > 0;
}

static bool search(MtfInferenceRun *run, GError **error) {
    return run->options->stages == 0 ? search_any_stages(run, error)
                                     : search_cut(run, run->options->stages, error);
}

bool mtf_search_inference(const MtfSearchInference *options, GError **error) {
    MtfInferenceRun run = { .options = options };
    run.progress = mtf_search_progress_begin();
    bool found = mtf_inference_request(&run, error) && search(&run, error);
    mtf_search_progress_end(run.progress);
    bool done = found && mtf_inference_answer(&run, error);
    clear_run(&run);
    if (run.tried != NULL)
        g_array_unref(run.tried);
    mtf_machine_free(run.machine);
    mtf_graph_free(run.written);
    return done;
}
