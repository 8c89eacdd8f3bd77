// SPDX-License-Identifier: GPL-3.0-or-later
/* A browser to look at pages with: Debian's Chromium without a window, driven over its DevTools
 * protocol through a pair of pipes, so that no port is opened and nothing else is needed.
 *
 *     test ──fd 3──► chromium     {"id":1,"method":"Page.navigate",…}\0
 *     test ◄──fd 4── chromium     {"id":1,"result":{…}}\0   {"method":"Log.entryAdded",…}\0
 *
 * What a page complains about (console messages of any kind, exceptions, requests that fail,
 * requests that leave the page's folder) is gathered and asked for at the end. Whatever takes
 * longer than the limit makes the calls return NULL or false. */
#ifndef MTF_TESTS_BROWSER_H
#define MTF_TESTS_BROWSER_H

#include <glib.h>
#include <stdbool.h>

typedef struct MtfBrowser MtfBrowser;

/* Starts a browser; NULL when there is none or it cannot be started. */
MtfBrowser *mtf_browser_new(void);
void mtf_browser_free(MtfBrowser *browser);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfBrowser, mtf_browser_free)

/* What media queries answer: "screen" or "print", "light" or "dark". */
typedef struct {
    const char *media;
    const char *scheme;
} MtfBrowserView;

/* The width of the window in CSS pixels, and how pages are shown in it. Before mtf_browser_open. */
bool mtf_browser_view(MtfBrowser *browser, int width, const MtfBrowserView *view);

/* Opens a file and waits until it is loaded; `fragment` may be NULL. Forgets earlier complaints. */
bool mtf_browser_open(MtfBrowser *browser, const char *path, const char *fragment);

/* The value of a JavaScript expression as text; free with g_free. NULL when it throws. */
char *mtf_browser_ask(MtfBrowser *browser, const char *expression);

/* The same for an expression that is a number; NAN when it is none. */
double mtf_browser_number(MtfBrowser *browser, const char *expression);

/* The pointer moves to the middle of the first element that the selector finds, after that is
 * scrolled into view; a click presses and releases there. */
bool mtf_browser_hover(MtfBrowser *browser, const char *selector);
bool mtf_browser_click(MtfBrowser *browser, const char *selector);

/* Types text where the focus is. */
bool mtf_browser_type(MtfBrowser *browser, const char *text);

/* The whole page as a PNG file. */
bool mtf_browser_picture(MtfBrowser *browser, const char *path);

/* Complaints since the page was opened, one a line; "" when there is none. Owned by the browser. */
const char *mtf_browser_complaints(const MtfBrowser *browser);

#endif
