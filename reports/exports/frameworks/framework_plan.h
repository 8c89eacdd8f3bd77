// SPDX-License-Identifier: GPL-3.0-or-later
/* What training frameworks ask of a plan: each mesh axis is data or tensor parallelism throughout, weights
 * are whole or sharded by a stage of ZeRO, and the batch divides evenly. */
#ifndef MTF_FRAMEWORK_PLAN_H
#define MTF_FRAMEWORK_PLAN_H

#include "cost/summary/parallelism.h"
#include "reports/exports/export_forms.h"

typedef struct {
    MtfParallelism parallelism;
    int64_t batch;       /* examples of a step */
    int64_t micro_batch; /* … of a micro-batch on one data parallel rank */
    MtfRecompute recomputes;
    int recomputed_layers; /* how many, from the first on; 0: all, where layers are */
    bool offloads;         /* what layers hand on waits with the host, beside recomputed layers */
} MtfFrameworkPlan;

/* Fails where the plan is of another kind, with its kind and, where a dimension or axis is the reason, that;
 * `framework` is whose rule it is. */
bool mtf_framework_plan(const MtfPlan *plan, const char *framework, MtfFrameworkPlan *found,
                        GError **error);

/* Whether tensor parallelism leaves weights even parts; whether the network reads texts, as frameworks for language
 * models alone ask. */
bool mtf_framework_check_even(const MtfPlan *plan, const char *framework, const MtfParallelism *p,
                              GError **error);
bool mtf_framework_check_text(const MtfPlan *plan, const char *framework, GError **error);

/* Sets what the plan recomputes and leaves with the host. Fails where it leaves there what no framework
 * does. */
bool mtf_framework_recomputation(const MtfPlan *plan, MtfFrameworkPlan *found, GError **error);

#endif
