// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/planner/variant_frontier.h"

static void add_point(GArray *frontier, MtfIncumbent *layout, int64_t limit, int64_t bound) {
    MtfFrontierPoint point = { limit, bound, layout, layout };
    g_array_append_val(frontier, point);
}

static MtfIncumbent layout(int64_t bytes, int64_t cost, double step) {
    return (MtfIncumbent){ .name = (char *)(gpointer) "free layout",
                           .arena_bytes = bytes,
                           .cost = cost,
                           .step_seconds = step };
}

/* One variant needs 90 to 200 bytes, the other, slower one 20 to 60:
 *
 *     limit      20   60  100  200
 *     first            .   10    8     bounds 9, 7
 *     second     30   15                      12, 11
 */
static GArray *two_variants(MtfIncumbent layouts[4]) {
    g_autoptr(GArray) first = g_array_new(FALSE, TRUE, sizeof(MtfFrontierPoint));
    g_autoptr(GArray) second = g_array_new(FALSE, TRUE, sizeof(MtfFrontierPoint));
    GArray *points = mtf_variant_points_new();
    layouts[0] = layout(90, 10, 1.0);
    layouts[1] = layout(200, 8, 0.8);
    layouts[2] = layout(20, 30, 3.0);
    layouts[3] = layout(60, 15, 1.5);
    add_point(first, &layouts[0], 100, 9);
    add_point(first, &layouts[1], 200, 7);
    add_point(second, &layouts[2], 20, 12);
    add_point(second, &layouts[3], 60, 11);
    mtf_variant_points_add(points, first, 0);
    mtf_variant_points_add(points, second, 1);
    return points;
}

static const MtfVariantPoint *at(const GArray *frontier, guint i) {
    return &g_array_index(frontier, MtfVariantPoint, i);
}

TEST(the_frontier_ranges_over_variants) {
    MtfIncumbent layouts[4];
    g_autoptr(GArray) points = two_variants(layouts);
    g_autoptr(GArray) frontier = mtf_variant_frontier(points, 4, 1000);
    static const int variants[] = { 1, 1, 0, 0 };
    static const int64_t limits[] = { 20, 60, 100, 200 }, costs[] = { 30, 15, 10, 8 };
    static const int64_t bounds[] = { 9, 9, 9, 7 }; /* the least of both within the limit */
    assert_int_equal(frontier->len, 4);
    for (guint i = 0; i < 4; i++) {
        assert_int_equal(at(frontier, i)->limit, limits[i]);
        assert_int_equal(at(frontier, i)->variant, variants[i]);
        assert_int_equal(at(frontier, i)->cost, costs[i]);
        assert_int_equal(at(frontier, i)->bound, bounds[i]);
    }
}

TEST(the_limit_asked_for_is_among_them) {
    MtfIncumbent layouts[4];
    g_autoptr(GArray) points = two_variants(layouts);
    g_autoptr(GArray) frontier = mtf_variant_frontier(points, 2, 150);
    assert_int_equal(frontier->len, 3);
    assert_int_equal(at(frontier, 1)->limit, 150);
    assert_int_equal(at(frontier, 1)->bytes, 90);
}

TEST(where_nothing_fits_there_is_no_frontier) {
    g_autoptr(GArray) points = mtf_variant_points_new();
    g_autoptr(GArray) frontier = mtf_variant_frontier(points, 4, 100);
    assert_int_equal(frontier->len, 0);
}
