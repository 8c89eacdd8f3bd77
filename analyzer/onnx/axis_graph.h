// SPDX-License-Identifier: GPL-3.0-or-later
/* A graph whose dimensions have no names yet, between ONNX, where axes have positions, and our
 * graphs, where they have names. Each operation has *indexes*, what it runs over, and says which
 * axis of an input goes by which index:
 *
 *     scores[b, h, q, k] = einsum(query[0: b, 1: h, 2: q, 3: d], key[0: b, 1: h, 2: k, 3: d])
 *
 * An axis and the index it goes by are *tied*: they want one name. Ties are made in the order in
 * which operations are added, and one that would give two indexes of an operation the same name is
 * left out: q and k above, where both come from the same positions. There the built graph has a
 * `rename`. At the end axes that no operation ties, but that play the same role with the same size
 * (the hidden features of every layer), share a name too, where nothing speaks against it.
 *
 * Axes are union-find classes; those of one group (an operation, an input, a variable) must keep
 * different names. */
#ifndef MTF_AXIS_GRAPH_H
#define MTF_AXIS_GRAPH_H

#include "layouts/graph/loops.h"

typedef struct {
    int64_t size;
    const char *role;   /* what to call it; NULL: as what it is tied to */
    char *name;         /* that the file gives it, or NULL */
    int parent;         /* union-find */
    GHashTable *groups; /* of a root: the groups in its class */
    int dimension;      /* of a root in the built graph; -1: not yet */
    int64_t
        examples; /* of a root that counts them, or them and more: how often it goes through all; else 0 */
} MtfAxis;

/* An input, a variable or the result of an operation. Its axes lie in memory in their order. */
typedef struct {
    MtfSource source;
    char *name;
    MtfDtype dtype;
    MtfShape axes; /* numbers of axes in place of dimensions */
    MtfFeed feed;
    MtfInit init;
    bool frozen;
    char *stored; /* or NULL */
    int producer; /* operation, or -1 */
} MtfAxisTensor;

/* Input `tensor`: its axis from.dims[i] goes by the operation's index to.dims[i]. */
typedef struct {
    int tensor;
    MtfShape from, to;
} MtfAxisInput;

/* An operation that is being described, then one of the graph. Dimensions among `attributes` are
 * indexes. */
typedef struct {
    int kind;
    char *name; /* of the result, wanted; made unique */
    int group;
    GArray *inputs; /* MtfAxisInput */
    MtfShape shape; /* indexes of the result */
    bool has_dtype;
    MtfDtype dtype; /* of the result */
    MtfAttributes attributes;
    int loop;           /* of rows that join a loop to the rest (loops.h): its number, from 1 */
    int output, second; /* tensors; second: of rows with a further result, or -1 */
} MtfAxisOperation;

/* A loop: its body is whatever needs its states or slices. */
typedef struct {
    int axis; /* has an element for each iteration */
    bool reverse;
    char *name;
} MtfAxisLoop;

typedef struct {
    GArray *axes;       /* MtfAxis */
    GArray *tensors;    /* MtfAxisTensor */
    GArray *operations; /* MtfAxisOperation */
    GArray *loops;      /* MtfAxisLoop */
    int groups;
} MtfAxisGraph;

/* A graph without tensors; the caller frees it. */
MtfAxisGraph *mtf_axis_graph_new(void);
void mtf_axis_graph_free(MtfAxisGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfAxisGraph, mtf_axis_graph_free)

/* Typed access; indexes must be valid. */
MtfAxis *mtf_axis(const MtfAxisGraph *graph, int axis);
MtfAxisTensor *mtf_axis_tensor(const MtfAxisGraph *graph, int tensor);

/* The class of an axis: its root. */
int mtf_axis_root(const MtfAxisGraph *graph, int axis);

/* Gives two axes of equal size one name, unless they must keep different ones. */
bool mtf_axis_tie(MtfAxisGraph *graph, int a, int b);

/* An input or a variable (`tensor` is copied, its strings too) with axes of these sizes and roles
 * (NULL: none). */
int mtf_axis_source_add(MtfAxisGraph *graph, const MtfAxisTensor *tensor, int rank,
                        const int64_t *sizes, const char *const *roles);

/* Adds a loop of `count` iterations and returns its number, from 1. */
int mtf_axis_loop_add(MtfAxisGraph *graph, int64_t count, bool reverse, const char *name);

/* Begins an operation, which mtf_axis_operation_end takes over. */
MtfAxisOperation mtf_axis_operation(MtfAxisGraph *graph, int kind, const char *name);
int mtf_axis_index(MtfAxisGraph *graph, const MtfAxisOperation *operation, int64_t size,
                   const char *role);

/* Adds an input, whose axes go by the indexes in `to`. */
void mtf_axis_operation_take(MtfAxisGraph *graph, MtfAxisOperation *operation, int tensor,
                             const MtfShape *from, const MtfShape *to);

/* Appends the operation and returns its result. */
int mtf_axis_operation_end(MtfAxisGraph *graph, MtfAxisOperation *operation);

/* For each tensor the loop whose iterations change it, or 0: its states, its slices, and what needs them.
 * Free with g_free. */
int *mtf_axis_loops(const MtfAxisGraph *graph);

/* Lets axes share names that play the same role with the same size. */
void mtf_axis_graph_share_names(MtfAxisGraph *graph);

/* Lets products, sums and the like lay their results as a transposition that alone reads them wants
 * them, and drops it. */
void mtf_axis_graph_drop_transpositions(MtfAxisGraph *graph);

#endif
