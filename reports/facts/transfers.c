// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/transfers.h"

#include "layouts/layers/layers.h"

#include <string.h>

static void free_transfer(void *data) {
    MtfTransfer *transfer = data;
    g_free(transfer->collective);
    g_free(transfer->axes);
    g_free(transfer->tensor);
    g_free(transfer->operation);
    g_free(transfer);
}

static MtfTransfer *new_transfer(const MtfStepFacts *facts, const MtfInstruction *instruction) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfReshardOp *op = &instruction->reshard;
    MtfTransfer *transfer = g_new0(MtfTransfer, 1);
    transfer->instruction = instruction;
    transfer->collective = g_strconcat(mtf_reshard_row(op->kind)->name,
                                       op->reduction == MTF_REDUCE_MAX ? " max" : "", NULL);
    transfer->axes = mtf_mesh_mask_format(&facts->plan->layout->mesh, op->axes);
    const MtfTensor *moved = mtf_reshard_tensor(facts->program, instruction);
    const MtfOperation *reader = mtf_graph_operation(graph, instruction->operation);
    g_autofree char *tensor = mtf_layer_star(graph, moved->name, moved->layer);
    g_autofree char *others = instruction->n_inputs > 1
                                  ? g_strdup_printf(" and %d more", instruction->n_inputs - 1)
                                  : g_strdup("");
    transfer->tensor = g_strconcat(tensor, others, NULL);
    transfer->operation = mtf_layer_star(graph, reader->name, reader->layer);
    return transfer;
}

/* Names hold no line ends, so the key has one reading. */
static char *key_of(const MtfTransfer *transfer) {
    return g_strjoin("\n", transfer->collective, transfer->axes, transfer->tensor,
                     transfer->operation, NULL);
}

static MtfTransfer *transfer_like(GHashTable *by_key, GPtrArray *transfers, MtfTransfer *wanted) {
    char *key = key_of(wanted);
    MtfTransfer *known = g_hash_table_lookup(by_key, key);
    if (known != NULL) {
        g_free(key);
        free_transfer(wanted);
        return known;
    }
    g_hash_table_insert(by_key, key, wanted);
    g_ptr_array_add(transfers, wanted);
    return wanted;
}

static int compare_transfers(const void *left, const void *right) {
    const MtfTransfer *a = *(MtfTransfer *const *)left, *b = *(MtfTransfer *const *)right;
    if (a->nanoseconds != b->nanoseconds)
        return a->nanoseconds < b->nanoseconds ? 1 : -1;
    int order = strcmp(a->operation, b->operation);
    if (order == 0)
        order = strcmp(a->tensor, b->tensor);
    if (order == 0)
        order = strcmp(a->collective, b->collective);
    return order != 0 ? order : strcmp(a->axes, b->axes);
}

GPtrArray *mtf_transfers_new(const MtfStepFacts *facts) {
    GPtrArray *transfers = g_ptr_array_new_with_free_func(free_transfer);
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < facts->schedule->length; i++) {
        if (!mtf_step_facts_is_collective(facts, i))
            continue;
        const MtfInstruction *instruction = mtf_program_instruction(facts->program, i);
        MtfTransfer *transfer = transfer_like(by_key, transfers, new_transfer(facts, instruction));
        int times = mtf_program_times(facts->program, i);
        transfer->count += times;
        transfer->bytes += times * instruction->payload_bytes;
        transfer->nanoseconds += facts->schedule->ends[i] - facts->schedule->starts[i];
    }
    g_ptr_array_sort(transfers, compare_transfers);
    return transfers;
}
