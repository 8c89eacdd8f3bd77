// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/session/metrics.h"
#include "runtime/session/run_summary.h"

#include <math.h>
#include <unistd.h>

TEST(a_line_holds_the_step_and_its_rates) {
    MtfStepRecord record = { .step = 7,
                             .loss = 2.5,
                             .seconds = 0.5,
                             .processor_seconds = 0.25,
                             .communication_seconds = 0.125 };
    g_autofree char *line = mtf_metrics_line(&record, 100, "tokens");
    assert_string_equal(
        line,
        "{\"step\":7,\"loss\":2.5,\"seconds\":0.5,"
        "\"processor_seconds\":0.25,\"communication_seconds\":0.125,\"tokens_per_second\":200}");
}

TEST(what_is_known_of_a_step_is_in_its_line) {
    MtfStepRecord record = { .step = 1,
                             .loss = 2,
                             .evaluated = true,
                             .held_out_loss = 3,
                             .held_out_accuracy = 0.5,
                             .gradient_norm = 1.5,
                             .learning_rate = 0.25,
                             .gemm_fraction = 0.75,
                             .seconds = 2,
                             .processor_seconds = 1,
                             .arena_bytes = 1000,
                             .resident_bytes = 2000 };
    g_autofree char *line = mtf_metrics_line(&record, 4, "examples");
    assert_string_equal(
        line,
        "{\"step\":1,\"loss\":2,\"held_out_loss\":3,"
        "\"held_out_accuracy\":0.5,\"gradient_norm\":1.5,\"learning_rate\":0.25,\"seconds\":2,\"processor_seconds\":1,"
        "\"communication_seconds\":0,\"examples_per_second\":2,"
        "\"gemm_fraction\":0.75,\"arena_bytes\":1000,"
        "\"resident_bytes\":2000}");
}

TEST(a_loss_that_is_no_number_is_null) {
    MtfStepRecord record = { .step = 1, .loss = NAN, .seconds = 1 };
    g_autofree char *line = mtf_metrics_line(&record, 1, "examples");
    assert_non_null(strstr(line, "\"loss\":null"));
}

TEST(every_step_is_in_the_file_as_soon_as_it_is_done) {
    g_autofree char *path = g_strdup_printf("%s/meshtf-metrics-%d", g_get_tmp_dir(), (int)getpid());
    MtfMetrics *metrics = mtf_metrics_open(path, &(MtfMetricsRun){ 0, 3, 10, "tokens" }, NULL);
    assert_non_null(metrics);
    for (int64_t step = 1; step <= 3; step++) {
        MtfStepRecord record = { .step = step, .loss = 1, .seconds = 1 };
        assert_true(mtf_metrics_add(metrics, &record, NULL));
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        assert_int_equal(g_strv_length(lines), step + 1); /* the last is empty */
    }
    mtf_metrics_close(metrics);
    unlink(path);
}

/* A run that was killed had written steps 1 to 4 and half a line; one that goes on from step 2
 * keeps two lines and writes the third. */
TEST(a_run_that_goes_on_keeps_the_lines_before_it_as_they_were) {
    g_autofree char *path = g_strdup_printf("%s/meshtf-metrics-%d", g_get_tmp_dir(), (int)getpid());
    const char *before = "{\"step\":1,\"loss\":5}\n{\"step\":2,\"loss\":4.0}\n"
                         "{\"step\":3,\"loss\":3}\n{\"step\":4,\"loss\":2}\n{\"step\":5,\"lo";
    assert_true(g_file_set_contents(path, before, -1, NULL));
    MtfMetrics *metrics = mtf_metrics_open(path, &(MtfMetricsRun){ 2, 6, 1, "examples" }, NULL);
    assert_non_null(metrics);
    MtfStepRecord record = { .step = 3, .loss = 1, .seconds = 1 };
    assert_true(mtf_metrics_add(metrics, &record, NULL));
    mtf_metrics_close(metrics);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_true(g_str_has_prefix(text, "{\"step\":1,\"loss\":5}\n{\"step\":2,\"loss\":4.0}\n"
                                       "{\"step\":3,\"loss\":1,"));
    unlink(path);
}

TEST(a_full_disk_is_a_failure) {
    g_autoptr(GError) error = NULL;
    MtfMetrics *metrics =
        mtf_metrics_open("/dev/full", &(MtfMetricsRun){ 0, 1, 1, "tokens" }, NULL);
    MtfStepRecord record = { .step = 1, .loss = 1, .seconds = 1 };
    assert_false(mtf_metrics_add(metrics, &record, &error));
    assert_int_equal(mtf_error_exit_status(error), 1);
    mtf_metrics_close(metrics);
}

TEST(the_median_leaves_the_first_step_out) {
    MtfStepRecord records[] = {
        { .seconds = 100 }, { .seconds = 3 }, { .seconds = 1 }, { .seconds = 2 }, { .seconds = 9 }
    };
    assert_true(mtf_median_seconds(records, 1) == 100);
    assert_true(mtf_median_seconds(records, 4) == 2);
    assert_true(mtf_median_seconds(records, 5) == 2.5);
}
