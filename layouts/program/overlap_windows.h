// SPDX-License-Identifier: GPL-3.0-or-later
/* Overlap windows: a collective begins at its own place in the program and must be over before the
 * instruction `wait_before`; in between it may be under way while kernels compute.
 *
 *     blocking      back/2  grad/w2  [allreduce]  back/1  update/w2
 *
 *     overlapped    back/2  grad/w2  [allreduce . . . . ]  update/w2
 *                                      back/1
 *
 * A window ends before the first instruction that touches an operand of the collective, or when
 * MTF_EXCHANGES_UNDER_WAY others have begun after it. The operands stay live to its end, so it also
 * ends where that would raise the bytes that are live at the worst instruction. No window crosses
 * the end of what micro-batches repeat. Copies to and from the host have windows of the same kind. */
#ifndef MTF_OVERLAP_WINDOWS_H
#define MTF_OVERLAP_WINDOWS_H

#include "layouts/program/program.h"

#define MTF_EXCHANGES_UNDER_WAY 4

/* Fills in `wait_before` of all collectives of a program whose buffers are aliased (lifetimes.h),
 * and lets their operands live to the end of the window. */
void mtf_program_open_overlap_windows(MtfProgram *program);

#endif
