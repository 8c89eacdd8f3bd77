// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4
/* What is noted of steps while they run: the norm of their gradients, and traces. */
#include "tests/support/cmocka.h"

#include "layouts/graph/random.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/session/session.h"
#include "runtime/worker/slice_runs.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/mpi_verdict.h"
#include "tests/support/reference/reference.h"
#include "tests/support/trace_check.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define RATE 0.125
#define MLP "batch:10;features:7;hidden:12;targets:5"
#define TRANSFORMER "batch:4;length:4;memory_length:4;d_model:8;heads:2;d_kv:4;d_ff:8"

static MPI_Comm control;
static int rank, ranks;

/* A path that all ranks know. */
static void shared_path(char *path, gsize size) {
    g_snprintf(path, size, "%s/meshtf-trace-%d.json", g_get_tmp_dir(), (int)getpid());
    PMPI_Bcast(path, (int)size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Trains `wanted` on the ranks of `some`; the session stays open. */
static void train(MtfSession *session, MPI_Comm some, const MtfTrainingPlan *wanted,
                  MtfRunOptions *options) {
    static char path[256];
    int first;
    g_autoptr(GError) error = NULL;
    g_snprintf(path, sizeof path, "%s/meshtf-watch-%d.json", g_get_tmp_dir(), (int)getpid());
    PMPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, some);
    MPI_Comm_rank(some, &first);
    if (first == 0) {
        g_autoptr(MtfPlan) plan = mtf_training_plan(wanted, &error);
        mtf_expect(plan != NULL && mtf_plan_save(plan, path, &error), "no plan");
    }
    PMPI_Barrier(some);
    options->plan = path;
    mtf_expect(mtf_session_load(session, some, options, &error) &&
                   mtf_session_open(session, &error) && mtf_session_train(session, &error),
               "%s", error != NULL ? error->message : "");
    PMPI_Barrier(some);
    if (first == 0)
        unlink(path);
}

/* The squares of what a step has changed in the elements that this rank answers for. */
static double changed_squares(const MtfSession *session, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(session->plan->graph, tensor);
    const MtfOperand *slice = mtf_worker_tensor(session->worker, tensor);
    MtfRandom random = mtf_random_initial_stream(0, t->name);
    MtfShare owned = mtf_share_owned(session->program, tensor, rank);
    MtfRuns runs = mtf_runs(&owned, 0, INT64_MAX);
    double sum = 0;
    while (mtf_runs_next(&runs))
        for (int64_t i = 0; i < runs.count; i++)
            sum += pow(mtf_slice_get(slice, runs.position + i) -
                           mtf_random_initial(&random, &t->init, runs.index + i),
                       2);
    return sum;
}

/* With momentum the first step takes RATE times the gradient from each variable. */
TEST(without_clipping_the_norm_is_that_of_what_a_step_changes) {
    static const char *const rules[] = { "batch:all", "hidden:all", "features:all;targets:all" };
    for (gsize r = 0; r < G_N_ELEMENTS(rules); r++) {
        MtfSession session;
        g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
        MtfTrainingPlan wanted = { .graph = "mlp",
                                   .sizes = MLP,
                                   .dtype = MTF_F64,
                                   .mesh = mesh,
                                   .rules = rules[r],
                                   .rate = RATE };
        MtfRunOptions options = { .steps = 1 };
        train(&session, control, &wanted, &options);
        double sum = 0;
        for (int t = 0; t < (int)session.plan->graph->tensors->len; t++) {
            const MtfTensor *tensor = mtf_graph_tensor(session.plan->graph, t);
            if (tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE)
                sum += changed_squares(&session, t);
        }
        PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, control);
        double norm = sqrt(sum) / RATE;
        mtf_expect(fabs(session.records[0].gradient_norm - norm) < 1e-9 * norm,
                   "%s: %.17g, not %.17g", rules[r], session.records[0].gradient_norm, norm);
        mtf_expect(session.records[0].learning_rate == RATE, "rate %g",
                   session.records[0].learning_rate);
        mtf_session_close(&session);
    }
    assert_true(mtf_verdict());
}

/* The norm of the gradients as the reference computes them from the same inputs. */
static double reference_norm(const MtfSession *session) {
    const MtfGraph *graph = session->plan->graph;
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 0);
    double sum = 0;
    mtf_data_fill_inputs(session->data, session->worker, 1, NULL);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_INPUT) {
            const MtfOperand *slice = mtf_worker_tensor(session->worker, t);
            for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
                reference->values[t][i] = mtf_slice_get(slice, i);
        }
    mtf_reference_run(reference, 0);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        g_autofree char *name = g_strdup_printf("grad/%s", tensor->name);
        int gradient = mtf_graph_find_tensor(graph, name);
        if (tensor->source != MTF_SOURCE_VARIABLE || gradient < 0)
            continue;
        int64_t elements = mtf_graph_elements(graph, &mtf_graph_tensor(graph, gradient)->shape);
        for (int64_t i = 0; i < elements; i++)
            sum += pow(reference->values[gradient][i], 2);
    }
    return sqrt(sum);
}

TEST(with_clipping_the_norm_is_that_of_the_gradients_before_it) {
    char *text[] = { (char[]){ "LICENSE" }, NULL };
    MtfSession session;
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    MtfRunOptions options = { .steps = 1, .data = text };
    MtfTrainingPlan wanted = { .graph = "transformer-small",
                               .sizes = TRANSFORMER,
                               .dtype = MTF_F64,
                               .mesh = mesh,
                               .rules = "d_ff:all;heads:all" };
    train(&session, control, &wanted, &options);
    double norm = session.records[0].gradient_norm;
    mtf_session_close(&session);
    if (rank == 0) {
        MtfSession alone;
        wanted.mesh = "";
        wanted.rules = "";
        MtfRunOptions same = { .steps = 1, .data = text };
        train(&alone, MPI_COMM_SELF, &wanted, &same);
        double truth = reference_norm(&alone);
        mtf_expect(fabs(norm - truth) < 1e-9 * truth, "%.17g, not %.17g", norm, truth);
        mtf_session_close(&alone);
    }
    assert_true(mtf_verdict());
}

/* Complete events of a trace's row. */
static int count_events(const cJSON *root, int row) {
    int n = 0;
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents")) {
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "ph"));
        const cJSON *tid = cJSON_GetObjectItemCaseSensitive(event, "tid");
        n += strcmp(type, "X") == 0 && tid->valueint == row;
    }
    return n;
}

/* The tensors whose exchanges begin in the row's events. */
static int count_tensors(const cJSON *root, int row) {
    int n = 0;
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(root, "traceEvents")) {
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(args, "tensors");
        const cJSON *tid = cJSON_GetObjectItemCaseSensitive(event, "tid");
        n += tensors != NULL && tid->valueint == row ? tensors->valueint : 0;
    }
    return n;
}

/* However many messages they make, the gradients of all variables and the loss are exchanged. */
TEST(a_trace_tells_how_many_tensors_travel_together) {
    MtfSession session;
    char path[256];
    shared_path(path, sizeof path);
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    MtfTrainingPlan wanted = { .graph = "mlp",
                               .sizes = MLP,
                               .mesh = mesh,
                               .rules = "batch:all",
                               .rate = RATE,
                               .bucket_bytes = 1 << 20 };
    MtfRunOptions options = { .steps = 2, .trace_from = 2, .trace_to = 2, .trace_file = path };
    train(&session, control, &wanted, &options);
    const MtfGraph *graph = session.plan->graph;
    int exchanged = 1, messages = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        exchanged += g_str_has_prefix(mtf_graph_tensor(graph, t)->name, "grad/") &&
                     mtf_graph_find_tensor(graph, mtf_graph_tensor(graph, t)->name + 5) >= 0 &&
                     mtf_graph_tensor(
                         graph, mtf_graph_find_tensor(graph, mtf_graph_tensor(graph, t)->name + 5))
                             ->source == MTF_SOURCE_VARIABLE;
    for (int i = 0; i < mtf_program_length(session.program); i++)
        messages += mtf_instruction_calls(session.program, i);
    if (rank == 0) {
        g_autofree char *text = NULL;
        mtf_expect(g_file_get_contents(path, &text, NULL, NULL), "no trace");
        cJSON *root = cJSON_Parse(text);
        for (int row = 0; row < ranks; row++)
            mtf_expect(count_tensors(root, row) == exchanged, "%d tensors in row %d, not %d",
                       count_tensors(root, row), row, exchanged);
        mtf_expect(messages < exchanged, "none travel together");
        cJSON_Delete(root);
        unlink(path);
    }
    mtf_session_close(&session);
    assert_true(mtf_verdict());
}

TEST(a_trace_has_a_row_for_every_rank_with_all_it_ran_in_those_steps) {
    MtfSession session;
    char path[256];
    shared_path(path, sizeof path);
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    MtfTrainingPlan wanted = {
        .graph = "mlp", .sizes = MLP, .mesh = mesh, .rules = "hidden:all", .rate = RATE
    };
    MtfRunOptions options = { .steps = 5, .trace_from = 2, .trace_to = 4, .trace_file = path };
    train(&session, control, &wanted, &options);
    if (rank == 0) {
        g_autofree char *text = NULL;
        g_autoptr(GError) error = NULL;
        mtf_expect(g_file_get_contents(path, &text, NULL, NULL) && mtf_trace_check(text, &error),
                   "%s", error != NULL ? error->message : "no trace");
        cJSON *root = cJSON_Parse(text);
        for (int row = 0; row < ranks; row++)
            mtf_expect(count_events(root, row) == 3 * (mtf_program_length(session.program) + 1),
                       "%d events in row %d", count_events(root, row), row);
        mtf_expect(count_events(root, ranks) == 0, "too many rows");
        cJSON_Delete(root);
        unlink(path);
    }
    mtf_session_close(&session);
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, mtf_tests_run(NULL, NULL));
}
