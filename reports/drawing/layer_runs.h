// SPDX-License-Identifier: GPL-3.0-or-later
/* Elimination repeated layers: which layers of a repeated block are laid out alike, and which tensor of
 * the first of them stands for a tensor of another. */
#ifndef MTF_LAYER_RUNS_H
#define MTF_LAYER_RUNS_H

#include "layouts/program/program.h"

typedef struct {
    int repeat;       /* index into graph->repeats */
    int first, count; /* layers */
    int alike;        /* the first run whose layers are laid out like these; often this one */
} MtfLayerRun;

typedef struct MtfLayerRuns MtfLayerRuns;

MtfLayerRuns *mtf_layer_runs_new(const MtfProgram *program);
void mtf_layer_runs_free(MtfLayerRuns *layers_found);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayerRuns, mtf_layer_runs_free)

/* Runs of consecutive layers that are alike, in order of the graph. */
int mtf_layer_runs_count(const MtfLayerRuns *layers_found);
const MtfLayerRun *mtf_layer_runs_at(const MtfLayerRuns *layers_found, int run);

/* The run that a name belongs to, or -1; with `*layer` set to its layer. Gradients and state of the
 * optimizer ("grad/layer/7/wq") belong to the layer they are named after. */
int mtf_layer_runs_find(const MtfLayerRuns *layers_found, const char *name, int *layer);

/* What follows the layer's number in a name, a part of it; NULL outside of layers. */
const char *mtf_layer_runs_rest(const MtfLayerRuns *layers_found, const char *name);

/* The name's twin in the first layer of its run ("grad/layer/7/wq" -> "grad/layer/0/wq"), the name
 * itself outside of layers. Free with g_free. */
char *mtf_layer_runs_twin(const MtfLayerRuns *layers_found, const char *name);

#endif
