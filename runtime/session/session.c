// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/session.h"

#include "layouts/base/error.h"
#include "layouts/inference/generation_graph.h"
#include "runtime/checkpoint/averaged_weights.h"
#include "runtime/checkpoint/run_products.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/kernels/rows/kernel_lookup.h"
#include "runtime/session/evaluation.h"
#include "runtime/session/first_nan.h"
#include "runtime/session/session_checkpoints.h"
#include "runtime/session/translation.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"
#include "runtime/support/processor_clock.h"
#include "runtime/support/resident_memory.h"
#include "runtime/support/stop_signals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Agreed on together with what signals ask for; a bit that no signal has. */
#define LOSS_IS_BAD 16

/* ---- Loading ------------------------------------------------------------------------------- */

const MtfGraph *mtf_session_graph(const MtfSession *session) {
    return session->stage->pipeline->graph;
}

bool mtf_session_has_stages(const MtfSession *session) {
    return !mtf_pipeline_is_whole(session->stage->pipeline);
}

static bool makes_results(const MtfSession *session) {
    const MtfGraph *graph = mtf_session_graph(session);
    return mtf_graph_has_results(graph) && !mtf_graph_generates(graph);
}

/* What a plan of results has no use for. */
static bool check_forward(const MtfSession *session, GError **error) {
    const MtfRunOptions *o = session->options;
    const char *other = o->generate > 0         ? "--generate"
                        : o->serve >= 0         ? "--serve"
                        : o->perplexity != NULL ? "--perplexity"
                        : o->eval_every > 0     ? "--eval-every"
                        : o->export_hf != NULL  ? "--export-hf"
                        : o->export_adapter     ? "--export-adapter"
                        : o->checkpoint != NULL ? "--checkpoint"
                        : o->ema                ? "--ema"
                                                : NULL;
    return other == NULL ||
           mtf_input_error(
               error,
               "%s: %s is not for a plan of --infer forward: it makes results of "
               "a batch a step, which --results FILE writes, and --logits FILE of all data",
               o->plan, other);
}

static bool check_generating(const MtfSession *session, GError **error) {
    const MtfRunOptions *o = session->options;
    if (!o->dry_run && (o->steps > 0 || (o->generate == 0 && o->serve < 0)))
        return mtf_input_error(error,
                               "%s: a plan of inference has nothing to train: give --steps 0 and "
                               "--generate N, or --serve",
                               o->plan);
    if (o->checkpoint != NULL || o->no_cache)
        return mtf_input_error(error, "%s goes with plans of training only: %s",
                               o->no_cache ? "--no-cache" : "--checkpoint",
                               o->no_cache ? "this one has caches" : "--init takes weights");
    return true;
}

/* A plan trains, generates, or makes results of what it reads. */
static bool check_purpose(const MtfSession *session, GError **error) {
    const MtfRunOptions *o = session->options;
    const MtfGraph *graph = mtf_session_graph(session);
    bool forward = makes_results(session);
    if (o->results != NULL && !forward)
        return mtf_input_error(error, "%s: --results goes with plans of --infer forward only",
                               o->plan);
    if (graph->loss >= 0)
        return true;
    if (!mtf_graph_has_results(graph))
        return mtf_input_error(
            error, "%s: the plan's graph has no loss, so there is nothing to train", o->plan);
    return forward ? check_forward(session, error) : check_generating(session, error);
}

static bool load_plan(MtfSession *session, GError **error) {
    if (session->n_ranks > 1 && strcmp(session->options->plan, "-") == 0)
        return mtf_input_error(error, "a plan for several ranks must be a file: standard input is "
                                      "rank 0's alone");
    session->stage = mtf_stage_run_load(session->options->plan, session->rank, error);
    if (session->stage == NULL)
        return false;
    session->plan = session->stage->chunks[0].plan;
    session->program = session->stage->chunks[0].program;
    session->arena = session->stage->chunks[0].arena;
    return check_purpose(session, error);
}

char *mtf_session_digest(const MtfSession *session) {
    return mtf_session_has_stages(session) ? mtf_pipeline_plan_digest(session->stage->pipeline)
                                           : g_strdup(session->plan->program_sha256);
}

bool mtf_session_load(MtfSession *session, MPI_Comm control, const MtfRunOptions *options,
                      GError **error) {
    *session = (MtfSession){ .control = control, .options = options, .folder = -1 };
    mtf_mpi_require(MPI_Comm_rank(control, &session->rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(control, &session->n_ranks), "MPI_Comm_size");
    GError *local = NULL;
    load_plan(session, &local);
    if (!mtf_agree(control, local, error))
        return false;
    g_autofree char *digest = mtf_session_digest(session);
    return mtf_agree_same(control, digest, "plan", error);
}

/* ---- Opening ------------------------------------------------------------------------------- */

static bool check_ranks(const MtfSession *session, GError **error) {
    const MtfPipelinePlan *pipeline = session->stage->pipeline;
    int wanted = mtf_pipeline_devices(pipeline);
    if (wanted == session->n_ranks)
        return true;
    g_autofree char *mesh = mtf_mesh_title(&session->program->layout->mesh);
    g_autofree char *text = mtf_session_has_stages(session)
                                ? g_strdup_printf("%u stages", pipeline->stages->len)
                                : g_strdup_printf("mesh %s", mesh);
    return mtf_input_error(error,
                           "the plan is for %d rank%s (%s), but there %s %d: type mpirun -n %d "
                           "meshtf-run %s",
                           wanted, wanted == 1 ? "" : "s", text,
                           session->n_ranks == 1 ? "is" : "are", session->n_ranks, wanted,
                           session->options->plan);
}

static bool make_worker(MtfSession *session, GError **error) {
    if (!mtf_stage_run_make_workers(session->stage, (uint64_t)session->options->seed, error))
        return false;
    session->worker = session->stage->chunks[0].slots[0].worker;
    return true;
}

/* A text or scores may be wanted of a model that is not trained further. */
static bool needs_data(const MtfSession *session) {
    const MtfRunOptions *o = session->options;
    bool uses_no_data = o->steps == 0 && o->data == NULL && o->checkpoint == NULL &&
                        o->logits == NULL && o->eval_every == 0 &&
                        (!mtf_translates(session) || o->prompt != NULL);
    return !uses_no_data && !mtf_graph_generates(mtf_session_graph(session));
}

/* What may fail on one rank alone. */
static bool open_local(MtfSession *session, GError **error) {
    const MtfRunOptions *options = session->options;
    if (!check_ranks(session, error))
        return false;
    if (options->tokenizer != NULL &&
        (session->tokenizer = mtf_tokenizer_load(options->tokenizer, error)) == NULL)
        return false;
    if (!mtf_pair_text_init(&session->pair_text, session->tokenizer, options->tokenizer, error))
        return false;
    bool all = makes_results(session) && options->logits != NULL; /* is asked for, in order */
    MtfDataSettings settings = { .files = options->data,
                                 .held_out = all ? options->data : options->held_out,
                                 .share = options->held_share,
                                 .seed = (uint64_t)options->seed,
                                 .tokenizer = session->tokenizer,
                                 .pair_text = &session->pair_text };
    if (!needs_data(session))
        return make_worker(session, error);
    session->data = mtf_data_open_files(mtf_session_graph(session), &settings, error);
    if (session->data == NULL)
        return false;
    if (!make_worker(session, error))
        return false;
    return mtf_evaluation_check(session, error);
}

static bool open_metrics(MtfSession *session, GError **error) {
    GError *local = NULL;
    if (session->data == NULL)
        return true;
    MtfMetricsRun run = { .done = session->done,
                          .steps = session->options->steps,
                          .items = mtf_data_items(session->data),
                          .item_name = mtf_data_item_name(session->data) };
    if (session->rank == 0)
        session->metrics = mtf_metrics_open(session->options->metrics, &run, &local);
    if (!mtf_agree(session->control, local, error))
        return false;
    bool shows_all = session->rank == 0 && mtf_metrics_shows_all(session->metrics);
    session->shows_all = mtf_agree_first(session->control, shows_all ? 1 : 0) != 0;
    return true;
}

/* What is noted of steps beside their losses. */
static void open_watches(MtfSession *session) {
    const MtfRunOptions *options = session->options;
    session->watches = mtf_stage_watches_new(session->stage, session->control);
    session->products = mtf_stage_watches_products(session->watches);
    if (options->trace_to > 0)
        session->trace = mtf_step_trace_new(session->control, mtf_stage_run_spans(session->stage),
                                            options->trace_from, options->trace_to);
}

bool mtf_session_open(MtfSession *session, GError **error) {
    GError *local = NULL;
    MtfRunProducts products = { .control = session->control,
                                .program = session->program,
                                .arena = session->arena,
                                .folder =
                                    session->options->resume ? session->options->checkpoint : NULL,
                                .trial = session->options->trial };
    if (!mtf_run_products_choose(&products, error))
        return false;
    open_local(session, &local);
    if (!mtf_agree(session->control, local, error))
        return false;
    session->records = g_new0(MtfStepRecord, session->options->steps);
    session->drops = mtf_dropped_may_be(mtf_session_graph(session));
    MtfStageHow how = { .seed = (uint64_t)session->options->seed,
                        .at_once = session->options->no_overlap,
                        .only_mpi = session->options->only_mpi,
                        .dropped = session->drops ? &session->dropped : NULL,
                        .data = session->data };
    mtf_stage_run_open(session->stage, session->control, &how);
    session->counted = session->stage->chunks[0].executor.counted;
    open_watches(session);
    return mtf_session_begin(session, error) && open_metrics(session, error);
}

void mtf_session_close(MtfSession *session) {
    mtf_metrics_close(session->metrics);
    mtf_step_trace_free(session->trace);
    mtf_stage_watches_free(session->watches);
    mtf_stage_run_free(session->stage);
    mtf_data_close(session->data);
    mtf_pair_text_clear(&session->pair_text);
    mtf_tokenizer_free(session->tokenizer);
    g_free(session->records);
    g_free(session->agreements);
    g_free(session->scores);
    if (session->folder >= 0)
        close(session->folder);
}

/* ---- Training ------------------------------------------------------------------------------ */

/* The loss that a worker holds on the ranks of its mesh. */
static double mesh_loss(const MtfWorker *worker, MPI_Comm ranks) {
    const MtfProgram *program = worker->program;
    int buffer = program->tensor_buffers[program->graph->loss];
    const MtfPlacement *placement = &mtf_program_buffer(program, buffer)->placement;
    const MtfMesh *mesh = &program->layout->mesh;
    double value = mtf_slice_get(&worker->operands[buffer], 0);
    unsigned partial = mtf_placement_partial_axes(placement);
    if (partial == 0)
        return value;
    /* One of the processors that hold the same term speaks for them. */
    bool speaks = mtf_mesh_group_member(mesh, partial, worker->rank, 0) == 0;
    bool maximum = placement->axis[g_bit_nth_lsf(partial, -1)] == MTF_PARTIAL_MAX;
    if (!speaks)
        value = maximum ? -INFINITY : 0;
    (maximum ? mtf_agree_maxima : mtf_agree_sums)(ranks, &value, 1);
    return value;
}

/* That of a rank whose stage makes it; 0 of the others. */
static double own_loss(const MtfSession *session) {
    const MtfStageChunk *holder = mtf_stage_run_loss_chunk(session->stage);
    return holder != NULL ? mesh_loss(holder->slots[0].worker, session->stage->domain) : 0;
}

double mtf_session_loss(const MtfSession *session) {
    return mtf_stage_run_share_loss(session->stage, session->control, own_loss(session));
}

static double counted_seconds(const MtfTraffic *counted) {
    double seconds = 0;
    for (int i = 0; i < counted->n_entries; i++)
        seconds += counted->entries[i].seconds;
    return seconds;
}

static double communication_seconds(const MtfSession *session) {
    double seconds = 0;
    for (int c = 0; c < session->stage->n_chunks; c++)
        seconds += counted_seconds(session->stage->chunks[c].executor.counted);
    return seconds;
}

/* One sentence on a loss that is not finite, on all ranks; with its cause while the step's variables still stand,
 * as they do not where later steps have begun.
 */
static bool blame(MtfSession *session, const MtfStepRecord *record, GError **error) {
    const char *what = isnan(record->loss) ? "not a number" : "infinite";
    g_autofree char *cause = record->step == session->begun
                                 ? mtf_first_nan(session->stage, session->control, record->step)
                                 : NULL;
    GString *text = g_string_new(NULL);
    g_string_printf(text, "the loss of step %" PRId64 " is %s", record->step, what);
    if (record->step > session->done + 1)
        g_string_append_printf(text, " (that of step %" PRId64 " was %g)", record->step - 1,
                               record[-1].loss);
    if (cause != NULL)
        g_string_append_printf(text, ": %s", cause);
    g_string_append(text, ": a smaller learning rate may help");
    if (record->step < session->begun)
        g_string_append(text, "; a run with --metrics FILE says what was so first");
    g_set_error_literal(error, MTF_ERROR, MTF_ERROR_FAILED, text->str);
    g_string_free(text, TRUE);
    return false;
}

static MtfStepRecord *record_of(const MtfSession *session, int64_t step) {
    return &session->records[step - session->done - 1];
}

static MtfAgreement *agreement_of(const MtfSession *session, int64_t step) {
    return &session->agreements[step % (session->ahead + 1)];
}

/* The first half of a step, and what this rank has to tell the others once a step: the loss, whether it has
 * failed, what signals have asked of it. */
static void begin_agreement(MtfSession *session, MtfStepRecord *record) {
    GError *local = NULL;
    MtfAgreement *agreement = agreement_of(session, record->step);
    mtf_stage_run_compute(session->stage, record->step, &local);
    record->has_no_loss = mtf_session_graph(session)->loss < 0;
    double loss = record->has_no_loss ? 0 : own_loss(session);
    int asked = (int)mtf_stop_signals_take() | (isfinite(loss) ? 0 : LOSS_IS_BAD);
    mtf_agreement_begin(agreement, session->control, local, asked);
    mtf_agreement_share(agreement, loss,
                        record->has_no_loss ? -1 : mtf_stage_run_loss_rank(session->stage));
    session->begun = record->step;
}

/* What all have told of the next step that is not known yet; `*asked` becomes the most that was asked. */
static bool end_agreement(MtfSession *session, int *asked, GError **error) {
    MtfStepRecord *record = record_of(session, ++session->agreed);
    MtfAgreement *agreement = agreement_of(session, record->step);
    int of_step = 0;
    if (!mtf_agreement_end(agreement, &of_step, error))
        return false;
    record->loss = agreement->value;
    *asked = MAX(*asked, of_step);
    return of_step < LOSS_IS_BAD || blame(session, record, error);
}

static void drop_agreements(MtfSession *session) {
    while (session->agreed < session->begun)
        mtf_agreement_drop(agreement_of(session, ++session->agreed));
}

/* The first half of a step; then all ranks know of those that none of them need wait for, and of all before the
 * variables are looked at. */
static bool compute(MtfSession *session, MtfStepRecord *record, int *asked, GError **error) {
    begin_agreement(session, record);
    bool last = record->step == session->stage->until;
    *asked = 0;
    while (session->agreed < record->step - (last ? 0 : session->ahead))
        if (!end_agreement(session, asked, error))
            return false;
    return true;
}

/* The rate at which the optimizer works in a step; 0 when the graph does not say. */
static double learning_rate(const MtfGraph *graph, int64_t step) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->shown == MTF_SHOWN_LEARNING_RATE)
            return mtf_learning_rate(&op->attributes, (double)step);
    }
    return 0;
}

/* Who looks on in a step: nobody where nobody will see what was seen. */
static void set_watches(MtfSession *session, int64_t step) {
    bool shown =
        session->shows_all || mtf_metrics_prints(session->done, session->options->steps, step);
    bool traced = session->trace != NULL && mtf_step_trace_wants(session->trace, step);
    session->shown = shown;
    session->dropped = (MtfDropped){ 0, 0 };
    mtf_stage_watches_begin_step(session->watches, shown);
    for (int c = 0; c < session->stage->n_chunks; c++)
        session->stage->chunks[c].executor.trace = traced ? session->trace : NULL;
}

/* What the rank with most has in memory. To look at every step would slow small ones down:
 * it is looked up for steps whose line is printed, the first among them, and kept in between. */
static int64_t resident_bytes(const MtfSession *session, const MtfStepRecord *record) {
    if (!mtf_metrics_prints(session->done, session->options->steps, record->step))
        return record[-1].resident_bytes;
    int64_t own = mtf_resident_bytes(mtf_stage_run_shares_memory(session->stage));
    return (int64_t)mtf_agree_largest(session->control, (double)own);
}

/* Collective: the share of a step's choices of experts that found no place. */
static double dropped_share(const MtfSession *session) {
    double counts[] = { session->dropped.dropped, session->dropped.all };
    mtf_agree_sums(session->control, counts, 2);
    return counts[1] > 0 ? counts[0] / counts[1] : 0;
}

/* What is said of a step beside its loss and times. */
static void describe_step(const MtfSession *session, MtfStepRecord *record) {
    record->learning_rate = learning_rate(session->plan->graph, record->step);
    record->arena_bytes = mtf_stage_run_arena_bytes(session->stage);
    if (session->gemm_peak > 0)
        record->gemm_fraction = session->products / record->seconds / session->gemm_peak;
    record->resident_bytes = resident_bytes(session, record);
    record->drops = session->drops && session->shown;
    record->dropped_share = record->drops ? dropped_share(session) : 0;
}

static bool run_step(MtfSession *session, MtfStepRecord *record, int *asked, GError **error) {
    double before = communication_seconds(session);
    if (!compute(session, record, asked, error))
        return false;
    mtf_stage_run_update(session->stage, record->step);
    record->gradient_norm = mtf_stage_watches_end_step(session->watches);
    record->communication_seconds = communication_seconds(session) - before;
    return true;
}

static bool is_evaluated(const MtfSession *session, int64_t step) {
    int64_t every = session->options->eval_every;
    return every > 0 && (step % every == 0 || step == session->options->steps);
}

/* The loss of held out data after a step. */
static bool evaluate(MtfSession *session, MtfStepRecord *record, GError **error) {
    record->evaluated = true;
    g_autoptr(GPtrArray) aside = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    MtfCheckpointed what = mtf_session_checkpointed(session);
    if (session->options->ema && !mtf_averaged_weights_take(&what, aside, error))
        return false;
    if (!mtf_evaluate(session, &record->held_out_loss, &record->held_out_accuracy, error))
        return false;
    if (session->options->ema)
        mtf_averaged_weights_put_back(&what, aside);
    return true;
}

/* Writes what is known of steps, in their order. */
static bool tell_steps(MtfSession *session, GError **error) {
    GError *local = NULL;
    for (; session->told < session->agreed; session->told++)
        if (session->rank == 0 && local == NULL)
            mtf_metrics_add(session->metrics, record_of(session, session->told + 1), &local);
    if (session->options->metrics != NULL)
        return mtf_agree(session->control, local, error);
    g_clear_error(&local);
    return true;
}

/* A step and what is said of it; `*asked` becomes what signals asked of any rank. */
static bool train_step(MtfSession *session, int64_t step, int *asked, GError **error) {
    MtfStepRecord *record = record_of(session, step);
    double start = MPI_Wtime(), processor_start = mtf_processor_seconds();
    record->step = step;
    set_watches(session, step);
    if (!run_step(session, record, asked, error))
        return false;
    record->seconds = MPI_Wtime() - start;
    record->processor_seconds = mtf_processor_seconds() - processor_start;
    session->trained++;
    describe_step(session, record);
    if (is_evaluated(session, step) && !evaluate(session, record, error))
        return false;
    return tell_steps(session, error);
}

static void say_asked(const MtfSession *session, int64_t step) {
    const char *what = "checkpoint, as a signal asked";
    if (session->options->checkpoint == NULL)
        what = "a signal asked for a checkpoint, but there is no --checkpoint DIR";
    g_autofree char *text = g_strdup_printf("  step %" PRId64 ": %s\n", step, what);
    if (session->rank == 0)
        mtf_metrics_say(session->metrics, text);
}

/* The next step after which variables are looked at: for a checkpoint, an evaluation, or the end. */
static int64_t next_pause(const MtfSession *session, int64_t done) {
    const MtfRunOptions *o = session->options;
    int64_t pause = o->steps;
    if (o->checkpoint != NULL)
        pause = MIN(pause, (done / o->checkpoint_every + 1) * o->checkpoint_every);
    if (o->eval_every > 0)
        pause = MIN(pause, (done / o->eval_every + 1) * o->eval_every);
    return pause;
}

/* Before a step: a pipeline that ran empty is filled up to the next pause. */
static void begin_steps(MtfSession *session, int64_t step) {
    if (step == session->stage->until + 1)
        mtf_stage_run_begin(session->stage, step - 1, next_pause(session, step - 1));
}

/* What is asked for while steps overlap waits until the pipeline has run empty. */
static MtfAsked put_off(MtfSession *session, int64_t step, MtfAsked asked) {
    MtfStageRun *stage = session->stage;
    session->put_off = (MtfAsked)MAX(session->put_off, asked);
    if (session->put_off != MTF_ASKED_NOTHING && stage->asynchronous)
        mtf_stage_run_drain(stage, step);
    if (stage->asynchronous && step < stage->until)
        return MTF_ASKED_NOTHING;
    asked = session->put_off;
    session->put_off = MTF_ASKED_NOTHING;
    return asked;
}

/* What is to be done after a step: a checkpoint when it is due or asked for, and stopping. */
static bool after_step(MtfSession *session, int64_t step, MtfAsked asked, GError **error) {
    const MtfRunOptions *options = session->options;
    session->stopped = asked == MTF_ASKED_STOP && step < options->steps;
    if (session->stopped && options->checkpoint == NULL)
        return mtf_failure(error,
                           "stopped by a signal after step %" PRId64
                           ": without --checkpoint DIR nothing is kept",
                           step);
    if (asked != MTF_ASKED_NOTHING)
        say_asked(session, step);
    if (options->checkpoint == NULL)
        return true;
    bool due = step % options->checkpoint_every == 0 || step == options->steps;
    return (!due && asked == MTF_ASKED_NOTHING) || mtf_session_save(session, step, error);
}

static bool train_steps(MtfSession *session, GError **error) {
    int64_t steps = session->options->steps;
    for (int64_t step = session->done + 1; step <= steps && !session->stopped; step++) {
        int asked;
        begin_steps(session, step);
        if (!train_step(session, step, &asked, error) ||
            !after_step(session, step, put_off(session, step, (MtfAsked)asked), error))
            return false;
    }
    return true;
}

/* Where every step's line may be seen ranks meet in each for what it says, and may as well know of it at once. */
static void open_agreements(MtfSession *session) {
    session->ahead = session->shows_all ? 0 : mtf_pipeline_steps_ahead(session->stage->pipeline);
    session->agreements = g_new0(MtfAgreement, session->ahead + 1);
    session->begun = session->agreed = session->told = session->done;
}

bool mtf_session_train(MtfSession *session, GError **error) {
    open_agreements(session);
    mtf_stage_run_begin(session->stage, session->done, session->done);
    bool trained = train_steps(session, error);
    drop_agreements(session);
    if (!trained)
        return false;
    mtf_metrics_close(g_steal_pointer(&session->metrics));
    return session->trace == NULL ||
           mtf_step_trace_write(session->trace, session->options->trace_file, error);
}
