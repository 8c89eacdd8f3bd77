// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a plan: refused in one sentence, or a plan that prints to a text which reads back to
 * the same text, and that lowers to its program or is refused for its digest. */
#include "layouts/plan_file/plan.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/plan", NULL };

static MtfPlan *read_plan(const char *text, size_t size) {
    g_autoptr(GError) error = NULL;
    MtfPlan *plan = mtf_plan_parse("fuzz", text, size, &error);
    mtf_fuzz_judge(plan != NULL, error);
    return plan;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfPlan) plan = read_plan((const char *)data, size);
    if (plan == NULL)
        return -1;
    g_autofree char *text = mtf_plan_print(plan);
    g_autoptr(MtfPlan) again = read_plan(text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = mtf_plan_print(again);
    g_assert_cmpstr(text, ==, text_again);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, &error);
    mtf_fuzz_judge(program != NULL, error);
    return 0;
}
