// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/lockstep.h"

#include "layouts/graph/loops.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>
#include <string.h>

MtfLockstep *mtf_lockstep_new(const MtfProgram *program, uint64_t seed, GError **error) {
    g_autoptr(MtfLockstep) lockstep = g_new0(MtfLockstep, 1);
    lockstep->n = mtf_mesh_size(&program->layout->mesh);
    lockstep->arena = mtf_arena_pack(program);
    lockstep->workers = g_new0(MtfWorker *, lockstep->n);
    lockstep->under_way = g_new0(bool, (gsize)mtf_program_length(program) + 1);
    for (int r = 0; r < lockstep->n; r++) {
        lockstep->workers[r] = mtf_worker_new(program, lockstep->arena, r, seed, error);
        if (lockstep->workers[r] == NULL)
            return NULL;
        lockstep->workers[r]->poison = true;
    }
    return g_steal_pointer(&lockstep);
}

void mtf_lockstep_free(MtfLockstep *lockstep) {
    if (lockstep == NULL)
        return;
    for (int r = 0; r < lockstep->n; r++)
        mtf_worker_free(lockstep->workers[r]);
    g_free(lockstep->workers);
    g_free(lockstep->under_way);
    mtf_arena_free(lockstep->arena);
    g_free(lockstep);
}

static MtfOperand vector(const MtfMove *move, void *data) {
    return (MtfOperand){ .data = data, .dtype = move->dtype };
}

/* to[i] = to[i] combined with from[i]. */
static void combine(const MtfMove *move, void *to, const void *from, int64_t count) {
    MtfOperand target = vector(move, to);
    MtfOperand source = vector(move, (void *)(guintptr)from);
    for (int64_t i = 0; i < count; i++) {
        double a = mtf_slice_get(&target, i);
        double b = mtf_slice_get(&source, i);
        double sum = move->dtype == MTF_F32 ? (double)((float)a + (float)b) : a + b;
        mtf_slice_set(&target, i, move->reduction == MTF_REDUCE_MAX ? fmax(a, b) : sum);
    }
}

static char *at(const MtfMove *move, char *base, int64_t element) {
    return base + element * mtf_dtype_bytes(move->dtype);
}

static void copy(const MtfMove *move, char *to, const char *from, int64_t count) {
    memmove(to, from, (size_t)(count * mtf_dtype_bytes(move->dtype)));
}

static void allreduce(MtfMove **members, int n) {
    for (int i = 1; i < n; i++)
        combine(members[0], members[0]->output, members[i]->output, members[0]->count);
    for (int i = 1; i < n; i++)
        copy(members[i], members[i]->output, members[0]->output, members[0]->count);
}

static void reduce_scatter(MtfMove **members, int n) {
    for (int j = 0; j < n; j++) {
        MtfMove *to = members[j];
        for (int i = 0; i < n; i++) {
            const char *term = at(to, members[i]->send.base, members[i]->send.offsets[j]);
            g_assert_cmpint(members[i]->send.counts[j], ==, to->receive.counts[0]);
            if (i == 0)
                copy(to, to->receive.base, term, to->receive.total);
            else
                combine(to, to->receive.base, term, to->receive.total);
        }
    }
}

/* What member i has for member j, wherever it puts it. */
static void deliver(MtfMove *from, int i, MtfMove *to, int j) {
    int place = from->kind == MTF_RESHARD_ALLGATHER ? 0 : j;
    g_assert_cmpint(from->send.counts[place], ==, to->receive.counts[i]);
    if (to->receive.counts[i] > 0)
        copy(to, at(to, to->receive.base, to->receive.offsets[i]),
             at(from, from->send.base, from->send.offsets[place]), to->receive.counts[i]);
}

static void exchange(MtfMove **members, int n) {
    if (members[0]->kind == MTF_RESHARD_ALLREDUCE)
        allreduce(members, n);
    else if (members[0]->kind == MTF_RESHARD_REDUCE_SCATTER)
        reduce_scatter(members, n);
    else
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                deliver(members[i], i, members[j], j);
}

static void exchange_groups(MtfLockstep *lockstep, int index) {
    const MtfMesh *mesh = &lockstep->workers[0]->program->layout->mesh;
    g_autofree MtfMove **members = g_new(MtfMove *, lockstep->n);
    for (int r = 0; r < lockstep->n; r++) {
        MtfMove *move = &lockstep->workers[r]->moves[index];
        if (move->position != 0)
            continue;
        for (int i = 0; i < move->n_members; i++) {
            int member = mtf_mesh_group_member(mesh, move->axes, r, i);
            members[i] = &lockstep->workers[member]->moves[index];
        }
        exchange(members, move->n_members);
    }
}

static void end_move(MtfLockstep *lockstep, int index) {
    lockstep->under_way[index] = false;
    if (mtf_reshard_row(lockstep->workers[0]->moves[index].kind)->collective)
        exchange_groups(lockstep, index);
    for (int r = 0; r < lockstep->n; r++)
        mtf_worker_end_move(lockstep->workers[r], index);
}

void mtf_lockstep_end_due(MtfLockstep *lockstep, int index) {
    for (int i = 0; lockstep->late && i < index; i++)
        if (lockstep->under_way[i] &&
            mtf_program_instruction(lockstep->workers[0]->program, i)->wait_before == index)
            end_move(lockstep, i);
}

void mtf_lockstep_instruction(MtfLockstep *lockstep, int index, int64_t step) {
    const MtfInstruction *instruction =
        mtf_program_instruction(lockstep->workers[0]->program, index);
    mtf_lockstep_end_due(lockstep, index);
    for (int r = 0; r < lockstep->n; r++) {
        if (instruction->kind == MTF_INSTRUCTION_RESHARD)
            mtf_worker_begin_move(lockstep->workers[r], index);
        else
            mtf_worker_run_kernel(lockstep->workers[r], index, step);
    }
    lockstep->under_way[index] = instruction->kind == MTF_INSTRUCTION_RESHARD;
    if (instruction->kind == MTF_INSTRUCTION_RESHARD &&
        !(lockstep->late && instruction->wait_before > 0))
        end_move(lockstep, index);
}

static void turn_to(MtfLockstep *lockstep, int microbatch, int64_t step) {
    for (int r = 0; r < lockstep->n; r++) {
        mtf_worker_set_microbatch(lockstep->workers[r], microbatch);
        if (microbatch > 0)
            mtf_data_fill_inputs(lockstep->data, lockstep->workers[r], step, NULL);
    }
}

/* Runs an instruction, or the fused group that begins there. Returns the next one. */
static int run_from(MtfLockstep *lockstep, int index, int64_t step) {
    int kernels = mtf_program_instruction(lockstep->workers[0]->program, index)->fused.kernels;
    if (kernels == 0) {
        mtf_lockstep_instruction(lockstep, index, step);
        return index + 1;
    }
    for (int i = index; i < index + kernels; i++)
        mtf_lockstep_end_due(lockstep, i);
    for (int r = 0; r < lockstep->n; r++)
        mtf_worker_run_fused(lockstep->workers[r], index, step, NULL);
    return index + kernels;
}

/* Instructions [from, to), those of a loop once an iteration. */
static void run_all(MtfLockstep *lockstep, int from, int to, int64_t step) {
    const MtfProgram *program = lockstep->workers[0]->program;
    for (int begin = from, end; begin < to; begin = end) {
        int loop = mtf_program_instruction(program, begin)->loop;
        int64_t count = mtf_loop_count(program->graph, loop);
        end = begin + 1;
        while (end < to && mtf_program_instruction(program, end)->loop == loop)
            end++;
        for (int64_t k = 0; k < count; k++) {
            for (int r = 0; r < lockstep->n; r++)
                lockstep->workers[r]->iteration = k;
            for (int i = begin; i < end;)
                i = run_from(lockstep, i, step);
            mtf_lockstep_end_due(lockstep, end);
        }
        for (int r = 0; r < lockstep->n; r++)
            lockstep->workers[r]->iteration = 0;
    }
}

void mtf_lockstep_step(MtfLockstep *lockstep, int64_t step) {
    const MtfProgram *program = lockstep->workers[0]->program;
    for (int k = 0; k < program->microbatches; k++) {
        turn_to(lockstep, k, step);
        run_all(lockstep, 0, program->n_repeated, step);
    }
    turn_to(lockstep, 0, step);
    run_all(lockstep, program->n_repeated, mtf_program_length(program), step);
}

double mtf_lockstep_scalar(const MtfLockstep *lockstep, int tensor) {
    const MtfProgram *program = lockstep->workers[0]->program;
    int buffer = program->tensor_buffers[tensor];
    const MtfPlacement *placement = &mtf_program_buffer(program, buffer)->placement;
    unsigned partial = mtf_placement_partial_axes(placement);
    double value = 0;
    for (int p = 0; p < mtf_mesh_group_size(&program->layout->mesh, partial); p++) {
        int member = mtf_mesh_group_member(&program->layout->mesh, partial, 0, p);
        double term = mtf_slice_get(&lockstep->workers[member]->operands[buffer], 0);
        bool maximum = placement->axis[g_bit_nth_lsf(partial, -1)] == MTF_PARTIAL_MAX;
        value = p == 0 ? term : maximum ? fmax(value, term) : value + term;
    }
    return value;
}
