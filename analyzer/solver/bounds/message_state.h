// SPDX-License-Identifier: GPL-3.0-or-later
/* The numbers of message passing, for the files of this room that work on them: message_passing.c
 * moves them, exact_bound.c says in whole numbers what they prove, branch_and_bound.c branches.
 *
 *     node 0 ----- end | end ----- node 3         every edge has an end at each of its nodes,
 *       \                           /             earlier nodes are `behind`, later ones `ahead`
 *        \--- end | end ---- node 5
 *
 * Values whose rows of an edge's matrix are the same get the same message, so messages are kept by class of
 * such values. Many edges of a node tell its values apart alike, above all where it is a joined pair and
 * most neighbours know one half of it; what they all need of a node's values, and what they all say to them, is
 * made once for each way (MtfValueClasses) instead of once for each edge and value. */
#ifndef MTF_MESSAGE_STATE_H
#define MTF_MESSAGE_STATE_H

#include "analyzer/solver/bounds/message_passing.h"
#include "analyzer/solver/reduce/distinct_matrix.h"

/* A way in which edges of a node tell its values apart. */
typedef struct MtfValueClasses {
    int count;
    const int *of; /* [values]; NULL: each value is a class of its own */
    int ends;      /* that share it, */
    bool leads[2]; /* whether any of them leads to an earlier node, and to a later one */
    int at;        /* where its classes begin in the scratch of all ways of a node */
} MtfValueClasses;

/* One end of an edge as its node sees it. */
typedef struct MtfHalfEdge {
    int edge, other; /* other: position of the other node */
    double copies;   /* how often it counts */
    const MtfDistinctMatrix *matrix;
    bool turned;          /* this node's values are the matrix's columns */
    int rows, columns;    /* of the matrix as this node sees it */
    const int *row_of;    /* of own values */
    const int *column_of; /* of the other's values */
    int classes;          /* index of the node's classes that its rows are */
    double *in;           /* message to this node, [rows] */
    double *out;          /* message to the other node, [columns] */
} MtfHalfEdge;

typedef struct MtfNodeState {
    int node; /* index in the core */
    int values;
    double *cost;   /* own costs */
    double *priced; /* own costs and priced memory */
    double *theta;  /* with messages, as of the last pass over the node */
    double least;   /* minimum of theta then */
    double copies;  /* how often it counts */
    int behind, ahead;
    double share;
    MtfHalfEdge *half_edges; /* `behind` ends to earlier nodes, then `ahead` ends to later ones */
    GArray *classes;         /* MtfValueClasses */
} MtfNodeState;

struct MtfMessages {
    const MtfCore *core;
    const MtfLayerQuotient *quotient; /* whose core it is, or NULL */
    int count, edge_count;
    MtfNodeState *node_states;
    int *position;        /* of a core node; -1 when it is gone */
    double *price;        /* [rows] */
    double *prefix;       /* [rows + 1] sums of prices before a row */
    double *scratch;      /* [most values] */
    double *shared;       /* [most values] what a node sends ahead or behind, of each value; */
    double *cheapest;     /* [most classes] of each class of each way */
    double *sums;         /* [most classes] of what the ends of each way say */
    double *offsets;      /* [most values, in whole units] of the rows of a message */
    double *lowered;      /* [most values, in whole units] its columns */
    double paid_capacity; /* sum_r y_r capacity_r */
    double bound;
    GPtrArray *blocks;
    GHashTable *matrices; /* MtfMatrixKey -> MtfDistinctMatrix */
};

#endif
