// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/kernel_times.h"

#include "layouts/base/command_line.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>

/* Rows below this share of the whole are left out of the table. */
#define SMALLEST_SHARE 0.01

/* Entries: first one an operation of the table, then one a local step. */
#define KINDS (MTF_OPERATIONS + MTF_RESHARD_KINDS)

/* What is added up of an entry. */
#define NUMBERS 4

/* The kind of an instruction, or -1 for collectives. */
static int kind_of(const MtfProgram *program, const MtfInstruction *instruction) {
    if (instruction->kind == MTF_INSTRUCTION_KERNEL)
        return mtf_graph_operation(program->graph, instruction->operation)->kind;
    return mtf_reshard_row(instruction->reshard.kind)->collective
               ? -1
               : MTF_OPERATIONS + (int)instruction->reshard.kind;
}

static MtfKernelTime entry_of_kind(int kind) {
    bool moves = kind >= MTF_OPERATIONS;
    return (MtfKernelTime){
        .name = moves ? mtf_reshard_row((MtfReshardKind)(kind - MTF_OPERATIONS))->name
                      : mtf_operation_row(kind)->name,
        .kernel_class = moves ? MTF_CLASS_MOVE : mtf_operation_row(kind)->kernel_class,
    };
}

/* Of no program, so without calls. */
static MtfKernelTimes *times_new(int n_instructions) {
    MtfKernelTimes *times = g_new0(MtfKernelTimes, 1);
    times->n_instructions = n_instructions;
    times->entry_of = g_new(int, n_instructions);
    times->n_entries = KINDS;
    times->entries = g_new(MtfKernelTime, KINDS);
    for (int kind = 0; kind < KINDS; kind++)
        times->entries[kind] = entry_of_kind(kind);
    return times;
}

MtfKernelTimes *mtf_kernel_times_new(const MtfProgram *program) {
    MtfKernelTimes *times = times_new(mtf_program_length(program));
    for (int i = 0; i < times->n_instructions; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        int kind = times->entry_of[i] = kind_of(program, instruction);
        if (kind < 0)
            continue;
        times->entries[kind].calls += mtf_program_times(program, i);
        times->entries[kind].flops += mtf_program_times(program, i) * instruction->flops;
    }
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

/* ---- Of several programs ------------------------------------------------------------------- */

static void add_entry(double *sums, const MtfKernelTime *entry) {
    sums[0] += (double)entry->calls;
    sums[1] += entry->flops;
    sums[2] += entry->predicted;
    sums[3] += entry->measured;
}

MtfKernelTimes *mtf_kernel_times_gather(MtfKernelTimes *const *times, int n, MPI_Comm control) {
    MtfKernelTimes *all = times_new(0);
    g_autofree double *sums = g_new0(double, KINDS *NUMBERS);
    double ended = 0;
    for (int t = 0; t < n; t++) {
        ended = (double)times[t]->ended;
        for (int kind = 0; kind < KINDS; kind++)
            add_entry(sums + NUMBERS * kind, &times[t]->entries[kind]);
    }
    mtf_agree_sums(control, sums, KINDS * NUMBERS);
    for (int kind = 0; kind < KINDS; kind++) {
        const double *sum = sums + NUMBERS * kind;
        all->entries[kind].calls = (int64_t)sum[0];
        all->entries[kind].flops = sum[1];
        all->entries[kind].predicted = sum[2];
        all->entries[kind].measured = sum[3];
    }
    all->ended = (int64_t)mtf_agree_largest(control, ended);
    return all;
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

void mtf_kernel_times_append_part(GString *text, const char *name, const MtfKernelTimes *part,
                                  const MtfKernelTimes *whole) {
    MtfKernelTime sum = total(part, -1);
    sum.name = name;
    sum.kernel_class = MTF_CLASSES;
    append_row(text, 0, &sum, total(whole, -1).measured, MAX(whole->ended, 1));
}

char *mtf_kernel_times_format(const MtfKernelTimes *times) {
    int64_t steps = MAX(times->ended, 1);
    GString *text = g_string_new(NULL);
    double all = total(times, -1).measured;
    g_string_append_printf(text, "\n  %-24s %6s %21s %9s %9s\n", "operations", "calls",
                           "processor time a step", "share", "flop/s");
    g_string_append_printf(text, "  %-24s %6s %10s %10s\n", "", "", "plan", "run");
    for (int class = 0; class < MTF_CLASSES; class ++)
        append_class(text, times, (MtfKernelClass) class, all, steps);
    mtf_kernel_times_append_part(text, "all", times, times);
    return g_string_free(text, FALSE);
}
