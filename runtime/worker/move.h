// SPDX-License-Identifier: GPL-3.0-or-later
/* A step of the program (layouts/placement/reshard.h) made ready for one processor: which boxes to copy, what
 * to send to whom, and where. All counts and addresses are worked out when the plan is loaded, so
 * that stepping neither computes nor allocates:
 *
 *     input ──before──► send ═══exchange═══► receive ──after──► output
 *
 *     local steps         input ──before──► output                      (no exchange)
 *     allreduce           input ──before──► output ═► output            (in place)
 *     reduce-scatter      input ──before──► scratch ═► output           input itself where the
 *                                                                       parts lie in order
 *     allgather           input ═► scratch ──after──► output            output itself likewise
 *     all-to-all          input ──before──► scratch ═► scratch ──after──► output
 *     halo, permute       likewise, but for what the processor has itself, input ──before──► output
 *     several together    inputs ──before──► scratch ═► scratch ──after──► outputs
 *
 * A move knows no MPI: the exchange is done by collectives.h between ranks, and by a loop in tests
 * that hold all processors in one process. */
#ifndef MTF_MOVE_H
#define MTF_MOVE_H

#include "layouts/program/program.h"
#include "runtime/worker/box_copy.h"

/* What one processor sends to, or receives from, each member of its group, in elements. */
typedef struct {
    char *base;
    int *counts;  /* one a member */
    int *offsets; /* one a member, from base */
    int64_t total;
} MtfPeerMessages;

/* One copy of a local half. */
typedef struct {
    const char *from;
    char *to;
    MtfBoxCopy box;
} MtfMoveCopy;

typedef struct {
    MtfReshardKind kind;
    MtfExchangeAlgorithm algorithm;
    MtfReduction reduction;
    MtfDtype dtype;
    unsigned axes;
    int position;  /* in the group of `axes` */
    int n_members; /* of that group */
    char *output;  /* of fills and of allreduce: what is filled, or combined in place */
    bool fills;    /* a conceal that holds the neutral element: `output` gets it `count` times */
    int64_t count; /* elements of fills and of allreduce */
    int n_before, n_after;
    MtfMoveCopy *before, *after; /* from inputs to what is sent; from what is received to outputs */
    MtfPeerMessages send;        /* all-to-all, allgather (one message to all), reduce-scatter */
    MtfPeerMessages receive;     /* all-to-all, allgather, reduce-scatter (one message) */
} MtfMove;

/* Where a move's buffers are: at offsets[b] from `base`. */
typedef struct {
    char *base;
    const int64_t *offsets;
} MtfMoveBuffers;

/* Makes instruction `index`, a step, ready for processor `rank`. Fails (our own bug, or a message
 * of more than MTF_MAX_MESSAGE elements, which only an allreduce may have) without leaving anything
 * to clear. */
bool mtf_move_init(MtfMove *move, const MtfProgram *program, int index, int rank,
                   const MtfMoveBuffers *buffers, GError **error);
void mtf_move_clear(MtfMove *move);

/* The local halves, before and after the exchange. */
void mtf_move_before(const MtfMove *move);
void mtf_move_after(const MtfMove *move);

/* Narrows an element count to what MPI calls take. Fails above `limit`. */
bool mtf_count_narrow(int64_t count, int64_t limit, int *narrow, GError **error);

#endif
