// SPDX-License-Identifier: GPL-3.0-or-later
/* Megatron-LM's flags of how a step is run: those that plans with and without pipeline stages share. */
#ifndef MTF_MEGATRON_FLAGS_H
#define MTF_MEGATRON_FLAGS_H

#include "reports/exports/frameworks/framework_plan.h"

/* Appends precision, sequence parallelism, the distributed optimizer and what is recomputed, where that is
 * not what Megatron-LM does unasked. */
void mtf_megatron_append_execution(GString *text, const MtfPlan *plan,
                                   const MtfFrameworkPlan *framework);

#endif
