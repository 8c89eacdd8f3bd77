// SPDX-License-Identifier: GPL-3.0-or-later
/* What a search over stages finds: the stages from first to last, what they cost, and how much less
 * any other plan of the same kind could cost. */
#ifndef MTF_STAGE_PLAN_H
#define MTF_STAGE_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int from, to;     /* downsets, or in a chain the first layer and the one after the last */
    int degree;       /* devices that share a replica */
    int64_t replicas; /* of the stage */
    int64_t flight;   /* micro-batches that a replica holds */
    double seconds;   /* a micro-batch */
    double bytes;     /* on a device; 0 where nobody asked */
} MtfStage;

typedef struct {
    GArray *stages; /* of MtfStage */
    double seconds; /* what the search minimised */
    double bound;   /* no plan of the kind searched is below it */
} MtfStagePlan;

/* A plan without stages; the caller frees it. */
MtfStagePlan *mtf_stage_plan_new(void);
void mtf_stage_plan_free(MtfStagePlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStagePlan, mtf_stage_plan_free)

/* All devices of a stage, and of a plan. */
int64_t mtf_stage_devices(const MtfStage *stage);
int64_t mtf_stage_plan_devices(const MtfStagePlan *plan);

/* Fails with MTF_ERROR_FIT: nothing fits in `memory` bytes of a device. */
void mtf_stage_plan_fail(double memory, GError **error);

/* (seconds - bound) / seconds. */
double mtf_stage_plan_gap(const MtfStagePlan *plan);

#endif
