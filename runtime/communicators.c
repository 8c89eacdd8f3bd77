// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/communicators.h"

#include "runtime/mpi_check.h"

#include <stdio.h>

#define MAX_SETS (1 << MTF_MAX_MESH_AXES)

struct MtfCommunicators {
    MPI_Comm of_axes[MAX_SETS]; /* MPI_COMM_NULL where the program needs none */
};

static void make_ours(MPI_Comm communicator, const char *name) {
    mtf_mpi_require(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    mtf_mpi_require(MPI_Comm_set_name(communicator, name), "MPI_Comm_set_name");
}

MPI_Comm mtf_control_new(MPI_Comm world) {
    MPI_Comm control;
    mtf_mpi_require(MPI_Comm_dup(world, &control), "MPI_Comm_dup");
    make_ours(control, MTF_CONTROL_NAME);
    return control;
}

static MPI_Comm new_group(MPI_Comm control, const MtfMesh *mesh, unsigned axes) {
    int rank;
    MPI_Comm group;
    char name[MPI_MAX_OBJECT_NAME];
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_split(control, mtf_mesh_group_member(mesh, axes, rank, 0),
                                   mtf_mesh_group_position(mesh, axes, rank), &group),
                    "MPI_Comm_split");
    g_autofree char *axis_names = mtf_mesh_mask_format(mesh, axes);
    g_snprintf(name, sizeof name, MTF_AXES_NAME "%u (%s)", axes, axis_names);
    make_ours(group, name);
    return group;
}

MtfCommunicators *mtf_communicators_new(MPI_Comm control, const MtfProgram *program) {
    MtfCommunicators *communicators = g_new(MtfCommunicators, 1);
    bool used[MAX_SETS] = { false };
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_STEP &&
            mtf_step_is_collective(instruction->step.kind))
            used[instruction->step.axes] = true;
    }
    for (unsigned axes = 0; axes < MAX_SETS; axes++)
        communicators->of_axes[axes] =
            used[axes] ? new_group(control, &program->layout->mesh, axes) : MPI_COMM_NULL;
    return communicators;
}

void mtf_communicators_free(MtfCommunicators *communicators) {
    if (communicators == NULL)
        return;
    for (int axes = 0; axes < MAX_SETS; axes++)
        if (communicators->of_axes[axes] != MPI_COMM_NULL)
            mtf_mpi_require(MPI_Comm_free(&communicators->of_axes[axes]), "MPI_Comm_free");
    g_free(communicators);
}

MPI_Comm mtf_communicators_get(const MtfCommunicators *communicators, unsigned axes) {
    return communicators->of_axes[axes];
}
