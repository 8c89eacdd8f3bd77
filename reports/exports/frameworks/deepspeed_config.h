// SPDX-License-Identifier: GPL-3.0-or-later
/* DeepSpeed's configuration of a plan, to which other sections may be added. */
#ifndef MTF_DEEPSPEED_CONFIG_H
#define MTF_DEEPSPEED_CONFIG_H

#include "reports/exports/frameworks/framework_plan.h"

#include <cjson/cJSON.h>

/* Batches, precision, ZeRO, clipping (of `graph`, the whole), AutoTP's degree; the caller owns it. `plan` is
 * that of a pipeline's stage where there are some. */
cJSON *mtf_deepspeed_config(const MtfGraph *graph, const MtfPlan *plan,
                            const MtfFrameworkPlan *framework);

#endif
