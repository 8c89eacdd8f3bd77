// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/plan_file/plan.h"
#include "runtime/executor/kernel_times.h"
#include "runtime/support/processor_clock.h"
#include "tests/support/cases/training_plan.h"

#include <string.h>

static MtfPlan *plan;
static MtfProgram *program;

static int set_up(void **state) {
    (void)state;
    MtfTrainingPlan wanted = { .graph = "transformer-small",
                               .sizes = MTF_TINY_TRANSFORMER,
                               .mesh = "rows:2;cols:2",
                               .rules = "batch:rows;d_ff:cols" };
    plan = mtf_training_plan(&wanted, NULL);
    program = plan != NULL ? mtf_plan_lower(plan, NULL) : NULL;
    return program == NULL;
}

static int tear_down(void **state) {
    (void)state;
    mtf_program_free(program);
    mtf_plan_free(plan);
    return 0;
}

TEST(every_instruction_but_collectives_is_in_one_entry) {
    g_autoptr(MtfKernelTimes) times = mtf_kernel_times_new(program);
    int64_t calls = 0, wanted = 0;
    double flops = 0, wanted_flops = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        assert_int_equal(times->entry_of[i] < 0, mtf_instruction_is_collective(instruction));
        wanted += mtf_instruction_is_collective(instruction) ? 0 : 1;
        wanted_flops += instruction->flops;
    }
    for (int e = 0; e < times->n_entries; e++) {
        calls += times->entries[e].calls;
        flops += times->entries[e].flops;
    }
    assert_true(wanted > 0 && calls == wanted);
    assert_true(flops == wanted_flops); /* whole numbers */
}

TEST(an_entry_has_the_name_and_class_of_its_instructions) {
    g_autoptr(MtfKernelTimes) times = mtf_kernel_times_new(program);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (times->entry_of[i] < 0)
            continue;
        const MtfKernelTime *entry = &times->entries[times->entry_of[i]];
        const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
        const char *name = instruction->kind == MTF_INSTRUCTION_KERNEL
                               ? mtf_operation_row(op->kind)->name
                               : mtf_reshard_row(instruction->reshard.kind)->name;
        assert_string_equal(entry->name, name);
        assert_int_equal(entry->kernel_class, instruction->kernel_class);
    }
}

TEST(time_goes_to_the_entry_of_its_instruction_alone) {
    g_autoptr(MtfKernelTimes) times = mtf_kernel_times_new(program);
    for (int i = 0; i < mtf_program_length(program); i++)
        mtf_kernel_times_add(times, i, 1);
    for (int e = 0; e < times->n_entries; e++)
        assert_true(times->entries[e].measured == (double)times->entries[e].calls);
}

/* Of two ranks' programs each brings what it has; ours brings two tables, or none. */
TEST(tables_of_several_programs_add_up) {
    MtfKernelTimes *two[] = { mtf_kernel_times_new(program), mtf_kernel_times_new(program) };
    for (int t = 0; t < 2; t++) {
        mtf_kernel_times_begin_step(two[t]);
        for (int i = 0; i < mtf_program_length(program); i++)
            mtf_kernel_times_add(two[t], i, 1 + t);
        mtf_kernel_times_end_step(two[t]);
    }
    g_autoptr(MtfKernelTimes) both = mtf_kernel_times_gather(two, 2, MPI_COMM_SELF);
    g_autoptr(MtfKernelTimes) none = mtf_kernel_times_gather(two, 0, MPI_COMM_SELF);
    for (int e = 0; e < both->n_entries; e++) {
        const MtfKernelTime *entry = &both->entries[e];
        assert_int_equal(entry->calls, 2 * two[0]->entries[e].calls);
        assert_true(entry->flops == 2 * two[0]->entries[e].flops);
        assert_true(entry->measured == 3 * (double)two[0]->entries[e].calls);
        assert_int_equal(none->entries[e].calls, 0);
    }
    assert_int_equal(both->ended, 1);
    GString *row = g_string_new(NULL);
    mtf_kernel_times_append_part(row, "rank 2: stage 1", two[0], both); /* a third of all time */
    assert_true(g_str_has_prefix(row->str, "  rank 2: stage 1 "));
    assert_non_null(strstr(row->str, " 33.3 %\n"));
    g_string_free(row, TRUE);
    mtf_kernel_times_free(two[0]);
    mtf_kernel_times_free(two[1]);
}

TEST(the_first_of_several_steps_does_not_count) {
    g_autoptr(MtfKernelTimes) times = mtf_kernel_times_new(program);
    int i = 0;
    while (times->entry_of[i] < 0)
        i++;
    for (int step = 1; step <= 3; step++) {
        mtf_kernel_times_begin_step(times);
        mtf_kernel_times_add(times, i, step == 1 ? 100 : 2);
        mtf_kernel_times_end_step(times);
        assert_true(times->entries[times->entry_of[i]].measured ==
                    (step == 1 ? 100 : 2 * step - 2));
        assert_int_equal(times->ended, MAX(step - 1, 1));
    }
}

TEST(the_clock_counts_work) {
    double start = mtf_processor_seconds();
    volatile double sink = 0;
    while (mtf_processor_seconds() - start < 1e-3)
        sink += 1;
    assert_true(sink > 0);
}

/* One product of 2 s in two steps, in a whole of 4 s: 1 s a step, half of it. */
TEST(the_table_sets_plan_beside_run_for_one_step) {
    MtfKernelTime entries[] = {
        { .name = "einsum", .calls = 3, .flops = 5e9, .predicted = 0.5, .measured = 2 },
        { .name = "relu", .kernel_class = MTF_CLASS_ELEMENTWISE, .calls = 1, .measured = 1.99 },
        { .name = "abs", .kernel_class = MTF_CLASS_ELEMENTWISE, .calls = 1, .measured = 0.01 },
    };
    MtfKernelTimes times = { .n_entries = 3, .entries = entries, .begun = 3, .ended = 2 };
    g_autofree char *text = mtf_kernel_times_format(&times);
    assert_non_null(strstr(text, "    einsum                      3     500 ms        1 s    "
                                 "50.0 %     5e+09\n"));
    assert_non_null(strstr(text, "    relu  "));
    assert_null(strstr(text, "abs")); /* below a hundredth */
    assert_non_null(strstr(text, "  elementwise                   2          -        1 s    "
                                 "50.0 %\n"));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = mtf_tests_run(set_up, tear_down);
    MPI_Finalize();
    return failed;
}
