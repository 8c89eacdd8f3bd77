// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/transfer/transfer_order.h"

#include <math.h>
#include <string.h>

#define EXACT_PIECES_MAX 12
#define EXACT_STEPS 4000000
#define RANDOM_ORDERS 300
#define RANDOM_STEPS 200000000 /* of all random orders together, count^2 an order */
#define SEED 20221105          /* any number: the same answer every day */

static MtfTransferOrder *new_order(int count) {
    MtfTransferOrder *order = g_new0(MtfTransferOrder, 1);
    order->begin = g_new0(double, (gsize)count + 1);
    order->sender = g_new0(int, (gsize)count + 1);
    order->makespan = INFINITY;
    return order;
}

void mtf_transfer_order_free(MtfTransferOrder *order) {
    if (order == NULL)
        return;
    g_free(order->begin);
    g_free(order->sender);
    g_free(order);
}

/* Seconds of sending and of receiving, host by host: load[host] and load[hosts + host]. */
static void add_load(const MtfTransferProblem *problem, int i, int sender, double *load) {
    const MtfTransferPiece *piece = &problem->piece[i];
    if (piece->n_receivers == 0)
        return;
    load[sender] += piece->seconds;
    for (int r = 0; r < piece->n_receivers; r++)
        load[problem->hosts + piece->receivers[r]] += piece->seconds;
}

double mtf_transfer_load(const MtfTransferProblem *problem, const int *sender) {
    g_autofree double *load = g_new0(double, 2 * (gsize)problem->hosts);
    double most = 0;
    for (int i = 0; i < problem->count; i++)
        add_load(problem, i, sender[i], load);
    for (int h = 0; h < 2 * problem->hosts; h++)
        most = MAX(most, load[h]);
    return most;
}

/* When a piece can begin, by when its hosts are free[]. */
static double earliest(const MtfTransferProblem *problem, int i, int sender, const double *free) {
    const MtfTransferPiece *piece = &problem->piece[i];
    double begin = free[sender];
    for (int r = 0; r < piece->n_receivers; r++)
        begin = MAX(begin, free[problem->hosts + piece->receivers[r]]);
    return piece->n_receivers == 0 ? 0 : begin;
}

static void occupy(const MtfTransferProblem *problem, int i, int sender, double end, double *free) {
    const MtfTransferPiece *piece = &problem->piece[i];
    if (piece->n_receivers == 0)
        return;
    free[sender] = end;
    for (int r = 0; r < piece->n_receivers; r++)
        free[problem->hosts + piece->receivers[r]] = end;
}

/* What a piece's busiest host still has to do, which says how urgent the piece is. */
static double urgency(const MtfTransferProblem *problem, int i, int sender, const double *left) {
    const MtfTransferPiece *piece = &problem->piece[i];
    double most = left[sender];
    for (int r = 0; r < piece->n_receivers; r++)
        most = MAX(most, left[problem->hosts + piece->receivers[r]]);
    return most;
}

/* One order: always the piece that can begin first, among those the most urgent, with `noise` (a share)
 * added where a generator is given. Keeps it when it is the best. */
static void try_list_order(const MtfTransferProblem *problem, const int *sender, GRand *random,
                           MtfTransferOrder *best) {
    gsize sides = 2 * (gsize)problem->hosts;
    g_autofree double *free = g_new0(double, sides), *left = g_new0(double, sides);
    g_autofree double *begin = g_new0(double, (gsize)problem->count + 1);
    g_autofree bool *done = g_new0(bool, (gsize)problem->count + 1);
    double makespan = 0;
    for (int i = 0; i < problem->count; i++)
        add_load(problem, i, sender[i], left);
    for (int k = 0; k < problem->count; k++) {
        int chosen = -1;
        double chosen_begin = INFINITY, chosen_urgency = 0;
        for (int i = 0; i < problem->count; i++) {
            if (done[i])
                continue;
            double at = earliest(problem, i, sender[i], free);
            double noise = random != NULL ? 1 + 0.5 * g_rand_double(random) : 1;
            double urgent = noise * urgency(problem, i, sender[i], left);
            if (at < chosen_begin || (at <= chosen_begin && urgent > chosen_urgency)) {
                chosen = i;
                chosen_begin = at;
                chosen_urgency = urgent;
            }
        }
        double seconds = problem->piece[chosen].seconds;
        done[chosen] = true;
        begin[chosen] = chosen_begin;
        occupy(problem, chosen, sender[chosen], chosen_begin + seconds, free);
        makespan = MAX(makespan, chosen_begin + seconds);
        const MtfTransferPiece *piece = &problem->piece[chosen];
        left[sender[chosen]] -= seconds;
        for (int r = 0; r < piece->n_receivers; r++)
            left[problem->hosts + piece->receivers[r]] -= seconds;
    }
    if (makespan >= best->makespan)
        return;
    best->makespan = makespan;
    memcpy(best->begin, begin, (gsize)problem->count * sizeof *begin);
    memcpy(best->sender, sender, (gsize)problem->count * sizeof *sender);
}

/* The exact search puts pieces in the order of their beginnings, each as early as its hosts allow: in
 * any schedule, putting the pieces again in that order lets none end later, so a best one is found. */
typedef struct {
    const MtfTransferProblem *problem;
    MtfTransferOrder *best;
    double bound;
    int64_t steps;
    bool done[EXACT_PIECES_MAX];
    double begin[EXACT_PIECES_MAX];
    int sender[EXACT_PIECES_MAX];
} Exact;

/* No order that goes on from here ends earlier than this: hosts that receive, and hosts that alone can
 * send some piece, still have those pieces before them. */
static double bound_from(const Exact *exact, const double *free) {
    const MtfTransferProblem *problem = exact->problem;
    double most = 0;
    for (int side = 0; side < 2 * problem->hosts; side++) {
        double end = free[side];
        for (int i = 0; i < problem->count; i++) {
            const MtfTransferPiece *piece = &problem->piece[i];
            if (exact->done[i] || piece->n_receivers == 0)
                continue;
            bool own = piece->n_senders == 1 && piece->senders[0] == side;
            for (int r = 0; r < piece->n_receivers; r++)
                own = own || problem->hosts + piece->receivers[r] == side;
            end += own ? piece->seconds : 0;
        }
        most = MAX(most, end);
    }
    return most;
}

static void keep_exact(Exact *exact, double makespan) {
    if (makespan >= exact->best->makespan)
        return;
    exact->best->makespan = makespan;
    for (int i = 0; i < exact->problem->count; i++) {
        exact->best->begin[i] = exact->begin[i];
        exact->best->sender[i] = exact->sender[i];
    }
}

/* The piece put last: those put later begin no earlier. */
typedef struct {
    int piece, depth;
    double begin;
} Last;

static void search_exactly(Exact *exact, Last last, const double *free);

/* Goes on with piece i sent by host `sender`, unless it would begin before the piece put last. */
static void put_next(Exact *exact, int i, int sender, Last last, const double *free) {
    const MtfTransferProblem *problem = exact->problem;
    double begin = earliest(problem, i, sender, free);
    if (begin < last.begin || (begin <= last.begin && i < last.piece))
        return;
    gsize bytes = 2 * (gsize)problem->hosts * sizeof *free;
    g_autofree double *after = g_memdup2(free, bytes);
    exact->begin[i] = begin;
    exact->sender[i] = sender;
    exact->done[i] = true;
    occupy(problem, i, sender, begin + problem->piece[i].seconds, after);
    search_exactly(exact, (Last){ i, last.depth + 1, begin }, after);
    exact->done[i] = false;
}

static void search_exactly(Exact *exact, Last last, const double *free) {
    const MtfTransferProblem *problem = exact->problem;
    double slack = 1e-12 * exact->best->makespan;
    if (exact->steps-- <= 0 || exact->best->makespan <= exact->bound + slack)
        return;
    double bound = bound_from(exact, free);
    if (last.depth == problem->count)
        keep_exact(exact, bound);
    if (last.depth == problem->count || bound >= exact->best->makespan - slack)
        return;
    for (int i = 0; i < problem->count; i++)
        for (int s = 0; !exact->done[i] && s < problem->piece[i].n_senders; s++)
            put_next(exact, i, problem->piece[i].senders[s], last, free);
}

MtfTransferOrder *mtf_transfer_order_find(const MtfTransferProblem *problem, const int *sender,
                                          double bound) {
    MtfTransferOrder *best = new_order(problem->count);
    double load = mtf_transfer_load(problem, sender), enough = 1 + 1e-12;
    try_list_order(problem, sender, NULL, best);
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    double orders = RANDOM_STEPS / (1 + (double)problem->count * problem->count);
    for (int i = 0; i < MIN(orders, RANDOM_ORDERS) && best->makespan > load * enough; i++)
        try_list_order(problem, sender, random, best);
    best->proven = best->makespan <= bound * enough;
    if (best->proven || problem->count > EXACT_PIECES_MAX)
        return best;
    Exact exact = { .problem = problem, .best = best, .bound = bound, .steps = EXACT_STEPS };
    g_autofree double *free = g_new0(double, 2 * (gsize)problem->hosts);
    search_exactly(&exact, (Last){ -1, 0, 0 }, free);
    best->proven = exact.steps > 0;
    return best;
}

/* Whether two pieces that overlap in time keep off each other's hosts. */
static bool may_overlap(const MtfTransferPiece *a, int a_sender, const MtfTransferPiece *b,
                        int b_sender) {
    bool apart = a_sender != b_sender || a->n_receivers == 0 || b->n_receivers == 0;
    for (int i = 0; i < a->n_receivers; i++)
        for (int j = 0; j < b->n_receivers; j++)
            apart = apart && a->receivers[i] != b->receivers[j];
    return apart;
}

static bool may_send(const MtfTransferPiece *piece, int host) {
    for (int s = 0; s < piece->n_senders; s++)
        if (piece->senders[s] == host)
            return true;
    return false;
}

bool mtf_transfer_order_is_valid(const MtfTransferProblem *problem, const MtfTransferOrder *order) {
    for (int i = 0; i < problem->count; i++) {
        const MtfTransferPiece *a = &problem->piece[i];
        double end = order->begin[i] + a->seconds;
        double slack = 1e-9 * order->makespan;
        if (!may_send(a, order->sender[i]) || order->begin[i] < 0 || end > order->makespan + slack)
            return false;
        for (int j = 0; j < i; j++) {
            const MtfTransferPiece *b = &problem->piece[j];
            bool overlap = order->begin[j] + slack < end &&
                           order->begin[i] + slack < order->begin[j] + b->seconds;
            if (overlap && !may_overlap(a, order->sender[i], b, order->sender[j]))
                return false;
        }
    }
    return true;
}
