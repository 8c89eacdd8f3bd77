// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/run_summary.h"

#include "layouts/base/command_line.h"
#include "layouts/base/quantile.h"
#include "runtime/session/session_checkpoints.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

double mtf_median_seconds(const MtfStepRecord *records, int64_t n) {
    int64_t first = n > 1 ? 1 : 0;
    gsize count = (gsize)(n - first);
    g_autofree double *seconds = g_new(double, count);
    for (gsize i = 0; i < count; i++)
        seconds[i] = records[first + (int64_t)i].seconds;
    return mtf_median(seconds, (int64_t)count);
}

/* ---- Predictions of the plan --------------------------------------------------------------- */

/* A number of an object; NaN when it is not there. */
static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static unsigned axes_of(const cJSON *row, const MtfMesh *mesh) {
    unsigned axes = 0;
    const cJSON *axis;
    cJSON_ArrayForEach(axis, cJSON_GetObjectItemCaseSensitive(row, "axes")) {
        int index = cJSON_IsString(axis) ? mtf_mesh_axis(mesh, axis->valuestring) : -1;
        if (index >= 0)
            axes |= 1U << index;
    }
    return axes;
}

/* The sum of `key` over the plan's rows of one collective and set of axes. */
static double predicted_sum(const MtfSession *session, const MtfTrafficEntry *entry,
                            const char *key) {
    double sum = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row,
                       cJSON_GetObjectItemCaseSensitive(session->plan->predicted, "collectives")) {
        const cJSON *kind = cJSON_GetObjectItemCaseSensitive(row, "kind");
        if (cJSON_IsString(kind) &&
            strcmp(kind->valuestring, mtf_reshard_row(entry->kind)->name) == 0 &&
            axes_of(row, &session->program->layout->mesh) == entry->axes)
            sum += number_of(row, key);
    }
    return sum;
}

/* ---- Text ---------------------------------------------------------------------------------- */

static char *format_seconds(double seconds) {
    return isnan(seconds) ? g_strdup("-") : mtf_seconds_format(seconds);
}

static char *format_bytes(double bytes) {
    return isnan(bytes) ? g_strdup("-") : mtf_bytes_format(bytes);
}

static void append_seconds(GString *text, const char *name, double predicted, double measured) {
    g_autofree char *left = format_seconds(predicted);
    g_autofree char *right = format_seconds(measured);
    g_string_append_printf(text, "  %-16s %12s %12s\n", name, left, right);
}

static void append_times(GString *text, const MtfSession *session) {
    int64_t steps = session->trained;
    const cJSON *predicted = session->plan->predicted;
    double communication = 0;
    for (int64_t i = 0; i < steps; i++)
        communication += session->records[i].communication_seconds;
    communication = mtf_agree_largest(session->control, communication / (double)steps);
    append_seconds(text, "step", number_of(predicted, "step_seconds"),
                   mtf_median_seconds(session->records, steps));
    g_autofree char *all = format_seconds(number_of(predicted, "communication_seconds"));
    g_string_append_printf(text, "  %-16s %12s\n", "communication", all);
    append_seconds(text, "not overlapped", number_of(predicted, "exposed_communication_seconds"),
                   communication);
}

static void append_memory(GString *text, const MtfSession *session) {
    double bytes = number_of(session->plan->predicted, "peak_memory_bytes");
    g_autofree char *predicted = format_bytes(bytes);
    g_autofree char *arena = mtf_bytes_format((double)session->arena->bytes);
    g_string_append_printf(text, "  %-16s %12s %12s  %s\n", "memory a rank", predicted, arena,
                           bytes == (double)session->arena->bytes ? "equal to the byte"
                                                                  : "NOT equal");
}

/* What waits with the host, and what went there and back in a step. */
static void append_host(GString *text, const MtfSession *session) {
    if (session->arena->host_bytes == 0)
        return;
    g_autoptr(MtfTraffic) program = mtf_traffic_predict(session->program, session->rank);
    double bytes = number_of(session->plan->predicted, "host_memory_bytes");
    double mapped_bytes = (double)session->worker->host.bytes;
    double copied = (double)session->counted->host_bytes / (double)session->trained;
    bool exact =
        mtf_agree_largest(session->control, copied == (double)program->host_bytes ? 0 : 1) == 0;
    g_autofree char *predicted = format_bytes(bytes);
    g_autofree char *mapped = mtf_bytes_format(mapped_bytes);
    g_autofree char *planned = format_bytes(number_of(session->plan->predicted, "host_copy_bytes"));
    g_autofree char *run = format_bytes(mtf_agree_largest(session->control, copied));
    g_string_append_printf(text, "  %-16s %12s %12s  %s\n", "with the host", predicted, mapped,
                           bytes == mapped_bytes ? "equal to the byte" : "NOT equal");
    g_string_append_printf(text, "  %-16s %12s %12s  %s\n", "there and back", planned, run,
                           exact ? "equal to the byte on every rank" : "NOT equal on some rank");
}

/* As the last step's line has it: parts of pages change with what other processes map, libraries
 * too. What of it no arena holds is the program, MPI, BLAS; without a window the messages that MPI
 * copies. */
static void append_resident(GString *text, const MtfSession *session) {
    double resident = (double)session->records[session->trained - 1].resident_bytes;
    g_autofree char *all = format_bytes(resident);
    g_autofree char *beside =
        format_bytes(resident - (double)session->arena->bytes - (double)session->arena->host_bytes);
    g_string_append_printf(text, "  %-16s %12s %12s  %s beside the arena\n", "resident a rank", "",
                           all, beside);
}

/* The mean loss of the last tenth of the steps: single steps are noisy. */
static double closing_loss(const MtfSession *session, int64_t *count) {
    int64_t steps = session->trained;
    *count = MAX(1, steps / 10);
    double sum = 0;
    for (int64_t i = steps - *count; i < steps; i++)
        sum += session->records[i].loss;
    return sum / (double)*count;
}

/* How far the loss came; for a text, beside what knows only how often each token occurs. */
static void append_loss(GString *text, const MtfSession *session) {
    int64_t count;
    double loss = closing_loss(session, &count);
    double entropy = mtf_data_entropy(session->data);
    g_string_append_printf(text, "\n  loss %.4f at first, %.4f in the last %" PRId64 " step%s\n",
                           session->records[0].loss, loss, count, count == 1 ? "" : "s");
    if (!isnan(entropy))
        g_string_append_printf(text,
                               "  guessing by frequency alone (order-0 entropy of the text) loses "
                               "%.4f",
                               entropy);
    int64_t vocabulary = mtf_data_vocabulary(session->data);
    if (!isnan(entropy) && vocabulary < INT64_MAX)
        g_string_append_printf(text, ", knowing nothing ln %" PRId64 " = %.4f", vocabulary,
                               log((double)vocabulary));
    if (!isnan(entropy))
        g_string_append_c(text, '\n');
    const MtfStepRecord *last = &session->records[session->trained - 1];
    if (last->evaluated)
        g_string_append_printf(text, "  held out data loses %.4f", last->held_out_loss);
    if (last->evaluated && !isnan(last->held_out_accuracy))
        g_string_append_printf(text, ", %.1f %% of its labels score highest",
                               100 * last->held_out_accuracy);
    if (last->evaluated)
        g_string_append_c(text, '\n');
}

static void append_collective(GString *text, const MtfSession *session,
                              const MtfTrafficEntry *counted) {
    double steps = (double)session->trained;
    double calls = mtf_agree_largest(session->control, (double)counted->calls / steps);
    double bytes = mtf_agree_largest(session->control, (double)counted->bytes / steps);
    double seconds = mtf_agree_largest(session->control, counted->seconds / steps);
    g_autofree char *axes = mtf_mesh_mask_format(&session->program->layout->mesh, counted->axes);
    g_autofree char *bytes_left = format_bytes(predicted_sum(session, counted, "bytes"));
    g_autofree char *bytes_right = mtf_bytes_format(bytes);
    g_autofree char *seconds_left = format_seconds(predicted_sum(session, counted, "seconds"));
    g_autofree char *seconds_right = mtf_seconds_format(seconds);
    g_string_append_printf(text, "  %-16s %-12s %6.0f %6.0f %12s %12s %10s %10s\n",
                           mtf_reshard_row(counted->kind)->name, axes,
                           predicted_sum(session, counted, "calls"), calls, bytes_left, bytes_right,
                           seconds_left, seconds_right);
}

/* How often "while" blocks ran, which a program counts as if they never ended before: as the rank says
 * that has most of them. */
static void append_iterations(GString *text, const MtfSession *session, int64_t run,
                              int64_t spared) {
    double steps = (double)session->trained;
    double most = mtf_agree_largest(session->control, (double)(run + spared) / steps);
    double ran = mtf_agree_largest(session->control, (double)run / steps);
    if (most > 0)
        g_string_append_printf(text,
                               "  \"while\" blocks ran %.1f iterations a step; the plan counts the "
                               "%.1f that they run at most\n",
                               ran, most);
}

/* Whether this rank counted what a program says, times the steps, less the iterations that loops ended
 * before. */
static bool counts_are_exact(const MtfSession *session, const MtfStageChunk *chunk) {
    const MtfTraffic *counted = chunk->executor.counted;
    g_autoptr(MtfTraffic) program = mtf_traffic_predict(chunk->program, session->stage->rank);
    for (int i = 0; i < program->n_entries; i++) {
        const MtfTrafficEntry *entry = &counted->entries[i];
        if (entry->calls + entry->spared_calls != program->entries[i].calls * session->trained ||
            entry->bytes + entry->spared_bytes != program->entries[i].bytes * session->trained)
            return false;
    }
    return true;
}

/* Whether all ranks counted what their programs say. */
static bool all_counts_are_exact(const MtfSession *session) {
    bool exact = true;
    for (int c = 0; c < session->stage->n_chunks; c++)
        exact = counts_are_exact(session, &session->stage->chunks[c]) && exact;
    return mtf_agree_largest(session->control, exact ? 0 : 1) == 0;
}

static void append_traffic(GString *text, const MtfSession *session) {
    bool exact = all_counts_are_exact(session);
    if (session->counted->n_entries == 0) {
        g_string_append(text, "  no communication\n");
        return;
    }
    g_string_append_printf(text, "\n  %-16s %-12s %13s %25s %21s\n", "collective", "axes",
                           "calls a step", "payload a step", "time a step");
    g_string_append_printf(text, "  %-16s %-12s %6s %6s %12s %12s %10s %10s\n", "", "", "plan",
                           "run", "plan", "run", "plan", "run");
    for (int i = 0; i < session->counted->n_entries; i++)
        append_collective(text, session, &session->counted->entries[i]);
    g_string_append(text, exact ? "  every rank's calls and bytes equal the program's\n"
                                : "  calls and bytes are NOT the program's on some rank\n");
}

/* ---- Pipelines ----------------------------------------------------------------------------- */

static void append_stage_memory(GString *text, const MtfSession *session) {
    double planned = mtf_stage_run_planned_bytes(session->stage);
    double own = (double)mtf_stage_run_arena_bytes(session->stage);
    bool equal = mtf_agree_largest(session->control, planned == own ? 0 : 1) == 0;
    g_autofree char *predicted = format_bytes(mtf_agree_largest(session->control, planned));
    g_autofree char *measured = mtf_bytes_format(mtf_agree_largest(session->control, own));
    g_string_append_printf(text, "  %-16s %12s %12s  %s\n", "largest memory", predicted, measured,
                           equal ? "equal to the byte on every rank" : "NOT equal");
}

/* What ranks send to other stages in a step, and copy of others' arenas: as the plan's layouts say, and as it
 * was counted. */
static void append_transfers(GString *text, const MtfSession *session) {
    MtfStageTraffic plan = { 0 }, run = { 0 };
    for (int c = 0; c < session->stage->n_chunks; c++) {
        const MtfStageTransfers *transfers = session->stage->chunks[c].transfers;
        MtfStageTraffic planned = mtf_stage_transfers_planned(transfers);
        MtfStageTraffic counted = mtf_stage_transfers_counted(transfers);
        plan.sent += planned.sent * session->trained;
        plan.copied += planned.copied * session->trained;
        run.sent += counted.sent;
        run.copied += counted.copied;
    }
    double steps = (double)session->trained;
    bool equal = plan.sent == run.sent && plan.copied == run.copied;
    bool all_equal = mtf_agree_largest(session->control, equal ? 0 : 1) == 0;
    g_autofree char *predicted =
        format_bytes(mtf_agree_largest(session->control, (double)plan.sent / steps));
    g_autofree char *measured =
        format_bytes(mtf_agree_largest(session->control, (double)run.sent / steps));
    g_autofree char *copied =
        format_bytes(mtf_agree_largest(session->control, (double)run.copied / steps));
    g_string_append_printf(text, "  %-16s %12s %12s  %s, %s copied from senders' arenas\n",
                           "sent to stages", predicted, measured,
                           all_equal ? "equal to the byte on every rank" : "NOT equal", copied);
}

/* Collectives within stages, of the rank that has most of them. */
static void append_stage_collectives(GString *text, const MtfSession *session) {
    double n[] = { 0, 0, 0, 0 }; /* calls and bytes a step, of the plan and of the run */
    for (int c = 0; c < session->stage->n_chunks; c++) {
        const MtfStageChunk *chunk = &session->stage->chunks[c];
        g_autoptr(MtfTraffic) program = mtf_traffic_predict(chunk->program, session->stage->rank);
        for (int i = 0; i < program->n_entries; i++) {
            n[0] += (double)program->entries[i].calls;
            n[1] += (double)program->entries[i].bytes;
            n[2] += (double)chunk->executor.counted->entries[i].calls / (double)session->trained;
            n[3] += (double)chunk->executor.counted->entries[i].bytes / (double)session->trained;
        }
    }
    mtf_agree_maxima(session->control, n, G_N_ELEMENTS(n));
    bool exact = all_counts_are_exact(session);
    g_autofree char *predicted = mtf_bytes_format(n[1]);
    g_autofree char *measured = mtf_bytes_format(n[3]);
    g_string_append_printf(text, "  %-16s %12.0f %12.0f  calls within stages\n", "collectives",
                           n[0], n[2]);
    g_string_append_printf(text, "  %-16s %12s %12s  %s\n", "their payload", predicted, measured,
                           exact ? "every rank's calls and bytes equal its programs'"
                                 : "calls and bytes are NOT those of its programs on some rank");
}

static void append_stages(GString *text, const MtfSession *session) {
    append_seconds(text, "step", number_of(session->stage->pipeline->predicted, "step_seconds"),
                   mtf_median_seconds(session->records, session->trained));
    append_stage_memory(text, session);
    append_transfers(text, session);
    append_stage_collectives(text, session);
}

static void append_mesh(GString *text, const MtfSession *session) {
    append_times(text, session);
    append_memory(text, session);
    append_host(text, session);
    append_resident(text, session);
    append_traffic(text, session);
}

char *mtf_run_summary(const MtfSession *session) {
    GString *text = g_string_new(NULL);
    int64_t run = 0, spared = 0;
    g_string_append_printf(text, "\n  %-16s %12s %12s\n", "", "predicted", "measured");
    (mtf_session_has_stages(session) ? append_stages : append_mesh)(text, session);
    for (int c = 0; c < session->stage->n_chunks; c++) {
        run += session->stage->chunks[c].executor.counted->iterations;
        spared += session->stage->chunks[c].executor.counted->spared;
    }
    append_iterations(text, session, run, spared);
    g_autofree char *kernels = mtf_stage_watches_format(session->watches);
    g_string_append(text, kernels);
    if (mtf_session_graph(session)->loss >= 0)
        append_loss(text, session);
    g_autofree char *saves = mtf_session_saves_format(session);
    g_string_append(text, saves != NULL ? saves : "");
    return g_string_free(text, FALSE);
}
