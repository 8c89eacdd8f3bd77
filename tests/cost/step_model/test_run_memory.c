// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/step_model/run_memory.h"

#include <math.h>

/* GPT of 22 billion parameters on 8 devices (2205.05198): s 2048, b 4, h 6144, a 64, t 8. */
static MtfTrainingRun usual_run(void) {
    MtfTrainingRun run = {
        .batch = 4, .micro = 4, .devices = 8, .tp = 8, .pp = 1, .vp = 1, .cp = 1
    };
    run.ep = run.dp = run.slices = 1;
    run.model = (MtfModelSizes){ .layers = 48, .width = 6144, .heads = 64, .kv_heads = 64 };
    run.model.head_width = 96;
    run.model.inner = 24576;
    run.model.vocab = 51200;
    run.model.length = 2048;
    run.model.capacity = 1;
    return run;
}

static MtfRunMemory memory_of(const MtfTrainingRun *run) {
    g_autoptr(MtfSoftware) software = mtf_software_load("megatron-2021", NULL);
    return mtf_run_memory(run, software);
}

/* Their formula of a layer's activations: s b h (10 + 24 / t + 5 a s / (h t)) without recomputation and
 * with tensor parallelism alone; s b h (34 / t) with split sequences and selective recomputation;
 * 2 s b h where the layer is redone. */
TEST(layers_keep_what_the_formulas_say) {
    MtfTrainingRun run = usual_run();
    double sbh = 2048.0 * 4 * 6144;
    double none = 48 * sbh * (10 + 24.0 / 8 + 5.0 * 64 * 2048 / (6144 * 8));
    assert_true(fabs(memory_of(&run).kept / none - 1) < 0.01);
    run.redo = MTF_REDO_SELECTIVE;
    run.sequence_parallel = true;
    assert_true(fabs(memory_of(&run).kept / (48 * sbh * 34 / 8) - 1) < 0.01);
    run.redo = MTF_REDO_FULL;
    run.sequence_parallel = false;
    assert_true(fabs(memory_of(&run).kept / (48 * sbh * 2) - 1) < 1e-9);
}

/* Products of 8 bits read a byte of what others read two of: of both norms' results and the activation's, and of the
 * weights' copies; beside what attention gives they keep that of theirs. No copy of the embedding's. */
TEST(products_of_8_bits_keep_a_byte_of_what_they_read) {
    g_autoptr(MtfSoftware) software = mtf_software_load("pytorch", NULL);
    MtfTrainingRun run = usual_run();
    run.tp = 1;
    double sb = 2048.0 * 4, h = 6144, layer = 12 * h * h;
    double two = mtf_run_memory(&run, software).kept;
    run.narrow = true;
    double one = mtf_run_memory(&run, software).kept;
    double spared = 48 * (sb * (2 * h + 24576 - h) + layer) + 51200 * h;
    assert_true(fabs((two - one) / spared - 1) < 0.01);
    run.redo = MTF_REDO_FULL;
    one = mtf_run_memory(&run, software).kept;
    run.narrow = false;
    assert_true(fabs(mtf_run_memory(&run, software).kept - one - 51200 * h) < 1);
}

TEST(sharding_shares_out_what_its_stage_says) {
    MtfTrainingRun run = usual_run();
    run.tp = 1;
    run.dp = 8;
    run.batch = 32;
    MtfRunMemory whole = memory_of(&run);
    for (int sharding = MTF_SHARD_OPTIMIZER; sharding <= MTF_SHARD_ALL; sharding++) {
        run.sharding = (MtfSharding)sharding;
        MtfRunMemory part = memory_of(&run);
        assert_true(fabs(part.optimizer * 8 / whole.optimizer - 1) < 1e-9);
        double gradients = sharding >= MTF_SHARD_GRADIENTS ? 8 : 1;
        assert_true(fabs(part.gradients * gradients / whole.gradients - 1) < 1e-9);
        double weights = sharding == MTF_SHARD_ALL ? 8 : 1;
        assert_true(fabs(part.weights * weights / whole.weights - 1) < 1e-9);
    }
}

/* Of 8 experts on 8 of 16 ranks two ranks have the same: their state is halved, that of dense parameters
 * is cut in sixteen. */
TEST(state_of_experts_is_shared_by_those_that_have_the_same) {
    MtfTrainingRun run = usual_run();
    run.tp = 1;
    run.dp = run.devices = 16;
    run.batch = 64;
    run.ep = 8;
    run.model.experts = 8;
    run.model.chosen = 2;
    double experts = 48 * mtf_run_inner_parameters(&run.model) / 8;
    double dense = 48 * mtf_run_attention_parameters(&run.model) +
                   2 * mtf_run_embedding_parameters(&run.model);
    double whole = memory_of(&run).optimizer;
    run.sharding = MTF_SHARD_OPTIMIZER;
    double expected = (dense / 16 + experts / 2) / (dense + experts);
    assert_true(fabs(memory_of(&run).optimizer / whole - expected) < 1e-9);
}

/* 4 stages: 4 micro-batches of 12 layers each in flight; interleaved in 3 chunks 4 (1 + 3 / 12); twice
 * and one less where weight gradients wait. */
TEST(schedules_keep_micro_batches_in_flight) {
    MtfTrainingRun run = usual_run();
    run.batch = 64;
    run.redo = MTF_REDO_FULL;
    double one = memory_of(&run).kept / 48;
    run.pp = 4;
    assert_true(fabs(memory_of(&run).kept / (12 * 4 * one) - 1) < 1e-9);
    run.vp = 3;
    assert_true(fabs(memory_of(&run).kept / (12 * 5 * one) - 1) < 1e-9);
    run.vp = 1;
    run.order = MTF_ORDER_ZERO_BUBBLE_2P;
    assert_true(fabs(memory_of(&run).kept / (12 * 7 * one) - 1) < 1e-9);
    run.batch = 8;
    assert_true(fabs(memory_of(&run).kept / (12 * 2 * one) - 1) < 1e-9);
}

/* One step of PyTorch with float32 weights on an H100 (tests/golden/h100/memory.tsv): layers, width, heads,
 * those of keys, inner width, whether it is gated, vocabulary, length, batch, recomputation, and the GiB that
 * are given out at most. Backward passes of the last two are fullest at their end. */
static const struct {
    int64_t layers, width, heads, keys, inner, gated, vocab, length, batch;
    MtfRedo redo;
    double allocated;
} measured[] = {
    { 16, 2048, 16, 16, 5632, 1, 32000, 2048, 8, MTF_REDO_NONE, 34.63 },
    { 16, 2048, 16, 16, 5632, 1, 32000, 2048, 8, MTF_REDO_FULL, 17.82 },
    { 12, 768, 12, 12, 3072, 0, 50257, 1024, 16, MTF_REDO_NONE, 15.91 },
    { 24, 1024, 16, 16, 4096, 0, 50257, 2048, 4, MTF_REDO_FULL, 9.72 },
    { 4, 4096, 32, 8, 14336, 1, 32000, 4096, 2, MTF_REDO_NONE, 21.92 },
    { 4, 4096, 32, 8, 14336, 1, 32000, 16384, 1, MTF_REDO_NONE, 29.24 },
    { 4, 4096, 32, 8, 14336, 1, 32000, 4096, 2, MTF_REDO_FULL, 17.53 },
    { 2, 8192, 64, 8, 28672, 1, 32000, 4096, 1, MTF_REDO_NONE, 33.87 },
};

TEST(steps_of_pytorch_hold_what_was_measured) {
    g_autoptr(MtfSoftware) software = mtf_software_load("pytorch", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++) {
        MtfTrainingRun run = { .devices = 1, .tp = 1, .pp = 1, .vp = 1, .cp = 1, .ep = 1 };
        run.dp = run.slices = 1;
        run.batch = run.micro = (double)measured[i].batch;
        run.redo = measured[i].redo;
        run.model = (MtfModelSizes){ .layers = measured[i].layers,
                                     .width = measured[i].width,
                                     .heads = measured[i].heads,
                                     .kv_heads = measured[i].keys,
                                     .inner = measured[i].inner,
                                     .gated = measured[i].gated != 0,
                                     .vocab = measured[i].vocab,
                                     .length = measured[i].length,
                                     .capacity = 1 };
        run.model.head_width = measured[i].width / measured[i].heads;
        MtfRunMemory memory = mtf_run_memory(&run, software);
        double allocated = (memory.total - memory.beside) / 0x1p30;
        assert_true(fabs(allocated / measured[i].allocated - 1) < 0.025);
        assert_true(memory.reserved + software->kept.context_bytes == memory.total);
    }
}
