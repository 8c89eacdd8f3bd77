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
    int tokens, experts, choices;
} Group;

static Group route(MtfRouting routing, int tokens, const double *scores) {
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
    g_autoptr(GError) error = NULL;
    group.graph = mtf_parts_end(p, &error);
    if (group.graph == NULL)
        fail_msg("%s", error->message);
    group.reference = mtf_reference_new(group.graph, 1);
    memcpy(group.reference->values[x], scores, (size_t)(tokens * group.experts) * sizeof *scores);
    mtf_reference_run(group.reference, 0);
    return group;
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
    return group->reference->values[group->routed.loss][0];
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
    assert_int_equal(group.routed.loss, -1);
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
    MtfModelSettings settings = family->presets[0].settings;
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
