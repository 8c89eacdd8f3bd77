// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/family_losses.h"

#include "analyzer/training/training_graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/draws.h"

#include <glib/gstdio.h>
#include <string.h>

#define SEED 11

static const char pairs[] = "one\tun\ntwo\tdeux\nthree\ttrois\nfour\tquatre\nfive\tcinq\n"
                            "six\tsix\nseven\tsept\neight\thuit\nnine\tneuf\nten\tdix\n";

static const MtfModelPreset *tiny_preset(const MtfModelFamily *family) {
    g_autoptr(GError) error = NULL;
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", &error);
    if (preset == NULL)
        fail_msg("%s", error->message);
    return preset;
}

static void set_changes(const MtfFamilyCase *wanted, MtfModelSettings *settings) {
    for (int i = 0; wanted->changes != NULL && wanted->changes[i] != NULL; i += 2) {
        const MtfModelParameter *parameter = mtf_model_parameters();
        while (parameter->name != NULL && strcmp(parameter->name, wanted->changes[i]) != 0)
            parameter++;
        g_autoptr(GError) error = NULL;
        if (!mtf_model_set(wanted->family, parameter, wanted->changes[i + 1], settings, &error))
            fail_msg("%s %s: %s", wanted->family->name, wanted->changes[i], error->message);
    }
}

static MtfGraph *build_training_graph(const MtfFamilyCase *wanted) {
    g_autoptr(GError) error = NULL;
    const MtfModelPreset *preset = tiny_preset(wanted->family);
    MtfModelSettings settings = mtf_model_settings(preset);
    set_changes(wanted, &settings);
    g_autoptr(MtfGraph) forward = mtf_model_build(wanted->family, preset, &settings, &error);
    if (forward == NULL)
        fail_msg("%s: %s", wanted->family->name, error->message);
    mtf_graph_set_precision(forward, wanted->dtype);
    return mtf_training_graph(forward, NULL);
}

static bool feeds(const MtfGraph *graph, const char *input) {
    int tensor = mtf_graph_find_tensor(graph, input);
    return tensor >= 0 && mtf_graph_tensor(graph, tensor)->source == MTF_SOURCE_INPUT;
}

static MtfData *open_pairs(const MtfGraph *graph, GError **error) {
    g_autofree char *folder = g_dir_make_tmp("meshtf-families-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "pairs.tsv", NULL);
    assert_true(g_file_set_contents(path, pairs, -1, NULL));
    MtfData *data = mtf_data_open(graph, path, SEED, error);
    g_unlink(path);
    g_rmdir(folder);
    return data;
}

void mtf_family_model_init(MtfLossModel *model, const MtfFamilyCase *wanted) {
    g_autoptr(GError) error = NULL;
    *model = (MtfLossModel){ .graph = build_training_graph(wanted) };
    const char *text = feeds(model->graph, "tokens") ? "LICENSE" : NULL;
    model->data = feeds(model->graph, "source") ? open_pairs(model->graph, &error)
                                                : mtf_data_open(model->graph, text, SEED, &error);
    if (model->data == NULL)
        fail_msg("%s: %s", wanted->family->name, error->message);
    mtf_losses_alone(model, wanted->steps);
}

void mtf_check_family_layouts(const MtfFamilyCase *wanted, int draws) {
    MtfLossModel model;
    mtf_family_model_init(&model, wanted);
    g_autoptr(GRand) random = g_rand_new_with_seed(7 + mtf_first_seed());
    double apart = mtf_check_layout_draws(&model, random, draws, wanted->steps, wanted->dtype);
    print_message(
        "%s, %s: losses of %d layouts over %d steps are at most %.1e apart, %.4g comes to %.4g\n",
        wanted->family->name, mtf_dtype_name(wanted->dtype), draws, wanted->steps, apart,
        model.losses[0], model.losses[wanted->steps - 1]);
    mtf_family_model_clear(&model);
}
