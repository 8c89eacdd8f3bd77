// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4 6
// seconds: 240
/* Whole runs, from a plan file to the last step: what is sent is what the plan says, by the witness
 * of PMPI wrappers, and what goes wrong is one sentence on every rank. */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/session/run_summary.h"
#include "runtime/session/session.h"
#include "runtime/session/verify.h"
#include "runtime/support/agreement.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/mpi_verdict.h"
#include "tests/support/pmpi_witness.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define STEPS 3
#define MLP "batch:10;features:7;hidden:12;targets:5"

static MPI_Comm control;
static int rank, ranks;

/* A new path, the same on all ranks. */
static void shared_path(char *path, gsize size) {
    static int files;
    g_snprintf(path, size, "%s/meshtf-session-%d-%d.json", g_get_tmp_dir(), (int)getpid(), files++);
    PMPI_Bcast(path, (int)size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Rank 0 writes the plan, or says why it has none, where all ranks find it. */
static void save_plan(const MtfPlan *plan, const char *path, GError *why) {
    GError *error = NULL;
    mtf_expect(plan != NULL && mtf_plan_save(plan, path, &error), "no plan: %s",
               why != NULL     ? why->message
               : error != NULL ? error->message
                               : "");
    g_clear_error(&error);
}

static void write_plan(const MtfTrainingPlan *wanted, char *path, gsize size) {
    g_autoptr(GError) error = NULL;
    shared_path(path, size);
    if (rank == 0) {
        g_autoptr(MtfPlan) plan = mtf_training_plan(wanted, &error);
        save_plan(plan, path, error);
    }
    mtf_meet(control);
}

/* `data` is one file or NULL; the options last until the next are made. */
static MtfRunOptions make_options(char *plan, const char *data) {
    static char *files[2];
    files[0] = (char *)(guintptr)data;
    return (MtfRunOptions){ .plan = plan, .data = data != NULL ? files : NULL, .steps = STEPS };
}

/* Runs a plan to its end; false with an error when it fails. */
static bool run(MtfSession *session, const MtfRunOptions *options, GError **error) {
    return mtf_session_load(session, control, options, error) && mtf_session_open(session, error) &&
           mtf_session_train(session, error);
}

/* The collective whose function of MPI a kind goes by: a halo and a permute are all-to-alls of which most
 * messages are empty. */
static MtfReshardKind called_as(MtfReshardKind kind) {
    return mtf_reshard_row(kind)->margins ? MTF_RESHARD_ALLTOALL : kind;
}

/* What is predicted of all entries that go by the same function over the same axes. */
static MtfWitnessed predicted_like(const MtfTraffic *predicted, const MtfTrafficEntry *like) {
    MtfWitnessed sum = { 0, 0 };
    for (int i = 0; i < predicted->n_entries; i++) {
        const MtfTrafficEntry *entry = &predicted->entries[i];
        if (entry->axes != like->axes || called_as(entry->kind) != called_as(like->kind))
            continue;
        sum.calls += entry->calls;
        sum.bytes += entry->bytes;
    }
    return sum;
}

/* Every rank's calls and bytes, by collective and axes: the witness's against the program's. Of
 * what goes through the window it sees nothing. */
static void check_traffic(const MtfSession *session, const char *rules) {
    g_autoptr(MtfTraffic) predicted = mtf_traffic_predict(session->program, rank);
    int times = session->options->only_mpi ? STEPS : 0;
    for (int i = 0; i < predicted->n_entries; i++) {
        const MtfTrafficEntry *entry = &predicted->entries[i];
        MtfWitnessed seen = mtf_witness_get(called_as(entry->kind), entry->axes);
        MtfWitnessed wanted = predicted_like(predicted, entry);
        mtf_expect(seen.calls == wanted.calls * times && seen.bytes == wanted.bytes * times,
                   "%s: %s over %u: %d calls and %d bytes, not %d and %d", rules,
                   mtf_reshard_row(entry->kind)->name, entry->axes, (int)seen.calls,
                   (int)seen.bytes, (int)wanted.calls * times, (int)wanted.bytes * times);
    }
    int64_t all = 0;
    for (int kind = 0; kind < MTF_RESHARD_KINDS; kind++)
        for (unsigned axes = 0; axes < 8; axes++)
            all += mtf_witness_get((MtfReshardKind)kind, axes).calls;
    for (int i = 0; i < predicted->n_entries; i++)
        all -= predicted->entries[i].calls * times;
    mtf_expect(all == 0, "%s: %d calls too many", rules, (int)all);
    mtf_expect(mtf_witness_strangers() == 0, "%s: calls that no step explains", rules);
}

static bool reads_text(const MtfTrainingPlan *wanted) {
    return strcmp(wanted->graph, "mlp") != 0 && strcmp(wanted->graph, "convnet-small") != 0;
}

#define TRANSFORMER(mesh_text, rules_text)                                              \
    {                                                                                   \
        .graph = "transformer-small", .sizes = MTF_TINY_TRANSFORMER, .mesh = mesh_text, \
        .rules = rules_text                                                             \
    }
#define SMALL_MLP(mesh_text, rules_text) \
    { .graph = "mlp", .sizes = MLP, .dtype = MTF_F64, .mesh = mesh_text, .rules = rules_text }

#define MICRO(count, mesh_text, rules_text)                                                     \
    {                                                                                           \
        .graph = "mlp", .sizes = MLP, .dtype = MTF_F64, .mesh = mesh_text, .rules = rules_text, \
        .microbatches = count, .seed = 7                                                        \
    }

/* Any placement for any tensor: every collective occurs. */
#define FREE(mesh_text, drawn) \
    { .graph = "mlp", .sizes = MLP, .mesh = mesh_text, .rules = "free", .seed = drawn }

/* Half the bytes: what is counted must be 2 an element. */
#define NARROW(graph_name, size_list, mesh_text, rules_text)                           \
    {                                                                                  \
        .graph = graph_name, .sizes = size_list, .dtype = MTF_BF16, .mesh = mesh_text, \
        .rules = rules_text, .seed = 8                                                 \
    }

/* Space split: raggedly, into more parts than windows, over several axes. */
#define CONVNET(mesh_text, rules_text, drawn)                                             \
    {                                                                                     \
        .graph = "convnet-small", .sizes = "batch:3;features:3;deep:4", .dtype = MTF_F64, \
        .mesh = mesh_text, .rules = rules_text, .seed = drawn                             \
    }
/* Keys and values handed on round a ring, by ragged parts too. */
#define RING(parts, type, mesh_text, rules_text)                                               \
    {                                                                                          \
        .graph = "gpt-small", .sizes = MTF_TINY_TRANSFORMER, .dtype = type, .mesh = mesh_text, \
        .ring = parts, .rules = rules_text                                                     \
    }
#define ALONG(axis) \
    "length:" axis ";memory_length:" axis ";length/parts:" axis ";length/turned:" axis
#define HEIGHT "height:rows;height_1:rows;height_2:rows;height_3:rows;height_4:rows"
#define WIDTH "width:cols;width_1:cols;width_2:cols;width_4:cols"

static const MtfTrainingPlan plans[] = {
    CONVNET("rows:2", HEIGHT, 0),
    CONVNET("rows:3", HEIGHT, 0),
    CONVNET("rows:3;cols:2", HEIGHT ";" WIDTH, 0),
    CONVNET("rows:2;cols:2", "free", 10),
    SMALL_MLP("rows:1", ""),
    MICRO(5, "rows:1", ""),
    MICRO(2, "all:2", "batch:all"),
    MICRO(5, "all:3", "hidden:all"),
    MICRO(2, "rows:2;cols:2", "batch:rows;hidden:cols"),
    MICRO(2, "rows:3;cols:2", "free"),
    TRANSFORMER("all:2", "batch:all"),
    TRANSFORMER("all:2", "heads:all;d_ff:all;vocab:all"),
    SMALL_MLP("all:2", "hidden:all"),
    TRANSFORMER("all:3", "d_ff:all;d_kv:all"),
    SMALL_MLP("all:3", "features:all;targets:all"),
    TRANSFORMER("rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
    TRANSFORMER("rows:2;cols:2", "length:rows;d_model:cols"),
    TRANSFORMER("all:4", "batch:all"),
    SMALL_MLP("rows:2;cols:2", "batch:rows;hidden:cols"),
    SMALL_MLP("rows:2;cols:2", "features:cols;hidden:rows"),
    TRANSFORMER("rows:3;cols:2", "batch:rows;d_ff:cols;d_kv:cols"),
    SMALL_MLP("rows:2;cols:3", "batch:cols;hidden:rows"),
    RING(4, MTF_F64, "rows:1", ""),
    RING(2, MTF_F64, "all:2", ALONG("all")),
    RING(8, MTF_F64, "all:2", ALONG("all")),
    RING(4, MTF_F64, "all:3", ALONG("all")),
    RING(8, MTF_F32, "all:3", ALONG("all")),
    RING(4, MTF_BF16, "all:4", ALONG("all")),
    RING(2, MTF_F64, "rows:2;cols:2", ALONG("rows") ";heads:cols"),
    RING(8, MTF_F64, "all:6", ALONG("all")),
    FREE("all:2", 1),
    FREE("all:3", 2),
    FREE("rows:2;cols:2", 3),
    FREE("rows:2;cols:2", 4),
    FREE("rows:3;cols:2", 5),
    TRANSFORMER("all:2", "searched"),
    TRANSFORMER("all:3", "searched small"),
    TRANSFORMER("rows:2;cols:2", "searched"),
    TRANSFORMER("rows:2;cols:2", "searched small"),
    SMALL_MLP("rows:3;cols:2", "searched"),
    MICRO(2, "rows:2;cols:2", "searched"),
    NARROW("mlp", MLP, "all:2", "hidden:all"),
    NARROW("transformer-small", MTF_TINY_TRANSFORMER, "all:3", "batch:all"),
    NARROW("transformer-small", MTF_TINY_TRANSFORMER, "rows:2;cols:2",
           "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
    NARROW("mlp", MLP, "rows:2;cols:2", "free"),
};

/* More than all small exchanges of these plans together. */
#define BUCKET (1 << 20)

/* A plan of the table, with exchanges that travel one by one and with joined ones: where it is written, and what runs of it leave. */
typedef struct {
    char path[256];
    char *bits[2]; /* through the window, by MPI's messages alone; NULL: not run yet */
    int exchanges;
    int under_way; /* exchanges that others may run beside */
} Kept;

static Kept kept[G_N_ELEMENTS(plans)][2];

static bool is_of_all_ranks(const MtfTrainingPlan *plan) {
    MtfMesh mesh;
    return mtf_mesh_parse(plan->mesh, 0, &mesh, NULL) && mtf_mesh_size(&mesh) == ranks;
}

/* Writes a plan that was written with its exchanges joined. */
static void write_joined(const char *alone, char *path, gsize size) {
    g_autoptr(GError) error = NULL;
    shared_path(path, size);
    if (rank == 0) {
        g_autoptr(MtfPlan) plan = mtf_plan_load(alone, &error);
        if (plan != NULL) {
            plan->layout->execution.bucket_bytes = BUCKET;
            mtf_training_plan_predict(plan, &error);
        }
        save_plan(plan, path, error);
    }
    mtf_meet(control);
}

static Kept *kept_plan(int plan, bool joined) {
    Kept *k = &kept[plan][joined];
    if (k->path[0] == '\0' && joined)
        write_joined(kept_plan(plan, false)->path, k->path, sizeof k->path);
    else if (k->path[0] == '\0')
        write_plan(&plans[plan], k->path, sizeof k->path);
    return k;
}

static void remove_plans(void) {
    for (gsize i = 0; i < G_N_ELEMENTS(plans); i++)
        for (int joined = 0; joined < 2; joined++) {
            Kept *k = &kept[i][joined];
            if (rank == 0 && k->path[0] != '\0')
                unlink(k->path);
            g_free(k->bits[0]);
            g_free(k->bits[1]);
        }
}

/* A digest of what this rank holds of the variables. */
static char *held_bits(const MtfSession *session) {
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    for (int t = 0; t < (int)session->plan->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(session->plan->graph, t);
        const MtfOperand *slice = mtf_worker_tensor(session->worker, t);
        if (tensor->source == MTF_SOURCE_VARIABLE)
            g_checksum_update(checksum, slice->data,
                              (gssize)(mtf_slice_elements(slice) * mtf_dtype_bytes(slice->dtype)));
    }
    return g_strdup(g_checksum_get_string(checksum));
}

static void count_exchanges(const MtfProgram *program, Kept *k) {
    k->exchanges = k->under_way = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        k->exchanges += mtf_instruction_calls(program, i);
        k->under_way += mtf_program_instruction(program, i)->wait_before > 0;
    }
}

/* Runs a few steps, in which is sent what the plan says; returns what the rank holds then, NULL where it fails. */
static char *train(int plan, Kept *k, bool only_mpi, bool no_overlap) {
    MtfSession session;
    g_autoptr(GError) error = NULL;
    MtfRunOptions options = make_options(k->path, reads_text(&plans[plan]) ? "LICENSE" : NULL);
    options.only_mpi = only_mpi;
    options.no_overlap = no_overlap;
    mtf_witness_reset();
    bool done = run(&session, &options, &error);
    mtf_expect(done, "%s: %s", plans[plan].rules, error != NULL ? error->message : "");
    char *bits = NULL;
    if (done) {
        check_traffic(&session, plans[plan].rules);
        g_autofree char *table = mtf_run_summary(&session);
        mtf_expect(strstr(table, "NOT") == NULL, "%s", table);
        mtf_expect(strstr(table, "equal to the byte") != NULL, "%s", table);
        count_exchanges(session.program, k);
        bits = held_bits(&session);
    }
    mtf_session_close(&session);
    return bits;
}

/* The same, once for all tests. */
static const char *trained_bits(int plan, bool joined, bool only_mpi) {
    Kept *k = kept_plan(plan, joined);
    if (k->bits[only_mpi] == NULL)
        k->bits[only_mpi] = train(plan, k, only_mpi, false);
    return k->bits[only_mpi];
}

static void run_plans(bool only_mpi) {
    for (int i = 0; i < (int)G_N_ELEMENTS(plans); i++)
        for (int joined = 0; is_of_all_ranks(&plans[i]) && joined < 2; joined++)
            trained_bits(i, joined, only_mpi);
}

TEST(a_run_sends_what_its_plan_says) {
    run_plans(true);
    assert_true(mtf_verdict());
}

TEST(through_the_window_no_message_is_sent) {
    run_plans(false);
    assert_true(mtf_verdict());
}

/* Both ways of exchanging, while computing and not. */
TEST(exchanges_that_stay_under_way_leave_the_same_bits) {
    int under_way = 0;
    for (int i = 0; i < (int)G_N_ELEMENTS(plans); i++)
        for (int only_mpi = 0; is_of_all_ranks(&plans[i]) && only_mpi < 2; only_mpi++) {
            const char *with = trained_bits(i, false, only_mpi);
            Kept *k = kept_plan(i, false);
            g_autofree char *without = train(i, k, only_mpi, true);
            mtf_expect(g_strcmp0(with, without) == 0, "%s: other bits", plans[i].rules);
            under_way += k->under_way;
        }
    mtf_expect(ranks == 1 || under_way > 0, "none was under way");
    assert_true(mtf_verdict());
}

/* Sums are taken element by element in the order of the ranks, whatever travels beside them. */
TEST(joined_exchanges_leave_the_same_bits) {
    int saved = 0;
    for (int i = 0; i < (int)G_N_ELEMENTS(plans); i++) {
        if (!is_of_all_ranks(&plans[i]))
            continue;
        const char *alone = trained_bits(i, false, false), *together = trained_bits(i, true, false);
        mtf_expect(g_strcmp0(alone, together) == 0, "%s: other bits", plans[i].rules);
        saved += kept[i][false].exchanges - kept[i][true].exchanges;
    }
    mtf_expect(ranks == 1 || saved > 0, "none was joined");
    assert_true(mtf_verdict());
}

/* The run ends on every rank with `status` and a sentence that holds `why`. */
static void expect_refusal(const MtfRunOptions *options, int status, const char *why) {
    MtfSession session;
    g_autoptr(GError) error = NULL;
    mtf_expect(!run(&session, options, &error), "it ran, but should say \"%s\"", why);
    mtf_expect(error != NULL && strstr(error->message, why) != NULL,
               "it says \"%s\" and not \"%s\"", error != NULL ? error->message : "", why);
    mtf_expect(mtf_error_exit_status(error) == status, "exit status %d",
               mtf_error_exit_status(error));
    mtf_session_close(&session);
}

/* A plan of the MLP for all ranks, split by batch. */
static void write_mlp_plan(double rate, int processors, char *path, gsize size) {
    g_autofree char *mesh = g_strdup_printf("all:%d", processors);
    write_plan(
        &(MtfTrainingPlan){
            .graph = "mlp", .sizes = MLP, .mesh = mesh, .rules = "batch:all", .rate = rate },
        path, size);
}

TEST(a_wrong_number_of_ranks_is_told_what_to_type) {
    char path[256];
    write_mlp_plan(0, ranks + 1, path, sizeof path);
    MtfRunOptions options = make_options(path, NULL);
    g_autofree char *command = g_strdup_printf("type mpirun -n %d meshtf-run %s", ranks + 1, path);
    expect_refusal(&options, 2, command);
    unlink(path);
    assert_true(mtf_verdict());
}

TEST(a_missing_data_file_is_bad_input) {
    char path[256];
    MtfTrainingPlan wanted = TRANSFORMER("", "batch:all");
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    wanted.mesh = mesh;
    write_plan(&wanted, path, sizeof path);
    MtfRunOptions none = make_options(path, NULL);
    expect_refusal(&none, 2, "give --data FILE");
    MtfRunOptions missing = make_options(path, "/nowhere/text");
    expect_refusal(&missing, 2, "the data file /nowhere/text cannot be read");
    unlink(path);
    assert_true(mtf_verdict());
}

TEST(a_plan_that_one_rank_lacks_stops_all) {
    char path[256], other[300];
    write_mlp_plan(0, ranks, path, sizeof path);
    g_snprintf(other, sizeof other, "%s%s", path, rank == ranks - 1 ? ".missing" : "");
    MtfRunOptions options = make_options(other, NULL);
    expect_refusal(&options, 2, "cannot be opened");
    options.plan = (char[]){ "-" };
    if (ranks > 1)
        expect_refusal(&options, 2, "a plan for several ranks must be a file");
    unlink(path);
    assert_true(mtf_verdict());
}

TEST(different_plans_on_different_ranks_stop_all) {
    char path[256], other[256];
    write_mlp_plan(0.5, ranks, path, sizeof path);
    write_mlp_plan(0.25, ranks, other, sizeof other);
    MtfRunOptions options = make_options(rank == 0 ? path : other, NULL);
    if (ranks > 1)
        expect_refusal(&options, 2, "rank 1: the plan here is not the one rank 0 has");
    unlink(path);
    unlink(other);
    assert_true(mtf_verdict());
}

TEST(a_loss_that_is_not_finite_ends_the_run) {
    char path[256];
    write_mlp_plan(1e30, ranks, path, sizeof path);
    MtfRunOptions options = make_options(path, NULL);
    /* Infinite or not a number, as the order of a processor's sums has it. */
    expect_refusal(&options, 1, " is that of \"");
    expect_refusal(&options, 1, "the first result that is ");
    unlink(path);
    assert_true(mtf_verdict());
}

TEST(metrics_that_cannot_be_written_are_bad_input) {
    char path[256];
    write_mlp_plan(0, ranks, path, sizeof path);
    MtfRunOptions options = make_options(path, NULL);
    options.metrics = (char[]){ "/nowhere/metrics" };
    expect_refusal(&options, 2, "/nowhere/metrics cannot be written");
    options.metrics = (char[]){ "/dev/full" };
    expect_refusal(&options, 1, "/dev/full cannot be written");
    unlink(path);
    assert_true(mtf_verdict());
}

/* The number before `name` in the table of differences. */
static double difference_of(const char *table, const char *name) {
    g_autofree char *ending = g_strdup_printf("  %s\n", name);
    const char *end = strstr(table, ending);
    if (end == NULL)
        return INFINITY;
    while (end > table && end[-1] != '\n')
        end--;
    return g_ascii_strtod(end, NULL);
}

TEST(verification_finds_equal_runs_equal_and_others_different) {
    char path[256];
    MtfSession session;
    g_autoptr(GError) error = NULL;
    write_mlp_plan(0, ranks, path, sizeof path);
    MtfRunOptions options = make_options(path, NULL);
    mtf_expect(run(&session, &options, &error), "no run");
    bool same = false;
    g_autofree char *equal = mtf_verify(&session, &same, &error);
    mtf_expect(same && equal != NULL && difference_of(equal, "loss") < 1e-5 &&
                   difference_of(equal, "w1") < 1e-5,
               "%s", equal);
    const MtfOperand *w1 =
        mtf_worker_tensor(session.worker, mtf_graph_find_tensor(session.plan->graph, "w1"));
    if (rank == ranks - 1)
        ((float *)w1->data)[3] += 1;
    session.records[1].loss *= 1.001;
    g_autofree char *different = mtf_verify(&session, &same, &error);
    mtf_expect(!same && different != NULL && difference_of(different, "w1") > 0.1, "%s", different);
    mtf_session_close(&session);
    unlink(path);
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    int failed = mtf_tests_run(NULL, NULL);
    remove_plans();
    return mtf_mpi_tests_end(control, failed);
}
