// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/planner/search_progress.h"

static void expect_state(const MtfSearchProgress *progress, const char *state) {
    g_autofree char *text = mtf_search_progress_state(progress);
    assert_string_equal(text, state);
}

/* The first mesh is solved while the second is not: its gap of 0 is not that of what goes on. */
TEST(a_bound_is_told_while_its_mesh_is_searched) {
    MtfSearchProgress *progress = mtf_search_progress_begin();
    const MtfSearchListener *listener = mtf_search_progress_listener(progress);
    listener->phase("free layouts", listener->user);
    expect_state(progress, "free layouts");
    listener->bound(31e6, 31e6, listener->user);
    expect_state(progress, "free layouts; best 31 ms, bound 31 ms, gap 0 %");
    listener->phase("posing free layouts", listener->user);
    listener->phase("free layouts", listener->user);
    expect_state(progress, "free layouts; best 31 ms");
    mtf_search_progress_end(progress);
}
