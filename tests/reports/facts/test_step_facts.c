// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "reports/facts/closest_rules.h"
#include "reports/facts/metrics_log.h"
#include "reports/facts/step_facts.h"
#include "reports/facts/tensor_rows.h"
#include "reports/facts/transfers.h"
#include "tests/support/cases/report_plan.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char rules[] = "batch:rows;hidden:cols";

/* Against the naive sum over all buffers at each instruction. */
TEST(live_bytes_are_those_of_the_storages) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    int64_t most = 0;
    for (int i = 0; i < mtf_program_length(facts->program); i++) {
        int64_t sum = 0;
        for (int b = 0; b < (int)facts->program->buffers->len; b++) {
            const MtfBuffer *buffer = mtf_program_buffer(facts->program, b);
            if (buffer->storage == b && buffer->first <= i && i <= buffer->last)
                sum += buffer->bytes;
        }
        assert_int_equal(mtf_step_facts_live(facts, i), sum);
        most = MAX(most, sum);
    }
    assert_int_equal(mtf_step_facts_live(facts, facts->peak), most);
}

TEST(the_peak_is_made_of_its_rows) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(GPtrArray) rows = mtf_peak_rows(facts);
    int64_t sum = 0;
    for (guint i = 0; i < rows->len; i++)
        sum += ((MtfPeakRow *)g_ptr_array_index(rows, i))->bytes;
    assert_int_equal(sum, mtf_step_facts_live(facts, facts->peak));
}

/* On a machine whose collectives go on beside kernels: kernels have all their time, collectives
 * what is exposed of theirs, and all together are the step. */
TEST(the_time_of_an_overlapped_step_is_shared_out) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    plan->machine = cJSON_Parse(
        "{\"meshtf_machine\": 1, \"name\": \"m\", \"overlap\": true, \"levels\": [{\"name\": \"s\", "
        "\"bandwidth\": 1e8, \"latency\": 1e-6}], \"device\": {\"flops\": {\"f32\": 1e9}, "
        "\"memory_bytes\": 1e9, \"memory_bandwidth\": 1e8}}");
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    assert_non_null(facts);
    const MtfSchedule *schedule = facts->schedule;
    assert_true(schedule->exposed < schedule->transfers);
    int64_t sum = 0, exposed = 0;
    for (int i = 0; i < schedule->length; i++) {
        int64_t most = schedule->ends[i] - schedule->starts[i];
        assert_in_range(facts->wall[i], 0, most);
        sum += facts->wall[i];
        if (mtf_step_facts_is_collective(facts, i))
            exposed += facts->wall[i];
        else
            assert_int_equal(facts->wall[i], most);
    }
    assert_int_equal(sum, schedule->nanoseconds);
    assert_int_equal(exposed, schedule->exposed);
}

TEST(shares_and_transfers_add_up) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(GPtrArray) shares = mtf_step_shares(facts);
    g_autoptr(GPtrArray) transfers = mtf_transfers_new(facts);
    int64_t step = 0, network = 0, moved = 0;
    for (guint i = 0; i < shares->len; i++) {
        const MtfStepShare *share = g_ptr_array_index(shares, i);
        step += share->nanoseconds;
        network += g_str_has_prefix(share->name, "network") ? share->nanoseconds : 0;
    }
    for (guint i = 0; i < transfers->len; i++)
        moved += ((MtfTransfer *)g_ptr_array_index(transfers, i))->nanoseconds;
    assert_int_equal(step, facts->schedule->nanoseconds);
    assert_true(network > 0);
    assert_int_equal(network, moved);
}

/* w[io, hidden] is split by hidden, so its gradient is summed over the rows alone. */
TEST(the_gradient_is_a_transfer_over_the_rows) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(GPtrArray) transfers = mtf_transfers_new(facts);
    const MtfTransfer *found = NULL;
    for (guint i = 0; i < transfers->len; i++) {
        const MtfTransfer *transfer = g_ptr_array_index(transfers, i);
        if (strcmp(transfer->tensor, "grad/w") == 0)
            found = transfer;
    }
    assert_non_null(found);
    assert_string_equal(found->axes, "rows");
    assert_string_equal(found->collective, "allreduce");
    assert_int_equal(found->bytes, 4 * 6 * 4); /* io 4, hidden 12 / 2, f32 */
}

TEST(the_notation_says_axes_and_sums) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("a:2;b:2;c:2", "batch:a");
    MtfPlacement placement = mtf_placement_replicated();
    int x = mtf_graph_find_tensor(plan->graph, "x");
    int batch = mtf_graph_find_dimension(plan->graph, "batch");
    placement.axis[0] = placement.axis[1] = (int16_t)batch;
    placement.axis[2] = MTF_PARTIAL_SUM;
    g_autofree char *text = mtf_tensor_notation(plan->graph, &plan->layout->mesh, x, &placement);
    assert_string_equal(text, "f32[batch:8@(a,b), io:4] sum@c");
}

TEST(rules_are_found_again) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", rules);
    bool exact = false;
    g_autofree char *found = mtf_closest_rules(plan->graph, plan->layout, &exact);
    assert_string_equal(found, rules);
    assert_true(exact);
    plan->layout->tensors[mtf_graph_find_tensor(plan->graph, "w")] = mtf_placement_replicated();
    g_autofree char *close = mtf_closest_rules(plan->graph, plan->layout, &exact);
    assert_string_equal(close, rules);
    assert_false(exact);
}

static GArray *load(const char *text, GError **error) {
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "metrics-XXXXXX", NULL);
    int file = g_mkstemp(path);
    assert_true(file >= 0);
    assert_true(g_close(file, NULL));
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    assert_true(mtf_file_write(path, json, strlen(json), NULL));
    GArray *records = mtf_metrics_log_load(path, error);
    remove(path);
    return records;
}

TEST(metrics_are_read_back) {
    g_autoptr(GArray) run = load("{'step': 1, 'loss': 4.5, 'seconds': 9, 'tokens_per_second': 1}\n"
                                 "{'step': 2, 'loss': null, 'seconds': 2}\n"
                                 "{'step': 5, 'loss': 3, 'seconds': 4, 'communication_seconds': 1}"
                                 "\n{'step': 6, 'lo",
                                 NULL);
    assert_non_null(run);
    assert_int_equal(run->len, 3);
    assert_true(isnan(g_array_index(run, MtfMetricsRecord, 1).loss));
    assert_true(mtf_metrics_median_seconds(run) == 3);
}

TEST(wrong_metrics_are_bad_input) {
    static const char *const texts[] = {
        "",
        "[]\n",
        "{'step': 1, 'seconds': 1}\n",
        "{'step': 1, 'loss': 1, 'seconds': -1}\n",
        "{'step': 2, 'loss': 1, 'seconds': 1}\n{'step': 2, 'loss': 1, 'seconds': 1}\n",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(load(texts[i], &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
    }
}
