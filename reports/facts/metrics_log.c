// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/metrics_log.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/base/quantile.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static bool read_loss(const MtfJson *object, double *loss, GError **error) {
    MtfJson member;
    if (!mtf_json_get(object, "loss", &member, error))
        return false;
    if (cJSON_IsNull(member.node)) {
        *loss = NAN;
        return true;
    }
    return mtf_json_number(&member, loss, error);
}

static bool read_seconds(const MtfJson *object, const char *key, double *seconds, GError **error) {
    MtfJson member;
    return mtf_json_get(object, key, &member, error) && mtf_json_number(&member, seconds, error) &&
           (*seconds >= 0 || mtf_json_fail(&member, error, "must be 0 or more"));
}

static bool read_record(const MtfJson *object, MtfMetricsRecord *record, GError **error) {
    MtfJson member;
    if (!mtf_json_get_integer(object, "step", 0, MTF_JSON_MAX_INTEGER, &record->step, error) ||
        !read_loss(object, &record->loss, error) ||
        !read_seconds(object, "seconds", &record->seconds, error))
        return false;
    if (mtf_json_find(object, "communication_seconds", &member) &&
        !read_seconds(object, "communication_seconds", &record->communication_seconds, error))
        return false;
    return mtf_json_optional_integer(object, "arena_bytes", 0, MTF_JSON_MAX_INTEGER,
                                     &record->arena_bytes, error);
}

static bool add_line(GArray *records, const char *name, const char *line, GError **error) {
    MtfMetricsRecord record = { 0 };
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, line, strlen(line), error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document);
    if (!read_record(&root, &record, error))
        return false;
    if (records->len > 0 &&
        record.step <= g_array_index(records, MtfMetricsRecord, records->len - 1).step)
        return mtf_json_fail(&root, error, "step %" G_GINT64_FORMAT " is not after the one before",
                             record.step);
    g_array_append_val(records, record);
    return true;
}

/* The text of the file at `path`; what stands behind the last line's end is left out. */
static bool add_lines(GArray *records, const char *path, const char *text, GError **error) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] != NULL && lines[i + 1] != NULL; i++) {
        g_autofree char *name = g_strdup_printf("%s line %d", path, i + 1);
        if (*lines[i] != '\0' && !add_line(records, name, lines[i], error))
            return false;
    }
    return true;
}

GArray *mtf_metrics_log_load(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(path, &length, error);
    if (text == NULL)
        return NULL;
    g_autoptr(GArray) records = g_array_new(FALSE, TRUE, sizeof(MtfMetricsRecord));
    if (!add_lines(records, path, text, error))
        return NULL;
    if (records->len == 0) {
        mtf_input_error(error, "%s holds no step: it must be what meshtf-run --metrics wrote",
                        path);
        return NULL;
    }
    return g_steal_pointer(&records);
}

/* The median of the double at `offset` of each record. */
static double median_of(const GArray *records, gsize offset) {
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = records->len > 1 ? 1 : 0; i < records->len; i++) {
        const char *record = records->data + i * sizeof(MtfMetricsRecord);
        g_array_append_vals(values, record + offset, 1);
    }
    return mtf_median((double *)(void *)values->data, values->len);
}

double mtf_metrics_median_seconds(const GArray *records) {
    return median_of(records, offsetof(MtfMetricsRecord, seconds));
}

double mtf_metrics_median_communication(const GArray *records) {
    return median_of(records, offsetof(MtfMetricsRecord, communication_seconds));
}
