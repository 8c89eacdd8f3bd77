// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/program_order.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/program/lifetimes.h"

/* ---- Dependences --------------------------------------------------------------------------- */

/* What has been done to a value, by instructions: a list of the readers since the last writer. */
typedef struct {
    int writer;      /* or -1 */
    int last_reader; /* index into Walk.readers, or -1 */
} Value;

typedef struct {
    int instruction, previous;
} Reader;

typedef struct {
    const MtfProgram *program;
    Value *values; /* one a buffer */
    GArray *readers;
    GArray *before;
} Walk;

/* Variables are written again; every other buffer is a value of its own, even where several use the
 * same bytes, since who shares bytes follows from the order. */
static Value *value_of(const Walk *walk, int buffer) {
    int storage = mtf_program_storage(walk->program, buffer);
    bool variable = mtf_program_buffer(walk->program, storage)->persistent ||
                    mtf_program_buffer(walk->program, storage)->carried;
    return &walk->values[variable ? storage : buffer];
}

static void wait_for(Walk *walk, int instruction) {
    if (instruction >= 0)
        g_array_append_val(walk->before, instruction);
}

static void note_read(Walk *walk, int buffer, int instruction) {
    Value *value = value_of(walk, buffer);
    Reader reader = { instruction, value->last_reader };
    wait_for(walk, value->writer);
    g_array_append_val(walk->readers, reader);
    value->last_reader = (int)walk->readers->len - 1;
}

static void note_write(Walk *walk, int buffer, int instruction) {
    Value *value = value_of(walk, buffer);
    wait_for(walk, value->writer);
    for (int r = value->last_reader; r >= 0;) {
        const Reader *reader = &g_array_index(walk->readers, Reader, r);
        if (reader->instruction != instruction)
            wait_for(walk, reader->instruction);
        r = reader->previous;
    }
    *value = (Value){ instruction, -1 };
}

MtfDependences *mtf_dependences_new(const MtfProgram *program) {
    int n = mtf_program_length(program), buffers = (int)program->buffers->len;
    MtfDependences *dependences = g_new0(MtfDependences, 1);
    dependences->n = n;
    dependences->begins = g_new0(int, (gsize)n + 1);
    Walk walk = { program, g_new(Value, (gsize)buffers + 1),
                  g_array_new(FALSE, FALSE, sizeof(Reader)),
                  g_array_new(FALSE, FALSE, sizeof(int)) };
    for (int b = 0; b < buffers; b++)
        walk.values[b] = (Value){ -1, -1 };
    for (int i = 0; i < n; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        for (int k = 0; k < instruction->n_inputs; k++)
            note_read(&walk, instruction->inputs[k], i);
        for (int k = 0; k < instruction->n_outputs; k++)
            note_write(&walk, instruction->outputs[k], i);
        dependences->begins[i + 1] = (int)walk.before->len;
    }
    dependences->before = (int *)(gpointer)g_array_free(walk.before, FALSE);
    g_array_unref(walk.readers);
    g_free(walk.values);
    return dependences;
}

void mtf_dependences_free(MtfDependences *dependences) {
    if (dependences == NULL)
        return;
    g_free(dependences->begins);
    g_free(dependences->before);
    g_free(dependences);
}

/* ---- Stretches ----------------------------------------------------------------------------- */

/* Whether it makes what another stage waits for. */
static bool makes_what_is_sent(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    for (int k = 0; k < instruction->n_outputs; k++) {
        int tensor = mtf_program_buffer(program, instruction->outputs[k])->tensor;
        if (tensor >= 0 && mtf_graph_tensor(program->graph, tensor)->is_sent &&
            mtf_graph_tensor(program->graph, tensor)->producer >= 0)
            return true;
    }
    return false;
}

/* Whether it is part of what is worked out for all gradients together, and no gradient. */
static bool is_of_all_gradients(const MtfProgram *program, int index) {
    const MtfGraph *graph = program->graph;
    int operation = mtf_program_instruction(program, index)->operation;
    const MtfOperation *op = operation >= 0 ? mtf_graph_operation(graph, operation) : NULL;
    return op != NULL && op->phase == MTF_PHASE_CLIP &&
           mtf_graph_gradient_of(graph, op->outputs[0]) < 0;
}

void mtf_program_segments(const MtfProgram *program, int ends[MTF_SEGMENTS]) {
    int n = mtf_program_length(program), forward = mtf_program_forward(program), loss = n;
    int asked = n;
    while (loss > 0 && !mtf_program_writes_loss(program, loss - 1))
        loss--;
    while (asked > program->n_repeated && !is_of_all_gradients(program, asked - 1) &&
           !makes_what_is_sent(program, asked - 1))
        asked--;
    int points[] = { forward, loss, program->weight_gradients, program->n_repeated, asked, n };
    for (int s = 0; s < MTF_SEGMENTS; s++) {
        int least = s;
        for (int i = s + 1; i < MTF_SEGMENTS; i++)
            if (points[i] < points[least])
                least = i;
        ends[s] = points[least];
        points[least] = points[s];
    }
}

/* ---- Orders -------------------------------------------------------------------------------- */

/* places[i]: where the order puts instruction i. */
static bool read_places(const int *order, int length, int *places, GError **error) {
    for (int i = 0; i < length; i++)
        places[i] = -1;
    for (int i = 0; i < length; i++) {
        if (order[i] < 0 || order[i] >= length)
            return mtf_input_error(error, "instruction %d is none of the program's %d", order[i],
                                   length);
        if (places[order[i]] >= 0)
            return mtf_input_error(error, "instruction %d stands twice in the order", order[i]);
        places[order[i]] = i;
    }
    return true;
}

/* Instructions of a loop stand where instructions of that loop stood. */
static bool check_loops(const MtfProgram *program, const int *places, GError **error) {
    for (int i = 0; i < mtf_program_length(program); i++)
        if (mtf_program_instruction(program, i)->loop !=
            mtf_program_instruction(program, places[i])->loop)
            return mtf_input_error(error, "the order takes instruction %d across the end of a loop",
                                   i);
    return true;
}

static bool check_stretches(const MtfProgram *program, const int *places, GError **error) {
    int ends[MTF_SEGMENTS];
    mtf_program_segments(program, ends);
    for (int s = 0, i = 0; s < MTF_SEGMENTS; s++)
        for (int begin = s > 0 ? ends[s - 1] : 0; i < ends[s]; i++)
            if (places[i] < begin || places[i] >= ends[s])
                return mtf_input_error(error,
                                       "the order takes instruction %d out of its part of the "
                                       "step, instructions %d to %d",
                                       i, begin, ends[s] - 1);
    return true;
}

bool mtf_order_check(const MtfProgram *program, const int *order, GError **error) {
    int length = mtf_program_length(program);
    g_autofree int *places = g_new(int, (gsize)length + 1);
    if (!read_places(order, length, places, error) || !check_stretches(program, places, error) ||
        !check_loops(program, places, error))
        return false;
    g_autoptr(MtfDependences) waits = mtf_dependences_new(program);
    for (int i = 0; i < length; i++)
        for (int k = waits->begins[i]; k < waits->begins[i + 1]; k++)
            if (places[waits->before[k]] > places[i])
                return mtf_input_error(error,
                                       "the order puts instruction %d before instruction %d, which "
                                       "it depends on",
                                       i, waits->before[k]);
    return true;
}

/* Moves what stands on the cycle of the order that place `begin` is on. */
static void move_cycle(MtfInstruction *instructions, const int *order, int begin, bool *moved) {
    MtfInstruction first = instructions[begin];
    int i = begin;
    for (; order[i] != begin; i = order[i]) {
        instructions[i] = instructions[order[i]];
        moved[i] = true;
    }
    instructions[i] = first;
    moved[i] = true;
}

void mtf_program_reorder(MtfProgram *program, const int *order) {
    int length = mtf_program_length(program);
    g_autofree bool *moved = g_new0(bool, (gsize)length + 1);
    for (int i = 0; i < length; i++)
        if (!moved[i] && order[i] != i)
            move_cycle((MtfInstruction *)(gpointer)program->instructions->data, order, i, moved);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

cJSON *mtf_order_to_json(const int *order, int length) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0, begin = 0; i < length; begin = i) {
        for (i++; i < length && order[i] == order[i - 1] + 1;)
            i++;
        cJSON *run = cJSON_CreateArray();
        cJSON_AddItemToArray(run, mtf_json_new_integer(order[begin]));
        cJSON_AddItemToArray(run, mtf_json_new_integer(i - begin));
        cJSON_AddItemToArray(list, run);
    }
    return list;
}

/* Adds a run's numbers to those read so far. */
static bool read_run(const MtfJson *where, int length, int *order, int *n, GError **error) {
    MtfJson child;
    int64_t run[2] = { 0 };
    int numbers = 0;
    if (!mtf_json_array(where, error))
        return false;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child), numbers++)
        if (numbers < 2 && !mtf_json_integer(&child, numbers, length, &run[numbers], error))
            return false;
    if (numbers != 2)
        return mtf_json_fail(where, error, "a run is a pair: the first instruction, and how many");
    if (run[1] > length - *n)
        return mtf_json_fail(where, error,
                             "with this run the order is longer than the program, "
                             "which has %d instructions",
                             length);
    for (int64_t i = 0; i < run[1]; i++)
        order[(*n)++] = (int)(run[0] + i);
    return true;
}

int *mtf_order_read(const MtfJson *where, int length, GError **error) {
    MtfJson child;
    int n = 0;
    if (!mtf_json_array(where, error))
        return NULL;
    g_autofree int *order = g_new(int, (gsize)length + 1);
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child))
        if (!read_run(&child, length, order, &n, error))
            return NULL;
    if (n != length) {
        mtf_json_fail(where, error, "the order has %d instructions, the program %d", n, length);
        return NULL;
    }
    return g_steal_pointer(&order);
}
