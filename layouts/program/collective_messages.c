// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/collective_messages.h"

void mtf_exchange_shape_axes(const MtfMesh *mesh, unsigned axes, MtfExchangeShape *shape) {
    shape->n_axes = 0;
    shape->n_members = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        if ((axes >> a & 1) != 0 && mesh->axes[a].size > 1) {
            shape->sizes[shape->n_axes++] = mesh->axes[a].size;
            shape->n_members *= mesh->axes[a].size;
        }
}

/* Elements that `rank` holds of all tensors of the instruction, before or after it. */
static int64_t elements_of(const MtfProgram *program, const MtfInstruction *instruction, int rank,
                           bool after) {
    int64_t elements = 0;
    for (int k = 0; k < instruction->n_inputs; k++) {
        MtfReshardOp op = mtf_reshard_of_tensor(program, instruction, k);
        int tensor = mtf_program_buffer(program, instruction->inputs[k])->tensor;
        elements += mtf_local_elements(program->graph, &program->layout->mesh,
                                       &mtf_graph_tensor(program->graph, tensor)->shape,
                                       after ? &op.to : &op.from, rank);
    }
    return elements;
}

/* The shape of the instruction's group that `rank` belongs to; `blocks` has room for its members. */
static void shape_of(const MtfProgram *program, int index, int rank, int64_t *blocks,
                     MtfExchangeShape *shape) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfMesh *mesh = &program->layout->mesh;
    *shape = (MtfExchangeShape){ .kind = instruction->reshard.kind, .blocks = blocks };
    mtf_exchange_shape_axes(mesh, instruction->reshard.axes, shape);
    if (mtf_reshard_row(shape->kind)->in_place) {
        mtf_exchange_even_blocks(elements_of(program, instruction, rank, false), shape->n_members,
                                 blocks);
        return;
    }
    for (int i = 0; i < shape->n_members; i++)
        blocks[i] = elements_of(program, instruction,
                                mtf_mesh_group_member(mesh, instruction->reshard.axes, rank, i),
                                !mtf_reshard_row(shape->kind)->gathers);
}

/* One message of a whole vector must fit a call. */
bool mtf_instruction_takes_algorithm(const MtfProgram *program, int index,
                                     MtfExchangeAlgorithm algorithm) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (instruction->kind != MTF_INSTRUCTION_RESHARD ||
        !mtf_reshard_row(instruction->reshard.kind)->collective)
        return false;
    if (algorithm == MTF_EXCHANGE_DIRECT || algorithm == MTF_EXCHANGE_MPI)
        return true;
    if (instruction->reshard.column > 0)
        return false;
    MtfExchangeShape shape = { .kind = instruction->reshard.kind };
    mtf_exchange_shape_axes(&program->layout->mesh, instruction->reshard.axes, &shape);
    return mtf_instruction_calls(program, index) == 1 && mtf_exchange_applies(algorithm, &shape);
}

/* The messages of `rank` in one run of the instruction, between positions of its group: a GArray of
 * MtfExchangeMessage, or NULL where its algorithm is none of messages. */
static GArray *messages_of(const MtfProgram *program, int index, int rank) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (!mtf_instruction_takes_algorithm(program, index, instruction->algorithm))
        return NULL;
    const MtfMesh *mesh = &program->layout->mesh;
    unsigned axes = instruction->reshard.axes;
    g_autofree int64_t *blocks = g_new(int64_t, mtf_mesh_group_size(mesh, axes));
    MtfExchangeShape shape;
    shape_of(program, index, rank, blocks, &shape);
    return mtf_exchange_messages_new(instruction->algorithm, &shape,
                                     mtf_mesh_group_position(mesh, axes, rank));
}

int64_t mtf_instruction_sent_bytes(const MtfProgram *program, int index, int rank,
                                   int64_t *to_rank) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    GArray *messages = messages_of(program, index, rank);
    int64_t sent = 0;
    if (messages == NULL)
        return 0;
    int64_t size = mtf_dtype_bytes(mtf_reshard_tensor(program, instruction)->dtype);
    for (guint i = 0; i < messages->len; i++) {
        const MtfExchangeMessage *message = &g_array_index(messages, MtfExchangeMessage, i);
        if (!message->sends)
            continue;
        sent += message->count * size;
        if (to_rank != NULL)
            to_rank[mtf_mesh_group_member(&program->layout->mesh, instruction->reshard.axes, rank,
                                          message->peer)] += message->count * size;
    }
    g_array_unref(messages);
    return sent;
}
