// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/transfer/transfer_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PIECES 10000 /* one list order of these takes a second */
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

/* An order being made. */
typedef struct {
    const MtfTransferProblem *problem;
    const int *sender;
    double *free, *left; /* host by host, as in add_load: when it is, and what it still has to do */
    double *begin;       /* of each piece */
    double makespan;
} Listing;

static Listing begin_listing(const MtfTransferProblem *problem, const int *sender) {
    gsize sides = 2 * (gsize)problem->hosts;
    Listing listing = { .problem = problem,
                        .sender = sender,
                        .free = g_new0(double, sides),
                        .left = g_new0(double, sides),
                        .begin = g_new0(double, (gsize)problem->count + 1) };
    for (int i = 0; i < problem->count; i++)
        add_load(problem, i, sender[i], listing.left);
    return listing;
}

/* Lets a piece begin as early as its hosts allow. */
static void put(Listing *listing, int i) {
    const MtfTransferProblem *problem = listing->problem;
    const MtfTransferPiece *piece = &problem->piece[i];
    int sender = listing->sender[i];
    listing->begin[i] = earliest(problem, i, sender, listing->free);
    double end = listing->begin[i] + piece->seconds;
    occupy(problem, i, sender, end, listing->free);
    listing->makespan = MAX(listing->makespan, end);
    listing->left[sender] -= piece->seconds;
    for (int r = 0; r < piece->n_receivers; r++)
        listing->left[problem->hosts + piece->receivers[r]] -= piece->seconds;
}

/* Keeps the order when it is the best, and frees it. */
static void end_listing(Listing *listing, MtfTransferOrder *best) {
    gsize count = (gsize)listing->problem->count;
    if (listing->makespan < best->makespan) {
        best->makespan = listing->makespan;
        memcpy(best->begin, listing->begin, count * sizeof *best->begin);
        memcpy(best->sender, listing->sender, count * sizeof *best->sender);
    }
    g_free(listing->free);
    g_free(listing->left);
    g_free(listing->begin);
}

/* One order: always the piece that can begin first, among those the most urgent, with `noise` (a share)
 * added where a generator is given. */
static void try_list_order(const MtfTransferProblem *problem, const int *sender, GRand *random,
                           MtfTransferOrder *best) {
    Listing listing = begin_listing(problem, sender);
    g_autofree bool *done = g_new0(bool, (gsize)problem->count + 1);
    for (int k = 0; k < problem->count; k++) {
        int chosen = -1;
        double chosen_begin = INFINITY, chosen_urgency = 0;
        for (int i = 0; i < problem->count; i++) {
            if (done[i])
                continue;
            double at = earliest(problem, i, sender[i], listing.free);
            double noise = random != NULL ? 1 + 0.5 * g_rand_double(random) : 1;
            double urgent = noise * urgency(problem, i, sender[i], listing.left);
            if (at < chosen_begin || (at <= chosen_begin && urgent > chosen_urgency)) {
                chosen = i;
                chosen_begin = at;
                chosen_urgency = urgent;
            }
        }
        done[chosen] = true;
        put(&listing, chosen);
    }
    end_listing(&listing, best);
}

typedef struct {
    double urgency;
    int piece;
} Urgent;

static int compare_urgent(const void *first, const void *second) {
    const Urgent *a = first, *b = second;
    if (a->urgency != b->urgency)
        return a->urgency > b->urgency ? -1 : 1;
    return a->piece - b->piece;
}

/* One order of very many: the most urgent first, as all stood at the beginning. */
static void try_urgent_order(const MtfTransferProblem *problem, const int *sender,
                             MtfTransferOrder *best) {
    Listing listing = begin_listing(problem, sender);
    g_autofree Urgent *order = g_new(Urgent, (gsize)problem->count + 1);
    for (int i = 0; i < problem->count; i++)
        order[i] = (Urgent){ urgency(problem, i, sender[i], listing.left), i };
    qsort(order, (gsize)problem->count, sizeof *order, compare_urgent);
    for (int k = 0; k < problem->count; k++)
        put(&listing, order[k].piece);
    end_listing(&listing, best);
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
    if (problem->count > LIST_PIECES)
        try_urgent_order(problem, sender, best);
    else
        try_list_order(problem, sender, NULL, best);
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    int orders = (int)MIN(RANDOM_ORDERS, RANDOM_STEPS / (1 + pow(problem->count, 2)));
    for (int i = 0; i < orders && best->makespan > load * enough; i++)
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

/* One side of a host (sending, or receiving behind all of those) at work. */
typedef struct {
    int side;
    double begin, end;
} Work;

static int compare_work(const void *first, const void *second) {
    const Work *a = first, *b = second;
    if (a->side != b->side)
        return a->side - b->side;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static void add_work(const MtfTransferProblem *problem, const MtfTransferOrder *order, int i,
                     GArray *all) {
    const MtfTransferPiece *piece = &problem->piece[i];
    Work work = { order->sender[i], order->begin[i], order->begin[i] + piece->seconds };
    if (piece->n_receivers > 0)
        g_array_append_val(all, work);
    for (int r = 0; r < piece->n_receivers; r++) {
        work.side = problem->hosts + piece->receivers[r];
        g_array_append_val(all, work);
    }
}

static bool may_send(const MtfTransferPiece *piece, int host) {
    for (int s = 0; s < piece->n_senders; s++)
        if (piece->senders[s] == host)
            return true;
    return false;
}

bool mtf_transfer_order_is_valid(const MtfTransferProblem *problem, const MtfTransferOrder *order) {
    double slack = 1e-9 * order->makespan;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Work));
    for (int i = 0; i < problem->count; i++) {
        double end = order->begin[i] + problem->piece[i].seconds;
        if (!may_send(&problem->piece[i], order->sender[i]) || order->begin[i] < 0 ||
            end > order->makespan + slack)
            return false;
        add_work(problem, order, i, all);
    }
    g_array_sort(all, compare_work);
    for (guint i = 1; i < all->len; i++) {
        const Work *before = &g_array_index(all, Work, i - 1), *next = before + 1;
        if (before->side == next->side && next->begin + slack < before->end)
            return false;
    }
    return true;
}
