// SPDX-License-Identifier: GPL-3.0-or-later
/* Texts that go on token by token, some side by side, each in a *slot* with caches of its own:
 *
 *     slot 0   The quick brown ▒▒▒▒▒▒▒▒▒     filled 3: what its caches hold
 *     slot 1   O ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     filled 1
 *     slot 2   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     empty
 *
 * Programs of one graph (layouts/inference/generation_graph.h) and layout, which differ in how many
 * tokens a slot brings, share one arena: variables and caches lie at its beginning in all of them.
 * Of a model in pipeline stages each rank runs those of its domain, with an arena each, one after the
 * other; what a stage makes goes to the next by messages (generation_stages.h).
 * A prompt is read by the long ones, a token by the one of length 1, whose time depends on what is
 * filled by attention alone. All slots step together; those without a token stay as they are.
 *
 * All functions but the getters are collective over `control`. */
#ifndef MTF_GENERATOR_H
#define MTF_GENERATOR_H

#include "layouts/inference/generation_stages.h"
#include "runtime/executor/stage_pass.h"

typedef struct MtfGenerator MtfGenerator;

typedef struct {
    MPI_Comm control;                /* of all ranks; borrowed, like all here */
    MPI_Comm domain;                 /* one rank a processor of this rank's stages */
    MPI_Comm transfers;              /* of all ranks, for what goes between stages */
    int number;                      /* of the domain */
    const MtfPipelinePlan *pipeline; /* that generates, of length 1 */
    int64_t longest;                 /* prompt that is worth a program of its own; 0: unknown */
    uint64_t seed;
    bool no_overlap;
} MtfGeneratorSettings;

/* All variables are 0. Fails when memory cannot be had. */
MtfGenerator *mtf_generator_new(const MtfGeneratorSettings *settings, GError **error);
void mtf_generator_free(MtfGenerator *generator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfGenerator, mtf_generator_free)

/* Takes over the values of variables of the same names from a worker of each stage of this rank (from
 * the first on), whose layout has them where this one has; rounds where they are narrower here. */
void mtf_generator_take_variables(MtfGenerator *generator, const MtfWorker *const *from);

/* Texts at once, tokens that the model knows, and what of a text the caches hold. */
int64_t mtf_generator_slots(const MtfGenerator *generator);
int64_t mtf_generator_vocabulary(const MtfGenerator *generator);
int64_t mtf_generator_filled(const MtfGenerator *generator, int64_t slot);

/* Empties a slot. */
void mtf_generator_clear(MtfGenerator *generator, int64_t slot);

/* What a slot brings: none, or tokens behind those it holds, not more than its context. The same on
 * all ranks. */
typedef struct {
    const int *tokens;
    int64_t n;
} MtfSlotTokens;

/* Reads what the slots bring (one entry each); then scores[slot] of those that brought some, as many
 * as the vocabulary, are those behind their last token, the same on all ranks. */
void mtf_generator_feed(MtfGenerator *generator, const MtfSlotTokens *brought);
const float *mtf_generator_scores(const MtfGenerator *generator, int64_t slot);

#endif
