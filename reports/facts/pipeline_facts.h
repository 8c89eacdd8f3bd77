// SPDX-License-Identifier: GPL-3.0-or-later
/* What there is to say about one training step of a pipeline: when each domain does what, by the
 * times that its plan predicts of every stage's passes, and what each of its devices holds.
 *
 *     domain 0   F0 F1 F2 .. .. B0 B1 B2        memory = what stays
 *     domain 1      F0 F1 F2 B0 B1 B2                    + slots x what a micro-batch leaves */
#ifndef MTF_PIPELINE_FACTS_H
#define MTF_PIPELINE_FACTS_H

#include "cost/pipeline/pipeline_run.h"
#include "cost/transfer/route_price.h"
#include "reports/facts/run_trace.h"

typedef struct {
    double fixed;      /* bytes of the arena that are there once */
    double per_flight; /* bytes of a micro-batch between its forward pass and its last gradient */
    double peak;       /* of the arena */
    int instructions, collectives;
} MtfStageFacts;

typedef struct {
    const MtfPipelinePlan *pipeline; /* borrowed */
    MtfPipelineOrder
        *order; /* of the passes that are shown: of one step among many where these overlap */
    MtfStageTimes *times;  /* [stages] */
    MtfStageFacts *stages; /* [stages] */
    MtfPipelineRun *run;
    double step_seconds;
    double limit;          /* bytes a device: of the first stage's search, or 0 */
    MtfMachine *machine;   /* of the first stage's plan; NULL where it names none */
    MtfNetwork network;    /* of all devices, where there is a machine */
    MtfRoutePrice *prices; /* likewise, of all transfers */
} MtfPipelineFacts;

/* Lowers and packs all stages. The plan must outlive the facts. */
MtfPipelineFacts *mtf_pipeline_facts_new(const MtfPipelinePlan *pipeline, GError **error);
void mtf_pipeline_facts_free(MtfPipelineFacts *facts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineFacts, mtf_pipeline_facts_free)

/* When the passes of the last step of a trace ran, each domain by its first rank; NULL where the trace is not
 * of such a pipeline, as it lacks passes. */
MtfPipelineRun *mtf_pipeline_traced(const MtfPipelineFacts *facts, const MtfRunTrace *trace);

/* What a transfer's seconds go to: "out of devices 0 to 7", "into device 3", "device 5, axis 0 forward", or
 * that its receiver copies; free with g_free. */
char *mtf_pipeline_bottleneck(const MtfPipelineFacts *facts, int transfer);

/* The stages on a device, "0" or "0, 3"; free with g_free. *domain becomes theirs. */
char *mtf_pipeline_stages_on(const MtfPipelineFacts *facts, int device, int *domain);

/* Bytes that a device of the domain needs, and those of them that do not depend on micro-batches. */
double mtf_pipeline_domain_bytes(const MtfPipelineFacts *facts, int domain);
double mtf_pipeline_domain_fixed(const MtfPipelineFacts *facts, int domain);

/* Bytes of a device before the passes that are shown: what does not depend on micro-batches, and of steps that overlap
 * the micro-batches in flight. */
double mtf_pipeline_domain_begins_with(const MtfPipelineFacts *facts, int domain);

/* Bytes that an action of the order adds to what its domain holds while it runs, and takes away when
 * it is over. */
double mtf_pipeline_action_adds(const MtfPipelineFacts *facts, const MtfPipelineAction *action);
double mtf_pipeline_action_frees(const MtfPipelineFacts *facts, const MtfPipelineAction *action);

#endif
