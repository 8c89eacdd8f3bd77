// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 14400
/* Every type of published model, of the sizes of tests/support/published/published_models.py: 50 steps under
 * drawn layouts of one to eight processors give the losses of one, to 1e-10 in float64. Arguments name the
 * only ones to try. */
#include "tests/support/cmocka.h"

#include "analyzer/import/model_import.h"
#include "analyzer/training/training_graph.h"
#include "runtime/data/data.h"
#include "tests/support/losses/layout_losses.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define DRAWS 24
#define SEED 11
#define EXAMPLES 8 /* times a batch */
#define PYTHON "/usr/bin/python3"
#define MODELS "tests/support/published/published_models.py"

/* Rows of a label, or where an answer is, or the class of each token, and a text. */
static const char labelled[] = "0\tone\n1\ttwo\n2\tthree\n1\tfour\n0\tfive\n";
static const char answered[] = "0 1\tone two\n1 2\tthree\n0 0\tfour\n1 1\tfive\n";
static const char pairs[] = "one\tun\ntwo\tdeux\nthree\ttrois\nfour\tquatre\nfive\tcinq\n";

static MtfGraph *training_graph(const char *path) {
    g_autoptr(GError) error = NULL;
    MtfImport request = { .path = path, .batch = 3, .length = 7, .optimizer = "adamw" };
    g_autoptr(MtfGraph) forward = mtf_import_load(&request, NULL, &error);
    if (forward == NULL)
        fail_msg("%s: %s", path, error->message);
    mtf_graph_set_precision(forward, MTF_F64);
    return mtf_training_graph(forward, NULL);
}

/* Drawn numbers of the shape that an input of features has, as a NumPy array. */
static void write_features(const char *path, const MtfGraph *graph) {
    g_autoptr(GString) shape = g_string_new(NULL);
    gsize count = 1;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->feed != MTF_FEED_FEATURES)
            continue;
        for (int d = 0; d < tensor->shape.rank; d++) {
            int64_t size = mtf_graph_size(graph, tensor->shape.dims[d]);
            g_string_append_printf(shape, "%d, ", (int)(d == 0 ? size * EXAMPLES : size));
            count *= (gsize)(d == 0 ? size * EXAMPLES : size);
        }
    }
    g_autofree char *header =
        g_strdup_printf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape->str);
    g_autoptr(GString) file = g_string_new(NULL);
    g_string_append_len(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    g_string_append_printf(file, "%-117s\n", header);
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    for (gsize i = 0; i < count; i++) {
        float value = (float)g_rand_double_range(random, -1, 1);
        g_string_append_len(file, (const char *)&value, sizeof value);
    }
    assert_true(g_file_set_contents(path, file->str, (gssize)file->len, NULL));
}

/* A text, and features beside it. */
static MtfData *open_both(const char *folder, const MtfGraph *graph, GError **error) {
    g_autofree char *path = g_build_filename(folder, "features.npy", NULL);
    write_features(path, graph);
    char *files[] = { (char *)"LICENSE", path, NULL };
    MtfDataSettings settings = { .files = files, .share = MTF_STANDARD_HELD_OUT, .seed = SEED };
    return mtf_data_open_files(graph, &settings, error);
}

/* What fits the inputs of a graph: a text, rows of a table, what is made up (NULL), or a text beside features. */
static MtfData *open_data(const char *folder, const MtfGraph *graph, GError **error) {
    static const char *const rows[] = { NULL, pairs, labelled, answered };
    MtfData *data = mtf_data_open(graph, "LICENSE", SEED, error);
    for (gsize i = 0; data == NULL && i < G_N_ELEMENTS(rows); i++) {
        g_clear_error(error);
        g_autofree char *path = g_build_filename(folder, "rows.tsv", NULL);
        if (rows[i] != NULL && !g_file_set_contents(path, rows[i], -1, error))
            return NULL;
        data = mtf_data_open(graph, rows[i] != NULL ? path : NULL, SEED, error);
    }
    if (data == NULL) {
        g_clear_error(error);
        data = open_both(folder, graph, error);
    }
    return data;
}

static void layouts_of_a_model_give_its_losses(void **state) {
    g_autoptr(GError) error = NULL;
    g_autofree char *config = g_build_filename(*state, "config.json", NULL);
    MtfLossModel model = { .graph = training_graph(config) };
    model.data = open_data(*state, model.graph, &error);
    if (model.data == NULL)
        fail_msg("%s: %s", config, error->message);
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    mtf_losses_alone(&model, LAYOUT_STEPS);
    assert_true(isfinite(model.losses[LAYOUT_STEPS - 1]));
    assert_true(model.losses[LAYOUT_STEPS - 1] != model.losses[0]);
    mtf_check_layout_draws(&model, random, DRAWS, LAYOUT_STEPS, MTF_F64);
    mtf_loss_model_clear(&model);
}

static int by_name(gconstpointer a, gconstpointer b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Has a config.json written for each model, or those that are named, in folders of `work`; their paths. */
static GPtrArray *write_configs(const char *work, char **wanted) {
    g_autoptr(GPtrArray) command = g_ptr_array_new();
    for (const char *const *word = (const char *[]){ PYTHON, MODELS, "configs", work, NULL };
         *word != NULL; word++)
        g_ptr_array_add(command, (char *)*word);
    for (; *wanted != NULL; wanted++)
        g_ptr_array_add(command, *wanted);
    g_ptr_array_add(command, NULL);
    int status = 1;
    GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);
    if (!g_spawn_sync(NULL, (char **)command->pdata, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL,
                      NULL, NULL, &status, NULL) ||
        status != 0)
        return folders;
    g_autoptr(GDir) dir = g_dir_open(work, 0, NULL);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
        g_ptr_array_add(folders, g_build_filename(work, name, NULL));
    g_ptr_array_sort(folders, by_name);
    return folders;
}

static void remove_folder(const char *folder) {
    static const char *const files[] = { "config.json", "rows.tsv", "features.npy" };
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i], NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
}

int main(int argc, char **argv) {
    (void)argc;
    g_autofree char *work = g_dir_make_tmp("meshtf-models-XXXXXX", NULL);
    g_autoptr(GPtrArray) folders = write_configs(work, argv + 1);
    for (guint i = 0; i < folders->len; i++) {
        char *folder = g_ptr_array_index(folders, i);
        struct CMUnitTest test = { .name = strrchr(folder, '/') + 1,
                                   .test_func = layouts_of_a_model_give_its_losses,
                                   .initial_state = folder };
        mtf_test_add(0, test);
    }
    int failed = mtf_tests_run(NULL, NULL);
    for (guint i = 0; i < folders->len; i++)
        remove_folder(g_ptr_array_index(folders, i));
    g_rmdir(work);
    return folders->len == 0 ? 1 : failed;
}
