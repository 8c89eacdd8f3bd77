// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 1 6
// seconds: 240
/* Whatever trains on, the losses are those of a run that nobody disturbed. */
#include "tests/support/cmocka.h"

#include "tests/support/losses/resume_chain.h"
#include "tests/support/mpi_verdict.h"

#define STEPS 3

static const MtfChainLink transformer_links[] = {
    { "all:2", "batch:all", 0 },
    { "rows:2;cols:3", "batch:rows;d_ff:cols", 0 },
    { "", "", 0 },
    { "all:3", "d_ff:all;d_kv:all", 0 },
    { "rows:2;cols:2", "length:rows;d_model:cols", 0 },
    { "all:4", "heads:all;vocab:all", 0 },
    { "rows:2;cols:2", "free", 5 },
    { "all:6", "batch:all", 0 },
};

static const MtfChainLink mlp_links[] = {
    { "all:3", "hidden:all", 0 },
    { "all:5", "free", 1 },
    { "all:6", "features:all;targets:all", 0 },
    { "rows:3;cols:2", "free", 2 },
    { "", "", 0 },
};

static void check(const MtfChain *chain) {
    mtf_check_chain(chain);
    assert_true(mtf_verdict());
}

TEST(a_run_goes_on_under_any_layout_in_float64) {
    check(&(MtfChain){ .graph = "transformer-small",
                       .sizes = MTF_TINY_TRANSFORMER,
                       .dtype = MTF_F64,
                       .n_links = G_N_ELEMENTS(transformer_links),
                       .links = transformer_links,
                       .steps = STEPS });
    check(&(MtfChain){ .graph = "mlp",
                       .sizes = "batch:10;features:7;hidden:12;targets:5",
                       .dtype = MTF_F64,
                       .n_links = G_N_ELEMENTS(mlp_links),
                       .links = mlp_links,
                       .steps = STEPS });
}

TEST(a_run_goes_on_under_any_layout_in_float32) {
    check(&(MtfChain){ .graph = "transformer-small",
                       .sizes = MTF_TINY_TRANSFORMER,
                       .dtype = MTF_F32,
                       .n_links = G_N_ELEMENTS(transformer_links),
                       .links = transformer_links,
                       .steps = STEPS });
}

TEST(a_run_goes_on_under_its_own_layout_bit_for_bit) {
    for (gsize i = 0; i < G_N_ELEMENTS(transformer_links); i++) {
        const MtfChainLink links[] = { transformer_links[i], transformer_links[i] };
        MtfMesh mesh;
        int ranks;
        PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
        mtf_mesh_parse(links[0].mesh, 0, &mesh, NULL);
        if (mtf_mesh_size(&mesh) <= ranks)
            mtf_check_chain(&(MtfChain){ .graph = "transformer-small",
                                         .sizes = MTF_TINY_TRANSFORMER,
                                         .dtype = MTF_F32,
                                         .n_links = 2,
                                         .links = links,
                                         .steps = STEPS,
                                         .exact = true });
    }
    assert_true(mtf_verdict());
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = mtf_tests_run(NULL, NULL);
    MPI_Finalize();
    return failed;
}
