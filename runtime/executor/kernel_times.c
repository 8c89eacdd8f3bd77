// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/kernel_times.h"

#include "layouts/base/command_line.h"

#include <inttypes.h>

/* Rows below this share of the whole are left out of the table. */
#define SMALLEST_SHARE 0.01

/* Entries while they are found: first one a kernel, then one a local step. */
#define KINDS (MTF_OPERATIONS + MTF_RESHARD_KINDS)

/* The kind of an instruction, or -1 for collectives. */
static int kind_of(const MtfProgram *program, const MtfInstruction *instruction) {
    if (instruction->kind == MTF_INSTRUCTION_KERNEL)
        return mtf_graph_operation(program->graph, instruction->operation)->kind;
    return mtf_reshard_row(instruction->reshard.kind)->collective
               ? -1
               : MTF_OPERATIONS + (int)instruction->reshard.kind;
}

static MtfKernelClass class_of(int kind) {
    return kind < MTF_OPERATIONS ? mtf_operation_row(kind)->kernel_class : MTF_CLASS_MOVE;
}

static const char *name_of(int kind) {
    return kind < MTF_OPERATIONS ? mtf_operation_row(kind)->name
                                 : mtf_reshard_row((MtfReshardKind)(kind - MTF_OPERATIONS))->name;
}

/* Fills entry_of with kinds, and `found` with what there is of each. */
static void count_kinds(MtfKernelTimes *times, const MtfProgram *program, MtfKernelTime *found) {
    for (int i = 0; i < times->n_instructions; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        int kind = kind_of(program, instruction);
        times->entry_of[i] = kind;
        if (kind < 0)
            continue;
        found[kind].name = name_of(kind);
        found[kind].kernel_class = class_of(kind);
        found[kind].calls += mtf_program_times(program, i);
        found[kind].flops += mtf_program_times(program, i) * instruction->flops;
    }
}

MtfKernelTimes *mtf_kernel_times_new(const MtfProgram *program) {
    MtfKernelTimes *times = g_new0(MtfKernelTimes, 1);
    MtfKernelTime found[KINDS] = { 0 };
    int entry_of_kind[KINDS];
    times->n_instructions = mtf_program_length(program);
    times->entry_of = g_new(int, times->n_instructions);
    times->entries = g_new0(MtfKernelTime, KINDS);
    count_kinds(times, program, found);
    for (int class = 0; class < MTF_CLASSES; class ++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (found[kind].calls == 0 || found[kind].kernel_class != (MtfKernelClass) class)
                continue;
            entry_of_kind[kind] = times->n_entries;
            times->entries[times->n_entries++] = found[kind];
        }
    for (int i = 0; i < times->n_instructions; i++)
        if (times->entry_of[i] >= 0)
            times->entry_of[i] = entry_of_kind[times->entry_of[i]];
    return times;
}

void mtf_kernel_times_free(MtfKernelTimes *times) {
    if (times == NULL)
        return;
    g_free(times->entries);
    g_free(times->entry_of);
    g_free(times);
}

void mtf_kernel_times_predict(MtfKernelTimes *times, const MtfProgram *program,
                              const MtfPricer *pricer) {
    for (int i = 0; i < times->n_instructions; i++)
        if (times->entry_of[i] >= 0)
            times->entries[times->entry_of[i]].predicted +=
                1e-9 * mtf_program_times(program, i) *
                (double)mtf_price_instruction(pricer, program, i);
}

void mtf_kernel_times_add(MtfKernelTimes *times, int instruction, double seconds) {
    if (times->entry_of[instruction] >= 0)
        times->entries[times->entry_of[instruction]].measured += seconds;
}

/* What was measured in the first step is forgotten when a second begins. */
void mtf_kernel_times_begin_step(MtfKernelTimes *times) {
    if (++times->begun != 2)
        return;
    times->ended = 0;
    for (int i = 0; i < times->n_entries; i++)
        times->entries[i].measured = 0;
}

void mtf_kernel_times_end_step(MtfKernelTimes *times) {
    times->ended++;
}

/* ---- Text ---------------------------------------------------------------------------------- */

static void append_row(GString *text, int indent, const MtfKernelTime *row, double whole,
                       int64_t steps) {
    double seconds = row->measured / (double)steps;
    g_autofree char *predicted =
        row->predicted > 0 ? mtf_seconds_format(row->predicted) : g_strdup("-");
    g_autofree char *measured = mtf_seconds_format(seconds);
    g_string_append_printf(text, "  %*s%-*s %6" PRId64 " %10s %10s %7.1f %%", indent, "",
                           24 - indent, row->name, row->calls, predicted, measured,
                           whole > 0 ? 100 * row->measured / whole : 0.0);
    if (row->kernel_class == MTF_CLASS_MATMUL && seconds > 0)
        g_string_append_printf(text, " %9.3g", row->flops / seconds);
    g_string_append_c(text, '\n');
}

/* Everything of one class, or of all with class < 0. */
static MtfKernelTime total(const MtfKernelTimes *times, int class) {
    MtfKernelTime sum = { 0 };
    for (int e = 0; e < times->n_entries; e++) {
        const MtfKernelTime *entry = &times->entries[e];
        if (class >= 0 && entry->kernel_class != (MtfKernelClass) class)
            continue;
        sum.calls += entry->calls;
        sum.flops += entry->flops;
        sum.predicted += entry->predicted;
        sum.measured += entry->measured;
    }
    return sum;
}

static void append_class(GString *text, const MtfKernelTimes *times, MtfKernelClass class,
                         double whole, int64_t steps) {
    MtfKernelTime sum = total(times, (int)class);
    if (sum.calls == 0)
        return;
    sum.name = mtf_kernel_class_name(class);
    sum.kernel_class = class;
    append_row(text, 0, &sum, whole, steps);
    for (int e = 0; e < times->n_entries; e++)
        if (times->entries[e].kernel_class == class &&
            times->entries[e].measured >= SMALLEST_SHARE * whole)
            append_row(text, 2, &times->entries[e], whole, steps);
}

char *mtf_kernel_times_format(const MtfKernelTimes *times) {
    int64_t steps = MAX(times->ended, 1);
    GString *text = g_string_new(NULL);
    MtfKernelTime all = total(times, -1);
    g_string_append_printf(text, "\n  %-24s %6s %21s %9s %9s\n", "operations", "calls",
                           "processor time a step", "share", "flop/s");
    g_string_append_printf(text, "  %-24s %6s %10s %10s\n", "", "", "plan", "run");
    for (int class = 0; class < MTF_CLASSES; class ++)
        append_class(text, times, (MtfKernelClass) class, all.measured, steps);
    all.name = "all";
    all.kernel_class = MTF_CLASSES;
    append_row(text, 0, &all, all.measured, steps);
    return g_string_free(text, FALSE);
}
