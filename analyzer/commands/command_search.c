// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan search: finds the best layout, proves how good it is, writes the plan. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/report_child.h"
#include "analyzer/commands/search_pipeline.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/next_best.h"
#include "analyzer/planner/plan_search.h"
#include "analyzer/planner/planning.h"
#include "analyzer/planner/search_progress.h"
#include "analyzer/planner/step_variants.h"
#include "analyzer/serving/search_inference.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/machine/mapping_json.h"
#include "cost/price/predict.h"
#include "cost/summary/step_summary.h"
#include "cost/tune/algorithm_choice.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"
#include "layouts/program/passes.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *mesh, *machine, *memory, *layouts, *precision, *output, *report, *dump, *dump_after;
    char **dims, **pins, **forbids;
    char *batch_dim, *recompute, *microbatches, *collectives;
    char *schedule, *loss, *exportable;
    int devices, max_axes, seed, frontier, batch, length;
    char *stages;
    char *infer, *cache_memory;
    int context, generate;
    int chunks;
    double seconds, gap;
    gboolean even, json;
} Options;

/* Variants that are searched at once. */
#define AT_ONCE 2

/* Of variants that are searched at once, the one with the shortest step is proven. */
typedef struct {
    GMutex lock;
    GCond entered;
    int first, count;      /* variants */
    int known;             /* of which steps are known */
    double steps[AT_ONCE]; /* seconds; 0: not known yet */
} Contest;

/* Of two variants that are searched at once, the second poses its problem when the first has posed its
 * own: posing takes two threads half as long as one, and what the first finds may end the second.
 */
typedef struct {
    GMutex lock;
    GCond opened;
    bool open;
} Barrier;

typedef struct {
    const Options *options;
    MtfMachine *machine;
    MtfGraph *written;     /* by the user */
    const char *precision; /* NULL: as the graph has it */
    GArray *variants; /* MtfStepCandidate: what a step may look like, the most promising first */
    int variant;      /* the one of this graph */
    MtfGraph *graph;  /* the training graph */
    GArray *meshes;   /* MtfMesh */
    int64_t memory_limit;
    MtfPlanAnswer answer;
    MtfLayout *layout; /* the answer's, settled; NULL: not yet */
    gint64 begin;      /* of the searches that share --seconds, monotonic microseconds */
    double wall_seconds;
    bool quiet; /* shows no progress */
    MtfSearchProgress *progress;
    double best_bound; /* the most that a bound was told or guessed to be */
    const _Atomic int64_t
        *to_beat;           /* the cost of another variant's plan, INT64_MAX: none yet; or NULL */
    _Atomic int64_t *found; /* the cost of this variant's best so far that fits; or NULL */
    Barrier *barrier;       /* that this variant opens; or NULL */
    Barrier *behind;        /* that it waits for; or NULL */
    Contest *contest;       /* with the variants that are searched beside it; or NULL */
} Run;

/* ---- Ctrl-C and progress --------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C ends the search and keeps its best; a second one kills. */
static void catch_interrupt(void) {
    struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
}

/* Of --seconds, for comparing variants of the step. */
#define VARIANT_SHARE 0.3

/* What is done with a layout when the search is over takes so many seconds an operation, at most such a
 * share of --seconds. */
#define ENDING_SECONDS 1e-4
#define ENDING_SHARE 0.3
#define OPERATIONS_A_STEP 10 /* for each of the forward graph */

static double seconds_since(gint64 begin) {
    return (double)(g_get_monotonic_time() - begin) / 1e6;
}

/* The share by which a bound may exceed another variant's cost before this variant is given up: what
 * another mesh or mapping might save. */
#define PRUNING_SLACK 1.1

static bool is_beaten(const Run *run, int64_t cost) {
    return cost < INT64_MAX && run->best_bound >= PRUNING_SLACK * (double)cost;
}

static bool is_interrupted(void *user) {
    (void)user;
    return interrupted != 0;
}

/* Variants are compared in a part of the time. */
static bool is_late_for_variants(void *user) {
    const Run *run = user;
    double seconds = run->options->seconds;
    return interrupted != 0 || (seconds > 0 && seconds_since(run->begin) > VARIANT_SHARE * seconds);
}

static bool is_pruned(void *user) {
    const Run *run = user;
    return run->to_beat != NULL && is_beaten(run, *run->to_beat);
}

static void show_progress(int meshes, int64_t cost, void *user) {
    const Run *run = user;
    (void)meshes;
    if (run->quiet)
        return;
    mtf_search_progress_phase(run->progress, "rule layouts");
    mtf_search_progress_bound(run->progress, cost < INT64_MAX ? (double)cost : INFINITY, 0);
}

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
    guint64 value = 1;
    *stages = 0;
    if (g_strcmp0(options->stages, "auto") == 0)
        return true;
    if (options->stages != NULL &&
        !g_ascii_string_to_unsigned(options->stages, 10, 1, MTF_MAX_STAGES, &value, NULL))
        return mtf_input_error(error, "--stages \"%s\" must be auto or 1 to %d", options->stages,
                               MTF_MAX_STAGES);
    *stages = (int)value;
    return true;
}

/* Systems that take equal shards of any layout, and those that take some kinds of layouts alone. */
static bool check_exportable(Options *options, GError **error) {
    static const char *const even[] = { "jax", "dtensor", "onnx", "mtf", "megatron", NULL };
    if (options->exportable == NULL)
        return true;
    if (!g_strv_contains(even, options->exportable))
        return mtf_input_error(error,
                               "--exportable \"%s\" must be jax, dtensor, onnx, mtf or megatron",
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

static bool check_options(Options *options, GError **error) {
    if (!check_exportable(options, error))
        return false;
    if (!mtf_algorithm_choice_check(options->collectives, error))
        return false;
    if (options->dump_after != NULL && mtf_pass_find(options->dump_after, error) < 0)
        return false;
    if (options->layouts != NULL && strcmp(options->layouts, "rule") != 0 &&
        strcmp(options->layouts, "free") != 0)
        return mtf_input_error(error, "--layouts \"%s\" must be rule or free", options->layouts);
    if (options->max_axes < 1 || options->max_axes > MTF_MAX_MESH_AXES)
        return mtf_input_error(error, "--max-mesh-dims %d must be 1 to %d", options->max_axes,
                               MTF_MAX_MESH_AXES);
    if (options->devices < 0)
        return mtf_input_error(error, "--devices %d must be at least 1", options->devices);
    int stages;
    if (!read_stages(options, &stages, error))
        return false;
    if (!(options->seconds >= 0 && options->seconds < 1e9))
        return mtf_input_error(error, "--seconds %g must be at least 0", options->seconds);
    if (options->frontier != 0 &&
        (options->frontier < 2 || options->frontier > MTF_FRONTIER_MAX_POINTS))
        return mtf_input_error(error, "--frontier %d must be 2 to %d points", options->frontier,
                               MTF_FRONTIER_MAX_POINTS);
    return isnan(options->gap) || (options->gap >= 0 && options->gap < 1) ||
           mtf_input_error(error, "--gap %g must be at least 0 and below 1", options->gap);
}

static bool is_auto(const char *text) {
    return text == NULL || strcmp(text, "auto") == 0;
}

static bool read_microbatches(const char *text, int *count, GError **error) {
    gint64 value = 0;
    *count = 0;
    if (is_auto(text))
        return true;
    if (!g_ascii_string_to_signed(text, 10, 1, MTF_MAX_MICROBATCHES, &value, NULL))
        return mtf_input_error(error, "--microbatches \"%s\" must be auto or 1 to %d", text,
                               MTF_MAX_MICROBATCHES);
    *count = (int)value;
    return true;
}

static bool find_variants(Run *run, GError **error) {
    const Options *options = run->options;
    MtfRecompute recompute = MTF_RECOMPUTES;
    MtfStepVariantsOptions variants = { .written = run->written,
                                        .machine = run->machine,
                                        .meshes = run->meshes,
                                        .memory_limit = run->memory_limit,
                                        .batch_dim = options->batch_dim,
                                        .precision = run->precision,
                                        .pins = (const char *const *)options->pins,
                                        .forbids = (const char *const *)options->forbids,
                                        .rules_only = g_strcmp0(options->layouts, "rule") == 0,
                                        .user = run,
                                        .cancel = is_late_for_variants };
    if (!read_microbatches(options->microbatches, &variants.microbatches, error) ||
        (!is_auto(options->recompute) &&
         !mtf_recompute_parse(options->recompute, &recompute, error)))
        return false;
    variants.recompute = (int)recompute;
    mtf_search_progress_phase(run->progress, "comparing step variants");
    run->variants = mtf_step_variants(&variants, error);
    return run->variants != NULL;
}

static bool prepare(Run *run, const char *path, GError **error) {
    const Options *options = run->options;
    MtfPlanningGraph request = { path,
                                 (const char *const *)options->dims,
                                 options->precision,
                                 options->batch,
                                 options->length,
                                 options->json,
                                 false,
                                 options->loss,
                                 options->even };
    catch_interrupt();
    run->progress = mtf_search_progress_begin();
    run->machine = mtf_planning_machine(options->machine, error);
    if (run->machine == NULL)
        return false;
    run->memory_limit = run->machine->memory_bytes;
    if (options->memory != NULL && !mtf_bytes_parse(options->memory, &run->memory_limit, error))
        return false;
    run->written = mtf_planning_graph_load(&request, error);
    if (run->written == NULL)
        return false;
    mtf_planning_warn_untrained(run->written);
    run->precision = mtf_planning_precision_for(run->machine, run->written, options->precision);
    return find_meshes(run, error) && find_variants(run, error);
}

static void note_guess(double guess, void *user) {
    Run *run = user;
    run->best_bound = fmax(run->best_bound, guess);
}

static void note_found(int64_t cost, void *user) {
    const Run *run = user;
    if (run->found != NULL)
        *run->found = MIN(*run->found, cost);
}

static void show_bound(double cost, double bound, void *user) {
    Run *run = user;
    note_guess(bound, user);
    if (run->quiet)
        return;
    mtf_search_progress_phase(run->progress, "free layouts");
    mtf_search_progress_bound(run->progress, cost, bound);
}

static void open_barrier(void *user) {
    Barrier *barrier = ((const Run *)user)->barrier;
    if (!((const Run *)user)->quiet)
        mtf_search_progress_phase(((const Run *)user)->progress, "free layouts");
    if (barrier == NULL)
        return;
    g_mutex_lock(&barrier->lock);
    barrier->open = true;
    g_cond_signal(&barrier->opened);
    g_mutex_unlock(&barrier->lock);
}

static void await_barrier(void *user) {
    Barrier *barrier = ((const Run *)user)->behind;
    if (!((const Run *)user)->quiet)
        mtf_search_progress_phase(((const Run *)user)->progress, "posing free layouts");
    if (barrier == NULL)
        return;
    mtf_in_parallel_wait();
    g_mutex_lock(&barrier->lock);
    while (!barrier->open)
        g_cond_wait(&barrier->opened, &barrier->lock);
    g_mutex_unlock(&barrier->lock);
    mtf_in_parallel_go_on();
}

static void enter_contest(const Run *run, double step_seconds) {
    Contest *contest = run->contest;
    if (contest == NULL)
        return;
    g_mutex_lock(&contest->lock);
    double *own = &contest->steps[run->variant - contest->first];
    if (*own == 0) {
        *own = step_seconds;
        contest->known++;
        g_cond_broadcast(&contest->entered);
    }
    g_mutex_unlock(&contest->lock);
}

/* Waits until all have entered. Of equals the first wins. */
static bool wins_contest(const Run *run) {
    Contest *contest = run->contest;
    int own = run->variant - contest->first;
    bool wins = true;
    mtf_in_parallel_wait();
    g_mutex_lock(&contest->lock);
    while (contest->known < contest->count)
        g_cond_wait(&contest->entered, &contest->lock);
    for (int i = 0; i < contest->count; i++)
        wins &= i < own ? contest->steps[i] > contest->steps[own]
                        : contest->steps[i] >= contest->steps[own];
    g_mutex_unlock(&contest->lock);
    mtf_in_parallel_go_on();
    return wins;
}

static bool is_worth_proof(double step_seconds, void *user) {
    const Run *run = user;
    enter_contest(run, step_seconds);
    return run->contest == NULL || wins_contest(run);
}

static void tune_layout(Run *run) {
    if (run->layout != NULL)
        return;
    run->layout = mtf_plan_answer_layout(&run->answer, run->graph);
    mtf_planning_tune(run->graph, run->layout, &run->answer.pricer, run->memory_limit);
    mtf_layout_choose_algorithms(run->graph, run->layout, &run->answer.pricer,
                                 run->options->collectives);
}

/* What is left of --seconds for a search. */
static double seconds_for_search(const Run *run) {
    double seconds = run->options->seconds;
    double ending = fmin(ENDING_SHARE * seconds,
                         ENDING_SECONDS * OPERATIONS_A_STEP * run->written->operations->len);
    return fmax(0.01, seconds - ending - seconds_since(run->begin));
}

/* Searches the graph of one variant, with a frontier of so many points. */
static bool search_form(Run *run, int frontier, GError **error) {
    const Options *options = run->options;
    MtfStepCandidate *candidate = &g_array_index(run->variants, MtfStepCandidate, run->variant);
    MtfPlanSearchOptions search_options = {
        .machine = run->machine,
        .memory_limit = run->memory_limit,
        .pins = (const char *const *)options->pins,
        .forbids = (const char *const *)options->forbids,
        .rules_only = g_strcmp0(options->layouts, "rule") == 0,
        .frontier = frontier,
        .seconds = options->seconds > 0 ? seconds_for_search(run) : 0,
        .has_gap = !isnan(options->gap),
        .gap = options->gap,
        .seed = (guint64)options->seed,
        .dump = options->dump,
        .user = run,
        .cancel = is_interrupted,
        .abandon = is_pruned,
        .found = note_found,
        .rules_progress = show_progress,
        .free_progress = show_bound,
        .free_guess = note_guess,
        .await = await_barrier,
        .posed = open_barrier,
        .worth_proof = is_worth_proof,
    };
    run->graph = candidate->graph != NULL
                     ? g_steal_pointer(&candidate->graph)
                     : mtf_planning_training_graph(run->written, &candidate->variant, error);
    bool done = run->graph != NULL &&
                mtf_plan_search(run->graph, run->meshes, &search_options, &run->answer, error);
    return done;
}

/* ---- All variants of a step --------------------------------------------------------------------- */

/* Variants that are searched after one that fits, at least; and at most for large graphs. */
#define MORE_VARIANTS 1

/* Nanoseconds of what was found; INT64_MAX when nothing fits. */
static int64_t cost_of(const Run *run) {
    return run->answer.found ? run->answer.cost : INT64_MAX;
}

/* Bytes that would do where nothing fits. */
static int64_t need_of(const Run *run) {
    return run->answer.free.limit_enough > 0 ? run->answer.free.limit_enough
                                             : run->answer.rules.arena_bytes;
}

static void clear_found(Run *run) {
    g_clear_pointer(&run->graph, mtf_graph_free);
    g_clear_pointer(&run->layout, mtf_layout_free);
    mtf_plan_answer_clear(&run->answer);
}

/* Whether nothing bounds what was found, as where the proof was left to another variant. */
static bool is_unproven(const Run *run) {
    return mtf_plan_answer_is_free(&run->answer) && run->answer.free.bound == 0;
}

/* Whether `trial` is to be kept rather than `run`: it is proven, or faster, or needs less while nothing
 * fits. */
static bool is_better(const Run *trial, const Run *run) {
    if (run->graph == NULL)
        return true;
    if (trial->answer.found && run->answer.found && is_unproven(trial) != is_unproven(run))
        return is_unproven(run);
    double step = run->answer.step_seconds, trial_step = trial->answer.step_seconds;
    if (step > 0 && trial_step > 0 && (step < trial_step || trial_step < step))
        return trial_step < step;
    if (cost_of(trial) != cost_of(run))
        return cost_of(trial) < cost_of(run);
    return cost_of(run) == INT64_MAX && need_of(trial) < need_of(run);
}

/* The search of one variant, which may run beside that of the variant before it. */
typedef struct {
    Run run;
    Barrier barrier;
    bool done;
    GError *error;
    _Atomic int64_t cost; /* of the best found for this variant that fits; INT64_MAX: none yet */
} Trial;

static void trial_init(Trial *trial, const Run *run, int variant, Trial *before) {
    *trial = (Trial){ .run = *run, .cost = INT64_MAX };
    trial->run.variant = variant;
    trial->run.graph = NULL;
    trial->run.answer = (MtfPlanAnswer){ 0 };
    trial->run.layout = NULL;
    trial->run.best_bound = 0;
    trial->run.quiet = before != NULL;
    trial->run.to_beat = before != NULL ? &before->cost : NULL;
    g_mutex_init(&trial->barrier.lock);
    g_cond_init(&trial->barrier.opened);
    trial->run.found = &trial->cost;
    trial->run.barrier = &trial->barrier;
    trial->run.behind = before != NULL ? &before->barrier : NULL;
}

static void trial_clear(Trial *trial) {
    g_mutex_clear(&trial->barrier.lock);
    g_cond_clear(&trial->barrier.opened);
}

static void search_trial(int i, void *data) {
    Trial *trial = (Trial *)data + i;
    trial->done = search_form(&trial->run, 0, &trial->error);
    trial->cost = cost_of(&trial->run);
    open_barrier(&trial->run);
    enter_contest(&trial->run, INFINITY);
    if (trial->cost < INT64_MAX && interrupted == 0 && !is_pruned(&trial->run))
        tune_layout(&trial->run); /* while another variant may still be searched */
}

/* Keeps the better plan. That of a variant which was searched beside another is given up where that
 * would have been done if it had been searched later, so that nothing depends on which ended first.
 */
static bool judge_trial(Run *run, Trial *trial, GError **error) {
    bool beaten = is_beaten(&trial->run, cost_of(run));
    bool excused = beaten || (interrupted != 0 && cost_of(run) < INT64_MAX);
    if (!trial->done && !excused) {
        g_propagate_error(error, g_steal_pointer(&trial->error));
        return false;
    }
    g_clear_error(&trial->error);
    if (trial->done && !beaten && is_better(&trial->run, run)) {
        clear_found(run);
        *run = trial->run;
        run->to_beat = NULL;
        run->found = NULL;
        run->barrier = run->behind = NULL;
        run->contest = NULL;
        run->quiet = false;
    } else {
        clear_found(&trial->run);
    }
    return true;
}

/* Searches `count` variants from `first` on, at once, and keeps the best plan. */
static bool try_variants(Run *run, int first, int count, int *after, GError **error) {
    Trial trials[AT_ONCE];
    Contest contest = { .first = first, .count = count };
    bool done = true;
    g_mutex_init(&contest.lock);
    g_cond_init(&contest.entered);
    for (int i = 0; i < count; i++) {
        trial_init(&trials[i], run, first + i, i > 0 ? &trials[i - 1] : NULL);
        trials[i].run.contest = &contest;
    }
    _Atomic int64_t known = cost_of(run);
    trials[0].run.to_beat = &known;
    mtf_in_parallel(count, search_trial, trials);
    g_mutex_clear(&contest.lock);
    g_cond_clear(&contest.entered);
    for (int i = 0; i < count; i++) {
        done = done && judge_trial(run, &trials[i], error);
        *after += cost_of(run) < INT64_MAX;
        trial_clear(&trials[i]);
        if (done)
            continue;
        clear_found(&trials[i].run);
        g_clear_error(&trials[i].error);
    }
    return done;
}

/* Searches the chosen variant again, now with its frontier, for which there are as many seconds. */
static bool add_frontier(Run *run, GError **error) {
    clear_found(run);
    run->begin = g_get_monotonic_time();
    return search_form(run, run->options->frontier, error);
}

/* Whether a variant is worth a search after `after` variants that did not fit worse: the next one always,
 * and others whose rules would be cheaper than what was found if memory were no matter. */
static bool is_promising(const Run *run, int variant, int after) {
    const MtfStepCandidate *candidate = &g_array_index(run->variants, MtfStepCandidate, variant);
    bool large = run->graph != NULL && run->graph->operations->len > MTF_LARGE_OPERATIONS;
    return after <= MORE_VARIANTS ||
           (!large && candidate->cost > 0 && candidate->cost < cost_of(run));
}

/* From the most promising variant on, until one fits and those that may be better have been tried. */
static bool search(Run *run, GError **error) {
    gint64 start = g_get_monotonic_time();
    int after = 0;
    int n = (int)run->variants->len, count;
    for (int i = 0; i < n && interrupted == 0 && is_promising(run, i, after); i += count) {
        count = CLAMP(MORE_VARIANTS + 1 - after, 1, MIN(n - i, AT_ONCE));
        if (!try_variants(run, i, count, &after, error))
            return false;
    }
    bool done =
        run->options->frontier == 0 || cost_of(run) == INT64_MAX || add_frontier(run, error);
    run->wall_seconds = seconds_since(start);
    return done;
}

/* ---- Nothing fits ---------------------------------------------------------------------------- */

static bool fail_unfit_free(const Run *run, GError **error) {
    const MtfFreeAnswer *answer = &run->answer.free;
    g_autofree char *limit = mtf_bytes_format((double)run->memory_limit);
    g_autoptr(GString) peak = g_string_new(NULL);
    for (guint i = 0; answer->peak != NULL && i < answer->peak->len; i++)
        g_string_append_printf(peak, "%s%s", i > 0 ? ", " : "",
                               (char *)g_ptr_array_index(answer->peak, i));
    g_autofree char *needed = mtf_bytes_format((double)answer->limit_enough);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no layout fits in %s a device: the smallest limit found that would do is %s "
                "(--memory %" PRId64 "), and in the written order of operations none below %" PRId64
                " bytes does; most of the peak is %s",
                limit, needed, answer->limit_enough, answer->limit_bound, peak->str);
    return false;
}

static bool fail_unfit(const Run *run, GError **error) {
    const MtfRuleAnswer *answer = &run->answer.rules;
    if (run->answer.free.limit_enough > 0)
        return fail_unfit_free(run, error);
    if (answer->stopped || answer->rules == NULL)
        return mtf_failure(error, "stopped before a layout that fits was found");
    g_autofree char *mesh = mtf_mesh_format(&answer->mesh);
    g_autofree char *rules = mtf_rules_format(run->graph, &answer->mesh, answer->rules);
    g_autofree char *limit = mtf_bytes_format((double)run->memory_limit);
    g_autofree char *needed = mtf_bytes_format((double)answer->arena_bytes);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no rule layout %s in %s a device: the smallest limit found that would do is %s "
                "(--memory %" PRId64
                ": mesh %s, layout \"%s\"), and in the written order of operations none "
                "below %" PRId64 " bytes does",
                answer->tightened ? "was found that fits" : "fits", limit, needed,
                answer->arena_bytes, mesh, rules, answer->limit_bound);
    return false;
}

/* ---- What is said ---------------------------------------------------------------------------- */

static double relative_gap(int64_t cost, int64_t bound) {
    return cost > 0 ? (double)(cost - bound) / (double)cost : 0;
}

static double gap_of(const MtfRuleAnswer *answer) {
    return relative_gap(answer->cost, answer->bound);
}

/* Proven up to what the solver's tolerances may hide. */
static bool is_optimal(const MtfRuleAnswer *answer) {
    return !answer->stopped && gap_of(answer) <= 2e-6;
}

/* The variant of the step, and those it was chosen from. */
static void add_variants(cJSON *object, const Run *run) {
    const MtfStepCandidate *chosen = &g_array_index(run->variants, MtfStepCandidate, run->variant);
    cJSON_AddStringToObject(object, "recompute", mtf_recompute_name(chosen->variant.recompute));
    cJSON *list = cJSON_AddArrayToObject(object, "variants");
    for (guint i = 0; i < run->variants->len; i++) {
        const MtfStepCandidate *candidate = &g_array_index(run->variants, MtfStepCandidate, i);
        cJSON *item = cJSON_CreateObject();
        mtf_json_add_integer(item, "microbatches", candidate->variant.microbatches);
        cJSON_AddStringToObject(item, "recompute",
                                mtf_recompute_name(candidate->variant.recompute));
        mtf_json_add_integer(item, "unlimited_rule_cost", candidate->cost);
        mtf_json_add_integer(item, "least_bytes", candidate->least_bytes);
        cJSON_AddItemToArray(list, item);
    }
}

static char *format_nanoseconds(int64_t nanoseconds) {
    return mtf_seconds_format((double)nanoseconds / 1e9);
}

/* Why the plan is not the cheapest layout, where it is not. */
static void print_fastest(const Run *run) {
    if (run->answer.fastest == NULL)
        return;
    g_autofree char *step = mtf_seconds_format(run->answer.step_seconds);
    g_autofree char *other = mtf_seconds_format(run->answer.free.step_seconds);
    if (g_strcmp0(run->options->exportable, "megatron") == 0) {
        printf(
            "               the plan is the fastest of those made by hand that Megatron-LM can run; "
            "its step takes %s, the best layout's %s\n",
            step, other);
        return;
    }
    g_autofree char *cost = format_nanoseconds(run->answer.fastest_cost);
    printf("               the plan costs %s, but more of it is hidden: its step takes %s instead "
           "of %s\n",
           cost, step, other);
}

static void print_free_proof(const Run *run) {
    const MtfFreeAnswer *answer = &run->answer.free;
    double gap = relative_gap(answer->cost, answer->bound);
    g_autofree char *cost = format_nanoseconds(answer->cost);
    g_autofree char *bound = format_nanoseconds(answer->bound);
    printf("proof          %s free layouts of this mesh: cost %s, bound %s, gap %.3g %% (%s)\n",
           gap <= 2e-6 ? "optimal over" : "best found of", cost, bound, 100 * gap, answer->method);
    print_fastest(run);
    if (!run->answer.rules.found)
        puts("               no rule layout fits");
    if (run->answer.rules.found) {
        g_autofree char *rules = format_nanoseconds(run->answer.rules.cost);
        printf("               the best rule layout costs %s, %.2f times as much\n", rules,
               (double)run->answer.rules.cost / (double)answer->cost);
    }
}

static void print_proof(const Run *run) {
    if (mtf_plan_answer_is_free(&run->answer)) {
        print_free_proof(run);
        return;
    }
    const MtfRuleAnswer *answer = &run->answer.rules;
    g_autofree char *cost = format_nanoseconds(answer->cost);
    g_autofree char *bound = format_nanoseconds(answer->bound);
    printf("proof          %s all rule layouts of %d mesh shape%s: cost %s, bound %s",
           is_optimal(answer) ? "optimal over" : "best found of", run->answer.meshes,
           run->answer.meshes == 1 ? "" : "s", cost, bound);
    if (!is_optimal(answer))
        printf(", gap %.3g %%%s", 100 * gap_of(answer), answer->stopped ? ", stopped early" : "");
    if (answer->excluded > 0)
        printf("; %d excluded by the size of their arenas", answer->excluded);
    putchar('\n');
}

/* Says how the mesh lies on the machine where that is not in order. */
static void print_mapping(const Run *run, const MtfPlan *plan) {
    if (run->answer.in_order)
        return;
    g_autofree char *mapping =
        mtf_mapping_format(&plan->layout->mesh, &run->answer.pricer.map.mapping);
    g_autofree char *in_order = format_nanoseconds(run->answer.in_order_cost);
    printf("mapping        %s\n               in order it would cost %s, %.2f times as much\n",
           mapping, in_order, (double)run->answer.in_order_cost / (double)run->answer.cost);
}

/* Step and needs of the fastest, the gap of the cheapest layout under each limit. */
static void print_frontier(const Run *run) {
    const GArray *frontier = run->answer.frontier;
    if (frontier == NULL)
        return;
    printf("\n%-15s%12s%12s%12s  %s\n", "memory limit", "needs", "step", "gap", "layout");
    for (guint i = 0; i < frontier->len; i++) {
        const MtfFrontierPoint *point = &g_array_index(frontier, MtfFrontierPoint, i);
        const MtfIncumbent *layout = point->fastest;
        g_autofree char *limit = mtf_bytes_format((double)point->limit);
        g_autofree char *needs = mtf_bytes_format((double)layout->arena_bytes);
        g_autofree char *step = mtf_seconds_format(layout->step_seconds);
        printf("%-15s%12s%12s%10.3g %%  %s\n", limit, needs, step,
               100 * relative_gap(point->cheapest->cost, point->bound), layout->name);
    }
}

/* Where the layouts that the field makes by hand lie beside the frontier. */
static void print_incumbents(const Run *run) {
    if (run->answer.frontier == NULL)
        return;
    putchar('\n');
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(run->answer.incumbents, run->memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *layout = g_ptr_array_index(shown, i);
        g_autofree char *needs = mtf_bytes_format((double)layout->arena_bytes);
        g_autofree char *step = mtf_seconds_format(layout->step_seconds);
        printf("%-15s%12s%12s%12s  %s\n", "", needs, step,
               layout->arena_bytes <= run->memory_limit ? "fits" : "too large", layout->name);
    }
}

static void print_variant(const Run *run, const MtfPlan *plan) {
    const MtfStepVariant *variant =
        &g_array_index(run->variants, MtfStepCandidate, run->variant).variant;
    g_autofree char *text = mtf_graph_step_format(plan->graph);
    if (run->variants->len > 1)
        printf(
            "variant        %s (recompute %s): the best of %d that might fit, by their best rule "
            "layouts\n",
            text, mtf_recompute_name(variant->recompute), (int)run->variants->len);
    else if (variant->microbatches > 1 || variant->recompute != MTF_RECOMPUTE_NONE)
        printf("variant        %s\n", text);
}

static void print_for_people(const Run *run, const MtfPlan *plan) {
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    g_autofree char *tables = mtf_predicted_format(plan->predicted);
    g_autofree char *summary = mtf_summary_format(plan->predicted);
    mtf_planning_print_machine(plan, run->machine, run->options->machine != NULL,
                               run->options->precision);
    fputs(summary, stdout);
    mtf_next_best_print(plan->search);
    printf("mesh           %s\nlayout         %s\n", mesh,
           plan->layout->rules != NULL ? plan->layout->rules : "free, one choice a tensor");
    print_variant(run, plan);
    print_mapping(run, plan);
    mtf_planning_print_notes(plan, &run->answer.pricer);
    print_proof(run);
    fputs(tables, stdout);
    print_frontier(run);
    print_incumbents(run);
}

static void print_as_json(const Run *run, const MtfPlan *plan) {
    cJSON *object = cJSON_CreateObject();
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    cJSON_AddStringToObject(object, "machine", run->machine->name);
    cJSON_AddStringToObject(object, "mesh", mesh);
    if (plan->layout->rules != NULL)
        cJSON_AddStringToObject(object, "layout", plan->layout->rules);
    else
        cJSON_AddNullToObject(object, "layout");
    cJSON_AddStringToObject(object, "parallelism",
                            mtf_json_text_of(plan->predicted, "parallelism"));
    cJSON_AddStringToObject(object, "precision", plan->precision);
    cJSON_AddItemReferenceToObject(object, "search", plan->search);
    cJSON_AddItemReferenceToObject(object, "predicted", plan->predicted);
    mtf_json_add_number(object, "seconds", run->wall_seconds);
    g_autofree char *text = mtf_json_print(object);
    fputs(text, stdout);
    cJSON_Delete(object);
}

/* ---- What is written ------------------------------------------------------------------------- */

static MtfPlan *plan_of(Run *run) {
    tune_layout(run);
    cJSON *search_json = mtf_plan_answer_to_json(&run->answer, run->memory_limit);
    if (run->variants->len > 1)
        add_variants(search_json, run);
    mtf_next_best_add(search_json, &run->answer, run->graph, run->layout, run->memory_limit);
    return mtf_planning_plan_new(g_steal_pointer(&run->graph), g_steal_pointer(&run->layout),
                                 &run->answer.pricer, search_json);
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
        return mtf_failure(error, "%s: cannot be made", options->report);
    return mtf_plan_save(plan, copy, error) && mtf_report_child(copy, options->report, error);
}

static bool finish(Run *run, GError **error) {
    g_clear_pointer(&run->progress, mtf_search_progress_end);
    if (!run->answer.found)
        return fail_unfit(run, error);
    if (g_strcmp0(run->options->exportable, "megatron") == 0 &&
        !mtf_plan_answer_keep_megatron(&run->answer, run->graph, run->memory_limit, &run->layout,
                                       error))
        return false;
    g_autoptr(MtfPlan) plan = plan_of(run);
    bool quiet = g_strcmp0(run->options->output, "-") == 0;
    bool only_json = quiet || run->options->json;
    if (!mtf_planning_dump(plan, run->options->dump_after, only_json, error))
        return false;
    if (!quiet)
        (run->options->json ? print_as_json : print_for_people)(run, plan);
    fflush(stdout);
    return write_all(run->options, plan, error);
}

static void clear_run(Run *run) {
    mtf_search_progress_end(run->progress);
    mtf_machine_free(run->machine);
    clear_found(run);
    mtf_graph_free(run->written);
    if (run->variants != NULL)
        g_array_unref(run->variants);
    if (run->meshes != NULL)
        g_array_unref(run->meshes);
}

static void clear_options(Options *options) {
    char *owned[] = { options->mesh,       options->machine,      options->memory,
                      options->layouts,    options->precision,    options->output,
                      options->report,     options->dump,         options->batch_dim,
                      options->dump_after, options->recompute,    options->microbatches,
                      options->schedule,   options->collectives,  options->stages,
                      options->infer,      options->cache_memory, options->loss,
                      options->exportable };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    g_strfreev(options->dims);
    g_strfreev(options->pins);
    g_strfreev(options->forbids);
}

/* What the search for pipelines does not do yet. */
static bool check_pipeline_options(const Options *o, GError **error) {
    const char *named = o->dump != NULL      ? "--dump-problem"
                        : o->layouts != NULL ? "--layouts"
                        : o->pins != NULL    ? "--pin"
                        : o->forbids != NULL ? "--forbid"
                        : o->frontier > 0    ? "--frontier"
                                             : NULL;
    return named == NULL || mtf_input_error(error, "%s does not go with --stages yet", named);
}

/* `*one` says that there is one stage, for which nothing was done. */
static bool cut_and_search(const Options *options, const char *path, bool *one, GError **error) {
    MtfSearchPipeline pipeline = {
        .graph = path,
        .dims = (const char *const *)options->dims,
        .mesh = options->mesh,
        .machine = options->machine,
        .memory = options->memory,
        .precision = options->precision,
        .microbatches = options->microbatches,
        .batch_dim = options->batch_dim,
        .recompute = options->recompute,
        .schedule = options->schedule != NULL ? options->schedule : "1f1b",
        .chunks = options->chunks,
        .output = options->output,
        .report = options->report,
        .batch = options->batch,
        .length = options->length,
        .devices = options->devices,
        .max_axes = options->max_axes,
        .seconds = options->seconds,
        .gap = options->gap,
        .json = options->json,
        .loss = options->loss,
    };
    if (!read_stages(options, &pipeline.stages, error))
        return false;
    *one = pipeline.stages == 1;
    return *one ||
           (check_pipeline_options(options, error) && mtf_search_pipeline(&pipeline, one, error));
}

/* What goes with --infer only, and what does not go with it. */
static bool check_inference_options(const Options *o, GError **error) {
    const char *only = o->context != 0           ? "--context"
                       : o->generate != 0        ? "--generate"
                       : o->cache_memory != NULL ? "--cache-memory"
                                                 : NULL;
    if (o->infer == NULL)
        return only == NULL || mtf_input_error(error, "%s goes with --infer only", only);
    const char *other = o->stages != NULL         ? "--stages"
                        : o->microbatches != NULL ? "--microbatches"
                        : o->recompute != NULL    ? "--recompute"
                        : o->frontier > 0         ? "--frontier"
                        : o->dump != NULL         ? "--dump-problem"
                        : o->dump_after != NULL   ? "--dump-after"
                        : o->report != NULL       ? "--report"
                        : o->length != 0          ? "--length"
                                                  : NULL;
    return other == NULL ||
           mtf_input_error(error, "%s does not go with --infer%s", other,
                           o->length != 0 ? ": --context says how long texts are" : "");
}

static bool search_inference(const Options *o, const char *path, GError **error) {
    MtfSearchInference inference = { .graph = path,
                                     .infer = o->infer,
                                     .dims = (const char *const *)o->dims,
                                     .pins = (const char *const *)o->pins,
                                     .forbids = (const char *const *)o->forbids,
                                     .mesh = o->mesh,
                                     .machine = o->machine,
                                     .memory = o->memory,
                                     .precision = o->precision,
                                     .layouts = o->layouts,
                                     .cache_memory = o->cache_memory,
                                     .output = o->output,
                                     .batch = o->batch,
                                     .context = o->context,
                                     .generate = o->generate,
                                     .devices = o->devices,
                                     .max_axes = o->max_axes,
                                     .seconds = o->seconds,
                                     .gap = o->gap,
                                     .seed = o->seed,
                                     .json = o->json,
                                     .cancel = is_interrupted };
    catch_interrupt();
    return mtf_search_inference(&inference, error);
}

/* A plan of training, cut into stages or not. */
static bool search_training(Run *run, const char *path, GError **error) {
    bool one = true; /* stage */
    return cut_and_search(run->options, path, &one, error) &&
           (!one || (prepare(run, path, error) && search(run, error) && finish(run, error)));
}

#define TEXT(name, letter, field, help, what) \
    { name, letter, 0, G_OPTION_ARG_STRING, &o.field, help, what }
#define LIST(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.field, help, what }
#define OTHER(name, type, field, help, what) \
    { name, 0, 0, type, &o.field, help, what }

/* Of plans that run a model. */
/* An ONNX file becomes a graph to train by a loss, any model one to run without. */
#define LOSS_AND_INFERENCE_OPTIONS                                                    \
    TEXT("loss", 0, loss, "Train an ONNX file by this loss", "cross-entropy:LABELS"), \
        INFERENCE_OPTIONS

#define INFERENCE_OPTIONS                                                                          \
    TEXT("infer", 0, infer, "Run the model instead of training it", "prefill|decode|serve"),       \
        OTHER("context", G_OPTION_ARG_INT, context,                                                \
              "With --infer: tokens of a prompt, or that stand before a decoded one (2048)", "N"), \
        OTHER("generate", G_OPTION_ARG_INT, generate,                                              \
              "With --infer: tokens that follow, for which caches have room (serve: 128)", "N"),   \
        TEXT("cache-memory", 0, cache_memory,                                                      \
             "With --infer: what caches may take of a device in max_context (what is left)",       \
             "BYTES|30%")

/* What a plan must be to run elsewhere, and its drawings. */
#define EXPORT_OPTIONS                                                                   \
    TEXT("exportable", 0, exportable, "Only plans that this system can run",             \
         "jax|dtensor|onnx|mtf|megatron"),                                               \
        OTHER("even", G_OPTION_ARG_NONE, even,                                           \
              "Only shards of equal size, as exports to other systems need them", NULL), \
        TEXT("report", 0, report, "Draw the plan into a folder", "DIR")

int mtf_command_search(int argc, char **argv) {
    Options o = { .max_axes = 2, .gap = NAN };
    const GOptionEntry entries[] = {
        OTHER("devices", G_OPTION_ARG_INT, devices, "Search all meshes of N processors", "N"),
        TEXT("mesh", 0, mesh, "Search this mesh alone", "'rows:2;cols:2'"),
        OTHER("max-mesh-dims", G_OPTION_ARG_INT, max_axes, "Axes of a mesh, at most (2)", "N"),
        TEXT("machine", 0, machine, "A machine of the library, or a file", "NAME|FILE"),
        TEXT("memory", 0, memory, "Memory of a device (the machine's)", "16GiB"),
        TEXT("layouts", 0, layouts, "Kind of layouts (the better)", "rule|free"),
        LIST("pin", pins, "This dimension lies on that axis", "d_ff:cols"),
        LIST("forbid", forbids, "This dimension does not lie on that axis", "vocab:rows"),
        LIST("dim", dims, "Set a dimension's size", "batch=512"),
        OTHER("batch", G_OPTION_ARG_INT, batch, "Examples in a batch of a published model (32)",
              "N"),
        OTHER("length", G_OPTION_ARG_INT, length,
              "Positions in an example of a published model (what it was made for, at most 2048)",
              "N"),
        LOSS_AND_INFERENCE_OPTIONS,
        TEXT("microbatches", 0, microbatches, "Work through the batch in M parts (auto)", "M|auto"),
        TEXT("batch-dim", 0, batch_dim, "What counts examples (the inputs' first dimension)",
             "NAME"),
        TEXT("recompute", 0, recompute, "What the backward pass computes again (auto)",
             "none|cheap|layers|auto"),
        MTF_COLLECTIVES_OPTION(o.collectives),
        TEXT("stages", 0, stages,
             "Cut into a pipeline of S stages, or as many as are best; --mesh is that of one (1)",
             "S|auto"),
        TEXT("schedule", 0, schedule, "Order of a pipeline's passes (1f1b)", "NAME|auto"),
        OTHER("chunks", G_OPTION_ARG_INT, chunks, "Parts of the graph a stage has", "V"),
        TEXT("precision", 0, precision, "f32, f64 or bf16 (as the graph has it)", "P"),
        OTHER("seconds", G_OPTION_ARG_DOUBLE, seconds, "Stop after S seconds (no limit)", "S"),
        OTHER("gap", G_OPTION_ARG_DOUBLE, gap,
              "Stop within this share of the optimum (0; for large graphs 0.005)", "G"),
        OTHER("seed", G_OPTION_ARG_INT, seed, "Of the random choices among free layouts", "N"),
        TEXT("output", 'o', output, "Write the plan", "PLAN"),
        OTHER("frontier", G_OPTION_ARG_INT, frontier,
              "Also search under N memory limits, and show time against memory", "N"),
        TEXT("dump-problem", 0, dump, "Write the layout problem of free layouts (IOPDDL)", "FILE"),
        TEXT("dump-after", 0, dump_after, "Print the program as it is after a pass", "PASS"),
        EXPORT_OPTIONS,
        OTHER("json", G_OPTION_ARG_NONE, json, "Print JSON", NULL),
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    Run run = { .options = &o, .begin = g_get_monotonic_time() };
    bool done =
        mtf_command_line_parse(&argc, &argv, entries, "GRAPH --devices N",
                               "Finds the layout with the shortest predicted training step "
                               "that fits, over all meshes of N processors, and proves it. Their "
                               "axes are called all; rows and cols; or planes, rows and cols.\n\n"
                               "  meshtf-plan search g.json --devices 512 --machine tpu-v2 -o "
                               "p.json --report out",
                               1, 1, &error) &&
        check_options(&o, &error) && check_inference_options(&o, &error) &&
        (o.infer != NULL ? search_inference(&o, argv[1], &error)
                         : search_training(&run, argv[1], &error));
    clear_run(&run);
    clear_options(&o);
    return done ? 0 : mtf_command_line_fail("meshtf-plan search", error);
}
