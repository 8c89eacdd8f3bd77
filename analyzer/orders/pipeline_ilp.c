// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/orders/pipeline_ilp.h"

#include "analyzer/solver/problem/ilp.h"
#include "cost/pipeline/pipeline_run.h"

#include <math.h>

enum { FORWARD, INPUT, WEIGHT, KINDS };
#define TOLERANCE 1e-6 /* of the solver, relative */
#define SECONDS_MAX 60 /* a guard only: programs of the size that suits end far sooner */

bool mtf_pipeline_ilp_suits(const MtfPipelineCase *c, int most_pairs) {
    if (c->chunks != 1 || c->ranks < 2)
        return false;
    for (int s = 0; s < c->ranks; s++)
        if (c->memory[s].input_gradient > 0 || c->memory[s].weight_gradient > 0)
            return false;
    return (int64_t)KINDS * c->ranks * c->microbatches * (c->microbatches - 1) / 2 <= most_pairs;
}

/* The program's variables by number; times are in units of `unit`. */
typedef struct {
    const MtfPipelineCase *c;
    MtfIlp *ilp;
    double unit, horizon;
    int longest; /* T */
    int *time;   /* [(kind * ranks + rank) * microbatches + microbatch] */
    int *first;  /* [((pair * ranks + rank) * m + i) * m + j], i > j: x; pairs FI, FW, IW */
} Program;

static double seconds_of(const Program *program, int kind, int rank) {
    const MtfStageTimes *t = &program->c->times[rank];
    double seconds = kind == FORWARD ? t->forward
                     : kind == INPUT ? t->input_gradient
                                     : t->weight_gradient;
    return seconds / program->unit;
}

static int time_of(const Program *program, int kind, int rank, int i) {
    return program->time[(kind * program->c->ranks + rank) * program->c->microbatches + i];
}

/* The place of x for the later work `a` of micro-batch i and the earlier `b` of j. */
static int *first_of(const Program *program, int a, int b, int rank, int i, int j) {
    int pair = a == INPUT ? 2 : b - 1, m = program->c->microbatches;
    return &program->first[((pair * program->c->ranks + rank) * m + i) * m + j];
}

/* before + seconds <= after, or with a switch: before + seconds <= after + H * (relaxed - sign * x) */
static void pose_after(Program *program, int before, double seconds, int after) {
    mtf_ilp_add_row(program->ilp, 2, (int[]){ after, before }, (double[]){ 1, -1 }, seconds,
                    INFINITY);
}

static void pose_either(Program *program, int a, int b, int rank, int i, int j) {
    double h = program->horizon;
    int x = *first_of(program, a, b, rank, i, j) = mtf_ilp_add_binary(program->ilp, 0);
    int late = time_of(program, a, rank, i), early = time_of(program, b, rank, j);
    mtf_ilp_add_row(program->ilp, 3, (int[]){ early, late, x }, (double[]){ 1, -1, -h },
                    seconds_of(program, a, rank) - h, INFINITY);
    mtf_ilp_add_row(program->ilp, 3, (int[]){ late, early, x }, (double[]){ 1, -1, h },
                    seconds_of(program, b, rank), INFINITY);
}

/* What is known of one rank and micro-batch. */
static void pose_microbatch(Program *program, int s, int i) {
    const MtfPipelineCase *c = program->c;
    int p = c->ranks, m = c->microbatches;
    if (s + 1 < p) {
        pose_after(program, time_of(program, FORWARD, s, i),
                   seconds_of(program, FORWARD, s) + c->times[s].transfer_forward / program->unit,
                   time_of(program, FORWARD, s + 1, i));
        pose_after(program, time_of(program, INPUT, s + 1, i),
                   seconds_of(program, INPUT, s + 1) +
                       c->times[s + 1].transfer_backward / program->unit,
                   time_of(program, INPUT, s, i));
    }
    for (int kind = FORWARD; kind < KINDS; kind++) {
        if (kind < WEIGHT)
            pose_after(program, time_of(program, kind, s, i), seconds_of(program, kind, s),
                       time_of(program, kind + 1, s, i));
        if (i + 1 < m)
            pose_after(program, time_of(program, kind, s, i), seconds_of(program, kind, s),
                       time_of(program, kind, s, i + 1));
    }
    for (int j = 0; j < i; j++) {
        pose_either(program, FORWARD, INPUT, s, i, j);
        pose_either(program, FORWARD, WEIGHT, s, i, j);
        pose_either(program, INPUT, WEIGHT, s, i, j);
    }
}

/* x of later pairs follows from x of earlier ones: a forward before an input gradient is before its weight
 * gradient and before later input gradients, and so are the forwards before it. */
static void pose_implied(Program *program, int s, int i, int j) {
    const struct {
        int a, b;
    } pairs[] = { { FORWARD, INPUT }, { FORWARD, WEIGHT }, { INPUT, WEIGHT } };
    for (gsize k = 0; k < G_N_ELEMENTS(pairs); k++) {
        int a = pairs[k].a, b = pairs[k].b, x = *first_of(program, a, b, s, i, j);
        int implied[2] = { i - 1 > j ? *first_of(program, a, b, s, i - 1, j) : -1,
                           j + 1 < i ? *first_of(program, a, b, s, i, j + 1) : -1 };
        for (int n = 0; n < 2; n++)
            if (implied[n] >= 0)
                mtf_ilp_add_row(program->ilp, 2, (int[]){ implied[n], x }, (double[]){ 1, -1 }, 0,
                                INFINITY);
    }
    mtf_ilp_add_row(program->ilp, 2,
                    (int[]){ *first_of(program, FORWARD, WEIGHT, s, i, j),
                             *first_of(program, FORWARD, INPUT, s, i, j) },
                    (double[]){ 1, -1 }, 0, INFINITY);
}

/* What the rank holds once forward i is done: share by share, in shares of a forward. */
static void pose_memory(Program *program, int s, int i) {
    const MtfStageMemory *share = &program->c->memory[s];
    g_autofree int *variables = g_new(int, 2 * (gsize)i);
    g_autofree double *given = g_new(double, 2 * (gsize)i);
    double held = i + 1;
    for (int j = 0; j < i; j++) {
        const double back[2] = { -share->input_gradient / share->forward,
                                 -share->weight_gradient / share->forward };
        for (int b = 0; b < 2; b++) {
            variables[2 * j + b] = *first_of(program, FORWARD, b == 0 ? INPUT : WEIGHT, s, i, j);
            given[2 * j + b] = back[b];
            held -= back[b];
        }
    }
    double cap = program->c->cap / share->forward * (1 + 1e-9);
    mtf_ilp_add_row(program->ilp, 2 * i, variables, given, -INFINITY, cap - held);
}

static void pose(Program *program, double bound) {
    const MtfPipelineCase *c = program->c;
    int p = c->ranks, m = c->microbatches;
    double before = 0;
    program->ilp = mtf_ilp_new();
    program->longest = mtf_ilp_add_continuous(program->ilp, bound / program->unit, INFINITY, 1);
    for (int k = 0; k < KINDS * p * m; k++)
        program->time[k] = mtf_ilp_add_continuous(program->ilp, 0, program->horizon, 0);
    for (int s = 0; s < p; s++) {
        for (int i = 0; i < m; i++) {
            pose_microbatch(program, s, i);
            for (int j = 0; j < i; j++)
                pose_implied(program, s, i, j);
            if (i > 0 && isfinite(c->cap))
                pose_memory(program, s, i);
        }
        pose_after(program, time_of(program, WEIGHT, s, m - 1),
                   seconds_of(program, WEIGHT, s) - before, program->longest);
        before += (c->times[s].forward + c->times[s].transfer_forward) / program->unit;
    }
}

/* The known order as a first answer. */
static void set_start(Program *program, const MtfPipelineOrder *known, const MtfPipelineRun *run) {
    static const int kind_of[] = { [MTF_WORK_FORWARD] = FORWARD,
                                   [MTF_WORK_INPUT_GRADIENT] = INPUT,
                                   [MTF_WORK_WEIGHT_GRADIENT] = WEIGHT };
    int m = program->c->microbatches;
    g_autofree double *values = g_new0(double, (gsize)mtf_ilp_variable_count(program->ilp));
    values[program->longest] = run->span / program->unit;
    for (int r = 0; r < known->ranks; r++)
        for (int k = 0; k < mtf_pipeline_length(known, r); k++) {
            const MtfPipelineAction *action = mtf_pipeline_action(known, r, k);
            values[time_of(program, kind_of[action->work], r, action->microbatch)] =
                run->time[r][k].begin / program->unit;
        }
    for (int r = 0; r < known->ranks; r++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < i; j++)
                for (int a = FORWARD; a < WEIGHT; a++)
                    for (int b = a + 1; b < KINDS; b++)
                        values[*first_of(program, a, b, r, i, j)] =
                            values[time_of(program, a, r, i)] < values[time_of(program, b, r, j)];
    mtf_ilp_set_start(program->ilp, values);
}

/* The rank's works by the order that the x say: at each step the first work that no other comes before. */
static void read_rank(const Program *program, MtfPipelineOrder *order, int s) {
    static const MtfPipelineWork works[KINDS] = { MTF_WORK_FORWARD, MTF_WORK_INPUT_GRADIENT,
                                                  MTF_WORK_WEIGHT_GRADIENT };
    int m = program->c->microbatches, done[KINDS] = { 0 };
    for (int k = 0; k < KINDS * m; k++) {
        int next = -1;
        for (int a = 0; a < KINDS; a++) {
            bool free = done[a] < m && (a == FORWARD || done[a] < done[a - 1]);
            for (int b = 0; b < KINDS && free; b++) {
                if (b == a || done[b] == m)
                    continue;
                bool later = done[a] > done[b]; /* a is of the later micro-batch */
                if (a < b && later)
                    free = mtf_ilp_value(program->ilp,
                                         *first_of(program, a, b, s, done[a], done[b])) > 0.5;
                if (a > b && !later && done[b] > done[a])
                    free = mtf_ilp_value(program->ilp,
                                         *first_of(program, b, a, s, done[b], done[a])) < 0.5;
            }
            next = free && next < 0 ? a : next;
        }
        g_assert(next >= 0);
        mtf_pipeline_order_add(order, works[next], s, done[next]++);
    }
}

/* What the solver says, with its tolerance; the order only where it is shorter than the known one. */
static MtfPipelineOrder *read_answer(const Program *program, double known_span, double *bound) {
    MtfIlpStatus status = mtf_ilp_status(program->ilp);
    double proven = mtf_ilp_bound(program->ilp) * program->unit * (1 - TOLERANCE);
    *bound = MAX(*bound, MIN(proven, known_span));
    if (status != MTF_ILP_OPTIMAL && status != MTF_ILP_FEASIBLE)
        return NULL;
    const MtfPipelineCase *c = program->c;
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(c->ranks, c->ranks, c->microbatches, MTF_STAGES_LOOP);
    for (int s = 0; s < c->ranks; s++)
        read_rank(program, order, s);
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(order, c->times);
    if (run->span < known_span * (1 - 1e-9) && mtf_pipeline_fits(order, c, "search", NULL))
        return order;
    mtf_pipeline_order_free(order);
    return NULL;
}

MtfPipelineOrder *mtf_pipeline_ilp_solve(const MtfPipelineCase *c, const MtfPipelineOrder *known,
                                         double *bound, GError **error) {
    gsize p = (gsize)c->ranks, m = (gsize)c->microbatches;
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(known, c->times);
    Program program = { .c = c, .unit = run->span / (3 * c->microbatches) };
    double before = 0;
    for (int s = 0; s + 1 < c->ranks; s++)
        before += c->times[s].forward + c->times[s].transfer_forward;
    program.horizon = (run->span + before) / program.unit;
    program.time = g_new0(int, KINDS *p *m);
    program.first = g_new0(int, KINDS *p *m *m);
    pose(&program, *bound);
    set_start(&program, known, run);
    MtfPipelineOrder *better = NULL;
    MtfSearchControl control;
    mtf_search_control_init(&control, SECONDS_MAX);
    const MtfIlpOptions options = { .control = &control };
    if (mtf_ilp_solve(program.ilp, &options, error))
        better = read_answer(&program, run->span, bound);
    mtf_ilp_free(program.ilp);
    g_free(program.time);
    g_free(program.first);
    return better;
}
