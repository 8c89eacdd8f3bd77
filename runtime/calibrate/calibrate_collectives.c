// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/calibrate_collectives.h"

#include "cost/machine/curve_name.h"
#include "cost/price/price.h"
#include "layouts/base/quantile.h"
#include "layouts/program/algorithm_list.h"
#include "runtime/exchange/collectives.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <math.h>

/* Payloads rise by fours, those of algorithms other than the direct one by sixteens and not as far: at
 * the largest sizes bandwidth alone counts. A kind ends where one call takes longer than SLOWEST. */
#define BYTES_LEAST 64
#define BYTES_MOST (INT64_C(64) << 20)
#define BYTES_MOST_OTHERS (INT64_C(4) << 20)
#define SLOWEST 0.25

/* Calls of one sample: as many as PATIENCE holds, of algorithms other than the direct one FEW. */
#define PATIENCE 0.08
#define FEW 0.02
#define CALLS_LEAST 8
#define CALLS_MOST 100

/* What is measured now: the collective that takes y = f(x) from where it is computed to where it is
 * kept, over the mesh groups:G;outer:O;inner:I, whose groups are O x I ranks. */
typedef struct {
    MPI_Comm control;
    int ranks; /* of a group */
    MtfMesh mesh;
    MtfReshardKind kind;
    MtfExchangeAlgorithm algorithm;
    int64_t bytes; /* about the payload */
    MtfGraph *graph;
    MtfLayout *layout;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
    MtfTransport transport;
    MtfCommunicators *communicators;
} Trial;

enum { AXIS_GROUPS, AXIS_OUTER, AXIS_INNER };
enum { DIM_A, DIM_B, DIM_TERMS };

/* The collective is the second instruction and the last. */
#define COMPUTE 0
#define COLLECTIVE 1

/* a = ranks, so that pieces split along it lie in order, as most do in training; b fills up the
 * payload: an all-to-all sends a rank's part of it, the others all of it. */
static int64_t width_of(const Trial *trial) {
    int64_t parts = mtf_reshard_row(trial->kind)->exchanges ? 1 : trial->ranks;
    int64_t width = MAX(1, trial->bytes / mtf_dtype_bytes(MTF_F32) / parts);
    return (width + trial->ranks - 1) / trial->ranks * trial->ranks;
}

/* y[a, b] = sum over terms of x[terms, a, b], one term a rank; or y = -x. */
static void make_graph(Trial *trial) {
    bool sums = mtf_reshard_row(trial->kind)->reduces;
    MtfShape y = { .rank = 2, .dims = { DIM_A, DIM_B } };
    MtfShape terms = { .rank = 3, .dims = { DIM_TERMS, DIM_A, DIM_B } };
    trial->graph = mtf_graph_new("trial");
    mtf_graph_add_dimension(trial->graph, "a", trial->ranks, NULL);
    mtf_graph_add_dimension(trial->graph, "b", width_of(trial), NULL);
    mtf_graph_add_dimension(trial->graph, "terms", trial->ranks, NULL);
    int x = mtf_graph_add_input(trial->graph, "x", sums ? &terms : &y, MTF_F32, MTF_FEED_FEATURES,
                                NULL);
    MtfNewOperation operation = { .name = "y",
                                  .kind = sums ? MTF_OP_REDUCE_SUM : MTF_OP_NEGATE,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .shape = &y,
                                  .attributes = MTF_NO_ATTRIBUTES };
    mtf_graph_add_operation(trial->graph, &operation, NULL);
}

/* Whether the mesh axis is one of a group's, which has several ranks. */
static bool splits(const Trial *trial, int axis) {
    return axis != AXIS_GROUPS && trial->mesh.axes[axis].size > 1;
}

static void split_tensor(const Trial *trial, MtfPlacement *placement, int dim) {
    for (int axis = 0; axis < trial->mesh.n_axes; axis++)
        if (splits(trial, axis))
            placement->axis[axis] = (int16_t)dim;
}

static void split_operation(const Trial *trial, int dim) {
    MtfIteration iteration;
    mtf_operation_iteration(trial->graph, 0, &iteration);
    for (int axis = 0; axis < trial->mesh.n_axes; axis++)
        for (int i = 0; i < iteration.n; i++)
            if (splits(trial, axis) && iteration.index[i].dim == dim)
                trial->layout->operations[0].axis[axis] = (int8_t)i;
}

/* Splits the work over the ranks of a group, and says where the result is kept and how it gets
 * there; false where the algorithm does no such collective. */
static bool make_layout(Trial *trial) {
    const MtfOperation *op = mtf_graph_operation(trial->graph, 0);
    const MtfReshardRow *row = mtf_reshard_row(trial->kind);
    int split = row->reduces ? DIM_TERMS : DIM_A;
    trial->layout = mtf_layout_new(trial->graph, &trial->mesh);
    split_tensor(trial, &trial->layout->tensors[op->inputs[0]], split);
    split_operation(trial, split);
    MtfPlacement *kept = &trial->layout->tensors[op->outputs[0]];
    if (row->reduces && !row->gathers)
        split_tensor(trial, kept, DIM_A);
    if (row->exchanges)
        split_tensor(trial, kept, DIM_B);
    mtf_layout_take_algorithm(trial->graph, trial->layout, (int)trial->algorithm, 0);
    return trial->layout->execution.algorithms[COLLECTIVE] == trial->algorithm;
}

static bool make_worker(Trial *trial, GError **error) {
    int rank;
    mtf_mpi_require(MPI_Comm_rank(trial->control, &rank), "MPI_Comm_rank");
    trial->program = mtf_lower(trial->graph, trial->layout);
    g_assert(mtf_program_length(trial->program) == COLLECTIVE + 1);
    g_assert(mtf_program_instruction(trial->program, COLLECTIVE)->reshard.kind == trial->kind);
    trial->arena = mtf_arena_pack(trial->program);
    trial->worker = mtf_worker_new(trial->program, trial->arena, rank, 0, error);
    return trial->worker != NULL;
}

/* Makes all but what moves; *applies is whether there is anything to be measured. */
static bool trial_make(Trial *trial, bool *applies, GError **error) {
    GError *local = NULL;
    make_graph(trial);
    *applies = make_layout(trial);
    if (!*applies)
        return true;
    make_worker(trial, &local);
    if (!mtf_agree(trial->control, local, error))
        return false;
    trial->communicators = mtf_communicators_new(trial->control, trial->program);
    trial->transport =
        (MtfTransport){ .communicators = trial->communicators,
                        .window = mtf_window_exchange_new(trial->control, trial->worker, NULL),
                        .messages =
                            mtf_message_exchange_new(trial->communicators, trial->worker, 1),
                        .max_message = MTF_MAX_MESSAGE };
    return true;
}

static void trial_clear(Trial *trial) {
    mtf_message_exchange_free(trial->transport.messages);
    mtf_window_exchange_free(trial->transport.window);
    mtf_communicators_free(trial->communicators);
    mtf_worker_free(trial->worker);
    mtf_arena_free(trial->arena);
    mtf_program_free(trial->program);
    mtf_layout_free(trial->layout);
    mtf_graph_free(trial->graph);
}

/* One call's seconds on this rank, all starting together, of what each has just computed: a rank
 * does not find the others' part in its own cache, where the call before has left it. */
static double call_seconds(const Trial *trial) {
    MtfTrafficEntry counted = { 0 };
    mtf_worker_run_kernel(trial->worker, COMPUTE, 1);
    mtf_worker_begin_move(trial->worker, COLLECTIVE);
    mtf_mpi_require(MPI_Barrier(trial->control), "MPI_Barrier");
    mtf_collective_issue(&trial->transport, &(MtfExchanges){ 0 }, COLLECTIVE,
                         &trial->worker->moves[COLLECTIVE], &counted);
    mtf_worker_end_move(trial->worker, COLLECTIVE);
    return counted.seconds;
}

/* The first quarter of many calls, each the mean over ranks: the rank that comes last waits for
 * nobody. How many calls is agreed upon, since all must call as often. Elapsed time holds whatever
 * else the machine does meanwhile, so not the median; but the least is what no whole step comes to.
 */
static double trial_seconds(const Trial *trial) {
    double samples[CALLS_MOST] = { 0 };
    int n = mtf_mesh_size(&trial->mesh);
    double patience = trial->algorithm == MTF_EXCHANGE_DIRECT ? PATIENCE : FEW;
    call_seconds(trial);
    double once = mtf_agree_largest(trial->control, call_seconds(trial));
    int calls = (int)CLAMP(patience / once, CALLS_LEAST, CALLS_MOST);
    for (int i = 0; i < calls; i++)
        samples[i] = call_seconds(trial);
    mtf_agree_sums(trial->control, samples, calls);
    return mtf_first_quarter(samples, calls) / n;
}

static void add_sample(const Trial *trial, MtfSamples *samples, double seconds) {
    MtfCurveName name = { .kind = MTF_CURVE_COLLECTIVE,
                          .ranks = trial->ranks,
                          .algorithm = trial->algorithm };
    mtf_reshard_collective_kind(trial->kind, &name.collective);
    g_autofree char *text = mtf_curve_name_format(&name);
    int64_t payload = mtf_program_instruction(trial->program, COLLECTIVE)->payload_bytes;
    mtf_samples_add(samples, text, (double)payload, seconds);
}

/* Measures one size; *seconds becomes what it took on the slowest rank, or infinite where the
 * algorithm does no such collective. */
static bool measure_size(Trial trial, MtfSamples *samples, double *seconds, GError **error) {
    bool applies = false, made = trial_make(&trial, &applies, error);
    *seconds = INFINITY;
    if (made && applies) {
        double own = trial_seconds(&trial);
        add_sample(&trial, samples, own);
        *seconds = mtf_agree_largest(trial.control, own);
    }
    trial_clear(&trial);
    return made;
}

static bool measure_sizes(Trial trial, MtfSamples *samples, GError **error) {
    bool direct = trial.algorithm == MTF_EXCHANGE_DIRECT;
    int64_t most = direct ? BYTES_MOST : BYTES_MOST_OTHERS;
    double seconds = 0;
    for (; trial.bytes <= most && seconds <= SLOWEST; trial.bytes *= direct ? 4 : 16)
        if (!measure_size(trial, samples, &seconds, error))
            return false;
    return true;
}

/* The outer of two axes of `ranks` ranks together: their smallest divisor, or 1 where they are a prime. */
static int outer_axis(int ranks) {
    int divisor = 2;
    while (ranks % divisor != 0)
        divisor++;
    return divisor < ranks ? divisor : 1;
}

/* The mesh of all `n` ranks in groups of `ranks`; of two axes where the collective goes over both at
 * once, as those do that end alike everywhere. */
static MtfMesh mesh_of(int n, int ranks, MtfReshardKind kind) {
    MtfMesh mesh;
    int outer = mtf_reshard_row(kind)->gathers ? outer_axis(ranks) : 1;
    g_autofree char *text =
        g_strdup_printf("groups:%d;outer:%d;inner:%d", n / ranks, outer, ranks / outer);
    mtf_mesh_parse(text, 0, &mesh, NULL);
    return mesh;
}

static bool measure_groups(MPI_Comm control, int n, int ranks, MtfSamples *samples,
                           GError **error) {
    static const MtfReshardKind kinds[] = { MTF_RESHARD_ALLREDUCE, MTF_RESHARD_REDUCE_SCATTER,
                                            MTF_RESHARD_ALLGATHER, MTF_RESHARD_ALLTOALL };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        for (int algorithm = 0; algorithm < MTF_EXCHANGE_ALGORITHMS; algorithm++) {
            Trial trial = { .control = control,
                            .mesh = mesh_of(n, ranks, kinds[i]),
                            .ranks = ranks,
                            .kind = kinds[i],
                            .algorithm = (MtfExchangeAlgorithm)algorithm,
                            .bytes = BYTES_LEAST };
            if (!measure_sizes(trial, samples, error))
                return false;
        }
    return true;
}

bool mtf_calibrate_collectives(MPI_Comm control, MtfSamples *samples, GError **error) {
    int n;
    mtf_mpi_require(MPI_Comm_size(control, &n), "MPI_Comm_size");
    for (int ranks = 2; ranks <= n; ranks++)
        if (n % ranks == 0 && !measure_groups(control, n, ranks, samples, error))
            return false;
    return true;
}
