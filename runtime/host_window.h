// SPDX-License-Identifier: GPL-3.0-or-later
/* The arenas of the ranks of one host, each mapped by all of them, so that a rank can read what
 * another computed and write what another waits for without a call in between:
 *
 *     rank 0's addresses   [ arena 0 ]   [ arena 1 ]   [ arena 2 ]
 *     rank 1's             [ arena 0 ]   [ arena 1 ]   [ arena 2 ]
 *     …                         └──────── the same memory ────────┘
 *
 * Ranks of a group wait for each other through counters in the arenas' headers, one a set of mesh
 * axes: each rank counts its own arrivals and looks until the others have as many. */
#ifndef MTF_HOST_WINDOW_H
#define MTF_HOST_WINDOW_H

#include "layouts/mesh.h"
#include "runtime/arena_memory.h"

#include <mpi.h>

typedef struct MtfHostWindow MtfHostWindow;

/* Collective over `control`: maps the arenas of all ranks of this host, `own` being this rank's
 * (borrowed). All arenas have the same size. What cannot be mapped is left out. */
MtfHostWindow *mtf_host_window_new(MPI_Comm control, const MtfArenaMemory *own);
void mtf_host_window_free(MtfHostWindow *window);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfHostWindow, mtf_host_window_free)

/* Where the arena of `rank` begins, or NULL when it is not mapped here. */
char *mtf_host_window_base(const MtfHostWindow *window, int rank);

/* Collective over the `n` ranks in `members` (all mapped, this one among them), which differ in
 * `axes` only: returns when all have come. What each wrote before, all can read after. */
void mtf_host_window_wait(MtfHostWindow *window, const int *members, int n, unsigned axes);

#endif
