// SPDX-License-Identifier: GPL-3.0-or-later
/* The network of a training run, as a forward graph that is cut as its framework cuts it:
 *
 *     embedding | layer 0 … | … | … layer L-1 | norm, head, loss
 *     stage 1 ─────────────► 2 ►  … ───────────────────────────►
 *
 * Layers are shared out as mtf_run_stage_layers says. */
#ifndef MTF_RUN_GRAPH_H
#define MTF_RUN_GRAPH_H

#include "cost/step_model/training_run.h"
#include "layouts/graph/graph.h"

/* The graph of the run's whole batch, whose operations name their stages, pp x vp of them. Fails with
 * why where the run's model or its cut is none that graphs are made of here. */
MtfGraph *mtf_run_graph(const MtfTrainingRun *run, GError **error);

#endif
