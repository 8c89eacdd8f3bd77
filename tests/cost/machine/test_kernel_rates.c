// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/kernel_rates.h"
#include "cost/machine/machine.h"
#include "layouts/base/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Four units, tiles of 128 x 128 and of 64 x 64 at half the rate, no ramps. */
static MtfKernelRates small_device(void) {
    MtfKernelRates rates = {
        .known = true, .units = 4, .tiles = 2, .shares = 1, .half_length = 100
    };
    rates.tile[0] = (MtfTile){ 128, 128, 1, 0 };
    rates.tile[1] = (MtfTile){ 64, 64, 0.5, 0 };
    rates.share[0].value = 0.8;
    g_strlcpy(rates.share[0].dtype, "bf16", sizeof rates.share[0].dtype);
    rates.heads = (MtfHeadTable){ 2, { { 64, 0.4, 0.3 }, { 128, 0.6, 0.5 } } };
    for (int i = 0; i < MTF_SWEEPS; i++)
        rates.sweep[i] = 0.5;
    rates.half_bytes = 1000;
    return rates;
}

static const MtfPeaks peaks = { "bf16", 1e12, 1e15 };

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* 4 tiles of 128 x 128 are one wave: 2 128 128 1024 flops at 0.8 1e12 / 4. */
TEST(a_full_wave_runs_at_the_share_of_the_peak) {
    MtfKernelRates rates = small_device();
    MtfProductShape shape = { 1, 256, 256, 1024, 2, 0 };
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), 2.0 * 128 * 128 * 1024 * 4 / 0.8e12);
}

/* 128 x 128 is one large tile (three units idle) or four small ones at half the rate: one wave of
 * 2 64 64 k flops at 0.4 1e12 / 4, half of the large tile's time. */
TEST(a_small_product_takes_small_tiles) {
    MtfKernelRates rates = small_device();
    rates.launch_seconds = 1; /* no second kernel to add parts */
    MtfProductShape shape = { 1, 128, 128, 1024, 2, 0 };
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), 2.0 * 64 * 64 * 1024 * 4 / 0.4e12);
}

/* One tile and four units: each sums a quarter of k, and a second kernel writes and reads four results. */
TEST(few_tiles_are_cut_along_what_is_summed) {
    MtfKernelRates rates = small_device();
    rates.tiles = 1;
    rates.launch_seconds = 1e-6;
    MtfProductShape shape = { 1, 128, 128, 1 << 20, 2, 0 };
    double summing = 2.0 * 128 * 128 * (1 << 18) * 4 / 0.8e12;
    assert_close(mtf_product_seconds(&rates, &peaks, &shape),
                 summing + 8.0 * 4 * 128 * 128 / 0.5e15 + 1e-6);
    shape.batch = 3; /* three tiles: the fourth unit alone is no help */
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), 4 * summing);
}

/* Mean of |ln (predicted / measured)| of products whose sums are long beside their results, as those of
 * weights' gradients. */
TEST(deep_products_take_what_was_measured) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h200", NULL);
    assert_non_null(machine);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents("tests/golden/h200/products_deep.bf16.txt", &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    MtfPeaks bf16 = mtf_machine_peaks(machine, "bf16");
    double sum = 0;
    int count = 0;
    for (int i = 0; lines[i] != NULL; i++) {
        MtfProductShape shape = { 1, 0, 0, 0, 2, 0 };
        double seconds;
        if (sscanf(lines[i], "%lf %lf %lf %lf", &shape.m, &shape.n, &shape.k, &seconds) != 4)
            continue;
        double predicted = mtf_product_seconds(&machine->kernels, &bf16, &shape);
        sum += fabs(log((predicted + machine->kernels.launch_seconds) / seconds));
        count++;
    }
    print_message("%d deep products: %.3f\n", count, sum / count);
    assert_int_equal(count, 40);
    assert_true(sum / count < 0.16);
}

/* No more flops take no less time, and one more row takes a whole tile more. */
TEST(a_ragged_side_is_rounded_up_to_tiles) {
    MtfKernelRates rates = small_device();
    rates.tiles = 1;
    MtfProductShape even = { 1, 512, 512, 64, 2, 0 }, ragged = { 1, 513, 512, 64, 2, 0 };
    MtfProductShape rounded = { 1, 640, 512, 64, 2, 0 };
    assert_close(mtf_product_seconds(&rates, &peaks, &ragged),
                 mtf_product_seconds(&rates, &peaks, &rounded));
    assert_true(mtf_product_seconds(&rates, &peaks, &ragged) >
                1.2 * mtf_product_seconds(&rates, &peaks, &even));
}

/* 2 bytes (m k + k n + m n) over half of 1e9 bytes/s. */
TEST(a_thin_product_waits_for_memory) {
    MtfKernelRates rates = small_device();
    MtfPeaks slow = { "bf16", 1e18, 1e9 };
    MtfProductShape shape = { 3, 10, 20, 30, 2, 0 };
    assert_close(mtf_product_seconds(&rates, &slow, &shape), 3 * 2.0 * (300 + 600 + 200) / 0.5e9);
}

/* Heads of 96 features lie halfway: 0.5 forward; 300 keys reach 300 / 400 of it. */
TEST(attention_grows_with_features_and_length) {
    MtfKernelRates rates = small_device();
    MtfAttentionShape shape = { .flops = 1e9, .length = 300, .features = 96 };
    assert_close(mtf_attention_seconds(&rates, &peaks, &shape), 1e9 / (0.5 * 0.75 * 1e12));
    shape.features = 512;
    shape.backward = true;
    assert_close(mtf_attention_seconds(&rates, &peaks, &shape), 1e9 / (0.5 * 0.75 * 1e12));
}

TEST(what_is_written_reads_back_the_same) {
    MtfKernelRates rates = small_device(), again = { 0 };
    rates.portable = (MtfHeadTable){ 1, { { 64, 0.2, 0.1 } } };
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "kernels", mtf_kernel_rates_to_json(&rates));
    g_autofree char *text = mtf_json_print(root);
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("machine.json", text, strlen(text), NULL);
    MtfJson where = mtf_json_root(document);
    assert_true(mtf_kernel_rates_read(&where, &again, NULL));
    cJSON *second = mtf_kernel_rates_to_json(&again);
    assert_true(cJSON_Compare(cJSON_GetObjectItem(root, "kernels"), second, true));
    cJSON_Delete(second);
    cJSON_Delete(root);
}

TEST(a_tile_without_columns_is_refused_by_place) {
    static const char text[] = "{\"kernels\":{\"launch\":0,\"units\":1,\"products\":{\"bf16\":1},"
                               "\"tiles\":[[8,0,1,0]]}}";
    MtfKernelRates rates = { 0 };
    GError *error = NULL;
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("m.json", text, strlen(text), NULL);
    MtfJson where = mtf_json_root(document);
    assert_false(mtf_kernel_rates_read(&where, &rates, &error));
    assert_string_equal(error->message, "m.json: /kernels/tiles/0/1: 0 is too small");
    g_error_free(error);
}

/* Rows of 50257 halves begin at odd places: 100514 bytes are no multiple of 16. */
TEST(unaligned_rows_go_at_their_own_share) {
    MtfKernelRates rates = small_device();
    MtfProductShape shape = { 1, 256, 256, 1024, 2, MTF_PRODUCT_UNALIGNED };
    double usual = mtf_product_seconds(&rates, &peaks, &shape);
    rates.unaligned = 0.1;
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), 8 * usual);
    shape.traits = 0;
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), usual);
    assert_true(mtf_rows_are_unaligned(50257, 768, 2));
    assert_true(mtf_rows_are_unaligned(768, 50260, 2));
    assert_false(mtf_rows_are_unaligned(50264, 768, 2));
    assert_true(mtf_rows_are_unaligned(50264, 768, 1));
    assert_false(mtf_rows_are_unaligned(50257, 768, 4));
}

/* 2 products of about 64 rows by tiles of 128: one tile each by rows, two by columns, and half a tile more
 * of each: 2 (0.5 + 0.5) 2 = 4 tiles of the first shape, one wave. */
TEST(drawn_groups_leave_half_a_tile_empty) {
    MtfKernelRates rates = small_device();
    MtfProductShape shape = { 2, 64, 256, 1024, 2, MTF_PRODUCT_GROUPED };
    assert_close(mtf_product_seconds(&rates, &peaks, &shape), 2.0 * 128 * 128 * 1024 * 4 / 0.8e12);
}

/* Mean of |ln (predicted / measured)| over the products of drawn groups that were measured on an H200. */
static double error_of_groups(const MtfMachine *machine, unsigned traits) {
    g_autofree char *text = NULL, *sizes = g_malloc(32);
    assert_true(g_file_get_contents("tests/golden/h200/grouped.bf16.txt", &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    MtfPeaks bf16 = mtf_machine_peaks(machine, "bf16");
    double sum = 0;
    int count = 0;
    for (int i = 0; lines[i] != NULL; i++) {
        double groups, rows, n, k, seconds;
        if (sscanf(lines[i], "%lf %lf %lf %lf %31s %lf", &groups, &rows, &n, &k, sizes, &seconds) <
                6 ||
            strcmp(sizes, "drawn") != 0)
            continue;
        MtfProductShape shape = { groups, rows / groups, n, k, 2, traits };
        double predicted = mtf_product_seconds(&machine->kernels, &bf16, &shape);
        sum += fabs(log((predicted + machine->kernels.launch_seconds) / seconds));
        count++;
    }
    assert_int_equal(count, 33);
    return sum / count;
}

TEST(drawn_groups_take_what_was_measured) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h200", NULL);
    assert_non_null(machine);
    double grouped = error_of_groups(machine, MTF_PRODUCT_GROUPED),
           apart = error_of_groups(machine, 0);
    print_message("grouped %.3f, one by one %.3f\n", grouped, apart);
    assert_true(grouped < 0.13);
    assert_true(apart > 1.5 * grouped);
}
