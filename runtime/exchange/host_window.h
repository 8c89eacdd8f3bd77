// SPDX-License-Identifier: GPL-3.0-or-later
/* The arenas of the ranks of one host, each mapped by all of them, so that a rank can read what
 * another computed and write what another waits for without a call in between:
 *
 *     rank 0's addresses   [ arena 0 ]   [ arena 1 ]   [ arena 2 ]
 *     rank 1's             [ arena 0 ]   [ arena 1 ]   [ arena 2 ]
 *     …                         └──────── the same memory ────────┘
 *
 * Ranks of a group wait for each other through counters in the arenas' headers, one a set of mesh
 * axes and stage: each rank counts what it has passed itself, and looks whether the others have
 * passed as much. */
#ifndef MTF_HOST_WINDOW_H
#define MTF_HOST_WINDOW_H

#include "layouts/placement/mesh.h"
#include "runtime/kernels/base/kernel.h"
#include "runtime/worker/arena_memory.h"

#include <mpi.h>

typedef struct MtfHostWindow MtfHostWindow;

/* Collective over `control`: maps the arenas of all ranks of this host, `own` being this rank's
 * (borrowed). What cannot be mapped is left out. */
MtfHostWindow *mtf_host_window_new(MPI_Comm control, const MtfArenaMemory *own);
void mtf_host_window_free(MtfHostWindow *window);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfHostWindow, mtf_host_window_free)

/* Where the arena of `rank` begins, or NULL when it is not mapped here. */
char *mtf_host_window_base(const MtfHostWindow *window, int rank);

/* What ranks tell each other of an exchange: what others want of me is there; what I wanted of
 * others has been fetched. */
typedef enum { MTF_STAGE_READY, MTF_STAGE_FETCHED, MTF_STAGES } MtfStage;

/* Ranks that differ in `axes` only, all mapped, this one among them. */
typedef struct {
    int n;
    int *ranks;
    unsigned axes;
} MtfWindowGroup;

/* Tells the group of `axes` that this rank has passed the stage once more, and how often it has.
 * What it wrote before, others can read that see it. */
uint64_t mtf_host_window_pass(MtfHostWindow *window, unsigned axes, MtfStage stage);

/* What is called while this rank waits, so that what it owes others by MPI goes on; borrowed, NULL: nothing. */
void mtf_host_window_set_idle(MtfHostWindow *window, const MtfProgressHook *idle);

/* Called again and again by who waits for another: spins at first, then lets others run, then sleeps. */
void mtf_host_window_pause(const MtfHostWindow *window, int spins);

/* Whether all have passed the stage that often; the other returns when they have. */
bool mtf_host_window_all_passed(const MtfHostWindow *window, const MtfWindowGroup *group,
                                MtfStage stage, uint64_t times);
void mtf_host_window_wait(const MtfHostWindow *window, const MtfWindowGroup *group, MtfStage stage,
                          uint64_t times);

#endif
