// SPDX-License-Identifier: GPL-3.0-or-later
/* Repeated layers laid out alike in a plan: people read, export and repair one layer, not thirty that
 * differ for the last half percent. So the plan is the best layout in which they are alike, unless one
 * in which they differ is faster by more than MTF_ALIKE_PRICE, or alike they do not fit. */
#ifndef MTF_ALIKE_LAYERS_H
#define MTF_ALIKE_LAYERS_H

#include "analyzer/free/free_search.h"
#include "analyzer/free/layer_ties.h"

/* The share of a step that alike layers may cost. */
#define MTF_ALIKE_PRICE 0.01

typedef enum { MTF_UNIFORM_AUTO, MTF_UNIFORM_ALWAYS, MTF_UNIFORM_NEVER } MtfUniform;

/* "auto", "always", "never"; NULL is "auto". Fails with a bad-input error that lists them. */
bool mtf_uniform_parse(const char *text, MtfUniform *uniform, GError **error);

typedef struct {
    int64_t cost; /* nanoseconds; 0: there is none that fits */
    double step_seconds;
} MtfAlikePrice;

typedef struct {
    MtfUniform uniform;  /* as asked for */
    int layers;          /* that repeat; 0: nothing is known */
    int differences;     /* ways beyond one a block in which the plan lays them out */
    MtfAlikePrice best;  /* of the fastest layout found (with MTF_UNIFORM_ALWAYS among those), */
    MtfAlikePrice alike; /* and of the fastest in which layers are alike */
} MtfAlikeLayers;

/* The ways beyond one a block in which a layout lays out the layers of a problem. */
int mtf_alike_differences(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                          const MtfLayout *layout);

/* Searches for the best layout that fits in which layers are alike with `options` (whose leader is set here). Clear the
 * answer in either case. */
bool mtf_alike_find(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                    const MtfFreeSearchOptions *options, MtfFreeAnswer *alike, GError **error);

/* A copy of the fastest in which layers are alike among `alike` (or NULL) and the fitting incumbents,
 * with its price; NULL: none. */
MtfLayout *mtf_alike_fastest(const MtfFreeProblem *problem, const MtfLayerTies *ties,
                             MtfIncumbents *incumbents, const MtfLayout *alike,
                             int64_t memory_limit, MtfAlikePrice *price);

/* Whether alike layers cost no more than MTF_ALIKE_PRICE. */
bool mtf_alike_is_worth(const MtfAlikeLayers *layers);

/* The plan's "alike_layers", or NULL where no layers repeat: {"uniform" ("auto"), "layers", "differences",
 * "step_seconds", "alike_step_seconds", "alike_price" (0.004: 0.4 %), "text" (the same for
 * people)}; the two of alike layers where they are known. */
cJSON *mtf_alike_to_json(const MtfAlikeLayers *layers);

/* For people; NULL where there is nothing to say. Free with g_free. */
char *mtf_alike_format(const MtfAlikeLayers *layers);

#endif
