// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/sweep_file.h"

#include "analyzer/judge/run_table.h"
#include "cost/collectives/collective.h"
#include "cost/machine/curve_name.h"
#include "cost/machine/samples.h"
#include "layouts/base/error.h"
#include "layouts/base/quantile.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MAX 4

/* Measurements in another unit are a thousand times off; no kernel is by so much. */
#define FAR_OFF 30

typedef struct {
    double value[COLUMNS_MAX];
    guint number; /* of the line */
} SweepLine;

/* "NAME=FILE" into both; free with g_strfreev. */
static char **split_argument(const char *argument, GError **error) {
    char **parts = g_strsplit(argument, "=", 2);
    if (g_strv_length(parts) == 2 && *parts[0] != '\0' && *parts[1] != '\0')
        return parts;
    g_strfreev(parts);
    mtf_input_error(error, "\"%s\" is not NAME=FILE (allreduce/8=nccl.txt, bf16=products.txt)",
                    argument);
    return NULL;
}

/* A line of nccl-tests: bytes, count, type, redop, root, microseconds, …; or no such line. */
static bool is_nccl_line(char **words, SweepLine *line) {
    const char *field[6];
    int count = 0;
    for (char **word = words; *word != NULL && count < 6; word++)
        if (**word != '\0')
            field[count++] = *word;
    if (count < 6 || g_ascii_isdigit(*field[2]) || !g_ascii_isdigit(*field[0]))
        return false;
    line->value[0] = g_ascii_strtod(field[0], NULL);
    line->value[1] = 1e-6 * g_ascii_strtod(field[5], NULL);
    return line->value[0] > 0 && line->value[1] > 0;
}

static bool read_line(const char *file, guint number, char *text, int columns, GArray *lines,
                      GError **error) {
    g_auto(GStrv) words = g_strsplit_set(g_strdelimit(text, ",;\t\r", ' '), " ", -1);
    SweepLine line = { .number = number };
    int count = 0;
    if (columns == 2 && is_nccl_line(words, &line)) {
        g_array_append_val(lines, line);
        return true;
    }
    for (char **word = words; *word != NULL; word++) {
        if (**word == '\0')
            continue;
        char *end;
        double value = g_ascii_strtod(*word, &end);
        if (*end != '\0' && count == 0)
            return true;
        if (count == columns || *end != '\0' || !isfinite(value) || value <= 0)
            return mtf_input_error(error, "%s: line %u, column %d: %d numbers above 0 are expected",
                                   file, number, count + 1, columns);
        line.value[count++] = value;
    }
    if (count == 0)
        return true;
    if (count < columns)
        return mtf_input_error(error, "%s: line %u, column %d: %d numbers above 0 are expected",
                               file, number, count + 1, columns);
    g_array_append_val(lines, line);
    return true;
}

static GArray *read_sweep(const char *file, int columns, GError **error) {
    gsize length;
    g_autofree char *text = mtf_file_read(file, &length, error);
    if (text == NULL)
        return NULL;
    g_auto(GStrv) rows = g_strsplit(mtf_text_begin(text), "\n", -1);
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(SweepLine));
    for (guint i = 0; rows[i] != NULL; i++)
        if (!read_line(file, i + 1, rows[i], columns, lines, error))
            return NULL;
    if (lines->len == 0) {
        mtf_input_error(error, "%s: line 1, column 1: no measurement stands here", file);
        return NULL;
    }
    return g_steal_pointer(&lines);
}

/* Whether the seconds of a line are anywhere near those that the machine's prices give. */
static bool check_unit(const char *file, const SweepLine *line, double seconds, double predicted,
                       GError **error) {
    double times = seconds / predicted;
    return (times < FAR_OFF && times > 1.0 / FAR_OFF) ||
           mtf_input_error(error,
                           "%s: line %u: %g seconds are %.3g times what the machine's prices say: "
                           "are these seconds?",
                           file, line->number, seconds, times);
}

static bool check_collective(const char *file, const GArray *lines, const MtfCurveName *name,
                             const MtfMachine *machine, GError **error) {
    MtfMeshMap map;
    if (!mtf_mesh_map_init(&map, machine, 1, &name->ranks, NULL))
        return true; /* of ranks that no slice of the machine has there is no price */
    for (guint i = 0; i < lines->len; i++) {
        const SweepLine *line = &g_array_index(lines, SweepLine, i);
        double predicted =
            mtf_collective_seconds(machine, &map, name->collective, 1, line->value[0]);
        if (!check_unit(file, line, line->value[1], predicted, error))
            return false;
    }
    return true;
}

bool mtf_sweep_add_collective(const char *argument, MtfMachine *machine, int *rows,
                              GError **error) {
    g_auto(GStrv) parts = split_argument(argument, error);
    MtfCurveName name;
    if (parts == NULL)
        return false;
    if (!mtf_curve_name_parse(parts[0], &name) || name.kind != MTF_CURVE_COLLECTIVE)
        return mtf_input_error(error, "\"%s\" is no collective with its ranks, such as allreduce/8",
                               parts[0]);
    g_autoptr(GArray) lines = read_sweep(parts[1], 2, error);
    if (lines == NULL || !check_collective(parts[1], lines, &name, machine, error))
        return false;
    g_autoptr(MtfSamples) samples = mtf_samples_new();
    for (guint i = 0; i < lines->len; i++) {
        const SweepLine *line = &g_array_index(lines, SweepLine, i);
        mtf_samples_add(samples, parts[0], line->value[0], line->value[1]);
    }
    mtf_samples_fit(samples, machine);
    *rows += (int)lines->len;
    return true;
}

/* Predicted over measured seconds of every line at the machine's shares; NULL where one cannot be. */
static GArray *product_ratios(const char *file, const GArray *lines, const MtfMachine *machine,
                              const char *dtype, GError **error) {
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    MtfPeaks peaks = mtf_machine_peaks(machine, dtype);
    double bytes = strcmp(dtype, "f32") == 0 ? 4 : strcmp(dtype, "fp8") == 0 ? 1 : 2;
    for (guint i = 0; i < lines->len; i++) {
        const SweepLine *line = &g_array_index(lines, SweepLine, i);
        const double *v = line->value;
        MtfProductShape shape = { 1, v[0], v[1], v[2], bytes };
        double predicted = mtf_product_seconds(&machine->kernels, &peaks, &shape) +
                           machine->kernels.launch_seconds;
        double ratio = predicted / v[3];
        if (!check_unit(file, line, v[3], predicted, error))
            return NULL;
        g_array_append_val(ratios, ratio);
    }
    return g_steal_pointer(&ratios);
}

bool mtf_sweep_fit_products(const char *argument, MtfMachine *machine, int *rows, double *spread,
                            GError **error) {
    g_auto(GStrv) parts = split_argument(argument, error);
    if (parts == NULL)
        return false;
    MtfKernelRates *rates = &machine->kernels;
    int which = -1;
    for (int i = 0; i < rates->shares; i++)
        if (strcmp(rates->share[i].dtype, parts[0]) == 0)
            which = i;
    if (which < 0)
        return mtf_input_error(error, "machine %s has no products of \"%s\"", machine->name,
                               parts[0]);
    g_autoptr(GArray) lines = read_sweep(parts[1], 4, error);
    if (lines == NULL)
        return false;
    g_autoptr(GArray) ratios = product_ratios(parts[1], lines, machine, parts[0], error);
    if (ratios == NULL)
        return false;
    double median = mtf_median((double *)(void *)ratios->data, ratios->len), sum = 0;
    if (rates->share[which].value * median > 1)
        return mtf_input_error(
            error, "%s: these products would be %.3g times as fast as the peak of machine %s",
            parts[1], rates->share[which].value * median, machine->name);
    rates->share[which].value *= median;
    for (guint i = 0; i < ratios->len; i++)
        sum += fabs(g_array_index(ratios, double, i) / median - 1);
    *rows = (int)ratios->len;
    *spread = sum / (double)ratios->len;
    return true;
}
