// SPDX-License-Identifier: GPL-3.0-or-later
/* Zero bubble under a memory limit: the greedy heuristic of arXiv 2401.10241, section 3.1, as their
 * repository sail-sg/zero-bubble-pipeline-parallelism runs it (auto_schedule.py). Round after round
 * every rank does one forward (unless that comes too early) and one input gradient; a weight gradient
 * goes where the memory wants it or where the rank would wait:
 *
 *     warm-up   as many forwards as fit before the first backward arrives and memory allows, on each
 *               rank fewer than on the one before it
 *     round i   ranks upwards:   [W …] F      W while memory is full, W while they end before the
 *               ranks downwards: [W …] I      input arrives, one more W where the rank has waited
 *                                             less than the worst has, so that it can afford to
 *     end       the weight gradients that are left
 *
 * Three choices are tried both ways and the order of the shortest span kept. */
#include "cost/pipeline/schedule_rows.h"

#include "layouts/base/error.h"

#include <math.h>

typedef struct {
    bool early;  /* warm-up may make the first backward wait */
    bool hold;   /* a forward waits while the next rank has enough of them */
    bool greedy; /* weight gradients also where the rank need not fill its bubble */
} Choice;

typedef struct {
    int forwards, inputs, weights; /* done so far */
    double time, held, idle;
} RankState;

typedef struct {
    const MtfPipelineCase *c;
    Choice choice;
    double limit; /* of memory */
    MtfPipelineOrder *order;
    RankState *rank;
    double *forward_end, *input_end; /* [rank * microbatches + microbatch] */
    bool failed;
} Maker;

static double worst_idle(const Maker *maker) {
    double worst = 0;
    for (int j = 0; j < maker->c->ranks; j++)
        worst = MAX(worst, maker->rank[j].idle);
    return worst;
}

/* When the input of the rank's next forward, or next input gradient, is there; 0 when it needs none of
 * another rank. */
static double next_arrival(const Maker *maker, int j, MtfPipelineWork work) {
    int p = maker->c->ranks, m = maker->c->microbatches;
    const RankState *rank = &maker->rank[j];
    if (work == MTF_WORK_FORWARD && j > 0)
        return maker->forward_end[(j - 1) * m + rank->forwards] +
               maker->c->times[j - 1].transfer_forward;
    if (work == MTF_WORK_INPUT_GRADIENT && j < p - 1)
        return maker->input_end[(j + 1) * m + rank->inputs] +
               maker->c->times[j + 1].transfer_backward;
    return 0;
}

/* Puts the rank's next piece of that work at its end. */
static void put(Maker *maker, int j, MtfPipelineWork work) {
    int m = maker->c->microbatches;
    RankState *rank = &maker->rank[j];
    int *count = work == MTF_WORK_FORWARD          ? &rank->forwards
                 : work == MTF_WORK_INPUT_GRADIENT ? &rank->inputs
                                                   : &rank->weights;
    const MtfPipelineAction action = { .stage = j, .microbatch = *count, .work = work };
    double arrival = next_arrival(maker, j, work);
    if (rank->forwards > 0 && arrival > rank->time)
        rank->idle += arrival - rank->time;
    rank->time = MAX(rank->time, arrival) + mtf_pipeline_action_seconds(&action, maker->c->times);
    rank->held += mtf_pipeline_action_memory(&action, maker->c->memory);
    if (rank->held > maker->limit * (1 + 1e-12))
        maker->failed = true;
    if (work == MTF_WORK_FORWARD)
        maker->forward_end[j * m + *count] = rank->time;
    else if (work == MTF_WORK_INPUT_GRADIENT)
        maker->input_end[j * m + *count] = rank->time;
    mtf_pipeline_order_add(maker->order, work, j, (*count)++);
}

static bool has_weights_left(const Maker *maker, int j) {
    return maker->rank[j].weights < maker->rank[j].inputs;
}

/* How many more forwards each rank does before its first backward: what fits until that arrives, by
 * when the ranks behind it are through. */
static void count_warmup(const Maker *maker, int *more) {
    const MtfPipelineCase *c = maker->c;
    int p = c->ranks;
    double arrival = maker->forward_end[(p - 1) * c->microbatches] + c->times[p - 1].input_gradient;
    for (int j = p - 2; j >= 0; j--) {
        const RankState *rank = &maker->rank[j];
        double first = arrival + c->times[j + 1].transfer_backward;
        double time = rank->time, held = rank->held, forward = c->times[j].forward;
        while (rank->forwards + more[j] < c->microbatches &&
               held + c->memory[j].forward <= maker->limit &&
               !(maker->choice.early ? time + forward > first : time >= first)) {
            held += c->memory[j].forward;
            time += forward;
            more[j]++;
        }
        arrival = MAX(time, first) + c->times[j].input_gradient;
    }
    for (int j = 1; j < p; j++)
        while (more[j] > 0 && more[j] >= more[j - 1] &&
               maker->rank[j].forwards + more[j] < c->microbatches)
            more[j]--;
}

static void warm_up(Maker *maker) {
    int p = maker->c->ranks;
    g_autofree int *more = g_new0(int, (gsize)p);
    for (int j = 0; j < p; j++)
        put(maker, j, MTF_WORK_FORWARD);
    count_warmup(maker, more);
    for (int j = 0; j < p; j++)
        while (more[j]-- > 0)
            put(maker, j, MTF_WORK_FORWARD);
    for (int j = p - 1; j >= 0; j--)
        put(maker, j, MTF_WORK_INPUT_GRADIENT);
}

/* Seconds of the weight gradients that must go first for another forward to fit. */
static double seconds_to_make_room(const Maker *maker, int j) {
    const MtfPipelineCase *c = maker->c;
    const RankState *rank = &maker->rank[j];
    double held = rank->held + c->memory[j].forward, seconds = 0;
    for (int w = rank->weights; held > maker->limit && w < rank->inputs; w++) {
        seconds += c->times[j].weight_gradient;
        held += c->memory[j].weight_gradient;
    }
    return seconds;
}

/* Whether rank j does a forward in this round, seen by itself. */
static bool wants_forward(const Maker *maker, int j) {
    const MtfPipelineCase *c = maker->c;
    const RankState *rank = &maker->rank[j], *next = &maker->rank[j + 1];
    if (rank->forwards >= c->microbatches)
        return false;
    if (!maker->choice.hold || j + 1 == c->ranks || rank->forwards < next->forwards + 2)
        return true;
    /* The next rank is supplied: its backward comes this late at the earliest. */
    double back = next->time + c->times[j + 1].forward + c->times[j + 1].input_gradient +
                  c->times[j].transfer_forward;
    if (rank->time >= back)
        return false;
    return rank->time + c->times[j].forward + seconds_to_make_room(maker, j) <= back ||
           back - rank->time > worst_idle(maker) - rank->idle;
}

static void make_room(Maker *maker, int j, double needed) {
    while (maker->rank[j].held + needed > maker->limit && !maker->failed) {
        if (has_weights_left(maker, j))
            put(maker, j, MTF_WORK_WEIGHT_GRADIENT);
        else
            maker->failed = true;
    }
}

/* Weight gradients while the rank waits for the input of `work`. */
static void fill_wait(Maker *maker, int j, MtfPipelineWork work) {
    RankState *rank = &maker->rank[j];
    double arrival = next_arrival(maker, j, work);
    while (has_weights_left(maker, j) && rank->time + maker->c->times[j].weight_gradient <= arrival)
        put(maker, j, MTF_WORK_WEIGHT_GRADIENT);
    if (!has_weights_left(maker, j) || rank->time >= arrival)
        return;
    if (maker->choice.greedy || arrival - rank->time > worst_idle(maker) - rank->idle)
        put(maker, j, MTF_WORK_WEIGHT_GRADIENT);
}

static void do_forwards(Maker *maker) {
    int p = maker->c->ranks;
    g_autofree bool *wanted = g_new(bool, (gsize)p);
    for (int j = 0; j < p; j++)
        wanted[j] = wants_forward(maker, j);
    for (int j = p - 2; j >= 0; j--)
        wanted[j] = wanted[j] && wanted[j + 1];
    for (int j = 0; j < p; j++) {
        if (!wanted[j])
            continue;
        make_room(maker, j, maker->c->memory[j].forward);
        if (j > 0)
            fill_wait(maker, j, MTF_WORK_FORWARD);
        put(maker, j, MTF_WORK_FORWARD);
    }
}

static void do_input_gradients(Maker *maker) {
    int p = maker->c->ranks;
    for (int j = p - 1; j >= 0; j--) {
        make_room(maker, j, maker->c->memory[j].input_gradient);
        if (j + 1 < p)
            fill_wait(maker, j, MTF_WORK_INPUT_GRADIENT);
        while (j == 0 && maker->rank[0].forwards == maker->c->microbatches &&
               has_weights_left(maker, 0))
            put(maker, 0, MTF_WORK_WEIGHT_GRADIENT);
        put(maker, j, MTF_WORK_INPUT_GRADIENT);
    }
}

/* The order of one choice, NULL when memory runs out. */
static MtfPipelineOrder *make_by(const MtfPipelineCase *c, double limit, Choice choice) {
    gsize pairs = (gsize)c->ranks * (gsize)c->microbatches;
    Maker maker = { .c = c, .choice = choice, .limit = limit };
    maker.order = mtf_pipeline_order_new(c->ranks, c->ranks, c->microbatches, MTF_STAGES_LOOP);
    maker.rank = g_new0(RankState, (gsize)c->ranks);
    maker.forward_end = g_new0(double, pairs);
    maker.input_end = g_new0(double, pairs);
    warm_up(&maker);
    for (int i = 1; i < c->microbatches && !maker.failed; i++) {
        do_forwards(&maker);
        for (int j = 0; j < c->ranks; j++)
            maker.failed = maker.failed || maker.rank[j].forwards <= i;
        if (!maker.failed)
            do_input_gradients(&maker);
    }
    for (int j = 0; j < c->ranks && !maker.failed; j++)
        while (has_weights_left(&maker, j))
            put(&maker, j, MTF_WORK_WEIGHT_GRADIENT);
    if (maker.failed)
        g_clear_pointer(&maker.order, mtf_pipeline_order_free);
    g_free(maker.rank);
    g_free(maker.forward_end);
    g_free(maker.input_end);
    return maker.order;
}

static MtfPipelineOrder *make_best(const MtfPipelineCase *c, double limit, GError **error) {
    g_autoptr(MtfPipelineOrder) best = NULL;
    double best_span = INFINITY;
    for (int bits = 7; bits >= 0; bits--) {
        Choice choice = { bits & 4, bits & 2, bits & 1 };
        g_autoptr(MtfPipelineOrder) order = make_by(c, limit, choice);
        if (order == NULL)
            continue;
        g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(order, c->times);
        if (run->span >= best_span)
            continue;
        best_span = run->span;
        mtf_pipeline_order_free(best);
        best = g_steal_pointer(&order);
    }
    if (best == NULL)
        g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                    "the zero-bubble heuristic finds no order within the memory of %.10g", limit);
    return g_steal_pointer(&best);
}

static double memory_of_microbatches(const MtfPipelineCase *c, int count) {
    double most = 0;
    for (int j = 0; j < c->ranks; j++)
        most = MAX(most, c->memory[j].forward);
    return MIN(c->cap, count * most);
}

MtfPipelineOrder *mtf_schedule_zero_bubble_1p(const MtfPipelineCase *c, GError **error) {
    return make_best(c, memory_of_microbatches(c, c->ranks), error);
}

MtfPipelineOrder *mtf_schedule_zero_bubble_2p(const MtfPipelineCase *c, GError **error) {
    return make_best(c, memory_of_microbatches(c, 2 * c->ranks), error);
}

MtfPipelineOrder *mtf_schedule_zero_bubble_auto(const MtfPipelineCase *c, GError **error) {
    return make_best(c, memory_of_microbatches(c, 3 * c->microbatches), error);
}
