// SPDX-License-Identifier: GPL-3.0-or-later
/* Where ranks of a plan start, for those that start them: the device of each, and how many devices make a
 * node. On a torus each device is a node; behind switches the innermost switch is one. */
#ifndef MTF_RANK_PLACES_H
#define MTF_RANK_PLACES_H

#include "reports/facts/step_facts.h"

typedef struct {
    const char *name;  /* the graph's; borrowed */
    int64_t node_size; /* devices */
    GArray *devices;   /* int64_t, one a rank, as the machine counts them: row-major */
} MtfRankPlaces;

/* Nodes as the network has them, and no rank yet. Clear after use. */
void mtf_rank_places_init(MtfRankPlaces *places, const char *name, const MtfNetwork *network);
void mtf_rank_places_clear(MtfRankPlaces *places);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MtfRankPlaces, mtf_rank_places_clear)

/* Adds the ranks of a mapping, on the devices from `first` on. */
void mtf_rank_places_add(MtfRankPlaces *places, const MtfMapping *mapping, int64_t first);

/* An Open MPI rankfile (mpirun -rf FILE):
 *
 *     rank 0=node1 slot=0
 *     rank 1=node3 slot=0
 *
 * `hosts` names the nodes, "a,b,c", in the order in which the machine counts its devices; NULL: they are meant by
 * their place in the allocation, "+n0", which Open MPI knows under a resource manager alone. Free with g_free;
 * fails with bad input where names are missing or are no words. */
char *mtf_rank_places_rankfile(const MtfRankPlaces *places, const char *hosts, GError **error);

/* A batch script for Slurm that starts the ranks there, has them write a checkpoint before the time limit, and
 * requeues itself until the run is done:
 *
 *     sbatch job.sh plan.json --data text --steps 10000
 *
 * Slurm sends SIGUSR1 to the script some minutes before the limit, which becomes SIGUSR2 for the ranks;
 * meshtf-run then writes its checkpoint and ends with status 75. Free with g_free. */
char *mtf_rank_places_slurm(const MtfRankPlaces *places);

#endif
