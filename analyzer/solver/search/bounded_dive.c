// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/bounded_dive.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/local_search.h"

#include <string.h>

#define ROUNDS 8
#define ROUND_STEPS 10
#define SHRINK_ROUNDS 3
#define WORTH_IT 0.25 /* most of a core's matrix entries that may be left */

typedef struct {
    const MtfGuess *guess;
    MtfCore *core; /* the copy */
    MtfDual *dual;
    int *trial, *best; /* of the copy and of the core it was made of */
    int64_t cost;      /* of `best`; INT64_MAX: none yet */
} Try;

static bool is_over(const Try *try) {
    return mtf_search_is_over(try->guess->control);
}

/* Keeps values of the copy that are legal and cheaper. */
static void consider(Try *try, const int *values) {
    int64_t cost = mtf_core_cost(try->core, values);
    if (cost > try->guess->known || cost >= try->cost || !mtf_core_allows(try->core, values))
        return;
    try->cost = cost;
    mtf_core_lift(try->core, values, try->best);
}

static bool is_found(const Try *try) {
    return try->cost <= try->guess->cutoff;
}

static bool is_refuted(const Try *try) {
    int64_t cutoff = try->guess->cutoff;
    return try->core->infeasible ||
           (mtf_dual_bound(try->dual) > (double)cutoff && mtf_dual_prove(try->dual) > cutoff);
}

static void step(Try *try) {
    for (int i = 0; i < ROUND_STEPS && !is_refuted(try) && !is_found(try); i++)
        if (mtf_dual_step(try->dual, try->trial))
            consider(try, try->trial);
}

static void improve(Try *try, int round) {
    g_autoptr(MtfLocalSearch) local =
        mtf_local_search_new(try->core, try->guess->seed + (guint64)round);
    if (mtf_local_search_improve(local, try->trial))
        consider(try, try->trial);
}

/* Whether there is more to be done. */
static bool run_round(Try *try, int round) {
    step(try);
    if (is_refuted(try) || is_found(try) || is_over(try))
        return false;
    improve(try, round);
    if (is_found(try))
        return false;
    if (round % SHRINK_ROUNDS == 0)
        mtf_dual_shrink(try->dual, try->guess->cutoff, try->guess->control);
    return true;
}

/* Whether there is anything to choose. */
static bool is_open(const Try *try) {
    return !try->core->infeasible && mtf_core_size(try->core).nodes > 0;
}

static MtfGuessAnswer run(Try *try) {
    bool goes_on = true;
    for (int round = 1; goes_on && is_open(try) && round <= ROUNDS; round++)
        goes_on = run_round(try, round);
    if (!try->core->infeasible && !is_open(try))
        consider(try, try->trial);
    return (MtfGuessAnswer){ .refuted = is_refuted(try), .found = try->cost < INT64_MAX };
}

MtfGuessAnswer mtf_guess_try(MtfDual *dual, const MtfGuess *guess, int *values) {
    double most = WORTH_IT * (double)mtf_core_size(mtf_dual_core(dual)).entries;
    MtfCore *core = NULL;
    MtfDual *copy = mtf_dual_copy_below(dual, guess->cutoff, most, &core, guess->control);
    if (copy == NULL)
        return (MtfGuessAnswer){ 0 };
    g_autofree int *trial = g_new0(int, core->node_count + 1);
    Try try = { guess, core, copy, trial, values, INT64_MAX };
    MtfGuessAnswer answer = run(&try);
    if (answer.refuted) {
        MtfCertificate *whole = mtf_dual_core(dual)->certificate;
        mtf_certificate_one(whole, "guess", guess->cutoff);
        mtf_certificate_append(whole, core->certificate);
        mtf_certificate_word(whole, "done");
    }
    mtf_certificate_free(core->certificate);
    mtf_dual_free(copy);
    mtf_core_free(core);
    return answer;
}
