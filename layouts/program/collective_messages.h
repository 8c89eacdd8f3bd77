// SPDX-License-Identifier: GPL-3.0-or-later
/* What the algorithm that a collective instruction names sends (layouts/exchange): worked out from
 * placements alone, so that predictions and checks need no run. */
#ifndef MTF_COLLECTIVE_MESSAGES_H
#define MTF_COLLECTIVE_MESSAGES_H

#include "layouts/program/program.h"

/* The mesh axes of a group with more than one processor: fills in n_axes, sizes and n_members. */
void mtf_exchange_shape_axes(const MtfMesh *mesh, unsigned axes, MtfExchangeShape *shape);

/* Whether instruction `index` is a collective that the algorithm can run, for every rank alike.
 * Direct and MPI's own run every collective. */
bool mtf_instruction_takes_algorithm(const MtfProgram *program, int index,
                                     MtfExchangeAlgorithm algorithm);

/* Bytes that `rank` sends in messages in one run of the instruction; added to to_rank[r] for each
 * rank r that gets some, unless that is NULL. */
int64_t mtf_instruction_sent_bytes(const MtfProgram *program, int index, int rank,
                                   int64_t *to_rank);

#endif
