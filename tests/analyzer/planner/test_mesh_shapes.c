// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/planner/mesh_shapes.h"

static void check_mesh(const GArray *meshes, guint index, const char *expected) {
    assert_true(index < meshes->len);
    g_autofree char *text = mtf_mesh_format(&g_array_index(meshes, MtfMesh, index));
    assert_string_equal(text, expected);
}

/* 12 = 2 6 = 3 4 = 4 3 = 6 2 = 2 2 3 = 2 3 2 = 3 2 2. */
TEST(twelve_devices_form_eight_meshes) {
    static const char *const expected[] = { "all:12",
                                            "rows:2;cols:6",
                                            "rows:3;cols:4",
                                            "rows:4;cols:3",
                                            "rows:6;cols:2",
                                            "planes:2;rows:2;cols:3",
                                            "planes:2;rows:3;cols:2",
                                            "planes:3;rows:2;cols:2" };
    g_autoptr(GArray) meshes = mtf_mesh_shapes(12, 3);
    assert_int_equal(meshes->len, 8);
    for (guint i = 0; i < 8; i++)
        check_mesh(meshes, i, expected[i]);
}

TEST(a_prime_number_forms_one_mesh) {
    g_autoptr(GArray) meshes = mtf_mesh_shapes(13, 3);
    assert_int_equal(meshes->len, 1);
    check_mesh(meshes, 0, "all:13");
}

TEST(one_device_is_the_mesh_without_axes) {
    g_autoptr(GArray) meshes = mtf_mesh_shapes(1, 3);
    assert_int_equal(meshes->len, 1);
    assert_int_equal(g_array_index(meshes, MtfMesh, 0).n_axes, 0);
}

/* NULL: there is none. */
static void check_space(int devices, int data, int spaces, const char *expected) {
    MtfMesh mesh;
    bool found = mtf_mesh_for_space(devices, data, spaces, &mesh);
    g_autofree char *text = found ? mtf_mesh_format(&mesh) : NULL;
    if (expected == NULL)
        assert_false(found);
    else
        assert_string_equal(text, expected);
}

TEST(space_has_axes_as_equal_as_can_be) {
    check_space(64, 1, 3, "planes:4;rows:4;cols:4");
    check_space(64, 1, 2, "rows:8;cols:8");
    check_space(64, 2, 3, "data:2;planes:2;rows:4;cols:4");
    check_space(64, 16, 3, "data:16;rows:2;cols:2");
    check_space(30, 1, 3, "planes:2;rows:3;cols:5");
    check_space(30, 5, 3, "data:5;rows:2;cols:3");
    check_space(64, 32, 3, NULL);
    check_space(7, 1, 3, NULL);
    check_space(8, 8, 3, NULL);
}

/* Inside one node of 16 all members are alike, so 2x8 is priced as 8x2; across two nodes of 16 the
 * order decides who shares the uplink. */
TEST(orders_that_a_switch_prices_equally_are_kept_once) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-cluster", NULL);
    g_autoptr(GArray) inside = mtf_mesh_shapes_on(machine, 16, 2, NULL);
    g_autoptr(GArray) across = mtf_mesh_shapes_on(machine, 32, 2, NULL);
    assert_int_equal(inside->len, 3);
    check_mesh(inside, 1, "rows:2;cols:8");
    check_mesh(inside, 2, "rows:4;cols:4");
    assert_int_equal(across->len, 5);
}

TEST(a_machine_that_is_too_small_is_bad_input) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    g_autoptr(GError) error = NULL;
    assert_null(mtf_mesh_shapes_on(machine, 1024, 2, &error));
    assert_non_null(error);
}
