// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/link_loads.h"

/* ---- A torus ------------------------------------------------------------------------------- */

/* How often groups of one stretch pass the link behind place `i`: members every `stride` places, m
 * of them, blocks of stride * m side by side. A ring that spans the axis passes every link `stride`
 * times; a line is passed by those of the `stride` groups of its block that have begun before the
 * link and end behind it. */
static int64_t passes(const MtfMappingPiece *stretch, bool ring, int64_t i) {
    int64_t stride = stretch->stride, block = stride * stretch->size;
    if (ring)
        return stride;
    int64_t at = i % block, reach = (stretch->size - 1) * stride, count = 0;
    for (int64_t first = 0; first < stride; first++)
        count += first <= at && at < first + reach;
    return count;
}

/* The stretch's hops carry `bytes` a rank and direction. */
static void load_stretch(MtfLinkAxis *axis, const MtfMappingPiece *stretch, double bytes) {
    bool ring = axis->wrap && stretch->stride * stretch->size == axis->size;
    int64_t hops = ring ? stretch->size : stretch->size - 1;
    double each = bytes * (double)stretch->size / (double)hops;
    for (int64_t i = 0; i < axis->size; i++)
        axis->bytes[i] += each * (double)passes(stretch, ring, i);
}

static int compare_pieces(const void *left, const void *right) {
    const MtfMappingPiece *a = left, *b = right;
    if (a->physical_axis != b->physical_axis)
        return a->physical_axis - b->physical_axis;
    return (a->stride > b->stride) - (a->stride < b->stride);
}

/* Lengthens the last stretch where the piece goes on from it, else begins another. */
static void add_piece(GArray *stretches, const MtfMappingPiece *piece) {
    MtfMappingPiece *last =
        stretches->len > 0 ? &g_array_index(stretches, MtfMappingPiece, stretches->len - 1) : NULL;
    if (last != NULL && last->physical_axis == piece->physical_axis &&
        last->stride * last->size == piece->stride)
        last->size *= piece->size;
    else
        g_array_append_val(stretches, *piece);
}

/* The group's pieces of physical axes; those that continue one another are one stretch. */
static GArray *stretches_of(const MtfMapping *mapping, unsigned axes) {
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(MtfMappingPiece));
    GArray *stretches = g_array_new(FALSE, FALSE, sizeof(MtfMappingPiece));
    for (int i = 0; i < mapping->pieces; i++)
        if (mapping->piece[i].size > 1 && (axes >> mapping->piece[i].mesh_axis & 1) != 0)
            g_array_append_val(pieces, mapping->piece[i]);
    g_array_sort(pieces, compare_pieces);
    for (guint i = 0; i < pieces->len; i++)
        add_piece(stretches, &g_array_index(pieces, MtfMappingPiece, i));
    return stretches;
}

static void load_torus(MtfLinkLoads *loads, const MtfMeshMap *map, const MtfTrafficRow *row) {
    g_autoptr(GArray) stretches = stretches_of(&map->mapping, row->axes);
    double all = 0;
    for (guint i = 0; i < stretches->len; i++)
        all += loads->axis[g_array_index(stretches, MtfMappingPiece, i).physical_axis].bandwidth;
    for (guint i = 0; i < stretches->len; i++) {
        const MtfMappingPiece *stretch = &g_array_index(stretches, MtfMappingPiece, i);
        MtfLinkAxis *axis = &loads->axis[stretch->physical_axis];
        load_stretch(axis, stretch, axis->bandwidth / all * row->link_bytes / 2);
    }
}

/* ---- Switches ------------------------------------------------------------------------------ */

/* Members of a group within one child of level p - 1: those that differ in levels from `p` on. */
static double members_within(const MtfMeshMap *map, unsigned axes, int p) {
    double members = 1;
    for (int i = 0; i < map->mapping.pieces; i++) {
        const MtfMappingPiece *piece = &map->mapping.piece[i];
        if (piece->physical_axis >= p && (axes >> piece->mesh_axis & 1) != 0)
            members *= (double)piece->size;
    }
    return members;
}

/* What leaves a child of level `p` that holds `inside` of the `ranks` of a group: in a reduce-scatter or
 * an allgather all but its own share, once; in an allreduce twice that; in an all-to-all what its members
 * have for others. */
static double leaving(const MtfTrafficRow *row, double inside, double ranks) {
    double outside = 1 - inside / ranks;
    const MtfReshardRow *kind = mtf_reshard_row(row->kind);
    double times = kind->exchanges ? inside : kind->reduces && kind->gathers ? 2 : 1;
    return times * outside * (double)row->bytes;
}

static void load_switches(MtfLinkLoads *loads, const MtfMeshMap *map, const MtfTrafficRow *row) {
    double ranks = members_within(map, row->axes, 0), devices = 1;
    for (int p = map->slice.axes - 1; p >= 0; p--) {
        double inside = members_within(map, row->axes, p + 1);
        loads->axis[p].bytes[0] += devices / inside * leaving(row, inside, ranks);
        devices *= (double)map->slice.axis[p].size;
    }
}

/* ---- Entry --------------------------------------------------------------------------------- */

static void find_busiest(MtfLinkLoads *loads) {
    for (int p = 0; p < loads->axes; p++)
        for (int64_t i = 0; i < (loads->switched ? 1 : loads->axis[p].size); i++)
            loads->axis[p].busiest = MAX(loads->axis[p].busiest, loads->axis[p].bytes[i]);
}

MtfLinkLoads *mtf_link_loads_new(const MtfStepFacts *facts) {
    const MtfMeshMap *map = &facts->pricer.map;
    MtfLinkLoads *loads = g_new0(MtfLinkLoads, 1);
    loads->switched = map->slice.switched;
    loads->axes = map->slice.axes;
    loads->step_seconds = (double)facts->schedule->nanoseconds / 1e9;
    for (int p = 0; p < loads->axes; p++) {
        const MtfNetworkAxis *axis = &map->slice.axis[p];
        loads->axis[p] = (MtfLinkAxis){ axis->size, axis->wrap && !loads->switched, axis->bandwidth,
                                        g_new0(double, axis->size), 0 };
    }
    for (guint i = 0; i < facts->traffic->len; i++)
        (loads->switched ? load_switches : load_torus)(
            loads, map, &g_array_index(facts->traffic, MtfTrafficRow, i));
    find_busiest(loads);
    return loads;
}

void mtf_link_loads_free(MtfLinkLoads *loads) {
    if (loads == NULL)
        return;
    for (int p = 0; p < loads->axes; p++)
        g_free(loads->axis[p].bytes);
    g_free(loads);
}

double mtf_link_utilisation(const MtfLinkLoads *loads, int axis, double bytes) {
    double seconds = bytes / loads->axis[axis].bandwidth;
    return loads->step_seconds > 0 ? seconds / loads->step_seconds : 0;
}
