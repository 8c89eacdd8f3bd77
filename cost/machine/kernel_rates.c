// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/kernel_rates.h"

#include "layouts/base/json_writer.h"

#include <math.h>
#include <string.h>

static const char *const sweep_names[MTF_SWEEPS] = { "elementwise", "rows", "update", "gather" };

MtfSweep mtf_sweep_from_name(const char *name) {
    int i = 0;
    while (i < MTF_SWEEPS && strcmp(sweep_names[i], name) != 0)
        i++;
    return (MtfSweep)i;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A row of `count` numbers above 0, or not below it from `free_from` on. */
static bool read_numbers(const MtfJson *row, int count, int free_from, double *numbers,
                         GError **error) {
    MtfJson child;
    int i = 0;
    g_autofree char *expected = g_strdup_printf("%d numbers are expected here", count);
    if (!mtf_figure_list(row, count, expected, numbers, error))
        return false;
    for (bool more = mtf_json_first(row, &child); more; more = mtf_json_next(&child), i++)
        if (numbers[i] < 0 || (i < free_from && numbers[i] <= 0))
            return mtf_json_fail(&child, error, "%g is too small", numbers[i]);
    return true;
}

static bool open_list(const MtfJson *object, const char *key, int most, MtfJson *list,
                      GError **error) {
    if (!mtf_json_get_array(object, key, list, error))
        return false;
    int length = mtf_json_length(list);
    return (length >= 1 && length <= most) ||
           mtf_json_fail(list, error, "%d rows are not between 1 and %d", length, most);
}

static bool read_tiles(const MtfJson *object, MtfKernelRates *rates, GError **error) {
    MtfJson list, row;
    double t[4];
    if (!open_list(object, "tiles", MTF_TILES_MAX, &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &row); more; more = mtf_json_next(&row)) {
        if (!read_numbers(&row, 4, 3, t, error))
            return false;
        rates->tile[rates->tiles++] = (MtfTile){ t[0], t[1], t[2], t[3] };
    }
    return true;
}

static bool read_heads(const MtfJson *object, const char *key, MtfHeadTable *table,
                       GError **error) {
    MtfJson list, row;
    double h[3], before = 0;
    if (!open_list(object, key, MTF_HEADS_MAX, &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &row); more; more = mtf_json_next(&row)) {
        if (!read_numbers(&row, 3, 3, h, error))
            return false;
        if (h[0] <= before)
            return mtf_json_fail(&row, error, "the features must rise from row to row");
        before = h[0];
        table->row[table->count++] = (MtfHeadShare){ h[0], h[1], h[2] };
    }
    return true;
}

static bool read_sweeps(const MtfJson *object, MtfKernelRates *rates, GError **error) {
    static const char *const keys[] = { "elementwise", "rows", "update", "gather", NULL };
    MtfJson sweeps;
    if (!mtf_json_get(object, "sweeps", &sweeps, error) || !mtf_json_keys(&sweeps, keys, error))
        return false;
    for (int i = 0; i < MTF_SWEEPS; i++)
        if (!mtf_figure_above_zero(&sweeps, sweep_names[i], &rates->sweep[i], error))
            return false;
    return true;
}

bool mtf_kernel_rates_read(const MtfJson *machine, MtfKernelRates *rates, GError **error) {
    static const char *const keys[] = { "launch",    "units",       "products",
                                        "tiles",     "attention",   "attention_portable",
                                        "sweeps",    "half_length", "half_bytes",
                                        "unaligned", NULL };
    MtfJson object, portable, unaligned;
    if (!mtf_json_find(machine, "kernels", &object))
        return true;
    rates->known = true;
    return mtf_json_keys(&object, keys, error) &&
           mtf_figure_not_negative(&object, "launch", &rates->launch_seconds, error) &&
           mtf_figure_above_zero(&object, "units", &rates->units, error) &&
           (rates->shares = mtf_figures_of_dtypes(&object, "products", rates->share,
                                                  MTF_PRODUCT_SHARES_MAX, error)) > 0 &&
           read_tiles(&object, rates, error) &&
           read_heads(&object, "attention", &rates->heads, error) &&
           (!mtf_json_find(&object, "attention_portable", &portable) ||
            read_heads(&object, "attention_portable", &rates->portable, error)) &&
           mtf_figure_not_negative(&object, "half_length", &rates->half_length, error) &&
           read_sweeps(&object, rates, error) &&
           mtf_figure_not_negative(&object, "half_bytes", &rates->half_bytes, error) &&
           (!mtf_json_find(&object, "unaligned", &unaligned) ||
            mtf_figure_above_zero(&object, "unaligned", &rates->unaligned, error));
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_row(cJSON *list, const double *numbers, int count) {
    cJSON *row = cJSON_CreateArray();
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(row, mtf_json_new_number(numbers[i]));
    cJSON_AddItemToArray(list, row);
}

static void add_heads(cJSON *object, const char *key, const MtfHeadTable *table) {
    cJSON *heads = cJSON_AddArrayToObject(object, key);
    for (int i = 0; i < table->count; i++) {
        const MtfHeadShare *h = &table->row[i];
        add_row(heads, (double[]){ h->features, h->forward, h->backward }, 3);
    }
}

cJSON *mtf_kernel_rates_to_json(const MtfKernelRates *rates) {
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, "launch", rates->launch_seconds);
    mtf_json_add_number(object, "units", rates->units);
    cJSON *shares = cJSON_AddObjectToObject(object, "products");
    for (int i = 0; i < rates->shares; i++)
        mtf_json_add_number(shares, rates->share[i].dtype, rates->share[i].value);
    cJSON *tiles = cJSON_AddArrayToObject(object, "tiles");
    for (int i = 0; i < rates->tiles; i++) {
        const MtfTile *t = &rates->tile[i];
        add_row(tiles, (double[]){ t->rows, t->columns, t->share, t->ramp }, 4);
    }
    add_heads(object, "attention", &rates->heads);
    if (rates->portable.count > 0)
        add_heads(object, "attention_portable", &rates->portable);
    mtf_json_add_number(object, "half_length", rates->half_length);
    cJSON *sweeps = cJSON_AddObjectToObject(object, "sweeps");
    for (int i = 0; i < MTF_SWEEPS; i++)
        mtf_json_add_number(sweeps, sweep_names[i], rates->sweep[i]);
    mtf_json_add_number(object, "half_bytes", rates->half_bytes);
    if (rates->unaligned > 0)
        mtf_json_add_number(object, "unaligned", rates->unaligned);
    return object;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* The share of the dtype, or of the first that is known. */
static double share_of(const MtfKernelRates *rates, const char *dtype) {
    for (int i = 0; i < rates->shares; i++)
        if (strcmp(rates->share[i].dtype, dtype) == 0)
            return rates->share[i].value;
    return rates->share[0].value;
}

/* waves x 2 rows columns (k / parts + ramp) / a unit's rate. Up to one wave the tiles are counted
 * whole; of many waves the last is rarely alone, since the next kernel's tiles move up: half of its
 * empty part is counted. */
static double tile_seconds(const MtfKernelRates *rates, const MtfTile *tile, double tiles, double k,
                           double unit) {
    double waves = tiles / rates->units, whole = ceil(waves);
    double counted = waves <= 1 ? 1 : 0.5 * (waves + whole);
    return counted * 2 * tile->rows * tile->columns * (k + tile->ramp) / tile->share / unit;
}

/* By one tile, at `unit` flop/s of a unit. Where tiles leave units idle, as those of a weight's gradient
 * do, the sum over k is cut into the parts that take least, whose results, of four bytes, a second
 * kernel adds: a / parts + b parts. */
static double tiled_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks, const MtfTile *tile,
                            const MtfProductShape *shape, double unit) {
    bool grouped = (shape->traits & MTF_PRODUCT_GROUPED) != 0;
    double rows = grouped ? shape->m / tile->rows + 0.5 : ceil(shape->m / tile->rows);
    double tiles = shape->batch * rows * ceil(shape->n / tile->columns);
    double seconds = tile_seconds(rates, tile, tiles, shape->k, unit);
    double summing = 2 * tile->rows * tile->columns * shape->k / tile->share / unit;
    double adding = 8 * shape->batch * shape->m * shape->n /
                    (rates->sweep[MTF_SWEEP_ELEMENTWISE] * peaks->bandwidth);
    double parts = floor(fmin(rates->units / tiles, sqrt(summing / adding)));
    if (grouped || parts < 2)
        return seconds;
    return fmin(seconds, tile_seconds(rates, tile, tiles * parts, shape->k / parts, unit) +
                             adding * parts + rates->launch_seconds);
}

bool mtf_rows_are_unaligned(double first, double second, double bytes) {
    return bytes < 4 && (fmod(first * bytes, 16) != 0 || fmod(second * bytes, 16) != 0);
}

double mtf_product_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks,
                           const MtfProductShape *shape) {
    double best = INFINITY, m = shape->m, n = shape->n, k = shape->k;
    if (shape->batch <= 0 || m <= 0 || n <= 0 || k <= 0)
        return 0;
    int tiles = (shape->traits & MTF_PRODUCT_GROUPED) != 0 ? 1 : rates->tiles;
    double share = share_of(rates, peaks->dtype);
    if ((shape->traits & MTF_PRODUCT_UNALIGNED) != 0 && rates->unaligned > 0)
        share = fmin(share, rates->unaligned);
    double unit = share * peaks->flops / rates->units;
    for (int i = 0; i < tiles; i++)
        best = fmin(best, tiled_seconds(rates, peaks, &rates->tile[i], shape, unit));
    double bytes = shape->batch * shape->bytes * (m * k + k * n + m * n);
    return fmax(best, bytes / (rates->sweep[MTF_SWEEP_ELEMENTWISE] * peaks->bandwidth));
}

/* Between measured widths of heads linear, beyond them the nearest. */
static double head_share(const MtfHeadTable *table, double features, bool backward) {
    const MtfHeadShare *low = &table->row[0], *high = low;
    for (int i = 0; i < table->count && high->features < features; i++) {
        low = high;
        high = &table->row[i];
    }
    double a = backward ? low->backward : low->forward;
    double b = backward ? high->backward : high->forward;
    if (high->features <= low->features || features <= low->features)
        return a;
    return a + (b - a) * fmin((features - low->features) / (high->features - low->features), 1);
}

double mtf_attention_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks,
                             const MtfAttentionShape *shape) {
    bool portable = shape->portable && rates->portable.count > 0;
    const MtfHeadTable *table = portable ? &rates->portable : &rates->heads;
    if (shape->flops <= 0)
        return 0;
    double share = head_share(table, shape->features, shape->backward);
    return shape->flops / peaks->flops / share * (1 + rates->half_length / shape->length);
}

double mtf_sweep_seconds(const MtfKernelRates *rates, const MtfPeaks *peaks, MtfSweep sweep,
                         double bytes) {
    if (bytes <= 0)
        return 0;
    return (bytes + rates->half_bytes) / (rates->sweep[sweep] * peaks->bandwidth);
}
