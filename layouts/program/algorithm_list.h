// SPDX-License-Identifier: GPL-3.0-or-later
/* Which collectives of a program go by which algorithm, as a layout keeps it and a plan says it:
 *
 *     "algorithms": { "ring": [12, 40], "recursive": [3] }        instructions by their numbers
 *
 * What is not named goes directly. */
#ifndef MTF_ALGORITHM_LIST_H
#define MTF_ALGORITHM_LIST_H

#include "layouts/base/json_reader.h"
#include "layouts/program/program.h"

/* The last pass: gives the instructions of a lowered program the algorithms of its layout. */
void mtf_program_choose_algorithms(MtfProgram *program);

/* Gives every collective of the layout's program that algorithm where it applies; random ones, by
 * the seed, of those that apply when `algorithm` is -1. */
void mtf_layout_take_algorithm(const MtfGraph *graph, MtfLayout *layout, int algorithm,
                               uint64_t seed);

/* NULL where all go directly. */
cJSON *mtf_algorithms_to_json(const MtfLayout *layout);

/* Reads what mtf_algorithms_to_json wrote for the layout's program, which is otherwise complete. */
bool mtf_algorithms_read(const MtfJson *where, const MtfGraph *graph, MtfLayout *layout,
                         GError **error);

#endif
