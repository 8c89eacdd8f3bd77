// SPDX-License-Identifier: GPL-3.0-or-later
/* How algorithms write down their messages (exchange_algorithm.h); and the algorithms, rivals behind one
 * table. */
#ifndef MTF_MESSAGE_LIST_H
#define MTF_MESSAGE_LIST_H

#include "layouts/exchange/exchange_algorithm.h"

typedef struct {
    const MtfExchangeShape *shape;
    int member;
    int round;        /* in which messages are added */
    int64_t *starts;  /* n_members + 1: where blocks begin in the vector */
    GArray *messages; /* MtfExchangeMessage */
} MtfMessageList;

/* Elements of the vector. */
typedef struct {
    int64_t begin, end;
} MtfSpan;

/* Adds a message to `peer`, or from it, unless it is empty. */
void mtf_message_send(MtfMessageList *list, int peer, MtfSpan span);
void mtf_message_receive(MtfMessageList *list, int peer, MtfSpan span, bool combines);

typedef struct {
    const char *name;
    bool (*applies)(const MtfExchangeShape *shape);
    void (*add)(MtfMessageList *list); /* all rounds of list->member; NULL: no list of messages */
} MtfExchangeAlgorithmRow;

#define MTF_EXCHANGE_ROW(NAME, row) extern const MtfExchangeAlgorithmRow mtf_##row##_exchange;
MTF_EXCHANGE_LIST(MTF_EXCHANGE_ROW)

/* A ring of n members: member i of it is position first + i step of the group, and span(i) is its
 * part of the vector. */
typedef struct {
    int n, first, step;
    const MtfSpan *spans;
} MtfRing;

/* The rounds of one ring, this member being its `own`-th: everyone's span is reduced at its owner,
 * or goes from there to all. `backward` sends the other way round. list->round is what it was
 * before; a ring takes n - 1 rounds. */
void mtf_ring_reduce_scatter(MtfMessageList *list, const MtfRing *ring, int own, bool backward);
void mtf_ring_allgather(MtfMessageList *list, const MtfRing *ring, int own, bool backward);

#endif
