// SPDX-License-Identifier: GPL-3.0-or-later
/* One processor's share of a program, ready to run: its arena, and for each instruction either a
 * kernel call on its slices or a move. Everything is worked out when the worker is made; running an
 * instruction allocates nothing.
 *
 *     instruction 0   kernel einsum   slices at base + offsets
 *                 1   move allreduce  before, exchange, after
 *                 …
 *
 * A worker knows no MPI. One per rank runs under an executor (executor.h); tests hold all
 * processors' workers in one process and run them in lockstep. */
#ifndef MTF_WORKER_H
#define MTF_WORKER_H

#include "cost/memory/arena.h"
#include "runtime/kernels/base/kernel.h"
#include "runtime/worker/arena_memory.h"
#include "runtime/worker/move.h"

/* What debug builds do before a buffer is written for the first time: fill it with bytes that make
 * NaN, or an id of -1. */
#ifdef MTF_DEBUG
#define MTF_POISON_DEFAULT true
#else
#define MTF_POISON_DEFAULT false
#endif

typedef struct {
    const MtfProgram *program; /* borrowed, and so is the graph */
    int rank;
    bool poison;       /* MTF_POISON_DEFAULT; may be changed between steps */
    int microbatch;    /* whose examples the slices of the batch hold; 0 between steps */
    int64_t iteration; /* of the loop that is being run; 0 outside */
    MtfArenaMemory memory;
    MtfArenaMemory host;   /* what lies in the host's memory; nothing where the arena has none
                              there */
    const MtfArena *arena; /* borrowed */
    MtfMove *moves;        /* one an instruction; zero for kernels */
    MtfKernelCall *calls;  /* one an instruction; zero for reshard ops */
    void *workspace;       /* of all calls, outside the arena */
    MtfOperand *operands;  /* one a buffer */
    MtfOperand *arguments; /* those the calls point to */
    int n_arguments;
    const MtfProgressHook *progress; /* of kernels that take long; borrowed; NULL: none */
} MtfWorker;

/* Makes the worker of processor `rank`; all variables are zero until mtf_worker_initialise. Its arena is
 * shared (arena_memory.h) when the program has collectives or is that of a stage. Fails when memory cannot be
 * mapped or a message is too long. */
MtfWorker *mtf_worker_new(const MtfProgram *program, const MtfArena *arena, int rank, uint64_t seed,
                          GError **error);

/* The same with an arena at `base`: arena->bytes of zeros that are aligned like MTF_ARENA_ALIGNMENT
 * and outlive it. For programs without collectives. */
MtfWorker *mtf_worker_new_at(const MtfProgram *program, const MtfArena *arena, int rank,
                             uint64_t seed, char *base, GError **error);
void mtf_worker_free(MtfWorker *worker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfWorker, mtf_worker_free)

/* Gives every variable its initial value, a function of (seed, name, global index) alone. */
void mtf_worker_initialise(MtfWorker *worker, uint64_t seed);

/* Turns to micro-batch `microbatch`: slices of the batch dimension hold its examples from now on.
 */
void mtf_worker_set_microbatch(MtfWorker *worker, int microbatch);

/* Runs kernel instruction `index` of step `step` (the first is 1). */
void mtf_worker_run_kernel(MtfWorker *worker, int index, int64_t step);

/* Runs the fused group that begins at instruction `index` (layouts/program/fused_groups.h), tile by tile. The
 * processor time that each takes is added to seconds[0], seconds[1], … unless that is NULL. */
void mtf_worker_run_fused(MtfWorker *worker, int index, int64_t step, double *seconds);

/* The local halves of reshard instruction `index`, before and after the exchange that
 * worker->moves[index] describes. */
void mtf_worker_begin_move(MtfWorker *worker, int index);
void mtf_worker_end_move(MtfWorker *worker, int index);

/* Makes `move` what the worker of rank `peer` has for reshard instruction `index` of the same program,
 * with that worker's arena at `base`. Clear it with mtf_move_clear. */
bool mtf_worker_peer_move(const MtfWorker *worker, int index, int peer, char *base, MtfMove *move,
                          GError **error);

/* The slice of a tensor between steps (inputs, variables, results that are kept): its operand, or
 * NULL when the program keeps none. */
const MtfOperand *mtf_worker_tensor(const MtfWorker *worker, int tensor);

#endif
