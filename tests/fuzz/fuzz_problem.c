// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a layout problem: refused in one sentence, or a problem that prints to a text which
 * reads back to the same text. */
#include "analyzer/solver/problem/layout_problem_json.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/problem", NULL };

static MtfLayoutProblem *read_problem(const char *text, size_t size) {
    g_autoptr(GError) error = NULL;
    MtfLayoutProblem *problem = mtf_layout_problem_parse("fuzz", text, size, &error);
    mtf_fuzz_judge(problem != NULL, error);
    return problem;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfLayoutProblem) problem = read_problem((const char *)data, size);
    if (problem == NULL)
        return -1;
    g_autofree char *text = mtf_layout_problem_print(problem);
    g_autoptr(MtfLayoutProblem) again = read_problem(text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = mtf_layout_problem_print(again);
    g_assert_cmpstr(text, ==, text_again);
    return 0;
}
