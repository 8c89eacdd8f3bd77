// SPDX-License-Identifier: GPL-3.0-or-later
/* Low-rank adapters of a model (MtfAdapter, layouts/graph/graph.h): which variables they are, the
 * weights with them added in, and a folder as Hugging Face's PEFT keeps them:
 *
 *     adapter_config.json          rank, alpha, the names of the modules that are adapted
 *     adapter_model.safetensors    base_model.model.….q_proj.lora_A.weight [rank, inputs]
 *                                  base_model.model.….q_proj.lora_B.weight [outputs, rank] */
#ifndef MTF_ADAPTER_WEIGHTS_H
#define MTF_ADAPTER_WEIGHTS_H

#include "runtime/checkpoint/checkpoint.h"

/* The names of a graph's adapter variables, owned by the graph; unref it. */
GHashTable *mtf_adapter_variables(const MtfGraph *graph);

/* A model's weights with their adapters added in, while it lasts. */
typedef struct MtfMergedWeights MtfMergedWeights;

/* Collective: adds scale up down to the slices of all weights that have adapters (sums in float64).
 * Adapters come together whole on every rank, one weight's at a time. */
MtfMergedWeights *mtf_adapters_merge(const MtfCheckpointed *what);

/* Gives the weights the values back that they had, to the bit. */
void mtf_adapters_unmerge(MtfMergedWeights *merged);

/* The text of adapter_config.json; `base` (or NULL) is where the weights beside came from. Free with
 * g_free. NULL with a bad-input error where the model has no adapters, or is not a published one. */
char *mtf_adapter_config_print(const MtfGraph *graph, const char *base, GError **error);

/* Whether the adapter_config.json at `path` describes the graph's adapters: LoRA and nothing beside it, their
 * rank and scale. Fails (bad input) with what differs, or is missing. Not collective. */
bool mtf_adapter_config_check(const MtfGraph *graph, const char *path, GError **error);

#endif
