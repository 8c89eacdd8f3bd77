// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 8
/* A run passed through more than a dozen layouts on 1, 2, 3, 4, 6 and 8 ranks. */
#include "tests/support/cmocka.h"

#include "tests/support/losses/resume_chain.h"
#include "tests/support/mpi_verdict.h"

static const MtfChainLink links[] = {
    { "", "", 0 },
    { "all:8", "batch:all", 0 },
    { "rows:4;cols:2", "batch:rows;d_ff:cols;heads:cols", 0 },
    { "all:3", "d_ff:all;d_kv:all", 0 },
    { "rows:2;cols:2;deep:2", "batch:rows;d_ff:cols;vocab:deep", 0 },
    { "all:2", "heads:all;d_ff:all;vocab:all", 0 },
    { "rows:3;cols:2", "batch:rows;d_model:cols", 0 },
    { "rows:2;cols:2", "free", 1 },
    { "all:6", "length:all", 0 },
    { "rows:2;cols:4", "free", 2 },
    { "all:4", "d_model:all", 0 },
    { "all:2", "free", 3 },
    { "rows:2;cols:3", "free", 4 },
    { "all:3", "free", 5 },
    { "all:8", "free", 6 },
    { "", "", 0 },
};

static void check(MtfDtype dtype) {
    mtf_check_chain(&(MtfChain){ .graph = "transformer-small",
                                 .sizes = MTF_TINY_TRANSFORMER,
                                 .dtype = dtype,
                                 .n_links = G_N_ELEMENTS(links),
                                 .links = links,
                                 .steps = 5 });
    assert_true(mtf_verdict());
}

TEST(eighty_steps_under_sixteen_layouts_lose_what_one_rank_loses_in_float64) {
    check(MTF_F64);
}

TEST(eighty_steps_under_sixteen_layouts_lose_what_one_rank_loses_in_float32) {
    check(MTF_F32);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = mtf_tests_run(NULL, NULL);
    MPI_Finalize();
    return failed;
}
