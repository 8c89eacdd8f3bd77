// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/worker/worker.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/random.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/processor_clock.h"
#include "runtime/worker/fused_tiles.h"
#include "runtime/worker/slice_runs.h"

#include <stdlib.h>
#include <string.h>

#define POISON_BYTE 0xFF
#define PAGE 4096
#define INITIAL_VALUES 512 /* at a time */

static char *buffer_address(const MtfWorker *worker, int buffer) {
    const MtfArenaMemory *memory =
        mtf_buffer_is_on_host(worker->program, buffer) ? &worker->host : &worker->memory;
    return memory->base + worker->arena->offsets[buffer];
}

/* The slice that a buffer of a tensor holds. */
static MtfOperand make_operand(const MtfWorker *worker, int index) {
    const MtfGraph *graph = worker->program->graph;
    const MtfBuffer *buffer = mtf_program_buffer(worker->program, index);
    MtfOperand operand = { .data = buffer_address(worker, index) };
    if (buffer->tensor < 0)
        return operand;
    const MtfTensor *tensor = mtf_graph_tensor(graph, buffer->tensor);
    operand.dtype = tensor->dtype;
    operand.rank = tensor->shape.rank;
    for (int i = 0; i < operand.rank; i++) {
        int dim = tensor->shape.dims[i];
        MtfRange range = mtf_buffer_range(worker->program, buffer, dim, worker->rank);
        operand.dims[i] = dim;
        operand.size[i] = range.end - range.begin;
        operand.begin[i] = range.begin;
        operand.global[i] = mtf_graph_step_size(graph, dim);
    }
    return operand;
}

bool mtf_worker_peer_move(const MtfWorker *worker, int index, int peer, char *base, MtfMove *move,
                          GError **error) {
    MtfMoveBuffers buffers = { base, worker->arena->offsets };
    return mtf_move_init(move, worker->program, index, peer, &buffers, error);
}

/* Fills in a kernel call; its operands go to worker->arguments from *next on. */
static void prepare_call(MtfWorker *worker, int index, uint64_t seed, int *next) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    MtfOperand *inputs = &worker->arguments[*next];
    MtfOperand *outputs = inputs + instruction->n_inputs;
    for (int k = 0; k < instruction->n_inputs; k++)
        inputs[k] = worker->operands[instruction->inputs[k]];
    for (int k = 0; k < instruction->n_outputs; k++)
        outputs[k] = worker->operands[instruction->outputs[k]];
    *next += instruction->n_inputs + instruction->n_outputs;
    MtfKernelCall *call = &worker->calls[index];
    *call = (MtfKernelCall){ .graph = worker->program->graph,
                             .operation = mtf_graph_operation(worker->program->graph,
                                                              instruction->operation),
                             .inputs = inputs,
                             .outputs = outputs,
                             .part = instruction->part,
                             .columns = instruction->columns,
                             .seed = seed };
    if (instruction->scratch < 0)
        return;
    call->scratch = buffer_address(worker, instruction->scratch);
    call->scratch_bytes = mtf_program_buffer(worker->program, instruction->scratch)->bytes;
}

static bool prepare_instructions(MtfWorker *worker, uint64_t seed, GError **error) {
    int next = 0;
    for (int i = 0; i < mtf_program_length(worker->program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(worker->program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL) {
            prepare_call(worker, i, seed, &next);
            continue;
        }
        if (!mtf_worker_peer_move(worker, i, worker->rank, worker->memory.base, &worker->moves[i],
                                  error))
            return false;
    }
    return true;
}

/* Whether ranks exchange: they do in groups of more than one. */
static bool exchanges(const MtfProgram *program) {
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (mtf_instruction_is_collective(instruction) &&
            mtf_mesh_group_size(&program->layout->mesh, instruction->reshard.axes) > 1)
            return true;
    }
    return false;
}

/* Calls run one after another, so one workspace serves them all. Touching it now keeps the first
 * step from paying for its pages. */
static void prepare_kernels(MtfWorker *worker) {
    int n = mtf_program_length(worker->program);
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (worker->calls[i].operation != NULL) {
            /* MAX is a macro: what it is given is evaluated twice. */
            int64_t wanted = mtf_kernel_prepare(&worker->calls[i]);
            bytes = MAX(bytes, wanted);
        }
    if (bytes == 0)
        return;
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    worker->workspace = aligned_alloc(PAGE, (size_t)bytes);
    g_assert(worker->workspace != NULL);
    memset(worker->workspace, 0, (size_t)bytes);
    for (int i = 0; i < n; i++)
        worker->calls[i].workspace = worker->workspace;
}

/* Operands of kernels; steps have moves. */
static int count_arguments(const MtfProgram *program) {
    int arguments = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL)
            arguments += instruction->n_inputs + instruction->n_outputs;
    }
    return arguments;
}

MtfWorker *mtf_worker_new_at(const MtfProgram *program, const MtfArena *arena, int rank,
                             uint64_t seed, char *base, GError **error) {
    int length = mtf_program_length(program);
    int n_buffers = (int)program->buffers->len;
    g_autoptr(MtfWorker) worker = g_new0(MtfWorker, 1);
    worker->program = program;
    worker->arena = arena;
    worker->rank = rank;
    worker->poison = MTF_POISON_DEFAULT;
    worker->memory = (MtfArenaMemory){ .base = base, .bytes = arena->bytes, .file = -1 };
    if (arena->host_bytes > 0 &&
        !mtf_arena_memory_init(&worker->host, arena->host_bytes, false, error))
        return NULL;
    worker->operands = g_new(MtfOperand, n_buffers);
    for (int b = 0; b < n_buffers; b++)
        worker->operands[b] = make_operand(worker, b);
    worker->n_arguments = count_arguments(program);
    worker->arguments = g_new(MtfOperand, worker->n_arguments);
    worker->calls = g_new0(MtfKernelCall, length);
    worker->moves = g_new0(MtfMove, length);
    if (!prepare_instructions(worker, seed, error))
        return NULL;
    prepare_kernels(worker);
    return g_steal_pointer(&worker);
}

MtfWorker *mtf_worker_new(const MtfProgram *program, const MtfArena *arena, int rank, uint64_t seed,
                          GError **error) {
    MtfArenaMemory memory;
    bool shared = exchanges(program) || program->layout->execution.stage.in_flight > 0;
    if (!mtf_arena_memory_init(&memory, arena->bytes, shared, error))
        return NULL;
    MtfWorker *worker = mtf_worker_new_at(program, arena, rank, seed, memory.base, error);
    if (worker != NULL)
        worker->memory = memory;
    else
        mtf_arena_memory_clear(&memory);
    return worker;
}

void mtf_worker_free(MtfWorker *worker) {
    if (worker == NULL)
        return;
    for (int i = 0; worker->moves != NULL && i < mtf_program_length(worker->program); i++)
        mtf_move_clear(&worker->moves[i]);
    mtf_arena_memory_clear(&worker->memory);
    mtf_arena_memory_clear(&worker->host);
    g_free(worker->moves);
    for (int i = 0; worker->calls != NULL && i < mtf_program_length(worker->program); i++)
        mtf_kernel_release(&worker->calls[i]);
    free(worker->workspace);
    g_free(worker->calls);
    g_free(worker->operands);
    g_free(worker->arguments);
    g_free(worker);
}

/* Elements that follow one another in the slice from `position` on, and in the tensor from `index`
 * on. */
static void initialise_run(const MtfTensor *tensor, const MtfOperand *slice,
                           const MtfRandom *random, int64_t position, int64_t index, int64_t n) {
    double values[INITIAL_VALUES];
    for (int64_t at = 0; at < n; at += INITIAL_VALUES) {
        int64_t count = MIN(INITIAL_VALUES, n - at);
        mtf_random_initial_run(random, &tensor->init, index + at, count, values);
        for (int64_t i = 0; i < count; i++)
            mtf_slice_set(slice, position + at + i, values[i]);
    }
}

static void initialise_variable(MtfWorker *worker, int t, uint64_t seed) {
    const MtfTensor *tensor = mtf_graph_tensor(worker->program->graph, t);
    const MtfOperand *slice = mtf_worker_tensor(worker, t);
    MtfRandom random = mtf_random_initial_stream(seed, tensor->name);
    MtfShare share = mtf_share_kept(worker->program, t, worker->rank);
    MtfRuns runs = mtf_runs(&share, 0, INT64_MAX);
    while (mtf_runs_next(&runs))
        initialise_run(tensor, slice, &random, runs.position, runs.index, runs.count);
}

void mtf_worker_initialise(MtfWorker *worker, uint64_t seed) {
    const MtfGraph *graph = worker->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE)
            initialise_variable(worker, t, seed);
}

static void shift_batch(MtfOperand *operands, int n, int batch, int64_t examples) {
    for (int k = 0; k < n; k++)
        for (int i = 0; i < operands[k].rank; i++)
            if (operands[k].dims[i] == batch)
                operands[k].begin[i] += examples;
}

void mtf_worker_set_microbatch(MtfWorker *worker, int microbatch) {
    const MtfGraph *graph = worker->program->graph;
    if (microbatch == worker->microbatch)
        return;
    int batch = mtf_graph_batch(graph);
    int64_t examples = (microbatch - worker->microbatch) * mtf_graph_size(graph, batch);
    shift_batch(worker->operands, (int)worker->program->buffers->len, batch, examples);
    shift_batch(worker->arguments, worker->n_arguments, batch, examples);
    worker->microbatch = microbatch;
}

static void poison_buffer(const MtfWorker *worker, int buffer) {
    memset(buffer_address(worker, buffer), POISON_BYTE,
           (size_t)mtf_program_buffer(worker->program, buffer)->bytes);
}

/* Whether the instruction reads the storage that holds `buffer`. */
static bool reads_storage(const MtfWorker *worker, const MtfInstruction *instruction, int buffer) {
    int storage = mtf_program_buffer(worker->program, buffer)->storage;
    for (int k = 0; k < instruction->n_inputs; k++)
        if (mtf_program_buffer(worker->program, instruction->inputs[k])->storage == storage)
            return true;
    return false;
}

/* Makes what the instruction is about to write unfit for reading, unless it adds to it: a sum over
 * micro-batches, or a stack of iterations. */
static void poison_outputs(const MtfWorker *worker, const MtfInstruction *instruction) {
    bool adds = worker->microbatch > 0 && instruction->kind == MTF_INSTRUCTION_KERNEL &&
                mtf_operation_accumulates(worker->program->graph, instruction->operation);
    adds = adds || (worker->iteration > 0 && instruction->kind == MTF_INSTRUCTION_KERNEL &&
                    mtf_operation_loop_part(worker->program->graph, instruction->operation) ==
                        MTF_LOOP_STACKS);
    for (int k = 0; k < instruction->n_outputs && !adds; k++)
        if (!reads_storage(worker, instruction, instruction->outputs[k]))
            poison_buffer(worker, instruction->outputs[k]);
    if (instruction->scratch >= 0)
        poison_buffer(worker, instruction->scratch);
}

static void begin_kernel(MtfWorker *worker, int index, int64_t step) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    MtfKernelCall *call = &worker->calls[index];
    call->step = step;
    call->microbatch = worker->microbatch;
    call->element = mtf_loop_element(worker->program->graph, instruction->loop, worker->iteration);
    call->progress = worker->progress;
    if (worker->poison)
        poison_outputs(worker, instruction);
}

static void call_kernel(const MtfKernelCall *call) {
    mtf_kernel(call->operation->kind)(call);
}

void mtf_worker_run_kernel(MtfWorker *worker, int index, int64_t step) {
    begin_kernel(worker, index, step);
    call_kernel(&worker->calls[index]);
}

/* ---- Fused groups ---------------------------------------------------------------------------- */

/* The operands of a call, inputs first, which are the worker's own. */
static MtfOperand *operands_of(const MtfWorker *worker, int index) {
    return worker->arguments + (worker->calls[index].inputs - worker->arguments);
}

/* The buffer of operand `k` of an instruction. */
static int buffer_of(const MtfInstruction *instruction, int k) {
    return k < instruction->n_inputs ? instruction->inputs[k]
                                     : instruction->outputs[k - instruction->n_inputs];
}

/* Gives the call the tile's pieces of its operands; all of them where `cut` is NULL. */
static void cut_operands(MtfWorker *worker, int index, const MtfFusedTile *cut) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    MtfOperand *operands = operands_of(worker, index);
    for (int k = 0; k < instruction->n_inputs + instruction->n_outputs; k++) {
        const MtfOperand *whole = &worker->operands[buffer_of(instruction, k)];
        if (cut != NULL)
            mtf_tile_operand(cut, whole, &operands[k]);
        else
            operands[k] = *whole;
    }
    MtfKernelCall *call = &worker->calls[index];
    call->continues = cut != NULL && mtf_tile_continues(cut, &call->outputs[0]);
}

/* Local sizes of what is cut, which some operand of the first kernel has; false where one is 0. */
static bool find_sizes(const MtfWorker *worker, int index, int64_t *size) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    const MtfOperand *operands = operands_of(worker, index);
    for (int k = 0; k < instruction->n_inputs + instruction->n_outputs; k++)
        for (int i = 0; i < instruction->fused.n_dims; i++) {
            int place = mtf_operand_find(&operands[k], instruction->fused.dims[i]);
            if (place >= 0)
                size[i] = operands[k].size[place];
        }
    for (int i = 0; i < instruction->fused.n_dims; i++)
        if (size[i] == 0)
            return false;
    return true;
}

/* Runs the kernels of a group on one tile; on their whole slices where `cut` is NULL. */
static void run_tile(MtfWorker *worker, int index, const MtfFusedTile *cut, double *seconds) {
    int kernels = mtf_program_instruction(worker->program, index)->fused.kernels;
    double begin = seconds != NULL ? mtf_processor_seconds() : 0;
    for (int i = 0; i < kernels; i++) {
        cut_operands(worker, index + i, cut);
        call_kernel(&worker->calls[index + i]);
        if (seconds == NULL)
            continue;
        double end = mtf_processor_seconds();
        seconds[i] += end - begin;
        begin = end;
    }
}

void mtf_worker_run_fused(MtfWorker *worker, int index, int64_t step, double *seconds) {
    const MtfFusedGroup *fused = &mtf_program_instruction(worker->program, index)->fused;
    for (int i = index; i < index + fused->kernels; i++)
        begin_kernel(worker, i, step);
    int64_t size[MTF_MAX_RANK] = { 0 };
    if (!find_sizes(worker, index, size)) {
        run_tile(worker, index, NULL, seconds);
        return;
    }
    MtfFusedTile cut;
    mtf_tile_first(&cut, fused, size);
    do
        run_tile(worker, index, &cut, seconds);
    while (mtf_tile_next(&cut));
    for (int i = index; i < index + fused->kernels; i++)
        cut_operands(worker, i, NULL);
}

void mtf_worker_begin_move(MtfWorker *worker, int index) {
    if (worker->poison)
        poison_outputs(worker, mtf_program_instruction(worker->program, index));
    mtf_move_before(&worker->moves[index]);
}

void mtf_worker_end_move(MtfWorker *worker, int index) {
    mtf_move_after(&worker->moves[index]);
}

const MtfOperand *mtf_worker_tensor(const MtfWorker *worker, int tensor) {
    int buffer = worker->program->tensor_buffers[tensor];
    return buffer < 0 ? NULL : &worker->operands[buffer];
}
