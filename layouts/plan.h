// SPDX-License-Identifier: GPL-3.0-or-later
/* plan.json, what the search writes and everything else reads: the training graph, mesh, layout,
 * predictions and proof. Parts that layouts/ does not know (machine, predictions, search) travel as
 * JSON trees. */
#ifndef MTF_PLAN_H
#define MTF_PLAN_H

#include "layouts/layout.h"
#include "layouts/program.h"

#include <cjson/cJSON.h>

typedef struct {
    MtfGraph *graph;   /* the training graph */
    MtfLayout *layout; /* with the mesh */
    char *precision;   /* "f32" or "f64" */
    int microbatches;  /* 1 */
    cJSON *machine;    /* the machine file's object */
    cJSON *mapping;    /* mesh axes onto the machine's axes, or NULL */
    cJSON *predicted;  /* {"step_seconds", …} */
    cJSON *search;     /* {"cost", "bound", "gap", "method", …} */
    char *program_sha256;
} MtfPlan;

MtfPlan *mtf_plan_load(const char *path, GError **error);
MtfPlan *mtf_plan_parse(const char *name, const char *text, gsize length, GError **error);
bool mtf_plan_save(const MtfPlan *plan, const char *path, GError **error);
void mtf_plan_free(MtfPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPlan, mtf_plan_free)

/* Lowers the plan again; fails when the digest differs from the one the plan was written with. */
MtfProgram *mtf_plan_lower(const MtfPlan *plan, GError **error);

#endif
