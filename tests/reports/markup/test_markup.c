// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/markup/markup.h"

TEST(arguments_cannot_leave_their_place) {
    g_autoptr(GString) page = g_string_new(NULL);
    mtf_markup(page, "<p title=\"%s\">%s</p>%d%%", "\"><b>", "a & <i>'x'</i> &lt;", 7);
    assert_string_equal(page->str, "<p title=\"&quot;&gt;&lt;b&gt;\">a &amp; &lt;i&gt;&apos;x&apos;"
                                   "&lt;/i&gt; &amp;lt;</p>7%");
}

TEST(characters_that_no_document_holds_are_replaced) {
    g_autoptr(GString) page = g_string_new(NULL);
    mtf_markup_text(page, "a\x01"
                          "b\x1b"
                          "c\xEF\xBF\xBF&#x1;é漢");
    assert_string_equal(page->str, "a\xEF\xBF\xBD"
                                   "b\xEF\xBF\xBD"
                                   "c\xEF\xBF\xBD&amp;#x1;é漢");
}
