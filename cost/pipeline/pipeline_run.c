// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/pipeline/pipeline_run.h"

#include "layouts/pipeline/pipeline_delay.h"

#include <math.h>

double mtf_pipeline_action_seconds(const MtfPipelineAction *action, const MtfStageTimes *times) {
    const MtfStageTimes *t = &times[action->stage];
    switch (action->work) {
    case MTF_WORK_FORWARD:
        return t->forward;
    case MTF_WORK_INPUT_GRADIENT:
        return t->input_gradient;
    case MTF_WORK_WEIGHT_GRADIENT:
        return t->weight_gradient;
    case MTF_WORK_BACKWARD:
        return t->input_gradient + t->weight_gradient;
    default:
        return 0;
    }
}

double mtf_pipeline_action_memory(const MtfPipelineAction *action, const MtfStageMemory *memory) {
    const MtfStageTimes as_times = { memory[action->stage].forward,
                                     memory[action->stage].input_gradient,
                                     memory[action->stage].weight_gradient, 0, 0 };
    MtfPipelineAction first = *action;
    first.stage = 0;
    return mtf_pipeline_action_seconds(&first, &as_times);
}

double mtf_pipeline_peak(const MtfPipelineOrder *order, const MtfStageMemory *memory, int rank) {
    double held = 0, most = 0;
    for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
        held += mtf_pipeline_action_memory(mtf_pipeline_action(order, rank, i), memory);
        most = MAX(most, held);
    }
    return most;
}

/* When the results of each pair (stage, micro-batch) are made; NAN before. */
typedef struct {
    const MtfPipelineOrder *order;
    const MtfStageTimes *times;
    MtfPipelineRun *run;
    double *forward, *gradient; /* [pairs] */
    int *head;                  /* [ranks] */
} Player;

/* When the result of another stage is at hand on this stage's rank; NAN when it is not made yet. */
static double arrival(const Player *player, int from, int to, int microbatch) {
    const MtfPipelineOrder *order = player->order;
    bool forward = to > from;
    const double *made = forward ? player->forward : player->gradient;
    double end = made[mtf_pipeline_pair(order, from, microbatch)];
    if (order->rank_of_stage[from] == order->rank_of_stage[to])
        return end;
    const MtfStageTimes *times = &player->times[from];
    return end + (forward ? times->transfer_forward : times->transfer_backward);
}

/* When everything that the action needs is there; NAN when something is not made yet. */
static double ready_time(const Player *player, const MtfPipelineAction *action) {
    const MtfPipelineOrder *order = player->order;
    int stage = action->stage, microbatch = action->microbatch;
    if (action->work == MTF_WORK_FORWARD)
        return stage > 0 ? arrival(player, stage - 1, stage, microbatch) : 0;
    if (!mtf_work_makes_input_gradient(action->work))
        return 0;
    double own = player->forward[mtf_pipeline_pair(order, stage, microbatch)];
    if (stage == order->stages - 1 || isnan(own))
        return own;
    return arrival(player, stage + 1, stage, microbatch);
}

static void note_result(Player *player, const MtfPipelineAction *action, double end) {
    if (action->microbatch < 0)
        return;
    int pair = mtf_pipeline_pair(player->order, action->stage, action->microbatch);
    if (action->work == MTF_WORK_FORWARD)
        player->forward[pair] = end;
    else if (mtf_work_makes_input_gradient(action->work))
        player->gradient[pair] = end;
}

/* Begins the rank's actions that can begin by what is known; whether there was one. */
static bool play_rank(Player *player, int rank) {
    MtfPipelineRun *run = player->run;
    int first = player->head[rank], length = mtf_pipeline_length(player->order, rank);
    for (; player->head[rank] < length; player->head[rank]++) {
        const MtfPipelineAction *action =
            mtf_pipeline_action(player->order, rank, player->head[rank]);
        double ready = ready_time(player, action);
        if (isnan(ready))
            break;
        double seconds = mtf_pipeline_action_seconds(action, player->times);
        double begin = MAX(run->last[rank], mtf_work_computes(action->work) ? ready : 0);
        run->time[rank][player->head[rank]] = (MtfActionTime){ begin, begin + seconds };
        if (mtf_work_computes(action->work) && isnan(run->first[rank]))
            run->first[rank] = begin;
        run->last[rank] = begin + seconds;
        run->busy[rank] += seconds;
        note_result(player, action, begin + seconds);
    }
    return player->head[rank] > first;
}

static void play(Player *player) {
    for (bool played = true; played;) {
        played = false;
        for (int r = 0; r < player->order->ranks; r++)
            played = play_rank(player, r) || played;
    }
    for (int r = 0; r < player->order->ranks; r++)
        g_assert(player->head[r] == mtf_pipeline_length(player->order, r));
}

static double *new_numbers(gsize count, double value) {
    double *numbers = g_new(double, count);
    for (gsize i = 0; i < count; i++)
        numbers[i] = value;
    return numbers;
}

static MtfPipelineRun *new_run(const MtfPipelineOrder *order) {
    MtfPipelineRun *run = g_new0(MtfPipelineRun, 1);
    gsize ranks = (gsize)order->ranks;
    run->ranks = order->ranks;
    run->time = g_new(MtfActionTime *, ranks);
    for (int r = 0; r < order->ranks; r++)
        run->time[r] = g_new0(MtfActionTime, (gsize)mtf_pipeline_length(order, r));
    run->first = new_numbers(ranks, NAN);
    run->last = new_numbers(ranks, 0);
    run->busy = new_numbers(ranks, 0);
    return run;
}

/* What differs by less than a rounding is the same. */
static double bubble_of(const MtfPipelineRun *run) {
    double waits = run->span - run->ideal;
    return waits > 1e-12 * run->span ? waits / run->span : 0;
}

static void sum_up(MtfPipelineRun *run) {
    for (int r = 0; r < run->ranks; r++) {
        if (isnan(run->first[r]))
            run->first[r] = 0;
        run->makespan = MAX(run->makespan, run->last[r]);
        run->span = MAX(run->span, run->last[r] - run->first[r]);
        run->ideal = MAX(run->ideal, run->busy[r]);
    }
    run->bubble = bubble_of(run);
}

static void player_init(Player *player, const MtfPipelineOrder *order, const MtfStageTimes *times) {
    gsize pairs = (gsize)order->stages * (gsize)order->microbatches;
    *player = (Player){ order,
                        times,
                        new_run(order),
                        new_numbers(pairs, NAN),
                        new_numbers(pairs, NAN),
                        g_new0(int, (gsize)order->ranks) };
}

/* Plays to the end; returns the run. */
static MtfPipelineRun *player_finish(Player *player) {
    play(player);
    sum_up(player->run);
    g_free(player->forward);
    g_free(player->gradient);
    g_free(player->head);
    return player->run;
}

MtfPipelineRun *mtf_pipeline_run_new(const MtfPipelineOrder *order, const MtfStageTimes *times) {
    Player player;
    player_init(&player, order, times);
    return player_finish(&player);
}

/* ---- Steps that overlap ---------------------------------------------------------------------- */

/* Steps that are played until they take equally long, and over which that is measured. */
#define SETTLING_STEPS 32
#define STEADY_STEPS 32

MtfPipelineOrder *mtf_pipeline_steady_order(const MtfPipelineOrder *order) {
    int m = order->microbatches;
    MtfPipelineOrder *steady =
        mtf_pipeline_order_new(order->ranks, order->stages, m, MTF_STAGES_LOOP);
    for (int s = 0; s < order->stages; s++)
        for (int i = 0; i < m; i++) {
            int ahead = mtf_pipeline_lookahead(order, s);
            mtf_pipeline_order_add(steady, MTF_WORK_FORWARD, s, (i + ahead) % m);
            mtf_pipeline_order_add(steady, MTF_WORK_BACKWARD, s, i);
        }
    return steady;
}

/* Micro-batches of all steps have numbers of their own: forward[s][n] and gradient[s][n] are when they are done,
 * free[s] when a stage has done what it had to, done[t] when all have done the passes of step t. */
typedef struct {
    const MtfPipelineOrder *order;
    const MtfSteadyTimes *times;
    MtfPipelineRun *run; /* of the last step */
    int n, last;         /* numbers of a stage; the last step */
    double *forward, *gradient, *free, *done;
} Steady;

static double pass_seconds(const MtfStageTimes *times, MtfPipelineWork work) {
    return work == MTF_WORK_FORWARD ? times->forward
                                    : times->input_gradient + times->weight_gradient;
}

/* A stage's pass, which begins when what it reads has come at `ready`. */
static double play_pass(Steady *p, int s, int turn, MtfPipelineWork work, double ready) {
    MtfPipelineRun *run = p->run;
    int m = p->order->microbatches, step = turn / m;
    double begin = fmax(p->free[s], ready);
    p->free[s] = begin + pass_seconds(&p->times->times[s], work);
    if (step < p->last)
        return p->free[s];
    int place = 2 * (turn % m) + (work != MTF_WORK_FORWARD);
    run->time[s][place] = (MtfActionTime){ begin, p->free[s] };
    run->first[s] = isnan(run->first[s]) ? begin : run->first[s];
    run->last[s] = p->free[s];
    run->busy[s] += p->free[s] - begin;
    return p->free[s];
}

static void play_turn(Steady *p, int s, int turn) {
    const MtfStageTimes *times = p->times->times;
    int ahead = turn + mtf_pipeline_lookahead(p->order, s);
    bool first = s == 0, last = s == p->order->stages - 1;
    double input = first ? 0 : p->forward[(s - 1) * p->n + ahead] + times[s - 1].transfer_forward;
    p->forward[s * p->n + ahead] = play_pass(p, s, turn, MTF_WORK_FORWARD, input);
    double above = last ? 0 : p->gradient[(s + 1) * p->n + turn] + times[s + 1].transfer_backward;
    p->gradient[s * p->n + turn] = play_pass(p, s, turn, MTF_WORK_BACKWARD, above);
}

/* The last stage first: what others send it was sent a turn before. */
static void play_step(Steady *p, int step) {
    int m = p->order->microbatches, known = step - p->times->ahead;
    for (int turn = step * m; turn < (step + 1) * m; turn++)
        for (int s = p->order->stages - 1; s >= 0; s--)
            play_turn(p, s, turn);
    for (int s = 0; s < p->order->stages; s++)
        p->done[step] = fmax(p->done[step], p->free[s]);
    for (int s = 0; s < p->order->stages; s++)
        p->free[s] = fmax(p->free[s], known >= 0 ? p->done[known] : 0) + p->times->once[s];
}

static void show_from_zero(MtfPipelineRun *run, int actions) {
    double begin = INFINITY;
    for (int r = 0; r < run->ranks; r++)
        begin = fmin(begin, run->first[r]);
    for (int r = 0; r < run->ranks; r++) {
        for (int i = 0; i < actions; i++) {
            run->time[r][i].begin -= begin;
            run->time[r][i].end -= begin;
        }
        run->first[r] -= begin;
        run->last[r] -= begin;
    }
}

/* What the busiest stage waits for; the rest of its time is what it computes. */
static void sum_up_steady(const Steady *p, double period) {
    MtfPipelineRun *run = p->run;
    show_from_zero(run, 2 * p->order->microbatches);
    sum_up(run);
    int busiest = 0;
    for (int s = 1; s < run->ranks; s++)
        if (run->busy[s] + p->times->once[s] > run->busy[busiest] + p->times->once[busiest])
            busiest = s;
    run->period = period;
    run->ideal = run->busy[busiest];
    run->span = fmax(run->ideal, period - p->times->once[busiest]);
    run->bubble = bubble_of(run);
}

MtfPipelineRun *mtf_pipeline_run_steady(const MtfPipelineOrder *order,
                                        const MtfSteadyTimes *times) {
    int stages = order->stages, steps = SETTLING_STEPS + STEADY_STEPS;
    g_autoptr(MtfPipelineOrder) steady = mtf_pipeline_steady_order(order);
    Steady p = { order, times, new_run(steady), .last = steps - 1 };
    p.n = steps * order->microbatches + mtf_pipeline_lookahead(order, 0);
    p.forward = g_new0(double, (gsize)stages *(gsize)p.n);
    p.gradient = g_new0(double, (gsize)stages *(gsize)p.n);
    p.free = g_new0(double, stages);
    p.done = g_new0(double, steps);
    for (int step = 0; step < steps; step++)
        play_step(&p, step);
    sum_up_steady(&p, (p.done[steps - 1] - p.done[SETTLING_STEPS - 1]) / STEADY_STEPS);
    g_free(p.forward);
    g_free(p.gradient);
    g_free(p.free);
    g_free(p.done);
    return p.run;
}

void mtf_pipeline_run_free(MtfPipelineRun *run) {
    if (run == NULL)
        return;
    for (int r = 0; r < run->ranks; r++)
        g_free(run->time[r]);
    g_free(run->time);
    g_free(run->first);
    g_free(run->last);
    g_free(run->busy);
    g_free(run);
}
