// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/solver_state.h"

#include "analyzer/solver/bounds/certified_point.h"
#include "analyzer/solver/reduce/core_values.h"

#include <math.h>
#include <string.h>

bool mtf_solver_may_use(const MtfSolver *solver, MtfSolveMethods method) {
    return (solver->options->without & method) == 0;
}

bool mtf_solver_is_abandoned(const MtfSolver *solver) {
    return mtf_search_is_abandoned(&solver->control);
}

bool mtf_solver_is_over(const MtfSolver *solver) {
    return mtf_search_is_over(&solver->control);
}

void mtf_solver_offer(MtfSolver *solver, const int *choice) {
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

void mtf_solver_offer_base_values(MtfSolver *solver, const int *values) {
    MtfInt128 cost = solver->cost;
    bool first = solver->choice == NULL;
    mtf_core_lift_steps(solver->core, solver->base_steps, 0, values, solver->trial);
    mtf_solver_offer(solver, solver->trial);
    if (solver->choice == NULL || (!first && solver->cost >= cost))
        return;
    memcpy(solver->base_values, values, (gsize)solver->core->node_count * sizeof *values);
    solver->based = true;
}

void mtf_solver_offer_values(MtfSolver *solver, const int *values) {
    if (mtf_core_cost(solver->core, values) > solver->cutoff ||
        !mtf_core_allows(solver->core, values))
        return;
    mtf_core_lift_steps(solver->core, solver->core->trail->len, solver->base_steps, values,
                        solver->base_trial);
    mtf_solver_offer_base_values(solver, solver->base_trial);
}

void mtf_solver_raise_bound(MtfSolver *solver, int64_t bound, const char *method) {
    if (bound <= solver->bound)
        return;
    solver->bound = bound;
    solver->method = method;
}

double mtf_solver_gap(const MtfSolver *solver) {
    if (solver->choice == NULL || solver->bound == -MTF_CORE_IMPOSSIBLE)
        return INFINITY;
    double cost = (double)solver->cutoff;
    return fmax(0, cost - (double)solver->bound) / fmax(1, fabs(cost));
}

void mtf_solver_note_end(MtfSolver *solver, const char *method) {
    if (!solver->core->infeasible) {
        mtf_solver_offer_values(solver, solver->values);
        mtf_certify_constant(solver->core);
    }
    solver->proven = true;
    solver->method = method;
}

bool mtf_solver_core_is_done(const MtfSolver *solver) {
    return solver->core->infeasible || mtf_core_size(solver->core).nodes == 0;
}

bool mtf_solver_is_good_enough(const MtfSolver *solver) {
    return solver->proven ||
           (solver->options->gap > 0 && mtf_solver_gap(solver) <= solver->options->gap);
}

void mtf_solver_drop_branching(MtfSolver *solver) {
    bool tells = solver->branching != NULL && strcmp(solver->method, "branch and bound") == 0;
    if (tells && mtf_branching_bound(solver->branching) >= solver->bound)
        mtf_branching_certify(solver->branching);
    g_clear_pointer(&solver->branching, mtf_branching_free);
}
