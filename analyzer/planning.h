// SPDX-License-Identifier: GPL-3.0-or-later
/* What the planning commands share: from what the user names (a graph, a machine) to what is
 * planned with, and from a layout to a plan.
 *
 *     GRAPH --dim batch=512 --precision f64 ──► training graph       --machine tpu-v2 ──► machine
 *     training graph + layout + machine ──► plan, with predictions and the program's digest */
#ifndef MTF_PLANNING_H
#define MTF_PLANNING_H

#include "cost/price.h"
#include "layouts/plan.h"

/* The machine used where the user names none. */
#define MTF_STANDARD_MACHINE "cpu-cluster"

typedef struct {
    const char *path;
    const char *const *dims; /* "batch=512", NULL-terminated, or NULL */
    const char *precision;   /* "f32", "f64", "bf16", or NULL: as the graph has it */
} MtfPlanningGraph;

/* Loads a graph and differentiates it unless it is a training graph already (it has updates). The
 * result is in canonical order and free of composites. */
MtfGraph *mtf_planning_graph_load(const MtfPlanningGraph *request, GError **error);

/* "f64" when some tensor of the graph is float64, else "f32". */
const char *mtf_planning_precision(const MtfGraph *graph);

/* The machine of that name or file; the standard one for NULL. */
MtfMachine *mtf_planning_machine(const char *name_or_path, GError **error);

/* Where the mesh lies: {"rows": [{"axis": 0, "size": 8, "stride": 2}, …], …}, pieces of physical
 * axes from the slowest to the fastest. The caller owns the tree. */
cJSON *mtf_mapping_to_json(const MtfMesh *mesh, const MtfMapping *mapping);

/* Makes a plan: lowers, predicts, digests. Takes over graph, layout and `search`. */
MtfPlan *mtf_planning_plan_new(MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                               cJSON *search);

#endif
