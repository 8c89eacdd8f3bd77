// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/throughput_search.h"

#include <float.h>
#include <math.h>

#define PRECISION 1e-10 /* of the threshold, relative */

/* A way to arrive at a downset: the state it came from, in another downset, and the stage between them. */
typedef struct {
    int64_t devices, replicas; /* k and s of everything after the downset */
    int to, state;             /* the stage's end, and the state there; to < 0 at the very end */
    int degree;
    int64_t stage_replicas, flight;
} State;

typedef struct {
    const MtfStageGraph *graph;
    const MtfDownsets *cuts;
    const MtfStageMachine *machine;
    MtfStagePricer *pricer;
    int *inner, *first_inner; /* the downsets inside each, ascending, and where its list begins */
    GArray **fronts;          /* by downset, of State */
    int64_t most_replicas;    /* of all stages together */
    bool relaxed;
} Search;

static void list_inner(Search *search) {
    int count = search->cuts->count;
    g_autoptr(GArray) inner = g_array_new(FALSE, FALSE, sizeof(int));
    search->first_inner = g_new(int, count + 1);
    for (int to = 0; to < count; to++) {
        search->first_inner[to] = (int)inner->len;
        for (int from = 0; from < to; from++)
            if (mtf_downsets_nested(search->cuts, from, to))
                g_array_append_val(inner, from);
    }
    search->first_inner[count] = (int)inner->len;
    search->inner = g_memdup2(inner->data, inner->len * sizeof(int));
}

static void begin_search(Search *search) {
    bool piper = search->graph->kind == MTF_STAGE_PIPER;
    search->pricer = mtf_stage_pricer_new(search->graph, search->cuts, search->machine);
    search->most_replicas = piper && search->machine->batch > 0
                                ? MIN(search->machine->batch, search->machine->devices)
                                : search->machine->devices;
    list_inner(search);
    search->fronts = g_new(GArray *, search->cuts->count);
    for (int d = 0; d < search->cuts->count; d++)
        search->fronts[d] = g_array_new(FALSE, FALSE, sizeof(State));
}

static void end_search(Search *search) {
    for (int d = 0; d < search->cuts->count; d++)
        g_array_unref(search->fronts[d]);
    g_free(search->fronts);
    g_free(search->inner);
    g_free(search->first_inner);
    mtf_stage_pricer_free(search->pricer);
}

static const State *state_at(const Search *search, int downset, int state) {
    return &g_array_index(search->fronts[downset], State, state);
}

/* Keeps a state unless another is at least as good in devices and replicas. */
static void keep_state(GArray *front, const State *state) {
    for (guint i = 0; i < front->len; i++) {
        const State *other = &g_array_index(front, State, i);
        if (other->devices <= state->devices && other->replicas <= state->replicas)
            return;
    }
    for (guint i = front->len; i-- > 0;) {
        const State *other = &g_array_index(front, State, i);
        if (other->devices >= state->devices && other->replicas >= state->replicas)
            g_array_remove_index_fast(front, i);
    }
    g_array_append_vals(front, state, 1);
}

static bool may_replicate(const Search *search, int64_t replicas) {
    return search->graph->kind != MTF_STAGE_PIPER || search->machine->batch == 0 ||
           search->machine->batch % replicas == 0;
}

static int64_t flight_of(const Search *search, int64_t after, int64_t replicas) {
    int64_t flight = (after + replicas - 1) / replicas;
    return search->machine->batch > 0 ? MIN(flight, search->machine->batch) : flight;
}

/* Joins the stage of a span to every state at its end that it can follow within τ. */
static bool join_states(Search *search, MtfStageSpan *span, double tau) {
    int64_t devices = span->replicas * span->degree;
    bool all = true;
    for (guint i = 0; i < search->fronts[span->to]->len; i++) {
        const State *after = state_at(search, span->to, (int)i);
        State state = { after->devices + devices,
                        after->replicas + span->replicas,
                        span->to,
                        (int)i,
                        span->degree,
                        span->replicas,
                        0 };
        if (state.devices > search->machine->devices || state.replicas > search->most_replicas)
            continue;
        span->flight = state.flight = flight_of(search, state.replicas, span->replicas);
        double seconds = search->relaxed ? mtf_stage_relaxed_seconds(search->pricer, span)
                                         : mtf_stage_seconds(search->pricer, span);
        if (seconds <= tau)
            keep_state(search->fronts[span->from], &state);
        else
            all = false;
    }
    return all;
}

static int64_t fewest_devices(const Search *search, int downset) {
    int64_t fewest = INT64_MAX / 2;
    for (guint i = 0; i < search->fronts[downset]->len; i++)
        fewest = MIN(fewest, state_at(search, downset, (int)i)->devices);
    return fewest;
}

/* More replicas cost devices and never help but for time and memory, so they end where all states
 * were joined. The seconds of one replica over τ say how many are needed at least. */
static void join_replicas(Search *search, MtfStageSpan *span, double tau, int64_t left) {
    span->replicas = 1;
    span->flight = 1;
    double alone = mtf_stage_least_seconds(search->pricer, span);
    if (isinf(alone))
        return;
    double needed = tau > 0 ? ceil(alone / tau * (1 - 1e-9)) : INFINITY;
    if (needed * span->degree > (double)left)
        return;
    for (int64_t d = MAX(1, (int64_t)needed); d * span->degree <= left; d++) {
        span->replicas = d;
        if (!may_replicate(search, d) || mtf_stage_least_seconds(search->pricer, span) > tau)
            continue;
        if (join_states(search, span, tau))
            return;
    }
}

static void join_stages(Search *search, int to, double tau) {
    const GArray *degrees = mtf_stage_pricer_degrees(search->pricer);
    int64_t left = search->machine->devices - fewest_devices(search, to);
    for (int i = search->first_inner[to]; i < search->first_inner[to + 1]; i++) {
        MtfStageSpan span = { .from = search->inner[i], .to = to };
        if (mtf_stage_work(search->pricer, span.from, to) > (double)left * tau)
            continue;
        for (guint t = 0; t < degrees->len; t++) {
            span.degree = g_array_index(degrees, int, t);
            join_replicas(search, &span, tau, left);
        }
    }
}

/* Whether stages of at most τ seconds reach the empty downset. */
static bool reaches(Search *search, double tau) {
    int last = search->cuts->count - 1;
    State end = { .to = -1 };
    for (int d = 0; d <= last; d++)
        g_array_set_size(search->fronts[d], 0);
    g_array_append_val(search->fronts[last], end);
    for (int d = last; d > 0; d--)
        if (search->fronts[d]->len > 0)
            join_stages(search, d, tau);
    return search->fronts[0]->len > 0;
}

/* The stages of the state with the fewest devices. Fronts change while they grow, so a state is
 * found again by what it counted. */
static void read_stages(const Search *search, MtfStagePlan *plan) {
    int from = 0, best = 0;
    for (guint i = 1; i < search->fronts[0]->len; i++)
        if (state_at(search, 0, (int)i)->devices < state_at(search, 0, best)->devices)
            best = (int)i;
    g_array_set_size(plan->stages, 0);
    plan->seconds = 0;
    for (const State *state = state_at(search, 0, best); state->to >= 0;
         from = state->to, state = state_at(search, state->to, state->state)) {
        MtfStageSpan span = { from, state->to, state->degree, state->stage_replicas,
                              state->flight };
        MtfStage stage = { from,
                           state->to,
                           state->degree,
                           state->stage_replicas,
                           state->flight,
                           mtf_stage_seconds(search->pricer, &span),
                           0 };
        stage.bytes = mtf_stage_bytes(search->pricer, &span, NULL);
        g_array_append_val(plan->stages, stage);
        plan->seconds = fmax(plan->seconds, stage.seconds);
    }
}

/* Σ over nodes of the fewest device-seconds, spread evenly: a bound for any plan. */
static double even_bound(const MtfStageGraph *graph, int64_t devices) {
    double sum = 0;
    for (int v = 0; v < mtf_stage_graph_size(graph); v++) {
        const GArray *ways = mtf_stage_graph_node(graph, v)->ways;
        double least = INFINITY;
        for (guint w = 0; w < ways->len; w++) {
            const MtfStageWay *way = &g_array_index(ways, MtfStageWay, w);
            least = fmin(least, way->seconds * way->degree);
        }
        sum += least;
    }
    return sum / (double)devices;
}

/* Bisection between what is not reached and what is. */
static void search_plans(Search *search, MtfStagePlan *plan, double low) {
    while (plan->seconds - low > PRECISION * plan->seconds) {
        double middle = low + (plan->seconds - low) / 2;
        if (reaches(search, middle))
            read_stages(search, plan);
        else
            low = middle;
    }
    plan->bound = low;
}

/* The largest τ below the plan's seconds that even the relaxed knapsack does not reach. */
static void relax_bound(Search *search, MtfStagePlan *plan, double even) {
    double low = even, high = plan->bound;
    search->relaxed = true;
    if (!reaches(search, high))
        return;
    while (high - low > 1e-6 * high) {
        double middle = low + (high - low) / 2;
        if (reaches(search, middle))
            high = middle;
        else
            low = middle;
    }
    plan->bound = low;
}

static void find_best(Search *search, MtfStagePlan *plan) {
    double even = even_bound(search->graph, search->machine->devices);
    read_stages(search, plan);
    search_plans(search, plan, even);
    if (search->cuts->complete && isfinite(search->machine->memory))
        relax_bound(search, plan, even);
    if (!search->cuts->complete)
        plan->bound = even;
}

MtfStagePlan *mtf_throughput_search(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                    const MtfStageMachine *machine, GError **error) {
    Search search = { .graph = graph, .cuts = cuts, .machine = machine };
    begin_search(&search);
    MtfStagePlan *plan = NULL;
    if (reaches(&search, DBL_MAX)) {
        plan = mtf_stage_plan_new();
        find_best(&search, plan);
    } else
        mtf_stage_plan_fail(machine->memory, error);
    end_search(&search);
    return plan;
}
