// SPDX-License-Identifier: GPL-3.0-or-later
/* What a layout is in the field's words, found from how its operations run and where its tensors are:
 *
 *     data parallel 8 x tensor parallel 4, sequence parallel, optimizer sharded (ZeRO-1)
 *
 * Each mesh axis counts as what it does in most of the work of the forward products: it splits
 *
 *     data       the batch, the dimension that all inputs share
 *     expert     the dimension "experts"
 *     tensor     a dimension of variables that products read
 *     context    another dimension of inputs, as positions are, or one of no variable
 *     none       nothing: every processor along it does the same
 *
 * Optimizer state, gradients and variables are sharded as far as axes of data and context split them:
 * ZeRO-1 (optimizer), ZeRO-2 (and gradients that wait for the last micro-batch), ZeRO-3 (and
 * variables, as FSDP has them). Variables that products read in a narrower type are master copies: with several
 * micro-batches they may be whole where the optimizer's moments are sharded, gathered once a step. */
#ifndef MTF_PARALLELISM_H
#define MTF_PARALLELISM_H

#include "layouts/placement/layout.h"

#include <cjson/cJSON.h>

typedef enum {
    MTF_PARALLEL_DATA,
    MTF_PARALLEL_TENSOR,
    MTF_PARALLEL_CONTEXT,
    MTF_PARALLEL_EXPERT,
    MTF_PARALLEL_NONE,
    MTF_PARALLELS,
} MtfParallel;

typedef struct {
    MtfParallel axis[MTF_MAX_MESH_AXES]; /* what each axis does most */
    MtfParallel second[MTF_MAX_MESH_AXES];
    double second_share[MTF_MAX_MESH_AXES]; /* of the work; 0: it does one thing */
    int degree[MTF_PARALLELS];              /* product of the sizes of such axes */
    bool sequence_parallel; /* activations between sharded products are split by positions */
    bool spatial;           /* context is that of pictures or signals, not of tokens */
    bool has_products;      /* else all forward operations were counted */
    double optimizer, masters, gradients, variables; /* how far sharded over data and context, 0 to
                                                        1; 1: there are no master copies */
    int zero;                                        /* 0 to 3 */
} MtfParallelism;

/* The degrees of each kind of parallelism that a layout uses, in the field's words. */
MtfParallelism mtf_parallelism(const MtfGraph *graph, const MtfLayout *layout);

/* The words; free with g_free. */
char *mtf_parallelism_format(const MtfGraph *graph, const MtfLayout *layout);

/* Whether each axis does one thing, data or tensor parallelism. */
bool mtf_parallelism_is_plain(const MtfParallelism *parallelism);

/* Whether Megatron-LM runs layouts of the kind: each axis does one thing in all products, data or tensor
 * parallelism, and what is kept is replicated but for that, or its optimizer distributed (ZeRO-1). */
bool mtf_parallelism_is_megatron(const MtfParallelism *parallelism);

/* Whether torchtitan does, in so many micro-batches: likewise, all that is kept is sharded (FSDP, which sums the
 * gradients of each micro-batch in pieces, too), or nothing (DDP, without tensor parallelism beside it), and
 * activations are split by positions between tensor parallel products. */
bool mtf_parallelism_is_torchtitan(const MtfParallelism *parallelism, int microbatches);

/* {"data_parallel", "tensor_parallel", "context_parallel", "expert_parallel", "replicated",
 * "sequence_parallel", "zero"}; the caller owns it. */
cJSON *mtf_parallelism_to_json(const MtfParallelism *parallelism);

#endif
