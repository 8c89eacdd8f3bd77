// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/traffic.h"

#include "layouts/program/collective_messages.h"

/* The entry of a kind and axes, or NULL. */
static MtfTrafficEntry *find_entry(const MtfTraffic *traffic, MtfReshardKind kind, unsigned axes) {
    for (int i = 0; i < traffic->n_entries; i++)
        if (traffic->entries[i].kind == kind && traffic->entries[i].axes == axes)
            return &traffic->entries[i];
    return NULL;
}

static int compare_entries(gconstpointer left, gconstpointer right) {
    const MtfTrafficEntry *a = left;
    const MtfTrafficEntry *b = right;
    if (a->axes != b->axes)
        return a->axes < b->axes ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

/* The entries of the program, each once. */
static void collect_entries(MtfTraffic *traffic, const MtfProgram *program) {
    g_autoptr(GArray) entries = g_array_new(FALSE, TRUE, sizeof(MtfTrafficEntry));
    for (int i = 0; i < traffic->n_instructions; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        MtfTrafficEntry entry = { .kind = instruction->reshard.kind,
                                  .axes = instruction->reshard.axes };
        traffic->entries = (MtfTrafficEntry *)(void *)entries->data;
        traffic->n_entries = (int)entries->len;
        if (mtf_instruction_is_collective(instruction) &&
            find_entry(traffic, entry.kind, entry.axes) == NULL)
            g_array_append_val(entries, entry);
    }
    g_array_sort(entries, compare_entries);
    traffic->n_entries = (int)entries->len;
    traffic->entries = g_memdup2(entries->data, sizeof(MtfTrafficEntry) * entries->len);
}

MtfTraffic *mtf_traffic_new(const MtfProgram *program) {
    MtfTraffic *traffic = g_new0(MtfTraffic, 1);
    traffic->n_instructions = mtf_program_length(program);
    traffic->entry_of = g_new(int, traffic->n_instructions);
    collect_entries(traffic, program);
    for (int i = 0; i < traffic->n_instructions; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        const MtfReshardOp *op = &instruction->reshard;
        traffic->entry_of[i] =
            mtf_instruction_is_collective(instruction)
                ? (int)(find_entry(traffic, op->kind, op->axes) - traffic->entries)
                : -1;
    }
    return traffic;
}

void mtf_traffic_free(MtfTraffic *traffic) {
    if (traffic == NULL)
        return;
    g_free(traffic->entries);
    g_free(traffic->entry_of);
    g_free(traffic);
}

MtfTraffic *mtf_traffic_predict(const MtfProgram *program, int rank) {
    MtfTraffic *traffic = mtf_traffic_new(program);
    for (int i = 0; i < traffic->n_instructions; i++) {
        int times = mtf_program_times(program, i);
        traffic->host_bytes += times * mtf_instruction_host_bytes(program, i, rank);
        if (traffic->entry_of[i] < 0)
            continue;
        MtfTrafficEntry *entry = &traffic->entries[traffic->entry_of[i]];
        entry->calls += times * mtf_instruction_calls(program, i);
        entry->bytes += times * mtf_instruction_payload(program, i, rank);
        entry->sent += times * mtf_instruction_sent_bytes(program, i, rank, NULL);
    }
    return traffic;
}

void mtf_traffic_spare(MtfTraffic *counted, const MtfProgram *program, int rank,
                       const MtfRange *instructions, int64_t times) {
    counted->spared += times;
    for (int i = (int)instructions->begin; i < (int)instructions->end; i++) {
        if (counted->entry_of[i] < 0)
            continue;
        MtfTrafficEntry *entry = &counted->entries[counted->entry_of[i]];
        entry->spared_calls += times * mtf_instruction_calls(program, i);
        entry->spared_bytes += times * mtf_instruction_payload(program, i, rank);
    }
}
