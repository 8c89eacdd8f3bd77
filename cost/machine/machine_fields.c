// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/machine_fields.h"

#include "layouts/base/nearest_name.h"

#include <string.h>

bool mtf_figure_above_zero(const MtfJson *object, const char *key, double *value, GError **error) {
    MtfJson member;
    double number = 0;
    if (!mtf_json_get(object, key, &member, error) || !mtf_json_number(&member, &number, error))
        return false;
    if (number <= 0)
        return mtf_json_fail(&member, error, "%g is not above 0", number);
    *value = number;
    return true;
}

bool mtf_figure_not_negative(const MtfJson *object, const char *key, double *value,
                             GError **error) {
    MtfJson member;
    double number = 0;
    if (!mtf_json_get(object, key, &member, error) || !mtf_json_number(&member, &number, error))
        return false;
    if (number < 0)
        return mtf_json_fail(&member, error, "%g is negative", number);
    *value = number;
    return true;
}

bool mtf_figure_between(const MtfJson *object, const char *key, double low, double high,
                        double *value, GError **error) {
    MtfJson member;
    double number = 0;
    if (!mtf_json_find(object, key, &member))
        return true;
    if (!mtf_json_number(&member, &number, error))
        return false;
    if (number < low || number > high)
        return mtf_json_fail(&member, error, "%g is not between %g and %g", number, low, high);
    *value = number;
    return true;
}

bool mtf_figure_list(const MtfJson *list, int count, const char *expected, double *numbers,
                     GError **error) {
    MtfJson child;
    int i = 0;
    if (!mtf_json_array(list, error))
        return false;
    if (mtf_json_length(list) != count)
        return mtf_json_fail(list, error, "%s", expected);
    for (bool more = mtf_json_first(list, &child); more; more = mtf_json_next(&child))
        if (!mtf_json_number(&child, &numbers[i++], error))
            return false;
    return true;
}

static bool read_figure(const MtfJson *object, const MtfJson *member, MtfDtypeFigure *figure,
                        GError **error) {
    static const char *const known[] = { "f64", "f32", "bf16", "fp16", "fp8", "int8", "fp4", NULL };
    const char *dtype = mtf_json_key(member);
    if (!g_strv_contains(known, dtype)) {
        g_autofree char *list = g_strjoinv(", ", (char **)known);
        g_autofree char *hint = mtf_did_you_mean(dtype, known);
        return mtf_json_fail(member, error, "\"%s\" is no dtype%s; there are %s", dtype, hint,
                             list);
    }
    g_strlcpy(figure->dtype, dtype, sizeof figure->dtype);
    return mtf_figure_above_zero(object, dtype, &figure->value, error);
}

int mtf_figures_of_dtypes(const MtfJson *object, const char *key, MtfDtypeFigure *figures, int most,
                          GError **error) {
    MtfJson members, member;
    int count = 0;
    if (!mtf_json_get_object(object, key, &members, error))
        return 0;
    int length = mtf_json_length(&members);
    if (length < 1 || length > most) {
        mtf_json_fail(&members, error, "%d dtypes are not between 1 and %d", length, most);
        return 0;
    }
    for (bool more = mtf_json_first(&members, &member); more; more = mtf_json_next(&member))
        if (!read_figure(&members, &member, &figures[count++], error))
            return 0;
    return count;
}

bool mtf_figure_sources(const MtfJson *root, GError **error) {
    MtfJson sources, source;
    const char *text;
    if (!mtf_json_find(root, "sources", &sources))
        return true;
    if (!mtf_json_object(&sources, error))
        return false;
    for (bool more = mtf_json_first(&sources, &source); more; more = mtf_json_next(&source))
        if (!mtf_json_string(&source, &text, error))
            return false;
    return true;
}
