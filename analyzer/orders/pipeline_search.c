// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/orders/pipeline_search.h"

#include "analyzer/orders/pipeline_ilp.h"
#include "cost/pipeline/pipeline_anneal.h"
#include "cost/pipeline/pipeline_bound.h"
#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_check.h"

#include <math.h>

#define EFFORT 1e9         /* letters played by all of local search together */
#define MOVES_MAX 300000   /* of one order */
#define BEGINNINGS 3       /* orders that local search betters */
#define SEED 20241125      /* any number: the same answer every day */
#define PROVEN 2e-6        /* relative: the solver's tolerance */
#define ILP_PAIRS_MAX 90   /* open pairs of the largest integer program */
#define SHORT_LETTERS 2000 /* orders of more are first looked for with fewer micro-batches */

/* An order with what it is worth. */
typedef struct {
    MtfPipelineString *string;
    MtfPipelineScore score;
    double bound; /* for its stages' places on the ranks */
    const char *name;
} Candidate;

static void free_candidate(gpointer data) {
    Candidate *candidate = data;
    mtf_pipeline_string_free(candidate->string);
    g_free(candidate);
}

static int compare_candidates(gconstpointer a, gconstpointer b) {
    const Candidate *p = *(Candidate *const *)a, *q = *(Candidate *const *)b;
    if (mtf_pipeline_score_is_better(&p->score, &q->score))
        return -1;
    return mtf_pipeline_score_is_better(&q->score, &p->score);
}

/* Takes over `string` as a candidate if it plays and fits, else frees it. */
static void add_string(GPtrArray *candidates, const MtfPipelineCase *c, MtfPipelineString *string,
                       const char *name) {
    g_autoptr(MtfPipelineScorer) scorer = mtf_pipeline_scorer_new(string, c);
    Candidate *candidate = g_new0(Candidate, 1);
    candidate->string = string;
    candidate->name = name;
    bool fits = mtf_pipeline_score(scorer, string, &candidate->score);
    for (int r = 0; r < string->ranks && fits; r++)
        fits = mtf_pipeline_string_fits(scorer, string, r);
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_string_order(string);
    candidate->bound = mtf_pipeline_bound(c, order->rank_of_stage).span;
    if (fits)
        g_ptr_array_add(candidates, candidate);
    else
        free_candidate(candidate);
}

/* The table's schedules that fit as they are. */
static void add_table(GPtrArray *candidates, const MtfPipelineCase *c) {
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++) {
        if (row->chunks != 0 && row->chunks != c->chunks)
            continue;
        g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_make(row, c, NULL);
        if (order != NULL)
            add_string(candidates, c, mtf_pipeline_string_new(order), row->name);
    }
}

/* Rank s begins with `warmup` forwards; then an input gradient, a forward and, from micro-batch `lag` on, a
 * weight gradient in turn. */
static void add_warmed_rank(MtfPipelineOrder *order, int rank, int warmup, int lag) {
    int m = order->microbatches, forwards = 0, weights = 0;
    while (forwards < MIN(warmup, m))
        mtf_pipeline_order_add(order, MTF_WORK_FORWARD, rank, forwards++);
    for (int i = 0; i < m; i++) {
        mtf_pipeline_order_add(order, MTF_WORK_INPUT_GRADIENT, rank, i);
        if (i >= lag)
            mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, rank, weights++);
        if (forwards < m)
            mtf_pipeline_order_add(order, MTF_WORK_FORWARD, rank, forwards++);
    }
    while (weights < m)
        mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, rank, weights++);
}

/* 1F1B, ZB-H1 and what lies between ZB-H1 and ZB-H2, with at most `most` micro-batches in flight. */
static void add_warmed(GPtrArray *candidates, const MtfPipelineCase *c, int most) {
    for (int slope = 1; slope <= 4; slope++)
        for (int late = 0; late < 2; late++) {
            MtfPipelineOrder *order =
                mtf_pipeline_order_new(c->ranks, c->ranks, c->microbatches, MTF_STAGES_LOOP);
            for (int s = 0; s < c->ranks; s++) {
                int warmup = MIN(1 + (c->ranks - 1 - s) * (slope + 1) / 2, most);
                add_warmed_rank(order, s, warmup, late ? most - warmup : 0);
            }
            add_string(candidates, c, mtf_pipeline_string_new(order), "1f1b");
            mtf_pipeline_order_free(order);
        }
}

/* Micro-batch after micro-batch: what fits if anything does. */
static void add_one_by_one(GPtrArray *candidates, const MtfPipelineCase *c) {
    int stages = c->ranks * c->chunks;
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(c->ranks, stages, c->microbatches, MTF_STAGES_LOOP);
    for (int m = 0; m < c->microbatches; m++) {
        for (int s = 0; s < stages; s++)
            mtf_pipeline_order_add(order, MTF_WORK_FORWARD, s, m);
        for (int s = stages - 1; s >= 0; s--) {
            mtf_pipeline_order_add(order, MTF_WORK_INPUT_GRADIENT, s, m);
            mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, s, m);
        }
    }
    add_string(candidates, c, mtf_pipeline_string_new(order), "one by one");
    mtf_pipeline_order_free(order);
}

static GPtrArray *collect(const MtfPipelineCase *c) {
    GPtrArray *candidates = g_ptr_array_new_with_free_func(free_candidate);
    add_table(candidates, c);
    double most = c->cap / c->memory[0].forward;
    if (c->chunks == 1)
        add_warmed(candidates, c, (int)MIN(floor(most * (1 + 1e-9)), 3 * c->ranks));
    add_one_by_one(candidates, c);
    g_ptr_array_sort(candidates, compare_candidates);
    return candidates;
}

/* Betters the best few candidates within `effort` letters. */
static void better(GPtrArray *candidates, const MtfPipelineCase *c, double effort) {
    for (guint i = 0; i < MIN(candidates->len, BEGINNINGS); i++) {
        Candidate *candidate = g_ptr_array_index(candidates, i);
        double letters = (double)candidate->string->length * candidate->string->ranks;
        int64_t moves =
            (int64_t)MIN(effort / MIN(candidates->len, BEGINNINGS) / letters, MOVES_MAX);
        candidate->score =
            mtf_pipeline_anneal(candidate->string, c, moves, candidate->bound, SEED + i);
        if (candidate->score.span <= candidate->bound * (1 + 1e-9))
            break;
    }
    g_ptr_array_sort(candidates, compare_candidates);
}

/* Looks among fewer micro-batches first and adds what it finds, extended. */
static void add_extended(GPtrArray *candidates, const MtfPipelineCase *c) {
    MtfPipelineCase fewer = *c;
    fewer.microbatches = MAX(3 * c->ranks, 8);
    int letters = 3 * c->chunks * c->ranks * c->microbatches;
    if (letters <= SHORT_LETTERS || fewer.microbatches >= c->microbatches)
        return;
    g_autoptr(GPtrArray) found = collect(&fewer);
    better(found, &fewer, EFFORT / 2);
    for (guint i = 0; i < MIN(found->len, BEGINNINGS); i++) {
        const Candidate *candidate = g_ptr_array_index(found, i);
        MtfPipelineString *longer =
            mtf_pipeline_string_extend(candidate->string, c->microbatches - fewer.microbatches);
        if (longer != NULL)
            add_string(candidates, c, longer, candidate->name);
    }
    g_ptr_array_sort(candidates, compare_candidates);
}

/* Sums of whole times are whole, so no span lies between a bound and the next whole number. */
static double round_up_whole(const MtfPipelineCase *c, double bound) {
    for (int s = 0; s < c->ranks * c->chunks; s++) {
        const MtfStageTimes *t = &c->times[s];
        const double times[] = { t->forward, t->input_gradient, t->weight_gradient,
                                 t->transfer_forward, t->transfer_backward };
        for (gsize k = 0; k < G_N_ELEMENTS(times); k++)
            if (times[k] != floor(times[k]))
                return bound;
    }
    return bound < 1e5 ? ceil(bound - 0.2) : bound; /* the solver's tolerance is below 0.2 */
}

/* Small ones to the integer program, unless the bound is reached already. */
static bool prove(const MtfPipelineCase *c, MtfPipelineOrderSearch *answer, double span,
                  GError **error) {
    GError *failed = NULL;
    if (span <= answer->bound * (1 + 1e-9) || !mtf_pipeline_ilp_suits(c, ILP_PAIRS_MAX))
        return true;
    MtfPipelineOrder *better = mtf_pipeline_ilp_solve(c, answer->order, &answer->bound, &failed);
    if (failed != NULL) {
        g_propagate_error(error, failed);
        return false;
    }
    if (better == NULL)
        return true;
    mtf_pipeline_order_free(answer->order);
    answer->order = better;
    answer->begun = "integer program";
    return true;
}

bool mtf_pipeline_order_search(const MtfPipelineCase *c, MtfPipelineOrderSearch *answer,
                               GError **error) {
    MtfPipelineOrder *places =
        mtf_pipeline_order_new(c->ranks, c->ranks * c->chunks, 1, MTF_STAGES_LOOP);
    double least = mtf_pipeline_least_cap(c, places->rank_of_stage);
    mtf_pipeline_order_free(places);
    if (least > c->cap * (1 + 1e-9)) {
        g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                    "no order holds at most %.10g on every device: one micro-batch takes %.10g, "
                    "which is the least that will do",
                    c->cap, least);
        return false;
    }
    g_autoptr(GPtrArray) candidates = collect(c);
    add_extended(candidates, c);
    better(candidates, c, EFFORT);
    const Candidate *best = g_ptr_array_index(candidates, 0);
    answer->order = mtf_pipeline_string_order(best->string);
    answer->bound = best->bound;
    answer->begun = best->name;
    if (!prove(c, answer, best->score.span, error)) {
        g_clear_pointer(&answer->order, mtf_pipeline_order_free);
        return false;
    }
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(answer->order, c->times);
    answer->bound = MIN(round_up_whole(c, answer->bound), run->span);
    answer->proven = run->span <= answer->bound * (1 + PROVEN);
    g_assert(mtf_pipeline_check(answer->order, "search", NULL));
    return true;
}
