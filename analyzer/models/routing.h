// SPDX-License-Identifier: GPL-3.0-or-later
/* Which experts a token goes to, as systems do it, each convention by its name:
 *
 *     convention               places of an expert among S tokens        balance   gates    who is served first
 *     switch                   max(min(S, int(S f / E)), 4)              first     shares   first choices, by position
 *     gshard                   int(S f / E), 4 for 0, to multiples of 4  first     chosen   first choices, by position
 *     gshard-random            likewise; others are taken at random      first     chosen   first choices, by position
 *     gshard-sampling          likewise; others are sampled              first     chosen   first choices, by position
 *     gshard-kept, gshard-kept-random, gshard-kept-sampling: these three with gates of what is kept
 *     deepspeed                max(ceil(S k f / E), 8)                   first     kept     first choices, by position
 *     deepspeed-random         likewise                                  first     kept     at random
 *     deepspeed-sampling       likewise; others are sampled              first     kept     first choices, by position
 *     deepspeed-topk           max(ceil(S k f / E), 8)                   all       kept     larger gates
 *     deepspeed-topk-position  max(ceil(S k f / E), 8)                   all       kept     by position
 *     tutel                    k int(f ceil(S / E))                      first     chosen   first choices, by position
 *     tutel-batch              likewise                                  first     chosen   likewise, by first gates
 *     megablocks               int(f k S / E)                            layers    shares   by position
 *     megatron                 ceil(S k f / E)                           all       chosen   larger gates
 *     megatron-position        ceil(S k f / E)                           all       chosen   by position
 *     mixtral                  as many as come                           sum       chosen   nobody waits
 *     expert-choice            int(S f / E)                              none      shares   larger gates, and all choose all
 *
 * Sources: mesh_tensorflow/transformer/moe.py; lingvo core/gshard_layers.py; deepspeed/moe/sharded_moe.py;
 * tutel/impls/fast_dispatch.py; megablocks/layers/moe.py; megatron/core/transformer/moe/moe_utils.py;
 * transformers models/mixtral; Zhou and others, Mixture-of-Experts with Expert Choice Routing, 2022. A capacity
 * factor of 0 drops nobody: rows are sorted by expert.
 *
 * With f_e the share of tokens that chose expert e and P_e its mean share of the softmax, the
 * auxiliary loss is its coefficient times E sum f_e P_e: f of first choices (first) or of all,
 * divided by k (all), and by the number of layers with experts, whose losses are added up (layers), group by
 * group and then their mean; or of all, not divided, over a whole micro-batch and all layers (sum). The z loss
 * is its coefficient times the mean of (log sum e^score)^2.
 *
 * The gates of a token are the shares of what it chose, as they are, or divided by their sum: of all that it
 * chose, or of those that have a place. One choice alone keeps its share. Larger gates are larger in what they
 * are before places decide.
 *
 * In training steps some conventions draw. Choices behind the first that are taken at random are with probability
 * 2 g of the gate g that is known by then, and else are nobody's: they take no place and add nothing. Those that
 * are sampled are drawn one after the other, without the first, with probabilities that grow as the shares.
 * Served at random: who finds a place is drawn among those that chose the expert, and they take theirs by
 * position. Numbers are of the layer's streams (layouts/graph/random.h), so that no layout changes them; where
 * nothing is learned all are taken, the largest, by position. */
#ifndef MTF_ROUTING_H
#define MTF_ROUTING_H

#include "analyzer/models/model_parts.h"

#define MTF_ROUTING_CONVENTIONS                                                                    \
    "mixtral", "switch", "gshard", "gshard-random", "gshard-sampling", "gshard-kept",              \
        "gshard-kept-random", "gshard-kept-sampling", "deepspeed", "deepspeed-random",             \
        "deepspeed-sampling", "deepspeed-topk", "deepspeed-topk-position", "tutel", "tutel-batch", \
        "megablocks", "megatron", "megatron-position", "expert-choice"

typedef enum { MTF_BALANCE_FIRST, MTF_BALANCE_ALL, MTF_BALANCE_SUM, MTF_BALANCE_NONE } MtfBalance;

typedef enum { MTF_GATES_SHARES, MTF_GATES_CHOSEN, MTF_GATES_KEPT } MtfGates;

/* Choices behind the first. */
typedef enum { MTF_OTHERS_TAKEN, MTF_OTHERS_RANDOM, MTF_OTHERS_SAMPLED } MtfOtherChoices;

typedef struct {
    const char *name;
    int64_t (*places)(double tokens, double experts, double choices, double factor); /* NULL: all */
    MtfBalance balance;
    bool by_layers; /* the balance is divided by the layers with experts */
    MtfGates gates;
    MtfOtherChoices others;
    int queue, priority; /* of the slots row */
    bool drawn;          /* what priority compares is drawn, not a gate */
    bool chosen_by_experts;
} MtfRoutingConvention;

/* How a layer routes. */
typedef struct {
    const char *convention; /* NULL: mixtral */
    int64_t experts, choices;
    int64_t layers;         /* with experts, of the whole model */
    int64_t capacity;       /* places of an expert; 0: as the convention says */
    double capacity_factor; /* 0: no capacity, nothing is dropped */
    int64_t groups;         /* of experts; a token chooses from `group_choices` of them; 0: from all
                               experts */
    int64_t group_choices;
    bool pairs;       /* a group is as good as its two best experts together, not as its best */
    bool biased;      /* shares are compared with a number of each expert added, but not used so */
    bool sigmoid;     /* shares are sigmoids of the scores, not their softmax */
    bool renormalise; /* gates of a token add up to 1; a convention that is named says so itself */
    double margin;    /* of SparseMixer (routing.c); 0: shares are of all experts */
    double auxiliary, z_loss, jitter;
    bool experts_read_jittered; /* what the router does, as Mixtral's */
} MtfRouting;

/* What a user asks for; NULL or 0: as the model has it. */
typedef struct {
    const char *convention; /* of MTF_ROUTING_CONVENTIONS */
    double capacity_factor, auxiliary, z_loss, jitter;
} MtfRoutingWish;

/* A model's routing of `choices` experts a token, as it is wished. A convention without a factor keeps the
 * model's capacity; experts that choose take as many tokens as would else be sent to them. */
void mtf_routing_wish(MtfRouting *routing, int64_t choices, const MtfRoutingWish *wish);

/* Experts that a token is compared for: those that it is sent to, or all where experts choose. */
int64_t mtf_routing_choices(const MtfRouting *routing);

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
    /* Where balance is of all layers together: f and P of this one, [experts], and the coefficient
     * times the experts squared; or -1, -1 and 0. */
    int chosen, shares;
    double balance;
} MtfRouted;

/* What layers with experts lose, as far as they are added up. */
typedef struct {
    int loss, chosen, shares; /* as MtfRouted's */
    double balance;
    int64_t layers; /* that `chosen` and `shares` are of */
} MtfRoutedSum;

#define MTF_NOTHING_ROUTED ((MtfRoutedSum){ .loss = -1, .chosen = -1, .shares = -1 })

/* Routes tokens by their scores; names of what is built are those of the part that is entered. */
MtfRouted mtf_route(MtfParts *parts, const MtfRouting *routing, const MtfRoutingDims *dims,
                    int scores);

/* Adds what a layer loses to what layers before it lost. */
void mtf_routed_add(MtfParts *parts, MtfRoutedSum *sum, const MtfRouted *routed);

/* What all layers lose; -1: nothing. */
int mtf_routed_loss(MtfParts *parts, const MtfRoutedSum *sum);

#endif
