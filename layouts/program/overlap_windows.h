// SPDX-License-Identifier: GPL-3.0-or-later
/* Room for exchanges to hide behind computation: where a collective begins and where it must be
 * over are two places of the program, as far apart as what reads its result allows.
 *
 *     as lowered    grad/w3  [exchange]  update/w3  back/2  grad/w2  [exchange]  update/w2  back/1
 *
 *     with room     grad/w3  [exchange . . . . . . . . . . . . . . ]  update/w3  back/1
 *                                       back/2  grad/w2  [exchange . . . . . . . . .]  update/w2
 *
 * Updates that read what an exchange brings wait until MTF_EXCHANGES_AHEAD further exchanges have
 * begun. A collective may be under way until an instruction touches its operands, or until
 * MTF_EXCHANGES_UNDER_WAY others have begun after it. Operands live for as long; neither is done
 * where it would raise the bytes that are live at the worst instruction. Nothing crosses the end of
 * what micro-batches repeat. */
#ifndef MTF_OVERLAP_WINDOWS_H
#define MTF_OVERLAP_WINDOWS_H

#include "layouts/program/program.h"

#define MTF_EXCHANGES_AHEAD 2
#define MTF_EXCHANGES_UNDER_WAY 4

/* Orders the instructions of a program that has just been emitted, as its layout says where it has
 * an order of its own, joins small exchanges where it says so (combine_collectives.h), settles its
 * lifetimes (lifetimes.h) and fills in `finish` of all collectives. */
void mtf_program_run_passes(MtfProgram *program);

/* Whether `late`, which stands behind `early`, reads what it writes, or writes what it reads or
 * writes. Of a settled program. */
bool mtf_instruction_depends(const MtfProgram *program, const MtfInstruction *early,
                             const MtfInstruction *late);

#endif
