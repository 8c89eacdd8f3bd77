// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/transfers/transfer_plan.h"

#include "analyzer/transfers/sender_balance.h"

#include <math.h>

#define MOVES_APART_MAX 64 /* more are joined where they go the same way */

/* The moves as pieces; seconds are filled in by the caller. */
static MtfTransferProblem pose_problem(const MtfTransferPlan *plan) {
    MtfTransferProblem problem = { plan->host_count, (int)plan->moves->len, NULL };
    problem.piece = g_new0(MtfTransferPiece, plan->moves->len + 1);
    for (guint i = 0; i < plan->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(plan->moves, i);
        problem.piece[i].n_senders = (int)move->senders->len;
        problem.piece[i].senders = (int *)move->senders->data;
        problem.piece[i].n_receivers = (int)move->receivers->len;
        problem.piece[i].receivers = (int *)move->receivers->data;
    }
    return problem;
}

/* Senders and order for the seconds of the problem. NULL when GLPK fails. */
static MtfTransferOrder *plan_order(const MtfTransferProblem *problem, double *bound,
                                    GError **error) {
    g_autofree int *sender = g_new0(int, (gsize)problem->count + 1);
    if (!mtf_sender_balance(problem, sender, bound, error))
        return NULL;
    MtfTransferOrder *order = mtf_transfer_order_find(problem, sender, *bound);
    g_assert(mtf_transfer_order_is_valid(problem, order));
    return order;
}

/* Bytes that each host sends and receives; every host on a broadcast's way passes it on while it
 * receives, which is never more than what it receives. */
static double busiest_bytes(const MtfTransferPlan *plan, const MtfTransferWay *way) {
    g_autofree double *sent = g_new0(double, (gsize)plan->host_count);
    g_autofree double *received = g_new0(double, (gsize)plan->host_count);
    double most = 0;
    for (guint i = 0; i < plan->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(plan->moves, i);
        int hosts = (int)move->receivers->len, sender = way->order->sender[i];
        bool copies = way->algorithm == MTF_TRANSFER_SEND_RECEIVE;
        double each = (double)move->bytes * (copies && hosts > 0 ? move->devices / hosts : 1);
        sent[sender] += mtf_transfer_sent_bytes(way->algorithm, move);
        most = MAX(most, sent[sender]);
        for (int r = 0; r < hosts; r++) {
            int host = g_array_index(move->receivers, int, r);
            received[host] += each;
            most = MAX(most, received[host]);
        }
    }
    return most;
}

/* Hosts carry whole moves, so a bound goes up to a multiple of what all moves are multiples of. */
static double round_up_to_moves(const MtfTransferPlan *plan, double bound) {
    int64_t unit = 0;
    for (guint i = 0; i < plan->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(plan->moves, i);
        int64_t bytes = move->receivers->len > 0 ? move->bytes : 0;
        while (bytes != 0) {
            int64_t rest = unit % bytes;
            unit = bytes;
            bytes = rest;
        }
    }
    return unit > 0 ? ceil(bound / (double)unit * (1 - 1e-12)) * (double)unit : 0;
}

static bool plan_bytes(MtfTransferPlan *plan, MtfTransferProblem *problem, GError **error) {
    for (int i = 0; i < problem->count; i++) {
        const MtfTransferMove *move = g_ptr_array_index(plan->moves, (guint)i);
        problem->piece[i].seconds = move->receivers->len > 0 ? (double)move->bytes : 0;
        plan->bytes_across += problem->piece[i].seconds;
    }
    g_autoptr(MtfTransferOrder) order = plan_order(problem, &plan->lower_bound_bytes, error);
    if (order == NULL)
        return false;
    plan->lower_bound_bytes = round_up_to_moves(plan, plan->lower_bound_bytes);
    plan->makespan_bytes = order->makespan;
    return true;
}

static bool plan_way(MtfTransferPlan *plan, MtfTransferProblem *problem,
                     MtfTransferAlgorithm algorithm, GError **error) {
    MtfTransferWay *way = &plan->way[algorithm];
    double bound = 0;
    for (int i = 0; i < problem->count; i++)
        problem->piece[i].seconds = mtf_transfer_move_seconds(
            algorithm, g_ptr_array_index(plan->moves, (guint)i), &plan->hosts, plan->chunks);
    way->algorithm = algorithm;
    way->order = plan_order(problem, &bound, error);
    if (way->order == NULL)
        return false;
    way->busiest_host_bytes = busiest_bytes(plan, way);
    if (way->order->makespan < plan->way[plan->best].order->makespan * (1 - 1e-9))
        plan->best = algorithm;
    return true;
}

static int best_chunks(const MtfTransferPlan *plan) {
    double bytes = 1;
    int receivers = 1;
    for (guint i = 0; i < plan->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(plan->moves, i);
        if ((double)move->bytes * move->receivers->len <= bytes * receivers)
            continue;
        bytes = (double)move->bytes;
        receivers = (int)move->receivers->len;
    }
    return mtf_transfer_chunks(&plan->hosts, bytes, receivers);
}

static bool plan_all(MtfTransferPlan *plan, GError **error) {
    MtfTransferProblem problem = pose_problem(plan);
    bool done = plan_bytes(plan, &problem, error);
    for (int a = 0; a < MTF_TRANSFER_ALGORITHMS && done; a++)
        done = plan_way(plan, &problem, (MtfTransferAlgorithm)a, error);
    g_free(problem.piece);
    return done;
}

MtfTransferPlan *mtf_transfer_plan_new(const MtfTransferShape *shape, int64_t element_bytes,
                                       const MtfTransferEnd *from, const MtfTransferEnd *to,
                                       const MtfMachine *machine, int chunks, GError **error) {
    int devices = MAX(from->first_device + mtf_mesh_size(&from->mesh),
                      to->first_device + mtf_mesh_size(&to->mesh));
    MtfTransferHosts hosts;
    if (!mtf_transfer_hosts(machine, devices, &hosts, error))
        return NULL;
    g_autoptr(MtfTransferPlan) plan = g_new0(MtfTransferPlan, 1);
    plan->hosts = hosts;
    plan->host_count = (devices + hosts.devices - 1) / hosts.devices;
    plan->boxes = mtf_transfer_boxes(shape, from, to);
    plan->moves =
        mtf_transfer_moves(plan->boxes, element_bytes, plan->hosts.devices, MOVES_APART_MAX);
    plan->chunks = chunks > 0 ? chunks : best_chunks(plan);
    if (!plan_all(plan, error))
        return NULL;
    return g_steal_pointer(&plan);
}

void mtf_transfer_plan_free(MtfTransferPlan *plan) {
    if (plan == NULL)
        return;
    for (int a = 0; a < MTF_TRANSFER_ALGORITHMS; a++)
        mtf_transfer_order_free(plan->way[a].order);
    g_clear_pointer(&plan->boxes, g_ptr_array_unref);
    g_clear_pointer(&plan->moves, g_ptr_array_unref);
    g_free(plan);
}
