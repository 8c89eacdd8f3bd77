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

static void sum_up(MtfPipelineRun *run) {
    for (int r = 0; r < run->ranks; r++) {
        if (isnan(run->first[r]))
            run->first[r] = 0;
        run->makespan = MAX(run->makespan, run->last[r]);
        run->span = MAX(run->span, run->last[r] - run->first[r]);
        run->ideal = MAX(run->ideal, run->busy[r]);
    }
    run->bubble = run->span > 0 ? (run->span - run->ideal) / run->span : 0;
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

MtfPipelineRun *mtf_pipeline_run_steady(const MtfPipelineOrder *order, const MtfStageTimes *times) {
    int m = order->microbatches;
    g_autoptr(MtfPipelineOrder) steady = mtf_pipeline_order_new(
        order->ranks, order->stages, m + mtf_pipeline_lookahead(order, 0), MTF_STAGES_LOOP);
    Player player;
    for (int s = 0; s < order->stages; s++)
        for (int i = 0; i < m; i++) {
            int ahead = mtf_pipeline_lookahead(order, s);
            mtf_pipeline_order_add(steady, MTF_WORK_FORWARD, s, i + ahead);
            mtf_pipeline_order_add(steady, MTF_WORK_BACKWARD, s, i);
        }
    player_init(&player, steady, times);
    for (int s = 0; s < order->stages; s++)
        for (int i = 0; i < mtf_pipeline_lookahead(order, s); i++)
            player.forward[mtf_pipeline_pair(steady, s, i)] = 0;
    return player_finish(&player);
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
