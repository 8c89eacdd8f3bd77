// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: orders of sums that overflow
// ranks: 1 2 3
/* A variable is made bad in one place, and the search for the first bad value must name it or what
 * reads it first. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/slice.h"
#include "runtime/session/first_nan.h"
#include "runtime/session/session.h"
#include "runtime/support/agreement.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/mpi_verdict.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define FEATURES 7

static MPI_Comm control;
static int rank, ranks;

/* A session of the MLP before its first step. */
static void open_session(MtfSession *session, const MtfRunOptions *options, const char *rules) {
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    MtfTrainingPlan wanted = { .graph = "mlp",
                               .sizes = "batch:12;features:" G_STRINGIFY(
                                   FEATURES) ";hidden:12;targets:5",
                               .mesh = mesh,
                               .rules = rules };
    g_autoptr(GError) error = NULL;
    if (rank == 0) {
        g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, NULL);
        mtf_expect(mtf_plan_save(plan, options->plan, NULL), "no plan");
    }
    mtf_meet(control);
    mtf_expect(mtf_session_load(session, control, options, &error) &&
                   mtf_session_open(session, &error) &&
                   mtf_data_fill_inputs(session->data, session->worker, 1, &error),
               "%s", error != NULL ? error->message : "");
}

/* Writes `value` into the last element that the last rank has of a tensor. */
static void spoil(const MtfSession *session, const char *name, double value) {
    const MtfOperand *slice =
        mtf_worker_tensor(session->worker, mtf_graph_find_tensor(session->plan->graph, name));
    int64_t elements = mtf_slice_elements(slice);
    if (rank == ranks - 1 && elements > 0)
        mtf_slice_set(slice, elements - 1, value);
}

static void expect_cause(const char *rules, const char *name, double value, const char *wanted) {
    char path[256];
    g_snprintf(path, sizeof path, "%s/meshtf-nan-%d.json", g_get_tmp_dir(), (int)getpid());
    PMPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    MtfRunOptions options = { .plan = path, .steps = 1 };
    MtfSession session;
    open_session(&session, &options, rules);
    g_autofree char *before = mtf_first_nan(session.stage, control, 1);
    mtf_expect(before == NULL, "a healthy step is blamed: %s", before);
    spoil(&session, name, value);
    g_autofree char *cause = mtf_first_nan(session.stage, control, 1);
    g_autofree char *there = g_strdup_printf(wanted, ranks - 1);
    mtf_expect(g_strcmp0(cause, there) == 0, "%s, not %s", cause, there);
    mtf_session_close(&session);
    mtf_meet(control);
    unlink(path);
}

TEST(a_variable_that_is_bad_before_the_step_is_named_with_its_rank) {
    expect_cause("hidden:all", "w2", NAN,
                 "variable \"w2\" was not a number before it, first on rank %d");
    assert_true(mtf_verdict());
}

/* With the first feature's row of w1 at 3e38 and the others at 0 each result of the first product is
 * one term, so no order of sums matters: infinite for examples whose first feature exceeds 1.2, and
 * relu lets that through; the second product then adds infinities of both signs, since w2 has both. */
TEST(an_operation_whose_result_is_the_first_bad_one_is_named) {
    char path[256];
    g_snprintf(path, sizeof path, "%s/meshtf-nan-%d.json", g_get_tmp_dir(), (int)getpid());
    PMPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    MtfRunOptions options = { .plan = path, .steps = 1 };
    MtfSession session;
    open_session(&session, &options, "hidden:all");
    const MtfGraph *graph = session.plan->graph;
    const MtfOperand *w1 = mtf_worker_tensor(session.worker, mtf_graph_find_tensor(graph, "w1"));
    int64_t row = mtf_slice_elements(w1) / FEATURES;
    for (int64_t i = 0; i < mtf_slice_elements(w1); i++)
        mtf_slice_set(w1, i, i < row ? 3e38 : 0);
    g_autofree char *cause = mtf_first_nan(session.stage, control, 1);
    const MtfOperation *first = NULL;
    for (int i = 0; first == NULL && i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == mtf_graph_find_tensor(graph, "w2"))
                first = op;
    }
    g_assert(first != NULL);
    g_autofree char *named = g_strdup_printf("that of \"%s\" (einsum) on rank 0", first->name);
    mtf_expect(cause != NULL && strstr(cause, named) != NULL, "%s, not %s", cause, named);
    mtf_session_close(&session);
    mtf_meet(control);
    unlink(path);
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, mtf_tests_run(NULL, NULL));
}
