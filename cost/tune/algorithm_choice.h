// SPDX-License-Identifier: GPL-3.0-or-later
/* The pass that chooses the algorithms of a program's collectives. */
#ifndef MTF_ALGORITHM_CHOICE_H
#define MTF_ALGORITHM_CHOICE_H

#include "cost/price/price.h"

/* The option of commands that make plans. */
#define MTF_COLLECTIVES_OPTION(field)                                                             \
    {                                                                                             \
        "collectives", 0, 0, G_OPTION_ARG_STRING, &field,                                         \
            "Algorithms of collectives: direct, auto (the cheapest), random, or a name (direct)", \
            "NAME"                                                                                \
    }

/* Likewise. */
#define MTF_SOFTWARE_OPTION(field)                                                         \
    {                                                                                      \
        "software", 0, 0, G_OPTION_ARG_STRING, &field,                                     \
            "The framework whose steps are priced: meshtf, megatron-2021, megatron-core, " \
            "torchtitan, maxtext, alpa, … or a file (what is usual on the machine)",       \
            "NAME|FILE"                                                                    \
    }

/* Whether `wanted` is a choice: "direct", "auto", "random", "random:SEED" or the name of an
 * algorithm. Fails (bad input) with a sentence that lists them. */
bool mtf_algorithm_choice_check(const char *wanted, GError **error);

/* Gives the collectives of a settled layout algorithms: that one wherever it applies, random ones,
 * or the cheapest on the pricer's machine of those that can be executed; where the machine's
 * collectives are measured, of those whose tables it has. Where they are not, what goes directly is priced
 * as the best there is, and others are named where they are as good. NULL and "direct" change nothing. */
void mtf_layout_choose_algorithms(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                                  const char *wanted);

#endif
