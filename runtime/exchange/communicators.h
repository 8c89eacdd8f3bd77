// SPDX-License-Identifier: GPL-3.0-or-later
/* The communicators of a run, all of them the run's own:
 *
 *     "meshtf control"               every rank; agreement, digests, verdicts: never tensor data
 *     "meshtf axes 2 (cols)"         the ranks that differ only in `cols`; one for each set of mesh
 *     "meshtf axes 3 (rows,cols)"    axes that some collective of the program uses
 *
 * The number is the set's bit mask (mesh.h). Ranks of a communicator stand in row-major order of
 * the mesh, as mtf_mesh_group_position counts them. */
#ifndef MTF_COMMUNICATORS_H
#define MTF_COMMUNICATORS_H

#include "layouts/program/program.h"

#include <mpi.h>

#define MTF_CONTROL_NAME "meshtf control"
#define MTF_AXES_NAME "meshtf axes "

/* Collective over `world`: its duplicate for control traffic. Free with MPI_Comm_free. */
MPI_Comm mtf_control_new(MPI_Comm world);

typedef struct MtfCommunicators MtfCommunicators;

/* Collective over `control`, which has one rank a processor of the program's mesh, rank r being
 * processor r. */
MtfCommunicators *mtf_communicators_new(MPI_Comm control, const MtfProgram *program);

/* Collective. */
void mtf_communicators_free(MtfCommunicators *communicators);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCommunicators, mtf_communicators_free)

/* Elements of that type in messages; MPI has no bfloat16: a message holds its bits. */
MPI_Datatype mtf_element_type(MtfDtype dtype);

/* How elements of that type are reduced: MPI's own operation, or ours. MPI has no bfloat16: each addition is made in
 * float32 and rounded. And its maximum of what is no number depends on the order (x > y ? x : y). */
MPI_Op mtf_communicators_operation(const MtfCommunicators *communicators, MtfDtype dtype,
                                   MtfReduction reduction);

/* Collective over the program's ranks: whether it is so on any of them. Of programs with a loop that has a
 * condition alone. */
bool mtf_communicators_any(const MtfCommunicators *communicators, bool here);

/* The communicator of this rank's group of `axes`, a set that the program uses. */
MPI_Comm mtf_communicators_get(const MtfCommunicators *communicators, unsigned axes);

#endif
