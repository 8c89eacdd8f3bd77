// SPDX-License-Identifier: GPL-3.0-or-later
/* What all pages have: page.css and page.js, which the build embeds, the colours of the palette,
 * sections, figures. */
#include "reports/page/page_sections.h"

#include "reports/markup/markup.h"
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

static void add_style(GString *page) {
    g_string_append(page, "<style>\n:root{color-scheme:light dark");
    add_theme(page, false);
    g_string_append(page,
                    "}\n@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark");
    add_theme(page, true);
    g_string_append(page, "}}\n");
    add_lines(page, style, G_N_ELEMENTS(style));
    g_string_append(page, "</style>\n");
}

static void add_script(GString *page) {
    g_string_append(page, "<script>\n");
    add_lines(page, script, G_N_ELEMENTS(script));
    g_string_append(page, "</script>\n");
}

GString *mtf_page_begin(const char *title) {
    GString *page = g_string_new("<!DOCTYPE html>\n<html lang=\"en\" "
                                 "xmlns=\"http://www.w3.org/1999/xhtml\">\n<head><meta "
                                 "charset=\"utf-8\"/>\n<meta name=\"viewport\" "
                                 "content=\"width=device-width, initial-scale=1\"/>\n");
    mtf_markup(page, "<title>%s</title>\n", title);
    add_style(page);
    g_string_append(page, "</head>\n<body>\n<main>\n");
    return page;
}

char *mtf_page_end(GString *page) {
    g_string_append(page, "</main>\n");
    add_script(page);
    g_string_append(page, "</body>\n</html>\n");
    return g_string_free(page, FALSE);
}

void mtf_page_section(GString *page, const char *id, const char *title) {
    mtf_markup(page, "</section>\n<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

void mtf_page_number(GString *page, const char *text, const char *what) {
    mtf_markup(page, "<div><b>%s</b><span>%s</span></div>", text, what);
}
