// SPDX-License-Identifier: GPL-3.0-or-later
/* Variants and meshes compared on a few layers, beside the comparison on all of them. */
#include "tests/support/cmocka.h"

#include "analyzer/free/operation_profile.h"
#include "analyzer/planner/deep_search.h"
#include "analyzer/planner/next_best.h"
#include "analyzer/rewriting/shallow_graph.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>

#define LAYERS 40
#define FEW 24
#define DEEP 200
#define VERY_LARGE 100 /* operations, less than a step of so many layers has */

typedef struct {
    MtfGraph *written;
    MtfMachine *machine;
    GArray *meshes;
    MtfVariantSearchOptions options;
} Setup;

static int setup_init(void **state) {
    Setup *setup = g_new0(Setup, 1);
    setup->written = mtf_test_layers(LAYERS, 64, 32, 128);
    setup->machine = mtf_planning_machine("cpu-host", NULL, NULL);
    setup->meshes = mtf_test_meshes("rows:4 rows:2;cols:2");
    setup->options = (MtfVariantSearchOptions){ .written = setup->written,
                                                .machine = setup->machine,
                                                .meshes = setup->meshes,
                                                .recompute = MTF_RECOMPUTES,
                                                .offload = MTF_OFFLOADS,
                                                .memory_limit = setup->machine->memory_bytes,
                                                .gap = NAN };
    *state = setup;
    return 0;
}

static int setup_clear(void **state) {
    Setup *setup = *state;
    mtf_graph_free(setup->written);
    mtf_machine_free(setup->machine);
    g_array_unref(setup->meshes);
    g_free(setup);
    return 0;
}

static MtfVariantAnswer search(const MtfVariantSearchOptions *options, guint large) {
    MtfVariantAnswer answer;
    GError *error = NULL;
    assert_true(mtf_deep_search(options, large, &answer, &error));
    assert_null(error);
    return answer;
}

/* Only the mesh that the few layers chose was searched, and that is the one of all layers. */
TEST(a_few_layers_choose_as_all_do) {
    const Setup *setup = *state;
    MtfVariantAnswer all = search(&setup->options, G_MAXUINT);
    MtfVariantAnswer few = search(&setup->options, VERY_LARGE);
    assert_true(all.answer.found && few.answer.found);
    assert_int_equal(all.answer.meshes, 2);
    assert_int_equal(few.answer.meshes, 1);
    assert_int_equal(few.considered, 1);
    assert_int_equal(few.graph->operations->len, all.graph->operations->len);
    assert_int_equal(few.answer.cost, all.answer.cost);
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

static const MtfIncumbent *next_best(const MtfVariantAnswer *answer, int64_t memory_limit) {
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&answer->answer, answer->graph);
    return mtf_next_best_of(&answer->answer, answer->graph, layout, memory_limit);
}

static guint kinds_of(const MtfVariantAnswer *answer, int64_t memory_limit) {
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(answer->answer.incumbents, memory_limit);
    return shown->len;
}

/* Of the kinds that the few layers were laid out in by hand, all layers get the one that the plan is compared with. */
TEST(of_all_layers_the_next_best_kind_alone_is_measured) {
    const Setup *setup = *state;
    MtfVariantSearchOptions options = setup->options;
    int64_t limit = options.memory_limit;
    MtfVariantAnswer all = search(&options, G_MAXUINT), few = search(&options, VERY_LARGE);
    const MtfIncumbent *one = next_best(&all, limit), *other = next_best(&few, limit);
    assert_non_null(one);
    assert_non_null(other);
    assert_string_equal(other->name, one->name);
    assert_int_equal(other->cost, one->cost);
    assert_int_equal(other->arena_bytes, one->arena_bytes);
    guint kinds = kinds_of(&few, limit);
    assert_true(kinds <= 2 && kinds < kinds_of(&all, limit));
    mtf_variant_answer_clear(&few);
    options.framework = "megatron";
    few = search(&options, VERY_LARGE);
    assert_int_equal(kinds_of(&few, limit), kinds_of(&all, limit));
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

/* Nothing fits either way: what would do is that of all layers, found on all meshes. */
TEST(where_the_few_fit_nowhere_all_are_compared) {
    const Setup *setup = *state;
    MtfVariantSearchOptions options = setup->options;
    options.memory_limit = 1000;
    MtfVariantAnswer all = search(&options, G_MAXUINT);
    MtfVariantAnswer few = search(&options, VERY_LARGE);
    assert_false(all.answer.found || few.answer.found);
    assert_int_equal(few.answer.meshes, all.answer.meshes);
    assert_int_equal(few.answer.free.limit_enough, all.answer.free.limit_enough);
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

/* Where mesh and variant are given there is nothing to compare. */
TEST(a_choice_of_one_is_not_compared) {
    const Setup *setup = *state;
    g_autoptr(GArray) one = mtf_test_meshes("rows:4");
    MtfVariantSearchOptions options = setup->options;
    options.meshes = one;
    options.microbatches = 1;
    options.recompute = MTF_RECOMPUTE_NONE;
    MtfVariantAnswer all = search(&options, G_MAXUINT), few = search(&options, VERY_LARGE);
    assert_int_equal(few.answer.cost, all.answer.cost);
    assert_int_equal(few.answer.free.bound, all.answer.free.bound);
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

/* From ample memory down to a limit that free layouts keep and rules do not. Rules that the few layers have no room
 * for are not searched again. */
TEST(rules_that_fit_nowhere_are_looked_for_once) {
    const Setup *setup = *state;
    MtfVariantSearchOptions options = setup->options;
    options.microbatches = 1;
    options.recompute = MTF_RECOMPUTE_NONE;
    options.offload = MTF_OFFLOAD_NONE;
    MtfVariantAnswer all = search(&options, G_MAXUINT);
    int64_t step = all.answer.free.arena_bytes / 10;
    options.memory_limit = 10 * step;
    while (all.answer.found && all.answer.rules.found) {
        mtf_variant_answer_clear(&all);
        options.memory_limit -= step;
        all = search(&options, G_MAXUINT);
    }
    MtfVariantAnswer few = search(&options, VERY_LARGE);
    assert_true(all.answer.found && few.answer.found);
    assert_false(few.answer.rules.found);
    assert_null(few.answer.rules.rules);
    assert_int_equal(few.answer.cost, all.answer.cost);
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

/* There is less time than a search of so many layers would take: those that stand for one of the few are laid out as
 * that, and cost, memory and step are those of all. */
TEST(where_time_is_short_all_layers_get_the_layout_of_the_few) {
    const Setup *setup = *state;
    g_autoptr(MtfGraph) deep = mtf_test_layers(DEEP, 64, 32, 128);
    MtfSearchControl control;
    mtf_search_control_init(&control, 1e-2);
    MtfVariantSearchOptions options = setup->options;
    options.written = deep;
    options.control = &control;
    MtfVariantAnswer found = search(&options, VERY_LARGE);
    const MtfFreeAnswer *free = &found.answer.free;
    assert_true(found.answer.found);
    assert_true(mtf_layout_check(found.graph, free->layout, NULL));
    int one = mtf_graph_find_tensor(found.graph, "layer/1/w");
    int next = mtf_graph_find_tensor(found.graph, "layer/2/w");
    assert_true(mtf_placement_equal(&free->layout->tensors[one], &free->layout->tensors[next]));
    assert_int_equal(free->cost, mtf_price_program(&found.answer.pricer, found.program));
    int64_t least = mtf_operations_least(found.graph, &free->layout->mesh, &found.answer.pricer);
    int64_t floor = mtf_price_floor(&found.answer.pricer, found.graph, &free->layout->mesh);
    assert_true(floor > 0 && floor <= least && least < free->cost);
    assert_int_equal(free->bound, least);
    mtf_variant_answer_clear(&found);
}

/* A search in a share of the arena that the cheapest layout has without a limit, which is a little dearer; `limit` is
 * that. */
static MtfVariantAnswer search_tight(MtfVariantSearchOptions options, int64_t *limit) {
    MtfVariantAnswer ample = search(&options, G_MAXUINT);
    *limit = options.memory_limit = ample.answer.free.arena_bytes / 20 * 19;
    mtf_variant_answer_clear(&ample);
    MtfVariantAnswer tight = search(&options, G_MAXUINT);
    assert_true(tight.answer.found);
    return tight;
}

/* In no time there would be a standard layout, a quarter dearer. */
TEST(a_search_of_all_begins_with_the_layout_of_the_few) {
    const Setup *setup = *state;
    g_autoptr(GArray) one = mtf_test_meshes("rows:2;cols:2");
    g_autoptr(MtfGraph) shallow = mtf_graph_shallow(setup->written, FEW);
    MtfVariantSearchOptions options = setup->options;
    options.meshes = one;
    options.microbatches = 1;
    options.recompute = MTF_RECOMPUTE_NONE;
    options.offload = MTF_OFFLOAD_NONE;
    int64_t limit;
    MtfVariantAnswer all = search_tight(options, &limit);
    options.written = shallow;
    MtfVariantAnswer few = search_tight(options, &options.memory_limit);
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&few.answer, few.graph);
    MtfKnownLayout best = { MTF_FREE_LAYOUT, layout };
    g_autoptr(GArray) known = g_array_new(FALSE, FALSE, sizeof best);
    g_array_append_val(known, best);
    MtfFewLayers layers = { .graph = few.graph, .layers = FEW, .layouts = known };
    MtfSearchControl control;
    mtf_search_control_init(&control, 1e-3);
    options.written = setup->written;
    options.memory_limit = limit;
    options.no_rules = true;
    options.control = &control;
    options.few = &layers;
    MtfVariantAnswer begun = search(&options, G_MAXUINT);
    assert_true(begun.answer.found);
    assert_true((double)begun.answer.cost <= 1.01 * (double)all.answer.cost);
    mtf_variant_answer_clear(&begun);
    mtf_variant_answer_clear(&all);
    mtf_variant_answer_clear(&few);
}

/* Under less memory a search of all begins with what one variant on one mesh came to. */
TEST(what_is_known_of_a_variant_is_not_searched_again) {
    const Setup *setup = *state;
    MtfVariantSearchOptions options = setup->options;
    g_autoptr(GArray) mesh = g_array_new(FALSE, FALSE, sizeof(MtfMesh));
    MtfVariantAnswer all = search(&options, G_MAXUINT);
    MtfVariantSearchOptions one = mtf_variant_search_narrowed(&options, &all, mesh);
    MtfVariantAnswer known = search(&one, G_MAXUINT);
    const MtfGraph *graph = known.graph;
    assert_non_null(graph);
    options.known = &known;
    MtfVariantAnswer again = search(&options, G_MAXUINT);
    assert_ptr_equal(again.graph, graph); /* of a new search it would be another */
    assert_null(known.graph);
    assert_int_equal(again.answer.cost, all.answer.cost);
    assert_int_equal(again.considered, all.considered);
    mtf_variant_answer_clear(&again);
    mtf_variant_answer_clear(&known);
    mtf_variant_answer_clear(&all);
}

int main(void) {
    return mtf_tests_run(setup_init, setup_clear);
}
