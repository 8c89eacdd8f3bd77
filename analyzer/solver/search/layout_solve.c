// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/layout_solve.h"

#include "analyzer/solver/elimination/bucket_elimination.h"
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_components.h"
#include "analyzer/solver/reduce/layer_quotient.h"
#include "analyzer/solver/reduce/reductions.h"
#include "analyzer/solver/search/bounded_dive.h"
#include "analyzer/solver/search/branch_and_bound.h"
#include "analyzer/solver/search/certified_point.h"
#include "analyzer/solver/search/core_ilp.h"
#include "analyzer/solver/search/dual_ascent.h"
#include "analyzer/solver/search/forest_move.h"
#include "analyzer/solver/search/improvers.h"
#include "analyzer/solver/search/local_search.h"
#include "analyzer/solver/search/minimum_memory.h"
#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

#define ROUND_STEPS 10
#define SHRINK_STEPS 60    /* steps of the bound between two shrinkings */
#define STALL_STEPS 50     /* steps without a better bound after which it is stuck */
#define PROBE_SIZE 3e8     /* most values times entries of a core that is probed */
#define PROBE_WORTH 0.1    /* share of the values whose loss is better than the integer program */
#define PROBE_AGAIN 0.5    /* share of the size where it left little at which it is probed again */
#define GUESS_SIZE 1e5     /* entries of a core for whose cost guesses are worth while */
#define GUESS_ROUNDS 4     /* before a guess; twice as many after each that comes to nothing; */
#define GUESS_RISE 0.01    /* none while the bound rises by a larger share of the gap a round */
#define GUESS_FIRST 0.0625 /* of the gap, above the bound; then half or twice as much */
#define GUESS_LEAST 0.01
#define GUESS_MOST 0.5
#define PAIR_ENTRIES 2e6        /* most that a core has after nodes were joined, */
#define PAIR_GROWTH 4           /* and times as many as before */
#define PAIR_STALL 20           /* as STALL_STEPS, once nodes were joined */
#define PAIR_TRIES 2            /* after which it must close */
#define PAIR_GAIN 0.02          /* such a share of the gap */
#define FIRST_ELIMINATION 4e6   /* values tried and labels combined of the first elimination; */
#define MORE_ELIMINATION 4      /* times as many later */
#define MOST_ELIMINATION 4e9    /* where time is limited */
#define COUNTED_ELIMINATION 4e6 /* where work is */
#define LEAST_ELIMINATION 0.1   /* share of the gap that is too small for another try */
#define ELIMINATION_WAIT 4      /* rounds until the next, at first */
#define ILP_SIZE 40000          /* variables the integer program may have */
#define ILP_WORK 1e9     /* that one try at it may take (ilp.h), when only the work is limited */
#define ILP_SECONDS 20.0 /* one try at it, when the time is limited */
#define TELLING 0.9      /* of the proven gap, below which a bound to a tolerance is told instead */
#define TOLERANCE 1e-6   /* of the cost, within which the integer program's bound holds */
#define BRANCH_ENTRIES 4e6   /* of a core that is branched on */
#define BRANCH_WORK 30000000 /* matrix entries of one round */
#define COUNTED_WORK 2000000 /* the same where work is limited and time is not */
#define BRANCH_ROUNDS 20     /* that do not count as stale */
#define STALE_ROUNDS 12      /* without a gap so much smaller, after which limited work ends */
#define STALE_GAP 0.95
#define HARD_ROUNDS 3      /* without a choice, after which the least memory is tried */
#define QUOTIENT_STEPS 300 /* steps on a quotient, at most; */
#define QUOTIENT_GAP 2e-4  /* the guess is near enough to the best choice, */
#define QUOTIENT_SHARE 0.5 /* or at such a share of the wanted gap; */
#define QUOTIENT_LOOK 30   /* so many steps closed less of the distance than */
#define QUOTIENT_RISE 0.05 /* this */
#define ALIKE_LAYERS 8     /* that repeat, from which on they are looked for alike first; */
#define ALIKE_NODES 500    /* and nodes, below which all is solved soon anyway */
#define ALIKE_ROUNDS 24    /* of that search, at most, */
#define ALIKE_SHARE 0.3    /* and share of the time; */
#define ALIKE_GAP 0.4      /* it ends at such a share of the wanted gap, */
#define ALIKE_LEAST 2e-4   /* but not below this */
#define FORESTS 2          /* forest moves before a local search */
#define MOST_PRICE 1.2     /* their prices are the bound's times up to this */

typedef struct Solver {
    const MtfLayoutProblem *problem;
    const MtfSolveOptions *options;
    MtfCore *core;
    MtfDual *dual;
    MtfSearchControl control; /* of the caller's a part, whose time is granted */
    gint64 begin;             /* monotonic microseconds */
    int *values;              /* scratch, indexed as in the core */
    int *trial;               /* scratch, a choice for the problem */
    int *choice;              /* the best one; NULL before the first */
    MtfInt128 cost;           /* of it */
    int64_t cutoff;           /* core costs above it cannot be better than `cost` */
    int64_t worst;            /* no choice costs more, in core costs */
    int64_t bound;            /* core costs; -MTF_CORE_IMPOSSIBLE: none yet */
    const char *method;
    bool proven;      /* nothing better than `cost` exists (or nothing at all) */
    bool fresh;       /* `cost` improved since the last shrinking */
    int unshrunk;     /* steps since the last shrinking */
    double last_gap;  /* at the last shrinking */
    double noted_gap; /* when it last became noticeably smaller, */
    int stale_rounds; /* so many rounds ago */
    double hard;      /* size of the core when probing last left little; INFINITY: not yet */
    double guess;     /* the share of the gap that a guess lies above the bound */
    int guess_rounds, guess_wait; /* since the last guess; before the next */
    double guess_bound;           /* the bound of the round before */
    MtfBranching *branching;      /* of the core as it is; NULL after a shrinking */
    double *weights;              /* of its nodes */
    int branch_rounds;
    double elimination_work;                  /* of the next elimination */
    double elimination_share;                 /* of the gap, above the bound, where its cutoff is */
    int elimination_wait, elimination_rounds; /* between two; since the last one */
    bool ilp_tried;
    double inexact;        /* a bound to the integer program's tolerance */
    int pairings;          /* since a better choice */
    double pair_bound;     /* before the last one */
    bool paired;           /* there is nothing more to join */
    MtfLocalSearch *local; /* of the core as it is; NULL after a shrinking */
    int *job;              /* values that the local search works on beside the bound */
    bool decoded;          /* the last decoded values are possible edge by edge */
    bool job_ready;        /* the job holds decoded values */
    bool job_legal;        /* its result is legal */
    double *job_price;
    MtfCore *base; /* the core before any cutoff, after `base_steps` on its trail */
    guint base_steps;
    int *base_values; /* the best choice's, once `based`; those of a trial in `base_trial` */
    int *base_trial;
    bool based;
    MtfImprovers *improvers; /* of the base */
    guint64 jobs;            /* done so far */
    MtfRowPrices prices;     /* that the bound begins with */
} Solver;

static bool may_use(const Solver *solver, MtfSolveMethods method) {
    return (solver->options->without & method) == 0;
}

static bool is_abandoned(const Solver *solver) {
    return mtf_search_is_abandoned(&solver->control);
}

static bool is_over(const Solver *solver) {
    return mtf_search_is_over(&solver->control);
}

/* Takes over a choice for the problem when it is legal and better. */
static void offer(Solver *solver, const int *choice) {
    MtfLayoutValue value = mtf_layout_problem_evaluate(solver->problem, choice);
    if (!mtf_layout_problem_allows(solver->problem, &value) ||
        (solver->choice != NULL && value.cost >= solver->cost))
        return;
    gsize count = (gsize)mtf_layout_problem_node_count(solver->problem);
    g_free(solver->choice);
    solver->choice = g_memdup2(choice, MAX(1, count) * sizeof *choice);
    solver->cost = value.cost;
    /* Better choices cost at most cost - 1; dividing by 2^shift rounds each term down. */
    solver->cutoff = (int64_t)((value.cost - 1) >> solver->core->cost_shift);
    solver->fresh = true;
}

/* The same for values of the core as it was before any cutoff. */
static void offer_base_values(Solver *solver, const int *values) {
    MtfInt128 cost = solver->cost;
    bool first = solver->choice == NULL;
    mtf_core_lift_steps(solver->core, solver->base_steps, 0, values, solver->trial);
    offer(solver, solver->trial);
    if (solver->choice == NULL || (!first && solver->cost >= cost))
        return;
    memcpy(solver->base_values, values, (gsize)solver->core->node_count * sizeof *values);
    solver->based = true;
}

/* The same for values of the core. */
static void offer_values(Solver *solver, const int *values) {
    if (mtf_core_cost(solver->core, values) > solver->cutoff ||
        !mtf_core_allows(solver->core, values))
        return;
    mtf_core_lift_steps(solver->core, solver->core->trail->len, solver->base_steps, values,
                        solver->base_trial);
    offer_base_values(solver, solver->base_trial);
}

static void raise_bound(Solver *solver, int64_t bound, const char *method) {
    if (bound <= solver->bound)
        return;
    solver->bound = bound;
    solver->method = method;
}

/* Relative distance between the cost and the bound; infinite before there is a choice. */
static double gap_of(const Solver *solver) {
    if (solver->choice == NULL || solver->bound == -MTF_CORE_IMPOSSIBLE)
        return INFINITY;
    double cost = (double)solver->cutoff;
    return fmax(0, cost - (double)solver->bound) / fmax(1, fabs(cost));
}

/* The core became empty or impossible: what is left to say about it. */
static void note_end(Solver *solver, const char *method) {
    if (!solver->core->infeasible) {
        offer_values(solver, solver->values);
        mtf_certify_constant(solver->core);
    }
    solver->proven = true;
    solver->method = method;
}

static bool core_is_done(const Solver *solver) {
    return solver->core->infeasible || mtf_core_size(solver->core).nodes == 0;
}

/* Where the bound is what branches not searched to their end prove, the certificate says so. */
static void drop_branching(Solver *solver) {
    bool tells = solver->branching != NULL && strcmp(solver->method, "branch and bound") == 0;
    if (tells && mtf_branching_bound(solver->branching) >= solver->bound)
        mtf_branching_certify(solver->branching);
    g_clear_pointer(&solver->branching, mtf_branching_free);
}

static void shrink(Solver *solver, bool pairs) {
    g_clear_pointer(&solver->local, mtf_local_search_free);
    drop_branching(solver);
    solver->job_ready = false;
    double most = fmin(PAIR_ENTRIES, PAIR_GROWTH * (double)mtf_core_size(solver->core).entries);
    if (pairs) {
        solver->pair_bound = (double)solver->bound;
        solver->pairings++;
        solver->paired = !mtf_dual_pair(solver->dual, solver->cutoff, most, &solver->control);
        solver->stale_rounds = 0;
    } else
        mtf_dual_shrink(solver->dual, solver->cutoff, &solver->control);
    if (solver->fresh) {
        solver->paired = false;
        solver->pairings = 0;
    }
    solver->unshrunk = 0;
    solver->fresh = false;
    solver->last_gap = gap_of(solver);
    if (core_is_done(solver))
        note_end(solver, "message passing");
}

/* Whether the bound has come to rest; soon where nodes have been joined before. */
static bool is_stuck(const Solver *solver) {
    return mtf_dual_stall(solver->dual) > (solver->pairings > 0 ? PAIR_STALL : STALL_STEPS);
}

/* Joining nodes pays while it closes a share of the gap. */
static bool should_pair(const Solver *solver) {
    double gap = (double)solver->cutoff - (double)solver->bound;
    bool closes = (double)solver->bound - solver->pair_bound > PAIR_GAIN * gap;
    return may_use(solver, MTF_METHOD_PAIRS) && !solver->paired &&
           (solver->pairings < PAIR_TRIES || closes);
}

/* Shrinking pays when there is news: a better choice, a much better bound, or nothing else to do.
 */
static bool should_shrink(const Solver *solver) {
    bool stuck = is_stuck(solver);
    bool news = solver->fresh || gap_of(solver) < 0.7 * solver->last_gap;
    return stuck || (solver->choice != NULL && news && solver->unshrunk >= SHRINK_STEPS);
}

/* Whether work is limited and time is not. */
static bool counts_work(const Solver *solver) {
    return solver->options->work > 0 && !mtf_search_has_deadline(&solver->control);
}

/* What the integer programs of all components come to. */
typedef struct Whole {
    bool feasible;
    double bound;
} Whole;

static void add_component(Solver *solver, const int *component, int index, Whole *whole) {
    MtfSearchControl control;
    double work = solver->options->program_work > 0 ? solver->options->program_work : ILP_WORK;
    MtfIlpOptions options = { .work = counts_work(solver) ? work : 0, .control = &control };
    mtf_search_control_init_part(&control, &solver->control,
                                 mtf_search_has_deadline(&solver->control) ? ILP_SECONDS : 0);
    g_autoptr(MtfCore) part = mtf_core_component(solver->core, component, index);
    MtfCoreIlpAnswer found = { MTF_ILP_STOPPED, -INFINITY };
    bool solved = mtf_core_ilp_solve(part, &options, NULL, solver->values, &found, NULL);
    whole->feasible &=
        solved && (found.status == MTF_ILP_OPTIMAL || found.status == MTF_ILP_FEASIBLE);
    whole->bound += solved ? found.bound : -INFINITY;
}

/* Each component is a program of its own. What it says of the bound holds to its tolerance. */
static void try_integer_program(Solver *solver) {
    g_autofree int *component = g_new(int, solver->core->node_count + 1);
    int count = mtf_core_components(solver->core, component);
    Whole whole = { true, (double)solver->core->constant };
    solver->ilp_tried = true;
    for (int i = 0; i < count; i++)
        add_component(solver, component, i, &whole);
    if (whole.feasible)
        offer_values(solver, solver->values);
    if (isfinite(whole.bound))
        solver->inexact = fmax(solver->inexact, fmin(whole.bound, (double)solver->cutoff + 1));
}

/* ---- the local search beside the bound ----
 *
 * While the bound makes its steps, a job improves the values decoded in the round before. Its
 * input is fixed before the round begins and its result is looked at after the round ends, so one
 * thread or two give the same answer. */

static void prepare_job(Solver *solver) {
    if (solver->local == NULL)
        solver->local = mtf_local_search_new(solver->core, solver->options->seed + solver->jobs);
    memcpy(solver->job_price, mtf_dual_prices(solver->dual),
           (gsize)solver->core->rows * sizeof *solver->job_price);
}

static gpointer run_job(gpointer data) {
    Solver *solver = data;
    guint64 seed = solver->options->seed * 1000003 + solver->jobs++;
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32)));
    double factor = g_rand_double_range(rand, 1, MOST_PRICE);
    for (int r = 0; r < solver->core->rows; r++)
        solver->job_price[r] *= factor;
    for (int i = 0; i < FORESTS && solver->jobs % 2 == 0; i++)
        mtf_forest_move(solver->core, rand, solver->job_price, solver->job);
    solver->job_legal = mtf_local_search_improve(solver->local, solver->job);
    return NULL;
}

static bool is_good_enough(const Solver *solver) {
    return solver->proven || (solver->options->gap > 0 && gap_of(solver) <= solver->options->gap);
}

/* The bound that would end the search, as far as doubles can tell. */
static double enough_bound(const Solver *solver) {
    double cost = (double)solver->cutoff;
    return cost - solver->options->gap * fabs(cost);
}

/* Takes over what the steps proved; whether that is enough. */
static bool prove_bound(Solver *solver) {
    raise_bound(solver, mtf_dual_prove(solver->dual), "message passing");
    solver->proven |= solver->bound > solver->cutoff || solver->bound > solver->worst;
    return is_good_enough(solver);
}

static void step_bound(Solver *solver) {
    for (int i = 0; i < ROUND_STEPS && (i == 0 || !is_over(solver)); i++) {
        solver->decoded = mtf_dual_step(solver->dual, solver->values);
        if (solver->decoded)
            offer_values(solver, solver->values);
        solver->unshrunk++;
        if (mtf_dual_bound(solver->dual) > enough_bound(solver) && prove_bound(solver))
            return;
    }
    prove_bound(solver);
}

/* Hands the values decoded last to the next round's job. */
static void queue_job(Solver *solver) {
    memcpy(solver->job, solver->values, (gsize)solver->core->node_count * sizeof *solver->job);
    solver->job_ready = true;
}

/* The steps of the bound, and beside them the job when there is one and time for it. */
static void step_with_job(Solver *solver) {
    if (!solver->job_ready || is_over(solver) || !may_use(solver, MTF_METHOD_LOCAL)) {
        step_bound(solver);
        return;
    }
    prepare_job(solver);
    GThread *thread =
        solver->options->threads > 1 ? g_thread_new("local-search", run_job, solver) : NULL;
    step_bound(solver);
    if (thread != NULL)
        g_thread_join(thread);
    else
        run_job(solver);
    if (solver->job_legal)
        offer_values(solver, solver->job);
}

/* ---- the improvers beside all that ---- */

/* The prices of the bound at the rows of the base, of which the core has kept some. */
static double *base_prices(const Solver *solver) {
    const MtfCore *base = solver->base, *core = solver->core;
    const double *prices = mtf_dual_prices(solver->dual);
    double *list = g_new0(double, base->rows + 1);
    int at = 0;
    for (int r = 0; r < core->rows; r++) {
        while (at < base->rows && base->row_time[at] < core->row_time[r])
            at++;
        if (at < base->rows)
            list[at] = prices[r];
    }
    return list;
}

/* Where time is limited every further thread improves the best choice until the caller is done; else
 * so much work is done whatever the threads. */
static bool begin_improving(Solver *solver) {
    bool limited = mtf_search_has_deadline(&solver->control);
    if (!may_use(solver, MTF_METHOD_NEIGHBOURHOODS) || !solver->based ||
        solver->options->threads < 2 || !limited || is_over(solver))
        return false;
    g_autofree double *prices = base_prices(solver);
    if (solver->improvers == NULL)
        solver->improvers =
            mtf_improvers_new(solver->base, solver->options->threads - 1, solver->options->seed);
    mtf_improvers_set(solver->improvers, solver->base_values, prices);
    mtf_improvers_begin(solver->improvers);
    return true;
}

static void end_improving(Solver *solver) {
    const int *values = mtf_improvers_end(solver->improvers);
    if (values != NULL)
        offer_base_values(solver, values);
}

/* Probes a core that is small enough for it, and where that left little before, not until it is
 * much smaller or a better choice is known. Returns whether that leaves much less. */
static bool probe(Solver *solver) {
    MtfCoreSize core = mtf_core_size(solver->core);
    double size = (double)core.values * (double)core.entries;
    bool again = solver->fresh || size <= PROBE_AGAIN * solver->hard;
    if (!may_use(solver, MTF_METHOD_PROBE) || solver->choice == NULL || size > PROBE_SIZE || !again)
        return false;
    int found = mtf_dual_probe(solver->dual, solver->cutoff, &solver->control);
    bool much = found > PROBE_WORTH * (double)core.values;
    solver->hard = much ? INFINITY : size;
    return much;
}

/* Whether the bound is so near where it will end that the optimum can be guessed from it. */
static bool should_guess(Solver *solver) {
    double bound = (double)solver->bound, gap = (double)solver->cutoff - bound;
    bool settled = bound - solver->guess_bound <= GUESS_RISE * gap;
    solver->guess_bound = bound;
    return ++solver->guess_rounds >= solver->guess_wait && settled && solver->choice != NULL &&
           solver->guess >= GUESS_LEAST &&
           (double)mtf_core_size(solver->core).entries >= GUESS_SIZE;
}

/* A guess that came to nothing was too far from the bound, one that was refuted too near. */
static void guess_cost(Solver *solver) {
    double gap = (double)solver->cutoff - (double)solver->bound;
    MtfGuess guess = { .cutoff = solver->bound + (int64_t)(solver->guess * gap),
                       .known = solver->cutoff,
                       .seed = solver->options->seed,
                       .control = &solver->control };
    MtfGuessAnswer answer = mtf_guess_try(solver->dual, &guess, solver->values);
    if (answer.found)
        offer_values(solver, solver->values);
    if (answer.refuted) {
        raise_bound(solver, guess.cutoff + 1, "message passing");
        solver->guess = fmin(2 * solver->guess, GUESS_MOST);
    }
    if (!answer.found && !answer.refuted) {
        solver->guess /= 2;
        solver->guess_wait *= 2;
    }
    solver->guess_rounds = answer.refuted ? solver->guess_wait : 0;
}

/* Takes over what an elimination up to that cutoff came to. */
static void take_elimination(Solver *solver, MtfEliminationStatus status, int64_t bound) {
    if (status == MTF_ELIMINATION_FOUND)
        offer_values(solver, solver->values);
    if (status == MTF_ELIMINATION_NONE)
        solver->elimination_share = fmin(1, 2 * solver->elimination_share);
    raise_bound(solver, bound, "bucket elimination");
    solver->proven |= solver->bound > solver->cutoff;
}

/* Where it came to nothing: once more nearer to the bound or, after a while, with more work. */
static void put_elimination_off(Solver *solver) {
    solver->elimination_share /= 2;
    if (solver->elimination_share >= LEAST_ELIMINATION)
        return;
    solver->elimination_share = 1;
    double most = counts_work(solver) ? COUNTED_ELIMINATION : MOST_ELIMINATION;
    solver->elimination_work = fmin(MORE_ELIMINATION * solver->elimination_work, most);
    solver->elimination_wait = MAX(2 * solver->elimination_wait, ELIMINATION_WAIT);
}

/* Eliminates the core as far as some share of the gap above the bound. */
static void eliminate(Solver *solver) {
    bool certified = solver->core->certificate != NULL; /* it has no words for it */
    if (!may_use(solver, MTF_METHOD_ELIMINATION) || certified || solver->choice == NULL ||
        ++solver->elimination_rounds <= solver->elimination_wait)
        return;
    solver->elimination_rounds = 0;
    double gap = (double)solver->cutoff - (double)solver->bound;
    bool whole = solver->elimination_share >= 1;
    MtfElimination elimination = {
        .cutoff =
            whole ? solver->cutoff : solver->bound + (int64_t)(solver->elimination_share * gap),
        .prices = mtf_dual_prices(solver->dual),
        .work = (int64_t)solver->elimination_work,
        .control = &solver->control,
    };
    int64_t bound;
    MtfEliminationStatus status =
        mtf_bucket_eliminate(solver->core, &elimination, solver->values, &bound);
    take_elimination(solver, status, bound);
    if (status == MTF_ELIMINATION_OPEN)
        put_elimination_off(solver);
}

/* Branches while the bound is stuck; a better choice makes a smaller core worth while. */
static void branch(Solver *solver) {
    if (solver->branching == NULL)
        solver->branching = mtf_branching_new(mtf_dual_messages(solver->dual), solver->weights,
                                              solver->options->seed);
    int found = 0;
    MtfBranchStatus status = MTF_BRANCH_FOUND;
    int64_t work = counts_work(solver) ? COUNTED_WORK : BRANCH_WORK;
    solver->stale_rounds -= ++solver->branch_rounds <= BRANCH_ROUNDS;
    while (status == MTF_BRANCH_FOUND && !is_over(solver)) {
        status = mtf_branching_run(solver->branching, solver->cutoff, work, solver->values);
        if (status == MTF_BRANCH_FOUND)
            offer_values(solver, solver->values);
        found += status == MTF_BRANCH_FOUND;
    }
    if (status == MTF_BRANCH_DONE) {
        solver->proven = true;
        solver->method = "branch and bound";
    }
    raise_bound(solver, MIN(mtf_branching_bound(solver->branching), solver->cutoff + 1),
                "branch and bound");
}

/* One round: some steps of the bound, then whatever they made worth while. */
static void run_round(Solver *solver) {
    step_with_job(solver);
    if (solver->proven)
        return;
    queue_job(solver);
    if (!is_good_enough(solver) && may_use(solver, MTF_METHOD_DIVE) && should_guess(solver))
        guess_cost(solver);
    if (is_good_enough(solver))
        return;
    bool stuck = is_stuck(solver);
    if (solver->branching != NULL && !solver->fresh) {
        eliminate(solver);
        if (solver->proven)
            return;
        branch(solver);
        if (!solver->proven && may_use(solver, MTF_METHOD_PROGRAM) && !solver->ilp_tried &&
            solver->branch_rounds == BRANCH_ROUNDS && mtf_core_ilp_size(solver->core) <= ILP_SIZE)
            try_integer_program(solver);
        return;
    }
    bool shrinks = should_shrink(solver), probed = shrinks && probe(solver);
    bool pairs = stuck && !probed && should_pair(solver);
    if (shrinks)
        shrink(solver, pairs);
    if (stuck && !solver->proven)
        eliminate(solver);
    bool small = (double)mtf_core_size(solver->core).entries <= BRANCH_ENTRIES;
    if (stuck && small && may_use(solver, MTF_METHOD_BRANCH) && !solver->proven && !probed &&
        !pairs)
        branch(solver);
}

static void tell_progress(const Solver *solver) {
    double unit = ldexp(1, solver->core->cost_shift);
    mtf_search_tell_bound(solver->options->control,
                          solver->choice != NULL ? (double)solver->cost : INFINITY,
                          (double)solver->bound * unit);
}

static void tell_guess(const Solver *solver) {
    double unit = ldexp(1, solver->core->cost_shift);
    mtf_search_tell_guess(solver->options->control, mtf_dual_guess(solver->dual) * unit);
}

/* Whether a guess of the bound is near enough to the best choice to be proven. */
static bool is_near_enough(const Solver *solver, double guess) {
    double cost = (double)solver->cutoff;
    double enough = fmax(QUOTIENT_GAP, QUOTIENT_SHARE * solver->options->gap);
    return solver->choice != NULL && cost - guess <= enough * fabs(cost);
}

/* Whether a guess hardly rose since the last look. */
static bool has_settled(const Solver *solver, double last, double guess) {
    return solver->choice != NULL ? guess - last < QUOTIENT_RISE * ((double)solver->cutoff - guess)
                                  : guess - last < QUOTIENT_GAP * QUOTIENT_RISE * fabs(guess);
}

/* Where layers repeat, messages and prices begin on a quotient of them. */
static void run_on_quotient(Solver *solver) {
    if (!mtf_dual_quotient(solver->dual))
        return;
    double last = -INFINITY;
    for (int i = 1; i <= QUOTIENT_STEPS && !is_over(solver); i++) {
        if (mtf_dual_step(solver->dual, solver->values))
            offer_values(solver, solver->values);
        tell_guess(solver);
        if (is_near_enough(solver, mtf_dual_guess(solver->dual)))
            break;
        if (i % QUOTIENT_LOOK != 0)
            continue;
        if (has_settled(solver, last, mtf_dual_guess(solver->dual)))
            break;
        last = mtf_dual_guess(solver->dual);
    }
    if (is_abandoned(solver))
        return;
    mtf_dual_expand(solver->dual);
    queue_job(solver);
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
static void try_smallest_values(Solver *solver) {
    g_autofree int *values = g_new0(int, solver->core->node_count + 1);
    for (int v = 0; v < solver->core->node_count; v++)
        if (solver->core->nodes[v].alive)
            values[v] = smallest_value(&solver->core->nodes[v]);
    offer_values(solver, values);
    g_autoptr(MtfLocalSearch) local = mtf_local_search_new(solver->core, solver->options->seed);
    if (mtf_local_search_improve(local, values))
        offer_values(solver, values);
}

/* Whether the gap has hardly changed for many rounds. */
static bool is_stale(Solver *solver) {
    double gap = gap_of(solver);
    if (isinf(gap) || gap < STALE_GAP * solver->noted_gap) {
        solver->noted_gap = gap;
        solver->stale_rounds = 0;
    }
    return ++solver->stale_rounds > STALE_ROUNDS;
}

static void run_rounds(Solver *solver) {
    solver->dual = mtf_dual_new(solver->core);
    if (solver->prices.count > 0)
        mtf_dual_set_prices(solver->dual, &solver->prices);
    run_on_quotient(solver);
    if (is_abandoned(solver))
        return;
    int64_t rounds = 0;
    do {
        bool improving = begin_improving(solver);
        run_round(solver);
        if (improving)
            end_improving(solver);
        if (++rounds == HARD_ROUNDS && solver->choice == NULL && !solver->proven)
            try_smallest_values(solver);
        tell_progress(solver);
        if (solver->options->work > 0 && (rounds >= solver->options->work || is_stale(solver)))
            break;
    } while (!is_good_enough(solver) && !is_over(solver));
    if (solver->choice == NULL && !solver->proven && rounds < HARD_ROUNDS)
        try_smallest_values(solver);
    if (solver->choice != NULL || solver->proven || !solver->job_ready)
        return;
    prepare_job(solver); /* a last try at a choice that fits */
    run_job(solver);
    if (solver->job_legal)
        offer_values(solver, solver->job);
}

/* The largest possible entry, 0 when there is none. */
static int64_t largest_possible(const int64_t *costs, gsize count) {
    int64_t most = INT64_MIN;
    for (gsize i = 0; i < count; i++)
        if (costs[i] < MTF_CORE_IMPOSSIBLE)
            most = MAX(most, costs[i]);
    return most > INT64_MIN ? most : 0;
}

/* Most that any choice can cost. Each shared matrix is looked through once. */
static int64_t find_worst(const MtfCore *core) {
    g_autoptr(GHashTable) known = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    int64_t sum = core->constant;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            sum += largest_possible(core->nodes[v].cost, (gsize)core->nodes[v].values);
    for (guint e = 0; e < core->edges->len; e++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
        if (edge->a < 0)
            continue;
        int64_t *most = g_hash_table_lookup(known, edge->cost);
        if (most == NULL) {
            gsize count = (gsize)core->nodes[edge->a].values * (gsize)core->nodes[edge->b].values;
            most = g_new(int64_t, 1);
            *most = largest_possible(edge->cost, count);
            g_hash_table_insert(known, (gpointer)edge->cost, most);
        }
        sum += *most;
    }
    return sum;
}

static bool start_is_sound(const Solver *solver, const int *start) {
    const MtfLayoutProblem *problem = solver->problem;
    const int *leader = solver->options->leader;
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        if (start[v] < 0 || start[v] >= mtf_layout_problem_node(problem, v)->strategies ||
            (leader != NULL && start[v] != start[leader[v]]))
            return false;
    return true;
}

/* A core of its own, in which nodes follow their leaders. */
static MtfCore *new_core(const Solver *solver) {
    g_autoptr(MtfCore) core = mtf_core_new(solver->problem);
    if (solver->options->leader != NULL)
        return mtf_core_tie(core, solver->options->leader);
    mtf_certify_begin(core, solver->options->certificate);
    return g_steal_pointer(&core);
}

/* What the caller knows, in core costs. */
static int64_t known_bound(const Solver *solver) {
    if (solver->options->known_bound == NULL)
        return -MTF_CORE_IMPOSSIBLE;
    return (int64_t)(*solver->options->known_bound >> solver->core->cost_shift);
}

static void begin(Solver *solver) {
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
    solver->last_gap = solver->hard = solver->noted_gap = INFINITY;
    solver->guess = GUESS_FIRST;
    solver->elimination_work = FIRST_ELIMINATION;
    solver->elimination_share = 1;
    solver->guess_wait = GUESS_ROUNDS;
    solver->guess_bound = -INFINITY;
    solver->method = "shrinking";
    const int *start = solver->options->start;
    if (start != NULL && start_is_sound(solver, start))
        offer(solver, start);
}

static void finish(Solver *solver) {
    mtf_improvers_free(solver->improvers);
    mtf_row_prices_clear(&solver->prices);
    mtf_core_free(solver->base);
    g_free(solver->base_values);
    g_free(solver->base_trial);
    mtf_local_search_free(solver->local);
    mtf_branching_free(solver->branching);
    g_free(solver->weights);
    g_free(solver->job);
    g_free(solver->job_price);
    mtf_dual_free(solver->dual);
    mtf_core_free(solver->core);
    g_free(solver->values);
    g_free(solver->trial);
    g_free(solver->choice);
}

static void search(Solver *solver);

/* A choice that the caller began with is only given up for one that is clearly better. */
static bool is_worth_taking(const Solver *solver, MtfInt128 cost) {
    double worth = solver->options->gap / 2 * fabs((double)cost);
    return solver->choice == NULL || (double)cost < (double)solver->cost - worth;
}

/* Where layers repeat often, the best choice in which they are alike is a good one to begin with, found
 * in the time of one layer. Whether there is one. */
static bool search_alike(Solver *solver) {
    const MtfSolveOptions *given = solver->options;
    if (!may_use(solver, MTF_METHOD_ALIKE) || given->leader != NULL ||
        solver->core->node_count < ALIKE_NODES)
        return false;
    g_autofree int *leader = mtf_layer_leaders(solver->core, ALIKE_LAYERS);
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
    Solver alike = { .problem = solver->problem,
                     .options = &options,
                     .core = mtf_core_tie(solver->core, leader) };
    begin(&alike);
    search(&alike);
    if (alike.choice != NULL && is_worth_taking(solver, alike.cost))
        offer(solver, alike.choice);
    if (alike.dual != NULL)
        mtf_dual_get_prices(alike.dual, &solver->prices);
    bool found = alike.choice != NULL;
    finish(&alike);
    return found;
}

static void search(Solver *solver) {
    bool is_alike = search_alike(solver);
    if (is_good_enough(solver) || (is_alike && solver->options->draft))
        return;
    mtf_reduce_all(solver->core, &solver->control);
    if (core_is_done(solver)) {
        note_end(solver, "shrinking");
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

/* A bound that holds to a tolerance only, where that says clearly more than what is proven. */
static void take_inexact(const Solver *solver, MtfLayoutSolution *solution) {
    double unit = ldexp(1, solver->core->cost_shift), cost = (double)solution->cost;
    double tolerance = ceil(fmax(unit, TOLERANCE * fabs(cost)));
    double bound = fmin(solver->inexact * unit, cost) - tolerance;
    if (!(cost - bound < TELLING * (cost - (double)solution->bound)))
        return;
    solution->tolerance = tolerance;
    solution->bound = MAX(solution->bound, (MtfInt128)bound);
    solution->method = "integer program";
}

/* The bound in the problem's costs: whole, and at most the cost. */
static MtfInt128 final_bound(const Solver *solver) {
    if (solver->proven)
        return solver->cost;
    MtfInt128 bound = (MtfInt128)solver->bound * ((MtfInt128)1 << solver->core->cost_shift);
    return MIN(bound, solver->cost);
}

static void certify_choice(const Solver *solver) {
    MtfCertificate *certificate = solver->core->certificate;
    mtf_certificate_begin_line(certificate, "choice");
    for (int v = 0; v < mtf_layout_problem_node_count(solver->problem); v++)
        mtf_certificate_add(certificate, solver->choice[v]);
    mtf_certificate_end_line(certificate);
}

static MtfLayoutSolution *make_solution(Solver *solver) {
    MtfLayoutSolution *solution = g_new0(MtfLayoutSolution, 1);
    drop_branching(solver);
    certify_choice(solver);
    solution->choice = g_steal_pointer(&solver->choice);
    solution->cost = solver->cost;
    solution->bound = final_bound(solver);
    solution->method = solver->method;
    take_inexact(solver, solution);
    solution->gap =
        (double)(solution->cost - solution->bound) / fmax(1, fabs((double)solution->cost));
    solution->seconds = (double)(g_get_monotonic_time() - solver->begin) / 1e6;
    return solution;
}

static MtfLayoutSolution *answer(Solver *solver, MtfLayoutMisfit *misfit, GError **error) {
    if (is_abandoned(solver)) {
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
    if (solver->options->no_misfit) {
        g_set_error_literal(error, MTF_ERROR, MTF_ERROR_FIT, "no layout fits");
        return NULL;
    }
    MtfLayoutMisfit local = { 0 };
    MtfLayoutMisfit *found = misfit != NULL ? misfit : &local;
    *found = mtf_least_limit(solver->problem, &solver->control);
    mtf_misfit_explain(solver->problem, found, error);
    g_clear_pointer(&local.nodes, g_free);
    return NULL;
}

MtfLayoutSolution *mtf_layout_solve(const MtfLayoutProblem *problem, const MtfSolveOptions *options,
                                    MtfLayoutMisfit *misfit, GError **error) {
    static const MtfSolveOptions none = { 0 };
    Solver solver = { .problem = problem, .options = options != NULL ? options : &none };
    begin(&solver);
    search(&solver);
    MtfLayoutSolution *solution = answer(&solver, misfit, error);
    finish(&solver);
    return solution;
}

void mtf_layout_solution_free(MtfLayoutSolution *solution) {
    if (solution == NULL)
        return;
    g_free(solution->choice);
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
