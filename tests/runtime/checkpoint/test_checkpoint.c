// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 2 3 4
/* Checkpoint files: what is in them, read by other means; and what is not taken for one. */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/tensor_file.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/mpi_verdict.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEED 11

static MPI_Comm control;
static int rank, ranks;
static char *folder;

/* A worker of the MLP whose variables have their initial values. */
typedef struct {
    MtfPlan *plan;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
} Model;

static void model_init(Model *model, const char *rules, MtfDtype dtype) {
    g_autofree char *mesh = g_strdup_printf("all:%d", ranks);
    MtfTrainingPlan wanted = { .graph = "mlp",
                               .sizes = "batch:10;features:7;hidden:12;targets:5",
                               .dtype = dtype,
                               .mesh = mesh,
                               .rules = rules };
    model->plan = mtf_training_plan(&wanted, NULL);
    model->program = mtf_plan_lower(model->plan, NULL);
    model->arena = mtf_arena_pack(model->program);
    model->worker = mtf_worker_new(model->program, model->arena, rank, SEED, NULL);
    mtf_worker_initialise(model->worker, SEED);
}

static void model_clear(Model *model) {
    mtf_worker_free(model->worker);
    mtf_arena_free(model->arena);
    mtf_program_free(model->program);
    mtf_plan_free(model->plan);
}

static MtfCheckpointed checkpointed(const Model *model) {
    return (MtfCheckpointed){ .control = control, .worker = model->worker };
}

static char *path_of(const char *name) {
    return g_build_filename(folder, name, NULL);
}

static void write_checkpoint(const Model *model, const char *path) {
    g_autoptr(GError) error = NULL;
    MtfCheckpointed what = checkpointed(model);
    MtfProgress progress = { 3, SEED, 30, (char[]){ "data" }, (char[]){ "digest" }, NULL };
    mtf_expect(mtf_checkpoint_write(&what, path, &progress, &error), "%s",
               error != NULL ? error->message : "");
}

static void write_bytes(const char *path, const char *bytes, gsize length) {
    if (rank == 0)
        mtf_expect(g_file_set_contents(path, bytes, (gssize)length, NULL), "no %s", path);
    mtf_meet(control);
}

/* The initial value of an element, rounded as the variable is. */
static double initial(const MtfGraph *graph, int tensor, int64_t index) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    MtfRandom random = mtf_random_initial_stream(SEED, t->name);
    double value = mtf_random_initial(&random, &t->init, index);
    return t->dtype == MTF_F32 ? (double)(float)value : value;
}

/* Elements of this rank's variables that are not initial. */
static int64_t changed_elements(const Model *model) {
    const MtfGraph *graph = model->plan->graph;
    int64_t changed = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfOperand *slice = mtf_worker_tensor(model->worker, t);
        if (mtf_graph_tensor(graph, t)->source != MTF_SOURCE_VARIABLE)
            continue;
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
            changed +=
                mtf_slice_get(slice, i) != initial(graph, t, mtf_slice_global_index(slice, i));
    }
    return changed;
}

static void spoil_variables(const Model *model) {
    const MtfGraph *graph = model->plan->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfOperand *slice = mtf_worker_tensor(model->worker, t);
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE)
            for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
                mtf_slice_set(slice, i, 99);
    }
}

/* ---- What is in the file ------------------------------------------------------------------- */

/* Whether the file holds every variable whole, row-major: read here with plain file functions. */
static void check_file(const MtfGraph *graph, const char *path) {
    gsize header_bytes, length;
    int64_t file_bytes;
    g_autofree char *bytes = NULL;
    g_autofree char *header = mtf_safetensors_read(path, &header_bytes, &file_bytes, NULL);
    g_autoptr(MtfSafetensors) file =
        mtf_safetensors_parse(path, header, header_bytes, file_bytes, NULL);
    mtf_expect(file != NULL && g_file_get_contents(path, &bytes, &length, NULL), "no file");
    int64_t wrong = 0;
    guint variables = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_VARIABLE)
            continue;
        variables++;
        const MtfStoredTensor *stored = mtf_safetensors_find(file, tensor->name);
        MtfOperand whole = { .data = bytes + header_bytes + stored->begin, .dtype = tensor->dtype };
        for (int64_t i = 0; i < mtf_graph_elements(graph, &tensor->shape); i++)
            wrong += mtf_slice_get(&whole, i) != initial(graph, t, i);
    }
    mtf_expect(wrong == 0 && variables == file->tensors->len, "%d wrong elements", (int)wrong);
    mtf_expect(g_strcmp0(mtf_safetensors_get(file, "step"), "3") == 0, "no step");
}

static const char *const all_rules[] = { "batch:all", "hidden:all", "features:all;targets:all" };

TEST(a_checkpoint_holds_every_variable_whole_whatever_the_layout) {
    for (gsize i = 0; i < G_N_ELEMENTS(all_rules); i++) {
        Model model;
        g_autofree char *path = path_of("whole.safetensors");
        model_init(&model, all_rules[i], i == 0 ? MTF_F64 : MTF_F32);
        write_checkpoint(&model, path);
        if (rank == 0)
            check_file(model.plan->graph, path);
        model_clear(&model);
    }
    assert_true(mtf_verdict());
}

TEST(every_layout_reads_what_any_layout_wrote) {
    for (gsize i = 0; i < G_N_ELEMENTS(all_rules) * G_N_ELEMENTS(all_rules); i++) {
        Model writer, reader;
        MtfProgress progress;
        g_autoptr(GError) error = NULL;
        g_autofree char *path = path_of("any.safetensors");
        model_init(&writer, all_rules[i / G_N_ELEMENTS(all_rules)], MTF_F32);
        model_init(&reader, all_rules[i % G_N_ELEMENTS(all_rules)], MTF_F32);
        write_checkpoint(&writer, path);
        spoil_variables(&reader);
        MtfCheckpointed what = checkpointed(&reader);
        mtf_expect(mtf_checkpoint_read(&what, path, &progress, &error) == MTF_CHECKPOINT_READ, "%s",
                   error != NULL ? error->message : "");
        mtf_expect(changed_elements(&reader) == 0, "%d wrong", (int)changed_elements(&reader));
        mtf_expect(progress.step == 3 && progress.seed == SEED && progress.examples == 30 &&
                       strcmp(progress.data, "data") == 0,
                   "another progress");
        mtf_progress_clear(&progress);
        model_clear(&writer);
        model_clear(&reader);
    }
    assert_true(mtf_verdict());
}

/* Windows of 5 to 300 bytes cut tensors anywhere, and pieces across all ranks. */
TEST(small_windows_move_the_same_bytes) {
    for (int64_t window = 5; window < 300; window += 59) {
        Model model;
        uint64_t written, read;
        int tensors[3];
        g_autoptr(GError) error = NULL;
        g_autofree char *path = path_of("windows");
        model_init(&model, "hidden:all", MTF_F64);
        const MtfGraph *graph = model.plan->graph;
        g_autoptr(MtfSafetensors) file = mtf_safetensors_new();
        for (int i = 0; i < 3; i++) {
            tensors[i] = mtf_graph_find_tensor(graph, ((const char *[]){ "w1", "b1", "w2" })[i]);
            const MtfTensor *t = mtf_graph_tensor(graph, tensors[i]);
            int64_t dims[2];
            for (int k = 0; k < t->shape.rank; k++)
                dims[k] = mtf_graph_size(graph, t->shape.dims[k]);
            mtf_safetensors_add(file, t->name, MTF_STORED_F64, t->shape.rank, dims);
        }
        write_bytes(path, "", 0);
        MtfTensorFile of = { .control = control,
                             .worker = model.worker,
                             .file = file,
                             .tensors = tensors,
                             .data_start = 3,
                             .path = path,
                             .window_bytes = window };
        mtf_expect(mtf_tensor_file_write(&of, &written, &error), "no write");
        for (int i = 0; i < 3; i++) {
            const MtfOperand *slice = mtf_worker_tensor(model.worker, tensors[i]);
            memset(slice->data, 0xAA, 8 * (gsize)mtf_slice_elements(slice));
        }
        mtf_expect(mtf_tensor_file_read(&of, &read, &error), "no read");
        mtf_expect(read == written && changed_elements(&model) == 0, "window %d", (int)window);
        model_clear(&model);
    }
    assert_true(mtf_verdict());
}

/* ---- What is not taken for one ------------------------------------------------------------- */

static MtfCheckpointVerdict verdict_on(const Model *model, const char *path, GError **error) {
    MtfProgress progress;
    MtfCheckpointed what = checkpointed(model);
    MtfCheckpointVerdict verdict = mtf_checkpoint_read(&what, path, &progress, error);
    mtf_progress_clear(&progress);
    return verdict;
}

TEST(a_cut_or_a_changed_byte_is_found_anywhere) {
    Model model;
    gsize length = 0;
    g_autofree char *bytes = NULL;
    g_autofree char *good = path_of("good.safetensors");
    g_autofree char *path = path_of("bad.safetensors");
    model_init(&model, "batch:all", MTF_F32);
    write_checkpoint(&model, good);
    g_file_get_contents(good, &bytes, &length, NULL);
    gsize stride = length / 100;
    for (gsize at = 0; at < length; at += stride) {
        g_autoptr(GError) cut = NULL, changed = NULL;
        write_bytes(path, bytes, at);
        mtf_expect(verdict_on(&model, path, &cut) == MTF_CHECKPOINT_BAD && cut != NULL,
                   "cut at %d it is good", (int)at);
        bytes[at] ^= 4;
        write_bytes(path, bytes, length);
        bytes[at] ^= 4;
        mtf_expect(verdict_on(&model, path, &changed) != MTF_CHECKPOINT_READ && changed != NULL,
                   "changed at %d it is good", (int)at);
    }
    model_clear(&model);
    assert_true(mtf_verdict());
}

TEST(a_checkpoint_of_another_model_is_foreign) {
    Model model;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of("foreign.safetensors");
    model_init(&model, "batch:all", MTF_F32);
    write_checkpoint(&model, path);
    mtf_graph_dimension(model.plan->graph, mtf_graph_find_dimension(model.plan->graph, "targets"))
        ->size = 6;
    mtf_expect(verdict_on(&model, path, &error) == MTF_CHECKPOINT_FOREIGN, "it is taken");
    mtf_expect(error != NULL && strstr(error->message, "\"w2\" has shape [12, 5]") != NULL, "%s",
               error != NULL ? error->message : "");
    model_clear(&model);
    assert_true(mtf_verdict());
}

/* ---- Initial weights ----------------------------------------------------------------------- */

/* A file with one value in every element of w1, w2, b1, b2, in its own type each. */
static void write_weights(const MtfGraph *graph, const char *path) {
    /* 1.5 in half precision is 0x3e00, in bfloat16 0x3fc0; the smallest half is 2^-24. */
    const guint16 half = 0x3e00, brain = 0x3fc0;
    const double real = -2.25;
    const gint64 whole = -7;
    static const char *const names[] = { "w1", "b1", "w2", "b2" };
    const MtfStoredType types[] = { MTF_STORED_F16, MTF_STORED_BF16, MTF_STORED_F64,
                                    MTF_STORED_I64 };
    const void *const values[] = { &half, &brain, &real, &whole };
    g_autoptr(MtfSafetensors) file = mtf_safetensors_new();
    GByteArray *data = g_byte_array_new();
    for (int i = 0; i < 4; i++) {
        const MtfTensor *t = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, names[i]));
        int64_t dims[2];
        for (int k = 0; k < t->shape.rank; k++)
            dims[k] = mtf_graph_size(graph, t->shape.dims[k]);
        mtf_safetensors_add(file, names[i], types[i], t->shape.rank, dims);
        for (int64_t e = 0; e < mtf_graph_elements(graph, &t->shape); e++)
            g_byte_array_append(data, values[i], (guint)mtf_stored_type_bytes(types[i]));
    }
    gsize length;
    g_autofree char *header = mtf_safetensors_print(file, &length);
    g_byte_array_prepend(data, (guint8 *)header, (guint)length);
    write_bytes(path, (char *)data->data, data->len);
    g_byte_array_unref(data);
}

TEST(initial_weights_of_any_type_are_read_as_numbers) {
    Model model;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of("weights.safetensors");
    static const char *const names[] = { "w1", "b1", "w2", "b2" };
    const double values[] = { 1.5, 1.5, -2.25, -7 };
    model_init(&model, "hidden:all", MTF_F32);
    write_weights(model.plan->graph, path);
    MtfCheckpointed what = checkpointed(&model);
    mtf_expect(mtf_weights_read(&what, path, &error), "%s", error != NULL ? error->message : "");
    for (int i = 0; i < 4; i++) {
        const MtfOperand *slice =
            mtf_worker_tensor(model.worker, mtf_graph_find_tensor(model.plan->graph, names[i]));
        for (int64_t e = 0; e < mtf_slice_elements(slice); e++)
            mtf_expect(mtf_slice_get(slice, e) == values[i], "%s: %g", names[i],
                       mtf_slice_get(slice, e));
    }
    model_clear(&model);
    assert_true(mtf_verdict());
}

/* ---- A disk that does not take it ---------------------------------------------------------- */

TEST(a_full_disk_is_a_failure_that_leaves_the_older_checkpoint) {
    Model model;
    g_autoptr(GError) error = NULL;
    g_autofree char *older = mtf_checkpoint_path(folder, 1);
    g_autofree char *newer = mtf_checkpoint_path(folder, 2);
    g_autofree char *partial = g_strconcat(newer, MTF_PARTIAL_SUFFIX, NULL);
    model_init(&model, "batch:all", MTF_F32);
    write_checkpoint(&model, older);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){ 1000, limit.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    MtfCheckpointed what = checkpointed(&model);
    MtfProgress progress = { 2, SEED, 20, (char[]){ "data" }, (char[]){ "digest" }, NULL };
    mtf_expect(!mtf_checkpoint_write(&what, newer, &progress, &error), "it is written");
    setrlimit(RLIMIT_FSIZE, &limit);
    mtf_expect(mtf_error_exit_status(error) == 1 &&
                   strstr(error->message, "cannot be written") != NULL,
               "%s", error != NULL ? error->message : "");
    mtf_meet(control);
    mtf_expect(access(newer, F_OK) != 0 && access(partial, F_OK) != 0, "there is a file");
    g_clear_error(&error);
    mtf_expect(verdict_on(&model, older, &error) == MTF_CHECKPOINT_READ, "the older is lost");
    model_clear(&model);
    assert_true(mtf_verdict());
}

TEST(the_newest_few_are_kept_and_remains_are_removed) {
    if (rank == 0) {
        g_autofree char *place = path_of("kept");
        g_autofree char *remains = g_strconcat(place, "/step-00000009.safetensors.partial", NULL);
        g_autofree char *other = g_strconcat(place, "/notes.txt", NULL);
        int lock = mtf_checkpoint_folder_open(place, 0, NULL);
        mtf_expect(lock >= 0, "no folder");
        for (int64_t step = 10; step <= 50; step += 10) {
            g_autofree char *path = mtf_checkpoint_path(place, step);
            g_file_set_contents(path, "", 0, NULL);
        }
        g_file_set_contents(remains, "", 0, NULL);
        g_file_set_contents(other, "", 0, NULL);
        mtf_checkpoint_prune(place, 40, 2);
        g_autoptr(GArray) steps = mtf_checkpoint_steps(place);
        mtf_expect(steps->len == 3 && g_array_index(steps, int64_t, 0) == 50 &&
                       g_array_index(steps, int64_t, 1) == 40 &&
                       g_array_index(steps, int64_t, 2) == 30,
                   "%u are left", steps->len);
        g_autoptr(GError) taken = NULL, error = NULL;
        mtf_expect(mtf_checkpoint_folder_open(place, 0.2, &taken) < 0 &&
                       strstr(taken->message, "is in use by another run") != NULL &&
                       access(remains, F_OK) == 0,
                   "two runs have the folder");
        close(lock);
        lock = mtf_checkpoint_folder_open(place, 0, NULL);
        mtf_expect(lock >= 0 && access(remains, F_OK) != 0 && access(other, F_OK) == 0,
                   "the wrong files are removed");
        close(lock);
        mtf_expect(mtf_checkpoint_folder_open("/dev/null/folder", 0, &error) < 0 &&
                       mtf_error_exit_status(error) == 2,
                   "no error");
    }
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    char name[256];
    g_snprintf(name, sizeof name, "%s/meshtf-checkpoint-%d", g_get_tmp_dir(), (int)getpid());
    PMPI_Bcast(name, (int)sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder = name;
    g_mkdir_with_parents(folder, 0700);
    int failed = mtf_tests_run(NULL, NULL);
    mtf_meet(control);
    if (rank == 0) {
        g_autofree char *command = g_strdup_printf("rm -rf '%s'", folder);
        failed += g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL) ? 0 : 1;
    }
    return mtf_mpi_tests_end(control, failed);
}
