// SPDX-License-Identifier: GPL-3.0-or-later
/* Fine-tuning of a part: low-rank adapters beside frozen weights (Hu et al., "LoRA: Low-Rank
 * Adaptation of Large Language Models", 2021), and freezing alone.
 *
 *     y = einsum(x, W)      ─►     y         = einsum(x, W)            W frozen
 *                                  y/down    = einsum(x, W_lora_a)     lora_rank numbers a place
 *                                  y/up      = einsum(y/down, W_lora_b)
 *                                  y/scaled  = alpha / rank * y/up
 *                                  y/adapted = y + y/scaled            in place of y
 *
 * A begins uniform as PEFT draws it, within 1 / sqrt(inputs), and B at zero, so that the model begins
 * as it was; all variables but A and B are frozen. What the loss needs no gradient of is not
 * differentiated. Parts of one tensor of published files (a fused q|k|v) share A, as the one module
 * that they are there, and are adapted together. */
#ifndef MTF_ADAPTERS_H
#define MTF_ADAPTERS_H

#include "layouts/graph/graph.h"

typedef struct {
    const char *lora;    /* "RANK" or "RANK:ALPHA"; NULL: no adapters. ALPHA is RANK without one. */
    const char *targets; /* names between commas: the last part of a variable's name (wq) or of its
                            module in published files (q_proj); NULL: wq and wv */
    const char *freeze;  /* variables with names like this ("layer-0-*"), here or in files, stay
                            as they are; NULL: none */
} MtfAdapterOptions;

/* Rewrites a forward graph. `said` (char *, owned; or NULL) receives what was done. Fails (bad input)
 * where a rank is no number, nothing is adapted or frozen by a name, or nothing is left to train. */
bool mtf_adapters_apply(MtfGraph *graph, const MtfAdapterOptions *options, GPtrArray *said,
                        GError **error);

#endif
