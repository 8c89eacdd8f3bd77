// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/incumbents.h"
#include "analyzer/free/standard_layouts.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/free_setup.h"

#include <string.h>

static int setup_init(void **state) {
    MtfFreeSetup *setup = g_new0(MtfFreeSetup, 1);
    g_autoptr(MtfGraph) forward =
        mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, NULL);
    mtf_free_setup_init(setup, mtf_training_graph(forward, NULL), "r:2;c:2");
    *state = setup;
    return 0;
}

static int setup_clear(void **state) {
    mtf_free_setup_clear(*state);
    g_free(*state);
    return 0;
}

static MtfIncumbents *standards_of(const MtfFreeSetup *setup) {
    MtfIncumbents *incumbents = mtf_incumbents_new(setup->graph, &setup->pricer);
    mtf_incumbents_add_standards(incumbents, setup->problem);
    return incumbents;
}

/* Every standard layout, lowered, packed and scheduled here. */
typedef struct {
    const char *name;
    int64_t cost, arena_bytes, nanoseconds;
} Known;

static GArray *measure_all(const MtfFreeSetup *setup, GPtrArray *standards) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Known));
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup->problem, standard->choice);
        g_autoptr(MtfProgram) program = mtf_lower(setup->graph, layout);
        g_autoptr(MtfArena) arena = mtf_arena_pack(program);
        g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&setup->pricer, program);
        Known known = { standard->name, mtf_price_program(&setup->pricer, program), arena->bytes,
                        schedule->nanoseconds };
        g_array_append_val(all, known);
    }
    return all;
}

/* The place of the cheapest (of a name, or of all) that fits, or -1. */
static int cheapest_of(const GArray *all, const char *name, int64_t limit) {
    int best = -1;
    for (int i = 0; i < (int)all->len; i++) {
        const Known *known = &g_array_index(all, Known, i);
        if ((name == NULL || strcmp(known->name, name) == 0) && known->arena_bytes <= limit &&
            (best < 0 || known->cost < g_array_index(all, Known, best).cost))
            best = i;
    }
    return best;
}

static void check_same(const MtfIncumbent *incumbent, const GArray *all, int place) {
    if (place < 0) {
        assert_null(incumbent);
        return;
    }
    const Known *known = &g_array_index(all, Known, place);
    assert_string_equal(incumbent->name, known->name);
    assert_int_equal(incumbent->cost, known->cost);
    assert_int_equal(incumbent->arena_bytes, known->arena_bytes);
    assert_true(incumbent->step_seconds == (double)known->nanoseconds / 1e9);
}

/* One of each name, as chosen from the full list. */
static void check_shown(MtfIncumbents *incumbents, const GArray *all, int64_t limit) {
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, limit);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < all->len; i++)
        g_hash_table_add(names, (gpointer)g_array_index(all, Known, i).name);
    assert_int_equal(shown->len, g_hash_table_size(names));
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(shown, i);
        int place = cheapest_of(all, incumbent->name, limit);
        if (place < 0)
            place = cheapest_of(all, incumbent->name, INT64_MAX);
        check_same(incumbent, all, place);
        g_hash_table_remove(names, incumbent->name);
    }
    assert_int_equal(g_hash_table_size(names), 0);
}

/* Of those that are shown, the ones that fit. */
static void check_fitting(MtfIncumbents *incumbents, int64_t limit) {
    g_autoptr(GPtrArray) fitting = mtf_incumbents_fitting(incumbents, limit);
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, limit);
    guint count = 0;
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(shown, i);
        if (incumbent->arena_bytes > limit)
            continue;
        assert_true(count < fitting->len && g_ptr_array_index(fitting, count) == incumbent);
        count++;
    }
    assert_int_equal(fitting->len, count);
}

/* At every limit where one more of them fits, and a byte below. */
TEST(what_is_measured_late_is_as_if_all_were_measured_before) {
    const MtfFreeSetup *setup = *state;
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(setup->problem);
    g_autoptr(GArray) all = measure_all(setup, standards);
    assert_true(all->len >= 9);
    int64_t smallest = INT64_MAX;
    for (guint i = 0; i < all->len; i++) {
        int64_t bytes = g_array_index(all, Known, i).arena_bytes;
        smallest = MIN(smallest, bytes);
        for (int64_t limit = bytes - 1; limit <= bytes; limit++) {
            g_autoptr(MtfIncumbents) incumbents = standards_of(setup);
            check_same(mtf_incumbents_best(incumbents, limit), all, cheapest_of(all, NULL, limit));
            check_fitting(incumbents, limit);
            check_shown(incumbents, all, limit);
        }
    }
    g_autoptr(MtfIncumbents) incumbents = standards_of(setup);
    assert_int_equal(mtf_incumbents_smallest(incumbents)->arena_bytes, smallest);
}

TEST(what_is_added_is_priced_and_free_layouts_are_not_shown) {
    const MtfFreeSetup *setup = *state;
    g_autoptr(MtfLayout) whole = mtf_layout_new(setup->graph, &setup->mesh);
    g_autoptr(MtfProgram) program = mtf_lower(setup->graph, whole);
    g_autoptr(MtfIncumbents) incumbents = mtf_incumbents_new(setup->graph, &setup->pricer);
    assert_null(mtf_incumbents_best(incumbents, INT64_MAX));
    assert_null(mtf_incumbents_smallest(incumbents));
    mtf_incumbents_add(incumbents, MTF_FREE_LAYOUT, whole);
    const MtfIncumbent *best = mtf_incumbents_best(incumbents, INT64_MAX);
    assert_int_equal(best->cost, mtf_price_program(&setup->pricer, program));
    assert_null(mtf_incumbents_best(incumbents, best->arena_bytes - 1));
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, INT64_MAX);
    assert_int_equal(shown->len, 0);
}

TEST(what_is_known_of_a_layout_is_taken_as_it_is) {
    const MtfFreeSetup *setup = *state;
    g_autoptr(MtfLayout) whole = mtf_layout_new(setup->graph, &setup->mesh);
    g_autoptr(MtfIncumbents) incumbents = mtf_incumbents_new(setup->graph, &setup->pricer);
    mtf_incumbents_add_measured(incumbents, MTF_FREE_LAYOUT, whole,
                                &(MtfLayoutMeasures){ 700, 1 << 20, 0.25 });
    assert_null(mtf_incumbents_best(incumbents, (1 << 20) - 1));
    const MtfIncumbent *best = mtf_incumbents_best(incumbents, 1 << 20);
    assert_int_equal(best->cost, 700);
    assert_int_equal(best->arena_bytes, 1 << 20);
    assert_false(best->step_seconds < 0.25 || best->step_seconds > 0.25);
}

/* Of three the one that came with its figures; and all of those that were shown before. */
TEST(without_time_only_what_is_measured_is_shown) {
    const MtfFreeSetup *setup = *state;
    g_autoptr(MtfLayout) whole = mtf_layout_new(setup->graph, &setup->mesh);
    g_autoptr(MtfIncumbents) incumbents = mtf_incumbents_new(setup->graph, &setup->pricer);
    mtf_incumbents_add(incumbents, "unknown", whole);
    mtf_incumbents_add_measured(incumbents, "known", whole,
                                &(MtfLayoutMeasures){ 700, 1 << 20, 0.25 });
    mtf_incumbents_add(incumbents, "unknown, too", whole);
    mtf_incumbents_drop_unmeasured(incumbents);
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, INT64_MAX);
    assert_int_equal(shown->len, 1);
    assert_string_equal(((const MtfIncumbent *)g_ptr_array_index(shown, 0))->name, "known");
    g_autoptr(MtfIncumbents) measured = standards_of(setup);
    g_autoptr(GPtrArray) all = mtf_incumbents_shown(measured, INT64_MAX);
    mtf_incumbents_drop_unmeasured(measured);
    g_autoptr(GPtrArray) still = mtf_incumbents_shown(measured, INT64_MAX);
    assert_true(all->len > 3);
    assert_int_equal(still->len, all->len);
}

/* A search that was cancelled measures nothing; one with time all that is shown. */
TEST(measuring_ends_with_the_time) {
    MtfSearchControl control;
    g_autoptr(MtfIncumbents) incumbents = standards_of(*state);
    g_autoptr(MtfIncumbents) others = standards_of(*state);
    mtf_search_control_init(&control, 0);
    mtf_incumbents_measure(incumbents, INT64_MAX, &control);
    mtf_incumbents_drop_unmeasured(incumbents);
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(incumbents, INT64_MAX);
    g_autoptr(GPtrArray) all = mtf_incumbents_shown(others, INT64_MAX);
    assert_true(all->len > 3);
    assert_int_equal(shown->len, all->len);
    mtf_search_cancel(&control);
    g_autoptr(MtfIncumbents) late = standards_of(*state);
    mtf_incumbents_measure(late, INT64_MAX, &control);
    mtf_incumbents_drop_unmeasured(late);
    g_autoptr(GPtrArray) none = mtf_incumbents_shown(late, INT64_MAX);
    assert_int_equal(none->len, 0);
}

/* Each that fits is lowered, packed and scheduled here as it is then; a byte less than the least leaves all as they were. */
TEST(joined_exchanges_shorten_steps_of_what_fits) {
    const MtfFreeSetup *setup = *state;
    g_autoptr(MtfIncumbents) incumbents = standards_of(setup), apart = standards_of(setup);
    mtf_incumbents_join(incumbents, mtf_incumbents_smallest(incumbents)->arena_bytes - 1, 0);
    g_autoptr(GPtrArray) before = mtf_incumbents_shown(apart, INT64_MAX);
    g_autoptr(GPtrArray) left = mtf_incumbents_shown(incumbents, INT64_MAX);
    for (guint i = 0; i < left->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(left, i);
        assert_int_equal(one->layout->execution.bucket_bytes, 0);
    }
    mtf_incumbents_join(incumbents, INT64_MAX, 0);
    g_autoptr(GPtrArray) after = mtf_incumbents_fitting(incumbents, INT64_MAX);
    assert_int_equal(after->len, before->len);
    int joined = 0;
    for (guint i = 0; i < after->len; i++) {
        const MtfIncumbent *one = g_ptr_array_index(after, i);
        double alone = ((const MtfIncumbent *)g_ptr_array_index(before, i))->step_seconds;
        MtfLayoutMeasures now = mtf_layout_measure(setup->graph, &setup->pricer, one->layout);
        assert_int_equal(one->arena_bytes, now.arena_bytes);
        assert_true(one->step_seconds == now.step_seconds && one->step_seconds <= alone);
        joined += one->step_seconds < alone && one->layout->execution.bucket_bytes > 0;
    }
    assert_true(joined > 0);
}

int main(void) {
    return mtf_tests_run(setup_init, setup_clear);
}
