// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/training_case.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cmocka.h"
#include "tests/support/drawn/random_graph.h"

bool mtf_training_case_draw(MtfTrainingCase *c, guint32 seed, const char *mesh_text) {
    static const char *const optimizers[] = { "sgd", "adamw", "adafactor" };
    MtfRandomGraph options = { .seed = seed,
                               .dimensions = 4,
                               .operations = 10,
                               .largest_size = 6,
                               .dtype = MTF_F32,
                               .composites = true };
    g_autoptr(MtfGraph) forward = mtf_random_graph(&options);
    g_free(forward->optimizer.kind);
    forward->optimizer.kind = g_strdup(optimizers[seed % G_N_ELEMENTS(optimizers)]);
    forward->optimizer.clip_norm = seed % 2 ? 0.5 : 0;
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    c->graph = mtf_training_graph(forward, NULL);
    if (c->graph == NULL)
        return false;
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    c->layout = mtf_random_free_layout(random, c->graph, &mesh);
    return true;
}

void mtf_training_case_perceptron(MtfTrainingCase *c, int layers, const char *rules_text) {
    const MtfModelFamily *family = mtf_model_family_find("mlp", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, NULL, NULL);
    MtfModelSettings settings = mtf_model_settings(preset);
    settings.layers = layers;
    g_autoptr(MtfGraph) forward = mtf_model_build(family, preset, &settings, NULL);
    forward->optimizer.clip_norm = 0;
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:2", 0, &mesh, NULL));
    c->graph = mtf_training_graph(forward, NULL);
    g_autoptr(MtfRules) rules = mtf_rules_parse(c->graph, &mesh, rules_text, NULL, NULL);
    assert_non_null(rules);
    c->layout = mtf_layout_from_rules(c->graph, &mesh, rules);
}

void mtf_training_case_clear(MtfTrainingCase *c) {
    mtf_layout_free(c->layout);
    mtf_graph_free(c->graph);
}

int64_t mtf_test_arena_bytes(const MtfGraph *graph) {
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    return arena->bytes;
}
