// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/mapping_json.h"
#include "cost/price/price.h"

#include <string.h>

typedef struct {
    MtfMachine *machine;
    MtfMesh mesh;
    MtfMeshMap map;
} Setup;

/* 8x64 on the 16x16x2 torus of 512 TPU v2 cores. */
static void setup_init(Setup *setup) {
    MtfPricer pricer;
    setup->machine = mtf_machine_load("tpu-v2", NULL);
    assert_true(mtf_mesh_parse("rows:8;cols:64", 0, &setup->mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, setup->machine, &setup->mesh, NULL));
    setup->map = pricer.map;
}

static bool lay(Setup *setup, const char *text, GError **error) {
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("p.json", json, strlen(json), error);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document);
    return mtf_mapping_from_json(&root, &setup->mesh, &setup->map, error);
}

static void assert_refused(const char *text, const char *message) {
    Setup setup;
    g_autoptr(GError) error = NULL;
    setup_init(&setup);
    MtfMapping before = setup.map.mapping;
    assert_false(lay(&setup, text, &error));
    assert_string_equal(error->message, message);
    assert_memory_equal(&before, &setup.map.mapping, sizeof before);
    mtf_machine_free(setup.machine);
}

TEST(a_mapping_travels_with_its_snakes) {
    Setup setup;
    setup_init(&setup);
    setup.map.mapping.snake = 2;
    MtfMapping mapping = setup.map.mapping;
    cJSON *tree = mtf_mapping_to_json(&setup.mesh, &mapping);
    g_autofree char *text = cJSON_PrintUnformatted(tree);
    setup.map.mapping.snake = 0;
    setup.map.mapping.piece[0].stride = 1;
    assert_true(lay(&setup, text, NULL));
    assert_int_equal(setup.map.mapping.snake, 2);
    assert_int_equal(setup.map.mapping.pieces, mapping.pieces);
    for (int i = 0; i < mapping.pieces; i++) {
        assert_int_equal(setup.map.mapping.piece[i].mesh_axis, mapping.piece[i].mesh_axis);
        assert_int_equal(setup.map.mapping.piece[i].physical_axis, mapping.piece[i].physical_axis);
        assert_int_equal(setup.map.mapping.piece[i].size, mapping.piece[i].size);
        assert_int_equal(setup.map.mapping.piece[i].stride, mapping.piece[i].stride);
    }
    for (int64_t rank = 0; rank < 512; rank++)
        assert_int_equal(mtf_mapping_place(&setup.map.mapping, rank),
                         mtf_mapping_place(&mapping, rank));
    cJSON_Delete(tree);
    mtf_machine_free(setup.machine);
}

/* The rows on neighbours of the first ring: place 0 to 7 times 32. */
TEST(pieces_say_where_members_are) {
    Setup setup;
    setup_init(&setup);
    assert_true(lay(&setup,
                    "{'rows': [{'axis': 0, 'size': 8, 'stride': 1}], 'cols': [{'axis': 0, 'size': "
                    "2, 'stride': 8}, {'axis': 1, 'size': 16, 'stride': 1}, {'axis': 2, 'size': 2, "
                    "'stride': 1}]}",
                    NULL));
    assert_int_equal(mtf_mapping_place(&setup.map.mapping, 64), 32);
    assert_int_equal(mtf_mapping_place(&setup.map.mapping, 32), 256);
    assert_int_equal(mtf_mapping_place(&setup.map.mapping, 1), 1);
    mtf_machine_free(setup.machine);
}

TEST(no_mapping_is_the_mesh_in_order) {
    Setup setup;
    setup_init(&setup);
    MtfMapping before = setup.map.mapping;
    assert_true(lay(&setup, "null", NULL));
    assert_memory_equal(&before, &setup.map.mapping, sizeof before);
    mtf_machine_free(setup.machine);
}

TEST(what_does_not_lay_the_mesh_is_told) {
    assert_refused("{'rows': [{'axis': 0, 'size': 8, 'stride': 1}]}",
                   "p.json: /: key \"cols\" is missing");
    assert_refused("{'rows': [], 'cols': []}",
                   "p.json: /rows: the pieces of this axis do not multiply to its size, 8");
    assert_refused("{'rows': [{'axis': 7, 'size': 8, 'stride': 1}], 'cols': []}",
                   "p.json: /rows/0/axis: 7 is not between 0 and 2");
    assert_refused(
        "{'rows': [{'axis': 0, 'size': 8, 'steps': 1}], 'cols': []}",
        "p.json: /rows/0: unknown key \"steps\" (known here: axis, size, stride, snake)");
    assert_refused("{'rows': [{'axis': 0, 'size': 8, 'stride': 1}], 'cols': [{'axis': 1, 'size': "
                   "64, 'stride': 1}]}",
                   "p.json: /: the pieces do not cover the machine's slice, each place once");
}
