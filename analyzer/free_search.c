// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free_search.h"

#include "analyzer/alternatives.h"
#include "analyzer/layout_problem_json.h"
#include "analyzer/layout_solve.h"
#include "cost/arena.h"
#include "layouts/error.h"

/* Peak tensors named when nothing fits, and decisions explained in a plan. */
#define MAX_NAMED 12
#define MAX_EXPLAINED 12

typedef struct {
    const MtfGraph *graph;
    const MtfFreeSearchOptions *options;
    const MtfPricer *pricer;
    MtfFreeProblem *problem;
    int *start;      /* the start's choice, or NULL */
    gint64 deadline; /* monotonic microseconds; 0 = none */
    MtfFreeAnswer *answer;
} Search;

/* ---- Answers ------------------------------------------------------------------------------- */

static void set_answer(Search *search, MtfLayout *layout, int64_t cost, int64_t arena_bytes,
                       const char *method) {
    MtfFreeAnswer *answer = search->answer;
    mtf_layout_free(answer->layout);
    g_free(answer->method);
    answer->layout = layout;
    answer->cost = cost;
    answer->arena_bytes = arena_bytes;
    answer->method = g_strdup(method);
}

/* The start is the first answer, so that the search is never worse. */
static void begin_with_start(Search *search) {
    const MtfLayout *start = search->options->start;
    if (start == NULL)
        return;
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, start);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    set_answer(search, mtf_layout_copy(start), search->options->start_cost, arena->bytes,
               "rule layout");
    int n = mtf_layout_problem_node_count(mtf_free_problem_get(search->problem));
    search->start = g_new(int, n);
    if (!mtf_free_problem_choice(search->problem, start, search->start))
        g_clear_pointer(&search->start, g_free);
}

/* Lowers a choice and keeps it when it fits and is cheaper. Returns the bytes it is over the limit,
 * 0 when it fits. */
static int64_t take_choice(Search *search, const MtfLayoutSolution *solution) {
    MtfLayout *layout = mtf_free_problem_layout(search->problem, solution->choice);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    int64_t cost = mtf_price_program(search->pricer, program);
    int64_t missing = MAX(0, arena->bytes - search->options->memory_limit);
    bool better = search->answer->layout == NULL || cost < search->answer->cost;
    if (missing > 0 || !better) {
        mtf_layout_free(layout);
        return missing;
    }
    set_answer(search, layout, cost, arena->bytes, solution->method);
    cJSON_Delete(search->answer->why);
    search->answer->why =
        mtf_alternatives_that_matter(search->problem, solution->choice, MAX_EXPLAINED);
    return 0;
}

/* ---- Nothing fits -------------------------------------------------------------------------- */

static void name_peak(Search *search, const MtfLayoutMisfit *misfit) {
    search->answer->peak = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < misfit->node_count && i < MAX_NAMED; i++) {
        const char *name = mtf_free_problem_node_name(search->problem, misfit->nodes[i]);
        g_ptr_array_add(search->answer->peak, g_strdup(name));
    }
}

/* The arena of the layout in which every operation and tensor takes as little memory as it can. */
static int64_t smallest_arena(Search *search) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(search->problem);
    int n = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new0(int, n);
    for (int v = 0; v < n; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        for (int s = 1; s < node->strategies; s++)
            if (node->usages[s] < node->usages[choice[v]])
                choice[v] = s;
    }
    g_autoptr(MtfLayout) layout = mtf_free_problem_layout(search->problem, choice);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    return arena->bytes;
}

/* What remains to be said when the solver found nothing: true unless it is an error. */
static bool note_misfit(Search *search, bool first, MtfLayoutMisfit *misfit, GError *cause,
                        GError **error) {
    bool stopped = g_error_matches(cause, MTF_ERROR, MTF_ERROR_FAILED);
    bool unfit = g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT);
    if (unfit && first && misfit->possible) {
        search->answer->limit_bound = misfit->needed;
        name_peak(search, misfit);
        search->answer->limit_enough = smallest_arena(search);
    }
    g_free(misfit->nodes);
    if (unfit || (stopped && search->answer->layout != NULL)) {
        g_error_free(cause);
        return true;
    }
    g_propagate_error(error, cause);
    return false;
}

/* ---- The loop ------------------------------------------------------------------------------ */

static double seconds_left(const Search *search) {
    if (search->deadline == 0)
        return 0;
    return MAX(0.01, (double)(search->deadline - g_get_monotonic_time()) / 1e6);
}

/* Solves under the problem's present limit. NULL without an error: nothing (more) to be found. */
static MtfLayoutSolution *solve(Search *search, bool first, GError **error) {
    const MtfFreeSearchOptions *options = search->options;
    MtfSolveOptions solve_options = { .seconds = seconds_left(search),
                                      .work = options->work,
                                      .gap = options->gap,
                                      .seed = options->seed,
                                      .threads = 2,
                                      .start = search->start,
                                      .no_misfit = !first,
                                      .user = options->user,
                                      .cancel = options->cancel,
                                      .progress = options->progress };
    MtfLayoutMisfit misfit = { 0 };
    GError *cause = NULL;
    MtfLayoutSolution *solution =
        mtf_layout_solve(mtf_free_problem_get(search->problem), &solve_options, &misfit, &cause);
    if (solution == NULL)
        note_misfit(search, first, &misfit, cause, error);
    return solution;
}

static bool solve_until_it_fits(Search *search, GError **error) {
    MtfLayoutProblem *problem = mtf_free_problem_get(search->problem);
    int64_t limit = search->options->memory_limit;
    for (int round = 0; round <= MTF_FREE_TIGHTENINGS; round++) {
        mtf_layout_problem_set_limit(problem, limit);
        GError *cause = NULL;
        g_autoptr(MtfLayoutSolution) solution = solve(search, round == 0, &cause);
        if (cause != NULL) {
            g_propagate_error(error, cause);
            return false;
        }
        if (solution == NULL)
            return true;
        if (round == 0)
            search->answer->bound = (int64_t)solution->bound;
        search->answer->tightenings = round;
        int64_t missing = take_choice(search, solution);
        if (missing == 0)
            return true;
        limit -= missing;
        if (limit < 0 || (search->deadline != 0 && g_get_monotonic_time() > search->deadline))
            return true;
    }
    return true;
}

bool mtf_free_search(const MtfGraph *graph, const MtfMesh *mesh,
                     const MtfFreeSearchOptions *options, MtfFreeAnswer *answer, GError **error) {
    MtfPricer pricer;
    *answer = (MtfFreeAnswer){ 0 };
    if (!mtf_pricer_init(&pricer, options->machine, mesh, error))
        return false;
    Search search = { .graph = graph, .options = options, .pricer = &pricer, .answer = answer };
    if (options->seconds > 0)
        search.deadline = g_get_monotonic_time() + (gint64)(options->seconds * 1e6);
    search.problem =
        mtf_free_problem_new(graph, mesh, &pricer, options->pins, options->n_pins, error);
    if (search.problem == NULL)
        return false;
    begin_with_start(&search);
    bool done = solve_until_it_fits(&search, error);
    /* The start's own program may be the cheapest, and is then below the problem's bound only if it
     * is no choice of the problem. */
    if (answer->layout != NULL)
        answer->bound = MIN(answer->bound, answer->cost);
    g_free(search.start);
    mtf_free_problem_free(search.problem);
    return done;
}

void mtf_free_answer_clear(MtfFreeAnswer *answer) {
    mtf_layout_free(answer->layout);
    g_free(answer->method);
    cJSON_Delete(answer->why);
    if (answer->peak != NULL)
        g_ptr_array_unref(answer->peak);
    *answer = (MtfFreeAnswer){ 0 };
}

bool mtf_free_search_dump(const MtfGraph *graph, const MtfMesh *mesh,
                          const MtfFreeSearchOptions *options, const char *path, GError **error) {
    MtfPricer pricer;
    if (!mtf_pricer_init(&pricer, options->machine, mesh, error))
        return false;
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new(graph, mesh, &pricer, options->pins, options->n_pins, error);
    if (problem == NULL)
        return false;
    mtf_layout_problem_set_limit(mtf_free_problem_get(problem), options->memory_limit);
    return mtf_layout_problem_save(mtf_free_problem_get(problem), path, error);
}
