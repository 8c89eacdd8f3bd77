// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/stage_plan.h"

#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

MtfStagePlan *mtf_stage_plan_new(void) {
    MtfStagePlan *plan = g_new0(MtfStagePlan, 1);
    plan->stages = g_array_new(FALSE, TRUE, sizeof(MtfStage));
    return plan;
}

void mtf_stage_plan_free(MtfStagePlan *plan) {
    if (plan == NULL)
        return;
    g_array_unref(plan->stages);
    g_free(plan);
}

int64_t mtf_stage_devices(const MtfStage *stage) {
    return stage->replicas * stage->degree;
}

int64_t mtf_stage_plan_devices(const MtfStagePlan *plan) {
    int64_t devices = 0;
    for (guint i = 0; i < plan->stages->len; i++)
        devices += mtf_stage_devices(&g_array_index(plan->stages, MtfStage, i));
    return devices;
}

void mtf_stage_plan_fail(double memory, GError **error) {
    g_autofree char *bytes = mtf_bytes_format(memory);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT, "no division into stages fits in %s a device",
                bytes);
}

double mtf_stage_plan_gap(const MtfStagePlan *plan) {
    return plan->seconds > 0 ? MAX(0, (plan->seconds - plan->bound) / plan->seconds) : 0;
}
