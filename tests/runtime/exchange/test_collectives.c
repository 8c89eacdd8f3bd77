// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4 5 6 8
/* Resharding by MPI ranks, each pair of placements against the whole tensor, and every call against
 * the witness. What a path does is tested exhaustively without MPI (test_move.c). */
#include "tests/support/cmocka.h"

#include "layouts/program/collective_messages.h"
#include "runtime/executor/executor.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/reshard_program.h"
#include "tests/support/mpi_verdict.h"
#include "tests/support/pmpi_witness.h"

#include <math.h>
#include <string.h>

static MPI_Comm control;
static int rank, ranks;

/* Programs with so many elements in one call at most, so that small tensors go in chunks too. */
#define SMALL_MESSAGE 7

/* One resharding on this rank, ready to run. */
typedef struct {
    MtfLayout *layout;
    MtfProgram *program;
    MtfArena *arena;
    MtfExecutor executor;
    MtfCommunicators *communicators;
    MtfWindowExchange *window;
    MtfMessageExchange *messages;
    int target;
} Case;

/* Whether cases exchange through the window; and by which algorithm those go that can. */
static bool by_window;
static MtfExchangeAlgorithm algorithm = MTF_EXCHANGE_DIRECT;

/* Exchanges that went by messages. */
static int by_messages;

static void case_init(Case *c, const MtfGraph *graph, const MtfMesh *mesh, const MtfPlacement *from,
                      const MtfPlacement *to, int64_t max_message) {
    c->layout = mtf_layout_new(graph, mesh);
    c->program = mtf_reshard_program(graph, c->layout, from, to, &c->target);
    for (int i = 0; i < mtf_program_length(c->program); i++)
        if (mtf_instruction_takes_algorithm(c->program, i, algorithm))
            mtf_program_instruction(c->program, i)->algorithm = algorithm;
    c->arena = mtf_arena_pack(c->program);
    c->communicators = mtf_communicators_new(control, c->program);
    MtfWorker *worker = mtf_worker_new(c->program, c->arena, rank, 1, NULL);
    c->window = by_window ? mtf_window_exchange_new(control, worker, NULL) : NULL;
    c->messages = mtf_message_exchange_new(c->communicators, worker, 2);
    c->executor = (MtfExecutor){ .worker = worker,
                                 .counted = mtf_traffic_new(c->program),
                                 .transport = { .communicators = c->communicators,
                                                .window = c->window,
                                                .messages = c->messages,
                                                .max_message = max_message } };
    c->executor.worker->poison = true;
    const MtfOperand *slice = &c->executor.worker->operands[0];
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
        mtf_slice_set(
            slice, i,
            mtf_reshard_term(slice->dtype, mesh, from, mtf_slice_global_index(slice, i), rank));
}

static void case_clear(Case *c) {
    mtf_window_exchange_free(c->window);
    mtf_message_exchange_free(c->messages);
    mtf_communicators_free(c->communicators);
    mtf_worker_free(c->executor.worker);
    mtf_traffic_free(c->executor.counted);
    mtf_arena_free(c->arena);
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
}

/* Wrong elements here; what is partial is reduced by a call of the checker's own. */
static int64_t wrong_elements(const Case *c, const MtfMesh *mesh, const MtfPlacement *from,
                              const MtfPlacement *to) {
    const MtfOperand *slice = &c->executor.worker->operands[c->target];
    unsigned partial = mtf_placement_partial_axes(to);
    bool maximum = slice->dtype == MTF_BOOL;
    int64_t n = mtf_slice_elements(slice), wrong = 0;
    g_autofree double *values = g_new(double, n + 1);
    MPI_Comm group;
    for (int a = 0; a < mesh->n_axes; a++)
        maximum |= to->axis[a] == MTF_PARTIAL_MAX;
    for (int64_t i = 0; i < n; i++)
        values[i] = mtf_slice_get(slice, i);
    MPI_Comm_split(MPI_COMM_WORLD, mtf_mesh_group_member(mesh, partial, rank, 0), rank, &group);
    PMPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, maximum ? MPI_MAX : MPI_SUM, group);
    MPI_Comm_free(&group);
    for (int64_t i = 0; i < n; i++)
        wrong += values[i] !=
                 mtf_reshard_value(slice->dtype, mesh, from, mtf_slice_global_index(slice, i));
    return wrong;
}

/* The bytes that the moves of one entry take from arena to arena, by their shapes. */
static int64_t copied_bytes(const Case *c, int entry) {
    int64_t bytes = 0;
    for (int i = 0; c->window != NULL && i < mtf_program_length(c->program); i++)
        if (c->executor.counted->entry_of[i] == entry)
            bytes += mtf_window_exchange_bytes(&c->executor.worker->moves[i]);
    return bytes;
}

/* What was counted where calls are issued, what the witness saw, what the program says. Through the
 * window there is nothing for the witness to see. */
static void check_traffic(const Case *c) {
    g_autoptr(MtfTraffic) predicted = mtf_traffic_predict(c->program, rank);
    for (int i = 0; i < predicted->n_entries; i++) {
        const MtfTrafficEntry *entry = &predicted->entries[i];
        const MtfTrafficEntry *counted = &c->executor.counted->entries[i];
        MtfWitnessed seen = mtf_witness_get(entry->kind, entry->axes);
        int calls = by_window && ranks > 1 ? 0 : 1; /* one rank has nobody to share a window with */
        mtf_expect(seen.calls == calls * entry->calls && counted->calls == entry->calls,
                   "calls of %s", mtf_reshard_row(entry->kind)->name);
        mtf_expect(seen.bytes == calls * entry->bytes && counted->bytes == entry->bytes,
                   "bytes of %s", mtf_reshard_row(entry->kind)->name);
        mtf_expect(counted->copied == copied_bytes(c, i), "duplicated of %s",
                   mtf_reshard_row(entry->kind)->name);
    }
    mtf_expect(mtf_witness_strangers() == 0, "calls that no step explains");
}

static void check_pair(const MtfGraph *graph, const MtfMesh *mesh, const MtfPlacement *from,
                       const MtfPlacement *to) {
    Case c;
    case_init(&c, graph, mesh, from, to, MTF_MAX_MESSAGE);
    mtf_witness_reset();
    mtf_executor_run(&c.executor, 0, mtf_program_length(c.program), 1);
    check_traffic(&c);
    g_autofree char *source = mtf_placement_format(graph, mesh, from);
    g_autofree char *target = mtf_placement_format(graph, mesh, to);
    mtf_expect(wrong_elements(&c, mesh, from, to) == 0, "%s -> %s is wrong", source, target);
    case_clear(&c);
}

/* What the witness saw of messages to each rank, what was counted, what the program says. */
static void check_messages(const Case *c) {
    g_autofree int64_t *predicted = g_new0(int64_t, ranks);
    int64_t counted = 0, all = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++) {
        by_messages += mtf_message_exchange_runs(c->messages, i);
        all += mtf_instruction_sent_bytes(c->program, i, rank, predicted);
    }
    for (int i = 0; i < c->executor.counted->n_entries; i++)
        counted += c->executor.counted->entries[i].sent;
    for (int r = 0; r < ranks; r++)
        mtf_expect(mtf_witness_sent(r) == predicted[r], "%d bytes sent to %d, not %d",
                   (int)mtf_witness_sent(r), r, (int)predicted[r]);
    mtf_expect(counted == all, "%d bytes counted, not %d", (int)counted, (int)all);
    mtf_expect(mtf_witness_strangers() == 0, "calls that no step explains");
}

static void check_messages_of_pair(const MtfGraph *graph, const MtfMesh *mesh,
                                   const MtfPlacement *from, const MtfPlacement *to) {
    Case c;
    case_init(&c, graph, mesh, from, to, MTF_MAX_MESSAGE);
    mtf_witness_reset();
    mtf_executor_run(&c.executor, 0, mtf_program_length(c.program), 1);
    check_messages(&c);
    g_autofree char *source = mtf_placement_format(graph, mesh, from);
    g_autofree char *target = mtf_placement_format(graph, mesh, to);
    mtf_expect(wrong_elements(&c, mesh, from, to) == 0, "%s -> %s by %s is wrong", source, target,
               mtf_exchange_algorithm_name(algorithm));
    case_clear(&c);
}

/* Every `stride`-th pair of placements. */
static void check_pairs(const char *text, const int64_t *sizes, MtfDtype dtype, guint stride) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    if (mtf_mesh_size(&mesh) != ranks)
        return;
    void (*check)(const MtfGraph *, const MtfMesh *, const MtfPlacement *, const MtfPlacement *) =
        algorithm == MTF_EXCHANGE_DIRECT ? check_pair : check_messages_of_pair;
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(2, sizes, dtype);
    g_autoptr(GArray) placements = mtf_reshard_placements(&mesh, 2);
    for (guint pair = 0; pair < placements->len * placements->len; pair += stride)
        check(graph, &mesh, &g_array_index(placements, MtfPlacement, pair / placements->len),
              &g_array_index(placements, MtfPlacement, pair % placements->len));
}

static void check_all_pairs(void) {
    check_pairs("r:1", (int64_t[]){ 4, 6 }, MTF_F32, 1);
    check_pairs("r:2", (int64_t[]){ 4, 6 }, MTF_F32, 1);
    check_pairs("r:2", (int64_t[]){ 5, 4 }, MTF_BF16, 1);
    check_pairs("r:3", (int64_t[]){ 5, 4 }, MTF_BF16, 3);
    check_pairs("r:2;c:2", (int64_t[]){ 5, 3 }, MTF_BF16, 7);
    check_pairs("r:3", (int64_t[]){ 5, 4 }, MTF_F64, 1);
    check_pairs("r:4", (int64_t[]){ 5, 3 }, MTF_I32, 1);
    check_pairs("r:2", (int64_t[]){ 5, 4 }, MTF_I64, 1);
    check_pairs("r:3", (int64_t[]){ 5, 4 }, MTF_BOOL, 1);
    check_pairs("r:2;c:2", (int64_t[]){ 5, 3 }, MTF_BOOL, 7);
    check_pairs("r:2;c:2", (int64_t[]){ 4, 8 }, MTF_F32, 5);
    check_pairs("r:2;c:2", (int64_t[]){ 5, 3 }, MTF_F64, 5);
    check_pairs("r:3;c:2", (int64_t[]){ 7, 4 }, MTF_F32, 17);
}

TEST(placements_reach_each_other_by_mpi) {
    check_all_pairs();
    assert_true(mtf_verdict());
}

TEST(placements_reach_each_other_through_the_window) {
    by_window = true;
    check_all_pairs();
    by_window = false;
    assert_true(mtf_verdict());
}

/* The same with the members' blocks ragged, over groups of every size and of several axes. */
TEST(placements_reach_each_other_by_messages_of_every_algorithm) {
    for (algorithm = MTF_EXCHANGE_RING; algorithm < MTF_EXCHANGE_ALGORITHMS; algorithm++) {
        check_pairs("r:2", (int64_t[]){ 5, 4 }, MTF_BF16, 1);
        check_pairs("r:3", (int64_t[]){ 5, 4 }, MTF_F64, 2);
        check_pairs("r:4", (int64_t[]){ 5, 3 }, MTF_I32, 3);
        check_pairs("r:3", (int64_t[]){ 5, 3 }, MTF_I64, 3);
        check_pairs("r:4", (int64_t[]){ 5, 3 }, MTF_BOOL, 3);
        check_pairs("r:2;c:2", (int64_t[]){ 7, 6 }, MTF_F32, 5);
        check_pairs("r:5", (int64_t[]){ 13, 2 }, MTF_F32, 3);
        check_pairs("r:3;c:2", (int64_t[]){ 7, 4 }, MTF_F32, 23);
        check_pairs("r:8", (int64_t[]){ 19, 3 }, MTF_F32, 5);
        check_pairs("r:2;c:2;d:2", (int64_t[]){ 9, 8 }, MTF_F32, 311);
    }
    algorithm = MTF_EXCHANGE_DIRECT;
    mtf_expect(ranks == 1 || by_messages > 0, "nothing went by messages");
    assert_true(mtf_verdict());
}

/* Element e is no number on rank e alone; the others are their rank. */
static void check_maximum(MtfDtype dtype) {
    g_autofree char *text = g_strdup_printf("r:%d", ranks);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(1, (int64_t[]){ ranks + 1 }, dtype);
    MtfPlacement from = mtf_placement_replicated(), to = from;
    from.axis[0] = MTF_PARTIAL_MAX;
    Case c;
    case_init(&c, graph, &mesh, &from, &to, MTF_MAX_MESSAGE);
    const MtfOperand *given = &c.executor.worker->operands[0];
    for (int64_t e = 0; e <= ranks; e++)
        mtf_slice_set(given, e, e == rank ? (double)NAN : (double)rank);
    mtf_executor_run(&c.executor, 0, mtf_program_length(c.program), 1);
    const MtfOperand *largest = &c.executor.worker->operands[c.target];
    for (int64_t e = 0; e < ranks; e++)
        mtf_expect(isnan(mtf_slice_get(largest, e)), "rank %d's NaN is lost", (int)e);
    mtf_expect(mtf_slice_get(largest, ranks) == ranks - 1, "the maximum is wrong");
    case_clear(&c);
}

TEST(a_maximum_keeps_what_is_no_number_wherever_it_stands) {
    for (int window = 0; window < 2; window++) {
        by_window = window;
        check_maximum(MTF_F32);
        check_maximum(MTF_F64);
        check_maximum(MTF_BF16);
    }
    by_window = false;
    assert_true(mtf_verdict());
}

TEST(a_long_allreduce_goes_in_chunks) {
    g_autofree char *text = g_strdup_printf("r:%d", ranks);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(1, (int64_t[]){ 3 * SMALL_MESSAGE + 1 }, MTF_F32);
    MtfPlacement from = mtf_placement_replicated(), to = from;
    from.axis[0] = MTF_PARTIAL_SUM;
    Case c;
    case_init(&c, graph, &mesh, &from, &to, SMALL_MESSAGE);
    mtf_witness_reset();
    mtf_executor_run(&c.executor, 0, mtf_program_length(c.program), 1);
    MtfWitnessed seen = mtf_witness_get(MTF_RESHARD_ALLREDUCE, 1);
    mtf_expect(seen.calls == 4 && seen.bytes == 4 * (3 * SMALL_MESSAGE + 1), "%d calls, %d bytes",
               (int)seen.calls, (int)seen.bytes);
    mtf_expect(wrong_elements(&c, &mesh, &from, &to) == 0, "the sum is wrong");
    case_clear(&c);
    assert_true(mtf_verdict());
}

TEST(the_witness_sees_a_call_that_no_step_explains) {
    double number = 1;
    mtf_witness_reset();
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_DOUBLE, MPI_SUM, control);
    mtf_expect(mtf_witness_strangers() == 0, "control traffic counts");
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    mtf_expect(mtf_witness_strangers() == 1, "a stranger goes unseen");
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, mtf_tests_run(NULL, NULL));
}
