// SPDX-License-Identifier: GPL-3.0-or-later
/* Folding repeated layers: which layers of a repeated block are laid out alike, and which tensor of
 * the first of them stands for a tensor of another. */
#ifndef MTF_LAYER_RUNS_H
#define MTF_LAYER_RUNS_H

#include "layouts/placement/layout.h"

typedef struct {
    int repeat;       /* index into graph->repeats */
    int first, count; /* layers */
    int alike;        /* the first run whose layers are laid out like these; often this one */
} MtfLayerRun;

typedef struct MtfLayerRuns MtfLayerRuns;

/* Finds which layers of the graph are alike under the layout, both of which must outlive it; or alike in what
 * the forward pass makes, alone. The caller frees it. */
MtfLayerRuns *mtf_layer_runs_new(const MtfGraph *graph, const MtfLayout *layout, bool forward);
void mtf_layer_runs_free(MtfLayerRuns *layers_found);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayerRuns, mtf_layer_runs_free)

/* Runs of consecutive layers that are alike, in order of the graph. */
int mtf_layer_runs_count(const MtfLayerRuns *layers_found);
const MtfLayerRun *mtf_layer_runs_at(const MtfLayerRuns *layers_found, int run);

/* The run that a layer belongs to; -1 outside of layers. */
int mtf_layer_runs_find(const MtfLayerRuns *layers_found, MtfLayer layer);

/* Whether what is of this layer is shown for its whole run: the first one's, and all outside of layers. */
bool mtf_layer_runs_shows(const MtfLayerRuns *layers_found, MtfLayer layer);

/* The same tensor of the first layer of its run, itself outside of layers; -1: that layer has none. */
int mtf_layer_runs_twin(const MtfLayerRuns *layers_found, int tensor);

#endif
