// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_table.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t number;
    const MtfTableColumns *columns;
} Line;

static int64_t count_columns(const MtfTableColumns *columns) {
    return columns->features + columns->labels + columns->targets;
}

/* A finite number and nothing else but blanks. */
static bool read_number(const char *text, double *value) {
    char *end;
    *value = g_ascii_strtod(text, &end);
    bool any = end != text && isfinite(*value);
    while (g_ascii_isspace(*end))
        end++;
    return any && *end == '\0';
}

static bool put_column(const Line *line, int64_t column, const char *text, guint8 *record,
                       GError **error) {
    const MtfTableColumns *columns = line->columns;
    bool label = column >= columns->features && column < columns->features + columns->labels;
    double value;
    bool known = read_number(text, &value);
    if (!known || (label && !(value >= 0 && value <= G_MAXINT32 && value == floor(value))))
        return mtf_input_error(
            error, "%s, line %" PRId64 ", column %" PRId64 ": \"%.20s\" is not %s", line->name,
            line->number, column + 1, text, label ? "a label, which is 0, 1, …" : "a number");
    guint8 *place = record + column * MTF_TABLE_NUMBER_BYTES;
    if (label)
        mtf_data_put_word(place, (guint32)value);
    else
        mtf_data_put_float(place, (float)value);
    return true;
}

/* The next cell of a line, whose end becomes that of a string; NULL behind the last. */
static char *cut_cell(char *text) {
    char *comma = strchr(text, ',');
    if (comma != NULL)
        *comma++ = '\0';
    return comma;
}

static bool put_line(const Line *line, char *text, guint8 *record, GError **error) {
    int64_t wanted = count_columns(line->columns), column = 0;
    for (char *at = text, *next; at != NULL; at = next, column++) {
        next = cut_cell(at);
        if (column < wanted && !put_column(line, column, at, record, error))
            return false;
    }
    return column == wanted ||
           mtf_input_error(error,
                           "%s, line %" PRId64 " has %" PRId64 " columns, but this model wants "
                           "%" PRId64 " features, %" PRId64 " labels and %" PRId64 " targets",
                           line->name, line->number, column, line->columns->features,
                           line->columns->labels, line->columns->targets);
}

static bool names_columns(const char *text) {
    g_autofree char *copy = g_strdup(text);
    double value;
    for (char *at = copy, *next; at != NULL; at = next) {
        next = cut_cell(at);
        if (!read_number(at, &value))
            return true;
    }
    return false;
}

bool mtf_table_parse(const char *name, char *text, const MtfTableColumns *columns,
                     MtfDataFile *target, GError **error) {
    int64_t bytes = count_columns(columns) * MTF_TABLE_NUMBER_BYTES;
    g_autofree guint8 *record = g_malloc((gsize)bytes);
    Line line = { name, 1, columns };
    for (char *next; text != NULL; text = next, line.number++) {
        next = strchr(text, '\n');
        if (next != NULL)
            *next++ = '\0';
        g_strchomp(text);
        if (*text == '\0' || (line.number == 1 && names_columns(text)))
            continue;
        if (!put_line(&line, text, record, error) ||
            !mtf_data_file_append(target, record, bytes, error))
            return false;
    }
    return true;
}

bool mtf_table_is(const char *path) {
    return g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".csv.gz");
}

MtfDataFile *mtf_table_open(const char *path, const MtfTableColumns *columns, GError **error) {
    g_autofree char *text = mtf_data_file_text(path, error);
    g_autoptr(MtfDataFile) target = text != NULL ? mtf_data_file_new(path, error) : NULL;
    if (target == NULL || !mtf_table_parse(path, text, columns, target, error))
        return NULL;
    return g_steal_pointer(&target);
}
