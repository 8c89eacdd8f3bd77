// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory of an arena: mapped once, to exactly the packed size, with a page behind it that
 * nobody may touch:
 *
 *     | header | slack of the first page | arena: `bytes` .................... | guard page |
 *                                        ^ base
 *
 * A kernel that writes one byte beyond the arena dies at once, in every build.
 *
 * A shared arena is a file in memory, so that the other ranks of the host can map it as well
 * (host_window.h); its header is where they wait for each other. A private one has no header. Both
 * are of huge pages where the system lets them. */
#ifndef MTF_ARENA_MEMORY_H
#define MTF_ARENA_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *base;     /* zeros at first */
    int64_t bytes;  /* of the arena */
    char *mapping;  /* begins with the header; both zeros at first */
    char *reserved; /* addresses: what lies before the mapping, it, and the guard page */
    gsize reserved_bytes;
    int file; /* of a shared arena; -1 of a private one */
} MtfArenaMemory;

#define MTF_ARENA_HEADER_BYTES 16384

/* Maps an arena of `bytes`, shared or private; private too where the system has no files in memory.
 * Fails when the system refuses. */
bool mtf_arena_memory_init(MtfArenaMemory *memory, int64_t bytes, bool shared, GError **error);

/* Maps the shared arena behind the open file `file`, which another process made with `bytes`.
 * Closes the file when it succeeds. */
bool mtf_arena_memory_attach(MtfArenaMemory *memory, int64_t bytes, int file, GError **error);

void mtf_arena_memory_clear(MtfArenaMemory *memory);

#endif
