// SPDX-License-Identifier: GPL-3.0-or-later
/* How a layout is run, apart from where its tensors are: what the passes (layouts/program/passes.h)
 * are told. None of it changes a result; all of it changes when things happen and what memory they
 * need. Plans hold it under "execution". */
#ifndef MTF_EXECUTION_H
#define MTF_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

/* What a pipeline's schedule asks of a stage (layouts/program/pipeline_plan.h). All zero: there is no
 * pipeline. */
typedef struct {
    int in_flight;        /* micro-batches between their forward and their backward pass, at most */
    int weight_versions;  /* that variables are kept in, of steps that overlap */
    bool splits_backward; /* weight gradients may be computed apart, later (split_backward.h) */
} MtfStageExecution;

typedef struct {
    int microbatches; /* that a step works through its batch in: so often its forward and backward
                         passes run (layouts/graph/microbatches.h); 1 */
    int *order; /* of the program's instructions, NULL for the order of operations: instruction i is
                   the order[i]-th of those (layouts/program/program_order.h) */
    int order_length;
    int64_t bucket_bytes;      /* small exchanges are joined to messages of so many bytes at most
                             (layouts/program/combine_collectives.h), 0: none are */
    unsigned char *algorithms; /* of the program's instructions, MtfExchangeAlgorithm each
                                  (layouts/program/algorithm_list.h); NULL: all direct */
    int n_algorithms;
    MtfStageExecution stage;
} MtfExecution;

#endif
