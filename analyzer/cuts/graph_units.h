// SPDX-License-Identifier: GPL-3.0-or-later
/* The units that a graph is cut between: runs of operations of the forward pass, parted where few
 * bytes cross, equal ones known as equal.
 *
 *     operations   embed x | norm q k v … add | norm hidden … add | norm q … add | … | norm logits loss
 *     atoms          E            A                  F                A                  H
 *     units          E  [ A F A F ]  [ A F A F ]  …                                      H
 *
 * Atoms end where no more bytes cross than at the narrowest places; where these leave a long stretch,
 * at the narrowest of their surroundings. The longest run of atoms that
 * repeats is divided into equal units of whole periods; what is before and behind it into a few. */
#ifndef MTF_GRAPH_UNITS_H
#define MTF_GRAPH_UNITS_H

#include "layouts/graph/graph.h"

typedef struct {
    int units;
    int *begin; /* [units + 1]: operations of unit u are begin[u] … begin[u + 1] - 1 */
    int *kind;  /* [units]: units of a kind are equal up to names */
    int kinds;
    double *crossing; /* [units + 1]: bytes that cross before unit u */
} MtfGraphUnits;

/* Divides a forward graph into at most `most` units (at least 8). */
MtfGraphUnits *mtf_graph_units_new(const MtfGraph *forward, int most);
/* How many of `times` equal things make a part, so that there are at most `most` parts: a divisor of
 * their number where one is near. */
int mtf_units_a_part(int times, int most);
void mtf_graph_units_free(MtfGraphUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfGraphUnits, mtf_graph_units_free)

#endif
