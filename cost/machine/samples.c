// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/samples.h"

#include "layouts/base/quantile.h"
#include <string.h>

static void clear_sample(gpointer data) {
    g_free(((MtfSample *)data)->name);
}

MtfSamples *mtf_samples_new(void) {
    MtfSamples *samples = g_new(MtfSamples, 1);
    samples->list = g_array_new(FALSE, FALSE, sizeof(MtfSample));
    g_array_set_clear_func(samples->list, clear_sample);
    return samples;
}

void mtf_samples_free(MtfSamples *samples) {
    if (samples == NULL)
        return;
    g_array_unref(samples->list);
    g_free(samples);
}

void mtf_samples_add(MtfSamples *samples, const char *name, double x, double seconds) {
    MtfSample sample = { .name = g_strdup(name), .x = x, .seconds = seconds };
    g_array_append_val(samples->list, sample);
}

/* A run of equal values stands for the mean of `size` samples. */
typedef struct {
    double mean;
    int size;
} Pool;

void mtf_samples_make_rising(double *y, int count) {
    g_autofree Pool *pool = g_new(Pool, (gsize)count);
    int pools = 0;
    for (int i = 0; i < count; i++) {
        pool[pools++] = (Pool){ y[i], 1 };
        while (pools > 1 && pool[pools - 2].mean > pool[pools - 1].mean) {
            Pool last = pool[--pools], *into = &pool[pools - 1];
            into->mean =
                (into->mean * into->size + last.mean * last.size) / (into->size + last.size);
            into->size += last.size;
        }
    }
    for (int p = 0, i = 0; p < pools; p++)
        for (int k = 0; k < pool[p].size; k++)
            y[i++] = pool[p].mean;
}

static int compare_samples(const void *left, const void *right) {
    const MtfSample *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names != 0 ? names : (a->x > b->x) - (a->x < b->x);
}

/* To four digits: more would be noise, and make files hard to read. */
static double rounded(double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    return g_ascii_strtod(g_ascii_formatd(text, sizeof text, "%.4g", value), NULL);
}

/* The first quarter of the seconds of samples of one table with one x. */
static double first_quarter(const MtfSample *samples, int count) {
    g_autofree double *seconds = g_new(double, (gsize)count);
    for (int i = 0; i < count; i++)
        seconds[i] = samples[i].seconds;
    return mtf_first_quarter(seconds, count);
}

/* Adds the table of samples [first, end), sorted by x. */
static void fit_table(const MtfSample *samples, int first, int end, MtfMachine *machine) {
    g_autofree double *x = g_new(double, (gsize)(end - first));
    g_autofree double *y = g_new(double, (gsize)(end - first));
    int points = 0;
    for (int i = first, same = 0; i < end; i += same) {
        for (same = 1; i + same < end && samples[i + same].x == samples[i].x;)
            same++;
        x[points] = samples[i].x;
        y[points++] = first_quarter(&samples[i], same);
    }
    mtf_samples_make_rising(y, points);
    for (int i = 0; i < points; i++)
        y[i] = rounded(y[i]);
    mtf_machine_add_curve(machine, samples[first].name, points, x, y);
}

void mtf_samples_fit(const MtfSamples *samples, MtfMachine *machine) {
    int count = (int)samples->list->len;
    g_autofree MtfSample *sorted = g_memdup2(samples->list->data, sizeof(MtfSample) * (gsize)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_samples);
    for (int i = 0; i < count;) {
        int end = i + 1;
        while (end < count && strcmp(sorted[end].name, sorted[i].name) == 0)
            end++;
        fit_table(sorted, i, end, machine);
        i = end;
    }
}
