// SPDX-License-Identifier: GPL-3.0-or-later
/* What values of a core's living nodes cost and use, and how many there are. */
#ifndef MTF_CORE_VALUES_H
#define MTF_CORE_VALUES_H

#include "analyzer/solver/reduce/layout_core.h"

/* The cost of values for the living nodes, constant included. */
int64_t mtf_core_cost(const MtfCore *core, const int *values);

/* Adds up the memory of those values: use[r] for each row. */
void mtf_core_use(const MtfCore *core, const int *values, int64_t *use);

/* Whether those values are possible and leave no row overfull. */
bool mtf_core_allows(const MtfCore *core, const int *values);

/* Entries of all living matrices, living nodes, and the values of living nodes. */
typedef struct MtfCoreSize {
    int nodes, edges;
    int64_t values, entries;
} MtfCoreSize;
MtfCoreSize mtf_core_size(const MtfCore *core);

/* The entries that would be left of all matrices without the values that are impossible. */
double mtf_core_possible_entries(const MtfCore *core);

#endif
