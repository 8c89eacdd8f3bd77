// SPDX-License-Identifier: GPL-3.0-or-later
/* The search of one variant of a step, or of several at once, and what is kept of them. */
#ifndef MTF_VARIANT_TRIAL_H
#define MTF_VARIANT_TRIAL_H

#include "analyzer/planner/variant_search.h"

/* Whether the user wants no more: time is a matter of each part. */
bool mtf_variants_stopped(const MtfVariantSearchOptions *options);

/* Whether no more time is left than what comes after the search takes, by how long it took to make the graphs of
 * `variants` (MtfStepCandidate). */
bool mtf_variants_late(const MtfVariantSearchOptions *options, const GArray *variants);

/* Whether nothing more is tried: something fits, and there is no time. */
bool mtf_variants_enough(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best);

/* Nanoseconds of what was found; INT64_MAX where nothing fits. */
int64_t mtf_variant_cost(const MtfVariantAnswer *found);

/* Nanoseconds: no layout that costs more has a shorter step than the rival; INT64_MAX: there is none. */
int64_t mtf_variants_rival_cost(const MtfVariantSearchOptions *options);

/* Bytes that go to the host, spread evenly over the devices: those of one micro-batch, which are there
 * at once, or of a whole step. */
double mtf_variant_bytes_to_host(const MtfVariantSearchOptions *options, const MtfGraph *graph,
                                 bool whole_step);

/* Whether a device's share of the host's memory has room for them. */
bool mtf_variant_host_holds(const MtfMachine *machine, double bytes_on_host);

/* Looks at a candidate's meshes beside the rival of the options (MtfVariantSearchOptions, `data`); NULL where there is
 * none, or nothing to be said at once. */
MtfFirstLook *mtf_variant_look(const MtfStepCandidate *candidate, void *data);

/* Searches `count` variants (at most MTF_VARIANTS_AT_ONCE) from `first` on, at once, and keeps the best plan.
 * Adds to `after` those that were searched when a plan that fits was known. */
bool mtf_variants_try(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int first,
                      int count, int *after, GError **error);

/* Searches one variant more, which takes over its graph if it has one. Where `like`, that graph or one of
 * its size, is large, layers are alike, in the time of one. */
bool mtf_variants_try_another(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                              const MtfStepCandidate *candidate, const MtfGraph *like,
                              GError **error);

/* Searches the found variant again, now with its frontier. */
bool mtf_variant_search_frontier(const MtfVariantSearchOptions *options, MtfVariantAnswer *found,
                                 GError **error);

/* Drops what was found of a variant, not the list of them. */
void mtf_variant_clear_found(MtfVariantAnswer *found);

#endif
