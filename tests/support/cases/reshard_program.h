// SPDX-License-Identifier: GPL-3.0-or-later
/* A program that does nothing but bring one tensor from one placement to another, and the check
 * that it did, against the whole tensor:
 *
 *     fill     every rank's source slice: terms of a known tensor, junk-free whole numbers
 *     run      in lockstep, or under MPI
 *     check    every rank's target slice; what is partial there is reduced by the checker itself */
#ifndef MTF_TESTS_RESHARD_PROGRAM_H
#define MTF_TESTS_RESHARD_PROGRAM_H

#include "layouts/program/program.h"

/* Tensor 0 of the graph is "x" over dimensions 0, 1, … of `sizes`. */
MtfGraph *mtf_reshard_graph(int rank, const int64_t *sizes, MtfDtype dtype);

/* Buffer 0 holds the source; *target is the buffer that holds the target. The graph
 * and the layout, which only gives the mesh, must outlive the program. */
MtfProgram *mtf_reshard_program(const MtfGraph *graph, const MtfLayout *layout,
                                const MtfPlacement *from, const MtfPlacement *to, int *target);

/* A whole number from -16 to 15, so that sums of eight are exact in bfloat16 too, or of bools 0 or 1:
 * element `index` on the processors of `rank`'s coordinates along partial axes. */
double mtf_reshard_term(MtfDtype dtype, const MtfMesh *mesh, const MtfPlacement *from,
                        int64_t index, int rank);

/* The element of the whole tensor: the reduction of its terms, of bools whether one of them is 1. */
double mtf_reshard_value(MtfDtype dtype, const MtfMesh *mesh, const MtfPlacement *from,
                         int64_t index);

/* All placements of a tensor of `rank` dimensions that do not mix sums with maxima: MtfPlacement.
 */
GArray *mtf_reshard_placements(const MtfMesh *mesh, int rank);

#endif
