// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/communicators.h"

#include "runtime/kernels/base/kernel_combine.h"
#include "runtime/support/mpi_check.h"

#define MAX_SETS (1 << MTF_MAX_MESH_AXES)

struct MtfCommunicators {
    MPI_Comm of_axes[MAX_SETS];            /* MPI_COMM_NULL where the program needs none */
    MPI_Op narrow_sum, maxima[MTF_DTYPES]; /* MPI_OP_NULL: MPI's own */
    MPI_Comm control;                      /* MPI_COMM_NULL where no loop has a condition */
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

/* inout[i] = in[i] combined with inout[i]. */
static void combine(void *in, void *inout, int count, MtfDtype dtype, MtfReduction reduction) {
    const char *terms[] = { inout, in };
    char *targets[] = { inout };
    mtf_combine(&(MtfCombination){ .dtype = dtype,
                                   .reduction = reduction,
                                   .n_terms = 2,
                                   .n_targets = 1,
                                   .terms = terms,
                                   .targets = targets },
                count);
}

/* What MPI calls for sums of bfloat16. */
static void narrow_sum(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    combine(in, inout, *count, MTF_BF16, MTF_REDUCE_SUM);
}

/* What MPI calls for maxima of floats. */
#define MAXIMUM(name, of)                                                     \
    static void name(void *in, void *inout, int *count, MPI_Datatype *type) { \
        (void)type;                                                           \
        combine(in, inout, *count, of, MTF_REDUCE_MAX);                       \
    }

MAXIMUM(maximum_f32, MTF_F32)
MAXIMUM(maximum_f64, MTF_F64)
MAXIMUM(maximum_bf16, MTF_BF16)

static MPI_User_function *const maxima[MTF_DTYPES] = {
    [MTF_F32] = maximum_f32, [MTF_F64] = maximum_f64, [MTF_BF16] = maximum_bf16
};

static bool has_condition(const MtfGraph *graph) {
    for (int l = 1; l <= (int)graph->loops->len; l++)
        if (mtf_loop_condition(graph, l) >= 0)
            return true;
    return false;
}

MtfCommunicators *mtf_communicators_new(MPI_Comm control, const MtfProgram *program) {
    MtfCommunicators *communicators = g_new(MtfCommunicators, 1);
    bool used[MAX_SETS] = { false };
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (mtf_instruction_is_collective(instruction))
            used[instruction->reshard.axes] = true;
    }
    for (unsigned axes = 0; axes < MAX_SETS; axes++)
        communicators->of_axes[axes] =
            used[axes] ? new_group(control, &program->layout->mesh, axes) : MPI_COMM_NULL;
    mtf_mpi_require(MPI_Op_create(narrow_sum, 1, &communicators->narrow_sum), "MPI_Op_create");
    for (int dtype = 0; dtype < MTF_DTYPES; dtype++) {
        communicators->maxima[dtype] = MPI_OP_NULL;
        if (maxima[dtype] != NULL)
            mtf_mpi_require(MPI_Op_create(maxima[dtype], 1, &communicators->maxima[dtype]),
                            "MPI_Op_create");
    }
    communicators->control =
        has_condition(program->graph) ? mtf_control_new(control) : MPI_COMM_NULL;
    return communicators;
}

void mtf_communicators_free(MtfCommunicators *communicators) {
    if (communicators == NULL)
        return;
    for (int axes = 0; axes < MAX_SETS; axes++)
        if (communicators->of_axes[axes] != MPI_COMM_NULL)
            mtf_mpi_require(MPI_Comm_free(&communicators->of_axes[axes]), "MPI_Comm_free");
    if (communicators->control != MPI_COMM_NULL)
        mtf_mpi_require(MPI_Comm_free(&communicators->control), "MPI_Comm_free");
    mtf_mpi_require(MPI_Op_free(&communicators->narrow_sum), "MPI_Op_free");
    for (int dtype = 0; dtype < MTF_DTYPES; dtype++)
        if (communicators->maxima[dtype] != MPI_OP_NULL)
            mtf_mpi_require(MPI_Op_free(&communicators->maxima[dtype]), "MPI_Op_free");
    g_free(communicators);
}

MPI_Datatype mtf_element_type(MtfDtype dtype) {
    switch (dtype) {
    case MTF_F32:
        return MPI_FLOAT;
    case MTF_F64:
        return MPI_DOUBLE;
    case MTF_BF16:
        return MPI_UINT16_T;
    case MTF_I8:
        return MPI_INT8_T;
    case MTF_I64:
        return MPI_INT64_T;
    case MTF_BOOL:
        return MPI_UINT8_T;
    default:
        return MPI_INT32_T;
    }
}

MPI_Op mtf_communicators_operation(const MtfCommunicators *communicators, MtfDtype dtype,
                                   MtfReduction reduction) {
    if (reduction == MTF_REDUCE_MAX && communicators->maxima[dtype] != MPI_OP_NULL)
        return communicators->maxima[dtype];
    if (dtype == MTF_BF16)
        return communicators->narrow_sum;
    return reduction == MTF_REDUCE_MAX || dtype == MTF_BOOL ? MPI_MAX : MPI_SUM;
}

bool mtf_communicators_any(const MtfCommunicators *communicators, bool here) {
    int any = here;
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, communicators->control),
                    "MPI_Allreduce");
    return any;
}

MPI_Comm mtf_communicators_get(const MtfCommunicators *communicators, unsigned axes) {
    return communicators->of_axes[axes];
}
