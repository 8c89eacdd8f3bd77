// SPDX-License-Identifier: GPL-3.0-or-later
/* What variants of a step that are searched at once tell each other, each by its number, 0, 1, …:
 *
 *     posing   each poses its problem when the one before it has posed its own: posing takes two threads
 *              half as long as one, and what the first finds may end the second
 *     start    of wide problems one is left whose best known layout lags behind another's before its free layouts
 *              are searched: by more than that search saves; or behind the step of a plan that is known already, to
 *              which it has lost then. One that began before the other was known is ended when that has a plan, and waits
 *              for that before anything is done to its cheapest layout
 *     proof    of large graphs the one with the shortest step is proven, the others' bounds stay unknown
 *     end      of others one whose step is found to trail is left as it is: what is done to a plan in the end
 *              (layers alike, lower limits, proof) saves all of them about as much
 *
 * Who waits gives the processor back to whoever else has work (in_parallel.h). NULL is a race with
 * nobody: there is nothing to wait for, and all is won. */
#ifndef MTF_VARIANT_RACE_H
#define MTF_VARIANT_RACE_H

#include <glib.h>
#include <stdbool.h>

/* Variants that are searched at once. */
#define MTF_VARIANTS_AT_ONCE 2

typedef struct {
    GMutex lock;
    GCond news;
    int count; /* variants */
    bool posed[MTF_VARIANTS_AT_ONCE];
    /* Seconds of the step that its search begins with, and of what that found; 0: not known yet. */
    double starts[MTF_VARIANTS_AT_ONCE], steps[MTF_VARIANTS_AT_ONCE];
    bool ended[MTF_VARIANTS_AT_ONCE];
    double rival; /* the step of the best plan that is known; 0: none */
} MtfVariantRace;

/* `count` variants begin, none has told anything. Clear it after use. */
void mtf_variant_race_init(MtfVariantRace *race, int count);
void mtf_variant_race_clear(MtfVariantRace *race);

/* Variant `own` has posed its problem, or will not. */
void mtf_variant_race_posed(MtfVariantRace *race, int own);

/* Waits until the variant before `own` has. */
void mtf_variant_race_await(MtfVariantRace *race, int own);

/* Tells the step that the search of variant `own` begins with, INFINITY where it has none; only the first time
 * counts. */
void mtf_variant_race_start(MtfVariantRace *race, int own, double step_seconds);

/* Waits until the variant before `own` has told where it starts, where `own` has; whether that of `own` lags too far
 * behind another, as far as is known by now, as of mtf_variant_race_trails. */
bool mtf_variant_race_lags(MtfVariantRace *race, int own);

/* The search of variant `own` is over. */
void mtf_variant_race_end(MtfVariantRace *race, int own);

/* Where the start of variant `own` is known to lag behind another's, waits until that one's search is over. */
void mtf_variant_race_await_leaders(MtfVariantRace *race, int own);

/* Whether what variant `other` has told of its start lags behind that of `own`. */
bool mtf_variant_race_leads(MtfVariantRace *race, int own, int other);

/* Whether what variant `own` has told of its start lags behind the rival; and the seconds of a step beyond which all
 * starts do, 0 where there is no rival. */
bool mtf_variant_race_loses(const MtfVariantRace *race, int own);
double mtf_variant_race_lost_from(const MtfVariantRace *race);

/* Tells the step of variant `own`, INFINITY where it has none; only the first time counts. */
void mtf_variant_race_enter(MtfVariantRace *race, int own, double step_seconds);

/* The same, and waits until all are told; whether `own` has the shortest step. Of equals the first wins. */
bool mtf_variant_race_wins(MtfVariantRace *race, int own, double step_seconds);

/* Whether the step that `own` told trails what another has told, as far as is known by now: by more than an end saves.
 * Nobody is waited for, so that one which trails may have gone on; when all have ended all say the same. */
bool mtf_variant_race_trails(MtfVariantRace *race, int own);

/* When all have ended: whether `own` loses to a plan that was known, or lags behind or trails what stays of another. One
 * that led, but was ended since its costs are no lower, leaves nothing to lag behind. */
bool mtf_variant_race_is_lost(MtfVariantRace *race, int own, bool other_stays);

#endif
