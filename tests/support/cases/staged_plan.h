// SPDX-License-Identifier: GPL-3.0-or-later
/* A small pipeline's plan, searched. */
#ifndef MTF_TEST_STAGED_PLAN_H
#define MTF_TEST_STAGED_PLAN_H

#include "cost/machine/machine.h"
#include "layouts/plan_file/pipeline_plan.h"

typedef struct {
    const char *schedule; /* NULL: 1f1b */
    int devices;          /* of a stage, on one axis; 0: one */
    int chunks;           /* of a domain; 0: one */
    int microbatches;     /* 0: two */
} MtfTestStages;

/* The library's mlp in two stages. */
MtfPipelinePlan *mtf_test_two_stages(const MtfMachine *machine, MtfTestStages of);

/* A graph in so many stages, which its operations may name. */
MtfPipelinePlan *mtf_test_staged_plan(const MtfMachine *machine, const MtfGraph *written,
                                      int stages, MtfTestStages of);

/* The plan as reports read it, from a file. Takes the plan. */
MtfPipelinePlan *mtf_test_staged_read_back(MtfPipelinePlan *plan);

#endif
