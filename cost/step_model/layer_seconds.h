// SPDX-License-Identifier: GPL-3.0-or-later
/* What one layer of a training run takes on one device, part by part, for one micro-batch: products,
 * attention and passes over memory at the machine's rates (kernel_rates.h), messages at its prices of
 * collectives (collective.h), counted as the software profile counts them.
 *
 *     forward    queries → attention → output → (sum) → up → activation → down → (sum)
 *     backward   twice the products; what the policy redoes comes before */
#ifndef MTF_LAYER_SECONDS_H
#define MTF_LAYER_SECONDS_H

#include "cost/collectives/collective.h"
#include "cost/step_model/training_run.h"

/* The axes of the mesh that a run is laid on, slowest first. */
enum {
    MTF_RUN_PIPELINE,
    MTF_RUN_DATA,
    MTF_RUN_EXPERT,
    MTF_RUN_CONTEXT,
    MTF_RUN_TENSOR,
    MTF_RUN_AXES
};

#define MTF_AXIS_BIT(axis) (1U << (axis))

typedef struct {
    const MtfTrainingRun *run;
    const MtfMachine *machine;
    const MtfSoftware *software;
    MtfMeshMap map;     /* of one slice */
    MtfMeshMap experts; /* pipeline, data, experts: where experts are whole */
    MtfPeaks wide;      /* of the dtype of activations */
    MtfPeaks products;  /* of the large products' */
} MtfRunDevice;

/* Seconds of a part of the forward and of the backward pass; what is redone is not in it. */
typedef struct {
    double part[MTF_PASSES][MTF_LAYER_PARTS];
    double context[MTF_PASSES]; /* keys and values exchanged over the context group */
    double routing[MTF_PASSES]; /* tokens to experts and back */
    double experts;             /* that the device has; 0 in a dense layer */
} MtfLayerSeconds;

/* Lays the run on the machine. Fails when the machine has too few devices, when the run's layout does
 * not fit its devices, or when the machine does not say what kernels reach. All must live as long. */
bool mtf_run_device_init(MtfRunDevice *device, const MtfTrainingRun *run, const MtfMachine *machine,
                         const MtfSoftware *software, GError **error);

/* Tokens of one micro-batch on a device. */
double mtf_run_tokens(const MtfTrainingRun *run);

/* Of one layer; a dense one of a routed model if `dense`. */
MtfLayerSeconds mtf_layer_seconds(const MtfRunDevice *device, bool dense);

/* Seconds of m x k by k x n at the rates of the run's products, forward or both gradients. */
double mtf_run_product_seconds(const MtfRunDevice *device, MtfPassKind pass, MtfProductShape shape,
                               bool wide);

/* Seconds of a pass over `elements` elements, at the profile's bytes for it: at the machine's rate of
 * rows (norms, scores, logits), of gathers (tokens to experts, each row from elsewhere), or of maps. */
double mtf_run_swept_seconds(const MtfRunDevice *device, MtfPassKind pass, MtfSwept swept,
                             double elements);

/* Seconds of a collective over mesh axes (a mask of MTF_AXIS_BIT), as priced for the full path. */
double mtf_run_collective_seconds(const MtfRunDevice *device, MtfCollectiveKind kind, unsigned axes,
                                  double bytes);

#endif
