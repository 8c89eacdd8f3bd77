// SPDX-License-Identifier: GPL-3.0-or-later
/* What signals ask of a run. A thread waits for them and takes a note; ranks agree after each step,
 * since they may not all have been told, or not at the same step. Every thread that computes for us blocks
 * them: the frame of a handler would lie on the interrupted thread's stack, and oneDNN's products keep
 * theirs on the heap (jit_avx512_common_gemm_f32), too small for one more. Threads that were there before
 * pass them on.
 *
 *     SIGUSR1            write a checkpoint and go on
 *     SIGUSR2            write a checkpoint and stop; mpirun passes it on to all ranks and waits
 *     SIGTERM, SIGINT    the same, once; a second one ends the rank at once. mpirun that gets one
 *                        sends its ranks SIGTERM and a second later SIGKILL */
#ifndef MTF_STOP_SIGNALS_H
#define MTF_STOP_SIGNALS_H

#include <mpi.h>
#include <stdbool.h>

typedef enum { MTF_ASKED_NOTHING, MTF_ASKED_CHECKPOINT, MTF_ASKED_STOP } MtfAsked;

/* From now on signals are noted. To be called once, before MPI or anything else starts threads. */
void mtf_stop_signals_watch(void);

/* Whether this rank answers SIGTERM with a sentence on standard error, which promises that it ends
 * after the step: not when it is leaving anyway, as when mpirun ends the ranks that outlive
 * another.
 */
void mtf_stop_signals_speak(bool speaks);

/* Collective: the ranks of this host know one another from now on. SIGTERM that comes since one is gone
 * is then told from one that asks, by one sentence of the first that is left; and until the ranks part,
 * after which they end one by one and say nothing. */
void mtf_stop_signals_meet(MPI_Comm control);
void mtf_stop_signals_part(void);

/* The most that was asked of this rank since the last call. */
MtfAsked mtf_stop_signals_take(void);

#endif
