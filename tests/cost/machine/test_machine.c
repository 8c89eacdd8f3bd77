// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/machine.h"
#include "cost/machine/mesh_map.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"

#include <math.h>
#include <string.h>

static MtfMachine *parse(const char *text, GError **error) {
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("m.json", text, strlen(text), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_machine_from_json(&root, error);
}

static char *print(const MtfMachine *machine) {
    cJSON *tree = mtf_machine_to_json(machine);
    char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return text;
}

/* Axes as they are, not as they are written: a part of a mesh was written as a full one, twice alike. */
static void check_axes_equal(const MtfNetwork *network, const MtfNetwork *again) {
    assert_int_equal(network->axes, again->axes);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d], *other = &again->axis[d];
        assert_int_equal(axis->size, other->size);
        assert_int_equal(axis->wrap, other->wrap);
        assert_int_equal(axis->undivided, other->undivided);
        assert_float_equal(axis->bandwidth, other->bandwidth, 0);
        assert_float_equal(axis->latency, other->latency, 0);
        assert_float_equal(axis->pair, other->pair, 0);
    }
}

TEST(every_library_machine_loads_and_writes_back_the_same) {
    g_auto(GStrv) names = mtf_library_list("machines", NULL);
    assert_non_null(names);
    assert_true(g_strv_length(names) >= 12);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(MtfMachine) machine = mtf_machine_load(*name, NULL);
        assert_non_null(machine);
        assert_string_equal(machine->name, *name);
        assert_non_null(machine->sources);
        g_autofree char *first = print(machine);
        g_autoptr(MtfMachine) again = parse(first, NULL);
        assert_non_null(again);
        g_autofree char *second = print(again);
        assert_string_equal(first, second);
        check_axes_equal(&machine->network, &again->network);
    }
}

static void check_slice(const char *name, int64_t devices, const char *expected) {
    g_autoptr(MtfMachine) machine = mtf_machine_load(name, NULL);
    MtfNetwork slice;
    assert_true(mtf_machine_slice(machine, devices, &slice, NULL));
    assert_int_equal(mtf_network_ranks(&slice), devices);
    GString *shape = g_string_new(NULL);
    for (int d = 0; d < slice.axes; d++)
        g_string_append_printf(shape, "%s%d%s", d > 0 ? "x" : "", (int)slice.axis[d].size,
                               slice.axis[d].wrap ? "w" : "");
    assert_string_equal(shape->str, expected);
    g_string_free(shape, TRUE);
}

TEST(slices_are_the_most_compact_boxes) {
    check_slice("tpu-v2", 512, "16wx16wx2");
    check_slice("tpu-v2", 32, "4x4x2");
    check_slice("tpu-v2", 2, "1x1x2");
    check_slice("tpu-v2", 4, "1x2x2");
    check_slice("tpu-v3", 64, "4x8x2");
    check_slice("tpu-v2", 1, "1x1x1");
    check_slice("tpu-v5e", 128, "8x16w");
    check_slice("tpu-v4", 64, "4wx4wx4w");
    check_slice("tpu-v4", 16, "2x2x4");
    check_slice("tpu-v4", 128, "4wx4wx8w");
    check_slice("h100", 24, "1x3x8");
    check_slice("cpu-cluster", 24, "2x12");
}

TEST(a_number_that_is_no_box_is_a_snaked_line) {
    check_slice("tests/support/machines/torus.json", 17, "17");
}

TEST(too_many_devices_are_refused) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    g_autoptr(GError) error = NULL;
    MtfNetwork slice;
    assert_false(mtf_machine_slice(machine, 513, &slice, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "512"));
}

TEST(slices_that_do_not_exist_are_refused) {
    static const struct {
        const char *machine;
        int64_t devices;
        const char *words;
    } cases[] = {
        { "tpu-v6e", 48, "no slice of 48 devices; the nearest have 32 and 64" },
        { "tpu-v5p", 6, "no slice of 6 devices; the nearest have 4 and 8" },
        { "tpu-v5p", 96, "no slice of 96 devices; the nearest have 64 and 128" },
        { "tpu-v4", 48, "no slice of 48 devices; the nearest have 32 and 64" },
        { "tpu-v5e", 7, "no slice of 7 devices; the nearest have 4 and 8" },
        { "tpu-v7x", 3, "no slice of 3 devices; the nearest have 2 and 8" },
        { "tpu-v2", 16, "no slice of 16 devices; the nearest have 8 and 32" },
        { "tpu-v2", 511, "no slice of 511 devices; the nearest have 256 and 512" },
        { "tpu-v3", 3, "no slice of 3 devices; the nearest have 2 and 4" },
        { "tpu-v5p", 6145, "has 6144 devices a slice, fewer than the 6145 asked for" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfMachine) machine = mtf_machine_load(cases[i].machine, NULL);
        g_autoptr(GError) error = NULL;
        MtfNetwork slice;
        assert_false(mtf_machine_slice(machine, cases[i].devices, &slice, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        if (strstr(error->message, cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error->message, cases[i].words);
    }
}

/* docs.cloud.google.com: v5p 8x8x16 wraps, 2x4x4 does not; v6e wraps on axes of 16 alone; 192 chips of
 * v5p are cubes, 4x4x12, and not 4x6x8. Several whole slices get an axis in front. */
TEST(legal_slices_wrap_as_they_are_wired) {
    check_slice("tpu-v5p", 1024, "8wx8wx16w");
    check_slice("tpu-v5p", 32, "2x4x4");
    check_slice("tpu-v5p", 192, "4wx4wx12w");
    check_slice("tpu-v6e", 128, "8x16w");
    check_slice("tpu-v6e", 1024, "4wx16wx16w");
    check_slice("tpu-v7x", 128, "4wx4wx4wx2");
}

/* What crosses the middle of a torus in one direction: two links a place of the other axes. */
static double bisection(const char *name, double link) {
    g_autoptr(MtfMachine) machine = mtf_machine_load(name, NULL);
    int64_t devices = mtf_machine_devices(machine), longest = 1;
    for (int d = 0; d < machine->network.axes; d++)
        longest = MAX(longest, machine->network.axis[d].size);
    return 2 * (double)(devices / longest) * link;
}

/* Google's pages: v5e 1.6 TB/s at 50 GB/s a link, v6e 3.2 at 100, v4 24 at 46.9; all links of a pod,
 * "all-reduce bandwidth": v5e 51.2 TB/s, v4 1.1 PB/s. */
TEST(bisections_are_those_of_the_pods) {
    assert_true(fabs(bisection("tpu-v5e", 50e9) - 1.6e12) < 1e9);
    assert_true(fabs(bisection("tpu-v6e", 100e9) - 3.2e12) < 1e9);
    assert_true(fabs(bisection("tpu-v4", 46.9e9) - 24e12) < 0.05e12);
    g_autoptr(MtfMachine) v5e = mtf_machine_load("tpu-v5e", NULL);
    g_autoptr(MtfMachine) v4 = mtf_machine_load("tpu-v4", NULL);
    assert_true(fabs((double)mtf_machine_devices(v5e) * 4 * 50e9 - 51.2e12) < 1e9);
    assert_true(fabs((double)mtf_machine_devices(v4) * 6 * 45e9 - 1.1e15) < 0.01e15);
}

/* Two MI300X have one link between them, eight have seven each. */
TEST(a_full_mesh_gives_pairs_one_link) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("mi300x", NULL);
    MtfNetwork slice;
    for (int64_t devices = 2; devices <= 8; devices *= 2) {
        assert_true(mtf_machine_slice(machine, devices, &slice, NULL));
        assert_true(fabs(slice.axis[1].bandwidth - 0.8 * 6.4e10 * (double)(devices - 1)) < 1);
    }
}

/* DGX-1: a GPU has one link to its neighbour, four inside its half, six in all. Groups of four over
 * both halves have two links a half. */
TEST(groups_in_a_hybrid_cube_mesh_have_the_links_between_them) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("p3.16xlarge", NULL);
    static const int64_t sizes[] = { 2, 2, 2 };
    MtfMeshMap map;
    assert_true(mtf_mesh_map_init(&map, machine, 3, sizes, NULL));
    MtfNetwork pair = mtf_mesh_map_group(&map, 4), half = mtf_mesh_map_group(&map, 6);
    MtfNetwork halves = mtf_mesh_map_group(&map, 1), ring = mtf_mesh_map_group(&map, 3);
    double link = 0.82 * 25e9;
    assert_true(fabs(pair.axis[0].bandwidth - link) < 1);
    assert_true(fabs(half.axis[0].bandwidth - 4 * link) < 1);
    assert_true(fabs(halves.axis[0].bandwidth - link) < 1);
    assert_true(fabs(ring.axis[0].bandwidth - 2 * link) < 1);
    MtfNetwork whole = mtf_mesh_map_group(&map, 7);
    assert_true(fabs(whole.axis[0].bandwidth - 6 * link) < 1);
}

#define DEVICE \
    "\"device\":{\"flops\":{\"f32\":1e12},\"memory_bytes\":1000,\"memory_bandwidth\":1e9}"
#define NAMED "{\"meshtf_machine\":1,\"name\":\"x\","

TEST(bad_files_get_a_sentence_with_the_place) {
    static const char *const cases[][2] = {
        { "{}", "not a meshtf_machine file" },
        { "{\"meshtf_machine\":2}", "version 2" },
        { NAMED DEVICE "}", "exactly one of" },
        { NAMED "\"torus\":[]," DEVICE "}", "/torus: 0 axes" },
        { NAMED "\"torus\":[{\"size\":0}]," DEVICE "}", "/torus/0/size" },
        { NAMED "\"torus\":[{\"size\":4,\"wrap\":true,\"bandwidth\":0}]," DEVICE "}",
          "/torus/0/bandwidth" },
        { NAMED "\"levels\":[{\"bandwidth\":1},{\"bandwidth\":1}]," DEVICE "}", "/levels/1" },
        { NAMED "\"speed\":1}", "speed" },
        { NAMED "\"levels\":[{\"bandwidth\":1}]," DEVICE
                ",\"curves\":{\"gelu/f32\":[[2,1],[1,1]]}}",
          "/curves/gelu/f32/1" },
        { NAMED "\"levels\":[{\"bandwidth\":1}]," DEVICE ",\"derates\":{\"links\":2}}",
          "/derates/links" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(parse(cases[i][0], &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        if (strstr(error->message, cases[i][1]) == NULL)
            fail_msg("\"%s\" does not name %s", error->message, cases[i][1]);
    }
}

TEST(an_unknown_name_lists_the_known_ones) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_machine_load("tpu-v9", &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "tpu-v4"));
}

TEST(curves_interpolate_and_extend_their_last_slope) {
    g_autoptr(MtfMachine) machine = parse(NAMED "\"levels\":[{\"bandwidth\":1}]," DEVICE
                                                ",\"curves\":{\"allreduce/2\":[[10,1],[20,2],"
                                                "[40,6]]}}",
                                          NULL);
    const MtfMachineCurve *curve = mtf_machine_curve(machine, "allreduce/2");
    assert_non_null(curve);
    assert_null(mtf_machine_curve(machine, "allreduce/3"));
    assert_float_equal(mtf_machine_curve_at(curve, 5), 1, 1e-6);
    assert_float_equal(mtf_machine_curve_at(curve, 15), 1.5, 1e-6);
    assert_float_equal(mtf_machine_curve_at(curve, 30), 4, 1e-6);
    assert_float_equal(mtf_machine_curve_at(curve, 50), 8, 1e-6);
}

TEST(bfloat16_without_a_rate_runs_as_fp16_or_float32) {
    g_autoptr(MtfMachine) tpu = mtf_machine_load("tpu-v4", NULL);
    assert_true(mtf_machine_peak_flops(tpu, "bf16") == 2.75e14);
    g_autoptr(MtfMachine) gpu = mtf_machine_load("h100", NULL);
    assert_true(mtf_machine_peak_flops(gpu, "bf16") == 9.9e14);
    g_autoptr(MtfMachine) old = mtf_machine_load("v100", NULL);
    assert_false(mtf_machine_names_rate(old, "bf16"));
    assert_true(mtf_machine_peak_flops(old, "bf16") == 1.25e14);
    assert_string_equal(mtf_machine_peaks(old, "bf16").dtype, "fp16");
    assert_true(mtf_machine_peak_flops(old, "int8") == 7.8e12);
    g_strlcpy(old->rate[0].dtype, "other", sizeof old->rate[0].dtype); /* of fp16 */
    assert_true(mtf_machine_peak_flops(old, "bf16") == 1.57e13);
}
