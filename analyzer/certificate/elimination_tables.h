// SPDX-License-Identifier: GPL-3.0-or-later
/* The tables of a bucket elimination (Dechter, Artificial Intelligence 113, 1999), made once more for
 * somebody who checks a certificate. Nodes go one after another in a given order; the scope of a node's
 * table are its neighbours that are left then, which are neighbours of one another from then on:
 *
 *     a - b - c    order b a c:      table of b, scope (c, a)     tuple 2 0: rows b = 1 of 17, b = 4 of 3
 *     +-------+                      table of a, scope (c)
 *                                    table of c, no scope: one tuple
 *
 * Terms are what a point (point_bound.h) leaves to nodes and entries above the least of their kind, in whole
 * numbers rounded down, none below zero. A choice of at most `cost` has terms of at most `slack` together, so
 * a tuple or row that cannot but have more is left out. A row's terms are its own: of the table's node and
 * its edges to the scope. */
#ifndef MTF_ELIMINATION_TABLES_H
#define MTF_ELIMINATION_TABLES_H

#include "analyzer/certificate/point_bound.h"

typedef struct MtfTableRow {
    MtfInt128 terms, cost; /* of the node's value and its entries beside the tuple */
    int value;
    int tuple;
} MtfTableRow;

typedef struct MtfTableTuple {
    MtfInt128 least;   /* of all terms of this table and those below it */
    MtfInt128 outside; /* of all others, beside the tuple */
    int first;         /* row; they end where the next tuple's begin */
} MtfTableTuple;

typedef struct MtfTable {
    int node;
    GArray *scope;    /* int, nodes, the last to go first */
    GArray *children; /* int, tables whose scope has this node for the first to go */
    GArray *tuples;   /* MtfTableTuple, and one behind all */
    GArray *values;   /* int, [tuples][scope], ascending */
    GArray *rows;     /* MtfTableRow */
    GArray *below;    /* int, [rows][children] tuples of theirs */
} MtfTable;

typedef struct MtfTables {
    int count;
    MtfTable *tables; /* [count] in the order of elimination */
    MtfInt128 slack;
} MtfTables;

/* All tables for choices of at most `cost`, which is no less than the bound. The order must name
 * each living node once. NULL with an error where it does not, or where the tables grow beyond use. */
MtfTables *mtf_tables_new(const MtfPointBound *bound, const MtfCertifiedProblem *problem,
                          const GArray *order, int64_t cost, GError **error);
void mtf_tables_free(MtfTables *tables);

/* Typed access; a tuple's rows are those from its `first` to the next one's. */
MtfTableRow *mtf_table_row(const MtfTable *table, int row);
MtfTableTuple *mtf_table_tuple(const MtfTable *table, int tuple);
int mtf_table_tuple_count(const MtfTable *table);

/* The tuple of a child that a row stands upon. */
int mtf_table_below(const MtfTable *table, int row, int child);

#endif
