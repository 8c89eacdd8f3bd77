// SPDX-License-Identifier: GPL-3.0-or-later
/* A graph file half way: read and checked piece by piece, but names of tensors not yet looked up
 * and repeated blocks not yet unrolled. The file is a tree of depth two, or three where a repeated block
 * holds loops:
 *
 *     the graph ── operation, operation, block ── operation, operation …
 *       └ variables                        └ variables, carried values
 *
 * Each piece keeps its place in the file (`where`) for messages; cursors on the way to it live in
 * the block above it. Names are owned by the JSON document. */
#ifndef MTF_GRAPH_TEXT_H
#define MTF_GRAPH_TEXT_H

#include "layouts/base/json_reader.h"
#include "layouts/graph/graph.h"

typedef struct {
    MtfJson where;
    const char *name;
    MtfShape shape;
    MtfDtype dtype;
    MtfInit init;
    MtfMemoryKind memory;
    const char *stored; /* or NULL */
    bool frozen, undecayed;
    MtfLayer layer;        /* of a block unrolled before */
    const char *down, *up; /* of its adapter, or NULL */
    double scale;
    const char *unit;    /* of an int8 variable, the variable that says its scale; or NULL */
    const char *mean_of; /* of a running mean, the variable that it is of; or NULL */
} MtfVariableText;

typedef struct {
    MtfJson where;
    const char *name, *init, *next;
} MtfCarryText;

typedef struct {
    MtfJson where;
    const char *name;
    int kind;    /* MtfOperationKind */
    bool copies; /* a `scale` by 1, of whatever type its input turns out to have */
    MtfPhase phase;
    int stage, loop; /* as of MtfOperation; a loop that encloses the text is not known here */
    MtfLayer layer;  /* of a block unrolled before */
    MtfOrigin origin;
    const char *of;
    int n_inputs;
    const char **inputs;
    bool has_shape, has_dtype;
    MtfShape shape;
    MtfDtype dtype;
    MtfMemoryKind memory[MTF_MAX_OUTPUTS];
    MtfAttributes attributes; /* strings owned by the document, or … */
    char *arguments;          /* … these, made of the inputs' names; or NULL */
} MtfOperationText;

/* A repeated block, a loop, or the graph itself (no name, count 1, no carried values). A loop is read as
 * the operations that it stands for, some of which come before it. */
typedef struct MtfBlockText {
    MtfJson where, body; /* the element of "operations", and the object with the lists */
    MtfJson carry_list, variable_list, operation_list;
    MtfJson input_list, output_list; /* of a loop */
    const char *name;
    int count;     /* how often it is unrolled */
    int dimension; /* of a loop; else -1 */
    bool reverse;
    const char *condition; /* of a "while" block: the carried value that it goes on with; else
                              NULL */
    GStringChunk *strings; /* names that no document owns */
    GArray *carries;       /* MtfCarryText */
    GArray *variables;     /* MtfVariableText */
    GArray *items;         /* MtfItemText */
} MtfBlockText;

/* One element of "operations": an operation or a block; the other is NULL. */
typedef struct {
    MtfOperationText *operation;
    MtfBlockText *block;
} MtfItemText;

/* Reads "variables" and "operations" of the graph's root object. The dimensions must be in `graph`
 * already; a loop that has none gets one. Root and document outlive the result. */
MtfBlockText *mtf_graph_text_read(MtfGraph *graph, const MtfJson *root, GError **error);
void mtf_block_text_free(MtfBlockText *block);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfBlockText, mtf_block_text_free)

#endif
