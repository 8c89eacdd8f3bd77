// SPDX-License-Identifier: GPL-3.0-or-later
/* What each unit of a graph (graph_units.h) costs on a group of devices, under the layouts that the
 * field makes by hand (standard_layouts.h): the training graph is split into one part a unit, and of
 * units that are equal one is priced.
 *
 *     size 8    mesh rows:2;cols:4   Megatron on cols, ZeRO-1      unit 0, 1 …: seconds, bytes
 *               mesh all:8           data parallelism              unit 0, 1 …
 *     size 16   …
 *
 * A row is a *way* for a stage: all its units are laid out, and recomputed, alike. */
#ifndef MTF_UNIT_PRICES_H
#define MTF_UNIT_PRICES_H

#include "analyzer/cuts/graph_units.h"
#include "analyzer/planner/planning.h"

/* Of one unit, for one micro-batch where it is not once. */
typedef struct {
    bool known;
    double seconds; /* forward and backward */
    double once;    /* a step: gradients brought together, updates */
    double fixed;   /* bytes: variables, optimizer, gradients */
    double flight;  /* bytes more for each micro-batch in flight, but what other units made, and
                       what crosses between units and is not read again on the way back: */
    double at_begin,
        at_end;  /* such bytes more where a stage begins with the unit, or ends with it */
    double work; /* bytes besides, while it runs */
} MtfUnitPrice;

typedef struct {
    int64_t devices;
    MtfMesh mesh;
    MtfRecompute recompute; /* of all units */
    char *name;             /* "Megatron, ZeRO-1" */
    int style;              /* of the standard layout; */
    bool megatron;          /* which Megatron-LM has */
    bool wanted;            /* some stage may be laid out so; who chooses stages says it */
    MtfUnitPrice *price;    /* [kinds] */
} MtfUnitWay;

typedef struct {
    const MtfGraph *forward;
    const MtfGraphUnits *units;
    const MtfMachine *machine;
    MtfStepVariant variant; /* with two micro-batches or more */
    const GArray *meshes;   /* MtfMesh: what a stage may run on */
} MtfUnitPricing;

/* The ways (MtfUnitWay), in order of the meshes. Fails when the training step cannot be made. Free with
 * g_ptr_array_unref. */
GPtrArray *mtf_unit_prices(const MtfUnitPricing *pricing, GError **error);

#endif
