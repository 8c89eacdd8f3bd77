// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/run_graph.h"

#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

/* Layer norms, biases and gelu, as GPT-3 has them. */
static MtfGraph *build_plain(const MtfTrainingRun *run, GError **error) {
    const MtfModelSizes *model = &run->model;
    const MtfModelPreset *preset = mtf_model_preset_find(&mtf_model_gpt, "gpt3-175b", error);
    MtfModelSettings settings = mtf_model_settings(preset);
    settings.layers = model->layers;
    settings.batch = (int64_t)run->batch;
    settings.length = model->length;
    settings.d_model = model->width;
    settings.d_ff = model->inner;
    settings.heads = model->heads;
    settings.d_kv = model->head_width;
    settings.vocab = model->vocab;
    settings.tied = !model->untied;
    settings.clip_norm = 0;
    settings.optimizer = "adamw";
    return mtf_model_build(&mtf_model_gpt, preset, &settings, error);
}

/* Rotary positions and shared keys: with gates and RMS norms Llama's, without either Nemotron's. */
static MtfGraph *build_rotary(const MtfTrainingRun *run, GError **error) {
    const MtfModelSizes *model = &run->model;
    const MtfModelPreset *like = mtf_model_preset_find(&mtf_model_llama, "llama2-7b", error);
    g_autofree char *config = g_strdup_printf(
        "{\"model_type\":\"%s\",\"hidden_size\":%" PRId64 ",\"intermediate_size\":%" PRId64
        ",\"num_hidden_layers\":%" PRId64 ",\"num_attention_heads\":%" PRId64
        ",\"num_key_value_heads\":%" PRId64 ",\"head_dim\":%" PRId64 ",\"vocab_size\":%" PRId64
        ",\"max_position_embeddings\":%" PRId64 "}",
        model->gated ? "llama" : "nemotron", model->width, model->inner, model->layers,
        model->heads, model->kv_heads, model->head_width, model->vocab, model->length);
    MtfModelPreset preset = { .name = "run", .options = like->options, .config = config };
    MtfModelSettings settings = mtf_model_settings(&preset);
    settings.batch = (int64_t)run->batch;
    settings.length = model->length;
    settings.clip_norm = 0;
    return mtf_model_build(&mtf_model_llama, &preset, &settings, error);
}

/* The stage of a layer, both from 0: ends may have a layer less. */
static int64_t stage_of_layer(const MtfTrainingRun *run, int64_t layer) {
    MtfTrainingRun chunks = *run;
    chunks.pp = run->pp * run->vp;
    double ends, inner = mtf_run_stage_layers(&chunks, &ends);
    return (layer + (int64_t)(inner - ends)) / (int64_t)inner;
}

/* What follows the layers is the last stage's. */
static void name_stages(const MtfTrainingRun *run, MtfGraph *graph) {
    bool behind = false;
    for (guint i = 0; i < graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, (int)i);
        bool inside = op->layer.block > 0;
        behind |= inside;
        if (inside)
            op->stage = 1 + (int)stage_of_layer(run, op->layer.iteration);
        else
            op->stage = behind ? (int)(run->pp * run->vp) : 1;
    }
}

static bool check_cut(const MtfTrainingRun *run, GError **error) {
    int64_t parts = run->pp * run->vp;
    int64_t last = stage_of_layer(run, run->model.layers - 1);
    bool none_at_ends = (run->model.layers + 2) % parts == 0;
    if (last == parts - 1 || (none_at_ends && last == parts - 2))
        return true;
    return mtf_input_error(error, "%" PRId64 " layers are not cut into %" PRId64 " stages",
                           run->model.layers, parts);
}

MtfGraph *mtf_run_graph(const MtfTrainingRun *run, GError **error) {
    const MtfModelSizes *model = &run->model;
    if (model->experts > 0 || model->window > 0) {
        mtf_input_error(error, model->experts > 0 ? "experts" : "windows");
        return NULL;
    }
    if (!check_cut(run, error))
        return NULL;
    bool plain = !model->gated && model->kv_heads == model->heads;
    MtfGraph *graph = (plain ? build_plain : build_rotary)(run, error);
    if (graph != NULL)
        name_stages(run, graph);
    return graph;
}
