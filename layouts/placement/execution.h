// SPDX-License-Identifier: GPL-3.0-or-later
/* How a layout is run, apart from where its tensors are: what is divided, what of the forward pass is kept,
 * and what the passes (layouts/program/passes.h) are told. None of it changes a result; all of it changes
 * when things happen and what memory they need. Plans hold it under "execution". */
#ifndef MTF_EXECUTION_H
#define MTF_EXECUTION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* What the backward pass recomputes instead of finding it kept (layouts/execution/recompute.h). */
typedef enum {
    MTF_RECOMPUTE_NONE,
    MTF_RECOMPUTE_CHEAP,
    MTF_RECOMPUTE_LAYERS,
    MTF_RECOMPUTES,
} MtfRecompute;

/* What of the rest waits for it in the host's memory (layouts/execution/offload.h). */
typedef enum {
    MTF_OFFLOAD_NONE,
    MTF_OFFLOAD_LAYERS,
    MTF_OFFLOAD_ACTIVATIONS,
    MTF_OFFLOADS,
} MtfOffload;

/* Into how many parts a step's batch and its attention are divided. By it, and by what is kept, the graph
 * that is laid out and run follows from the training graph (layouts/execution/executed_graph.h). */
typedef struct {
    int microbatches; /* that a step divides its batch into: how often its forward and backward
                         passes run (layouts/graph/microbatches.h); 1 */
    int batch; /* with several, and of a pass of its own: the dimension that counts examples */
    bool
        own_pass; /* one micro-batch is a pass of its own, too: what a step wants of it outlives it,
                         since in a pipeline passes of other steps may follow before that is used */
    int ring;     /* queries and memory, alike (layouts/execution/key_ring.h); 0, 1: it is whole */
    int key_parts; /* memory alone (layouts/execution/key_parts.h); 0, 1: it is whole */
} MtfDivision;

/* What is kept of a forward pass for the backward pass, and where. */
typedef struct {
    MtfRecompute recompute;
    int recomputed_layers; /* with MTF_RECOMPUTE_LAYERS: how many, from the first on; 0: all */
    MtfOffload offload;
    int offloaded_layers; /* how many, from the first on; 0: all */
} MtfKept;

/* "none", "cheap", "layers", and with `layers` (0: all) "layers:K"; and back, where "selective" is cheap
 * and "full" layers, too. Fails with a bad-input error that lists them; NULL is "none". */
const char *mtf_recompute_name(MtfRecompute recompute);
char *mtf_recompute_format(MtfRecompute recompute, int layers); /* free with g_free */
bool mtf_recompute_parse(const char *text, MtfRecompute *recompute, int *layers, GError **error);

/* "layers,none", of each stage; free with g_free. */
char *mtf_recompute_format_stages(const MtfRecompute *each, int stages);

/* A list with commas, one for each of `stages` stages, without numbers of layers; NULL on an error, otherwise
 * to be freed with g_free. */
MtfRecompute *mtf_recompute_parse_stages(const char *text, int stages, GError **error);

/* "none", "layers", "activations", and with `layers` (0: all) "layers:K" and "activations:K"; and back.
 * Fails with a bad-input error that lists them; NULL is "none". */
char *mtf_offload_format(MtfOffload offload, int layers); /* free with g_free */
bool mtf_offload_parse(const char *text, MtfOffload *offload, int *layers, GError **error);

/* What a pipeline's schedule asks of a stage (layouts/plan_file/pipeline_plan.h). All zero: there is no
 * pipeline. */
typedef struct {
    int in_flight;        /* micro-batches between their forward and their backward pass, at most */
    int weight_versions;  /* that variables are kept in, of steps that overlap */
    bool splits_backward; /* weight gradients may be computed apart, later (split_backward.h) */
} MtfStageExecution;

typedef struct {
    MtfDivision division;
    MtfKept kept;
    int *order; /* of the program's instructions, NULL for the order of operations: instruction i is
                   the order[i]-th of those (layouts/program/program_order.h) */
    int order_length;
    int64_t bucket_bytes;      /* small exchanges are joined to messages of at most this many bytes
                                  (layouts/program/combine_collectives.h), 0: none are */
    unsigned char *algorithms; /* of the program's instructions, MtfExchangeAlgorithm each
                                  (layouts/program/algorithm_list.h); NULL: all direct */
    int n_algorithms;
    MtfStageExecution stage;
} MtfExecution;

#endif
