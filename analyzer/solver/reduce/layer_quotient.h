// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the repeated layers of a core and cuts all but a few of them out. What is left has the same
 * ends and the same layer, once for all the layers that went:
 *
 *     layers   0 1 2 | 3 4 5 ... 92 | 93 94 95        core
 *              0 1 2 |                93 94 95        quotient: 2 stands for 2 ... 92
 *                  +------------------+               edges 92-93 now join 2 and 93
 *
 * Layers are found from the core alone: nodes get colours that say what they and everything near
 * them look like, two nodes of one colour are taken for the same place of neighbouring layers, and
 * that guess is followed along equal edges until it covers the network or contradicts itself.
 *
 * The quotient is a place to start from, not a proof: prices, messages and choices found on it are
 * carried to every copy, and count only after they are looked at there. */
#ifndef MTF_LAYER_QUOTIENT_H
#define MTF_LAYER_QUOTIENT_H

#include "analyzer/solver/reduce/layout_core.h"

/* Layers that repeat, from which on it pays that they are taken for alike. */
#define MTF_ALIKE_LAYERS 8

typedef struct MtfLayerQuotient {
    const MtfCore *whole;
    MtfCore *core;    /* the nodes that are left, at their own indices; its rows are the whole's */
    int *node;        /* for each node of the whole: the one that stands for it */
    int *edge;        /* for each edge of the whole: likewise, an edge of `core`; -1 when gone */
    int *node_copies; /* how many nodes of the whole each node stands for */
    int *edge_copies; /* for each edge of `core` */
    int *copies;      /* nodes of the whole, those of one representative in a row */
    int *first_copy;  /* [nodes + 1] where each node's copies begin */
    int layers, kept; /* of the repeated part */
} MtfLayerQuotient;

/* The quotient of a core, which must outlive it and stay unchanged; NULL when nothing repeats often
 * enough. */
MtfLayerQuotient *mtf_layer_quotient_new(const MtfCore *core);
void mtf_layer_quotient_free(MtfLayerQuotient *quotient);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayerQuotient, mtf_layer_quotient_free)

/* For each node the first of those that stand in its place in the layers, `fewest` or more, of a core:
 * itself outside of them. NULL when nothing repeats so often. Free with g_free. */
int *mtf_layer_leaders(const MtfCore *core, int fewest);

/* Gives every node of the whole the value of the one that stands for it, in place. */
void mtf_layer_quotient_expand(const MtfLayerQuotient *quotient, int *values);

/* The mean price of piece k of a node over all nodes it stands for; prefix[r] is the sum of the
 * prices of the rows before r. */
double mtf_layer_quotient_price(const MtfLayerQuotient *quotient, int node, guint k,
                                const double *prefix);

#endif
