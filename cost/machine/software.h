// SPDX-License-Identifier: GPL-3.0-or-later
/* A software profile: what a framework launches for the same model, as its file in
 * layouts/library/software says. The device's own figures (rates, launches, links) are the
 * machine's (cost/machine/kernel_rates.h); a profile counts what is launched, moved, kept and hidden.
 *
 *     sweeps   bytes read and written per 2-byte element: of a layer's input (norms, residuals), of
 *              the inner width (activation), of queries, keys and values (heads), of scores where
 *              attention is not fused, of logits
 *     redone   the share of the forward pass that a policy of recomputation runs again, by part
 *     hidden   the share of a kind of communication that runs beside kernels
 *     kept     what else stands in memory than numbers that the model needs */
#ifndef MTF_SOFTWARE_H
#define MTF_SOFTWARE_H

#include "layouts/base/json_reader.h"
#include "layouts/kernel_work/fusable.h"

#include <cjson/cJSON.h>

typedef enum { MTF_PASS_FORWARD, MTF_PASS_BACKWARD, MTF_PASSES } MtfPassKind;

typedef enum {
    MTF_PART_QUERIES, /* product of queries, keys and values */
    MTF_PART_ATTENTION,
    MTF_PART_OUTPUT, /* product after attention */
    MTF_PART_UP,     /* first products of the feed-forward part */
    MTF_PART_DOWN,
    MTF_PART_SWEEPS,
    MTF_PART_MESSAGES, /* of the tensor-parallel group */
    MTF_LAYER_PARTS
} MtfLayerPart;

typedef enum {
    MTF_SWEPT_NORM,     /* per element of the layer's input, and for both norms of the layer */
    MTF_SWEPT_RESIDUAL, /* likewise, for both: bias, dropout, sum */
    MTF_SWEPT_ACTIVATION,
    MTF_SWEPT_GATED, /* the activation of a gated feed-forward part */
    MTF_SWEPT_HEADS,
    MTF_SWEPT_SCORES,
    MTF_SWEPT_LOGITS,
    MTF_SWEPT_CAST,   /* per element that enters a product of 8-bit numbers */
    MTF_SWEPT_ROUTED, /* per element of a token's copy for an expert: permute, pad, put back */
    MTF_SWEPTS
} MtfSwept;

typedef enum {
    MTF_HIDDEN_TENSOR,   /* sums of the tensor-parallel group */
    MTF_HIDDEN_DATA,     /* gradients, and weights of a sharded optimizer */
    MTF_HIDDEN_SHARDED,  /* weights gathered layer by layer */
    MTF_HIDDEN_PIPELINE, /* between stages */
    MTF_HIDDEN_CONTEXT,  /* keys and values of a split sequence */
    MTF_HIDDEN_EXPERT,   /* tokens to experts and back */
    MTF_HIDDENS
} MtfHidden;

typedef enum { MTF_REDO_NONE, MTF_REDO_SELECTIVE, MTF_REDO_FULL, MTF_REDOS } MtfRedo;

/* How well runs of the profile on a machine were predicted by judge. */
typedef struct {
    char *machine;
    int64_t runs;
    double error; /* mean of |predicted / measured - 1| */
    bool experts; /* of models with experts */
} MtfJudgedRuns;

typedef struct {
    char *name, *summary;
    char **matches;                  /* parts of names by which it is known, lower case */
    double host_seconds;             /* that the host takes to launch a kernel */
    double slow_host_seconds;        /* as long as that was seen to take; 0: not known */
    double host_kernels[MTF_PASSES]; /* that a layer's pass launches */
    bool eager; /* calls its library operation by operation (layouts/kernel_work/eager.h) */
    double pooled[MTF_PASSES]; /* float32 operations in whose time its pools take an element of a
                                  window (0) */
    double batch_norm_share; /* of the machine's rate of rows, that norms over a batch reach (1) */
    bool loops_at_once; /* the host calls a loop of recurrent cells once, not each of its kernels */
    double host_collective_seconds; /* to launch one, and to wait for its ranks */
    double
        blocked_seconds; /* where the host waits for each kernel before the next launch: its waking up;
                               0: it runs ahead */
    double routed_seconds[MTF_PASSES]; /* to launch a layer's routing (0) */
    double expert_seconds[MTF_PASSES]; /* and each expert of the device (0) */
    double swept[MTF_SWEPTS][MTF_PASSES];
    bool fused_attention, causal_skips; /* whether masked blocks are left out */
    bool biased_attention;   /* fused where models learn what is added to scores, too (true) */
    bool portable_attention; /* kernels that know no newest units */
    double attention_block;  /* keys of a block, left out only where all are masked (128) */
    double attention_share;  /* of the machine's rate of fused attention */
    bool pads;               /* whether vocabularies are padded until rows of logits are aligned */
    bool sequence_split;     /* whether sums of the tensor group are always split */
    double redone[MTF_REDOS][MTF_LAYER_PARTS];
    double
        attention_again; /* how often attention runs for the backward pass beyond its graph (0) */
    double hidden[MTF_HIDDENS];
    double step_seconds;     /* what the host adds to a step */
    double update_bytes;     /* read and written by the optimizer a parameter */
    double accumulate_bytes; /* a parameter and micro-batch after the first */
    double weight_bytes, gradient_bytes, reduce_bytes; /* of a parameter, as kept and as sent */
    double optimizer_bytes; /* kept a parameter: master copy and moments */
    bool narrow_weights;    /* weights stand in the type that products read, beside the optimizer's;
                             else each pass casts them */
    bool own_messages;      /* gradients and new weights are sent as said here, not as the step's
                             graph has them */
    bool whole_sums;      /* gradients are summed whole, and ranks of a sharded optimizer take their
                             parts */
    double gathers;       /* messages that bring a layer's sharded weights (1) */
    bool gathered_again;  /* for a forward pass redone, and once more for the gradients after it */
    double part_launches; /* by the host a rank and message: of its part put in its place (0) */
    double contention;    /* how much kernels slow down while messages run beside them */
    double spread;        /* by which a step grows with every doubling of nodes */
    struct {
        double slack;         /* the allocator's, a share of everything */
        double context_bytes; /* of the driver, libraries and buffers of messages */
        double scores;        /* bytes kept of a score where attention is not fused */
        double layer;         /* bytes kept of an input's element: norms, residuals, dropout */
        double inner;         /* likewise of the inner width */
        double gated;         /* and of one that is gated (half as much again) */
        double heads;         /* of queries, keys, values and what attention makes of them */
        double logits;        /* of a logit */
        double copies;        /* of a parameter that products read in a narrower type (0) */
        bool offloads;        /* what selective recomputation keeps lies with the host */
        bool comes_and_goes;  /* gradients stand only while activations have gone */
        double unfit;         /* then the share of the smaller of the two that the allocator holds
                                 beside the larger, since its blocks are cut for the other */
        bool reserved;        /* its runs tell what the allocator reserved, without the context */
    } kept;
    GArray *judged; /* MtfJudgedRuns */
    cJSON *written; /* the object it was read from */
} MtfSoftware;

/* The profile that is the program as it stands: what meshtf-run executes. */
#define MTF_OWN_SOFTWARE "meshtf"

/* Loads a profile of the library ("megatron-core") or of a file. Free with mtf_software_free. */
MtfSoftware *mtf_software_load(const char *name_or_path, GError **error);

/* Reads a profile from a place in a document: a file's root, or the "software" of a plan's machine.
 * What it was read from is in `written`. */
MtfSoftware *mtf_software_from_json(const MtfJson *where, GError **error);

void mtf_software_free(MtfSoftware *software);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfSoftware, mtf_software_free)

/* What it does with a graph; NULL nothing of its own. */
MtfFramework mtf_software_framework(const MtfSoftware *software);

/* The library's profile that knows the longest part of `words` (a run's description of its
 * software, "NeMo/megatron-core + TE"); NULL without an error where none knows any. */
MtfSoftware *mtf_software_match(const char *words, GError **error);

#endif
