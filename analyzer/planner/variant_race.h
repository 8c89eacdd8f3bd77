// SPDX-License-Identifier: GPL-3.0-or-later
/* What variants of a step that are searched at once tell each other.
 *
 *     barrier   the second poses its problem when the first has posed its own: posing takes two threads
 *               half as long as one, and what the first finds may end the second
 *     contest   the one with the shortest step is proven, the others' bounds stay unknown
 *
 * Who waits gives the processor back to whoever else has work (in_parallel.h). */
#ifndef MTF_VARIANT_RACE_H
#define MTF_VARIANT_RACE_H

#include <glib.h>
#include <stdbool.h>

/* Variants that are searched at once. */
#define MTF_VARIANTS_AT_ONCE 2

typedef struct {
    GMutex lock;
    GCond opened;
    bool open;
} MtfVariantBarrier;

void mtf_variant_barrier_init(MtfVariantBarrier *barrier);
void mtf_variant_barrier_clear(MtfVariantBarrier *barrier);

/* Both do nothing for NULL. */
void mtf_variant_barrier_open(MtfVariantBarrier *barrier);
void mtf_variant_barrier_await(MtfVariantBarrier *barrier);

typedef struct {
    GMutex lock;
    GCond entered;
    int count;                          /* variants */
    int known;                          /* of which steps are known */
    double steps[MTF_VARIANTS_AT_ONCE]; /* seconds; 0: not known yet */
} MtfVariantContest;

void mtf_variant_contest_init(MtfVariantContest *contest, int count);
void mtf_variant_contest_clear(MtfVariantContest *contest);

/* Tells the step of variant `own`, INFINITY where it has none; only the first time counts. */
void mtf_variant_contest_enter(MtfVariantContest *contest, int own, double step_seconds);

/* Waits until all have entered, and says whether `own` has the shortest step. Of equals the first wins. */
bool mtf_variant_contest_wins(MtfVariantContest *contest, int own);

#endif
