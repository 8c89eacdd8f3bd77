// SPDX-License-Identifier: GPL-3.0-or-later
/* The collectives that programs name and `cost/` prices. A collective runs over the ranks of one
 * group (all ranks that differ only in the named mesh axes). Its *bytes* are its payload per rank:
 *
 *     allreduce, reduce_scatter   the full input          alltoall    the whole send buffer
 *     allgather                   the gathered output     the others  the message of one rank   */
#ifndef MTF_COLLECTIVE_KIND_H
#define MTF_COLLECTIVE_KIND_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    MTF_ALLREDUCE,
    MTF_REDUCE_SCATTER,
    MTF_ALLGATHER,
    MTF_ALLTOALL,
    MTF_BROADCAST,
    MTF_PERMUTE, /* every rank sends to the one `shift` places on */
    MTF_HALO,    /* every rank exchanges its faces with both neighbours */
    MTF_P2P,     /* one rank sends to one other */
    MTF_COLLECTIVE_KINDS,
} MtfCollectiveKind;

/* The kind's name as files and commands spell it: "reduce_scatter". Static. */
const char *mtf_collective_kind_name(MtfCollectiveKind kind);

/* Reads a kind's name, with or without hyphens and underscores ("reduce-scatter"). */
bool mtf_collective_kind_parse(const char *text, MtfCollectiveKind *kind, GError **error);

#endif
