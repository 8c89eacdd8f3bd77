// SPDX-License-Identifier: GPL-3.0-or-later
/* What signals ask of a run. Handlers only take a note; ranks agree after each step, since they may
 * not all have been told, or not at the same step.
 *
 *     SIGUSR1            write a checkpoint and go on
 *     SIGUSR2            write a checkpoint and stop; mpirun passes it on to all ranks and waits
 *     SIGTERM, SIGINT    the same, once; a second one ends the rank at once. mpirun that gets one
 *                        sends its ranks SIGTERM and a second later SIGKILL */
#ifndef MTF_STOP_SIGNALS_H
#define MTF_STOP_SIGNALS_H

#include <stdbool.h>

typedef enum { MTF_ASKED_NOTHING, MTF_ASKED_CHECKPOINT, MTF_ASKED_STOP } MtfAsked;

/* From now on signals are noted. To be called before MPI starts. */
void mtf_stop_signals_watch(void);

/* Whether this rank answers SIGTERM with a sentence on standard error, which promises that it ends
 * after the step: not when it is leaving anyway, as when mpirun ends the ranks that outlive
 * another.
 */
void mtf_stop_signals_speak(bool speaks);

/* The most that was asked of this rank since the last call. */
MtfAsked mtf_stop_signals_take(void);

#endif
