// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/shortest_step.h"

#include "analyzer/solver/problem/in_parallel.h"

#include <math.h>

/* At most TIGHTER_LIMITS lower memory limits are searched for layouts of shorter steps, until one leads to a
 * step TIGHTER_STEP times as long as the cheapest layout's: still lower ones would lead to longer ones. Each
 * gets rounds by the entries of the problem's matrices, TIGHTER_ROUNDS at least: what is fast is found early,
 * and where the gap does not close, rounds of large problems are long.
 */
#define TIGHTER_LIMITS 3
#define TIGHTER_STEP 1.03
#define TIGHTER_ROUNDS 4
/* Work of one integer program of such a search (ilp.h): a tenth of the standard amount, since a step
 * is only looked for, not proven. */
#define TIGHTER_PROGRAM 1e8
#define TIGHTER_GAP 0.005
#define MOST_ROUNDS 12
#define TIGHTER_ENTRIES 1e8

/* The largest limit below `bytes` of a row that is the same for all searches, eight to each power
 * of two, so that searches under near limits look at the same layouts. */
static int64_t limit_below(int64_t bytes) {
    int64_t power = 1;
    while (power < bytes / 2)
        power *= 2;
    int64_t unit = MAX(1, power / 8);
    return (bytes - 1) / unit * unit;
}

/* The search under one of the lower limits. */
typedef struct {
    MtfSearchControl control; /* of bounds that are not of the user's limit */
    MtfFreeSearchOptions options;
    MtfFreeAnswer answer;
    GError *error;
} LimitedSearch;

/* All of them, two at once. What one finds does not depend on the others; where it ends the row,
 * those behind it need not end theirs. */
typedef struct {
    const MtfFreeProblem *problem;
    LimitedSearch searches[TIGHTER_LIMITS];
    gint last; /* none behind it counts; atomic */
} Row;

static void end_row(Row *row, int last) {
    int known = g_atomic_int_get(&row->last);
    while (last < known && !g_atomic_int_compare_and_exchange(&row->last, known, last))
        known = g_atomic_int_get(&row->last);
    for (int i = last + 1; i < TIGHTER_LIMITS; i++)
        mtf_search_cancel(&row->searches[i].control);
}

static void search_limit(int i, void *data) {
    Row *row = data;
    LimitedSearch *limited = &row->searches[i];
    if (mtf_search_is_over(&limited->control))
        return;
    bool done = mtf_free_search(row->problem, &limited->options, &limited->answer, &limited->error);
    if (!done || limited->answer.layout == NULL || limited->answer.too_slow)
        end_row(row, i);
}

/* Rounds of a search under a lower limit. */
static int64_t tighter_work(double entries) {
    return (int64_t)CLAMP(TIGHTER_ENTRIES / entries, TIGHTER_ROUNDS, MOST_ROUNDS);
}

/* A wide problem is searched for layouts with alike layers, as the plan will be one where that costs little, and
 * to a gap. */
static void limit_wide(const MtfMeshAttempt *best, MtfFreeSearchOptions *options) {
    if (best->alike != NULL)
        options->leader = best->ties->leader;
    options->gap = fmax(options->gap, TIGHTER_GAP);
}

/* Each search knows what a search under that limit alone would know, so that it finds the same. */
static void row_init(Row *row, const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    *row = (Row){ .problem = best->problem, .last = TIGHTER_LIMITS - 1 };
    int64_t limit = best->free.arena_bytes;
    double entries = mtf_mesh_attempt_entries(best);
    for (int i = 0; i < TIGHTER_LIMITS; i++) {
        LimitedSearch *limited = &row->searches[i];
        *limited = (LimitedSearch){ .options = mtf_mesh_attempt_options(search, best) };
        mtf_search_control_init_part(&limited->control, search->control, 0);
        MtfFreeSearchOptions *options = &limited->options;
        options->memory_limit = limit = limit_below(limit);
        options->most_seconds = TIGHTER_STEP * best->free.step_seconds;
        options->work = tighter_work(entries);
        options->program_work = TIGHTER_PROGRAM;
        options->no_infeasibility = true;
        options->control = &limited->control;
        if (entries >= MTF_WIDE_ENTRIES)
            limit_wide(best, options);
        mtf_incumbents_best(best->incumbents, limit); /* measured now: the threads only read */
    }
}

/* Searches under lower limits and adds what is found to the incumbents. */
static bool search_tighter(const MtfPlanSearch *search, MtfMeshAttempt *best, GError **error) {
    Row row;
    row_init(&row, search, best);
    mtf_in_parallel(TIGHTER_LIMITS, search_limit, &row);
    GError *cause = NULL;
    for (int i = 0; i < TIGHTER_LIMITS; i++) {
        LimitedSearch *limited = &row.searches[i];
        if (i <= row.last && limited->error == NULL)
            mtf_best_add(best, limited->answer.layout);
        else if (i <= row.last)
            cause = g_steal_pointer(&limited->error);
        g_clear_error(&limited->error);
        mtf_free_answer_clear(&limited->answer);
    }
    mtf_best_take_cheaper(search, best);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return cause == NULL;
}

bool mtf_best_shorten(const MtfPlanSearch *search, MtfMeshAttempt *best, MtfPlanAnswer *answer,
                      GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    if (best->problem == NULL || best->free.layout == NULL)
        return true;
    bool tightens =
        options->machine->overlap && !mtf_plan_search_is_large(search) && options->frontier == 0;
    if (tightens && !search_tighter(search, best, error))
        return false;
    answer->step_seconds = best->free.step_seconds;
    if (!options->machine->overlap)
        return true;
    const MtfIncumbent *fastest = mtf_best_fastest(search, best);
    if (fastest == NULL || fastest->step_seconds >= best->free.step_seconds)
        return true;
    answer->fastest = mtf_layout_copy(fastest->layout);
    answer->fastest_cost = fastest->cost;
    answer->step_seconds = fastest->step_seconds;
    mtf_best_explain(best, fastest->layout);
    return true;
}
