// SPDX-License-Identifier: GPL-3.0-or-later
/* Which bytes of an arena are taken when: the storages that have been placed so far, so that
 * another one finds its place without a look at each of them.
 *
 *     bytes  ^   +-------+                 a storage takes some bytes for some instructions
 *            |   |   b   |    +-----+
 *            |   +-------+    |  c  |
 *            |  +---a---------+-----+
 *            +-----------------------> instructions */
#ifndef MTF_ARENA_PLACES_H
#define MTF_ARENA_PLACES_H

#include <glib.h>
#include <stdint.h>

/* The instructions that a storage lives at, both included. */
typedef struct {
    int first, last;
} MtfLife;

typedef struct MtfArenaPlaces MtfArenaPlaces;

/* For at most `n` storages that live at instructions 0 ... last. */
MtfArenaPlaces *mtf_arena_places_new(int last, int n);
void mtf_arena_places_free(MtfArenaPlaces *places);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfArenaPlaces, mtf_arena_places_free)

/* Takes `bytes` > 0 bytes from `offset` on. */
void mtf_arena_places_add(MtfArenaPlaces *places, MtfLife life, int64_t offset, int64_t bytes);

/* The offset, at least `floor`, of the tightest gap of at least `bytes` bytes between those that
 * are taken at some time in the life, of equal gaps the lowest; without one, the end of all that is
 * taken then. All offsets that were added must be at least `floor`. */
int64_t mtf_arena_places_find(MtfArenaPlaces *places, MtfLife life, int64_t bytes, int64_t floor);

#endif
