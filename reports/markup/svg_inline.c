// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/markup/svg_inline.h"

#include "reports/markup/markup.h"

#include <math.h>
#include <string.h>

#define PIXELS_A_POINT 1.15 /* small texts come out at about 11 pixels */
#define READABLE 0.72       /* how far a picture may shrink to fit, before it scrolls */

typedef struct {
    GString *out;
    const char *prefix, *label;
    guint64 left_out; /* one bit an open element, the innermost lowest */
} Writer;

static double number_of(const char *text) {
    return text != NULL ? g_ascii_strtod(text, NULL) : 0;
}

static const char *value_of(const char *const *names, const char *const *values, const char *name) {
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return values[i];
    return NULL;
}

static void open_root(Writer *writer, const char **names, const char **values) {
    double width = PIXELS_A_POINT * number_of(value_of(names, values, "width"));
    mtf_markup(
        writer->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" style=\"min-width:%.0fpx\" "
        "width=\"%.0f\" height=\"%.0f\" viewBox=\"%s\" role=\"group\" aria-label=\"%s\">",
        READABLE * width, width, PIXELS_A_POINT * number_of(value_of(names, values, "height")),
        value_of(names, values, "viewBox"), writer->label);
}

/* Links and tooltips lose their old-fashioned prefix; tooltips become titles. False for a link that
 * has neither, as those of arrows. */
static bool open_link(Writer *writer, const char **names, const char **values) {
    const char *target = value_of(names, values, "xlink:href");
    const char *title = value_of(names, values, "xlink:title");
    if (target == NULL && g_strcmp0(title, " ") == 0)
        return false;
    g_string_append(writer->out, "<a");
    if (target != NULL)
        mtf_markup(writer->out, " href=\"%s\"", target);
    g_string_append_c(writer->out, '>');
    if (title != NULL && strcmp(title, " ") != 0)
        mtf_markup(writer->out, "<title>%s</title>", title);
    return true;
}

/* Of ids those of boxes, arrows and gradients are wanted ("n3", "edge7", "l_0"). */
static bool is_left_out(const char *name, const char *value) {
    return g_str_has_prefix(name, "xmlns") || g_str_has_prefix(name, "xlink:") ||
           strcmp(name, "font-family") == 0 || strcmp(name, "xml:space") == 0 ||
           strcmp(value, "start") == 0 || /* where texts are anchored anyway */
           (strcmp(name, "id") == 0 && strpbrk(value, "_,") != NULL && value[0] != 'l');
}

/* A polygon is closed without its first corner once more. */
static void append_corners(Writer *writer, const char *points) {
    const char *last = strrchr(points, ' ');
    gsize first = strcspn(points, " ");
    bool again = last != NULL && strlen(last + 1) == first && strncmp(points, last + 1, first) == 0;
    g_autofree char *corners = g_strndup(points, again ? (gsize)(last - points) : strlen(points));
    mtf_markup(writer->out, " points=\"%s\"", corners);
}

static void append_attribute(Writer *writer, const char *name, const char *value) {
    if (is_left_out(name, value))
        return;
    if (strcmp(name, "id") == 0)
        mtf_markup(writer->out, " id=\"%s-%s\"", writer->prefix, value);
    else if (strcmp(name, "points") == 0)
        append_corners(writer, value);
    else if (g_str_has_prefix(value, "url(#"))
        mtf_markup(writer->out, " %s=\"url(#%s-%s\"", name, writer->prefix,
                   value + strlen("url(#"));
    else
        mtf_markup(writer->out, " %s=\"%s\"", name,
                   strcmp(value, "transparent") == 0 ? "none" : value);
}

/* False where nothing is written: for a group that would have no attribute. */
static bool open_other(Writer *writer, const char *element, const char **names,
                       const char **values) {
    bool plain = true;
    for (int i = 0; names[i] != NULL; i++)
        plain &= is_left_out(names[i], values[i]);
    if (plain && strcmp(element, "g") == 0)
        return false;
    mtf_markup(writer->out, "<%s", element);
    for (int i = 0; names[i] != NULL; i++)
        append_attribute(writer, names[i], values[i]);
    g_string_append_c(writer->out, '>');
    return true;
}

static void on_start(GMarkupParseContext *context, const char *element, const char **names,
                     const char **values, gpointer data, GError **error) {
    (void)context;
    (void)error;
    Writer *writer = data;
    bool written = false;
    if (strcmp(element, "svg") == 0) {
        open_root(writer, names, values);
        written = true;
    } else if (strcmp(element, "a") == 0) {
        written = open_link(writer, names, values);
    } else if (strcmp(element, "title") != 0) { /* Graphviz' own titles are left out */
        written = open_other(writer, element, names, values);
    }
    writer->left_out = writer->left_out << 1 | (written ? 0 : 1);
}

static void on_end(GMarkupParseContext *context, const char *element, gpointer data,
                   GError **error) {
    (void)context;
    (void)error;
    Writer *writer = data;
    if (!(writer->left_out & 1))
        mtf_markup(writer->out, "</%s>", element);
    writer->left_out >>= 1;
}

static void on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                    GError **error) {
    (void)error;
    Writer *writer = data;
    const char *element = g_markup_parse_context_get_element(context);
    if (element == NULL || strcmp(element, "title") == 0)
        return;
    g_autofree char *copy = g_strndup(text, length);
    mtf_markup_text(writer->out, copy);
}

bool mtf_svg_inline(GString *page, const char *svg, const char *prefix, const char *label) {
    static const GMarkupParser parser = { .start_element = on_start,
                                          .end_element = on_end,
                                          .text = on_text };
    const char *root = strstr(svg, "<svg");
    if (root == NULL)
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    Writer writer = { out, prefix, label, 0 };
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &writer, NULL);
    bool good = g_markup_parse_context_parse(context, root, -1, NULL) &&
                g_markup_parse_context_end_parse(context, NULL);
    g_markup_parse_context_free(context);
    if (good)
        g_string_append(page, out->str);
    return good;
}
