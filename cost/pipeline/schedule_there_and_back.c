// SPDX-License-Identifier: GPL-3.0-or-later
/* ZB-V: zero bubble on stages that go there and back (arXiv 2401.10241, section 6), by the greedy
 * generator of the authors' repository (sail-sg/zero-bubble-pipeline-parallelism, v_schedule.py).
 * Each rank has four streams of micro-batches, and the weight gradients that follow the last two:
 *
 *     F0 ────────►┐          rank 0 … p-1, stages 0 … p-1
 *     F1 ◄────────┘          stages p … 2p-1
 *     I1 └────────►┐         there again, stages 2p-1 … p
 *     I0 ◄─────────┘         stages p-1 … 0
 *
 * After a warm-up that fills the pipeline, every rank takes one input gradient and one forward in
 * turn; weight gradients go where memory wants room, where they fit before the input arrives, and
 * where waiting would make this rank the worst. What counts as worst is learned from a first pass,
 * and passes go on while they improve. All four ways to fill are tried. Too few
 * micro-batches to fill the pipeline, m < 2p - 1, run in the order by hand. */
#include "cost/pipeline/schedule_rows.h"

#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

/* The streams in the order of the data. Downwards streams go from rank 0 to p - 1. */
enum { FORWARD_DOWN, FORWARD_UP, GRADIENT_DOWN, GRADIENT_UP, STREAMS };

typedef struct {
    int count[STREAMS]; /* micro-batches done */
    double time, held, idle;
    GQueue weights; /* streams of the weight gradients to be done, oldest first */
    int weight_count[STREAMS];
} RankState;

typedef struct {
    const MtfPipelineCase *c;
    double limit;
    bool fill_forwards, fill_gradients; /* weight gradients also before these */
    const double *allowed;              /* [ranks] idle times of the pass before; NULL at first */
    MtfPipelineOrder *order;
    RankState *rank;
    double *end; /* [(stream * ranks + rank) * microbatches + microbatch]; NAN before */
    bool failed;
} Maker;

static bool is_downwards(int stream) {
    return stream == FORWARD_DOWN || stream == GRADIENT_DOWN;
}

static int stage_of(const Maker *maker, int stream, int rank) {
    bool first = stream == FORWARD_DOWN || stream == GRADIENT_UP;
    return first ? rank : 2 * maker->c->ranks - 1 - rank;
}

static double *end_of(const Maker *maker, int stream, int rank, int microbatch) {
    return &maker->end[(stream * maker->c->ranks + rank) * maker->c->microbatches + microbatch];
}

/* Where the stream comes from to this rank; -1 where it begins or turns here. */
static int rank_before(const Maker *maker, int stream, int rank) {
    if (is_downwards(stream))
        return rank - 1;
    return rank + 1 < maker->c->ranks ? rank + 1 : -1;
}

/* When the stream's next micro-batch can begin here; NAN when nobody has made its input yet. */
static double next_arrival(const Maker *maker, int stream, int rank) {
    int microbatch = maker->rank[rank].count[stream], before = rank_before(maker, stream, rank);
    if (before < 0)
        return stream == FORWARD_DOWN ? 0 : *end_of(maker, stream - 1, rank, microbatch);
    const MtfStageTimes *times = &maker->c->times[stage_of(maker, stream, before)];
    return *end_of(maker, stream, before, microbatch) +
           (stream < GRADIENT_DOWN ? times->transfer_forward : times->transfer_backward);
}

static void put_action(Maker *maker, int rank, const MtfPipelineAction *action, double arrival) {
    RankState *state = &maker->rank[rank];
    if (state->count[FORWARD_DOWN] > 0 && arrival > state->time)
        state->idle += arrival - state->time;
    state->time = MAX(state->time, arrival) + mtf_pipeline_action_seconds(action, maker->c->times);
    state->held += mtf_pipeline_action_memory(action, maker->c->memory);
    if (state->held > maker->limit * (1 + 1e-12))
        maker->failed = true;
    mtf_pipeline_order_add(maker->order, action->work, action->stage, action->microbatch);
}

static void put(Maker *maker, int stream, int rank) {
    RankState *state = &maker->rank[rank];
    double arrival =
        state->count[stream] < maker->c->microbatches ? next_arrival(maker, stream, rank) : NAN;
    if (isnan(arrival)) {
        maker->failed = true;
        return;
    }
    MtfPipelineAction action = {
        .stage = stage_of(maker, stream, rank),
        .microbatch = state->count[stream],
        .work = stream < GRADIENT_DOWN ? MTF_WORK_FORWARD : MTF_WORK_INPUT_GRADIENT,
    };
    put_action(maker, rank, &action, arrival);
    *end_of(maker, stream, rank, state->count[stream]++) = state->time;
    if (stream >= GRADIENT_DOWN)
        g_queue_push_tail(&state->weights, GINT_TO_POINTER(stream));
}

static bool has_weights_left(const Maker *maker, int rank) {
    return !g_queue_is_empty(&maker->rank[rank].weights);
}

static void put_weight(Maker *maker, int rank) {
    RankState *state = &maker->rank[rank];
    int stream = GPOINTER_TO_INT(g_queue_pop_head(&state->weights));
    const MtfPipelineAction action = { .stage = stage_of(maker, stream, rank),
                                       .microbatch = state->weight_count[stream]++,
                                       .work = MTF_WORK_WEIGHT_GRADIENT };
    put_action(maker, rank, &action, 0);
}

/* Forwards of the first way while the first one comes back from the far end, then both ways in turn
 * until each rank has as many as the one before it. */
static void warm_up(Maker *maker) {
    int p = maker->c->ranks, m = maker->c->microbatches;
    const MtfPipelineCase *c = maker->c;
    for (int i = 0; i < p; i++)
        put(maker, FORWARD_DOWN, i);
    for (int i = p - 1; i >= 0 && !maker->failed; i--) {
        const RankState *state = &maker->rank[i];
        double back = next_arrival(maker, FORWARD_UP, i);
        while (i < p - 1 && !maker->failed &&
               state->held + c->memory[i].forward * (2 + 2 * i) <= maker->limit &&
               state->time + c->times[i].forward <= back && state->count[FORWARD_DOWN] < m - i)
            for (int j = 0; j <= i; j++)
                put(maker, FORWARD_DOWN, j);
        put(maker, FORWARD_UP, i);
    }
    int way = FORWARD_DOWN;
    for (int i = 1; i < p && !maker->failed; i++) {
        const int *here = maker->rank[i].count, *before = maker->rank[i - 1].count;
        while (!maker->failed && (here[0] + here[1] < before[0] + before[1] ||
                                  (here[1] <= before[1] && before[1] < m))) {
            for (int j = p - 1; j >= i; j--)
                if (maker->rank[j].count[way] < m)
                    put(maker, way, j);
            way = way == FORWARD_DOWN ? FORWARD_UP : FORWARD_DOWN;
        }
    }
}

/* How much longer this rank may idle without becoming the worst. */
static double idle_allowed(const Maker *maker, int rank) {
    double worst = 0, allowed = -1;
    for (int j = 0; j < maker->c->ranks; j++) {
        worst = MAX(worst, maker->rank[j].idle);
        allowed = maker->allowed != NULL ? MAX(allowed, maker->allowed[j]) : allowed;
    }
    if (maker->allowed != NULL)
        worst = MAX(worst, allowed - maker->allowed[rank]);
    return worst - maker->rank[rank].idle;
}

/* Weight gradients before the next of `stream`, `fill`: also where that only keeps this rank from
 * becoming the worst. */
static void fill_wait(Maker *maker, int stream, int rank, bool fill) {
    RankState *state = &maker->rank[rank];
    if (rank_before(maker, stream, rank) < 0)
        return;
    double arrival = next_arrival(maker, stream, rank);
    while (has_weights_left(maker, rank) &&
           arrival >= state->time + maker->c->times[rank].weight_gradient)
        put_weight(maker, rank);
    if (fill && has_weights_left(maker, rank) && arrival - state->time > idle_allowed(maker, rank))
        put_weight(maker, rank);
}

static void make_room(Maker *maker, int rank, double needed) {
    while (maker->rank[rank].held + needed > maker->limit && !maker->failed) {
        if (has_weights_left(maker, rank))
            put_weight(maker, rank);
        else
            maker->failed = true;
    }
}

/* Which of the two backward streams a rank serves in this round. */
static int next_gradient(const Maker *maker, int rank) {
    const RankState *state = &maker->rank[rank];
    if (state->count[GRADIENT_UP] >= state->count[GRADIENT_DOWN])
        return GRADIENT_DOWN;
    if (rank == maker->c->ranks - 1 || state->count[GRADIENT_DOWN] >= maker->c->microbatches)
        return GRADIENT_UP;
    bool there = !isnan(*end_of(maker, GRADIENT_UP, rank + 1, state->count[GRADIENT_UP]));
    return there ? GRADIENT_UP : GRADIENT_DOWN;
}

static void do_gradients(Maker *maker) {
    int p = maker->c->ranks;
    g_autofree int *stream = g_new(int, (gsize)p);
    for (int i = 0; i < p; i++) {
        make_room(maker, i, maker->c->memory[i].input_gradient);
        stream[i] = next_gradient(maker, i);
    }
    for (int k = 0; k < 2 * p && !maker->failed; k++) {
        int i = k < p ? p - 1 - k : k - p;
        if (stream[i] != (k < p ? GRADIENT_UP : GRADIENT_DOWN))
            continue;
        fill_wait(maker, stream[i], i, stream[i] == GRADIENT_UP || maker->fill_gradients);
        put(maker, stream[i], i);
    }
}

/* Which forward a rank does in this round; -1 for none. */
static int next_forward(const Maker *maker, int rank) {
    const int *count = maker->rank[rank].count;
    if (count[FORWARD_UP] >= maker->c->microbatches)
        return -1;
    if (count[FORWARD_UP] >= count[FORWARD_DOWN])
        return FORWARD_DOWN;
    if (!isnan(next_arrival(maker, FORWARD_UP, rank)))
        return FORWARD_UP;
    bool more = count[FORWARD_DOWN] < maker->c->microbatches &&
                !isnan(next_arrival(maker, FORWARD_DOWN, rank));
    return more ? FORWARD_DOWN : -1;
}

static void do_forwards(Maker *maker) {
    for (int i = 0; i < maker->c->ranks && !maker->failed; i++) {
        int stream = next_forward(maker, i);
        if (stream < 0)
            continue;
        make_room(maker, i, maker->c->memory[i].forward);
        fill_wait(maker, stream, i, maker->fill_forwards);
        put(maker, stream, i);
    }
}

/* One pass; maker->idle of each rank into `idle`. NULL when it does not work out. */
static MtfPipelineOrder *make_pass(Maker *maker, double *idle) {
    const MtfPipelineCase *c = maker->c;
    gsize ends = (gsize)(STREAMS * c->ranks) * (gsize)c->microbatches;
    maker->order = mtf_pipeline_order_new(c->ranks, 2 * c->ranks, c->microbatches, MTF_STAGES_V);
    maker->rank = g_new0(RankState, (gsize)c->ranks);
    maker->end = g_new(double, ends);
    maker->failed = false;
    for (gsize i = 0; i < ends; i++)
        maker->end[i] = NAN;
    warm_up(maker);
    for (int round = 0; round < 2 * c->microbatches && !maker->failed; round++) {
        do_gradients(maker);
        do_forwards(maker);
    }
    for (int i = 0; i < c->ranks; i++) {
        while (has_weights_left(maker, i) && !maker->failed)
            put_weight(maker, i);
        idle[i] = maker->rank[i].idle;
        g_queue_clear(&maker->rank[i].weights);
    }
    g_free(maker->end);
    g_free(maker->rank);
    if (maker->failed)
        g_clear_pointer(&maker->order, mtf_pipeline_order_free);
    return maker->order;
}

static double largest(const double *values, int count) {
    double most = 0;
    for (int i = 0; i < count; i++)
        most = MAX(most, values[i]);
    return most;
}

/* Passes, each told how the one before idled, while the worst rank's idling shrinks. */
static MtfPipelineOrder *make_passes(Maker *maker, double *worst) {
    int p = maker->c->ranks;
    g_autofree double *idle = g_new(double, (gsize)p), *told = g_new(double, (gsize)p);
    maker->allowed = NULL;
    MtfPipelineOrder *best = make_pass(maker, idle);
    *worst = best != NULL ? largest(idle, p) : INFINITY;
    while (best != NULL) {
        memcpy(told, idle, (gsize)p * sizeof *told);
        maker->allowed = told;
        MtfPipelineOrder *next = make_pass(maker, idle);
        if (next == NULL || largest(idle, p) >= *worst) {
            mtf_pipeline_order_free(next);
            break;
        }
        mtf_pipeline_order_free(best);
        best = next;
        *worst = largest(idle, p);
    }
    return best;
}

MtfPipelineOrder *mtf_schedule_zero_bubble_v(const MtfPipelineCase *c, GError **error) {
    if (c->microbatches < 2 * c->ranks - 1)
        return mtf_schedule_zero_bubble_v_by_hand(c);
    double most = 0, best_worst = INFINITY;
    for (int s = 0; s < 2 * c->ranks; s++)
        most = MAX(most, c->memory[s].forward);
    Maker maker = { .c = c, .limit = MIN(c->cap, 2 * c->ranks * most) };
    MtfPipelineOrder *best = NULL;
    for (int way = 0; way < 4; way++) {
        double worst;
        maker.fill_gradients = way < 2;
        maker.fill_forwards = way % 2 == 0;
        MtfPipelineOrder *order = make_passes(&maker, &worst);
        bool better = worst < best_worst;
        mtf_pipeline_order_free(better ? best : order);
        best = better ? order : best;
        best_worst = MIN(best_worst, worst);
    }
    if (best == NULL)
        g_set_error(
            error, MTF_ERROR, MTF_ERROR_FIT,
            "zb-v finds no order for %d stages and %d micro-batches within the memory of %.10g",
            c->ranks, c->microbatches, maker.limit);
    return best;
}
