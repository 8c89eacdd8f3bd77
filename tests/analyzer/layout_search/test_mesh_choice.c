// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/mesh_choice.h"
#include "analyzer/planner/mesh_shapes.h"

static const MtfMesh *mesh_at(const GArray *meshes, guint i) {
    return &g_array_index(meshes, MtfMesh, i);
}

/* 2^14 in one axis, in two (13 ways) and in three (78). */
TEST(of_many_meshes_those_of_two_axes_come_first) {
    g_autoptr(GArray) all = mtf_mesh_shapes(16384, 3);
    g_autoptr(GArray) first = mtf_meshes_at_first(all);
    assert_int_equal(all->len, 92);
    assert_int_equal(first->len, 14);
    g_autoptr(GArray) few = mtf_mesh_shapes(64, 3);
    g_autoptr(GArray) same = mtf_meshes_at_first(few);
    assert_int_equal(same->len, few->len);
}

static int64_t product(const MtfMesh *mesh, int begin, int end) {
    int64_t product = 1;
    for (int a = begin; a < end; a++)
        product *= mesh->axes[a].size;
    return product;
}

/* Of a x b x c, ab x c and a x bc are merges: tried against all pairs. */
TEST(what_refines_a_mesh_becomes_it_when_neighbours_are_merged) {
    g_autoptr(GArray) all = mtf_mesh_shapes(720, 3);
    int found = 0;
    for (guint k = 0; k < all->len; k++) {
        const MtfMesh *coarse = mesh_at(all, k);
        g_autoptr(GArray) finer = mtf_meshes_refining(all, coarse);
        guint expected = 0;
        for (guint i = 0; i < all->len; i++) {
            const MtfMesh *mesh = mesh_at(all, i);
            bool merges = coarse->n_axes == 1 && mesh->n_axes > 1;
            for (int at = 1; coarse->n_axes == 2 && mesh->n_axes == 3 && at < 3; at++)
                merges |= product(mesh, 0, at) == coarse->axes[0].size;
            expected += merges;
        }
        assert_int_equal(finer->len, expected);
        found += expected > 0;
    }
    assert_true(found > 10);
}

TEST(the_cheapest_rank_first_and_the_dear_not_at_all) {
    const MtfRuleMesh rules[] = { { true, 50 }, { false, 10 }, { true, 30 }, { true, 90 } };
    g_autoptr(GArray) by_mesh = g_array_new(FALSE, TRUE, sizeof(MtfRuleMesh));
    g_array_append_vals(by_mesh, rules, G_N_ELEMENTS(rules));
    g_autoptr(GArray) ranked = mtf_meshes_ranked(by_mesh, 4, 60);
    assert_int_equal(ranked->len, 2);
    assert_int_equal(g_array_index(ranked, int, 0), 2);
    assert_int_equal(g_array_index(ranked, int, 1), 0);
    g_autoptr(GArray) best = mtf_meshes_ranked(by_mesh, 1, 1000);
    assert_int_equal(best->len, 1);
}
