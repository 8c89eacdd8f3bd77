// SPDX-License-Identifier: GPL-3.0-or-later
/* A plan in the words of other tools:
 *
 *     mtf        Mesh-TensorFlow's mesh_shape and layout_rules, as gin lines
 *     jax        a Python module: mesh, a PartitionSpec a tensor
 *     dtensor    a Python module: device mesh, placements a tensor, for PyTorch
 *     megatron   command-line flags of Megatron-LM
 *     deepspeed  DeepSpeed's configuration, a JSON file
 *     maxtext    settings of MaxText, one a line
 *     torchtitan flags of torchtitan, one a line
 *     shardy     StableHLO text: the mesh, and the step's arguments with their shardings
 *     onnx       the forward pass with multi-device annotations, in bytes (export_onnx.h)
 *     onnx-text  such annotations alone, as text, of any operations
 *     slurm      a batch script that starts ranks as planned, checkpoints and requeues (rank_places.h)
 *     rankfile   an Open MPI rankfile that puts ranks where the mapping has them
 *     (pipelines: pipelines/export_pipeline.h)
 *
 * Not every plan can be said in every form; then one sentence says what stands in the way. */
#ifndef MTF_EXPORT_H
#define MTF_EXPORT_H

#include "reports/facts/step_facts.h"

typedef struct {
    const char *to;    /* the form's name */
    const char *hosts; /* rankfile: names of the nodes, "a,b,c"; NULL = by their place, "+n0" */
} MtfExportRequest;

/* The text of the form that is asked for; free with g_free. Fails with bad input on an unknown form
 * and on a plan that the form cannot hold. */
char *mtf_export(const MtfStepFacts *facts, const MtfExportRequest *request, GError **error);

#endif
