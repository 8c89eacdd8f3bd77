// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/layout_solve.h"

#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/layer_quotient.h"
#include "analyzer/solver/reduce/reductions.h"
#include "analyzer/solver/search/minimum_memory.h"
#include "analyzer/solver/search/solve_round.h"
#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

#define TELLING 0.9     /* of the proven gap, below which a bound to a tolerance is given instead */
#define TOLERANCE 1e-6  /* of the cost, within which the integer program's bound holds */
#define STALE_ROUNDS 12 /* without a gap so much smaller, after which limited work ends */
#define STALE_GAP 0.95
#define ROUND_ENTRIES 15000000 /* of a core: for each as many a round counts as one more, */
#define ROUND_NODES 50000      /* and of a problem, to which what a round finds is lifted */
#define HARD_ROUNDS 3          /* without a choice, after which the least memory is tried */
#define QUOTIENT_STEPS 300     /* steps on a quotient, at most; */
#define QUOTIENT_GAP 2e-4      /* the guess is near enough to the best choice, */
#define QUOTIENT_SHARE 0.5     /* or at this share of the wanted gap; */
#define QUOTIENT_LOOK 30       /* and this many steps closed less of the distance than */
#define QUOTIENT_RISE 0.005    /* this */
#define PAIR_GAP 0.01          /* asked for, at most, where alike nodes are joined there, */
#define PAIR_ENTRIES 2e7       /* of a core that has no more entries than this */
#define PAIR_VALUES 400        /* of a pair of them, at most, */
#define PAIR_GROWTH 4          /* and times as many entries as before */
#define REST_STEPS 3           /* on all layers, of what came to rest on the quotient */
#define ALIKE_NODES 500  /* below which all is solved soon anyway, and not for alike layers first */
#define ALIKE_ROUNDS 24  /* of that search, at most, */
#define ALIKE_SHARE 0.3  /* and share of the time; */
#define ALIKE_GAP 0.4    /* it ends at such a share of the wanted gap, */
#define ALIKE_LEAST 2e-4 /* but not below this */

static void tell_progress(const MtfSolver *solver) {
    double unit = ldexp(1, solver->core->cost_shift);
    mtf_search_tell_bound(solver->options->control,
                          solver->choice != NULL ? (double)solver->cost : INFINITY,
                          (double)solver->bound * unit);
}

static void tell_guess(const MtfSolver *solver) {
    double unit = ldexp(1, solver->core->cost_shift);
    mtf_search_tell_guess(solver->options->control, mtf_dual_guess(solver->dual) * unit);
}

/* Whether a guess of the bound is near enough to the best choice to be proven. */
static bool is_near_enough(const MtfSolver *solver, double guess) {
    double cost = (double)solver->cutoff;
    double enough = fmax(QUOTIENT_GAP, QUOTIENT_SHARE * solver->options->gap);
    return solver->choice != NULL && cost - guess <= enough * fabs(cost);
}

/* Whether a guess hardly rose since the last look. */
static bool has_settled(const MtfSolver *solver, double last, double guess) {
    return solver->choice != NULL ? guess - last < QUOTIENT_RISE * ((double)solver->cutoff - guess)
                                  : guess - last < QUOTIENT_GAP * QUOTIENT_RISE * fabs(guess);
}

/* Whether messages and prices came to rest on the quotient, too far from the best choice. */
static bool step_on_quotient(MtfSolver *solver) {
    double last = -INFINITY;
    for (int i = 1; i <= QUOTIENT_STEPS && !mtf_solver_is_over(solver); i++) {
        if (mtf_dual_step(solver->dual, solver->values))
            mtf_solver_offer_values(solver, solver->values);
        double guess = mtf_dual_guess(solver->dual);
        tell_guess(solver);
        if (is_near_enough(solver, guess))
            return false;
        if (i % QUOTIENT_LOOK != 0)
            continue;
        if (has_settled(solver, last, guess))
            return true;
        last = guess;
    }
    return false;
}

/* Whether the guess is so far from the best choice that nodes are to be joined for a better one. */
static bool should_pair_alike(const MtfSolver *solver) {
    return mtf_solver_may_use(solver, MTF_METHOD_PAIRS) && solver->choice != NULL &&
           !is_near_enough(solver, mtf_dual_guess(solver->dual)) && !mtf_solver_is_over(solver) &&
           solver->options->gap <= PAIR_GAP &&
           (double)mtf_core_size(solver->core).entries <= PAIR_ENTRIES;
}

/* Where layers repeat, messages and prices begin on a quotient of them. Whether they came to rest there, too far
 * from the best choice. */
static bool run_on_quotient(MtfSolver *solver) {
    if (!mtf_dual_quotient(solver->dual))
        return false;
    bool settled = step_on_quotient(solver), folded = true;
    if (should_pair_alike(solver)) {
        double most = PAIR_GROWTH * (double)mtf_core_size(solver->core).entries;
        folded = mtf_dual_pair_alike(solver->dual, most, PAIR_VALUES, &solver->control);
        settled = folded && step_on_quotient(solver);
    }
    if (mtf_solver_core_is_done(solver))
        mtf_solver_note_end(solver, "message passing");
    if (solver->proven || mtf_solver_is_abandoned(solver))
        return false;
    if (folded)
        mtf_dual_expand(solver->dual);
    mtf_solver_queue_job(solver);
    return settled;
}

/* The value whose memory is least over all rows. */
static int smallest_value(const MtfCoreNode *node) {
    int smallest = 0;
    double least = INFINITY;
    for (int p = 0; p < node->values; p++) {
        double memory = 0;
        for (guint k = 0; k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            memory += (double)piece->usage[p] * (piece->last - piece->first);
        }
        if (node->cost[p] < MTF_CORE_IMPOSSIBLE && memory < least) {
            least = memory;
            smallest = p;
        }
    }
    return smallest;
}

/* Where decoded values are hard to repair, begins with those of least memory and makes them
 * cheaper. */
static void try_smallest_values(MtfSolver *solver) {
    g_autofree int *values = g_new0(int, solver->core->node_count + 1);
    for (int v = 0; v < solver->core->node_count; v++)
        if (solver->core->nodes[v].alive)
            values[v] = smallest_value(&solver->core->nodes[v]);
    mtf_solver_offer_values(solver, values);
    g_autoptr(MtfLocalSearch) local = mtf_local_search_new(solver->core, solver->options->seed);
    if (mtf_local_search_improve(local, values))
        mtf_solver_offer_values(solver, values);
}

/* What a round counts for: more where it goes over so much that it takes seconds, as layers by the thousand do. */
static int round_weight(const MtfSolver *solver) {
    return 1 + (int)(mtf_core_size(solver->core).entries / ROUND_ENTRIES) +
           mtf_layout_problem_node_count(solver->problem) / ROUND_NODES;
}

/* Whether the gap has hardly changed for many rounds. */
static bool is_stale(MtfSolver *solver) {
    double gap = mtf_solver_gap(solver);
    if (isinf(gap) || gap < STALE_GAP * solver->noted_gap) {
        solver->noted_gap = gap;
        solver->stale_rounds = 1;
        return false;
    }
    solver->stale_rounds += round_weight(solver);
    return solver->stale_rounds > STALE_ROUNDS;
}

/* Where one round would be stale by itself, what came to rest on the quotient gets a few steps on all layers, which
 * say what it proves of them. False where there are rounds to come. */
static bool prove_at_rest(MtfSolver *solver) {
    if (solver->options->work == 0 || solver->choice == NULL ||
        round_weight(solver) <= STALE_ROUNDS)
        return false;
    for (int i = 0; i < REST_STEPS && !mtf_solver_is_over(solver); i++)
        mtf_dual_step(solver->dual, solver->values);
    mtf_solver_raise_bound(solver, mtf_dual_prove(solver->dual), "message passing");
    tell_progress(solver);
    return true;
}

static void run_rounds(MtfSolver *solver) {
    solver->dual = mtf_dual_new(solver->core);
    if (solver->prices != NULL)
        mtf_dual_set_prices(solver->dual, solver->prices);
    bool settled = run_on_quotient(solver);
    if (solver->proven || mtf_solver_is_abandoned(solver) || (settled && prove_at_rest(solver)))
        return;
    int64_t rounds = 0;
    do {
        mtf_solver_round(solver);
        if (++rounds == HARD_ROUNDS && solver->choice == NULL && !solver->proven)
            try_smallest_values(solver);
        tell_progress(solver);
        if (solver->options->work > 0 && (rounds >= solver->options->work || is_stale(solver)))
            break;
    } while (!mtf_solver_is_good_enough(solver) && !mtf_solver_is_over(solver));
    mtf_solver_end_improving(solver);
    if (solver->choice == NULL && !solver->proven && rounds < HARD_ROUNDS)
        try_smallest_values(solver);
    if (solver->choice == NULL && !solver->proven)
        mtf_solver_last_job(solver); /* a last try at a choice that fits */
}

/* The largest possible entry, 0 when there is none. */
static int64_t largest_possible(const int64_t *costs, gsize count) {
    int64_t most = INT64_MIN;
    for (gsize i = 0; i < count; i++)
        if (costs[i] < MTF_CORE_IMPOSSIBLE)
            most = MAX(most, costs[i]);
    return most > INT64_MIN ? most : 0;
}

static int64_t largest_of_matrix(GHashTable *known, const int64_t *costs, gsize count) {
    int64_t *most = g_hash_table_lookup(known, costs);
    if (most == NULL) {
        most = g_new(int64_t, 1);
        *most = largest_possible(costs, count);
        g_hash_table_insert(known, (gpointer)costs, most);
    }
    return *most;
}

/* Most that any choice can cost. Each shared matrix is looked through once. */
static int64_t find_worst(const MtfCore *core) {
    g_autoptr(GHashTable) known = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    int64_t sum = core->constant;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            sum += largest_possible(core->nodes[v].cost, (gsize)core->nodes[v].values);
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        sum += largest_of_matrix(known, edge->cost, mtf_core_edge_entries(core, edge));
    }
    return sum;
}

static bool start_is_sound(const MtfSolver *solver, const int *start) {
    const MtfLayoutProblem *problem = solver->problem;
    const int *leader = solver->options->leader;
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        if (start[v] < 0 || start[v] >= mtf_layout_problem_node(problem, v)->strategies ||
            (leader != NULL && start[v] != start[leader[v]]))
            return false;
    return true;
}

/* A core of its own, in which nodes follow their leaders. */
static MtfCore *new_core(const MtfSolver *solver) {
    g_autoptr(MtfCore) core = mtf_core_new(solver->problem);
    if (solver->options->leader != NULL)
        return mtf_core_tie(core, solver->options->leader);
    mtf_certify_begin(core, solver->options->certificate);
    return g_steal_pointer(&core);
}

/* What the caller knows, in core costs. */
static int64_t known_bound(const MtfSolver *solver) {
    if (solver->options->known_bound == NULL)
        return -MTF_CORE_IMPOSSIBLE;
    return (int64_t)(*solver->options->known_bound >> solver->core->cost_shift);
}

static void begin(MtfSolver *solver) {
    solver->begin = g_get_monotonic_time();
    mtf_search_control_init_part(&solver->control, solver->options->control, 0);
    gsize count = (gsize)mtf_layout_problem_node_count(solver->problem) + 1;
    if (solver->core == NULL)
        solver->core = new_core(solver);
    solver->values = g_new0(int, count);
    solver->trial = g_new0(int, count);
    solver->job = g_new0(int, count);
    solver->base_values = g_new0(int, count);
    solver->base_trial = g_new0(int, count);
    solver->weights = g_new0(double, count);
    solver->job_price = g_new0(double, solver->core->rows + 1);
    solver->cutoff = MTF_CORE_IMPOSSIBLE - 1;
    solver->bound = known_bound(solver);
    solver->inexact = -INFINITY;
    solver->worst = MTF_CORE_IMPOSSIBLE;
    mtf_solver_begin_rounds(solver);
    solver->method = "shrinking";
    const int *start = solver->options->start;
    if (start != NULL && start_is_sound(solver, start))
        mtf_solver_offer(solver, start);
}

static void finish(MtfSolver *solver) {
    mtf_improvers_free(solver->improvers);
    mtf_neighbourhoods_free(solver->near);
    mtf_row_prices_free(solver->prices);
    mtf_core_free(solver->base);
    g_free(solver->base_values);
    g_free(solver->base_trial);
    mtf_local_search_free(solver->local);
    mtf_branching_free(solver->branching);
    g_free(solver->weights);
    g_free(solver->job);
    g_free(solver->job_price);
    mtf_relaxed_bound_free(solver->relaxed);
    mtf_dual_free(solver->dual);
    mtf_core_free(solver->core);
    g_free(solver->values);
    g_free(solver->trial);
    g_free(solver->choice);
}

static void search(MtfSolver *solver);

/* A choice that the caller began with is only given up for one that is clearly better. */
static bool is_worth_taking(const MtfSolver *solver, MtfInt128 cost) {
    double worth = solver->options->gap / 2 * fabs((double)cost);
    return solver->choice == NULL || (double)cost < (double)solver->cost - worth;
}

/* Where layers repeat often, the best choice in which they are alike is a good one to begin with, found
 * in the time of one layer. Whether there is one. */
static bool search_alike(MtfSolver *solver) {
    const MtfSolveOptions *given = solver->options;
    if (!mtf_solver_may_use(solver, MTF_METHOD_ALIKE) || given->leader != NULL ||
        solver->core->node_count < ALIKE_NODES)
        return false;
    g_autofree int *leader = mtf_layer_leaders(solver->core, MTF_ALIKE_LAYERS);
    if (leader == NULL)
        return false;
    MtfSolveOptions options = *given;
    options.without |= MTF_METHOD_ALIKE;
    options.gap = fmax(ALIKE_GAP * given->gap, ALIKE_LEAST);
    options.work = given->work > 0 ? MIN(given->work, ALIKE_ROUNDS) : ALIKE_ROUNDS;
    options.start = NULL;
    MtfSearchControl part;
    mtf_search_control_init_share(&part, &solver->control, ALIKE_SHARE);
    options.control = &part;
    MtfSolver alike = { .problem = solver->problem,
                        .options = &options,
                        .core = mtf_core_tie(solver->core, leader) };
    begin(&alike);
    search(&alike);
    if (alike.choice != NULL && is_worth_taking(solver, alike.cost))
        mtf_solver_offer(solver, alike.choice);
    if (alike.dual != NULL) {
        mtf_row_prices_free(solver->prices);
        solver->prices = mtf_dual_row_prices(alike.dual);
    }
    bool found = alike.choice != NULL;
    finish(&alike);
    return found;
}

/* Where the choice to begin with takes too much memory, begins with one near it that does not. */
static void repair_start(MtfSolver *solver) {
    const int *start = solver->options->start;
    if (start == NULL || solver->choice != NULL || !start_is_sound(solver, start) ||
        !mtf_core_project(solver->core, start, solver->values))
        return;
    g_autoptr(MtfLocalSearch) local = mtf_local_search_new(solver->core, solver->options->seed);
    if (mtf_local_search_improve(local, solver->values))
        mtf_solver_offer_values(solver, solver->values);
}

static void search(MtfSolver *solver) {
    const MtfRowPrices *known = solver->options->prices;
    if (known != NULL)
        solver->prices = mtf_row_prices_copy(known);
    repair_start(solver);
    if (mtf_solver_is_good_enough(solver))
        return;
    bool is_alike = (known == NULL || solver->choice == NULL) && search_alike(solver);
    if (mtf_solver_is_good_enough(solver) || (is_alike && solver->options->draft))
        return;
    mtf_reduce_all(solver->core, &solver->control);
    if (mtf_solver_core_is_done(solver)) {
        mtf_solver_note_end(solver, "shrinking");
        return;
    }
    solver->worst = find_worst(solver->core);
    mtf_certificate_word(solver->core->certificate, "worst");
    solver->base = mtf_core_copy(solver->core);
    solver->base_steps = solver->core->trail->len;
    if (solver->choice != NULL)
        solver->based = mtf_core_project(solver->core, solver->choice, solver->base_values);
    run_rounds(solver);
}

/* A bound that holds to a tolerance only, where that says clearly more than what is proven and no certificate is
 * wanted, which could not have it. */
static void take_inexact(const MtfSolver *solver, MtfLayoutSolution *solution) {
    double unit = ldexp(1, solver->core->cost_shift), cost = (double)solution->cost;
    double tolerance = ceil(fmax(unit, TOLERANCE * fabs(cost)));
    double bound = fmin(solver->inexact * unit, cost) - tolerance;
    if (solver->options->certificate != NULL ||
        !(cost - bound < TELLING * (cost - (double)solution->bound)))
        return;
    solution->tolerance = tolerance;
    solution->bound = MAX(solution->bound, (MtfInt128)bound);
    solution->method = "integer program";
}

/* The bound in the problem's costs: whole, and at most the cost. */
static MtfInt128 final_bound(const MtfSolver *solver) {
    if (solver->proven)
        return solver->cost;
    MtfInt128 bound = (MtfInt128)solver->bound * ((MtfInt128)1 << solver->core->cost_shift);
    return MIN(bound, solver->cost);
}

static void certify_choice(const MtfSolver *solver) {
    MtfCertificate *certificate = solver->core->certificate;
    mtf_certificate_begin_line(certificate, "choice");
    for (int v = 0; v < mtf_layout_problem_node_count(solver->problem); v++)
        mtf_certificate_add(certificate, solver->choice[v]);
    mtf_certificate_end_line(certificate);
}

/* What memory is worth at last; where what is left of the core says nothing of it, as to begin with. */
static MtfRowPrices *last_prices(const MtfSolver *solver) {
    g_autoptr(MtfRowPrices) prices =
        solver->dual != NULL ? mtf_dual_row_prices(solver->dual) : NULL;
    if (solver->prices != NULL && (prices == NULL || prices->count == 0))
        return mtf_row_prices_copy(solver->prices);
    return g_steal_pointer(&prices);
}

static MtfLayoutSolution *make_solution(MtfSolver *solver) {
    MtfLayoutSolution *solution = g_new0(MtfLayoutSolution, 1);
    mtf_solver_drop_branching(solver);
    g_clear_pointer(&solver->relaxed, mtf_relaxed_bound_free);
    certify_choice(solver);
    solution->choice = g_steal_pointer(&solver->choice);
    solution->cost = solver->cost;
    solution->bound = final_bound(solver);
    solution->method = solver->method;
    solution->prices = last_prices(solver);
    take_inexact(solver, solution);
    solution->gap =
        (double)(solution->cost - solution->bound) / fmax(1, fabs((double)solution->cost));
    solution->seconds = (double)(g_get_monotonic_time() - solver->begin) / 1e6;
    return solution;
}

static MtfLayoutSolution *answer(MtfSolver *solver, MtfInfeasibility *infeasibility,
                                 GError **error) {
    if (mtf_solver_is_abandoned(solver)) {
        mtf_failure(error, "the search was abandoned");
        return NULL;
    }
    if (solver->choice != NULL)
        return make_solution(solver);
    if (!solver->proven) {
        mtf_failure(error, "the search ended before it found a layout that fits (and before it "
                           "proved that none does): give it more time");
        return NULL;
    }
    if (solver->options->no_infeasibility) {
        g_set_error_literal(error, MTF_ERROR, MTF_ERROR_FIT, "no layout fits");
        return NULL;
    }
    MtfInfeasibility local = { 0 };
    MtfInfeasibility *found = infeasibility != NULL ? infeasibility : &local;
    g_clear_pointer(&solver->relaxed, mtf_relaxed_bound_free); /* its last words, if any */
    *found = mtf_minimum_memory(solver->problem, &solver->control, solver->options->certificate);
    mtf_infeasibility_explain(solver->problem, found, error);
    g_clear_pointer(&local.nodes, g_free);
    return NULL;
}

MtfLayoutSolution *mtf_layout_solve(const MtfLayoutProblem *problem, const MtfSolveOptions *options,
                                    MtfInfeasibility *infeasibility, GError **error) {
    static const MtfSolveOptions none = { 0 };
    MtfSolver solver = { .problem = problem, .options = options != NULL ? options : &none };
    begin(&solver);
    search(&solver);
    MtfLayoutSolution *solution = answer(&solver, infeasibility, error);
    finish(&solver);
    return solution;
}

void mtf_layout_solution_free(MtfLayoutSolution *solution) {
    if (solution == NULL)
        return;
    g_free(solution->choice);
    mtf_row_prices_free(solution->prices);
    g_free(solution);
}

MtfLayoutSolution *mtf_layout_solve_next_best(const MtfLayoutProblem *problem,
                                              const MtfLayoutSolution *solution, int node,
                                              const MtfSolveOptions *options, GError **error) {
    int strategies = mtf_layout_problem_node(problem, node)->strategies;
    g_autofree bool *forbidden = g_new0(bool, strategies);
    forbidden[solution->choice[node]] = true;
    g_autoptr(MtfLayoutProblem) other = mtf_layout_problem_forbid(problem, node, forbidden);
    return mtf_layout_solve(other, options, NULL, error);
}
