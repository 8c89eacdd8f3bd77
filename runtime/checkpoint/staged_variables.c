// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/staged_variables.h"

#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

const MtfGraph *mtf_checkpointed_graph(const MtfCheckpointed *what) {
    return what->whole != NULL ? what->whole : what->worker->program->graph;
}

MtfCheckpointed mtf_checkpointed_part(const MtfCheckpointed *what, int part) {
    return (MtfCheckpointed){ .control = what->whole != NULL ? what->domain : what->control,
                              .worker = part == 0 ? what->worker : what->more[part - 1] };
}

/* The variable of a stage that a tensor of the whole graph is; -1 where another stage has it. */
static int own_variable(const MtfGraph *whole, const MtfGraph *stage, int tensor) {
    int own = tensor < 0 ? -1 : mtf_graph_find_tensor(stage, mtf_graph_tensor(whole, tensor)->name);
    return own >= 0 && mtf_graph_tensor(stage, own)->source == MTF_SOURCE_VARIABLE ? own : -1;
}

/* Free with g_free. */
static int *own_tensors(const MtfGraph *whole, const MtfGraph *stage, const int *tensors, int n) {
    int *own = g_new(int, n + 1);
    for (int i = 0; i < n; i++)
        own[i] = own_variable(whole, stage, tensors[i]);
    return own;
}

/* Unref it. */
static GArray *own_moves(const MtfGraph *whole, const MtfGraph *stage, const GArray *moves) {
    GArray *own = g_array_new(FALSE, FALSE, sizeof(MtfTensorMove));
    for (guint i = 0; i < moves->len; i++) {
        MtfTensorMove move = g_array_index(moves, MtfTensorMove, i);
        move.tensor = own_variable(whole, stage, move.tensor);
        if (move.tensor >= 0)
            g_array_append_val(own, move);
    }
    return own;
}

/* Moves the variables of one of the domain's stages; on the domain's first rank `*checksum` grows. */
static bool move_stage(const MtfCheckpointed *what, int part_number, const MtfTensorFile *data,
                       MtfTensorFileMove move, uint64_t *checksum, GError **error) {
    const MtfCheckpointed one = mtf_checkpointed_part(what, part_number);
    const MtfGraph *stage = one.worker->program->graph;
    g_autofree int *tensors = NULL, *targets = NULL;
    g_autoptr(GArray) moves = NULL;
    if (data->tensors != NULL)
        tensors = own_tensors(what->whole, stage, data->tensors, (int)data->file->tensors->len);
    else
        moves = own_moves(what->whole, stage, data->moves);
    if (data->targets != NULL)
        targets = own_tensors(what->whole, stage, data->targets, (int)data->file->tensors->len);
    MtfTensorFile part = *data;
    uint64_t sum = 0;
    int rank;
    part.worker = one.worker;
    part.tensors = tensors;
    part.targets = targets;
    part.moves = moves;
    part.control = what->domain;
    bool done = move(&part, &sum, error);
    mtf_mpi_require(MPI_Comm_rank(what->domain, &rank), "MPI_Comm_rank");
    *checksum += rank == 0 ? sum : 0;
    return done;
}

bool mtf_staged_variables_move(const MtfCheckpointed *what, const MtfTensorFile *data,
                               MtfTensorFileMove move, uint64_t *checksum, GError **error) {
    if (what->whole == NULL)
        return move(data, checksum, error);
    GError *local = NULL;
    uint64_t own = 0;
    bool done = true;
    for (int part = 0; done && part <= what->n_more; part++)
        done = move_stage(what, part, data, move, &own, &local);
    mtf_mpi_require(MPI_Allreduce(&own, checksum, 1, MPI_UINT64_T, MPI_SUM, what->control),
                    "MPI_Allreduce");
    return mtf_agree(what->control, local, error);
}
