// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_clicks.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t number;
    const MtfClickColumns *columns;
} Line;

static bool fail_column(const Line *line, int64_t column, const char *text, const char *wanted,
                        GError **error) {
    return mtf_input_error(error, "%s, line %" PRId64 ", column %" PRId64 ": \"%.20s\" is not %s",
                           line->name, line->number, column + 1, text, wanted);
}

/* Column 0: the label, an int32 in the lowest byte first. */
static bool put_label(const Line *line, const char *text, guint8 *place, GError **error) {
    guint64 label;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT32, &label, NULL))
        return fail_column(line, 0, text, "a label, which is 0, 1, …", error);
    mtf_data_put_word(place, (guint32)label);
    return true;
}

static bool put_feature(const Line *line, int64_t column, const char *text, guint8 *place,
                        GError **error) {
    gint64 count = 0;
    if (*text != '\0' && !g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &count, NULL))
        return fail_column(line, column, text, "a count, which is a whole number", error);
    mtf_data_put_float(place, (float)log1p((double)MAX(count, 0)));
    return true;
}

static bool put_category(const Line *line, int64_t column, const char *text, guint8 *place,
                         GError **error) {
    guint64 category = 0;
    if (*text != '\0' && !g_ascii_string_to_unsigned(text, 16, 0, G_MAXUINT32, &category, NULL))
        return fail_column(line, column, text, "a category, which has up to 8 hexadecimal digits",
                           error);
    mtf_data_put_word(place, (guint32)category);
    return true;
}

static bool put_column(const Line *line, int64_t column, const char *text, guint8 *record,
                       GError **error) {
    guint8 *place = record + column * MTF_CLICK_NUMBER_BYTES;
    if (column == 0)
        return put_label(line, text, place, error);
    if (column <= line->columns->features)
        return put_feature(line, column, text, place, error);
    return put_category(line, column, text, place, error);
}

/* One line, whose end is cut off. */
static bool put_line(const Line *line, char *text, guint8 *record, GError **error) {
    int64_t wanted = 1 + line->columns->features + line->columns->categories, column = 0;
    for (char *at = text, *next; at != NULL; at = next, column++) {
        next = strchr(at, '\t');
        if (next != NULL)
            *next++ = '\0';
        if (column < wanted && !put_column(line, column, at, record, error))
            return false;
    }
    return column == wanted ||
           mtf_input_error(error,
                           "%s, line %" PRId64 " has %" PRId64 " columns, but this model wants a "
                           "label, %" PRId64 " counts and %" PRId64 " categories",
                           line->name, line->number, column, line->columns->features,
                           line->columns->categories);
}

bool mtf_clicks_parse(const char *name, char *text, const MtfClickColumns *columns,
                      MtfDataFile *target, GError **error) {
    int64_t bytes =
        MTF_CLICK_LABEL_BYTES + (columns->features + columns->categories) * MTF_CLICK_NUMBER_BYTES;
    g_autofree guint8 *record = g_malloc((gsize)bytes);
    Line line = { name, 1, columns };
    for (char *next; text != NULL; text = next, line.number++) {
        next = strchr(text, '\n');
        if (next != NULL)
            *next++ = '\0';
        gsize n = strlen(text);
        if (n > 0 && text[n - 1] == '\r')
            text[--n] = '\0';
        if (n > 0 && (!put_line(&line, text, record, error) ||
                      !mtf_data_file_append(target, record, bytes, error)))
            return false;
    }
    return true;
}

bool mtf_clicks_are(const char *path) {
    return g_str_has_suffix(path, ".tsv") || g_str_has_suffix(path, ".tsv.gz");
}

MtfDataFile *mtf_clicks_open(const char *path, const MtfClickColumns *columns, GError **error) {
    g_autofree char *text = mtf_data_file_text(path, error);
    g_autoptr(MtfDataFile) target = text != NULL ? mtf_data_file_new(path, error) : NULL;
    if (target == NULL || !mtf_clicks_parse(path, text, columns, target, error))
        return NULL;
    return g_steal_pointer(&target);
}
