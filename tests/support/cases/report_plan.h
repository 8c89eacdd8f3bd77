// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans as a report meets them: printed and read back. */
#ifndef MTF_TESTS_REPORT_PLAN_H
#define MTF_TESTS_REPORT_PLAN_H

#include "layouts/plan_file/plan.h"

/* The plan written as a file is and read again, so that its trees hold what files hold. Takes the
 * plan. */
MtfPlan *mtf_test_read_back(MtfPlan *plan);

/* A training graph whose every name (graph, dimensions, tensors, a repeated block, mesh axes) holds
 * quotes, brackets, ampersands, backslashes and letters outside ASCII, laid out by rules on a mesh
 * of 2 x 2. Aborts when it cannot be made. Free with mtf_plan_free. */
MtfPlan *mtf_test_hostile_plan(void);

/* The training step of a forward graph, which it takes, on a mesh under rules, without a machine. */
MtfPlan *mtf_test_plan_of(MtfGraph *forward, const char *mesh, const char *rules);

/* The same with its step in bfloat16 where the variables stay in f32. */
MtfPlan *mtf_test_mixed_plan_of(MtfGraph *forward, const char *mesh, const char *rules);

/* x[batch, io] w[io, hidden] = h, y = relu h, l = sum of y, with its training step, on a mesh under
 * rules, without a machine. Sizes: batch 8, io 4, hidden 12. */
MtfPlan *mtf_test_small_plan(const char *mesh, const char *rules);

/* c -> h = c w, y = h v, z = c + y four times over as "layer", between "start" and the loss "l", on
 * rows:2;cols:2 under batch:rows;inner:cols. Sizes: batch 8, hidden 4, inner 12. */
MtfPlan *mtf_test_layered_plan(void);

#endif
