// SPDX-License-Identifier: GPL-3.0-or-later
/* Which experts a token goes to, as systems do it, each convention by its name:
 *
 *     convention      places of an expert among S tokens        balance   who is served first
 *     switch          max(min(S, int(S f / E)), 4)              first     first choices, by position
 *     gshard          int(S f / E), 4 for 0, to multiples of 4  first     first choices, by position
 *     deepspeed       max(ceil(S k f / E), 8)                   first     first choices, by position
 *     deepspeed-topk  max(ceil(S k f / E), 8)                   all       larger gates
 *     tutel           k int(f ceil(S / E))                      first     first choices, by position
 *     tutel-batch     likewise                                  first     likewise, by first gates
 *     megablocks      int(f k S / E)                            all       by position
 *     megatron        ceil(S k f / E)                           all       larger gates
 *     mixtral         as many as come                           sum       nobody waits
 *
 * Sources: mesh_tensorflow/transformer/moe.py; lingvo core/gshard_layers.py; deepspeed/moe/sharded_moe.py;
 * tutel/impls/fast_dispatch.py; megablocks/layers/moe.py; megatron/core/transformer/moe/moe_utils.py;
 * transformers models/mixtral. A capacity factor of 0 drops nobody: rows are sorted by expert.
 *
 * With f_e the share of tokens that chose expert e and P_e its mean share of the softmax, the
 * auxiliary loss is its coefficient times E sum f_e P_e: f of first choices (first) or of all,
 * divided by k (all), group by group and then their mean; or of all, not divided, over the whole
 * batch (sum). The z loss is its coefficient times the mean of (log sum e^score)^2. */
#ifndef MTF_ROUTING_H
#define MTF_ROUTING_H

#include "analyzer/models/model_parts.h"

typedef enum { MTF_BALANCE_FIRST, MTF_BALANCE_ALL, MTF_BALANCE_SUM } MtfBalance;

typedef struct {
    const char *name;
    int64_t (*places)(double tokens, double experts, double choices, double factor); /* NULL: all */
    MtfBalance balance;
    int queue, priority; /* of the slots row */
} MtfRoutingConvention;

/* How a layer routes. */
typedef struct {
    const char *convention; /* NULL: mixtral */
    int64_t experts, choices;
    int64_t capacity;       /* places of an expert; 0: as the convention says */
    double capacity_factor; /* 0: no capacity, nothing is dropped */
    int64_t groups;         /* of experts; a token chooses from `group_choices` of them; 0: from all
                               experts */
    int64_t group_choices;
    bool pairs;       /* a group is as good as its two best experts together, not as its best */
    bool biased;      /* shares are compared with a number of each expert added, but not used so */
    bool sigmoid;     /* shares are sigmoids of the scores, not their softmax */
    bool renormalise; /* gates of a token add up to 1 */
    double margin;    /* of SparseMixer (routing.c); 0: shares are of all experts */
    double auxiliary, z_loss, jitter;
} MtfRouting;

/* An expert's capacity for `tokens` tokens; 0: unlimited. Never more than there are
 * tokens, since a token chooses an expert once. */
int64_t mtf_routing_places(const MtfRouting *routing, int64_t tokens);

/* Dimensions of a layer's routing (DeepSeek-V2 and V3 choose by groups: DeepSeek-V3, 2024, 2.1.2): scores are
 * [groups, tokens, experts]. */
typedef struct {
    int tokens, experts, choices;
    int groups, members, group_choices, pair; /* where experts lie in groups */
    int bias;                                 /* with `biased`: the tensor [experts] */
    int places; /* of each expert, or without a capacity the rows of a group: tokens x choices */
} MtfRoutingDims;

typedef struct {
    int gate;   /* [groups, tokens, choices] */
    int choice; /* likewise: the expert */
    int slot;   /* likewise */
    int expert; /* [groups, rows]: whose each row is; -1 with a capacity */
    int loss;   /* a number to be added to the loss, or -1 */
} MtfRouted;

/* Routes tokens by their scores; names of what is built are those of the part that is entered. */
MtfRouted mtf_route(MtfParts *parts, const MtfRouting *routing, const MtfRoutingDims *dims,
                    int scores);

#endif
