// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/overlap_windows.h"

#include "layouts/program/lifetimes.h"

static void add_owner(const MtfProgram *program, GPtrArray *owners, int buffer) {
    MtfBuffer *owner = mtf_program_buffer(program, mtf_program_buffer(program, buffer)->storage);
    if (!g_ptr_array_find(owners, owner, NULL))
        g_ptr_array_add(owners, owner);
}

/* The storages of a collective or host copy, MtfBuffer, each once. */
static GPtrArray *owners_of(const MtfProgram *program, const MtfInstruction *instruction) {
    GPtrArray *owners = g_ptr_array_new();
    for (int k = 0; k < instruction->n_inputs; k++) {
        add_owner(program, owners, instruction->inputs[k]);
        add_owner(program, owners, instruction->outputs[k]);
    }
    if (instruction->scratch >= 0)
        add_owner(program, owners, instruction->scratch);
    return owners;
}

/* Bytes that are not live at instruction `index` any more, but would be if the window reached it. */
static int64_t prolonged_bytes(const GPtrArray *owners, int index) {
    int64_t bytes = 0;
    for (guint k = 0; k < owners->len; k++) {
        const MtfBuffer *owner = owners->pdata[k];
        bool counts = owner->last < index && owner->memory != MTF_MEMORY_HOST;
        bytes += counts ? mtf_buffer_aligned_bytes(owner) : 0;
    }
    return bytes;
}

static void prolong(const GPtrArray *owners, int index) {
    for (guint k = 0; k < owners->len; k++) {
        MtfBuffer *owner = owners->pdata[k];
        owner->last = MAX(owner->last, index);
    }
}

/* Opens the window of collective or host copy `index` as far as `end`: up to the first instruction that touches
 * what it touches, that begins one of its kind too many, or whose live bytes, with the collective's
 * operands, would exceed `most`. */
static void open_overlap_window(MtfProgram *program, int index, int end, int64_t *live,
                                int64_t most) {
    MtfInstruction *collective = mtf_program_instruction(program, index);
    g_autoptr(GPtrArray) owners = owners_of(program, collective);
    MtfHostCopy copies = mtf_instruction_host_copy(program, index);
    int wait_before = index + 1;
    for (int begun = 0; wait_before < end; wait_before++) {
        const MtfInstruction *next = mtf_program_instruction(program, wait_before);
        begun += mtf_instruction_travels(program, wait_before) &&
                 mtf_instruction_host_copy(program, wait_before) == copies;
        if (begun == MTF_EXCHANGES_UNDER_WAY ||
            mtf_instruction_depends(program, collective, next) ||
            live[wait_before] + prolonged_bytes(owners, wait_before) > most)
            break;
        live[wait_before] += prolonged_bytes(owners, wait_before);
        prolong(owners, wait_before);
    }
    collective->wait_before = wait_before > index + 1 ? wait_before : 0;
}

void mtf_program_open_overlap_windows(MtfProgram *program) {
    int n = mtf_program_length(program);
    g_autofree int64_t *live = mtf_program_live(program);
    int64_t most = mtf_program_most_live(program);
    for (int i = 0; i < n; i++)
        if (mtf_instruction_travels(program, i))
            open_overlap_window(program, i, mtf_program_part_end(program, i), live, most);
}
