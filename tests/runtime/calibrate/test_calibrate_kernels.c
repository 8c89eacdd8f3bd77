// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
#include "tests/support/cmocka.h"

#include "runtime/calibrate/calibrate_kernels.h"
#include "runtime/calibrate/kernel_benchmark.h"

#include <math.h>

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

TEST(every_kernel_is_measured) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (mtf_kernel(kind) != NULL && mtf_goes_by_rates(kind) == mtf_calibrates_operation(kind))
            fail_msg("%s has no trial", mtf_operation_row(kind)->name);
}

static int64_t sizes[26] = { ['r' - 'a'] = 8, ['c' - 'a'] = 4 };

/* w, g, m, v in, w, m, v out, of 32 floats each; and the rate. */
TEST(an_optimizer_writes_over_what_it_updates) {
    static const MtfBenchmarkOperation adam = {
        MTF_OP_ADAM, { { "rc", "rc", "rc", "rc", "" }, NULL, 0, false, false }
    };
    MtfKernelBenchmark trial;
    mtf_kernel_benchmark_init(&trial, &adam, MTF_F32, sizes);
    const MtfInstruction *instruction = mtf_kernel_benchmark_instruction(&trial);
    assert_int_equal(mtf_program_length(trial.program), 1);
    assert_close(instruction->traffic_bytes, 7 * 32 * 4 + 4);
    assert_int_equal(mtf_program_buffer(trial.program, instruction->outputs[0])->storage,
                     mtf_program_buffer(trial.program, instruction->inputs[0])->storage);
    mtf_kernel_benchmark_clear(&trial);
}

TEST(another_name_is_measured_in_place) {
    int64_t with_t[26] = { ['r' - 'a'] = 8, ['c' - 'a'] = 4, ['t' - 'a'] = 8 };
    static const MtfBenchmarkOperation rename = { MTF_OP_RENAME,
                                                  { { "rc" }, NULL, 1, false, false } };
    MtfKernelBenchmark trial;
    mtf_kernel_benchmark_init(&trial, &rename, MTF_F32, with_t);
    const MtfInstruction *instruction = mtf_kernel_benchmark_instruction(&trial);
    assert_int_equal(instruction->operation, 1);
    assert_int_equal(mtf_program_buffer(trial.program, instruction->outputs[0])->storage,
                     mtf_program_buffer(trial.program, instruction->inputs[0])->storage);
    mtf_kernel_benchmark_clear(&trial);
}

/* relu may write over what it reads for the last time; of gelu the backward pass wants it. */
TEST(a_fresh_operand_is_written_over_unless_it_is_kept) {
    static const MtfBenchmarkOperation operations[] = {
        { MTF_OP_RELU, { { "rc" }, NULL, 1, false, false } },
        { MTF_OP_GELU, { { "rc" }, NULL, 1, true, false } },
    };
    for (int i = 0; i < 2; i++) {
        MtfKernelBenchmark trial;
        mtf_kernel_benchmark_init(&trial, &operations[i], MTF_F32, sizes);
        const MtfInstruction *instruction = mtf_kernel_benchmark_instruction(&trial);
        bool in_place = mtf_program_buffer(trial.program, instruction->outputs[0])->storage ==
                        mtf_program_buffer(trial.program, instruction->inputs[0])->storage;
        assert_int_equal(in_place, !operations[i].operands.kept);
        mtf_kernel_benchmark_clear(&trial);
    }
}

TEST(more_work_takes_more_time) {
    static const MtfBenchmarkOperation gelu = { MTF_OP_GELU, { { "rc" }, NULL, 1, true, false } };
    int64_t large[26] = { ['r' - 'a'] = 512, ['c' - 'a'] = 64 };
    MtfKernelBenchmark trials[2];
    double seconds[2];
    MtfArenaMemory memory = { 0 };
    mtf_kernel_benchmark_init(&trials[0], &gelu, MTF_F32, sizes);
    mtf_kernel_benchmark_init(&trials[1], &gelu, MTF_F32, large);
    assert_true(mtf_kernel_benchmarks_open(trials, 2, &memory, NULL));
    mtf_kernel_benchmarks_measure(trials, 2, 0.01, NULL, seconds);
    mtf_kernel_benchmarks_close(trials, 2);
    mtf_arena_memory_clear(&memory);
    assert_true(seconds[0] > 0);
    assert_true(seconds[1] > 4 * seconds[0]);
    for (int i = 0; i < 2; i++)
        mtf_kernel_benchmark_clear(&trials[i]);
}

/* One table an operation, each of as many sizes, in every type. */
TEST(every_operation_gets_a_table) {
    static const MtfDtype dtypes[] = { MTF_F32, MTF_F64, MTF_BF16 };
    for (size_t d = 0; d < G_N_ELEMENTS(dtypes); d++) {
        g_autoptr(MtfSamples) samples = mtf_samples_new();
        g_autoptr(MtfMachine) machine = mtf_machine_new();
        GError *error = NULL;
        if (!mtf_calibrate_operations(samples, dtypes[d], &error))
            fail_msg("%s", error->message);
        mtf_samples_fit(samples, machine);
        for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
            g_autofree char *name = g_strdup_printf("%s/%s", mtf_operation_row(kind)->name,
                                                    mtf_dtype_short_name(dtypes[d]));
            const MtfMachineCurve *curve = mtf_machine_curve(machine, name);
            MtfProductsKind products = mtf_operation_row(kind)->products;
            bool by_head =
                products == MTF_PRODUCTS_ATTENTION || products == MTF_PRODUCTS_ATTENTION_GRAD;
            bool as_einsum = products == MTF_PRODUCTS_EXPERTS ||
                             products == MTF_PRODUCTS_QUANTIZED ||
                             products == MTF_PRODUCTS_LINEAR_ATTENTION ||
                             products == MTF_PRODUCTS_LINEAR_ATTENTION_GRAD;
            bool own = !by_head && !as_einsum && !mtf_goes_by_rates(kind);
            assert_true((curve != NULL) == (mtf_kernel(kind) != NULL && own));
            if (curve != NULL)
                assert_true(curve->points >= 1 && curve->y[0] > 0);
        }
    }
}
