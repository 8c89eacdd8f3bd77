// SPDX-License-Identifier: GPL-3.0-or-later
/* When the pieces of a transfer travel, and which of its holders sends each. A host sends one piece at a
 * time and receives one at a time (it may do both at once); a piece keeps its sender and all hosts that
 * receive it busy for its seconds, without a break:
 *
 *     host 0 sends     aaaabb..          piece a: 0 or 1 may send, 2 receives
 *     host 1 sends     cccc....          piece b: 0 sends, 3 receives
 *     host 2 receives  aaaacccc  !       piece c: 1 sends, 2 and 3 receive: it waits for host 2
 *     host 3 receives  ....bb            (an open shop, whose best order is hard to find in general)
 */
#ifndef MTF_TRANSFER_ORDER_H
#define MTF_TRANSFER_ORDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double seconds;
    int n_senders, n_receivers; /* at least one sender; no receiver: it stays within its hosts */
    int *senders, *receivers;   /* numbers of hosts */
} MtfTransferPiece;

/* A set of pieces on hosts 0 … hosts - 1. */
typedef struct {
    int hosts, count;
    MtfTransferPiece *piece;
} MtfTransferProblem;

typedef struct {
    double makespan;
    double *begin; /* [count] */
    int *sender;   /* [count], a host number */
    bool proven;   /* no choice of senders and order ends earlier */
} MtfTransferOrder;

/* The best order found: the senders of `sender` (one host a piece) in the order of the busiest hosts first
 * and in random orders near it, and for up to 12 pieces every choice of senders and every order unless that
 * takes more than some million steps; of more than 10,000 pieces one order. The search ends where `bound`
 * seconds are reached, below which no order ends (0: none known). Draws from a fixed seed. */
MtfTransferOrder *mtf_transfer_order_find(const MtfTransferProblem *problem, const int *sender,
                                          double bound);

void mtf_transfer_order_free(MtfTransferOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTransferOrder, mtf_transfer_order_free)

/* Whether no host does two things of a kind at once and all pieces have a sender of theirs: the checker
 * of the search, which shares nothing with it. */
bool mtf_transfer_order_is_valid(const MtfTransferProblem *problem, const MtfTransferOrder *order);

/* The seconds that the busiest host sends or receives when these senders send: a lower bound for any
 * order with these senders. */
double mtf_transfer_load(const MtfTransferProblem *problem, const int *sender);

#endif
