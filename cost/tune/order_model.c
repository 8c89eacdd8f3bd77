// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/order_model.h"

#include "layouts/graph/microbatches.h"
#include "layouts/program/lifetimes.h"

/* ---- The model ------------------------------------------------------------------------------- */

static bool is_variable(const MtfProgram *program, int buffer) {
    return mtf_program_buffer(program, mtf_program_storage(program, buffer))->persistent;
}

static void measure_values(MtfOrderModel *model, const MtfProgram *program) {
    for (int b = 0; b < model->n_values; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (mtf_buffer_is_on_host(program, b))
            continue;
        if (!is_variable(program, b))
            model->bytes[b] = mtf_buffer_aligned_bytes(buffer);
        else if (buffer->storage == b)
            model->always += mtf_buffer_aligned_bytes(buffer);
    }
    int loss = program->graph->loss;
    if (loss >= 0 && program->tensor_buffers[loss] >= 0)
        model->stays[program->tensor_buffers[loss]] = true;
}

static bool contains(const GArray *numbers, int from, int number) {
    for (int i = from; i < (int)numbers->len; i++)
        if (g_array_index(numbers, int, i) == number)
            return true;
    return false;
}

static void list_reads(const MtfProgram *program, int index, GArray *reads, GArray *takes) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    int from = (int)reads->len;
    for (int k = 0; k < instruction->n_inputs; k++) {
        int value = instruction->inputs[k];
        if (contains(reads, from, value))
            continue;
        g_array_append_val(reads, value);
        if (mtf_instruction_may_overwrite(program, index, k))
            g_array_append_val(takes, value);
    }
}

static void list_instruction(MtfOrderModel *model, const MtfProgram *program, int index,
                             GArray *reads, GArray *takes, GArray *writes) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    list_reads(program, index, reads, takes);
    g_array_append_vals(writes, instruction->outputs, (guint)instruction->n_outputs);
    if (instruction->scratch >= 0)
        model->scratch[index] =
            mtf_buffer_aligned_bytes(mtf_program_buffer(program, instruction->scratch));
    if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
        mtf_operation_accumulates(program->graph, instruction->operation))
        model->early[instruction->outputs[0]] = true;
    model->read_begins[index + 1] = (int)reads->len;
    model->take_begins[index + 1] = (int)takes->len;
    model->write_begins[index + 1] = (int)writes->len;
}

static int *numbers_of(GArray *numbers) {
    return (int *)(gpointer)g_array_free(numbers, FALSE);
}

MtfOrderModel *mtf_order_model_new(const MtfProgram *program) {
    MtfOrderModel *model = g_new0(MtfOrderModel, 1);
    gsize n = (gsize)mtf_program_length(program), values = program->buffers->len;
    *model = (MtfOrderModel){ .n = (int)n,
                              .n_values = (int)values,
                              .bytes = g_new0(int64_t, values + 1),
                              .stays = g_new0(bool, values + 1),
                              .early = g_new0(bool, values + 1),
                              .scratch = g_new0(int64_t, n + 1),
                              .read_begins = g_new0(int, n + 1),
                              .take_begins = g_new0(int, n + 1),
                              .write_begins = g_new0(int, n + 1),
                              .waits = mtf_dependences_new(program) };
    measure_values(model, program);
    GArray *reads = g_array_new(FALSE, FALSE, sizeof(int));
    GArray *takes = g_array_new(FALSE, FALSE, sizeof(int));
    GArray *writes = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < model->n; i++)
        list_instruction(model, program, i, reads, takes, writes);
    model->reads = numbers_of(reads);
    model->takes = numbers_of(takes);
    model->writes = numbers_of(writes);
    mtf_program_segments(program, model->ends);
    return model;
}

void mtf_order_model_free(MtfOrderModel *model) {
    if (model == NULL)
        return;
    void *owned[] = { model->bytes, model->stays,       model->early,  model->scratch,
                      model->reads, model->read_begins, model->writes, model->write_begins,
                      model->takes, model->take_begins };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    mtf_dependences_free(model->waits);
    g_free(model);
}

/* ---- Playing --------------------------------------------------------------------------------- */

MtfOrderReplay *mtf_order_replay_new(const MtfOrderModel *model) {
    MtfOrderReplay *replay = g_new0(MtfOrderReplay, 1);
    replay->before = g_new0(int64_t, (gsize)model->n + 1);
    replay->during = g_new0(int64_t, (gsize)model->n + 1);
    replay->last = g_new(int, (gsize)model->n_values + 1);
    return replay;
}

void mtf_order_replay_free(MtfOrderReplay *replay) {
    if (replay == NULL)
        return;
    g_free(replay->before);
    g_free(replay->during);
    g_free(replay->last);
    g_free(replay);
}

static void find_last_readers(const MtfOrderModel *model, const int *order,
                              MtfOrderReplay *replay) {
    for (int v = 0; v < model->n_values; v++)
        replay->last[v] = model->stays[v] ? model->n : -1;
    for (int p = 0; p < model->n; p++)
        for (int k = model->read_begins[order[p]]; k < model->read_begins[order[p] + 1]; k++)
            replay->last[model->reads[k]] = MAX(replay->last[model->reads[k]], p);
}

/* The value that the instruction in place p overwrites, or -1. */
static int overwritten(const MtfOrderModel *model, const MtfOrderReplay *replay, int i, int p) {
    for (int k = model->take_begins[i]; k < model->take_begins[i + 1]; k++)
        if (replay->last[model->takes[k]] == p)
            return model->takes[k];
    return -1;
}

/* Runs the instruction in place p: fills in `during`, returns the bytes live after it. */
static int64_t replay_instruction(const MtfOrderModel *model, MtfOrderReplay *replay, int i,
                                  int p) {
    int taken = overwritten(model, replay, i, p);
    int64_t live = replay->before[p], dead = 0;
    for (int k = model->write_begins[i]; k < model->write_begins[i + 1]; k++) {
        int value = model->writes[k];
        bool stands = model->early[value] || (taken >= 0 && k == model->write_begins[i]);
        live += stands ? 0 : model->bytes[value];
        dead += replay->last[value] < 0 ? model->bytes[value] : 0;
    }
    replay->during[p] = live + model->scratch[i];
    for (int k = model->read_begins[i]; k < model->read_begins[i + 1]; k++)
        if (replay->last[model->reads[k]] == p && model->reads[k] != taken)
            dead += model->bytes[model->reads[k]];
    return live - dead;
}

void mtf_order_replay(const MtfOrderModel *model, const int *order, MtfOrderReplay *replay) {
    int64_t live = model->always;
    for (int v = 0; v < model->n_values; v++)
        live += model->early[v] ? model->bytes[v] : 0;
    find_last_readers(model, order, replay);
    replay->peak = 0;
    for (int p = 0; p < model->n; p++) {
        replay->before[p] = live;
        live = replay_instruction(model, replay, order[p], p);
        if (replay->during[p] > replay->during[replay->peak])
            replay->peak = p;
    }
}
