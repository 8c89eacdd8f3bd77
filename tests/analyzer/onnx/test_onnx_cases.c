// SPDX-License-Identifier: GPL-3.0-or-later
/* ONNX's own test cases (Debian's libonnx-testdata): every one that is imported gives its outputs.
 * With ONNX_CASES=all in the environment, what became of each is printed: CASE RESULT SENTENCE. */
#include "tests/support/cmocka.h"

#include "tests/support/losses/onnx_case.h"

#include <stdio.h>
#include <string.h>

#define ROOT "/usr/share/libonnx-testdata/data"
/* Operators of later versions, by PyTorch and checked with onnxruntime. */
#define OWN "tests/golden"

typedef struct {
    int results[MTF_ONNX_CASE_DIFFERS + 1];
    const char *only;
} Tally;

static void run_one(Tally *tally, const char *root, const char *kind, const char *name) {
    static const char *const words[] = { "unreadable", "refused", "bound", "equal", "differs" };
    g_autofree char *folder = g_build_filename(root, kind, name, NULL);
    g_autofree char *sentence = NULL;
    MtfOnnxCaseResult result = mtf_onnx_case_run(folder, &sentence);
    tally->results[result]++;
    if (g_getenv("ONNX_CASES") != NULL || result == MTF_ONNX_CASE_DIFFERS)
        fprintf(stderr, "%s/%s %s %s\n", kind, name, words[result],
                sentence != NULL ? sentence : "");
}

/* What these give is drawn, and the file has another's draw. */
static bool is_drawn(const char *name) {
    return g_str_has_prefix(name, "test_bernoulli") || strcmp(name, "test_training_dropout") == 0 ||
           strcmp(name, "test_training_dropout_default") == 0;
}

static gint by_name(gconstpointer a, gconstpointer b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_kind(Tally *tally, const char *root, const char *kind) {
    g_autofree char *folder = g_build_filename(root, kind, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;)
        if (strchr(name, '.') == NULL && !is_drawn(name) &&
            (tally->only == NULL || strstr(name, tally->only) != NULL))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++)
        run_one(tally, root, kind, names->pdata[i]);
}

TEST(cases_of_onnx_give_their_outputs) {
    Tally tally = { .only = g_getenv("ONNX_ONLY") };
    if (!g_file_test(ROOT, G_FILE_TEST_IS_DIR)) {
        print_message("libonnx-testdata is not installed\n");
        skip();
    }
    static const char *const kinds[] = { "node", "pytorch-converted", "pytorch-operator",
                                         "simple" };
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        run_kind(&tally, ROOT, kinds[i]);
    fprintf(stderr, "equal %d, bound %d, refused %d, unreadable %d, differ %d\n",
            tally.results[MTF_ONNX_CASE_EQUAL], tally.results[MTF_ONNX_CASE_BOUND],
            tally.results[MTF_ONNX_CASE_REFUSED], tally.results[MTF_ONNX_CASE_UNREADABLE],
            tally.results[MTF_ONNX_CASE_DIFFERS]);
    assert_int_equal(tally.results[MTF_ONNX_CASE_UNREADABLE], 0);
    assert_int_equal(tally.results[MTF_ONNX_CASE_DIFFERS], 0);
    /* Among them every convolution and pool; those that are refused are in analyzer/onnx/README.md. */
    assert_true(tally.only != NULL || tally.results[MTF_ONNX_CASE_REFUSED] <= 91);
}

TEST(cases_of_later_operators_give_their_outputs) {
    Tally tally = { .only = g_getenv("ONNX_ONLY") };
    run_kind(&tally, OWN, "onnx");
    assert_int_equal(tally.results[MTF_ONNX_CASE_UNREADABLE] +
                         tally.results[MTF_ONNX_CASE_REFUSED] +
                         tally.results[MTF_ONNX_CASE_DIFFERS],
                     0);
    assert_true(tally.only != NULL || tally.results[MTF_ONNX_CASE_EQUAL] >= 54);
}
