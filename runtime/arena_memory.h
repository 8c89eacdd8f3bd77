// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory of an arena: mapped once, to exactly the packed size, with a page behind it that
 * nobody may touch:
 *
 *     | slack of the first page | arena: `bytes` .................... | guard page |
 *                               ^ base
 *
 * A kernel that writes one byte beyond the arena dies at once, in every build. */
#ifndef MTF_ARENA_MEMORY_H
#define MTF_ARENA_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *base;    /* zeros at first */
    int64_t bytes; /* of the arena */
    char *mapping;
    gsize mapping_bytes;
} MtfArenaMemory;

/* Maps an arena of `bytes`. Fails when the system refuses. */
bool mtf_arena_memory_init(MtfArenaMemory *memory, int64_t bytes, GError **error);
void mtf_arena_memory_clear(MtfArenaMemory *memory);

#endif
