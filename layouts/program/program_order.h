// SPDX-License-Identifier: GPL-3.0-or-later
/* Other orders of a program's instructions. Lowering writes them in the order of the graph's
 * operations; any order in which each still comes after what it depends on computes the same bits:
 *
 *     written   0 1 2 3 4 5        order  0 1 4 2 3 5        runs  [0,2] [4,1] [2,2] [5,1]
 *
 * An instruction depends on the earlier ones that write what it reads, or read or write what it
 * writes. Nothing crosses from one *segment* of the program to the next:
 *
 *     forward operations | … until the loss stands | backward, updates | [ once a step … for clipping | updates ]
 *
 * since evaluation runs the front alone, a step that fails stops before the first update, what
 * micro-batches repeat stays apart from what follows them, and of what is worked out once for all
 * gradients (sums of squares) stages ask each other before any of them updates a variable. The order is part of the layout, and the
 * same on all ranks, so exchanges meet. */
#ifndef MTF_PROGRAM_ORDER_H
#define MTF_PROGRAM_ORDER_H

#include "layouts/base/json_reader.h"
#include "layouts/program/program.h"

/* The earlier instructions that instruction i must come after are before[begins[i]] up to
 * before[begins[i + 1]], each once or more. */
typedef struct {
    int n;
    int *begins; /* n + 1 */
    int *before;
} MtfDependences;

/* What every instruction of the program waits for; the caller frees it. */
MtfDependences *mtf_dependences_new(const MtfProgram *program);
void mtf_dependences_free(MtfDependences *dependences);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDependences, mtf_dependences_free)

/* Segment s is instructions [ends[s - 1], ends[s]) of the program, from 0 to its length; some may
 * be empty. */
#define MTF_SEGMENTS 6
void mtf_program_segments(const MtfProgram *program, int ends[MTF_SEGMENTS]);

/* Whether the program, written in the order of its operations, may be put in that order. `order`
 * has as many numbers as the program has instructions. */
bool mtf_order_check(const MtfProgram *program, const int *order, GError **error);

/* Puts instruction order[i] in place i; lifetimes must be read again. */
void mtf_program_reorder(MtfProgram *program, const int *order);

/* An order as plans hold it: [[first, count], …], runs of instructions that stand in the order of
 * the operations. */
cJSON *mtf_order_to_json(const int *order, int length);

/* Reads such a list of `length` instructions in all; NULL where it is none. Whether the order is
 * legal is mtf_order_check's to say. Free with g_free. */
int *mtf_order_read(const MtfJson *where, int length, GError **error);

#endif
