// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* The pages in a browser, as people use them. Pictures of every page are kept in BUILD/pages. Where
 * there is no Chromium, nothing can be judged and every test is skipped. */
#include "tests/support/cmocka.h"

#include "tests/support/browser.h"

#include <glib/gstdio.h>
#include <string.h>

static const char *const names[] = { "mlp",     "demo",   "size5",          "gpt",   "hostile",
                                     "compare", "stages", "hostile-stages", "decode" };
static const int widths[] = { 1280, 390 };
static const MtfBrowserView on_screen = { "screen", "light" };

static MtfBrowser *browser;
static char *folder;

static int make_pages(void **state) {
    (void)state;
    browser = mtf_browser_new();
    if (browser == NULL)
        return 0;
    const char *build = g_getenv("MTF_BUILD");
    folder = g_build_filename(build != NULL ? build : "build/release", "pages", NULL);
    g_autofree char *path =
        g_strconcat(build != NULL ? build : "build/release", ":", g_getenv("PATH"), NULL);
    g_setenv("PATH", path, TRUE);
    const char *arguments[] = { "sh", "tests/support/make_pages.sh", folder, NULL };
    int status = 1;
    g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                 &status, NULL);
    return status;
}

static int close_browser(void **state) {
    (void)state;
    mtf_browser_free(browser);
    g_free(folder);
    return 0;
}

static void need_browser(void) {
    if (browser != NULL)
        return;
    print_message("chromium is not installed\n");
    skip();
}

static void open_page(const char *name, int width, const MtfBrowserView *view,
                      const char *fragment) {
    need_browser();
    g_autofree char *path = g_build_filename(folder, name, "index.html", NULL);
    assert_true(mtf_browser_view(browser, width, view));
    assert_true(mtf_browser_open(browser, path, fragment));
}

static void keep_picture(const char *name, int width, const char *kind) {
    g_autofree char *file = g_strdup_printf("%s-%d%s.png", name, width, kind);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    assert_true(mtf_browser_picture(browser, path));
}

static double number(const char *expression) {
    return mtf_browser_number(browser, expression);
}

static void expect_no_complaints(void) {
    assert_string_equal(mtf_browser_complaints(browser), "");
}

static void expect_fits(int width) {
    assert_true(number("document.documentElement.scrollWidth") <= width);
}

/* ---- Pages as they stand ------------------------------------------------------------------- */

TEST(pages_open_without_complaint_or_scrollbar) {
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        for (gsize w = 0; w < G_N_ELEMENTS(widths); w++) {
            open_page(names[i], widths[w], &on_screen, NULL);
            expect_fits(widths[w]);
            keep_picture(names[i], widths[w], "");
            expect_no_complaints();
        }
}

TEST(all_that_opens_fits_as_well) {
    for (gsize w = 0; w < G_N_ELEMENTS(widths); w++) {
        open_page("demo", widths[w], &on_screen, NULL);
        assert_true(number("(function(){var all=document.querySelectorAll('details');"
                           "all.forEach(function(e){e.open=true;});return all.length;})()") > 3);
        expect_fits(widths[w]);
        keep_picture("demo", widths[w], "-open");
    }
}

TEST(the_dark_and_the_printed_page_fit_as_well) {
    open_page("demo", 1280, &(MtfBrowserView){ "screen", "dark" }, NULL);
    keep_picture("demo", 1280, "-dark");
    open_page("demo", 794, &(MtfBrowserView){ "print", "dark" }, NULL);
    expect_fits(794);
    keep_picture("demo", 794, "-print");
    g_autofree char *ground =
        mtf_browser_ask(browser, "getComputedStyle(document.body).backgroundColor");
    assert_string_equal(ground, "rgb(255, 255, 255)");
    expect_no_complaints();
}

/* Texts of drawings stay within the boxes drawn for them, texts of charts within the chart. The
 * page's font may be narrower than the one that was measured, not wider by more than a pixel. */
TEST(no_text_leaves_its_box) {
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        open_page(names[i], 1280, &on_screen, NULL);
        g_autofree char *outside = mtf_browser_ask(
            browser,
            "(function(){document.querySelectorAll('details').forEach(function(e){e.open=true;});"
            "var out=[];function check(group,texts,room){texts.forEach(function(t){"
            "var r=t.getBoundingClientRect();if(r.left<room.left-1||r.right>room.right+1||"
            "r.top<room.top-2||r.bottom>room.bottom+2){out.push(t.textContent);}});}"
            "document.querySelectorAll('.picture .node').forEach(function(n){"
            "var l=1e9,r=-1e9,t=1e9,b=-1e9;n.querySelectorAll('polygon').forEach(function(p){"
            "var x=p.getBoundingClientRect();l=Math.min(l,x.left);r=Math.max(r,x.right);"
            "t=Math.min(t,x.top);b=Math.max(b,x.bottom);});"
            "check(n,n.querySelectorAll('text'),{left:l,right:r,top:t,bottom:b});});"
            "document.querySelectorAll('svg.chart').forEach(function(s){"
            "check(s,s.querySelectorAll('text'),s.getBoundingClientRect());});"
            "return out.slice(0,9).join(' | ');})()");
        assert_string_equal(outside, "");
    }
}

/* The pictures of the forward pass need no scrolling to the side. */
TEST(layers_read_at_the_width_of_a_screen) {
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        open_page(names[i], 1280, &on_screen, NULL);
        assert_true(number("(function(){document.querySelectorAll('details').forEach(function(e){"
                           "e.open=true;});return Array.from(document.querySelectorAll("
                           "'details.part>.drawing')).filter(function(e){"
                           "return e.scrollWidth>e.clientWidth+1;}).length;})()") == 0);
    }
}

/* A page of a plan of inference says what is run, and has no columns of what is not. */
TEST(a_page_of_inference_says_so) {
    open_page("decode", 1280, &on_screen, NULL);
    assert_true(number("document.querySelectorAll('.step th').length") == 2);
    g_autofree char *text =
        mtf_browser_ask(browser, "document.querySelector('dl.card').textContent");
    assert_non_null(
        strstr(text, "inferencedecode: 1 token of each of 4 examples, caches have room for "));
    open_page("mlp", 1280, &on_screen, NULL);
    assert_true(number("document.querySelectorAll('.step th').length") == 4);
}

TEST(without_scripts_everything_is_there) {
    need_browser();
    g_autofree char *path = g_build_filename(folder, "demo", "index.html", NULL);
    g_autofree char *bare = g_build_filename(folder, "demo", "bare.html", NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *script = strstr(text, "<script>");
    assert_non_null(script);
    *script = '\0';
    assert_true(g_file_set_contents(bare, text, -1, NULL));
    assert_true(mtf_browser_view(browser, 1280, &on_screen));
    assert_true(mtf_browser_open(browser, bare, NULL));
    assert_true(number("document.querySelector('details.part[open] .picture')"
                       ".getBoundingClientRect().height") > 300);
    assert_true(number("document.querySelectorAll('input:not([hidden])').length") == 0);
    double closed = number("document.querySelectorAll('details.part:not([open])').length");
    assert_true(mtf_browser_click(browser, "details.part:not([open])>summary"));
    assert_true(number("document.querySelectorAll('details.part:not([open])').length") ==
                closed - 1);
    expect_no_complaints();
}

/* Every text that is shown, as the browser computes its colour and the ground behind it. */
static void expect_readable(const char *name, const char *scheme) {
    open_page(name, 1280, &(MtfBrowserView){ "screen", scheme }, NULL);
    g_autofree char *worst = mtf_browser_ask(
        browser,
        "(function(){function lum(c){var v=c.map(function(x){x/=255;return x<=0.04045?x/12.92:"
        "Math.pow((x+0.055)/1.055,2.4);});return 0.2126*v[0]+0.7152*v[1]+0.0722*v[2];}"
        "function rgb(t){var m=t.match(/[0-9.]+/g);return m===null?null:m.map(Number);}"
        "function ground(e){for(;e!==null;e=e.parentElement){var c=rgb(getComputedStyle(e)."
        "backgroundColor);if(c!==null&&(c.length<4||c[3]===1)){return c;}}return [255,255,255];}"
        "var bad=new Set();document.querySelectorAll('body *').forEach(function(e){"
        "if(e.closest('.picture,.slices,script,.of-chosen')!==null||!Array.from(e.childNodes).some("
        "function(n){return n.nodeType===3&&n.textContent.trim()!=='';})||e.tagName==='title'){return;}"
        "var style=getComputedStyle(e),svg=e.ownerSVGElement;"
        "var a=lum(rgb(svg?style.fill:style.color)),b=lum(ground(e));"
        "var contrast=(Math.max(a,b)+0.05)/(Math.min(a,b)+0.05);"
        "if(contrast<4.5){bad.add(e.tagName+'.'+e.getAttribute('class')+' '+contrast.toFixed(2));}});"
        "return Array.from(bad).join(' | ');})()");
    assert_string_equal(worst, "");
}

TEST(texts_stand_out_in_both_schemes) {
    static const char *const schemes[] = { "light", "dark" };
    for (gsize i = 0; i < G_N_ELEMENTS(schemes); i++) {
        expect_readable("demo", schemes[i]);
        expect_readable("compare", schemes[i]);
    }
}

/* Pictures of 512 processors keep the place that they need, whether they are drawn yet or not; those that are
 * looked at are drawn. */
TEST(pictures_of_many_processors_keep_their_place) {
    open_page("size5", 1280, &on_screen, NULL);
    static const char wrong[] =
        "Array.from(document.querySelectorAll('.later')).filter(function(e){"
        "return Math.abs(e.clientHeight-Math.min(460,e.firstChild.getAttribute('height')))>8;"
        "}).length";
    assert_true(number("document.querySelectorAll('.later').length") > 1);
    assert_true(number(wrong) == 0);
    assert_true(number("(function(){var e=document.querySelector('.later');e.scrollIntoView();"
                       "return e.firstChild.getBoundingClientRect().width;})()") > 900);
    assert_true(number(wrong) == 0);
    expect_no_complaints();
}

/* Of 512 processors each row of tensors shows one image of them, which all rows share, and says in words
 * what it shows. */
TEST(rows_share_the_images_of_where_tensors_lie) {
    open_page("size5", 1280, &on_screen, NULL);
    static const char thumbs[] = "Array.from(document.querySelectorAll('.tensors .thumb'))";
    g_autofree char *bare =
        g_strconcat(thumbs,
                    ".filter(function(e){return !getComputedStyle(e).backgroundImage.startsWith("
                    "'url(\"data:image/svg+xml,');}).length",
                    NULL);
    g_autofree char *mute =
        g_strconcat(thumbs,
                    ".filter(function(e){return !(/^(split|partial|replicated)/).test("
                    "e.getAttribute('aria-label'));}).length",
                    NULL);
    g_autofree char *inside = g_strconcat(thumbs, "[0].childElementCount", NULL);
    assert_true(number("document.querySelectorAll('.tensors .thumb').length") > 30);
    assert_true(number(bare) == 0);
    assert_true(number(mute) == 0);
    assert_true(number(inside) == 0);
    expect_no_complaints();
}

/* What a screen reader meets: one main part, headings in order, a name for each link, picture and part that
 * opens, no link inside of what is told as one picture, no id twice. */
TEST(everything_has_a_name_for_those_who_do_not_see) {
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        open_page(names[i], 1280, &on_screen, NULL);
        g_autofree char *wrong = mtf_browser_ask(
            browser,
            "(function(){var out=[],level=0,ids={};"
            "if(document.querySelectorAll('main').length!==1){out.push('main');}"
            "document.querySelectorAll('h1,h2,h3,h4').forEach(function(h){var n=+h.tagName[1];"
            "if(n>level+1){out.push(h.textContent);}level=n;});"
            "document.querySelectorAll('a[href],summary,input,nav,svg').forEach(function(e){"
            "var inner=e.querySelector('title'),name=e.getAttribute('aria-label')||"
            "(e.tagName==='svg'?'':e.textContent)||(inner?inner.textContent:'');"
            "if(name.trim()===''){out.push(e.outerHTML.slice(0,80));}});"
            "document.querySelectorAll('svg[role=img] a').forEach(function(e){out.push("
            "e.textContent);});"
            "document.querySelectorAll('[id]').forEach(function(e){"
            "if(ids[e.id]){out.push(e.id);}ids[e.id]=true;});"
            "return out.slice(0,9).join(' | ');})()");
        assert_string_equal(wrong, "");
    }
}

/* ---- Pages in use -------------------------------------------------------------------------- */

#define DIM "document.querySelectorAll('details[open] .picture .edge.dim').length"

TEST(hovering_over_a_box_leaves_its_arrows_alone) {
    open_page("demo", 1280, &on_screen, NULL);
    assert_true(number(DIM) == 0);
    assert_true(mtf_browser_hover(browser, "details[open] .picture .node:nth-of-type(2) polygon"));
    double edges = number("document.querySelector('details[open] .picture')"
                          ".querySelectorAll('.edge').length");
    assert_true(number(DIM) > 0);
    assert_true(number(DIM) < edges);
    assert_true(mtf_browser_hover(browser, "h1"));
    assert_true(number(DIM) == 0);
    expect_no_complaints();
}

TEST(filtering_leaves_the_rows_that_hold_the_word) {
    open_page("demo", 1280, &on_screen, NULL);
    static const char shown[] = "Array.from(document.querySelectorAll('.tensors tbody tr')).filter("
                                "function(r){return !r.hidden;})";
    g_autofree char *count = g_strconcat(shown, ".length", NULL);
    g_autofree char *wrong = g_strconcat(
        shown, ".filter(function(r){return !r.textContent.includes('attention/wq');}).length",
        NULL);
    double before = number(count);
    assert_true(mtf_browser_click(browser, "input[data-table=tensors]"));
    assert_true(mtf_browser_type(browser, "Attention/wq"));
    assert_true(number(count) > 0);
    assert_true(number(count) < before);
    assert_true(number(wrong) == 0);
    expect_no_complaints();
}

TEST(a_layer_opens_to_a_picture_of_its_own) {
    open_page("demo", 1280, &on_screen, NULL);
    static const char height[] =
        "(function(e){return e===null?0:e.getBoundingClientRect().height;})"
        "(document.querySelector('details.phase .picture'))";
    assert_true(mtf_browser_click(browser, "details.part:not([open])>summary"));
    assert_true(number("document.querySelectorAll('details.part[open]').length") == 2);
    assert_true(mtf_browser_click(browser, "details.part[open] details.phase>summary"));
    assert_true(number(height) > 100);
    expect_no_complaints();
}

TEST(a_box_leads_to_its_tensor) {
    open_page("demo", 1280, &on_screen, NULL);
    assert_true(mtf_browser_click(browser, "details[open] .picture .node a"));
    g_autofree char *hash = mtf_browser_ask(browser, "location.hash");
    assert_int_equal(strncmp(hash, "#t", 2), 0);
    assert_true(number("document.querySelector('tr:target').getBoundingClientRect().height") > 0);
    expect_no_complaints();
}

TEST(a_link_into_what_is_closed_opens_it) {
    open_page("demo", 1280, &on_screen, NULL);
    assert_true(mtf_browser_click(browser, ".step tbody tr:last-child a"));
    assert_true(number("document.querySelectorAll('details.part[open]').length") == 2);
    expect_no_complaints();
}

/* The witness is tested, too: a page that complains, and one that is too wide. */
TEST(a_bad_page_is_found_out) {
    need_browser();
    g_autofree char *path = g_build_filename(folder, "bad.html", NULL);
    assert_true(g_file_set_contents(path,
                                    "<!DOCTYPE html><html><body style='width:3000px'>"
                                    "<img src='missing.png'><script>console.log('x');"
                                    "nothing();</script></body></html>",
                                    -1, NULL));
    assert_true(mtf_browser_view(browser, 390, &on_screen));
    assert_true(mtf_browser_open(browser, path, NULL));
    assert_true(number("document.documentElement.scrollWidth") > 390);
    assert_non_null(strstr(mtf_browser_complaints(browser), "console: log"));
    assert_non_null(strstr(mtf_browser_complaints(browser), "exception: Uncaught"));
    assert_non_null(strstr(mtf_browser_complaints(browser), "failed: net::ERR_FILE_NOT_FOUND"));
    assert_null(mtf_browser_ask(browser, "nothing()"));
    assert_false(mtf_browser_click(browser, "#nowhere"));
}

int main(void) {
    return mtf_tests_run(make_pages, close_browser);
}
