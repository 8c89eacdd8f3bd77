// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for where to cut a graph into pipeline stages, together with the devices of each stage,
 * the micro-batches and what is recomputed:
 *
 *     forward graph ──► units ──► prices of each unit on 1, 2, 4 … devices (unit_prices.h)
 *                                       │ for each number of micro-batches, and recomputation
 *                                       ▼
 *              Alpa's dynamic program over (units, devices), memory with micro-batches in flight
 *
 * Stages of different sizes are chosen between at most 32 parts of the graph, equal ones and the last
 * word on where to cut between all layers. Several chunks a domain need domains of equal size.
 *
 * For Megatron-LM stages are of equal devices, cut between the layers, and all laid out and recomputed in
 * one way that it has.
 *
 * Stages are priced by the sums of their units under layouts made by hand; the search over free
 * layouts of the stages that are chosen (pipeline_planning.h) comes after. The bound is of this
 * model: the work of all units, each where it costs least, spread evenly over the devices without a
 * bubble. */
#ifndef MTF_CUT_SEARCH_H
#define MTF_CUT_SEARCH_H

#include "analyzer/cuts/cut_model.h"

typedef struct {
    const MtfGraph *forward;
    const MtfMachine *machine;
    int64_t devices;
    int64_t memory;                         /* bytes of a device */
    int stages;                             /* 0: any number */
    const MtfMesh *mesh;                    /* of each of them; NULL: any */
    const int *chunks;                      /* numbers of chunks a domain, ended by 0 */
    int microbatches;                       /* 0: any number */
    int recompute;                          /* MtfRecompute, or MTF_RECOMPUTES: any */
    const MtfRecompute *recompute_of_stage; /* instead, with `stages` and one number of chunks,
                                               of each of the graph's parts; or NULL */
    bool each_number;                  /* plans of other numbers of micro-batches are wanted, too */
    bool between_layers;               /* stages begin with layers alone */
    bool megatron;                     /* only what Megatron-LM runs */
    bool overlaps;                     /* as of MtfCutModel */
    int max_axes;                      /* of a stage's mesh */
    const char *batch_dim, *precision; /* as of MtfStepVariant … */
    int key_parts, ring;
} MtfCutRequest;

typedef struct MtfCutSearch MtfCutSearch;

/* A search that can be asked again for less memory or more: what it has priced it keeps. The request is
 * borrowed. */
MtfCutSearch *mtf_cut_search_new(const MtfCutRequest *request);
void mtf_cut_search_free(MtfCutSearch *search);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCutSearch, mtf_cut_search_free)

/* The best cut for each number of chunks that is asked for and fits in `memory` bytes of a device
 * (MtfCutPlan), and where any recomputation will do the best whose stages differ in it, and of each number
 * of micro-batches looked at, if wanted; the fastest first.
 * Fails where none fits (MTF_ERROR_FIT), or the batch cannot be divided, or fewer parts begin with a layer than are asked
 * for (bad input). */
GPtrArray *mtf_cut_search_within(MtfCutSearch *search, int64_t memory, GError **error);

/* Of those the ones that cut between layers; none where others were not looked for either. */
GPtrArray *mtf_cut_search_between_layers(MtfCutSearch *search, int64_t memory, GError **error);

/* And those whose stages have equal devices, where others may be had. */
GPtrArray *mtf_cut_search_equal(MtfCutSearch *search, int64_t memory, GError **error);

/* The meshes (MtfMesh) that a stage of so many devices may have; NULL on an error. */
GArray *mtf_cut_meshes(const MtfCutRequest *request, int64_t devices, GError **error);

/* Gives every operation of the forward graph the stage of the plan. */
void mtf_cut_plan_apply(const MtfCutPlan *plan, MtfGraph *forward);

#endif
