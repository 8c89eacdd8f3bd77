// SPDX-License-Identifier: GPL-3.0-or-later
/* A layer of experts beside published measurements of the layer alone, on 8 H100 with 4096 tokens each:
 * NVIDIA/Megatron-LM, tests/functional_tests/test_cases/common/moe_perf/baseline.json (BSD-3), and
 * github.com/marin-community/marin, issue 3666 and .agents/logbooks (Apache-2.0). */
#include "tests/support/cmocka.h"

#include "cost/step_model/run_seconds.h"

#include <math.h>

static MtfTrainingRun run_of(int width, int inner, int experts, int chosen) {
    MtfTrainingRun run = { .batch = 8, .micro = 1, .devices = 8, .tp = 1, .pp = 1, .vp = 1 };
    run.cp = run.slices = 1;
    run.ep = run.dp = 8;
    run.model = (MtfModelSizes){ .layers = 1, .width = width, .heads = 16, .kv_heads = 16 };
    run.model.head_width = width / 16;
    run.model.inner = inner;
    run.model.vocab = 1024;
    run.model.length = 4096;
    run.model.gated = true;
    run.model.experts = experts;
    run.model.chosen = chosen;
    run.model.capacity = 1;
    run.whole_experts = inner < width;
    return run;
}

/* Experts, the passes around them and their messages; and `shared` more features for all tokens. */
static double expert_seconds(const MtfTrainingRun *run, double shared, MtfPassKind pass) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h100", NULL);
    g_autoptr(MtfSoftware) software = mtf_software_load("megatron-core", NULL);
    MtfRunDevice device;
    assert_true(mtf_run_device_init(&device, run, machine, software, NULL));
    MtfLayerSeconds layer = mtf_layer_seconds(&device, false);
    double tokens = 4096, h = (double)run->model.width, k = (double)run->model.chosen;
    MtfProductShape up = { 1, tokens, 2 * shared, h, 2, 0 }, down = { 1, tokens, h, shared, 2, 0 };
    return layer.part[pass][MTF_PART_UP] + layer.part[pass][MTF_PART_DOWN] + layer.routing[pass] +
           mtf_run_swept_seconds(&device, pass, MTF_SWEPT_ROUTED, k * tokens * h) +
           mtf_run_swept_seconds(&device, pass, MTF_SWEPT_GATED,
                                 k * tokens * (double)run->model.inner) +
           mtf_run_product_seconds(&device, pass, up, false) +
           mtf_run_product_seconds(&device, pass, down, false);
}

/* The benchmark's kernels run alone and in bursts: a step's are up to a third slower, and never faster.
 * Mixtral's proxy has 8 experts of 14336, two a token; DeepSeek's 32 of 2048, eight a token, and one
 * that all tokens go through. All tokens by all-to-all. */
TEST(kernels_take_what_the_benchmark_of_the_layer_takes) {
    static const double mixtral[MTF_PASSES] = { 4.26e-3, 7.83e-3 };
    static const double deepseek[MTF_PASSES] = { 6.94e-3, 10.45e-3 };
    MtfTrainingRun two = run_of(4096, 14336, 8, 2), eight = run_of(7168, 2048, 32, 8);
    for (int pass = 0; pass < MTF_PASSES; pass++) {
        double few = expert_seconds(&two, 0, (MtfPassKind)pass) / mixtral[pass];
        double many = expert_seconds(&eight, 2048, (MtfPassKind)pass) / deepseek[pass];
        assert_true(few >= 1 && few < 1.34);
        assert_true(many >= 1 && many < 1.34);
    }
}

/* Of both passes, its update left out. */
static double passes_of(MtfTrainingRun run, int layers) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h100", NULL);
    g_autoptr(MtfSoftware) software = mtf_software_load("megatron-core", NULL);
    MtfRunDevice device;
    run.model.layers = layers;
    assert_true(mtf_run_device_init(&device, &run, machine, software, NULL));
    MtfRunSeconds seconds = mtf_run_seconds(&device);
    return seconds.compute + seconds.expert + seconds.host;
}

/* 128 experts of 768, 2048 wide: 11.0 to 11.7 ms both ways, whether a token has two experts or eight,
 * since the host cannot launch faster; the rest of a layer (65 launches of 8 us) comes on top. */
TEST(small_experts_wait_for_their_launches) {
    MtfTrainingRun two = run_of(2048, 768, 128, 2), eight = run_of(2048, 768, 128, 8);
    double layer = passes_of(two, 2) - passes_of(two, 1);
    assert_true(layer > 11.0e-3 && layer < 12.5e-3);
    assert_true(fabs((passes_of(eight, 2) - passes_of(eight, 1)) / layer - 1) < 0.01);
}
