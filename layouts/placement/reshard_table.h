// SPDX-License-Identifier: GPL-3.0-or-later
/* The kinds of resharding operations, a row each: what is asked about a kind outside the table, its row
 * answers. Beside it stand, in a row a kind as well, what brings a tensor's parts to messages
 * (runtime/worker/move.c), the calls of MPI (runtime/exchange/collectives.c) and which collective is
 * priced (cost/price/price.c). */
#ifndef MTF_RESHARD_TABLE_H
#define MTF_RESHARD_TABLE_H

#include <stdbool.h>

typedef enum {
    MTF_RESHARD_COPY, /* same placement, another buffer */
    MTF_RESHARD_SLICE,
    MTF_RESHARD_CONCEAL,
    MTF_RESHARD_ALLREDUCE,
    MTF_RESHARD_REDUCE_SCATTER,
    MTF_RESHARD_ALLGATHER,
    MTF_RESHARD_ALLTOALL,
    MTF_RESHARD_HALO,    /* on no path: it stands before the operation that reads with margins */
    MTF_RESHARD_PERMUTE, /* likewise, before one that turns: parts go on round the end */
    MTF_RESHARD_KINDS,
} MtfReshardKind;

typedef struct {
    const char *name;
    bool collective; /* else each processor does it alone */
    bool reduces;    /* combines what the members hold of an element */
    bool gathers;    /* leaves all members with what some of them held or combined */
    bool exchanges;  /* brings another box to every member: all that it lacks */
    bool margins;    /* brings what lies beyond the edges of a part that stays where it is */
    bool turns;      /* of these: everyone sends to one side, round the end */
    bool copies;     /* keeps the placement */
    bool in_place; /* the result may overwrite what is read; of collectives: is one vector, in which
                      members hold the same places */
} MtfReshardRow;

/* The row of a kind; it lives as long as the program. */
const MtfReshardRow *mtf_reshard_row(MtfReshardKind kind);

#endif
