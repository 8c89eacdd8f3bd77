// SPDX-License-Identifier: GPL-3.0-or-later
/* What reading (plan.c) and writing (plan_writing.c) a plan must agree upon. */
#ifndef MTF_PLAN_PARTS_H
#define MTF_PLAN_PARTS_H

#include "layouts/plan_file/plan.h"

/* Of the file that is written. */
#define MTF_PLAN_VERSION 6

/* What an operation that the execution added does over again, where it is laid out as a rule: the file
 * says what differs. -1: it is in the training graph. */
int mtf_plan_original_of(const MtfPlan *plan, int operation);

#endif
