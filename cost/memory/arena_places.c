// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/memory/arena_places.h"

/* Instructions come in stretches, of which FAN make a chapter, and FAN of those the whole:
 *
 *     whole     |-----------------------------------------------|
 *     chapter   |-----------|-----------|-----------|-----------|
 *     stretch   |--|--|--|--|--|--|--|--|--|--|--|--|--|--|--|--|
 *                        |--------------b-------------|  |-c-|
 *
 * A storage (b) that lives throughout a part lies in its `always`; where it does not, in its
 * `sometime`, and the parts inside are told. Both are what is taken alone: neighbours, of which
 * there are many, become one. Where a storage begins or ends within a stretch (c), its times are
 * kept. */
#define LEVELS 3
#define FAN 16        /* parts in each larger one */
#define STRETCHES 256 /* FAN^(LEVELS - 1) */

/* Bytes begin ... end - 1. */
typedef struct {
    int64_t begin, end;
} Block;

/* Ascending, apart from one another, with room for as many as there are storages. */
typedef struct {
    Block *at;
    int n;
} Blocks;

typedef struct {
    Block block;
    MtfLife life;
} Place;

/* Lists are NULL until something is added. */
typedef struct {
    GArray *always, *sometime; /* Block: ascending, apart from one another */
    GArray *places;            /* Place, by their begins; of stretches */
} Part;

struct MtfArenaPlaces {
    int stretch; /* instructions in each */
    Part parts[LEVELS][STRETCHES];
    int64_t bytes;            /* that are looked for: */
    Blocks gaps, other, swap; /* those of as many, ascending; and scratch */
};

static Block *block_at(const GArray *blocks, guint i) {
    return &g_array_index(blocks, Block, i);
}

/* Adds a block that begins no earlier than all others. */
static inline void append_block(Blocks *blocks, const Block *block) {
    if (blocks->n > 0 && block->begin <= blocks->at[blocks->n - 1].end)
        blocks->at[blocks->n - 1].end = MAX(blocks->at[blocks->n - 1].end, block->end);
    else
        blocks->at[blocks->n++] = *block;
}

static GArray *made(GArray **list, guint element) {
    if (*list == NULL)
        *list = g_array_new(FALSE, FALSE, element);
    return *list;
}

/* Adds a block; it becomes one with those that it touches. */
static void add_block(GArray **list, Block block) {
    GArray *blocks = made(list, sizeof block);
    guint low = 0, high = blocks->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (block_at(blocks, middle)->end < block.begin)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < blocks->len && block_at(blocks, high)->begin <= block.end; high++) {
        block.begin = MIN(block.begin, block_at(blocks, high)->begin);
        block.end = MAX(block.end, block_at(blocks, high)->end);
    }
    if (low == high) {
        g_array_insert_val(blocks, low, block);
        return;
    }
    *block_at(blocks, low) = block;
    if (high > low + 1)
        g_array_remove_range(blocks, low + 1, high - low - 1);
}

/* Leaves of the gaps what `n` blocks, ascending and apart from one another, do not take, where that is large enough. */
static void take_blocks(MtfArenaPlaces *places, const Block *others, int n) {
    Block *gaps = places->gaps.at, *left = places->swap.at;
    int count = places->gaps.n, kept = 0, i = 0;
    for (int k = 0; k < n && i < count; k++) {
        Block other = others[k];
        while (i < count && gaps[i].end <= other.begin)
            left[kept++] = gaps[i++];
        while (i < count && gaps[i].begin < other.end) {
            if (other.begin - gaps[i].begin >= places->bytes)
                left[kept++] = (Block){ gaps[i].begin, other.begin };
            gaps[i].begin = other.end;
            if (gaps[i].end - other.end >= places->bytes)
                break; /* the next block may take some of the rest */
            i++;
        }
    }
    while (i < count)
        left[kept++] = gaps[i++];
    places->swap.at = gaps;
    places->gaps = (Blocks){ left, kept };
}

static void take_all(MtfArenaPlaces *places, const GArray *others) {
    if (others != NULL)
        take_blocks(places, (const Block *)(const void *)others->data, (int)others->len);
}

/* Takes those of a stretch that live at the same time as the storage. */
static void take_places(MtfArenaPlaces *places, const GArray *stretch, MtfLife life) {
    Blocks *other = &places->other;
    other->n = 0;
    for (guint i = 0; stretch != NULL && i < stretch->len; i++) {
        const Place *place = &g_array_index(stretch, Place, i);
        if (place->life.last >= life.first && place->life.first <= life.last)
            append_block(other, &place->block);
    }
    take_blocks(places, other->at, other->n);
}

static void add_place(GArray **list, const Place *place) {
    GArray *stretch = made(list, sizeof *place);
    guint low = 0, high = stretch->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (g_array_index(stretch, Place, middle).block.begin <= place->block.begin)
            low = middle + 1;
        else
            high = middle;
    }
    g_array_insert_vals(stretch, low, place, 1);
}

static int parts_of(int level) {
    return level == 0 ? 1 : level == 1 ? FAN : STRETCHES;
}

MtfArenaPlaces *mtf_arena_places_new(int last, int n) {
    MtfArenaPlaces *places = g_new0(MtfArenaPlaces, 1);
    places->stretch = last / STRETCHES + 1;
    places->gaps.at = g_new(Block, n + 1);
    places->other.at = g_new(Block, n + 1);
    places->swap.at = g_new(Block, n + 1);
    return places;
}

void mtf_arena_places_free(MtfArenaPlaces *places) {
    if (places == NULL)
        return;
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < parts_of(level); i++) {
            Part *part = &places->parts[level][i];
            g_clear_pointer(&part->always, g_array_unref);
            g_clear_pointer(&part->sometime, g_array_unref);
            g_clear_pointer(&part->places, g_array_unref);
        }
    g_free(places->gaps.at);
    g_free(places->other.at);
    g_free(places->swap.at);
    g_free(places);
}

/* When a storage lives, as a part of the instructions sees it. */
typedef enum { APART, SOMETIME, ALWAYS } Relation;

static Relation relation_of(const MtfArenaPlaces *places, MtfLife life, int level, int i) {
    int length = places->stretch * (STRETCHES / parts_of(level));
    int first = i * length, last = first + length - 1;
    if (life.last < first || life.first > last)
        return APART;
    return life.first <= first && life.last >= last ? ALWAYS : SOMETIME;
}

static void add_to(MtfArenaPlaces *places, const Place *place, int level, int i) {
    Relation relation = relation_of(places, place->life, level, i);
    Part *part = &places->parts[level][i];
    if (relation == APART)
        return;
    if (relation == ALWAYS) {
        add_block(&part->always, place->block);
        return;
    }
    add_block(&part->sometime, place->block);
    if (level + 1 == LEVELS) {
        add_place(&part->places, place);
        return;
    }
    for (int k = 0; k < FAN; k++)
        add_to(places, place, level + 1, i * FAN + k);
}

void mtf_arena_places_add(MtfArenaPlaces *places, MtfLife life, int64_t offset, int64_t bytes) {
    add_to(places, &(Place){ { offset, offset + bytes }, life }, 0, 0);
}

/* Takes from the gaps what is taken in a part at some time in the life. */
static void take(MtfArenaPlaces *places, MtfLife life, int level, int i) {
    Relation relation = relation_of(places, life, level, i);
    const Part *part = &places->parts[level][i];
    if (relation == APART)
        return;
    take_all(places, part->always);
    if (relation == ALWAYS)
        take_all(places, part->sometime);
    else if (level + 1 == LEVELS)
        take_places(places, part->places, life);
    for (int k = 0; relation == SOMETIME && level + 1 < LEVELS && k < FAN; k++)
        take(places, life, level + 1, i * FAN + k);
}

/* Blocks that are taken are many and mostly near to one another; the gaps between them that are large enough are few, and
 * become fewer with each part that is looked at. The last one has no end. */
int64_t mtf_arena_places_find(MtfArenaPlaces *places, MtfLife life, int64_t bytes, int64_t floor) {
    places->bytes = bytes;
    places->gaps.at[0] = (Block){ floor, INT64_MAX };
    places->gaps.n = 1;
    take(places, life, 0, 0);
    const Block *best = &places->gaps.at[0];
    for (int i = 1; i < places->gaps.n; i++) {
        const Block *gap = &places->gaps.at[i];
        if (gap->end - gap->begin < best->end - best->begin)
            best = gap;
    }
    return best->begin;
}
