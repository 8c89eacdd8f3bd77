// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/routing.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SECOND_THRESHOLD 0.5 /* a gate that large is always taken */

static int64_t switch_places(double tokens, double experts, double choices, double factor) {
    (void)choices;
    return (int64_t)fmax(fmin(tokens, floor(tokens * factor / experts)), 4);
}

static int64_t gshard_places(double tokens, double experts, double choices, double factor) {
    (void)choices;
    double places = floor(tokens * factor / experts);
    return (int64_t)(places == 0 ? 4 : ceil(places / 4) * 4);
}

static int64_t megatron_places(double tokens, double experts, double choices, double factor) {
    return (int64_t)ceil(tokens * choices * factor / experts);
}

static int64_t deepspeed_places(double tokens, double experts, double choices, double factor) {
    return MAX(megatron_places(tokens, experts, choices, factor), 8);
}

static int64_t tutel_places(double tokens, double experts, double choices, double factor) {
    return (int64_t)(choices * floor(factor * ceil(tokens / experts)));
}

static int64_t megablocks_places(double tokens, double experts, double choices, double factor) {
    return (int64_t)floor(factor * choices * tokens / experts);
}

static int64_t choosing_places(double tokens, double experts, double choices, double factor) {
    (void)choices;
    return (int64_t)floor(tokens * factor / experts);
}

#define FIRST(of) .balance = MTF_BALANCE_FIRST, .gates = MTF_GATES_##of
#define ALL(of) .balance = MTF_BALANCE_ALL, .gates = MTF_GATES_##of
#define GSHARD .places = gshard_places, .queue = 1
#define DEEPSPEED .places = deepspeed_places
#define TUTEL .places = tutel_places, .queue = 1
#define MEGATRON .places = megatron_places, ALL(CHOSEN)

static const MtfRoutingConvention conventions[] = {
    { "mixtral", .balance = MTF_BALANCE_SUM, .gates = MTF_GATES_CHOSEN },
    { "switch", .places = switch_places, FIRST(SHARES), .queue = 1 },
    { "gshard", GSHARD, FIRST(CHOSEN) },
    { "gshard-random", GSHARD, FIRST(CHOSEN), .others = MTF_OTHERS_RANDOM },
    { "gshard-sampling", GSHARD, FIRST(CHOSEN), .others = MTF_OTHERS_SAMPLED },
    { "gshard-kept", GSHARD, FIRST(KEPT) },
    { "gshard-kept-random", GSHARD, FIRST(KEPT), .others = MTF_OTHERS_RANDOM },
    { "gshard-kept-sampling", GSHARD, FIRST(KEPT), .others = MTF_OTHERS_SAMPLED },
    { "deepspeed", DEEPSPEED, FIRST(KEPT), .queue = 1 },
    { "deepspeed-random", DEEPSPEED, FIRST(KEPT), .priority = 1, .drawn = true },
    { "deepspeed-sampling", DEEPSPEED, FIRST(KEPT), .queue = 1, .others = MTF_OTHERS_SAMPLED },
    { "deepspeed-topk", DEEPSPEED, ALL(KEPT), .priority = 1 },
    { "deepspeed-topk-position", DEEPSPEED, ALL(KEPT) },
    { "tutel", TUTEL, FIRST(CHOSEN) },
    { "tutel-batch", TUTEL, FIRST(CHOSEN), .priority = 2 },
    { "megablocks", .places = megablocks_places, ALL(SHARES), .by_layers = true },
    { "megatron", MEGATRON, .priority = 1 },
    { "megatron-position", MEGATRON },
    { "expert-choice", .places = choosing_places, .balance = MTF_BALANCE_NONE, .priority = 1,
      .chosen_by_experts = true },
};

static const MtfRoutingConvention *convention_named(const char *name) {
    for (size_t i = 0; i < G_N_ELEMENTS(conventions); i++)
        if (name == NULL || strcmp(conventions[i].name, name) == 0)
            return &conventions[i];
    return NULL;
}

void mtf_routing_wish(MtfRouting *routing, int64_t choices, const MtfRoutingWish *wish) {
    const MtfRoutingConvention *convention = convention_named(wish->convention);
    if (wish->convention != NULL) {
        routing->convention = wish->convention;
        if (convention->chosen_by_experts || convention->places == NULL)
            routing->capacity = 0;
        if (convention->chosen_by_experts)
            routing->capacity_factor = (double)choices;
    }
    if (wish->capacity_factor > 0) {
        routing->capacity_factor = wish->capacity_factor;
        routing->capacity = 0;
    }
    routing->auxiliary = wish->auxiliary > 0 ? wish->auxiliary : routing->auxiliary;
    routing->z_loss = wish->z_loss > 0 ? wish->z_loss : routing->z_loss;
    routing->jitter = wish->jitter > 0 ? wish->jitter : routing->jitter;
}

int64_t mtf_routing_choices(const MtfRouting *routing) {
    return convention_named(routing->convention)->chosen_by_experts ? routing->experts
                                                                    : routing->choices;
}

int64_t mtf_routing_places(const MtfRouting *routing, int64_t tokens) {
    const MtfRoutingConvention *convention = convention_named(routing->convention);
    if (routing->capacity > 0)
        return MIN(routing->capacity, tokens);
    if (routing->capacity_factor <= 0 || convention->places == NULL)
        return 0;
    return CLAMP(convention->places((double)tokens, (double)routing->experts,
                                    (double)routing->choices, routing->capacity_factor),
                 1, tokens);
}

/* What a layer's routing is built from. */
typedef struct {
    MtfParts *p;
    const MtfRouting *routing;
    const MtfRoutingConvention *convention;
    const MtfRoutingDims *dims;
    int scores, shares, choice;
} Route;

static MtfShape shape_of(const Route *r, int tensor) {
    MtfShape none = { 0 };
    return tensor < 0 ? none : mtf_graph_tensor(r->p->b.graph, tensor)->shape;
}

static double size_of(const Route *r, int dim) {
    return dim < 0 ? 1 : (double)mtf_graph_size(r->p->b.graph, dim);
}

static int scaled(const Route *r, const char *name, double factor, int x) {
    r->p->b.attributes.factor = factor;
    return mtf_parts_apply(r->p, MTF_OP_SCALE, name, NULL, x, -1);
}

static int share(const Route *r) {
    r->p->b.attributes.dimension = r->dims->experts;
    if (!r->routing->sigmoid)
        return mtf_parts_apply(r->p, MTF_OP_SOFTMAX, "shares", NULL, r->scores, -1);
    r->p->b.attributes = MTF_NO_ATTRIBUTES;
    return mtf_parts_apply(r->p, MTF_OP_SIGMOID, "shares", NULL, r->scores, -1);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

/* How many tokens of a group chose each expert, in `shape`, each counted as `one`. */
static int count_choices(const Route *r, const MtfShape *shape, double one) {
    MtfShape tokens = shape_of(r, r->shares);
    mtf_shape_remove(&tokens, r->dims->experts);
    int chosen = r->choice;
    if (r->convention->balance == MTF_BALANCE_FIRST)
        chosen = mtf_parts_apply(r->p, MTF_OP_ARGMAX, "first", &tokens, r->shares, -1);
    MtfShape each = shape_of(r, chosen);
    r->p->b.attributes.value = one;
    int counted = mtf_parts_apply_shaped(r->p, MTF_OP_CONSTANT, "one", &each);
    return mtf_parts_apply(r->p, MTF_OP_SCATTER_ADD, "chosen_by", shape, chosen, counted);
}

/* Coefficient E sum f P = coefficient E^2 mean(counts P) / (S k). */
static int balance(const Route *r) {
    MtfShape groups = shape_of(r, r->shares);
    mtf_shape_remove(&groups, r->dims->tokens);
    int count = count_choices(r, &groups, 1);
    int mean = mtf_parts_apply(r->p, MTF_OP_REDUCE_MEAN, "share_mean", &groups, r->shares, -1);
    int product = mtf_parts_apply(r->p, MTF_OP_MULTIPLY, "balance", NULL, count, mean);
    int loss =
        mtf_parts_apply(r->p, MTF_OP_REDUCE_MEAN, "balance_mean", &(MtfShape){ 0 }, product, -1);
    double experts = size_of(r, r->dims->experts);
    double each = r->convention->balance == MTF_BALANCE_ALL ? size_of(r, r->dims->choices) : 1;
    each *= r->convention->by_layers ? (double)MAX(1, r->routing->layers) : 1;
    return scaled(r, "balance_loss",
                  r->routing->auxiliary * experts * experts / size_of(r, r->dims->tokens) / each,
                  loss);
}

/* The shares f of a micro-batch's tokens that chose each expert, as where transformers accumulates gradients, and
 * the mean share P of each, in which the loss is linear. */
static void share_over_all(const Route *r, MtfRouted *routed) {
    MtfShape groups = shape_of(r, r->shares), only = { 1, { r->dims->experts } };
    mtf_shape_remove(&groups, r->dims->tokens);
    int f = count_choices(r, &groups, 1 / size_of(r, r->dims->tokens));
    r->p->b.attributes.per_microbatch = 1;
    routed->chosen = mtf_parts_apply(r->p, MTF_OP_REDUCE_MEAN, "chosen_by_all", &only, f, -1);
    routed->shares = mtf_parts_apply(r->p, MTF_OP_REDUCE_MEAN, "share_mean", &only, r->shares, -1);
    routed->balance =
        r->routing->auxiliary * size_of(r, r->dims->experts) * size_of(r, r->dims->experts);
}

static int z_loss(const Route *r) {
    MtfShape tokens = shape_of(r, r->scores);
    mtf_shape_remove(&tokens, r->dims->experts);
    int log = mtf_parts_apply(r->p, MTF_OP_LOG_SUM_EXP, "scores_log", &tokens, r->scores, -1);
    int square = mtf_parts_apply(r->p, MTF_OP_SQUARE, "scores_square", NULL, log, -1);
    int mean =
        mtf_parts_apply(r->p, MTF_OP_REDUCE_MEAN, "scores_mean", &(MtfShape){ 0 }, square, -1);
    return scaled(r, "z_loss", r->routing->z_loss, mean);
}

static void add_losses(const Route *r, MtfRouted *routed) {
    bool balances = r->routing->auxiliary > 0 && r->convention->balance != MTF_BALANCE_NONE;
    bool over_all = balances && r->convention->balance == MTF_BALANCE_SUM;
    if (over_all)
        share_over_all(r, routed);
    int a = balances && !over_all ? balance(r) : -1;
    int z = r->routing->z_loss > 0 ? z_loss(r) : -1;
    routed->loss = a >= 0 && z >= 0 ? mtf_parts_add(r->p, "routing_loss", a, z) : MAX(a, z);
}

static int add_up(MtfParts *parts, const char *name, int sum, int more) {
    return sum < 0 ? more : more < 0 ? sum : mtf_parts_add(parts, name, sum, more);
}

void mtf_routed_add(MtfParts *parts, MtfRoutedSum *sum, const MtfRouted *routed) {
    sum->loss = add_up(parts, "routing_loss_sum", sum->loss, routed->loss);
    sum->chosen = add_up(parts, "chosen_by_all_sum", sum->chosen, routed->chosen);
    sum->shares = add_up(parts, "share_mean_sum", sum->shares, routed->shares);
    sum->balance = routed->balance > 0 ? routed->balance : sum->balance;
    sum->layers += routed->chosen >= 0;
}

/* Coefficient E sum f P = coefficient E^2 mean(f P), f and P the means of all layers' tokens. */
int mtf_routed_loss(MtfParts *parts, const MtfRoutedSum *sum) {
    if (sum->chosen < 0)
        return sum->loss;
    int product =
        mtf_parts_apply(parts, MTF_OP_MULTIPLY, "routing_balance", NULL, sum->chosen, sum->shares);
    int mean = mtf_parts_apply(parts, MTF_OP_REDUCE_MEAN, "routing_balance_mean", &(MtfShape){ 0 },
                               product, -1);
    parts->b.attributes.factor = sum->balance / (double)(sum->layers * sum->layers);
    int loss = mtf_parts_apply(parts, MTF_OP_SCALE, "routing_balance_loss", NULL, mean, -1);
    return add_up(parts, "routing_loss", sum->loss, loss);
}

/* ---- Choices --------------------------------------------------------------------------------- */

/* How good each group of experts is. */
static int group_scores(const Route *r, const MtfShape *groups, int shares) {
    if (!r->routing->pairs)
        return mtf_parts_apply(r->p, MTF_OP_REDUCE_MAX, "group_best", groups, shares, -1);
    r->p->b.attributes.from = r->dims->members;
    r->p->b.attributes.to = r->dims->pair;
    int two = mtf_parts_apply(r->p, MTF_OP_TOP_K, "group_pair", NULL, shares, -1);
    return mtf_parts_apply(r->p, MTF_OP_REDUCE_SUM, "group_best", groups, two, -1);
}

/* Shares of the groups that a token chooses, and 0 of the others. */
static int keep_groups(const Route *r, int shares) {
    MtfShape all = shape_of(r, shares), groups = all, tokens = all;
    mtf_shape_remove(&groups, r->dims->experts);
    mtf_shape_remove(&tokens, r->dims->experts);
    mtf_shape_append(&groups, r->dims->groups);
    MtfShape parted = groups;
    mtf_shape_append(&parted, r->dims->members);
    int by_group = mtf_parts_apply(r->p, MTF_OP_RESHAPE, "by_group", &parted, shares, -1);
    int best = group_scores(r, &groups, by_group);
    r->p->b.attributes.from = r->dims->groups;
    r->p->b.attributes.to = r->dims->group_choices;
    int chosen = mtf_parts_apply(r->p, MTF_OP_TOP_K, "groups_chosen", NULL, best, -1);
    int least = mtf_parts_apply(r->p, MTF_OP_REDUCE_MIN, "group_least", &tokens, chosen, -1);
    int kept = mtf_parts_apply(r->p, MTF_OP_LESS_EQUAL, "group_kept", NULL, least, best);
    int left = mtf_parts_apply(r->p, MTF_OP_MULTIPLY, "kept_by_group", NULL, by_group, kept);
    return mtf_parts_apply(r->p, MTF_OP_RESHAPE, "shares_kept", &all, left, -1);
}

/* Numbers of a range, drawn anew in each training step, and `else_all` where nothing is learned. They are of
 * float32 whatever is routed: of fewer bits too many would be alike. */
static int draw(const Route *r, const char *name, const MtfShape *shape, double low, double high,
                double else_all) {
    MtfParts *p = r->p;
    g_autofree char *untrained = g_strdup_printf("%s_untrained", name);
    g_autofree char *numbers = g_strdup_printf("%s_numbers", name);
    p->b.has_dtype = true;
    p->b.dtype = MTF_F32;
    p->b.attributes.low = low;
    p->b.attributes.high = high;
    int drawn = mtf_parts_apply_shaped(p, MTF_OP_RANDOM_UNIFORM, numbers, shape);
    p->b.has_dtype = true;
    p->b.dtype = MTF_F32;
    p->b.attributes.value = else_all;
    int all = mtf_parts_apply_shaped(p, MTF_OP_CONSTANT, untrained, shape);
    return mtf_parts_apply(p, MTF_OP_IN_TRAIN_PHASE, name, NULL, drawn, all);
}

/* log share - log -log u, whose largest are as good as drawn one after the other, each with a probability that
 * grows as its share (Gumbel's way), and 10^9 more for the largest share, which stays the first choice. Where
 * nothing is learned u is the same of all. */
static int sampled(const Route *r, int shares) {
    MtfParts *p = r->p;
    MtfShape all = shape_of(r, shares), tokens = all;
    mtf_shape_remove(&tokens, r->dims->experts);
    int u = draw(r, "sampled_at", &all, ldexp(1, -24), 1 - ldexp(1, -24), 0.5);
    int rare = mtf_parts_apply(p, MTF_OP_NEGATE, "sampled_rare", NULL,
                               mtf_parts_apply(p, MTF_OP_LOG, "sampled_log", NULL, u, -1), -1);
    int noise = mtf_parts_apply(p, MTF_OP_LOG, "sampled_log_log", NULL, rare, -1);
    int least = mtf_parts_constant(p, "least_share", FLT_MIN);
    int above = mtf_parts_apply(p, MTF_OP_MAXIMUM, "shares_above", NULL, shares, least);
    int log = mtf_parts_apply(p, MTF_OP_LOG, "shares_log", NULL, above, -1);
    int noisy = mtf_parts_apply(p, MTF_OP_SUBTRACT, "shares_noisy", NULL, log, noise);
    int best = mtf_parts_apply(p, MTF_OP_ARGMAX, "best", &tokens, shares, -1);
    int is_best = mtf_parts_apply(p, MTF_OP_ONE_HOT, "is_best", &all, best, -1);
    return mtf_parts_add(p, "shares_sampled", noisy, scaled(r, "best_first", 1e9, is_best));
}

/* The shares that are compared. */
static int compared_shares(const Route *r) {
    int shares = r->shares;
    if (r->routing->biased)
        shares = mtf_parts_add(r->p, "shares_biased", shares, r->dims->bias);
    if (r->routing->groups > 1)
        shares = keep_groups(r, shares);
    return r->convention->others == MTF_OTHERS_SAMPLED ? sampled(r, shares) : shares;
}

static int is_less(const Route *r, const char *name, const MtfShape *shape, int x, int y) {
    r->p->b.has_dtype = true;
    r->p->b.dtype = MTF_BOOL;
    return mtf_parts_apply(r->p, MTF_OP_LESS, name, shape, x, y);
}

/* The choices, and -1 for those behind the first that are not taken: a gate g is with probability 2 g (GShard's
 * algorithm 1; 1 / 2 is lingvo's second_expert_threshold). */
static int taken_choices(const Route *r, int gate) {
    MtfParts *p = r->p;
    MtfShape each = shape_of(r, r->choice), only = { 1, { r->dims->choices } };
    if (r->convention->others != MTF_OTHERS_RANDOM)
        return r->choice;
    int number = mtf_parts_range(p, "choice_number", r->dims->choices);
    int second = mtf_build_constant(&p->b, "second", MTF_I32, 1);
    int is_first = is_less(r, "is_first", &only, number, second);
    int always = mtf_parts_constant(p, "always", 1);
    int often = mtf_parts_apply_shape_to(
        p, MTF_OP_WHERE, "taken_often", &each, 3,
        (int[]){ is_first, always, scaled(r, "gates_doubled", 1 / SECOND_THRESHOLD, gate) });
    int drawn = draw(r, "taken_at", &each, 0, 1, -1);
    int is_taken = is_less(r, "is_taken", &each, drawn, often);
    int nobody = mtf_build_constant(&p->b, "nobody", MTF_I32, -1);
    return mtf_parts_apply_shape_to(p, MTF_OP_WHERE, "taken", &each, 3,
                                    (int[]){ is_taken, r->choice, nobody });
}

/* SparseMixer's shares without its noise (Liu and others, GRIN, 2024): with the score b of a choice, 1 / sum
 * e^(s - b) over the scores s <= b with b - s <= margin max(|s|, b). */
static int near_gates(const Route *r, const MtfShape *each) {
    MtfParts *p = r->p;
    MtfShape all = *each;
    mtf_shape_append(&all, r->dims->experts);
    int best = mtf_parts_apply(p, MTF_OP_EMBEDDING, "chosen_score", each, r->scores, r->choice);
    int behind = mtf_parts_apply(p, MTF_OP_SUBTRACT, "behind", &all, best, r->scores);
    int size = mtf_parts_apply(p, MTF_OP_ABS, "score_size", NULL, r->scores, -1);
    int larger = mtf_parts_apply(p, MTF_OP_MAXIMUM, "larger", &all, size, best);
    int limit = scaled(r, "margin", r->routing->margin, larger);
    int near = mtf_parts_apply(p, MTF_OP_LESS_EQUAL, "near", NULL, behind, limit);
    int below = mtf_parts_apply(p, MTF_OP_LESS_EQUAL, "below", &all, r->scores, best);
    int far = mtf_parts_apply(p, MTF_OP_ABS, "far", NULL, behind, -1);
    int power = mtf_parts_apply(p, MTF_OP_EXP, "power", NULL, scaled(r, "less", -1, far), -1);
    int either = mtf_parts_apply(p, MTF_OP_MULTIPLY, "rival", NULL, near, below);
    int rivals = mtf_parts_apply(p, MTF_OP_MULTIPLY, "rivals", NULL, power, either);
    int sum = mtf_parts_apply(p, MTF_OP_REDUCE_SUM, "rivals_sum", each, rivals, -1);
    return mtf_parts_apply(p, MTF_OP_RECIPROCAL, "near_shares", NULL, sum, -1);
}

/* The shares of the chosen; `best` are those that were compared. */
static int gates_of(const Route *r, int best) {
    MtfShape each = shape_of(r, best);
    if (r->routing->margin > 0)
        return near_gates(r, &each);
    bool compared_alone = r->routing->biased || r->convention->others == MTF_OTHERS_SAMPLED;
    return !compared_alone ? best
                           : mtf_parts_apply(r->p, MTF_OP_EMBEDDING, "chosen_unbiased", &each,
                                             r->shares, r->choice);
}

/* Gates, and 0 of choices that have no place. */
static int kept_gates(const Route *r, int gate, int slot) {
    MtfParts *p = r->p;
    p->b.has_dtype = true;
    p->b.dtype = MTF_F32;
    int place = mtf_parts_apply(p, MTF_OP_CAST, "place", NULL, slot, -1);
    int none = mtf_parts_constant(p, "no_place", 0);
    int kept = mtf_parts_apply(p, MTF_OP_GREATER_EQUAL, "kept", NULL, place, none);
    return mtf_parts_apply(p, MTF_OP_MULTIPLY, "kept_shares", NULL, gate, kept);
}

/* Divided by the sum of a token's; where it has no place at all, by what is not 0. */
static int normalise(const Route *r, int gate, bool may_be_none) {
    MtfShape tokens = shape_of(r, gate);
    mtf_shape_remove(&tokens, r->dims->choices);
    int sum = mtf_parts_apply(r->p, MTF_OP_REDUCE_SUM, "chosen_sum", &tokens, gate, -1);
    if (may_be_none)
        sum = mtf_parts_apply(r->p, MTF_OP_MAXIMUM, "chosen_sum_above", NULL, sum,
                              mtf_parts_constant(r->p, "least_sum", FLT_EPSILON));
    return mtf_parts_apply(r->p, MTF_OP_DIVIDE, "chosen_shares", NULL, gate, sum);
}

static MtfGates gates_asked(const Route *r) {
    if (r->routing->convention == NULL)
        return r->routing->renormalise ? MTF_GATES_CHOSEN : MTF_GATES_SHARES;
    return size_of(r, r->dims->choices) > 1 ? r->convention->gates : MTF_GATES_SHARES;
}

/* What choices are served by: the gates that they have; a token's first share; or numbers that are drawn. */
static int served_by(const Route *r, int share, int gate) {
    MtfShape each = shape_of(r, gate);
    if (r->convention->drawn)
        return draw(r, "served_at", &each, 0, 1, 0);
    return r->convention->priority == 2 ? share : gate;
}

static int take_slots(const Route *r, int choice, int order, bool has_places) {
    MtfAttributes *a = &r->p->b.attributes;
    a->dimension = r->dims->tokens;
    a->choices = r->dims->choices;
    a->experts = r->dims->experts;
    a->capacity = has_places ? r->dims->places : -1;
    a->queue = has_places ? r->convention->queue : 0;
    a->priority = order >= 0 ? r->convention->priority : 0;
    return mtf_parts_apply(r->p, MTF_OP_SLOTS, "slot", NULL, choice, order);
}

/* Whose each row is, where there is no capacity. */
static int find_experts(const Route *r, int slot) {
    MtfShape rows = shape_of(r, slot);
    mtf_shape_remove(&rows, r->dims->choices);
    mtf_shape_remove(&rows, r->dims->tokens);
    mtf_shape_append(&rows, r->dims->places);
    return mtf_parts_apply(r->p, MTF_OP_SLOT_IDS, "expert", &rows, r->choice, slot);
}

MtfRouted mtf_route(MtfParts *parts, const MtfRouting *routing, const MtfRoutingDims *dims,
                    int scores) {
    Route r = { .p = parts,
                .routing = routing,
                .convention = convention_named(routing->convention),
                .dims = dims,
                .scores = scores };
    bool has_places = mtf_routing_places(routing, (int64_t)size_of(&r, dims->tokens)) > 0;
    MtfGates gates = gates_asked(&r);
    r.shares = share(&r);
    int compared = compared_shares(&r);
    parts->b.attributes.from = dims->experts;
    parts->b.attributes.to = dims->choices;
    int best = mtf_parts_apply(parts, MTF_OP_TOP_K, "chosen", NULL, compared, -1);
    r.choice = best < 0 ? -1 : best + 1;
    int chosen = best < 0 ? -1 : gates_of(&r, best);
    MtfRouted routed = {
        .gate = chosen, .choice = r.choice, .expert = -1, .loss = -1, .chosen = -1, .shares = -1
    };
    if (chosen < 0)
        return routed;
    bool ordered = has_places && r.convention->priority > 0;
    bool asked = ordered || r.convention->others == MTF_OTHERS_RANDOM; /* before places are given */
    if (asked && gates == MTF_GATES_CHOSEN)
        routed.gate = normalise(&r, chosen, false);
    routed.slot = take_slots(&r, taken_choices(&r, routed.gate),
                             ordered ? served_by(&r, chosen, routed.gate) : -1, has_places);
    if (!has_places)
        routed.expert = find_experts(&r, routed.slot);
    if (!asked && gates == MTF_GATES_CHOSEN)
        routed.gate = normalise(&r, chosen, false);
    if (gates == MTF_GATES_KEPT)
        routed.gate = normalise(&r, kept_gates(&r, chosen, routed.slot), true);
    add_losses(&r, &routed);
    return routed;
}
