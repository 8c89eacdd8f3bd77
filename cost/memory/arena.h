// SPDX-License-Identifier: GPL-3.0-or-later
/* One block of memory for all buffers of a program. Storages whose lifetimes meet get different
 * bytes, others may get the same:
 *
 *     offset
 *       ^   [ c    ][ d         ]
 *       |   [ b                 ]      b lives as long as c and d together
 *       |   [ w, persistent     ]
 *       +------------------------> instruction
 *
 * What lies with the host (MTF_MEMORY_HOST) has a block of its own there, packed likewise.
 *
 * Offsets are multiples of 64. Interval packing is NP-hard, so a few greedy orders are tried and
 * the smallest result is kept; the live bytes at the worst instruction are a lower bound that says
 * how much is lost. */
#ifndef MTF_ARENA_H
#define MTF_ARENA_H

#include "layouts/program/program.h"

typedef struct {
    int64_t bytes;      /* size of the block, a multiple of MTF_ARENA_ALIGNMENT */
    int64_t host_bytes; /* … of the block in the host's memory; 0: there is none */
    int64_t *offsets;   /* one a buffer of the program, in its block; sharing buffers have their
                           owner's */
} MtfArena;

/* Packs the program's storages. The same program always gives the same arena. */
MtfArena *mtf_arena_pack(const MtfProgram *program);
void mtf_arena_free(MtfArena *arena);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfArena, mtf_arena_free)

/* The arena as micro-batches see it that use slot `slot` of what is there once for each in flight, and
 * version `version` of the variables (MtfBuffer): the same block, other offsets. Free with
 * mtf_arena_free. */
MtfArena *mtf_arena_slot(const MtfArena *arena, const MtfProgram *program, int slot, int version);

/* Whether mtf_arena_pack comes to at most `limit` bytes. Takes less time where it does. */
bool mtf_arena_fits(const MtfProgram *program, int64_t limit);

/* The most bytes that are live at one instruction, every storage rounded up to the alignment: no
 * arena is smaller. */
int64_t mtf_arena_lower_bound(const MtfProgram *program);

/* Checks an arena against the program alone, by comparing all pairs of storages: offsets aligned
 * and inside the block, sharing buffers at their owner's offset and no larger, no two live storages
 * overlapping. Names the buffers that are wrong. Takes time quadratic in the buffers. */
bool mtf_arena_check(const MtfProgram *program, const MtfArena *arena, GError **error);

/* The live bytes by kind of memory at the instruction where most are live (the first such).
 * `bytes` has MTF_MEMORY_KINDS places. Their sum is the arena's size less gaps and rounding. */
void mtf_arena_peak(const MtfProgram *program, int64_t *bytes);

#endif
