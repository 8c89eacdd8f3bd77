// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/verify.h"

#include "layouts/graph/operation_table.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/session/session_checkpoints.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <math.h>
#include <string.h>

/* Bytes of a variable that travel in one message. */
#define PIECE_BYTES (INT64_C(1) << 24)

/* The run on one processor; rank 0 has all of it, the others only the layout and program, which
 * tell sizes. */
typedef struct {
    MtfStageRun *run;
    const MtfWorker *worker;
    double *losses;
} Single;

static void single_init(Single *single, const MtfSession *session) {
    MtfMesh one = { 0 };
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->graph = mtf_graph_copy(mtf_session_graph(session));
    plan->layout = mtf_layout_new(plan->graph, &one);
    *single = (Single){ .run = mtf_stage_run_new(mtf_pipeline_plan_whole(plan), 0, NULL) };
    single->losses = g_new0(double, session->options->steps);
}

static void single_clear(Single *single) {
    mtf_stage_run_free(single->run);
    g_free(single->losses);
}

static bool single_open(Single *single, const MtfSession *session, GError **error) {
    MtfStageHow how = { .seed = (uint64_t)session->options->seed, .data = session->data };
    if (!mtf_stage_run_make_workers(single->run, how.seed, error))
        return false;
    MtfWorker *worker = single->run->chunks[0].slots[0].worker;
    single->worker = worker;
    mtf_stage_run_open(single->run, MPI_COMM_SELF, &how);
    mtf_worker_initialise(worker, how.seed);
    MtfCheckpointed what = { .control = MPI_COMM_SELF, .worker = worker };
    g_autoptr(GPtrArray) lacking = g_ptr_array_new_with_free_func(g_free);
    what.lacking = session->options->new_head ? lacking : NULL;
    return mtf_session_read_weights(session, &what, error);
}

static bool single_run(Single *single, const MtfSession *session, GError **error) {
    if (!single_open(single, session, error))
        return false;
    int loss = mtf_session_graph(session)->loss;
    for (int64_t step = 1; step <= session->options->steps; step++) {
        if (!mtf_stage_run_compute(single->run, step, error))
            return false;
        mtf_stage_run_update(single->run, step);
        if (loss >= 0)
            single->losses[step - 1] = mtf_slice_get(mtf_worker_tensor(single->worker, loss), 0);
    }
    return true;
}

/* The largest difference seen so far, and the largest value it is relative to. */
typedef struct {
    double difference, magnitude;
} Comparison;

static void compare(Comparison *comparison, double run, double single) {
    double difference = fabs(run - single);
    /* Not-a-number on either side is as different as can be. */
    comparison->difference =
        fmax(comparison->difference, isnan(difference) ? INFINITY : difference);
    comparison->magnitude = fmax(comparison->magnitude, fabs(single));
}

static double relative(const Comparison *comparison) {
    if (comparison->difference == 0)
        return 0;
    return comparison->difference / comparison->magnitude;
}

/* Compares the elements of this rank's slice that lie in `values`, which holds the whole tensor's
 * elements from `first` on. */
static void compare_piece(Comparison *comparison, const MtfOperand *slice, const MtfOperand *values,
                          int64_t first, int64_t count) {
    int64_t elements = mtf_slice_elements(slice);
    for (int64_t i = 0; i < elements; i++) {
        int64_t index = mtf_slice_global_index(slice, i);
        if (index >= first && index < first + count)
            compare(comparison, mtf_slice_get(slice, i), mtf_slice_get(values, index - first));
    }
}

/* This rank's slice of a variable of the whole graph; NULL where its stages do not hold it. */
static const MtfOperand *own_slice(const MtfSession *session, int tensor) {
    const char *name = mtf_graph_tensor(mtf_session_graph(session), tensor)->name;
    for (int c = 0; c < session->stage->n_chunks; c++) {
        const MtfWorker *worker = session->stage->chunks[c].slots[0].worker;
        int own = mtf_graph_find_tensor(worker->program->graph, name);
        if (own >= 0 &&
            mtf_graph_tensor(worker->program->graph, own)->source == MTF_SOURCE_VARIABLE)
            return mtf_worker_tensor(worker, own);
    }
    return NULL;
}

/* Rank 0 shows its whole variable to all, piece by piece. */
static double compare_variable(const MtfSession *session, const Single *single, int tensor,
                               void *piece) {
    const MtfTensor *t = mtf_graph_tensor(mtf_session_graph(session), tensor);
    const MtfOperand *slice = own_slice(session, tensor);
    int64_t element_bytes = mtf_dtype_bytes(t->dtype);
    int64_t total = mtf_graph_elements(mtf_session_graph(session), &t->shape);
    int64_t most = PIECE_BYTES / element_bytes;
    MtfOperand values = { .data = piece, .dtype = t->dtype };
    Comparison comparison = { 0 };
    for (int64_t first = 0; first < total; first += most) {
        int64_t count = MIN(total - first, most);
        void *source = piece;
        if (session->rank == 0)
            source =
                (char *)mtf_worker_tensor(single->worker, tensor)->data + first * element_bytes;
        mtf_mpi_require(
            MPI_Bcast(source, (int)(count * element_bytes), MPI_BYTE, 0, session->control),
            "MPI_Bcast");
        values.data = source;
        if (slice != NULL)
            compare_piece(&comparison, slice, &values, first, count);
    }
    comparison.difference = mtf_agree_largest(session->control, comparison.difference);
    comparison.magnitude = mtf_agree_largest(session->control, comparison.magnitude);
    return relative(&comparison);
}

/* The largest relative difference of a step's loss; on rank 0. */
static double compare_losses(const MtfSession *session, const Single *single) {
    double largest = 0;
    for (int64_t i = 0; i < session->trained; i++) {
        Comparison comparison = { 0 };
        compare(&comparison, session->records[i].loss, single->losses[session->done + i]);
        largest = fmax(largest, relative(&comparison));
    }
    return largest;
}

/* ---- Zero by construction ---------------------------------------------------------------------- */

/* Attention's shares do not change when one number is added to all scores of a query, so what adds the
 * same to the key of every position has no gradient: rounding alone moves it, and in no two runs
 * alike. `tensor` is the gradient of such a variable where it is a sum, over the positions that are
 * looked at, of what attention_grad gives back for keys; of a ring, in all its turns. */
static bool sums_key_gradients(const MtfGraph *graph, int tensor, const MtfShape *shape) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (t->producer < 0)
        return false;
    const MtfOperation *op = mtf_graph_operation(graph, t->producer);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (row->products == MTF_PRODUCTS_ATTENTION_GRAD)
        return op->n_outputs > 1 && op->outputs[1] == tensor && op->attributes.softcap == 0 &&
               mtf_shape_find(shape, op->attributes.memory) < 0;
    bool sums = row->reduction == MTF_REDUCE_SUM && op->n_inputs == 1;
    bool renames = op->attributes.from >= 0 && op->attributes.to != op->attributes.memory;
    bool rings = row->dims == MTF_DIMS_RESHAPED || row->linearity == MTF_LINEAR_JOINT;
    if (!sums && !renames && !rings && !row->converts && !row->accumulates)
        return false;
    for (int k = 0; k < op->n_inputs; k++)
        if (!sums_key_gradients(graph, op->inputs[k], shape))
            return false;
    return true;
}

static bool has_no_gradient(const MtfGraph *graph, int variable) {
    int gradient = mtf_graph_find_gradient(graph, variable);
    return gradient >= 0 &&
           sums_key_gradients(graph, gradient, &mtf_graph_tensor(graph, variable)->shape);
}

/* The variable whose update reads a variable of the optimizer; -1: none. */
static int updated_by(const MtfGraph *graph, int state) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        for (int k = 1; mtf_operation_row(op->kind)->updates && k < op->n_inputs; k++)
            if (op->inputs[k] == state)
                return op->inputs[0];
    }
    return -1;
}

static bool is_left_out(const MtfGraph *graph, int variable) {
    const MtfTensor *tensor = mtf_graph_tensor(graph, variable);
    if (tensor->memory == MTF_MEMORY_VARIABLE)
        return has_no_gradient(graph, variable);
    int of = updated_by(graph, variable);
    return of >= 0 && has_no_gradient(graph, of);
}

/* ---- The table --------------------------------------------------------------------------------- */

/* Model variables one by one; of the optimizer's only the one that differs most. Of a plan without a loss its
 * results: nothing else changes. */
static double append_variables(GString *text, const MtfSession *session, const Single *single,
                               void *piece) {
    const MtfGraph *graph = mtf_session_graph(session);
    MtfMemoryKind memory = graph->loss >= 0 ? MTF_MEMORY_VARIABLE : MTF_MEMORY_OUTPUT;
    double worst = 0, largest = 0;
    const char *worst_name = NULL;
    int left_out = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_VARIABLE || (graph->loss < 0 && tensor->memory != memory))
            continue;
        if (is_left_out(graph, t)) {
            left_out += tensor->memory == memory;
            continue;
        }
        double difference = compare_variable(session, single, t, piece);
        largest = fmax(largest, tensor->memory == memory ? difference : 0);
        if (tensor->memory == memory) {
            g_string_append_printf(text, "  %10.3g  %s\n", difference, tensor->name);
        } else if (worst_name == NULL || difference > worst) {
            worst = difference;
            worst_name = tensor->name;
        }
    }
    if (worst_name != NULL)
        g_string_append_printf(text, "  %10.3g  %s, the most of all optimizer state\n", worst,
                               worst_name);
    if (left_out > 0)
        g_string_append_printf(
            text,
            "  left out    %d whose gradient is zero by construction (added to all "
            "keys of attention)\n",
            left_out);
    return largest;
}

/* How far losses may differ: orders of sums differ, and each rounds (design.md, law 2). */
static double tolerance_of(const MtfPlan *plan) {
    return strcmp(plan->precision, "f64") == 0    ? 1e-10
           : strcmp(plan->precision, "bf16") == 0 ? 3e-2
                                                  : 1e-4;
}

static bool append_verdict(GString *text, const MtfSession *session, double loss, double variable) {
    double tolerance = tolerance_of(session->plan);
    g_string_append_printf(text,
                           "  verdict     %s: losses differ by %.3g of at most %.3g that rounding "
                           "in %s may do, variables by %.3g\n",
                           loss <= tolerance ? "the same training as on one processor"
                                             : "NOT the same training as on one processor",
                           loss, tolerance, session->plan->precision, variable);
    return loss <= tolerance;
}

static bool append_result_verdict(GString *text, const MtfSession *session, double result) {
    double tolerance = tolerance_of(session->plan);
    g_string_append_printf(
        text, "  verdict     %s: they differ by %.3g of at most %.3g that rounding in %s may do\n",
        result <= tolerance ? "the same results as on one processor"
                            : "NOT the same results as on one processor",
        result, tolerance, session->plan->precision);
    return result <= tolerance;
}

static char *make_table(const MtfSession *session, const Single *single, bool *same) {
    GString *text = g_string_new("\n  largest relative difference from the same steps on one "
                                 "processor\n");
    g_autofree void *piece = g_malloc(PIECE_BYTES);
    if (mtf_session_graph(session)->loss < 0) {
        *same =
            append_result_verdict(text, session, append_variables(text, session, single, piece));
        return g_string_free(text, FALSE);
    }
    double loss =
        mtf_agree_first(session->control, session->rank == 0 ? compare_losses(session, single) : 0);
    g_string_append_printf(text, "  %10.3g  loss\n", loss);
    double variable = append_variables(text, session, single, piece);
    *same = append_verdict(text, session, loss, variable);
    return g_string_free(text, FALSE);
}

char *mtf_verify(const MtfSession *session, bool *same, GError **error) {
    Single single;
    bool equal = false;
    GError *local = NULL;
    char *table = NULL;
    single_init(&single, session);
    if (session->rank == 0)
        single_run(&single, session, &local);
    if (mtf_agree(session->control, local, error))
        table = make_table(session, &single, &equal);
    single_clear(&single);
    if (table != NULL && same != NULL)
        *same = equal;
    return table;
}
