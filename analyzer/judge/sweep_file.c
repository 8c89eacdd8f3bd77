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

#define COLUMNS_MAX 6

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

/* Words of a line, blanks aside; at most `most`. */
static int words_of(char **words, const char **field, int most) {
    int count = 0;
    for (char **word = words; *word != NULL && count < most; word++)
        if (**word != '\0')
            field[count++] = *word;
    return count;
}

/* Where the first time stands in lines under a header of nccl-tests, "# size count type redop root time"
 * (some versions and collectives leave out redop or root); 0: no header. */
static int time_field_of(char **words) {
    const char *field[8];
    int count = words_of(words, field, 8);
    if (count < 5 || strcmp(field[0], "#") != 0 || strcmp(field[1], "size") != 0)
        return 0;
    for (int k = 2; k < count; k++)
        if (strcmp(field[k], "time") == 0)
            return k - 1;
    return 0;
}

/* A line of nccl-tests: bytes, count, type, …, microseconds, …; or no such line. Without its header the
 * time is the sixth word, or the fifth where that is no root's number. */
static bool is_nccl_line(char **words, int time_field, SweepLine *line) {
    const char *field[6];
    int count = words_of(words, field, 6);
    if (count < 6 || g_ascii_isdigit(*field[2]) || !g_ascii_isdigit(*field[0]))
        return false;
    if (time_field == 0)
        time_field = strchr(field[4], '.') != NULL ? 4 : 5;
    line->value[0] = g_ascii_strtod(field[0], NULL);
    line->value[1] = 1e-6 * g_ascii_strtod(field[time_field], NULL);
    return line->value[0] > 0 && line->value[1] > 0;
}

static bool read_line(const char *file, guint number, char *text, int columns, int *time_field,
                      GArray *lines, GError **error) {
    g_auto(GStrv) words = g_strsplit_set(g_strdelimit(text, ",;\t\r", ' '), " ", -1);
    SweepLine line = { .number = number };
    int count = 0, header = time_field_of(words);
    *time_field = header > 0 ? header : *time_field;
    if (columns == 2 && is_nccl_line(words, *time_field, &line)) {
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
    int time_field = 0;
    for (guint i = 0; rows[i] != NULL; i++)
        if (!read_line(file, i + 1, rows[i], columns, &time_field, lines, error))
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

/* ---- Shares of a device's kernels ---------------------------------------------------------------- */

/* Lines that are measured beside what the machine's shares say. */
typedef struct {
    const char *file, *name; /* of the dtype, or of the passes */
    const GArray *lines;
    MtfMachine *machine;
} Sweep;

/* Seconds of a line as they are measured in a column. */
typedef double (*Predict)(const Sweep *sweep, const double *line, int column);

static double product_seconds(const Sweep *sweep, const double *line, int column) {
    (void)column;
    MtfPeaks peaks = mtf_machine_peaks(sweep->machine, sweep->name);
    double bytes = strcmp(sweep->name, "f32") == 0 ? 4 : strcmp(sweep->name, "fp8") == 0 ? 1 : 2;
    MtfProductShape shape = {
        1,       line[0],
        line[1], line[2],
        bytes,   mtf_rows_are_unaligned(line[1], line[2], bytes) ? MTF_PRODUCT_UNALIGNED : 0
    };
    return mtf_product_seconds(&sweep->machine->kernels, &peaks, &shape);
}

/* Features, queries, keys that a query sees, heads; forward in column 4, the gradient in 5. */
static double attention_seconds(const Sweep *sweep, const double *line, int column) {
    MtfPeaks peaks = mtf_machine_peaks(sweep->machine, sweep->name);
    double flops = 4 * line[0] * line[1] * line[2] * line[3] * (column == 5 ? 2.5 : 1);
    MtfAttentionShape shape = { flops, line[1], line[0], column == 5, false };
    return mtf_attention_seconds(&sweep->machine->kernels, &peaks, &shape);
}

static double pass_seconds(const Sweep *sweep, const double *line, int column) {
    (void)column;
    MtfPeaks peaks = mtf_machine_peaks(sweep->machine, sweep->machine->precision);
    MtfSweep pass = mtf_sweep_from_name(sweep->name);
    return mtf_sweep_seconds(&sweep->machine->kernels, &peaks, pass, line[0]);
}

/* Predicted over measured seconds of every line, launches among them; NULL where one is far off. */
static GArray *ratios_of(const Sweep *sweep, Predict predict, int column, GError **error) {
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < sweep->lines->len; i++) {
        const SweepLine *line = &g_array_index(sweep->lines, SweepLine, i);
        double seconds = line->value[column];
        double predicted =
            predict(sweep, line->value, column) + sweep->machine->kernels.launch_seconds;
        double ratio = predicted / seconds;
        if (!check_unit(sweep->file, line, seconds, predicted, error))
            return NULL;
        g_array_append_val(ratios, ratio);
    }
    return g_steal_pointer(&ratios);
}

/* Scales shares so that half of the lines take longer than they say, and half less. */
static bool scale_shares(const Sweep *sweep, Predict predict, int column, double *const *shares,
                         int count, MtfSweepFit *fit, GError **error) {
    g_autoptr(GArray) ratios = ratios_of(sweep, predict, column, error);
    if (ratios == NULL)
        return false;
    double median = mtf_median((double *)(void *)ratios->data, ratios->len);
    for (int i = 0; i < count; i++)
        if (*shares[i] * median > 1)
            return mtf_input_error(
                error, "%s: these kernels would be %.3g times as fast as the peak of machine %s",
                sweep->file, *shares[i] * median, sweep->machine->name);
    for (int i = 0; i < count; i++)
        *shares[i] *= median;
    for (guint i = 0; i < ratios->len; i++)
        fit->error += fabs(g_array_index(ratios, double, i) / median - 1);
    fit->rows += (int)ratios->len;
    return true;
}

/* The share that products of a dtype reach; NULL without one. */
static double *product_share(MtfKernelRates *rates, const char *dtype) {
    for (int i = 0; i < rates->shares; i++)
        if (strcmp(rates->share[i].dtype, dtype) == 0)
            return &rates->share[i].value;
    return NULL;
}

static bool fit_products(const Sweep *sweep, MtfSweepFit *fit, GError **error) {
    double *share = product_share(&sweep->machine->kernels, sweep->name);
    return scale_shares(sweep, product_seconds, 3, &share, 1, fit, error);
}

static bool fit_attention(const Sweep *sweep, MtfSweepFit *fit, GError **error) {
    MtfHeadTable *heads = &sweep->machine->kernels.heads;
    double *forward[MTF_HEADS_MAX], *backward[MTF_HEADS_MAX];
    for (int i = 0; i < heads->count; i++) {
        forward[i] = &heads->row[i].forward;
        backward[i] = &heads->row[i].backward;
    }
    return scale_shares(sweep, attention_seconds, 4, forward, heads->count, fit, error) &&
           scale_shares(sweep, attention_seconds, 5, backward, heads->count, fit, error);
}

/* By passes so large that their start is less than a tenth, where there are any. */
static bool fit_passes(const Sweep *sweep, MtfSweepFit *fit, GError **error) {
    MtfKernelRates *rates = &sweep->machine->kernels;
    double *share = &rates->sweep[mtf_sweep_from_name(sweep->name)];
    g_autoptr(GArray) large = g_array_new(FALSE, FALSE, sizeof(SweepLine));
    for (guint i = 0; i < sweep->lines->len; i++) {
        const SweepLine *line = &g_array_index(sweep->lines, SweepLine, i);
        if (line->value[0] >= 10 * rates->half_bytes)
            g_array_append_val(large, *line);
    }
    Sweep some = *sweep;
    some.lines = large->len > 0 ? large : sweep->lines;
    return scale_shares(&some, pass_seconds, 1, &share, 1, fit, error);
}

static const struct {
    int columns;
    bool (*fit)(const Sweep *sweep, MtfSweepFit *fit, GError **error);
} kinds[MTF_SWEEP_KINDS] = {
    [MTF_SWEEP_PRODUCTS] = { 4, fit_products },
    [MTF_SWEEP_ATTENTION] = { 6, fit_attention },
    [MTF_SWEEP_PASSES] = { 2, fit_passes },
};

/* Whether the machine has a share of what the sweep measures. */
static bool check_name(MtfSweepKind kind, const char *name, MtfMachine *machine, GError **error) {
    if (kind == MTF_SWEEP_PASSES)
        return (machine->kernels.known && mtf_sweep_from_name(name) < MTF_SWEEPS) ||
               mtf_input_error(error,
                               "machine %s has no passes \"%s\" over memory (elementwise, rows, "
                               "update, gather)",
                               machine->name, name);
    return product_share(&machine->kernels, name) != NULL ||
           mtf_input_error(error, "machine %s has no products of \"%s\"", machine->name, name);
}

bool mtf_sweep_fit(MtfSweepKind kind, const char *argument, MtfMachine *machine, MtfSweepFit *fit,
                   GError **error) {
    g_auto(GStrv) parts = split_argument(argument, error);
    if (parts == NULL || !check_name(kind, parts[0], machine, error))
        return false;
    g_autoptr(GArray) lines = read_sweep(parts[1], kinds[kind].columns, error);
    Sweep sweep = { parts[1], parts[0], lines, machine };
    return lines != NULL && kinds[kind].fit(&sweep, fit, error);
}
