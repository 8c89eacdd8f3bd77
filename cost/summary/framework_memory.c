// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/framework_memory.h"

#include "layouts/graph/operation_table.h"
#include "layouts/program/lifetimes.h"

#include <math.h>

/* Adam's two moments in float32, which programs keep a parameter; profiles add a copy of the weight to them. */
#define MOMENT_BYTES 8

/* ---- How long storages are kept ---------------------------------------------------------------- */

/* Of a storage: the one instruction that writes it (-1: none; SEVERAL), the last one that finds it there, the last of
 * the forward pass that does, and whether anything but a map reads it behind that pass. */
typedef struct {
    int maker, last, last_forward;
    bool needed;
} Use;

#define SEVERAL (-2)

static bool is_map(const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_KERNEL &&
           instruction->kernel_class == MTF_CLASS_ELEMENTWISE;
}

static void note_uses(const MtfProgram *program, int i, int forward, Use *uses) {
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    for (int k = 0; k < instruction->n_inputs; k++) {
        Use *use = &uses[mtf_program_storage(program, instruction->inputs[k])];
        if (i < forward)
            use->last_forward = i;
        else
            use->needed |= !is_map(instruction);
    }
    for (int k = 0; k < instruction->n_outputs; k++) {
        Use *use = &uses[mtf_program_storage(program, instruction->outputs[k])];
        use->maker = use->maker == -1 ? i : SEVERAL;
        use->last_forward = MAX(use->last_forward, MIN(i, forward));
    }
}

/* Whether the storage is of a map in the forward pass that may be made again where it is read last, by maps, since all
 * that it is made of is there. */
static bool is_made_again(const MtfProgram *program, const Use *uses, int b, int forward) {
    const Use *use = &uses[b];
    if (use->maker < 0 || use->maker >= forward || use->needed)
        return false;
    const MtfInstruction *maker = mtf_program_instruction(program, use->maker);
    bool stays = is_map(maker);
    for (int k = 0; stays && k < maker->n_inputs; k++) {
        int input = mtf_program_storage(program, maker->inputs[k]);
        stays = mtf_program_buffer(program, input)->persistent || uses[input].last >= use->last;
    }
    return stays;
}

/* Whether it is what attention gave to a layer that the framework runs again whole, where the program keeps it. */
static bool is_run_again(const MtfProgram *program, const Use *use, const MtfSoftware *software) {
    if (use->maker < 0 || software->redone[MTF_REDO_FULL][MTF_PART_ATTENTION] == 0)
        return false;
    const MtfInstruction *maker = mtf_program_instruction(program, use->maker);
    return maker->kind == MTF_INSTRUCTION_KERNEL && maker->products.form == MTF_PRODUCT_ATTENTION &&
           mtf_graph_operation(program->graph, maker->operation)->near_redone;
}

/* Of each storage. Compilers make maps again in the kernels that read them; what a product reads has to stand in
 * memory and is kept (PyTorch: torch/_functorch/partitioners.py, ban_recompute_materialized_backward). */
static Use *find_uses(const MtfProgram *program, const MtfSoftware *software) {
    int n = (int)program->buffers->len, forward = mtf_program_forward(program);
    Use *uses = g_new0(Use, n);
    for (int b = 0; b < n; b++)
        uses[b] = (Use){ .maker = -1, .last = mtf_program_buffer(program, b)->last };
    for (int i = 0; i < mtf_program_length(program); i++)
        note_uses(program, i, forward, uses);
    for (int b = 0; b < n; b++)
        if ((!software->eager && is_made_again(program, uses, b, forward)) ||
            is_run_again(program, &uses[b], software))
            uses[b].last = uses[b].last_forward;
    return uses;
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

/* Bytes throughout; and what is more, or less, from each of n + 1 instructions on than at the one before: of gradients,
 * and of all else that comes and goes. */
typedef struct {
    const MtfProgram *program;
    const MtfSoftware *software;
    GHashTable
        *begins; /* name of a variable -> the first instruction that makes part of its gradient */
    int n;
    double *passing, *gradients;
    double throughout;
} Tally;

static void add_from(double *change, int first, int last, double bytes) {
    change[MAX(first, 0)] += bytes;
    change[last + 1] -= bytes;
}

static GHashTable *find_gradients(const MtfProgram *program) {
    GHashTable *begins = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = mtf_program_length(program) - 1; i >= 0; i--) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
        if (op->origin == MTF_ORIGIN_GRADIENT && op->of != NULL)
            g_hash_table_insert(begins, op->of, GINT_TO_POINTER(i));
    }
    return begins;
}

/* A weight as the profile keeps it, and its gradient, from when it is made or throughout. */
static void add_weight(Tally *tally, double elements, int begin) {
    const MtfSoftware *software = tally->software;
    tally->throughout += elements * software->weight_bytes;
    add_from(tally->gradients, software->kept.comes_and_goes ? begin : 0, tally->n - 1,
             elements * software->gradient_bytes);
}

static void add_storage(Tally *tally, const MtfBuffer *buffer, int last) {
    double bytes = (double)mtf_buffer_aligned_bytes(buffer);
    const MtfGraph *graph = tally->program->graph;
    const MtfTensor *tensor = buffer->tensor >= 0 ? mtf_graph_tensor(graph, buffer->tensor) : NULL;
    bool weight = buffer->memory == MTF_MEMORY_VARIABLE;
    void *begin;
    if (!buffer->persistent) {
        if (buffer->memory != MTF_MEMORY_GRADIENT && !(weight && tally->software->narrow_weights))
            add_from(tally->passing, buffer->first, last, bytes);
    } else if (buffer->memory == MTF_MEMORY_OPTIMIZER) {
        tally->throughout += bytes * tally->software->optimizer_bytes / MOMENT_BYTES;
    } else if (weight && g_hash_table_lookup_extended(tally->begins, tensor->name, NULL, &begin)) {
        add_weight(tally, bytes / (double)mtf_dtype_bytes(tensor->dtype), GPOINTER_TO_INT(begin));
    } else {
        tally->throughout += bytes;
    }
}

static void add_storages(Tally *tally) {
    const MtfProgram *program = tally->program;
    g_autofree Use *uses = find_uses(program, tally->software);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->bytes > 0 && !mtf_buffer_is_on_host(program, b))
            add_storage(tally, buffer, MIN(uses[b].last, tally->n - 1));
    }
}

MtfFrameworkMemory mtf_framework_memory(const MtfProgram *program, const MtfSoftware *software) {
    int n = MAX(mtf_program_length(program), 1);
    g_autofree double *passing = g_new0(double, n + 1), *gradients = g_new0(double, n + 1);
    g_autoptr(GHashTable) begins = find_gradients(program);
    Tally tally = { program, software, begins, n, passing, gradients, 0 };
    add_storages(&tally);
    double live = 0, made = 0, most_live = 0, most_made = 0, most = 0;
    for (int i = 0; i < n; i++) {
        most_live = fmax(most_live, live += passing[i]);
        most_made = fmax(most_made, made += gradients[i]);
        most = fmax(most, live + made);
    }
    MtfFrameworkMemory memory = { .given = tally.throughout + most };
    double beside = software->kept.comes_and_goes
                        ? software->kept.unfit * (most_live + most_made - most)
                        : software->kept.slack * memory.given;
    memory.reserved = memory.given + beside;
    memory.device = memory.reserved + software->kept.context_bytes;
    return memory;
}
