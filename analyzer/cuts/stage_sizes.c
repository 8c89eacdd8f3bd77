// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/stage_sizes.h"

#include "layouts/base/error.h"

#include <inttypes.h>

/* Sizes of a stage, from the largest down by halves. */
#define MOST_SIZES 7

static bool is_slice(const MtfCutRequest *request, int64_t size) {
    MtfNetwork slice;
    return mtf_machine_slice(request->machine, size, &slice, NULL);
}

/* In its place, once. */
static void add_size(GArray *sizes, int64_t size) {
    guint at = 0;
    while (at < sizes->len && g_array_index(sizes, int64_t, at) < size)
        at++;
    if (at == sizes->len || g_array_index(sizes, int64_t, at) != size)
        g_array_insert_val(sizes, at, size);
}

/* Halves of the devices down to what `units` units can use; and one, with which slices add up to any number. */
static void list_any(const MtfCutRequest *request, int units, GArray *sizes) {
    int64_t size = request->devices;
    if (!is_slice(request, size))
        add_size(sizes, 1);
    for (int i = 0; i < MOST_SIZES; i++) {
        add_size(sizes, size);
        if (size % 2 != 0 || request->devices / size >= units)
            break;
        size /= 2;
    }
}

/* What each stage has if all are equal, and half and twice as many where others may have the
 * rest. */
static void list_equal(const MtfCutRequest *request, int64_t most, GArray *sizes) {
    int64_t share = request->devices / request->stages;
    bool only = request->megatron || 2 * share > most;
    if (!only && share % 2 == 0)
        add_size(sizes, share / 2);
    add_size(sizes, share);
    if (!only)
        add_size(sizes, 2 * share);
}

/* One device, and halves of all of them near an equal share. */
static void list_unequal(const MtfCutRequest *request, int64_t most, GArray *sizes) {
    int64_t share = request->devices / request->stages;
    for (int64_t size = request->devices; size > 1; size = size % 2 == 0 ? size / 2 : 0)
        if (size <= MIN(most, 4 * share) && 4 * size >= share)
            add_size(sizes, size);
    add_size(sizes, 1);
}

/* The slices next to a size that no slice has. */
static void add_neighbours(const MtfCutRequest *request, int64_t size, int64_t most,
                           GArray *sizes) {
    int64_t below = size - 1, above = size + 1;
    while (below > 0 && !is_slice(request, below))
        below--;
    while (above <= most && !is_slice(request, above))
        above++;
    if (below > 0)
        add_size(sizes, below);
    if (above <= most)
        add_size(sizes, above);
}

static int64_t most_devices(const MtfCutRequest *request) {
    return request->devices - MAX(0, request->stages - 1);
}

/* sums[n]: whether `stages` of the sizes have n devices, n <= most. The caller frees it. */
static bool *sums_of(const GArray *sizes, int stages, int64_t most) {
    bool *sums = g_new0(bool, most + 1);
    sums[0] = true;
    for (int s = 0; s < stages; s++) {
        bool *next = g_new0(bool, most + 1);
        for (int64_t n = 0; n <= most; n++)
            for (guint i = 0; sums[n] && i < sizes->len; i++) {
                int64_t sum = n + g_array_index(sizes, int64_t, i);
                if (sum <= most)
                    next[sum] = true;
            }
        g_free(sums);
        sums = next;
    }
    return sums;
}

static bool adds_up(const MtfCutRequest *request, const GArray *sizes) {
    g_autofree bool *sums = sums_of(sizes, request->stages, request->devices);
    return sums[request->devices];
}

/* A size, or where there is no such slice those next to it. */
static void add_slice(const MtfCutRequest *request, int64_t size, GArray *sizes) {
    if (is_slice(request, size))
        add_size(sizes, size);
    else if (!request->megatron)
        add_neighbours(request, size, most_devices(request), sizes);
}

GArray *mtf_stage_sizes_new(const MtfCutRequest *request, int units) {
    g_autoptr(GArray) wanted = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GArray) there = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t most = most_devices(request);
    if (request->mesh != NULL) {
        add_size(there, mtf_mesh_size(request->mesh));
        return g_steal_pointer(&there);
    }
    if (request->stages == 0)
        list_any(request, units, wanted);
    else if (request->devices % request->stages == 0)
        list_equal(request, most, wanted);
    else
        list_unequal(request, most, wanted);
    for (guint i = 0; i < wanted->len; i++)
        add_slice(request, g_array_index(wanted, int64_t, i), there);
    if (request->stages > 0 && request->devices >= request->stages && !adds_up(request, there)) {
        add_slice(request, request->devices / request->stages, there);
        add_slice(request, request->devices / request->stages + 1, there);
    }
    return there->len > 0 ? g_steal_pointer(&there) : g_steal_pointer(&wanted);
}

static bool refuse(const MtfCutRequest *request, const GArray *sizes, const bool *sums,
                   int64_t most, GError **error) {
    g_autoptr(GString) text = g_string_new(NULL);
    int64_t below = request->devices;
    while (below > 0 && !sums[below])
        below--;
    int64_t above = request->devices;
    while (above < most && !sums[above])
        above++;
    for (guint i = 0; i < sizes->len; i++)
        g_string_append_printf(text, "%s%" PRId64,
                               i == 0               ? ""
                               : i + 1 < sizes->len ? ", "
                                                    : " and ",
                               g_array_index(sizes, int64_t, i));
    g_autoptr(GString) fits = g_string_new(NULL);
    if (below > 0)
        g_string_append_printf(fits, "%" PRId64, below);
    if (sums[above])
        g_string_append_printf(fits, "%s%" PRId64, below > 0 ? " or " : "", above);
    return mtf_input_error(
        error,
        "machine \"%s\" has slices of %s devices for stages of such a size, and no %d of them "
        "have %" PRId64 ": give %s devices",
        request->machine->name, text->str, request->stages, request->devices, fits->str);
}

bool mtf_stage_sizes_check(const MtfCutRequest *request, const GArray *sizes, GError **error) {
    if (request->stages == 0)
        return true;
    if (request->devices < request->stages)
        return mtf_input_error(error, "%d stages need %d devices or more, not %" PRId64,
                               request->stages, request->stages, request->devices);
    int64_t largest = g_array_index(sizes, int64_t, sizes->len - 1);
    int64_t most = MAX(request->devices, largest * request->stages);
    g_autofree bool *sums = sums_of(sizes, request->stages, most);
    return sums[request->devices] || refuse(request, sizes, sums, most, error);
}
