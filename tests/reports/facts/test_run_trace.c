// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "reports/facts/run_trace.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static MtfRunTrace *trace_of(const char *text, GError **error) {
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("trace-XXXXXX.json", &path, NULL);
    assert_true(fd >= 0);
    close(fd);
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    assert_true(g_file_set_contents(path, quoted, -1, NULL));
    MtfRunTrace *trace = mtf_run_trace_load(path, error);
    g_unlink(path);
    return trace;
}

static void assert_close(double value, double expected) {
    assert_true(fabs(value - expected) <= 1e-12);
}

/* Two ranks, microseconds from 100 on: rank 0 computes 10 and gathers 5, rank 1 the other way
 * round, in two parts; the step that holds rank 0's events is no work of its own. */
static const char two_ranks[] =
    "{'displayTimeUnit': 'ms', 'traceEvents': ["
    "{'name': 'thread_name', 'ph': 'M', 'pid': 7, 'tid': 0, 'args': {'name': 'rank 0'}},"
    "{'name': 'step 1', 'ph': 'X', 'pid': 7, 'tid': 0, 'ts': 100, 'dur': 20},"
    "{'name': 'allgather rows', 'ph': 'X', 'pid': 7, 'tid': 0, 'ts': 110, 'dur': 5, 'args': {}},"
    "{'name': 'h', 'ph': 'X', 'pid': 7, 'tid': 0, 'ts': 100, 'dur': 10},"
    "{'name': 'memory', 'ph': 'C', 'pid': 7, 'tid': 0, 'ts': 100, 'args': {'bytes': 3}},"
    "{'name': 'h', 'ph': 'X', 'pid': 7, 'tid': 1, 'ts': 100, 'dur': 5},"
    "{'name': 'allgather rows', 'ph': 'X', 'pid': 7, 'tid': 1, 'ts': 105, 'dur': 4},"
    "{'name': 'allgather rows, end', 'ph': 'X', 'pid': 7, 'tid': 1, 'ts': 109, 'dur': 6}]}";

TEST(ranks_and_their_work_are_read) {
    g_autoptr(MtfRunTrace) trace = trace_of(two_ranks, NULL);
    assert_non_null(trace);
    assert_int_equal(trace->ranks, 2);
    assert_int_equal(trace->events->len, 5);
    assert_close(trace->seconds, 20e-6);
    assert_close(mtf_run_trace_seconds(trace, 0, -1), 10e-6);
    assert_close(mtf_run_trace_seconds(trace, 0, MTF_RESHARD_ALLGATHER), 5e-6);
    assert_close(mtf_run_trace_seconds(trace, 1, MTF_RESHARD_ALLGATHER), 10e-6);
    assert_int_equal(mtf_run_trace_calls(trace, 1, MTF_RESHARD_ALLGATHER), 1);
    assert_int_equal(mtf_run_trace_calls(trace, 1, MTF_RESHARD_ALLREDUCE), 0);
    assert_close(g_array_index(trace->events, MtfRunEvent, 0).start, 0);
}

TEST(processes_are_ranks_where_there_are_several) {
    g_autoptr(MtfRunTrace) trace =
        trace_of("{'traceEvents': [{'name': 'a', 'ph': 'X', 'pid': 0, 'tid': 1, 'ts': 0, 'dur': 1},"
                 "{'name': 'b', 'ph': 'X', 'pid': 3, 'tid': 0, 'ts': 0, 'dur': 1}]}",
                 NULL);
    assert_non_null(trace);
    assert_int_equal(trace->ranks, 4);
}

/* A pass holds what it ran, also where that is one event as long as itself, or none. */
TEST(passes_of_stages_are_no_work_of_their_own) {
    g_autoptr(MtfRunTrace) trace = trace_of(
        "{'traceEvents': ["
        "{'name': '2B13', 'cat': 'pass', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 3, 'dur': 2},"
        "{'name': 'add', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 3, 'dur': 2},"
        "{'name': '0F3', 'cat': 'pass', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 1, 'dur': 1}]}",
        NULL);
    assert_non_null(trace);
    assert_int_equal(trace->events->len, 1);
    assert_int_equal(trace->passes->len, 2);
    const MtfRunPass *pass = &g_array_index(trace->passes, MtfRunPass, 1);
    assert_int_equal(pass->stage, 2);
    assert_int_equal(pass->letter, 'B');
    assert_int_equal(pass->microbatch, 13);
    assert_close(pass->start, 2e-6);
    assert_close(pass->seconds, 2e-6);
}

TEST(what_is_no_trace_is_bad_input) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{'step': 1}", "traceEvents" },
        { "{'traceEvents': []}", "no complete event" },
        { "{'traceEvents': [{'name': 'a', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 0}]}",
          "/traceEvents/0" },
        { "{'traceEvents': [{'name': 'a', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 0, 'dur': -1}]}",
          "/traceEvents/0/dur" },
        { "{'traceEvents': [{'name': 'a', 'ph': 'X', 'pid': -2, 'tid': 0, 'ts': 0, 'dur': 1}]}",
          "/traceEvents/0/pid" },
        { "{'traceEvents': [{'name': '1X0', 'cat': 'pass', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 0, "
          "'dur': 1}]}",
          "is a pass, but its name is not like 0F3" },
        { "{'traceEvents': [{'name': '1F0 ', 'cat': 'pass', 'ph': 'X', 'pid': 0, 'tid': 0, 'ts': 0, "
          "'dur': 1}]}",
          "not like 0F3" },
        { "[1, 2", "" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(trace_of(cases[i].text, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        assert_non_null(strstr(error->message, cases[i].says));
    }
}
