// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/framework_memory.h"

#include "cost/price/software_price.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/operation_table.h"
#include "layouts/program/lifetimes.h"

#include <math.h>

/* Adam's two moments in float32, which programs keep a parameter; profiles add a copy of the weight to them. */
#define MOMENT_BYTES 8

/* ---- How long storages are kept ---------------------------------------------------------------- */

/* Of a storage: the one instruction that writes it (-1: none; SEVERAL), the first one that does, the last one that
 * finds it there, the last that reads or writes it, and the last of the forward pass that does; whether anything but a
 * map reads it behind that pass, and whether a layer's norm does in it. */
typedef struct {
    int maker, first, last, last_use, last_forward;
    bool needed, normed;
} Use;

#define SEVERAL (-2)

static bool is_map(const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_KERNEL &&
           instruction->kernel_class == MTF_CLASS_ELEMENTWISE;
}

/* Statistics of a layer's input, or of what stands between its parts. */
static bool is_norm(const MtfProgram *program, const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_KERNEL &&
           instruction->kernel_class == MTF_CLASS_REDUCTION &&
           mtf_graph_operation(program->graph, instruction->operation)->layer.block > 0;
}

static void note_uses(const MtfProgram *program, int i, int forward, Use *uses) {
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    for (int k = 0; k < instruction->n_inputs; k++) {
        Use *use = &uses[mtf_program_storage(program, instruction->inputs[k])];
        use->normed |= i < forward && is_norm(program, instruction);
        use->last_use = i;
        if (i < forward)
            use->last_forward = i;
        else
            use->needed |= !is_map(instruction);
    }
    for (int k = 0; k < instruction->n_outputs; k++) {
        Use *use = &uses[mtf_program_storage(program, instruction->outputs[k])];
        use->first = use->maker == -1 ? i : use->first;
        use->maker = use->maker == -1 ? i : SEVERAL;
        use->last_use = i;
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
            uses[b].last = uses[b].last_use = uses[b].last_forward;
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
    const int *copies; /* find_copies */
    int n;
    double *passing, *gradients;
    double throughout, left[MTF_LEFTS];
    bool layers_again; /* some layers run again whole */
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

static double elements_of(const MtfGraph *graph, const MtfBuffer *buffer) {
    return (double)buffer->bytes /
           (double)mtf_dtype_bytes(mtf_graph_tensor(graph, buffer->tensor)->dtype);
}

static bool comes_with_backward(const MtfProgram *program, const MtfSoftware *software) {
    return software->kept.comes_and_goes && program->microbatches == 1;
}

/* By variable the tensor that products read in its place where the framework keeps such copies, or -1. Free with
 * g_free. */
static int *find_copies(const MtfGraph *graph, const MtfSoftware *software) {
    int *copies = g_new(int, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        copies[t] = -1;
    for (int o = 0; software->narrow_weights && o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        if (op->phase == MTF_PHASE_FORWARD && mtf_operation_row(op->kind)->converts)
            copies[op->inputs[0]] = op->outputs[0];
    }
    return copies;
}

/* Elements of a variable that stand on a device: more of the copy, when the optimizer alone is in pieces. */
static double weight_elements(const Tally *tally, const MtfBuffer *variable) {
    const MtfProgram *program = tally->program;
    int copy = tally->copies[variable->tensor];
    int buffer = copy >= 0 ? program->tensor_buffers[copy] : -1;
    double elements = elements_of(program->graph, variable);
    return buffer < 0
               ? elements
               : fmax(elements, elements_of(program->graph, mtf_program_buffer(program, buffer)));
}

/* A weight as the profile keeps it, and its gradient: from when it is made, or throughout, as where those of several
 * micro-batches add up. */
static void add_weight(Tally *tally, const MtfBuffer *variable, int begin) {
    const MtfSoftware *software = tally->software;
    double elements = weight_elements(tally, variable);
    bool comes = comes_with_backward(tally->program, software);
    tally->throughout += elements * software->weight_bytes;
    add_from(tally->gradients, comes ? begin : 0, tally->n - 1,
             elements * software->gradient_bytes);
}

/* What is found there from one instruction to another: for a later pass, between which and this one others of other
 * micro-batches come where several are in flight, or within one. */
static void add_activation(Tally *tally, int first, int last, double bytes) {
    const MtfProgram *program = tally->program;
    int forward = mtf_program_forward(program);
    int weights = program->weight_gradients > 0 ? program->weight_gradients : program->n_repeated;
    bool waits = program->layout->execution.stage.in_flight > 1 && last < program->n_repeated;
    if (waits && first < forward && last >= forward)
        tally->left[last >= weights ? MTF_LEFT_FOR_WEIGHTS : MTF_LEFT_BY_FORWARD] += bytes;
    else if (waits && first < weights && last >= weights)
        tally->left[MTF_LEFT_BY_GRADIENT] += bytes;
    else
        add_from(tally->passing, first, last, bytes);
}

/* Bytes of dropout's masks, one an element, that the profile counts with its layers' norms, residuals and masks; the
 * other eight are the program's own. Layers that run again draw theirs again. */
static double mask_bytes(const Tally *tally, const Use *use, const MtfBuffer *buffer) {
    bool masked = use->normed && !tally->layers_again && buffer->tensor >= 0;
    double masks = fmax(tally->software->kept.layer - 8, 0) / 2;
    return masked ? masks * (double)buffer->bytes / 2 : 0;
}

/* Whether it is of one micro-batch: an activation, or what another stage sends. */
static bool is_of_microbatch(const MtfProgram *program, const MtfBuffer *buffer) {
    return !buffer->persistent || (buffer->slots > 1 && mtf_buffer_is_fed(program, buffer));
}

/* Whether it is there for the exchange of gradients and new weights alone, or for the optimizer: frameworks do these
 * where gradients and weights stand. */
static bool is_of_update(const MtfProgram *program, const MtfBuffer *buffer) {
    if (buffer->persistent || buffer->slots > 1 || buffer->first < 0)
        return false;
    const MtfInstruction *maker = mtf_program_instruction(program, buffer->first);
    const MtfOperation *op = mtf_graph_operation(program->graph, maker->operation);
    return op->phase > MTF_PHASE_BACKWARD;
}

static void add_storage(Tally *tally, const MtfBuffer *buffer, const Use *use) {
    double bytes = (double)mtf_buffer_aligned_bytes(buffer);
    const MtfGraph *graph = tally->program->graph;
    const MtfTensor *tensor = buffer->tensor >= 0 ? mtf_graph_tensor(graph, buffer->tensor) : NULL;
    bool weight = buffer->memory == MTF_MEMORY_VARIABLE;
    bool slots = buffer->slots > 1;
    void *begin;
    if (is_of_update(tally->program, buffer))
        return;
    if (is_of_microbatch(tally->program, buffer)) {
        if (buffer->memory != MTF_MEMORY_GRADIENT && !(weight && tally->software->narrow_weights))
            add_activation(tally, slots ? use->first : buffer->first,
                           slots ? use->last_use : MIN(use->last, tally->n - 1),
                           (double)mtf_buffer_stride(buffer) + mask_bytes(tally, use, buffer));
    } else if (buffer->memory == MTF_MEMORY_OPTIMIZER) {
        tally->throughout += bytes * tally->software->optimizer_bytes / MOMENT_BYTES;
    } else if (weight && g_hash_table_lookup_extended(tally->begins, tensor->name, NULL, &begin)) {
        add_weight(tally, buffer, GPOINTER_TO_INT(begin));
    } else {
        tally->throughout += bytes;
    }
}

/* ---- Scores -------------------------------------------------------------------------------------- */

/* Where attention is not fused its scores are kept for the backward pass, or made again in it: with the layer, or alone
 * (`attention_again`). */
static void add_scores(Tally *tally, const Use *uses, int i) {
    const MtfProgram *program = tally->program;
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    const MtfProductWork *work = &instruction->products;
    bool again = tally->layers_again || tally->software->attention_again > 0;
    MtfProductForm form = again ? MTF_PRODUCT_ATTENTION_GRAD : MTF_PRODUCT_ATTENTION;
    if (instruction->kind != MTF_INSTRUCTION_KERNEL || work->form != form ||
        !mtf_software_scores(tally->software,
                             mtf_graph_operation(program->graph, instruction->operation)))
        return;
    double scores = work->calls * work->m * fmax(work->m, work->n);
    int statistic = instruction->outputs[instruction->n_outputs - 1];
    int last = again ? i : uses[mtf_program_storage(program, statistic)].last_use;
    add_activation(tally, i, last, tally->software->kept.scores * scores);
}

static void add_storages(Tally *tally) {
    const MtfProgram *program = tally->program;
    g_autofree Use *uses = find_uses(program, tally->software);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->bytes > 0 && !mtf_buffer_is_on_host(program, b))
            add_storage(tally, buffer, &uses[b]);
    }
    for (int i = 0; i < tally->n; i++)
        add_scores(tally, uses, i);
}

static bool has_layers_again(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->origin == MTF_ORIGIN_CLONE)
            return true;
    return false;
}

/* What the allocator holds beside what it has given out. */
static void reserve(MtfFrameworkMemory *memory, double beside, const MtfSoftware *software) {
    memory->reserved = memory->given + beside;
    memory->device = memory->reserved + software->kept.context_bytes;
}

void mtf_framework_memory_give(MtfFrameworkMemory *memory, double given,
                               const MtfSoftware *software) {
    memory->given = given;
    reserve(memory, software->kept.slack * given, software);
}

MtfFrameworkMemory mtf_framework_memory(const MtfProgram *program, const MtfSoftware *software) {
    int n = MAX(mtf_program_length(program), 1);
    g_autofree double *passing = g_new0(double, n + 1), *gradients = g_new0(double, n + 1);
    g_autoptr(GHashTable) begins = find_gradients(program);
    g_autofree int *copies = find_copies(program->graph, software);
    Tally tally = { .program = program,
                    .software = software,
                    .begins = begins,
                    .copies = copies,
                    .n = n,
                    .passing = passing,
                    .gradients = gradients,
                    .layers_again = has_layers_again(program->graph) };
    add_storages(&tally);
    double live = 0, made = 0, most_live = 0, most_made = 0, most = 0, left = 0;
    for (int i = 0; i < n; i++) {
        most_live = fmax(most_live, live += passing[i]);
        most_made = fmax(most_made, made += gradients[i]);
        most = fmax(most, live + made);
    }
    MtfFrameworkMemory memory = { .standing = tally.throughout + most_made,
                                  .passing = most - most_made };
    for (int k = 0; k < MTF_LEFTS; k++)
        left += program->layout->execution.stage.in_flight * (memory.left[k] = tally.left[k]);
    mtf_framework_memory_give(&memory, memory.standing + memory.passing + left, software);
    if (comes_with_backward(program, software))
        reserve(&memory, software->kept.unfit * (most_live + most_made - most), software);
    return memory;
}

/* ---- In plans ------------------------------------------------------------------------------------ */

void mtf_framework_memory_add(cJSON *predicted, const MtfFrameworkMemory *memory) {
    mtf_json_add_number(predicted, "given_bytes", memory->given);
    mtf_json_add_number(predicted, "reserved_bytes", memory->reserved);
    mtf_json_add_number(predicted, "device_memory_bytes", memory->device);
    mtf_json_add_number(predicted, "standing_bytes", memory->standing);
    mtf_json_add_number(predicted, "passing_bytes", memory->passing);
    cJSON_AddItemToObject(predicted, "left_bytes",
                          cJSON_CreateDoubleArray(memory->left, MTF_LEFTS));
}

MtfFrameworkMemory mtf_framework_memory_of(const cJSON *predicted) {
    const cJSON *left = cJSON_GetObjectItemCaseSensitive(predicted, "left_bytes");
    MtfFrameworkMemory memory = {
        .given = mtf_json_number_of(predicted, "given_bytes", NAN),
        .reserved = mtf_json_number_of(predicted, "reserved_bytes", NAN),
        .device = mtf_json_number_of(predicted, "device_memory_bytes", NAN),
        .standing = mtf_json_number_of(predicted, "standing_bytes", NAN),
        .passing = mtf_json_number_of(predicted, "passing_bytes", NAN),
    };
    for (int k = 0; k < MTF_LEFTS; k++)
        memory.left[k] = cJSON_GetNumberValue(cJSON_GetArrayItem(left, k));
    return memory;
}
