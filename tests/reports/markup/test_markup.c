// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/facts/layer_star.h"
#include "reports/markup/markup.h"
#include "tests/support/parse_graph.h"

static void arguments_cannot_leave_their_place(void **state) {
    (void)state;
    g_autoptr(GString) page = g_string_new(NULL);
    mtf_markup(page, "<p title=\"%s\">%s</p>%d%%", "\"><b>", "a & <i>'x'</i> &lt;", 7);
    assert_string_equal(page->str, "<p title=\"&quot;&gt;&lt;b&gt;\">a &amp; &lt;i&gt;&apos;x&apos;"
                                   "&lt;/i&gt; &amp;lt;</p>7%");
}

static void characters_that_no_document_holds_are_replaced(void **state) {
    (void)state;
    g_autoptr(GString) page = g_string_new(NULL);
    mtf_markup_text(page, "a\x01"
                          "b\x1b"
                          "c\xEF\xBF\xBF&#x1;é漢");
    assert_string_equal(page->str, "a\xEF\xBF\xBD"
                                   "b\xEF\xBF\xBD"
                                   "c\xEF\xBF\xBD&amp;#x1;é漢");
}

static void layers_are_starred_and_nothing_else(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'d': 2}, 'inputs': [{'name': 'x', "
        "'dims': ['d'], 'feed': 'features'}], 'operations': [{'repeat': {'name': 'layer', 'count': "
        "12, 'carry': [{'name': 'h', 'init': 'x', 'next': 'y'}], 'operations': [{'name': 'y', "
        "'op': 'relu', 'inputs': ['h']}]}}]}");
    static const char *const cases[][2] = {
        { "layer/0/y", "layer/*/y" },
        { "grad/layer/11/y", "grad/layer/*/y" },
        { "layer/3", "layer/*" },
        { "sublayer/3/y", "sublayer/3/y" },
        { "layer/x/y", "layer/x/y" },
        { "layer/3x/y", "layer/3x/y" },
        { "adam/m/layer/2/w", "adam/m/layer/*/w" },
        { "x", "x" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *starred = mtf_layer_star(graph, cases[i][0]);
        assert_string_equal(starred, cases[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_cannot_leave_their_place),
        cmocka_unit_test(characters_that_no_document_holds_are_replaced),
        cmocka_unit_test(layers_are_starred_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
