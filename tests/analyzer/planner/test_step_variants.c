// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/variant_race.h"
#include "analyzer/planner/memory_bound.h"
#include "analyzer/planner/step_variants.h"
#include "analyzer/rules/rule_search.h"
#include "cost/memory/arena.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"

#include <string.h>

typedef struct {
    MtfGraph *written;
    MtfMachine *machine;
    GArray *meshes;
    MtfStepVariantsOptions options;
} Setup;

static int setup_init(void **state) {
    Setup *setup = g_new0(Setup, 1);
    setup->written = mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, NULL);
    setup->machine = mtf_machine_load("cpu-host", NULL);
    setup->meshes = mtf_test_meshes("rows:2;cols:2");
    setup->options = (MtfStepVariantsOptions){ .written = setup->written,
                                               .machine = setup->machine,
                                               .meshes = setup->meshes,
                                               .recompute = MTF_RECOMPUTES };
    *state = setup;
    return setup->written == NULL || setup->machine == NULL;
}

static int setup_clear(void **state) {
    Setup *setup = *state;
    mtf_graph_free(setup->written);
    mtf_machine_free(setup->machine);
    g_array_unref(setup->meshes);
    g_free(setup);
    return 0;
}

static MtfGraph *graph_of(const Setup *setup, int microbatches, MtfRecompute recompute) {
    MtfStepVariant variant = { .microbatches = microbatches, .recompute = recompute };
    MtfGraph *graph = mtf_planning_executed_graph(setup->written, &variant, NULL);
    assert_non_null(graph);
    return graph;
}

static const MtfStepCandidate *candidate(const GArray *variants, guint i) {
    return &g_array_index(variants, MtfStepCandidate, i);
}

static GArray *forms_within(const Setup *setup, int64_t memory_limit) {
    g_autoptr(GError) error = NULL;
    MtfStepVariantsOptions options = setup->options;
    options.memory_limit = memory_limit;
    GArray *variants = mtf_step_variants(&options, &error);
    if (variants == NULL)
        fail_msg("%s", error->message);
    return variants;
}

/* Every variant, random free layouts: the bound is no larger than any arena. */
TEST(no_arena_is_smaller_than_the_bound) {
    const Setup *setup = *state;
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    for (int variant = 0; variant < 3 * MTF_RECOMPUTES; variant++) {
        g_autoptr(MtfGraph) graph = graph_of(setup, 1 << variant / MTF_RECOMPUTES,
                                             (MtfRecompute)(variant % MTF_RECOMPUTES));
        for (int devices = 1; devices <= 4; devices++) {
            MtfMesh mesh = mtf_random_mesh(random, devices);
            g_autoptr(MtfLayout) layout = mtf_random_free_layout(random, graph, &mesh);
            g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
            g_autoptr(MtfArena) arena = mtf_arena_pack(program);
            assert_true(mtf_memory_bound(graph, devices) <= arena->bytes);
        }
    }
}

/* On one device, with everything kept: weights, state and what is live beside them. */
TEST(on_one_device_the_bound_is_near_the_arena) {
    const Setup *setup = *state;
    MtfMesh mesh = { 0 };
    g_autoptr(MtfGraph) graph = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_true((double)mtf_memory_bound(graph, 1) >= 0.8 * (double)arena->bytes);
}

TEST(with_room_for_all_the_step_is_done_in_one_piece) {
    const Setup *setup = *state;
    g_autoptr(GArray) variants = forms_within(setup, setup->machine->memory_bytes);
    assert_int_equal(variants->len, 1);
    assert_int_equal(candidate(variants, 0)->variant.microbatches, 1);
    assert_int_equal(candidate(variants, 0)->variant.recompute, MTF_RECOMPUTE_NONE);
}

/* What is not known counts as dear. */
static int64_t cost_of(const GArray *variants, guint i) {
    int64_t cost = candidate(variants, i)->cost;
    return cost > 0 ? cost : INT64_MAX;
}

/* The cheapest first, but second the cheapest in fewer micro-batches than the first, where there is one;
 * whether that is another than the next by cost. */
static bool check_order(const GArray *variants) {
    guint fewer = 0;
    for (guint i = 1; i < variants->len; i++) {
        const MtfStepCandidate *c = candidate(variants, i);
        if (c->variant.microbatches < candidate(variants, 0)->variant.microbatches &&
            (fewer == 0 || cost_of(variants, i) < cost_of(variants, fewer)))
            fewer = i;
        guint before = i == 2 && fewer == 1 ? 0 : i - 1;
        assert_true(cost_of(variants, before) <= cost_of(variants, i));
    }
    assert_true(fewer <= 1); /* the cheapest in fewer micro-batches, where there is one */
    return fewer == 1 && variants->len > 2 && cost_of(variants, 2) < cost_of(variants, 1);
}

/* Just below what a step in one piece needs at least, that variant is gone, and others are ranked by
 * cost. */
TEST(forms_that_cannot_fit_are_left_out) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t limit = mtf_memory_bound(plain, 4) - 1;
    g_autoptr(GArray) variants = forms_within(setup, limit);
    assert_true(variants->len > 1);
    for (guint i = 0; i < variants->len; i++) {
        const MtfStepVariant *variant = &candidate(variants, i)->variant;
        assert_true(variant->microbatches > 1 || variant->recompute != MTF_RECOMPUTE_NONE);
        assert_true(candidate(variants, i)->least_bytes <= limit);
    }
    check_order(variants);
}

/* What the best rules of a variant cost when memory is no matter, by a search of its own. */
static int64_t rule_cost(const Setup *setup, const MtfStepVariant *variant) {
    g_autoptr(MtfGraph) graph = graph_of(setup, variant->microbatches, variant->recompute);
    MtfRuleSearchOptions options = { .machine = setup->machine,
                                     .memory_limit = INT64_MAX,
                                     .modelled = true };
    MtfRuleAnswer answer;
    assert_true(mtf_rule_search(graph, setup->meshes, &options, &answer, NULL));
    int64_t cost = answer.cost;
    mtf_rule_answer_clear(&answer);
    return cost;
}

/* Of a few tries the two first are priced, and what is left unpriced costs no less than they: behind more
 * micro-batches nothing is cheaper. */
TEST(what_is_not_priced_is_no_cheaper) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t most = mtf_memory_bound(plain, 4);
    int unpriced = 0;
    for (int few = 0; few < 2; few++) {
        MtfStepVariantsOptions options = setup->options;
        options.few_tries = few == 0 ? 0 : INT_MAX;
        options.memory_limit = most - 1;
        g_autoptr(GArray) variants = mtf_step_variants(&options, NULL);
        int known = few == 0 ? MTF_VARIANTS_AT_ONCE : MTF_VARIANTS_A_CHOICE;
        g_autofree int64_t *costs = g_new(int64_t, variants->len);
        for (guint i = 0; i < variants->len; i++) {
            costs[i] = rule_cost(setup, &candidate(variants, i)->variant);
            assert_true(candidate(variants, i)->cost == 0 ||
                        candidate(variants, i)->cost == costs[i]);
            unpriced += candidate(variants, i)->cost == 0;
        }
        for (guint i = 0; i < variants->len; i++) {
            int cheaper = 0;
            for (guint j = 0; j < variants->len; j++)
                cheaper += costs[j] < costs[i];
            assert_true(cheaper >= known || candidate(variants, i)->cost > 0);
        }
    }
    assert_true(unpriced > 0);
}

static const MtfStepCandidate *find_variant(const GArray *variants, const MtfStepVariant *variant) {
    for (guint i = 0; i < variants->len; i++)
        if (mtf_step_variant_equal(&candidate(variants, i)->variant, variant))
            return candidate(variants, i);
    return NULL;
}

/* What was noted of a variant is taken, even where it is one too much, and what was not is priced. */
TEST(what_was_priced_is_not_priced_again) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t most = mtf_memory_bound(plain, 4);
    g_autoptr(GArray) all = forms_within(setup, most - 1);
    g_autoptr(GArray) priced = mtf_step_candidates_priced(all);
    g_array_remove_index(priced, 0);
    for (guint i = 0; i < priced->len; i++)
        g_array_index(priced, MtfStepCandidate, i).cost++;
    MtfStepVariantsOptions options = setup->options;
    options.memory_limit = most - 1;
    options.priced = priced;
    g_autoptr(GArray) again = mtf_step_variants(&options, NULL);
    int taken = 0, found = 0;
    for (guint i = 0; i < again->len; i++) {
        const MtfStepCandidate *one = candidate(again, i),
                               *known = find_variant(priced, &one->variant);
        if (one->cost == 0)
            continue;
        assert_int_equal(one->cost, known != NULL ? known->cost : rule_cost(setup, &one->variant));
        taken += known != NULL;
        found += known == NULL;
    }
    assert_true(taken > 0 && found > 0);
}

/* Every micro-batch gathers weights that are in pieces, which the order by cost does not know. */
TEST(behind_several_microbatches_come_fewer) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t most = mtf_memory_bound(plain, 4);
    int moved = 0;
    for (int64_t limit = most / 4; limit < most; limit += most / 4) {
        g_autoptr(GArray) variants = forms_within(setup, limit);
        moved += check_order(variants);
    }
    assert_true(moved > 0);
}

/* Whoever comes before one that costs less needs and recomputes less than that, and costs a twentieth more at most. */
TEST(of_variants_about_as_cheap_one_that_needs_less_comes_first) {
    const Setup *setup = *state;
    MtfStepVariantsOptions options = setup->options;
    options.few_tries = INT_MAX;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t most = mtf_memory_bound(plain, 4);
    int moved = 0;
    for (options.memory_limit = most / 8; options.memory_limit < most;
         options.memory_limit += most / 16) {
        g_autoptr(GArray) variants = mtf_step_variants(&options, NULL);
        for (guint j = 1; j < variants->len; j++)
            for (guint i = 0; i < j; i++) {
                if (cost_of(variants, i) <= cost_of(variants, j))
                    continue;
                moved++;
                assert_true((double)cost_of(variants, i) <= 1.05 * (double)cost_of(variants, j));
                assert_true(candidate(variants, i)->least_bytes <
                            candidate(variants, j)->least_bytes);
                assert_true(candidate(variants, i)->variant.recompute <
                            candidate(variants, j)->variant.recompute);
            }
    }
    assert_true(moved > 0);
}

/* Where rules cost 60 and free layouts half at least, others promise half of what their rules cost. Where memory makes
 * free layouts cost more than rules do without it, or nothing is known, they promise no less than their rules. */
TEST(a_variant_promises_what_free_layouts_save_of_another) {
    MtfStepCandidate searched = { .cost = 60 }, near = { .cost = 70 }, far = { .cost = 80 };
    assert_true(mtf_step_candidate_promise(&near, &searched, 30) == 35);
    assert_true(mtf_step_candidate_promise(&far, &searched, 30) == 40);
    assert_true(mtf_step_candidate_promise(&near, &searched, 65) == 70);
    assert_true(mtf_step_candidate_promise(&near, &searched, 0) == 70);
    assert_true(mtf_step_candidate_promise(&near, NULL, 0) == 70);
}

/* What a look is to say, and which candidate it was asked of. */
typedef struct {
    int64_t least;
    bool leaves_mesh;
    int64_t cost;
    MtfRecompute recompute;
    int looks;
} Look;

static MtfFirstLook *look(const MtfStepCandidate *candidate, void *data) {
    Look *look = data;
    MtfMesh mesh = { 0 };
    MtfFirstLook *first = g_new(MtfFirstLook, 1);
    *first = (MtfFirstLook){ g_array_new(FALSE, TRUE, sizeof(MtfMesh)),
                             g_array_new(FALSE, FALSE, sizeof(int64_t)), look->least };
    if (look->leaves_mesh)
        g_array_append_val(first->meshes, mesh);
    look->cost = candidate->cost;
    look->recompute = candidate->variant.recompute;
    look->looks++;
    return first;
}

static GArray *variants_beside_look(const Setup *setup, int64_t limit, Look *beside) {
    MtfStepVariantsOptions options = setup->options;
    options.memory_limit = limit;
    options.look = look;
    options.look_data = beside;
    GArray *variants = mtf_step_variants(&options, NULL);
    assert_int_equal(beside->looks, 1);
    return variants;
}

/* The cheapest is looked at. Where that is hopeless, so is the rest of its line, and what its line's first promises no
 * less of: all others where its rules cost what is hopeless, none where nothing costs that. */
TEST(what_promises_no_more_than_a_hopeless_variant_is_left) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t limit = mtf_memory_bound(plain, 4) - 1;
    g_autoptr(GArray) all = forms_within(setup, limit);
    Look hopeful = { .leaves_mesh = true }, near = { .least = 1 }, far = { .least = INT64_MAX };
    g_autoptr(GArray) same = variants_beside_look(setup, limit, &hopeful);
    assert_int_equal(same->len, all->len);
    g_autoptr(GArray) none = variants_beside_look(setup, limit, &near);
    assert_int_equal(none->len, 1);
    assert_int_equal(candidate(none, 0)->cost, near.cost);
    g_autoptr(GArray) others = variants_beside_look(setup, limit, &far);
    int of_line = 0, beside_line = 0;
    for (guint i = 0; i < all->len; i++)
        beside_line += candidate(all, i)->variant.recompute != far.recompute;
    for (guint i = 0; i < others->len; i++) {
        assert_true(candidate(others, i)->cost == 0 || candidate(others, i)->cost >= far.cost);
        of_line += candidate(others, i)->variant.recompute == far.recompute;
    }
    assert_int_equal(of_line, 1);
    assert_true(beside_line > 0);
    assert_int_equal(others->len, 1 + beside_line);
}

TEST(when_none_can_fit_the_smallest_is_left) {
    const Setup *setup = *state;
    g_autoptr(GArray) variants = forms_within(setup, 1000);
    assert_int_equal(variants->len, 1);
    int64_t least = candidate(variants, 0)->least_bytes;
    for (int variant = 0; variant < 3 * MTF_RECOMPUTES; variant++) {
        g_autoptr(MtfGraph) graph = graph_of(setup, 1 << variant / MTF_RECOMPUTES,
                                             (MtfRecompute)(variant % MTF_RECOMPUTES));
        assert_true(least <= mtf_memory_bound(graph, 4));
    }
}

static bool rules_fit(const Setup *setup, const MtfGraph *graph, int64_t limit) {
    MtfRuleSearchOptions options = { .machine = setup->machine, .memory_limit = limit };
    MtfRuleAnswer answer;
    assert_true(mtf_rule_search(graph, setup->meshes, &options, &answer, NULL));
    bool found = answer.found;
    mtf_rule_answer_clear(&answer);
    return found;
}

/* The bound takes equal parts on all devices for possible, which rules are far from: where many micro-batches
 * alone make rules fit, they are named all the same. Tried against a search of every variant. */
TEST(rules_get_as_many_microbatches_as_they_need) {
    const Setup *setup = *state;
    MtfStepVariantsOptions options = setup->options;
    options.rules_only = true;
    g_autoptr(MtfGraph) plain = graph_of(setup, 1, MTF_RECOMPUTE_NONE);
    int64_t most = 4 * mtf_memory_bound(plain, 4);
    int fitting = 0;
    for (options.memory_limit = most / 8; options.memory_limit < most;
         options.memory_limit += most / 8) {
        bool fits = false;
        for (int m = 1; m <= 16 && !fits; m *= 2) {
            g_autoptr(MtfGraph) graph = graph_of(setup, m, MTF_RECOMPUTE_LAYERS);
            fits = rules_fit(setup, graph, options.memory_limit);
        }
        g_autoptr(GArray) variants = mtf_step_variants(&options, NULL);
        assert_true(!fits || variants->len == 1 || candidate(variants, 0)->cost > 0);
        fitting += fits && variants->len > 1;
    }
    assert_true(fitting > 0);
}

TEST(what_the_user_asks_for_is_not_questioned) {
    const Setup *setup = *state;
    g_autoptr(GError) error = NULL;
    MtfStepVariantsOptions options = setup->options;
    options.memory_limit = 1000;
    options.microbatches = 4;
    options.recompute = MTF_RECOMPUTE_CHEAP;
    g_autoptr(GArray) variants = mtf_step_variants(&options, &error);
    assert_int_equal(variants->len, 1);
    assert_int_equal(candidate(variants, 0)->variant.microbatches, 4);
    assert_int_equal(candidate(variants, 0)->variant.recompute, MTF_RECOMPUTE_CHEAP);
    options.microbatches = 7;
    assert_null(mtf_step_variants(&options, &error));
    assert_non_null(strstr(error->message, "7 micro-batches do not divide the batch"));
}

/* A training graph has its variant: with no room for it there is nothing else to try. */
TEST(a_training_graph_is_not_divided) {
    Setup setup = *(const Setup *)*state;
    g_autoptr(MtfGraph) training = graph_of(&setup, 1, MTF_RECOMPUTE_NONE);
    setup.options.written = training;
    setup.options.recompute = MTF_RECOMPUTE_NONE;
    g_autoptr(GArray) variants = forms_within(&setup, 1000);
    assert_int_equal(variants->len, 1);
    assert_int_equal(candidate(variants, 0)->variant.microbatches, 1);
}

int main(void) {
    return mtf_tests_run(setup_init, setup_clear);
}
