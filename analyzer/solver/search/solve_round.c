// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/solve_round.h"

#include "analyzer/solver/elimination/bucket_elimination.h"
#include "analyzer/solver/reduce/core_components.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/bounded_dive.h"
#include "analyzer/solver/search/core_ilp.h"
#include "analyzer/solver/search/width_move.h"

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
#define PAIR_VALUES 120         /* of a joined node */
#define PAIR_GROWTH 4           /* and times as many as before */
#define WIDE_ENTRIES 2e7        /* most of one that had more before, where time is limited: */
#define WIDE_LOOK 5             /* nodes are joined when in this many rounds the bound */
#define RELAX_GAP 0.01          /* above which the copy of a wide core with few rows is worth it */
#define WIDE_RISE 0.05          /* has risen by less of the gap, since it never rests */
#define PAIR_STALL 20           /* as STALL_STEPS, once nodes were joined */
#define PAIR_TRIES 2            /* after which it must close */
#define PAIR_GAIN 0.02          /* such a share of the gap */
#define FIRST_ELIMINATION 4e6   /* values tried and labels combined of the first elimination; */
#define MORE_ELIMINATION 4      /* times as many later */
#define EARLY_ELIMINATION 1e8   /* before nodes are joined, */
#define COUNTED_EARLY 2e7       /* where work is limited */
#define MOST_ELIMINATION 4e9    /* where time is limited */
#define COUNTED_ELIMINATION 4e6 /* where work is */
#define LEAST_ELIMINATION 0.1   /* share of the gap that is too small for another try */
#define ELIMINATION_WAIT 4      /* rounds until the next, at first */
#define ILP_SIZE 40000          /* variables the integer program may have */
#define ILP_WORK 1e9       /* that one try at it may take (ilp.h), when only the work is limited */
#define ILP_SECONDS 20.0   /* one try at it, when the time is limited */
#define BRANCH_ENTRIES 4e6 /* of a core that is branched on */
#define BRANCH_WORK 30000000 /* matrix entries of one round */
#define COUNTED_WORK 2000000 /* the same where work is limited and time is not */
#define BRANCH_ROUNDS 20     /* that do not count as stale */
#define NEAR_ROUNDS 4      /* without a smaller gap, after which the best choice's neighbourhoods */
#define NEAR_WORK 20000000 /* get so much work a round, where work is limited, */
#define NEAR_GAP 0.005     /* while the gap is larger; */
#define NEAR_ENTRIES 2e5   /* smaller cores are branched on soon */
#define LARGE_MOVES 2      /* before a local search; */
#define MOVE_ENTRIES 1e3   /* most that a table of theirs has, */
#define MOST_PRICE 1.2     /* and their prices are the bound's times up to this */

/* Whether the core is too wide for its bound to come to rest, and not too wide to be joined. */
static bool is_wide(const MtfSolver *solver) {
    double entries = (double)mtf_core_size(solver->core).entries;
    return mtf_search_has_deadline(&solver->control) && entries > PAIR_ENTRIES &&
           entries < WIDE_ENTRIES;
}

/* Whether the bound of a wide core has hardly risen for some rounds. */
static bool has_settled(MtfSolver *solver) {
    if (++solver->look_rounds < WIDE_LOOK || solver->choice == NULL)
        return false;
    double bound = (double)solver->bound, gap = (double)solver->cutoff - bound;
    bool settled = bound - solver->look_bound < WIDE_RISE * gap;
    solver->look_bound = bound;
    solver->look_rounds = 0;
    return settled && is_wide(solver);
}

static void shrink(MtfSolver *solver, bool pairs) {
    g_clear_pointer(&solver->local, mtf_local_search_free);
    mtf_solver_drop_branching(solver);
    solver->job_ready = false;
    double most = fmin(is_wide(solver) ? WIDE_ENTRIES : PAIR_ENTRIES,
                       PAIR_GROWTH * (double)mtf_core_size(solver->core).entries);
    if (pairs) {
        solver->pair_bound = (double)solver->bound;
        solver->pairings++;
        solver->paired =
            !mtf_dual_pair(solver->dual, solver->cutoff, most, PAIR_VALUES, &solver->control);
        solver->stale_rounds = 0;
    } else
        mtf_dual_shrink(solver->dual, solver->cutoff, &solver->control);
    if (solver->fresh) {
        solver->paired = false;
        solver->pairings = 0;
    }
    solver->unshrunk = 0;
    solver->fresh = false;
    solver->last_gap = mtf_solver_gap(solver);
    if (mtf_solver_core_is_done(solver))
        mtf_solver_note_end(solver, "message passing");
}

/* Whether the bound has come to rest; soon where nodes have been joined before. */
static bool is_stuck(const MtfSolver *solver) {
    return mtf_dual_stall(solver->dual) > (solver->pairings > 0 ? PAIR_STALL : STALL_STEPS);
}

/* Joining nodes pays while it closes a share of the gap. */
static bool should_pair(const MtfSolver *solver) {
    double gap = (double)solver->cutoff - (double)solver->bound;
    bool closes = (double)solver->bound - solver->pair_bound > PAIR_GAIN * gap;
    return mtf_solver_may_use(solver, MTF_METHOD_PAIRS) && !solver->paired &&
           (solver->pairings < PAIR_TRIES || closes);
}

/* Shrinking pays when there is news: a better choice, a much better bound, or nothing else to do.
 */
static bool should_shrink(const MtfSolver *solver) {
    bool stuck = is_stuck(solver);
    bool news = solver->fresh || mtf_solver_gap(solver) < 0.7 * solver->last_gap;
    return stuck || (solver->choice != NULL && news && solver->unshrunk >= SHRINK_STEPS);
}

/* Whether work is limited and time is not. */
static bool counts_work(const MtfSolver *solver) {
    return solver->options->work > 0 && !mtf_search_has_deadline(&solver->control);
}

/* What the integer programs of all components come to. */
typedef struct Whole {
    bool feasible;
    double bound;
} Whole;

static void add_component(MtfSolver *solver, const int *component, int index, Whole *whole) {
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
static void try_integer_program(MtfSolver *solver) {
    g_autofree int *component = g_new(int, solver->core->node_count + 1);
    int count = mtf_core_components(solver->core, component);
    Whole whole = { true, (double)solver->core->constant };
    solver->ilp_tried = true;
    for (int i = 0; i < count; i++)
        add_component(solver, component, i, &whole);
    if (whole.feasible)
        mtf_solver_offer_values(solver, solver->values);
    if (isfinite(whole.bound))
        solver->inexact = fmax(solver->inexact, fmin(whole.bound, (double)solver->cutoff + 1));
}

/* ---- the local search beside the bound ----
 *
 * While the bound makes its steps, a job improves the values decoded in the round before. Its
 * input is fixed before the round begins and its result is looked at after the round ends, so one
 * thread or two give the same answer. */

static void prepare_job(MtfSolver *solver) {
    if (solver->local == NULL)
        solver->local = mtf_local_search_new(solver->core, solver->options->seed + solver->jobs);
    memcpy(solver->job_price, mtf_dual_prices(solver->dual),
           (gsize)solver->core->rows * sizeof *solver->job_price);
}

static gpointer run_job(gpointer data) {
    MtfSolver *solver = data;
    guint64 seed = solver->options->seed * 1000003 + solver->jobs++;
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32)));
    double factor = g_rand_double_range(rand, 1, MOST_PRICE);
    for (int r = 0; r < solver->core->rows; r++)
        solver->job_price[r] *= factor;
    for (int i = 0; i < LARGE_MOVES && solver->jobs % 2 == 0; i++)
        mtf_width_move(solver->core, rand, solver->job_price, MOVE_ENTRIES, NULL, solver->job);
    solver->job_legal = mtf_local_search_improve(solver->local, solver->job);
    return NULL;
}

/* The bound that would end the search, as far as doubles can tell. */
static double enough_bound(const MtfSolver *solver) {
    double cost = (double)solver->cutoff;
    return cost - solver->options->gap * fabs(cost);
}

/* Takes over what the steps proved; whether that is enough. */
static bool prove_bound(MtfSolver *solver) {
    mtf_solver_raise_bound(solver, mtf_dual_prove(solver->dual), "message passing");
    solver->proven |= solver->bound > solver->cutoff || solver->bound > solver->worst;
    return mtf_solver_is_good_enough(solver);
}

/* The same of a copy with few rows. */
static void step_relaxed(MtfSolver *solver) {
    int64_t bound = mtf_relaxed_bound_raise(solver->relaxed, solver->cutoff);
    mtf_solver_raise_bound(solver, bound, "message passing");
    solver->proven |= solver->bound > solver->cutoff;
    solver->decoded = mtf_relaxed_bound_decode(solver->relaxed, solver->values);
    if (solver->decoded)
        mtf_solver_offer_values(solver, solver->values);
}

static void step_bound(MtfSolver *solver) {
    if (solver->relaxed != NULL) {
        step_relaxed(solver);
        return;
    }
    for (int i = 0; i < ROUND_STEPS && (i == 0 || !mtf_solver_is_over(solver)); i++) {
        solver->decoded = mtf_dual_step(solver->dual, solver->values);
        if (solver->decoded)
            mtf_solver_offer_values(solver, solver->values);
        solver->unshrunk++;
        if (mtf_dual_bound(solver->dual) > enough_bound(solver) && prove_bound(solver))
            return;
    }
    prove_bound(solver);
}

void mtf_solver_queue_job(MtfSolver *solver) {
    memcpy(solver->job, solver->values, (gsize)solver->core->node_count * sizeof *solver->job);
    solver->job_ready = true;
}

/* The steps of the bound, and beside them the job when there is one and time for it. */
static void step_with_job(MtfSolver *solver) {
    if (!solver->job_ready || mtf_solver_is_over(solver) ||
        !mtf_solver_may_use(solver, MTF_METHOD_LOCAL)) {
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
        mtf_solver_offer_values(solver, solver->job);
}

/* ---- the improvers beside all that ---- */

/* The dual prices as the base counts its rows; rows that the core has dropped have price 0. */
static double *base_prices(const MtfSolver *solver) {
    const MtfDual *dual =
        solver->relaxed != NULL ? mtf_relaxed_bound_dual(solver->relaxed) : solver->dual;
    const MtfCore *base = solver->base, *core = mtf_dual_core(dual);
    const double *prices = mtf_dual_prices(dual);
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

/* Where time is limited every further thread improves the best choice; else so much work is done whatever the
 * threads. */
static bool may_improve(const MtfSolver *solver) {
    return mtf_solver_may_use(solver, MTF_METHOD_NEIGHBOURHOODS) && solver->based &&
           solver->options->threads > 1 && mtf_search_has_deadline(&solver->control) &&
           !mtf_solver_is_over(solver);
}

static void tell_improvers(MtfSolver *solver) {
    if (!may_improve(solver))
        return;
    g_autofree double *prices = base_prices(solver);
    if (solver->improvers == NULL)
        solver->improvers = mtf_improvers_begin(solver->base, solver->options->threads - 1,
                                                solver->options->seed, solver->base_values, prices);
    if (solver->job_ready)
        mtf_core_lift_steps(solver->core, solver->core->trail->len, solver->base_steps, solver->job,
                            solver->base_trial);
    mtf_improvers_tell(solver->improvers, solver->base_values,
                       solver->job_ready ? solver->base_trial : NULL, prices);
}

static void take_improved(MtfSolver *solver) {
    if (solver->improvers != NULL && mtf_improvers_take(solver->improvers, solver->base_trial))
        mtf_solver_offer_base_values(solver, solver->base_trial);
}

/* Whether the best choice is worth another look that the rounds do not take by themselves. */
static bool should_look_near(const MtfSolver *solver) {
    return counts_work(solver) && solver->based && solver->stale_rounds >= NEAR_ROUNDS &&
           mtf_solver_may_use(solver, MTF_METHOD_NEIGHBOURHOODS) &&
           mtf_solver_gap(solver) > fmax(NEAR_GAP, solver->options->gap) &&
           (double)mtf_core_size(solver->base).entries >= NEAR_ENTRIES;
}

/* Neighbourhoods of the best choice, a fixed amount of them, so that any number of threads comes to the same. */
static void look_near(MtfSolver *solver) {
    g_autofree double *prices = base_prices(solver);
    if (solver->near == NULL)
        solver->near = mtf_neighbourhoods_new(solver->base, solver->options->seed);
    memcpy(solver->base_trial, solver->base_values,
           (gsize)solver->base->node_count * sizeof *solver->base_trial);
    if (mtf_neighbourhoods_improve(solver->near, prices, NEAR_WORK, solver->base_trial,
                                   &solver->control))
        mtf_solver_offer_base_values(solver, solver->base_trial);
}

/* Probes a core that is small enough for it, and where that left little before, not until it is
 * much smaller or a better choice is known. Returns whether that leaves much less. */
static bool probe(MtfSolver *solver) {
    MtfCoreSize core = mtf_core_size(solver->core);
    double size = (double)core.values * (double)core.entries;
    bool again = solver->fresh || size <= PROBE_AGAIN * solver->hard;
    if (!mtf_solver_may_use(solver, MTF_METHOD_PROBE) || solver->choice == NULL ||
        size > PROBE_SIZE || !again)
        return false;
    int found = mtf_dual_probe(solver->dual, solver->cutoff, &solver->control);
    bool much = found > PROBE_WORTH * (double)core.values;
    solver->hard = much ? INFINITY : size;
    return much;
}

/* Whether the bound is so near where it will end that the optimum can be guessed from it. */
static bool should_guess(MtfSolver *solver) {
    double bound = (double)solver->bound, gap = (double)solver->cutoff - bound;
    bool settled = bound - solver->guess_bound <= GUESS_RISE * gap;
    solver->guess_bound = bound;
    return ++solver->guess_rounds >= solver->guess_wait && settled && solver->choice != NULL &&
           solver->guess >= GUESS_LEAST &&
           (double)mtf_core_size(solver->core).entries >= GUESS_SIZE;
}

/* A guess that came to nothing was too far from the bound, one that was refuted too near. */
static void guess_cost(MtfSolver *solver) {
    double gap = (double)solver->cutoff - (double)solver->bound;
    MtfGuess guess = { .cutoff = solver->bound + (int64_t)(solver->guess * gap),
                       .known = solver->cutoff,
                       .seed = solver->options->seed,
                       .control = &solver->control };
    MtfGuessAnswer answer = mtf_guess_try(solver->dual, &guess, solver->values);
    if (answer.found)
        mtf_solver_offer_values(solver, solver->values);
    if (answer.refuted) {
        mtf_solver_raise_bound(solver, guess.cutoff + 1, "message passing");
        solver->guess = fmin(2 * solver->guess, GUESS_MOST);
    }
    if (!answer.found && !answer.refuted) {
        solver->guess /= 2;
        solver->guess_wait *= 2;
    }
    solver->guess_rounds = answer.refuted ? solver->guess_wait : 0;
}

static bool may_eliminate(const MtfSolver *solver) {
    return mtf_solver_may_use(solver, MTF_METHOD_ELIMINATION) && solver->choice != NULL;
}

/* Whether elimination is to have its turn before nodes are joined, which makes a core wider. */
static bool awaits_elimination(const MtfSolver *solver) {
    return may_eliminate(solver) && solver->pairings == 0 && !solver->too_wide &&
           solver->elimination_work <= solver->early_elimination;
}

static double most_elimination(const MtfSolver *solver) {
    return counts_work(solver) ? COUNTED_ELIMINATION : MOST_ELIMINATION;
}

/* Takes over what an elimination up to that cutoff came to. */
static void take_elimination(MtfSolver *solver, MtfEliminationStatus status, int64_t bound) {
    if (status == MTF_ELIMINATION_FOUND)
        mtf_solver_offer_values(solver, solver->values);
    if (status == MTF_ELIMINATION_NONE)
        solver->elimination_share = fmin(1, 2 * solver->elimination_share);
    mtf_solver_raise_bound(solver, bound, "bucket elimination");
    solver->proven |= solver->bound > solver->cutoff;
}

/* Once more with more work, while joining and branching wait for it. Returns false when it has had
 * its turn. */
static bool eliminate_early(MtfSolver *solver) {
    if (!awaits_elimination(solver))
        return false;
    solver->elimination_work *= MORE_ELIMINATION;
    solver->stale_rounds -= 2; /* neither this round nor the next is stale */
    if (awaits_elimination(solver))
        return true;
    solver->early_elimination = 0;
    solver->elimination_work = fmin(solver->elimination_work, most_elimination(solver));
    return false;
}

/* Where it came to nothing: once more nearer to the bound or, after a while, with more work. */
static void put_elimination_off(MtfSolver *solver) {
    if (eliminate_early(solver))
        return;
    solver->elimination_share /= 2;
    if (solver->elimination_share >= LEAST_ELIMINATION)
        return;
    solver->elimination_share = 1;
    solver->elimination_work =
        fmin(MORE_ELIMINATION * solver->elimination_work, most_elimination(solver));
    solver->elimination_wait = MAX(2 * solver->elimination_wait, ELIMINATION_WAIT);
}

/* Eliminates the core as far as some share of the gap above the bound. */
static void eliminate(MtfSolver *solver) {
    if (!may_eliminate(solver) || ++solver->elimination_rounds <= solver->elimination_wait)
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
        .known = solver->bound,
    };
    int64_t bound;
    MtfEliminationStatus status =
        mtf_bucket_eliminate(solver->core, &elimination, solver->values, &bound);
    solver->too_wide = status == MTF_ELIMINATION_WIDE;
    take_elimination(solver, status, bound);
    if (status == MTF_ELIMINATION_OPEN || solver->too_wide)
        put_elimination_off(solver);
}

/* Branches while the bound is stuck; a better choice makes a smaller core worth while. */
static void branch(MtfSolver *solver) {
    if (solver->branching == NULL)
        solver->branching = mtf_branching_new(mtf_dual_messages(solver->dual), solver->weights,
                                              solver->options->seed);
    MtfBranchStatus status = MTF_BRANCH_FOUND;
    int64_t work = counts_work(solver) ? COUNTED_WORK : BRANCH_WORK;
    solver->stale_rounds -= ++solver->branch_rounds <= BRANCH_ROUNDS;
    while (status == MTF_BRANCH_FOUND && !mtf_solver_is_over(solver)) {
        status = mtf_branching_run(solver->branching, solver->cutoff, work, solver->values);
        if (status == MTF_BRANCH_FOUND)
            mtf_solver_offer_values(solver, solver->values);
    }
    if (status == MTF_BRANCH_DONE) {
        solver->proven = true;
        solver->method = "branch and bound";
    }
    mtf_solver_raise_bound(solver, MIN(mtf_branching_bound(solver->branching), solver->cutoff + 1),
                           "branch and bound");
}

/* Whether the core's bound is to come from a copy with few rows from here on. */
static bool should_relax(const MtfSolver *solver) {
    return is_wide(solver) && !solver->was_relaxed &&
           mtf_solver_may_use(solver, MTF_METHOD_RELAXATION) && mtf_solver_gap(solver) > RELAX_GAP;
}

static void begin_relaxed(MtfSolver *solver) {
    solver->was_relaxed = true;
    solver->relaxed =
        mtf_relaxed_bound_new(solver->dual, solver->cutoff, solver->bound, &solver->control);
}

/* One round: some steps of the bound, then whatever they made worth while. */
static void run_round(MtfSolver *solver) {
    step_with_job(solver);
    if (solver->proven)
        return;
    mtf_solver_queue_job(solver);
    if (solver->relaxed != NULL) {
        if (mtf_relaxed_bound_is_stuck(solver->relaxed))
            g_clear_pointer(&solver->relaxed, mtf_relaxed_bound_free);
        return;
    }
    if (!mtf_solver_is_good_enough(solver) && mtf_solver_may_use(solver, MTF_METHOD_DIVE) &&
        should_guess(solver))
        guess_cost(solver);
    if (mtf_solver_is_good_enough(solver))
        return;
    bool stuck = is_stuck(solver);
    if (solver->branching != NULL && !solver->fresh) {
        eliminate(solver);
        if (solver->proven)
            return;
        branch(solver);
        if (!solver->proven && mtf_solver_may_use(solver, MTF_METHOD_PROGRAM) &&
            !solver->ilp_tried && solver->branch_rounds == BRANCH_ROUNDS &&
            mtf_core_ilp_size(solver->core) <= ILP_SIZE)
            try_integer_program(solver);
        return;
    }
    bool shrinks = should_shrink(solver), probed = shrinks && probe(solver);
    bool rests = stuck ? !awaits_elimination(solver) : has_settled(solver);
    if (rests && should_relax(solver)) {
        begin_relaxed(solver);
        return;
    }
    bool pairs = rests && !probed && should_pair(solver);
    if (shrinks || pairs)
        shrink(solver, pairs);
    if (stuck && !solver->proven)
        eliminate(solver);
    bool small = (double)mtf_core_size(solver->core).entries <= BRANCH_ENTRIES;
    if (stuck && small && mtf_solver_may_use(solver, MTF_METHOD_BRANCH) && !solver->proven &&
        !probed && !pairs && !awaits_elimination(solver))
        branch(solver);
}

void mtf_solver_begin_rounds(MtfSolver *solver) {
    solver->last_gap = solver->hard = solver->noted_gap = INFINITY;
    solver->guess = GUESS_FIRST;
    solver->guess_wait = GUESS_ROUNDS;
    solver->guess_bound = solver->look_bound = -INFINITY;
    solver->elimination_work = FIRST_ELIMINATION;
    solver->early_elimination = counts_work(solver) ? COUNTED_EARLY : EARLY_ELIMINATION;
    solver->elimination_share = 1;
}

void mtf_solver_round(MtfSolver *solver) {
    tell_improvers(solver);
    if (should_look_near(solver))
        look_near(solver);
    run_round(solver);
    take_improved(solver);
}

void mtf_solver_end_improving(MtfSolver *solver) {
    if (solver->improvers == NULL)
        return;
    mtf_improvers_end(solver->improvers);
    take_improved(solver);
}

void mtf_solver_last_job(MtfSolver *solver) {
    if (!solver->job_ready)
        return;
    prepare_job(solver);
    run_job(solver);
    if (solver->job_legal)
        mtf_solver_offer_values(solver, solver->job);
}
