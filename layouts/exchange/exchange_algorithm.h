// SPDX-License-Identifier: GPL-3.0-or-later
/* What an algorithm of a collective sends: who gives which elements to whom, round by round. It is
 * the one description that predictions count and the runtime executes. A collective works on a
 * vector of n blocks, one a member of its group, which every member has in full length:
 *
 *     allreduce        every member's vector is a term; all end with the reduced vector
 *     reduce-scatter   the same, but member b ends with the reduced block b alone
 *     allgather        block b is member b's; all end with all blocks
 *
 *     ring, three members, reduce-scatter     round 0    0 ─b2─► 1 ─b0─► 2 ─b1─► 0
 *                                             round 1    0 ─b1─► 1 ─b2─► 2 ─b0─► 0
 *
 * What is received is stored in the vector or combined with what stands there, after all messages
 * of the round. Within a round no member gives away what it receives in it. All-to-all goes
 * directly or by MPI. */
#ifndef MTF_EXCHANGE_ALGORITHM_H
#define MTF_EXCHANGE_ALGORITHM_H

#include "layouts/placement/reshard.h"

/* The algorithms in the order of files and options: X(NAME, row), where the row is mtf_ROW_exchange
 * (message_list.h). The first is what programs have that name no other: through the window of a host
 * in one round, each rank fetching what it needs; between hosts MPI's own takes its place. What MPI
 * does inside does not show.
 *
 *     RECURSIVE      halving and doubling; of other numbers than powers of two, allreduce folds the
 *                    members beyond one into their neighbours
 *     BUCKET         rings along the mesh axes of the group, one after the other
 *     HIERARCHICAL   allreduce: reduce-scatter inside, ring along the first axis, allgather inside */
#define MTF_EXCHANGE_LIST(X)                  \
    X(DIRECT, direct)                         \
    X(MPI, mpi)                               \
    X(RING, ring)                             \
    X(BIDIRECTIONAL_RING, bidirectional_ring) \
    X(RECURSIVE, recursive)                   \
    X(BUCKET, bucket)                         \
    X(HIERARCHICAL, hierarchical)

#define MTF_EXCHANGE_NUMBER(NAME, row) MTF_EXCHANGE_##NAME,
typedef enum {
    MTF_EXCHANGE_LIST(MTF_EXCHANGE_NUMBER) MTF_EXCHANGE_ALGORITHMS
} MtfExchangeAlgorithm;

/* "bidirectional-ring"; and the algorithm of that name, or -1. */
const char *mtf_exchange_algorithm_name(MtfExchangeAlgorithm algorithm);
int mtf_exchange_algorithm_find(const char *name);

typedef struct {
    MtfReshardKind kind;
    int n_members;
    int n_axes;                   /* of the group, those of one processor left out */
    int sizes[MTF_MAX_MESH_AXES]; /* major first; their product is n_members */
    const int64_t *blocks;        /* elements of each member's block */
} MtfExchangeShape;

/* One message between a member and `peer`, elements [first, first + count) of both vectors. */
typedef struct {
    int round;
    int peer;      /* position in the group */
    bool sends;    /* to the peer, or receives from it */
    bool combines; /* of what is received: with what the vector holds */
    int64_t first, count;
} MtfExchangeMessage;

/* Whether the algorithm is made of messages between two, and runs such a collective. */
bool mtf_exchange_applies(MtfExchangeAlgorithm algorithm, const MtfExchangeShape *shape);

/* All messages of `member` in the order of rounds: a GArray of MtfExchangeMessage; NULL where the
 * algorithm does not apply. */
GArray *mtf_exchange_messages_new(MtfExchangeAlgorithm algorithm, const MtfExchangeShape *shape,
                                  int member);

/* Divides `elements` into n even blocks, as an allreduce does. */
void mtf_exchange_even_blocks(int64_t elements, int n, int64_t *blocks);

#endif
