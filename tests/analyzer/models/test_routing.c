// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/models/routing.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

/* One group of tokens, routed: what mtf_route builds, evaluated by the reference. */
typedef struct {
    MtfGraph *graph;
    MtfReference *reference;
    MtfRouted routed;
    int lost; /* what such a layer loses; or -1 */
    int tokens, experts, choices;
} Group;

/* The values of steps that nothing is learned in, which the reference does not know. */
static void leave_training(MtfGraph *graph) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        MtfOperation *op = mtf_graph_operation(graph, o);
        if (op->kind == MTF_OP_IN_TRAIN_PHASE)
            op->inputs[0] = op->inputs[1];
    }
}

/* Step 0: nothing is learned. */
static Group route_in_step(MtfRouting routing, int tokens, const double *scores, uint64_t step) {
    Group group = { .tokens = tokens, .experts = (int)routing.experts };
    MtfParts *p = mtf_parts_new();
    routing.choices = mtf_routing_choices(&routing);
    group.choices = (int)routing.choices;
    int64_t places = mtf_routing_places(&routing, tokens);
    MtfRoutingDims dims = { .tokens = mtf_parts_dimension(p, "tokens", tokens),
                            .experts = mtf_parts_dimension(p, "experts", routing.experts),
                            .choices = mtf_parts_dimension(p, "choices", routing.choices) };
    dims.places = mtf_parts_dimension(p, "places", places > 0 ? places : tokens * routing.choices);
    MtfShape shape = { 2, { dims.tokens, dims.experts } };
    int x = mtf_parts_variable(p, "scores", &shape, MTF_INIT_CONSTANT, 0);
    group.routed = mtf_route(p, &routing, &dims, x);
    MtfRoutedSum sum = MTF_NOTHING_ROUTED;
    mtf_routed_add(p, &sum, &group.routed);
    group.lost = mtf_routed_loss(p, &sum);
    g_autoptr(GError) error = NULL;
    group.graph = mtf_parts_end(p, &error);
    if (group.graph == NULL)
        fail_msg("%s", error->message);
    if (step == 0)
        leave_training(group.graph);
    group.reference = mtf_reference_new(group.graph, 1);
    memcpy(group.reference->values[x], scores, (size_t)(tokens * group.experts) * sizeof *scores);
    mtf_reference_run(group.reference, step);
    return group;
}

static Group route(MtfRouting routing, int tokens, const double *scores) {
    return route_in_step(routing, tokens, scores, 0);
}

static void group_clear(Group *group) {
    mtf_reference_free(group->reference);
    mtf_graph_free(group->graph);
}

static double value(const Group *group, int tensor, int token, int choice) {
    return group->reference->values[tensor][token * group->choices + choice];
}

/* The place of `token` at `expert`; -1: it has none there. Its gate is in *gate. */
static int place_of(const Group *group, int capacity, int token, int expert, double *gate) {
    for (int k = 0; k < group->choices; k++) {
        int slot = (int)value(group, group->routed.slot, token, k);
        if (slot >= 0 && slot / capacity == expert) {
            *gate = value(group, group->routed.gate, token, k);
            return slot % capacity;
        }
    }
    return -1;
}

static double loss(const Group *group) {
    return group->reference->values[group->lost][0];
}

/* scores[s][e] = ((7 s + 5 e + 3 s e) mod 11) / 4 + e / 16. */
static void fill_eight(double scores[8 * 4]) {
    for (int s = 0; s < 8; s++)
        for (int e = 0; e < 4; e++)
            scores[4 * s + e] = (7 * s + 5 * e + 3 * s * e) % 11 / 4.0 + e / 16.0;
}

typedef struct {
    int token, expert, place;
    double gate; /* 0: not asked for */
} Sent;

static void assert_sent(const Group *group, int capacity, const Sent *sent, int n) {
    int placed = 0;
    for (int i = 0; i < n; i++) {
        double gate = 0;
        assert_int_equal(place_of(group, capacity, sent[i].token, sent[i].expert, &gate),
                         sent[i].place);
        if (sent[i].gate != 0)
            assert_true(fabs(gate - sent[i].gate) < 1e-6);
    }
    for (int s = 0; s < group->tokens; s++)
        for (int k = 0; k < group->choices; k++)
            placed += value(group, group->routed.slot, s, k) >= 0;
    assert_int_equal(placed, n);
}

/* Computed apart by Switch's definition (mesh_tensorflow/transformer/moe.py): token 5 finds expert 2 full. */
TEST(switch_sends_tokens_as_mesh_tensorflow_does) {
    static const Sent two[] = { { 0, 2, 0, .633269 }, { 1, 3, 0, .531122 }, { 2, 3, 1, .273902 },
                                { 3, 0, 0, .454477 }, { 4, 2, 1, .454157 }, { 6, 1, 0, .515882 },
                                { 7, 1, 1, .484066 } };
    static const Sent least[] = { { 0, 2, 0, .633269 }, { 1, 3, 0, .531122 }, { 2, 3, 1, .273902 },
                                  { 3, 0, 0, .454477 }, { 4, 2, 1, .454157 }, { 5, 2, 2, .526866 },
                                  { 6, 1, 0, .515882 }, { 7, 1, 1, .484066 } };
    double scores[8 * 4];
    fill_eight(scores);
    MtfRouting routing = { .convention = "switch", .experts = 4, .choices = 1, .capacity = 2 };
    Group group = route(routing, 8, scores);
    assert_sent(&group, 2, two, G_N_ELEMENTS(two));
    group_clear(&group);
    routing.capacity = 0;
    routing.capacity_factor = 1;
    group = route(routing, 8, scores);
    assert_sent(&group, 4, least, G_N_ELEMENTS(least));
    group_clear(&group);
}

/* The logits and places of deepspeed's tests/unit/v1/moe/test_moe.py: two choices of four experts, two places. */
static const double deepspeeds[] = { .11, .2, .1, .3, .3, .4,  .11, .1,
                                     .11, .1, .6, .5, .1, .11, .7,  .8 };
static const Sent by_shares[] = { { 0, 1, 0, 1 }, { 1, 0, 0, 0 }, { 1, 1, 1, 0 }, { 2, 2, 0, 0 },
                                  { 2, 3, 0, 0 }, { 3, 2, 1, 0 }, { 3, 3, 1, 0 } };

TEST(deepspeed_drops_by_shares_or_by_position) {
    /* Of what has a place: alone it is all, beside another e^a / (e^a + e^b). */
    const double first = 1 / (1 + exp(-.1)), second = 1 - first;
    const Sent by_position[] = { { 0, 1, 0, second }, { 0, 3, 0, first }, { 1, 0, 0, second },
                                 { 1, 1, 1, first },  { 2, 2, 0, first }, { 2, 3, 1, second },
                                 { 3, 2, 1, 1 } };
    MtfRouting routing = {
        .convention = "deepspeed-topk", .experts = 4, .choices = 2, .capacity = 2
    };
    Group group = route(routing, 4, deepspeeds);
    assert_sent(&group, 2, by_shares, G_N_ELEMENTS(by_shares));
    group_clear(&group);
    routing.convention = "deepspeed-topk-position";
    group = route(routing, 4, deepspeeds);
    assert_sent(&group, 2, by_position, G_N_ELEMENTS(by_position));
    group_clear(&group);
}

TEST(gates_of_what_was_dropped_count_where_the_convention_says_so) {
    const struct {
        const char *convention;
        double gate; /* of token 3 at expert 2, where expert 3 has no place for it */
    } cases[] = {
        { "megatron-position", 1 / (1 + exp(.1)) },
        { "deepspeed-topk-position", 1 },
        { "megablocks", exp(.7) / (exp(.1) + exp(.11) + exp(.7) + exp(.8)) },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfRouting routing = {
            .convention = cases[i].convention, .experts = 4, .choices = 2, .capacity = 2
        };
        Group group = route(routing, 4, deepspeeds);
        double gate = 0;
        assert_int_equal(place_of(&group, 2, 3, 2, &gate), 1);
        assert_true(fabs(gate - cases[i].gate) < 1e-9);
        group_clear(&group);
    }
}

/* Of experts 0 and 1 token 0 has the larger share of 0 in all, .45, but token 1 in what it chose, .4 / .7. */
TEST(megatron_serves_the_larger_of_the_gates_that_it_divided) {
    const double shares[2][4] = { { .45, .5, .03, .02 }, { .4, .3, .16, .14 } };
    double scores[8];
    for (int i = 0; i < 8; i++)
        scores[i] = log(shares[i / 4][i % 4]);
    for (int divided = 0; divided < 2; divided++) {
        MtfRouting routing = { .convention = divided ? "megatron" : "deepspeed-topk",
                               .experts = 4,
                               .choices = 2,
                               .capacity = 1 };
        Group group = route(routing, 2, scores);
        double gate = 0;
        assert_int_equal(place_of(&group, 1, 0, 0, &gate), divided ? -1 : 0);
        assert_int_equal(place_of(&group, 1, 1, 0, &gate), divided ? 0 : -1);
        group_clear(&group);
    }
}

/* ---- Choices that are drawn -------------------------------------------------------------------- */

static const double *values_of(const Group *group, const char *name) {
    int tensor = mtf_graph_find_tensor(group->graph, name);
    assert_true(tensor >= 0);
    return group->reference->values[tensor];
}

/* The shares of a token of fill_eight, and the numbers of its experts, best first. */
static void rank_experts(const double *scores, double share[4], int best[4]) {
    double sum = 0;
    for (int e = 0; e < 4; e++)
        sum += exp(scores[e]);
    for (int e = 0; e < 4; e++) {
        int better = 0;
        share[e] = exp(scores[e]) / sum;
        for (int other = 0; other < 4; other++)
            better += scores[other] > scores[e];
        best[better] = e;
    }
}

/* Two places an expert, first choices first; second ones with probability 2 g wait behind them. */
static void assert_taken(const Group *group, const double *scores, bool divided, int *n_taken) {
    const double *u = values_of(group, "taken_at_numbers");
    double share[4];
    int best[4], count[4] = { 0 };
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < 8; s++) {
            rank_experts(scores + 4 * s, share, best);
            double g = share[best[1]] / (divided ? share[best[0]] + share[best[1]] : 1);
            bool taken = k == 0 || u[2 * s + 1] < 2 * g;
            bool placed = taken && count[best[k]] < 2;
            int slot = (int)value(group, group->routed.slot, s, k);
            assert_int_equal(slot, placed ? 2 * best[k] + count[best[k]] : -1);
            count[best[k]] += placed;
            *n_taken += k == 1 && taken;
        }
}

TEST(gshard_takes_second_choices_at_random) {
    double scores[8 * 4];
    int taken[2] = { 0, 0 };
    fill_eight(scores);
    for (int divided = 0; divided < 2; divided++)
        for (uint64_t step = 1; step <= 40; step++) {
            Group group = route_in_step(
                (MtfRouting){ .convention = divided ? "gshard-random" : "gshard-kept-random",
                              .experts = 4,
                              .choices = 2,
                              .capacity = 2 },
                8, scores, step);
            assert_taken(&group, scores, divided, &taken[divided]);
            group_clear(&group);
        }
    /* Of 320 by the sum of min(1, 2 g), 241.9 divided and 185.3 as they are; deviations are 7.2 and 8.6. */
    assert_true(abs(taken[1] - 242) < 29 && abs(taken[0] - 185) < 34);
}

/* How often each expert is the second choice of token 0, whose first stays. */
static void count_seconds(const char *convention, const double *scores, int count[4]) {
    for (uint64_t step = 1; step <= 600; step++) {
        Group group = route_in_step(
            (MtfRouting){ .convention = convention, .experts = 4, .choices = 2, .capacity = 8 }, 8,
            scores, step);
        assert_int_equal((int)value(&group, group.routed.choice, 0, 0), 2);
        int second = (int)value(&group, group.routed.choice, 0, 1);
        double gates =
            value(&group, group.routed.gate, 0, 0) + value(&group, group.routed.gate, 0, 1);
        assert_true(second != 2 && fabs(gates - 1) < 1e-9);
        count[second]++;
        group_clear(&group);
    }
}

TEST(second_choices_are_sampled_by_their_shares) {
    static const char *const names[] = { "gshard-sampling", "deepspeed-sampling" };
    double scores[8 * 4], share[4];
    int best[4];
    fill_eight(scores);
    rank_experts(scores, share, best);
    assert_int_equal(best[0], 2);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        int count[4] = { 0 };
        count_seconds(names[i], scores, count);
        for (int e = 0; e < 4; e++) {
            double p = e == 2 ? 0 : share[e] / (1 - share[2]);
            assert_true(fabs(count[e] - 600 * p) <= 4 * sqrt(600 * p * (1 - p)));
        }
    }
}

/* All eight choose expert 0, which has three places. */
TEST(deepspeed_draws_who_finds_a_place) {
    double scores[8 * 4] = { 0 };
    int found[8] = { 0 };
    for (int s = 0; s < 8; s++)
        scores[4 * s] = 1;
    for (uint64_t step = 1; step <= 60; step++) {
        Group group = route_in_step(
            (MtfRouting){
                .convention = "deepspeed-random", .experts = 4, .choices = 1, .capacity = 3 },
            8, scores, step);
        const double *u = values_of(&group, "served_at_numbers");
        for (int s = 0, place = 0; s < 8; s++) {
            int larger = 0;
            for (int other = 0; other < 8; other++)
                larger += u[other] > u[s];
            assert_int_equal((int)value(&group, group.routed.slot, s, 0), larger < 3 ? place : -1);
            place += larger < 3;
            found[s] += larger < 3;
        }
        group_clear(&group);
    }
    /* 22.5 of 60 with a deviation of 3.75. */
    for (int s = 0; s < 8; s++)
        assert_true(found[s] > 7 && found[s] < 38);
}

TEST(nothing_is_drawn_where_nothing_is_learned) {
    static const char *const pairs[][2] = {
        { "gshard-random", "gshard" },           { "gshard-sampling", "gshard" },
        { "gshard-kept-random", "gshard-kept" }, { "gshard-kept-sampling", "gshard-kept" },
        { "deepspeed-sampling", "deepspeed" },   { "deepspeed-random", "deepspeed-topk-position" }
    };
    double scores[8 * 4];
    fill_eight(scores);
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        MtfRouting routing = { .experts = 4, .choices = 2, .capacity = 3 };
        Group group[2];
        for (int j = 0; j < 2; j++) {
            routing.convention = pairs[i][j];
            group[j] = route(routing, 8, scores);
        }
        for (int s = 0; s < 8; s++)
            for (int k = 0; k < 2; k++) {
                assert_int_equal((int)value(&group[0], group[0].routed.slot, s, k),
                                 (int)value(&group[1], group[1].routed.slot, s, k));
                assert_true(fabs(value(&group[0], group[0].routed.gate, s, k) -
                                 value(&group[1], group[1].routed.gate, s, k)) < 1e-12);
            }
        group_clear(&group[0]);
        group_clear(&group[1]);
    }
}

/* Each expert takes the tokens with its two largest shares, in their order. */
TEST(experts_choose_their_tokens) {
    double scores[8 * 4], share[8][4];
    fill_eight(scores);
    for (int s = 0; s < 8; s++) {
        double sum = 0;
        for (int e = 0; e < 4; e++)
            sum += exp(scores[4 * s + e]);
        for (int e = 0; e < 4; e++)
            share[s][e] = exp(scores[4 * s + e]) / sum;
    }
    MtfRouting routing = { .convention = "expert-choice",
                           .experts = 4,
                           .choices = 2,
                           .capacity_factor = 1,
                           .auxiliary = 1 };
    Group group = route(routing, 8, scores);
    assert_int_equal(group.lost, -1);
    for (int e = 0; e < 4; e++)
        for (int s = 0, place = 0; s < 8; s++) {
            int better = 0;
            double gate = 0;
            for (int other = 0; other < 8; other++)
                better += share[other][e] > share[s][e];
            assert_int_equal(place_of(&group, 2, s, e, &gate), better < 2 ? place : -1);
            place += better < 2;
            if (better < 2)
                assert_true(fabs(gate - share[s][e]) < 1e-9);
        }
    group_clear(&group);
}

/* E sum f P of the eight tokens, computed apart: with f of first choices, of all divided by k, or of all. */
TEST(losses_balance_as_each_convention_says) {
    static const struct {
        const char *convention;
        int64_t choices;
        double auxiliary, z_loss, loss;
    } cases[] = { { "switch", 1, 1, 0, 1.0180720 },     { "deepspeed", 2, 1, 0, 1.0180720 },
                  { "gshard", 2, 1, 0, 1.0180720 },     { "tutel", 2, 1, 0, 1.0180720 },
                  { "megatron", 1, 1, 0, 1.0180720 },   { "megatron", 2, 1, 0, 1.0102532 },
                  { "megablocks", 2, 1, 0, 1.0102532 }, { "deepspeed-topk", 2, 1, 0, 1.0102532 },
                  { "mixtral", 2, 1, 0, 2.0205064 },    { "mixtral", 2, 0, 1, 8.8179045 } };
    double scores[8 * 4];
    fill_eight(scores);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Group group = route((MtfRouting){ .convention = cases[i].convention,
                                          .experts = 4,
                                          .choices = cases[i].choices,
                                          .auxiliary = cases[i].auxiliary,
                                          .z_loss = cases[i].z_loss },
                            8, scores);
        assert_true(fabs(loss(&group) - cases[i].loss) < 1e-6);
        group_clear(&group);
    }
}

/* Scores of two layers, the second those of the first backwards. Computed apart over the 16 tokens of both, as
 * transformers does. */
TEST(mixtral_balances_the_tokens_of_all_layers_together) {
    double scores[2][8 * 4], f[4] = { 0 }, mean[4] = { 0 }, share[4];
    int best[4];
    fill_eight(scores[0]);
    for (int i = 0; i < 32; i++)
        scores[1][i] = scores[0][31 - i];
    MtfParts *p = mtf_parts_new();
    MtfRouting routing = { .convention = "mixtral", .experts = 4, .choices = 2, .auxiliary = 1 };
    MtfRoutingDims dims = { .tokens = mtf_parts_dimension(p, "tokens", 8),
                            .experts = mtf_parts_dimension(p, "experts", 4),
                            .choices = mtf_parts_dimension(p, "choices", 2),
                            .places = mtf_parts_dimension(p, "places", 16) };
    MtfShape shape = { 2, { dims.tokens, dims.experts } };
    MtfRoutedSum sum = MTF_NOTHING_ROUTED;
    int x[2];
    for (int layer = 0; layer < 2; layer++) {
        mtf_parts_enter(p, layer == 0 ? "first" : "second");
        x[layer] = mtf_parts_variable(p, "scores", &shape, MTF_INIT_CONSTANT, 0);
        MtfRouted routed = mtf_route(p, &routing, &dims, x[layer]);
        mtf_routed_add(p, &sum, &routed);
        mtf_parts_leave(p);
        for (int s = 0; s < 8; s++) {
            rank_experts(scores[layer] + 4 * s, share, best);
            f[best[0]] += 1 / 16.0;
            f[best[1]] += 1 / 16.0;
            for (int e = 0; e < 4; e++)
                mean[e] += share[e] / 16;
        }
    }
    int lost = mtf_routed_loss(p, &sum);
    g_autoptr(MtfGraph) graph = mtf_parts_end(p, NULL);
    MtfReference *reference = mtf_reference_new(graph, 1);
    double wanted = 0;
    for (int layer = 0; layer < 2; layer++)
        memcpy(reference->values[x[layer]], scores[layer], sizeof scores[layer]);
    mtf_reference_run(reference, 0);
    for (int e = 0; e < 4; e++)
        wanted += 4 * f[e] * mean[e];
    assert_true(fabs(reference->values[lost][0] - wanted) < 1e-9);
    mtf_reference_free(reference);
}

/* Layers' losses are added up: megablocks' together are as large as one layer's. */
TEST(megablocks_divides_its_loss_by_the_layers) {
    double scores[8 * 4];
    fill_eight(scores);
    Group group = route(
        (MtfRouting){
            .convention = "megablocks", .experts = 4, .choices = 2, .layers = 5, .auxiliary = 1 },
        8, scores);
    assert_true(fabs(loss(&group) - 1.0102532 / 5) < 1e-7);
    group_clear(&group);
}

TEST(places_are_those_of_the_systems) {
    static const struct {
        const char *convention;
        int64_t tokens, choices;
        double factor;
        int64_t places;
    } cases[] = {
        { "switch", 100, 1, 1.25, 15 },     { "switch", 8, 1, 1, 4 },
        { "gshard", 100, 2, 2, 28 },        { "gshard", 4, 2, 1, 4 },
        { "deepspeed", 100, 2, 1.25, 32 },  { "deepspeed", 16, 2, 1, 8 },
        { "tutel", 100, 2, 1.25, 32 },      { "megablocks", 100, 2, 1.25, 31 },
        { "megatron", 100, 2, 1.25, 32 },   { "mixtral", 100, 2, 1.25, 0 },
        { "expert-choice", 100, 8, 2, 25 }, { "megatron", 100, 2, 0, 0 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfRouting routing = { .convention = cases[i].convention,
                               .experts = 8,
                               .choices = cases[i].choices,
                               .capacity_factor = cases[i].factor };
        assert_int_equal(mtf_routing_places(&routing, cases[i].tokens), cases[i].places);
    }
}

/* A wish of a convention keeps the model's capacity, unless it has no use for one. */
TEST(a_wish_changes_what_it_says) {
    static const char *const names[] = { MTF_ROUTING_CONVENTIONS };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        MtfRouting routing = { .experts = 8, .choices = 2, .capacity = 7, .auxiliary = .5 };
        mtf_routing_wish(&routing, 2, &(MtfRoutingWish){ .convention = names[i], .z_loss = .25 });
        bool dropless = strcmp(names[i], "mixtral") == 0;
        bool by_experts = strcmp(names[i], "expert-choice") == 0;
        assert_string_equal(routing.convention, names[i]);
        assert_true(routing.auxiliary == .5 && routing.z_loss == .25 && routing.jitter == 0);
        assert_int_equal(mtf_routing_places(&routing, 100), dropless ? 0 : by_experts ? 25 : 7);
        mtf_routing_wish(&routing, 2, &(MtfRoutingWish){ .capacity_factor = 4 });
        assert_true(dropless || mtf_routing_places(&routing, 100) >= 50);
    }
}

/* What a family says of routing is in its graph: the places, and a jitter that training alone has. */
TEST(families_take_the_wish) {
    g_autoptr(GError) error = NULL;
    const MtfModelFamily *family = mtf_model_family_find("mixtral", NULL);
    MtfModelSettings settings = mtf_model_settings(&family->presets[0]);
    settings.length = 32;
    settings.routing = (MtfRoutingWish){ "tutel", 1.5, .01, 0, .1 };
    g_autoptr(MtfGraph) graph = mtf_model_build(family, &family->presets[0], &settings, &error);
    assert_non_null(graph);
    /* 2 int(1.5 ceil(32 / 4)) */
    assert_int_equal(mtf_graph_size(graph, mtf_graph_find_dimension(graph, "capacity")), 24);
    int in_training = 0;
    for (int o = 0; o < (int)graph->operations->len; o++)
        in_training += mtf_graph_operation(graph, o)->kind == MTF_OP_IN_TRAIN_PHASE;
    assert_int_equal(in_training, 2);
}
