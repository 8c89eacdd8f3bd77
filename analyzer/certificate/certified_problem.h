// SPDX-License-Identifier: GPL-3.0-or-later
/* A layout problem in the hands of somebody who checks a certificate (certificate_check.h): it changes as
 * the certificate says, one step at a time, and a step for which there is no reason is refused. What
 * holds after every step: whoever has a legal choice of the problem that costs at most the lowest cutoff
 * used so far has one of what is left that costs no more.
 *
 *     node 7:  cost 5 NEVER 3      edge (7, 9):  0 4        row at time 31: capacity 50
 *              pieces [20, 40) 8 0 9                NEVER 2
 *
 * Written to be read against the definition of the problem alone, not to be fast: nothing is shared with
 * the solver, whose numbers it knows from the certificate. A sum that leaves 64 bits makes a step refused. */
#ifndef MTF_CERTIFIED_PROBLEM_H
#define MTF_CERTIFIED_PROBLEM_H

#include "analyzer/solver/problem/layout_problem.h"

#define MTF_CERTIFIED_NEVER INT64_MAX

typedef struct MtfCertifiedPiece {
    int64_t start, end; /* times */
    int64_t *usage;     /* [values] */
} MtfCertifiedPiece;

typedef struct MtfCertifiedNode {
    bool alive;
    int values;
    int64_t *cost;     /* [values] */
    GPtrArray *pieces; /* MtfCertifiedPiece */
    GArray *edges;     /* int */
} MtfCertifiedNode;

typedef struct MtfCertifiedEdge {
    int a, b;      /* a = -1: it is gone */
    int64_t *cost; /* [values of a][values of b] */
} MtfCertifiedEdge;

typedef struct MtfCertifiedProblem {
    int node_count;
    MtfCertifiedNode *nodes;
    GArray *edges; /* MtfCertifiedEdge */
    int64_t constant;
    bool has_limit, has_rows;
    int64_t limit;
    int rows;
    int64_t *times, *capacity; /* [rows], times ascending */
    int64_t *least;            /* [rows] at most what all nodes use together; NULL: not known */
    bool is_dead;              /* no choice is left */
} MtfCertifiedProblem;

/* The problem with costs divided by 2^cost_shift, usages and limit by 2^usage_shift, rounded down. NULL
 * where a sum of costs is too large. */
MtfCertifiedProblem *mtf_certified_new(const MtfLayoutProblem *problem, int cost_shift,
                                       int usage_shift);
MtfCertifiedProblem *mtf_certified_copy(const MtfCertifiedProblem *problem);
void mtf_certified_free(MtfCertifiedProblem *problem);

/* The edge between two nodes, or -1. */
int mtf_certified_edge(const MtfCertifiedProblem *problem, int a, int b);
MtfCertifiedEdge *mtf_certified_edge_at(const MtfCertifiedProblem *problem, int edge);

/* Where an entry of an edge is, by the values of `node` and of the other end. */
int64_t *mtf_certified_entry(const MtfCertifiedProblem *problem, int edge, int node, int p, int q);

/* The other end of a node's edge. */
int mtf_certified_other_end(const MtfCertifiedProblem *problem, int edge, int node);

/* What a node uses in rows that follow one another. */
typedef struct MtfCertifiedSpan {
    int first, last; /* rows first <= r < last */
    int64_t *usage;  /* [values] */
} MtfCertifiedSpan;

/* The rows where a node uses memory; free with g_ptr_array_unref. NULL where a sum is too large. */
GPtrArray *mtf_certified_spans(const MtfCertifiedProblem *problem, int node);

/* The least of those that the node's possible values use; 0 where there are none. */
int64_t mtf_certified_least_usage(const MtfCertifiedNode *node, const int64_t *usage);

/* The steps; false with a sentence where there is no reason for one. The nodes are those of the problem,
 * living ones, the values in range: else a step is refused, too. */
bool mtf_certified_rows(MtfCertifiedProblem *problem, const int64_t *times, int count,
                        GError **error);
bool mtf_certified_keep(MtfCertifiedProblem *problem, int node, const int64_t *list, int count,
                        GError **error);
bool mtf_certified_join(MtfCertifiedProblem *problem, int a, int b, const int64_t *pairs, int count,
                        GError **error);
bool mtf_certified_eliminate(MtfCertifiedProblem *problem, int node, GError **error);
bool mtf_certified_move(MtfCertifiedProblem *problem, int node, int other, const int64_t *message,
                        int count, GError **error);
bool mtf_certified_part(MtfCertifiedProblem *problem, int a, int b, GError **error);

/* What no choice of what is left costs more than. */
MtfInt128 mtf_certified_worst(const MtfCertifiedProblem *problem);

/* Whether one value a node is left; if so whether all entries between them are possible, and their cost. */
bool mtf_certified_single(const MtfCertifiedProblem *problem, bool *legal, MtfInt128 *cost);

#endif
