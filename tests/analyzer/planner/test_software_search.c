// SPDX-License-Identifier: GPL-3.0-or-later
/* What is said of searches within other limits than the user's. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "analyzer/planner/software_search.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>
#include <string.h>

typedef struct {
    bool looking; /* for a limit that would do */
    int finite;   /* costs that were told since */
} Heard;

static void hear_phase(const char *phase, void *user) {
    Heard *heard = user;
    heard->looking |= strstr(phase, "looking for a limit that would do") != NULL;
}

static void hear_bound(double cost, double bound, void *user) {
    (void)bound;
    Heard *heard = user;
    heard->finite += heard->looking && isfinite(cost);
}

/* No layout of the four layers takes so little as a KiB. */
TEST(costs_within_limits_that_are_tried_are_told_nobody) {
    Heard heard = { 0 };
    const MtfSearchListener listener = { hear_phase, hear_bound, &heard };
    MtfSearchControl control;
    mtf_search_control_init(&control, 0);
    control.listener = &listener;
    g_autoptr(MtfGraph) written = mtf_test_layers(4, 64, 32, 128);
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(GArray) meshes = mtf_test_meshes("rows:4 rows:2;cols:2");
    MtfVariantSearchOptions options = { .written = written,
                                        .machine = machine,
                                        .meshes = meshes,
                                        .recompute = MTF_RECOMPUTES,
                                        .offload = MTF_OFFLOADS,
                                        .memory_limit = 1024,
                                        .gap = NAN,
                                        .control = &control };
    MtfVariantAnswer answer;
    int64_t programs_limit;
    assert_true(mtf_software_search(&options, G_MAXUINT, &answer, &programs_limit, NULL));
    assert_false(answer.answer.found);
    assert_true(answer.enough > options.memory_limit);
    assert_true(heard.looking);
    assert_int_equal(heard.finite, 0);
    mtf_variant_answer_clear(&answer);
}
