// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/judge/run_words.h"

#include <string.h>

TEST(shardings_have_many_names) {
    static const struct {
        const char *words;
        MtfSharding sharding;
    } known[] = {
        { "", MTF_SHARD_NONE },
        { "none", MTF_SHARD_NONE },
        { "DDP", MTF_SHARD_NONE },
        { "ZeRO-1", MTF_SHARD_OPTIMIZER },
        { "zero_2", MTF_SHARD_GRADIENTS },
        { "SHARD_GRAD_OP", MTF_SHARD_GRADIENTS },
        { "zero3/fsdp", MTF_SHARD_ALL },
        { "FULL_SHARD", MTF_SHARD_ALL },
        { "Distributed Optimizer", MTF_SHARD_OPTIMIZER },
    };
    MtfSharding sharding;
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        assert_true(mtf_sharding_of_words(known[i].words, &sharding));
        assert_int_equal(sharding, known[i].sharding);
    }
    assert_false(mtf_sharding_of_words("ZeRO++", &sharding));
    assert_false(mtf_sharding_of_words("HSDP", &sharding));
}

TEST(recomputation_is_none_a_part_or_all) {
    MtfRedo redo;
    assert_true(mtf_redo_of_words("Full", &redo) && redo == MTF_REDO_FULL);
    assert_true(mtf_redo_of_words("core_attn", &redo) && redo == MTF_REDO_SELECTIVE);
    assert_true(mtf_redo_of_words("off", &redo) && redo == MTF_REDO_NONE);
    assert_false(mtf_redo_of_words("every 2 layers", &redo));
}

TEST(what_was_measured_is_spelt_in_many_ways) {
    static const struct {
        const char *words;
        MtfMeasured measured;
        double unit;
    } known[] = {
        { "s_per_step", MTF_MEASURED_STEP, 1 },
        { "seconds/iteration", MTF_MEASURED_STEP, 1 },
        { "ms per iter", MTF_MEASURED_STEP, 1e-3 },
        { "tokens_per_s_per_device", MTF_MEASURED_DEVICE_TOKENS, 1 },
        { "tokens/sec/GPU", MTF_MEASURED_DEVICE_TOKENS, 1 },
        { "tok/s/chip", MTF_MEASURED_DEVICE_TOKENS, 1 },
        { "tokens_per_second", MTF_MEASURED_TOKENS, 1 },
        { "samples_per_second", MTF_MEASURED_EXAMPLES, 1 },
        { "TFLOP/s/GPU", MTF_MEASURED_DEVICE_FLOPS, 1 },
        { "tflops_per_device", MTF_MEASURED_DEVICE_FLOPS, 1 },
    };
    MtfMeasured measured;
    double unit;
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        assert_true(mtf_measured_of_words(known[i].words, &measured, &unit));
        assert_int_equal(measured, known[i].measured);
        assert_true(unit == known[i].unit);
    }
    assert_false(mtf_measured_of_words("mfu", &measured, &unit));
    assert_false(mtf_measured_of_words("", &measured, &unit));
}

TEST(only_types_with_a_rate_are_priced) {
    static const char *const priced[] = { "", "bf16", "fp16 mixed (fp32 Adam states)", "FP8",
                                          "fp32 weights and activations (MXU bf16 passes)" };
    static const char *const others[] = { "fp32", "TF32", "NVFP4", "nvfp4, bf16 rest", "int4" };
    for (gsize i = 0; i < G_N_ELEMENTS(priced); i++)
        assert_null(mtf_precision_reason(priced[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *reason = mtf_precision_reason(others[i]);
        assert_non_null(reason);
        assert_non_null(strstr(reason, others[i]));
    }
}

TEST(a_vocabulary_that_is_not_stated_is_the_models_or_gpt_2s) {
    assert_int_equal(mtf_usual_vocab("ZB-GPT-1.5B"), 32000);
    assert_int_equal(mtf_usual_vocab("GPT-1.5B"), 50304);
    assert_int_equal(mtf_usual_vocab(""), 50304);
}
