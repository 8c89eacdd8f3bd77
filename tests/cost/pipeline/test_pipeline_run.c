// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/pipeline/pipeline_schedule.h"
#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_check.h"
#include "layouts/pipeline/pipeline_lower.h"
#include "tests/support/problems/pipeline_events.h"

#include <math.h>

static void assert_near(double got, double expected, double tolerance) {
    if (fabs(got - expected) > tolerance)
        print_message("got %.17g, expected %.17g\n", got, expected);
    assert_true(fabs(got - expected) <= tolerance);
}

static MtfPipelineOrder *make(const char *name, int p, int m, int chunks) {
    GError *error = NULL;
    MtfPipelineOrder *order = mtf_pipeline_schedule_order(name, p, m, chunks, &error);
    if (order == NULL)
        print_message("%s %d %d %d: %s\n", name, p, m, chunks, error->message);
    assert_non_null(order);
    return order;
}

/* Makes and runs a schedule with the same times on every stage, where a micro-batch gives half of what
 * it holds back with its input gradient. */
static MtfPipelineRun *run_within(const MtfPipelineCase *numbers, const char *name,
                                  MtfStageTimes t) {
    int stages = numbers->ranks * numbers->chunks;
    g_autofree MtfStageTimes *times = g_new(MtfStageTimes, (gsize)stages);
    g_autofree MtfStageMemory *memory = g_new(MtfStageMemory, (gsize)stages);
    for (int s = 0; s < stages; s++) {
        times[s] = t;
        memory[s] = (MtfStageMemory){ 2, -1, -1 };
    }
    MtfPipelineCase the_case = *numbers;
    the_case.times = times;
    the_case.memory = memory;
    g_autoptr(MtfPipelineOrder) order =
        mtf_pipeline_schedule_make(mtf_pipeline_schedule(name, NULL), &the_case, NULL);
    assert_non_null(order);
    return mtf_pipeline_run_new(order, times);
}

static MtfPipelineRun *run(const char *name, int p, int m, int chunks, MtfStageTimes t) {
    const MtfPipelineCase numbers = { p, m, chunks, NULL, NULL, INFINITY };
    return run_within(&numbers, name, t);
}

static const MtfStageTimes unit = { 1, 1, 1, 0, 0 };

/* The closed forms of the schedules' papers at F = B = W = 1 and no transfers: 1F1B and GPipe take
 * 3(m + p - 1); interleaved 3(vm + p - 1) in times of a chunk; ZB-H1 3m + p - 1; ZB-H2 has no bubble
 * in its span and ends p - 1 later. */
TEST(unit_times_give_the_closed_forms) {
    const int sizes[][2] = { { 2, 2 },  { 4, 4 },  { 4, 8 }, { 4, 12 },
                             { 8, 16 }, { 8, 24 }, { 8, 32 } };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        int p = sizes[i][0], m = sizes[i][1];
        const struct {
            const char *name;
            int chunks, makespan, span, needed;
        } rows[] = {
            { "gpipe", 1, 3 * (m + p - 1), 3 * (m + p - 1), 1 },
            { "1f1b", 1, 3 * (m + p - 1), 3 * (m + p - 1), 1 },
            { "eager-1f1b", 1, 3 * (m + p - 1), 3 * (m + p - 1), 1 },
            { "interleaved", 2, 3 * (2 * m + p - 1), 3 * (2 * m + p - 1), 1 },
            { "zb-h1", 1, 3 * m + p - 1, 3 * m + p - 1, p },
            { "zb-h2", 1, 3 * m + p - 1, 3 * m, 2 * p - 1 },
        };
        for (gsize k = 0; k < G_N_ELEMENTS(rows); k++) {
            if (m < rows[k].needed)
                continue;
            g_autoptr(MtfPipelineRun) got = run(rows[k].name, p, m, rows[k].chunks, unit);
            assert_near(got->makespan, rows[k].makespan, 1e-9);
            assert_near(got->span, rows[k].span, 1e-9);
        }
    }
}

static void assert_in_flight(const char *name, int p, int m, int chunks, const int *expected) {
    g_autoptr(MtfPipelineOrder) order = make(name, p, m, chunks);
    for (int r = 0; r < p; r++)
        assert_int_equal(mtf_pipeline_in_flight(order, r), expected[r]);
}

/* min(m, p - s); 2(p - s) - 1; 2(p - s - 1) + (v - 1) p + 1; p; 2p - 1. */
TEST(in_flight_is_that_of_the_papers) {
    assert_in_flight("1f1b", 4, 8, 1, (int[]){ 4, 3, 2, 1 });
    assert_in_flight("1f1b", 4, 3, 1, (int[]){ 3, 3, 2, 1 });
    assert_in_flight("gpipe", 4, 8, 1, (int[]){ 8, 8, 8, 8 });
    assert_in_flight("eager-1f1b", 4, 8, 1, (int[]){ 7, 5, 3, 1 });
    assert_in_flight("interleaved", 4, 8, 2, (int[]){ 11, 9, 7, 5 });
    assert_in_flight("interleaved", 8, 24, 2, (int[]){ 23, 21, 19, 17, 15, 13, 11, 9 });
    assert_in_flight("zb-h1", 4, 8, 1, (int[]){ 4, 4, 4, 4 });
    assert_in_flight("zb-h2", 4, 8, 1, (int[]){ 7, 7, 7, 7 });
    assert_in_flight("zb-v", 4, 12, 2, (int[]){ 8, 8, 8, 8 });
    assert_in_flight("zb-v", 4, 4, 2, (int[]){ 5, 6, 7, 8 });
    assert_in_flight("dualpipe-v", 4, 10, 2, (int[]){ 9, 9, 9, 9 });
}

/* Table 9 of arXiv 2401.10241 (profiled times in microseconds) and its bubble rates to 4 decimals;
 * the spans of the first row were recomputed from its times. */
TEST(bubbles_are_those_of_the_zero_bubble_paper) {
    static const struct {
        int p, m;
        MtfStageTimes t;
        double one, h1, h2, eager;
    } rows[] = {
        { 8, 24, { 18522, 18086, 9337, 601, 601 }, .2431, .1585, .1083, .2304 },
        { 8, 32, { 18513, 18086, 9331, 626, 626 }, .1985, .1242, .0837, .1835 },
        { 8, 64, { 18546, 18097, 9321, 762, 762 }, .1240, .0674, .0444, .1015 },
        { 16, 48, { 11347, 11248, 8132, 377, 377 }, .2552, .1397, .0672, .2425 },
        { 16, 64, { 11307, 11254, 8101, 379, 379 }, .2082, .1088, .0516, .1937 },
        { 16, 128, { 11325, 11308, 8109, 378, 378 }, .1251, .0576, .0266, .1072 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(MtfPipelineRun) one = run("1f1b", rows[i].p, rows[i].m, 1, rows[i].t);
        g_autoptr(MtfPipelineRun) h1 = run("zb-h1", rows[i].p, rows[i].m, 1, rows[i].t);
        g_autoptr(MtfPipelineRun) h2 = run("zb-h2", rows[i].p, rows[i].m, 1, rows[i].t);
        g_autoptr(MtfPipelineRun) eager = run("eager", rows[i].p, rows[i].m, 1, rows[i].t);
        assert_near(one->bubble, rows[i].one, 5.1e-5);
        assert_near(h1->bubble, rows[i].h1, 5.1e-5);
        assert_near(h2->bubble, rows[i].h2, 5.1e-5);
        assert_near(eager->bubble, rows[i].eager, 5.1e-5);
        if (i > 0)
            continue;
        assert_near(one->span, 1456749, 1e-6);
        assert_near(eager->span, 1432709, 1e-6);
        assert_near(h1->span, 1310405, 1e-6);
        assert_near(h2->span, 1236632, 1e-6);
    }
}

/* The same table's last columns: the authors' heuristic within the memory of p and of 2p micro-batches.
 * And the cases of their auto_schedule.py, with limits in halves of a micro-batch. */
TEST(the_heuristic_within_memory_gives_the_papers_bubbles) {
    static const struct {
        int p, m;
        MtfStageTimes t;
        double one, two;
    } rows[] = {
        { 8, 24, { 18522, 18086, 9337, 601, 601 }, .1585, .0433 },
        { 8, 32, { 18513, 18086, 9331, 626, 626 }, .1242, .0039 },
        { 8, 64, { 18546, 18097, 9321, 762, 762 }, .0674, .0026 },
        { 16, 48, { 11347, 11248, 8132, 377, 377 }, .1397, .0066 },
        { 16, 64, { 11307, 11254, 8101, 379, 379 }, .1088, .0054 },
        { 16, 128, { 11325, 11308, 8109, 378, 378 }, .0576, .0028 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(MtfPipelineRun) one = run("zb-1p", rows[i].p, rows[i].m, 1, rows[i].t);
        g_autoptr(MtfPipelineRun) two = run("zb-2p", rows[i].p, rows[i].m, 1, rows[i].t);
        assert_near(one->bubble, rows[i].one, 5.1e-5);
        assert_near(two->bubble, rows[i].two, 5.1e-5);
    }
    static const struct {
        MtfStageTimes t;
        double cap, span;
    } cases[] = {
        { { 5, 6, 4, 0, 0 }, 8, 201 },
        { { 5, 6, 4, 0, 0 }, 16, 183 },
        { { 5478, 5806, 3534, 200, 200 }, 32, 178898 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const MtfPipelineCase numbers = { 4, 12, 1, NULL, NULL, cases[i].cap };
        g_autoptr(MtfPipelineRun) got = run_within(&numbers, "zb-auto", cases[i].t);
        assert_near(got->span, cases[i].span, 1e-6);
    }
}

/* Table 8, times of a chunk; makespans and spans of unit times from the authors' generators: a V has
 * no bubble from 2p - 1 micro-batches on, and V-Half and V-Min these. */
TEST(there_and_back_gives_the_papers_bubbles) {
    g_autoptr(MtfPipelineRun) a =
        run("zb-v", 24, 72, 2, (MtfStageTimes){ 6763, 6969, 5251, 755, 755 });
    g_autoptr(MtfPipelineRun) b =
        run("zb-v", 24, 96, 2, (MtfStageTimes){ 6783, 6984, 5259, 758, 758 });
    g_autoptr(MtfPipelineRun) c =
        run("zb-v", 24, 192, 2, (MtfStageTimes){ 6785, 6990, 5260, 770, 770 });
    assert_near(a->bubble, .0638, 5.1e-5);
    assert_near(b->bubble, .0483, 5.1e-5);
    assert_near(c->bubble, .0250, 5.1e-5);
    static const struct {
        const char *name;
        int p, m;
        double makespan, bubble;
    } units[] = {
        { "zb-v", 4, 8, 51, 0 },        { "zb-v", 4, 12, 75, 0 },
        { "zb-v", 8, 24, 151, 0 },      { "zb-v", 4, 4, 30, .2 },
        { "zb-v", 2, 2, 14, 2. / 14 },  { "v-half", 8, 24, 161, .1056 },
        { "v-half", 4, 12, 77, .0649 }, { "v-min", 8, 24, 171, .1579 },
        { "v-min", 4, 12, 83, .1325 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        g_autoptr(MtfPipelineRun) got = run(units[i].name, units[i].p, units[i].m, 2, unit);
        assert_near(got->makespan, units[i].makespan, 1e-9);
        assert_near(got->bubble, units[i].bubble, 5.1e-5);
    }
}

/* The paper's interleaved rows are of models of three layers a device, so of three chunks. */
TEST(interleaved_bubbles_are_near_those_of_the_paper) {
    static const struct {
        int p, m;
        double f, b, w, c, bubble;
    } rows[] = {
        { 8, 24, 18522, 18086, 9337, 601, .1055 },  { 8, 32, 18513, 18086, 9331, 626, .0818 },
        { 8, 64, 18546, 18097, 9321, 762, .0443 },  { 16, 48, 11347, 11248, 8132, 377, .1104 },
        { 16, 64, 11307, 11254, 8101, 379, .0852 }, { 16, 128, 11325, 11308, 8109, 378, .0445 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        MtfStageTimes t = { rows[i].f / 3, rows[i].b / 3, rows[i].w / 3, rows[i].c, rows[i].c };
        g_autoptr(MtfPipelineRun) got = run("interleaved", rows[i].p, rows[i].m, 3, t);
        assert_near(got->bubble, rows[i].bubble, .005);
    }
}

/* PyTorch's grid (local stages, micro-batches, ranks) of test_schedule.py: made, checked, and lowered
 * to sends and receives that cannot deadlock. */
TEST(pytorchs_grid_is_free_of_deadlock) {
    static const int grid[][3] = {
        { 2, 2, 2 },   { 2, 4, 4 },    { 2, 8, 2 },  { 2, 8, 4 },  { 2, 8, 8 },  { 4, 4, 4 },
        { 4, 8, 4 },   { 4, 8, 8 },    { 4, 16, 4 }, { 4, 32, 4 }, { 4, 64, 4 }, { 4, 16, 16 },
        { 4, 32, 32 }, { 4, 128, 64 }, { 3, 2, 2 },  { 3, 8, 2 },  { 3, 12, 4 }, { 4, 6, 3 },
        { 4, 10, 5 },  { 2, 3, 4 },    { 2, 10, 4 }, { 2, 15, 4 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(grid); i++) {
        g_autoptr(MtfPipelineOrder) order = make("interleaved", grid[i][2], grid[i][1], grid[i][0]);
        g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(order);
        assert_true(mtf_pipeline_check(lowered, "lowered", NULL));
    }
}

/* Draws times for every stage by a small generator of its own. */
static void draw_times(MtfStageTimes *times, int stages, uint32_t *seed) {
    for (int s = 0; s < stages; s++) {
        double *fields[] = { &times[s].forward, &times[s].input_gradient, &times[s].weight_gradient,
                             &times[s].transfer_forward, &times[s].transfer_backward };
        for (int k = 0; k < 5; k++) {
            *seed = *seed * 1664525U + 1013904223U;
            *fields[k] = (double)(*seed >> 24) + (k < 3 ? 1 : 0);
        }
    }
}

static void assert_like_the_witness(const MtfPipelineOrder *order, const MtfStageTimes *times) {
    g_autoptr(MtfPipelineRun) got = mtf_pipeline_run_new(order, times);
    double **ends = mtf_test_pipeline_ends(order, times);
    for (int r = 0; r < order->ranks; r++) {
        for (int i = 0; i < mtf_pipeline_length(order, r); i++)
            assert_near(got->time[r][i].end, ends[r][i], 1e-9);
        g_free(ends[r]);
    }
    g_free(ends);
}

/* Every row, on random unequal stages. */
TEST(an_independent_simulation_agrees) {
    uint32_t seed = 7;
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++)
        for (int p = 1; p <= 4; p++) {
            int chunks = row->chunks > 0 ? row->chunks : 3, m = 2 * p + 2 * (p == 2);
            g_autoptr(MtfPipelineOrder) order = make(row->name, p, m, chunks);
            g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(order);
            assert_true(mtf_pipeline_check(lowered, row->name, NULL));
            MtfStageTimes times[12] = { 0 };
            draw_times(times, p * chunks, &seed);
            assert_like_the_witness(order, times);
        }
}

TEST(messages_in_the_order_take_no_time) {
    g_autoptr(MtfPipelineOrder) order = make("zb-h1", 4, 8, 1);
    g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(order);
    const MtfStageTimes times[4] = {
        { 5, 6, 4, 1, 2 }, { 5, 6, 4, 1, 2 }, { 7, 6, 4, 1, 2 }, { 5, 6, 4, 1, 2 }
    };
    g_autoptr(MtfPipelineRun) plain = mtf_pipeline_run_new(order, times);
    g_autoptr(MtfPipelineRun) with = mtf_pipeline_run_new(lowered, times);
    assert_near(plain->makespan, with->makespan, 0);
    assert_near(plain->span, with->span, 0);
}

/* Section 2 of the same paper: ZB-H1 holds (p - s) M_B + s M_W, ZB-H2 (2p - 2s - 1) M_B + 2s M_W, where
 * M_B is held from forward to input gradient and M_W from there to the weight gradient. */
TEST(bytes_held_are_those_of_the_paper) {
    const double held_b = 10, held_w = 3;
    const MtfStageMemory memory[4] = { { held_b, held_w - held_b, -held_w },
                                       { held_b, held_w - held_b, -held_w },
                                       { held_b, held_w - held_b, -held_w },
                                       { held_b, held_w - held_b, -held_w } };
    g_autoptr(MtfPipelineOrder) h1 = make("zb-h1", 4, 12, 1);
    g_autoptr(MtfPipelineOrder) h2 = make("zb-h2", 4, 12, 1);
    for (int s = 0; s < 4; s++) {
        assert_near(mtf_pipeline_peak(h1, memory, s), (4 - s) * held_b + s * held_w, 1e-9);
        assert_near(mtf_pipeline_peak(h2, memory, s), (7 - 2 * s) * held_b + 2 * s * held_w, 1e-9);
    }
}

TEST(impossible_numbers_are_refused) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_pipeline_schedule_order("interleaved", 4, 9, 2, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    g_clear_error(&error);
    assert_null(mtf_pipeline_schedule_order("1f1b", 4, 8, 2, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    g_clear_error(&error);
    assert_null(mtf_pipeline_schedule_order("2f2b", 4, 8, 1, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
}

TEST(a_cap_that_is_exceeded_does_not_fit) {
    const MtfStageTimes times[2] = { { 1, 1, 1, 0, 0 }, { 1, 1, 1, 0, 0 } };
    const MtfStageMemory memory[2] = { { 1, 0, -1 }, { 1, 0, -1 } };
    const MtfPipelineCase the_case = { 2, 4, 1, times, memory, 1.5 };
    g_autoptr(GError) error = NULL;
    assert_null(mtf_pipeline_schedule_make(mtf_pipeline_schedule("1f1b", NULL), &the_case, &error));
    assert_int_equal(mtf_error_exit_status(error), 3);
}

/* Two equal stages, four micro-batches, F 1 and B 2. Where all wait for all, the last stage never waits in a step
 * and the first one's last backward comes 2 later: 4 x 3 + 2, of which 2 is bubble; with 1F1B, which waits for
 * the second's first backward, too, 15. Where a rank may be a step ahead nobody waits: 12, and what comes once a
 * step lengthens the step by itself alone. */
TEST(a_steady_step_has_no_warm_up) {
    const MtfStageTimes times[] = { { 1, 1, 1, 0, 0 }, { 1, 1, 1, 0, 0 } };
    const double none[] = { 0, 0 }, some[] = { 0.5, 0.25 };
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_order("pipedream", 2, 4, 1, NULL);
    const MtfSteadyTimes met = { times, none, 0 }, free = { times, none, 1 };
    const MtfSteadyTimes updating = { times, some, 1 };
    g_autoptr(MtfPipelineRun) waits = mtf_pipeline_run_steady(order, &met);
    g_autoptr(MtfPipelineRun) goes_on = mtf_pipeline_run_steady(order, &free);
    g_autoptr(MtfPipelineRun) updates = mtf_pipeline_run_steady(order, &updating);
    g_autoptr(MtfPipelineRun) alone = mtf_pipeline_run_new(order, times);
    assert_float_equal(waits->period, 14, 1e-12);
    assert_float_equal(waits->ideal, 12, 1e-12);
    assert_float_equal(waits->bubble, 2.0 / 14, 1e-12);
    assert_float_equal(goes_on->period, 12, 1e-12);
    assert_float_equal(goes_on->bubble, 0, 0);
    assert_float_equal(updates->period, 12.5, 1e-12);
    assert_float_equal(updates->bubble, 0, 0);
    assert_float_equal(alone->makespan, 15, 1e-12);
}

/* Three equal stages, each minibatch a step, F 1 and B 2: where all wait for all a step is a forward pass and three
 * backward ones, 7; two steps ahead, as many as the first stage's weights lag, it is a stage's own work. A slower
 * stage is the only one that counts. */
TEST(each_minibatch_a_step_takes_as_long_as_the_slowest_stage) {
    const MtfStageTimes equal[] = { { 1, 1, 1, 0, 0 }, { 1, 1, 1, 0, 0 }, { 1, 1, 1, 0, 0 } };
    const MtfStageTimes slow[] = { { 1, 1, 1, 0, 0 }, { 2, 2, 1, 0, 0 }, { 1, 1, 1, 0, 0 } };
    const double none[] = { 0, 0, 0 };
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_order("pipedream", 3, 1, 1, NULL);
    const MtfSteadyTimes met = { equal, none, 0 }, free = { equal, none, 2 },
                         one = { slow, none, 2 };
    g_autoptr(MtfPipelineRun) waits = mtf_pipeline_run_steady(order, &met);
    g_autoptr(MtfPipelineRun) goes_on = mtf_pipeline_run_steady(order, &free);
    g_autoptr(MtfPipelineRun) slowest = mtf_pipeline_run_steady(order, &one);
    assert_float_equal(waits->period, 7, 1e-12);
    assert_float_equal(goes_on->period, 3, 1e-12);
    assert_float_equal(slowest->period, 5, 1e-12);
    assert_float_equal(slowest->bubble, 0, 0);
}
