// SPDX-License-Identifier: GPL-3.0-or-later
/* Measures the steps of several plans for the same number of ranks, with pipeline stages or without, in
 * turns:
 *
 *     mpirun -n N bench_prediction SECONDS DATA PLAN...
 *
 * Each plan gets a few steps in a row, of which the first does not count, then the next plan is on,
 * round after round for SECONDS. A line a plan: its file, ranks, the predicted step, the measured
 * one, samples kept and taken, all times in seconds. A sample is kept where no rank was ready to run
 * for more than a twentieth of the step while somebody else had its core, as the kernel counts it
 * (a rank that waits for others sleeps, so its processor time does not tell). The measured step is
 * the first quarter of the kept samples, like the tables of --calibrate; with fewer than three, of
 * all. */
#include "layouts/base/quantile.h"
#include "runtime/kernels/products/kernel_libraries.h"
#include "runtime/session/session.h"
#include "runtime/support/mpi_check.h"
#include "runtime/support/threads.h"

#include <math.h>
#include <stdio.h>

#define SAMPLES_MOST 4096
#define TURN_STEPS 4
#define TURN_SECONDS 0.05

typedef struct {
    MtfRunOptions options;
    MtfSession session;
    char *data[2]; /* ends with NULL */
    int taken;
    int64_t step;
    double wall[SAMPLES_MOST], delayed[SAMPLES_MOST]; /* seconds, the largest over ranks */
} Subject;

/* Seconds that this process was ready to run while others had the cores (/proc/self/schedstat: nanoseconds
 * run, nanoseconds delayed, turns). */
static double delayed_seconds(void) {
    long long delayed = 0;
    FILE *counts = fopen("/proc/self/schedstat", "r");
    if (counts == NULL || fscanf(counts, "%*d %lld", &delayed) != 1) {
        fprintf(stderr,
                "bench_prediction: this kernel does not count delays (/proc/self/schedstat)\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(counts);
    return 1e-9 * (double)delayed;
}

static void reduce(double *values, int n, MPI_Op operation) {
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, operation, MPI_COMM_WORLD),
                    "MPI_Allreduce");
}

static void barrier(void) {
    mtf_mpi_require(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

static void die(GError *error) {
    fprintf(stderr, "bench_prediction: %s\n", error->message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool reads_text(const MtfGraph *graph) {
    bool reads = false;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        reads |= tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TOKENS;
    }
    return reads;
}

static void open_subject(Subject *subject, char *plan, char *data) {
    GError *error = NULL;
    MtfSession *session = &subject->session;
    subject->options = (MtfRunOptions){ .plan = plan, .steps = 1 };
    subject->data[0] = data;
    if (!mtf_session_load(session, MPI_COMM_WORLD, &subject->options, &error))
        die(error);
    if (reads_text(mtf_session_graph(session)))
        subject->options.data = subject->data;
    if (!mtf_session_open(session, &error))
        die(error);
}

static bool run_step(MtfSession *session, int64_t step, GError **error) {
    mtf_stage_run_begin(session->stage, step - 1, step);
    if (!mtf_stage_run_compute(session->stage, step, error))
        return false;
    mtf_stage_run_update(session->stage, step);
    return true;
}

/* One step, all ranks from barrier to barrier; a sample unless it is the turn's first. */
static void take_step(Subject *subject, bool counts) {
    barrier();
    double wall = MPI_Wtime(), delayed = delayed_seconds();
    GError *error = NULL;
    if (!run_step(&subject->session, ++subject->step, &error))
        die(error);
    barrier();
    if (!counts || subject->taken == SAMPLES_MOST)
        return;
    subject->wall[subject->taken] = MPI_Wtime() - wall;
    subject->delayed[subject->taken++] = delayed_seconds() - delayed;
}

/* How many steps make a turn, agreed upon after the first ones. */
static int turn_steps(const Subject *subject) {
    double wall = subject->wall[0];
    reduce(&wall, 1, MPI_MAX);
    return TURN_STEPS + (int)(TURN_SECONDS / wall);
}

static void take_turn(Subject *subject) {
    int steps = subject->taken > 0 ? turn_steps(subject) : TURN_STEPS;
    for (int i = 0; i <= steps; i++)
        take_step(subject, i > 0);
}

static double predicted_seconds(const Subject *subject) {
    const MtfSession *session = &subject->session;
    const cJSON *predicted = mtf_session_has_stages(session) ? session->stage->pipeline->predicted
                                                             : session->plan->predicted;
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(predicted, "step_seconds");
    return cJSON_IsRaw(step) ? g_ascii_strtod(step->valuestring, NULL) : step->valuedouble;
}

static void report(Subject *subject) {
    g_autofree double *kept = g_new(double, (gsize)subject->taken);
    int n = 0;
    reduce(subject->wall, subject->taken, MPI_MAX);
    reduce(subject->delayed, subject->taken, MPI_MAX);
    for (int i = 0; i < subject->taken; i++)
        if (subject->delayed[i] <= 0.05 * subject->wall[i])
            kept[n++] = subject->wall[i];
    double measured =
        n >= 3 ? mtf_first_quarter(kept, n) : mtf_first_quarter(subject->wall, subject->taken);
    if (subject->session.rank == 0)
        printf("%s %d %.9g %.9g %d %d\n", subject->options.plan, subject->session.n_ranks,
               predicted_seconds(subject), measured, n, subject->taken);
}

int main(int argc, char **argv) {
    mtf_kernel_libraries_restart(argv);
    mtf_mpi_require(MPI_Init(&argc, &argv), "MPI_Init");
    int n = argc - 3;
    g_autofree Subject *subjects = g_new0(Subject, MAX(n, 1));
    mtf_threads_set(MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        open_subject(&subjects[i], argv[3 + i], argv[2]);
    double end = MPI_Wtime() + g_ascii_strtod(argv[1], NULL), left = 1;
    while (left > 0) {
        for (int i = 0; i < n; i++)
            take_turn(&subjects[i]);
        left = end - MPI_Wtime();
        reduce(&left, 1, MPI_MAX);
    }
    for (int i = 0; i < n; i++) {
        report(&subjects[i]);
        mtf_session_close(&subjects[i].session);
    }
    mtf_mpi_require(MPI_Finalize(), "MPI_Finalize");
    return 0;
}
