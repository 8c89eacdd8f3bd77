// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/bucket_choice.h"
#include "layouts/placement/rules.h"

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
    MtfMachine *machine;
    MtfPricer pricer;
} Case;

/* A small GPT, its batch split over 16 processors. */
static void case_init(Case *c, const char *machine) {
    const MtfModelFamily *family = mtf_model_family_find("gpt", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, NULL, NULL);
    MtfModelSettings settings = mtf_model_settings(preset);
    settings.layers = 2;
    settings.batch = 16;
    settings.length = 32;
    settings.d_model = 64;
    settings.d_ff = 128;
    settings.heads = 2;
    settings.d_kv = 32;
    settings.vocab = 64;
    g_autoptr(MtfGraph) forward = mtf_model_build(family, preset, &settings, NULL);
    assert_non_null(forward);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("all:16", 0, &mesh, NULL));
    c->graph = mtf_training_graph(forward, NULL);
    g_autoptr(MtfRules) rules = mtf_rules_parse(c->graph, &mesh, "batch:all", NULL, NULL);
    c->layout = mtf_layout_from_rules(c->graph, &mesh, rules);
    c->machine = mtf_machine_load(machine, NULL);
    assert_non_null(c->machine);
}

static void case_clear(Case *c) {
    mtf_machine_free(c->machine);
    mtf_layout_free(c->layout);
    mtf_graph_free(c->graph);
}

/* Of all sizes, or `only` one. */
static bool choose_of(Case *c, int64_t limit, int64_t only) {
    assert_true(mtf_pricer_init(&c->pricer, c->machine, &c->layout->mesh, NULL));
    g_autoptr(MtfProgram) program = mtf_lower(c->graph, c->layout);
    bool chosen = mtf_layout_choose_bucket(c->graph, c->layout, &program, &c->pricer, limit, only);
    g_autoptr(MtfProgram) again = mtf_lower(c->graph, c->layout);
    g_autofree char *digest = mtf_program_digest(program), *other = mtf_program_digest(again);
    assert_string_equal(digest, other);
    return chosen;
}

static bool choose(Case *c, int64_t limit) {
    return choose_of(c, limit, 0);
}

static int64_t step_of(const Case *c, int64_t bucket_bytes, int64_t *arena_bytes) {
    g_autoptr(MtfLayout) layout = mtf_layout_copy(c->layout);
    layout->execution.bucket_bytes = bucket_bytes;
    g_autoptr(MtfProgram) program = mtf_lower(c->graph, layout);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c->pricer, program);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    *arena_bytes = arena->bytes;
    assert_true(mtf_schedule_check(&c->pricer, program, schedule, NULL));
    return schedule->nanoseconds;
}

/* On every machine, with and without overlap, against each size in turn. */
TEST(the_shortest_schedule_is_chosen) {
    static const char *const machines[] = { "cpu-cluster", "cpu-host",
                                            "tests/support/machines/torus.json", "a100" };
    static const int64_t sizes[] = { 0, 16384, 131072, 1048576 };
    for (gsize m = 0; m < G_N_ELEMENTS(machines); m++) {
        Case c;
        int64_t bytes, least = INT64_MAX;
        case_init(&c, machines[m]);
        assert_true(choose(&c, INT64_MAX));
        for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++)
            least = MIN(least, step_of(&c, sizes[i], &bytes));
        assert_int_equal(step_of(&c, c.layout->execution.bucket_bytes, &bytes), least);
        assert_true(least < step_of(&c, 0, &bytes));
        case_clear(&c);
    }
}

/* A better size is not looked at, and one that does not shorten the step is not taken. */
TEST(where_the_size_is_known_no_other_is_tried) {
    static const int64_t sizes[] = { 16384, 131072, 1048576 };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        Case c;
        int64_t bytes;
        case_init(&c, "tests/support/machines/torus.json");
        bool chosen = choose_of(&c, INT64_MAX, sizes[i]);
        bool shorter = step_of(&c, sizes[i], &bytes) < step_of(&c, 0, &bytes);
        assert_int_equal(chosen, shorter);
        assert_int_equal(c.layout->execution.bucket_bytes, shorter ? sizes[i] : 0);
        case_clear(&c);
    }
}

/* Copies take time and latencies none, so nothing is to be had. */
TEST(where_a_message_costs_no_latency_none_are_joined) {
    Case c;
    case_init(&c, "cpu-host");
    for (int d = 0; d < c.machine->network.axes; d++)
        c.machine->network.axis[d].latency = 0;
    assert_false(choose(&c, INT64_MAX));
    assert_int_equal(c.layout->execution.bucket_bytes, 0);
    case_clear(&c);
}

/* Where there is no memory for it the arena does not grow. */
TEST(joining_respects_the_limit) {
    Case c;
    case_init(&c, "tests/support/machines/torus.json");
    int64_t alone, chosen;
    assert_true(mtf_pricer_init(&c.pricer, c.machine, &c.layout->mesh, NULL));
    step_of(&c, 0, &alone);
    choose(&c, alone / 2);
    step_of(&c, c.layout->execution.bucket_bytes, &chosen);
    assert_true(chosen <= alone);
    case_clear(&c);
}

/* Under limits about each size's arena, against all sizes in turn: one whose arena neither fits nor stays as it is does not
 * count. */
TEST(of_those_that_fit_the_shortest_is_chosen) {
    static const int64_t sizes[] = { 0, 16384, 131072, 1048576 };
    int left = 0;
    for (int k = 0; k < 2 * (int)G_N_ELEMENTS(sizes); k++) {
        Case c;
        int64_t limit, alone, bytes, least = INT64_MAX, of_all = INT64_MAX;
        case_init(&c, "tests/support/machines/torus.json");
        assert_true(mtf_pricer_init(&c.pricer, c.machine, &c.layout->mesh, NULL));
        step_of(&c, sizes[k / 2], &limit);
        limit -= k % 2;
        step_of(&c, 0, &alone);
        for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
            int64_t step = step_of(&c, sizes[i], &bytes);
            of_all = MIN(of_all, step);
            if (bytes <= MAX(limit, alone))
                least = MIN(least, step);
        }
        left += least > of_all;
        choose(&c, limit);
        assert_int_equal(step_of(&c, c.layout->execution.bucket_bytes, &bytes), least);
        case_clear(&c);
    }
    assert_true(left > 0);
}
