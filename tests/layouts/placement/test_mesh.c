// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/placement/mesh.h"

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

static void assert_fails(const char *text, int64_t devices, const char *message) {
    g_autoptr(GError) error = NULL;
    MtfMesh mesh = { .n_axes = 77 };
    assert_false(mtf_mesh_parse(text, devices, &mesh, &error));
    assert_int_equal(mesh.n_axes, 77);
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
}

TEST(a_mesh_is_read_and_printed) {
    MtfMesh mesh = mesh_of("rows:4;cols:2");
    assert_int_equal(mesh.n_axes, 2);
    assert_string_equal(mesh.axes[0].name, "rows");
    assert_int_equal(mesh.axes[0].size, 4);
    assert_string_equal(mesh.axes[1].name, "cols");
    assert_int_equal(mesh.axes[1].size, 2);
    g_autofree char *text = mtf_mesh_format(&mesh);
    assert_string_equal(text, "rows:4;cols:2");
}

TEST(all_separators_of_mesh_tensorflow_are_read) {
    MtfMesh expected = mesh_of("a:2;b:3;c:4");
    static const char *const texts[] = { "a:2,b:3,c:4", "a:2.b:3.c:4", "a:2 b:3 c:4",
                                         " a:2;; b:3,c:4;" };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        MtfMesh mesh = mesh_of(texts[i]);
        assert_true(mtf_mesh_equal(&mesh, &expected));
    }
}

TEST(the_empty_text_is_one_processor) {
    MtfMesh mesh = mesh_of("");
    assert_int_equal(mesh.n_axes, 0);
    assert_int_equal(mtf_mesh_size(&mesh), 1);
    g_autofree char *text = mtf_mesh_format(&mesh);
    assert_string_equal(text, "");
    g_autofree char *title = mtf_mesh_title(&mesh);
    assert_string_equal(title, "one device");
}

TEST(one_size_is_what_is_left_of_the_devices) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("a:3;b:-1;c:2", 24, &mesh, NULL));
    assert_int_equal(mesh.axes[1].size, 4);
    assert_fails("a:-1;b:-1", 24, "mesh: only one axis can have size -1");
    assert_fails("a:-1", 0, "mesh: size -1 of axis \"a\" needs --devices");
    assert_fails("a:5;b:-1", 24, "mesh: 24 devices are not a multiple of 5");
    assert_fails("a:5", 24, "mesh: it has 5 processors, not 24");
    assert_fails("a:4096;b:-1", INT64_C(1) << 30, "mesh: more than 16777216 processors");
}

TEST(wrong_meshes_are_told) {
    assert_fails("rows", 0, "mesh: \"rows\" is not of the form name:value");
    assert_fails("rows:", 0, "mesh: \"rows:\" is not of the form name:value");
    assert_fails(":2", 0, "mesh: \":2\" is not of the form name:value");
    assert_fails("a:2:3", 0, "mesh: \"a:2:3\" is not of the form name:value");
    assert_fails("a:2;a:3", 0, "mesh: axis \"a\" is given twice");
    assert_fails("a:0", 0,
                 "mesh: the size \"0\" of axis \"a\" is not a number from 1 to 16777216 (or -1 "
                 "for what is left of the devices)");
    assert_fails("a:two", 0,
                 "mesh: the size \"two\" of axis \"a\" is not a number from 1 to 16777216 (or -1 "
                 "for what is left of the devices)");
    assert_fails("a:1;b:1;c:1;d:1;e:1;f:1;g:1;h:1;i:1", 0, "mesh: more than 8 axes");
    assert_fails("a:65536;b:65536", 0, "mesh: more than 16777216 processors");
    assert_fails("abcdefghijklmnopqrstuvwxyz123456:2", 0,
                 "mesh: axis name \"abcdefghijklmnopqrstuvwxyz123456\" is longer than 31 bytes");
    assert_fails("a\x01:2", 0, "mesh: an axis name holds no control character and is UTF-8 text");
    assert_fails("a\xff:2", 0, "mesh: an axis name holds no control character and is UTF-8 text");
}

/* The drawing in mesh.h: on rows:2;cols:3 rank = row * 3 + col. */
TEST(ranks_count_row_by_row) {
    MtfMesh mesh = mesh_of("rows:2;cols:3");
    assert_int_equal(mtf_mesh_size(&mesh), 6);
    for (int rank = 0; rank < 6; rank++) {
        assert_int_equal(mtf_mesh_coordinate(&mesh, rank, 0), rank / 3);
        assert_int_equal(mtf_mesh_coordinate(&mesh, rank, 1), rank % 3);
    }
}

/* On x:2;y:3;z:2 rank = 6x + 2y + z. Processor 9 is x=1 y=1 z=1. Its group of {x, z} is all with
 * y=1: (0,1,0)=2, (0,1,1)=3, (1,1,0)=8, (1,1,1)=9, in this order. */
TEST(groups_are_the_processors_that_agree_on_other_axes) {
    MtfMesh mesh = mesh_of("x:2;y:3;z:2");
    unsigned x_and_z = 1 | 4;
    static const int members[] = { 2, 3, 8, 9 };
    assert_int_equal(mtf_mesh_group_size(&mesh, x_and_z), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mtf_mesh_group_member(&mesh, x_and_z, 9, i), members[i]);
        assert_int_equal(mtf_mesh_group_position(&mesh, x_and_z, members[i]), i);
    }
    /* {y}: x=1 z=1: 7, 9, 11 */
    assert_int_equal(mtf_mesh_group_member(&mesh, 2, 9, 0), 7);
    assert_int_equal(mtf_mesh_group_member(&mesh, 2, 9, 2), 11);
    assert_int_equal(mtf_mesh_group_position(&mesh, 2, 9), 1);
    assert_int_equal(mtf_mesh_group_size(&mesh, 0), 1);
    assert_int_equal(mtf_mesh_group_member(&mesh, 0, 9, 0), 9);
    assert_int_equal(mtf_mesh_group_position(&mesh, 0, 9), 0);
}

TEST(axes_are_found_and_named) {
    MtfMesh mesh = mesh_of("x:2;y:3;z:2");
    assert_int_equal(mtf_mesh_axis(&mesh, "z"), 2);
    assert_int_equal(mtf_mesh_axis(&mesh, "w"), -1);
    g_autofree char *names = mtf_mesh_mask_format(&mesh, 1 | 4);
    assert_string_equal(names, "x,z");
}

TEST(meshes_differ_by_name_size_and_order) {
    MtfMesh mesh = mesh_of("x:2;y:3");
    static const char *const others[] = { "x:2", "x:2;y:4", "x:2;z:3", "y:3;x:2" };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        MtfMesh other = mesh_of(others[i]);
        assert_false(mtf_mesh_equal(&mesh, &other));
    }
}
