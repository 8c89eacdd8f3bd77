// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/minimum_memory.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MAX_TRIES 40
#define MIN_TRIES 10       /* they narrow the interval to a thousandth */
#define TRIED_NODES 200000 /* nodes in all tries together, but for the first MIN_TRIES */
#define TRY_WORK 30        /* rounds of one try, where time is not limited */
#define MOST_SECONDS 20.0  /* where it is */
#define TRY_PARTS 10       /* of the time that is left, for one try, */
#define LEAST_TRY 0.05     /* but at least these seconds */
#define NAMED_NODES 8

/* The nodes in memory at the peak, the largest first. */
typedef struct Held {
    int node;
    int64_t usage;
} Held;

static int compare_held(const void *left, const void *right) {
    const Held *a = left, *b = right;
    if (a->usage != b->usage)
        return a->usage > b->usage ? -1 : 1;
    return a->node - b->node;
}

/* Names the nodes that are in memory at infeasibility->time. */
static void note_nodes(const MtfLayoutProblem *problem, const int *choice,
                       MtfInfeasibility *infeasibility) {
    int count = mtf_layout_problem_node_count(problem);
    g_autofree Held *held = g_new(Held, count + 1);
    infeasibility->node_count = 0;
    for (int v = 0; v < count; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        bool there = node->start <= infeasibility->time && infeasibility->time < node->end;
        if (there && node->usages[choice[v]] > 0)
            held[infeasibility->node_count++] = (Held){ v, node->usages[choice[v]] };
    }
    qsort(held, (gsize)infeasibility->node_count, sizeof *held, compare_held);
    g_free(infeasibility->nodes);
    infeasibility->nodes = g_new(int, infeasibility->node_count + 1);
    for (int i = 0; i < infeasibility->node_count; i++)
        infeasibility->nodes[i] = held[i].node;
}

static void note_choice(const MtfLayoutProblem *problem, const int *choice,
                        MtfInfeasibility *infeasibility) {
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
    infeasibility->enough =
        value.peak > MTF_LAYOUT_MAX_COST * 512 ? INT64_MAX : (int64_t)value.peak;
    infeasibility->time = value.peak_time;
    note_nodes(problem, choice, infeasibility);
}

/* Begins what certifies that a limit is too small. */
static MtfCertificate *new_certificate(const MtfCertificate *whole, int64_t limit) {
    MtfCertificate *certificate = mtf_certificate_part(whole);
    mtf_certificate_begin(certificate);
    mtf_certificate_one(certificate, "needs", limit);
    return certificate;
}

/* Tries one limit; true when it narrowed the interval. The certificate (or NULL) is then that of `needed`. */
static bool try_limit(MtfLayoutProblem *problem, int64_t limit, const MtfSearchControl *control,
                      MtfInfeasibility *infeasibility, MtfCertificate *whole) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfCertificate) certificate = new_certificate(whole, limit);
    MtfSearchControl part;
    MtfSolveOptions options = { .no_infeasibility = true,
                                .certificate = certificate,
                                .control = &part };
    double seconds = mtf_search_seconds_left(control) / TRY_PARTS;
    mtf_search_control_init_part(&part, control, isfinite(seconds) ? fmax(LEAST_TRY, seconds) : 0);
    options.work = mtf_search_has_deadline(control) ? 0 : TRY_WORK;
    mtf_layout_problem_set_limit(problem, limit);
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, &error);
    if (solution != NULL) {
        note_choice(problem, solution->choice, infeasibility);
        return true;
    }
    if (!g_error_matches(error, MTF_ERROR, MTF_ERROR_FIT))
        return false;
    infeasibility->needed = limit < MTF_NO_LIMIT ? limit + 1 : limit;
    mtf_certificate_replace(whole, certificate);
    return true;
}

/* The smallest of a node's possible strategies, or any where none is possible. */
static int smallest_strategy(const MtfLayoutNode *node) {
    int best = 0;
    for (int s = 1; s < node->strategies; s++) {
        bool possible = node->costs[s] < MTF_IMPOSSIBLE;
        bool smaller = node->usages[s] < node->usages[best];
        if (possible && (smaller || node->costs[best] >= MTF_IMPOSSIBLE))
            best = s;
    }
    return best;
}

/* Every node at its smallest possible usage: no limit below that peak can do, and where nothing is
 * impossible about the choice, that limit does. */
static void try_smallest(const MtfLayoutProblem *problem, MtfInfeasibility *infeasibility) {
    int count = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new0(int, count + 1);
    for (int v = 0; v < count; v++)
        choice[v] = smallest_strategy(mtf_layout_problem_node(problem, v));
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
    if (value.peak <= INT64_MAX)
        infeasibility->needed = MAX(infeasibility->needed, (int64_t)value.peak);
    if (value.impossible > 0)
        return;
    note_choice(problem, choice, infeasibility);
    infeasibility->possible = true;
}

/* How many limits are tried: a number that depends on no clock. */
static int tries_for(const MtfLayoutProblem *problem) {
    return CLAMP(TRIED_NODES / (mtf_layout_problem_node_count(problem) + 1), MIN_TRIES, MAX_TRIES);
}

/* What the smallest strategies need at least, in words; without these no more than that the limit is too small. */
static void certify_smallest(MtfLayoutProblem *bare, int64_t limit, const MtfSearchControl *control,
                             MtfInfeasibility *infeasibility, MtfCertificate *certificate) {
    if (certificate != NULL && infeasibility->needed > limit + 1 &&
        !try_limit(bare, infeasibility->needed - 1, control, infeasibility, certificate))
        infeasibility->needed = limit + 1;
}

MtfInfeasibility mtf_minimum_memory(const MtfLayoutProblem *problem,
                                    const MtfSearchControl *control, MtfCertificate *certificate) {
    MtfInfeasibility infeasibility = { 0 };
    MtfSearchControl all;
    g_autoptr(MtfLayoutProblem) bare = mtf_layout_problem_without_costs(problem);
    mtf_search_control_init_part(&all, control,
                                 mtf_search_has_deadline(control) ? MOST_SECONDS : 0);
    int64_t limit = mtf_layout_problem_limit(problem);
    infeasibility.needed = limit < MTF_NO_LIMIT ? limit + 1 : 0;
    int tries = tries_for(problem);
    try_smallest(problem, &infeasibility);
    if (!infeasibility.possible)
        infeasibility.possible = try_limit(bare, MTF_NO_LIMIT, &all, &infeasibility, certificate) &&
                                 infeasibility.nodes != NULL;
    if (infeasibility.possible)
        certify_smallest(bare, limit, &all, &infeasibility, certificate);
    for (int i = 0;
         infeasibility.possible && infeasibility.needed < infeasibility.enough && i < tries; i++) {
        int64_t middle = infeasibility.needed + (infeasibility.enough - infeasibility.needed) / 2;
        if (mtf_search_is_over(&all) || !try_limit(bare, middle, &all, &infeasibility, certificate))
            break;
    }
    return infeasibility;
}

static void append_nodes(GString *text, const MtfInfeasibility *infeasibility) {
    g_string_append(text, infeasibility->node_count > 1 ? "s" : "");
    for (int i = 0; i < MIN(NAMED_NODES, infeasibility->node_count); i++)
        g_string_append_printf(text, "%s %d", i > 0 ? "," : "", infeasibility->nodes[i]);
    if (infeasibility->node_count > NAMED_NODES)
        g_string_append_printf(text, " and %d more", infeasibility->node_count - NAMED_NODES);
}

bool mtf_infeasibility_explain(const MtfLayoutProblem *problem,
                               const MtfInfeasibility *infeasibility, GError **error) {
    g_autoptr(GString) text = g_string_new("no layout fits: ");
    if (!infeasibility->possible) {
        g_string_append(text, "no choice of strategies is possible, whatever the limit");
    } else {
        g_string_append_printf(text,
                               "the limit is %" PRId64 ", at least %" PRId64
                               " is needed (proven), and the smallest limit found that would do "
                               "is %" PRId64 "; it is reached at time %" PRId64 " by node",
                               mtf_layout_problem_limit(problem), infeasibility->needed,
                               infeasibility->enough, infeasibility->time);
        append_nodes(text, infeasibility);
    }
    g_set_error_literal(error, MTF_ERROR, MTF_ERROR_FIT, text->str);
    return false;
}
