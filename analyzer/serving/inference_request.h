// SPDX-License-Identifier: GPL-3.0-or-later
/* What `search --infer` is asked for: its options checked, its graph, machine and meshes. */
#ifndef MTF_INFERENCE_REQUEST_H
#define MTF_INFERENCE_REQUEST_H

#include "analyzer/serving/inference_run.h"

/* Reads the run's options: kind, sizes, limits, machine, written graph and precision. Fails (bad input) on
 * what does not go together. */
bool mtf_inference_request(MtfInferenceRun *run, GError **error);

/* The meshes that this many devices form, for a phase, in place of those that it has. */
bool mtf_inference_shape_meshes(MtfInferenceRun *run, MtfInferKind kind, int devices,
                                GError **error);

/* Both phases' meshes of a stage: --mesh is that of one stage, --devices are those of all. */
bool mtf_inference_find_meshes(MtfInferenceRun *run, GError **error);

#endif
