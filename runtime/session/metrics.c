// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/metrics.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PLAIN_LINES 20
#define REDRAW_SECONDS 0.2
#define MEBIBYTE 1048576.0

struct MtfMetrics {
    char *path;
    FILE *file; /* NULL without one */
    int64_t done, steps, items;
    char *item_name;
    bool terminal;
    double since_drawn; /* seconds */
    bool drawn;
};

/* The step that a line is of; 0 when it does not say, as the last of a killed run may not. */
static int64_t step_of(const char *line) {
    cJSON *object = cJSON_Parse(line);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(object, "step");
    int64_t number = cJSON_IsNumber(step) ? (int64_t)step->valuedouble : 0;
    cJSON_Delete(object);
    return number;
}

/* Cuts the file behind the lines of steps up to `done`. */
static bool keep_lines(const char *path, int64_t done, GError **error) {
    g_autofree char *text = NULL;
    gsize length;
    if (!g_file_get_contents(path, &text, &length, NULL))
        return true;
    GString *kept = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] != NULL; i++) {
        int64_t step = step_of(lines[i]);
        if (step > 0 && step <= done)
            g_string_append_printf(kept, "%s\n", lines[i]);
    }
    bool written = kept->len == length || mtf_file_write(path, kept->str, kept->len, error);
    g_string_free(kept, TRUE);
    return written;
}

MtfMetrics *mtf_metrics_open(const char *path, const MtfMetricsRun *run, GError **error) {
    if (path != NULL && run->done > 0 && !keep_lines(path, run->done, error))
        return NULL;
    FILE *file = path != NULL ? fopen(path, run->done > 0 ? "a" : "w") : NULL;
    if (path != NULL && file == NULL) {
        mtf_input_error(error, "the metrics file %s cannot be written: %s", path,
                        g_strerror(errno));
        return NULL;
    }
    MtfMetrics *metrics = g_new0(MtfMetrics, 1);
    metrics->path = g_strdup(path);
    metrics->file = file;
    metrics->done = run->done;
    metrics->steps = run->steps;
    metrics->items = run->items;
    metrics->item_name = g_strdup(run->item_name);
    metrics->terminal = isatty(STDERR_FILENO);
    return metrics;
}

static void add_known(cJSON *object, const char *key, double value) {
    if (value != 0)
        mtf_json_add_number(object, key, value);
}

char *mtf_metrics_line(const MtfStepRecord *record, int64_t items, const char *item_name) {
    g_autofree char *rate = g_strdup_printf("%s_per_second", item_name);
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_integer(object, "step", record->step);
    if (!record->has_no_loss)
        mtf_json_add_number(object, "loss", record->loss);
    if (record->evaluated)
        mtf_json_add_number(object, "held_out_loss", record->held_out_loss);
    if (record->evaluated && !isnan(record->held_out_accuracy))
        mtf_json_add_number(object, "held_out_accuracy", record->held_out_accuracy);
    if (record->drops)
        mtf_json_add_number(object, "dropped_share", record->dropped_share);
    add_known(object, "gradient_norm", record->gradient_norm);
    add_known(object, "learning_rate", record->learning_rate);
    mtf_json_add_number(object, "seconds", record->seconds);
    mtf_json_add_number(object, "processor_seconds", record->processor_seconds);
    mtf_json_add_number(object, "communication_seconds", record->communication_seconds);
    mtf_json_add_number(object, rate, (double)items / record->seconds);
    add_known(object, "gemm_fraction", record->gemm_fraction);
    if (record->arena_bytes > 0)
        mtf_json_add_integer(object, "arena_bytes", record->arena_bytes);
    if (record->resident_bytes > 0)
        mtf_json_add_integer(object, "resident_bytes", record->resident_bytes);
    char *printed = cJSON_PrintUnformatted(object);
    char *line = g_strdup(printed);
    cJSON_free(printed);
    cJSON_Delete(object);
    return line;
}

static bool write_line(MtfMetrics *metrics, const MtfStepRecord *record, GError **error) {
    g_autofree char *line = mtf_metrics_line(record, metrics->items, metrics->item_name);
    if (fprintf(metrics->file, "%s\n", line) > 0 && fflush(metrics->file) == 0)
        return true;
    return mtf_failure(error, "the metrics file %s cannot be written: %s", metrics->path,
                       g_strerror(errno));
}

static void append_known(GString *text, const char *format, double value) G_GNUC_PRINTF(2, 0);

static void append_known(GString *text, const char *format, double value) {
    if (value != 0)
        g_string_append_printf(text, format, value);
}

static char *format_reshard_op(const MtfMetrics *metrics, const MtfStepRecord *record) {
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "step %*" PRId64 "/%" PRId64, metrics->steps > 999 ? 6 : 3,
                           record->step, metrics->steps);
    if (!record->has_no_loss)
        g_string_append_printf(text, " | loss %.4f", record->loss);
    if (record->evaluated)
        g_string_append_printf(text, " | held out %.4f", record->held_out_loss);
    if (record->evaluated && !isnan(record->held_out_accuracy))
        g_string_append_printf(text, ", %.1f%% right", 100 * record->held_out_accuracy);
    if (record->drops)
        g_string_append_printf(text, " | dropped %.1f%%", 100 * record->dropped_share);
    append_known(text, " | grad %.3g", record->gradient_norm);
    append_known(text, " | lr %.2g", record->learning_rate);
    g_string_append_printf(text, " | %.1f ms | %.0f %s/s | comm %.0f%%", record->seconds * 1e3,
                           (double)metrics->items / record->seconds, metrics->item_name,
                           100 * record->communication_seconds / record->seconds);
    append_known(text, " | gemm %.0f%%", 100 * record->gemm_fraction);
    if (record->resident_bytes > 0)
        g_string_append_printf(text, " | %.0f MiB (plan %.0f)",
                               (double)record->resident_bytes / MEBIBYTE,
                               (double)record->arena_bytes / MEBIBYTE);
    return g_string_free(text, FALSE);
}

/* Leaves out what does not fit, from the end. */
static void fit(char *text) {
    struct winsize size = { 0 };
    gsize columns =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    while (strlen(text) >= columns) {
        char *bar = strrchr(text, '|');
        if (bar == NULL || bar == text)
            return;
        bar[-1] = '\0';
    }
}

/* Redraws the terminal's line, not more often than an eye can follow. */
static void draw(MtfMetrics *metrics, const MtfStepRecord *record) {
    metrics->since_drawn += record->seconds;
    if (metrics->drawn && record->step < metrics->steps && metrics->since_drawn < REDRAW_SECONDS)
        return;
    g_autofree char *text = format_reshard_op(metrics, record);
    fit(text);
    fprintf(stderr, "\r\033[K%s", text);
    metrics->drawn = true;
    metrics->since_drawn = 0;
}

bool mtf_metrics_prints(int64_t done, int64_t steps, int64_t step) {
    int64_t every = MAX(1, steps / PLAIN_LINES);
    return step == done + 1 || step == steps || step % every == 0;
}

static void print_some(const MtfMetrics *metrics, const MtfStepRecord *record) {
    if (!mtf_metrics_prints(metrics->done, metrics->steps, record->step) && !record->evaluated)
        return;
    g_autofree char *text = format_reshard_op(metrics, record);
    puts(text);
    fflush(stdout);
}

bool mtf_metrics_shows_all(const MtfMetrics *metrics) {
    return metrics->terminal || metrics->file != NULL;
}

void mtf_metrics_say(MtfMetrics *metrics, const char *text) {
    if (metrics->drawn)
        fputs("\r\033[K", stderr);
    fputs(text, stdout);
    fflush(stdout);
}

bool mtf_metrics_add(MtfMetrics *metrics, const MtfStepRecord *record, GError **error) {
    if (metrics->terminal)
        draw(metrics, record);
    else
        print_some(metrics, record);
    return metrics->file == NULL || write_line(metrics, record, error);
}

void mtf_metrics_close(MtfMetrics *metrics) {
    if (metrics == NULL)
        return;
    if (metrics->drawn)
        fputc('\n', stderr);
    if (metrics->file != NULL)
        fclose(metrics->file);
    g_free(metrics->item_name);
    g_free(metrics->path);
    g_free(metrics);
}
