// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/drawing/view_branches.h"

/* Arrows "ab ac": from box a to boxes b and c. */
static MtfPartitionView *view_of(const char *arrows) {
    MtfPartitionView *view = mtf_partition_view_blank();
    for (int b = 0; b < 26; b++)
        mtf_partition_view_add_box(view, MTF_BOX_OPERATION, 0, g_strdup_printf("%c", 'a' + b),
                                   g_strdup("x"));
    for (const char *c = arrows; *c != '\0'; c += c[2] == ' ' ? 3 : 2)
        g_array_append_val(view->arrows, ((MtfViewArrow){ c[0] - 'a', c[1] - 'a', 0 }));
    return view;
}

/* What is set below what, as `arrows` above. */
static void assert_places(const char *arrows, int columns, const char *expected) {
    g_autoptr(MtfPartitionView) view = view_of(arrows);
    g_autoptr(GArray) places = mtf_view_branches(view, columns);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < places->len; i++) {
        const MtfViewPlace *place = &g_array_index(places, MtfViewPlace, i);
        g_string_append_printf(text, "%s%c%c", i > 0 ? " " : "", 'a' + place->upper,
                               'a' + place->lower);
    }
    assert_string_equal(text->str, expected);
}

/* b and c begin the columns, b's with three boxes, c's with two: d is set below the latter, e then below b's. */
TEST(branches_beyond_the_columns_stand_below_the_shortest) {
    assert_places("ab ac ad ae bf fg ch di ej", 2, "hd ge");
    assert_places("ab ac ad ae bf fg ch di ej", 4, "");
}

TEST(what_ends_at_once_is_no_branch) {
    assert_places("ab ac ad ae bf cg", 2, "");
    assert_places("ab ac ad ae bf cg dh", 2, "fd");
}

/* All three lead to z, which is of none of them, nor is y, which another box leads to, too. */
TEST(what_several_lead_to_is_of_no_branch) {
    assert_places("ab ac ad be cf dg ez fz gz", 2, "ed");
    assert_places("ab ac ad by xy cf dg", 2, "bd");
    assert_places("xy ab ac ad by cf dg", 2, "bd");
}
