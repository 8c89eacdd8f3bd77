// SPDX-License-Identifier: GPL-3.0-or-later
/* Networks as people write them in graph.json (tests/golden/networks): 50 steps under drawn layouts of one to eight
 * processors give the losses of one, to 1e-10 in float64. An argument names the only one to try, or a file, which sizes of its dimensions may follow. */
#include "tests/support/cmocka.h"

#include "tests/support/losses/layout_losses.h"

#include <string.h>

#define DRAWS 32
#define FOLDER "tests/golden/networks/"

typedef struct {
    const char *name, *sizes;
} Network;

static const Network networks[] = {
    { "byol", "batch:3;hid:5" },
    { "conformer", "batch:3;length:10;mem:10;tout:10;d:6;ff:5;c:7" },
    { "contrastive", "batch:6;other:6" },
    { "convnext", "batch:8;d:6;d4:9" },
    { "crf", "batch:3;vocab:256" },
    { "ctc", "batch:3;time:7" },
    { "detr", "batch:3;pix:7;pixm:7;obj:5;ff:5" },
    { "diffusion", "batch:3" },
    { "expert_choice", "heads:3;experts:5;vocab:256" },
    { "fno", "batch:2;d:5;e:5;hid:7" },
    { "gan", "batch:3" },
    { "gat", "nodes:9;edges:21" },
    { "gla", "batch:3;length:9;vocab:128" },
    { "griffin", "batch:3;length:7;mem:7;d:6;heads:3;vocab:256" },
    { "mae", "batch:4;d:5" },
    { "mamba", "batch:3;length:7;tout:7;inner:6;vocab:128" },
    { "mixer", "batch:3;tok:7;ch:10" },
    { "nerf", "rays:5;samples:5;samples_1:4;half:3" },
    { "pointer_generator", "batch:3;src:5;d:6;dr:6;length:4;vocab:256" },
    { "pointnet", "batch:4;points:10;f3:7" },
    { "ppo", "batch:3" },
    { "raft", "batch:3;hd:5;hd2:5" },
    { "reformer", "batch:5;heads:3;vocab:256" },
    { "retnet", "batch:3;length:7;mem:7;vocab:128" },
    { "stylegan", "batch:4;wd:7;dc:3" },
    { "swin", "batch:3" },
    { "tft", "batch:3;length:5;mem:5" },
    { "transducer", "batch:5" },
    { "transformer_xl", "batch:3;heads:3;vocab:256" },
    { "vqvae", "batch:3;codes:11;d:6" },
};

static void layouts_of_a_written_network_give_its_losses(void **state) {
    const Network *network = *state;
    g_autofree char *path = g_str_has_suffix(network->name, ".json")
                                ? g_strdup(network->name)
                                : g_strconcat(FOLDER, network->name, ".json", NULL);
    MtfLossModel model;
    mtf_loss_model_init(&model, path, network->sizes, MTF_F64);
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    mtf_check_layout_draws(&model, random, DRAWS, LAYOUT_STEPS, MTF_F64);
    mtf_loss_model_clear(&model);
}

static void add_test(const Network *network) {
    mtf_test_add(0, (struct CMUnitTest){ .name = network->name,
                                         .test_func = layouts_of_a_written_network_give_its_losses,
                                         .initial_state = (void *)(guintptr)network });
}

int main(int argc, char **argv) {
    Network file = { argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "" };
    if (g_str_has_suffix(file.name, ".json"))
        add_test(&file);
    for (gsize i = 0; i < G_N_ELEMENTS(networks); i++)
        if (argc < 2 || strcmp(argv[1], networks[i].name) == 0)
            add_test(&networks[i]);
    return mtf_tests_run(NULL, NULL);
}
