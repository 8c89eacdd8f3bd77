// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/judge/run_plan.h"

#include <math.h>

/* One step on an H100 (tests/golden/h100/memory.tsv): profile, layers, width, heads, those of keys, inner width,
 * vocabulary, length, batch, recomputation, and the GiB that PyTorch's allocator gave out at most. */
static const struct {
    const char *software;
    int64_t layers, width, heads, keys, inner, vocab, length, batch;
    MtfRedo redo;
    double given;
} measured[] = {
    { "pytorch", 16, 2048, 16, 16, 5632, 32000, 2048, 8, MTF_REDO_NONE, 34.63 },
    { "pytorch", 16, 2048, 16, 16, 5632, 32000, 2048, 8, MTF_REDO_FULL, 17.82 },
    { "pytorch-eager", 16, 2048, 16, 16, 5632, 32000, 2048, 8, MTF_REDO_NONE, 37.37 },
    { "pytorch", 12, 768, 12, 12, 3072, 50257, 1024, 16, MTF_REDO_NONE, 15.91 },
    { "pytorch", 24, 1024, 16, 16, 4096, 50257, 2048, 4, MTF_REDO_FULL, 9.72 },
    { "pytorch", 4, 4096, 32, 8, 14336, 32000, 4096, 2, MTF_REDO_NONE, 21.92 },
    { "pytorch", 4, 4096, 32, 8, 14336, 32000, 4096, 2, MTF_REDO_FULL, 17.53 },
    { "pytorch", 2, 8192, 64, 8, 28672, 32000, 4096, 1, MTF_REDO_NONE, 33.87 },
};

static MtfTrainingRun measured_run(size_t i) {
    MtfTrainingRun run = { .devices = 1, .tp = 1, .pp = 1, .vp = 1, .cp = 1, .ep = 1 };
    run.dp = run.slices = 1;
    run.batch = run.micro = (double)measured[i].batch;
    run.redo = measured[i].redo;
    run.model = (MtfModelSizes){ .layers = measured[i].layers,
                                 .width = measured[i].width,
                                 .heads = measured[i].heads,
                                 .kv_heads = measured[i].keys,
                                 .inner = measured[i].inner,
                                 .gated = measured[i].vocab == 32000,
                                 .untied = true,
                                 .vocab = measured[i].vocab,
                                 .length = measured[i].length,
                                 .capacity = 1 };
    run.model.head_width = measured[i].width / measured[i].heads;
    return run;
}

TEST(programs_say_what_the_allocator_gave_out) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h100", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++) {
        g_autoptr(MtfSoftware) software = mtf_software_load(measured[i].software, NULL);
        MtfTrainingRun run = measured_run(i);
        MtfMachine placed = *machine;
        MtfRunPlan plan;
        placed.software = software;
        assert_true(mtf_run_plan(&run, &placed, &plan, NULL));
        assert_true(fabs(plan.memory.given / 0x1p30 / measured[i].given - 1) < 0.02);
        assert_true(plan.memory.reserved >= plan.memory.given);
        assert_true(fabs(plan.memory.device - plan.memory.reserved - software->kept.context_bytes) <
                    1);
    }
}

/* GPT of 1.5 billion parameters in 8 stages: 30, 40, 32 and 59 GB (arXiv 2401.10241, tables 3 and 5), of which no
 * profile was fitted to any. */
TEST(programs_of_stages_say_what_schedules_hold) {
    static const struct {
        int64_t chunks;
        MtfRunOrder order;
        double gib;
    } runs[] = { { 1, MTF_ORDER_1F1B, 30 },
                 { 3, MTF_ORDER_1F1B, 40 },
                 { 1, MTF_ORDER_ZERO_BUBBLE_1P, 32 },
                 { 1, MTF_ORDER_ZERO_BUBBLE_2P, 59 } };
    g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
    g_autoptr(MtfSoftware) software = mtf_software_load("megatron-2021", NULL);
    MtfMachine placed = *machine;
    placed.software = software;
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        MtfTrainingRun run = {
            .devices = 8, .tp = 1, .pp = 8, .cp = 1, .ep = 1, .dp = 1, .slices = 1
        };
        run.model = (MtfModelSizes){ .layers = 22,
                                     .width = 2304,
                                     .heads = 24,
                                     .kv_heads = 24,
                                     .head_width = 96,
                                     .inner = 9216,
                                     .vocab = 51200,
                                     .length = 1024,
                                     .capacity = 1 };
        run.vp = runs[i].chunks;
        run.order = runs[i].order;
        run.micro = 6;
        run.batch = 6 * 24;
        MtfRunPlan plan;
        assert_true(mtf_run_plan(&run, &placed, &plan, NULL));
        assert_true(fabs(plan.memory.device / 0x1p30 / runs[i].gib - 1) < 0.08);
    }
}
