// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/session_checkpoints.h"

#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/published_weights.h"
#include "runtime/kernels/products/product_choice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <inttypes.h>
#include <stdio.h>

/* Seconds to wait for a folder that another run still holds. */
#define FOLDER_PATIENCE 20

MtfCheckpointed mtf_session_checkpointed(const MtfSession *session) {
    MtfCheckpointed what = { .control = session->control, .worker = session->worker };
    if (mtf_session_has_stages(session)) {
        what.whole = session->stage->pipeline->graph;
        what.domain = session->stage->domain;
        what.n_more = session->stage->n_chunks - 1;
        what.more = session->stage->workers + 1;
    }
    return what;
}

bool mtf_session_read_weights(const MtfSession *session, const MtfCheckpointed *what,
                              GError **error) {
    const MtfRunOptions *o = session->options;
    return (o->init == NULL || mtf_weights_read(what, o->init, error)) &&
           (o->init_adapter == NULL || mtf_published_adapters_read(what, o->init_adapter, error));
}

/* ---- Beginning ----------------------------------------------------------------------------- */

static void say_lacking(const MtfSession *session, GPtrArray *lacking) {
    g_ptr_array_add(lacking, NULL);
    g_autofree char *names = g_strjoinv(", ", (char **)lacking->pdata);
    if (session->rank == 0 && lacking->len > 1)
        printf("  not in %s, and begins as it is drawn: %s\n", session->options->init, names);
}

/* The first few, and how many more. */
static void say_unread(const MtfSession *session, GPtrArray *unread) {
    g_ptr_array_add(unread, NULL);
    g_auto(GStrv) few = g_new0(char *, 5);
    guint n = g_strv_length((char **)unread->pdata);
    for (guint i = 0; i < n && i < 4; i++)
        few[i] = g_strdup(unread->pdata[i]);
    g_autofree char *names = g_strjoinv(", ", few);
    g_autofree char *more = n > 4 ? g_strdup_printf(" and %u more", n - 4) : g_strdup("");
    if (session->rank == 0 && n > 0)
        printf("  no part of this model, and not read of %s: %s%s\n", session->options->init, names,
               more);
}

static bool init_weights(MtfSession *session, GError **error) {
    uint64_t seed = (uint64_t)session->options->seed;
    for (int c = 0; c < session->stage->n_chunks; c++)
        mtf_worker_initialise(session->stage->chunks[c].slots[0].worker, seed);
    MtfCheckpointed what = mtf_session_checkpointed(session);
    g_autoptr(GPtrArray) lacking = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) unread = g_ptr_array_new_with_free_func(g_free);
    what.lacking = session->options->new_head ? lacking : NULL;
    what.unread = unread;
    if (!mtf_session_read_weights(session, &what, error))
        return false;
    say_lacking(session, lacking);
    say_unread(session, unread);
    return true;
}

/* The steps of the folder's checkpoints, the newest first, as rank 0 sees them. */
static GArray *list_steps(const MtfSession *session) {
    GArray *steps = session->rank == 0 ? mtf_checkpoint_steps(session->options->checkpoint)
                                       : g_array_new(FALSE, FALSE, sizeof(int64_t));
    int n = (int)steps->len;
    mtf_mpi_require(MPI_Bcast(&n, 1, MPI_INT, 0, session->control), "MPI_Bcast");
    g_array_set_size(steps, (guint)n);
    mtf_mpi_require(MPI_Bcast(steps->data, n, MPI_INT64_T, 0, session->control), "MPI_Bcast");
    return steps;
}

/* Whether the run that wrote the checkpoint saw the data that this one will see. */
static bool check_progress(const MtfSession *session, const char *path, const MtfProgress *progress,
                           GError **error) {
    if (progress->seed != (uint64_t)session->options->seed)
        return mtf_input_error(error,
                               "%s was written by a run with --seed %" PRId64 ", this one has "
                               "%" PRId64,
                               path, (int64_t)progress->seed, session->options->seed);
    GError *local = NULL;
    g_autofree char *data = mtf_data_identity(session->data, &local);
    if (data != NULL && g_strcmp0(data, progress->data) != 0 && !session->options->new_data)
        mtf_input_error(&local,
                        "%s was trained on other data (%s; here it is %s): --new-data goes on with "
                        "this, --init takes its weights alone",
                        path, progress->data, data);
    return mtf_agree(session->control, local, error);
}

static void say_resumed(const MtfSession *session, const char *path, const MtfProgress *progress) {
    g_autofree char *digest = mtf_session_digest(session);
    bool same = g_strcmp0(progress->program, digest) == 0;
    if (session->rank == 0)
        printf("  goes on from step %" PRId64 ", %s, %s\n", progress->step, path,
               same ? "written by the same program" : "written under another layout");
}

/* Goes on from one checkpoint. */
static MtfCheckpointVerdict resume_from(MtfSession *session, const char *path, GError **error) {
    MtfProgress progress;
    MtfCheckpointed what = mtf_session_checkpointed(session);
    MtfCheckpointVerdict verdict = mtf_checkpoint_read(&what, path, &progress, error);
    if (verdict == MTF_CHECKPOINT_READ && !check_progress(session, path, &progress, error))
        verdict = MTF_CHECKPOINT_FOREIGN;
    if (verdict == MTF_CHECKPOINT_READ) {
        session->done = progress.step;
        say_resumed(session, path, &progress);
    }
    mtf_progress_clear(&progress);
    return verdict;
}

/* Says why a checkpoint was passed over, in the error's sentence; takes the error. */
static void say_skipped(const MtfSession *session, GError *cause) {
    if (session->rank == 0)
        fprintf(stderr, "meshtf-run: skipped: %s\n", cause->message);
    g_error_free(cause);
}

static bool resume(MtfSession *session, const GArray *steps, GError **error) {
    for (guint i = 0; i < steps->len; i++) {
        GError *cause = NULL;
        g_autofree char *path =
            mtf_checkpoint_path(session->options->checkpoint, g_array_index(steps, int64_t, i));
        MtfCheckpointVerdict verdict = resume_from(session, path, &cause);
        if (verdict == MTF_CHECKPOINT_READ)
            return true;
        if (verdict == MTF_CHECKPOINT_FOREIGN) {
            g_propagate_error(error, cause);
            return false;
        }
        say_skipped(session, cause);
    }
    return mtf_input_error(error, "%s: none of its %u checkpoints is good",
                           session->options->checkpoint, steps->len);
}

bool mtf_session_begin(MtfSession *session, GError **error) {
    const MtfRunOptions *options = session->options;
    if (options->checkpoint == NULL)
        return init_weights(session, error);
    GError *local = NULL;
    if (session->rank == 0)
        session->folder = mtf_checkpoint_folder_open(options->checkpoint, FOLDER_PATIENCE, &local);
    if (!mtf_agree(session->control, local, error))
        return false;
    g_autoptr(GArray) steps = list_steps(session);
    if (steps->len > 0 && !options->resume)
        return mtf_input_error(error,
                               "%s already holds checkpoints, the newest of step %" PRId64
                               ": give --resume to go on from it, or name another folder",
                               options->checkpoint, g_array_index(steps, int64_t, 0));
    if (steps->len > 0)
        return resume(session, steps, error);
    if (options->resume && session->rank == 0)
        printf("  no checkpoint in %s yet: begins with step 1\n", options->checkpoint);
    return init_weights(session, error);
}

/* ---- Saving -------------------------------------------------------------------------------- */

/* Writes a file of the variables after a step by `write`. */
static bool write_variables(const MtfSession *session, int64_t step, const char *path,
                            bool (*write)(const MtfCheckpointed *what, const char *path,
                                          const MtfProgress *progress, GError **error),
                            GError **error) {
    g_autofree char *digest = mtf_session_digest(session);
    MtfProgress progress = { .step = step,
                             .seed = (uint64_t)session->options->seed,
                             .examples = step * mtf_data_examples(session->data),
                             .program = digest };
    GError *local = NULL;
    g_autofree char *data = mtf_data_identity(session->data, &local);
    g_autofree char *products = mtf_product_choice_text();
    if (!mtf_agree(session->control, local, error))
        return false;
    progress.data = data;
    progress.products = products;
    MtfCheckpointed what = mtf_session_checkpointed(session);
    return write(&what, path, &progress, error);
}

bool mtf_session_write_results(const MtfSession *session, GError **error) {
    const MtfRunOptions *o = session->options;
    return o->results == NULL ||
           write_variables(session, session->trained, o->results, mtf_results_write, error);
}

bool mtf_session_save(MtfSession *session, int64_t step, GError **error) {
    const char *folder = session->options->checkpoint;
    if (folder == NULL)
        return true;
    double start = MPI_Wtime();
    g_autofree char *path = mtf_checkpoint_path(folder, step);
    if (!write_variables(session, step, path, mtf_checkpoint_write, error))
        return false;
    if (session->rank == 0)
        mtf_checkpoint_prune(folder, step, session->options->keep);
    session->saves++;
    session->saved = step;
    session->save_seconds += MPI_Wtime() - start;
    return true;
}

char *mtf_session_saves_format(const MtfSession *session) {
    if (session->saves == 0)
        return NULL;
    g_autofree char *seconds = mtf_seconds_format(session->save_seconds / (double)session->saves);
    return g_strdup_printf("  %d checkpoint%s in %s, the last of step %" PRId64 "; %s each\n",
                           session->saves, session->saves == 1 ? "" : "s",
                           session->options->checkpoint, session->saved, seconds);
}
