// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-run: trains the model of a plan under MPI. Every rank goes the same way; rank 0 speaks. */
#include "cost/price/predict.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/output_guard.h"
#include "layouts/inference/generation_graph.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/calibrate/gemm_peak.h"
#include "runtime/checkpoint/averaged_weights.h"
#include "runtime/checkpoint/published_weights.h"
#include "runtime/checkpoint/run_products.h"
#include "runtime/kernels/products/kernel_libraries.h"
#include "runtime/session/generation.h"
#include "runtime/session/perplexity.h"
#include "runtime/session/predictions.h"
#include "runtime/session/run_summary.h"
#include "runtime/session/scores.h"
#include "runtime/session/serve.h"
#include "runtime/session/session.h"
#include "runtime/session/session_checkpoints.h"
#include "runtime/session/translation.h"
#include "runtime/session/verify.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"
#include "runtime/support/stop_signals.h"
#include "runtime/support/threads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a run that a signal stopped, with a checkpoint written: queueing systems start it again. */
#define STATUS_STOPPED 75

/* Prints on rank 0 and frees. */
static void say(const MtfSession *session, char *text) {
    if (session->rank == 0) {
        fputs(text, stdout);
        fflush(stdout);
    }
    g_free(text);
}

/* Of a pipeline the whole and what rank 0 runs. */
static char *format_pipeline(const MtfPipelinePlan *pipeline) {
    return g_strdup_printf("%" PRId64
                           " parameters, %u stages on %d ranks, schedule %s\n  stage 0: ",
                           mtf_graph_parameters(pipeline->graph), pipeline->stages->len,
                           mtf_pipeline_devices(pipeline), pipeline->schedule);
}

static void say_plan(const MtfSession *session) {
    g_autofree char *mesh = mtf_mesh_format(&session->program->layout->mesh);
    g_autofree char *memory = mtf_bytes_format((double)session->arena->bytes);
    g_autofree char *step = mtf_plan_step_format(session->plan);
    g_autofree char *model = mtf_session_has_stages(session)
                                 ? format_pipeline(session->stage->pipeline)
                                 : g_strdup_printf("%" PRId64 " parameters, ",
                                                   mtf_graph_parameters(session->plan->graph));
    say(session, g_strdup_printf("plan %s: %s, %s%s%s, layout %s\n"
                                 "  the step %s: %d instructions, %s a rank\n",
                                 session->options->plan, session->plan->graph->name, model,
                                 *mesh != 0 ? "mesh " : "one device", mesh,
                                 mtf_layout_title(session->program->layout), step,
                                 mtf_program_length(session->program), memory));
}

/* Of a pipeline what the ranks of each domain hold, whoever they are, and the step. */
static bool say_stages(const MtfSession *session, GError **error) {
    MtfPipelinePlan *pipeline = session->stage->pipeline;
    for (int d = 0; d < pipeline->order->ranks; d++) {
        int64_t bytes;
        if (!mtf_stage_run_measure(pipeline, d, &bytes, error))
            return false;
        g_autofree char *memory = mtf_bytes_format((double)bytes);
        int first = mtf_pipeline_first_device(pipeline, d),
            last = mtf_pipeline_first_device(pipeline, d + 1) - 1;
        say(session, first == last
                         ? g_strdup_printf("  rank %d: %s\n", first, memory)
                         : g_strdup_printf("  ranks %d to %d: %s each\n", first, last, memory));
    }
    g_autofree char *step =
        mtf_seconds_format(mtf_json_number_of(pipeline->predicted, "step_seconds", 0));
    say(session,
        g_strdup_printf("  a step takes %s, of which %.1f %% is the bubble, as predicted\n", step,
                        100 * mtf_json_number_of(pipeline->predicted, "bubble", 0)));
    return true;
}

static bool say_predictions(const MtfSession *session, GError **error) {
    if (mtf_session_has_stages(session))
        return say_stages(session, error);
    say(session, mtf_predicted_format(session->plan->predicted));
    return true;
}

/* The rate of a large product is measured for this many steps or more: for a few it takes longer than they do. */
#define MEASURED_STEPS 10

/* Trains what is left to train, and verifies it where that is asked for. */
static bool train_and_verify(MtfSession *session, GError **error) {
    if (session->done >= session->options->steps) {
        say(session,
            g_strdup_printf("  that is all of --steps %" PRId64 ": nothing is left to train\n",
                            session->options->steps));
        return true;
    }
    if (session->options->steps - session->done >= MEASURED_STEPS)
        session->gemm_peak =
            mtf_gemm_peak(g_str_equal(session->plan->precision, "f64") ? MTF_F64 : MTF_F32);
    if (!mtf_session_train(session, error))
        return false;
    if (session->trace != NULL)
        say(session, g_strdup_printf("  the trace of steps %s is in %s\n", session->options->trace,
                                     session->options->trace_file));
    say(session, mtf_run_summary(session));
    if (!session->options->verify || session->stopped)
        return true;
    bool same = false;
    char *table = mtf_verify(session, &same, error);
    if (table == NULL)
        return false;
    session->differs = !same;
    say(session, table);
    return true;
}

/* What --verify found decides the exit status, behind all that is made of the trained model. */
static bool is_verified(const MtfSession *session, GError **error) {
    return !session->differs ||
           mtf_failure(error, "--verify: what the ranks computed is not what one processor does; "
                              "the verdict above says by how much");
}

static bool generate(MtfSession *session, GError **error) {
    if (session->options->generate == 0 || session->stopped)
        return true;
    g_autofree char *text = mtf_translates(session)
                                ? mtf_translate(session, session->options->prompt, error)
                                : mtf_generate(session, session->options->prompt, error);
    if (text != NULL)
        say(session, g_strdup_printf("\n%s\n", text));
    return text != NULL;
}

static bool foretell(MtfSession *session, GError **error) {
    const char *path = session->options->perplexity;
    MtfPerplexity p;
    if (path == NULL || session->stopped)
        return true;
    if (!mtf_perplexity(session, path, &p, error))
        return false;
    say(session, g_strdup_printf("  perplexity of %s: %.8g (%.8g nats a token, %" PRId64
                                 " tokens, %.4g bits a token)\n",
                                 path, exp(p.nats), p.nats, p.tokens, p.nats / G_LN2));
    return true;
}

static bool serve(MtfSession *session, GError **error) {
    return session->options->serve < 0 || session->stopped || mtf_serve(session, error);
}

static void warn_of_libraries(const MtfSession *session) {
    g_autofree char *warning = mtf_kernel_libraries_warning();
    if (warning != NULL)
        say(session, g_strdup_printf("  warning: %s\n", warning));
}

/* From here on, with --ema, the weights are their running means. */
static bool settle_weights(MtfSession *session, GError **error) {
    MtfCheckpointed what = mtf_session_checkpointed(session);
    return !session->options->ema || session->stopped ||
           mtf_averaged_weights_take(&what, NULL, error);
}

static bool check_averages(const MtfSession *session, GError **error) {
    if (!session->options->ema)
        return true;
    if (!mtf_averaged_weights_check(mtf_session_graph(session), error))
        return false;
    return session->options->steps > 0 || session->done > 0 ||
           mtf_input_error(error, "--ema: nothing is trained with --steps 0, so there are no means "
                                  "yet: --checkpoint DIR --resume has those of a run");
}

/* What a model that is only run makes of all its data. */
static bool predict(MtfSession *session, GError **error) {
    char *said = mtf_predictions_write(session, session->options->logits, error);
    if (said != NULL)
        say(session, said);
    return said != NULL;
}

/* What the model makes of the next batch. A plan that generates writes what it draws from. */
static bool write_scores(MtfSession *session, GError **error) {
    const MtfRunOptions *options = session->options;
    const MtfGraph *graph = mtf_session_graph(session);
    if (options->logits == NULL || mtf_graph_generates(graph))
        return true;
    return mtf_graph_has_results(graph)
               ? predict(session, error)
               : mtf_scores_write(session, options->steps + 1, options->logits, error);
}

/* What is written of the trained model. */
static bool write_results(MtfSession *session, GError **error) {
    const MtfRunOptions *options = session->options;
    MtfCheckpointed what = mtf_session_checkpointed(session);
    if (session->stopped)
        return true;
    if (!mtf_session_write_results(session, error))
        return false;
    if (options->results != NULL)
        say(session, g_strdup_printf("  the results are in %s\n", options->results));
    if (!write_scores(session, error))
        return false;
    if (options->export_adapter != NULL &&
        !mtf_published_adapters_write(&what, options->export_adapter, options->init, error))
        return false;
    if (options->export_adapter != NULL)
        say(session, g_strdup_printf("  the adapters are in %s\n", options->export_adapter));
    if (options->export_hf == NULL)
        return true;
    if (!mtf_published_weights_write(&what, options->export_hf, options->init, error))
        return false;
    bool has_config = options->init != NULL || mtf_session_graph(session)->config != NULL;
    say(session, g_strdup_printf("  the weights are in %s%s\n", options->export_hf,
                                 has_config ? ""
                                            : ", without a config.json: no model type of "
                                              "transformers has these sizes"));
    return true;
}

/* Whether all that is to be made of the trained model can be, before hours of training. */
static bool check_wishes(MtfSession *session, GError **error) {
    const MtfRunOptions *o = session->options;
    const MtfGraph *graph = mtf_session_graph(session);
    if (!check_averages(session, error))
        return false;
    if (o->verify && session->stage->asynchronous)
        return mtf_input_error(error,
                               "--verify compares with the same steps on one processor, and "
                               "stages of \"%s\" compute with weights of earlier steps",
                               session->stage->pipeline->schedule);
    if (o->export_hf != NULL && !mtf_published_weights_check(graph, false, error))
        return false;
    if (o->export_adapter != NULL && !mtf_published_weights_check(graph, true, error))
        return false;
    if (o->perplexity != NULL && !mtf_perplexity_check(session, o->perplexity, error))
        return false;
    return o->generate == 0 ||
           (mtf_translates(session) ? mtf_translation_check(session, o->prompt, error)
                                    : mtf_generation_check(session, o->prompt, error));
}

static bool train(MtfSession *session, GError **error) {
    MtfThreads threads = mtf_threads_set(session->control);
    if (!mtf_session_open(session, error))
        return false;
    g_autofree char *line = mtf_threads_format(&threads);
    g_autofree char *products = mtf_run_products_format(session->control);
    say(session, g_strdup_printf("  %s\n", line));
    warn_of_libraries(session);
    say(session, g_strdup_printf("  %s\n", products));
    return check_wishes(session, error) && train_and_verify(session, error) &&
           settle_weights(session, error) && write_results(session, error) &&
           foretell(session, error) && generate(session, error) && is_verified(session, error) &&
           serve(session, error);
}

/* What rank 0 writes when all is done. */
static bool check_outputs(const MtfRunOptions *o, GError **error) {
    return mtf_output_check_file(o->output, error) && mtf_output_check_file(o->logits, error) &&
           mtf_output_check_file(o->results, error) &&
           mtf_output_check_file(o->trace != NULL ? o->trace_file : NULL, error) &&
           mtf_output_check_folder(o->export_hf, error) &&
           mtf_output_check_folder(o->export_adapter, error);
}

static bool run(MPI_Comm control, const MtfRunOptions *options, bool *stopped, GError **error) {
    if (options->calibrate)
        return mtf_calibrate(control, options->rounds, options->output, error);
    MtfSession session;
    bool done = mtf_session_load(&session, control, options, error);
    if (done) {
        say_plan(&session);
        done = options->dry_run ? say_predictions(&session, error) : train(&session, error);
    }
    *stopped = session.stopped;
    mtf_session_close(&session);
    return done;
}

static int start(MPI_Comm control, int argc, char **argv) {
    MtfRunOptions options;
    GError *local = NULL;
    GError *error = NULL;
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    mtf_stop_signals_speak(rank == 0);
    mtf_stop_signals_meet(control);
    bool parsed = mtf_run_options_parse(&options, argc, argv, &local);
    if (parsed && rank == 0)
        check_outputs(&options, &local);
    bool stopped = false;
    if (mtf_agree(control, local, &error))
        run(control, &options, &stopped, &error);
    mtf_stop_signals_part();
    if (parsed)
        mtf_run_options_clear(&options);
    int status = error == NULL && stopped ? STATUS_STOPPED : mtf_error_exit_status(error);
    if (error != NULL && rank == 0)
        return mtf_command_line_fail("meshtf-run", error);
    g_clear_error(&error);
    return status;
}

/* Whether a launcher started this process as another rank than 0. Only a hint: it decides who
 * prints a help text that needs no MPI. */
static bool is_other_rank(void) {
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK" };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *rank = g_getenv(names[i]);
        if (rank != NULL && strcmp(rank, "0") != 0)
            return true;
    }
    return false;
}

static int answer(int argc, char **argv) {
    MtfRunOptions options;
    if (is_other_rank())
        return 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--version") == 0) {
            g_autofree char *libraries = mtf_kernel_libraries_format();
            printf("meshtf-run " MTF_VERSION "\n%s\n", libraries);
            return 0;
        }
    GError *error = NULL;
    if (!mtf_run_options_parse(&options, argc, argv, &error))
        return mtf_command_line_fail("meshtf-run", error);
    mtf_run_options_clear(&options);
    return 0;
}

int main(int argc, char **argv) {
    g_set_prgname("meshtf-run");
    mtf_kernel_libraries_restart(argv);
    mtf_output_guard_begin();
    if (mtf_run_options_only_ask(argc, argv))
        return answer(argc, argv);
    mtf_stop_signals_watch();
    mtf_mpi_require(MPI_Init(&argc, &argv), "MPI_Init");
    mtf_mpi_require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    MPI_Comm control = mtf_control_new(MPI_COMM_WORLD);
    int status = start(control, argc, argv);
    mtf_mpi_require(MPI_Comm_free(&control), "MPI_Comm_free");
    mtf_mpi_require(MPI_Finalize(), "MPI_Finalize");
    return status;
}
