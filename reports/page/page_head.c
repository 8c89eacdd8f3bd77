// SPDX-License-Identifier: GPL-3.0-or-later
/* Puts style and script into a page: page.css and page.js, which the build embeds, and the colours of
 * the palette. */
#include "reports/page/page_sections.h"

#include "reports/markup/palette.h"

/* Made by the build: the lines of page.css and page.js as strings, with a comma behind each. */
static const char *const style[] = {
#include "reports/page/page.css.inc"
};

static const char *const script[] = {
#include "reports/page/page.js.inc"
};

static void add_lines(GString *page, const char *const *lines, gsize n) {
    for (gsize i = 0; i < n; i++)
        g_string_append(page, lines[i]);
}

static void add_theme(GString *page, bool dark) {
    for (const MtfThemeColor *color = mtf_palette_theme(); color->name != NULL; color++)
        g_string_append_printf(page, ";--%s:%s", color->name, dark ? color->dark : color->light);
}

void mtf_page_head(GString *page) {
    g_string_append(page, "<style>\n:root{color-scheme:light dark");
    add_theme(page, false);
    g_string_append(page,
                    "}\n@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark");
    add_theme(page, true);
    g_string_append(page, "}}\n");
    add_lines(page, style, G_N_ELEMENTS(style));
    g_string_append(page, "</style>\n");
}

void mtf_page_script(GString *page) {
    g_string_append(page, "<script>\n");
    add_lines(page, script, G_N_ELEMENTS(script));
    g_string_append(page, "</script>\n");
}
