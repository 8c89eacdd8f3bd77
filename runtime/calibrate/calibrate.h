// SPDX-License-Identifier: GPL-3.0-or-later
/* `meshtf-run --calibrate`: measures this machine with the code that training runs, and writes it
 * down as a machine file like any other.
 *
 *     kernels       every operation, products, copies: on all ranks at once
 *     collectives   every kind, in groups of every size that divides the ranks
 *
 * Ranks that share cores take turns: kernels are timed by processor time and their tables stretched
 * by ranks / cores, and the file's "sources" say so. */
#ifndef MTF_CALIBRATE_H
#define MTF_CALIBRATE_H

#include <glib.h>
#include <mpi.h>
#include <stdbool.h>

/* Collective over `control`: measures, and rank 0 writes the machine to `path` ("-": standard
 * output) and says on standard error what it does. Kernels are measured in `rounds` of about 12 s, at least 1:
 * each counts as its first quarter. */
bool mtf_calibrate(MPI_Comm control, int64_t rounds, const char *path, GError **error);

#endif
