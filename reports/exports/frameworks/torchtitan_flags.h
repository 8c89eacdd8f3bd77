// SPDX-License-Identifier: GPL-3.0-or-later
/* What torchtitan's flags say of a plan without stages and of the stages of a pipeline alike (its JobConfig, by the
 * names that its command line takes), one a line. */
#ifndef MTF_TORCHTITAN_FLAGS_H
#define MTF_TORCHTITAN_FLAGS_H

#include "reports/exports/frameworks/framework_plan.h"

/* A batch of `local` examples a rank of data parallelism before gradients are reduced. Fails where torchtitan runs
 * no such plan: it shards by FSDP, whole over the ranks of data parallelism or not at all, and splits activations by
 * positions between tensor parallel products. */
bool mtf_torchtitan_append(GString *text, const MtfPlan *plan, const MtfFrameworkPlan *p,
                           int64_t local, GError **error);

#endif
