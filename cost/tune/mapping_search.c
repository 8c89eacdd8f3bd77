// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/mapping_search.h"

#include <string.h>

typedef struct {
    const MtfMachine *machine;
    const MtfCollectiveTraffic *traffic;
    int count;
    int64_t limit;
    bool has_neighbors;                  /* permutes or halos in the traffic */
    MtfMeshMap trial;                    /* its pieces are dealt from physical axis 0 on */
    int64_t left[MTF_MAPPING_AXES_MAX];  /* what each mesh axis still lacks */
    int start[MTF_MAPPING_AXES_MAX + 1]; /* each physical axis' first piece in `trial` */
    MtfMapping best;
    MtfMappingSearch result;
    GHashTable *known; /* bytes of (traffic, network) to seconds: most mappings share groups */
} Search;

double mtf_traffic_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                           const MtfCollectiveTraffic *traffic, int count) {
    double seconds = 0;
    for (int i = 0; i < count; i++)
        seconds +=
            traffic[i].calls * mtf_collective_seconds(machine, map, traffic[i].kind,
                                                      traffic[i].mesh_axes_mask, traffic[i].bytes);
    return seconds;
}

/* Pieces by mesh axis; within one, in the order of physical axes, slowest stride first. */
static int by_mesh_axis(const void *a, const void *b) {
    const MtfMappingPiece *x = a, *y = b;
    if (x->mesh_axis != y->mesh_axis)
        return x->mesh_axis - y->mesh_axis;
    if (x->physical_axis != y->physical_axis)
        return x->physical_axis - y->physical_axis;
    return (x->stride < y->stride) - (x->stride > y->stride);
}

static MtfMapping sorted_mapping(const MtfMapping *dealt) {
    MtfMapping mapping = *dealt;
    qsort(mapping.piece, (size_t)mapping.pieces, sizeof mapping.piece[0], by_mesh_axis);
    return mapping;
}

static int first_on_link(const MtfNetwork *network, int d) {
    int first = 0;
    while (network->axis[first].link != network->axis[d].link)
        first++;
    return first;
}

static double known_seconds(Search *search, const MtfMeshMap *map, int i) {
    struct {
        int64_t traffic, axes, snake;
        MtfNetworkAxis axis[MTF_NETWORK_AXES_MAX];
    } key;
    memset(&key, 0, sizeof key);
    MtfNetwork group = mtf_mesh_map_group(map, search->traffic[i].mesh_axes_mask);
    key.traffic = i;
    key.axes = group.axes;
    key.snake = map->mapping.snake;
    for (int d = 0; d < group.axes; d++) {
        key.axis[d].size = group.axis[d].size;
        key.axis[d].wrap = group.axis[d].wrap;
        key.axis[d].link = first_on_link(&group, d);
        key.axis[d].bandwidth = group.axis[d].bandwidth;
        key.axis[d].latency = group.axis[d].latency;
    }
    g_autoptr(GBytes) bytes = g_bytes_new(&key, sizeof key);
    double *seconds = g_hash_table_lookup(search->known, bytes);
    if (seconds == NULL) {
        seconds = g_new(double, 1);
        *seconds = mtf_traffic_seconds(search->machine, map, &search->traffic[i], 1);
        g_hash_table_insert(search->known, g_bytes_ref(bytes), seconds);
    }
    return *seconds;
}

static void consider_numbered(Search *search, const MtfMeshMap *map) {
    double seconds = 0;
    for (int i = 0; i < search->count && seconds < search->result.seconds; i++)
        seconds += known_seconds(search, map, i);
    search->result.candidates++;
    if (seconds >= search->result.seconds)
        return;
    search->result.seconds = seconds;
    search->best = map->mapping;
}

/* Numbering along a snake matters to neighbours only. */
static void consider(Search *search) {
    MtfMeshMap map = { .slice = search->trial.slice };
    map.mapping = sorted_mapping(&search->trial.mapping);
    consider_numbered(search, &map);
    if (!search->has_neighbors)
        return;
    map.mapping.snake = (1U << map.mapping.mesh_axes) - 1;
    consider_numbered(search, &map);
}

static bool axes_are_alike(const MtfNetwork *slice, int p, int q) {
    const MtfNetworkAxis *a = &slice->axis[p], *b = &slice->axis[q];
    return !slice->switched && a->size == b->size && a->wrap == b->wrap &&
           a->bandwidth == b->bandwidth && a->latency == b->latency;
}

/* Compares the pieces dealt on physical axes p - 1 and p; of two alike axes the first must not come
 * after the second. */
static bool is_in_order(const Search *search, int p) {
    const MtfMappingPiece *piece = search->trial.mapping.piece;
    if (p == 0 || !axes_are_alike(&search->trial.slice, p - 1, p))
        return true;
    int first = search->start[p - 1], second = search->start[p], end = search->start[p + 1];
    for (int i = 0; first + i < second && second + i < end; i++) {
        const MtfMappingPiece *a = &piece[first + i], *b = &piece[second + i];
        if (a->mesh_axis != b->mesh_axis)
            return a->mesh_axis < b->mesh_axis;
        if (a->size != b->size)
            return a->size > b->size;
    }
    return true;
}

static void assign_axis(Search *search, int p, int64_t stride);

/* Physical axis p is dealt; goes on with the next. */
static void finish_axis(Search *search, int p) {
    search->start[p + 1] = search->trial.mapping.pieces;
    if (!is_in_order(search, p))
        return;
    if (p + 1 == search->trial.slice.axes)
        consider(search);
    else
        assign_axis(search, p + 1, 1);
}

/* Deals the next piece of physical axis p, from `stride` on, to each mesh axis that can use it; one
 * mesh axis never gets two pieces in a row, which would be one. */
static void assign_axis(Search *search, int p, int64_t stride) {
    MtfMapping *mapping = &search->trial.mapping;
    int64_t rest = search->trial.slice.axis[p].size / stride;
    if (search->result.candidates >= search->limit) {
        search->result.exhaustive = false;
        return;
    }
    if (rest == 1) {
        finish_axis(search, p);
        return;
    }
    int before =
        mapping->pieces > search->start[p] ? mapping->piece[mapping->pieces - 1].mesh_axis : -1;
    for (int m = 0; m < mapping->mesh_axes; m++) {
        for (int64_t size = rest; size > 1 && m != before; size--) {
            if (rest % size != 0 || search->left[m] % size != 0)
                continue;
            mapping->piece[mapping->pieces++] = (MtfMappingPiece){ m, p, size, stride };
            search->left[m] /= size;
            assign_axis(search, p, stride * size);
            search->left[m] *= size;
            mapping->pieces--;
        }
    }
}

MtfMappingSearch mtf_mapping_search(const MtfMachine *machine, MtfMeshMap *map,
                                    const MtfCollectiveTraffic *traffic, int count, int64_t limit) {
    Search search = { .machine = machine,
                      .traffic = traffic,
                      .count = count,
                      .limit = limit,
                      .trial = *map,
                      .best = map->mapping };
    search.result.exhaustive = true;
    search.result.lexicographic = mtf_traffic_seconds(machine, map, traffic, count);
    search.result.seconds = search.result.lexicographic;
    for (int i = 0; i < count; i++)
        search.has_neighbors |= traffic[i].kind == MTF_PERMUTE || traffic[i].kind == MTF_HALO;
    search.trial.mapping.pieces = 0;
    search.trial.mapping.snake = 0;
    memcpy(search.left, map->mapping.mesh_sizes, sizeof search.left);
    search.known =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, g_free);
    assign_axis(&search, 0, 1);
    g_hash_table_unref(search.known);
    map->mapping = search.best;
    return search.result;
}
