// SPDX-License-Identifier: GPL-3.0-or-later
/* Small exchanges that travel as one message: a collective costs a latency however little it
 * carries, so those of one kind over the same axes, whose inputs are complete near each other, are
 * joined to one instruction with several tensors.
 *
 *     as emitted   grad/b2 [exchange] update/b2  back  grad/b1 [exchange] update/b1
 *     joined       grad/b2  back  grad/b1 [exchange of both] update/b2 update/b1
 *
 * The instruction stands where the last of them stood; what reads their results and may wait
 * (clipping, updates) comes right behind it. Where anything else reads one, the message leaves
 * before. Nothing crosses from one segment of the program to the next (program_order.h).
 *
 * The tensors are gathered in scratch, which the message is, and brought to their places from
 * there; both copies are part of the instruction. Elements are combined as they are alone, in the
 * order of the ranks, so where that is how sums are taken the bits are the same. */
#ifndef MTF_COMBINE_COLLECTIVES_H
#define MTF_COMBINE_COLLECTIVES_H

#include "layouts/program/program.h"

/* Joins the collectives of a program that has just been emitted and put in order, its lifetimes not
 * settled yet, to messages of at most `bytes`, a payload as in MtfInstruction; those that are
 * larger alone stay alone. */
void mtf_program_combine_collectives(MtfProgram *program, int64_t bytes);

#endif
