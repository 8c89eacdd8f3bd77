// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/free_search.h"

#include "analyzer/free/alternatives.h"
#include "analyzer/free/left_out.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/solver/search/layout_solve.h"
#include "cost/price/schedule.h"
#include "cost/tune/order_search.h"
#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

/* Peak tensors named when nothing fits; and rounds and gap of a search for a layout that would fit under
 * a higher limit: only its bytes matter. */
#define MAX_NAMED 12
#define SMALL_ROUNDS 4
#define SMALL_GAP 0.05

/* Gap of solves with memory that the problem leaves out, where their rounds are limited. */
#define TIGHTENED_GAP 0.005

/* Solves with memory that the problem leaves out counted where a choice had it; and where no more than this is to be
 * gained, none under a limit that is lowered throughout the step. */
#define LEFT_OUT_ROUNDS 3
#define NEAR_COST 0.01

/* Nodes of a problem that takes a solver a second before its first round. */
#define LONG_NODES 100000

typedef struct {
    const MtfFreeProblem *problem;
    MtfLayoutProblem *limited; /* the layout problem as it is searched, */
    bool tightened;            /* with memory that it leaves out, or under another limit */
    MtfLeftOut *left_out;      /* by those choices that did not fit; NULL: there was none */
    const MtfFreeSearchOptions *options;
    int *start;           /* the best incumbent's choice, or NULL; */
    double start_seconds; /* and of its step */
    bool for_bytes;       /* only looks for what would fit */
    MtfFreeAnswer *answer;
} Search;

static int node_count(const Search *search) {
    return mtf_layout_problem_node_count(mtf_free_problem_get(search->problem));
}

/* What a layout's program comes to, as in MtfIncumbent. */
typedef struct {
    int64_t cost, arena_bytes;
    double step_seconds;
} Value;

/* ---- Answers ------------------------------------------------------------------------------- */

static void set_answer(Search *search, MtfLayout *layout, const Value *value) {
    MtfFreeAnswer *answer = search->answer;
    mtf_layout_free(answer->layout);
    answer->layout = layout;
    answer->cost = value->cost;
    answer->arena_bytes = value->arena_bytes;
    answer->step_seconds = value->step_seconds;
    mtf_search_tell_found(search->options->control, value->cost);
}

/* The best incumbent is the first answer, so that the search is never worse. */
static void begin_with_incumbents(Search *search) {
    const MtfFreeSearchOptions *options = search->options;
    const MtfIncumbent *best = options->incumbents != NULL
                                   ? mtf_incumbents_best(options->incumbents, options->memory_limit)
                                   : NULL;
    if (best == NULL)
        return;
    Value value = { best->cost, best->arena_bytes, best->step_seconds };
    set_answer(search, mtf_layout_copy(best->layout), &value);
    search->start = g_new(int, node_count(search));
    search->start_seconds = value.step_seconds;
    if (!mtf_free_problem_choice(search->problem, best->layout, search->start))
        g_clear_pointer(&search->start, g_free);
}

/* Of the layout's schedule; `program` is what it was lowered to before it was given an order. */
static double step_seconds(const Search *search, const MtfLayout *layout,
                           const MtfProgram *program) {
    const MtfGraph *graph = mtf_free_problem_graph(search->problem);
    g_autoptr(MtfProgram) ordered =
        layout->execution.order != NULL ? mtf_lower(graph, layout) : NULL;
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(mtf_free_problem_pricer(search->problem),
                                                       ordered != NULL ? ordered : program);
    return (double)schedule->nanoseconds / 1e9;
}

static void note_slowness(Search *search, double seconds) {
    double most = search->options->most_seconds;
    search->answer->too_slow = most > 0 && seconds > most;
}

/* Whether the search found nothing but what it began with, which fits and was measured. */
static bool is_start(const Search *search, const int *choice) {
    return search->start != NULL &&
           memcmp(choice, search->start, (size_t)node_count(search) * sizeof *choice) == 0;
}

/* Whether a solution's step is so long that it does not matter whether it fits, for which orders are tried. */
static bool is_hopeless(Search *search, const MtfLayout *layout, const MtfProgram *program) {
    double most = search->options->hopeless_seconds;
    double seconds = most > 0 ? step_seconds(search, layout, program) : 0;
    bool hopeless = seconds > most;
    if (hopeless)
        search->answer->step_seconds = seconds;
    return hopeless;
}

/* Of a choice under the user's limit: others only say what would do. */
static void note_left_out(Search *search, const int *choice, const MtfProgram *program,
                          int64_t arena_bytes) {
    if (mtf_layout_problem_limit(search->limited) != search->options->memory_limit)
        return;
    if (search->left_out == NULL)
        search->left_out = mtf_left_out_new(search->problem);
    mtf_left_out_note(search->left_out, choice, program, arena_bytes,
                      search->options->memory_limit);
}

/* Lowers a choice and keeps it when it fits and is cheaper. Returns the bytes it is over the limit,
 * 0 when it fits, or is hopeless. */
static int64_t take_choice(Search *search, const int *choice) {
    if (is_start(search, choice)) {
        note_slowness(search, search->start_seconds);
        return 0;
    }
    MtfLayout *layout = mtf_free_problem_layout(search->problem, choice);
    const MtfGraph *graph = mtf_free_problem_graph(search->problem);
    const MtfPricer *pricer = mtf_free_problem_pricer(search->problem);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    search->answer->hopeless = is_hopeless(search, layout, program);
    if (search->answer->hopeless) {
        mtf_layout_free(layout);
        return 0;
    }
    Value value = { .cost = mtf_price_program(pricer, program) };
    value.arena_bytes =
        mtf_layout_arena_bytes(graph, layout, program, pricer, search->options->memory_limit);
    value.step_seconds = step_seconds(search, layout, program);
    note_slowness(search, value.step_seconds);
    int64_t missing = MAX(0, value.arena_bytes - search->options->memory_limit);
    bool better = search->answer->layout == NULL || value.cost < search->answer->cost;
    if (missing > 0)
        note_left_out(search, choice, program, value.arena_bytes);
    if (missing > 0 || !better) {
        mtf_layout_free(layout);
        return missing;
    }
    set_answer(search, layout, &value);
    cJSON_Delete(search->answer->why);
    search->answer->why = mtf_alternatives_that_matter(search->problem, choice, MTF_FREE_EXPLAINED);
    return 0;
}

/* ---- The solver ---------------------------------------------------------------------------- */

/* Takes the problem under a limit for what is solved next, with what it leaves out where that is `weighed`. */
static void pose(Search *search, bool weighed, int64_t limit) {
    mtf_layout_problem_free(search->limited);
    search->limited = weighed ? mtf_left_out_pose(search->left_out)
                              : mtf_layout_problem_copy(mtf_free_problem_get(search->problem));
    search->tightened = weighed || limit < search->options->memory_limit;
    mtf_layout_problem_set_limit(search->limited, limit);
}

/* Methods that are left out: where work is limited, the many searches for others than the cheapest layout of
 * all (under lower limits, of alike layers) do without neighbourhoods; those for a short step, of which nothing is
 * proven, without excluding single values; with memory that the problem leaves out none asks the integer
 * program, whose bound nobody asks for there; and where they begin with a choice that is as good, none looks for alike
 * layers. */
static MtfSolveMethods spared(const Search *search) {
    const MtfFreeSearchOptions *options = search->options;
    bool plain = !search->tightened && options->most_seconds <= 0 && options->leader == NULL;
    MtfSolveMethods near =
        plain || mtf_search_has_deadline(options->control) ? 0 : MTF_METHOD_NEIGHBOURHOODS;
    MtfSolveMethods alike = options->begun && search->start != NULL ? MTF_METHOD_ALIKE : 0;
    MtfSolveMethods proofs = options->most_seconds > 0 ? MTF_METHOD_PROBE : 0;
    return alike | near | proofs | (search->tightened ? MTF_METHOD_PROGRAM : 0);
}

/* The options' leaders; what was left out follows none. */
static int *leaders(const Search *search) {
    const int *given = search->options->leader;
    int n = mtf_layout_problem_node_count(search->limited);
    int *leader = given != NULL ? g_new(int, n + 1) : NULL;
    for (int v = 0; leader != NULL && v < n; v++)
        leader[v] = v < node_count(search) ? given[v] : v;
    return leader;
}

/* Solves the problem as it is now, beginning near a choice that takes too much memory for it, or, for a draft and where
 * it is NULL, with the best incumbent; `infeasibility` may be NULL. Only bounds of what the user asked for are told;
 * with memory that is left out, or under a lower limit, it is given up where its bound says that nothing cheaper than
 * the answer is to be found. Half of the processors: two variants of the step are searched at once. */
static MtfLayoutSolution *solve(const Search *search, const int *choice,
                                MtfInfeasibility *infeasibility, GError **error) {
    const MtfFreeSearchOptions *options = search->options;
    bool tightened = search->tightened;
    int nodes = mtf_layout_problem_node_count(search->limited);
    g_autofree int *leader = leaders(search);
    bool near = choice != NULL && options->near && !options->draft; /* a draft's layers are alike */
    const int *begun = near ? choice : search->start;
    g_autofree int *start = begun != NULL && node_count(search) < nodes
                                ? mtf_left_out_choice(search->left_out, begun)
                                : NULL;
    const MtfRowPrices *prices = tightened ? NULL : options->prices;
    MtfInt128 known_bound =
        search->answer->bound; /* under the user's limit, thus under a lower one */
    MtfSearchControl part;
    _Atomic int64_t found = search->answer->layout != NULL ? search->answer->cost : INT64_MAX;
    mtf_search_control_init_part(&part, options->control, 0);
    part.rival = &found;
    part.slack = 1;
    MtfSolveOptions solve_options = { .work = options->work,
                                      .program_work = options->program_work,
                                      .gap = options->gap,
                                      .seed = options->seed,
                                      .threads = MAX(2, mtf_in_parallel_threads() / 2),
                                      .start = start != NULL ? start : begun,
                                      .known_bound =
                                          tightened && known_bound > 0 ? &known_bound : NULL,
                                      .leader = leader,
                                      .without = spared(search),
                                      .draft = options->draft,
                                      .prices = near ? search->answer->prices : prices,
                                      .no_infeasibility = infeasibility == NULL,
                                      .control = tightened ? &part : options->control };
    if (search->for_bytes) {
        solve_options.work = SMALL_ROUNDS;
        solve_options.gap = SMALL_GAP;
    } else if (tightened && options->tightened_work > 0) {
        solve_options.work = MIN(options->work, options->tightened_work);
        solve_options.gap = fmax(options->gap, TIGHTENED_GAP);
    }
    return mtf_layout_solve(search->limited, &solve_options, infeasibility, error);
}

/* ---- Nothing fits -------------------------------------------------------------------------- */

static void name_peak(Search *search, const MtfInfeasibility *infeasibility) {
    search->answer->peak = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < infeasibility->node_count && i < MAX_NAMED; i++) {
        const char *name = mtf_free_problem_node_name(search->problem, infeasibility->nodes[i]);
        g_ptr_array_add(search->answer->peak, g_strdup(name));
    }
}

/* Takes a small layout when it fits; otherwise notes the limit that would do for it. */
static void try_small(Search *search, const int *choice) {
    int64_t missing = take_choice(search, choice);
    int64_t enough = search->options->memory_limit + missing;
    if (missing > 0 && (search->answer->limit_enough == 0 || enough < search->answer->limit_enough))
        search->answer->limit_enough = enough;
}

/* Every operation and tensor takes as little memory as it can. */
static void try_smallest_slices(Search *search) {
    int n = node_count(search);
    g_autofree int *choice = g_new0(int, n);
    for (int v = 0; v < n; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(search->limited, v);
        for (int s = 1; s < node->strategies; s++)
            if (node->usages[s] < node->usages[choice[v]])
                choice[v] = s;
    }
    try_small(search, choice);
}

/* Layouts that the problem takes for small: at the limit that would do there, and some way above
 * it, where resharding may need less, but not above what was found to do. */
static void try_small_limits(Search *search, int64_t enough) {
    static const double shares[] = { 1, 1.05, 1.15, 1.3 };
    search->for_bytes = true;
    for (gsize i = 0; i < G_N_ELEMENTS(shares); i++) {
        int64_t limit = (int64_t)((double)enough * shares[i]), known = search->answer->limit_enough;
        if (known > 0 && limit >= known)
            return;
        mtf_layout_problem_set_limit(search->limited, limit);
        g_autoptr(MtfLayoutSolution) solution = solve(search, NULL, NULL, NULL);
        if (solution != NULL)
            try_small(search, solution->choice);
    }
}

/* An incumbent that does not fit says what would do, too. */
static void note_incumbents(Search *search) {
    MtfIncumbents *incumbents = search->options->incumbents;
    const MtfIncumbent *smallest = incumbents != NULL ? mtf_incumbents_smallest(incumbents) : NULL;
    if (smallest != NULL &&
        (search->answer->limit_enough == 0 || smallest->arena_bytes < search->answer->limit_enough))
        search->answer->limit_enough = smallest->arena_bytes;
}

/* Nothing fitted: tries the smallest layouts there are, whatever the limit, and says what would do
 * when they are too large as well. */
static void search_smallest(Search *search) {
    MtfInfeasibility infeasibility = { 0 };
    pose(search, false, 0);
    mtf_layout_solution_free(solve(search, NULL, &infeasibility, NULL));
    if (infeasibility.possible) {
        search->answer->limit_bound = infeasibility.needed;
        name_peak(search, &infeasibility);
        try_smallest_slices(search);
        try_small_limits(search, infeasibility.enough);
        note_incumbents(search);
    }
    g_free(infeasibility.nodes);
}

/* ---- The loop ------------------------------------------------------------------------------ */

/* True where finding no (further) solution is an answer; otherwise hands the error on. */
static bool no_solution(const Search *search, GError *cause, GError **error) {
    bool stopped = g_error_matches(cause, MTF_ERROR, MTF_ERROR_FAILED) &&
                   !mtf_search_is_abandoned(search->options->control);
    bool unfit = g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT);
    if (unfit || (stopped && search->answer->layout != NULL)) {
        g_error_free(cause);
        return true;
    }
    g_propagate_error(error, cause);
    return false;
}

/* Whether a layout is known and time is up for a problem so large that its solver would still take seconds. */
static bool is_settled(const Search *search) {
    return search->answer->layout != NULL && node_count(search) > LONG_NODES &&
           mtf_search_is_over(search->options->control) &&
           !mtf_search_is_abandoned(search->options->control);
}

/* A limit below the present one by what the choice is missing, or by a multiple of that: so much that the choice
 * breaks it, which would be found again otherwise. */
static int64_t lower_limit(const Search *search, const int *choice, int64_t limit,
                           int64_t missing) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(search->problem);
    int64_t peak = (int64_t)mtf_layout_problem_evaluate(problem, choice).peak;
    return limit - missing * ((limit - peak) / missing + 1);
}

/* How what the problem leaves out is counted. */
typedef enum {
    WEIGHED, /* where choices had it: others, which have less of it there, may be left out with them */
    LOWERED, /* everywhere, by a lower limit */
} Tightening;

/* Solves the problem with what it leaves out until a choice fits, or one under weights is missing no less than that before;
 * the first is missing some bytes. */
static bool tighten_until_it_fits(Search *search, Tightening way, const int *first, int64_t missing,
                                  GError **error) {
    int64_t limit = search->options->memory_limit;
    gsize bytes = (gsize)node_count(search) * sizeof *first;
    g_autofree int *choice = g_memdup2(first, bytes);
    for (int round = 0; round < (way == WEIGHED ? LEFT_OUT_ROUNDS : MTF_FREE_TIGHTENINGS);
         round++) {
        limit = way == LOWERED ? lower_limit(search, choice, limit, missing) : limit;
        if (limit < 0 || mtf_search_is_over(search->options->control))
            return true;
        pose(search, way == WEIGHED, limit);
        GError *cause = NULL;
        g_autoptr(MtfLayoutSolution) solution = solve(search, choice, NULL, &cause);
        if (solution == NULL)
            return no_solution(search, cause, error);
        search->answer->tightenings++;
        int64_t before = missing;
        missing = take_choice(search, solution->choice);
        bool diverges = way == WEIGHED && missing >= before;
        if (missing == 0 || search->answer->too_slow || diverges)
            return true;
        memcpy(choice, solution->choice, bytes);
    }
    return true;
}

/* Whether a search that may end has found nothing near `cost`, that of a choice without what the problem leaves out:
 * nothing that fits costs much less, whether or not the search has a bound. */
static bool is_far_from(const Search *search, double cost) {
    const MtfFreeAnswer *answer = search->answer;
    return !answer->too_slow && !answer->hopeless &&
           (answer->layout == NULL ||
            (double)answer->cost > (1 + fmax(search->options->gap, NEAR_COST)) * cost);
}

static bool solve_until_it_fits(Search *search, GError **error) {
    pose(search, false, search->options->memory_limit);
    GError *cause = NULL;
    g_autoptr(MtfLayoutSolution) solution = solve(search, NULL, NULL, &cause);
    if (solution == NULL)
        return no_solution(search, cause, error);
    search->answer->bound = (int64_t)MAX(0, solution->bound);
    search->answer->method = g_strdup(solution->method);
    search->answer->prices = g_steal_pointer(&solution->prices);
    if (search->options->bound_only)
        return true;
    int64_t missing = take_choice(search, solution->choice);
    if (missing == 0 || search->answer->too_slow)
        return true;
    return tighten_until_it_fits(search, WEIGHED, solution->choice, missing, error) &&
           (!is_far_from(search, (double)solution->cost) ||
            tighten_until_it_fits(search, LOWERED, solution->choice, missing, error));
}

bool mtf_free_search(const MtfFreeProblem *problem, const MtfFreeSearchOptions *options,
                     MtfFreeAnswer *answer, GError **error) {
    *answer = (MtfFreeAnswer){ 0 };
    Search search = { .problem = problem, .options = options, .answer = answer };
    begin_with_incumbents(&search);
    bool done = is_settled(&search) || solve_until_it_fits(&search, error);
    if (done && answer->layout == NULL && !answer->hopeless && !options->no_infeasibility &&
        !options->bound_only && !mtf_search_is_over(options->control))
        search_smallest(&search);
    /* An incumbent may be cheaper than the bound where it is no choice of the problem. */
    if (answer->layout != NULL)
        answer->bound = MIN(answer->bound, answer->cost);
    if (answer->method == NULL)
        answer->method = g_strdup("none yet");
    mtf_layout_problem_free(search.limited);
    mtf_left_out_free(search.left_out);
    g_free(search.start);
    return done;
}

void mtf_free_answer_clear(MtfFreeAnswer *answer) {
    mtf_layout_free(answer->layout);
    mtf_row_prices_free(answer->prices);
    g_free(answer->method);
    cJSON_Delete(answer->why);
    if (answer->peak != NULL)
        g_ptr_array_unref(answer->peak);
    *answer = (MtfFreeAnswer){ 0 };
}
