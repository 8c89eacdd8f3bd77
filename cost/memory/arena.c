// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/memory/arena.h"

#include "cost/memory/arena_places.h"
#include "layouts/base/error.h"

#include <stdlib.h>
#include <string.h>

/* A storage to be placed: live at instructions first..last. */
typedef struct {
    int buffer;
    int first, last;
    int64_t bytes; /* rounded up */
    int64_t offset;
} Storage;

static const MtfBuffer *buffer_at(const MtfProgram *program, int b) {
    return &g_array_index(program->buffers, MtfBuffer, b);
}

/* Whether buffer `b` owns bytes in the device's memory, or in the host's. */
static bool owns(const MtfProgram *program, int b, bool on_host) {
    const MtfBuffer *buffer = buffer_at(program, b);
    return buffer->storage == b && buffer->bytes > 0 &&
           mtf_buffer_is_on_host(program, b) == on_host;
}

static int last_instruction(const MtfProgram *program) {
    return MAX((int)program->instructions->len - 1, 0);
}

static Storage storage_of(const MtfProgram *program, int b) {
    const MtfBuffer *buffer = buffer_at(program, b);
    Storage storage = { .buffer = b, .bytes = mtf_buffer_aligned_bytes(buffer) };
    storage.first = buffer->persistent ? 0 : MAX(buffer->first, 0);
    storage.last = buffer->persistent
                       ? last_instruction(program)
                       : CLAMP(buffer->last, storage.first, last_instruction(program));
    return storage;
}

static bool holds_variable(const MtfProgram *program, int b) {
    int tensor = buffer_at(program, b)->tensor;
    return tensor >= 0 && mtf_graph_tensor(program->graph, tensor)->source == MTF_SOURCE_VARIABLE;
}

/* The storages of one memory (Storage): those that live throughout, which stack up to `floor`, and the rest. */
typedef struct {
    GArray *throughout, *passing;
    int64_t floor;
} Region;

static void region_clear(Region *region) {
    g_array_unref(region->throughout);
    g_array_unref(region->passing);
}

/* Adds the storages of variables, or all others. */
static void add_storages(const MtfProgram *program, bool on_host, bool variables, Region *region) {
    for (int b = 0; b < (int)program->buffers->len; b++) {
        if (!owns(program, b, on_host) || holds_variable(program, b) != variables)
            continue;
        Storage storage = storage_of(program, b);
        if (storage.first == 0 && storage.last == last_instruction(program)) {
            storage.offset = region->floor;
            region->floor += storage.bytes;
            g_array_append_val(region->throughout, storage);
        } else {
            g_array_append_val(region->passing, storage);
        }
    }
}

/* All storages of a memory. Those that live throughout stack up without gaps at the bottom, variables
 * below the rest, so that programs with the same variables have them at the same places. */
static Region region_of(const MtfProgram *program, bool on_host) {
    Region region = { g_array_new(FALSE, FALSE, sizeof(Storage)),
                      g_array_new(FALSE, FALSE, sizeof(Storage)), 0 };
    add_storages(program, on_host, true, &region);
    add_storages(program, on_host, false, &region);
    return region;
}

/* live[i]: rounded bytes of one memory live at instruction i. Free with g_free. */
static int64_t *live_bytes(const MtfProgram *program, bool on_host) {
    int n = last_instruction(program) + 1;
    int64_t *live = g_new0(int64_t, (gsize)n + 1);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        if (!owns(program, b, on_host))
            continue;
        Storage storage = storage_of(program, b);
        live[storage.first] += storage.bytes;
        live[storage.last + 1] -= storage.bytes;
    }
    for (int i = 1; i < n; i++)
        live[i] += live[i - 1];
    return live;
}

static int peak_instruction(const MtfProgram *program, const int64_t *live) {
    int peak = 0;
    for (int i = 1; i <= last_instruction(program); i++)
        if (live[i] > live[peak])
            peak = i;
    return peak;
}

/* No block of that memory is smaller. */
static int64_t lower_bound(const MtfProgram *program, bool on_host) {
    g_autofree int64_t *live = live_bytes(program, on_host);
    return live[peak_instruction(program, live)];
}

/* Greedy orders. Ties go by buffer, so that the result depends on the program alone. */

static int by_buffer(const Storage *a, const Storage *b) {
    return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static int largest_first(const void *left, const void *right) {
    const Storage *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    int a_life = a->last - a->first, b_life = b->last - b->first;
    return a_life != b_life ? b_life - a_life : by_buffer(a, b);
}

static int longest_first(const void *left, const void *right) {
    const Storage *a = left, *b = right;
    int a_life = a->last - a->first, b_life = b->last - b->first;
    return a_life != b_life ? b_life - a_life : largest_first(left, right);
}

static int widest_first(const void *left, const void *right) {
    const Storage *a = left, *b = right;
    double a_area = (double)a->bytes * (a->last - a->first + 1);
    double b_area = (double)b->bytes * (b->last - b->first + 1);
    if (a_area != b_area)
        return a_area < b_area ? 1 : -1;
    return by_buffer(a, b);
}

static int earliest_first(const void *left, const void *right) {
    const Storage *a = left, *b = right;
    return a->first != b->first ? a->first - b->first : largest_first(left, right);
}

/* Places the storages one after another above `floor`; returns the highest end. */
static int64_t place_all(Storage *storages, int n, int64_t floor) {
    int last = 0;
    for (int i = 0; i < n; i++)
        last = MAX(last, storages[i].last);
    g_autoptr(MtfArenaPlaces) places = mtf_arena_places_new(last, n);
    int64_t end = floor;
    for (int i = 0; i < n; i++) {
        Storage *storage = &storages[i];
        MtfLife life = { storage->first, storage->last };
        storage->offset = mtf_arena_places_find(places, life, storage->bytes, floor);
        mtf_arena_places_add(places, life, storage->offset, storage->bytes);
        end = MAX(end, storage->offset + storage->bytes);
    }
    return end;
}

/* Moves the storages that stick out above `bound` to the front, in their order: they were placed
 * too late. Returns whether that changes the order. */
static bool promote_highest(Storage *storages, int n, int64_t bound) {
    g_autofree Storage *old = g_memdup2(storages, (gsize)n * sizeof *storages);
    int next = 0;
    for (int i = 0; i < n; i++)
        if (old[i].offset + old[i].bytes > bound)
            storages[next++] = old[i];
    bool changed = false;
    for (int i = 0; i < next; i++)
        changed |= storages[i].buffer != old[i].buffer;
    for (int i = 0; i < n; i++)
        if (old[i].offset + old[i].bytes <= bound)
            storages[next++] = old[i];
    return changed;
}

/* A block that is being packed. */
typedef struct {
    int64_t *bytes;   /* of the smallest block found */
    int64_t *offsets; /* one a buffer of the program */
} Packing;

static void keep_if_smaller(const Packing *packing, const Storage *storages, int n, int64_t end) {
    if (end >= *packing->bytes)
        return;
    *packing->bytes = end;
    for (int i = 0; i < n; i++)
        packing->offsets[storages[i].buffer] = storages[i].offset;
}

/* Rounds of promotion an order is given; fewer where a round is expensive. */
static int rounds_for(int n) {
    return CLAMP((int)(INT64_C(20000000) / ((int64_t)n * n + 1)), 1, 12);
}

/* A result this small ends the packing: the bound, or nearer to it the less there is to place. Of
 * tens of thousands of storages, later orders seldom do better than the first. */
static int64_t small_enough(int n, int64_t bound) {
    return bound + (n > 10000 ? bound / 256 : n > 2000 ? bound / 1024 : 0);
}

static void try_order(const Packing *packing, Storage *storages, int n, int64_t floor,
                      int64_t bound, int64_t enough) {
    for (int round = rounds_for(n); round > 0 && *packing->bytes > enough; round--) {
        keep_if_smaller(packing, storages, n, place_all(storages, n, floor));
        if (!promote_highest(storages, n, bound))
            return;
    }
}

static void share_offsets(const MtfProgram *program, MtfArena *arena) {
    for (int b = 0; b < (int)program->buffers->len; b++)
        arena->offsets[b] = arena->offsets[buffer_at(program, b)->storage];
}

/* Packs one memory until its block has at most `enough` bytes, or is as small as it gets. */
static void pack_region(const MtfProgram *program, bool on_host, int64_t enough,
                        const Packing *packing) {
    static int (*const orders[])(const void *, const void *) = { largest_first, longest_first,
                                                                 widest_first, earliest_first };
    int64_t bound = lower_bound(program, on_host);
    Region region = region_of(program, on_host);
    for (guint i = 0; i < region.throughout->len; i++) {
        const Storage *storage = &g_array_index(region.throughout, Storage, i);
        packing->offsets[storage->buffer] = storage->offset;
    }
    Storage *passing = (Storage *)region.passing->data;
    int n = (int)region.passing->len;
    *packing->bytes = n > 0 ? INT64_MAX : region.floor;
    enough = MAX(enough, small_enough(n, bound));
    for (gsize i = 0; i < G_N_ELEMENTS(orders) && n > 0 && *packing->bytes > enough; i++) {
        qsort(passing, (size_t)n, sizeof *passing, orders[i]);
        try_order(packing, passing, n, region.floor, bound, enough);
    }
    region_clear(&region);
}

/* Packs until the block of the device has at most `enough` bytes, or is as small as it gets. */
static MtfArena *pack(const MtfProgram *program, int64_t enough) {
    MtfArena *arena = g_new0(MtfArena, 1);
    arena->offsets = g_new0(int64_t, program->buffers->len + 1);
    pack_region(program, false, enough, &(Packing){ &arena->bytes, arena->offsets });
    pack_region(program, true, 0, &(Packing){ &arena->host_bytes, arena->offsets });
    share_offsets(program, arena);
    return arena;
}

MtfArena *mtf_arena_pack(const MtfProgram *program) {
    return pack(program, 0);
}

bool mtf_arena_fits(const MtfProgram *program, int64_t limit) {
    g_autoptr(MtfArena) arena = pack(program, limit);
    return arena->bytes <= limit;
}

void mtf_arena_free(MtfArena *arena) {
    if (arena == NULL)
        return;
    g_free(arena->offsets);
    g_free(arena);
}

MtfArena *mtf_arena_slot(const MtfArena *arena, const MtfProgram *program, int slot, int version) {
    guint n = program->buffers->len;
    MtfArena *own = g_new0(MtfArena, 1);
    own->bytes = arena->bytes;
    own->host_bytes = arena->host_bytes;
    own->offsets = g_memdup2(arena->offsets, sizeof *own->offsets * (n + 1));
    for (int b = 0; b < (int)n; b++) {
        const MtfBuffer *owner = buffer_at(program, buffer_at(program, b)->storage);
        bool variable = owner->persistent && !mtf_buffer_is_fed(program, owner);
        if (owner->slots > 1)
            own->offsets[b] += (variable ? version : slot) * mtf_buffer_stride(owner);
    }
    return own;
}

int64_t mtf_arena_lower_bound(const MtfProgram *program) {
    return lower_bound(program, false);
}

void mtf_arena_peak(const MtfProgram *program, int64_t *bytes) {
    g_autofree int64_t *live = live_bytes(program, false);
    int peak = peak_instruction(program, live);
    memset(bytes, 0, MTF_MEMORY_KINDS * sizeof *bytes);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        if (!owns(program, b, false))
            continue;
        const MtfBuffer *buffer = buffer_at(program, b);
        Storage storage = storage_of(program, b);
        if (storage.first <= peak && peak <= storage.last)
            bytes[buffer->memory] += buffer->bytes * MAX(1, buffer->slots);
    }
}

/* The checker uses nothing of the packing above. */

static bool check_buffer(const MtfProgram *program, const MtfArena *arena, int b, GError **error) {
    const MtfBuffer *buffer = buffer_at(program, b);
    const MtfBuffer *owner = buffer_at(program, buffer->storage);
    int64_t offset = arena->offsets[b];
    if (offset != arena->offsets[buffer->storage])
        return mtf_failure(error, "buffer %d is not where its storage, buffer %d, is", b,
                           buffer->storage);
    if (buffer->bytes > owner->bytes)
        return mtf_failure(error, "buffer %d is larger than its storage, buffer %d", b,
                           buffer->storage);
    if (offset < 0 || offset % MTF_ARENA_ALIGNMENT != 0)
        return mtf_failure(error,
                           "buffer %d is at offset %" G_GINT64_FORMAT ", not a multiple of %d", b,
                           offset, MTF_ARENA_ALIGNMENT);
    int64_t block = mtf_buffer_is_on_host(program, b) ? arena->host_bytes : arena->bytes;
    if (offset > block ||
        buffer->bytes + (MAX(1, owner->slots) - 1) * mtf_buffer_stride(owner) > block - offset)
        return mtf_failure(error, "buffer %d ends outside the arena", b);
    return true;
}

/* From the first byte of the first slot to the last of the last. */
static int64_t bytes_of_slots(const MtfBuffer *buffer) {
    return (MAX(1, buffer->slots) - 1) * mtf_buffer_stride(buffer) + buffer->bytes;
}

static bool live_together(const MtfBuffer *a, const MtfBuffer *b) {
    if (a->persistent || b->persistent)
        return true;
    return a->first <= b->last && b->first <= a->last;
}

static bool check_pair(const MtfProgram *program, const MtfArena *arena, int a, int b,
                       GError **error) {
    const MtfBuffer *left = buffer_at(program, a);
    const MtfBuffer *right = buffer_at(program, b);
    bool apart = mtf_buffer_is_on_host(program, a) != mtf_buffer_is_on_host(program, b);
    if (right->storage != b || apart || !live_together(left, right))
        return true;
    int64_t left_end = arena->offsets[a] + bytes_of_slots(left);
    int64_t right_end = arena->offsets[b] + bytes_of_slots(right);
    if (left_end <= arena->offsets[b] || right_end <= arena->offsets[a])
        return true;
    return mtf_failure(error, "buffers %d and %d live at the same time and overlap", a, b);
}

bool mtf_arena_check(const MtfProgram *program, const MtfArena *arena, GError **error) {
    int n = (int)program->buffers->len;
    for (int b = 0; b < n; b++)
        if (!check_buffer(program, arena, b, error))
            return false;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n && buffer_at(program, a)->storage == a; b++)
            if (!check_pair(program, arena, a, b, error))
                return false;
    return true;
}
