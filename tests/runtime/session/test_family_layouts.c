// SPDX-License-Identifier: GPL-3.0-or-later
/* Families that no graph of the library stands for: trained under drawn layouts, their losses are
 * those of one processor. Pairs are packed into rows, clicks are generated. */
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "tests/support/draws.h"
#include "tests/support/losses/layout_losses.h"

#include <glib/gstdio.h>
#include <string.h>

#define SEED 11
#define STEPS 6

static MtfGraph *training_graph(const char *family_name, const char *const *changes) {
    g_autoptr(GError) error = NULL;
    const MtfModelFamily *family = mtf_model_family_find(family_name, NULL);
    MtfModelSettings settings = mtf_model_settings(&family->presets[0]);
    for (int i = 0; changes[i] != NULL; i += 2) {
        const MtfModelParameter *parameter = mtf_model_parameters();
        while (strcmp(parameter->name, changes[i]) != 0)
            parameter++;
        assert_true(mtf_model_set(family, parameter, changes[i + 1], &settings, NULL));
    }
    g_autoptr(MtfGraph) forward = mtf_model_build(family, &family->presets[0], &settings, &error);
    if (forward == NULL)
        fail_msg("%s", error->message);
    mtf_graph_set_precision(forward, MTF_F64);
    return mtf_training_graph(forward, NULL);
}

static void check_family(const char *family, const char *const *changes, const char *data,
                         int draws) {
    g_autoptr(GError) error = NULL;
    MtfLossModel model = { .graph = training_graph(family, changes) };
    model.data = mtf_data_open(model.graph, data, SEED, &error);
    if (model.data == NULL)
        fail_msg("%s", error->message);
    mtf_losses_alone(&model, STEPS);
    mtf_check_drawn_losses(&model, mtf_draws(draws), STEPS, MTF_F64);
    mtf_loss_model_clear(&model);
}

TEST(layouts_of_a_translator_give_its_losses) {
    static const char text[] = "one\tun\ntwo\tdeux\nthree\ttrois\nfour\tquatre\nfive\tcinq\n"
                               "six\tsix\nseven\tsept\neight\thuit\nnine\tneuf\nten\tdix\n";
    const char *const changes[] = { "layers", "1", "batch", "3", "length", "10", "d-model", "12",
                                    "d-ff",   "8", "heads", "2", "d-kv",   "5",  NULL };
    char *folder = g_dir_make_tmp("meshtf-layouts-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "pairs.tsv", NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    check_family("transformer", changes, path, 30);
    g_unlink(path);
    g_rmdir(folder);
    g_free(folder);
}

TEST(layouts_of_a_recommender_give_its_losses) {
    const char *const changes[] = { "batch", "6", "tables", "7,5", "top", "5-1", NULL };
    check_family("dlrm", changes, NULL, 40);
}

TEST(layouts_of_an_autoencoder_give_its_losses) {
    const char *const changes[] = { "batch", "6", "features", "9", "sizes", "7-3", NULL };
    check_family("autoencoder", changes, NULL, 40);
}

/* Space is split, too: over several axes, raggedly, into more parts than there are elements. */
TEST(layouts_of_a_residual_network_give_its_losses) {
    const char *const changes[] = { "batch", "3", "image", "7", "width", "2", NULL };
    check_family("resnet", changes, NULL, 30);
}

TEST(layouts_of_a_u_net_give_its_losses) {
    const char *const changes[] = { "batch", "1", "image", "6", "width", "2", NULL };
    check_family("unet", changes, NULL, 24);
}

/* 23 norms one behind the other, of 8,214 values down to 6: a rate that magnifies a rounding shows here. */
TEST(layouts_of_branches_give_their_losses) {
    const char *const changes[] = { "batch", "6", "image", "75", NULL };
    check_family("inception3", changes, NULL, 2);
}
