// SPDX-License-Identifier: GPL-3.0-or-later
/* Updates of variables wait while the collectives that bring their gradients are under way:
 *
 *     as lowered    grad/w3  [allreduce]  update/w3  back/2  grad/w2  [allreduce]  update/w2  back/1
 *
 *     delayed       grad/w3  [allreduce]  back/2  grad/w2  [allreduce]  back/1  update/w3  update/w2
 *
 * An update that reads what a collective brings waits until MTF_UPDATES_BEHIND further collectives
 * have begun, so that the first has an overlap window (overlap_windows.h). It waits no longer than
 * memory allows, and no update overtakes another. */
#ifndef MTF_DELAYED_UPDATES_H
#define MTF_DELAYED_UPDATES_H

#include "layouts/program/program.h"

#define MTF_UPDATES_BEHIND 2

/* Reorders the instructions of a program whose buffers are aliased (lifetimes.h), and aliases them
 * again; leaves it alone where that would raise the bytes that are live at the worst instruction. */
void mtf_program_delay_updates(MtfProgram *program);

#endif
