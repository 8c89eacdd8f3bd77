// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/transfers/sender_balance.h"

#include "analyzer/solver/problem/ilp.h"

#include <math.h>

#define BINARIES_MAX 2000    /* larger programs keep the relaxation's bound */
#define CONTINUOUS_MAX 20000 /* larger relaxations are not posed */
#define SECONDS_MAX 5        /* of an integer program that does not end, a guard only */
#define RELATIVE 1e-9

static double largest_piece(const MtfTransferProblem *problem) {
    double most = 0;
    for (int i = 0; i < problem->count; i++)
        if (problem->piece[i].n_receivers > 0)
            most = MAX(most, problem->piece[i].seconds);
    return most;
}

/* The seconds that the busiest receiver needs, whoever sends. */
static double receiving_bound(const MtfTransferProblem *problem) {
    g_autofree double *load = g_new0(double, (gsize)problem->hosts);
    double most = 0;
    for (int i = 0; i < problem->count; i++)
        for (int r = 0; r < problem->piece[i].n_receivers; r++) {
            int host = problem->piece[i].receivers[r];
            load[host] += problem->piece[i].seconds;
            most = MAX(most, load[host]);
        }
    return most;
}

/* Pieces without a choice first, then long ones, then as they are listed. */
static int compare_pieces(const void *first, const void *second, void *user) {
    const MtfTransferProblem *problem = user;
    int a = *(const int *)first, b = *(const int *)second;
    const MtfTransferPiece *of_a = &problem->piece[a], *of_b = &problem->piece[b];
    if (of_a->n_senders != of_b->n_senders)
        return of_a->n_senders - of_b->n_senders;
    if (of_a->seconds != of_b->seconds)
        return of_a->seconds > of_b->seconds ? -1 : 1;
    return a - b;
}

/* Piece by piece to its least busy holder. */
static void send_by_least_busy(const MtfTransferProblem *problem, int *sender) {
    g_autofree double *load = g_new0(double, (gsize)problem->hosts);
    g_autofree int *order = g_new(int, (gsize)problem->count + 1);
    for (int i = 0; i < problem->count; i++)
        order[i] = i;
    g_qsort_with_data(order, problem->count, sizeof(int), compare_pieces,
                      (gpointer)(uintptr_t)problem);
    for (int k = 0; k < problem->count; k++) {
        const MtfTransferPiece *piece = &problem->piece[order[k]];
        int best = piece->senders[0];
        for (int s = 1; s < piece->n_senders; s++)
            best = load[piece->senders[s]] < load[best] ? piece->senders[s] : best;
        sender[order[k]] = best;
        load[best] += piece->n_receivers > 0 ? piece->seconds : 0;
    }
}

/* The program, whole or relaxed. Variable 0 is T in units of the largest piece; first[i] is that of
 * piece i's first holder. */
typedef struct {
    MtfIlp *ilp;
    int *first;
    double unit;
} Program;

static void pose_pieces(Program *program, const MtfTransferProblem *problem, bool relaxed) {
    for (int i = 0; i < problem->count; i++) {
        const MtfTransferPiece *piece = &problem->piece[i];
        g_autofree int *variables = g_new(int, (gsize)piece->n_senders);
        g_autofree double *ones = g_new(double, (gsize)piece->n_senders);
        for (int s = 0; s < piece->n_senders; s++) {
            variables[s] = relaxed ? mtf_ilp_add_continuous(program->ilp, 0, 1, 0)
                                   : mtf_ilp_add_binary(program->ilp, 0);
            ones[s] = 1;
        }
        program->first[i] = variables[0];
        mtf_ilp_add_row(program->ilp, piece->n_senders, variables, ones, 1, 1);
    }
}

/* sum_i seconds_i x_ih - T <= 0 for one host. */
static void pose_host(Program *program, const MtfTransferProblem *problem, int host) {
    g_autoptr(GArray) variables = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) shares = g_array_new(FALSE, FALSE, sizeof(double));
    for (int i = 0; i < problem->count; i++) {
        const MtfTransferPiece *piece = &problem->piece[i];
        for (int s = 0; s < piece->n_senders && piece->n_receivers > 0; s++) {
            if (piece->senders[s] != host)
                continue;
            int variable = program->first[i] + s;
            double share = piece->seconds / program->unit;
            g_array_append_val(variables, variable);
            g_array_append_val(shares, share);
        }
    }
    if (variables->len == 0)
        return;
    int longest = 0;
    double minus = -1;
    g_array_append_val(variables, longest);
    g_array_append_val(shares, minus);
    mtf_ilp_add_row(program->ilp, (int)variables->len, (int *)variables->data,
                    (double *)shares->data, -INFINITY, 0);
}

static void pose(Program *program, const MtfTransferProblem *problem, double low, bool relaxed) {
    program->unit = largest_piece(problem);
    program->ilp = mtf_ilp_new();
    program->first = g_new0(int, (gsize)problem->count + 1);
    mtf_ilp_add_continuous(program->ilp, low / program->unit, INFINITY, 1);
    pose_pieces(program, problem, relaxed);
    for (int h = 0; h < problem->hosts; h++)
        pose_host(program, problem, h);
}

static void clear_program(Program *program) {
    mtf_ilp_free(program->ilp);
    g_free(program->first);
}

/* Gives the program the senders at hand to begin with. */
static void set_start(Program *program, const MtfTransferProblem *problem, const int *sender) {
    g_autofree double *values = g_new0(double, (gsize)mtf_ilp_variable_count(program->ilp));
    values[0] = mtf_transfer_load(problem, sender) / program->unit;
    for (int i = 0; i < problem->count; i++)
        for (int s = 0; s < problem->piece[i].n_senders; s++)
            values[program->first[i] + s] = problem->piece[i].senders[s] == sender[i];
    mtf_ilp_set_start(program->ilp, values);
}

static void read_senders(const Program *program, const MtfTransferProblem *problem, int *sender) {
    for (int i = 0; i < problem->count; i++)
        for (int s = 0; s < problem->piece[i].n_senders; s++)
            if (mtf_ilp_value(program->ilp, program->first[i] + s) > 0.5)
                sender[i] = problem->piece[i].senders[s];
}

/* Where all pieces are multiples of the shortest, so is every host's time. */
static double round_up(const MtfTransferProblem *problem, double bound) {
    double shortest = INFINITY;
    for (int i = 0; i < problem->count; i++)
        if (problem->piece[i].n_receivers > 0)
            shortest = MIN(shortest, problem->piece[i].seconds);
    for (int i = 0; i < problem->count; i++) {
        double times = problem->piece[i].seconds / shortest;
        if (problem->piece[i].n_receivers > 0 && fabs(times - round(times)) > RELATIVE * times)
            return bound;
    }
    return ceil(bound / shortest * (1 - RELATIVE)) * shortest;
}

static bool relaxation_bound(const MtfTransferProblem *problem, double low, double *bound,
                             GError **error) {
    Program program;
    pose(&program, problem, low, true);
    bool solved = mtf_ilp_solve(program.ilp, NULL, error);
    if (solved) {
        double value = mtf_ilp_objective(program.ilp) * program.unit * (1 - RELATIVE);
        *bound = MAX(low, round_up(problem, value));
    }
    clear_program(&program);
    return solved;
}

static bool solve_whole(const MtfTransferProblem *problem, double low, int *sender, double *bound,
                        GError **error) {
    Program program;
    pose(&program, problem, low, false);
    set_start(&program, problem, sender);
    MtfSearchControl control;
    mtf_search_control_init(&control, SECONDS_MAX);
    const MtfIlpOptions options = { .control = &control };
    bool solved = mtf_ilp_solve(program.ilp, &options, error);
    if (solved) {
        MtfIlpStatus status = mtf_ilp_status(program.ilp);
        if (status == MTF_ILP_OPTIMAL || status == MTF_ILP_FEASIBLE)
            read_senders(&program, problem, sender);
        double value = mtf_ilp_bound(program.ilp) * program.unit * (1 - RELATIVE);
        *bound = MAX(*bound, round_up(problem, value));
        /* The solver's value is exact to its tolerance only; a choice is no better than its load. */
        if (status == MTF_ILP_OPTIMAL)
            *bound = MAX(*bound, mtf_transfer_load(problem, sender) * (1 - RELATIVE));
    }
    clear_program(&program);
    return solved;
}

bool mtf_sender_balance(const MtfTransferProblem *problem, int *sender, double *bound,
                        GError **error) {
    int binaries = 0;
    for (int i = 0; i < problem->count; i++)
        binaries += problem->piece[i].n_senders;
    *bound = receiving_bound(problem);
    send_by_least_busy(problem, sender);
    if (mtf_transfer_load(problem, sender) <= *bound * (1 + RELATIVE) ||
        largest_piece(problem) <= 0)
        return true;
    if (!relaxation_bound(problem, *bound, bound, error))
        return false;
    if (mtf_transfer_load(problem, sender) <= *bound * (1 + RELATIVE) || binaries > BINARIES_MAX)
        return true;
    return solve_whole(problem, *bound, sender, bound, error);
}
