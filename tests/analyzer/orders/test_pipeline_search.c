// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/orders/pipeline_ilp.h"
#include "analyzer/orders/pipeline_search.h"
#include "cost/pipeline/pipeline_bound.h"
#include "cost/pipeline/pipeline_string.h"
#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_check.h"

#include <math.h>
#include <string.h>

#define STAGES_MAX 16

/* Equal or drawn stages with room of their own. */
typedef struct {
    MtfStageTimes times[STAGES_MAX];
    MtfStageMemory memory[STAGES_MAX];
    MtfPipelineCase c;
} Case;

static void fill_case(Case *it, int p, int m, int chunks, MtfStageTimes t, MtfStageMemory share) {
    for (int s = 0; s < p * chunks; s++) {
        it->times[s] = t;
        it->memory[s] = share;
    }
    it->c = (MtfPipelineCase){ p, m, chunks, it->times, it->memory, INFINITY };
}

static uint32_t draw(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % below;
}

static void draw_times(Case *it, uint32_t *seed) {
    for (int s = 0; s < it->c.ranks * it->c.chunks; s++) {
        double c = draw(seed, 3);
        it->times[s] = (MtfStageTimes){ 1 + draw(seed, 9), 1 + draw(seed, 9), 1 + draw(seed, 9), c,
                                        draw(seed, 3) };
    }
}

/* The naive twin: every legal string of every rank, for one chunk. */
typedef struct {
    MtfPipelineString *string;
    MtfPipelineScorer *scorer;
    double best;
} Twin;

static void try_strings(Twin *twin, int rank, int at, int f, int i, int w) {
    int m = twin->string->microbatches;
    uint8_t *letters = mtf_pipeline_letters(twin->string, rank);
    if (at == 3 * m) {
        MtfPipelineScore score;
        if (!mtf_pipeline_string_fits(twin->scorer, twin->string, rank))
            return;
        if (rank + 1 < twin->string->ranks)
            try_strings(twin, rank + 1, 0, 0, 0, 0);
        else if (mtf_pipeline_score(twin->scorer, twin->string, &score))
            twin->best = MIN(twin->best, score.span);
        return;
    }
    const bool may[3] = { f < m, i < f, w < i };
    for (uint8_t kind = 0; kind < 3; kind++) {
        if (!may[kind])
            continue;
        letters[at] = kind;
        try_strings(twin, rank, at + 1, f + (kind == 0), i + (kind == 1), w + (kind == 2));
    }
}

static double best_of_all(const MtfPipelineCase *c) {
    g_autoptr(MtfPipelineOrder) any =
        mtf_pipeline_schedule_order("gpipe", c->ranks, c->microbatches, 1, NULL);
    g_autoptr(MtfPipelineString) string = mtf_pipeline_string_new(any);
    g_autoptr(MtfPipelineScorer) scorer = mtf_pipeline_scorer_new(string, c);
    Twin twin = { string, scorer, INFINITY };
    try_strings(&twin, 0, 0, 0, 0, 0);
    return twin.best;
}

/* Searches, and checks what holds of every answer: it runs, fits, is no shorter than its bound and no
 * longer than any schedule of the table that fits. */
static double search(const MtfPipelineCase *c, bool *proven) {
    MtfPipelineOrderSearch found;
    assert_true(mtf_pipeline_order_search(c, &found, NULL));
    g_autoptr(MtfPipelineOrder) order = found.order;
    assert_true(mtf_pipeline_check(order, "search", NULL));
    assert_true(mtf_pipeline_fits(order, c, "search", NULL));
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(order, c->times);
    assert_true(found.bound <= run->span * (1 + 1e-9));
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++) {
        if (row->chunks != 0 && row->chunks != c->chunks)
            continue;
        g_autoptr(MtfPipelineOrder) made = mtf_pipeline_schedule_make(row, c, NULL);
        if (made == NULL)
            continue;
        g_autoptr(MtfPipelineRun) other = mtf_pipeline_run_new(made, c->times);
        assert_true(run->span <= other->span * (1 + 1e-9));
    }
    *proven = found.proven;
    return run->span;
}

TEST(small_orders_equal_all_strings) {
    uint32_t seed = 11;
    for (int round = 0; round < 24; round++) {
        Case it;
        int p = 2 + (int)draw(&seed, 2), m = p == 3 ? 2 : 2 + (int)draw(&seed, 2);
        fill_case(&it, p, m, 1, (MtfStageTimes){ 0 }, (MtfStageMemory){ 2, -1, -1 });
        if (draw(&seed, 2) == 0)
            fill_case(&it, p, m, 1, (MtfStageTimes){ 0 }, (MtfStageMemory){ 1, 0, -1 });
        draw_times(&it, &seed);
        it.c.cap = 2 + draw(&seed, 4);
        double best = best_of_all(&it.c);
        g_autoptr(MtfPipelineOrder) any = mtf_pipeline_schedule_order("gpipe", p, m, 1, NULL);
        assert_true(mtf_pipeline_bound(&it.c, any->rank_of_stage).span <= best * (1 + 1e-9));
        bool proven;
        assert_true(fabs(search(&it.c, &proven) - best) <= 1e-9 * best);
        assert_true(proven);
    }
}

/* The integer program alone, begun with a poor order, finds the best one. */
TEST(the_integer_program_equals_all_strings) {
    uint32_t seed = 5;
    for (int round = 0; round < 8; round++) {
        Case it;
        fill_case(&it, 2, 3, 1, (MtfStageTimes){ 0 }, (MtfStageMemory){ 2, -1, -1 });
        draw_times(&it, &seed);
        it.c.cap = 4 + draw(&seed, 3);
        double best = best_of_all(&it.c), bound = 0;
        g_autoptr(MtfPipelineOrder) poor = mtf_pipeline_order_new(2, 2, 3, MTF_STAGES_LOOP);
        for (int i = 0; i < 3; i++)
            for (int s = 0; s < 2; s++) {
                mtf_pipeline_order_add(poor, MTF_WORK_FORWARD, s, i);
                mtf_pipeline_order_add(poor, MTF_WORK_INPUT_GRADIENT, s, i);
                mtf_pipeline_order_add(poor, MTF_WORK_WEIGHT_GRADIENT, s, i);
            }
        g_autoptr(MtfPipelineOrder) order = mtf_pipeline_ilp_solve(&it.c, poor, &bound, NULL);
        g_autoptr(MtfPipelineRun) run =
            mtf_pipeline_run_new(order != NULL ? order : poor, it.times);
        assert_true(fabs(run->span - best) <= 1e-6 * best);
        assert_true(bound <= best * (1 + 1e-9) && bound >= best * (1 - 1e-5));
    }
}

/* Within 16 halves of a micro-batch the authors' heuristic takes 180000 in their own case, and within 8
 * whole ones 186 in the other. */
TEST(hand_made_orders_are_beaten_where_they_can_be) {
    Case it;
    bool proven;
    fill_case(&it, 4, 12, 1, (MtfStageTimes){ 5478, 5806, 3534, 200, 200 },
              (MtfStageMemory){ 2, -1, -1 });
    it.c.cap = 16;
    assert_true(search(&it.c, &proven) < 179000);
    fill_case(&it, 4, 12, 1, (MtfStageTimes){ 5, 6, 4, 0, 0 }, (MtfStageMemory){ 1, 0, -1 });
    it.c.cap = 8;
    assert_true(search(&it.c, &proven) <= 185);
}

/* At equal times ZB-H1 reaches the bound for p micro-batches, and one micro-batch at a time takes m times
 * its way and back. */
TEST(bounds_are_reached_where_theory_says) {
    Case it;
    bool proven;
    fill_case(&it, 4, 8, 1, (MtfStageTimes){ 1, 1, 1, 0, 0 }, (MtfStageMemory){ 1, 0, -1 });
    it.c.cap = 4;
    assert_true(fabs(search(&it.c, &proven) - 27) < 1e-9 && proven);
    it.c.cap = 1;
    assert_true(fabs(search(&it.c, &proven) - 8 * 9) < 1e-9 && proven);
}

TEST(two_chunks_are_searched_too) {
    Case it;
    bool proven;
    fill_case(&it, 4, 4, 2, (MtfStageTimes){ 1, 1, 1, 0, 0 }, (MtfStageMemory){ 1, 0, -1 });
    it.c.cap = 8;
    assert_true(search(&it.c, &proven) < 30); /* ZB-V by hand takes 30 */
}

TEST(a_cap_below_one_microbatch_does_not_fit) {
    Case it;
    MtfPipelineOrderSearch found;
    g_autoptr(GError) error = NULL;
    fill_case(&it, 2, 4, 2, (MtfStageTimes){ 1, 1, 1, 0, 0 }, (MtfStageMemory){ 1, 0, -1 });
    it.c.cap = 1;
    assert_false(mtf_pipeline_order_search(&it.c, &found, &error));
    assert_int_equal(mtf_error_exit_status(error), 3);
    assert_non_null(strstr(error->message, "takes 2"));
}

TEST(strings_say_what_orders_do) {
    uint32_t seed = 2;
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++) {
        Case it;
        fill_case(&it, 4, 8, row->chunks > 0 ? row->chunks : 3, (MtfStageTimes){ 0 },
                  (MtfStageMemory){ 1, 0, -1 });
        draw_times(&it, &seed);
        g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_make(row, &it.c, NULL);
        g_autoptr(MtfPipelineString) string = mtf_pipeline_string_new(order);
        g_autoptr(MtfPipelineOrder) again = mtf_pipeline_string_order(string);
        assert_true(mtf_pipeline_check(again, row->name, NULL));
        g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(again, it.times);
        g_autoptr(MtfPipelineScorer) scorer = mtf_pipeline_scorer_new(string, &it.c);
        MtfPipelineScore score;
        assert_true(mtf_pipeline_score(scorer, string, &score));
        assert_true(score.span == run->span && score.makespan == run->makespan);
        for (int r = 0; r < 4; r++)
            assert_int_equal(mtf_pipeline_in_flight(again, r), mtf_pipeline_in_flight(order, r));
    }
}

/* ZB-H2 for 12 micro-batches, four times longer, has no more bubble. */
TEST(extended_orders_repeat_their_middle) {
    Case it;
    fill_case(&it, 4, 48, 1, (MtfStageTimes){ 1, 1, 1, 0, 0 }, (MtfStageMemory){ 1, 0, -1 });
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_order("zb-h2", 4, 12, 1, NULL);
    g_autoptr(MtfPipelineString) string = mtf_pipeline_string_new(order);
    g_autoptr(MtfPipelineString) longer = mtf_pipeline_string_extend(string, 36);
    assert_non_null(longer);
    g_autoptr(MtfPipelineScorer) scorer = mtf_pipeline_scorer_new(longer, &it.c);
    MtfPipelineScore score;
    assert_true(mtf_pipeline_score(scorer, longer, &score));
    assert_true(score.span == 144);
}
