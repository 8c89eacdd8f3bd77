// SPDX-License-Identifier: GPL-3.0-or-later
/* A profiled network as stage searches see it: nodes in a directed graph without circles, and for
 * each node the ways to run it on one group of devices (Piper calls them TMPCs).
 *
 *     tensor ──► embedding ──► layer ──► layer ──► head        node: ways × degrees
 *        └──────────────────────►└───────►┘                    edge: bytes of one micro-batch
 *
 * A way on `degree` devices takes `seconds` for forward and backward of one micro-batch, holds
 * `fixed_bytes` on each device and `flight_bytes` more for each micro-batch in flight. */
#ifndef MTF_STAGE_GRAPH_H
#define MTF_STAGE_GRAPH_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_STAGE_DEVICES_MAX 65536
#define MTF_STAGE_NODES_MAX 100000

typedef struct {
    char *name; /* NULL where a node runs in one way only */
    int degree; /* devices that share the node */
    double seconds;
    double parameter_bytes; /* a device's, exchanged between replicas */
    double flight_bytes;
    double fixed_bytes;
    double *edge_bytes; /* beside the edge's own when the edge is cut: for each incoming edge, then
                           for each outgoing one, as the node lists them; NULL for none */
} MtfStageWay;

typedef struct {
    char *name;
    bool is_number;      /* the file names its nodes by numbers */
    GArray *ways;        /* of MtfStageWay, ascending in degree */
    GArray *entries;     /* of int: incoming edges */
    GArray *exits;       /* of int: outgoing edges */
    double output_bytes; /* what later stages read of it, once; 0 where edges carry bytes */
} MtfStageNode;

typedef struct {
    int from, to;
    double bytes;
} MtfStageEdge;

/* Who wrote the profile decides what a stage costs (stage_price.h). */
typedef enum {
    MTF_STAGE_PIPEDREAM, /* gradients are exchanged for each minibatch, transfers are hidden */
    MTF_STAGE_PIPER, /* gradients once a batch, transfers in the open, replicas divide a batch */
    MTF_STAGE_TABLE, /* a chain of layers for one synchronous batch */
} MtfStageKind;

typedef struct {
    MtfStageKind kind;
    GArray *nodes; /* of MtfStageNode */
    GArray *edges; /* of MtfStageEdge */
    /* What the file says of the machine; 0 where it is silent. */
    int64_t devices, batch;
    double memory, bandwidth;
} MtfStageGraph;

/* A profile without nodes; the caller frees it. */
MtfStageGraph *mtf_stage_graph_new(MtfStageKind kind);
void mtf_stage_graph_free(MtfStageGraph *graph);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStageGraph, mtf_stage_graph_free)

/* Typed access; indexes must be valid. Pointers stay valid until something is added. */
int mtf_stage_graph_size(const MtfStageGraph *graph);
MtfStageNode *mtf_stage_graph_node(const MtfStageGraph *graph, int node);
const MtfStageEdge *mtf_stage_graph_edge(const MtfStageGraph *graph, int edge);

/* Appends a node without ways, or an edge between nodes that exist; returns its number. The name is
 * copied. */
int mtf_stage_graph_add_node(MtfStageGraph *graph, const char *name);
int mtf_stage_graph_add_edge(MtfStageGraph *graph, int from, int to, double bytes);

/* Appends a way, owned by the graph from then on. */
void mtf_stage_graph_add_way(MtfStageGraph *graph, int node, const MtfStageWay *way);

/* The nodes in an order in which edges lead forward, earlier nodes of the file first, to be freed by
 * g_free; NULL when the graph has a circle, and then `*on_circle` is one of its nodes. */
int *mtf_stage_graph_order(const MtfStageGraph *graph, int *on_circle);

#endif
